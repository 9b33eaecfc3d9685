/**
 * A real libSQL server (sqld) for tests, benches and the crash harness. It holds one database; a second one is a second
 * server, which takes 25 MB and some 50 ms.
 *
 * States: running → stopped → running … → removed, as in postgres.ts: `stopServer` and `startServer` move between the
 * first two on the same port with the data kept; `stop` removes everything and is final.
 *
 * Invariant: nothing outlives the process that called `startLibsql`, however it ends: a guard process holds one end of
 * a pipe whose other end is ours.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findLibsql } from './libsql-binary.ts'
import { freePort } from './postgres.ts'

export type LibsqlServer = {
  url: string
  /** Where its settings are changed while it runs. */
  adminUrl: string
  /** What replicas connect to, if it was asked for. */
  grpcUrl: string
  /** Its data and its log are in here. */
  folder: string
  /** Takes the server away as a crash does: no good-bye. */
  stopServer(): Promise<void>
  /** Brings it back on the same port with the data that was committed. */
  startServer(): Promise<void>
  restart(): Promise<void>
  /** Ends the server and removes its folder. Safe to call twice. */
  stop(): Promise<void>
}

export type LibsqlOptions = {
  /** A file with the public key of the tokens that it lets in; without it, anybody. */
  keyFile?: string
  /** Listens for replicas. */
  isPrimary?: boolean
  /** Is a replica of the server with this grpcUrl. */
  replicaOf?: string
}

const START_ATTEMPTS_MAX = 3
const READY_TRIES_MAX = 600
const READY_PAUSE_MS = 50

/**
 * `$1` is the program, `$2` the folder. Runs it once for each line that it reads, which are its arguments; `stop` kills
 * it. When the pipe closes, the server goes, and the folder with it.
 */
const GUARD = `pid=
end() { if [ -n "$pid" ]; then kill -9 $pid; wait $pid; pid=; fi; } 2>/dev/null
while read -r line; do
  end
  if [ "$line" != stop ]; then "$1" $line >>"$2/server.log" 2>&1 </dev/null & pid=$!; fi
  echo done
done
end
rm -rf "$2"`

export async function startLibsql(options: LibsqlOptions = {}): Promise<LibsqlServer> {
  const program = findLibsql()
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-libsql-'))
  try {
    const guard = startGuard(program, folder)
    try {
      return await startOnFreePorts(guard, folder, options)
    } catch (error) {
      await endGuard(guard)
      throw error
    }
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
}

async function startOnFreePorts(
  guard: ChildProcess,
  folder: string,
  options: LibsqlOptions,
): Promise<LibsqlServer> {
  for (let attempt = 1; ; attempt++) {
    const [port, adminPort, grpcPort] = [await freePort(), await freePort(), await freePort()]
    const args = argsOf({ folder, port, adminPort, grpcPort, options })
    const url = `http://127.0.0.1:${port}`
    const startServer = async (): Promise<void> => {
      await tell(guard, args)
      await untilReady(url, folder)
    }
    try {
      await startServer()
    } catch (error) {
      // Another process may have taken the port between our look and the server's bind.
      if (attempt < START_ATTEMPTS_MAX && /Address already in use/i.test(serverLog(folder))) continue
      throw error
    }
    const stopServer = (): Promise<void> => tell(guard, 'stop')
    return {
      url,
      adminUrl: `http://127.0.0.1:${adminPort}`,
      grpcUrl: `http://127.0.0.1:${grpcPort}`,
      folder,
      startServer,
      stopServer,
      async restart() {
        await stopServer()
        await startServer()
      },
      stop: () => endGuard(guard),
    }
  }
}

function argsOf(input: {
  folder: string
  port: number
  adminPort: number
  grpcPort: number
  options: LibsqlOptions
}): string {
  const { folder, port, adminPort, grpcPort, options } = input
  const args = [
    ['--db-path', join(folder, 'data'), '--no-welcome'],
    ['--http-listen-addr', `127.0.0.1:${port}`],
    ['--admin-listen-addr', `127.0.0.1:${adminPort}`],
    options.keyFile ? ['--auth-jwt-key-file', options.keyFile] : [],
    options.isPrimary ? ['--grpc-listen-addr', `127.0.0.1:${grpcPort}`] : [],
    options.replicaOf ? ['--primary-grpc-url', options.replicaOf] : [],
  ].flat()
  if (args.some((arg) => /\s/.test(arg))) throw new Error(`A path with blanks in it: ${args.join(' ')}`)
  return args.join(' ')
}

async function tell(guard: ChildProcess, line: string): Promise<void> {
  const answer = guard.stdout as Socket
  const done = once(answer, 'data')
  answer.ref()
  guard.stdin!.write(`${line}\n`)
  await done
  answer.unref()
}

async function untilReady(url: string, folder: string): Promise<void> {
  let last: unknown
  for (let tries = 0; tries < READY_TRIES_MAX; tries++) {
    try {
      const answer = await fetch(`${url}/health`)
      await answer.arrayBuffer()
      if (answer.ok) return
    } catch (error) {
      last = error
    }
    if (/Address already in use/i.test(serverLog(folder))) break
    await new Promise((resolve) => setTimeout(resolve, READY_PAUSE_MS))
  }
  throw new Error(`sqld does not answer: ${last}\n${serverLog(folder)}`)
}

function serverLog(folder: string): string {
  try {
    return readFileSync(join(folder, 'server.log'), 'utf8').split('\n').slice(-20).join('\n')
  } catch {
    // The server never got as far as opening its log.
    return ''
  }
}

function startGuard(program: string, folder: string): ChildProcess {
  const guard = spawn('/bin/sh', ['-c', GUARD, 'guard', program, folder], {
    cwd: '/',
    env: { PATH: process.env.PATH ?? '/usr/bin:/bin', LC_ALL: 'C', HOME: folder },
    detached: true,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  guard.unref()
  // Pipes to a child are sockets; they must not keep a finished process alive.
  for (const pipe of [guard.stdin, guard.stdout]) (pipe as Socket).unref()
  return guard
}

async function endGuard(guard: ChildProcess): Promise<void> {
  if (guard.exitCode !== null || guard.signalCode !== null) return
  guard.ref()
  const exited = once(guard, 'exit')
  guard.stdin?.end()
  await exited
}
