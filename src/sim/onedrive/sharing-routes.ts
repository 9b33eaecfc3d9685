/**
 * Sharing links: made, listed and taken back. They lead nowhere: nobody but the owner comes here. An item has one link of
 * each type and scope, and who asks for it again gets the same.
 */
import { createHash } from 'node:crypto'
import { jsonAnswer, type SimAnswer } from '../server.ts'
import { GraphError, graphFault, invalid, notFound } from './errors.ts'
import type { Item } from './item.ts'
import { chosen, type GraphContext, type GraphRoutes, itemOf, jsonBody, noContent } from './route.ts'

const TYPES: Readonly<Record<string, string>> = { view: 'read', edit: 'write', embed: 'read' }
const SCOPES = ['anonymous', 'organization', 'users']
const OWNER_ID = 'owner'

type SharingLink = { id: string; type: string; scope: string }

const links = new WeakMap<Item, SharingLink[]>()

export const sharingRoutes: GraphRoutes = {
  'POST item/createLink': { name: 'graph.createLink', need: 'write', run: createLink },
  'GET item/permissions': { name: 'graph.permissions', need: 'read', run: list },
  'GET item/permissions/*': { name: 'graph.permissions.get', need: 'read', run: get },
  'DELETE item/permissions/*': { name: 'graph.permissions.delete', need: 'write', run: remove },
}

function createLink(context: GraphContext): SimAnswer {
  const item = itemOf(context)
  const { type = 'view', scope = context.drive.type === 'business' ? 'organization' : 'anonymous' } =
    jsonBody(context)
  if (typeof type !== 'string' || !TYPES[type]) throw invalid('Invalid value of type.')
  if (typeof scope !== 'string' || !SCOPES.includes(scope)) throw invalid('Invalid value of scope.')
  if (context.drive.type === 'personal' && scope === 'organization') {
    throw invalid('A personal drive has no organization.')
  }
  if (context.drive.type === 'business' && type === 'embed') {
    throw invalid('Links to embed are of personal drives only.')
  }
  const own = links.get(item) ?? []
  const there = own.find((link) => link.type === type && link.scope === scope)
  if (there) return jsonAnswer(linkJson(context, there))
  const id = createHash('sha256').update(`${item.id} ${type} ${scope}`).digest('base64url').slice(0, 22)
  const made = { id, type, scope }
  links.set(item, [...own, made])
  return jsonAnswer(linkJson(context, made), 201)
}

/** Of the item itself; what its folder gives is not repeated. */
export function permissionsOf(context: GraphContext, item: Item): Record<string, unknown>[] {
  const { owner } = context.drive
  const user = { displayName: owner, email: owner }
  const first = { id: OWNER_ID, roles: ['owner'], grantedToV2: { user } }
  return [first, ...(links.get(item) ?? []).map((link) => linkJson(context, link))]
}

function list(context: GraphContext): SimAnswer {
  const { query } = context.call
  return jsonAnswer({ value: permissionsOf(context, itemOf(context)).map((one) => chosen(one, query)) })
}

function get(context: GraphContext): SimAnswer {
  const found = permissionsOf(context, itemOf(context)).find(({ id }) => id === context.address.argument)
  if (!found) throw notFound()
  return jsonAnswer(chosen(found, context.call.query))
}

function remove(context: GraphContext): SimAnswer {
  const item = itemOf(context)
  const id = context.address.argument
  if (id === OWNER_ID) throw new GraphError(graphFault(403, { message: 'The owner stays the owner.' }))
  const own = links.get(item) ?? []
  const left = own.filter((link) => link.id !== id)
  if (left.length === own.length) throw notFound()
  links.set(item, left)
  return noContent
}

function linkJson({ call }: GraphContext, { id, type, scope }: SharingLink): Record<string, unknown> {
  const webUrl = `${call.origin}/s!${id}`
  const webHtml = type === 'embed' ? { webHtml: `<iframe src="${webUrl}"></iframe>` } : {}
  return { id, roles: [TYPES[type]], shareId: `s!${id}`, link: { type, scope, webUrl, ...webHtml } }
}
