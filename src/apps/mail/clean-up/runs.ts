/**
 * Runs of the clean-up, for whoever starts, stops and watches them. Everything is in the journal and in jobs: a run
 * goes on in whichever process has an engine, and this only says what is wanted and looks.
 */
import { isDeepStrictEqual } from 'node:util'
import { z } from 'zod'
import { sleep } from '../../../base/clock.ts'
import { UsageError } from '../../../base/errors.ts'
import type { Engine } from '../../../engine/engine.ts'
import { request } from '../../../engine/kinds.ts'
import type { JobRow } from '../../../ledger/contract.ts'
import { streamOf } from '../account.ts'
import type { Obstacles } from '../obstacles.ts'
import type { ArchiveJournal, NewRun, RunRow } from '../store/journal.ts'
import {
  addRun,
  approveRun,
  beginUndo,
  endRunIfSettled,
  endUndoIfSettled,
  haltRun,
  moveRun,
  openBatches,
  retryFailedUndo,
} from '../store/journal-writes.ts'
import { BATCH_KIND, cleanUpKinds, PLAN_KIND, PROOF_KIND } from './jobs.ts'
import { type CleanUpDeps, type CleanUpKinds, ProofPayload } from './kinds.ts'
import { SurveyProgress } from './survey.ts'

const LOOK_MS = 100
/** Failed jobs and pauses are looked for less often than progress. */
const TROUBLE_MS = 1_000
const JOBS_MAX = 1_000

/** `asks`: planned, and waits for a word. `stuck`: nothing is under way any more, for that reason. */
export type RunEnd =
  | { end: 'done' | 'asks' | 'abandoned' | 'stopped'; run: RunRow }
  | { end: 'stuck'; run: RunRow; reason: string }

/** `progress` is null until the first page is looked through; whole when it is done. */
export type Proof = ProofPayload & {
  id: number
  state: 'running' | 'done' | 'failed'
  progress: SurveyProgress | null
  /** Why it failed, or what it waits for. */
  trouble: string | null
}

export type RunsDeps = Pick<CleanUpDeps, 'accounts' | 'clock' | 'obstacles'> & {
  /** How long Gmail may be out of reach before a run counts as stuck. */
  patienceMs?: number
}

export class CleanUpRuns {
  readonly #engine: Engine
  readonly #kinds: CleanUpKinds
  readonly #obstacles: Obstacles | undefined
  readonly #patienceMs: number

  constructor(engine: Engine, { patienceMs = Number.POSITIVE_INFINITY, ...deps }: RunsDeps) {
    this.#engine = engine
    this.#obstacles = deps.obstacles
    this.#patienceMs = patienceMs
    this.#kinds = cleanUpKinds({ ...deps, ledger: engine.ledger })
  }

  journal(): Promise<ArchiveJournal> {
    return this.#kinds.journal()
  }

  /** One that is there, or a UsageError. */
  async get(id: number): Promise<RunRow> {
    const run = await (await this.journal()).run(id)
    if (run) return run
    throw new UsageError(`There is no clean-up ${id}.`, {
      code: 'run-unknown',
      hint: 'See them with: tidemark mail clean-runs',
    })
  }

  async start(wanted: NewRun): Promise<RunRow> {
    const journal = await this.journal()
    const id = await this.#engine.transaction(async (tx) => {
      const added = await addRun(tx, wanted, this.#kinds.clock.now())
      if (added === undefined) return undefined
      await tx.enqueue([request(this.#kinds.plan, { run: added }, { stream: streamOf(wanted.account) })])
      return added
    })
    if (id !== undefined) return this.get(id)
    const other = await journal.unfinished(wanted.account)
    throw new UsageError(`The clean-up ${other?.id ?? ''} of ${wanted.account} is not finished.`, {
      code: 'run-unfinished',
      hint: `Go on with it: tidemark mail clean --resume ${other?.id ?? 'RUN'}. Or give it up: tidemark mail clean --abandon ${other?.id ?? 'RUN'}`,
    })
  }

  /** The word that a planned run waits for. */
  async approve(id: number): Promise<void> {
    const run = await this.get(id)
    await this.#engine.transaction(async (tx) => {
      if (!(await approveRun(tx, id))) return
      await tx.enqueue(await this.#acts(tx, run))
      await endRunIfSettled(tx, id, this.#kinds.clock.now())
    })
  }

  /** Puts back to work whatever of it is neither done nor under way. */
  async resume(id: number): Promise<RunRow> {
    const run = await this.get(id)
    const stream = streamOf(run.account)
    await this.#engine.transaction(async (tx) => {
      if (run.state === 'planning') await tx.enqueue([request(this.#kinds.plan, { run: id }, { stream })])
      if (run.state !== 'acting') return
      await tx.enqueue(await this.#acts(tx, run))
      await endRunIfSettled(tx, id, this.#kinds.clock.now())
    })
    return this.get(id)
  }

  /** Stops it until somebody approves it again: no engine goes on with it by itself. */
  async halt(id: number): Promise<void> {
    await this.#engine.transaction((tx) => haltRun(tx, id))
  }

  /** What is done stays done; the rest is left alone. */
  async abandon(id: number): Promise<boolean> {
    await this.get(id)
    return this.#engine.transaction((tx) => this.#abandon(tx, id))
  }

  async undo(id: number, options: { keepDates?: boolean } = {}): Promise<RunRow> {
    const run = await this.get(id)
    const stream = streamOf(run.account)
    await this.#engine.transaction(async (tx) => {
      // First of all: from here on, no batch of it gets another intent.
      await this.#abandon(tx, id)
      await beginUndo(tx, id)
      await retryFailedUndo(tx, id)
      const batches = await openBatches(tx, id, 'to-undo')
      const payload = { run: id, do: 'undo' as const, ...(options.keepDates ? { keepDates: true } : {}) }
      await tx.enqueue(
        batches.map((batch) => request(this.#kinds.instead, { ...payload, batch }, { stream })),
      )
      await endUndoIfSettled(tx, id)
    })
    return this.get(id)
  }

  /** Looks until it has ended, whoever does the work; `onLook` is told how far it is. */
  async wait(
    id: number,
    options: { undo?: boolean; signal?: AbortSignal; onLook?: (run: RunRow) => void } = {},
  ): Promise<RunEnd> {
    const { clock } = this.#kinds
    let troubleMs = clock.monotonicMs()
    for (;;) {
      const run = await this.get(id)
      options.onLook?.(run)
      if (options.undo ? run.undo === 'undone' : run.state === 'done') return { end: 'done', run }
      if (!options.undo && run.state === 'abandoned') return { end: 'abandoned', run }
      if (!options.undo && run.state === 'planned') return { end: 'asks', run }
      if (options.signal?.aborted || this.#engine.state !== 'started') return { end: 'stopped', run }
      if (clock.monotonicMs() - troubleMs >= TROUBLE_MS) {
        const reason = await this.trouble(run)
        if (reason !== undefined) return { end: 'stuck', run, reason }
        troubleMs = clock.monotonicMs()
      }
      await sleep(clock, LOOK_MS)
    }
  }

  /** A full dry run; the same wish joins one that is under way, another takes its place. */
  async prove(wanted: ProofPayload): Promise<Proof> {
    const stream = streamOf(wanted.wish.account)
    for (const state of ['pending', 'claimed'] as const) {
      for (const job of await this.#engine.ledger.jobs({ kind: PROOF_KIND, stream, state })) {
        const proof = proofOf(job)
        if (isDeepStrictEqual(proof.wish, wanted.wish)) return proof
      }
    }
    const { id } = await this.#engine.enqueue(this.#kinds.proof, wanted, { stream })
    return (await this.proof(id))!
  }

  /** Undefined where there is none, or none any more. */
  async proof(id: number): Promise<Proof | undefined> {
    const found = await this.#engine.ledger.job(id)
    return found?.job.kind === PROOF_KIND ? proofOf(found.job) : undefined
  }

  /** Why it does not go on: its stream is paused, or its jobs have failed and none is left. */
  async trouble({ id, account, state: seen, undo }: RunRow): Promise<string | undefined> {
    const { ledger } = this.#engine
    const stream = streamOf(account)
    const pause = (await ledger.pauses()).find(
      ({ scope, target }) =>
        scope === 'all' ||
        (scope === 'stream' && target === stream) ||
        (scope === 'kind' && (target === BATCH_KIND || target === PLAN_KIND)),
    )
    if (pause) return `it is paused: ${pause.reason}`
    const obstacle = this.#obstacles?.of(account)
    const forMs = obstacle ? this.#kinds.clock.monotonicMs() - obstacle.sinceMs : 0
    // What is wrong with the archive's files is put right by people, not by time.
    if (obstacle && (obstacle.where === 'archive' || forMs >= this.#patienceMs)) return obstacle.error.message
    let failed: string | undefined
    for (const kind of [PLAN_KIND, BATCH_KIND]) {
      // One that is claimed at the first look may be tried again at the second.
      for (const state of ['pending', 'claimed', 'pending', 'failed'] as const) {
        const jobs = await ledger.jobs({ kind, stream, state, limit: JOBS_MAX })
        const own = jobs.filter(({ payload }) => JSON.parse(payload).run === id)
        if (own.length === 0) continue
        if (state !== 'failed') return undefined
        failed = errorOf(own[0]!.error)
      }
    }
    // It may have ended while it was looked at.
    const now = await this.get(id)
    if (now.state !== seen || now.undo !== undo) return undefined
    return failed ?? 'nothing is under way for it'
  }

  async #acts(tx: Parameters<typeof openBatches>[0], { id, account }: RunRow) {
    const batches = await openBatches(tx, id, 'open')
    const stream = streamOf(account)
    return batches.map((batch) => request(this.#kinds.batch, { run: id, batch, do: 'act' }, { stream }))
  }

  #abandon(tx: Parameters<typeof moveRun>[0], id: number): Promise<boolean> {
    const atMs = this.#kinds.clock.now()
    return moveRun(tx, id, { from: ['planning', 'planned', 'acting'], to: 'abandoned', atMs })
  }
}

function proofOf({ id, state, payload, checkpoint, error, note }: JobRow): Proof {
  const isUnderWay = state === 'pending' || state === 'claimed'
  return {
    id,
    ...ProofPayload.parse(JSON.parse(payload)),
    state: isUnderWay ? 'running' : state === 'done' ? 'done' : 'failed',
    progress: checkpoint === null ? null : SurveyProgress.parse(JSON.parse(checkpoint)),
    trouble: isUnderWay ? note : state === 'done' ? null : errorOf(error),
  }
}

/** Jobs keep their last error as JSON. */
const LastError = z.object({ message: z.string() })

function errorOf(text: string | null): string {
  const parsed = LastError.safeParse(text === null ? null : JSON.parse(text))
  return parsed.success ? parsed.data.message : 'a job of it failed'
}
