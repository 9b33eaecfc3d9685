/**
 * A folder of somebody else, whose top is no drive's root: neither that drive nor its root may be looked at, and its
 * owner may withdraw it, or delete it, at any moment. That looks like many deletions, and is none: work on it stops,
 * everything here stays as it is, and people are told. It goes on by itself when the folder is there again. What was
 * deleted here meanwhile, when nobody could see what that would do, is not deleted there: it comes back.
 *
 *   shared ──its top is not given any more──▶ paused (share-gone) ──its top is given──▶ shared
 */
import type { Runtime } from '../../app/runtime.ts'
import { asTidemarkError, TidemarkError } from '../../base/errors.ts'
import { shellWord } from '../../base/wording.ts'
import type { DriveItem } from '../../cloud/onedrive/client.ts'
import { answers } from '../../cloud/onedrive/errors.ts'
import type { FolderPair, FolderPairs } from './folder-pair.ts'
import type { FileStore } from './store/file-store.ts'
import { doubtMissing } from './store/filter-change.ts'

/** The code of the error, and of the pause. */
export const SHARE_GONE = 'share-gone'

export const READ_ONLY_SHARE = 'it is shared with you for reading only, and stays here as it is'

/** What was made or changed a moment ago may not be found yet. */
const LOOK_TRIES = 3

export type SharedPair = Pick<
  FolderPair,
  'name' | 'account' | 'client' | 'driveId' | 'rootItemId' | 'sharedBy' | 'maySeeShared'
>

/** What connects an account anew so that it may see what others share. */
export function sharedCommand(account: string): string {
  return `tidemark account add onedrive --shared --user ${shellWord(account)}`
}

/** The folder that a path, a delta or a listing begins with; undefined where that is the drive's root. */
export function topFolder({ rootItemId, sharedBy }: SharedPair): { folderId?: string } {
  return sharedBy === undefined ? {} : { folderId: rootItemId }
}

/** Fails where the top of a folder pair is not given: with SHARE_GONE where that is a folder of somebody else. */
export async function checkTop(pair: SharedPair, signal?: AbortSignal): Promise<void> {
  const { client, driveId, rootItemId, sharedBy } = pair
  if (sharedBy === undefined) return void (await client.root(driveId, { signal }))
  try {
    const top = await client.item(driveId, rootItemId, { signal, missingTries: LOOK_TRIES })
    if (!top.deleted) return
  } catch (thrown) {
    if (!isWithheld(thrown)) throw thrown
  }
  if ((await pair.maySeeShared?.()) === false) {
    throw new TidemarkError(`the account ${pair.account} may not see what others share any more`, {
      kind: 'transient',
      code: SHARE_GONE,
      hint: `All files here stay as they are. Connect it again with that permission, and it goes on by itself: ${sharedCommand(pair.account)}`,
    })
  }
  throw new TidemarkError(`${sharedBy} has deleted this folder, or does not share it with you any more`, {
    kind: 'transient',
    code: SHARE_GONE,
    hint: `All files here stay as they are. It goes on by itself when the folder is shared again; to give it up: tidemark files remove ${shellWord(pair.name)}`,
  })
}

/** OneDrive says "not found" of what it may not show, too. */
export function isWithheld(thrown: unknown): boolean {
  const { code } = asTidemarkError(thrown)
  return code === 'not-found' || code === 'forbidden'
}

export function isShareGone(thrown: unknown): boolean {
  return asTidemarkError(thrown).code === SHARE_GONE
}

/** Stops the work on a folder that is not given. */
export async function pauseShare(
  { engine, store }: { engine: Pick<Runtime['engine'], 'pause'> | undefined; store: FileStore },
  { name, stream }: Pick<FolderPair, 'name' | 'stream'>,
  { message, code }: TidemarkError,
): Promise<void> {
  // Also here: somebody may let it go on by hand.
  await store.write((tx) => doubtMissing(tx, name))
  await engine?.pause('stream', stream, message, code)
}

/**
 * Goes on with a folder whose top is given again. `names`: of which ones; returns those that still wait. One that
 * cannot be asked for now keeps no other from going on: the first such failure is thrown at the end.
 */
export async function resumeShares(
  { engine, ledger, files }: Pick<Runtime, 'engine' | 'ledger'> & { files: SharedFiles },
  names: readonly string[],
): Promise<TidemarkError[]> {
  const gone: TidemarkError[] = []
  const failed: unknown[] = []
  for (const { scope, target, code } of await ledger.pauses()) {
    const name = names.find((one) => scope === 'stream' && code === SHARE_GONE && target === `files:${one}`)
    if (name === undefined) continue
    try {
      await checkTop(await files.pairs.get(name))
      await files.store.write((tx) => doubtMissing(tx, name))
      await ledger.wakeStream(target)
      await engine.resume('stream', target, SHARE_GONE)
    } catch (thrown) {
      if (isShareGone(thrown)) gone.push(asTidemarkError(thrown))
      else failed.push(thrown)
    }
  }
  if (failed.length > 0) throw failed[0]
  return gone
}

type SharedFiles = { pairs: FolderPairs; store: FileStore }

const FOLDERS_MAX = 1_000_000

/**
 * Everything below the top, folder by folder, for drives that tell no changes of a single folder. Nobody stops the
 * world meanwhile: what is moved may be met twice or not at all.
 */
export async function* listBelow(pair: SharedPair, signal: AbortSignal): AsyncGenerator<DriveItem[]> {
  const { client, driveId, rootItemId } = pair
  const folders = [rootItemId]
  const met = new Set(folders)
  for (let at = 0; at < folders.length; at++) {
    signal.throwIfAborted()
    if (at >= FOLDERS_MAX) throw answers.damagedAnswer('the folders', 'they have no end')
    const items: DriveItem[] = []
    try {
      for await (const item of client.children(driveId, folders[at]!, { signal })) items.push(item)
    } catch (thrown) {
      // Deleted, moved or withheld since it was listed: what was in it is looked for.
      if (at === 0 || !isWithheld(thrown)) throw thrown
      await checkTop(pair, signal)
      continue
    }
    for (const { id, type } of items) {
      if (type !== 'folder' || met.has(id)) continue
      met.add(id)
      folders.push(id)
    }
    yield items
  }
}
