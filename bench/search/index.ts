/**
 * Search: what is found of the evaluation set, how fast the index is filled, and how long searches take on
 * up to a million chunks.
 */
import { benchOfSteps } from '../session.ts'
import { aims, conditions } from './explanation.ts'
import { INDEXING, runIndexing } from './indexing-case.ts'
import { QUALITY, runQuality } from './quality-case.ts'
import { caseName, DATABASES, runQueries } from './query-case.ts'
import { Session } from './session.ts'

export const bench = benchOfSteps({
  title: 'search: one index over everything',
  open: (options) => new Session(options),
  async run(session) {
    await session.step(QUALITY, () => runQuality(session))
    await session.step(INDEXING, () => runIndexing(session))
    for (const database of DATABASES) {
      for (const chunks of session.sizes.chunks[database]) {
        await session.step(caseName(database, chunks), () => runQueries(session, database, chunks))
      }
    }
  },
  conditions,
  aims,
})
