/**
 * What is worth waking someone for: from measurements to conditions, each with a sentence that says what
 * happened, to what, and what to do. Pure; `alerts.ts` remembers, limits and sends.
 *
 * A measurement that is left out says nothing: its conditions are neither raised nor cleared.
 */
import { formatBytes, formatCount, formatDuration, formatShare } from '../../base/format.ts'
import { plural } from '../../base/wording.ts'
import type { NewAlert, Severity } from '../../ledger/alerts.ts'
import type { Unbalanced } from '../../ledger/queries.ts'

export const CONDITIONS = [
  'bad-items',
  'metadata-full',
  'throttled',
  'stale-heartbeat',
  'stale',
  'unbalanced',
  'sign-in',
  'ledger-down',
  'disk-full',
] as const
export type ConditionName = (typeof CONDITIONS)[number]

export type AlertThresholds = {
  badWarnShare: number
  badCriticalShare: number
  /** Shares of fewer items than this mean nothing: 1 of 3 is not 33 %. */
  badSampleMin: number
  /** More than this many in an hour are critical whatever the share. */
  badPerHourCritical: number
  metadataWarnShare: number
  metadataCriticalShare: number
  throttledMs: number
  heartbeatMs: number
  /** A source may be silent for so many of its own rounds, and for this long at least. */
  staleRounds: number
  staleMs: number
  staleCriticalMs: number
  ledgerDownMs: number
  diskFreeWarnBytes: number
  diskFreeCriticalBytes: number
}

export const ALERT_THRESHOLDS: AlertThresholds = {
  badWarnShare: 0.002,
  badCriticalShare: 0.01,
  badSampleMin: 500,
  badPerHourCritical: 200,
  metadataWarnShare: 0.5,
  metadataCriticalShare: 0.8,
  throttledMs: 10 * 60_000,
  heartbeatMs: 10 * 60_000,
  staleRounds: 5,
  staleMs: 30 * 60_000,
  staleCriticalMs: 24 * 3_600_000,
  ledgerDownMs: 60_000,
  diskFreeWarnBytes: 1_000_000_000,
  diskFreeCriticalBytes: 100_000_000,
}

export type AlertInputs = {
  now: number
  /** One entry per stream, or one with an empty target for everything. */
  bad?: readonly { target: string; recentItems: number; recentBad: number; badLastHour: number }[]
  /** Room for metadata, in whatever unit it is counted. */
  metadata?: readonly { target: string; used: number; max: number }[]
  /** How long each budget has been throttled without a break; 0 if it is not. */
  budgets?: readonly { name: string; throttledMs: number }[]
  workers?: readonly { id: number; name: string; host: string; heartbeatAt: number }[]
  /**
   * Sources that are followed here, and for how long each was silent: nothing `heard` of its service, or nothing `moved`
   * of what could. `everyMs`: how often it is asked.
   */
  stale?: readonly {
    stream: string
    name: string
    what: 'heard' | 'moved'
    everyMs: number
    quietMs: number
    heardAtMs: number | null
    /** What is in the way, where that is known. */
    why?: string
  }[]
  /** Sealed segments without open work whose counts do not agree. */
  unbalanced?: readonly Unbalanced[]
  /** Streams that are paused until someone signs in again. */
  signIns?: readonly { stream: string; reason: string }[]
  ledger?: { downSince: number | null; detail: string }
  disks?: readonly { path: string; freeBytes: number }[]
}

export type AlertVerdict = {
  alerts: NewAlert[]
  /** The conditions that were looked at: those not among `alerts` do not hold. */
  covers: ReadonlySet<ConditionName>
}

type Limits = { now: number; limits: AlertThresholds }
type Found = { target: string; severity: Severity; text: string } | undefined

export function evaluateAlerts(inputs: AlertInputs, thresholds: Partial<AlertThresholds> = {}): AlertVerdict {
  const context: Limits = { now: inputs.now, limits: { ...ALERT_THRESHOLDS, ...thresholds } }
  const alerts: NewAlert[] = []
  const covers = new Set<ConditionName>()
  const look = <Input>(
    condition: ConditionName,
    measured: readonly Input[] | undefined,
    rule: (input: Input, context: Limits) => Found,
  ): void => {
    if (!measured) return
    covers.add(condition)
    for (const input of measured) {
      const found = rule(input, context)
      if (found) alerts.push({ condition, ...found })
    }
  }
  look('bad-items', inputs.bad, badItems)
  look('metadata-full', inputs.metadata, metadataFull)
  look('throttled', inputs.budgets, throttled)
  look('stale-heartbeat', inputs.workers, staleHeartbeat)
  look('stale', inputs.stale, stale)
  look('unbalanced', inputs.unbalanced, unbalanced)
  look('sign-in', inputs.signIns, signIn)
  look('ledger-down', inputs.ledger && [inputs.ledger], ledgerDown)
  look('disk-full', inputs.disks, diskFull)
  return { alerts, covers }
}

type Input<Name extends keyof AlertInputs> =
  NonNullable<AlertInputs[Name]> extends readonly (infer One)[] ? One : never

const MEND = 'Look at their reasons, mend the cause, then retry them; everything else goes on.'

function badItems(input: Input<'bad'>, { limits }: Limits): Found {
  const { target, recentItems, recentBad, badLastHour } = input
  const of = target === '' ? '' : ` of ${target}`
  if (badLastHour > limits.badPerHourCritical) {
    const text = `${formatCount(badLastHour)} items${of} were isolated as bad within an hour. ${MEND}`
    return { target, severity: 'critical', text }
  }
  const share = recentItems >= limits.badSampleMin ? recentBad / recentItems : 0
  if (recentBad === 0 || share < limits.badWarnShare) return undefined
  const text = `${formatShare(share)} of the last ${formatCount(recentItems)} items${of} are bad (${formatCount(recentBad)}). ${MEND}`
  return { target, severity: share >= limits.badCriticalShare ? 'critical' : 'warning', text }
}

function metadataFull({ target, used, max }: Input<'metadata'>, { limits }: Limits): Found {
  const share = max > 0 ? used / max : 0
  if (share < limits.metadataWarnShare) return undefined
  return {
    target,
    severity: share >= limits.metadataCriticalShare ? 'critical' : 'warning',
    text: `The metadata of ${target || 'this installation'} takes ${formatShare(share)} of its room. Prune what is no longer needed or give it more room before it is full.`,
  }
}

function throttled({ name, throttledMs }: Input<'budgets'>, { limits }: Limits): Found {
  if (throttledMs <= limits.throttledMs) return undefined
  return {
    target: name,
    severity: 'warning',
    text: `${name} has been throttling us for ${formatDuration(throttledMs)}. Work goes on as fast as it lets us; if nothing else uses that quota, ask for a higher one.`,
  }
}

function staleHeartbeat(worker: Input<'workers'>, { now, limits }: Limits): Found {
  const silentMs = now - worker.heartbeatAt
  if (silentMs <= limits.heartbeatMs) return undefined
  return {
    target: `worker #${worker.id}`,
    severity: 'warning',
    text: `The engine ${worker.name} on ${worker.host.split('/')[0]} has been silent for ${formatDuration(silentMs)}. If it should be running, start it again; its jobs are not lost.`,
  }
}

function stale(input: Input<'stale'>, { now, limits }: Limits): Found {
  const { stream, name, what, everyMs, quietMs, heardAtMs, why } = input
  if (quietMs <= Math.max(limits.staleMs, everyMs * limits.staleRounds)) return undefined
  const because = why ? ` What is in the way: ${why.replace(/\.$/, '')}.` : ''
  const asked = `It is asked every ${formatDuration(everyMs)}`
  const last =
    heardAtMs === null ? 'and has never answered' : `and last answered ${formatDuration(now - heardAtMs)} ago`
  const text =
    what === 'heard'
      ? `Nothing was heard of ${name} for ${formatDuration(quietMs)}. ${asked}, ${last}.${because} Check the connection and the account; nothing is lost meanwhile.`
      : `Nothing of ${name} has moved for ${formatDuration(quietMs)}, although there is work that could run.${because} Look at its jobs; nothing is lost meanwhile.`
  const severity = quietMs > limits.staleCriticalMs ? 'critical' : 'warning'
  return { target: stream, severity, text }
}

function unbalanced({ stream, segments: all, canceled }: Input<'unbalanced'>): Found {
  const segments = all - canceled.segments
  if (segments === 0) return canceledWork(stream, canceled)
  const which = segments === 1 ? 'A segment' : `${formatCount(segments)} segments`
  return {
    target: stream,
    severity: 'critical',
    text: `${which} of ${stream} listed more or fewer items than ended as stored, gone, skipped or bad. It is complete up to there only, and nothing is deleted; list ${segments === 1 ? 'it' : 'them'} again and report this as a mistake of the program.`,
  }
}

/** Somebody wanted that: it is worth knowing, and no mistake. */
function canceledWork(stream: string, { items, jobs, firstJob }: Unbalanced['canceled']): Found {
  if (jobs === 0) return undefined
  const what = `${formatCount(jobs)} ${plural(jobs, 'job')} of ${stream} ${plural(jobs, 'was', 'were')} canceled`
  const left = `${formatCount(items)} listed ${plural(items, 'item')} ${plural(items, 'is', 'are')} left out`
  const which = jobs === 1 ? `job ${firstJob}` : `job ${firstJob} and the other canceled jobs of ${stream}`
  return {
    target: stream,
    severity: 'warning',
    text: `${what}: ${left}, and ${stream} is complete up to there only. Nothing is deleted; to go on, retry ${which}.`,
  }
}

function signIn({ stream, reason }: Input<'signIns'>): Found {
  const because = reason ? ` (${reason})` : ''
  return {
    target: stream,
    severity: 'critical',
    text: `${stream} is paused because its account must be connected again${because}. Connect it, then resume the stream.`,
  }
}

function ledgerDown(
  { downSince, detail }: NonNullable<AlertInputs['ledger']>,
  { now, limits }: Limits,
): Found {
  if (downSince === null || now - downSince < limits.ledgerDownMs) return undefined
  return {
    target: '',
    severity: 'critical',
    text: `The ledger has been away for ${formatDuration(now - downSince)}: ${detail}. Check the database; work goes on by itself when it is back.`,
  }
}

function diskFull({ path, freeBytes }: Input<'disks'>, { limits }: Limits): Found {
  if (freeBytes >= limits.diskFreeWarnBytes) return undefined
  const left = freeBytes <= 0 ? 'full' : `down to ${formatBytes(freeBytes)}`
  return {
    target: path,
    severity: freeBytes < limits.diskFreeCriticalBytes ? 'critical' : 'warning',
    text: `The disk of ${path} is ${left}. Free some space: when it is full, work stops until there is room again.`,
  }
}
