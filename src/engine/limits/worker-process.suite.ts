/**
 * A process that runs jobs under a budget, for tests. Each of its jobs leaves a file while it is at work: the folder
 * shows what all processes run at one moment, whatever they believe of each other.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { sleep, systemClock } from '../../base/clock.ts'
import { createEngine } from '../engine.ts'
import { defineJob } from '../kinds.ts'

export const BUDGET = 'test.budget'

type Task = { url: string; folder: string; workersMax: number; leaseMs: number }
export type Message = { ready: true } | { began: number; together: number } | { failed: string }

export function slotJob({ folder, say }: { folder: string; say: (message: Message) => void }) {
  return defineJob({
    kind: 'test.slot',
    payload: z.object({ ms: z.number() }),
    budget: BUDGET,
    async run({ id, payload, signal }) {
      const file = join(folder, `${process.pid}-${id}`)
      writeFileSync(file, '')
      say({ began: id, together: readdirSync(folder).length })
      try {
        await sleep(systemClock, payload.ms, signal)
      } finally {
        rmSync(file, { force: true })
      }
    },
  })
}

/** The test's side. */
export class WorkerProcess {
  readonly #child: ChildProcess
  readonly #folder: string
  readonly #messages: Message[] = []
  /** The most that any of its jobs saw at work. */
  together = 0
  #wake = (): void => {}

  constructor(task: Task) {
    this.#folder = task.folder
    this.#child = fork(import.meta.filename, [JSON.stringify(task)], { stdio: 'inherit' })
    this.#child.on('message', (message: Message) => this.#hear(message))
    this.#child.on('exit', (code, signal) => this.#hear({ failed: `it ended: ${code ?? signal}` }))
  }

  get pid(): number {
    return this.#child.pid!
  }

  #hear(message: Message): void {
    this.#messages.push(message)
    if ('together' in message) this.together = Math.max(this.together, message.together)
    this.#wake()
  }

  /** The first message of this sort that comes from now on, or has come and nobody waited for. */
  async next(sort: 'ready' | 'began'): Promise<Message> {
    for (;;) {
      const at = this.#messages.findIndex((message) => sort in message || 'failed' in message)
      const [found] = at < 0 ? [] : this.#messages.splice(at, 1)
      if (found && 'failed' in found) throw new Error(found.failed)
      if (found) return found
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exited = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exited
    this.forgetFiles()
  }

  /** What it left at work does not work any more. */
  forgetFiles(): void {
    for (const name of readdirSync(this.#folder))
      if (name.startsWith(`${this.pid}-`)) rmSync(join(this.#folder, name), { force: true })
  }
}

async function main({ url, folder, workersMax, leaseMs }: Task): Promise<void> {
  const say = (message: Message): void => void process.send!(message)
  const job = slotJob({ folder, say })
  const budgets = { [BUDGET]: { rate: 10_000, workers: { max: workersMax } } }
  const engine = await createEngine({ ledger: url, jobs: [job], budgets, leaseMs })
  process.once('disconnect', () => process.exit())
  await engine.start()
  say({ ready: true })
}

if (process.argv[1] === import.meta.filename) {
  main(JSON.parse(process.argv[2]!) as Task).catch((thrown: unknown) => {
    process.send!({ failed: String(thrown) })
    process.exitCode = 1
  })
}
