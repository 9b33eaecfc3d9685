/**
 * Several processes share the work of one ledger while now and then one of them is stopped for longer than its
 * lease and resumed, or killed and replaced. The oracle looks in between; at the end all must be done.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Random } from '../../src/base/random.ts'
import type { Saying } from './child-options.ts'
import type { Child } from './child-process.ts'
import type { Database, Life } from './life.ts'
import { SMALL, type SourceSize } from './source.ts'

export const CREW: Record<Database, number> = { sqlite: 2, postgres: 3, libsql: 2 }

/**
 * Many jobs that commit again and again, and do not listen when they are told that their lease is lost: a process
 * that stood still comes back in the middle of one and goes on, and only the fence keeps it from committing.
 */
export const TURMOIL: SourceSize = { ...SMALL, uploads: 3, parts: 30, paceMs: 60, deaf: true }

const LEASE_MS = 700
/** The others look for expired leases once a second: some stops go unnoticed, most do not. */
const STOP_MS = { least: 1_200, most: 2_400 }
const WORKERS = 2
const KILL_SHARE = 0.35

export type Disturbance = { stops: number; kills: number; leasesLost: number }

export async function runTurmoil(o: {
  life: Life
  crew: number
  random: Random
  rounds: number
}): Promise<Disturbance> {
  const { life, random } = o
  const everybody: Child[] = []
  const hire = (): Child => {
    const child = life.start({ leaseMs: LEASE_MS, workers: WORKERS })
    everybody.push(child)
    return child
  }
  const crew = Array.from({ length: o.crew }, hire)
  const done = { stops: 0, kills: 0 }
  try {
    await Promise.all(crew.map((child) => child.said('ready')))
    for (let round = 0; round < o.rounds; round++) {
      const at = Math.floor(random() * crew.length)
      const child = crew[at]!
      if (child.process.exitCode !== null) break // the work is done
      if (random() < KILL_SHARE) {
        await child.destroy()
        crew[at] = hire()
        done.kills += 1
      } else {
        child.signal('SIGSTOP')
        await sleep(STOP_MS.least + random() * (STOP_MS.most - STOP_MS.least))
        await life.look(`while one of ${crew.length} processes stands still`)
        child.signal('SIGCONT')
        done.stops += 1
      }
      await sleep(random() * 150)
      await life.look(`in round ${round} of the turmoil`)
    }
    for (const child of crew) await life.finished(child)
    return { ...done, leasesLost: everybody.flatMap(({ sayings }) => sayings.filter(isLeaseLost)).length }
  } finally {
    for (const child of crew) await child.destroy()
  }
}

function isLeaseLost(saying: Saying): boolean {
  return saying.say === 'event' && saying.what.includes('"lease"') && saying.what.includes('"lost"')
}
