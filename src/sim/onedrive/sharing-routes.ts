/**
 * Sharing: links that are made, listed, taken back and followed, and what others share with an account. An item has one
 * link of each type and scope, and who asks for it again gets the same.
 */
import { createHash } from 'node:crypto'
import { jsonAnswer, type SimAnswer } from '../server.ts'
import { GraphError, graphFault, invalid, notFound } from './errors.ts'
import type { Item } from './item.ts'
import { remoteItem } from './item-json.ts'
import {
  chosen,
  type GraphContext,
  type GraphRoutes,
  itemAnswer,
  itemOf,
  jsonBody,
  noContent,
} from './route.ts'
import { type Share, sharesOf } from './shares.ts'
import type { SimDrive } from './sim-drive.ts'

const TYPES: Readonly<Record<string, string>> = { view: 'read', edit: 'write', embed: 'read' }
const SCOPES = ['anonymous', 'organization', 'users']
const OWNER_ID = 'owner'

type SharingLink = { id: string; type: string; scope: string }

const links = new WeakMap<Item, SharingLink[]>()

export function sharingRoutes(drives: readonly SimDrive[]): GraphRoutes {
  return {
    'POST item/createLink': { name: 'graph.createLink', need: 'write', run: createLink },
    'GET item/permissions': { name: 'graph.permissions', need: 'read', run: list },
    'GET item/permissions/*': { name: 'graph.permissions.get', need: 'read', run: get },
    'DELETE item/permissions/*': { name: 'graph.permissions.delete', need: 'write', run: remove },
    'GET drive/sharedWithMe': {
      name: 'graph.sharedWithMe',
      need: 'read',
      options: ['select', 'expand', 'top'],
      run: (context) => sharedWithMe(drives, context),
    },
  }
}

/** Files and folders of others, each as a pointer to where it is. */
function sharedWithMe(drives: readonly SimDrive[], { sim, call }: GraphContext): SimAnswer {
  if (sim.quirks.sharedWithMeEnded) return jsonAnswer({ value: [] })
  const value = drives.flatMap(({ shares, state }) =>
    shares
      .filter(
        ({ account, role, item }) => account === sim.account && role !== 'none' && item.deleted === 'no',
      )
      .map(({ item }) => {
        const {
          id,
          name,
          size,
          webUrl,
          shared: _,
          parentReference: __,
          ...facets
        } = remoteItem({
          drive: state,
          item,
        })
        return { id, name, size, webUrl, ...facets, remoteItem: remoteItem({ drive: state, item }) }
      }),
  )
  return jsonAnswer({ value: value.map((one) => chosen(one, call.query)) })
}

/** `u!` and the address of a link in base64. Who redeems it is let in for good. */
export function linkedItem(
  drives: readonly SimDrive[],
  { call, urls }: GraphContext,
  { share, account }: { share: string; account: string },
): SimAnswer {
  const url = share.startsWith('u!') ? Buffer.from(share.slice(2), 'base64url').toString('utf8') : ''
  const id = /\/s!([\w-]{22})$/.exec(url)?.[1]
  for (const sim of drives) {
    for (const item of sim.state.items()) {
      const link = links.get(item)?.find((one) => one.id === id)
      if (!link) continue
      const role = TYPES[link.type] === 'write' ? 'write' : 'read'
      const isRedeemed = /redeemSharingLink(?!IfNecessary)/i.test(String(call.headers.prefer ?? ''))
      if (isRedeemed && account !== sim.account) sim.letIn({ item, account, role })
      const address = { driveId: sim.id, item: undefined, action: '', argument: undefined }
      return itemAnswer({ sim, drive: sim.state, call, urls, plan: undefined, address }, item)
    }
  }
  throw new GraphError(graphFault(404, { message: 'The sharing link no longer exists.' }))
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
  const { guest, sim } = context
  // A guest hears of what concerns him, wherever it was given.
  if (guest) return sharesOf(guest, item).map(shareJson)
  const user = { displayName: owner, email: owner }
  const first = { id: OWNER_ID, roles: ['owner'], grantedToV2: { user } }
  const own = sim.shares.filter((share) => share.item === item && share.role !== 'none')
  return [first, ...own.map(shareJson), ...(links.get(item) ?? []).map((link) => linkJson(context, link))]
}

function shareJson({ item, account, role }: Share): Record<string, unknown> {
  const id = createHash('sha256').update(`${item.id} ${account}`).digest('base64url').slice(0, 22)
  return { id, roles: [role], grantedToV2: { user: { displayName: account, email: account } } }
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
