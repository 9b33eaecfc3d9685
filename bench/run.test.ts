import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'

const RUN = fileURLToPath(new URL('run.ts', import.meta.url))

function run(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  return spawnSync(process.execPath, [RUN, ...args], { encoding: 'utf8' })
}

describe('the bench command', () => {
  test('an unknown bench is wrong usage, and the known ones are named', () => {
    const { status, stdout, stderr } = run('nothing')
    assert.equal(status, 2)
    assert.equal(stdout, '')
    assert.match(stderr, /no bench is called nothing; there is: .*engine/)
  })

  test('an unknown option is wrong usage', () => {
    const { status, stderr } = run('engine', '--fast')
    assert.equal(status, 2)
    assert.match(stderr, /usage: npm run bench/)
  })

  test('a part of a run cannot be saved as the result', () => {
    assert.equal(run('engine', '--quick', '--save').status, 2)
  })
})
