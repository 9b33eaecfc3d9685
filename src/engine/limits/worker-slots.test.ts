/** What a budget allows in workers, it allows to all processes together. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { freshDatabase } from '../../../scripts/test-database.ts'
import { sleep, systemClock } from '../../base/clock.ts'
import { createEngine, type Engine } from '../engine.ts'
import { slotJob, WorkerProcess } from './worker-process.suite.ts'
import { WorkerSlots } from './worker-slots.ts'

type Place = { url: string; folder: string; drop(): Promise<void> }

const PLACES: Record<string, () => Promise<Place>> = {
  SQLite: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-slots-'))
    const url = `sqlite:${join(folder, 'ledger.db')}`
    return { url, folder, drop: async () => rmSync(folder, { recursive: true }) }
  },
  PostgreSQL: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'tidemark-slots-'))
    const { url, drop } = await freshDatabase()
    return {
      url,
      folder,
      drop: async () => {
        await drop()
        rmSync(folder, { recursive: true })
      },
    }
  },
}

class Crew {
  readonly engine: Engine
  readonly #place: Place
  readonly #folder: string
  readonly processes: WorkerProcess[] = []
  readonly job

  private constructor(engine: Engine, place: Place, folder: string) {
    this.engine = engine
    this.#place = place
    this.#folder = folder
    this.job = slotJob({ folder, say: () => {} })
  }

  static async gather(place: Place): Promise<Crew> {
    const folder = join(place.folder, 'running')
    mkdirSync(folder)
    // It enqueues only.
    return new Crew(await createEngine({ ledger: place.url }), place, folder)
  }

  add(workersMax: number, leaseMs = 600_000): WorkerProcess {
    const one = new WorkerProcess({ url: this.#place.url, folder: this.#folder, workersMax, leaseMs })
    this.processes.push(one)
    return one
  }

  enqueue(...ms: number[]): Promise<{ id: number }[]> {
    return this.engine.enqueueMany(
      this.job,
      ms.map((one) => ({ ms: one })),
    )
  }

  /** The most that any job saw at work. */
  get together(): number {
    return Math.max(...this.processes.map(({ together }) => together))
  }

  async drained(): Promise<void> {
    const { ledger } = this.engine
    for (const state of ['pending', 'claimed'] as const) {
      while ((await ledger.jobs({ kind: 'test.slot', state })).length > 0) await sleep(systemClock, 20)
    }
  }

  async dismiss(): Promise<void> {
    for (const one of this.processes) await one.kill()
    await this.engine.stop()
    await this.#place.drop()
  }
}

for (const [name, open] of Object.entries(PLACES)) {
  const withCrew = async (fn: (crew: Crew) => Promise<void>): Promise<void> => {
    const crew = await Crew.gather(await open())
    try {
      await fn(crew)
    } finally {
      await crew.dismiss()
    }
  }

  describe(`the workers of a budget on ${name}`, () => {
    test('are never more than there may be over three processes, and all work is done', () =>
      withCrew(async (crew) => {
        const processes = [crew.add(2), crew.add(2), crew.add(2)]
        for (const one of processes) await one.next('ready')
        await crew.enqueue(...Array.from({ length: 60 }, () => 5))
        await crew.drained()
        assert.ok(crew.together <= 2, `${crew.together} at once`)
      }))

    test('are free at once when their process is killed, however long its lease', () =>
      withCrew(async (crew) => {
        const [first, second] = [crew.add(1), crew.add(1)]
        for (const one of [first, second]) await one.next('ready')
        await crew.enqueue(3_600_000)
        const holder = await Promise.race([first, second].map((one) => one.next('began').then(() => one)))
        const other = holder === first ? second : first
        await crew.enqueue(1)
        await holder.kill()
        await other.next('began')
        assert.ok(crew.together <= 1, `${crew.together} at once`)
      }))

    test('of a frozen process go to the others with its jobs, and when it wakes it asks again', () =>
      withCrew(async (crew) => {
        const frozen = crew.add(1, 1_000)
        await frozen.next('ready')
        const [long] = await crew.enqueue(3_600_000)
        await frozen.next('began')
        const other = crew.add(1, 600_000)
        await other.next('ready')
        frozen.signal('SIGSTOP')
        frozen.forgetFiles()
        await other.next('began')
        frozen.signal('SIGCONT')
        await crew.enqueue(1, 1, 1, 1)
        await crew.engine.cancel(long!.id)
        await crew.drained()
        assert.ok(crew.together <= 1, `${crew.together} at once`)
      }))
  })
}

test('slots end with the lease under which they were granted, and without a word from the ledger', () => {
  let owner = 1
  const slots = new WorkerSlots({ owner: () => owner, running: () => 0, max: () => 4 })
  slots.ask(0)
  const grant = (nowMs: number): void => slots.granted(slots.offer(nowMs, false), 4, nowMs)
  grant(0)
  assert.equal(slots.count(9_999), 4)
  assert.equal(slots.count(10_000), 0)
  owner = 2
  assert.equal(slots.count(1), 0)
  grant(2)
  assert.equal(slots.count(3), 4)
})
