/** What a route of the Graph API is given, and what routes have in common. */
import type { FaultPlan } from '../faults.ts'
import { jsonAnswer, type SimAnswer, type SimCall } from '../server.ts'
import type { GraphAddress, ItemAddress } from './address.ts'
import type { ConflictBehavior, Drive, FileTimes } from './drive.ts'
import { DriveFault } from './drive-fault.ts'
import { GraphError, graphFault, invalid, notFound } from './errors.ts'
import type { Item } from './item.ts'
import { eTagOf, type ItemJson, type ShowOptions, showItem } from './item-json.ts'
import { type QueryOption, queryOption } from './query-options.ts'
import { isFirstTime } from './quirks.ts'
import { checkGuest, type Guest } from './shares.ts'
import type { SimDrive } from './sim-drive.ts'
import type { TransferUrls } from './transfer-urls.ts'
import { isMatch } from './upload-sessions.ts'

export type GraphContext = {
  sim: SimDrive
  drive: Drive
  call: SimCall
  address: GraphAddress
  plan: FaultPlan | undefined
  urls: TransferUrls
  /** Who calls is not the owner of the drive. */
  guest?: Guest | undefined
}

export type GraphRoute = {
  /** What faults and counters call it. */
  name: string
  need: 'read' | 'write'
  /** OData's options that it takes; `$select` where nothing is said. Others are refused. */
  options?: readonly QueryOption[]
  takesChunks?: boolean
  bodyBytesMax?: number
  run(context: GraphContext): SimAnswer | Promise<SimAnswer>
}

/** `GET item/children` → the route. */
export type GraphRoutes = Readonly<Record<string, GraphRoute>>

/** For so long something new may not be found everywhere. */
const FRESH_MS = 60_000
export const noContent: SimAnswer = { status: 204, headers: {}, body: '' }

export function jsonBody({ call }: Pick<GraphContext, 'call'>): Record<string, unknown> {
  if (call.body.length === 0) return {}
  try {
    const value: unknown = JSON.parse(call.body.toString('utf8'))
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as ItemJson
  } catch {
    // Falls through to the same answer as JSON that is no object.
  }
  throw invalid('Unable to read JSON request payload.')
}

/** The item that the address names. */
export function itemOf(context: GraphContext): Item {
  const { address, drive } = context
  if (!address.item) return drive.root
  const item = lookUp(context, address.item)
  if (!item) throw notFound('The resource could not be found.')
  checkFresh(context, item, address.item.isByPath)
  return item
}

/** Where a new item is to be, and what stands there now. */
export function addressedPlace(context: GraphContext): {
  parent: Item
  name: string
  there: Item | undefined
} {
  const { address, drive } = context
  const named = address.item
  if (!named?.isByPath || named.path.length === 0) {
    const there = itemOf(context)
    if (!there.parent) throw invalid('The root folder has no content.')
    return { parent: there.parent, name: there.name, there }
  }
  const start = startItem(context, named)
  if (!start) throw notFound('The resource could not be found.')
  const name = named.path.at(-1)!
  let parent = start
  for (const folder of named.path.slice(0, -1)) {
    // As the service does it: folders on the way are made.
    parent = drive.child(parent, folder) ?? drive.createFolder(parent, folder).item
  }
  if (!parent.children) throw notFound('The parent is not a folder.')
  checkFreshParent(context, parent)
  return { parent, name, there: drive.child(parent, name) }
}

/** Where something goes into a folder that was just made. */
export function checkFreshParent({ sim, drive }: GraphContext, parent: Item): void {
  if (!sim.quirks.freshChildNotFound || !parent.parent || drive.nowMs - parent.createdMs > FRESH_MS) return
  if (isFirstTime(parent, 'child')) throw notFound('The parent could not be found yet.')
}

function lookUp(context: GraphContext, named: ItemAddress): Item | undefined {
  const start = startItem(context, named)
  return start && named.path.length > 0 ? context.drive.at(named.path, start) : start
}

function startItem(context: GraphContext, { start }: ItemAddress): Item | undefined {
  const { drive, guest } = context
  const item = start.kind === 'id' && start.id !== 'root' ? drive.get(start.id) : drive.root
  if (item) checkGuest(drive, guest, item)
  return start.kind === 'special' ? specialFolder(drive, start.name) : item
}

/** Newer personal drives tell of shortcuts only to those who ask for them. */
export function isShortcutShown({ sim, call }: GraphContext, { remote }: Item): boolean {
  return !remote || !sim.quirks.shortcutsHidden || /AddToOneDrive/i.test(String(call.headers.prefer ?? ''))
}

/** Of those that the service knows by name, in whatever language a person calls them. */
const SPECIAL: Readonly<Record<string, readonly string[]>> = {
  documents: ['Documents'],
  photos: ['Pictures'],
  cameraroll: ['Pictures', 'Camera Roll'],
  music: ['Music'],
  approot: ['Apps', 'Simulated app'],
}

/** A special folder is made when it is first asked for; renamed or moved, it stays the special one. */
function specialFolder(drive: Drive, asked: string): Item {
  const name = asked.toLowerCase()
  const path = SPECIAL[name]
  if (!path) throw invalid('The special folder identifier is not valid.')
  const known = specialFolders(drive).find(({ specialName }) => specialName === name)
  if (known) return known
  let folder = drive.root
  for (const piece of path) {
    const there = drive.child(folder, piece)
    folder = there?.children ? there : drive.createFolder(folder, piece, { conflict: 'rename' }).item
  }
  folder.specialName = name
  return folder
}

export function specialFolders(drive: Drive): Item[] {
  return [...drive.items()].filter(({ specialName }) => specialName !== undefined)
}

function checkFresh({ sim, drive }: GraphContext, item: Item, isByPath: boolean): void {
  const { quirks } = sim
  if (!item.parent) return
  if (drive.nowMs - item.modifiedMs < quirks.changedNotFoundMs) throw notFound()
  const isOld = drive.nowMs - item.createdMs > FRESH_MS
  if (quirks.freshItemNotFound && !isByPath && !isOld && isFirstTime(item, 'item')) throw notFound()
  if (!quirks.freshPathNotFound || !isByPath || drive.nowMs - item.modifiedMs > FRESH_MS) return
  if (isFirstTime(item, `path ${item.eVersion}`)) throw notFound()
}

/** If-Match and If-None-Match against what is there. */
export function checkPrecondition({ call, drive }: GraphContext, item: Item | undefined): void {
  const { 'if-match': match, 'if-none-match': noneMatch } = call.headers
  if (match !== undefined && !isMatch(drive, item, match)) throw modified()
  if (noneMatch !== undefined && item && isMatch(drive, item, noneMatch)) throw modified()
}

export function modified(): DriveFault {
  return new DriveFault('resourceModified', "ETag does not match current item's value.")
}

export function show(context: GraphContext, item: Item, options: ShowOptions = {}): ItemJson {
  const { drive, sim, urls } = context
  const isFile = item.kind === 'file' && !options.isDelta && !options.isDeleted
  const json = showItem(drive, item, sim.quirks, {
    ...options,
    downloadUrl: isFile ? urls.download(context.call.origin, sim, item) : undefined,
  })
  return chosen(json, context.call.query)
}

export function itemAnswer(context: GraphContext, item: Item, status = 200): SimAnswer {
  return jsonAnswer(show(context, item), status, { etag: headerTag(eTagOf(context.drive, item)) })
}

export function headerTag(tag: string): string {
  return tag.startsWith('"') ? tag : `"${tag}"`
}

/** What `$select` leaves of it. */
export function chosen(json: ItemJson, query: URLSearchParams): ItemJson {
  const select = queryOption(query, 'select')
  return select ? selected(json, select) : json
}

export function selected(json: ItemJson, select: string): ItemJson {
  const names = select.split(',').map((name) => name.trim())
  const kept: ItemJson = {}
  for (const name of names) if (json[name] !== undefined) kept[name] = json[name]
  // A row that says nothing about deletion would be taken for a living one.
  if (json.deleted !== undefined) kept.deleted = json.deleted
  kept.id ??= json.id
  return kept
}

export function conflictOf(
  { call }: GraphContext,
  body: Record<string, unknown>,
  byDefault: ConflictBehavior,
): ConflictBehavior {
  const name = '@microsoft.graph.conflictBehavior'
  const value = body[name] ?? body['@name.conflictBehavior'] ?? call.query.get(name) ?? byDefault
  if (value === 'fail' || value === 'replace' || value === 'rename') return value
  throw invalid(`Invalid value of ${name}.`)
}

export function timesOf(body: Record<string, unknown>): FileTimes | undefined {
  const info = body.fileSystemInfo
  if (info === undefined || info === null) return undefined
  if (typeof info !== 'object') throw invalid('Invalid fileSystemInfo.')
  const { createdDateTime, lastModifiedDateTime } = info as Record<string, unknown>
  const times: FileTimes = {}
  if (createdDateTime != null) times.createdMs = timeOf(createdDateTime)
  if (lastModifiedDateTime != null) times.modifiedMs = timeOf(lastModifiedDateTime)
  return times
}

export function timeOf(value: unknown): number {
  const ms = typeof value === 'string' ? Date.parse(value) : Number.NaN
  if (Number.isNaN(ms)) throw invalid('Invalid date and time.')
  return ms
}

export function pageSize(
  query: URLSearchParams,
  { byDefault, max }: { byDefault: number; max: number },
): number {
  const text = queryOption(query, 'top')
  if (text === undefined) return byDefault
  if (!/^\d{1,9}$/.test(text) || Number(text) < 1) throw invalid('Invalid value of $top.')
  return Math.min(Number(text), max)
}

export function unsupported(message: string): GraphError {
  return new GraphError(graphFault(501, { message }))
}
