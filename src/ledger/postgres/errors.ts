/** What PostgreSQL's refusals mean to us and to the user; the one place that reads its error codes. */
import { TidemarkError } from '../../base/errors.ts'
import { LOCKED_CODE } from '../contract.ts'

/** SQLSTATEs: https://www.postgresql.org/docs/current/errcodes-appendix.html */
const SERIALIZATION_FAILURE = '40001'
const DEADLOCK = '40P01'
const IN_FAILED_TRANSACTION = '25P02'
const UNIQUE_VIOLATION = '23505'
const OUT_OF_MEMORY = '53200'
/** Among the troubles of connections, but said of a statement: it was given too few or too many parameters. */
const PROTOCOL_VIOLATION = '08P01'

/** The server is going, coming or gone, or has no room for us: no statement is to blame. */
const DOWN = new Set([
  ...['57P01', '57P02', '57P03', '57P04', '57P05', '25P03', '25P04', '53300', OUT_OF_MEMORY],
  ...[
    'ECONNREFUSED',
    'ECONNRESET',
    'ECONNABORTED',
    'EPIPE',
    'ETIMEDOUT',
    'EHOSTUNREACH',
    'EHOSTDOWN',
    'ENETUNREACH',
  ],
  ...['ENETDOWN', 'EAI_AGAIN', 'ENOENT', 'EACCES'],
])
/** What pg says when a connection is lost; these errors have no code. */
const DOWN_MESSAGE =
  /^(Connection terminated|timeout expired|timeout exceeded when trying to connect|Query read timeout|Client has encountered a connection error|Client was closed|Cannot use a pool after calling end)/
const TLS_MESSAGE = /SSL|TLS|certificate/i

/** Races that the ledger's own logic decides when it looks again. */
const LEDGER_TABLES = new Set(['jobs', 'segments', 'streams', 'job_deps', 'bad_items'])

type ServerError = {
  code?: unknown
  message?: unknown
  table?: unknown
  constraint?: unknown
  hostname?: unknown
  severity?: unknown
}

export function codeOf(thrown: unknown): string | undefined {
  const code = (thrown as ServerError | null)?.code
  return typeof code === 'string' ? code : undefined
}

/** Two transactions waited for each other and the server ended ours: nothing of it happened. */
export function isDeadlock(thrown: unknown): boolean {
  if (thrown instanceof TidemarkError) return false
  const code = codeOf(thrown)
  return code === DEADLOCK || code === SERIALIZATION_FAILURE
}

/** An earlier statement failed and somebody went on: that one is the reason. */
export function isAftermath(thrown: unknown): boolean {
  return codeOf(thrown) === IN_FAILED_TRANSACTION
}

/** A table that our prepared statement reads was changed under it: a new connection prepares it anew. */
export function isStalePlan(thrown: unknown): boolean {
  return codeOf(thrown) === '0A000' && /cached plan/.test(messageOf(thrown))
}

/**
 * A statement failed, and the session goes on: a foreign table whose server is away, a file that is not there, a query
 * that wants too much memory. What ends the session, or refuses it, is FATAL. (A server that speaks another language
 * than English cannot be told from one that is down.)
 */
function isOfStatement(thrown: unknown): boolean {
  return (thrown as ServerError | null)?.severity === 'ERROR'
}

export function isDown(thrown: unknown): boolean {
  const code = codeOf(thrown)
  if (isOfStatement(thrown)) return false
  return code === undefined ? DOWN_MESSAGE.test(messageOf(thrown)) : isDownCode(code)
}

function isDownCode(code: string | undefined): boolean {
  return code !== undefined && (DOWN.has(code) || (code.startsWith('08') && code !== PROTOCOL_VIOLATION))
}

type Trouble = {
  kind: 'transient' | 'permanent'
  says: (where: string) => string
  code: string
  hint: string
}

const BROKEN_FILES: Trouble = {
  kind: 'transient',
  says: (where) => `${where} cannot read or write its own files.`,
  code: 'ledger-io',
  hint: 'See the log of the server; check its disk.',
}
const DAMAGED: Trouble = {
  kind: 'permanent',
  says: (where) => `The ledger at ${where} is damaged.`,
  code: 'ledger-corrupt',
  hint: 'Restore it from a backup; see the log of the server.',
}

/** A statement may run into these by itself, with files and servers of its own. */
const OF_STATEMENTS = new Set(['58P01', '3D000', '28P01', '28000'])

/** Of the server or its address, by code: no statement is to blame. */
const TROUBLES: Readonly<Record<string, Trouble>> = {
  ENOTFOUND: {
    kind: 'transient',
    says: (where) => `The host of ${where} cannot be found.`,
    code: 'ledger-down',
    hint: 'Check the name in ledger.url and the network.',
  },
  '53100': {
    kind: 'transient',
    says: (where) => `The disk of ${where} is full.`,
    code: 'ledger-full',
    hint: 'Free some space on the server; work goes on by itself.',
  },
  [OUT_OF_MEMORY]: {
    kind: 'transient',
    says: (where) => `${where} is out of memory.`,
    code: 'ledger-memory',
    hint: 'See what else the server does, or give it more; work goes on by itself.',
  },
  '25P03': {
    kind: 'transient',
    says: (where) => `${where} ended a transaction in which this process stood still.`,
    code: 'ledger-idle',
    hint: 'The process was suspended or too busy; its work goes on by itself.',
  },
  '25006': {
    kind: 'transient',
    says: (where) => `${where} accepts no writes.`,
    code: 'ledger-readonly',
    hint: 'Connect to the primary server, not to a replica.',
  },
  '58030': BROKEN_FILES,
  '58P01': BROKEN_FILES,
  XX001: DAMAGED,
  XX002: DAMAGED,
  '3D000': {
    kind: 'permanent',
    says: (where) => `There is no such database: ${where}.`,
    code: 'ledger-missing',
    hint: 'Create it (`createdb NAME`), or correct ledger.url.',
  },
}

/** Errors of the database itself get a `ledger-` code: no job is to blame for them. */
export function classify(thrown: unknown, where: string): unknown {
  if (thrown instanceof TidemarkError) return thrown
  const code = codeOf(thrown)
  const isOwn = isOfStatement(thrown) && code !== OUT_OF_MEMORY
  if (isOwn && (OF_STATEMENTS.has(code ?? '') || isDownCode(code)))
    return new TidemarkError(messageOf(thrown), { kind: 'transient', cause: thrown })
  const trouble = code === undefined ? undefined : TROUBLES[code]
  if (!trouble && (isDown(thrown) || isStalePlan(thrown))) return downError(thrown, where)
  if (trouble) {
    const { kind, says, code: name, hint } = trouble
    return new TidemarkError(says(where), { kind, code: name, hint, cause: thrown })
  }
  switch (code) {
    case '28P01':
    case '28000':
      return new TidemarkError(`${where} refused the login: ${messageOf(thrown)}.`, {
        kind: 'auth',
        code: 'ledger-auth',
        hint: 'Check the user and the password in ledger.url.',
        cause: thrown,
      })
    case '22021':
      return new TidemarkError('A text holds a character that PostgreSQL cannot store (NUL).', {
        kind: 'permanent',
        cause: thrown,
      })
    case '55P03':
      return new TidemarkError(`${where} did not wait for a lock any longer: ${messageOf(thrown)}.`, {
        kind: 'transient',
        code: LOCKED_CODE,
        cause: thrown,
      })
    case '57014':
    case DEADLOCK:
    case SERIALIZATION_FAILURE:
      return new TidemarkError(`${where} ended a transaction: ${messageOf(thrown)}.`, {
        kind: 'transient',
        cause: thrown,
      })
    case UNIQUE_VIOLATION:
      return uniqueViolation(thrown)
    default:
      return tlsError(thrown, where) ?? thrown
  }
}

/**
 * What a statement of an effect ended with. The memory that it wants is its own choice, where one of the ledger's, which
 * are small, can only have met a server that has none left.
 */
export function classifyOfEffect(classified: unknown): unknown {
  if (!(classified instanceof TidemarkError) || codeOf(classified.cause) !== OUT_OF_MEMORY) return classified
  const { cause } = classified
  if (!isOfStatement(cause)) return classified
  return new TidemarkError(messageOf(cause), { kind: 'transient', code: 'effect-memory', cause })
}

/** No job has anything to do with a connection that cannot be had, whatever the server says about it. */
export function connectError(thrown: unknown, where: string): TidemarkError {
  const error = classify(thrown, where)
  if (!(error instanceof TidemarkError) || !error.code?.startsWith('ledger-')) return downError(thrown, where)
  const { message, code, hint, cause } = error
  return new TidemarkError(message, { kind: 'transient', code, hint, cause })
}

export function downError(thrown: unknown, where: string): TidemarkError {
  const reason =
    codeOf(thrown) === '53300'
      ? 'it has no connection left to give'
      : messageOf(thrown) || String(codeOf(thrown))
  return outage(
    thrown,
    `${where} cannot be reached: ${reason}.`,
    'ledger-down',
    'Check that the server is running and reachable; work goes on by itself when it is back.',
  )
}

function outage(cause: unknown, message: string, code: string, hint: string): TidemarkError {
  return new TidemarkError(message, { kind: 'transient', code, hint, cause })
}

function refusal(cause: unknown, message: string, code: string, hint: string): TidemarkError {
  return new TidemarkError(message, { kind: 'permanent', code, hint, cause })
}

function uniqueViolation(thrown: unknown): unknown {
  const { table, constraint } = thrown as ServerError
  if (typeof table !== 'string' || !LEDGER_TABLES.has(table)) return thrown
  return new TidemarkError(`Another process was faster: ${constraint} of ${table} is taken.`, {
    kind: 'transient',
    cause: thrown,
  })
}

function tlsError(thrown: unknown, where: string): TidemarkError | undefined {
  const code = codeOf(thrown) ?? ''
  const about = code === '' || /CERT|SIGNATURE|TLS|SSL/.test(code)
  if (!about || !TLS_MESSAGE.test(`${messageOf(thrown)} ${code}`)) return undefined
  return refusal(
    thrown,
    `No secure connection to ${where}: ${messageOf(thrown)}.`,
    'ledger-tls',
    'Check sslmode and sslrootcert in ledger.url.',
  )
}

/** An AggregateError of several addresses has no message of its own. */
export function messageOf(thrown: unknown): string {
  if (thrown instanceof AggregateError && thrown.errors.length > 0) return messageOf(thrown.errors[0])
  const text =
    thrown instanceof Error ? thrown.message : String((thrown as ServerError | null)?.message ?? thrown)
  return text.replace(/\.$/, '')
}
