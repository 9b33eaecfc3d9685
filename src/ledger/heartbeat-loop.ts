/**
 * The heartbeat of a process, the same for both databases: its two sides, and the thread's loop.
 *
 * It beats in a thread with a connection of its own, so that a handler that blocks the event loop for minutes
 * does not cost the process its lease. A main thread that shows no sign of life for `blockedMaxMs`
 * does: then the lease is left to run out and others take over.
 */
import module from 'node:module'
import { parentPort, Worker } from 'node:worker_threads'
import { type Clock, sleep, systemClock } from '../base/clock.ts'
import type { Driver, Heartbeat, HeartbeatOptions } from './contract.ts'
import { extendLease } from './workers.ts'

export type ThreadData = {
  owner: number
  leaseMs: number
  everyMs: number
  blockedMaxMs: number
  /** Counts signs of life from the main thread. */
  life: Int32Array
}

/** One statement every few seconds needs no more; without limits the thread's heap grows with the machine's. */
const THREAD_LIMITS = { maxYoungGenerationSizeMb: 2, maxOldGenerationSizeMb: 64 }

/** `offsetMs`: how far the database's clock is ahead of this machine's. */
export type ThreadMessage = { ready?: true; lost?: true; error?: string; offsetMs?: number }

/** The main thread's side; the thread files differ in how they reach their database. */
export async function inThread(
  script: URL,
  connection: object,
  options: HeartbeatOptions & { onOffset?: (offsetMs: number) => void },
): Promise<Heartbeat> {
  const { owner, leaseMs, everyMs, blockedMaxMs, onLost, onError, onOffset } = options
  const life = new Int32Array(new SharedArrayBuffer(4))
  const data: ThreadData = { owner, leaseMs, everyMs, blockedMaxMs, life }
  const thread = new Worker(new URL('./thread-entry.js', import.meta.url), {
    workerData: { ...data, ...connection, script: script.href, compileCache: module.getCompileCacheDir() },
    resourceLimits: THREAD_LIMITS,
  })
  await new Promise<void>((resolve, reject) => {
    thread.once('error', reject)
    thread.once('message', () => {
      thread.off('error', reject)
      resolve()
    })
  })
  thread.on('message', (message: ThreadMessage) => {
    if (message.lost) onLost()
    else if (message.error !== undefined) onError(new Error(message.error))
    else if (message.offsetMs !== undefined) onOffset?.(message.offsetMs)
  })
  thread.on('error', onError)
  // Without its beats the lease runs out unnoticed; better to give it up and start over.
  let stopping = false
  thread.on('exit', () => {
    if (!stopping) onLost()
  })
  thread.unref()
  return {
    alive: () => {
      Atomics.add(life, 0, 1)
    },
    stop: async () => {
      stopping = true
      await thread.terminate()
    },
  }
}

/** Where no other process is watching, or time is not the machine's, a timer of that clock is enough. */
export function onTimer(driver: Driver, clock: Clock, options: HeartbeatOptions): Heartbeat {
  const { owner, leaseMs, everyMs, onLost, onError } = options
  let cancel = (): void => {}
  const beat = (): void => {
    driver
      .transaction((tx) => extendLease(tx, owner, driver.now(), leaseMs))
      .then((held) => {
        if (!held) onLost()
      }, onError)
    cancel = clock.timer(everyMs, beat)
  }
  cancel = clock.timer(everyMs, beat)
  return { alive: () => {}, stop: async () => cancel() }
}

export function tellMain(message: ThreadMessage): void {
  parentPort!.postMessage(message)
}

/** The thread's side. */
export function beatForever(data: ThreadData, extend: () => Promise<boolean>): void {
  let seenLife = Atomics.load(data.life, 0)
  let seenAtMs = systemClock.monotonicMs()
  const beat = async (): Promise<void> => {
    const life = Atomics.load(data.life, 0)
    const nowMs = systemClock.monotonicMs()
    if (life !== seenLife) {
      seenLife = life
      seenAtMs = nowMs
    }
    if (nowMs - seenAtMs > data.blockedMaxMs) {
      tellMain({ error: `the main thread has been blocked for ${Math.round((nowMs - seenAtMs) / 1_000)} s` })
      return
    }
    try {
      if (!(await extend())) tellMain({ lost: true })
    } catch (thrown) {
      // A missed beat is not the end: the lease outlives several, and the next one may get through.
      tellMain({ error: thrown instanceof Error ? thrown.message : String(thrown) })
    }
  }
  const loop = async (): Promise<void> => {
    tellMain({ ready: true })
    for (;;) {
      await sleep(systemClock, data.everyMs)
      await beat()
    }
  }
  loop().catch((thrown: unknown) => {
    throw thrown
  })
}
