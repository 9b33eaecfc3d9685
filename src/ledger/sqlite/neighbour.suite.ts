/**
 * Another process on the same file, for tests. It does one of these things and says so over its channel:
 *
 * - `open`: opens the ledger and closes it again
 * - `drain`: takes turns with others at claiming and settling jobs until none is left
 * - `block`: holds a job under a heartbeat, lets its main thread hang, and then reports the job done
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { systemClock } from '../../base/clock.ts'
import { asTidemarkError } from '../../base/errors.ts'
import type { ClaimedJob } from '../contract.ts'
import type { Ledger } from '../ledger.ts'
import { openLedger } from '../open.ts'

export type Task =
  | { do: 'open'; file: string }
  | { do: 'drain'; file: string; batch: number; leaseMs: number; everyMs: number }
  | { do: 'block'; file: string; leaseMs: number; everyMs: number; blockedMaxMs: number; blockMs: number }

export type Message =
  | { ready: true; owner: number }
  | { done: number; lost: boolean; errors: string[] }
  | { failed: string; code?: string }

/** The test's side: starts a process and passes on what it says. */
export class Neighbour {
  readonly #child: ChildProcess
  readonly #messages: Message[] = []
  #wake = (): void => {}

  constructor(task: Task) {
    this.#child = fork(import.meta.filename, [JSON.stringify(task)], { stdio: 'inherit' })
    this.#child.on('message', (message: Message) => {
      this.#messages.push(message)
      this.#wake()
    })
    this.#child.on('exit', (code, signal) => {
      if (code !== 0) this.#messages.push({ failed: `the process ended by itself: ${code ?? signal}` })
      this.#wake()
    })
  }

  async next(): Promise<Message> {
    while (this.#messages.length === 0) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
    return this.#messages.shift()!
  }

  go(): void {
    this.#child.send('go')
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const exited = once(this.#child, 'exit')
    this.#child.kill('SIGKILL')
    await exited
  }
}

function say(message: Message): void {
  process.send!(message)
}

async function join(ledger: Ledger, leaseMs: number): Promise<number> {
  const { pid } = process
  const owner = await ledger.register({ host: 'here', pid, pidStart: '', name: `neighbour ${pid}` }, leaseMs)
  say({ ready: true, owner })
  await once(process, 'message')
  return owner
}

async function drain(ledger: Ledger, task: Task & { do: 'drain' }): Promise<void> {
  const owner = await join(ledger, task.leaseMs)
  const errors: string[] = []
  let lost = false
  const heartbeat = await ledger.driver.startHeartbeat({
    owner,
    leaseMs: task.leaseMs,
    everyMs: task.everyMs,
    blockedMaxMs: 60_000,
    onLost: () => {
      lost = true
    },
    onError: (error) => errors.push(asTidemarkError(error).message),
  })
  const stopListening = await ledger.driver.listen(() => {})
  const claim = { owner, room: { interactive: 0, bulk: task.batch }, kinds: new Set(['noop']) }
  let held: ClaimedJob[] = []
  let done = 0
  do {
    const settle = held.map((job) => ({
      job,
      event: 'succeed' as const,
      work: {
        effects: async (tx: { run(sql: string, params: number[]): Promise<number> }) =>
          void (await tx.run(`INSERT INTO applied VALUES (?)`, [job.id])),
      },
    }))
    const { settled, claimed } = await ledger.cycle({ owner, settle, claim })
    for (const [n, result] of settled.entries()) {
      if (result.status === 'held') done += 1
      else errors.push(`job #${held[n]!.id}: ${result.status}`)
    }
    held = claimed
    // As an engine does: handlers have their turn between two cycles.
    await new Promise((resolve) => setImmediate(resolve))
  } while (held.length > 0)
  await heartbeat.stop()
  await stopListening()
  say({ done, lost, errors })
}

async function block(ledger: Ledger, task: Task & { do: 'block' }): Promise<void> {
  const owner = await join(ledger, task.leaseMs)
  const { claimed } = await ledger.cycle({
    owner,
    claim: { owner, room: { interactive: 1, bulk: 1 }, kinds: new Set(['noop']) },
  })
  let onLost = (): void => {}
  const lost = new Promise<void>((resolve) => {
    onLost = resolve
  })
  const errors: string[] = []
  const heartbeat = await ledger.driver.startHeartbeat({
    owner,
    leaseMs: task.leaseMs,
    everyMs: task.everyMs,
    blockedMaxMs: task.blockedMaxMs,
    onLost,
    onError: (error) => errors.push(asTidemarkError(error).message),
  })
  say({ ready: true, owner })
  await once(process, 'message')
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, task.blockMs)
  heartbeat.alive()
  const { settled } = await ledger.cycle({ owner, settle: [{ job: claimed[0]!, event: 'succeed' }] })
  const held = settled[0]!.status === 'held'
  // If the lease is gone, the next beat tells; if it is not, it never does.
  if (!held) await lost
  await heartbeat.stop()
  say({ done: held ? 1 : 0, lost: !held, errors })
}

async function main(task: Task): Promise<void> {
  process.channel?.ref() // waiting for a thread or for a word from the test must not end the process
  try {
    const ledger = await openLedger(`sqlite:${task.file}`, { clock: systemClock })
    if (task.do === 'drain') await drain(ledger, task)
    else if (task.do === 'block') await block(ledger, task)
    await ledger.close()
    if (task.do === 'open') say({ done: 0, lost: false, errors: [] })
  } catch (thrown) {
    const error = asTidemarkError(thrown)
    say({ failed: `${error.message}\n${error.stack}`, code: error.code })
  }
  process.disconnect?.()
}

if (process.send && process.argv[1] === import.meta.filename) {
  await main(JSON.parse(process.argv[2]!) as Task)
}
