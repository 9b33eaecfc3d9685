/**
 * Examines messages before they are taken out of Gmail: the watermark and the registry of bad messages as they are
 * now, the bytes read back from the committed files, and the state in Gmail, last of all. Writes nothing.
 */
import type { Ledger } from '../../../ledger/ledger.ts'
import type { MailAccount } from '../account.ts'
import type { Archive } from '../store/contract.ts'
import type { Candidate } from '../store/journal.ts'
import type { Refused } from '../store/journal-writes.ts'
import type { Standing } from './candidates.ts'
import { readStates } from './cloud-state.ts'
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
const PROOF_GROUP = 50
const BAD_PAGE = 1_000
const BAD_PAGES_MAX = 10_000

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
  onStep?: (done: number) => void
}

/** The watermark, in seconds, and the ids in the registry of bad messages: as committed at this moment. */
export async function standingOf(ledger: Ledger, stream: string): Promise<Standing> {
  const isThere = (await ledger.streamNames()).some(({ name }) => name === stream)
  if (!isThere) return { markS: null, bad: new Set() }
  const { mark, mark_at: markAt } = await ledger.stream(stream)
  const markS = mark === null ? null : markAt
  const bad = new Set<string>()
  let after = 0
  for (let page = 0; page < BAD_PAGES_MAX; page++) {
    const rows = await ledger.badItems({ stream, after, limit: BAD_PAGE })
    for (const { item } of rows) bad.add(item)
    if (rows.length < BAD_PAGE) break
    after = rows.at(-1)!.id
  }
  return { markS, bad }
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
  left = await proven(left, options, refuse)
  const ids = left.map(({ id }) => id)
  const states = await readStates(account.client, ids, { signal, onLook: options.onStep })
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
): Promise<Candidate[]> {
  const { archive } = account
  // What cannot be taken back is done only where the file as a whole is in order too.
  const damaged = purpose.action === 'delete' ? await damagedRanges(archive) : []
  const left: Candidate[] = []
  for (let at = 0; at < candidates.length; at += PROOF_GROUP) {
    signal.throwIfAborted()
    const group = candidates.slice(at, at + PROOF_GROUP)
    const proofs = new Map((await archive.prove(group.map(({ id }) => id))).map((proof) => [proof.id, proof]))
    for (const candidate of group) {
      const proof = proofs.get(candidate.id)
      const refusal = proof ? proofRefusal(proof) : { class: 'absent' as const, detail: REFUSAL_TEXTS.absent }
      const range = damaged.find(
        ({ fromMs, toMs }) => fromMs <= candidate.internalMs && candidate.internalMs < toMs,
      )
      if (refusal) refuse(candidate, refusal)
      else if (range)
        refuse(candidate, { class: 'unreadable', detail: `the file ${range.name} is not in order` })
      else left.push(candidate)
    }
    onStep?.(at + group.length)
  }
  return left
}

async function damagedRanges(archive: Archive): Promise<{ name: string; fromMs: number; toMs: number }[]> {
  return (await archive.shards()).filter(({ state }) => state !== 'ok')
}
