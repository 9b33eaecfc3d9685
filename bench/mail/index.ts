/**
 * The mail archive against a simulated Gmail: how well it uses a quota, how fast it is without one, what it needs in
 * memory, how fast it is searched, and what it costs when nothing has changed.
 */
import type { BenchOptions } from '../bench.ts'
import { benchOfSteps, isWanted } from '../session.ts'
import { MEMORY, runArchives, SEARCH } from './archive-case.ts'
import { aims, conditions } from './explanation.ts'
import { runQuota } from './quota-case.ts'
import { FULL, QUICK, Session } from './session.ts'
import { runSpeed, SPEED, SUBJECTS, type Subject } from './speed-case.ts'
import { runUnchanged, UNCHANGED } from './unchanged-case.ts'

export const bench = benchOfSteps({
  title: 'mail: the archive of a mailbox',
  open: (options) => new Session(options),
  async run(session) {
    const plan = chosenCases(session.options)
    if (plan.worlds.length > 0) await session.attempt('quota', () => runQuota(session, plan.worlds))
    if (plan.speed.length > 0) await session.attempt(SPEED, () => runSpeed(session, plan.speed))
    if (plan.memory || plan.search) await session.attempt(MEMORY, () => runArchives(session, plan))
    if (plan.unchanged) await session.attempt(UNCHANGED, () => runUnchanged(session))
  },
  conditions,
  aims,
})

/** What is run: all, or what is named by a part of its name. */
export function chosenCases({ quick, only }: Pick<BenchOptions, 'quick' | 'only'>) {
  const wants = (name: string): boolean => isWanted({ only }, name)
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
