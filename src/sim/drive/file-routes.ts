/** files.*: list, get, download, export, create, copy, update, delete, trash. */
import { boundaryOf, splitMultipart } from '../google/multipart.ts'
import { jsonAnswer, type SimAnswer, type SimCall } from '../server.ts'
import { badRequest, fileNotFound, forbidden, invalidParameter } from './errors.ts'
import { canLimit, canTrash, fileJson } from './file-json.ts'
import { type Item, isAtLeast, isFolder, isNative } from './item.ts'
import { exportItem, exportType } from './native.ts'
import {
  answer,
  demand,
  emptyPageToken,
  fileAnswer,
  itemParameters,
  jsonObject,
  noContent,
  pageQuery,
  type RouteContext,
  type RouteTable,
  stringField,
  timeOf,
  visibleDrive,
  visibleItem,
} from './route.ts'

const writeParameters = [
  ...itemParameters,
  'ignoreDefaultVisibility',
  'keepRevisionForever',
  'ocrLanguage',
  'useContentAsIndexableText',
] as const

/** `setModifiedDate` is of an earlier version of the API; clients still send it, and it changes nothing. */
const updateParameters = [...writeParameters, 'addParents', 'removeParents', 'setModifiedDate'] as const

export const fileRoutes: RouteTable = {
  'GET files': {
    name: 'files.list',
    need: 'metadata',
    shape: 'files',
    parameters: [
      'corpora',
      'corpus',
      'driveId',
      'includeItemsFromAllDrives',
      'includeLabels',
      'includePermissionsForView',
      'includeTeamDriveItems',
      'orderBy',
      'pageSize',
      'pageToken',
      'q',
      'spaces',
      'supportsAllDrives',
      'supportsTeamDrives',
      'teamDriveId',
    ],
    run: list,
  },
  'GET files/*': {
    name: 'files.get',
    need: 'metadata',
    shape: 'file',
    parameters: [...itemParameters, 'acknowledgeAbuse'],
    run: (context) => fileAnswer(context, visibleItem(context).item),
  },
  'MEDIA files/*': {
    name: 'files.media',
    need: 'content',
    shape: 'file',
    parameters: [...itemParameters, 'acknowledgeAbuse'],
    run: media,
  },
  'GET files/*/export': {
    name: 'files.export',
    need: 'content',
    shape: 'other',
    parameters: ['mimeType'],
    run: exportFile,
  },
  'GET files/generateIds': {
    name: 'files.generateIds',
    need: 'metadata',
    shape: 'other',
    parameters: ['count', 'space', 'type'],
    run: generateIds,
  },
  'POST files': {
    name: 'files.create',
    need: 'write',
    shape: 'file',
    parameters: writeParameters,
    run: create,
  },
  'POST files/*/copy': {
    name: 'files.copy',
    need: 'write',
    shape: 'file',
    parameters: writeParameters,
    run: copy,
  },
  'PATCH files/*': {
    name: 'files.update',
    need: 'write',
    shape: 'file',
    parameters: updateParameters,
    run: update,
  },
  'PUT files': {
    name: 'files.upload',
    need: 'write',
    shape: 'file',
    parameters: writeParameters,
    run: resume,
  },
  'PUT files/*': {
    name: 'files.upload',
    need: 'write',
    shape: 'file',
    parameters: updateParameters,
    run: resume,
  },
  'DELETE files/trash': {
    name: 'files.emptyTrash',
    need: 'write',
    shape: 'other',
    parameters: ['driveId', 'enforceSingleParent'],
    run: emptyTrash,
  },
  'DELETE files/*': {
    name: 'files.delete',
    need: 'write',
    shape: 'other',
    parameters: itemParameters,
    run: remove,
  },
}

const IDS_MAX = 1000

function list(context: RouteContext): SimAnswer {
  const { listing, world, user, call, selection, nowMs } = context
  const empty = emptyPageToken(context)
  if (empty !== undefined) {
    return answer(context, {
      kind: 'drive#fileList',
      nextPageToken: empty,
      incompleteSearch: false,
      files: [],
    })
  }
  const { files, nextPageToken, incompleteSearch } = listing.list(user, pageQuery(context), nowMs)
  const wanted = selection === undefined ? undefined : (selection.files ?? selection['*'])
  const shown = wanted === undefined && selection !== undefined ? [] : files
  return answer(context, {
    kind: 'drive#fileList',
    ...(nextPageToken === undefined ? {} : { nextPageToken }),
    incompleteSearch,
    files: shown.map((seen) => fileJson({ ...seen, world, origin: call.origin }, wanted)),
  })
}

function media(context: RouteContext): SimAnswer {
  const { item, access } = visibleItem(context)
  if (isNative(item)) throw forbidden('fileNotDownloadable')
  if (item.copyNeedsWriter) demand(isAtLeast(access.role, 'writer'), 'cannotDownloadFile')
  const bytes = item.content!.bytes()
  const headers = { 'content-type': item.mimeType, 'accept-ranges': 'bytes' }
  const range = /^bytes=(\d*)-(\d*)$/.exec(String(context.call.headers.range ?? ''))
  if (!range || (range[1] === '' && range[2] === '')) {
    context.counts.noteDownload(item.id)
    return { status: 200, headers, body: bytes }
  }
  const from = range[1] === '' ? Math.max(0, bytes.length - Number(range[2])) : Number(range[1])
  const to =
    range[1] === '' || range[2] === '' ? bytes.length - 1 : Math.min(Number(range[2]), bytes.length - 1)
  if (from > to) {
    const message = 'Request range not satisfiable'
    const error = {
      code: 416,
      message,
      errors: [{ message, domain: 'global', reason: 'requestedRangeNotSatisfiable' }],
    }
    return jsonAnswer({ error }, 416, { 'content-range': `bytes */${bytes.length}` })
  }
  if (from === 0) context.counts.noteDownload(item.id)
  return {
    status: 206,
    headers: { ...headers, 'content-range': `bytes ${from}-${to}/${bytes.length}` },
    body: bytes.subarray(from, to + 1),
  }
}

/** An export says nothing about shared drives: it finds what is in them without being asked. */
function exportFile(context: RouteContext): SimAnswer {
  const query = new URLSearchParams({ supportsAllDrives: 'true' })
  const { item, access } = visibleItem({ ...context, call: { ...context.call, query } })
  const to = context.call.query.get('mimeType')
  if (to === null) throw badRequest('Required parameter: mimeType', 'required')
  if (item.copyNeedsWriter) demand(isAtLeast(access.role, 'writer'), 'cannotDownloadFile')
  const body = exportItem(item, to, { withComments: isAtLeast(access.role, 'commenter') })
  context.counts.noteExport(item.id)
  return { status: 200, headers: { 'content-type': exportType(to) }, body }
}

function generateIds(context: RouteContext): SimAnswer {
  const count = Number(context.call.query.get('count') ?? 10)
  if (!Number.isInteger(count) || count < 1 || count > IDS_MAX) throw invalidParameter('count')
  const ids = Array.from({ length: count }, () => context.world.newId())
  return answer(context, { kind: 'drive#generatedIds', space: 'drive', ids })
}

function create(context: RouteContext): SimAnswer {
  const { call } = context
  if (context.isUpload && call.query.get('uploadType') === 'resumable') return begin(context, undefined)
  const upload = context.isUpload
    ? uploaded(call)
    : { fields: jsonObject(call.body), bytes: undefined, mimeType: undefined }
  return finishCreate(context, upload)
}

function finishCreate(context: RouteContext, { fields, bytes, mimeType }: Upload): SimAnswer {
  const { world, user } = context
  const parents = fields.parents as unknown
  if (parents !== undefined && (!Array.isArray(parents) || parents.length !== 1)) {
    throw badRequest('A file must be created in exactly one parent.', 'invalid')
  }
  const parent = visibleItem(context, (parents as string[] | undefined)?.[0] ?? 'root')
  demand(isFolder(parent.item), 'parentNotAFolder')
  demand(isAtLeast(parent.access.role, 'writer') && !parent.access.isMetadataOnly)
  const target = (fields.shortcutDetails as { targetId?: unknown } | undefined)?.targetId
  if (typeof target === 'string') visibleItem(context, target)
  const modifiedMs = timeOf(fields, 'modifiedTime')
  const createdMs = timeOf(fields, 'createdTime')
  const id = stringField(fields, 'id')
  if (id !== undefined && world.items.has(id))
    throw badRequest('A file already exists with the provided ID.', 'fileIdInUse')
  const description = stringField(fields, 'description')
  const item = world.create({
    name: stringField(fields, 'name') ?? 'Untitled',
    parent: parent.item.id,
    by: user.address,
    mimeType: stringField(fields, 'mimeType') ?? mimeType ?? 'application/octet-stream',
    ...(id === undefined ? {} : { id }),
    ...(bytes === undefined ? {} : { content: Buffer.from(bytes) }),
    ...(typeof target === 'string' ? { target } : {}),
    ...(modifiedMs === undefined ? {} : { modifiedMs }),
    ...(createdMs === undefined ? {} : { createdMs }),
    ...(description === undefined ? {} : { description }),
    properties: propertiesOf(fields) ?? {},
  })
  return fileAnswer(context, item)
}

function copy(context: RouteContext): SimAnswer {
  const { item, access } = visibleItem(context)
  demand(!isFolder(item) && item.content !== undefined, 'cannotCopyFile')
  demand(isAtLeast(access.role, item.copyNeedsWriter ? 'writer' : 'reader'), 'cannotCopyFile')
  const fields = jsonObject(context.call.body)
  const parentId = (fields.parents as string[] | undefined)?.[0]
  const above = parentId ?? ownFolder(context, item)
  const made = { name: `Copy of ${item.name}`, mimeType: item.mimeType, ...fields, parents: [above] }
  return finishCreate(context, { fields: made, bytes: item.content!.bytes(), mimeType: item.mimeType })
}

/** Where a copy goes: beside the original where the caller may write there, and home otherwise. */
function ownFolder({ world, user }: RouteContext, item: Item): string {
  const access = item.parent && world.access(user, item.parent)
  return access && isAtLeast(access.role, 'writer') ? item.parent!.id : 'root'
}

function update(context: RouteContext): SimAnswer {
  const { call, ids } = context
  if (context.isUpload && call.query.get('uploadType') === 'resumable') return begin(context, ids[0]!)
  const upload = context.isUpload
    ? uploaded(call)
    : { fields: jsonObject(call.body), bytes: undefined, mimeType: undefined }
  return finishUpdate(context, upload)
}

function finishUpdate(context: RouteContext, { fields, bytes, mimeType }: Upload): SimAnswer {
  const { world, user, call } = context
  const { item, access } = visibleItem(context)
  const { id } = item
  const by = user.address
  const { starred, trashed, inheritedPermissionsDisabled, ...rest } = fields
  if (typeof starred === 'boolean') {
    if (starred) item.starredBy.add(by)
    else item.starredBy.delete(by)
    world.revision += 1
  }
  if (Object.keys(rest).length > 0 || bytes)
    demand(isAtLeast(access.role, 'writer') && !access.isMetadataOnly)
  if (typeof inheritedPermissionsDisabled === 'boolean') {
    demand(isFolder(item) && canLimit(item, access))
    world.limit(id, inheritedPermissionsDisabled, by)
  }
  if (bytes) {
    if (isNative(item)) throw badRequest('Native documents take no uploads here.')
    const type = stringField(fields, 'mimeType') ?? mimeType
    const modifiedMs = timeOf(fields, 'modifiedTime')
    world.edit(id, Buffer.from(bytes), {
      by,
      ...(type === undefined ? {} : { mimeType: type }),
      ...(modifiedMs === undefined ? {} : { modifiedMs }),
    })
  }
  const name = stringField(fields, 'name')
  if (name !== undefined && name !== item.name) world.rename(id, name, by)
  touch(context, item, rest)
  move(context, item)
  if (typeof trashed === 'boolean' && trashed !== (item.trashed !== undefined)) {
    demand(canTrash(item, access))
    if (trashed) world.trash(id, by)
    else world.untrash(id, by)
  }
  if (call.query.has('removeParents') && !call.query.has('addParents')) {
    throw badRequest('A file must have exactly one parent.', 'invalid')
  }
  return fileAnswer(context, item)
}

function touch({ world, user }: RouteContext, item: Item, fields: Record<string, unknown>): void {
  const known = [
    'description',
    'properties',
    'modifiedTime',
    'copyRequiresWriterPermission',
    'writersCanShare',
  ]
  if (!known.some((name) => fields[name] !== undefined)) return
  const change = (one: Item): void => {
    one.description = stringField(fields, 'description') ?? one.description
    one.properties = { ...one.properties, ...propertiesOf(fields) }
    one.modifiedMs = timeOf(fields, 'modifiedTime') ?? one.modifiedMs
    if (typeof fields.copyRequiresWriterPermission === 'boolean')
      one.copyNeedsWriter = fields.copyRequiresWriterPermission
    if (typeof fields.writersCanShare === 'boolean') one.writersCanShare = fields.writersCanShare
  }
  world.touch(item.id, change, user.address)
}

function move(context: RouteContext, item: Item): void {
  const to = context.call.query.get('addParents')
  if (to === null) return
  const parent = visibleItem(context, to)
  demand(isFolder(parent.item) && isAtLeast(parent.access.role, 'writer'))
  if (parent.item !== item.parent) context.world.move(item.id, parent.item.id, context.user.address)
}

function propertiesOf({ properties }: Record<string, unknown>): Record<string, string> | undefined {
  if (typeof properties !== 'object' || properties === null) return undefined
  return Object.fromEntries(Object.entries(properties).map(([name, value]) => [name, String(value)]))
}

/** The first call of a resumable upload. */
function begin(context: RouteContext, fileId: string | undefined): SimAnswer {
  const { call, uploads, user } = context
  if (fileId !== undefined) demand(isAtLeast(visibleItem(context).access.role, 'writer'))
  jsonObject(call.body)
  const type = call.headers['x-upload-content-type']
  const mimeType = typeof type === 'string' ? type : undefined
  return uploads.begin({ call, address: user.address, purpose: { fileId, mimeType } })
}

function resume(context: RouteContext): SimAnswer {
  const { uploads, call, user } = context
  const session = uploads.find(call, user.address)
  if (!session) throw fileNotFound(call.query.get('upload_id') ?? '')
  const { fileId, mimeType } = session.purpose
  return uploads.resume(session, call, (bytes) => {
    const upload = { fields: jsonObject(session.metadata), bytes, mimeType }
    const within = { ...context, call: { ...call, query: session.query } }
    return fileId === undefined
      ? finishCreate(within, upload)
      : finishUpdate({ ...within, ids: [fileId] }, upload)
  })
}

function remove(context: RouteContext): SimAnswer {
  const { item, access } = visibleItem(context)
  demand(item.driveId === undefined ? access.role === 'owner' : isAtLeast(access.role, 'organizer'))
  if (item.isRoot) throw forbidden('rootFolderCannotBeDeleted', 'The root folder cannot be deleted.')
  context.world.delete(item.id)
  return noContent
}

function emptyTrash(context: RouteContext): SimAnswer {
  const drive = context.call.query.get('driveId')
  if (drive === null) context.world.emptyTrash({ user: context.user.address })
  else {
    demand(isAtLeast(visibleDrive(context, drive).access.role, 'organizer'))
    context.world.emptyTrash({ drive })
  }
  return noContent
}

type Upload = {
  fields: Record<string, unknown>
  bytes: Buffer | undefined
  mimeType: string | undefined
}

/** Metadata and bytes of a call that brings both at once. */
function uploaded(call: SimCall): Upload {
  const type = String(call.headers['content-type'] ?? '')
  if (call.query.get('uploadType') !== 'multipart') {
    return { fields: {}, bytes: call.body, mimeType: type === '' ? undefined : type }
  }
  const boundary = boundaryOf(type)
  const [first, second] = boundary === undefined ? [] : splitMultipart(call.body, boundary)
  if (!first || !second) throw badRequest('Missing end boundary in multipart body.')
  return { fields: jsonObject(first.body), bytes: second.body, mimeType: second.headers['content-type'] }
}
