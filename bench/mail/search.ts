/** Every query several times over, one after another, on an archive that was searched before. */

import { parseQuery } from '../../src/apps/mail/query/parse.ts'
import { openArchive } from '../../src/apps/mail/store/archive.ts'
import { systemClock } from '../../src/base/clock.ts'
import { ADDRESS } from './gmail.ts'
import { QUERIES } from './queries.ts'

export type Searched = { text: string; kind: string; hits: number; ms: number[] }

const SHARD_BYTES_MAX = 4e9

export async function searchAll(order: {
  folder: string
  archiveId: string
  labels: Record<string, string>
  rounds: number
}): Promise<Searched[]> {
  const archive = await openArchive({
    folder: order.folder,
    archiveId: order.archiveId,
    account: ADDRESS,
    expectExisting: true,
    shardBy: 'year',
    shardBytesMax: SHARD_BYTES_MAX,
    now: () => systemClock.now(),
  })
  const labels = new Map(Object.entries(order.labels))
  try {
    const searched: Searched[] = QUERIES.map((query) => ({ ...query, hits: 0, ms: [] }))
    // The first round warms up and does not count.
    for (let round = 0; round <= order.rounds; round++) {
      for (const one of searched) {
        const fromMs = systemClock.monotonicMs()
        const query = parseQuery(one.text, { now: systemClock.now(), me: ADDRESS })
        const { hits, unsearched } = await archive.search(query, { labels })
        if (unsearched.length > 0) throw new Error(`not searched: ${unsearched[0]?.reason}`)
        one.hits = hits.length
        if (round > 0) one.ms.push(systemClock.monotonicMs() - fromMs)
      }
    }
    return searched
  } finally {
    await archive.close()
  }
}
