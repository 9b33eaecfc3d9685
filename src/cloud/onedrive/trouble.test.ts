/** Transfers through all kinds of trouble, by a caller that does what the README says. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TidemarkError } from '../../base/errors.ts'
import { quickXorHash } from '../../base/quick-xor-hash.ts'
import { type DriveItem, FRAGMENT_STEP_BYTES, type OneDriveClient } from './client.ts'
import { simulated } from './simulated-client.suite.ts'

const TRIES_MAX = 200
const STEP = FRAGMENT_STEP_BYTES

/** Again where it may be tried again; `undefined` for a failure that only asks to look anew. */
async function attempt<T>(work: () => Promise<T>, look: readonly string[] = []): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    assert.ok(error instanceof TidemarkError, String(error))
    const again = error.kind === 'transient' || error.kind === 'throttled' || look.includes(error.code ?? '')
    if (!again) throw error
    return undefined
  }
}

async function insist<T>(work: () => Promise<T>, look: readonly string[] = []): Promise<T> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const value = await attempt(work, look)
    if (value !== undefined) return value
  }
  return assert.fail('It never worked.')
}

async function upload(
  client: OneDriveClient,
  to: { driveId: string; parentId: string; name: string },
  content: Buffer,
): Promise<{ item: DriveItem; sentBytes: number }> {
  const { driveId, ...target } = to
  const total = content.length
  let sentBytes = 0
  let url = ''
  let item: DriveItem | undefined
  for (let tries = 0; tries < TRIES_MAX && !item; tries++) {
    // What is there under the name already is ours: an answer was lost.
    item = await attempt(() => client.childByName(driveId, target), ['not-found'])
    if (item) break
    const session = url
      ? { url }
      : await attempt(
          () => client.createUploadSession(driveId, target, { conflict: 'fail', size: total }),
          ['exists'],
        )
    if (!session) continue
    url = session.url
    const status = await attempt(() => client.uploadStatus(url), ['session-gone'])
    if (!status) {
      url = ''
      continue
    }
    for (let offset = status.nextOffset; offset < total; ) {
      const length = Math.min(2 * STEP, total - offset)
      const body = content.subarray(offset, offset + length)
      const put = () => client.uploadFragment(url, { offset, total, length, body })
      sentBytes += length
      const answer = await attempt(put, ['range', 'session-gone', 'exists'])
      if (!answer) break
      if ('item' in answer) item = answer.item
      offset = 'item' in answer ? total : answer.nextOffset
    }
  }
  assert.ok(item)
  return { item, sentBytes }
}

async function downloaded(client: OneDriveClient, driveId: string, item: DriveItem): Promise<Buffer> {
  let have = Buffer.alloc(0)
  for (let tries = 0; tries < TRIES_MAX && have.length < item.size!; tries++) {
    await attempt(async () => {
      const { stream, offset } = await client.download(driveId, item.id, { offset: have.length })
      have = have.subarray(0, offset)
      for await (const chunk of stream) have = Buffer.concat([have, chunk])
    })
  }
  return have
}

for (const seed of [1, 2, 3, 4]) {
  test(`a file goes up and comes back whole, through trouble number ${seed}`, async () => {
    const { sim, client, driveId, rootId, close } = await simulated(
      { quirks: { freshDownloadUnauthorized: true, rangeIgnored: seed % 2 === 0, freshPathNotFound: true } },
      { timeoutMs: 2_000 },
      {
        seed,
        faults: {
          rules: [
            { do: 'error', status: 503, probability: 0.05 },
            { do: 'error', status: 509, probability: 0.02 },
            { do: 'throttle', status: 429, probability: 0.05, retryAfterSeconds: 1 },
            { do: 'reset', when: 'before', probability: 0.05 },
            { do: 'reset', when: 'after', probability: 0.08 },
            { do: 'truncate', probability: 0.05 },
            { do: 'truncate', probability: 0.02, close: false, methods: ['graph.item*', 'graph.session*'] },
            { do: 'content-type', probability: 0.03, methods: ['graph.item*', 'graph.session*'] },
            { do: 'stall', everyNth: 40, max: 2 },
          ],
        },
      },
    )
    const content = Buffer.alloc(12 * STEP + 77)
    for (let at = 0; at < content.length; at++) content[at] = (at * 2_654_435_761 + seed) >>> 13
    for (const name of ['a.bin', 'b.bin', 'c.bin']) {
      const { item, sentBytes } = await upload(client, { driveId, parentId: rootId, name }, content)
      const stored = await insist(() => client.item(driveId, item.id), ['not-found'])
      assert.equal(stored.hash, quickXorHash(content))
      assert.ok(sentBytes < 3 * content.length, `${sentBytes} bytes were sent`)
      assert.equal(quickXorHash(await downloaded(client, driveId, stored)), quickXorHash(content))
    }
    const names = [...sim.onedrive.drive('ann@example.com').state.root.children!.values()].map(
      ({ name }) => name,
    )
    assert.deepEqual(names.sort(), ['a.bin', 'b.bin', 'c.bin'])
    await close()
  })
}
