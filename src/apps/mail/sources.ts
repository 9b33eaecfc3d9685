/** Mailboxes as sources: how one is brought up to date, how far it is, and what a sync shows on its way. */

import { Rates, rateText, waitingLine } from '../../app/cli/progress.ts'
import type { AppPlace } from '../../app/runtime.ts'
import type { ProgressLine, Source, SourceStatus, Sources, Wait } from '../../app/sources.ts'
import { formatCount, formatDuration, formatShare } from '../../base/format.ts'
import { minuteText } from '../../base/moment.ts'
import { unitsOf } from '../../cloud/gmail/budgets.ts'
import { SERVICE, streamOf } from './account.ts'
import type { OpenMail } from './runtime.ts'
import { balanceText, type MailStatus, mailStatus } from './status.ts'

/** Rates are over this time, so that a batch that ends does not look like a burst. */
const RATE_MS = 60_000
/** Answers come within seconds; after this, somebody may wonder. */
const SILENCE_MS = 5_000

type Mail = Pick<OpenMail, 'accounts' | 'tables' | 'kinds' | 'settings'>

export function mailSource(name: string): Source {
  return { name, stream: streamOf(name), account: { service: SERVICE, name } }
}

export function mailSources(place: AppPlace, mail: Mail): Sources {
  const { kinds, accounts, tables } = mail
  const { ledger, config } = place
  const { plan, list, fetch, history, reconcile } = kinds
  const enqueue = async (kind: typeof plan, { name, stream }: Source): Promise<void> => {
    await place.engine()!.enqueue(kind, { account: name }, { stream })
  }
  return {
    list: async () => accounts.connected().map(mailSource),
    begin: (source) => enqueue(plan, source),
    follow: (source) => enqueue(history, source),
    kinds: new Set([plan, list, fetch, history, reconcile].map(({ kind }) => kind)),
    obstacle: ({ name }) => kinds.obstacles.of(name),
    patienceMs: () => config.mail.patience_minutes * 60_000,
    pollMs: () => config.mail.poll_minutes * 60_000,
    heardAtMs: async ({ name }) => (await tables.findMailbox(name))?.checked_at ?? null,
    async status({ name }) {
      const [status] = await mailStatus(ledger, tables, [name])
      return sourceStatus(status!)
    },
    progress(sources) {
      const rates = new Rates(RATE_MS)
      const isAlone = sources.length === 1
      return {
        async line(source, wait) {
          const [status] = await mailStatus(ledger, tables, [source.name])
          const why = wait ?? (await silenceOf(mail, source))
          return progressLine(place, mail, { source, status: status!, wait: why, rates, isAlone })
        },
      }
    },
  }
}

function sourceStatus(status: MailStatus): SourceStatus {
  const { watermarkMs, watermarkAsOfMs, phase, onTheirWay, settledSlices, slices } = status
  const asOf = watermarkAsOfMs === null ? '' : ` as of ${minuteText(watermarkAsOfMs)}`
  const upTo =
    watermarkMs === null ? 'complete up to: nothing yet' : `complete up to ${minuteText(watermarkMs)}${asOf}`
  return {
    text: `${balanceText(status, formatCount)}; ${upTo}`,
    isOpen: phase === 'new' || onTheirWay > 0 || settledSlices < slices,
    isWrong: status.unbalanced > 0,
    bad: status.bad,
    json: status,
  }
}

async function silenceOf({ accounts }: Mail, { name }: Source): Promise<Wait | undefined> {
  const silence = (await accounts.get(name)).calls?.silence
  if (!silence || silence.forMs < SILENCE_MS) return undefined
  return { reason: silence.error?.message ?? 'Gmail does not answer', forMs: silence.forMs }
}

type Shown = {
  source: Source
  status: MailStatus
  wait: Wait | undefined
  rates: Rates
  /** No other mailbox is shown: whose it is matters least. */
  isAlone: boolean
}

function progressLine(place: AppPlace, { settings }: Mail, shown: Shown): ProgressLine {
  const { source, status, wait } = shown
  const done = status.stored + status.gone + status.skipped + status.bad
  const [rate = 0] = shown.rates.perSecond(source.name, done)
  const budgets = place.engine()?.limits.snapshot().budgets ?? []
  const budget = budgets.find(({ name }) => name === unitsOf(source.name))
  const untilMs = budget?.pausedUntilMs ?? 0
  const pausedMs = untilMs > 0 ? Math.max(0, untilMs - place.clock.now()) : 0
  const unitsPerSecond = budget?.rate ?? 0
  const json = {
    type: 'progress',
    ...status,
    messagesPerSecond: rate,
    unitsPerSecond,
    throttled: budget?.throttles ?? 0,
    pausedMs,
    waiting: wait ?? null,
  }
  const balance = balanceText(status, formatCount)
  if (wait) return waitingLine(source, { wait, text: balance, json })
  const allowed = settings.unitsPerMinute / 60
  const used = formatCount(Math.round(rate * settings.priceOfGet))
  const how = [
    rateText(rate),
    `${used} of ${formatCount(Math.round(Math.min(unitsPerSecond || allowed, allowed)))} units/s`,
    `slices ${formatCount(status.settledSlices)} of ${formatCount(status.slices)}`,
    ...(pausedMs > 0 ? [`throttled for ${formatDuration(pausedMs)}`] : []),
  ]
  const [percent, eta, upTo] = progressHead(status, rate)
  return {
    text: [`${source.name}: ${percent}`, eta, upTo, balance, ...how].join(', '),
    parts: shown.isAlone
      ? [percent, eta, upTo, source.name, balance, ...how]
      : [`${percent} ${source.name}`, eta, upTo, balance, ...how],
    json,
  }
}

/** What somebody wants to know first: how much, how long, and up to where. */
export function progressHead(
  status: HowMuch & Pick<MailStatus, 'watermarkMs'>,
  rate: number,
): [percent: string, eta: string, upTo: string] {
  const { watermarkMs } = status
  const day = watermarkMs === null ? '–' : new Date(watermarkMs).toISOString().slice(0, 10)
  return [percentText(status), `ETA ${etaText(status, rate)}`, `complete up to ${day}`]
}

type HowMuch = Pick<MailStatus, 'listed' | 'onTheirWay' | 'whole' | 'phase' | 'slices' | 'settledSlices'>

/** Of what Gmail says there is; never 100 % before the end. */
function percentText({ listed, onTheirWay, whole, phase, slices, settledSlices }: HowMuch): string {
  const isListed = phase === 'following' || (slices > 0 && settledSlices === slices)
  const all = isListed ? listed : whole === null ? 0 : Math.max(whole, listed)
  if (all === 0) return isListed ? '100 %' : '– %'
  const share = (listed - onTheirWay) / all
  return share < 1 ? formatShare(Math.min(share, 0.99)) : '100 %'
}

/** Of what is listed and of what Gmail says there is besides; "≥" where nobody knows how much is not listed yet. */
export function etaText(status: HowMuch, rate: number): string {
  const { listed, onTheirWay, whole, phase } = status
  const unlisted = phase === 'backfill' ? Math.max(0, (whole ?? 0) - listed) : 0
  const left = onTheirWay + unlisted
  if (left <= 0 || rate <= 0) return '–'
  const isUnsure = whole === null && status.settledSlices < status.slices
  return `${isUnsure ? '≥ ' : ''}${formatDuration((left * 1000) / rate)}`
}
