/**
 * A fresh, empty PostgreSQL database for one test. `npm test` starts one server for all files and
 * names it in TIDEMARK_TEST_PG; a file that is run on its own starts a private one, which ends with
 * the process.
 */
import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { type PostgresServer, startPostgres } from './postgres.ts'

export type TestDatabase = {
  url: string
  /** Also ends whatever is still connected. */
  drop(): Promise<void>
}

let privateServer: Promise<PostgresServer> | undefined

export async function freshDatabase(): Promise<TestDatabase> {
  const serverUrl = await testServerUrl()
  const name = `test_${process.pid}_${randomBytes(4).toString('hex')}`
  await runOn(serverUrl, `CREATE DATABASE ${name}`)
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return { url: url.href, drop: () => runOn(serverUrl, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`) }
}

async function testServerUrl(): Promise<string> {
  const shared = process.env.TIDEMARK_TEST_PG
  if (shared) return shared
  privateServer ??= startPostgres()
  return (await privateServer).url
}

async function runOn(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}
