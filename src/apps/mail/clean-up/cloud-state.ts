/** What Gmail says about messages right now, and calls about many of them that one of them can spoil. */

import { asTidemarkError, TidemarkError } from '../../../base/errors.ts'
import type { GmailClient } from '../../../cloud/gmail/client.ts'
import type { CloudState } from './verdict.ts'

/** Calls in one request to the batch endpoint. */
const GROUP_MAX = 50
/** Enough to find a dozen culprits among a thousand; more than that are not single messages at fault. */
const SPLIT_CALLS_MAX = 250

export type Looking = { signal: AbortSignal; onLook?: (looked: number) => void }

/** An answer for every id, or an error: what is not known is never taken for gone. */
export async function readStates(
  client: GmailClient,
  ids: readonly string[],
  { signal, onLook }: Looking,
): Promise<Map<string, CloudState>> {
  const states = new Map<string, CloudState>()
  for (let at = 0; at < ids.length; at += GROUP_MAX) {
    signal.throwIfAborted()
    let failed: TidemarkError | undefined
    for (const answer of await client.getLabels(ids.slice(at, at + GROUP_MAX), { signal })) {
      if (answer.ok) {
        const { labelIds, historyId } = answer.message
        states.set(answer.id, { labelIds, historyId })
      } else if (answer.error.kind === 'gone') states.set(answer.id, 'gone')
      else failed = worse(failed, answer.error)
    }
    if (failed) throw failed
    onLook?.(states.size)
  }
  const missing = ids.find((id) => !states.has(id))
  if (missing !== undefined) {
    throw new TidemarkError(`Gmail gave no answer about the message ${missing}`, { kind: 'transient' })
  }
  return states
}

/** Of several errors the one about which most can be done: the account's, then the pace, then anything. */
function worse(one: TidemarkError | undefined, other: TidemarkError): TidemarkError {
  if (!one) return other
  const rank = ({ kind }: TidemarkError): number => (kind === 'auth' ? 2 : kind === 'throttled' ? 1 : 0)
  return rank(other) > rank(one) ? other : one
}

export type Called = { done: string[]; failed: { id: string; error: TidemarkError }[] }

/**
 * Makes a call about all ids; where Gmail refuses it for good, halves them until those at fault are alone. Other
 * errors are thrown: what was done by then shows when Gmail is asked again.
 */
export async function callSplitting(
  ids: readonly string[],
  call: (ids: readonly string[]) => Promise<void>,
): Promise<Called> {
  const called: Called = { done: [], failed: [] }
  const groups: (readonly string[])[] = ids.length > 0 ? [ids] : []
  for (let calls = 1; groups.length > 0; calls++) {
    const group = groups.shift()!
    try {
      await call(group)
      called.done.push(...group)
    } catch (thrown) {
      const error = asTidemarkError(thrown)
      const isRefusal = error.kind === 'permanent' || error.kind === 'gone'
      if (!isRefusal || calls >= SPLIT_CALLS_MAX) throw thrown
      if (group.length === 1) called.failed.push({ id: group[0]!, error })
      else {
        const middle = Math.ceil(group.length / 2)
        groups.unshift(group.slice(0, middle), group.slice(middle))
      }
    }
  }
  return called
}
