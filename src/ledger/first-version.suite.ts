/** A ledger as version 1 left it, which knew no codes, and what becomes of it: the same on both databases. */
import assert from 'node:assert/strict'
import type { Tx } from './contract.ts'
import type { Ledger } from './ledger.ts'
import { schemaStatements } from './schema.ts'

const BROKEN = JSON.stringify({
  kind: 'permanent',
  message: 'job #3, which it waited for, ended without success',
})

export function firstVersionStatements(dialect: Tx['dialect']): string[] {
  return [
    ...schemaStatements(dialect, { from: 0, to: 1 }),
    `INSERT INTO pauses(scope, target, reason, at) VALUES ('stream', 'mail:ann', 'sign-in needed: revoked', 1),
       ('stream', 'mail:ben', 'a holiday', 2)`,
    ...jobStatements([
      { id: 1, state: 'canceled', note: 'replaced by a newer job' },
      { id: 2, state: 'canceled', note: 'canceled by hand' },
      { id: 3, state: 'failed', error: JSON.stringify({ kind: 'permanent', message: 'no such drive' }) },
      { id: 4, state: 'failed', error: BROKEN },
      { id: 5, state: 'pending', note: 'waits: for somebody' },
    ]),
    `INSERT INTO tallies(slot, kind, stage, n) VALUES (0, 'job', 'canceled', 2), (0, 'job', 'failed', 2), (0, 'job', 'ready', 1)`,
    `INSERT INTO job_errors(job_id, attempt, at, kind, message) VALUES (3, 1, 1, 'permanent', 'no such drive')`,
  ]
}

type Row = { id: number; state: string; note?: string; error?: string }

function jobStatements(rows: readonly Row[]): string[] {
  const quoted = (text: string | undefined): string => (text === undefined ? 'NULL' : `'${text}'`)
  return rows.map(
    ({ id, state, note, error }) =>
      `INSERT INTO jobs(id, kind, lane, state, payload, note, error, created_at)
       VALUES (${id}, 'job', 'bulk', '${state}', '{}', ${quoted(note)}, ${quoted(error)}, 1)`,
  )
}

/** Nothing is lost, and every sentence that once decided something has its code. */
export async function assertRaised(ledger: Ledger): Promise<void> {
  assert.deepEqual(
    (await ledger.pauses()).map(({ target, code, reason }) => [target, code, reason]),
    [
      ['mail:ann', 'sign-in', 'sign-in needed: revoked'],
      ['mail:ben', 'by-hand', 'a holiday'],
    ],
  )
  const jobs = (await ledger.jobs({})).sort((a, b) => a.id - b.id)
  assert.deepEqual(
    jobs.map(({ note, note_code: code }) => [note, code]),
    [
      ['replaced by a newer job', 'replaced'],
      ['canceled by hand', 'canceled'],
      [null, null],
      [null, null],
      ['waits: for somebody', null],
    ],
  )
  const errorCodes = jobs.map(({ error }) => (JSON.parse(error ?? '{}') as { code?: string }).code)
  assert.deepEqual(errorCodes, [undefined, undefined, undefined, 'dependency', undefined])
  const errors = (await ledger.job(3))!.errors.map(({ code, message }) => [code, message])
  assert.deepEqual(errors, [[null, 'no such drive']])
}
