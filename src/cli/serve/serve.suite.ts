/** The command line as a process that says when it is ready, and can be stopped or killed. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const BIN = join(import.meta.dirname, '..', '..', '..', 'bin', 'tidemark')

export type Run = {
  child: ChildProcessWithoutNullStreams
  stdout: () => string
  stderr: () => string
  /** The first line of JSON; rejected where the process ends without one. */
  ready: Promise<Ready>
  ended: Promise<number | null>
}

/** `signIn` is the address that signs a browser in. */
export type Ready = { url: string; signIn: string | null; home: string }

/** Of a server that has been started in that home. */
export function tokenIn(home: string): string {
  return readFileSync(join(home, 'server.token'), 'utf8').trim()
}

export class Processes {
  readonly folder = mkdtempSync(join(tmpdir(), 'tidemark-serve-'))
  readonly #children = new Set<ChildProcessWithoutNullStreams>()

  start(args: readonly string[], env: Record<string, string> = {}): Run {
    const child = spawn(BIN, [...args], {
      env: { PATH: process.env.PATH ?? '', HOME: this.folder, TMPDIR: this.folder, ...env },
    })
    this.#children.add(child)
    const said = { stdout: '', stderr: '' }
    const ready = Promise.withResolvers<Ready>()
    // Whoever does not wait for it does not care.
    ready.promise.catch(() => {})
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text: string) => {
        said[name] += text
        const end = said.stdout.indexOf('\n')
        if (name === 'stdout' && end > 0 && said.stdout.startsWith('{')) {
          ready.resolve(JSON.parse(said.stdout.slice(0, end)))
        }
      })
    }
    const ended = once(child, 'close').then(([code]) => {
      this.#children.delete(child)
      ready.reject(new Error(`ended with ${code}: ${said.stderr}`))
      return code as number | null
    })
    return { child, stdout: () => said.stdout, stderr: () => said.stderr, ready: ready.promise, ended }
  }

  close(): void {
    for (const child of this.#children) child.kill('SIGKILL')
    rmSync(this.folder, { recursive: true, force: true })
  }
}
