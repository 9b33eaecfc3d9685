import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Account } from '../../ledger/accounts.ts'
import { checkConfig } from './configure.ts'
import { readPipeline, SERVICE } from './pipeline.ts'

test('an address that nobody may configure any more is still read where it was stored', () => {
  const inbox = { queue: { kind: 'inbox' } }
  for (const [config, why] of [
    [{ ...inbox, allow: ['https://host/x'] }, /--allow: it must begin with s3:\/\//],
    [{ ...inbox, location: 'logs' }, /--bucket: it must begin with s3:\/\//],
    [{ ...inbox, after: { do: 'move', to: 'https://host/done/' } }, /--to: it must begin with s3:\/\//],
  ] as const) {
    assert.throws(() => checkConfig(config), why)
    const account = { name: 'logs', settings: { [SERVICE]: config } } as unknown as Account
    assert.partialDeepStrictEqual(readPipeline(account).config, config)
  }
})

test('a place that objects were moved to before keeps nobody from changing the rest', () => {
  const leftOut = ['https://host/done/']
  assert.deepEqual(checkConfig({ queue: { kind: 'inbox' }, leftOut }).leftOut, leftOut)
})
