/** What the rows mean: the conditions they hold under, and each aim beside what was reached. */
import type { Row } from '../bench.ts'
import { type Aim, aimLines, atMost, below, verdict } from '../session.ts'
import { formatValue } from '../table.ts'
import type { Sizes } from './session.ts'
import { fileCount } from './tree.ts'

const AIMS = {
  shareMin: 0.8,
  noOpMsMax: 3_000,
  noOpCallsMax: 2,
  moveCallsMax: 1,
  idlePercentMax: 1,
  residentMbMax: 100,
  hashGbMin: 1,
}

export function conditions(sizes: Sizes): string[] {
  return [
    'the simulator, the sync and each limit are processes of their own on this machine and share its cores and its disk; a personal drive; the ledger is SQLite in a file, WAL, synchronous = FULL',
    'tidemark: from asking for a sync until nothing is left to do, without the start of the process; 8 uploads, downloads and checks at once, chunks of 10 MiB, as a new user has them; no limit on requests',
    `\`limit\`: a bare loop over node:http with 8 calls at once that hashes, compares and commits nothing. Up: read the file, PUT its content, PATCH its time (huge: a session and its fragments). Down: delta, GET content, GET the address that it leads to, write, fsync, rename, fsync of the folder. Nothing changed: one delta and a readdir and lstat of everything`,
    `small: ${formatValue(fileCount(sizes.small))} files of up to ${formatValue(sizes.small.bytesMax)} bytes in ${formatValue(sizes.small.tops * sizes.small.subs)} folders, the better of two runs; ${farOf(sizes)}; huge: synthetic content, real bytes on the disk and on the wire, one run`,
    `many: ${formatValue(fileCount(sizes.many))} files in ${formatValue(sizes.many.tops * sizes.many.subs)} folders; rows put into the ledger as a first sync leaves them; medians of three rounds in one process, of which the first compares every row and notes a digest of each folder; a bare process is Node that does nothing`,
    `idle: processor time of \`tidemark files watch\` over ${sizes.idleMs / 1_000} s, 15 s after its start`,
  ]
}

function farOf({ far }: Sizes): string {
  return `${far.latencyMs} ms a call: the simulator waits that long before it answers, as a service that is not on this machine would; one run`
}

export function aims(rows: readonly Row[]): string[] {
  return [...shareLines(rows), ...aimLines(rows, FIXED), ...hashLines(rows)]
}

/** Of each case that has a limit: which share of its pace was reached. */
function shareLines(rows: readonly Row[]): string[] {
  return rows.flatMap((own) => {
    if (own.subject !== 'tidemark' || !/^(files\/s|MB\/s|ms)$/.test(own.unit)) return []
    const limit = rows.find((other) => other.case === own.case && other.subject === 'limit')
    if (!limit) return []
    const share = own.unit === 'ms' ? limit.value / own.value : own.value / limit.value
    const aim = `at least ${AIMS.shareMin} ×: ${verdict(share >= AIMS.shareMin)}`
    return [`${own.case}: ${formatValue(share)} × the plain protocol (${aim})`]
  })
}

const FIXED: readonly Aim[] = [
  { of: /^no-op sync of [\d,]+ files$/, ...below(AIMS.noOpMsMax, 'ms') },
  { of: /^no-op .*API calls/, ...atMost(AIMS.noOpCallsMax) },
  { of: /^move .*API calls/, ...atMost(AIMS.moveCallsMax) },
  { of: /^idle .*processor$/, ...below(AIMS.idlePercentMax, '%') },
  { of: /resident over a bare process$/, ...below(AIMS.residentMbMax, 'MB') },
]

function hashLines(rows: readonly Row[]): string[] {
  const hash = rows.find(({ case: name }) => name === 'hash: QuickXorHash')
  if (!hash) return []
  const aim = `at least ${AIMS.hashGbMin} GB/s: ${verdict(hash.value >= AIMS.hashGbMin)}`
  return [`QuickXorHash of bytes in memory on one core: ${formatValue(hash.value)} GB/s (${aim})`]
}
