/**
 * The server under load: what a sync loses to many clients, what readers wait, what clients that do not read cost,
 * and how fast the API and the pages are on a ledger of a million jobs.
 */
import { benchOfSteps } from '../session.ts'
import { aims, conditions } from './explanation.ts'
import { LARGE, runLarge } from './large-case.ts'
import { loadWorlds, runLoad } from './load-case.ts'
import { Session } from './session.ts'
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
