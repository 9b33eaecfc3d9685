/**
 * Reads one version of one object and publishes its records, a batch at a time. Each batch is one transaction that checks
 * the shard's token and position, so that no record is published twice, whoever else believes the shard to be his.
 */
import { asTidemarkError, TidemarkError } from '../../base/errors.ts'
import { type JobRequest, type Outcome, type RunContext, request } from '../../engine/index.ts'
import type { RowLocks, Tx } from '../../ledger/contract.ts'
import type { IndexWriter } from '../../search/contract.ts'
import { Batch } from './batch.ts'
import type { ReadShape } from './contract.ts'
import type { IngestKinds, ShardPayload } from './kinds.ts'
import { openBytes } from './object-bytes.ts'
import { pastObstacles } from './obstacles.ts'
import { itemOf, keyOf, type PipelineConfig, shardId, shardRange, streamOf } from './pipeline.ts'
import { disposeJob, placeCurrent } from './placing.ts'
import { isBefore, REPLACED } from './plan.ts'
import { RECORD_GRANT, type RecordOf } from './record-document.ts'
import { objectLocks } from './store/locks.ts'
import { putQuarantine } from './store/pipelines.ts'
import type { ShardRow } from './store/rows.ts'
import {
  type Ending,
  endShard,
  lockSameVersions,
  lockShard,
  lockVersions,
  lostShard,
  moveShard,
  noteRemoved,
  type Position,
  refuseOpen,
  replacedBy,
  replaceShard,
  stageShard,
  TAKEN_AWAY,
  takeShard,
  type Versions,
} from './store/shards.ts'

const LEFTOVER_PAGE = 200
const LEFTOVER_PAGES_MAX = 100_000

export async function runObject(kinds: IngestKinds, job: RunContext<ShardPayload>): Promise<Outcome> {
  const { pipeline, shard } = job.payload
  const row = await kinds.tables.shard(pipeline, shard)
  if (!row) return endOf(job, { skip: 'nothing is known of it any more', code: 'unknown-shard' })
  if (row.state !== 'open' && row.state !== 'bad') return endOf(job, SETTLED)
  try {
    return await pastObstacles(kinds, job, row, () => readShard(kinds, job, row))
  } catch (thrown) {
    const error = asTidemarkError(thrown)
    if (job.signal.aborted) throw thrown
    const ending = endingOf(error, job.job.failures + 1 >= kinds.object.attempts)
    if (!ending) throw thrown
    return endWithout(kinds, job, { row, ending })
  }
}

const SETTLED: Outcome = { skip: 'it is settled', code: 'settled' }

/** Of a job that leaves nothing to do: checked once more in the transaction in which it ends. */
function endOf({ payload: { pipeline, shard, uri } }: RunContext<ShardPayload>, outcome: Outcome): Outcome {
  return { ...outcome, effects: (tx) => refuseOpen(tx, { pipeline, id: shard, uri }) }
}

function locksOf({ pipeline, uri }: ShardRow): RowLocks {
  return objectLocks(pipeline, [uri])
}

/** Null where the engine tries it again. */
function endingOf(error: TidemarkError, isLastTry: boolean): Exclude<Ending, { state: 'stored' }> | null {
  const reason = error.message
  switch (error.kind) {
    case 'gone':
      return error.code === 'object-replaced'
        ? { state: 'skipped', code: 'replaced', reason: REPLACED }
        : { state: 'bad', code: error.code ?? 'object-missing', reason }
    case 'permanent':
      return { state: 'bad', code: error.code ?? 'unreadable', reason }
    case 'transient':
    case 'bug':
      return isLastTry ? { state: 'bad', code: error.code ?? 'gave-up', reason } : null
    case 'auth':
    case 'throttled':
      return null
  }
}

/** It ends without having been read to its end. What was published before stays, unless something else replaced it. */
async function endWithout(
  kinds: IngestKinds,
  job: RunContext<ShardPayload>,
  { row: before, ending }: { row: ShardRow; ending: Exclude<Ending, { state: 'stored' }> },
): Promise<Outcome> {
  const { pipeline, shard, uri } = job.payload
  const row = await kinds.tables.shard(pipeline, shard)
  if (row?.state !== 'open' && row?.state !== 'bad') return endOf(job, SETTLED)
  const { token, records } = row
  const nowMs = kinds.clock.now()
  const end = async (tx: Tx): Promise<void> => {
    const now = await lockShard(tx, row)
    // A bad one that was tried once more stays as it is, unless it was settled otherwise meanwhile.
    if (now?.state !== row.state) throw lostShard(row)
    if (row.state === 'bad') return
    // Meanwhile a message has told that it was put there again, or how exactly this version is asked for.
    if (now.sequencer !== before.sequencer || now.version_id !== before.version_id) throw lostShard(row)
    await endShard(tx, { pipeline, id: shard, uri, token, records, nowMs }, ending)
  }
  if (ending.state === 'bad') {
    if (job.lostPart) {
      // Its job cannot end as done any more: the shard ends by itself, and the engine makes the item bad.
      await kinds.tables.ledger.transaction(end)
      throw job.lostPart.error
    }
    const bad = { item: itemOf(row), reason: ending.reason, errorKind: 'permanent' as const }
    return { effects: end, locks: locksOf(row), bad: [bad], skip: ending.reason, code: ending.code }
  }
  // Whoever put something else in its place may have told nobody.
  const current = await placeCurrent(kinds, pipeline, uri, job.signal)
  const isReplacing = (await kinds.pipelines.get(pipeline)).config.overwrites === 'replace'
  const index = await kinds.index()
  return {
    locks: locksOf(row),
    effects: async (tx) => {
      await lockVersions(tx, row)
      await end(tx)
      if (isReplacing) await index.hide(tx, shardRange(pipeline, shard), streamOf(pipeline))
      await current.place(tx)
    },
    jobs: isReplacing ? [...current.jobs, request(kinds.sweep, { pipeline })] : current.jobs,
    skip: ending.reason,
    code: ending.code,
  }
}

async function readShard(
  kinds: IngestKinds,
  job: RunContext<ShardPayload>,
  before: ShardRow,
): Promise<Outcome> {
  const { config } = await kinds.pipelines.get(before.pipeline)
  const index = await kinds.index()
  const row = await take(kinds, job, { row: before, config, index })
  if (!row) return endOf(job, { skip: REPLACED, code: 'replaced' })
  const publisher = new Publisher({ kinds, job, row, config, index })
  await publisher.readAll()
  kinds.settled(row.pipeline, [row])
  return endOf(job, { note: `${publisher.position.published} records` })
}

type Taking = { row: ShardRow; config: PipelineConfig; index: IndexWriter }

/** Makes the shard this job's own. Undefined where a newer version is stored already, and this one is not needed. */
async function take(
  kinds: IngestKinds,
  job: RunContext<ShardPayload>,
  { row, config, index }: Taking,
): Promise<ShardRow | undefined> {
  const { clock } = kinds
  const isReplacing = config.overwrites === 'replace'
  const looked = await lookAtVersions(kinds, job, { row, config })
  if (isReplacing && replacedBy(row.id, looked).isReplaced) {
    await job.commit({
      jobs: [request(kinds.sweep, { pipeline: row.pipeline })],
      locks: locksOf(row),
      effects: async (tx) => {
        const versions = await lockSameVersions(tx, row, looked)
        if (!replacedBy(row.id, versions).isReplaced) throw lostShard(row)
        await index.hide(tx, shardRange(row.pipeline, row.id), streamOf(row.pipeline))
        await replaceShard(tx, row, clock.now())
      },
    })
    return undefined
  }
  if (row.records === 0 && row.published > 0) await removeLeftovers(job, index, row)
  const isFirst = row.records === 0
  const isStaged = isFirst
    ? isReplacing &&
      looked.all.some(({ id, state, published }) => id !== row.id && (published > 0 || state === 'open'))
    : row.is_staged === 1
  const token = `${job.id}.${job.attempt}`
  await job.commit({
    locks: locksOf(row),
    effects: (tx) => takeShard(tx, row, { token, isStaged, nowMs: clock.now() }),
  })
  return { ...row, token, is_staged: isStaged ? 1 : 0, published: isFirst ? 0 : row.published }
}

/** Where one of several versions is to be seen, the store itself is asked which of them it has. */
async function lookAtVersions(
  kinds: IngestKinds,
  { signal }: Pick<RunContext<ShardPayload>, 'signal'>,
  { row: { pipeline, uri }, config }: Pick<Taking, 'row' | 'config'>,
): Promise<Versions> {
  // They stand beside each other, and none decides over another.
  if (config.overwrites === 'append') return { all: [], current: null }
  const all = await kinds.tables.versions(pipeline, uri)
  if (all.length < 2) return { all, current: null }
  try {
    const head = await (await kinds.pipelines.store(pipeline, uri)).head(uri, signal)
    return { all, current: head ? shardId(uri, head.version.id) : takenAway(all) }
  } catch (thrown) {
    // Who may not ask goes by what was announced.
    if (asTidemarkError(thrown).kind !== 'permanent') throw thrown
    return { all, current: null }
  }
}

/** What the store had when we took it away. Null where another may have come after it, and was taken away by somebody else. */
function takenAway(all: readonly ShardRow[]): string | null {
  const isAway = ({ state, disposed }: ShardRow): boolean =>
    state === 'stored' && disposed !== null && TAKEN_AWAY.has(disposed)
  const isLast = (away: ShardRow): boolean =>
    !all.some((other) => other !== away && mayHaveFollowed(other, away))
  return all.find((row) => isAway(row) && isLast(row))?.id ?? null
}

/**
 * The store had the other one after this was stored, and has not shown this one since; or the other has the later
 * sequencer, and the store has not shown this one since that was told. It shows what it lists, and what it lets us take.
 */
function mayHaveFollowed(other: ShardRow, away: ShardRow): boolean {
  const shownAt = Math.max(away.listed_at ?? 0, away.shown_at ?? 0)
  const toldAt = Math.max(other.announced_at ?? 0, other.created_at)
  // Whoever names no sequencer was answered by the store itself.
  const askedAt = other.sequencer === null ? toldAt : 0
  const otherShownAt = Math.max(other.listed_at ?? 0, other.shown_at ?? 0, askedAt)
  if (otherShownAt > Math.max(shownAt, away.settled_at ?? 0)) return true
  return isBefore(away, other) && toldAt >= shownAt
}

/** Of an earlier life of the shard, which was replaced, and is what the object is again. */
async function removeLeftovers(
  job: RunContext<ShardPayload>,
  index: IndexWriter,
  row: ShardRow,
): Promise<void> {
  const range = shardRange(row.pipeline, row.id)
  for (let page = 0; page < LEFTOVER_PAGES_MAX; page++) {
    let removed = 0
    await job.commit({
      locks: locksOf(row),
      effects: async (tx) => {
        removed = await index.removeRange(tx, range, LEFTOVER_PAGE)
        if (removed === 0) await noteRemoved(tx, row, 'all')
      },
    })
    if (removed === 0) return
    job.progress({ label: keyOf(row.uri) })
  }
}

type PublisherInput = {
  kinds: IngestKinds
  job: RunContext<ShardPayload>
  row: ShardRow
  config: PipelineConfig
  index: IndexWriter
}

/** From the position of a shard to its end. */
class Publisher {
  position: Position
  readonly #in: PublisherInput
  readonly #of: RecordOf

  constructor(input: PublisherInput) {
    this.#in = input
    const { pipeline, id, uri, version, records, byte, line, published, quarantined } = input.row
    this.#of = { pipeline, shard: id, uri, version }
    this.position = { records, byte, line, published, quarantined }
  }

  async readAll(): Promise<void> {
    const { kinds, row, config, job } = this.#in
    const { records, byte, line } = this.position
    const { shape, items } = await kinds.openRecords({
      open: await openBytes(kinds, row, job.signal),
      name: keyOf(row.uri),
      options: config.read,
      shape: row.shape === null ? null : (JSON.parse(row.shape) as ReadShape),
      from: { records, byte, line },
      limits: kinds.settings.limits,
      signal: job.signal,
    })
    let batch = this.#batch()
    try {
      for await (const item of items) {
        batch.add(item)
        this.#checkBad(batch)
        if (!batch.isFull()) continue
        await this.#publish(batch, shape)
        batch = this.#batch()
      }
    } catch (thrown) {
      // What came before counts, where the object itself is at fault.
      const { kind } = asTidemarkError(thrown)
      if (!job.signal.aborted && (kind === 'permanent' || kind === 'gone')) await this.#publish(batch, shape)
      throw thrown
    }
    await this.#end(batch, shape)
  }

  #batch(): Batch {
    const { kinds, config } = this.#in
    const map = (value: Readonly<Record<string, unknown>>) => kinds.mapRecord(value, config.mapping)
    return new Batch({ of: this.#of, from: this.position, map, clock: kinds.clock, settings: kinds.settings })
  }

  #checkBad({ to }: Batch): void {
    const { badRecordsMax } = this.#in.kinds.settings
    if (to.quarantined <= badRecordsMax) return
    throw new TidemarkError(`More than ${badRecordsMax} of its records could not be read.`, {
      kind: 'permanent',
      code: 'too-many-bad',
      hint: 'Look at some of them: the pipeline may read it as something that it is not.',
    })
  }

  async #publish(batch: Batch, shape: ReadShape): Promise<void> {
    if (batch.isEmpty) return
    const { job, row } = this.#in
    await job.commit({ locks: locksOf(row), effects: (tx) => this.#write(tx, batch, shape) })
    this.position = batch.to
    job.progress({ done: this.position.records, unit: 'items', label: keyOf(this.#of.uri) })
  }

  async #write(tx: Tx, { to, documents, bad }: Batch, shape: ReadShape): Promise<void> {
    const { row, config, index, kinds } = this.#in
    const { pipeline, id, uri } = row
    const from = this.position
    const isStaged = row.is_staged
    const moving = { pipeline, id, uri, token: row.token!, isStaged, from, to, nowMs: kinds.clock.now() }
    // The check of token and position comes first: nothing is written for who has lost the shard.
    await moveShard(tx, moving, shape)
    const seenBy = row.is_staged ? {} : { principal: streamOf(pipeline), grant: RECORD_GRANT }
    await index.append(tx, documents, { ...seenBy, isEmbedded: config.isEmbedded })
    await putQuarantine(tx, bad)
  }

  /** The last batch, that the shard is stored, and what it replaces: one transaction. */
  async #end(batch: Batch, shape: ReadShape): Promise<void> {
    const { row, config, job, kinds } = this.#in
    const looked = await lookAtVersions(kinds, job, { row, config })
    const jobs: JobRequest[] = []
    const { pipeline } = row
    if (looked.all.length > 1) jobs.push(request(kinds.sweep, { pipeline }))
    if (config.after.do !== 'keep') jobs.push(disposeJob(kinds, pipeline, row))
    await job.commit({
      jobs,
      locks: locksOf(row),
      effects: async (tx) => {
        const isReplacing = config.overwrites === 'replace'
        const versions = isReplacing ? await lockSameVersions(tx, row, looked) : looked
        await this.#write(tx, batch, shape)
        await this.#settle(tx, versions, batch.to.records)
      },
    })
    this.position = batch.to
  }

  async #settle(tx: Tx, versions: Versions, records: number): Promise<void> {
    const { row, index, kinds } = this.#in
    const nowMs = kinds.clock.now()
    const principal = streamOf(row.pipeline)
    const of = { pipeline: row.pipeline, id: row.id, uri: row.uri, token: row.token, records, nowMs }
    const own = shardRange(row.pipeline, row.id)
    const { replaced, isReplaced } = replacedBy(row.id, versions)
    if (isReplaced) {
      await index.hide(tx, own, principal)
      await endShard(tx, of, { state: 'skipped', code: 'replaced', reason: REPLACED })
      return
    }
    if (row.is_staged) await index.reveal(tx, own, principal, RECORD_GRANT)
    for (const other of replaced) {
      await index.hide(tx, shardRange(other.pipeline, other.id), principal)
      await replaceShard(tx, other, nowMs)
    }
    // A newer one of which a beginning is seen, because nothing else was: it waits for its end from now on.
    for (const other of versions.all) {
      const isSeen = other.published > 0 && other.is_staged === 0
      if (other.id === row.id || replaced.includes(other) || !isSeen) continue
      await index.hide(tx, shardRange(other.pipeline, other.id), principal)
      await stageShard(tx, other)
    }
    await endShard(tx, of, { state: 'stored' })
  }
}
