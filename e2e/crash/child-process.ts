/** One engine process (child.ts), seen from its parent: what it says, how it ends, and signals to it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { systemClock } from '../../src/base/clock.ts'
import type { ChildOptions, Saying } from './child-options.ts'

/** For every 1,000 items: far longer than any run takes, so that a hang is told from a slow machine. */
const CHILD_MS_MAX = 240_000
/** Most of a short life is loading code. */
const COMPILED = join(import.meta.dirname, '../../node_modules/.cache/tidemark-crash')

export type Ended = {
  code: number | null
  signal: NodeJS.Signals | null
  stderr: string
  sayings: Saying[]
  ms: number
  /** It was still there after the longest time that it may take. */
  hung: boolean
}

export class Child {
  readonly process: ChildProcess
  readonly ended: Promise<Ended>
  readonly sayings: Saying[] = []
  onSaying: (saying: Saying) => void = () => {}
  #waiting: { what: Saying['say']; resolve: (saying: Saying) => void; reject: (error: Error) => void }[] = []

  constructor(options: ChildOptions) {
    const startedMs = systemClock.monotonicMs()
    this.process = spawn(process.execPath, [join(import.meta.dirname, 'child.ts')], {
      env: { ...process.env, CRASH_CHILD: JSON.stringify(options), NODE_COMPILE_CACHE: COMPILED },
      // It ends when its input does, so that it never outlives us.
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    let hung = false
    const { streams, segments, pages, pageItems } = options.size
    const thousands = Math.ceil((streams.length * segments * pages * pageItems) / 1_000)
    const cancelLimit = systemClock.timer(CHILD_MS_MAX * thousands, () => {
      hung = true
      this.signal('SIGKILL')
    })
    let stderr = ''
    this.process.stderr!.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    createInterface({ input: this.process.stdout! }).on('line', (line) =>
      this.#hear(JSON.parse(line) as Saying),
    )
    this.ended = new Promise((resolve) => {
      this.process.once('close', (code, signal) => {
        for (const { what, reject } of this.#waiting.splice(0))
          reject(new Error(`the process ended before it was ${what}: ${stderr}`))
        cancelLimit()
        const ms = systemClock.monotonicMs() - startedMs
        resolve({ code, signal, stderr, sayings: this.sayings, ms, hung })
      })
    })
  }

  /** Resolves when the process says this, or if it has. */
  said<S extends Saying['say']>(what: S): Promise<Extract<Saying, { say: S }>> {
    const heard = this.sayings.find((saying) => saying.say === what)
    if (heard) return Promise.resolve(heard as Extract<Saying, { say: S }>)
    return new Promise((resolve, reject) => {
      this.#waiting.push({ what, resolve: resolve as (saying: Saying) => void, reject })
    })
  }

  signal(signal: NodeJS.Signals): void {
    this.process.kill(signal)
  }

  /** Whatever state it is in; resolves when it is no more. */
  async destroy(): Promise<void> {
    this.signal('SIGKILL')
    await this.ended
  }

  #hear(saying: Saying): void {
    if (saying.say !== 'tick') this.sayings.push(saying)
    this.onSaying(saying)
    const [hit, rest] = [
      this.#waiting.filter(({ what }) => what === saying.say),
      this.#waiting.filter(({ what }) => what !== saying.say),
    ]
    this.#waiting = rest
    for (const { resolve } of hit) resolve(saying)
  }
}
