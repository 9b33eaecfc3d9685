/**
 * The file sync against a simulated OneDrive: how fast files go up and down beside bare loops, what a sync costs when
 * nothing or little has changed, what a watch costs, and how fast content is hashed.
 */
import type { Row } from '../bench.ts'
import { benchOfSteps, row } from '../session.ts'
import { aims, conditions } from './explanation.ts'
import type { HashSpeeds } from './hash-speed.ts'
import { FIRST, MANY, runFirst, runMany } from './many-case.ts'
import { Session } from './session.ts'
import { runTransfer, TRANSFERS } from './transfer-case.ts'

const HASH = 'hash'

export const bench = benchOfSteps({
  title: 'files: a folder and OneDrive',
  open: (options) => new Session(options),
  async run(session) {
    await session.step(HASH, () => runHash(session))
    for (const name of TRANSFERS) await session.step(name, () => runTransfer(session, name))
    await session.step(FIRST, () => runFirst(session))
    await session.step(MANY, () => runMany(session))
  },
  conditions,
  aims,
})

async function runHash(session: Session): Promise<Row[]> {
  const speeds = await session.order<HashSpeeds>({ do: 'hash', gigabytes: session.sizes.hashGigabytes })
  return Object.entries(speeds).map(([name, value]) => row(`${HASH}: ${name}`, 'tidemark', value, 'GB/s'))
}
