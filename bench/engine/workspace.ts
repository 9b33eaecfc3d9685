/**
 * The databases of a run: a folder for SQLite files, one PostgreSQL server that is started when first needed, and
 * libSQL servers. Each measurement gets a file, a database or a server of its own, and nothing of it stays.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { type LibsqlServer, startLibsql } from '../../scripts/libsql.ts'
import { type PostgresServer, startPostgres } from '../../scripts/postgres.ts'
import { benchFolder } from '../machine.ts'
import { type Database, EFFECTS_TABLE, type Target } from './subject.ts'

const DURABLE = { fsync: 'on', synchronous_commit: 'on', full_page_writes: 'on' }

export class Workspace {
  readonly #folder = mkdtempSync(join(benchFolder(), 'tidemark-bench-'))
  #server: PostgresServer | undefined
  readonly #libsql = new Map<string, LibsqlServer>()
  #opened = 0
  #serverPid = 0
  /** Of PostgreSQL, once it has run. */
  postgresVersion: string | undefined

  async open(database: Database): Promise<Target> {
    const name = `bench_${++this.#opened}`
    if (database === 'libsql') {
      const server = await startLibsql()
      this.#libsql.set(server.url, server)
      return { kind: 'libsql', url: server.url }
    }
    if (database !== 'postgres') {
      const synchronous = database === 'sqlite full' ? 'FULL' : 'NORMAL'
      return { kind: 'sqlite', file: join(this.#folder, `${name}.db`), synchronous }
    }
    await this.#query(await this.#serverUrl(), `CREATE DATABASE ${name}`)
    const url = new URL(await this.#serverUrl())
    url.pathname = `/${name}`
    await this.#query(url.href, EFFECTS_TABLE)
    return { kind: 'postgres', url: url.href, serverPid: this.#serverPid }
  }

  /**
   * After preparing: what autovacuum and the checkpointer would do within the next minute is done now, for
   * every subject alike, and not at a random moment of the measurement. SQLite did it when it was closed.
   */
  async rest(target: Target): Promise<void> {
    if (target.kind === 'postgres') await this.#query(target.url, 'VACUUM ANALYZE', 'CHECKPOINT')
  }

  async discard(target: Target): Promise<void> {
    if (target.kind === 'sqlite') {
      for (const suffix of ['', '-wal', '-shm']) rmSync(target.file + suffix, { force: true })
      return
    }
    if (target.kind === 'libsql') {
      await this.#libsql.get(target.url)?.stop()
      this.#libsql.delete(target.url)
      return
    }
    const name = new URL(target.url).pathname.slice(1)
    await this.#query(await this.#serverUrl(), `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
  }

  async close(): Promise<void> {
    await this.#server?.stop()
    for (const server of this.#libsql.values()) await server.stop()
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #serverUrl(): Promise<string> {
    if (!this.#server) {
      this.#server = await startPostgres()
      await this.#check(this.#server.url)
      this.#serverPid = Number.parseInt(
        readFileSync(join(this.#server.folder, 'data', 'postmaster.pid'), 'utf8'),
        10,
      )
    }
    return this.#server.url
  }

  /** Numbers from a server that may forget would compare nothing. */
  async #check(url: string): Promise<void> {
    const names = [...Object.keys(DURABLE), 'server_version']
    const rows = await this.#query<{ name: string; setting: string }>(
      url,
      `SELECT name, setting FROM pg_settings WHERE name IN (${names.map((name) => `'${name}'`).join(', ')})`,
    )
    const found = new Map(rows.map((row) => [row.name, row.setting]))
    for (const [name, wanted] of Object.entries(DURABLE)) {
      if (found.get(name) !== wanted) throw new Error(`PostgreSQL runs with ${name} = ${found.get(name)}`)
    }
    this.postgresVersion = found.get('server_version')
  }

  /** One statement after another on a connection of its own; the rows of the last. */
  async #query<T extends pg.QueryResultRow>(url: string, ...statements: string[]): Promise<T[]> {
    const client = new pg.Client({ connectionString: url })
    await client.connect()
    try {
      let rows: T[] = []
      for (const statement of statements) rows = (await client.query<T>(statement)).rows
      return rows
    } finally {
      await client.end()
    }
  }
}
