/** Opens the ledger in a libSQL database, makes it on first use and brings an older one up to date, refusing what is not ours or is newer than we are. */
import { type Clock, systemClock } from '../../base/clock.ts'
import type { Tx } from '../contract.ts'
import {
  foreignDatabaseError,
  missingLedgerError,
  newerSchemaError,
  SCHEMA_VERSION,
  schemaStatements,
} from '../schema.ts'
import { measureOffset } from '../server-clock.ts'
import { COMMITS_TABLE } from './commit.ts'
import { Connection, parseTarget, serverMs } from './connection.ts'
import { LibsqlDriver } from './driver.ts'
import { classify } from './errors.ts'
import { LibsqlTx, LookTx } from './tx.ts'

const CLOCK_SAMPLES = 3
/** Whoever waits for the first answer is mostly somebody with a wrong address: less than for others. */
const FIRST_ANSWER_MS_MAX = 15_000

/** Some of our tables; a database with others of these names would be a strange coincidence. */
const OUR_TABLES = ['meta', 'jobs', 'segments', 'tallies', 'commits']

export async function openLibsql(options: {
  url: string
  token: string | undefined
  clock: Clock
  create?: boolean
}): Promise<LibsqlDriver> {
  const { url, token, clock, create = true } = options
  const connection = new Connection(parseTarget(url, token))
  const { where } = connection.target
  try {
    const stream = connection.stream()
    const look = new LookTx(stream, where)
    await serverMs(stream, FIRST_ANSWER_MS_MAX)
    const version = await schemaVersion(look, where)
    if (version === 0 && !create) throw missingLedgerError(where)
    if (version < SCHEMA_VERSION) await raiseSchema(connection)
    const [id] = await look.arrays<[string]>(`SELECT lower(hex(randomblob(16)))`)
    const offsetMs = clock === systemClock ? await measureOffset(() => serverMs(stream), CLOCK_SAMPLES) : 0
    return new LibsqlDriver({ connection, clock, instance: id![0], offsetMs })
  } catch (thrown) {
    connection.close()
    throw classify(thrown, where)
  }
}

/** 0 for an empty database; anything else that is not ours is refused before a byte is written. */
async function schemaVersion(tx: Tx, where: string): Promise<number> {
  const rows = await tx.all<{ name: string }>(
    `SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
       AND name NOT LIKE 'libsql\\_%' ESCAPE '\\'`,
  )
  if (rows.length === 0) return 0
  const names = new Set(rows.map((row) => row.name))
  if (!OUR_TABLES.every((name) => names.has(name))) throw foreignDatabaseError(where)
  const columns = await tx.all<{ name: string }>(`SELECT name FROM pragma_table_info('meta')`)
  const isMeta = ['name', 'value'].every((name) => columns.some((column) => column.name === name))
  if (!isMeta) throw foreignDatabaseError(where)
  const row = await tx.get<{ value: string }>(`SELECT value FROM meta WHERE name = 'schema_version'`)
  if (!row) throw foreignDatabaseError(where)
  const version = Number(row.value)
  if (version > SCHEMA_VERSION) throw newerSchemaError(version, where)
  return version
}

/** Makes the tables, or brings those of an earlier version up to this one: all of it or nothing. */
async function raiseSchema(connection: Connection): Promise<void> {
  const { where } = connection.target
  const tx = new LibsqlTx(connection.stream(), where, { begin: 'BEGIN IMMEDIATE' })
  try {
    // Two processes may start together: the second finds the work done.
    const from = await schemaVersion(tx, where)
    const statements = from < SCHEMA_VERSION ? schemaStatements('sqlite', { from }) : []
    for (const sql of from === 0 ? [...statements, COMMITS_TABLE] : statements) tx.send(sql)
    // Whether it was committed need not be known: the next one looks.
    if (!(await tx.commit(() => []))) throw tx.failure
  } catch (thrown) {
    await tx.rollBack()
    throw tx.reasonFor(thrown)
  }
}
