/** Opens the ledger's schema, makes it on first use and brings an older one up to date, refusing what is not ours or is newer than we are. */
import type pg from 'pg'
import { type Clock, systemClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import {
  foreignDatabaseError,
  missingLedgerError,
  newerSchemaError,
  SCHEMA_VERSION,
  schemaStatements,
} from '../schema.ts'
import { measureOffset } from '../server-clock.ts'
import { COMMITS_TABLE } from './commit.ts'
import { connect, hangUp, parseTarget, serverMs, type Target } from './connection.ts'
import { PostgresDriver } from './driver.ts'
import { classify, codeOf } from './errors.ts'

const SERVER_VERSION_MIN = 130_000
const CLOCK_SAMPLES = 3
/** Serializes the creation of schemas of any name; 'TIDE' as a number. */
const CREATE_LOCK = 0x54494445
const INSUFFICIENT_PRIVILEGE = '42501'
const DEADLOCK = '40P01'
const RAISE_TRIES_MAX = 5

/** Some of our tables; a schema with others of these names would be a strange coincidence. */
const OUR_TABLES = ['meta', 'jobs', 'segments', 'tallies', 'commits']

export async function openPostgres(options: {
  url: string
  clock: Clock
  create?: boolean
}): Promise<PostgresDriver> {
  const { url, clock, create = true } = options
  const target = parseTarget(url)
  let client: pg.Client | undefined
  try {
    const connected = await connect(target, 'plain')
    client = connected
    await checkServer(client, target)
    const version = await schemaVersion(client, target)
    if (version === 0 && !create) throw missingLedgerError(target.where)
    if (version < SCHEMA_VERSION) await raiseSchema(client, target)
    const { rows } = await client.query<{ id: string }>(`SELECT gen_random_uuid() AS id`)
    const offsetMs = clock === systemClock ? await measureOffset(() => serverMs(connected), CLOCK_SAMPLES) : 0
    return new PostgresDriver({ target, clock, instance: rows[0]!.id, offsetMs })
  } catch (thrown) {
    throw classify(thrown, target.where)
  } finally {
    if (client) await hangUp(client)
  }
}

async function checkServer(client: pg.Client, target: Target): Promise<void> {
  const { rows } = await client.query<{ num: string; name: string }>(
    `SELECT current_setting('server_version_num') AS num, current_setting('server_version') AS name`,
  )
  if (Number(rows[0]!.num) >= SERVER_VERSION_MIN) return
  throw new TidemarkError(
    `${target.where} runs PostgreSQL ${rows[0]!.name}; 13 is the oldest that will do.`,
    {
      kind: 'permanent',
      code: 'ledger-old-server',
      hint: 'Update the server, or use another one.',
    },
  )
}

/** 0 for a schema that is empty or missing; anything else that is not ours is refused before a byte is written. */
async function schemaVersion(client: pg.Client, target: Target): Promise<number> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')`,
    [target.schema],
  )
  if (rows.length === 0) return 0
  const names = new Set(rows.map((row) => row.name))
  if (!OUR_TABLES.every((name) => names.has(name))) throw foreignSchema(target)
  const version = await readVersion(client, target)
  if (version > SCHEMA_VERSION) throw newerSchemaError(version, target.where)
  return version
}

async function readVersion(client: pg.Client, target: Target): Promise<number> {
  try {
    const { rows } = await client.query<{ value: string }>(
      `SELECT value FROM "${target.schema}".meta WHERE name = 'schema_version'`,
    )
    if (rows[0]) return Number(rows[0].value)
  } catch (thrown) {
    // 42703: a table called meta that has other columns.
    if (codeOf(thrown) === '42703') throw foreignSchema(target, thrown)
    throw thrown
  }
  throw foreignSchema(target)
}

function foreignSchema(target: Target, cause?: unknown): TidemarkError {
  const { message, kind, code } = foreignDatabaseError(
    `The schema ${target.schema} of ${target.where}`,
    cause,
  )
  return new TidemarkError(message, {
    kind,
    code,
    cause,
    hint: 'Choose another database, or another schema with ?schema=NAME in ledger.url; this one was left as it is.',
  })
}

/** Makes the tables, or brings those of an earlier version up to this one: all of it or nothing. */
async function raiseSchema(client: pg.Client, target: Target): Promise<void> {
  for (let tries = 1; ; tries++) {
    await client.query('BEGIN')
    try {
      await raiseOnce(client, target)
      await client.query('COMMIT')
      return
    } catch (thrown) {
      await client.query('ROLLBACK')
      // Those who work with the older tables lock them in an order of their own.
      if (codeOf(thrown) === DEADLOCK && tries < RAISE_TRIES_MAX) continue
      throw codeOf(thrown) === INSUFFICIENT_PRIVILEGE ? deniedError(thrown, target) : thrown
    }
  }
}

async function raiseOnce(client: pg.Client, target: Target): Promise<void> {
  // Two processes may start together: the second finds the work done.
  await client.query(`SELECT pg_advisory_xact_lock($1)`, [CREATE_LOCK])
  const from = await schemaVersion(client, target)
  if (from === SCHEMA_VERSION) return
  if (from === 0) await client.query(`CREATE SCHEMA IF NOT EXISTS "${target.schema}"`)
  const statements = schemaStatements('postgres', { from })
  for (const sql of from === 0 ? [...statements, COMMITS_TABLE, ...TUNING] : statements) {
    await client.query(sql)
  }
}

/**
 * Claim and commit each write a new version of the row and a new entry in the primary key's index. Room for
 * them on the same index page saves 6 to 10 % of both (measured); the dead ones go sooner than by default.
 */
const TUNING = [
  `ALTER INDEX jobs_pkey SET (fillfactor = 30)`,
  // With 30 % of a page free, new versions of a row went to pages of long settled jobs, which the log then holds in full.
  `ALTER TABLE jobs SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
     autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_cost_limit = 1000)`,
  // A few rows, rewritten by every cycle.
  ...['tallies', 'counters', 'workers', 'commits'].map(
    (table) =>
      `ALTER TABLE ${table} SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000)`,
  ),
]

function deniedError(cause: unknown, target: Target): TidemarkError {
  return new TidemarkError(
    `The user of ${target.where} may not create the schema ${target.schema} or tables in it.`,
    {
      kind: 'permanent',
      code: 'ledger-denied',
      hint: `As the owner of the database: GRANT CREATE ON DATABASE … TO …, or CREATE SCHEMA ${target.schema} AUTHORIZATION ….`,
      cause,
    },
  )
}
