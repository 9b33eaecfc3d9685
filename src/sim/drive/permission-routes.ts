/** permissions.*: with whom an item or a shared drive is shared. Who cannot share it is told nothing (403). */
import type { SimAnswer } from '../server.ts'
import { type Access, canShare, type Grant, grantsOn } from './access.ts'
import { badRequest, fileNotFound, forbidden } from './errors.ts'
import { permissionJson, permissionsJson } from './file-json.ts'
import { type Item, type Permission, type Role, roles } from './item.ts'
import { isTrue, pageSize } from './listing.ts'
import {
  answer,
  demand,
  itemParameters,
  jsonObject,
  noContent,
  type RouteContext,
  type RouteTable,
  stringField,
  timeOf,
  visibleItem,
} from './route.ts'
import type { NewPermission } from './world.ts'

const shareParameters = [
  ...itemParameters,
  'emailMessage',
  'enforceExpansiveAccess',
  'moveToNewOwnersRoot',
  'sendNotificationEmail',
  'transferOwnership',
  'useDomainAdminAccess',
  'removeExpiration',
] as const

export const permissionRoutes: RouteTable = {
  'GET files/*/permissions': {
    name: 'permissions.list',
    need: 'metadata',
    shape: 'permissions',
    parameters: [...itemParameters, 'pageSize', 'pageToken', 'useDomainAdminAccess'],
    run: list,
  },
  'GET files/*/permissions/*': {
    name: 'permissions.get',
    need: 'metadata',
    shape: 'permission',
    parameters: [...itemParameters, 'useDomainAdminAccess'],
    run(context) {
      const { item } = sharable(context)
      return answer(context, permissionJson(context.world, item, grantsOf(item, context.ids[1]!)))
    },
  },
  'POST files/*/permissions': {
    name: 'permissions.create',
    need: 'write',
    shape: 'permission',
    parameters: shareParameters,
    run: create,
  },
  'PATCH files/*/permissions/*': {
    name: 'permissions.update',
    need: 'write',
    shape: 'permission',
    parameters: shareParameters,
    run: update,
  },
  'DELETE files/*/permissions/*': {
    name: 'permissions.delete',
    need: 'write',
    shape: 'other',
    parameters: shareParameters,
    run: remove,
  },
}

const PAGE_MAX = 100
const ROLES: readonly string[] = roles
const YEAR_MS = 366 * 86_400_000

/** Of a shared drive every member sees the members; of an item only who could share it. */
function sharable(context: RouteContext): { item: Item; access: Access } {
  const { item, access } = visibleItem(context)
  demand((item.isRoot && item.driveId !== undefined) || canShare(item, access))
  return { item, access }
}

function list(context: RouteContext): SimAnswer {
  const { item } = sharable(context)
  const { query } = context.call
  const all = permissionsJson(context.world, item)
  // In My Drive all of them come at once; in a shared drive in pages, if only to be sure.
  const size = pageSize(query, {
    max: PAGE_MAX,
    byDefault: item.driveId === undefined ? all.length : PAGE_MAX,
  })
  const from = all.findIndex(({ id }) => id === query.get('pageToken')) + 1
  const permissions = all.slice(from, from + size)
  return answer(context, {
    kind: 'drive#permissionList',
    ...(from + size < all.length ? { nextPageToken: permissions.at(-1)!.id } : {}),
    permissions,
  })
}

function grantsOf(item: Item, permissionId: string): Grant[] {
  const grants = grantsOn(item).filter(({ permission }) => permission.id === permissionId)
  if (grants.length === 0) throw fileNotFound(permissionId)
  return grants
}

function create(context: RouteContext): SimAnswer {
  const { world, user, call } = context
  const { item, access } = visibleItem(context)
  const isDrive = item.isRoot && item.driveId !== undefined
  demand(isDrive ? access.role === 'organizer' : canShare(item, access) && !item.isRoot)
  const input = readPermission(jsonObject(call.body), context.nowMs)
  if (input.role === 'owner') {
    demand(access.role === 'owner')
    if (!isTrue(call.query, 'transferOwnership')) {
      throw forbidden(
        'forbidden',
        'The transferOwnership parameter must be enabled when the permission role is owner.',
      )
    }
  }
  if (!isDrive && (input.role === 'organizer' || input.role === 'fileOrganizer')) {
    throw forbidden('cannotSetRoleOnNonSharedDriveItem', 'This role is of members of shared drives only.')
  }
  const made = world.share(item.id, input, user.address)
  return answer(context, permissionJson(world, item, grantsOf(item, made.id)))
}

function readPermission(body: Record<string, unknown>, nowMs: number): NewPermission {
  const type = stringField(body, 'type') as NewPermission['type']
  const role = stringField(body, 'role')
  if (!['user', 'group', 'domain', 'anyone'].includes(type))
    throw badRequest('The permission type field is required.', 'required')
  if (role === undefined || !ROLES.includes(role))
    throw badRequest('The permission role field is required.', 'required')
  const input: NewPermission = { type, role: role as Role }
  const email = stringField(body, 'emailAddress')
  const domain = stringField(body, 'domain')
  const expiresMs = timeOf(body, 'expirationTime')
  if (type === 'user' || type === 'group') {
    if (!email) throw badRequest('The emailAddress field is required for this type.', 'required')
    input.email = email
  }
  if (type === 'domain') {
    if (!domain) throw badRequest('The domain field is required for this type.', 'required')
    input.domain = domain
  }
  if (body.allowFileDiscovery === true) input.isDiscoverable = true
  if (expiresMs !== undefined) input.expiresMs = checkExpiry(input, expiresMs, nowMs)
  return input
}

function checkExpiry({ type }: Pick<Permission, 'type'>, expiresMs: number, nowMs: number): number {
  if (type !== 'user' && type !== 'group')
    throw forbidden('cannotSetExpiration', 'Expiration dates can only be set on user and group permissions.')
  if (expiresMs <= nowMs)
    throw forbidden('expirationDateNotAllowedInPast', 'Expiration dates cannot be in the past.')
  if (expiresMs > nowMs + YEAR_MS)
    throw forbidden('expirationDateTooFar', 'Expiration dates cannot be more than a year in the future.')
  return expiresMs
}

/** The permission itself, where it was given on this very item. */
function direct(item: Item, id: string): Permission {
  const [first] = grantsOf(item, id)
  if (first!.on !== item) throw forbidden('cannotModifyInheritedPermission')
  return first!.permission
}

function update(context: RouteContext): SimAnswer {
  const { world, call, nowMs } = context
  const { item, access } = visibleItem(context)
  demand(canShare(item, access))
  const permission = direct(item, context.ids[1]!)
  const body = jsonObject(call.body)
  const role = stringField(body, 'role')
  if (role !== undefined && !ROLES.includes(role)) throw badRequest('Invalid role.', 'invalid')
  if (role === 'owner')
    demand(access.role === 'owner' && isTrue(call.query, 'transferOwnership'), 'forbidden')
  const expiresMs = timeOf(body, 'expirationTime')
  world.changePermission(item.id, permission.id, {
    ...(role === undefined ? {} : { role: role as Role }),
    ...(expiresMs === undefined ? {} : { expiresMs: checkExpiry(permission, expiresMs, nowMs) }),
    ...(isTrue(call.query, 'removeExpiration') ? { expiresMs: undefined } : {}),
  })
  return answer(context, permissionJson(world, item, grantsOf(item, permission.id)))
}

/** Everybody may give up their own access. */
function remove(context: RouteContext): SimAnswer {
  const { world, user, ids } = context
  const { item, access } = visibleItem(context)
  const isOwn = ids[1] === user.permissionId
  demand(isOwn || canShare(item, access))
  const permission = direct(item, ids[1]!)
  if (permission.role === 'owner')
    throw forbidden('cannotRemoveOwner', 'The owner of a file cannot be removed.')
  world.unshare(item.id, permission.id)
  return noContent
}
