/**
 * What an account can keep a folder in step with: its own drives, the libraries of those sites of SharePoint that the
 * person follows, and folders that other people share. Asked of OneDrive by itself, before anything is written.
 */
import { sleep, systemClock } from '../../base/clock.ts'
import { asTidemarkError, UsageError } from '../../base/errors.ts'
import { createHttpExchange } from '../../base/http-exchange.ts'
import type { Drive, DriveItem, OneDriveClient } from '../../cloud/onedrive/client.ts'
import type { Account } from '../../ledger/accounts.ts'
import { openOneDriveClient } from './open-folder-pairs.ts'
import type { FilesRuntime } from './runtime.ts'
import { isWithheld, sharedCommand } from './shared-folder.ts'
import type { FolderPairRow } from './store/contract.ts'

export type AvailableDrive = {
  /** What chooses it; of a shared folder, its drive's id and its own. */
  id: string
  type: Drive['type'] | 'sharedFolder'
  /** As a person says it: `OneDrive`, `Marketing/Documents`, or `Projects (Ben)`. */
  name: string
  usedBytes: number | undefined
  /** Who shares it, as far as that is said. */
  owner: string | undefined
}

export type AvailableDrives = {
  drives: readonly AvailableDrive[]
  /** Why there may be more, and what to do to see it. */
  hint: string | undefined
}

/** The top of a folder pair: the root of a drive, or a folder that somebody shares. */
export type RemoteTop = {
  driveId: string
  driveType: Drive['type']
  rootItemId: string
  /** Null where it is the root of a drive. */
  sharedBy: string | null
  /** It is shared for reading only. */
  isReadOnly: boolean
}

type Opened = Pick<FilesRuntime, 'accounts' | 'vault' | 'files' | 'fetch'>

export function availableDrives(runtime: Opened, account: Account): Promise<AvailableDrives> {
  return withClient(runtime, account, (client) => drivesOf(client, account))
}

const SITES_MAX = 100
const LINK_HINT =
  "A shared folder that is not listed is found by its link (--drive 'https://…'), or once you add a shortcut to it at the top of your OneDrive. Sites of SharePoint are listed when you follow them."

async function drivesOf(client: OneDriveClient, { name, settings }: Account): Promise<AvailableDrives> {
  const own = (await client.drives()).map((drive) => available(drive, drive.name || 'OneDrive'))
  if (settings.access !== 'shared') {
    const hint = `Folders that others share and libraries of SharePoint take a permission of their own: ${sharedCommand(name)}`
    return { drives: own, hint }
  }
  const libraries = await librariesOf(client)
  const shared = await sharedFolders(client)
  return { drives: [...own, ...libraries, ...shared], hint: LINK_HINT }
}

/** A site that was left or closed to this person hides no other, and personal accounts have none. */
async function librariesOf(client: OneDriveClient): Promise<AvailableDrive[]> {
  const libraries: AvailableDrive[] = []
  for (const { id, title } of (await client.sites().catch(noneIfRefused)).slice(0, SITES_MAX)) {
    const found = await client.libraries(id).catch(noneIfRefused)
    libraries.push(...found.map((drive) => available(drive, `${title}/${drive.name}`)))
  }
  return libraries
}

/** By both ways in which OneDrive tells of them; either may tell nothing. */
async function sharedFolders(client: OneDriveClient): Promise<AvailableDrive[]> {
  const found = [
    ...(await client.sharedWithMe().catch(noneIfRefused)),
    ...(await client.shortcuts().catch(noneIfRefused)),
  ]
  const folders = new Map(found.filter(({ isFolder }) => isFolder).map((item) => [sharedId(item), item]))
  return [...folders].map(([id, { name, owner }]) => ({
    id,
    type: 'sharedFolder',
    name: owner === undefined ? name : `${name} (${owner})`,
    usedBytes: undefined,
    owner,
  }))
}

function noneIfRefused(thrown: unknown): [] {
  const { kind } = asTidemarkError(thrown)
  if (kind === 'gone' || kind === 'permanent') return []
  throw thrown
}

/** As it is listed, and as `--drive` takes it. */
export function sharedId({ driveId, itemId }: { driveId: string; itemId: string }): string {
  return `${driveId}:${itemId}`
}

export function topId({
  driveId,
  rootItemId,
  sharedBy,
}: Pick<FolderPairRow, 'driveId' | 'rootItemId' | 'sharedBy'>): string {
  return sharedBy === null ? driveId : sharedId({ driveId, itemId: rootItemId })
}

function available({ id, type, quota }: Drive, name: string): AvailableDrive {
  return { id, type, name, usedBytes: quota?.usedBytes, owner: undefined }
}

/** By its id, by the name under which it is listed, or by a sharing link; the account's own drive where nothing is said. */
export async function chosenTop(
  client: OneDriveClient,
  account: Account,
  wanted: string | undefined,
): Promise<RemoteTop> {
  if (wanted === undefined) return driveTop(client, await client.drive())
  const text = wanted.trim()
  const ids = SHARED_ID.exec(text)
  if (!ids && !LINK.test(text)) return namedTop(client, account, text)
  if (account.settings.access !== 'shared') {
    throw new UsageError(`The account ${account.name} may not see what others share.`, {
      code: 'scope-missing',
      hint: `Connect it again for that: ${sharedCommand(account.name)}`,
    })
  }
  // Until it is chosen for good nothing is changed in OneDrive either.
  return sharedTop(client, ids ? { driveId: ids[1]!, itemId: ids[2]! } : { link: text })
}

/** The account may come to what a link leads to from now on; false where it is chosen in another way. */
export async function redeemLink(client: OneDriveClient, wanted: string | undefined): Promise<boolean> {
  const link = wanted?.trim() ?? ''
  if (!LINK.test(link)) return false
  await client.linkedItem(link, { redeem: true })
  return true
}

const LINK = /^https?:\/\//i
const SHARED_ID = /^([^:/]+):([^:/]+)$/

async function driveTop(
  client: OneDriveClient,
  { id, type }: Pick<Drive, 'id' | 'type'>,
): Promise<RemoteTop> {
  const { id: rootItemId } = await client.root(id)
  return { driveId: id, driveType: type, rootItemId, sharedBy: null, isReadOnly: false }
}

async function sharedTop(
  client: OneDriveClient,
  at: { link: string } | { driveId: string; itemId: string },
): Promise<RemoteTop> {
  const found = await ('link' in at
    ? client.linkedItem(at.link)
    : client.sharedItem(at.driveId, at.itemId)
  ).catch((thrown: unknown) => {
    if (!isWithheld(thrown) && !(thrown instanceof UsageError)) throw thrown
    throw new UsageError('Nobody shares that with this account.', {
      code: 'no-drive',
      hint: 'Ask who shares it whether it still is, and with which address. What is shared: tidemark files drives',
      cause: thrown,
    })
  })
  const { driveId, driveType, itemId, name, owner, isFolder } = found
  if (!isFolder) {
    throw new UsageError(`${name} is a file: only folders are kept in step.`, { code: 'not-a-folder' })
  }
  if ((await client.drives()).some(({ id }) => id === driveId)) {
    throw new UsageError(`${name} is in your own OneDrive.`, {
      code: 'own-folder',
      hint: 'Leave --drive out; what takes part of your own drive is chosen with --only.',
    })
  }
  const roles = await client.permissions(driveId, itemId).catch(noneIfRefused)
  const isReadOnly = roles.length > 0 && roles.every((role) => role === 'read')
  return { driveId, driveType, rootItemId: itemId, sharedBy: owner ?? 'Somebody', isReadOnly }
}

async function namedTop(client: OneDriveClient, account: Account, wanted: string): Promise<RemoteTop> {
  try {
    return await driveTop(client, await client.driveById(wanted))
  } catch (thrown) {
    const error = asTidemarkError(thrown)
    if (!['gone', 'permanent', 'auth', 'bug'].includes(error.kind) && !(thrown instanceof UsageError))
      throw thrown
    const { drives } = await drivesOf(client, account).catch(() => ({ drives: [] }))
    const named = drives.filter(({ name }) => name.toLowerCase() === wanted.toLowerCase())
    if (named.length === 1) return chosenTop(client, account, named[0]!.id)
    const list = drives.map(({ id, name }) => `${name} (${id})`).join(', ')
    throw new UsageError(`This account has no drive ${wanted}.`, {
      code: 'no-drive',
      hint: list ? `It has: ${list}.` : 'Leave --drive out for the account’s own drive.',
      cause: thrown,
    })
  }
}

const DEPTH_MAX = 200

/** Whether a folder is another one, or lies somewhere in it, as far as one may look up from it. */
export async function liesIn(
  client: OneDriveClient,
  driveId: string,
  { itemId, folderId }: { itemId: string; folderId: string },
): Promise<boolean> {
  let at: string | undefined = itemId
  for (let depth = 0; at !== undefined && depth < DEPTH_MAX; depth++) {
    if (at === folderId) return true
    const item: DriveItem | undefined = await client.item(driveId, at).catch((thrown: unknown) => {
      if (!isWithheld(thrown)) throw thrown
      return undefined
    })
    at = item?.parentId
  }
  return false
}

export async function withClient<T>(
  { accounts, vault, files, fetch }: Opened,
  account: Account,
  use: (client: OneDriveClient) => Promise<T>,
): Promise<T> {
  const exchange = createHttpExchange()
  try {
    const { settings } = files
    const limits = () => undefined
    const client = openOneDriveClient(
      { accounts, vault, settings, exchange, clock: systemClock, fetch, limits },
      account,
    )
    return await patiently(() => use(client))
  } finally {
    exchange.close()
  }
}

const ASKED_MAX = 5
const ASKED_AGAIN_MS = 500
const ASKED_AGAIN_MS_MAX = 10_000

/** What passes by itself, such as a connection that breaks, is no reason to refuse. */
async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await ask()
    } catch (thrown) {
      const { kind, retryAfterMs } = asTidemarkError(thrown)
      if (tries >= ASKED_MAX || (kind !== 'transient' && kind !== 'throttled')) throw thrown
      const afterMs = retryAfterMs ?? ASKED_AGAIN_MS * 2 ** (tries - 1)
      if (afterMs > ASKED_AGAIN_MS_MAX) throw thrown
      await sleep(systemClock, afterMs)
    }
  }
}
