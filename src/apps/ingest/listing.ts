/**
 * Lists what a bucket has, page by page: what nobody announced is found so, and what was there before. When it is through,
 * its result are the books of the pipeline: every object that it showed is a shard, and every shard has one state. Bad ones
 * that it should have shown, and did not, are gone then, where the store knows nothing of that version either.
 */
import { asTidemarkError, TidemarkError } from '../../base/errors.ts'
import { formatCount } from '../../base/format.ts'
import type { ObjectPage } from '../../cloud/object-store.ts'
import type { Outcome, RunContext } from '../../engine/index.ts'
import { storableUri } from './envelope.ts'
import type { IngestKinds, PipelinePayload } from './kinds.ts'
import { pastObstacles } from './obstacles.ts'
import { foundByListing, preparePlacing } from './placing.ts'
import { versionOf } from './plan.ts'
import { isLeftOut } from './reach.ts'
import { objectLocks } from './store/locks.ts'
import { beginListing, endListing, moveListing, putPipeline } from './store/pipelines.ts'
import type { ShardRow } from './store/rows.ts'
import { listedUnseen, noteShown, tellGone, unlisted } from './store/shards.ts'

const PAGE = 1_000
const PAGES_MAX = 100_000
/** Then others of the pipeline have their turn. */
const PAGES_PER_RUN = 200
const GONE_PAGE = 100
const GONE_PAGES_MAX = 100_000
const ASKED_AT_ONCE = 8

export async function runListing(kinds: IngestKinds, job: RunContext<PipelinePayload>): Promise<Outcome> {
  const { pipeline } = job.payload
  const { config } = await kinds.pipelines.get(pipeline)
  if (config.location === null) return { skip: 'it has nothing to list', code: 'no-location' }
  const place = { pipeline, uri: config.location }
  return pastObstacles(kinds, job, place, () => list(kinds, job, config.location!, config.startAtMs))
}

async function list(
  kinds: IngestKinds,
  job: RunContext<PipelinePayload>,
  location: string,
  startAtMs: number | null,
): Promise<Outcome> {
  const { tables, clock, pipelines } = kinds
  const { pipeline } = job.payload
  const store = await pipelines.store(pipeline, location)
  let row = await tables.pipeline(pipeline)
  // Where another location is listed now, the cursor of the one before means nothing.
  if (row?.listing_at == null || row.listing_of !== location) {
    await job.commit({
      effects: async (tx) => {
        await putPipeline(tx, pipeline)
        await beginListing(tx, pipeline, { location, nowMs: clock.now() })
      },
    })
    row = (await tables.pipeline(pipeline))!
  }
  const of = { pipeline, generation: row.generation }
  let after = row.cursor === null ? null : keyOfCursor(row.cursor)
  let listed = row.listing_n
  for (let n = 0; n < Math.min(PAGES_PER_RUN, PAGES_MAX); n++) {
    const askedAtMs = clock.now()
    const page = await store.list({ prefix: location, after, max: PAGE, signal: job.signal })
    listed += await takePage(kinds, job, { of, page, askedAtMs, startAtMs })
    job.progress({ done: listed, unit: 'items', label: location })
    after = page.next
    if (after !== null) continue
    const gone = await tellAllGone(kinds, job, { of, location })
    return {
      note: `${formatCount(listed)} listed${gone === 0 ? '' : `, ${formatCount(gone)} bad ones gone`}`,
    }
  }
  return { again: {}, note: `${formatCount(listed)} listed, and more to come` }
}

type Listing = { pipeline: string; generation: number }

type Listed = {
  of: Listing
  page: ObjectPage
  askedAtMs: number
  startAtMs: number | null
}

/** Shards, their jobs, and where to go on: one transaction. Answers how many were listed. */
async function takePage(
  kinds: IngestKinds,
  job: RunContext<PipelinePayload>,
  { of, page, askedAtMs, startAtMs }: Listed,
): Promise<number> {
  const { config } = await kinds.pipelines.get(of.pipeline)
  const shown = page.objects.filter((one) => !isFolder(one))
  const objects = shown.filter((one) => !isLeftOut(config, one.uri))
  const isBefore = ({ modifiedAtMs }: ObjectPage['objects'][number]): boolean =>
    startAtMs !== null && modifiedAtMs !== null && modifiedAtMs < startAtMs
  const wanted = new Set(objects.filter((one) => !isBefore(one)))
  const passedOver = page.objects.filter((one) => !wanted.has(one)).map(({ uri }) => storableUri(uri))
  const prepared = await preparePlacing(kinds, of.pipeline, [...wanted].map(foundByListing), {
    listing: { generation: of.generation, askedAtMs },
  })
  await job.commit({
    jobs: prepared.jobs,
    locks: objectLocks(of.pipeline, [...prepared.found.map(({ uri }) => uri), ...passedOver]),
    effects: async (tx) => {
      await prepared.place(tx)
      if (passedOver.length > 0) await noteShown(tx, of, passedOver)
      const moved = {
        cursor: cursorOf(page.next),
        n: objects.length,
        before: objects.length - wanted.size,
        leftOut: shown.length - objects.length,
      }
      if ((await moveListing(tx, of, moved)) !== 1) throw begunAnew(of.pipeline)
      if (page.next === null) await endListing(tx, of)
    },
  })
  return objects.length
}

/** After the last page. Where this does not come to its end, the next listing does. Answers how many. */
async function tellAllGone(
  kinds: IngestKinds,
  job: RunContext<PipelinePayload>,
  { of, location }: { of: Listing; location: string },
): Promise<number> {
  const { driver } = kinds.tables.ledger
  let gone = 0
  let after = ''
  for (let page = 0; page < GONE_PAGES_MAX; page++) {
    const rows = await driver.read((tx) => unlisted(tx, of, { after, limit: GONE_PAGE }))
    const covered = rows.filter(({ uri }) => isCovered(location, uri))
    const unseen = await driver.read((tx) => listedUnseen(tx, of, covered.flatMap(hiddenBy)))
    const notListed = covered.filter((row) => !hiddenBy(row).some((uri) => unseen.has(uri)))
    const { away, isTold } = await askedInVain(kinds, job, notListed)
    if (away.length > 0) {
      let told = 0
      await job.commit({
        locks: objectLocks(
          of.pipeline,
          away.map(({ uri }) => uri),
        ),
        effects: async (tx) => {
          told = 0
          const when = { generation: of.generation, nowMs: kinds.clock.now() }
          for (const row of away) told += (await tellGone(tx, row, when)) ? 1 : 0
        },
      })
      gone += told
    }
    if (rows.length < GONE_PAGE || !isTold) break
    job.progress({ label: location })
    after = rows.at(-1)!.id
  }
  return gone
}

/**
 * A listing shows what is current: an older version may be there all the same, and whoever may not look is not told. A
 * folder keeps no older ones, so that what it does not list is not there. `isTold`: the store answered.
 */
async function askedInVain(
  { pipelines }: IngestKinds,
  { signal }: Pick<RunContext<PipelinePayload>, 'signal'>,
  rows: readonly ShardRow[],
): Promise<{ away: ShardRow[]; isTold: boolean }> {
  const ask = async (row: ShardRow): Promise<'away' | 'there' | 'silent'> => {
    if (isFile(row)) return 'away'
    try {
      const store = await pipelines.store(row.pipeline, row.uri)
      const { bytes } = await store.read(row.uri, { version: versionOf(row), fromByte: 0, signal })
      // What was not begun with cannot be left: its connection would stay.
      for await (const _ of bytes) break
      return 'there'
    } catch (thrown) {
      if (signal.aborted) throw thrown
      const { kind } = asTidemarkError(thrown)
      // Whatever else is wrong with it is no proof.
      return kind === 'gone' ? 'away' : kind === 'permanent' ? 'there' : 'silent'
    }
  }
  const away: ShardRow[] = []
  for (let from = 0; from < rows.length; from += ASKED_AT_ONCE) {
    const some = rows.slice(from, from + ASKED_AT_ONCE)
    const answers = await Promise.all(some.map(ask))
    away.push(...some.filter((_, at) => answers[at] === 'away'))
    if (answers.includes('silent')) return { away, isTold: false }
  }
  return { away, isTold: true }
}

function isFile({ uri }: Pick<ShardRow, 'uri'>): boolean {
  return uri.startsWith('file:')
}

/** A listing of this place would have shown it. Of a folder: what is below it. */
function isCovered(location: string, uri: string): boolean {
  const isFolder = location.startsWith('file://') && !location.endsWith('/')
  return uri.startsWith(isFolder ? `${location}/` : location)
}

/** A file of which nothing can be told, and folders above it that cannot be looked into, are listed as such. */
function hiddenBy(row: Pick<ShardRow, 'uri'>): string[] {
  const { uri } = row
  const slashes = [...uri.matchAll(/\//g)].map(({ index }) => index).slice(2)
  return [...(isFile(row) ? [uri] : []), ...slashes.map((at) => uri.slice(0, at + 1))]
}

/** As JSON: a key may have characters that no database keeps. */
function cursorOf(key: string | null): string | null {
  return key === null ? null : JSON.stringify(key)
}

function keyOfCursor(cursor: string): string {
  return cursor.startsWith('"') ? (JSON.parse(cursor) as string) : cursor
}

/** What consoles make to show folders: a key with a slash at its end, and nothing in it. */
function isFolder({ uri, sizeBytes }: ObjectPage['objects'][number]): boolean {
  return uri.endsWith('/') && sizeBytes === 0
}

function begunAnew(pipeline: string): TidemarkError {
  return new TidemarkError(`Another listing of ${pipeline} was begun meanwhile.`, {
    kind: 'transient',
    code: 'listing-anew',
  })
}
