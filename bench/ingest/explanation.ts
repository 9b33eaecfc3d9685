/** What the rows mean: the conditions they hold under, and each aim beside what was reached. */
import type { Row } from '../bench.ts'
import { type Aim, aimLines, verdict } from '../session.ts'
import { formatValue } from '../table.ts'
import { MEMORY, PROCESSES, SHARDS, SPEED, SWAP, TINY } from './cases.ts'
import { DATABASES, type Sizes } from './session.ts'

const SPEED_SHARE_MIN = 0.7
const MEMORY_GROWTH_MAX = 1.25
const LOOKUP_GROWTH_MAX = 2

export function conditions(sizes: Sizes): string[] {
  const { objects, records, rounds, tiny } = sizes
  return [
    'the simulated S3 and SQS, each process of ingest and each limit are processes of their own on this machine, over loopback; ingest and limits are started as `tidemark` starts itself, with its limits for young objects and for glibc',
    `${SPEED}: ${objects} objects of ${records.toLocaleString('en-US')} records of some 250 bytes as NDJSON, with the settings of a new user, synchronous = FULL; \`limit append\` makes the same documents and appends them in the same batches to the same kind of index, without queue, store, reading or positions; they take turns, the best of ${rounds} counts; processor time is that of the process, without PostgreSQL's`,
    `${TINY}: ${tiny.toLocaleString('en-US')} objects of one record, each announced by a message of its own; until the last is stored; \`limit carry\` receives, reads and acknowledges the same by the same clients, and keeps nothing`,
    `${MEMORY}: VmHWM of the process; one object of records of ${sizes.hugeRecordBytes.toLocaleString('en-US')} bytes, of which 4,000 are indexed; the smallest is as large as heap and malloc take to reach what they keep`,
    `${SWAP}: ${sizes.swap.toLocaleString('en-US')} records of a new version are revealed and as many of the old one hidden, in one transaction; records without text, at which it does not look`,
    `${SHARDS}: lookup is what is known of ten announced objects, of the versions of one, and how many are open; status counts all of them; processor time is that of the process, without PostgreSQL's, which does the counting there`,
  ]
}

const AIMS: readonly Aim[] = [
  { of: /^tiny: sqlite, [\d,]+ objects$/, isMet: (value) => value >= 500, text: 'at least 500' },
  { of: /^tiny: postgres, [\d,]+ objects$/, isMet: (value) => value >= 1_000, text: 'at least 1,000' },
]

export function aims(rows: readonly Row[]): string[] {
  return [
    ...speedLines(rows),
    ...processLines(rows),
    ...aimLines(rows, AIMS),
    ...tinyLines(rows),
    ...growthLines(rows),
  ]
}

function speedLines(rows: readonly Row[]): string[] {
  return shares(rows, SPEED, 'limit append').map(([name, share]) => {
    const isMet = verdict(share >= SPEED_SHARE_MIN)
    return `${name}: ${formatValue(share)} × the append alone (at least ${SPEED_SHARE_MIN}: ${isMet})`
  })
}

function tinyLines(rows: readonly Row[]): string[] {
  return shares(rows, TINY, 'limit carry').map(
    ([name, share]) => `${name}: ${formatValue(share)} × queue and store alone`,
  )
}

/** In each case of these that has both, how much of a limit is reached. */
function shares(rows: readonly Row[], of: string, subject: string): [string, number][] {
  return rows.flatMap((limit): [string, number][] => {
    if (limit.subject !== subject || !limit.case.startsWith(`${of}:`)) return []
    const own = rows.find((row) => row.case === limit.case && row.subject === 'tidemark')
    return own ? [[limit.case, own.value / limit.value]] : []
  })
}

function processLines(rows: readonly Row[]): string[] {
  return ['tidemark', 'limit append'].flatMap((subject) => {
    const [one, two] = rows.filter((row) => row.case.startsWith(PROCESSES) && row.subject === subject)
    return one && two
      ? [`${PROCESSES}: two of ${subject} are ${formatValue(two.value / one.value)} × one`]
      : []
  })
}

/** From the smallest to the largest. */
function growthLines(rows: readonly Row[]): string[] {
  const grown = (of: RegExp, name: string, max: number): string[] => {
    const some = rows.filter((row) => of.test(row.case))
    const [first, last] = [some[0], some.at(-1)]
    if (!first || !last || first === last) return []
    const growth = last.value / first.value
    return [`${name}: grows to ${formatValue(growth)} × (at most ${max}: ${verdict(growth <= max)})`]
  }
  return [
    ...grown(/^memory: /, MEMORY, MEMORY_GROWTH_MAX),
    ...DATABASES.flatMap((database) =>
      grown(
        new RegExp(`^shards: ${database}, .*, lookup$`),
        `${SHARDS}: ${database}, lookup`,
        LOOKUP_GROWTH_MAX,
      ),
    ),
  ]
}
