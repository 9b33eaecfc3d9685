/**
 * How far a pipeline is, in the words of its own: `bucket lists 1,000 = 990 stored + 5 skipped + 2 bad + 3 on their way`.
 * All of it is counted from rows: each object that was listed is a shard, and each shard has exactly one state.
 */
import type { AppLook } from '../../app/runtime.ts'
import type { SyncState } from '../../app/sources.ts'
import { formatCount } from '../../base/format.ts'
import { errorMessage } from '../../engine/observe/job-texts.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { LIST_KIND, pipelineOf, SERVICE, streamOf } from './pipeline.ts'
import type { PipelineRow } from './store/rows.ts'
import { IngestTables, type ShardCount } from './store/tables.ts'

export type Reason = { code: string; count: number }

/** `total` = stored + skipped + bad + onTheirWay */
export type Balance = {
  total: number
  stored: number
  skipped: number
  bad: number
  onTheirWay: number
  skippedBy: readonly Reason[]
  badBy: readonly Reason[]
}

/** `total` = stored + skipped + bad + onTheirWay + gone: those that were bad, and are in their bucket no more. */
export type VersionBalance = Balance & { gone: number; goneBy: readonly Reason[] }

export type PipelineStatus = {
  pipeline: string
  /**
   * Of the last complete listing; null before the first. `isCurrent`: none is under way. While one is, what it has found
   * is counted with the others, so that the books never shrink to what it has come to. `shown`: how many objects it
   * counted as they came; `total` is counted from rows. `leftOut`: how many it passed over, in places where objects were
   * moved to. `of`: what was listed.
   */
  listing: (Balance & { of: string; atMs: number; isCurrent: boolean; shown: number; leftOut: number }) | null
  listingUnderWay: { sinceMs: number; listed: number } | null
  /** Of all object versions that were ever announced or listed. */
  objects: VersionBalance
  /** Published and in the index now, and in quarantine. */
  records: number
  quarantined: number
  bytes: number
  messages: {
    received: number
    duplicates: number
    dropped: number
    unparsed: number
    /** Why, of those that are shown: nobody understood them, or they name what they may not (`not-allowed`). */
    unparsedBy: readonly Reason[]
    acknowledged: number
    extensions: number
    released: number
    lastAtMs: number | null
  }
  takeovers: number
  /** What became of objects themselves, or why they were left where they are: see dispose.ts. */
  afterwards: readonly Reason[]
  oldestOnTheirWayMs: number | null
  /** What whoever receives has last heard from the queue, as far as it tells; the oldest in hand where it does not. */
  queueDepth: {
    waiting: number | null
    inFlight: number | null
    oldestAtMs: number | null
    notedAtMs: number
  } | null
  problem: { text: string; atMs: number } | null
}

export async function pipelineStatus(tables: IngestTables, name: string): Promise<PipelineStatus> {
  const [row, counts, takeovers, oldestMs, afterwards, unparsedBy] = await Promise.all([
    tables.pipeline(name),
    tables.counts(name),
    tables.takeovers(name),
    tables.oldestOpenMs(name),
    tables.afterwards(name),
    tables.unparsedBy(name),
  ])
  const sum = (key: 'published' | 'quarantined' | 'bytes', of = counts): number =>
    of.reduce((all, one) => all + one[key], 0)
  return {
    pipeline: name,
    listing: listingOf(row, counts),
    listingUnderWay: row?.listing_at == null ? null : { sinceMs: row.listing_at, listed: row.listing_n },
    objects: versionBalance([...counts, ...prunedOf(row)]),
    records: sum('published') + (row?.pruned_records ?? 0),
    // What was replaced is not read again.
    quarantined: sum(
      'quarantined',
      counts.filter(({ state }) => state !== 'skipped'),
    ),
    bytes: sum('bytes'),
    messages: {
      received: row?.messages ?? 0,
      duplicates: row?.duplicates ?? 0,
      dropped: row?.dropped ?? 0,
      unparsed: row?.unparsed ?? 0,
      unparsedBy,
      acknowledged: row?.acknowledged ?? 0,
      extensions: row?.extensions ?? 0,
      released: row?.released ?? 0,
      lastAtMs: row?.received_at ?? null,
    },
    takeovers,
    afterwards,
    oldestOnTheirWayMs: oldestMs,
    queueDepth: depthOf(row),
    problem: queueProblem(row) ?? (await listingProblem(tables.ledger, name)),
  }
}

type Problem = PipelineStatus['problem']

function queueProblem(row: PipelineRow | undefined): Problem {
  return row?.problem == null ? null : { text: row.problem, atMs: row.problem_at ?? 0 }
}

/** Why its last listing failed. Those that failed before are kept for a while, and mean nothing any more. */
async function listingProblem(ledger: Ledger, name: string): Promise<Problem> {
  const lists = { kind: LIST_KIND, stream: streamOf(name), limit: 1 }
  // There is an index of what failed, and it is seldom that something is found.
  const [failed] = await ledger.jobs({ ...lists, state: 'failed' })
  const [last] = failed ? await ledger.jobs(lists) : []
  if (!failed || last?.id !== failed.id) return null
  return { text: `it cannot be listed: ${errorMessage(failed.error)}`, atMs: failed.settled_at ?? 0 }
}

function depthOf(row: PipelineRow | undefined): PipelineStatus['queueDepth'] {
  if (row?.queue_noted_at == null) return null
  const { queue_waiting: waiting, queue_in_flight: inFlight, queue_oldest_at: oldestAtMs } = row
  return { waiting, inFlight, oldestAtMs, notedAtMs: row.queue_noted_at }
}

function listingOf(row: PipelineRow | undefined, counts: readonly ShardCount[]): PipelineStatus['listing'] {
  if (row?.listed_at == null) return null
  const balance = balanceOf(
    counts.filter(({ isListed }) => isListed),
    { before: row.listed_before ?? 0 },
  )
  const shown = row.listed_n ?? balance.total
  const { listed_at: atMs, listed_left_out: leftOut } = row
  return { ...balance, of: row.listing_of ?? '', atMs, isCurrent: row.listing_at === null, shown, leftOut }
}

type StateCount = Pick<ShardCount, 'state' | 'code' | 'n'>

/** What has no shard any more. */
function prunedOf(row: PipelineRow | undefined): StateCount[] {
  if (!row) return []
  const all: StateCount[] = [
    { state: 'stored', code: null, n: row.pruned },
    { state: 'skipped', code: 'older', n: row.pruned_older },
    { state: 'skipped', code: 'replaced', n: row.pruned_replaced },
  ]
  return all.filter(({ n }) => n > 0)
}

/** Those from `before` the start have no shard, and are counted beside. */
function balanceOf(counts: readonly StateCount[], { before = 0 }: { before?: number }): Balance {
  const sum = (state: ShardCount['state']): number =>
    counts.filter((one) => one.state === state).reduce((all, { n }) => all + n, 0)
  const skippedBy = reasonsOf(counts, 'skipped')
  if (before > 0) skippedBy.push({ code: 'before-start', count: before })
  const parts = {
    stored: sum('stored'),
    skipped: sum('skipped') + before,
    bad: sum('bad'),
    onTheirWay: sum('open'),
  }
  return {
    total: parts.stored + parts.skipped + parts.bad + parts.onTheirWay,
    ...parts,
    skippedBy,
    badBy: reasonsOf(counts, 'bad'),
  }
}

function versionBalance(counts: readonly StateCount[]): VersionBalance {
  const balance = balanceOf(counts, {})
  const goneBy = reasonsOf(counts, 'gone')
  const gone = goneBy.reduce((all, { count }) => all + count, 0)
  return { ...balance, total: balance.total + gone, gone, goneBy }
}

function reasonsOf(counts: readonly StateCount[], state: ShardCount['state']): Reason[] {
  const by = new Map<string, number>()
  for (const one of counts) {
    if (one.state === state) by.set(one.code ?? 'unknown', (by.get(one.code ?? 'unknown') ?? 0) + one.n)
  }
  return [...by].map(([code, count]) => ({ code, count })).sort((a, b) => b.count - a.count)
}

/** What was listed and what is counted are the same, unless somebody has miscounted. */
export function isBalanced({ listing }: PipelineStatus): boolean {
  return !listing?.isCurrent || listing.shown === listing.total
}

/** The listing's books where there is one: only they say that nothing is missing. */
export function booksText(status: PipelineStatus): string {
  const { listing, objects } = status
  const { total, stored, skipped, bad, onTheirWay } = listing ?? objects
  const parts = [`${formatCount(stored)} stored`, `${formatCount(skipped)} skipped`]
  parts.push(`${formatCount(bad)} bad`, `${formatCount(onTheirWay)} on their way`)
  const who = listing?.of.startsWith('file:') ? 'folder' : 'bucket'
  const what = listing ? `${who} lists ${formatCount(total)}` : `${formatCount(total)} announced`
  const since = listing ? objects.onTheirWay - onTheirWay : 0
  const besides = since > 0 ? `; ${formatCount(since)} announced besides, on their way` : ''
  const anew = listing && !listing.isCurrent ? ' (being listed anew)' : ''
  const wrong = isBalanced(status) ? '' : ` (and the listing showed ${formatCount(listing!.shown)})`
  return `${what} = ${parts.join(' + ')}${besides}${anew}${wrong}`
}

export function isOpen({ listingUnderWay, objects }: PipelineStatus): boolean {
  return listingUnderWay !== null || objects.onTheirWay > 0
}

/** The same for whoever shows all sources of a user. */
export function syncStateOf(status: PipelineStatus): SyncState {
  const { objects, listing, listingUnderWay, messages } = status
  const lastSyncAtMs = listing?.atMs ?? messages.lastAtMs
  const counts = { processed: objects.total - objects.onTheirWay, total: objects.total, failed: objects.bad }
  const phase = listingUnderWay ? 'discovering' : objects.onTheirWay > 0 ? 'processing' : 'idle'
  return { ...counts, phase, lastSyncAtMs, title: status.pipeline }
}

/** What the ledger alone tells of pipelines. */
export async function lookAtIngest(ledger: Ledger): Promise<AppLook> {
  const tables = await IngestTables.open(ledger)
  return {
    async shownStreams(rows) {
      const shown = []
      for (const row of rows) {
        if (!row.name.startsWith(`${SERVICE}:`)) continue
        const { objects } = await pipelineStatus(tables, pipelineOf(row.name))
        const { total, stored, skipped, bad, gone } = objects
        shown.push({ ...row, listed: total, stored, skipped, bad, gone, whole: total })
      }
      return shown
    },
    async needs() {
      const needs = []
      for (const name of await tables.pipelines()) {
        const problem = queueProblem(await tables.pipeline(name)) ?? (await listingProblem(ledger, name))
        if (problem) needs.push({ stream: streamOf(name), text: `${name} cannot be read: ${problem.text}` })
      }
      return needs
    },
  }
}
