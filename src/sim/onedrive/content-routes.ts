/** Bytes in and the way to bytes out: simple uploads, upload sessions, and the redirect to a download. */
import { jsonAnswer, type SimAnswer } from '../server.ts'
import { GraphError, graphFault, invalid } from './errors.ts'
import type { Item } from './item.ts'
import {
  addressedPlace,
  checkPrecondition,
  conflictOf,
  type GraphContext,
  type GraphRoutes,
  itemAnswer,
  itemOf,
  jsonBody,
  modified,
  timesOf,
} from './route.ts'
import type { UploadSession, UploadTarget } from './upload-sessions.ts'

export const SIMPLE_UPLOAD_BYTES_MAX = 250 * 1000 * 1000

export const contentRoutes: GraphRoutes = {
  'PUT item/content': {
    name: 'graph.content.put',
    need: 'write',
    takesChunks: true,
    bodyBytesMax: SIMPLE_UPLOAD_BYTES_MAX,
    run: putContent,
  },
  'GET item/content': { name: 'graph.content.get', need: 'read', run: getContent },
  'POST item/createUploadSession': { name: 'graph.session.create', need: 'write', run: createSession },
}

function putContent(context: GraphContext): SimAnswer {
  const { sim, call, address } = context
  const { parent, name, there } = addressedPlace(context)
  checkPrecondition(context, there)
  const conflict = conflictOf(context, {}, 'replace')
  if (there && there.kind !== 'file' && conflict === 'replace') throw notAFile()
  const content = sim.state.contents.addChunks(call.chunks ?? [call.body])
  const isById = there !== undefined && !address.item?.isByPath
  const target: UploadTarget = { parent, name, conflict, times: {}, ...(isById ? { item: there } : {}) }
  return uploadAnswer(context, sim.commit(target, content))
}

/** The answer to a finished upload; a service that rewrites later does it now. */
export function uploadAnswer(context: GraphContext, made: { item: Item; isNew: boolean }): SimAnswer {
  const answer = itemAnswer(context, made.item, made.isNew ? 201 : 200)
  context.sim.rewriteLater(made.item)
  return answer
}

function getContent(context: GraphContext): SimAnswer {
  const item = itemOf(context)
  if (item.kind !== 'file') throw notAFile()
  const noneMatch = context.call.headers['if-none-match']
  if (noneMatch !== undefined) checkNotModified(context, item)
  const location = context.urls.download(context.call.origin, context.sim, item)
  return { status: 302, headers: { location }, body: '' }
}

function checkNotModified(context: GraphContext, item: Item): void {
  try {
    checkPrecondition(context, item)
  } catch {
    throw new GraphError(graphFault(304, { message: 'Not modified.' }))
  }
}

function createSession(context: GraphContext): SimAnswer {
  const { sim, call, address } = context
  const body = jsonBody(context)
  const item = (body.item ?? {}) as Record<string, unknown>
  if (typeof item !== 'object' || Array.isArray(item)) throw invalid('Invalid item.')
  if (typeof (body.deferCommit ?? false) !== 'boolean') throw invalid('Invalid value of deferCommit.')
  const { parent, name: placeName, there } = addressedPlace(context)
  const name = typeof item.name === 'string' ? item.name : placeName
  const ifMatch = call.headers['if-match']
  if (ifMatch !== undefined && sim.quirks.sessionIfMatchRefused) throw modified()
  checkPrecondition(context, there)
  const conflict = conflictOf(context, item, 'replace')
  const isById = there !== undefined && !address.item?.isByPath
  if (isById && there.kind !== 'file') throw notAFile()
  if (!isById) checkClash(context, { parent, name, conflict })
  const target: UploadTarget = {
    parent,
    name,
    conflict,
    times: timesOf(item) ?? {},
    ...(isById ? { item: there } : {}),
    ...(ifMatch === undefined ? {} : { ifMatch }),
    ...(body.deferCommit === true ? { isDeferred: true } : {}),
  }
  const fileSize = typeof item.fileSize === 'number' ? item.fileSize : undefined
  const session = sim.sessions.create(target, fileSize)
  return jsonAnswer({
    '@odata.context': `${call.origin}/v1.0/$metadata#microsoft.graph.uploadSession`,
    uploadUrl: context.urls.upload(call.origin, sim, session.id),
    ...sessionJson(session),
  })
}

/** What can be seen now is said now; what happens until the last fragment is said with that. */
function checkClash(
  { drive }: GraphContext,
  to: { parent: Item; name: string; conflict: UploadTarget['conflict'] },
): void {
  drive.checkPlace(to.parent, to.name)
  const there = drive.child(to.parent, to.name)
  if (!there || to.conflict === 'rename') return
  if (to.conflict === 'fail' || there.kind !== 'file') {
    const message = `An item with the name "${to.name}" already exists under the parent.`
    throw new GraphError(graphFault(409, { message }))
  }
}

export function sessionJson({ writer, total, expiresMs }: UploadSession): Record<string, unknown> {
  const isFull = total !== undefined && writer.received >= total
  return {
    expirationDateTime: new Date(expiresMs).toISOString(),
    nextExpectedRanges: isFull ? [] : [`${writer.received}-`],
  }
}

function notAFile(): GraphError {
  return new GraphError(graphFault(409, { message: 'The item is not a file.' }))
}
