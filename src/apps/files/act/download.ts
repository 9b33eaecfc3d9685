/**
 * Brings the content of an item into the folder: fetched into a file of our own first (see partial.ts), then put in
 * its place in one step, where nothing may be, or exactly the file that is to be replaced.
 */
import { rm } from 'node:fs/promises'
import type { ActionContext, Ended, VerbRun } from '../action.ts'
import { isNoFolder, lookInside } from '../local/folder.ts'
import { putInPlace } from '../local/place.ts'
import type { Root } from '../local/root.ts'
import { isSameStat, type Look, plainStat } from '../local/stat.ts'
import { localRow } from '../store/local-tree.ts'
import { contentSameness, type Digests, type LocalRow, type LocalStat, type RemoteRow } from '../trees.ts'
import { endAgreed } from './agreed.ts'
import { type Disk, hashInside } from './content.ts'
import {
  goneHere,
  localNames,
  otherHere,
  type Place,
  placeOfItem,
  recentRootOf,
  rowAt,
  takenBy,
} from './local-side.ts'
import { type FetchDeps, type Fetched, fetchContent, SMALL_BYTES_MAX } from './partial.ts'

/** Where it goes, and the row of the file that it replaces. */
type Target = Place & { replaces: LocalRow | undefined }

export type DownloadDeps = FetchDeps & { disk: Disk }

export function downloadRun(deps: DownloadDeps): VerbRun {
  return async (context) => {
    const remote = context.case.remote!
    const root = recentRootOf(context.pair, context.job.clock)
    const before = await findTarget(context, root, remote)
    if (!before) return noFolder()
    const done = isLookedAt(context, before)
      ? await alreadyThere(deps, context, root, { remote, target: before })
      : undefined
    if (done) return done
    const fetched = await fetchContent(deps, context, root, remote)
    if ('ended' in fetched) return fetched.ended
    // Folders may have been renamed while it was on its way.
    const target = await findTarget(context, root, remote)
    if (!target) return noFolder()
    return place(deps, context, root, { remote, target, fetched })
  }
}

/** Who tries a small file for the first time finds out whether its place is free when it gets there. */
function isLookedAt({ job, case: { remote } }: ActionContext, { replaces }: Target): boolean {
  return replaces !== undefined || job.attempt > 1 || remote!.size > SMALL_BYTES_MAX
}

function noFolder(): Ended {
  return { end: 'stale', because: 'its folder is not here' }
}

async function findTarget(
  context: ActionContext,
  root: Root,
  remote: RemoteRow,
): Promise<Target | undefined> {
  const { pair, store } = context
  const { local } = context.case
  if (!local || local.isMissing || local.parentId === null) {
    const free = await placeOfItem(context, root, remote)
    return free && { ...free, replaces: undefined }
  }
  const folder = await store.localRow(pair.name, local.parentId)
  const names = await localNames(context, root, local)
  return folder && names && { folder, names, replaces: local }
}

/** Undefined where everything is as expected. */
async function alreadyThere(
  deps: DownloadDeps,
  context: ActionContext,
  root: Root,
  { remote, target }: { remote: RemoteRow; target: Target },
): Promise<Ended | undefined> {
  const { replaces } = target
  const look = lookInside(root, target.names)
  if (!look) return replaces ? goneHere(context) : undefined
  if (replaces && look.type === 'link') {
    return { end: 'left', because: 'it is a link here: what it leads to is not replaced' }
  }
  if (replaces && look.type === 'file' && isSameStat(look, replaces)) return undefined
  return adoptOr(deps, context, root, { remote, target, look })
}

/** Another file than expected is there: put there by a try that was interrupted, or by someone else. */
async function adoptOr(
  deps: DownloadDeps,
  context: ActionContext,
  root: Root,
  { remote, target, look }: { remote: RemoteRow; target: Target; look: Look },
): Promise<Ended> {
  // A version whose hash is that of the one before cannot be told from it by that.
  const isTelling = remote.hash !== null && remote.hash !== context.case.base?.hash
  if (look.type === 'file' && look.size === remote.size && isTelling) {
    const hashed = await hashInside(deps.disk, root, target.names, context.job)
    // What an interrupted try has put there has the time that OneDrive says. Anything else is compared as a node.
    if (typeof hashed === 'object' && contentSameness({ ...look, hash: hashed.hash }, remote) === 'same') {
      return inStep(context, { remote, target, ...hashed })
    }
  }
  return target.replaces ? otherHere(context, target.replaces, look) : takenBy(context, target, look)
}

async function place(
  deps: DownloadDeps,
  context: ActionContext,
  root: Root,
  { remote, target, fetched }: { remote: RemoteRow; target: Target; fetched: Fetched },
): Promise<Ended> {
  const { replaces, names } = target
  const { modifiedMs } = remote
  const expect = replaces ? plainStat(replaces) : ('absent' as const)
  try {
    const put = { names, expect, modifiedMs, isSettled: true as const, atMs: context.job.clock.now() }
    const placed = await putInPlace(root, fetched.path, put)
    if (placed.outcome === 'done') {
      const { hash, sha256 } = fetched
      return inStep(context, { remote, target, stat: placed.stat, hash, sha256 })
    }
  } catch (thrown) {
    if (isNoFolder(thrown)) return goneHere(context, 'its folder is not where it was')
    throw thrown
  }
  const look = lookInside(root, names)
  if (look) {
    const ended = await adoptOr(deps, context, root, { remote, target, look })
    // The very same is there already: what was fetched is of no use any more.
    if (ended.end === 'done') await rm(fetched.path, { force: true })
    return ended
  }
  return replaces ? goneHere(context) : { end: 'stale', because: 'its place was taken for a moment' }
}

function inStep(
  context: ActionContext,
  { remote, target, ...content }: { remote: RemoteRow; target: Target; stat: LocalStat } & Digests,
): Ended {
  const { pair, node, version } = context
  const { replaces, names } = target
  return {
    end: 'done',
    write: async (tx) => {
      const now = replaces && (await localRow(tx, pair.name, replaces.id))
      const local = now ? { id: now.id } : await rowAt(tx, pair.name, target)
      const localName = now?.name ?? names.at(-1)!
      const end = { node, version, remote, local, localName, type: 'file' as const, ...content }
      return endAgreed(tx, context, { ...end, known: now })
    },
  }
}
