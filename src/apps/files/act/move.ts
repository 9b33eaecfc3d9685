/**
 * Renames and moves: the place on one side becomes that of the other. Where two things exchange their names, one of
 * them gets a name of our own for a moment, which counts as the place both sides agree on until it is moved again.
 */
import type { ActionContext, Ended, VerbRun } from '../action.ts'
import { toRow } from '../delta.ts'
import { isNoFolder, lookInside } from '../local/folder.ts'
import { moveInside } from '../local/move.ts'
import type { Root } from '../local/root.ts'
import { isSameStat, plainStat } from '../local/stat.ts'
import { temporaryNameOf } from '../names.ts'
import { type LocalRow, type LocalStat, type RemoteRow, ROOT_ID, sameSpelling } from '../trees.ts'
import { endPlaced } from './agreed.ts'
import {
  errorCode,
  FRESH_TRIES,
  folderNotGiven,
  isAsKnown,
  lookAtItem,
  lookAtName,
  notGiven,
  refusedAgain,
  staleWith,
} from './fresh-look.ts'
import {
  BEHIND_LINK,
  goneHere,
  isBehindLink,
  localNames,
  lookAsSeen,
  otherHere,
  type Place,
  placeOfItem,
  rootOf,
  takenBy,
} from './local-side.ts'

/** Where a link leads to may depend on where it is. */
const LINK_HERE = 'it is a link here: move it yourself'

export const moveLocalRun: VerbRun = async (context) => {
  const { pair, job } = context
  const local = context.case.local!
  const remote = context.case.remote!
  const root = rootOf(pair)
  const from = await localNames(context, root, local)
  const to = await wantedPlace(context, root, { local, remote, from })
  if (!from || !to) return { end: 'stale', because: 'its folder is not here' }
  // A folder on the way was moved into it since the plan: who leaves whom first is for another one.
  if (from.every((name, depth) => to.names[depth] === name) && to.names.length > from.length)
    return { end: 'stale', because: 'its new folder is inside of it' }
  if (await isBehindLink(context, root, local)) return { end: 'left', because: BEHIND_LINK }
  try {
    // The names decide; whether its content changed meanwhile is for another action.
    const look = lookInside(root, from)
    if (look?.type === 'link' && pair.settings.follow_symlinks) return { end: 'left', because: LINK_HERE }
    const expect = plainStat(look && look.type === 'file' && isSameFile(look, local) ? look : local)
    const moved = moveInside(root, { from, to: to.names, expect, atMs: job.clock.now() })
    if (moved.outcome === 'done') {
      const ended = movedHere(context, { local: movedRow(local, look, moved.stat), remote, to })
      return { ...ended, isLookedAfter: isLeftOut(context, from) }
    }
    if (moved.outcome === 'inside') return goneHere(context, 'its new folder is inside of it')
    const there = lookInside(root, to.names)
    if (moved.outcome === 'taken' && there) return takenBy(context, to, there)
    const now = lookInside(root, from)
    return now ? otherHere(context, local, now) : goneHere(context)
  } catch (thrown) {
    if (isNoFolder(thrown)) return goneHere(context, 'its folder is not where it was')
    throw thrown
  }
}

function isLeftOut({ pair, case: { local } }: ActionContext, names: readonly string[]): boolean {
  const type = local!.type === 'folder' ? 'folder' : 'file'
  return pair.filter.excluded(names.join('/').normalize('NFC'), { type, size: local!.size }) !== undefined
}

function isSameFile(look: { ino: string; dev: string; birthNs: string }, local: LocalRow): boolean {
  return look.ino === local.ino && look.dev === local.dev && look.birthNs === local.birthNs
}

/** As what was moved; where that is not what the row says, the next look tells of it. */
function movedRow(local: LocalRow, before: LocalStat | undefined, { ctimeNs }: LocalStat): LocalRow {
  return before && isSameStat(before, local) ? { ...local, ctimeNs } : local
}

async function wantedPlace(
  context: ActionContext,
  root: Root,
  { local, remote, from }: { local: LocalRow; remote: RemoteRow; from: string[] | undefined },
): Promise<Place | undefined> {
  const { pair, store, job } = context
  if (!job.payload.isTemporary) return placeOfItem(context, root, remote)
  const folder = await store.localRow(pair.name, ROOT_ID)
  return folder && from && { folder, names: [temporaryNameOf(local.name, local.id)] }
}

function movedHere(
  context: ActionContext,
  { local, remote, to }: { local: LocalRow; remote: RemoteRow; to: Place },
): Ended & { end: 'done' } {
  const { node } = context
  const name = to.names.at(-1)!
  const isTemporary = context.job.payload.isTemporary === true
  const basePlace = isTemporary
    ? { parentId: to.folder.itemId ?? '', name }
    : { parentId: remote.parentId ?? '', name: remote.name }
  return {
    end: 'done',
    write: (tx) =>
      endPlaced(tx, context, { node, local: { ...local, parentId: to.folder.id, name }, remote, basePlace }),
  }
}

export const moveRemoteRun: VerbRun = async (context) => {
  const { pair, job } = context
  const local = context.case.local!
  const remote = context.case.remote!
  const parentId = job.payload.isTemporary ? pair.rootItemId : context.case.localParentId
  if (parentId == null) return { end: 'stale', because: 'its folder is not in OneDrive' }
  const seen = await lookForMove(context, local)
  if (seen) return seen
  const name = job.payload.isTemporary ? temporaryNameOf(remote.name, local.id) : local.name.normalize('NFC')
  const place = { parentId, name }
  const change = {
    ...(sameSpelling(name, remote.name) ? {} : { name }),
    ...(parentId === remote.parentId ? {} : { parentId }),
  }
  try {
    const options = { ifMatch: remote.eTag ?? undefined, signal: job.signal, missingTries: FRESH_TRIES }
    const item = await pair.client.update(pair.driveId, remote.itemId, change, options)
    return movedThere(context, toRow(item, pair) ?? { ...remote, ...place })
  } catch (thrown) {
    const code = errorCode(thrown)
    if (code === 'refused' && local.type === 'folder') return refusedPlace(context, parentId, thrown)
    if (code !== 'exists' && code !== 'precondition-failed' && code !== 'not-found') throw thrown
    return notMoved(context, place, thrown)
  }
}

/** OneDrive moves no folder into itself. If it has one on the way inside of it since the plan, that is planned anew. */
async function refusedPlace(
  { pair, store, case: { remote } }: ActionContext,
  parentId: string,
  thrown: unknown,
): Promise<Ended> {
  let above: string | null = parentId
  for (let depth = 0; above !== null && depth < DEPTH_MAX; depth++) {
    if (above === remote!.itemId) return { end: 'stale', because: 'its new folder is inside of it' }
    above = (await store.remoteRows(pair.name, [above])).get(above)?.parentId ?? null
  }
  // What OneDrive has to say of that may not have been heard yet: it costs a try.
  throw refusedAgain(thrown)
}

const DEPTH_MAX = 1_000

/** It must still be here; what is in it does not matter. */
async function lookForMove(context: ActionContext, local: LocalRow): Promise<Ended | undefined> {
  if (local.type === 'folder') {
    const seen = await lookAsSeen(context, rootOf(context.pair), local)
    return 'ended' in seen ? seen.ended : undefined
  }
  const root = rootOf(context.pair)
  const names = await localNames(context, root, local)
  return names && lookInside(root, names) ? undefined : goneHere(context)
}

function movedThere(context: ActionContext, remote: RemoteRow): Ended {
  const local = context.case.local!
  const basePlace = { parentId: remote.parentId ?? '', name: remote.name }
  return {
    end: 'done',
    write: (tx) => endPlaced(tx, context, { node: context.node, local, remote, basePlace }),
  }
}

/** Refused; or done already, by a try that was interrupted. */
async function notMoved(
  context: ActionContext,
  place: { parentId: string; name: string },
  thrown: unknown,
): Promise<Ended> {
  const now = await lookAtItem(context, context.case.remote!.itemId)
  if (!now) return notGiven(context, [context.case.remote!.itemId])
  if (now.parentId === place.parentId && sameSpelling(now.name, place.name)) return movedThere(context, now)
  const ended = await folderNotGiven(context, place.parentId)
  if (ended) return ended
  const there = await lookAtName(context, place)
  if (isAsKnown(now, context.case.remote) && !there) throw refusedAgain(thrown)
  return staleWith(context, [now, ...(there ? [there] : [])], 'OneDrive has other things there now')
}
