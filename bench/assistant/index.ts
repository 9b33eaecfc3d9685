/**
 * The mail assistant: how soon a new mail has its label and its draft with a model that takes no time, how near a backlog
 * comes to what the quota allows, and a hundred users in one process and in three.
 */
import { benchOfSteps } from '../session.ts'
import { BACKLOG, LATENCY, runBacklog, runLatency, runUsers, USERS, WORKERS } from './cases.ts'
import { aims, conditions } from './explanation.ts'
import { DATABASES, Session } from './session.ts'

export const bench = benchOfSteps({
  title: 'assistant: from the push to label and draft',
  open: (options) => new Session(options),
  async run(session) {
    for (const database of DATABASES) {
      await session.step(`${LATENCY}: ${database}`, () => runLatency(session, database))
    }
    // Side by side: what they do most of the time is wait for the quota.
    await Promise.all(
      DATABASES.map((database) =>
        session.step(`${BACKLOG}: ${database}`, () => runBacklog(session, database)),
      ),
    )
    for (const database of DATABASES) {
      await session.step(`${USERS}: ${database}`, () => runUsers(session, { database, workers: 1 }))
    }
    const [database, workers] = ['postgres', WORKERS] as const
    await session.step(`${USERS}: ${database}, ${WORKERS} processes`, () =>
      runUsers(session, { database, workers }),
    )
  },
  conditions,
  aims,
})
