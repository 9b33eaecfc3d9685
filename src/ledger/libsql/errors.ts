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

  /**
   * Ended while nobody used it, or with a server that was started anew: nothing of what was asked was done. Not so where
   * somebody on the way has sent it twice: then it may have been.
   */
  get isLostStream(): boolean {
    if (this.code === STREAM_EXPIRED) return true
    return this.status === 400 && /baton/.test(this.message) && !/already been used/.test(this.message)
  }

  /**
   * The lock was not to be had; or the server gives notice, once more, that it has ended the transaction before on this
   * stream. Of a BEGIN, or of a statement that is a transaction by itself: it was not run, and can be sent again.
   */
  get isNotBegun(): boolean {
    return NOT_BEGUN.test(this.code ?? '')
  }

  /** Nothing of what was asked was done. Whoever gave another answer may have passed the request on before. */
  get isRefusal(): boolean {
    const { status } = this
    return this.isLostStream || (status !== undefined && REFUSALS.has(status))
  }
}

/** Redirections, no token, another token, no database, too large, too many. */
const REFUSALS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308, 401, 403, 404, 413, 429])

/** Of what a server says of a statement; a replica says what the primary told it, without the code. */
export function serverError({ message, code }: { message: string; code?: string | null }): ServerError {
  if (code !== 'PROXY_ERROR') return new ServerError(message, { code: code ?? undefined })
  const told = message.replace(/^error executing a request on the primary: /, '')
  return new ServerError(told, { code: TOLD.find(([words]) => words.test(told))?.[1] ?? code })
}

/** How the primary says it, and what its code would be. */
const TOLD: readonly [RegExp, string][] = [
  [/^Transaction timed-out/, 'TRANSACTION_TIMEOUT'],
  [/can't handle additional transactions/, 'TRANSACTION_BUSY'],
  [/^Operation was blocked/, 'BLOCKED'],
  [/too large/, 'RESPONSE_TOO_LARGE'],
  [/constraint failed/, 'SQLITE_CONSTRAINT'],
  [/^database (?:table )?is locked/, 'SQLITE_BUSY'],
  [/^database or disk is full/, 'SQLITE_FULL'],
  [/^attempt to write a readonly database/, 'SQLITE_READONLY'],
  [/^disk I\/O error/, 'SQLITE_IOERR'],
  [/^database disk image is malformed/, 'SQLITE_CORRUPT'],
]

/** One of the statements of a request cannot be read, so that none was run; which one it was is not told. */
export class UnreadError extends ServerError {}

/**
 * What was asked for is more than an answer may hold. Those before it that have no rows were run, nothing behind it was,
 * and the transaction goes on if `isOpen`.
 */
export class TooLargeError extends ServerError {
  readonly isOpen: boolean

  constructor(message: string, { code, isOpen }: { code: string | undefined; isOpen: boolean }) {
    super(message, { code })
    this.isOpen = isOpen
  }
}

/** No answer, or none of a libSQL server: what was asked may have been done. */
export class AnswerError extends Error {}

/** A statement came behind one that had failed; that one is the reason. */
export class Aftermath extends Error {}

/** Not of a statement: the transaction that the server has ended, because others waited for it too long. */
export const TIMED_OUT = 'TRANSACTION_TIMEOUT'
/** Not of the server: it refuses us, and we had no token. */
export const NO_TOKEN = 'NO_TOKEN'
export const TOO_LARGE = 'RESPONSE_TOO_LARGE'
/** Not of the server: more than a process reads at once. */
export const UNHELD = 'ANSWER_NOT_HELD'
const STREAM_EXPIRED = 'STREAM_EXPIRED'
const NOT_BEGUN = new RegExp(`^(?:${TIMED_OUT}|TRANSACTION_BUSY|SQLITE_BUSY)`)

type Trouble = { says: string; code: string; hint: string; kind?: 'permanent' }

/** By the code of SQLite, of which extended ones begin with the primary. */
const TROUBLES: readonly [RegExp, Trouble][] = [
  [
    /^SQLITE_BUSY|^SQLITE_LOCKED|^TRANSACTION_BUSY/,
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
  if (!trouble) return code === 'CLOSED' ? closedError(thrown) : (sizeError(thrown, where) ?? thrown)
  const reason = trouble.code === 'ledger-readonly' ? ` ${thrown.message}.` : ''
  return new TidemarkError(`The ledger at ${where} ${trouble.says}${reason}`, {
    kind: trouble.kind ?? 'transient',
    code: trouble.code,
    hint: trouble.hint,
    cause: thrown,
  })
}

/** Of what was asked, and not of the database: whoever asked is told. */
function sizeError(thrown: ServerError, where: string): TidemarkError | undefined {
  if (thrown.code === TOO_LARGE)
    return new TidemarkError(`What was asked of ${where} is more than the server puts into one answer.`, {
      kind: 'transient',
      code: 'answer-too-large',
      hint: 'It is 10 MB, and 32 MB of all answers at a time, unless the server is told otherwise: ask for fewer rows.',
      cause: thrown,
    })
  if (thrown.code === UNHELD)
    return new TidemarkError(
      `What was asked of ${where} is too much to be read at once: ${thrown.message}.`,
      {
        kind: 'permanent',
        code: 'answer-too-large',
        hint: 'Ask for fewer rows.',
        cause: thrown,
      },
    )
  if (thrown.code !== 'SQLITE_TOOBIG' && !/string or blob too big/.test(thrown.message)) return undefined
  return new TidemarkError(`A row, or a value in it, is larger than ${where} stores.`, {
    kind: 'permanent',
    code: 'value-too-large',
    hint: 'A libSQL server stores rows of up to 5 MB, unless its database is set up otherwise: keep what is larger in a file.',
    cause: thrown,
  })
}

function refusalError(thrown: ServerError, where: string): TidemarkError {
  const say = (kind: 'auth' | 'permanent' | 'transient', message: string, code: string, hint: string) =>
    new TidemarkError(message, { kind, code, hint, cause: thrown })
  const words = thrown.message.replace(/\.$/, '')
  switch (thrown.status) {
    case 401:
      if (thrown.code === NO_TOKEN)
        return say(
          'auth',
          `${where} asks for a token, and there is none: ${words}.`,
          'ledger-auth',
          'Set it: tidemark config set ledger.token, which asks for it and does not show it.',
        )
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
    case 429:
      return say(
        'transient',
        `${where} has too much to do: ${words}.`,
        'ledger-busy',
        'Work goes on by itself when it has less.',
      )
    default:
      return downError(thrown, where)
  }
}

function downError(thrown: unknown, where: string): TidemarkError {
  return new TidemarkError(...downWords(thrown, where))
}

function downWords(
  thrown: unknown,
  where: string,
): [message: string, options: ConstructorParameters<typeof TidemarkError>[1]] {
  const say = (message: string, hint: string): ReturnType<typeof downWords> => [
    message,
    { kind: 'transient', code: 'ledger-down', hint, cause: thrown },
  ]
  const code = String((thrown as { code?: unknown } | null)?.code ?? '')
  if (code === 'ENOTFOUND' || code === 'EAI_AGAIN')
    return say(`The host of ${where} cannot be found.`, 'Check the name in ledger.url and the network.')
  if (code === 'EPROTO')
    return say(
      `${where} is asked with TLS, and does not answer so.`,
      'A server without it is http://HOST:PORT in ledger.url; libsql:// and https:// stand for one with it.',
    )
  if (/CERT|SIGNATURE/.test(code))
    return say(
      `The certificate of ${where} is not trusted: ${messageOf(thrown)}.`,
      'Check the name in ledger.url; NODE_EXTRA_CA_CERTS=FILE has Node trust more authorities than it knows.',
    )
  if (thrown instanceof ServerError && thrown.isLostStream)
    return say(
      `${where} has ended a transaction: it was started anew, or had not heard of this process for too long.`,
      'Work goes on by itself.',
    )
  // By the server, by another one, or by something between.
  if (thrown instanceof ServerError || thrown instanceof AnswerError)
    return say(
      `${where} does not answer as it should: ${messageOf(thrown)}.`,
      'Check ledger.url, and what is between here and the server; work goes on by itself when it is back.',
    )
  return say(
    `${where} cannot be reached: ${messageOf(thrown)}.`,
    'Check that the server is running and reachable; work goes on by itself when it is back.',
  )
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
