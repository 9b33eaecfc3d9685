/** Bad items: what would not work, and trying it again. */
import { z } from 'zod'
import { nameText, pageOfRows, readCursor, streamId } from '../../app/inputs.ts'
import { notFound, ProblemError } from '../../app/problem.ts'
import { route } from '../../app/route.ts'
import {
  already,
  type BadView,
  badSchema,
  cursorQuery,
  type DoneView,
  done,
  doneSchema,
  pageOf,
} from '../../app/schemas.ts'
import type { Services } from '../../app/services.ts'
import { badView } from '../../app/state-views.ts'
import { formatCount } from '../../base/format.ts'
import { plural } from '../../base/wording.ts'
import { PAGE_MAX } from '../../ledger/queries.ts'

const IDS_MAX = 1_000
/** Items in a transaction. */
const RETRY_BATCH = 500
/** Of all items at once; whoever has more asks again. */
const RETRIED_MAX = 100_000

const listBad = route('GET /api/bad', {
  tag: 'bad items',
  summary: 'Items that would not work, each with its reason',
  query: z.object({ ...cursorQuery, stream: nameText.optional().describe('Only items of this stream') }),
  errors: [404],
  answer: pageOf(badSchema),
  handle: async ({ query }, services) => badPage(services, query),
})

type BadQuery = { stream?: string | undefined; limit: number; cursor?: string | undefined }

export async function badPage(
  services: Services,
  { stream, limit, cursor }: BadQuery,
): Promise<{ items: BadView[]; next: string | null }> {
  if (stream !== undefined) await streamId(services, stream)
  const after = readCursor(cursor)
  const rows = await services.ledger.badItems({
    limit: limit + 1,
    ...(stream === undefined ? {} : { stream }),
    ...(after === undefined ? {} : { after }),
  })
  return pageOfRows(rows, { limit, view: badView, cursor: ({ id }) => id })
}

export const retryBody = z.strictObject({
  ids: z.array(z.int().min(1)).min(1).max(IDS_MAX).optional().describe('The numbers of bad items'),
  stream: nameText.optional().describe('All of this stream; not together with `ids`'),
})

const retryBad = route('POST /api/bad/retry', {
  tag: 'bad items',
  summary: 'Enqueues a job for each of these items; for all of a stream, or for all, where none is named',
  description: '`already`: each is being tried again, or there is none. 404: none of the items is there.',
  errors: [404],
  body: retryBody,
  answer: doneSchema,
  handle: async ({ body }, services) => retryItems(services, body),
})

export async function retryItems(
  services: Services,
  { ids, stream }: z.output<typeof retryBody>,
): Promise<DoneView> {
  if (ids !== undefined && stream !== undefined) {
    throw new ProblemError(400, 'Name items or a stream, not both.', { code: 'invalid-request' })
  }
  if (stream !== undefined) await streamId(services, stream)
  const found = ids === undefined ? await allItems(services, stream) : await existing(services, ids)
  if (ids !== undefined && found.length === 0) {
    throw notFound(`There is no bad item #${ids[0]}.`, { code: 'bad-item-unknown' })
  }
  const enqueued = await enqueue(services, found)
  if (enqueued > 0) {
    const items = `${formatCount(enqueued)} ${plural(enqueued, 'item is', 'items are')}`
    return done(`${items} tried again.`)
  }
  const text =
    found.length === 0
      ? 'There are no bad items.'
      : `${plural(found.length, 'It is', 'They are')} being tried again already.`
  return already(text)
}

async function enqueue(services: Services, ids: readonly number[]): Promise<number> {
  const { ledger, engine } = services
  let enqueued = 0
  for (let at = 0; at < ids.length; at += RETRY_BATCH) {
    enqueued += await ledger.retryBad({ ids: ids.slice(at, at + RETRY_BATCH) }, 'interactive')
  }
  engine.wake()
  return enqueued
}

async function existing({ ledger }: Services, ids: readonly number[]): Promise<number[]> {
  const found: number[] = []
  for (const id of new Set(ids)) {
    const [row] = await ledger.badItems({ after: id - 1, limit: 1 })
    if (row?.id === id) found.push(id)
  }
  return found
}

async function allItems({ ledger }: Services, stream: string | undefined): Promise<number[]> {
  const found: number[] = []
  while (found.length < RETRIED_MAX) {
    const after = found.at(-1)
    const page = await ledger.badItems({
      limit: PAGE_MAX,
      ...(stream === undefined ? {} : { stream }),
      ...(after === undefined ? {} : { after }),
    })
    for (const { id } of page) found.push(id)
    if (page.length < PAGE_MAX) break
  }
  return found
}

export const badRoutes = [listBad, retryBad]
