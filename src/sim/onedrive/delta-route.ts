/** Delta and listings: pages of items, and the links from one to the next. */
import { jsonAnswer, type SimAnswer } from '../server.ts'
import type { DeltaCursor, DeltaRow } from './change-log.ts'
import { GraphError, graphFault, invalid } from './errors.ts'
import { sortedChildren, subtree } from './item.ts'
import { isChosen, type Quirks } from './quirks.ts'
import { type GraphContext, type GraphRoutes, itemOf, pageSize, show, unsupported } from './route.ts'

export const PAGE_ROWS = 200
export const PAGE_ROWS_MAX = 1_000

export const listingRoutes: GraphRoutes = {
  'GET item/children': { name: 'graph.children', need: 'read', run: listChildren },
  'GET item/delta': { name: 'graph.delta', need: 'read', run: delta },
}

function listChildren(context: GraphContext): SimAnswer {
  const { call, plan } = context
  const folder = itemOf(context)
  if (!folder.children) return jsonAnswer({ value: [] })
  const order = (call.query.get('$orderby') ?? 'name asc').toLowerCase()
  const sorted = sortedChildren(folder)
  const isDescending = order.endsWith(' desc')
  const rows = isDescending ? [...sorted].reverse() : sorted
  const size = pageSize(call.query, { byDefault: PAGE_ROWS, max: PAGE_ROWS_MAX })
  const after = call.query.get('$skiptoken')
  const from = after === null ? 0 : firstAfter(rows, readToken(after), isDescending)
  if (plan?.emptyPage && after === null) {
    return jsonAnswer({ value: [], '@odata.nextLink': link(context, '$skiptoken', token('')) })
  }
  const page = rows.slice(from, from + size)
  const value = page.map((item) => show(context, item, { isRow: true }))
  const last = page.at(-1)
  if (from + size >= rows.length || !last) return jsonAnswer({ '@odata.count': rows.length, value })
  return jsonAnswer({
    '@odata.count': rows.length,
    '@odata.nextLink': link(context, '$skiptoken', token(last.key)),
    value,
  })
}

/** By name and not by number: what is deleted meanwhile does not shift the next page. */
function firstAfter(rows: readonly { key: string }[], key: string, isDescending: boolean): number {
  let low = 0
  let high = key === '' ? 0 : rows.length
  while (low < high) {
    const middle = (low + high) >> 1
    const isAfter = isDescending ? rows[middle]!.key < key : rows[middle]!.key > key
    if (isAfter) high = middle
    else low = middle + 1
  }
  return low
}

function delta(context: GraphContext): SimAnswer {
  const { sim, drive, call, plan, address } = context
  if (itemOf(context) !== drive.root) throw unsupported('Delta is supported for the root only.')
  const given = call.query.get('token') ?? call.query.get('$deltatoken') ?? address.argument ?? null
  const cursor = cursorOf(context, given)
  const { deltaLagMs } = sim.quirks
  const untilMs = deltaLagMs > 0 ? drive.nowMs - deltaLagMs : undefined
  if (given === 'latest') return jsonAnswer({ value: [], '@odata.deltaLink': deltaLink(context, cursor) })
  if (plan?.emptyPage) return jsonAnswer({ value: [], '@odata.nextLink': nextLink(context, cursor) })
  const rowsMax = pageSize(call.query, { byDefault: PAGE_ROWS, max: PAGE_ROWS_MAX })
  const page = drive.delta({ cursor, rowsMax, ...(untilMs === undefined ? {} : { untilMs }) })
  const value = arranged(page.rows, sim.quirks).map(({ item, isDeleted, isStale = false }) =>
    show(context, item, { isDelta: true, isRow: true, isDeleted, isStale }),
  )
  return jsonAnswer({
    '@odata.context': `${call.origin}/v1.0/$metadata#Collection(driveItem)`,
    ...(page.isLast
      ? { '@odata.deltaLink': deltaLink(context, page.cursor) }
      : { '@odata.nextLink': nextLink(context, page.cursor) }),
    value,
  })
}

/** The rows in the order and number in which the quirks have them. */
function arranged(rows: readonly DeltaRow[], quirks: Quirks): readonly DeltaRow[] {
  let found: readonly DeltaRow[] = rows
  if (quirks.deltaListsDeletedDescendants) {
    found = found.flatMap((row) =>
      row.isDeleted ? [...subtree(row.item)].map((item) => ({ item, isDeleted: true })) : [row],
    )
  }
  if (quirks.deltaParentsLast) found = [...found].reverse()
  if (quirks.deltaCreateBeforeDelete) {
    found = [...found.filter((row) => !row.isDeleted), ...found.filter((row) => row.isDeleted)]
  }
  if (quirks.deltaDuplicates) {
    found = [
      ...found
        .filter(({ item }) => item.parent && isChosen(item, 3, 5))
        .map(({ item }) => ({ item, isDeleted: false, isStale: true })),
      ...found,
    ]
  }
  return found
}

function cursorOf(context: GraphContext, given: string | null): DeltaCursor {
  const { sim, drive } = context
  if (given === null || given === '') return { seq: 0, fullUntil: drive.seq }
  if (given === 'latest') return { seq: drive.seq }
  const [generation, seq, fullUntil] = readToken(given).split('.')
  if (generation === undefined || seq === undefined || !/^\d+$/.test(seq)) {
    throw invalid('The provided token is invalid.')
  }
  if (Number(generation) !== sim.deltaGeneration) throw resync(context)
  return { seq: Number(seq), ...(fullUntil ? { fullUntil: Number(fullUntil) } : {}) }
}

function resync(context: GraphContext): GraphError {
  const code = context.sim.resyncKind
  const fresh = nextLink(context, { seq: 0, fullUntil: context.drive.seq })
  const message = 'The delta token is no longer valid. Resync required.'
  return new GraphError(
    graphFault(410, { code, innerCode: 'resyncRequired', message, headers: { location: fresh } }),
  )
}

function deltaToken({ sim }: GraphContext, { seq, fullUntil }: DeltaCursor): string {
  return token(`${sim.deltaGeneration}.${seq}.${fullUntil ?? ''}`)
}

function nextLink(context: GraphContext, cursor: DeltaCursor): string {
  return link(context, 'token', deltaToken(context, cursor))
}

/** The form differs from drive to drive, which nobody should notice. */
function deltaLink(context: GraphContext, cursor: DeltaCursor): string {
  const { drive, call } = context
  const given = deltaToken(context, cursor)
  if (drive.type === 'business') return link(context, 'token', given)
  const query = new URLSearchParams(call.query)
  for (const name of ['token', '$deltatoken']) query.delete(name)
  const rest = query.size === 0 ? '' : `?${query}`
  return `${call.origin}/v1.0/drives/${drive.id}/root/delta(token='${given}')${rest}`
}

function link({ call, drive, address }: GraphContext, name: string, value: string): string {
  const query = new URLSearchParams(call.query)
  for (const old of ['token', '$deltatoken', '$skiptoken']) query.delete(old)
  query.set(name, value)
  const path =
    address.action === 'delta' ? `/v1.0/drives/${encodeURIComponent(drive.id)}/root/delta` : call.path
  return `${call.origin}${path}?${query}`
}

function token(text: string): string {
  return Buffer.from(`t;${text}`).toString('base64url')
}

function readToken(given: string): string {
  const text = Buffer.from(given, 'base64url').toString('utf8')
  if (!text.startsWith('t;')) throw invalid('The provided token is invalid.')
  return text.slice(2)
}
