import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { MetricFamily } from '../engine/observe/metrics.ts'
import { appMetricsText } from './metrics.ts'
import type { OpenApp } from './runtime.ts'

function appsWith(all: Record<string, () => Promise<readonly MetricFamily[]>>) {
  return { apps: new Map(Object.entries(all).map(([name, metrics]) => [name, { metrics } as OpenApp])) }
}

const family = (name: string, labels: Record<string, string>): MetricFamily => ({
  name,
  type: 'gauge',
  help: 'Of a test.',
  samples: [{ labels, value: 3 }],
})

describe('metrics of apps', () => {
  test('are told with their labels, whatever is in these', async () => {
    const text = await appMetricsText(
      appsWith({ one: async () => [family('tidemark_one_things', { name: 'a "b"\nc' })] }),
    )
    assert.match(text, /^# HELP tidemark_one_things Of a test\.$/m)
    assert.match(text, /^# TYPE tidemark_one_things gauge$/m)
    assert.match(text, /^tidemark_one_things\{name="a \\"b\\"\\nc"\} 3$/m)
    assert.match(text, /^tidemark_app_up\{app="one"\} 1$/m)
  })

  test('of an app that fails are missing, and all others are there', async () => {
    const text = await appMetricsText(
      appsWith({
        broken: async () => {
          throw new Error('its table is away')
        },
        misnamed: async () => [family('tidemark_jobs', {})],
        whole: async () => [family('tidemark_whole_things', {})],
      }),
    )
    assert.match(text, /^tidemark_whole_things 3$/m)
    assert.doesNotMatch(text, /tidemark_jobs/)
    assert.match(text, /^tidemark_app_up\{app="broken"\} 0$/m)
    assert.match(text, /^tidemark_app_up\{app="misnamed"\} 0$/m)
  })

  test('are nothing where no app has any', async () => {
    assert.equal(await appMetricsText({ apps: new Map([['quiet', {} as OpenApp]]) }), '')
  })
})
