/** about.get, and what the service says of itself. */
import type { SimAnswer } from '../server.ts'
import { badRequest } from './errors.ts'
import { userJson } from './file-json.ts'
import { mimeTypes } from './item.ts'
import { exportFormats } from './native.ts'
import { answer, type RouteContext, type RouteTable } from './route.ts'

export const aboutRoutes: RouteTable = {
  'GET about': { name: 'about.get', need: 'metadata', shape: 'about', parameters: [], run: about },
}

function about(context: RouteContext): SimAnswer {
  const { world, user, call } = context
  if (!call.query.get('fields'))
    throw badRequest("The 'fields' parameter is required for this method.", 'required')
  let usage = 0
  for (const item of world.items.values()) {
    if (item.owner === user.address && context.selection?.storageQuota)
      usage += item.content?.digests.size ?? 0
  }
  const natives = [mimeTypes.document, mimeTypes.spreadsheet, mimeTypes.presentation]
  return answer(context, {
    kind: 'drive#about',
    user: userJson(world, user.address, user),
    storageQuota: {
      limit: '16106127360',
      usage: String(usage),
      usageInDrive: String(usage),
      usageInDriveTrash: '0',
    },
    maxUploadSize: '5497558138880',
    exportFormats: Object.fromEntries(natives.map((type) => [type, exportFormats(type)])),
    canCreateDrives: true,
    canCreateTeamDrives: true,
    appInstalled: false,
  })
}
