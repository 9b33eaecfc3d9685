/** changes.*: what happened since a token, to a user or in a shared drive. */
import type { Selection } from '../google/fields.ts'
import type { SimAnswer } from '../server.ts'
import type { Change, ChangeLog } from './change-log.ts'
import { badRequest, invalidParameter } from './errors.ts'
import { driveJson, fileJson } from './file-json.ts'
import { isTrue, pageSize } from './listing.ts'
import {
  answer,
  emptyPageToken,
  pageQuery,
  type RouteContext,
  type RouteTable,
  visibleDrive,
} from './route.ts'

const drivesParameters = ['driveId', 'teamDriveId', 'supportsAllDrives', 'supportsTeamDrives'] as const

export const changeRoutes: RouteTable = {
  'GET changes/startPageToken': {
    name: 'changes.getStartPageToken',
    need: 'metadata',
    shape: 'other',
    parameters: drivesParameters,
    run: (context) =>
      answer(context, { kind: 'drive#startPageToken', startPageToken: String(logOf(context).next) }),
  },
  'GET changes': {
    name: 'changes.list',
    need: 'metadata',
    shape: 'changes',
    parameters: [
      ...drivesParameters,
      'pageToken',
      'pageSize',
      'spaces',
      'includeCorpusRemovals',
      'includeItemsFromAllDrives',
      'includeLabels',
      'includePermissionsForView',
      'includeRemoved',
      'includeTeamDriveItems',
      'restrictToMyDrive',
    ],
    run: list,
  },
}

const PAGE_DEFAULT = 100
const PAGE_MAX = 1000

function driveIdOf({ call: { query } }: RouteContext): string | null {
  return query.get('driveId') ?? query.get('teamDriveId')
}

function logOf(context: RouteContext): ChangeLog {
  const drive = driveIdOf(context)
  if (drive === null) return context.world.log({ user: context.user.address })
  if (!isTrue(context.call.query, 'supportsAllDrives', 'supportsTeamDrives')) {
    throw badRequest('The driveId parameter requires supportsAllDrives.', 'invalid')
  }
  visibleDrive(context, drive)
  return context.world.log({ drive })
}

function list(context: RouteContext): SimAnswer {
  const empty = emptyPageToken(context)
  const query = pageQuery(context)
  const token = query.get('pageToken')
  if (token === null) throw badRequest('Required parameter: pageToken', 'required')
  if (empty !== undefined) {
    return answer(context, { kind: 'drive#changeList', nextPageToken: empty, changes: [] })
  }
  const size = pageSize(query, { max: PAGE_MAX, byDefault: PAGE_DEFAULT })
  const page = logOf(context).page(token, size)
  if (!page) throw invalidParameter('pageToken')
  const { selection } = context
  const wanted = selection === undefined ? undefined : (selection.changes ?? selection['*'])
  const below = wanted === true ? undefined : wanted
  const changes = page.changes.flatMap((change) => changeJson(context, change, below) ?? [])
  return answer(context, {
    kind: 'drive#changeList',
    ...(page.isLast ? { newStartPageToken: String(page.next) } : { nextPageToken: String(page.next) }),
    changes,
  })
}

/** Undefined where the caller did not ask for changes of this kind. */
function changeJson(
  context: RouteContext,
  { kind, id, atMs }: Change,
  wanted: Selection | undefined,
): Record<string, unknown> | undefined {
  const { world, user, call } = context
  const { query } = call
  const withDrives = isTrue(query, 'includeItemsFromAllDrives', 'includeTeamDriveItems')
  const time = new Date(atMs).toISOString()
  const head = { kind: 'drive#change', type: kind, changeType: kind, time }
  const item = world.items.get(id)
  const access = item && world.access(user, item)
  if (kind === 'drive') {
    if (query.get('restrictToMyDrive') === 'true' || !withDrives) return undefined
    const change = { ...head, removed: !access, driveId: id, teamDriveId: id }
    return item && access ? { ...change, drive: driveJson(item, access) } : removedOrNot(query, change)
  }
  const isElsewhere = item !== undefined && driveIdOf(context) !== null && item.driveId !== driveIdOf(context)
  if (!item || !access || isElsewhere) return removedOrNot(query, { ...head, removed: true, fileId: id })
  if (item.driveId !== undefined && !withDrives) return undefined
  const selection = wanted === undefined ? undefined : (wanted.file ?? wanted['*'])
  const isAsked = wanted === undefined || selection !== undefined
  return {
    ...head,
    removed: false,
    fileId: id,
    ...(isAsked ? { file: fileJson({ item, access, user, world, origin: call.origin }, selection) } : {}),
  }
}

function removedOrNot<Change>(query: URLSearchParams, change: Change): Change | undefined {
  return query.get('includeRemoved') === 'false' ? undefined : change
}
