/** What SQLite's refusals mean to us and to the user; the one place that reads its error codes. */
import { TidemarkError } from '../../base/errors.ts'
import { foreignDatabaseError } from '../schema.ts'

const SQLITE_BUSY = 5
const SQLITE_READONLY = 8
const SQLITE_IOERR = 10
const SQLITE_CORRUPT = 11
const SQLITE_FULL = 13
const SQLITE_CANTOPEN = 14
const SQLITE_CONSTRAINT = 19
const SQLITE_NOTADB = 26

/** The primary code; extended codes carry it in their low byte. */
function sqliteCode(thrown: unknown): number | undefined {
  const code = (thrown as { errcode?: unknown } | null)?.errcode
  return typeof code === 'number' ? code & 0xff : undefined
}

export function isBusy(thrown: unknown): boolean {
  return sqliteCode(thrown) === SQLITE_BUSY
}

export function isConstraint(thrown: unknown): boolean {
  return sqliteCode(thrown) === SQLITE_CONSTRAINT
}

/** Errors of the database itself get a `ledger-` code: no job is to blame for them. */
export function classify(thrown: unknown, where: string): unknown {
  if (thrown instanceof TidemarkError) return thrown
  const say = (message: string, code: string, hint: string): TidemarkError =>
    new TidemarkError(message, { kind: 'transient', code, hint, cause: thrown })
  switch (sqliteCode(thrown)) {
    case SQLITE_BUSY:
      return say(
        `The ledger at ${where} is locked by another process.`,
        'ledger-busy',
        'Wait for it to finish, or end it.',
      )
    case SQLITE_FULL:
      return say(
        `The disk is full: the ledger at ${where} cannot grow.`,
        'ledger-full',
        'Free some space; work goes on by itself.',
      )
    case SQLITE_READONLY:
      return say(
        `The ledger at ${where} cannot be written.`,
        'ledger-readonly',
        'Check the permissions of the file and its folder.',
      )
    case SQLITE_CANTOPEN:
      return say(
        `The ledger at ${where} cannot be opened.`,
        'ledger-cantopen',
        'Check that its folder exists and can be written.',
      )
    case SQLITE_IOERR:
      return say(
        `Reading or writing the ledger at ${where} failed.`,
        'ledger-io',
        'Check the disk (space, health, mount).',
      )
    case SQLITE_NOTADB:
      return foreignDatabaseError(where, thrown)
    case SQLITE_CORRUPT:
      return new TidemarkError(`The ledger at ${where} is damaged.`, {
        kind: 'permanent',
        code: 'ledger-corrupt',
        hint: 'Restore it from a backup, or try `sqlite3 FILE ".recover"` on a copy. Nothing more was written to it.',
        cause: thrown,
      })
    default:
      return thrown
  }
}
