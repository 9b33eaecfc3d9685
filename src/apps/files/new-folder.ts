/** Begins to keep a folder in step with OneDrive: looks at both, marks the folder, and writes it down. */
import { existsSync, lstatSync, readdirSync, realpathSync, rmSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { basename, dirname, join, resolve } from 'node:path'
import { systemClock } from '../../base/clock.ts'
import { asTidemarkError, UsageError } from '../../base/errors.ts'
import { shellWord } from '../../base/wording.ts'
import type { OneDriveClient } from '../../cloud/onedrive/client.ts'
import { parsedJson } from '../../engine/observe/job-texts.ts'
import type { Account } from '../../ledger/accounts.ts'
import { eachJob } from '../../ledger/each-job.ts'
import { actionPayload } from './action.ts'
import { chosenTop, liesIn, type RemoteTop, redeemLink, withClient } from './drives.ts'
import { type FolderPairSettings, folderPairSettings, SERVICE, streamOf } from './folder-pair.ts'
import { machineId } from './index.ts'
import { createRoot, openRoot } from './local/root.ts'
import { OWN_FOLDER } from './names.ts'
import type { FilesRuntime } from './runtime.ts'
import { isWithin } from './same-folder.ts'
import { continuePlans } from './store/folder-rows.ts'

export type NewFolderPairInput = {
  /** May be left out where there is only one. */
  account?: string | undefined
  root: string
  /** The folder's own name where it is left out. */
  name?: string | undefined
  /** A drive or a shared folder, as `chosenTop` takes it; the account's own drive where it is left out. */
  drive?: string | undefined
  settings?: Partial<FolderPairSettings> | undefined
}

/** All that is known about a folder before anything is written. */
export type FolderPairDraft = RemoteTop & {
  name: string
  account: string
  /** Absolute, and without any link in it. */
  root: string
  /** How many things are in it already; both sides are then merged. */
  entries: number
  settings: FolderPairSettings
}

export type AddedFolderPair = FolderPairDraft & { markerId: string }

type Opened = Pick<FilesRuntime, 'accounts' | 'vault' | 'files' | 'ledger' | 'home' | 'fetch' | 'newId'>

const NAME = /^[\p{L}\p{N}][\p{L}\p{N} ._-]{0,59}$/u
const MARKER = 'root.json'

export async function addFolderPair(runtime: Opened, input: NewFolderPairInput): Promise<AddedFolderPair> {
  const draft = await draftOf(runtime, input, { isKept: true })
  const markerId = runtime.newId()
  const { name, account, driveId, driveType, rootItemId, sharedBy, settings } = draft
  const { tail_at: planned } = await runtime.ledger.stream(streamOf(name))
  const createdAt = new Date(systemClock.now()).toISOString()
  const root = await createRoot(draft.root, { markerId, drive: name, createdAt })
  const { store } = runtime.files
  const row = { name, account, driveId, driveType, rootItemId, sharedBy, root: root.path, markerId }
  const kept = { machine: machineId(), settings: JSON.stringify(folderPairSettings.parse(settings)) }
  try {
    await store.addFolderPair({ ...row, ...kept }, root.look)
    if (planned > 0) {
      await store.write((tx) => continuePlans(tx, name, planned))
      await store.takeLocalIds(name, await localIdsIn(runtime.ledger, streamOf(name)))
    }
  } catch (thrown) {
    if ((await store.findFolderPair(name))?.markerId === markerId) await store.removeFolderPair(name)
    unmarkRoot(root.path, markerId)
    throw thrown
  }
  await runtime.files.pairs.reload()
  return { ...draft, root: root.path, markerId }
}

/**
 * Work of a folder of the same name that was removed may still wait to be told so. It goes by the numbers that things
 * had there: what is in this folder gets others.
 */
async function localIdsIn(ledger: Opened['ledger'], stream: string): Promise<number> {
  let last = 0
  for (const state of ['pending', 'claimed'] as const) {
    for await (const { payload } of eachJob(ledger, { stream, state })) {
      const { node = '' } = NODE_OF.safeParse(parsedJson(payload)).data ?? {}
      if (node.startsWith('l:')) last = Math.max(last, Number(node.slice('l:'.length)))
    }
  }
  return last
}

const NODE_OF = actionPayload.pick({ node: true })

/** The same without writing anything: every refusal comes before the folder is touched. */
export function draftFolderPair(runtime: Opened, input: NewFolderPairInput): Promise<FolderPairDraft> {
  return draftOf(runtime, input, { isKept: false })
}

async function draftOf(
  runtime: Opened,
  input: NewFolderPairInput,
  { isKept }: { isKept: boolean },
): Promise<FolderPairDraft> {
  const account = await findAccount(runtime, input.account)
  const settings = settingsFor(account, input.settings ?? {})
  const root = absoluteRoot(input.root)
  await refuseOverlap(runtime, root)
  refuseMarked(root)
  const name = await nameFor(runtime, input.name, root)
  const top = await askTop(runtime, account, { wanted: input.drive, isKept })
  const given = { name, account: account.name, ...top, root, entries: entriesIn(root) }
  if (!top.isReadOnly || settings.mode === 'download-only') return { ...given, settings }
  if (settings.mode === 'upload-only') {
    throw new UsageError('This folder is shared for reading only: nothing can be uploaded there.', {
      code: 'read-only-share',
      hint: 'Leave --upload-only out, or ask who shares it for the right to change it.',
    })
  }
  return { ...given, settings: { ...settings, mode: 'download-only' } }
}

/** What it is kept in step with, for people. */
export function topText({ account, sharedBy, isReadOnly }: FolderPairDraft): string {
  if (sharedBy === null) return `the OneDrive of ${account}`
  return isReadOnly
    ? `a folder that ${sharedBy} shares with ${account} for reading: changes only come here`
    : `a folder that ${sharedBy} shares with ${account}`
}

/** An account that may only read takes no uploads. */
function settingsFor({ name, settings }: Account, wanted: Partial<FolderPairSettings>): FolderPairSettings {
  if (wanted.mode !== undefined) refuseWriting({ name, settings }, wanted.mode)
  const isReadOnly = settings.access === 'readonly'
  return folderPairSettings.parse({ ...wanted, ...(isReadOnly ? { mode: 'download-only' } : {}) })
}

export function refuseWriting(
  { name, settings }: Pick<Account, 'name' | 'settings'>,
  mode: FolderPairSettings['mode'],
): void {
  if (settings.access === 'readonly' && mode !== 'download-only') {
    throw new UsageError(`The account ${name} may only read: changes can only come here from OneDrive.`, {
      code: 'scope-missing',
      hint: `Use --download-only, or connect it again to change files, too: tidemark account add onedrive --user ${shellWord(name)}`,
    })
  }
}

export function markerOf(root: string): string {
  return join(root, OWN_FOLDER, MARKER)
}

/** Forgets the marker of a folder, or a damaged one: the folder can be added anew. That of another folder pair stays. */
export function unmarkRoot(root: string, markerId: string): void {
  try {
    openRoot(root, markerId)
  } catch (thrown) {
    if (asTidemarkError(thrown).code !== 'marker-missing') return
  }
  rmSync(markerOf(root), { force: true })
}

export async function findAccount(
  { accounts }: Pick<Opened, 'accounts'>,
  wanted: string | undefined,
): Promise<Account> {
  const all = await accounts.list(SERVICE)
  const names = all.map(({ name }) => name).join(', ')
  if (wanted !== undefined) {
    const found = all.find(({ name }) => name.toLowerCase() === wanted.trim().toLowerCase())
    if (found) return found
    throw new UsageError(`There is no OneDrive account ${wanted}.`, {
      code: 'account-unknown',
      hint: names ? `There are: ${names}.` : 'Connect one with: tidemark account add onedrive',
    })
  }
  const [first, ...others] = all
  if (!first) {
    throw new UsageError('No OneDrive account is connected.', {
      code: 'no-account',
      hint: 'Connect one with: tidemark account add onedrive',
    })
  }
  if (others.length === 0) return first
  throw new UsageError('There are several OneDrive accounts: which one is meant?', {
    code: 'account-unclear',
    hint: `Say it with --account. There are: ${names}.`,
  })
}

async function askTop(
  runtime: Opened,
  account: Account,
  { wanted, isKept }: { wanted: string | undefined; isKept: boolean },
): Promise<RemoteTop> {
  return withClient(runtime, account, async (client) => {
    const ask = async (): Promise<RemoteTop> => {
      const top = await chosenTop(client, account, wanted)
      await refuseTwice(runtime, client, { account, top })
      return top
    }
    const top = await ask()
    // A link says what may be done with its folder, and where that lies, once it is redeemed.
    return isKept && (await redeemLink(client, wanted)) ? ask() : top
  })
}

/** Two copies here of what somebody shares would be brought to each other by way of OneDrive, with every conflict twice. */
async function refuseTwice(
  { files }: Opened,
  client: OneDriveClient,
  { account, top }: { account: Account; top: RemoteTop },
): Promise<void> {
  const here = machineId()
  for (const row of await files.store.folderPairs()) {
    const isOther = row.machine !== here || row.driveId !== top.driveId
    const isOfDrive = row.sharedBy === null || top.sharedBy === null
    // The owner and a guest may each have their copy with one Tidemark; two guests' would be the same twice.
    const isAllowed = isOfDrive && (row.account !== account.name || row.sharedBy === top.sharedBy)
    if (isOther || isAllowed) continue
    const [own, theirs] = [top.rootItemId, row.rootItemId]
    const isBelow = await liesIn(client, top.driveId, { itemId: own, folderId: theirs })
    const isAbove = await liesIn(client, top.driveId, { itemId: theirs, folderId: own })
    if (!isBelow && !isAbove) continue
    const lies = own === theirs ? 'is' : isBelow ? 'lies in' : 'has in it'
    throw new UsageError(`That folder ${lies} the one with which ${row.root} is kept in step already.`, {
      code: 'share-taken',
      hint: `It is called ${row.name} here: tidemark files sync ${shellWord(row.name)}`,
    })
  }
}

/** Where it is or will be, without links: its deepest part that is there decides. */
function absoluteRoot(wanted: string): string {
  const path = resolve(wanted)
  const below: string[] = []
  let there = path
  while (!existsSync(there) && dirname(there) !== there) {
    if (isLink(there)) {
      throw new UsageError(`${there} is a link that leads nowhere.`, {
        code: 'not-a-folder',
        hint: 'Give the path of a folder; it is made if it is not there.',
      })
    }
    below.unshift(basename(there))
    there = dirname(there)
  }
  const root = join(realpathSync(there), ...below)
  if (existsSync(root) && !statSync(root).isDirectory()) {
    throw new UsageError(`${root} is not a folder.`, {
      code: 'not-a-folder',
      hint: 'Give the path of a folder; it is made if it is not there.',
    })
  }
  if (dirname(root) === root || root === realpathSync(homedir())) {
    throw new UsageError(`${root} is too much to be kept in step with a drive.`, {
      code: 'root-too-wide',
      hint: 'Choose a folder inside of it.',
    })
  }
  return root
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink()
  } catch {
    return false // not there, or not to be looked at, which shows when it is made
  }
}

async function refuseOverlap({ files, home }: Opened, root: string): Promise<void> {
  const here = machineId()
  for (const row of await files.store.folderPairs()) {
    if (row.machine !== here || !(isWithin(root, row.root) || isWithin(row.root, root))) continue
    if (root === row.root) {
      throw new UsageError(`The folder ${root} is kept in step already, as ${row.name}.`, {
        code: 'root-taken',
        hint: `Sync it with: tidemark files sync ${shellWord(row.name)}`,
      })
    }
    const lies = isWithin(root, row.root) ? 'lies in' : 'has in it'
    throw new UsageError(
      `The folder ${root} ${lies} ${row.root}, which is kept in step already, as ${row.name}.`,
      { code: 'root-nested', hint: 'Choose a folder outside of it: nothing can be kept in step twice.' },
    )
  }
  const own = existsSync(home) ? realpathSync(home) : resolve(home)
  if (!isWithin(root, own) && !isWithin(own, root)) return
  throw new UsageError(`The folder ${root} and ${own}, where Tidemark keeps its data, lie in each other.`, {
    code: 'root-nested',
    hint: 'Choose another folder: the ledger must not be synced while it is written.',
  })
}

function refuseMarked(root: string): void {
  const marker = markerOf(root)
  if (!existsSync(marker)) return
  throw new UsageError(`The folder ${root} has a marker already: another Tidemark keeps it in step.`, {
    code: 'marker-foreign',
    hint: `Choose another folder. If nothing keeps it any more, delete ${marker} and try again: what is equal on both sides is not copied again.`,
  })
}

async function nameFor({ files }: Opened, wanted: string | undefined, root: string): Promise<string> {
  const taken = new Set((await files.store.folderPairs()).map(({ name }) => name.toLowerCase()))
  if (wanted !== undefined) {
    if (!NAME.test(wanted)) {
      throw new UsageError(`"${wanted}" cannot be the name of a folder here.`, {
        code: 'name-refused',
        hint: 'Use up to 60 letters, digits, blanks and . _ -, and begin with a letter or a digit.',
      })
    }
    if (!taken.has(wanted.toLowerCase())) return wanted
    throw new UsageError(`There is a folder called ${wanted} already.`, {
      code: 'name-taken',
      hint: 'Choose another name with --name.',
    })
  }
  const plain = basename(root)
    .normalize('NFC')
    .replaceAll(/[^\p{L}\p{N} ._-]/gu, '-')
  const base = plain.replace(/^[^\p{L}\p{N}]+/u, '').slice(0, 56) || 'files'
  for (let count = 1; ; count++) {
    const name = count === 1 ? base : `${base}-${count}`
    if (!taken.has(name.toLowerCase())) return name
  }
}

function entriesIn(root: string): number {
  if (!existsSync(root)) return 0
  return readdirSync(root).filter((name) => name !== OWN_FOLDER).length
}
