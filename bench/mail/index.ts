/**
 * The mail archive against a simulated Gmail: how well it uses a quota, how fast it is without one, what it needs in
 * memory, how fast it is searched, and what it costs when nothing has changed.
 */
import type { Bench, BenchOptions, BenchRun, Row } from '../bench.ts'
import { MEMORY, runArchives, SEARCH } from './archive-case.ts'
import { conditions, explain } from './explanation.ts'
import { runQuota } from './quota-case.ts'
import { FULL, QUICK, Session } from './session.ts'
import { runSpeed, SPEED, SUBJECTS, type Subject } from './speed-case.ts'
import { runUnchanged, UNCHANGED } from './unchanged-case.ts'

export const bench: Bench = {
  title: 'mail: the archive of a mailbox',
  async run(options): Promise<BenchRun> {
    const session = new Session(options)
    const rows: Row[] = []
    const notes: string[] = []
    const step = async (name: string, work: () => Promise<Row[]>): Promise<void> => {
      try {
        rows.push(...(await work()))
      } catch (error) {
        session.failed(name, error)
      }
    }
    const plan = planOf(options)
    try {
      if (plan.worlds.length > 0) await step('quota', () => runQuota(session, plan.worlds))
      if (plan.speed.length > 0) await step(SPEED, () => runSpeed(session, plan.speed))
      if (plan.memory || plan.search) {
        await step(MEMORY, async () => {
          const result = await runArchives(session, plan)
          notes.push(...result.notes)
          return result.rows
        })
      }
      if (plan.unchanged) await step(UNCHANGED, () => runUnchanged(session))
    } finally {
      await session.close()
    }
    return {
      rows,
      failures: session.failures,
      conditions: conditions(session.sizes, options.quick),
      explanation: explain(rows, notes),
    }
  },
}

/** What is run: all, or what is named by a part of its name. */
export function planOf({ quick, only }: Pick<BenchOptions, 'quick' | 'only'>) {
  const wants = (name: string): boolean => only.length === 0 || only.some((text) => name.includes(text))
  const { quotaWorlds } = quick ? QUICK : FULL
  const speed: readonly Subject[] = SUBJECTS.filter((subject) => wants(SPEED) || wants(subject))
  return {
    worlds: quotaWorlds.filter(({ name }) => wants(`quota: ${name}`)),
    speed: wants(SPEED) ? SUBJECTS : speed,
    memory: wants(MEMORY),
    search: wants(SEARCH),
    unchanged: wants(UNCHANGED),
  }
}
