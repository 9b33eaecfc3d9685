/**
 * What a command shows while sources are brought up to date: a line for each. On a terminal it is drawn over the last;
 * elsewhere lines add up, and one that says nothing new is not repeated soon. Programs get every look.
 */
import { systemClock } from '../../base/clock.ts'
import { formatCount, formatDuration } from '../../base/format.ts'
import { escapeControl } from '../../cli/output/escape.ts'
import { textWidth, truncate } from '../../cli/output/text-width.ts'
import type { Engine } from '../../engine/engine.ts'
import type { CliContext } from '../command.ts'
import { countedStatus, type ProgressLine, type Source, type SourceProgress, type Wait } from '../sources.ts'
import type { OpenedSources } from './with-app.ts'

/** Where lines add up, one that says nothing new is not repeated before. */
const REPEATED_MS = 60_000
/** One that only counts on, either. */
const LINE_MS = 4_000

/** What else is under way, in lines below those of the sources. */
export type Below = () => Promise<readonly { text: string; json: object }[]>

export class SyncProgress {
  readonly #output: CliContext['output']
  readonly #opened: OpenedSources
  readonly #sources: readonly Source[]
  readonly #below: Below | undefined
  readonly #own: SourceProgress
  readonly ledger: LedgerWatch
  readonly #last = new Map<string, { key: string; isNews: boolean; atMs: number }>()
  #drawn = 0

  constructor({ output }: CliContext, opened: OpenedSources, sources: readonly Source[], below?: Below) {
    this.#output = output
    this.#opened = opened
    this.#sources = sources
    this.#below = below
    this.#own = opened.sources.progress?.(sources) ?? countedProgress(opened)
    this.ledger = new LedgerWatch(opened.runtime.engine)
  }

  async show(): Promise<void> {
    const lines: (ProgressLine & { of: string })[] = []
    for (const source of this.#sources) {
      lines.push({ of: source.name, ...(await this.#own.line(source, this.#wait(source))) })
    }
    for (const line of (await this.#below?.()) ?? []) lines.push({ of: '', ...line })
    if (this.#output.isTerminal && !this.#output.json) return this.#draw(lines)
    for (const line of lines) {
      if (this.#output.json) this.#output.event(line.json)
      else if (this.#isDue(line)) this.#output.note(line.text)
    }
  }

  /** What is printed meanwhile stands above what is drawn. */
  async aside(print: () => void | Promise<void>): Promise<void> {
    const up = this.#drawn > 1 ? `\u001b[${this.#drawn - 1}A` : ''
    if (this.#drawn > 0) this.#output.rawError(`\r${up}\u001b[J`)
    this.#drawn = 0
    await print()
  }

  end(): void {
    this.#own.end?.()
    if (this.#drawn > 0) this.#output.rawError('\n')
    this.#drawn = 0
  }

  /** Why nothing moves, and for how long it has not. */
  #wait(source: Source): Wait | undefined {
    const { trouble } = this.ledger
    if (trouble) return { reason: trouble.detail, forMs: trouble.forMs }
    const obstacle = this.#opened.sources.obstacle?.(source)
    if (!obstacle || obstacle.part) return undefined
    return { reason: obstacle.error.message, forMs: systemClock.monotonicMs() - obstacle.sinceMs }
  }

  #isDue({ of, text, key = text, isNews = true }: ProgressLine & { of: string }): boolean {
    const nowMs = systemClock.monotonicMs()
    const last = this.#last.get(of)
    if (!last && !isNews) return false
    const isRepeated = last && (last.key === key || !(isNews || last.isNews))
    if (last && nowMs - last.atMs < (isRepeated ? REPEATED_MS : LINE_MS)) return false
    this.#last.set(of, { key, isNews, atMs: nowMs })
    return true
  }

  /** One line for each source, whatever the width: one that wraps would be drawn anew below itself each time. */
  #draw(lines: readonly ProgressLine[]): void {
    const up = this.#drawn > 1 ? `\u001b[${this.#drawn - 1}A` : ''
    const drawn = lines.map((line) => `\u001b[2K${fittedLine(line, this.#output.width - 1)}`)
    this.#output.rawError(`\r${up}${drawn.join('\n')}`)
    this.#drawn = lines.length
  }
}

/** As many parts as fit into so many columns; the first one, or a line without parts, is cut. */
export function fittedLine({ text, parts = [text] }: ProgressLine, width: number): string {
  const [first = '', ...rest] = parts.map(escapeControl)
  let line = truncate(first, Math.max(0, width))
  for (const part of rest) {
    if (textWidth(line) + 2 + textWidth(part) > width) break
    line += `, ${part}`
  }
  return line
}

function countedProgress({ runtime }: OpenedSources): SourceProgress {
  return {
    async line(source, wait) {
      const { text, json } = await countedStatus(runtime.ledger, source)
      const told = { type: 'progress', ...json, waiting: wait ?? null }
      return wait
        ? waitingLine(source, { wait, text, json: told })
        : { text: `${source.name}: ${text}`, json: told }
    },
  }
}

/** The reason first: terminals are narrow. That it has waited longer is no news. */
export function waitingLine(
  { name }: Source,
  { wait, text, json }: { wait: Wait; text: string; json: object },
): ProgressLine {
  const reason = wait.reason.replace(/\.$/, '')
  return {
    text: `${name}: waiting for ${formatDuration(wait.forMs)}: ${reason}; ${text}`,
    key: `${name}: ${reason}; ${text}`,
    json,
  }
}

type Sample = { atMs: number; counts: readonly number[] }

/** How fast counters have moved lately: over a while, so that a batch that ends does not look like a burst. */
export class Rates {
  readonly #overMs: number
  readonly #samples = new Map<string, Sample[]>()

  constructor(overMs: number) {
    this.#overMs = overMs
  }

  /** Per second, in the order of the counters. */
  perSecond(of: string, ...counts: number[]): number[] {
    const nowMs = systemClock.monotonicMs()
    const samples = this.#samples.get(of) ?? []
    samples.push({ atMs: nowMs, counts })
    while (samples.length > 2 && nowMs - samples[0]!.atMs > this.#overMs) samples.shift()
    this.#samples.set(of, samples)
    const first = samples[0]!
    const passedMs = nowMs - first.atMs
    return counts.map((count, at) => (passedMs > 0 ? ((count - first.counts[at]!) * 1_000) / passedMs : 0))
  }
}

/** `9.5/s`, `120/s` */
export function rateText(perSecond: number): string {
  return `${perSecond < 10 ? perSecond.toFixed(1) : formatCount(Math.round(perSecond))}/s`
}

/** Troubles are told again and again while they last; after this much silence they are over. */
const OVER_MS = 30_000

/** Whether the ledger takes what the engine writes: a full disk under it stops everything, and nothing else would say so. */
class LedgerWatch {
  #since: { detail: string; startedMs: number; lastMs: number } | undefined

  constructor({ events }: Pick<Engine, 'events'>) {
    events.on(
      (event) => {
        if (event.type !== 'ledger') return
        const nowMs = systemClock.monotonicMs()
        const startedMs = this.trouble && this.#since ? this.#since.startedMs : nowMs
        this.#since = event.what === 'up' ? undefined : { detail: event.detail, startedMs, lastMs: nowMs }
      },
      { jobs: false },
    )
  }

  get trouble(): { detail: string; forMs: number } | undefined {
    const nowMs = systemClock.monotonicMs()
    if (!this.#since || nowMs - this.#since.lastMs > OVER_MS) return undefined
    return { detail: this.#since.detail, forMs: nowMs - this.#since.startedMs }
  }
}
