/**
 * The server under load: what a sync loses to many clients, what readers wait, what clients that do not read cost,
 * and how fast the API and the pages are on a ledger of a million jobs.
 */
import type { Row } from '../bench.ts'
import { type Aim, aimLines, benchOfSteps } from '../session.ts'
import { LARGE, runLarge } from './large-case.ts'
import { loadWorlds, runLoad } from './load-case.ts'
import { Session, type Sizes } from './session.ts'
import { runSilent, SILENT } from './silent-case.ts'

export const bench = benchOfSteps({
  title: 'server: API, live events and pages under load',
  open: (options) => new Session(options),
  async run(session) {
    for (const world of loadWorlds(session)) await session.step(world.name, () => runLoad(session, world))
    await session.step(SILENT, () => runSilent(session))
    await session.step(LARGE, () => runLarge(session))
  },
  conditions,
  aims,
})

/** Each stands beside what was reached. */
const AIMS: readonly Aim[] = [
  { of: /^load: .*, share kept$/, isMet: (value) => value >= 0.9, text: 'at least 0.90' },
  { of: /^load: .*, errors$/, isMet: (value) => value === 0, text: 'none' },
  {
    of: /^silent: .*, waiting at most$/,
    isMet: (value) => value <= 60,
    text: 'at most 1.2 MB for each of 50',
  },
  { of: /^silent: .*, missed by a client/, isMet: (value) => value === 0, text: 'none' },
  { of: /^pages: first page usable, .*median$/, isMet: (value) => value < 1_000, text: 'below 1,000 ms' },
  { of: /^pages: .*longest task$/, isMet: (value) => value <= 100, text: 'at most 100 ms' },
]

export function conditions(sizes: Sizes): string[] {
  const n = (value: number): string => value.toLocaleString('en-US')
  return [
    `load: one sync by \`tidemark serve\` from a simulated Gmail in a process of its own; phases without and with clients take turns in it, ${sizes.phasePairs} of each; a process with the clients has ${sizes.pages} live pages (events, and what such pages ask for when something changed) and ${sizes.readsPerS} reads a second, each timed from when it was due; server, simulator and clients share the cores`,
    `load, quota: ${n(sizes.quotaPhaseMs / 1000)} s a phase; unbounded: ${n(sizes.unboundedPhaseMs / 1000)} s a phase, and the sync takes all of its core that it can get, so whatever the clients cost is missing there`,
    `silent: the live events in a process of their own, ${sizes.silentMs / 1000} s; resident includes what the process keeps to send again to clients that come back (2,000 events), and what the kernel buffers is not in it`,
    `large: ${n(sizes.segments)} segments and ${n(sizes.jobs)} jobs in SQLite, \`serve --role web\`, one read after another, ${sizes.readRounds} of each; pages in a headless Chromium; tasks below 50 ms are not reported and show as 0`,
  ]
}

export function aims(rows: readonly Row[]): string[] {
  return aimLines(rows, AIMS)
}
