/** The frontier of a stream as a picture: at most so many cells, however many segments there are. */
import { z } from 'zod'
import { streamParams, unknownStream } from '../../app/inputs.ts'
import { readCacheOf } from '../../app/ledger-read-cache.ts'
import { shownStreams } from '../../app/look.ts'
import { ProblemError } from '../../app/problem.ts'
import { route } from '../../app/route.ts'
import { type FrontierView, frontierSchema } from '../../app/schemas.ts'
import type { Services } from '../../app/services.ts'
import { CELLS_MAX, type FrontierCell, type FrontierOptions } from '../../ledger/overview-queries.ts'

const CELLS_DEFAULT = 400
const position = z.coerce.number().int().optional()
const PLACE = 'a place on the axis of the stream: seconds since the epoch where it is one of time'

const showFrontier = route('GET /api/streams/{name}/frontier', {
  etag: true,
  summary: 'What of a stream is settled, under way and waiting, in a few cells along it',
  params: streamParams,
  query: z.object({
    cells: z.coerce.number().int().min(1).max(CELLS_MAX).default(CELLS_DEFAULT).describe('How many at most'),
    from: position.describe(`Only what reaches beyond this: ${PLACE}`),
    to: position.describe(`Only what begins before this: ${PLACE}`),
  }),
  answer: frontierSchema,
  handle: async ({ params: { name }, query: { cells, from, to } }, services) => {
    const { ledger, clock } = services
    if (from !== undefined && to !== undefined && from >= to) {
      throw new ProblemError(400, '`from` must be smaller than `to`.', { code: 'invalid-request' })
    }
    const known = (await ledger.streamNames()).find((one) => one.name === name)
    if (!known) throw unknownStream(name)
    const key = `frontier ${known.id} ${cells} ${from} ${to}`
    const picture = { name, id: known.id, cells, from, to }
    return readCacheOf(ledger).read(key, clock, () => frontierView(services, picture))
  },
})

type Picture = { name: string; id: number } & FrontierOptions

async function frontierView(
  services: Services,
  { name, id, cells, from, to }: Picture,
): Promise<FrontierView> {
  const { ledger } = services
  const row = await ledger.stream(name)
  const [shown] = await shownStreams(services.apps, [row])
  const stream = shown ?? row
  const seen = await ledger.frontier(id, { cells, from, to })
  const first = seen.cells[0]
  const last = seen.cells.at(-1)
  return {
    stream: name,
    from: from ?? first?.from_at ?? stream.mark_at,
    to: to ?? last?.to_at ?? stream.tail_at,
    markAt: stream.mark_at,
    segments: seen.segments,
    cells: seen.cells.map(cellView),
  }
}

function cellView(cell: FrontierCell): FrontierView['cells'][number] {
  const { segments, settled, begun, listed, stored, gone, skipped, bad } = cell
  const state = settled === segments ? 'settled' : begun === 0 ? 'waiting' : 'active'
  return { from: cell.from_at, to: cell.to_at, segments, settled, state, listed, stored, gone, skipped, bad }
}

export const frontierRoutes = [showFrontier]
