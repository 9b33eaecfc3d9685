/** Databases to test ledgers on, and the clock that goes with them. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import pg from 'pg'
import { type LibsqlServer, startLibsql } from '../../scripts/libsql.ts'
import { libsqlPlatform } from '../../scripts/libsql-binary.ts'
import { freshDatabase, type TestDatabase } from '../../scripts/test-database.ts'
import { type CancelTimer, type Clock, systemClock } from '../base/clock.ts'
import { seededRandom } from '../base/random.ts'
import type { Value } from './contract.ts'
import type { CommitPoint } from './cycle.ts'
import { Ledger } from './ledger.ts'
import { Connection, parseTarget, type Stream } from './libsql/connection.ts'
import { openLedger } from './open.ts'
import { schemaStatements } from './schema.ts'

/** Wall time moves only when told to; timers are real, so that a driver may wait for its database. */
export class StillClock implements Clock {
  #nowMs = Date.UTC(2026, 0, 1)
  #aheadMs = 0
  readonly #timers = new Set<{ dueMs: number; fire: () => void }>()

  now(): number {
    return this.#nowMs
  }

  monotonicMs(): number {
    return systemClock.monotonicMs() + this.#aheadMs
  }

  watchLoop(): ReturnType<Clock['watchLoop']> {
    return systemClock.watchLoop()
  }

  timer(ms: number, fn: () => void, options?: { keepAlive?: boolean }): CancelTimer {
    const fire = (): void => {
      stop()
      fn()
    }
    const cancel = systemClock.timer(ms, fire, options)
    const timer = { dueMs: this.monotonicMs() + ms, fire }
    const stop = (): void => {
      cancel()
      this.#timers.delete(timer)
    }
    this.#timers.add(timer)
    return stop
  }

  /** Durations seem longer by this much, and timers that were to end within it do so now. */
  rush(ms: number): void {
    this.#aheadMs += ms
    for (const timer of [...this.#timers]) if (timer.dueMs <= this.monotonicMs()) timer.fire()
  }

  pass(ms: number): void {
    this.#nowMs += ms
  }
}

/** An app's own connection to the ledger's database. */
export type AppConnection = {
  handle: unknown
  exec(sql: string): Promise<void>
  close(): Promise<void>
}

type Point = (name: CommitPoint) => void

/** A database in which ledgers are tested, one after another. */
export type Home = {
  name: string
  /** Can a second process open it too? */
  shared: boolean
  fresh(point?: Point): Promise<Site>
  remove(): Promise<void>
}

/** An empty ledger, and how else to get at its database. */
export type Site = {
  ledger: Ledger
  clock: StillClock
  url: string
  connect(): Promise<AppConnection>
  leave(): Promise<void>
}

export function memoryHome(): Home {
  const connect = (): never => assert.fail('a database in memory has one connection')
  return {
    name: 'SQLite in memory',
    shared: false,
    fresh: (point) => sqliteSite('sqlite::memory:', connect, point),
    remove: async () => {},
  }
}

export function fileHome(): Home {
  let folder: string | undefined
  let files = 0
  return {
    name: 'SQLite in a file',
    shared: true,
    fresh: (point) => {
      folder ??= mkdtempSync(join(tmpdir(), 'tidemark-ledger-'))
      files += 1
      const file = join(folder, `ledger-${files}.db`)
      return sqliteSite(`sqlite:${file}`, async () => sqliteConnection(file), point)
    },
    remove: async () => {
      if (folder) rmSync(folder, { recursive: true, force: true })
    },
  }
}

async function sqliteSite(url: string, connect: Site['connect'], point?: Point): Promise<Site> {
  const clock = new StillClock()
  // No test here cuts the power, and there are hundreds of them.
  const ledger = await openLedger(url, { clock, synchronous: 'NORMAL', random: seededRandom(1), point })
  return { ledger, clock, url, connect, leave: () => ledger.close() }
}

function sqliteConnection(file: string): AppConnection {
  const db = new DatabaseSync(file, { timeout: 5_000 })
  return { handle: db, exec: async (sql) => db.exec(sql), close: async () => db.close() }
}

/**
 * One database for many tests, emptied before each: a new one with its tables takes PostgreSQL a tenth of a second of a
 * core, and much longer than that where a disk is busy.
 */
export class ReusedDatabase {
  #made: Promise<{ database: TestDatabase; admin: pg.Client }> | undefined

  /** Its address, with a ledger in it that holds nothing; what the test before this one opened is closed by now. */
  async empty(): Promise<string> {
    this.#made ??= makeHasty()
    const { database, admin } = await this.#made
    await empty(admin)
    return database.url
  }

  async remove(): Promise<void> {
    if (!this.#made) return
    const { database, admin } = await this.#made
    await admin.end()
    await database.drop()
  }
}

/** No test here cuts the power: a commit need not wait for the disk. */
async function makeHasty(): Promise<{ database: TestDatabase; admin: pg.Client }> {
  const database = await freshDatabase()
  const admin = new pg.Client({ connectionString: database.url })
  await admin.connect()
  const name = new URL(database.url).pathname.slice(1)
  await admin.query(`ALTER DATABASE ${name} SET synchronous_commit = off`)
  // Where two transactions wait for each other, the tests need not wait a second for one to be told.
  await admin.query(`ALTER DATABASE ${name} SET deadlock_timeout = '20ms'`)
  await admin.query(`SET session_replication_role = replica`)
  return { database, admin }
}

/** One set of connections for the whole suite, too. */
export function postgresHome(): Home {
  const clock = new StillClock()
  const database = new ReusedDatabase()
  let first: Ledger | undefined
  return {
    name: 'PostgreSQL',
    shared: true,
    fresh: async (point) => {
      const url = await database.empty()
      first ??= await openLedger(url, { clock })
      const ledger = new Ledger(first.driver, { random: seededRandom(1), point })
      return {
        ledger,
        clock,
        url,
        connect: () => postgresConnection(url),
        leave: async () => {},
      }
    },
    remove: async () => {
      await first?.close()
      await database.remove()
    },
  }
}

async function postgresConnection(url: string): Promise<AppConnection> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return {
    handle: client,
    exec: async (sql) => {
      await client.query(sql)
    },
    close: () => client.end(),
  }
}

/** A server whose database is emptied before each test, with one set of streams for the whole suite. */
export function libsqlHome(): Home {
  const clock = new StillClock()
  let made: Promise<{ server: LibsqlServer; first: Ledger; admin: Stream }> | undefined
  const make = async (): Promise<{ server: LibsqlServer; first: Ledger; admin: Stream }> => {
    const server = await startLibsql()
    const first = await openLedger(server.url, { clock })
    return { server, first, admin: new Connection(parseTarget(server.url, undefined)).stream() }
  }
  return {
    name: 'libSQL',
    shared: true,
    fresh: async (point) => {
      made ??= make()
      const { server, first, admin } = await made
      await emptyLibsql(admin)
      return {
        ledger: new Ledger(first.driver, { random: seededRandom(1), point }),
        clock,
        url: server.url,
        connect: async () => libsqlConnection(server.url),
        leave: async () => {},
      }
    },
    remove: async () => {
      if (!made) return
      const { server, first } = await made
      await first.close()
      await server.stop()
    },
  }
}

/** What is only tested where there is a libSQL server for the machine; elsewhere one line says that there is none. */
export function onLibsql(tests: () => void): void {
  const { name, isServed } = libsqlPlatform()
  if (isServed) tests()
  else test(`there is no libSQL server for ${name}: nothing is tested on it here`, () => {})
}

/** What a Transaction of @libsql/client looks like, begun and ended by the app itself. */
function libsqlConnection(url: string): AppConnection {
  const connection = new Connection(parseTarget(url, undefined))
  const stream = connection.stream()
  let isOpen = false
  const execute = async ({ sql, args }: { sql: string; args: Value[] }) => {
    const answer = await stream.batch([{ sql, args }], { isFirst: !isOpen })
    isOpen = answer.isOpen
    if (answer.errors[0]) throw answer.errors[0]
    const { columns, rows, changes } = answer.results[0]!
    return { columns, rows: rows(), rowsAffected: changes }
  }
  const handle = {
    execute,
    get closed() {
      return !isOpen
    },
  }
  return {
    handle,
    exec: async (sql) => {
      await execute({ sql, args: [] })
    },
    close: async () => connection.close(),
  }
}

/** All rows go, and what a test created, virtual tables before those that are theirs; the ledger's tables stay. */
async function emptyLibsql(admin: Stream): Promise<void> {
  const sql = `SELECT type, name FROM sqlite_schema WHERE type IN ('table', 'trigger') AND name NOT LIKE 'sqlite_%'
    AND name NOT IN ('meta', 'commits') ORDER BY sql LIKE 'CREATE VIRTUAL%' DESC, rowid DESC`
  const list = await admin.batch([{ sql }], { isFirst: true })
  const steps = list.results[0]!.rows().map(([type, name]) => {
    if (LEDGER_TABLES.has(String(name))) return { sql: `DELETE FROM ${name}` }
    return { sql: `DROP ${type} IF EXISTS "${name}"` }
  })
  const off = { sql: 'PRAGMA foreign_keys = OFF' }
  const around = [off, { sql: 'BEGIN IMMEDIATE' }, ...steps, { sql: 'COMMIT' }]
  const answer = await admin.batch(around, { isFirst: true })
  for (const error of answer.errors) if (error) throw error
}

const LEDGER_TABLES = new Set(
  schemaStatements('postgres', { from: 0 }).flatMap((sql) => /^CREATE TABLE (\w+)/.exec(sql)?.[1] ?? []),
)

/** All rows go, and what a test created; the ledger's tables stay. */
async function empty(admin: pg.Client): Promise<void> {
  const { rows } = await admin.query<{ schema: string; name: string }>(
    `SELECT n.nspname AS schema, c.relname AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema') AND c.relname NOT IN ('meta', 'commits')`,
  )
  const statements = rows.map(({ schema, name }) =>
    LEDGER_TABLES.has(name) ? `DELETE FROM "${schema}".${name}` : `DROP TABLE "${schema}".${name} CASCADE`,
  )
  await admin.query(statements.join(';'))
}
