/** Folders as sources: how one is brought into step, how far it is, and what a sync shows on its way. */
import { Rates } from '../../app/cli/progress.ts'
import type { AppPlace } from '../../app/runtime.ts'
import {
  type ProgressLine,
  pauseOfStream,
  type Source,
  type SourceObstacle,
  type SourceProgress,
  type Sources,
  type Wait,
} from '../../app/sources.ts'
import { formatBytes, formatCount, formatDuration } from '../../base/format.ts'
import { counted, plural } from '../../base/wording.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { chosenRows, rowsHere } from './chosen-folders.ts'
import { streamStamp } from './documents.ts'
import { folderPairSettings, SERVICE, streamOf } from './folder-pair.ts'
import type { FileSync } from './index.ts'
import { TOLD_ELSEWHERE_CODES, WISHED_CODES } from './left-code.ts'
import type { OpenFiles } from './runtime.ts'
import { type FileStatus, fileStatus } from './status.ts'
import { type LeftAlone, leftAlone } from './store/folder-rows.ts'
import { type UnknownPath, unknownPaths } from './store/wanted-paths.ts'

/** Rates are over this time, so that a file that ends does not look like a burst. */
const RATE_MS = 10_000
/** More than so many jobs are not added up; the others count as large as these. */
const PENDING_PAGE = 1_000
const REASONS_MAX = 100

export function folderSource({ name, account }: { name: string; account: string }): Source {
  return { name, stream: streamOf(name), account: { service: SERVICE, name: account } }
}

export function filesSources(place: AppPlace, files: FileSync & Pick<OpenFiles, 'indexing'>): Sources {
  const { ledger, config } = place
  const { kinds } = files
  /** What was done by this process, by folder. */
  const done = new Map<string, Done>()
  /** How a folder stood when it was last read into the index. */
  const indexed = new Map<string, string>()
  /** Folders that were looked at once more, because something waits for that. */
  const lookedAgain = new Set<string>()
  const here = { files }
  const enqueue = async (kind: typeof kinds.sync | typeof kinds.plan, name: string): Promise<void> => {
    await place.engine()!.enqueue(kind, { drive: name }, { stream: streamOf(name) })
  }
  return {
    list: async () => (await rowsHere(here)).map(folderSource),
    find: async (wanted) => (await chosenRows(here, wanted)).map(folderSource),
    begin: ({ name }) => {
      lookedAgain.delete(name)
      return enqueue(kinds.sync, name)
    },
    kinds: new Set(files.jobs.map(({ kind }) => kind)),
    async next(sources) {
      const open = await stillOpen({ files, ledger }, sources)
      const left = open.filter(({ name, unplanned }) => unplanned > 0 || !lookedAgain.has(name))
      for (const { name, unplanned } of left) {
        await enqueue(unplanned > 0 ? kinds.plan : kinds.sync, name)
        if (unplanned === 0) lookedAgain.add(name)
      }
      if (left.length > 0) return JSON.stringify(left)
      const unread: string[] = []
      for (const { name, stream } of files.indexing ? sources : []) {
        const stamp = await streamStamp(ledger, name)
        if (indexed.get(name) === stamp) continue
        indexed.set(name, stamp)
        unread.push(`${name} ${stamp}`)
        await place.engine()!.enqueue(files.indexing!.kind, { unit: name, compare: true }, { stream })
      }
      return unread.length > 0 ? JSON.stringify(unread) : undefined
    },
    obstacle: ({ name }) => folderObstacle(files, name),
    patienceMs: () => config.files.patience_minutes * 60_000,
    pollMs: () => files.settings.pollMs,
    heardAtMs: async ({ name }) => (await files.store.folderPair(name)).heardAt,
    async status({ name }) {
      const end = await folderEnd({ files, ledger }, name)
      const { heldDeletes, conflicts, troubles, totals } = end
      const inStep = `${counted(totals.files, 'file')}, ${formatBytes(totals.bytes)} in step`
      const isAsked = heldDeletes !== null || conflicts > 0
      return {
        text: [inStep, ...doneTexts(done.get(name))].join('; '),
        isOpen: isBusy(end),
        isWrong: false,
        bad: 0,
        needsYou: needsYou(end),
        word: isAsked ? 'waiting for you' : troubles.length > 0 ? 'done, but not for all' : 'done',
        json: { ...endJson(end), done: done.get(name) },
      }
    },
    progress: (sources) => folderProgress(place, files, { sources, done }),
  }
}

type StillOpen = { name: string; unplanned: number; waiting: number; planned: number }

/**
 * What an action has left to be planned, where nothing is enqueued any more that would plan it; and what waits for a
 * look at the folder.
 */
async function stillOpen(
  { files: { store }, ledger }: { files: FileSync; ledger: Ledger },
  sources: readonly Source[],
): Promise<StillOpen[]> {
  const left: StillOpen[] = []
  for (const { name, stream } of sources) {
    if (await pauseOfStream(ledger, stream)) continue
    const row = await store.folderPair(name)
    const { unplanned, waiting, inWork } = await store.openCounts(name)
    const isKnown = row.scannedAt !== null && row.heardAt !== null && !row.isEnumerating
    const isOpen = unplanned > 0 || (waiting > 0 && inWork === 0)
    if (isOpen && isKnown) left.push({ name, unplanned, waiting, planned: row.planned })
  }
  return left
}

/**
 * Where OneDrive is full, uploads that wait for room, and what depends on them, are put right by people: everything
 * else is done.
 */
export function folderObstacle({ kinds }: Pick<FileSync, 'kinds'>, name: string): SourceObstacle | undefined {
  const whole = kinds.obstacles.of(name)
  if (whole) return whole
  const uploads = kinds.obstacles.ofUploads(name)
  return (
    uploads && {
      ...uploads,
      part: {
        name: `The uploads of ${name}`,
        has: ({ wait, kind }) => wait === 'deps' || (wait === 'time' && kind === kinds.upload.kind),
      },
    }
  )
}

/** How a folder stands, with what of it is left alone and why. */
export type FolderEnd = FileStatus & {
  /** Why things are left alone that nobody wished to be, but for conflicts and deletions that wait. */
  troubles: LeftAlone[]
  /** How many are left out because somebody wished it. */
  leftOut: number
  /** Of what only was to take part: where nothing is. */
  unknownPaths: UnknownPath[]
}

export async function folderEnd(
  { files: { store }, ledger }: { files: Pick<FileSync, 'store'>; ledger: Ledger },
  name: string,
): Promise<FolderEnd> {
  const status = await fileStatus({ store, ledger }, name)
  const heldDeletes = (await store.heldAhead(name)) ?? null
  const reasons = await ledger.driver.read((tx) => leftAlone(tx, name, REASONS_MAX))
  const isWished = ({ code }: LeftAlone): boolean => WISHED_CODES.has(code)
  const isTrouble = (one: LeftAlone): boolean => !isWished(one) && !TOLD_ELSEWHERE_CODES.has(one.code)
  const row = await store.folderPair(name)
  const { sync_paths: paths } = folderPairSettings.parse(JSON.parse(row.settings)).filter
  const isKnown = row.scannedAt !== null && row.heardAt !== null
  return {
    ...status,
    heldDeletes,
    state: heldDeletes !== null && status.paused === null ? 'needs you' : status.state,
    troubles: reasons.filter(isTrouble),
    leftOut: reasons.filter(isWished).reduce((sum, { count }) => sum + count, 0),
    // A slip in --only leaves out everything, and would look like a folder in step.
    unknownPaths: isKnown ? await ledger.driver.read((tx) => unknownPaths(tx, row, paths)) : [],
  }
}

export function isBusy({ open, state }: FolderEnd): boolean {
  return open.unplanned + open.inWork + open.waiting > 0 || state === 'not begun'
}

export function needsYou({
  troubles,
  unknownPaths: paths,
  conflicts,
  heldDeletes,
  isFull,
}: FolderEnd): boolean {
  return troubles.length + paths.length > 0 || conflicts > 0 || heldDeletes !== null || isFull
}

/** For programs. */
export function endJson({ unknownPaths: paths, ...end }: FolderEnd): object {
  return { ...end, unknownPaths: paths.map(({ path }) => path) }
}

export type Done = { downloaded: number; uploaded: number; changed: number }

const DONE_OF: Record<string, keyof Done> = {
  'files.download': 'downloaded',
  'files.upload': 'uploaded',
  'files.change': 'changed',
}

function doneTexts(done: Done | undefined): string[] {
  const { downloaded, uploaded, changed } = done ?? { downloaded: 0, uploaded: 0, changed: 0 }
  const parts = [
    ...(downloaded > 0 ? [`${formatCount(downloaded)} downloaded`] : []),
    ...(uploaded > 0 ? [`${formatCount(uploaded)} uploaded`] : []),
    ...(changed > 0 ? [`${formatCount(changed)} other ${plural(changed, 'change')}`] : []),
  ]
  return parts.length > 0 ? [parts.join(', ')] : []
}

/** "downloading 3 files (2.1 GB), uploading 5 (340 MB), 12 waiting", how fast, until when. */
function folderProgress(
  place: AppPlace,
  files: FileSync,
  { sources, done }: { sources: readonly Source[]; done: Map<string, Done> },
): SourceProgress {
  const byStream = new Map(sources.map(({ stream, name }) => [stream, name]))
  for (const { name } of sources) done.set(name, { downloaded: 0, uploaded: 0, changed: 0 })
  const rates = new Rates(RATE_MS)
  const unlisten = place.engine()?.events.on((event) => {
    if (event.type !== 'job' || event.what !== 'done') return
    const counts = done.get(byStream.get(event.stream ?? '') ?? '')
    const what = DONE_OF[event.kind]
    if (counts && what) counts[what] += 1
  })
  return {
    async line(source, wait): Promise<ProgressLine> {
      const { name } = source
      const { downloaded, uploaded, changed } = done.get(name)!
      const moved = files.transfers.movedBytes(name)
      const [bytes = 0, things = 0] = rates.perSecond(name, moved, downloaded + uploaded + changed)
      const facts = await folderFacts(place, files, { source, wait, rates: { bytes, files: things } })
      return { ...progressText(name, facts), json: { type: 'progress', folder: name, ...facts } }
    },
    end: () => unlisten?.(),
  }
}

type PerSecond = { bytes: number; files: number }

async function folderFacts(
  place: AppPlace,
  files: FileSync,
  { source: { name, stream }, wait, rates }: { source: Source; wait: Wait | undefined; rates: PerSecond },
): Promise<Facts> {
  const { ledger } = place
  const { unplanned: planless, inWork, waiting } = await files.store.openCounts(name)
  const { download, upload } = files.transfers.numbers(name)
  const pause = await pauseOfStream(ledger, stream)
  const inAll = planless + inWork + waiting
  const filesLeft = inAll - (await files.store.waitingForWhole(name))
  const pending = await ledger.jobs({ stream, state: 'pending', limit: PENDING_PAGE })
  const running = [download, upload].reduce((sum, way) => sum + way.totalBytes - way.doneBytes, 0)
  const planned = pending.reduce((sum, { size }) => sum + (size ?? 0), 0)
  const unbegun = Math.max(0, filesLeft - download.count - upload.count)
  // What is not among them is taken to be as large as what is.
  const share = pending.length > 0 ? Math.max(1, unbegun / pending.length) : 1
  return {
    looking: lookingText(place, stream),
    downloading: download,
    uploading: upload,
    waiting: Math.max(0, inAll - download.count - upload.count),
    bytesPerSecond: Math.round(rates.bytes),
    etaMs: syncEta({ bytes: running + planned * share, files: filesLeft }, rates),
    obstacle: wait?.reason ?? null,
    uploadsWait: files.kinds.obstacles.ofUploads(name)?.error.message ?? null,
    paused: pause ? pause.reason : null,
  }
}

/** `1,204 changes heard, 5,000 files looked at`; null where neither side is being looked at. */
function lookingText({ engine }: AppPlace, stream: string): string | null {
  const parts: string[] = []
  for (const { kind, stream: of, done } of engine()?.progress.running() ?? []) {
    if (of !== stream) continue
    const n = done ?? 0
    if (kind === 'files.delta') parts.push(`${counted(n, 'change')} heard`)
    if (kind === 'files.look') parts.push(`${counted(n, 'file')} looked at`)
  }
  return parts.length > 0 ? parts.join(', ') : null
}

/**
 * By bytes and by files, whichever takes longer: a thousand small files are few bytes, and each takes its time. Null
 * where nobody can tell, because something is left of which none was done lately.
 */
export function syncEta(
  left: { bytes: number; files: number },
  perSecond: { bytes: number; files: number },
): number | null {
  if ((left.bytes > 0 && perSecond.bytes <= 0) || (left.files > 0 && perSecond.files <= 0)) return null
  const seconds = (amount: number, rate: number): number => (amount > 0 ? amount / rate : 0)
  const longer = Math.max(seconds(left.bytes, perSecond.bytes), seconds(left.files, perSecond.files))
  return longer > 0 ? Math.round(longer * 1000) : null
}

type Way = { count: number; doneBytes: number; totalBytes: number }

export type Facts = {
  looking: string | null
  downloading: Way
  uploading: Way
  waiting: number
  bytesPerSecond: number
  etaMs: number | null
  obstacle: string | null
  /** Why uploads alone do not go on. */
  uploadsWait: string | null
  paused: string | null
}

export function progressText(name: string, facts: Facts): { text: string; isNews: boolean } {
  const { downloading, uploading, waiting, bytesPerSecond, etaMs } = facts
  if (facts.paused !== null) return { text: `${name}: paused: ${facts.paused}`, isNews: true }
  if (facts.obstacle !== null) {
    return { text: `${name}: waiting: ${facts.obstacle.replace(/\.$/, '')}`, isNews: true }
  }
  const parts: string[] = []
  if (downloading.count > 0) parts.push(`downloading ${wayText(downloading, 'file')}`)
  if (uploading.count > 0) parts.push(`uploading ${wayText(uploading, parts.length > 0 ? '' : 'file')}`)
  if (facts.looking !== null) parts.push(`looking: ${facts.looking}`)
  if (waiting > 0) parts.push(`${formatCount(waiting)} waiting`)
  if (facts.uploadsWait !== null) parts.push(`no uploads: ${facts.uploadsWait}`)
  if (parts.length === 0) return { text: `${name}: nothing to do`, isNews: false }
  if (bytesPerSecond > 0) parts.push(`${formatBytes(bytesPerSecond)}/s`)
  // Whole seconds: more than that nobody can tell.
  if (etaMs !== null && etaMs > 0) parts.push(`ETA ${formatDuration(Math.ceil(etaMs / 1_000) * 1_000)}`)
  return { text: `${name}: ${parts.join(', ')}`, isNews: true }
}

function wayText({ count, totalBytes }: Way, noun: string): string {
  const things = noun === '' ? formatCount(count) : `${formatCount(count)} ${plural(count, noun)}`
  return `${things} (${formatBytes(totalBytes)})`
}
