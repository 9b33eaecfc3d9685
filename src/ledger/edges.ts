/** The edges of new jobs: how the jobs that they wait for stand, and the rows that say so. */
import { oneOf } from './changes.ts'
import type { Edge, OnDepFailure, Tx } from './contract.ts'
import { statementChunks } from './dependencies.ts'
import type { JobState } from './states.ts'

/** By the id of the job to wait for: each is waited for once. */
export type Wanted = Map<number, OnDepFailure>

/** `open`: how many are still to be waited for. */
export type FoundEdges = {
  edges: { depId: number; onFailure: OnDepFailure }[]
  open: number
  met: Set<number>
  broken: { id: number; state: JobState }[]
}

export type Standing = {
  /** What is no longer there was pruned. */
  state: (id: number) => JobState | undefined
  /** Of a batch that was split. */
  halves: (id: number) => readonly number[]
}

/**
 * How these jobs stand now, and the halves of those that were split. On PostgreSQL they are locked, so that none
 * settles meanwhile; but for `fresh` ones, which this transaction has just inserted and nobody else can see.
 */
export async function standingOf(
  tx: Tx,
  ids: Iterable<number>,
  fresh: ReadonlySet<number>,
): Promise<Standing> {
  const lock = tx.dialect === 'postgres' ? ' ORDER BY id FOR SHARE' : ''
  const states = new Map<number, JobState>()
  const halves = new Map<number, number[]>()
  const asked = new Set<number>()
  // Each wave holds the halves of those jobs of the one before that were split.
  let wave = [...ids]
  while (wave.length > 0) {
    for (const id of wave) asked.add(id)
    const known = wave.filter((id) => fresh.has(id))
    for (const id of known) states.set(id, 'pending')
    const others = wave.filter((id) => !fresh.has(id)).sort((a, b) => a - b)
    const skipped: number[] = []
    for (const part of statementChunks(tx, others)) {
      const among = oneOf(tx, part)
      const rows = await tx.all<{ id: number; state: JobState }>(
        `SELECT id, state FROM jobs WHERE id ${among.sql}${lock}`,
        among.params,
      )
      for (const { id, state } of rows) states.set(id, state)
      for (const { id, state } of rows) if (state === 'skipped') skipped.push(id)
    }
    await readHalves(tx, skipped, halves)
    wave = skipped.flatMap((id) => halves.get(id) ?? []).filter((id) => !asked.has(id))
  }
  return { state: (id) => states.get(id), halves: (id) => halves.get(id) ?? [] }
}

async function readHalves(tx: Tx, skipped: readonly number[], halves: Map<number, number[]>): Promise<void> {
  for (const part of statementChunks(tx, skipped)) {
    const among = oneOf(tx, part)
    const rows = await tx.all<{ id: number; split_of: number }>(
      `SELECT id, split_of FROM jobs WHERE split_of ${among.sql}`,
      among.params,
    )
    for (const { id, split_of } of rows) {
      const list = halves.get(split_of)
      if (list) list.push(id)
      else halves.set(split_of, [id])
    }
  }
}

/** Whoever waits for a batch that was split waits for its halves, in the same way. */
export function edgesOf(wanted: ReadonlyMap<number, OnDepFailure>, standing: Standing): FoundEdges {
  const found: FoundEdges = { edges: [], open: 0, met: new Set(), broken: [] }
  const all: Wanted = new Map(wanted)
  // A map shows what is added to it while it is walked.
  for (const [id, onFailure] of all) {
    const state = standing.state(id)
    found.edges.push({ depId: id, onFailure })
    if (state === undefined || state === 'done' || state === 'skipped') found.met.add(id)
    else if (state === 'failed' || state === 'canceled') found.broken.push({ id, state })
    for (const half of standing.halves(id)) if (!all.has(half)) all.set(half, onFailure)
  }
  found.open = found.edges.length - found.met.size
  return found
}

export function edgeRows(jobId: number, { edges, met }: FoundEdges): Edge[] {
  return edges.map(({ depId, onFailure }) => ({ depId, jobId, onFailure, met: met.has(depId) ? 1 : 0 }))
}
