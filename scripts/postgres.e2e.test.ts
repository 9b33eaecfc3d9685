import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { isRunning } from './leftovers.ts'
import { startPostgres } from './postgres.ts'
import { linkLibraries } from './postgres-binaries.ts'
import { freshDatabase } from './test-database.ts'

const WAIT_MS_MAX = 240_000

async function query(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url })
  // A server that goes away mid-query is also an event, which would end the process.
  client.on('error', () => {})
  await client.connect()
  try {
    return (await client.query(sql)).rows as Record<string, unknown>[]
  } finally {
    await client.end()
  }
}

async function until(what: string, holds: () => boolean): Promise<void> {
  for (let waitedMs = 0; !holds(); waitedMs += 20) {
    assert.ok(waitedMs < WAIT_MS_MAX, `${what} did not happen`)
    await sleep(20)
  }
}

describe('a server of our own', () => {
  test('is durable, listens on loopback only and comes back after a crash with what was committed', async () => {
    const server = await startPostgres()
    try {
      const settings = 'fsync synchronous_commit listen_addresses max_connections unix_socket_directories'
      const shown = settings.split(' ').map((name) => `current_setting('${name}') AS ${name}`)
      assert.deepEqual(await query(server.url, `SELECT ${shown.join(', ')}`), [
        {
          fsync: 'on',
          synchronous_commit: 'on',
          listen_addresses: '127.0.0.1',
          max_connections: '100',
          unix_socket_directories: '',
        },
      ])
      await query(server.url, 'CREATE TABLE kept AS SELECT 42 AS value')
      await server.stopServer('immediate')
      await assert.rejects(query(server.url, 'SELECT 1'), { code: 'ECONNREFUSED' })
      await server.startServer()
      assert.deepEqual(await query(server.url, 'SELECT value FROM kept'), [{ value: 42 }])
      await server.restart('fast')
      assert.deepEqual(await query(server.url, 'SELECT value FROM kept'), [{ value: 42 }])
    } finally {
      await server.stop()
    }
    assert.equal(existsSync(server.folder), false)
    await server.stop()
  })

  test('takes settings', async () => {
    const server = await startPostgres({ settings: { max_connections: '17' } })
    try {
      assert.deepEqual(await query(server.url, 'SHOW max_connections'), [{ max_connections: '17' }])
    } finally {
      await server.stop()
    }
  })

  test('ends, with its folder, when the process that started it is killed', async () => {
    const program = `
      import { readFileSync } from 'node:fs'
      const { startPostgres } = await import(${JSON.stringify(join(import.meta.dirname, 'postgres.ts'))})
      const { folder } = await startPostgres()
      const [pid] = readFileSync(folder + '/data/postmaster.pid', 'utf8').split('\\n')
      console.log(JSON.stringify({ folder, pid: Number(pid) }))
      setInterval(() => {}, 1000)`
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [line] = (await once(child.stdout, 'data')) as [Buffer]
    const { folder, pid } = JSON.parse(line.toString()) as { folder: string; pid: number }
    assert.ok(isRunning(pid))
    child.kill('SIGKILL')
    await until('the end of the server', () => !isRunning(pid))
    await until('the end of its folder', () => !existsSync(folder))
  })
})

describe('a fresh database', () => {
  test('is empty, is not the one of another test, and is gone after drop, whoever is connected', async () => {
    const [one, other] = await Promise.all([freshDatabase(), freshDatabase()])
    assert.notEqual(one.url, other.url)
    await query(one.url, 'CREATE TABLE a (id int)')
    await assert.rejects(query(other.url, 'SELECT * FROM a'), { code: '42P01' })
    const client = new pg.Client({ connectionString: one.url })
    const cut = new Promise((resolve) => client.once('end', resolve))
    client.on('error', () => {})
    await client.connect()
    await Promise.all([one.drop(), other.drop()])
    await cut
    await assert.rejects(query(one.url, 'SELECT 1'), { code: '3D000' })
  })

  test('sorts text as people do, so that a query which relies on byte order is found out', async () => {
    const database = await freshDatabase()
    const rows = await query(database.url, "SELECT t FROM (VALUES ('b'), ('B'), ('a')) AS v (t) ORDER BY t")
    assert.deepEqual(
      rows.map(({ t }) => t),
      ['a', 'b', 'B'],
    )
    await database.drop()
  })
})

test('links between libraries are made when the install script of the package did not run', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-links-'))
  const native = join(folder, 'native')
  mkdirSync(join(native, 'lib'), { recursive: true })
  writeFileSync(join(native, 'lib', 'libx.so.1.2'), 'library')
  const links = [{ source: 'native/lib/libx.so.1.2', target: 'native/lib/libx.so.1' }]
  writeFileSync(join(native, 'pg-symlinks.json'), JSON.stringify(links))
  assert.equal(linkLibraries(native), true)
  assert.equal(readlinkSync(join(native, 'lib', 'libx.so.1')), 'libx.so.1.2')
  assert.equal(readFileSync(join(native, 'lib', 'libx.so.1'), 'utf8'), 'library')
  assert.equal(linkLibraries(native), true)
  rmSync(folder, { recursive: true, force: true })
})
