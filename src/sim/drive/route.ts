/** What a route of the Drive API is given, and what routes have in common. */
import type { FaultPlan } from '../faults.ts'
import { applyFields, type Selection } from '../google/fields.ts'
import type { Uploads } from '../google/uploads.ts'
import { jsonAnswer, type SimAnswer, type SimCall } from '../server.ts'
import type { Access } from './access.ts'
import { isFindable } from './access.ts'
import type { Counts } from './counts.ts'
import { badRequest, driveNotFound, fileNotFound, forbidden } from './errors.ts'
import { fileJson, type Shape } from './file-json.ts'
import type { Item, User } from './item.ts'
import { isTrue, type Listing } from './listing.ts'
import type { ScopeNeed } from './scopes.ts'
import type { DriveWorld } from './world.ts'

/** The file that is replaced, or none for a new one. */
export type DriveUploads = Uploads<{ fileId: string | undefined; mimeType: string | undefined }>

export type RouteContext = {
  world: DriveWorld
  listing: Listing
  uploads: DriveUploads
  counts: Counts
  user: User
  call: SimCall
  /** The `*` of the route's pattern, decoded. */
  ids: readonly string[]
  selection: Selection | undefined
  plan: FaultPlan | undefined
  isUpload: boolean
  nowMs: number
}

export type Route = {
  name: string
  need: ScopeNeed
  shape: Shape
  /** Of the query, beside those that every call takes. */
  parameters: readonly string[]
  run(context: RouteContext): SimAnswer
}

/** `GET files/*` → the route. */
export type RouteTable = Readonly<Record<string, Route>>

/** What calls about single items take. */
export const itemParameters = [
  'supportsAllDrives',
  'supportsTeamDrives',
  'includePermissionsForView',
  'includeLabels',
  'enforceSingleParent',
] as const

export const noContent: SimAnswer = { status: 204, headers: {}, body: '' }

export function answer({ selection }: RouteContext, value: unknown, status = 200): SimAnswer {
  return jsonAnswer(applyFields(value, selection), status)
}

export function fileAnswer(context: RouteContext, item: Item): SimAnswer {
  const { world, user, call, selection } = context
  const access = world.access(user, item)
  // A move may take away the mover's own access.
  if (!access)
    return answer(context, { kind: 'drive#file', id: item.id, name: item.name, mimeType: item.mimeType })
  return answer(context, fileJson({ item, access, user, world, origin: call.origin }, selection))
}

/** The item of the call, if it exists for the caller. */
export function visibleItem(context: RouteContext, id = context.ids[0]!): { item: Item; access: Access } {
  const { world, user, call } = context
  const item = world.items.get(id === 'root' ? user.rootId : id)
  const access = item && world.access(user, item)
  if (!item || !access) throw fileNotFound(id)
  if (item.driveId !== undefined && !isTrue(call.query, 'supportsAllDrives', 'supportsTeamDrives')) {
    throw fileNotFound(id)
  }
  const isByLink =
    !item.openedBy.has(user.address) && !access.through.some(({ permission }) => isFindable(permission))
  if (
    isByLink &&
    item.resourceKey !== undefined &&
    !keysOf(call).includes(`${item.id}/${item.resourceKey}`)
  ) {
    throw fileNotFound(id)
  }
  return { item, access }
}

function keysOf({ headers }: SimCall): string[] {
  return String(headers['x-goog-drive-resource-keys'] ?? '').split(',')
}

export function visibleDrive({ world, user }: RouteContext, id: string): { root: Item; access: Access } {
  const root = world.drives.get(id)
  const access = root && world.access(user, root)
  if (!root || !access) throw driveNotFound(id)
  return { root, access }
}

export function demand(isAllowed: boolean, reason = 'insufficientFilePermissions'): void {
  if (!isAllowed) throw forbidden(reason)
}

export function jsonObject(bytes: Buffer): Record<string, unknown> {
  if (bytes.length === 0) return {}
  try {
    const value: unknown = JSON.parse(bytes.toString('utf8'))
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>
  } catch {
    // Falls through to the same answer as JSON that is no object.
  }
  throw badRequest('Parse Error', 'parseError')
}

export function stringField(body: Record<string, unknown>, name: string): string | undefined {
  const value = body[name]
  if (value === undefined || value === null) return undefined
  if (typeof value === 'string') return value
  throw badRequest(`Invalid value for field ${name}.`, 'invalid')
}

export function timeOf(body: Record<string, unknown>, name: string): number | undefined {
  const text = stringField(body, name)
  const ms = text === undefined ? undefined : Date.parse(text)
  if (ms !== undefined && Number.isNaN(ms)) throw badRequest(`Invalid value for field ${name}.`, 'invalid')
  return ms
}

const EMPTY_PAGE_PREFIX = 'empty-'

/** The token of a page that has nothing on it but the way to the one that was asked for. */
export function emptyPageToken({ call, plan }: RouteContext): string | undefined {
  const token = call.query.get('pageToken') ?? ''
  if (!plan?.emptyPage || token.startsWith(EMPTY_PAGE_PREFIX)) return undefined
  return EMPTY_PAGE_PREFIX + token
}

/** The query of a call with the page that is meant. */
export function pageQuery({ call: { query } }: RouteContext): URLSearchParams {
  const token = query.get('pageToken') ?? ''
  if (!token.startsWith(EMPTY_PAGE_PREFIX)) return query
  const meant = new URLSearchParams(query)
  meant.set('pageToken', token.slice(EMPTY_PAGE_PREFIX.length))
  return meant
}
