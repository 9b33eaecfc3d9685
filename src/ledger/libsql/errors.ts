/** What a libSQL server's refusals mean to us and to the user; the one place that reads its error codes. */
import { TidemarkError } from '../../base/errors.ts'

/** What the server said, of a statement or of all that was asked; `status` is HTTP's, where that is not 200. */
export class ServerError extends Error {
  readonly code: string | undefined
  readonly status: number | undefined

  constructor(message: string, { code, status }: { code?: string | undefined; status?: number } = {}) {
    // As SQLite itself says it.
    super(message.replace(/^SQLite error: /, ''))
    this.code = code
    this.status = status
  }

  /** Ended while nobody used it, or with a server that was started anew: nothing of what was asked was done. */
  get isLostStream(): boolean {
    return this.status === 400 && (this.code === STREAM_EXPIRED || /baton/.test(this.message))
  }
}

/** One of the statements of a request cannot be read, so that none was run; which one it was is not told. */
export class UnreadError extends ServerError {}

/** No answer, or none of a libSQL server: what was asked may have been done. */
export class AnswerError extends Error {}

/** A statement came behind one that had failed; that one is the reason. */
export class Aftermath extends Error {}

/** Not of a statement: the transaction that the server has ended, because others waited for it too long. */
export const TIMED_OUT = 'TRANSACTION_TIMEOUT'
const STREAM_EXPIRED = 'STREAM_EXPIRED'

type Trouble = { says: string; code: string; hint: string; kind?: 'permanent' }

/** By the code of SQLite, of which extended ones begin with the primary. */
const TROUBLES: readonly [RegExp, Trouble][] = [
  [
    /^SQLITE_BUSY|^SQLITE_LOCKED/,
    {
      says: 'is locked by another process.',
      code: 'ledger-busy',
      hint: 'Wait for it to finish; work goes on by itself.',
    },
  ],
  [
    /^SQLITE_FULL/,
    {
      says: 'cannot grow: the disk of the server is full, or the database is as large as it may be.',
      code: 'ledger-full',
      hint: 'Free some space, or take a larger plan; work goes on by itself.',
    },
  ],
  [
    /^SQLITE_READONLY/,
    {
      says: 'cannot be written.',
      code: 'ledger-readonly',
      hint: 'Connect to the primary, not to a replica that only reads.',
    },
  ],
  [
    /^BLOCKED/,
    {
      says: 'accepts no writes now.',
      code: 'ledger-readonly',
      hint: 'The server says why; Turso blocks a database that is above its plan. Work goes on by itself.',
    },
  ],
  [
    /^SQLITE_IOERR/,
    {
      says: 'cannot read or write its own files.',
      code: 'ledger-io',
      hint: 'See the log of the server; check its disk.',
    },
  ],
  [
    /^SQLITE_CORRUPT|^SQLITE_NOTADB/,
    {
      says: 'is damaged.',
      code: 'ledger-corrupt',
      hint: 'Restore it from a backup; see the log of the server.',
      kind: 'permanent',
    },
  ],
  [
    new RegExp(`^${TIMED_OUT}`),
    {
      says: 'ended a transaction in which this process stood still.',
      code: 'ledger-idle',
      hint: 'The process was suspended or too busy; its work goes on by itself.',
    },
  ],
]

/** Errors of the database itself get a `ledger-` code: no job is to blame for them. */
export function classify(thrown: unknown, where: string): unknown {
  if (thrown instanceof TidemarkError || thrown instanceof RangeError) return thrown
  if (thrown instanceof Aftermath) return thrown
  if (!(thrown instanceof ServerError)) return downError(thrown, where)
  if (thrown.status !== undefined) return refusalError(thrown, where)
  const code = thrown.code ?? ''
  const trouble = TROUBLES.find(([pattern]) => pattern.test(code))?.[1]
  if (!trouble) return code === 'CLOSED' ? closedError(thrown) : thrown
  const reason = trouble.code === 'ledger-readonly' ? ` ${thrown.message}.` : ''
  return new TidemarkError(`The ledger at ${where} ${trouble.says}${reason}`, {
    kind: trouble.kind ?? 'transient',
    code: trouble.code,
    hint: trouble.hint,
    cause: thrown,
  })
}

function refusalError(thrown: ServerError, where: string): TidemarkError {
  const say = (kind: 'auth' | 'permanent' | 'transient', message: string, code: string, hint: string) =>
    new TidemarkError(message, { kind, code, hint, cause: thrown })
  const words = thrown.message.replace(/\.$/, '')
  switch (thrown.status) {
    case 401:
      return say(
        'auth',
        `${where} refused the token: ${words}.`,
        'ledger-auth',
        'Check ledger.token: it may be of another database, or have expired.',
      )
    case 403:
      return say(
        'transient',
        `${where} accepts no writes from this token: ${words}.`,
        'ledger-readonly',
        'Take a token with full access: one that may only read does not do.',
      )
    case 404:
      return say(
        'permanent',
        `There is no such database: ${where} (${words}).`,
        'ledger-missing',
        'Create it, or correct ledger.url.',
      )
    default:
      return downError(thrown, where)
  }
}

function downError(thrown: unknown, where: string): TidemarkError {
  const isUnknown = (thrown as { code?: unknown } | null)?.code === 'ENOTFOUND'
  const message = isUnknown
    ? `The host of ${where} cannot be found.`
    : `${where} cannot be reached: ${messageOf(thrown)}.`
  return new TidemarkError(message, {
    kind: 'transient',
    code: 'ledger-down',
    hint: isUnknown
      ? 'Check the name in ledger.url and the network.'
      : 'Check that the server is running and reachable; work goes on by itself when it is back.',
    cause: thrown,
  })
}

function closedError(cause?: unknown): TidemarkError {
  return new TidemarkError('The ledger is closed.', { kind: 'bug', cause })
}

/** An AggregateError of several addresses has no message of its own. */
function messageOf(thrown: unknown): string {
  if (thrown instanceof AggregateError && thrown.errors.length > 0) return messageOf(thrown.errors[0])
  const text = thrown instanceof Error ? thrown.message : String(thrown)
  return text.replace(/\.$/, '')
}
