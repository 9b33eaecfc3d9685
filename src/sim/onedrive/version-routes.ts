/** Versions of a file: what it held before, and what it holds now. */
import { jsonAnswer, type SimAnswer } from '../server.ts'
import { type Item, type ItemVersion, versionId } from './item.ts'
import { chosen, type GraphContext, type GraphRoutes, itemOf, noContent } from './route.ts'

export const versionRoutes: GraphRoutes = {
  'GET item/versions': { name: 'graph.versions', need: 'read', run: list },
  'GET item/versions/*': { name: 'graph.versions.get', need: 'read', run: get },
  'GET item/versions/*/content': { name: 'graph.versions.content', need: 'read', run: content },
  'POST item/versions/*/restoreVersion': { name: 'graph.versions.restore', need: 'write', run: restore },
  'DELETE item/versions/*': { name: 'graph.versions.delete', need: 'write', run: remove },
}

function list(context: GraphContext): SimAnswer {
  const item = itemOf(context)
  const versions = [current(item), ...item.versions.toReversed()]
  return jsonAnswer({ value: versions.map((version) => chosen(versionJson(version), context.call.query)) })
}

function get(context: GraphContext): SimAnswer {
  const item = itemOf(context)
  const id = context.address.argument ?? ''
  const version = id === versionId(item) ? current(item) : context.drive.version(item, id)
  return jsonAnswer(chosen(versionJson(version), context.call.query))
}

function content(context: GraphContext): SimAnswer {
  const item = itemOf(context)
  const { urls, sim, drive, call, address } = context
  const id = address.argument ?? ''
  const version = id === versionId(item) ? undefined : drive.version(item, id).id
  return { status: 302, headers: { location: urls.download(call.origin, sim, item, version) }, body: '' }
}

function restore(context: GraphContext): SimAnswer {
  const item = itemOf(context)
  const version = context.drive.version(item, context.address.argument ?? '')
  context.drive.setContent(item, version.content)
  return noContent
}

function remove(context: GraphContext): SimAnswer {
  context.drive.deleteVersion(itemOf(context), context.address.argument ?? '')
  return noContent
}

function current(
  item: Item,
): Pick<ItemVersion, 'id' | 'modifiedMs'> & { content: ItemVersion['content'] | undefined } {
  return { id: versionId(item), modifiedMs: item.modifiedMs, content: item.content }
}

function versionJson({ id, modifiedMs, content: held }: ReturnType<typeof current>): Record<string, unknown> {
  return { id, lastModifiedDateTime: new Date(modifiedMs).toISOString(), size: held?.size ?? 0 }
}
