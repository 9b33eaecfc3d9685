/** Delta: what changed since a token, in pages, and the links from one to the next. */
import { jsonAnswer, type SimAnswer } from '../server.ts'
import type { DeltaCursor, DeltaRow } from './change-log.ts'
import { GraphError, graphFault, invalid } from './errors.ts'
import { subtree } from './item.ts'
import { deltaPath, link, PAGE_ROWS, PAGE_ROWS_MAX, readToken, token, withoutTokens } from './listing.ts'
import { expansionsOf, notSupported, queryOption } from './query-options.ts'
import { isChosen, type Quirks } from './quirks.ts'
import {
  type GraphContext,
  type GraphRoutes,
  isShortcutShown,
  itemOf,
  pageSize,
  show,
  unsupported,
} from './route.ts'
import { isGiven, sharesOf } from './shares.ts'

export const deltaRoutes: GraphRoutes = {
  'GET item/delta': {
    name: 'graph.delta',
    need: 'read',
    options: ['select', 'expand', 'top', 'skiptoken', 'deltatoken'],
    run: delta,
  },
}

function delta(context: GraphContext): SimAnswer {
  return withdrawn(context) ?? deltaOf(context)
}

/** To a guest who is not let in any more it may look like deletions. */
function withdrawn(context: GraphContext): SimAnswer | undefined {
  const { sim, drive, call, address, guest } = context
  const start = address.item?.start
  const folder = start?.kind === 'id' ? drive.ever(start.id) : undefined
  if (!sim.quirks.withdrawnListsDeleted || !guest || !folder || sharesOf(guest, folder).length > 0)
    return undefined
  const items = [...subtree(folder)].filter((item) => item !== folder)
  const value = items.map((item) => show(context, item, { isDelta: true, isRow: true, isDeleted: true }))
  return jsonAnswer({ value, '@odata.deltaLink': `${call.origin}${call.path}?${call.query}` })
}

function deltaOf(context: GraphContext): SimAnswer {
  const { sim, drive, call, plan, address } = context
  const folder = itemOf(context)
  if (folder !== drive.root && !sim.quirks.folderDelta) {
    throw unsupported('view.delta can only be called on the root.')
  }
  const within = folder === drive.root ? {} : { within: folder }
  const given = call.query.get('token') ?? queryOption(call.query, 'deltatoken') ?? address.argument ?? null
  const more = expansionOf(context)
  const cursor = cursorOf(context, given)
  const { deltaLagMs } = sim.quirks
  const untilMs = deltaLagMs > 0 ? drive.nowMs - deltaLagMs : undefined
  if (given === 'latest') return jsonAnswer({ value: [], '@odata.deltaLink': deltaLink(context, cursor) })
  if (plan?.emptyPage) return jsonAnswer({ value: [], '@odata.nextLink': nextLink(context, cursor) })
  const rowsMax = pageSize(call.query, { byDefault: PAGE_ROWS, max: PAGE_ROWS_MAX })
  const page = drive.delta({ cursor, rowsMax, ...within, ...(untilMs === undefined ? {} : { untilMs }) })
  const rows = page.rows
    .filter(({ item }) => isShortcutShown(context, item))
    // What is not this guest's any more is deleted for him, as is what left the folder.
    .map((row) => (row.isDeleted || isGiven(context.guest, row.item) ? row : { ...row, isDeleted: true }))
  const value = arranged(rows, sim.quirks).map(({ item, isDeleted, isStale = false }) =>
    Object.assign(show(context, item, { isDelta: true, isRow: true, isDeleted, isStale }), more),
  )
  return jsonAnswer({
    '@odata.context': `${call.origin}/v1.0/$metadata#Collection(driveItem)`,
    ...(page.isLast
      ? { '@odata.deltaLink': deltaLink(context, page.cursor) }
      : { '@odata.nextLink': nextLink(context, page.cursor) }),
    value,
  })
}

/** What `$expand` adds to each row: of Personal the thumbnails, of which there are none, and nothing else. */
function expansionOf({ call, drive }: GraphContext): Record<string, unknown> {
  const names = expansionsOf(call.query).map(({ name }) => name)
  if (names.includes('permissions')) throw notSupported('Permission is not supported in this item.')
  if (names.length === 0) return {}
  if (drive.type === 'personal' && names.every((name) => name === 'thumbnails')) return { thumbnails: [] }
  const message = 'One of the provided arguments is not acceptable.'
  throw new GraphError(graphFault(400, { code: 'badArgument', message }))
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
  const query = withoutTokens(call.query)
  const rest = query.size === 0 ? '' : `?${query}`
  return `${call.origin}${deltaPath(context)}(token='${given}')${rest}`
}
