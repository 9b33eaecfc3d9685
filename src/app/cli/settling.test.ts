import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TidemarkError } from '../../base/errors.ts'
import type { CliContext } from '../command.ts'
import type { SyncProgress } from './progress.ts'
import { unlessStuck } from './settling.ts'
import type { OpenedSources } from './with-app.ts'

const context = { output: { isTerminal: true } } as unknown as CliContext
const opened = { app: { name: 'mail' } } as OpenedSources

function settlingOf(trouble: { detail: string; forMs: number } | undefined) {
  const stop = new AbortController()
  let shown = 0
  const show = async (): Promise<void> => {
    shown += 1
  }
  const progress = { ledger: { trouble }, show } as unknown as SyncProgress
  return { stop, shown: () => shown, settling: { stop: stop.signal, patienceMs: 90_000, progress } }
}

const never = new Promise<string>(() => undefined)
const full = { detail: 'the disk is full', forMs: 1_000 }

test('what a full ledger does not let begin is shown, and left behind when somebody says stop', async () => {
  const { stop, shown, settling } = settlingOf(full)
  const begun = unlessStuck(context, opened, settling, never)
  while (shown() === 0) await new Promise((resolve) => setImmediate(resolve))
  stop.abort()
  assert.equal(await begun, undefined)
})

test('a ledger that stays full is not waited for without end', async () => {
  const { settling } = settlingOf({ ...full, forMs: 60_000 })
  await assert.rejects(unlessStuck(context, opened, settling, never), { code: 'ledger-down' })
})

test('what begins is waited for, also by who says stop, and its failure is told', async () => {
  const { stop, settling } = settlingOf(undefined)
  stop.abort()
  const later = new Promise<string>((resolve) => setImmediate(() => resolve('begun')))
  assert.equal(await unlessStuck(context, opened, settling, later), 'begun')
  const failed = Promise.reject(new TidemarkError('refused', { kind: 'permanent', code: 'refused' }))
  await assert.rejects(unlessStuck(context, opened, settling, failed), { code: 'refused' })
})
