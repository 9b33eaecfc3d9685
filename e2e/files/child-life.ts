/** A life of the sync in a process of its own (child.ts), which ends by SIGKILL. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { FilesSettings } from '../../src/apps/files/folder-pair.ts'
import { sleep, systemClock } from '../../src/base/clock.ts'

const COMPILED = join(import.meta.dirname, '../../node_modules/.cache/tidemark-crash')
const LOOK_MS = 2

/** One life of the sync, from its start to its end or to its crash. */
export type Life = {
  /** A look at both sides, and all that follows. */
  sync(): void
  /** False: it ended before. */
  settled(untilMs: number): Promise<boolean>
  crash(): void
  /** Resolves when nothing of it acts any more. */
  end(): Promise<void>
}

export type ChildOptions = {
  home: string
  /** Of the ledger. */
  url: string
  settings: FilesSettings
  skewMs: number
  epochMs: number
  settleMsMax: number
}

export async function beginChild(options: ChildOptions, onStep: () => void): Promise<Life> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'child.ts')], {
    env: { ...process.env, ORACLE_CHILD: JSON.stringify(options), NODE_COMPILE_CACHE: COMPILED },
    // It ends when its input does, so that it never outlives us.
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const life = new ChildLife(child, onStep)
  await life.begun
  return life
}

class ChildLife implements Life {
  readonly begun: Promise<void>
  readonly #child: ChildProcess
  readonly #ended: Promise<unknown>
  readonly #onStep: () => void
  #asked = 0
  #settled = 0
  #stderr = ''
  #isKilled = false
  #isOver = false

  constructor(child: ChildProcess, onStep: () => void) {
    this.#child = child
    this.#onStep = onStep
    this.#ended = once(child, 'close').then(() => {
      this.#isOver = true
    })
    child.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.#stderr += text
    })
    child.stdin!.on('error', () => {
      // It was killed while it was spoken to.
    })
    const lines = createInterface({ input: child.stdout! })
    lines.on('line', (line) => {
      const [what, turn] = line.split(' ')
      if (what === 'settled') this.#settled = Math.max(this.#settled, Number(turn))
    })
    this.begun = Promise.race([
      once(lines, 'line').then(() => {}),
      this.#ended.then(() => Promise.reject(new Error(`it did not begin: ${this.#stderr}`))),
    ])
  }

  sync(): void {
    if (this.#isKilled) return
    this.#asked += 1
    this.#child.stdin!.write('sync\n')
  }

  /** Waiting counts as steps: what it does between two requests is not seen from here. */
  async settled(): Promise<boolean> {
    while (this.#settled < this.#asked) {
      if (this.#isOver || this.#isKilled) break
      await sleep(systemClock, LOOK_MS)
      this.#onStep()
    }
    if (this.#isOver && !this.#isKilled) throw new Error(`not settled: ${this.#stderr}`)
    return !this.#isKilled
  }

  crash(): void {
    this.#isKilled = true
    this.#child.kill('SIGKILL')
  }

  async end(): Promise<void> {
    this.crash()
    await this.#ended
  }
}
