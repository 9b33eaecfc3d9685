import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Tx } from '../../ledger/contract.ts'
import { CodeCache } from './code-cache.ts'

/** Contents whose codes are as many bytes of their own number as they have parts. */
function world(parts: (contentId: number) => number) {
  const read: number[] = []
  const tx = {
    async all(_sql: string, [, ids]: [number, string]) {
      const asked = JSON.parse(ids) as number[]
      read.push(...asked)
      return asked.flatMap((id) =>
        Array.from({ length: parts(id) }, () => ({ content_id: id, codes: new Uint8Array(8).fill(id) })),
      )
    },
  } as unknown as Tx
  return { tx, read }
}

async function seen(cache: CodeCache, tx: Tx, contentIds: readonly number[], modelId = 1) {
  const found: [number, number[]][] = []
  await cache.each(tx, { modelId, contentIds }, (id, codes, { from, to }) => {
    found.push([id, [...codes.subarray(from, to)]])
  })
  return found
}

test('codes are read once, however often they are gone through, with all their parts', async () => {
  const { tx, read } = world((id) => (id === 3 ? 0 : id))
  const cache = new CodeCache()
  const wanted = [
    [2, Array(16).fill(2)],
    [1, Array(8).fill(1)],
  ]
  assert.deepEqual(await seen(cache, tx, [2, 3, 1]), wanted)
  assert.deepEqual(await seen(cache, tx, [2, 1]), wanted)
  assert.deepEqual(read, [2, 3, 1])
})

test('with more codes than there is room for, all of them are still gone through', async () => {
  const { tx } = world(() => 1)
  const cache = new CodeCache(100)
  const ids = Array.from({ length: 100 }, (_, at) => at + 1)
  for (let round = 0; round < 3; round++) {
    assert.deepEqual(
      (await seen(cache, tx, ids)).map(([id, codes]) => [id, codes[0]]),
      ids.map((id) => [id, id]),
    )
  }
})

test('another model has codes of its own', async () => {
  const { tx, read } = world(() => 1)
  const cache = new CodeCache()
  await seen(cache, tx, [5], 1)
  await seen(cache, tx, [5], 2)
  assert.deepEqual(read, [5, 5])
})
