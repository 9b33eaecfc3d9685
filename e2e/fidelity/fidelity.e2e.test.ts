/** The short form of `npm run fidelity`, and that its document says what is true. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { startSim } from '../../src/sim/start.ts'
import { clients } from './clients.ts'
import { callsOf, runClients } from './harness.ts'

describe('every call works against the simulated cloud, of', () => {
  for (const client of clients) {
    test(client.client, async () => {
      const { rows } = await runClients([client], { startSim, isShort: true })
      assert.ok(rows.length > 0)
      const failed = rows.filter(({ passed }) => !passed).map(({ call, problem }) => `${call}: ${problem}`)
      assert.deepEqual(failed, [])
    })
  }
})

test('a call that fails is told with its problem, and the others go on', async () => {
  const calls = callsOf({
    wrong: async () => {
      throw new Error('no such thing')
    },
    right: async () => {},
  })
  const world = { gmail: { accounts: [{ address: 'a@example.com', messages: 0 }] } }
  const { rows } = await runClients([{ client: 'made up', world, calls: () => calls }], { startSim })
  assert.deepEqual(rows, [
    { client: 'made up', call: 'wrong', passed: false, problem: 'no such thing' },
    { client: 'made up', call: 'right', passed: true },
  ])
})

test('docs/simulated-cloud.md names every client, and every method that is not simulated', () => {
  const text = readFileSync(join(import.meta.dirname, '../../docs/simulated-cloud.md'), 'utf8')
  for (const { client, leftOut = [] } of clients) {
    assert.ok(text.includes(`| ${client} |`), client)
    for (const method of leftOut) {
      const pieces = method.split('.')
      // `comments.*` stands for all that is below it.
      const names = pieces.map((_, at) => (at === 0 ? method : `${pieces.slice(0, at).join('.')}.*`))
      assert.ok(
        names.some((name) => text.includes(`\`${name}\``)),
        method,
      )
    }
  }
})
