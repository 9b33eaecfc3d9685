/**
 * From a URL to connections: which server, which schema, and what every session of ours is told first.
 *
 * The password stays inside `connectionString`; `where` is what people and logs get to see.
 */
import pg from 'pg'
import { systemClock } from '../../base/clock.ts'
import { UsageError } from '../../base/errors.ts'

export const DEFAULT_SCHEMA = 'tidemark'
const CONNECT_MS_MAX = 10_000
/** A statement that runs longer waits for a lock that nobody gives back, or is lost. */
const STATEMENT_MS_MAX = 120_000
/** The server ends its statements by itself; if not even that answer comes, the connection is dead. */
const ANSWER_MS_MAX = STATEMENT_MS_MAX + 10_000
/** A process that stands still inside a transaction must not hold its locks until others give up its lease. */
const IDLE_IN_TRANSACTION_MS_MAX = 15_000
const KEEPALIVE_MS = 10_000
/** A server that answers has said good-bye by then. */
export const HANG_UP_MS_MAX = 1_000

export type Target = { connectionString: string; schema: string; where: string }

/**
 * - writer: short transactions on the ledger. Statements are planned once (planning claims anew each time
 *   cost about 0.4 ms a cycle), and a plan that was made while a table was empty serves when it is full: so sequential
 *   scans are the last resort. Outside BEGIN READ WRITE nothing can be written: BEGIN is sent ahead
 *   without waiting for its answer, and what follows must not count if it failed.
 * - reader: looks, never writes.
 * - plain: set-up, listening, the heartbeat, questions about lost commits.
 */
export type Role = 'writer' | 'reader' | 'plain'

const URL_HINT =
  'Write it as postgres://USER:PASSWORD@HOST:PORT/DATABASE, with special characters of the password percent-encoded (@ as %40, / as %2F).'

export function parseTarget(url: string): Target {
  const parsed = parseUrl(url)
  const schema = parsed.searchParams.get('schema') ?? DEFAULT_SCHEMA
  // Room is left for the names that are made from it, such as the channel's.
  if (
    !/^[a-z_][a-z0-9_]{0,47}$/.test(schema) ||
    schema.startsWith('pg_') ||
    schema === 'information_schema'
  ) {
    throw new UsageError(`A ledger cannot be kept in a schema called ${JSON.stringify(schema)}.`, {
      hint: 'Use small letters, digits and _ (at most 48), not starting with a digit or pg_.',
    })
  }
  parsed.searchParams.delete('schema')
  return { connectionString: parsed.href, schema, where: describeTarget(parsed, schema) }
}

/** Parts of a password that was not encoded must not end up in a message as a host or a database. */
function parseUrl(url: string): URL {
  let parsed: URL | undefined
  try {
    parsed = new URL(url.replace('@/', '@localhost/'))
  } catch {
    // The error would quote the URL, and with it the password.
  }
  const torn = parsed && ((parsed.username === '' && url.includes('@')) || parsed.hash !== '')
  if (!parsed || torn || !/^postgres(ql)?:$/.test(parsed.protocol)) {
    throw new UsageError('The URL of the PostgreSQL database cannot be read.', { hint: URL_HINT })
  }
  return parsed
}

function describeTarget(parsed: URL, schema: string): string {
  const user = parsed.searchParams.get('user') ?? decode(parsed.username)
  const host = parsed.searchParams.get('host') ?? (parsed.hostname || 'localhost')
  const port = parsed.searchParams.get('port') ?? parsed.port
  const where = `postgres://${user === '' ? '' : `${user}@`}${host}${port === '' ? '' : `:${port}`}${decode(parsed.pathname)}`
  return schema === DEFAULT_SCHEMA ? where : `${where} (schema ${schema})`
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw new UsageError('The URL of the PostgreSQL database cannot be read.', { hint: URL_HINT })
  }
}

/** How long to wait for a connection and for an answer; a heartbeat cannot wait as long as a transaction. */
export type Patience = { connectMsMax: number; answerMsMax: number }

const PATIENT: Patience = { connectMsMax: CONNECT_MS_MAX, answerMsMax: ANSWER_MS_MAX }

export function clientConfig(target: Target, patience: Patience = PATIENT): pg.ClientConfig {
  return {
    application_name: 'tidemark',
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEPALIVE_MS,
    connectionTimeoutMillis: patience.connectMsMax,
    query_timeout: patience.answerMsMax,
    types: { getTypeParser } as pg.ClientConfig['types'],
    pipeline: true,
    connectionString: target.connectionString,
  }
}

/** One round trip after connecting. Not sent as start-up options: poolers and hosters refuse some of those. */
export function sessionSetup(target: Target, role: Role): string {
  const settings: Record<string, string | number> = {
    search_path: searchPath(target),
    statement_timeout: STATEMENT_MS_MAX,
    idle_in_transaction_session_timeout: IDLE_IN_TRANSACTION_MS_MAX,
    // Seconds. The server notices a client that vanished, and gives back what it had locked.
    tcp_keepalives_idle: 30,
    tcp_keepalives_interval: 10,
    tcp_keepalives_count: 3,
    default_transaction_isolation: 'read committed',
    jit: 'off',
  }
  if (role !== 'plain') settings.default_transaction_read_only = 'on'
  if (role === 'writer')
    Object.assign(settings, { enable_seqscan: 'off', plan_cache_mode: 'force_generic_plan' })
  const calls = Object.entries(settings).map(([name, value]) => `set_config('${name}', '${value}', false)`)
  // What was acknowledged must survive a power cut; stronger settings of the server are left alone.
  const durable = `CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', false) END`
  return `SELECT ${[...calls, durable].join(', ')}`
}

/** Extensions that apps use, such as vector, live in public. */
export function searchPath(target: Target): string {
  return target.schema === 'public' ? 'public' : `${target.schema}, public`
}

export async function connect(target: Target, role: Role, patience?: Patience): Promise<pg.Client> {
  const client = new pg.Client(clientConfig(target, patience))
  // Without a listener a connection that breaks would end the process; whoever uses it gets the error anyway.
  client.on('error', () => {})
  await client.connect()
  try {
    await client.query(sessionSetup(target, role))
    return client
  } catch (thrown) {
    await hangUp(client)
    throw thrown
  }
}

/** Ends a connection whatever state it is in; a server that does not answer is not waited for. */
export async function hangUp(client: pg.Client): Promise<void> {
  const cancel = systemClock.timer(HANG_UP_MS_MAX, () => cutOff(client), { keepAlive: true })
  try {
    await client.end()
  } catch {
    // It was broken already, which is as good.
  } finally {
    cancel()
  }
}

/** Without a good-bye: whoever waits for an answer is told that the connection is gone. */
export function cutOff(client: pg.ClientBase): void {
  ;(client as pg.Client & { connection: pg.Connection }).connection.stream.destroy()
}

const BOOL = 16
const BYTEA = 17
const INTEGERS: ReadonlySet<number> = new Set([20, 21, 23, 26])
const FLOATS: ReadonlySet<number> = new Set([700, 701, 1700])

/** Only what SQLite could have answered too (see Value): numbers, text and bytes. */
export function getTypeParser(oid: number): (text: string) => unknown {
  if (INTEGERS.has(oid)) return parseInteger
  if (FLOATS.has(oid)) return Number
  if (oid === BOOL) return (text) => (text === 't' ? 1 : 0)
  if (oid === BYTEA) return parseBytes
  return (text) => text
}

const parseBytes = pg.types.getTypeParser(BYTEA, 'text') as (text: string) => Buffer

function parseInteger(text: string): number {
  const n = Number(text)
  if (!Number.isSafeInteger(n)) throw new RangeError(`${text} is too large to be a number in JavaScript`)
  return n
}

/** The server's time; see server-clock.ts. */
export async function serverMs(client: pg.ClientBase): Promise<number> {
  const { rows } = await client.query<{ ms: number }>(
    `SELECT extract(epoch FROM clock_timestamp()) * 1000 AS ms`,
  )
  return Number(rows[0]!.ms)
}
