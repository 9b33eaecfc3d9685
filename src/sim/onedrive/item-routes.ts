/** Items and drives: look at them, make folders, rename, move, delete, restore, copy. */
import { jsonAnswer, type SimAnswer } from '../server.ts'
import { parseReferencePath } from './address.ts'
import type { CopyMonitors } from './copy-monitors.ts'
import { GraphError, graphFault, invalid, notFound } from './errors.ts'
import { showExpanded } from './expand.ts'
import { type Item, sortedChildren } from './item.ts'
import { eTagOf, showDriveId } from './item-json.ts'
import { pageOf } from './listing.ts'
import { filterOf, orderOf } from './query-options.ts'
import {
  checkFreshParent,
  checkPrecondition,
  chosen,
  conflictOf,
  type GraphContext,
  type GraphRoutes,
  headerTag,
  isShortcutShown,
  itemAnswer,
  itemOf,
  jsonBody,
  noContent,
  timesOf,
} from './route.ts'
import { checkGuest, isGiven } from './shares.ts'

export function itemRoutes(monitors: CopyMonitors): GraphRoutes {
  return {
    'GET drive/': {
      name: 'graph.drive.get',
      need: 'read',
      run: (context) => jsonAnswer(chosen(driveJson(context), context.call.query)),
    },
    'GET item/': { name: 'graph.items.get', need: 'read', options: ['select', 'expand'], run: getItem },
    'GET item/children': {
      name: 'graph.children',
      need: 'read',
      options: ['select', 'expand', 'filter', 'orderby', 'top', 'skiptoken'],
      run: listChildren,
    },
    'POST item/children': { name: 'graph.folder.create', need: 'write', run: createFolder },
    'PATCH item/': { name: 'graph.items.patch', need: 'write', run: patchItem },
    'DELETE item/': { name: 'graph.items.delete', need: 'write', run: deleteItem },
    'POST item/restore': { name: 'graph.items.restore', need: 'write', run: restoreItem },
    'POST item/copy': {
      name: 'graph.items.copy',
      need: 'write',
      run: (context) => copyItem(context, monitors),
    },
    'POST item/permanentDelete': { name: 'graph.items.purge', need: 'write', run: purgeItem },
  }
}

function listChildren(context: GraphContext): SimAnswer {
  const { call, drive } = context
  const folder = itemOf(context)
  const order = orderOf(call.query)
  const isWanted = filterOf(call.query, drive)
  if (!folder.children) return jsonAnswer({ value: [] })
  const shown = sortedChildren(folder).filter(
    (item) => isWanted(item) && isShortcutShown(context, item) && isGiven(context.guest, item),
  )
  return pageOf(context, shown, {
    order,
    row: (item) => showExpanded(context, item, { isRow: true }),
  })
}

export function driveJson({ drive, sim }: Pick<GraphContext, 'drive' | 'sim'>): Record<string, unknown> {
  const total = drive.quotaBytes
  const used = drive.usedBytes
  return {
    id: showDriveId(drive, sim.quirks),
    driveType: sim.site === undefined ? drive.type : 'documentLibrary',
    name: sim.site === undefined ? 'OneDrive' : sim.name,
    owner: { user: { displayName: drive.owner, email: drive.owner } },
    quota: {
      total,
      used,
      remaining: Math.max(0, total - used),
      deleted: drive.binBytes,
      state: used >= total ? 'exceeded' : used > total * 0.95 ? 'critical' : 'normal',
    },
  }
}

function getItem(context: GraphContext): SimAnswer {
  const item = itemOf(context)
  const { drive, call } = context
  const etag = headerTag(eTagOf(drive, item))
  const noneMatch = call.headers['if-none-match']
  const isKnown = noneMatch !== undefined && (noneMatch === '*' || noneMatch === etag)
  if (isKnown) return { status: 304, headers: { etag }, body: '' }
  return jsonAnswer(showExpanded(context, item), 200, { etag })
}

function createFolder(context: GraphContext): SimAnswer {
  const { drive, sim } = context
  const parent = itemOf(context)
  const body = jsonBody(context)
  if (typeof body.name !== 'string') throw invalid('The name is missing.')
  if (typeof body.folder !== 'object' || body.folder === null)
    throw invalid('Only folders can be created here.')
  checkFreshParent(context, parent)
  const conflict = conflictOf(context, body, 'fail')
  const { item, isNew } = drive.createFolder(parent, body.name, { conflict, times: timesOf(body) ?? {} })
  const status = isNew ? 201 : 200
  return sim.quirks.mkdirEmptyBody ? { status, headers: {}, body: '' } : itemAnswer(context, item, status)
}

function patchItem(context: GraphContext): SimAnswer {
  const { drive } = context
  const item = itemOf(context)
  const body = jsonBody(context)
  checkPrecondition(context, item)
  const { name } = body
  if (name !== undefined && typeof name !== 'string') throw invalid('Invalid name.')
  const parent =
    body.parentReference === undefined ? undefined : referredFolder(context, body.parentReference)
  const times = timesOf(body)
  if (parent) checkFreshParent(context, parent)
  drive.update(item, {
    ...(name === undefined ? {} : { name }),
    ...(parent === undefined ? {} : { parent }),
    ...(times === undefined ? {} : { times }),
    conflict: conflictOf(context, body, 'fail'),
  })
  return itemAnswer(context, item)
}

function referredFolder(context: GraphContext, reference: unknown): Item {
  const { drive } = context
  if (typeof reference !== 'object' || reference === null) throw invalid('Invalid parentReference.')
  const { id, path, driveId } = reference as Record<string, unknown>
  if (typeof driveId === 'string' && !isSameDrive(driveId, drive.id)) {
    throw new GraphError(graphFault(400, { message: 'Items cannot be moved to another drive.' }))
  }
  if (typeof id === 'string') {
    const folder = id === 'root' ? drive.root : drive.get(id)
    if (!folder) throw notFound('The destination could not be found.')
    checkGuest(drive, context.guest, folder)
    return folder
  }
  const names = typeof path === 'string' ? parseReferencePath(path) : undefined
  if (!names) throw invalid('Invalid parentReference.')
  const folder = drive.at(names)
  if (!folder) throw notFound('The destination could not be found.')
  checkGuest(drive, context.guest, folder)
  return folder
}

/** Drive ids come back without their zero or in other letters, and are taken that way, too. */
export function isSameDrive(a: string, b: string): boolean {
  if (a === b) return true
  const plain = (id: string): string =>
    /^b!/i.test(id) ? id.replace(/^B!/, 'b!') : id.toLowerCase().padStart(16, '0')
  return plain(a) === plain(b)
}

function deleteItem(context: GraphContext): SimAnswer {
  const item = itemOf(context)
  checkPrecondition(context, item)
  context.drive.delete(item)
  return noContent
}

function purgeItem(context: GraphContext): SimAnswer {
  const item = itemOf(context)
  checkPrecondition(context, item)
  context.drive.delete(item)
  context.drive.purge(item.id)
  return noContent
}

function restoreItem(context: GraphContext): SimAnswer {
  const { drive, address, guest } = context
  // The recycle bin is its owner's.
  if (guest) throw new GraphError(graphFault(403))
  const start = address.item?.start
  if (start?.kind !== 'id' || address.item?.isByPath) throw invalid('Restore needs the id of a deleted item.')
  const body = jsonBody(context)
  const parent =
    body.parentReference === undefined ? undefined : referredFolder(context, body.parentReference)
  const item = drive.restore(start.id, {
    ...(parent === undefined ? {} : { parent }),
    ...(typeof body.name === 'string' ? { name: body.name } : {}),
    conflict: conflictOf(context, body, 'fail'),
  })
  return itemAnswer(context, item)
}

/** The answer comes at once, the outcome is found at the monitor. */
function copyItem(context: GraphContext, monitors: CopyMonitors): SimAnswer {
  const { drive, urls, call } = context
  const item = itemOf(context)
  const body = jsonBody(context)
  const parent =
    body.parentReference === undefined ? item.parent : referredFolder(context, body.parentReference)
  if (!parent) throw invalid('The root folder cannot be copied.')
  const name = typeof body.name === 'string' ? body.name : item.name
  const conflict = conflictOf(context, body, 'fail')
  const id = monitors.begin(() => drive.copy(item, { parent, name, conflict }))
  return { status: 202, headers: { location: urls.monitor(call.origin, id) }, body: '' }
}
