/**
 * What becomes of an object that is stored, by choice: it is kept, tagged, moved or deleted. Each needs proof, looked at
 * anew just before: the shard is read to its end, the index has as many records of it as it published, all others are in
 * quarantine, and the store still has that version. One whose row was pruned meanwhile is read once more, and counted. A tag says that all is well, and needs an empty quarantine.
 *
 *   move     copy within the store ▸ same bytes? ▸ commit `moving`, where ▸ proof, copy there? ▸ remove ▸ commit `moved`
 *   delete   copy into the home ▸ reads back? ▸ commit `deleting`, where ▸ proof, reads back? ▸ remove ▸ commit `deleted`
 *
 * Whatever dies between two steps is done again from the beginning, and finds what is done already. Nothing is removed
 * but the version that was copied, by a call that names it. What is left where it is, is left with its reason, once.
 *
 * Whoever writes a file may be silent for a while and go on, with a name or without: what comes then would be lost. So
 * files stay until they have not been changed for a good while.
 */
import { createHash } from 'node:crypto'
import { asTidemarkError, TidemarkError } from '../../base/errors.ts'
import type { ObjectHead, ObjectStore, ObjectVersion } from '../../cloud/object-store.ts'
import type { JobRequest, Outcome, RunContext } from '../../engine/index.ts'
import type { Tx } from '../../ledger/contract.ts'
import type { IngestKinds, ShardPayload } from './kinds.ts'
import { hostOf, keptOn, openBytes } from './object-bytes.ts'
import { pastObstacles } from './obstacles.ts'
import { keyOf, type PipelineConfig, shardRange } from './pipeline.ts'
import { schemeOf } from './pipelines.ts'
import { disposeJob } from './placing.ts'
import { versionOf } from './plan.ts'
import { objectLocks } from './store/locks.ts'
import type { ShardRow } from './store/rows.ts'
import { DISPOSED, type Disposed, noteDisposed, refuseUndisposed } from './store/shards.ts'

/** So long must a file have been as it is before it is taken from where it was written. */
export const QUIET_MS = 10 * 60_000
/** Of a job that waits for that: no sync waits with it. */
export const NOT_QUIET = 'not-quiet'

export async function runDispose(kinds: IngestKinds, job: RunContext<ShardPayload>): Promise<Outcome> {
  const { pipeline, shard, uri } = job.payload
  const { config } = await kinds.pipelines.get(pipeline)
  const row = await kinds.tables.shard(pipeline, shard)
  if (config.after.do === 'keep') return { skip: 'it is kept', code: 'kept' }
  const effects = (tx: Tx): Promise<void> => refuseUndisposed(tx, { pipeline, id: shard, uri })
  if (!row) return { skip: 'nothing is known of it any more', code: 'unknown-shard', effects }
  if (uri.startsWith('message:')) return { skip: 'a message carried it', code: 'message' }
  return pastObstacles(kinds, job, row, async () => {
    if (await isDone(kinds, job, row)) return { skip: 'it was done before', code: 'done', effects }
    return disposeOf(kinds, job, { row, config })
  })
}

/** What was taken away is done with, unless the same version is there again: somebody has put it there once more. */
async function isDone(
  { pipelines }: IngestKinds,
  { signal }: RunContext<ShardPayload>,
  { pipeline, uri, version, disposed }: ShardRow,
): Promise<boolean> {
  if (disposed === null || !DISPOSED.has(disposed)) return false
  if (disposed !== 'moved' && disposed !== 'deleted') return true
  const head = await (await pipelines.store(pipeline, uri)).head(uri, signal)
  return head?.version.id !== version
}

const LEFT_PAGE = 500
const LEFT_PAGES_MAX = 10_000

/** Jobs for all objects of a pipeline that were left where they are, whatever the reason was. */
export async function askAgain(kinds: IngestKinds, pipeline: string): Promise<JobRequest[]> {
  const jobs: JobRequest[] = []
  let after = ''
  for (let page = 0; page < LEFT_PAGES_MAX; page++) {
    const rows = await kinds.tables.left(pipeline, after, LEFT_PAGE)
    jobs.push(...rows.map((row) => disposeJob(kinds, pipeline, row)))
    if (rows.length < LEFT_PAGE) break
    after = rows.at(-1)!.id
  }
  return jobs
}

async function disposeOf(
  kinds: IngestKinds,
  job: RunContext<ShardPayload>,
  { row, config }: { row: ShardRow; config: PipelineConfig },
): Promise<Outcome> {
  try {
    const store = await kinds.pipelines.store(row.pipeline, row.uri)
    const disposed = await new Disposal({ kinds, job, row, store, config }).run(config.after)
    return { ...disposing(row, disposed), note: disposed.how }
  } catch (thrown) {
    if (thrown instanceof NotQuiet) {
      const note = 'waits until the file has not been changed for 10 minutes'
      return { again: { afterMs: thrown.afterMs }, note, code: NOT_QUIET }
    }
    const left = reasonOf(thrown)
    if (job.signal.aborted || !left) throw thrown
    return { ...disposing(row, { how: left.code }), skip: left.reason, code: left.code }
  }
}

function disposing(row: ShardRow, disposed: Disposed): Pick<Outcome, 'effects' | 'locks'> {
  return {
    locks: objectLocks(row.pipeline, [row.uri]),
    effects: (tx) => noteDisposed(tx, row, disposed),
  }
}

/** Why it stays where it is; undefined where it is tried again, by the engine and by every sync. */
function reasonOf(thrown: unknown): { code: string; reason: string } | undefined {
  const error = asTidemarkError(thrown)
  const isForGood = error.kind === 'permanent' || error.kind === 'gone'
  return isForGood ? { code: error.code ?? 'refused', reason: error.message } : undefined
}

function left(code: string, reason: string): TidemarkError {
  return new TidemarkError(reason, { kind: 'permanent', code })
}

class NotQuiet extends Error {
  readonly afterMs: number

  constructor(afterMs: number) {
    super('somebody may still write to it')
    this.afterMs = afterMs
  }
}

type DisposalInput = {
  kinds: IngestKinds
  job: RunContext<ShardPayload>
  row: ShardRow
  store: ObjectStore
  config: PipelineConfig
}

class Disposal {
  readonly #in: DisposalInput

  constructor(input: DisposalInput) {
    this.#in = input
  }

  async run(after: PipelineConfig['after']): Promise<Disposed> {
    await this.#proveKnown()
    switch (after.do) {
      case 'tag':
        return this.#tag(after.tags)
      case 'move':
        return this.#move(after.to)
      case 'delete':
        return this.#delete()
      case 'keep':
        throw left('kept', 'it is kept')
    }
  }

  async #tag(tags: Readonly<Record<string, string>>): Promise<Disposed> {
    const { row, store } = this.#in
    if (row.quarantined > 0) throw left('quarantined', `${row.quarantined} of its records are in quarantine`)
    await this.#prove()
    if (!(await this.#current())) throw gone()
    const version = versionOf(row)
    if (!version || !store.tag) throw left('unable', 'this store cannot tag objects')
    await store.tag(row.uri, version, tags)
    return { how: 'tagged' }
  }

  async #move(folder: string): Promise<Disposed> {
    const { row, store, job, kinds } = this.#in
    await this.#prove()
    const askedAtMs = kinds.clock.now()
    const current = await this.#current()
    if (!current) {
      if (row.disposed !== 'moving') throw gone()
      await this.#checkCopy(row.disposed_to!, row.disposed_version!)
      await this.#finishRemoval()
      return { how: 'moved' }
    }
    this.#checkQuiet(current)
    if (!store.copy || !store.remove) throw left('unable', 'this store cannot move objects')
    if (schemeOf(folder) !== store.scheme) throw left('other-store', `it cannot be moved to ${folder}`)
    const to = await this.#copy(current, `${folder}${this.#name()}`)
    const there = await store.head(to, job.signal)
    if (!there) throw left('not-copied', `${to} is not there`)
    const moving: Disposed = { how: 'moving', to, version: there.version.id, shownAtMs: askedAtMs }
    await job.commit(disposing(row, moving))
    await this.#prove()
    await this.#checkCopy(to, there.version.id)
    return { ...moving, how: 'moved', shownAtMs: await this.#remove(current.version) }
  }

  /**
   * A removal that died on its way may have left the file aside, or a newer one that had taken its place: only the store
   * knows where, and puts a newer one back. Where there is nothing, all is done.
   */
  async #finishRemoval(): Promise<void> {
    const { row, store } = this.#in
    const version = versionOf(row)
    if (store.scheme !== 'file' || !version || !store.remove) return
    await store.remove(row.uri, version).catch((thrown: unknown) => {
      if (asTidemarkError(thrown).kind !== 'gone') throw thrown
    })
  }

  async #delete(): Promise<Disposed> {
    const { row, store, kinds, job } = this.#in
    const { kept, clock } = kinds
    const as = { pipeline: row.pipeline, shard: row.id }
    await this.#prove()
    const askedAtMs = clock.now()
    const current = await this.#current()
    const onBytes = (): void => job.progress({ label: row.uri })
    const reading = { onBytes, signal: job.signal }
    if (!current) {
      // By its bytes and not by the machine's name, which may be another today.
      const isNoted = row.disposed === 'deleting' && hostOf(row.disposed_to) !== undefined
      if (!isNoted || !(await kept.holds(as, row.disposed_version!, reading))) throw gone()
      await this.#finishRemoval()
      return { how: 'deleted' }
    }
    this.#checkQuiet(current)
    if (!store.remove) throw left('unable', 'this store cannot delete objects')
    if (current.sizeBytes === null)
      throw left(
        'unable',
        'its store keeps other bytes than those that it gives out, such as compressed ones',
      )
    const body = await store.read(row.uri, { version: current.version, fromByte: 0, signal: job.signal })
    const by = `${job.id}.${job.attempt}`
    const { contentType, contentEncoding } = current
    const of = { uri: row.uri, version: row.version, contentType, contentEncoding }
    const { sha256, md5, sizeBytes } = await kept.put(as, body.bytes, {
      by,
      ...of,
      nowMs: clock.now(),
      ...reading,
    })
    if (body.sizeBytes !== null && body.sizeBytes !== sizeBytes)
      throw new TidemarkError(`${sizeBytes} of its ${body.sizeBytes} bytes came.`, { kind: 'transient' })
    // What came may be another form of the object than what is stored, which could not be put back then.
    const isOther = current.hash?.startsWith('md5 ') && current.hash !== `md5 ${md5}`
    if (current.sizeBytes !== sizeBytes || isOther)
      throw left('unable', 'the bytes that came are not those that its store tells of')
    const to = keptOn(kept.host)
    const deleting: Disposed = { how: 'deleting', to, version: sha256, shownAtMs: askedAtMs }
    await job.commit(disposing(row, deleting))
    await this.#prove()
    if (!(await kept.holds(as, sha256, reading))) throw left('not-kept', 'the copy of it does not read back')
    return { ...deleting, how: 'deleted', shownAtMs: await this.#remove(current.version) }
  }

  /** Answers when the store still had it: what was told before that, and is another version, is older. */
  async #remove(version: ObjectVersion): Promise<number> {
    const { store, row, kinds } = this.#in
    const askedAtMs = kinds.clock.now()
    await store.remove!(row.uri, version)
    return askedAtMs
  }

  // --- Proof -------------------------------------------------------------------------------------------------------

  /**
   * One that was pruned is known by its records alone, and its row was made from these: it says nothing of how many there
   * should be. So the object is read to its end. What is on its way to be removed was looked at before.
   */
  async #proveKnown(): Promise<void> {
    const { kinds, row, job, config } = this.#in
    if (row.code !== 'known' || row.disposed === 'moving' || row.disposed === 'deleting') return
    if (!(await this.#current())) throw gone()
    const { items } = await kinds.openRecords({
      open: await openBytes(kinds, row, job.signal),
      name: keyOf(row.uri),
      options: config.read,
      shape: null,
      from: { records: 0, byte: null, line: null },
      limits: kinds.settings.limits,
      signal: job.signal,
    })
    let records = 0
    for await (const _ of items) {
      records += 1
      job.progress({ label: row.uri })
    }
    if (records !== row.records)
      throw left('not-proven', `the index has ${row.records} of its ${records} records`)
  }

  /** Counted anew: what the row said when it was read may be over. */
  async #prove(): Promise<void> {
    const { kinds, row } = this.#in
    const now = await kinds.tables.shard(row.pipeline, row.id)
    if (now?.state !== 'stored' || now.eof !== 1) throw left('not-stored', 'it is not stored')
    const index = await kinds.index()
    const there = await index.countRange(shardRange(row.pipeline, row.id))
    if (there !== now.published || now.published + now.quarantined !== now.records)
      throw left('not-proven', `the index has ${there} of its ${now.records} records`)
  }

  /** Undefined where nothing is there. Fails where it is something else. */
  async #current(): Promise<ObjectHead | undefined> {
    const { store, row, job } = this.#in
    const head = await store.head(row.uri, job.signal)
    if (head && head.version.id !== row.version) throw left('replaced', 'it is another version now')
    return head
  }

  /** The time of its last change is part of a file's version: what is quiet now is so until it is another one. */
  #checkQuiet({ modifiedAtMs }: ObjectHead): void {
    const { store, kinds } = this.#in
    if (store.scheme !== 'file') return
    const nowMs = kinds.clock.now()
    const afterMs = (modifiedAtMs ?? nowMs) + QUIET_MS - nowMs
    if (afterMs > 0) throw new NotQuiet(Math.min(Math.ceil(afterMs), QUIET_MS))
  }

  // --- Copies ------------------------------------------------------------------------------------------------------

  /** Below the folder or bucket that it came from. */
  #name(): string {
    const { row, config } = this.#in
    const root = config.queue.kind === 'folder' ? `file://${config.queue.path}/` : undefined
    if (root !== undefined && row.uri.startsWith(root)) return row.uri.slice(root.length)
    return row.uri.replace(/^[a-z0-9]+:\/\/[^/]*\//, '')
  }

  /** Answers where it is. A name that something else has is left to it; an earlier try may have made the copy. */
  async #copy(current: ObjectHead, to: string): Promise<string> {
    const { row } = this.#in
    for (const name of [to, `${to}.${row.id.slice(0, 12)}`]) {
      if (await this.#copied(current, name)) return name
    }
    throw left('target-exists', `there is something at ${to} already`)
  }

  async #copied(current: ObjectHead, to: string): Promise<boolean> {
    const { store, row } = this.#in
    try {
      await store.copy!(row.uri, current.version, to)
    } catch (thrown) {
      if (asTidemarkError(thrown).code !== 'target-exists') throw thrown
      return this.#isSame(current, to)
    }
    if (await this.#isSame(current, to)) return true
    throw left('not-copied', `what was copied to ${to} is not the same`)
  }

  /** By size, and by what the store says of the bytes; read and compared where it says nothing that helps. */
  async #isSame(current: ObjectHead, to: string): Promise<boolean> {
    const { store, row, job } = this.#in
    const there = await store.head(to, job.signal)
    if (!there || there.sizeBytes !== current.sizeBytes) return false
    if (there.version.id === current.version.id) return true
    if (there.hash !== undefined && there.hash === current.hash) return true
    return (await this.#hash(row.uri, current.version)) === (await this.#hash(to, there.version))
  }

  async #hash(uri: string, version: ObjectVersion): Promise<string> {
    const { store, job } = this.#in
    const hash = createHash('sha256')
    const body = await store.read(uri, { version, fromByte: 0, signal: job.signal })
    for await (const chunk of body.bytes) {
      hash.update(chunk)
      job.progress({ label: uri })
    }
    return hash.digest('hex')
  }

  async #checkCopy(to: string, version: string): Promise<void> {
    const there = await this.#in.store.head(to, this.#in.job.signal)
    if (there?.version.id !== version) throw left('not-copied', `${to} is not the copy any more`)
  }
}

function gone(): TidemarkError {
  return left('gone', 'it is not there any more')
}
