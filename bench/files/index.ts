/**
 * The file sync against a simulated OneDrive: how fast files go up and down beside bare loops, what a sync costs when
 * nothing or little has changed, what a watch costs, and how fast content is hashed.
 */
import { loadavg } from 'node:os'
import type { Bench, BenchOptions, BenchRun, Row } from '../bench.ts'
import { conditions, explain } from './explanation.ts'
import type { HashSpeeds } from './hash-speed.ts'
import { FIRST, MANY, runFirst, runMany } from './many-case.ts'
import { row, Session } from './session.ts'
import { runTransfer, TRANSFERS } from './transfer-case.ts'

const HASH = 'hash'

export const bench: Bench = {
  title: 'files: a folder and OneDrive',
  async run(options: BenchOptions): Promise<BenchRun> {
    const session = new Session(options)
    const rows: Row[] = []
    const loadBefore = loadavg()[0]!
    const wants = (name: string): boolean =>
      options.only.length === 0 || options.only.some((text) => name.includes(text))
    const step = async (name: string, work: () => Promise<Row[]>): Promise<void> => {
      if (!wants(name)) return
      try {
        rows.push(...(await work()))
      } catch (error) {
        session.failed(name, error)
      }
    }
    try {
      await step(HASH, () => runHash(session))
      for (const name of TRANSFERS) await step(name, () => runTransfer(session, name))
      await step(FIRST, () => runFirst(session))
      await step(MANY, () => runMany(session))
    } finally {
      await session.close()
    }
    const load = [loadBefore, loadavg()[0]!]
    return {
      ...{ rows, failures: session.failures, explanation: explain(rows) },
      conditions: conditions(session.sizes, { quick: options.quick, load }),
    }
  },
}

async function runHash(session: Session): Promise<Row[]> {
  const speeds = await session.order<HashSpeeds>({ do: 'hash', gigabytes: session.sizes.hashGigabytes })
  return Object.entries(speeds).map(([name, value]) => row(`${HASH}: ${name}`, 'tidemark', value, 'GB/s'))
}
