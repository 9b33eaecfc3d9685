/** Streams, and the segments of one. */
import { z } from 'zod'
import { pageOfRows, readCursor, streamId, streamParams, unknownStream } from '../../app/inputs.ts'
import { route } from '../../app/route.ts'
import {
  cursorQuery,
  type Overview,
  pageOf,
  type StreamView,
  segmentSchema,
  streamSchema,
} from '../../app/schemas.ts'
import { segmentView } from '../../app/state-views.ts'
import { readOverview } from './overview.ts'

const listStreams = route('GET /api/streams', {
  etag: true,
  summary: 'All streams, with their counts, marks and pace',
  answer: z.object({ items: z.array(streamSchema) }),
  handle: async (_input, services) => streamList(await readOverview(services)),
})

/** The same for all who see the same overview, so that it is written down once: see etag.ts. */
const lists = new WeakMap<Overview, { items: StreamView[] }>()

function streamList(overview: Overview): { items: StreamView[] } {
  const list = lists.get(overview) ?? { items: overview.streams }
  lists.set(overview, list)
  return list
}

const showStream = route('GET /api/streams/{name}', {
  etag: true,
  summary: 'One stream',
  params: streamParams,
  answer: streamSchema,
  handle: async ({ params: { name } }, services) => {
    const stream = (await readOverview(services)).streams.find((one) => one.name === name)
    if (stream) return stream
    throw unknownStream(name)
  },
})

const listSegments = route('GET /api/streams/{name}/segments', {
  summary: 'The segments of a stream, in order',
  params: streamParams,
  query: z.object({
    ...cursorQuery,
    state: z
      .enum(['open', 'sealed', 'settled'])
      .optional()
      .describe('`open`: being listed. `sealed`: all of it is listed. `settled`: nothing is left to do'),
  }),
  answer: pageOf(segmentSchema),
  handle: async ({ params, query: { state, limit, cursor } }, services) => {
    const id = await streamId(services, params.name)
    const fromAt = readCursor(cursor)
    const rows = await services.ledger.segments(id, {
      limit: limit + 1,
      ...(fromAt === undefined ? {} : { fromAt }),
      ...(state === undefined ? {} : { state }),
    })
    return pageOfRows(rows, { limit, view: segmentView, cursor: ({ from_at }) => from_at + 1 })
  },
})

export const streamRoutes = [listStreams, showStream, listSegments]
