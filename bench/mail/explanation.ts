/** What the rows mean: the conditions they hold under, and each aim beside what was reached. */
import type { Row } from '../bench.ts'
import { type Aim, aimLines, atMost, below, verdict } from '../session.ts'
import { formatValue } from '../table.ts'
import { MEMORY } from './archive-case.ts'
import type { Sizes } from './session.ts'
import { SPEED, type Subject } from './speed-case.ts'

const AIMS = {
  usedMin: 95,
  throttledMax: 1,
  speedShareMin: 0.7,
  memoryMbMax: 250,
  searchP50MsMax: 20,
  searchP95MsMax: 100,
  callsMax: 2,
}

export function conditions(sizes: Sizes): string[] {
  return [
    'the simulator, the sync and each limit are processes of their own on this machine; all share its cores, so a faster sync also waits for the simulator',
    `quota: worlds side by side, ${sizes.quotaWarmUpMs / 1000} s to warm up from the first call, ${sizes.quotaMs / 1000} s measured; the simulator counts what was charged to the user in a sliding minute; calls in a batch count one by one; price of a get 20; the settings are those of a new user but for gmail.units_per_minute`,
    `unbounded: ${sizes.speedMessages.toLocaleString('en-US')} messages of all kinds; tidemark from before its first request to its last commit as the ledger has them, without the start of the process, and beside it reads what has come into the one index; \`archive only\`: without that index; \`limit download\`: the same ids through the same endpoint, 50 a request, 8 requests at once, nothing parsed or stored; \`limit insert\`: the same bytes into one table, WAL, synchronous = FULL, 100 rows a transaction, only the inserts timed; they take turns, the best of ${sizes.speedRuns} counts`,
    "memory: VmHWM of the sync's process; generated mail of the profile `plain`",
    'search: the archive of the larger memory case in a process of its own, one query after another, from text to page of hits, after one round to warm up',
  ]
}

export function aims(rows: readonly Row[]): string[] {
  return [...aimLines(rows, QUOTA), ...speedLines(rows), ...memoryLines(rows), ...aimLines(rows, OTHER)]
}

const QUOTA: readonly Aim[] = [
  {
    of: /^quota: .*, used/,
    isMet: (value) => value >= AIMS.usedMin,
    text: `at least ${AIMS.usedMin} %`,
  },
  { of: /^quota: /, ...below(AIMS.throttledMax, '%') },
]

const OTHER: readonly Aim[] = [
  { of: /^search: .*, p50$/, ...below(AIMS.searchP50MsMax, 'ms') },
  { of: /^search: .*, p95$/, ...below(AIMS.searchP95MsMax, 'ms') },
  { of: /^unchanged /, ...atMost(AIMS.callsMax) },
]

/** Against the slower of the two limits. */
function speedLines(rows: readonly Row[]): string[] {
  const of = (subject: string): number | undefined =>
    rows.find((row) => row.case === SPEED && row.subject === subject)?.value
  const [download, insert] = [of('limit download'), of('limit insert')]
  if (download === undefined || insert === undefined) return []
  const slower = download < insert ? 'download' : 'insert'
  return (['tidemark', 'tidemark, archive only'] satisfies Subject[]).flatMap((subject) => {
    const own = of(subject)
    if (own === undefined) return []
    const isMet = own / Math.min(download, insert) >= AIMS.speedShareMin
    return `${SPEED}: ${subject} is ${formatValue(own / download)} × limit download, ${formatValue(own / insert)} × limit insert; the slower limit is the ${slower} (at least ${AIMS.speedShareMin} × it: ${verdict(isMet)})`
  })
}

function memoryLines(rows: readonly Row[]): string[] {
  const [few, many] = rows.filter((row) => row.case.startsWith(MEMORY))
  if (!few || !many) return []
  const isMet = few.value < AIMS.memoryMbMax && many.value < AIMS.memoryMbMax
  return [
    `${MEMORY}: ${formatValue(few.value)} MB and ${formatValue(many.value)} MB, ${formatValue(many.value / few.value)} × (below ${AIMS.memoryMbMax} MB: ${verdict(isMet)})`,
  ]
}
