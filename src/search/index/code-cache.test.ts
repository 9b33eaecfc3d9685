import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Tx } from '../../ledger/contract.ts'
import { CodeCache, type ReadCodes } from './code-cache.ts'

/** Contents whose codes are as many bytes of their own number as they have parts. */
function world(parts: (contentId: number) => number) {
  const read: number[] = []
  const codes: ReadCodes = async (_tx, { contentIds }) => {
    read.push(...contentIds)
    await Promise.resolve()
    return contentIds.flatMap((id) =>
      Array.from({ length: parts(id) }, () => ({ content_id: id, codes: new Uint8Array(8).fill(id) })),
    )
  }
  return { codes, read }
}

const tx = {} as Tx

async function seen(cache: CodeCache, contentIds: readonly number[], modelId = 1) {
  const found: [number, number[]][] = []
  await cache.each(tx, { modelId, contentIds }, (id, codes, { from, to }) => {
    found.push([id, [...codes.subarray(from, to)]])
  })
  return found
}

test('codes are read once, however often they are gone through, with all their parts', async () => {
  const { codes, read } = world((id) => (id === 3 ? 0 : id))
  const cache = new CodeCache(codes)
  const wanted = [
    [2, Array(16).fill(2)],
    [1, Array(8).fill(1)],
  ]
  assert.deepEqual(await seen(cache, [2, 3, 1]), wanted)
  assert.deepEqual(await seen(cache, [2, 1]), wanted)
  assert.deepEqual(read, [2, 3, 1])
})

test('with more codes than there is room for, all of them are still gone through', async () => {
  const { codes } = world(() => 1)
  const cache = new CodeCache(codes, 100)
  const ids = Array.from({ length: 100 }, (_, at) => at + 1)
  for (let round = 0; round < 3; round++) {
    assert.deepEqual(
      (await seen(cache, ids)).map(([id, codes]) => [id, codes[0]]),
      ids.map((id) => [id, id]),
    )
  }
})

test('another model has codes of its own', async () => {
  const { codes, read } = world(() => 1)
  const cache = new CodeCache(codes)
  await seen(cache, [5], 1)
  await seen(cache, [5], 2)
  assert.deepEqual(read, [5, 5])
})

test('searches side by side find all codes whole, also where room is short', async () => {
  for (const bytesMax of [undefined, 100]) {
    const { codes } = world((id) => 1 + (id % 3))
    const cache = new CodeCache(codes, bytesMax)
    const ids = Array.from({ length: 60 }, (_, at) => at + 1)
    const searches = Array.from({ length: 5 }, () => seen(cache, ids))
    for (const found of await Promise.all(searches)) {
      assert.deepEqual(
        found,
        ids.map((id) => [id, Array(8 * (1 + (id % 3))).fill(id)]),
      )
    }
  }
})

test('a search whose codes cannot be read keeps no other from its turn', async () => {
  const { codes } = world(() => 1)
  let isAway = true
  const cache = new CodeCache(async (...asked) => {
    if (isAway) throw new Error('away')
    return codes(...asked)
  })
  await assert.rejects(seen(cache, [1]), /away/)
  isAway = false
  assert.equal((await seen(cache, [1])).length, 1)
})
