/** What a sync shows on its way: "downloading 3 files (2.1 GB), uploading 5 (340 MB), 12 waiting", how fast, until when. */

import type { CliContext } from '../../../app/command.ts'
import { systemClock } from '../../../base/clock.ts'
import { formatBytes, formatCount, formatDuration } from '../../../base/format.ts'
import { plural } from '../../../base/wording.ts'
import { escapeControl } from '../../../cli/output/escape.ts'
import { LedgerWatch } from '../../../cli/output/ledger-watch.ts'
import { streamOf } from '../folder-pair.ts'
import type { OpenedFiles } from './context.ts'

/** Rates are over this time, so that a file that ends does not look like a burst. */
const RATE_MS = 10_000
/** More than so many jobs are not added up; the others count as large as these. */
const PENDING_PAGE = 1_000
/** Where lines add up, one that says nothing new is not repeated before. */
const REPEATED_MS = 60_000
/** One that only counts on, either. */
const LINE_MS = 5_000

export type Done = { downloaded: number; uploaded: number; changed: number }

type Sample = { atMs: number; bytes: number; files: number }
type Line = { name: string; text: string; isNews: boolean }

const DONE_OF: Record<string, keyof Done> = {
  'files.download': 'downloaded',
  'files.upload': 'uploaded',
  'files.change': 'changed',
}

export class FilesProgress {
  readonly #context: CliContext
  readonly #opened: OpenedFiles
  readonly #names: readonly string[]
  readonly ledger: LedgerWatch
  /** What was done by this process, by folder. */
  readonly done = new Map<string, Done>()
  readonly #samples = new Map<string, Sample[]>()
  readonly #last = new Map<string, { text: string; isNews: boolean; atMs: number }>()
  readonly #unlisten: () => void
  #drawn = 0

  constructor(context: CliContext, opened: OpenedFiles, names: readonly string[]) {
    this.#context = context
    this.#opened = opened
    this.#names = names
    this.ledger = new LedgerWatch(opened.engine)
    for (const name of names) this.done.set(name, { downloaded: 0, uploaded: 0, changed: 0 })
    const byStream = new Map(names.map((name) => [streamOf(name), name]))
    this.#unlisten = opened.engine.events.on((event) => {
      if (event.type !== 'job' || event.what !== 'done') return
      const done = this.done.get(byStream.get(event.stream ?? '') ?? '')
      const what = DONE_OF[event.kind]
      if (done && what) done[what] += 1
    })
  }

  async show(): Promise<void> {
    const lines: Line[] = []
    for (const name of this.#names) {
      const facts = await this.#facts(name)
      if (this.#context.output.json) this.#tell(name, facts)
      else lines.push({ name, ...lineOf(name, facts) })
    }
    this.#draw(lines)
  }

  /** What is printed meanwhile stands above what is drawn. */
  async aside(print: () => void | Promise<void>): Promise<void> {
    const up = this.#drawn > 1 ? `\u001b[${this.#drawn - 1}A` : ''
    if (this.#drawn > 0) this.#context.output.rawError(`\r${up}\u001b[J`)
    this.#drawn = 0
    await print()
  }

  end(): void {
    this.#unlisten()
    if (this.#drawn > 0) this.#context.output.rawError('\n')
    this.#drawn = 0
  }

  /** A program is not told every half second that nothing is to be done. */
  #tell(name: string, facts: Facts): void {
    if (!this.#isDue(name, lineOf(name, facts))) return
    this.#context.output.event({ type: 'progress', folder: name, ...facts })
  }

  #isDue(name: string, { text, isNews }: Omit<Line, 'name'>): boolean {
    const nowMs = systemClock.monotonicMs()
    const last = this.#last.get(name)
    const wasNews = last?.isNews ?? false
    const quietMs = last?.text === text || (!isNews && !wasNews) ? REPEATED_MS : LINE_MS
    if ((last && nowMs - last.atMs < quietMs) || (!last && !isNews)) return false
    this.#last.set(name, { text, isNews, atMs: nowMs })
    return true
  }

  async #facts(name: string): Promise<Facts> {
    const { files, ledger } = this.#opened
    const { unplanned, inWork, waiting } = await files.store.openCounts(name)
    const { download, upload } = files.transfers.numbers(name)
    const obstacle = files.kinds.obstacles.of(name)
    const pause = (await ledger.pauses()).find(
      ({ scope, target }) => scope === 'all' || (scope === 'stream' && target === streamOf(name)),
    )
    const rates = this.#rates(name)
    const inAll = unplanned + inWork + waiting
    return {
      ...{ looking: this.#looking(name), downloading: download, uploading: upload },
      waiting: Math.max(0, inAll - download.count - upload.count),
      bytesPerSecond: Math.round(rates.bytes),
      etaMs: await this.#eta(name, inAll - (await files.store.waitingForWhole(name)), rates),
      obstacle: this.ledger.trouble?.detail ?? obstacle?.error.message ?? null,
      uploadsWait: files.kinds.obstacles.ofUploads(name)?.error.message ?? null,
      paused: pause ? pause.reason : null,
    }
  }

  /** `1,204 changes heard, 5,000 files looked at`; null where neither side is being looked at. */
  #looking(name: string): string | null {
    const { engine } = this.#opened
    const stream = streamOf(name)
    const parts: string[] = []
    for (const { kind, stream: of, done } of engine.progress.running()) {
      if (of !== stream) continue
      const n = done ?? 0
      if (kind === 'files.delta') parts.push(`${formatCount(n)} ${plural(n, 'change')} heard`)
      if (kind === 'files.look') parts.push(`${formatCount(n)} ${plural(n, 'file')} looked at`)
    }
    return parts.length > 0 ? parts.join(', ') : null
  }

  /** A second. */
  #rates(name: string): { bytes: number; files: number } {
    const nowMs = systemClock.monotonicMs()
    const bytes = this.#opened.files.transfers.movedBytes(name)
    const { downloaded, uploaded, changed } = this.done.get(name)!
    const files = downloaded + uploaded + changed
    const samples = this.#samples.get(name) ?? []
    samples.push({ atMs: nowMs, bytes, files })
    while (samples.length > 2 && nowMs - samples[0]!.atMs > RATE_MS) samples.shift()
    this.#samples.set(name, samples)
    const first = samples[0]!
    const perSecond = nowMs > first.atMs ? 1000 / (nowMs - first.atMs) : 0
    return { bytes: (bytes - first.bytes) * perSecond, files: (files - first.files) * perSecond }
  }

  async #eta(
    name: string,
    filesLeft: number,
    rates: { bytes: number; files: number },
  ): Promise<number | null> {
    const { ledger, files } = this.#opened
    const stream = streamOf(name)
    const pending = await ledger.jobs({ stream, state: 'pending', limit: PENDING_PAGE })
    const { download, upload } = files.transfers.numbers(name)
    const running = [download, upload].reduce(
      (sum, { totalBytes, doneBytes }) => sum + totalBytes - doneBytes,
      0,
    )
    const planned = pending.reduce((sum, { size }) => sum + (size ?? 0), 0)
    const waiting = Math.max(0, filesLeft - download.count - upload.count)
    // What is not among them is taken to be as large as what is.
    const share = pending.length > 0 ? Math.max(1, waiting / pending.length) : 1
    return etaOf({ bytes: running + planned * share, files: filesLeft }, rates)
  }

  #draw(lines: readonly Line[]): void {
    const { output } = this.#context
    if (output.json) return
    if (!output.isTerminal) {
      for (const line of lines) if (this.#isDue(line.name, line)) output.note(line.text)
      return
    }
    // Drawn over the last, one line per folder, cut to the width.
    const up = this.#drawn > 1 ? `\u001b[${this.#drawn - 1}A` : ''
    const width = Math.max(20, output.width - 1)
    output.rawError(
      `\r${up}${lines.map(({ text }) => `\u001b[2K${escapeControl(text).slice(0, width)}`).join('\n')}`,
    )
    this.#drawn = lines.length
  }
}

/**
 * By bytes and by files, whichever takes longer: a thousand small files are few bytes, and each takes its time. Null
 * where nobody can tell, because something is left of which none was done lately.
 */
export function etaOf(
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

export function lineOf(name: string, facts: Facts): { text: string; isNews: boolean } {
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
