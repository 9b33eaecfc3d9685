import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TidemarkError } from '../base/errors.ts'
import { ThreadClient } from './thread-client.ts'

const service = new URL('./thread-service.ts', import.meta.url).href

function thread(body: string): ThreadClient {
  const script = `import { serve } from ${JSON.stringify(service)}
    const errors = await import(${JSON.stringify(new URL('../base/errors.ts', import.meta.url).href)})
    ${body}`
  return new ThreadClient({
    script: new URL(`data:text/javascript,${encodeURIComponent(script)}`),
    name: 'The test thread',
    code: 'archive-thread',
    data: {},
    heapMbMax: 32,
  })
}

test('a thread that dies refuses what it had as transient, and is started again', async () => {
  const client = thread(`serve({ echo: (value) => value, die: () => process.exit(3) }, () => {})`)
  assert.equal(await client.ask('echo', 1), 1)
  const asked = await Promise.allSettled([client.ask('die', 0), client.ask('echo', 2)])
  for (const answer of asked) {
    assert.equal(answer.status, 'rejected')
    assert.equal(answer.status === 'rejected' && answer.reason.kind, 'transient')
    assert.equal(answer.status === 'rejected' && answer.reason.code, 'archive-thread')
  }
  assert.equal(client.deaths, 1)
  assert.equal(await client.ask('echo', 3), 3)
  await client.stop()
})

test('a thread that runs out of memory is a death like others', async () => {
  const client = thread(
    `serve({ fill: () => { const all = []; for (;;) all.push('x'.repeat(10) + all.length) } }, () => {})`,
  )
  await assert.rejects(client.ask('fill', 0), { code: 'archive-thread', kind: 'transient' })
  await client.stop()
})

test('errors keep their kind, code and hint on their way', async () => {
  const client = thread(`serve({
    known: () => { throw new errors.TidemarkError('no', { kind: 'gone', code: 'c', hint: 'h', retryAfterMs: 5 }) },
    usage: () => { throw new errors.UsageError('wrong') },
    other: () => { throw new TypeError('oops') },
  }, () => {})`)
  await assert.rejects(client.ask('known', 0), (thrown) => {
    assert.ok(thrown instanceof TidemarkError)
    assert.deepEqual([thrown.kind, thrown.code, thrown.hint, thrown.retryAfterMs], ['gone', 'c', 'h', 5])
    return true
  })
  await assert.rejects(client.ask('usage', 0), { name: 'UsageError' })
  await assert.rejects(client.ask('other', 0), /oops/)
  await assert.rejects(client.ask('unheard', 0), /unheard/)
  await client.stop()
})

test('a thread that is stopped answers what it was asked, and nothing more', async () => {
  const client = thread(`serve({ echo: (value) => value }, () => {})`)
  const asked = client.ask('echo', 1)
  await client.stop()
  assert.equal(await asked, 1)
  await assert.rejects(client.ask('echo', 2), { code: 'archive-thread' })
})
