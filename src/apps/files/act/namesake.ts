/**
 * A local thing wants a name that OneDrive has given to another item. OneDrive keeps the name, so the local one gets
 * another; unless both are files with the same content: a copy of it would help nobody.
 *
 *   that item has nothing here    the file becomes its local side; the item that it had counts as deleted here
 *   its file is elsewhere here    and comes here with just this content: ours goes to the trash, and makes room
 *
 * And what an interrupted exchange of names has left under a name of our own, which belongs nowhere any more: where
 * another file has the name that it had, with the same content, it goes to the trash as well.
 */
import { rm } from 'node:fs/promises'
import type { ActionContext, Ended } from '../action.ts'
import { decide } from '../decide.ts'
import { withHolds } from '../holds.ts'
import { isNoFolder, lookInside } from '../local/folder.ts'
import type { Root } from '../local/root.ts'
import { plainStat } from '../local/stat.ts'
import { moveToTrash } from '../local/trash.ts'
import { nameBefore, originalNameOf } from '../names.ts'
import { endHandedOver, endYielded, waitForNamesake } from '../store/conflicts.ts'
import { isOther, remoteAtName } from '../store/remote-tree.ts'
import {
  type BaseRow,
  contentSameness,
  type Digests,
  isAgreedContent,
  isRemoteContentSame,
  itemNode,
  type LocalRow,
  type RemoteRow,
} from '../trees.ts'
import { type Disk, hashInside } from './content.ts'
import { lookAtItem, notGiven, staleWith } from './fresh-look.ts'
import { goneHere, isBehindLink, localNames, lookAsSeen, otherHere, unreadableHere } from './local-side.ts'
import { type FetchDeps, fetchContent } from './partial.ts'

export type NamesakeDeps = FetchDeps & { disk: Disk }

/** Who has the name in OneDrive, and what is known of it here. */
type Namesake = {
  remote: RemoteRow
  base: BaseRow | undefined
  local: LocalRow | undefined
  isComing: boolean
}

/** The file that wants the name, and its content. */
type Own = { names: string[]; local: LocalRow & Digests }

const NAMESAKE_NOT_GIVEN = 'OneDrive lists something of its name, but does not give it'
const SAME_CONTENT = 'both have the same content'

/** Undefined: another item really has the name that this one wants, and other content. */
export async function yieldName(
  deps: NamesakeDeps,
  context: ActionContext,
  root: Root,
): Promise<Ended | undefined> {
  const namesake = await namesakeOf(context)
  if ('ended' in namesake) return namesake.ended
  if (context.case.local!.type !== 'file' || namesake.remote.type !== 'file') return undefined
  const own = await ownContent(deps, context, root)
  if ('ended' in own) return own.ended
  const isFileHere = namesake.local !== undefined && !namesake.local.isMissing
  const content = isFileHere ? await contentAhead(deps, context, root, namesake) : 'remote'
  if (content === undefined || (content !== 'remote' && content !== own.local.sha256)) return undefined
  const isSame = content !== 'remote' || (await isSameThere(deps, context, root, { own, ...namesake }))
  if (typeof isSame !== 'boolean') return isSame.ended
  if (!isSame) return undefined
  return isFileHere ? madeRoom(context, root, own) : handedOver(context, own, namesake)
}

/** Its item is gone. Undefined: no file here has the name that it had before, and its content. */
export async function yieldLeftover(
  deps: NamesakeDeps,
  context: ActionContext,
  root: Root,
): Promise<Ended | undefined> {
  const { name, type } = context.case.local!
  if (type !== 'file') return undefined
  const own = await ownContent(deps, context, root)
  if ('ended' in own) return own.ended
  for (const other of new Set([nameBefore(name), originalNameOf(nameBefore(name))])) {
    const names = [...own.names.slice(0, -1), other]
    if (lookInside(root, names)?.type !== 'file') continue
    const hashed = await hashInside(deps.disk, root, names, context.job)
    if (typeof hashed !== 'string' && hashed.sha256 === own.local.sha256) return madeRoom(context, root, own)
  }
  return undefined
}

async function namesakeOf(context: ActionContext): Promise<Namesake | { ended: Ended }> {
  const { pair, store, node, version } = context
  const { local, localParentId: parentId } = context.case
  const free = { ended: { end: 'stale', because: 'its name is free' } as Ended }
  if (parentId === undefined) return free
  const place = { parentId, name: local!.name }
  const known = await store.write((tx) => remoteAtName(tx, pair.name, place))
  if (!known || known.itemId === context.case.remote?.itemId) return free
  const now = await lookAtItem(context, known.itemId)
  if (!now) return { ended: await notGiven(context, [known.itemId], NAMESAKE_NOT_GIVEN) }
  if (isOther(known, now))
    return { ended: staleWith(context, [now], 'what has its name changed in OneDrive') }
  const waitsFor = itemNode(known.itemId)
  const { version: _, ...rows } = await store.nodeCase(pair.name, waitsFor)
  const path = await store.pathOfNode(pair.name, waitsFor)
  const isComing = decide(withHolds(pair, rows, path), pair.settings.mode).do === 'move-local'
  if (rows.local?.id !== local!.id) return { remote: now, base: rows.base, local: rows.local, isComing }
  // The very item that it is going to be compared with: what becomes of both is decided there.
  const ended = { node, version, waitsFor }
  return { ended: { end: 'done', write: (tx) => waitForNamesake(tx, pair.name, ended) } }
}

async function ownContent(
  { disk }: NamesakeDeps,
  context: ActionContext,
  root: Root,
): Promise<Own | { ended: Ended }> {
  const local = context.case.local!
  const seen = await lookAsSeen(context, root, local)
  if ('ended' in seen) return seen
  const hashed = await hashInside(disk, root, seen.names, context.job)
  if (hashed === 'unreadable') return { ended: unreadableHere(context, local, 'it may not be read') }
  if (hashed === 'changed') return { ended: { end: 'stale', because: 'it changed here meanwhile' } }
  const { stat, hash, sha256 } = hashed
  return { names: seen.names, local: { ...local, ...stat, hash, sha256 } }
}

/**
 * What the namesake is going to hold once its own file has come here: that of OneDrive, or the SHA-256 of an edit that is
 * going there; undefined where nobody can say.
 */
async function contentAhead(
  { disk }: NamesakeDeps,
  context: ActionContext,
  root: Root,
  { remote, local, base, isComing }: Namesake,
): Promise<string | undefined> {
  // One that stays where it is, for a name that OneDrive does not take for example, would leave this place empty.
  if (!base || !isComing || local!.type !== 'file') return undefined
  const names = await localNames(context, root, local!)
  const hashed = names && (await hashInside(disk, root, names, context.job))
  if (!hashed || typeof hashed === 'string') return undefined
  const isSame = hashed.hash === remote.hash && hashed.hash !== base.hash
  if (isSame || isAgreedContent(hashed, base)) return 'remote'
  if (isRemoteContentSame(remote, base)) return hashed.sha256
  // Edited on both sides: whose version gets the name then is the policy.
  const { conflicts } = context.pair.settings
  if (conflicts === 'manual') return undefined
  return conflicts === 'keep-local' ? hashed.sha256 : 'remote'
}

async function isSameThere(
  deps: NamesakeDeps,
  context: ActionContext,
  root: Root,
  { own, remote }: { own: Own; remote: RemoteRow },
): Promise<boolean | { ended: Ended }> {
  const { sha256, size } = own.local
  const sameness = contentSameness(own.local, remote)
  if (sameness === 'same') return true
  if (remote.size !== size || (remote.hash !== null && sameness === 'other')) return false
  const fetched = await fetchContent(deps, context, root, remote)
  if ('ended' in fetched) return fetched
  // It was fetched to be compared alone.
  await rm(fetched.path, { force: true })
  return fetched.sha256 === sha256
}

function handedOver(context: ActionContext, { local }: Own, { remote }: Namesake): Ended {
  const { pair, node } = context
  return {
    end: 'done',
    note: SAME_CONTENT,
    write: (tx) => endHandedOver(tx, pair.name, { node, local, remote }),
  }
}

async function madeRoom(context: ActionContext, root: Root, own: Own): Promise<Ended | undefined> {
  const { pair, job, node, version } = context
  const { local } = own
  const names = await localNames(context, root, local)
  // A link that is followed leads to content, but is none.
  if (names?.join('/') !== own.names.join('/') || (await isBehindLink(context, root, local))) return undefined
  try {
    const atMs = job.clock.now()
    const { outcome } = moveToTrash(root, names, plainStat(local), { atMs })
    if (outcome === 'done') {
      return {
        end: 'done',
        note: SAME_CONTENT,
        write: (tx) => endYielded(tx, pair.name, { node, version, local, atMs }),
      }
    }
    const now = lookInside(root, names)
    return now ? await otherHere(context, local, now) : await goneHere(context)
  } catch (thrown) {
    if (isNoFolder(thrown)) return goneHere(context)
    throw thrown
  }
}
