/**
 * Examines messages before they are taken out of Gmail: the watermark and the registry of bad messages as they are
 * now, the bytes read back from the committed files, and the state in Gmail, last of all. Writes nothing but what the
 * archive is found to lack.
 */

import { badItemsOf } from '../../../app/sources.ts'
import type { MailAccount } from '../account.ts'
import { noticeLosses } from '../losses.ts'
import type { Proof } from '../message.ts'
import type { Archive } from '../store/contract.ts'
import type { Candidate } from '../store/journal.ts'
import type { Refused } from '../store/journal-writes.ts'
import { staleIds } from '../store/stale-labels.ts'
import type { Standing } from './candidates.ts'
import { readStates } from './cloud-state.ts'
import { followedStates } from './followed-state.ts'
import type { CleanUpKinds } from './kinds.ts'
import {
  type CloudState,
  cloudRefusal,
  indexRefusal,
  type Purpose,
  proofRefusal,
  REFUSAL_TEXTS,
  type Refusal,
} from './verdict.ts'

/** Bytes are read back for this many at a time, so that there is a sign of life in between. */
export const PROOF_GROUP = 50

export type Examined = {
  passed: { candidate: Candidate; state: Exclude<CloudState, 'gone'> | null }[]
  refused: Refused[]
}

export type Examining = {
  account: MailAccount
  standing: Standing
  purpose: Purpose
  signal: AbortSignal
  /** Left out by a quick dry run: then bytes are not read, and Gmail is not asked. */
  depth: 'full' | 'index'
  /** How Gmail is asked: see followed-state.ts. */
  asking: 'history' | 'each'
  /** From a listing as of the standing's cursor: what is other than the archive says. */
  listed?: ReadonlyMap<string, readonly string[] | 'gone'>
  onStep?: (done: number) => void
}

/** What the ledger says: as committed at this moment. */
export async function messageStanding(
  { ledger, clock, tables }: Pick<CleanUpKinds, 'ledger' | 'clock' | 'tables'>,
  account: MailAccount,
): Promise<Standing> {
  const { stream } = account
  const isThere = (await ledger.streamNames()).some(({ name }) => name === stream)
  if (!isThere) return { markS: null, bad: new Set(), cursor: null, stale: new Set() }
  // The cursor first: a change before it is in the archive, or the message is noted, or was read since.
  const { mark, mark_at: markAt, cursor } = await ledger.stream(stream)
  const stale = await staleIds(ledger, account.name)
  const markS = mark === null ? null : markAt
  const bad = new Set((await badItemsOf(ledger, stream)).map(({ item }) => item))
  // Labels of a file that was put back from an older backup are of that time, whatever the cursor says.
  const { older, compared } = await noticeLosses({ ledger, clock, tables: await tables() }, account)
  return { markS, bad, cursor: older === compared ? cursor : null, stale }
}

export async function examine(candidates: readonly Candidate[], options: Examining): Promise<Examined> {
  const { account, standing, purpose, signal } = options
  const refused: Refused[] = []
  const refuse = ({ id, bytes }: Candidate, refusal: Refusal): void => {
    refused.push({ id, bytes, ...refusal })
  }
  let left = candidates.filter((candidate) => {
    const { id, internalMs } = candidate
    const isBad = standing.bad.has(id)
    const refusal = indexRefusal({
      internalMs,
      markS: standing.markS,
      isBad,
      deletedAtMs: null,
      isImported: false,
    })
    if (refusal) refuse(candidate, refusal)
    return refusal === null
  })
  if (options.depth === 'index') {
    return { passed: left.map((candidate) => ({ candidate, state: null })), refused }
  }
  const kept = await proven(left, options, refuse)
  left = kept.map(({ candidate }) => candidate)
  const looking = { signal, onLook: options.onStep }
  const states =
    options.asking === 'each'
      ? await readStates(
          account.client,
          left.map(({ id }) => id),
          looking,
        )
      : await followedStates(
          account,
          kept.map(({ proof: { id, labelIds } }) => ({ id, labelIds: options.listed?.get(id) ?? labelIds })),
          standing,
          looking,
        )
  const passed: Examined['passed'] = []
  for (const candidate of left) {
    const state = states.get(candidate.id)!
    const refusal = cloudRefusal(purpose, candidate.labelIds, state)
    if (refusal) refuse(candidate, refusal)
    else if (state !== 'gone') passed.push({ candidate, state })
  }
  return { passed, refused }
}

/** Those whose bytes, read back now, have their hash. */
async function proven(
  candidates: readonly Candidate[],
  { account, purpose, signal, onStep }: Examining,
  refuse: (candidate: Candidate, refusal: Refusal) => void,
): Promise<{ candidate: Candidate; proof: Proof }[]> {
  const { archive } = account
  // What cannot be taken back is done only where the file as a whole is in order too.
  const damaged = purpose.action === 'delete' ? await damagedRanges(archive) : []
  const left: { candidate: Candidate; proof: Proof }[] = []
  for (let at = 0; at < candidates.length; at += PROOF_GROUP) {
    signal.throwIfAborted()
    const group = candidates.slice(at, at + PROOF_GROUP)
    const proofs = new Map((await archive.prove(group.map(({ id }) => id))).map((proof) => [proof.id, proof]))
    for (const candidate of group) {
      const proof = proofs.get(candidate.id)
      if (!proof) {
        refuse(candidate, { class: 'absent', detail: REFUSAL_TEXTS.absent })
        continue
      }
      const refusal = proofRefusal(proof)
      const range = damaged.find(
        ({ fromMs, toMs }) => fromMs <= candidate.internalMs && candidate.internalMs < toMs,
      )
      if (refusal) refuse(candidate, refusal)
      else if (range)
        refuse(candidate, { class: 'unreadable', detail: `the file ${range.name} is not in order` })
      else left.push({ candidate, proof })
    }
    onStep?.(at + group.length)
  }
  return left
}

async function damagedRanges(archive: Archive): Promise<{ name: string; fromMs: number; toMs: number }[]> {
  return (await archive.shards()).filter(({ state }) => state !== 'ok')
}
