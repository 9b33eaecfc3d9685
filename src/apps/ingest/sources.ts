/** Pipelines as sources: how one is brought up to date, how far it is, and what a sync shows on its way. */
import { Rates, rateText, waitingLine } from '../../app/cli/progress.ts'
import type { AppPlace } from '../../app/runtime.ts'
import type { ProgressLine, Source, SourceObstacle, SourceStatus, Sources, Wait } from '../../app/sources.ts'
import type { Clock } from '../../base/clock.ts'
import { asTidemarkError } from '../../base/errors.ts'
import { plural } from '../../base/wording.ts'
import { NOT_QUIET } from './dispose.ts'
import { SERVICE, streamOf } from './pipeline.ts'
import type { OpenIngest } from './runtime.ts'
import { booksText, isBalanced, isOpen, type PipelineStatus, pipelineStatus, syncStateOf } from './status.ts'

/** Rates are over this time, so that a few small objects do not look like a burst. */
const RATE_MS = 60_000
const POLL_MS = 60_000
/** Of the time of a sync that is spent on saying how far it is. */
const READ_SHARE_MAX = 0.05

type Ingest = Pick<OpenIngest, 'pipelines' | 'tables' | 'kinds' | 'receivers'>

export function ingestSource(name: string): Source {
  return { name, stream: streamOf(name), account: { service: SERVICE, name } }
}

export function ingestSources(place: AppPlace, ingest: Ingest): Sources {
  const { kinds, pipelines, tables, receivers } = ingest
  const { config } = place
  const read = (name: string): Promise<PipelineStatus> => pipelineStatus(tables, name)
  /** Queues that cannot be read: each is its own pipeline's trouble, and keeps no other from being read. */
  const unread = new Map<string, SourceObstacle>()
  const drain = async ({ name }: Source): Promise<number> => {
    try {
      const brought = await (await receivers.of(name))?.drain(new AbortController().signal)
      unread.delete(name)
      return brought ?? 0
    } catch (thrown) {
      const error = asTidemarkError(thrown)
      // Without the ledger no pipeline can be read: that is no trouble of this queue.
      if (error.kind === 'bug' || error.code?.startsWith('ledger-')) throw thrown
      const nowMs = kinds.clock.monotonicMs()
      // What was listed is read all the same.
      const part = { name, has: () => false }
      unread.set(name, { where: 'queue', error, sinceMs: nowMs, nextMs: nowMs, part })
      return 0
    }
  }
  return {
    async list() {
      await pipelines.reload()
      return pipelines.names().map(ingestSource)
    },
    async begin(source) {
      const { config: own } = await pipelines.get(source.name)
      if (own.location !== null) {
        await place.engine()!.enqueue(kinds.list, { pipeline: source.name }, { stream: source.stream })
      }
      await drain(source)
    },
    /** What was listed may have been announced as well, or more may have come meanwhile. */
    async next(all) {
      let brought = 0
      for (const source of all) brought += await drain(source)
      for (const { name } of all) if (!unread.has(name)) await (await receivers.of(name))?.look()
      return brought === 0 ? undefined : `${brought} ${plural(brought, 'message')} received`
    },
    kinds: new Set(
      [kinds.object, kinds.some, kinds.list, kinds.sweep, kinds.dispose].map(({ kind }) => kind),
    ),
    isPutOff: ({ kind, wait, note_code: code }) =>
      kind === kinds.dispose.kind && wait === 'time' && code === NOT_QUIET,
    obstacle: ({ name }) => kinds.obstacles.of(name) ?? unread.get(name),
    patienceMs: () => config.ingest.patience_minutes * 60_000,
    pollMs: () => POLL_MS,
    status: async ({ name }) => sourceStatus(await read(name)),
    syncState: async ({ name }) => syncStateOf(await read(name)),
    progress() {
      const rates = new Rates(RATE_MS)
      const seldom = readSeldom(kinds.clock, read)
      return {
        line: async (source, wait) => progressLine(source, await seldom(source.name), { wait, rates }),
      }
    },
  }
}

/** Counting a million shards takes a moment: what is drawn twice a second is not counted anew each time. */
function readSeldom(
  clock: Clock,
  read: (name: string) => Promise<PipelineStatus>,
): (name: string) => Promise<PipelineStatus> {
  const last = new Map<string, { status: PipelineStatus; untilMs: number }>()
  return async (name) => {
    const fromMs = clock.monotonicMs()
    const known = last.get(name)
    if (known && fromMs < known.untilMs) return known.status
    const status = await read(name)
    const tookMs = clock.monotonicMs() - fromMs
    last.set(name, { status, untilMs: fromMs + tookMs / READ_SHARE_MAX })
    return status
  }
}

function sourceStatus(status: PipelineStatus): SourceStatus {
  return {
    text: booksText(status),
    isOpen: isOpen(status),
    isWrong: !isBalanced(status),
    bad: status.objects.bad,
    json: status,
  }
}

function progressLine(
  source: Source,
  status: PipelineStatus,
  { wait, rates }: { wait: Wait | undefined; rates: Rates },
): ProgressLine {
  const [moved = 0] = rates.perSecond(source.name, status.records + status.quarantined)
  // Records of what is replaced leave the index.
  const rate = Math.max(0, moved)
  const json = { type: 'progress', ...status, recordsPerSecond: rate, waiting: wait ?? null }
  const text = booksText(status)
  if (wait) return waitingLine(source, { wait, text, json })
  const what = status.listingUnderWay ? 'listing; ' : ''
  return { text: `${source.name}: ${what}${text}, ${rateText(rate)}`, json }
}
