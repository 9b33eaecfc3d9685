/**
 * For how long a message that was received stays invisible to others. Pure: what to do about one, and when to look again.
 *
 * - It is extended when half of what was granted is left, so that one extension may fail.
 * - An extension is never longer than the service grants at once, and never reaches beyond the end that it sets from the
 *   first receipt on (SQS: 12 hours). No arithmetic here is below zero, whatever clocks do.
 * - Near that end the message is let go. Its work is in the ledger: only its acknowledgement waits for it to come again.
 */
import type { QueueLimits } from '../../cloud/queue.ts'

export type VisibilityRules = {
  extensionMs: number
  /** Of an extension: how long a call may take, and how far clocks may differ. */
  marginMs: number
}

export type Granted = {
  receivedAtMs: number
  /** When the present visibility was granted, and until when it lasts. */
  grantedAtMs: number
  visibleAtMs: number
}

export type VisibilityStep =
  | { act: 'wait'; untilMs: number }
  | { act: 'extend'; byMs: number }
  /** Others may have it. */
  | { act: 'release' }

type Limits = Pick<QueueLimits, 'extendMsMax' | 'heldMsMax'>

export function visibilityStep(
  granted: Granted,
  { limits, rules, nowMs }: { limits: Limits; rules: VisibilityRules; nowMs: number },
): VisibilityStep {
  const leftMs = granted.visibleAtMs - nowMs
  if (leftMs <= 0) return { act: 'release' }
  const wholeMs = Math.max(0, granted.visibleAtMs - granted.grantedAtMs)
  if (leftMs > wholeMs / 2) return { act: 'wait', untilMs: nowMs + Math.ceil(leftMs - wholeMs / 2) }
  const byMs = extensionMs(granted, { limits, rules, nowMs })
  // What is no longer than what is left is no extension.
  if (byMs <= leftMs)
    return leftMs > rules.marginMs ? { act: 'wait', untilMs: lastMoment(granted, rules) } : { act: 'release' }
  return { act: 'extend', byMs }
}

function lastMoment({ visibleAtMs }: Granted, { marginMs }: VisibilityRules): number {
  return visibleAtMs - marginMs
}

/** From now on. 0 where nothing more is granted. */
export function extensionMs(
  { receivedAtMs }: Pick<Granted, 'receivedAtMs'>,
  { limits, rules, nowMs }: { limits: Limits; rules: VisibilityRules; nowMs: number },
): number {
  const endMs =
    limits.heldMsMax === null ? Number.POSITIVE_INFINITY : receivedAtMs + limits.heldMsMax - rules.marginMs
  return Math.max(0, Math.floor(Math.min(rules.extensionMs, limits.extendMsMax, endMs - nowMs)))
}
