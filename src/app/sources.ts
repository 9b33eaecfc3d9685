/**
 * What an app keeps up to date: a mailbox, a folder, a queue. Each source has one stream. What is written once over all
 * apps (sync, status, pause and resume, bad items, the line of progress, the end of a sync and its exit code) needs no
 * more than what is declared here; whatever an app leaves out follows from what the ledger has counted.
 */

import { formatCount } from '../base/format.ts'
import type { Obstacle } from '../engine/obstacles.ts'
import type { BadRow, JobRow, SegmentRow } from '../ledger/contract.ts'
import type { PauseRow } from '../ledger/control.ts'
import type { Ledger } from '../ledger/ledger.ts'

export type Source = {
  /** As people call it: an address, the name of a folder or of a queue. */
  readonly name: string
  /** `mail:ann@example.com` */
  readonly stream: string
  /** Whose sign-in it needs; none where the source is no account. */
  readonly account?: { readonly service: string; readonly name: string }
}

export type Sources = {
  /** Those that are kept up to date from this machine. */
  list(): Promise<readonly Source[]>
  /** Those that somebody means by this; by their names, or all of them, where it is left out. Refuses with a UsageError. */
  find?(wanted: string | undefined): Promise<readonly Source[]>
  /** Enqueues what brings it up to date. Whoever does it twice changes nothing. */
  begin(source: Source): Promise<void>
  /** Enqueues a look at what has changed since; as `begin` where it is left out. */
  follow?(source: Source): Promise<void>
  /**
   * Nothing is enqueued any more: enqueues what follows from what was done, and says what that is. Where it says the same
   * as the last time, or nothing, the sync is over.
   */
  next?(sources: readonly Source[]): Promise<string | undefined>
  status?(source: Source): Promise<SourceStatus>
  /** How far it is for its user: see users/sync-state.ts. */
  syncState?(source: Source): Promise<SyncState>
  /** Lines of progress, from now on. */
  progress?(sources: readonly Source[]): SourceProgress
  /** What is in the way of its jobs, in this process. */
  obstacle?(source: Source): SourceObstacle | undefined
  /** The kinds that a sync consists of; all of the app's where it is left out. */
  readonly kinds?: ReadonlySet<string>
  /** A job whose time has not come, and that a sync does not wait for: the next one, or whoever runs on, sees to it. */
  isPutOff?(job: JobRow): boolean
  /** How long a sync waits for a service that is out of reach. */
  patienceMs?(): number
  /** How often it is looked for what has changed. */
  pollMs?(): number
  /** When its service last told what has changed; null before the first time, undefined where it is not asked. */
  heardAtMs?(source: Source): Promise<number | null | undefined>
}

/**
 * idle: up to date. discovering: what there is is being listed. processing: what was listed is being worked off.
 * stalled: something is to be done, and nobody does it just now. failed: the last try came to nothing.
 */
export type SyncPhase = 'idle' | 'discovering' | 'processing' | 'stalled' | 'failed'

export type SyncState = {
  phase: SyncPhase
  /** Items that need nothing more, of those that are listed. */
  processed: number
  total: number
  failed: number
  lastSyncAtMs: number | null
  /** What is scanned, for people: `Google Drive`. The service of the source if left out. */
  title?: string
}

export type SourceStatus = {
  /** What it has, in a few words: `1,000 listed = 990 stored + …`. */
  text: string
  /** Something is left to do, or nobody knows. */
  isOpen: boolean
  /** What time does not mend: counts that do not agree. */
  isWrong: boolean
  /** Items that would not work. */
  bad: number
  /** Something else waits for a person. */
  needsYou?: boolean
  /** How a sync ended for it where nothing is wrong; `done` where it is left out. */
  word?: string
  /** For programs. */
  json: object
}

/** `cloud`: time may mend it. Everything else is mended by people. */
export type SourceObstacle = Obstacle<string> & {
  /** It is in the way of a part only: what that is called, and which jobs belong to it. */
  part?: { name: string; has(job: JobRow): boolean }
}

/** Why nothing of a source moves. */
export type Wait = { reason: string; forMs: number }

export type SourceProgress = {
  line(source: Source, wait: Wait | undefined): Promise<ProgressLine>
  end?(): void
}

export type ProgressLine = {
  text: string
  /** The same for a terminal, what matters most first: as many of them are shown as fit. */
  parts?: readonly string[]
  /** What of it must differ for it to be news; the text itself where it is left out. */
  key?: string
  /** False of a line that says nothing but that nothing is to be done. */
  isNews?: boolean
  /** For programs. */
  json: object
}

/** What the ledger has counted of a stream, for apps that say no more. */
export async function countedStatus(ledger: Ledger, { name, stream }: Source): Promise<SourceStatus> {
  const row = (await ledger.streams()).find((one) => one.name === stream)
  const count = (n: number | undefined): number => Number(n ?? 0)
  const [listed, stored, gone] = [count(row?.listed), count(row?.stored), count(row?.gone)]
  const [skipped, bad] = [count(row?.skipped), count(row?.bad)]
  const onTheirWay = listed - stored - gone - skipped - bad
  const [segments, settledSegments] = [count(row?.segments), count(row?.settled_segments)]
  const isLeft = await hasJobs(ledger, { stream })
  const parts = [`${formatCount(stored)} stored`, `${formatCount(gone)} gone`]
  parts.push(`${formatCount(skipped)} skipped`, `${formatCount(bad)} bad`)
  if (onTheirWay > 0) parts.push(`${formatCount(onTheirWay)} on their way`)
  return {
    text: `${formatCount(listed)} listed = ${parts.join(' + ')}`,
    isOpen: row === undefined || onTheirWay > 0 || settledSegments < segments || isLeft,
    isWrong: count(row?.unbalanced) > 0,
    bad: bad > 0 ? bad : (await badItemsOf(ledger, stream)).length,
    json: { name, listed, stored, gone, skipped, bad, onTheirWay, segments, settledSegments },
  }
}

/** Why nothing of a stream moves, where it or everything is paused. */
export async function pauseOfStream(ledger: Ledger, stream: string): Promise<PauseRow | undefined> {
  return (await ledger.pauses()).find(
    ({ scope, target }) => scope === 'all' || (scope === 'stream' && target === stream),
  )
}

/** Whether anything of it is left to do or under way. */
export async function hasJobs(ledger: Ledger, of: { stream: string; kind?: string }): Promise<boolean> {
  for (const state of ['pending', 'claimed'] as const) {
    if ((await ledger.jobs({ ...of, state, limit: 1 })).length > 0) return true
  }
  return false
}

const SEGMENTS_PAGE = 1_000

/** All segments of a stream, in their order. */
export async function segmentsOf(ledger: Ledger, streamId: number): Promise<SegmentRow[]> {
  const segments: SegmentRow[] = []
  let fromAt = Number.MIN_SAFE_INTEGER
  for (;;) {
    const page = await ledger.segments(streamId, { fromAt, limit: SEGMENTS_PAGE })
    segments.push(...page)
    if (page.length < SEGMENTS_PAGE) return segments
    fromAt = page.at(-1)!.to_at
  }
}

const BAD_PAGE = 1_000
const BAD_PAGES_MAX = 10_000

/** All bad items of a stream, as committed at this moment. */
export async function badItemsOf(ledger: Ledger, stream: string): Promise<BadRow[]> {
  const rows: BadRow[] = []
  for (let page = 0; page < BAD_PAGES_MAX; page++) {
    const more = await ledger.badItems({ stream, after: rows.at(-1)?.id ?? 0, limit: BAD_PAGE })
    rows.push(...more)
    if (more.length < BAD_PAGE) break
  }
  return rows
}
