/**
 * How an app's documents come into the one index, as documents of their owner: written once for mail, files and
 * whatever has no crawl of its own.
 *
 *   the app's own commit ── want(tx, refs) ──▶ search_wanted
 *                                                  │ <app>.index, a batch at a time
 *                                                  ▼
 *                              offer.read(ref) ▸ extract ▸ chunk ▸ publish, grant, no longer wanted: one transaction
 *
 * Vectors follow by themselves (search.embed): reading keeps up with the sync, embedding may take hours. What dies
 * between two steps costs a second reading: a document is wanted until it is published.
 */
import { z } from 'zod'
import { asTidemarkError, TidemarkError } from '../base/errors.ts'
import { plural } from '../base/wording.ts'
import {
  defineJob,
  type JobKind,
  type JobRequest,
  type Outcome,
  type RunContext,
  request,
} from '../engine/index.ts'
import type { Tx } from '../ledger/contract.ts'
import { type ReadBytes, type ReadContent, readContent } from '../search/content.ts'
import type { DocumentRef, IndexWriter, NewDocument } from '../search/contract.ts'
import { CONTENT_GONE } from '../search/index/writer.ts'
import { FIRST_WALK, type Walk, type Wanted, type WantedDocuments, type WantedOf } from '../search/wanted.ts'
import type { SearchHandle } from './search.ts'

/** What an app says of one of its documents; what is in it is read here. */
export type OfferedDocument = Omit<NewDocument, 'content' | 'unread' | 'source' | 'ref' | 'parent'> & {
  /** Undefined for the document itself; for those that are a part of it, which one. */
  part?: string
  /** Only its name is to be found, and why, or what it consists of. */
  body: ReadBytes | { unread: { code: string; reason: string } }
}

/** `version`: by which a change is known. */
export type OfferedId = { id: string; version: string }

/** A unit is what a job works on at a time: a mailbox, a folder. Ids are unique within one. */
export type DocumentOffer = {
  /** The app's name. */
  source: string
  /** The account by which its documents are seen. */
  owner(unit: string): Promise<{ principal: string } | 'elsewhere' | 'unknown'>
  /** Another one as soon as anything may have changed; what is compared on a schedule is compared only then. */
  stamp(unit: string): Promise<string>
  /** All that a unit has, page by page: `next` is where the next page begins, null at the end. */
  all(
    unit: string,
    after: string | null,
    signal: AbortSignal,
  ): Promise<{ ids: readonly OfferedId[]; next: string | null }>
  /** Which of these it has. */
  has(unit: string, ids: readonly string[]): Promise<ReadonlySet<string>>
  /** A document, and behind it its parts (attachments), which stay the same. Undefined where it is gone. */
  read(unit: string, id: string, signal: AbortSignal): Promise<readonly OfferedDocument[] | undefined>
}

export type Indexing = {
  kind: JobKind<IndexPayload>
  /** In the transaction in which the app writes what the documents are about. */
  want(tx: Tx, unit: string, ids: readonly string[]): Promise<void>
  /** The job that reads what is wanted, for the outcome in which it is. */
  request(unit: string): JobRequest
}

export type IndexingParts = {
  offer: DocumentOffer
  wanted: WantedDocuments
  search: SearchHandle
}

/** Read and published together; one that fails costs the others nothing. */
const BATCH = 25
/** After so many batches others get their turn. */
const BATCHES_MAX = 40
const WALK_PAGES_MAX = 20
const BACK_PAGE = 500
const ELSEWHERE_MS = 5_000
const FORGET_PAGE = 100
const FORGET_PAGES_MAX = 50
const LOWEST_PRIORITY = -100

/** `compare`: what the app has and what the index has are compared as a whole, too. */
const IndexPayload = z.object({ unit: z.string(), compare: z.boolean().optional() })
type IndexPayload = z.output<typeof IndexPayload>

export function defineIndexing(parts: IndexingParts): Indexing {
  const { offer, wanted } = parts
  const kind = defineJob({
    kind: `${offer.source}.index`,
    payload: IndexPayload,
    // What is wanted by a commit has a job of that commit: one that was there already may just have looked.
    key: ({ unit, compare }) => (compare ? unit : undefined),
    lane: 'bulk',
    priority: LOWEST_PRIORITY,
    concurrency: 1,
    describe: { verb: 'reading into the index', noun: 'source' },
    run: (job) => runIndexing(parts, job),
  })
  return {
    kind,
    request: (unit) => request(kind, { unit }),
    want: (tx, unit, ids) => wanted.want(tx, { source: offer.source, unit }, ids),
  }
}

async function runIndexing(parts: IndexingParts, job: RunContext<IndexPayload>): Promise<Outcome> {
  const { offer, wanted } = parts
  const { unit } = job.payload
  const owner = await offer.owner(unit)
  if (owner === 'unknown') return forget(parts, job)
  if (owner === 'elsewhere')
    return { again: { afterMs: ELSEWHERE_MS }, note: 'left to the machine that has it' }
  const writer = await parts.search.open()
  await writer.prepare()
  const place: Indexed = {
    ...parts,
    of: { source: offer.source, unit },
    principal: owner.principal,
    writer,
  }
  const isCompared = await compare(place, job)
  let read = 0
  for (let batch = 0; batch < BATCHES_MAX; batch++) {
    const next = await wanted.next(place.of, BATCH)
    if (next.length === 0 && isCompared) return { note: `${read} ${plural(read, 'document')} read` }
    if (next.length === 0) break
    await indexBatch(place, job, next)
    read += next.length
    job.progress({ done: read, unit: 'items' })
  }
  return {
    again: {},
    checkpoint: job.checkpoint,
    note: `${read} ${plural(read, 'document')} read, and more to come`,
  }
}

/** A mailbox or folder that is kept up to date no more: what was read of it goes, page by page. */
async function forget(
  { offer, wanted, search }: IndexingParts,
  job: RunContext<IndexPayload>,
): Promise<Outcome> {
  const of = { source: offer.source, unit: job.payload.unit }
  const prefix = refOf(of, '')
  const writer = await search.open()
  await writer.prepare()
  for (let page = 0; page < FORGET_PAGES_MAX; page++) {
    const found = await writer.refs({ source: of.source, after: prefix, limit: FORGET_PAGE })
    const refs = found.filter((ref) => ref.startsWith(prefix))
    if (refs.length === 0) {
      return {
        effects: (tx) => wanted.forget(tx, of),
        skip: 'it is not kept up to date any more',
        code: 'unknown-unit',
      }
    }
    await job.commit({
      effects: async (tx) => {
        for (const ref of refs) await writer.remove(tx, { source: of.source, ref })
      },
    })
  }
  return { again: {} }
}

type Indexed = IndexingParts & { of: WantedOf; principal: string; writer: IndexWriter }

/** Goes on with a comparison that is under way, or begins the one that is asked for. Answers whether none is left. */
async function compare(place: Indexed, job: RunContext<IndexPayload>): Promise<boolean> {
  const { wanted, offer, of } = place
  if (job.payload.compare && job.checkpoint === null) {
    const stamp = await offer.stamp(of.unit)
    const now = await wanted.walk(of)
    const isDue = now.phase === 'over' && now.stamp !== stamp
    await job.commit({
      checkpoint: { compares: true },
      effects: async (tx) => {
        if (isDue) await wanted.noteWalk(tx, of, { ...FIRST_WALK, stamp })
      },
    })
  }
  for (let page = 0; page < WALK_PAGES_MAX; page++) {
    const now = await wanted.walk(of)
    if (now.phase === 'over') return true
    const { ids, walk } = now.phase === 'forth' ? await forth(place, now, job.signal) : await back(place, now)
    await job.commit({
      checkpoint: { compares: true },
      effects: async (tx) => {
        await wanted.want(tx, of, ids)
        await wanted.noteWalk(tx, of, walk)
      },
    })
  }
  return (await wanted.walk(of)).phase === 'over'
}

type WalkStep = { ids: readonly string[]; walk: Walk }

/** What the app has, and the index has not, or not as it is now. */
async function forth({ offer, writer, of }: Indexed, now: Walk, signal: AbortSignal): Promise<WalkStep> {
  const { ids, next } = await offer.all(of.unit, now.cursor, signal)
  const refs = ids.map(({ id }) => refOf(of, id))
  const known = await writer.versions(of.source, refs)
  return {
    ids: ids.filter(({ id, version }) => known.get(refOf(of, id)) !== version).map(({ id }) => id),
    walk: next === null ? { ...now, phase: 'back', cursor: null } : { ...now, cursor: next },
  }
}

/** What the index has, and the app has not any more. */
async function back({ offer, writer, of, principal }: Indexed, now: Walk): Promise<WalkStep> {
  const prefix = refOf(of, '')
  const after = now.cursor ?? prefix
  const refs = await writer.refs({ source: of.source, principal, after, limit: BACK_PAGE })
  const ids = refs.filter((ref) => ref.startsWith(prefix)).map((ref) => ref.slice(prefix.length))
  const there = await offer.has(of.unit, ids)
  const isLast = ids.length < BACK_PAGE
  return {
    ids: ids.filter((id) => !there.has(id)),
    walk: isLast ? { ...now, phase: 'over', cursor: null } : { ...now, cursor: refs.at(-1)! },
  }
}

/** `Documents/01ABC`: the refs of a unit stand together, and those of a part behind its document. */
function refOf({ unit }: WantedOf, id: string): string {
  return `${encodeURIComponent(unit)}/${id}`
}

type Prepared = {
  one: Wanted
  /** None where it is gone. */
  documents: readonly NewDocument[]
  hasFailed: boolean
}

async function indexBatch(
  place: Indexed,
  job: RunContext<IndexPayload>,
  batch: readonly Wanted[],
): Promise<void> {
  const { wanted, writer, of, principal } = place
  const prepared: Prepared[] = []
  for (const one of batch) prepared.push(await prepare(place, one, job.signal))
  // What is gone goes last: what has come in another place may have its bytes, and need not be read again.
  prepared.sort((one, other) => Number(isGone(one)) - Number(isGone(other)))
  await job.commit({
    effects: async (tx) => {
      for (const { one, documents, hasFailed } of prepared) {
        // Another process may have seen to a newer one meanwhile: what was read here is old then.
        if (!(await wanted.hold(tx, of, one))) continue
        if (hasFailed) {
          await wanted.failed(tx, of, one)
          continue
        }
        if (documents.length === 0) {
          await writer.revoke(tx, { source: of.source, ref: refOf(of, one.id) }, principal)
        }
        if (await publishAll(writer, tx, principal, documents)) await wanted.done(tx, of, one)
      }
    },
  })
}

function isGone({ documents, hasFailed }: Prepared): boolean {
  return documents.length === 0 && !hasFailed
}

/**
 * False where a content that was to be shared has gone since it was looked for, with a document of this batch or of
 * somebody else: nothing of that document is written then, and the next batch reads its bytes.
 */
async function publishAll(
  writer: IndexWriter,
  tx: Tx,
  principal: string,
  documents: readonly NewDocument[],
): Promise<boolean> {
  try {
    for (const document of documents) await publish(writer, tx, principal, document)
    return true
  } catch (thrown) {
    if (thrown instanceof TidemarkError && thrown.code === CONTENT_GONE) return false
    throw thrown
  }
}

async function prepare(place: Indexed, one: Wanted, signal: AbortSignal): Promise<Prepared> {
  try {
    const offered = await place.offer.read(place.of.unit, one.id, signal)
    const documents: NewDocument[] = []
    for (const document of offered ?? []) documents.push(await readOffered(place, one, document, signal))
    return { one, documents, hasFailed: false }
  } catch (thrown) {
    if (signal.aborted || asTidemarkError(thrown).kind === 'bug') throw thrown
    return { one, documents: [], hasFailed: true }
  }
}

async function readOffered(
  { of, writer, search }: Indexed,
  { id }: Wanted,
  { body, part, ...about }: OfferedDocument,
  signal: AbortSignal,
): Promise<NewDocument> {
  const read: ReadContent =
    'unread' in body
      ? { content: undefined, unread: body.unread }
      : await readContent({ writer, extractor: search.extractor }, { ...body, title: about.title }, signal)
  const whole: DocumentRef = { source: of.source, ref: refOf(of, id) }
  return part === undefined
    ? { ...about, ...whole, ...read }
    : { ...about, source: of.source, ref: `${whole.ref}/${part}`, parent: whole, ...read }
}

async function publish(writer: IndexWriter, tx: Tx, principal: string, document: NewDocument): Promise<void> {
  await writer.publish(tx, document)
  await writer.grant(tx, document, principal, {
    kind: 'owner',
    via: 'own',
    generation: 0,
    expiresAtMs: null,
  })
}
