import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ObjectStore } from '../../cloud/object-store.ts'
import { PREVIEW_BYTES_MAX, previewObject } from './preview.ts'
import { AUTO, bodyOf, LIMITS } from './records/records.suite.ts'

function storeOf(bytes: Uint8Array): ObjectStore {
  return {
    scheme: 's3',
    read: (_uri, { fromByte }) => bodyOf(bytes)(fromByte),
    head: async () => undefined,
    list: async () => ({ objects: [], next: null }),
    close: async () => {},
  }
}

const OPTIONS = { read: AUTO, recordsMax: 2, limits: LIMITS, signal: new AbortController().signal }

test('a preview shows shape, proposal and the first records, and fetches little', async () => {
  const lines = Array.from(
    { length: 100_000 },
    (_, at) => `{"id":${at},"message":"what was said in line ${at}"}`,
  )
  const preview = await previewObject(storeOf(Buffer.from(lines.join('\n'))), 's3://b/a.log', OPTIONS)
  assert.equal(preview.shape.format, 'ndjson')
  assert.deepEqual(preview.proposal.mapping, { text: ['message'], facets: [], id: 'id' })
  assert.deepEqual(
    preview.records.map(({ record }) => record.text),
    ['what was said in line 0', 'what was said in line 1'],
  )
  assert.ok(preview.fetchedBytes < 300_000, `${preview.fetchedBytes} bytes`)
})

test('a preview of an endless record stops at its limit and says so', async () => {
  const bytes = Buffer.alloc(PREVIEW_BYTES_MAX + 1_000_000, 'x')
  const preview = await previewObject(storeOf(bytes), 's3://b/a.txt', OPTIONS)
  assert.deepEqual([preview.stopped?.code, preview.records], ['preview-limit', []])
})
