/** A life in a process of its own (child.ts), which is killed, or stopped for a while. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

const COMPILED = join(import.meta.dirname, '../../node_modules/.cache/tidemark-crash')

export class ChildLife {
  readonly begun: Promise<void>
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>
  stderr = ''

  constructor(options: { home: string; ledgerUrl: string }) {
    this.#child = spawn(process.execPath, [join(import.meta.dirname, 'child.ts')], {
      env: { ...process.env, ORACLE_CHILD: JSON.stringify(options), NODE_COMPILE_CACHE: COMPILED },
      // It ends when its input does, so that it never outlives us.
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    this.#ended = once(this.#child, 'close')
    this.#child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.stderr = (this.stderr + text).slice(-20_000)
    })
    this.begun = Promise.race([
      once(this.#child.stdout!, 'data').then(() => {}),
      this.#ended.then(() => Promise.reject(new Error(`it did not begin: ${this.stderr}`))),
    ])
  }

  get hasEnded(): boolean {
    return this.#child.exitCode !== null
  }

  stop(): void {
    this.#child.kill('SIGSTOP')
  }

  goOn(): void {
    this.#child.kill('SIGCONT')
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#ended
  }
}
