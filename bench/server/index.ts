/**
 * The server under load: what a sync loses to many clients, what readers wait, what clients that do not read cost,
 * and how fast the API and the pages are on a ledger of a million jobs.
 */
import { loadavg } from 'node:os'
import type { Bench, BenchOptions, BenchRun, Row } from '../bench.ts'
import { conditions, explain } from './explanation.ts'
import { LARGE, runLarge } from './large-case.ts'
import { loadWorlds, runLoad } from './load-case.ts'
import { Session } from './session.ts'
import { runSilent, SILENT } from './silent-case.ts'

export const bench: Bench = {
  title: 'server: API, live events and pages under load',
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
      for (const world of loadWorlds(session)) await step(world.name, () => runLoad(session, world))
      await step(SILENT, () => runSilent(session))
      await step(LARGE, () => runLarge(session))
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
