/** Listings of items: pages in an order, and the links from one to the next. */
import { jsonAnswer, type SimAnswer } from '../server.ts'
import { invalid } from './errors.ts'
import type { Item } from './item.ts'
import { type Order, optionName, queryOption } from './query-options.ts'
import { type GraphContext, itemOf, pageSize } from './route.ts'

export const PAGE_ROWS = 200
export const PAGE_ROWS_MAX = 1_000

/**
 * By the value and name of the last row and not by its number: what is deleted meanwhile does not shift the next page.
 * `items` are in the order of their names.
 */
export function pageOf(
  context: GraphContext,
  items: readonly Item[],
  { order, row }: { order: Order; row: (item: Item) => Record<string, unknown> },
): SimAnswer {
  const { call, plan } = context
  const compare = comparison(order)
  const rows = items.map((item): Placed => ({ item, at: [order.value(item), item.key] }))
  rows.sort((a, b) => compare(a.at, b.at))
  const size = pageSize(call.query, { byDefault: PAGE_ROWS, max: PAGE_ROWS_MAX })
  const after = queryOption(call.query, 'skiptoken')
  if (plan?.emptyPage && after === undefined) {
    return jsonAnswer({ value: [], '@odata.nextLink': link(context, '$skiptoken', token('')) })
  }
  const last = after === undefined ? '' : readToken(after)
  const place = last === '' ? undefined : placeOf(last)
  const left = place ? rows.filter(({ at }) => compare(at, place) > 0) : rows
  const page = left.slice(0, size)
  const end = left.length > size ? page.at(-1) : undefined
  return jsonAnswer({
    '@odata.count': rows.length,
    ...(end ? { '@odata.nextLink': link(context, '$skiptoken', token(JSON.stringify(end.at))) } : {}),
    value: page.map(({ item }) => row(item)),
  })
}

type Place = readonly [value: string | number, key: string]
type Placed = { item: Item; at: Place }

function comparison({ isDescending }: Order): (a: Place, b: Place) => number {
  const sign = isDescending ? -1 : 1
  const plain = (a: string | number, b: string | number): number => (a < b ? -1 : a > b ? 1 : 0)
  return (a, b) => sign * (plain(a[0], b[0]) || plain(a[1], b[1]))
}

function placeOf(text: string): Place {
  try {
    const [value, key] = JSON.parse(text) as [unknown, unknown]
    if ((typeof value === 'string' || typeof value === 'number') && typeof key === 'string')
      return [value, key]
  } catch {
    // A token that was made up: the same answer as for one of another listing.
  }
  throw invalid('The provided token is invalid.')
}

export function link(context: GraphContext, name: string, value: string): string {
  const { call, address } = context
  const path = address.action === 'delta' ? deltaPath(context) : call.path
  const query = withoutTokens(call.query)
  query.set(name, value)
  return `${call.origin}${path}?${query}`
}

/** Of the drive, or of the folder that was asked for. */
export function deltaPath(context: GraphContext): string {
  const { drive } = context
  const folder = itemOf(context)
  const below = folder === drive.root ? 'root' : `items/${encodeURIComponent(folder.id)}`
  return `/v1.0/drives/${encodeURIComponent(drive.id)}/${below}/delta`
}

/** What is asked for besides the page. */
export function withoutTokens(query: URLSearchParams): URLSearchParams {
  const left = [...query].filter(([key]) => !['token', 'deltatoken', 'skiptoken'].includes(optionName(key)))
  return new URLSearchParams(left)
}

/** To the children that come after one of them. */
export function childrenLink({ call, drive }: GraphContext, folder: Item, last: Item): string {
  const path = `/v1.0/drives/${encodeURIComponent(drive.id)}/items/${encodeURIComponent(folder.id)}/children`
  return `${call.origin}${path}?$skiptoken=${token(JSON.stringify([last.key, last.key]))}`
}

export function token(text: string): string {
  return Buffer.from(`t;${text}`).toString('base64url')
}

export function readToken(given: string): string {
  const text = Buffer.from(given, 'base64url').toString('utf8')
  if (!text.startsWith('t;')) throw invalid('The provided token is invalid.')
  return text.slice(2)
}
