/** What a sync shows on its way: how much, how fast, of what budget, until when. */

import type { CliContext } from '../../../app/command.ts'
import { systemClock } from '../../../base/clock.ts'
import { formatCount, formatDuration } from '../../../base/format.ts'
import { escapeControl } from '../../../cli/output/escape.ts'
import { LedgerWatch } from '../../../cli/output/ledger-watch.ts'
import { unitsOf } from '../account.ts'
import { balanceText, type MailStatus, mailStatus } from '../status.ts'
import type { MailEngine } from './context.ts'

/** Rates are over this time, so that a batch that ends does not look like a burst. */
const RATE_MS = 60_000
/** Answers come within seconds; after this, somebody may wonder. */
const SILENCE_MS = 5_000
/** Where lines add up, one that only counts on is not repeated before. */
const REPEATED_MS = 60_000

type Wait = { reason: string; forMs: number }
type Sample = { atMs: number; done: number }
/** `key`: what of it must differ for it to be news. */
type Line = { account: string; text: string; key: string }
/** What else is under way, in lines below the accounts. */
export type Below = () => Promise<readonly { text: string; json: object }[]>

export class SyncProgress {
  readonly #context: CliContext
  readonly #opened: MailEngine
  readonly #names: readonly string[]
  readonly #below: Below | undefined
  readonly ledger: LedgerWatch
  readonly #samples = new Map<string, Sample[]>()
  readonly #last = new Map<string, { key: string; atMs: number }>()
  #drawn = 0

  constructor(context: CliContext, opened: MailEngine, names: readonly string[], below?: Below) {
    this.#context = context
    this.#opened = opened
    this.#names = names
    this.#below = below
    this.ledger = new LedgerWatch(opened.engine)
  }

  async show(): Promise<void> {
    const { ledger, tables } = this.#opened
    const lines: Line[] = []
    for (const status of await mailStatus(ledger, tables, this.#names)) {
      const rate = this.#rate(status)
      const wait = await this.#wait(status.account)
      if (this.#context.output.json) {
        this.#context.output.value({
          type: 'progress',
          ...status,
          messagesPerSecond: rate,
          ...this.#budget(status.account),
          waiting: wait ?? null,
        })
        continue
      }
      lines.push(wait ? waitingLine(status, wait) : this.#line(status, rate))
    }
    for (const { text, json } of (await this.#below?.()) ?? []) {
      if (this.#context.output.json) this.#context.output.value(json)
      else lines.push({ account: '', text, key: text })
    }
    this.#draw(lines)
  }

  end(): void {
    if (this.#drawn > 0) this.#context.output.rawError('\n')
    this.#drawn = 0
  }

  #rate(status: MailStatus): number {
    const nowMs = systemClock.monotonicMs()
    const done = status.stored + status.gone + status.skipped + status.bad
    const samples = this.#samples.get(status.account) ?? []
    samples.push({ atMs: nowMs, done })
    while (samples.length > 2 && nowMs - samples[0]!.atMs > RATE_MS) samples.shift()
    this.#samples.set(status.account, samples)
    const first = samples[0]!
    return nowMs > first.atMs ? ((done - first.done) * 1000) / (nowMs - first.atMs) : 0
  }

  #budget(account: string): { unitsPerSecond: number; throttled: number; pausedMs: number } {
    const budget = this.#opened.engine.limits.snapshot().budgets.find(({ name }) => name === unitsOf(account))
    const pausedMs =
      budget && budget.pausedUntilMs > 0 ? Math.max(0, budget.pausedUntilMs - systemClock.now()) : 0
    return { unitsPerSecond: budget?.rate ?? 0, throttled: budget?.throttles ?? 0, pausedMs }
  }

  /** Why nothing moves, and for how long it has not. */
  async #wait(account: string): Promise<Wait | undefined> {
    const { kinds, mail } = this.#opened
    const { trouble } = this.ledger
    if (trouble) return { reason: trouble.detail, forMs: trouble.forMs }
    const obstacle = kinds.obstacles.of(account)
    if (obstacle) {
      const forMs = systemClock.monotonicMs() - obstacle.sinceMs
      return { reason: obstacle.error.message, forMs }
    }
    const silence = (await mail.get(account)).calls?.silence
    if (!silence || silence.forMs < SILENCE_MS) return undefined
    return { reason: silence.error?.message ?? 'Gmail does not answer', forMs: silence.forMs }
  }

  #line(status: MailStatus, rate: number): Line {
    const { unitsPerSecond, pausedMs } = this.#budget(status.account)
    const { settings } = this.#opened
    const used = rate * settings.priceOfGet
    const allowed = settings.unitsPerMinute / 60
    const mark = status.watermarkMs === null ? '–' : new Date(status.watermarkMs).toISOString().slice(0, 10)
    const parts = [
      `${status.account}: ${balanceText(status, formatCount)}`,
      `${rate < 10 ? rate.toFixed(1) : formatCount(Math.round(rate))}/s`,
      `${formatCount(Math.round(used))} of ${formatCount(Math.round(Math.min(unitsPerSecond || allowed, allowed)))} units/s`,
      `slices ${formatCount(status.settledSlices)} of ${formatCount(status.slices)}`,
      `watermark ${mark}`,
      `ETA ${etaText(status, rate)}`,
    ]
    if (pausedMs > 0) parts.push(`throttled for ${formatDuration(pausedMs)}`)
    const text = parts.join(', ')
    return { account: status.account, text, key: text }
  }

  #draw(lines: readonly Line[]): void {
    const { output } = this.#context
    if (!output.isTerminal) {
      const nowMs = systemClock.monotonicMs()
      for (const { account, text, key } of lines) {
        const last = this.#last.get(account)
        if (last?.key === key && (key === text || nowMs - last.atMs < REPEATED_MS)) continue
        output.note(text)
        this.#last.set(account, { key, atMs: nowMs })
      }
      return
    }
    // Drawn over the last, one line per account, cut to the width.
    const up = this.#drawn > 1 ? `\u001b[${this.#drawn - 1}A` : ''
    const width = Math.max(20, output.width - 1)
    output.rawError(
      `\r${up}${lines.map(({ text }) => `\u001b[2K${escapeControl(text).slice(0, width)}`).join('\n')}`,
    )
    this.#drawn = lines.length
  }
}

/** Of what is listed and of what Gmail says there is besides; "≥" where nobody knows how much is not listed yet. */
export function etaText(
  status: Pick<MailStatus, 'listed' | 'onTheirWay' | 'whole' | 'phase' | 'slices' | 'settledSlices'>,
  rate: number,
): string {
  const { listed, onTheirWay, whole, phase } = status
  const unlisted = phase === 'backfill' ? Math.max(0, (whole ?? 0) - listed) : 0
  const left = onTheirWay + unlisted
  if (left <= 0 || rate <= 0) return '–'
  const isUnsure = whole === null && status.settledSlices < status.slices
  return `${isUnsure ? '≥ ' : ''}${formatDuration((left * 1000) / rate)}`
}

/** The reason first: terminals are narrow. */
function waitingLine(status: MailStatus, { reason, forMs }: Wait): Line {
  const { account } = status
  const balance = balanceText(status, formatCount)
  const text = `${account}: waiting for ${formatDuration(forMs)}: ${reason.replace(/\.$/, '')}; ${balance}`
  return { account, text, key: `${account}: ${reason}; ${balance}` }
}
