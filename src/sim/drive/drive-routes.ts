/** drives.*: the shared drives of which the caller is a member. */
import type { SimAnswer } from '../server.ts'
import { badRequest, forbidden, invalidParameter } from './errors.ts'
import { driveJson } from './file-json.ts'
import { isAtLeast } from './item.ts'
import { pageSize } from './listing.ts'
import {
  answer,
  demand,
  jsonObject,
  noContent,
  type RouteContext,
  type RouteTable,
  stringField,
  visibleDrive,
} from './route.ts'

export const driveRoutes: RouteTable = {
  'GET drives': {
    name: 'drives.list',
    need: 'metadata',
    shape: 'drives',
    parameters: ['pageSize', 'pageToken', 'q', 'useDomainAdminAccess'],
    run: list,
  },
  'GET drives/*': {
    name: 'drives.get',
    need: 'metadata',
    shape: 'drive',
    parameters: ['useDomainAdminAccess'],
    run(context) {
      const { root, access } = visibleDrive(context, context.ids[0]!)
      return answer(context, driveJson(root, access))
    },
  },
  'POST drives': {
    name: 'drives.create',
    need: 'write',
    shape: 'drive',
    parameters: ['requestId'],
    run: create,
  },
  'PATCH drives/*': {
    name: 'drives.update',
    need: 'write',
    shape: 'drive',
    parameters: ['useDomainAdminAccess'],
    run: update,
  },
  'DELETE drives/*': {
    name: 'drives.delete',
    need: 'write',
    shape: 'other',
    parameters: ['allowItemDeletion', 'useDomainAdminAccess'],
    run: remove,
  },
}

const PAGE_DEFAULT = 10
const PAGE_MAX = 100

function list(context: RouteContext): SimAnswer {
  const { world, user, call } = context
  const size = pageSize(call.query, { max: PAGE_MAX, byDefault: PAGE_DEFAULT })
  const mine = [...world.drives.values()]
    .flatMap((root) => {
      const access = world.access(user, root)
      return access ? [driveJson(root, access)] : []
    })
    .sort((a, b) => (String(a.id) < String(b.id) ? -1 : 1))
  const after = call.query.get('pageToken') ?? ''
  if (after !== '' && !world.items.has(after)) throw invalidParameter('pageToken')
  const rest = mine.filter(({ id }) => String(id) > after)
  const drives = rest.slice(0, size)
  return answer(context, {
    kind: 'drive#driveList',
    ...(rest.length > size ? { nextPageToken: String(drives.at(-1)!.id) } : {}),
    drives,
  })
}

function create(context: RouteContext): SimAnswer {
  const { world, user, call } = context
  const name = stringField(jsonObject(call.body), 'name')
  if (!call.query.get('requestId')) throw badRequest('Required parameter: requestId', 'required')
  if (!name) throw badRequest('The name of a shared drive cannot be empty.', 'invalid')
  const root = world.addDrive({ name, members: [{ email: user.address, role: 'organizer' }] })
  return answer(context, driveJson(root, world.access(user, root)!))
}

function update(context: RouteContext): SimAnswer {
  const { root, access } = visibleDrive(context, context.ids[0]!)
  demand(isAtLeast(access.role, 'organizer'))
  const name = stringField(jsonObject(context.call.body), 'name')
  if (name !== undefined) context.world.renameDrive(root.id, name)
  return answer(context, driveJson(root, access))
}

function remove(context: RouteContext): SimAnswer {
  const { root, access } = visibleDrive(context, context.ids[0]!)
  demand(isAtLeast(access.role, 'organizer'))
  if (context.world.children(root).size > 0) {
    throw forbidden('teamDriveNotEmpty', 'The shared drive must be empty.')
  }
  context.world.deleteDrive(root.id)
  return noContent
}
