/**
 * Object ingest: how fast records come from objects into the index, what further processes add, how many notifications it
 * takes, what it needs in memory, and what many shards cost.
 */
import { benchOfSteps } from '../session.ts'
import {
  MEMORY,
  Places,
  PROCESSES,
  runMemory,
  runProcesses,
  runShards,
  runSpeed,
  runSwap,
  runTiny,
  SHARDS,
  SPEED,
  SWAP,
  TINY,
} from './cases.ts'
import { aims, conditions } from './explanation.ts'
import { DATABASES, Session } from './session.ts'

export const bench = benchOfSteps({
  title: 'ingest: records of announced objects',
  open: (options) => new Session(options),
  async run(session) {
    const places = new Places(session)
    try {
      for (const database of DATABASES) {
        await session.step(`${SPEED}: ${database}`, () => runSpeed(session, places, database))
      }
      await session.step(PROCESSES, () => runProcesses(session, places))
      for (const database of DATABASES) {
        await session.step(`${TINY}: ${database}`, () => runTiny(session, places, database))
      }
      await session.step(MEMORY, () => runMemory(session, places))
      for (const database of DATABASES) {
        await session.step(`${SHARDS}: ${database}`, () => runShards(session, places, database))
      }
      for (const database of DATABASES) {
        await session.step(`${SWAP}: ${database}`, () => runSwap(session, places, database))
      }
    } finally {
      await places.close()
    }
  },
  conditions,
  aims,
})
