/** A real NATS server with JetStream, where this machine has one: started on a free port, with a folder of its own. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, constants, mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'

export type NatsServer = { url: string; close(): Promise<void> }

/** Undefined where none is installed. */
export function natsServerProgram(): string | undefined {
  return (process.env.PATH ?? '')
    .split(delimiter)
    .map((folder) => join(folder, 'nats-server'))
    .find((path) => {
      try {
        accessSync(path, constants.X_OK)
        return true
      } catch {
        return false
      }
    })
}

export async function startNatsServer(program: string): Promise<NatsServer> {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-nats-'))
  const port = await freePort()
  const args = ['--addr', '127.0.0.1', '--port', String(port), '--jetstream', '--store_dir', folder]
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
  await isReady(child)
  return {
    url: `nats://127.0.0.1:${port}`,
    close: async () => {
      child.kill('SIGKILL')
      if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

function isReady(child: ChildProcess): Promise<void> {
  return new Promise((resolve, reject) => {
    let said = ''
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      said += text
      if (said.includes('Server is ready')) resolve()
    })
    child.once('exit', () => reject(new Error(`nats-server ended: ${said}`)))
    child.once('error', reject)
  })
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  return typeof address === 'object' && address ? address.port : 0
}
