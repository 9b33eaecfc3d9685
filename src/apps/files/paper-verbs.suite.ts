/**
 * What the actions do, on paper: the same looks before, the same refusals and the same ends as in act/, with a moment
 * (`pause`) in which others may act wherever the real ones wait for a disk or for OneDrive.
 */
import type { Tx } from '../../ledger/contract.ts'
import { endAgreed, endPlaced } from './act/agreed.ts'
import { notGiven } from './act/fresh-look.ts'
import { rowAt } from './act/local-side.ts'
import type { ActionContext, Ended, VerbRun } from './action.ts'
import { isComparison, TEMPORARY_NAME } from './decide.ts'
import { isSameStat, isSameThing } from './local/stat.ts'
import { conflictNameOf, nameBefore, originalNameOf, temporaryNameOf } from './names.ts'
import type { Item, PaperDrive, PaperFile, PaperFolder, Refusal } from './paper-sides.suite.ts'
import { hashOf } from './paper-sides.suite.ts'
import type { ActionVerb } from './plan-order.ts'
import {
  decidedState,
  endHandedOver,
  endKeptLocal,
  endKeptRemote,
  endOpenConflict,
  endYielded,
  waitForNamesake,
} from './store/conflicts.ts'
import type { LocalObservation } from './store/contract.ts'
import { endGone, endSetAside } from './store/ends.ts'
import { localRow, recordLocal, setLocalHash } from './store/local-tree.ts'
import { freeNode, waitForNode } from './store/open-nodes.ts'
import { isOther, recordRemoteNow, remoteAtName } from './store/remote-tree.ts'
import {
  isRemoteContentSame,
  itemNode,
  type LocalRow,
  type LocalStat,
  type RemoteRow,
  ROOT_ID,
} from './trees.ts'

export type Paper = {
  there: PaperDrive
  here: PaperFolder
  pause(): Promise<void>
}

export function paperVerbs(paper: Paper): Record<ActionVerb, VerbRun> {
  const with_ =
    (run: (paper: Paper, context: ActionContext) => Promise<Ended>): VerbRun =>
    (context) =>
      run(paper, context)
  return {
    check: with_(check),
    download: with_(download),
    upload: with_(upload),
    'mkdir-local': with_(mkdirLocal),
    'mkdir-remote': with_(mkdirRemote),
    'move-local': with_(moveLocal),
    'move-remote': with_(moveRemote),
    'delete-local': with_(deleteLocal),
    'delete-remote': with_(deleteRemote),
    conflict: with_(setAside),
  }
}

async function check(paper: Paper, context: ActionContext): Promise<Ended> {
  const { pair, node } = context
  const local = context.case.local!
  await paper.pause()
  const file = await fileAsSeen(paper, context, local)
  if ('end' in file) return file
  const [hash, stat] = [hashOf(file.content), paper.here.stat(file)]
  return {
    end: 'done',
    write: async (tx) => {
      await setLocalHash(tx, pair.name, { id: local.id, stat, hash, sha256: hash })
      return freeNode(tx, pair.name, node)
    },
  }
}

/** The file of a row where it is still as the row says; else how the action ends. */
async function fileAsSeen(paper: Paper, context: ActionContext, local: LocalRow): Promise<PaperFile | Ended> {
  const names = await context.store.localPath(context.pair.name, local.id)
  if (!names) return { end: 'stale', because: 'where it is here is not known' }
  const file = paper.here.resolve(names)
  if (!file) return goneHere(context)
  if (file.type === 'file' && isSameStat(paper.here.stat(file), local)) return file
  return otherHere(paper, context, local, file)
}

async function otherHere(
  paper: Paper,
  context: ActionContext,
  local: LocalRow,
  file: PaperFile,
): Promise<Ended> {
  if (file.type !== local.type) return goneHere(context)
  const stat = paper.here.stat(file)
  return seenInstead(context, [{ seen: 'changed', id: local.id, stat }], 'it changed here meanwhile')
}

/** What became of it is for a look at the folder to say. On paper nobody waits long for it. */
async function goneHere({ pair, job, node, version }: ActionContext): Promise<Ended> {
  if (job.checkpoint === undefined) {
    await job.save({ absentSinceMs: 0 })
    return { end: 'wait', because: 'it is not where it was', afterMs: 1 }
  }
  return {
    end: 'done',
    note: 'waits for the next look at the folder',
    write: (tx) => waitForNode(tx, pair.name, { node, version, waitsFor: node }),
  }
}

function seenInstead({ pair }: ActionContext, seen: readonly LocalObservation[], because: string): Ended {
  return { end: 'stale', because, write: (tx) => recordLocal(tx, pair.name, seen) }
}

/** Of what is not there, only delta is believed that it is deleted. */
async function heardInstead(
  context: ActionContext,
  rows: readonly RemoteRow[],
  because: string,
): Promise<Ended> {
  const { pair, job } = context
  const missing = rows.filter(({ isDeleted }) => isDeleted).map(({ itemId }) => itemId)
  if (missing.length > 0) return notGiven(context, missing)
  return { end: 'stale', because, write: (tx) => recordRemoteNow(tx, pair.name, rows, job.payload) }
}

/** The item as it is now, or that it is gone. */
function itemNow({ there }: Paper, row: RemoteRow): RemoteRow {
  const item = there.things.get(row.itemId)
  return item ? there.row(item) : { ...row, isDeleted: true }
}

async function takenBy(
  paper: Paper,
  { pair, store, ...context }: ActionContext,
  { folder, name }: { folder: LocalRow; name: string },
  thing: PaperFile,
): Promise<Ended> {
  const id = await store.takeLocalIds(pair.name, 1)
  const seen = {
    seen: 'new' as const,
    id,
    parentId: folder.id,
    name,
    type: thing.type,
    stat: paper.here.stat(thing),
  }
  return seenInstead({ pair, store, ...context }, [seen], 'something else has its name here')
}

type Target = { folder: LocalRow; names: string[]; replaces: LocalRow | undefined }

async function targetOf(
  { pair, store, case: { local } }: ActionContext,
  remote: RemoteRow,
): Promise<Target | undefined> {
  if (!local || local.isMissing) {
    const folder = await store.localOfItem(pair.name, remote.parentId!)
    if (!folder || folder.isMissing || folder.type !== 'folder') return undefined
    const names = await store.localPath(pair.name, folder.id)
    return names && { folder, names: [...names, remote.name], replaces: undefined }
  }
  const folder = await store.localRow(pair.name, local.parentId!)
  const names = await store.localPath(pair.name, local.id)
  return folder && names && { folder, names, replaces: local }
}

const NO_FOLDER: Ended = { end: 'stale', because: 'its folder is not here' }

async function download(paper: Paper, context: ActionContext): Promise<Ended> {
  const { here, there } = paper
  const remote = context.case.remote!
  const before = await targetOf(context, remote)
  if (!before) return NO_FOLDER
  const done = await alreadyThere(paper, context, remote, before)
  if (done) return done
  await paper.pause()
  const item = there.things.get(remote.itemId)
  if (item?.cTag !== remote.cTag) return heardInstead(context, [itemNow(paper, remote)], 'another version')
  const { content } = item
  const target = await targetOf(context, remote)
  if (!target) return NO_FOLDER
  const { names, replaces } = target
  const folder = here.resolve(names.slice(0, -1))
  if (folder?.type !== 'folder') return goneHere(context)
  const thing = here.child(folder.id, names.at(-1)!)
  const isExpected = replaces ? thing?.type === 'file' && isSameStat(here.stat(thing), replaces) : !thing
  if (!isExpected) return (await alreadyThere(paper, context, remote, target)) ?? NO_FOLDER
  if (thing) takeToTrash(paper, thing)
  const made = here.make(folder.id, names.at(-1)!, { type: 'file', content }) as PaperFile
  return inStepHere(context, { remote, target, stat: here.stat(made), hash: hashOf(content) })
}

function takeToTrash({ here }: Paper, file: PaperFile): void {
  here.bin.push(file.content)
  here.remove(file.id)
}

async function alreadyThere(
  paper: Paper,
  context: ActionContext,
  remote: RemoteRow,
  target: Target,
): Promise<Ended | undefined> {
  const { replaces, names, folder } = target
  const thing = paper.here.resolve(names)
  if (!thing) return replaces ? goneHere(context) : undefined
  const stat = paper.here.stat(thing)
  if (replaces && thing.type === 'file' && isSameStat(stat, replaces)) return undefined
  if (thing.type === 'file' && remote.hash !== null && hashOf(thing.content) === remote.hash)
    return inStepHere(context, { remote, target, stat, hash: remote.hash })
  if (replaces) return otherHere(paper, context, replaces, thing)
  return takenBy(paper, context, { folder, name: names.at(-1)! }, thing)
}

function inStepHere(
  context: ActionContext,
  { remote, target, stat, hash }: { remote: RemoteRow; target: Target; stat: LocalStat; hash: string },
): Ended {
  const { pair, node, version } = context
  const { replaces, names } = target
  return {
    end: 'done',
    write: async (tx) => {
      const now = replaces && (await localRow(tx, pair.name, replaces.id))
      const local = now ? { id: now.id } : await rowAt(tx, pair.name, target)
      const localName = now?.name ?? names.at(-1)!
      return endAgreed(tx, context, {
        node,
        version,
        remote,
        local,
        localName,
        type: 'file',
        stat,
        hash,
        sha256: hash,
      })
    },
  }
}

async function upload(paper: Paper, context: ActionContext): Promise<Ended> {
  const { there } = paper
  const { base, remote, localParentId } = context.case
  const local = context.case.local!
  if (!(base && remote) && localParentId === undefined)
    return { end: 'stale', because: 'its folder is not in OneDrive' }
  const file = await fileAsSeen(paper, context, local)
  if ('end' in file) return file
  const [content, stat] = [file.content, paper.here.stat(file)]
  if (local.hash !== null && local.hash !== hashOf(content)) throw new Error('one stat, two contents')
  await paper.pause()
  const name = local.name
  const sent =
    base && remote
      ? there.write(remote.itemId, content, remote.eTag ?? undefined)
      : there.make(localParentId!, name, { type: 'file', content })
  if (typeof sent !== 'string') return uploaded(context, there.row(sent), { stat, hash: hashOf(content) })
  const now = base && remote ? there.things.get(remote.itemId) : there.child(localParentId!, name)
  if (now && (await isOwn(context, now, content))) {
    return uploaded(context, there.row(now), { stat, hash: hashOf(content) })
  }
  if (base && remote)
    return heardInstead(context, [itemNow(paper, remote)], 'it changed in OneDrive meanwhile')
  return refused(paper, context, { parentId: localParentId!, name })
}

async function isOwn(
  { pair, store, case: { local } }: ActionContext,
  now: Item,
  content: string,
): Promise<boolean> {
  const other = await store.localOfItem(pair.name, now.id)
  return now.type === 'file' && now.content === content && (!other || other.id === local!.id)
}

function uploaded(
  context: ActionContext,
  remote: RemoteRow,
  { stat, hash }: { stat: LocalStat; hash: string | null },
): Ended {
  const { pair, node, version } = context
  const local = context.case.local!
  return {
    end: 'done',
    write: async (tx) => {
      const now = await localRow(tx, pair.name, local.id)
      return endAgreed(tx, context, {
        node,
        version,
        remote,
        type: hash === null ? 'folder' : 'file',
        stat,
        hash,
        sha256: hash,
        local: now ? { id: now.id } : { parentId: local.parentId! },
        localName: now?.name ?? local.name,
      })
    },
  }
}

/** Its folder is gone, or its name is taken. */
function refused(
  paper: Paper,
  context: ActionContext,
  { parentId, name }: { parentId: string; name: string },
): Promise<Ended> {
  const folder = paper.there.things.get(parentId)
  if (!folder) return heardInstead(context, [paper.there.told(parentId)], 'its folder is not in OneDrive')
  const taken = paper.there.child(parentId, name)
  const rows = [folder, ...(taken ? [taken] : [])].map((item) => paper.there.row(item))
  return heardInstead(context, rows, 'something else has its name in OneDrive')
}

async function mkdirLocal(paper: Paper, context: ActionContext): Promise<Ended> {
  const { here } = paper
  const { pair, node, version } = context
  const remote = context.case.remote!
  await paper.pause()
  const target = await targetOf({ ...context, case: { ...context.case, local: undefined } }, remote)
  if (!target) return NO_FOLDER
  const folder = here.resolve(target.names.slice(0, -1))
  if (folder?.type !== 'folder') return goneHere(context)
  const name = target.names.at(-1)!
  const thing = here.child(folder.id, name) ?? (here.make(folder.id, name, { type: 'folder' }) as PaperFile)
  if (thing.type !== 'folder') return takenBy(paper, context, { folder: target.folder, name }, thing)
  const stat = here.stat(thing)
  return {
    end: 'done',
    write: async (tx) => {
      const local = await rowAt(tx, pair.name, target)
      const end = { node, version, remote, local, localName: name, type: 'folder' as const, stat }
      return endAgreed(tx, context, { ...end, hash: null, sha256: null })
    },
  }
}

async function mkdirRemote(paper: Paper, context: ActionContext): Promise<Ended> {
  const { there, here } = paper
  const { pair, store, case: rows } = context
  const local = rows.local!
  const parentId = rows.localParentId
  if (parentId === undefined) return { end: 'stale', because: 'its folder is not in OneDrive' }
  const names = await store.localPath(pair.name, local.id)
  const folder = names && here.resolve(names)
  if (!folder) return goneHere(context)
  if (folder.type !== 'folder' || !isSameThing(here.stat(folder), local))
    return otherHere(paper, context, local, folder)
  const stat = here.stat(folder)
  await paper.pause()
  const made = there.make(parentId, local.name, { type: 'folder' })
  if (typeof made !== 'string') return uploaded(context, there.row(made), { stat, hash: null })
  return refused(paper, context, { parentId, name: local.name })
}

async function moveLocal(paper: Paper, context: ActionContext): Promise<Ended> {
  const { pair, store, node, job } = context
  const { remote } = context.case
  const local = context.case.local!
  await paper.pause()
  const from = await store.localPath(pair.name, local.id)
  const target = await targetOf({ ...context, case: { ...context.case, local: undefined } }, remote!)
  const isTemporary = job.payload.isTemporary === true
  const folder = isTemporary ? await store.localRow(pair.name, ROOT_ID) : target?.folder
  if (!from || !folder) return NO_FOLDER
  const name = isTemporary ? temporaryNameOf(local.name, local.id) : remote!.name
  const to = isTemporary ? [name] : target!.names
  const moved = moveInside(paper, { from, to, expect: local })
  if (moved === 'no-folder' || moved === 'gone') return goneHere(context)
  if (typeof moved === 'object' && 'taken' in moved)
    return takenBy(paper, context, { folder, name }, moved.taken)
  if (typeof moved === 'object' && 'changed' in moved) return otherHere(paper, context, local, moved.changed)
  const basePlace = isTemporary
    ? { parentId: folder.itemId ?? '', name }
    : { parentId: remote!.parentId!, name: remote!.name }
  return {
    end: 'done',
    write: (tx) =>
      endPlaced(tx, context, {
        node,
        local: { ...local, parentId: folder.id, name },
        remote: remote!,
        basePlace,
      }),
  }
}

type MoveResult = 'done' | 'gone' | 'no-folder' | { taken: PaperFile } | { changed: PaperFile }

function moveInside(
  { here }: Paper,
  { from, to, expect }: { from: string[]; to: string[]; expect: LocalRow },
): MoveResult {
  // The names decide; whether its content changed meanwhile is for another action.
  const isAsExpected = (thing: PaperFile): boolean =>
    thing.type === expect.type && isSameThing(here.stat(thing), expect)
  const folder = here.resolve(to.slice(0, -1))
  if (folder?.type !== 'folder') return 'no-folder'
  const [thing, there] = [here.resolve(from), here.child(folder.id, to.at(-1)!)]
  if (!thing) return there && isAsExpected(there) ? 'done' : 'gone'
  if (!isAsExpected(thing)) return { changed: thing }
  if (there && there.id !== thing.id) return { taken: there }
  if (here.isInside(folder.id, thing.id)) return 'no-folder'
  here.move(thing.id, folder.id, to.at(-1)!)
  return 'done'
}

async function moveRemote(paper: Paper, context: ActionContext): Promise<Ended> {
  const { there } = paper
  const { node, job } = context
  const { remote, localParentId } = context.case
  const local = context.case.local!
  const isTemporary = job.payload.isTemporary === true
  const parentId = isTemporary ? context.pair.rootItemId : localParentId
  if (parentId == null) return { end: 'stale', because: 'its folder is not in OneDrive' }
  const away = await lookForMove(paper, context, local)
  if (away) return away
  await paper.pause()
  const place = { parentId, name: isTemporary ? temporaryNameOf(remote!.name, local.id) : local.name }
  const now = there.things.get(remote!.itemId)
  if (!now) return heardInstead(context, [itemNow(paper, remote!)], 'it is gone')
  const isThere = now.parentId === place.parentId && now.name === place.name
  if (now.eTag !== remote!.eTag && !isThere)
    return heardInstead(context, [there.row(now)], 'it changed in OneDrive meanwhile')
  const moved = isThere ? now : there.move(now.id, place.parentId, place.name)
  if (typeof moved === 'string') return moveRefused(paper, context, { moved, ...place })
  return {
    end: 'done',
    write: (tx: Tx) => endPlaced(tx, context, { node, local, remote: there.row(moved), basePlace: place }),
  }
}

/** It must still be here; what is in it does not matter. */
async function lookForMove(
  paper: Paper,
  context: ActionContext,
  local: LocalRow,
): Promise<Ended | undefined> {
  const names = await context.store.localPath(context.pair.name, local.id)
  const thing = names && paper.here.resolve(names)
  if (!thing) return goneHere(context)
  const isOther = local.type === 'folder' && !isSameThing(paper.here.stat(thing), local)
  return isOther ? otherHere(paper, context, local, thing) : undefined
}

function moveRefused(
  paper: Paper,
  context: ActionContext,
  { moved, parentId, name }: { moved: Refusal; parentId: string; name: string },
): Promise<Ended> {
  if (moved !== 'inside-itself') return refused(paper, context, { parentId, name })
  const { there } = paper
  const above: RemoteRow[] = []
  for (
    let at = there.things.get(parentId);
    at;
    at = at.parentId === null ? undefined : there.things.get(at.parentId)
  )
    above.push(there.row(at))
  return heardInstead(context, above, 'its new folder is inside of it')
}

async function deleteLocal(paper: Paper, context: ActionContext): Promise<Ended> {
  const { here } = paper
  const { pair, store, node, version, job } = context
  const { base } = context.case
  const local = context.case.local!
  const atMs = job.clock.now()
  await paper.pause()
  const names = await store.localPath(pair.name, local.id)
  const thing = names && here.resolve(names)
  const gone: Ended = {
    end: 'done',
    write: (tx) => endGone(tx, pair.name, { node, version, atMs, isOnlyHere: true }),
  }
  if (!thing) return gone
  if (local.type === 'folder') {
    if (thing.type !== 'folder' || !isSameThing(here.stat(thing), local))
      return otherHere(paper, context, local, thing)
    const inside = here.children(thing.id)
    if (inside.length > 0) return notEmptyHere(paper, context, local, inside)
    here.remove(thing.id)
    return gone
  }
  if (thing.type !== 'file' || !isSameStat(here.stat(thing), local))
    return otherHere(paper, context, local, thing)
  if (hashOf(thing.content) !== base!.hash) throw new Error('one stat, two contents')
  takeToTrash(paper, thing)
  return gone
}

/** What nobody has seen yet is seen. */
async function notEmptyHere(
  paper: Paper,
  context: ActionContext,
  folder: LocalRow,
  inside: readonly PaperFile[],
): Promise<Ended> {
  const { pair, store } = context
  const first = await store.takeLocalIds(pair.name, inside.length)
  const seen = inside.map(
    (thing, index): LocalObservation => ({
      seen: 'new',
      id: first + index,
      parentId: folder.id,
      name: thing.name,
      type: thing.type,
      stat: paper.here.stat(thing),
    }),
  )
  return seenInstead(context, seen, 'something is in it')
}

async function deleteRemote(paper: Paper, context: ActionContext): Promise<Ended> {
  const { there } = paper
  const { pair, node, version, job } = context
  const remote = context.case.remote!
  const back = await lookForIt(paper, context)
  if (back) return back
  await paper.pause()
  const item = there.things.get(remote.itemId)
  const atMs = job.clock.now()
  const gone: Ended = { end: 'done', write: (tx) => endGone(tx, pair.name, { node, version, atMs }) }
  if (!item) return notGiven(context, [remote.itemId])
  const inside = there.children(item.id)
  if (inside.length > 0) {
    const rows = inside.map((one) => there.row(one))
    return heardInstead(context, rows, 'something is in it')
  }
  const isAsKnown = item.type === 'folder' ? isSamePlace(item, remote) : item.eTag === remote.eTag
  if (!isAsKnown) return heardInstead(context, [there.row(item)], 'it changed in OneDrive meanwhile')
  there.remove(item.id)
  return gone
}

/** How it ends if it is not really gone here. */
async function lookForIt({ here }: Paper, context: ActionContext): Promise<Ended | undefined> {
  const { pair, store } = context
  const { local, base } = context.case
  const unknown: Ended = { end: 'stale', because: 'where it was here is not known' }
  const folder = local
    ? await store.localRow(pair.name, local.parentId!)
    : await store.localOfItem(pair.name, base!.parentId)
  const above = folder && (await store.localPath(pair.name, folder.id))
  if (!above) return unknown
  if (!folder.isMissing && here.resolve(above)?.type !== 'folder')
    return { end: 'stale', because: 'its folder is not there' }
  const names = [...above, local?.name ?? base!.name]
  const thing = here.resolve(names)
  if (!thing) return undefined
  const other = await store.localAt(pair.name, names)
  if (other && other.id !== local?.id) return undefined
  if (!local) return unknown
  if (thing.type !== local.type) return undefined
  return seenInstead(context, [{ seen: 'changed', id: local.id, stat: here.stat(thing) }], 'it is here again')
}

function isSamePlace(item: Item, remote: RemoteRow): boolean {
  return item.parentId === remote.parentId && item.name === remote.name
}

/** OneDrive has given its name to another item: where that has the same content, one of them is enough. */
async function yieldName(paper: Paper, context: ActionContext): Promise<Ended | undefined> {
  const { pair, store, node, version } = context
  const { local, localParentId: parentId } = context.case
  if (parentId === undefined) return NO_FOLDER
  const place = { parentId, name: local!.name }
  const known = await store.write((tx) => remoteAtName(tx, pair.name, place))
  if (!known || known.itemId === context.case.remote?.itemId) return { end: 'stale', because: 'it is free' }
  await paper.pause()
  const remote = itemNow(paper, known)
  if (isOther(known, remote)) return heardInstead(context, [remote], 'what has its name changed')
  const waitsFor = itemNode(known.itemId)
  const other = await store.nodeCase(pair.name, waitsFor)
  if (other.local?.id === local!.id)
    return { end: 'done', write: (tx) => waitForNamesake(tx, pair.name, { node, version, waitsFor }) }
  if (local!.type !== 'file' || remote.type !== 'file') return undefined
  const file = await fileAsSeen(paper, context, local!)
  if ('end' in file) return file
  const seen = { ...local!, hash: hashOf(file.content) }
  if (!other.local || other.local.isMissing) {
    if (remote.hash !== seen.hash) return undefined
    return { end: 'done', write: (tx) => endHandedOver(tx, pair.name, { node, local: seen, remote }) }
  }
  const names = await store.localPath(pair.name, other.local.id)
  const its = names && paper.here.resolve(names)
  await paper.pause()
  if (its?.type !== 'file' || !other.base) return undefined
  const isEdited = hashOf(its.content) !== other.base.hash
  const ahead = isEdited && isRemoteContentSame(remote, other.base) ? hashOf(its.content) : remote.hash
  if (ahead !== seen.hash) return undefined
  const now = await fileAsSeen(paper, context, local!)
  if ('end' in now) return now
  takeToTrash(paper, now)
  const yielded = { node, version, local: seen, atMs: context.job.clock.now() }
  return { end: 'done', write: (tx) => endYielded(tx, pair.name, yielded) }
}

/** Undefined where they differ. */
async function compared(paper: Paper, context: ActionContext): Promise<Ended | undefined> {
  const { local, remote } = context.case
  await paper.pause()
  const file = await fileAsSeen(paper, context, local!)
  if ('end' in file) return file
  const item = paper.there.things.get(remote!.itemId)
  if (item?.cTag !== remote!.cTag) return heardInstead(context, [itemNow(paper, remote!)], 'another version')
  if (item.content !== file.content) return undefined
  return uploaded(context, remote!, { stat: paper.here.stat(file), hash: hashOf(file.content) })
}

/** Left by an exchange of names, and another file has the name that it had, with the same content. */
async function yieldLeftover(paper: Paper, context: ActionContext): Promise<Ended | undefined> {
  const { pair, node, version, job } = context
  const { remote } = context.case
  const local = context.case.local!
  if (local.type !== 'file' || (remote && !remote.isDeleted)) return undefined
  await paper.pause()
  const file = await fileAsSeen(paper, context, local)
  if ('end' in file) return file
  const before = nameBefore(local.name)
  const others = [before, originalNameOf(before)].map((name) => paper.here.child(file.parentId!, name))
  if (!others.some((other) => other?.type === 'file' && other.content === file.content)) return undefined
  takeToTrash(paper, file)
  const yielded = { node, version, local, atMs: job.clock.now() }
  return { end: 'done', write: (tx) => endYielded(tx, pair.name, yielded) }
}

function isForPeople({ pair, decision }: ActionContext): boolean {
  return pair.settings.conflicts === 'manual' && decision.do === 'conflict' && decision.row !== TEMPORARY_NAME
}

/** As somebody has decided; undefined where that is to keep both. */
async function asDecided(paper: Paper, context: ActionContext): Promise<Ended | undefined> {
  const { pair, store, node, version, decision, job } = context
  const remote = context.case.remote!
  await paper.pause()
  const file = await fileAsSeen(paper, context, context.case.local!)
  if ('end' in file) return file
  const item = paper.there.things.get(remote.itemId)
  if (item?.cTag !== remote.cTag) return heardInstead(context, [itemNow(paper, remote)], 'another version')
  const hash = hashOf(file.content)
  const local = { ...context.case.local!, hash, sha256: hash }
  const hashes = { localHash: hash, remoteHash: remote.hash }
  const state = await store.write((tx) => decidedState(tx, pair.name, { node, ...hashes }))
  if (state === 'kept-both') return undefined
  const end = { node, local, remote, record: undefined }
  if (state === 'kept-local') {
    paper.here.bin.push(item.content)
    const there = { hash: remote.hash ?? '', sha256: remote.hash }
    return { end: 'done', write: (tx) => endKeptLocal(tx, pair.name, { ...end, there }) }
  }
  if (state === 'kept-remote') {
    return {
      end: 'done',
      write: (tx) => endKeptRemote(tx, pair.name, { ...end, here: { hash, sha256: hash } }),
    }
  }
  const { conflict: kind } = decision as typeof decision & { do: 'conflict' }
  const record = { kind, path: job.payload.path, node, copyPath: null, at: job.clock.now(), ...hashes }
  const open = { node, version, local, code: 'undecided' as const, because: 'somebody is to decide' }
  return {
    end: 'done',
    note: open.because,
    write: (tx) => endOpenConflict(tx, pair.name, { ...open, record: { ...record, state: 'open' } }),
  }
}

/** Keep both: OneDrive keeps the name, what is here gets another. */
async function setAside(paper: Paper, context: ActionContext): Promise<Ended> {
  const { here } = paper
  const yielded = context.decision.do === 'conflict' ? undefined : await yieldName(paper, context)
  const same = isComparison(context.decision) ? await compared(paper, context) : undefined
  if (yielded ?? same) return (yielded ?? same)!
  const decided = isForPeople(context) ? await asDecided(paper, context) : undefined
  const left = context.decision.row === TEMPORARY_NAME ? await yieldLeftover(paper, context) : undefined
  if (decided ?? left) return (decided ?? left)!
  const { pair, store, node, version, decision, job } = context
  const { remote } = context.case
  const local = context.case.local!
  await paper.pause()
  const from = await store.localPath(pair.name, local.id)
  if (!from) return NO_FOLDER
  const folder = here.resolve(from.slice(0, -1))
  const atMs = job.clock.now()
  const copyName = folder
    ? freeName(here, folder, (count) => conflictNameOf(local.name, atMs, count))
    : local.name
  const moved = moveInside(paper, { from, to: [...from.slice(0, -1), copyName], expect: local })
  if (moved === 'no-folder' || moved === 'gone') return goneHere(context)
  if (typeof moved === 'object') {
    const thing = 'changed' in moved ? moved.changed : moved.taken
    return otherHere(paper, context, local, thing)
  }
  const isDetached = decision.do === 'conflict' && decision.row !== TEMPORARY_NAME
  const kind = decision.do === 'conflict' ? decision.conflict : 'create-create'
  return {
    end: 'done',
    write: (tx) =>
      endSetAside(tx, pair.name, {
        node,
        version,
        localId: local.id,
        from: local,
        copyName,
        isDetached,
        conflict: {
          kind,
          path: job.payload.path,
          node,
          copyPath: copyName,
          at: atMs,
          state: 'kept-both',
          localHash: local.hash,
          remoteHash: remote?.hash ?? null,
        },
      }),
  }
}

const NAMES_MAX = 100

function freeName(here: PaperFolder, folder: PaperFile, name: (count: number) => string): string {
  for (let count = 0; count < NAMES_MAX; count++) if (!here.child(folder.id, name(count))) return name(count)
  throw new Error('too many conflict copies')
}
