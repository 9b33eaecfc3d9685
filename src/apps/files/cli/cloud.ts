/** `tidemark files rm|mkdir|mv`: change OneDrive itself; the folder follows by what OneDrive then tells. */
import type { CliContext } from '../../../app/command.ts'
import { TidemarkError, UsageError } from '../../../base/errors.ts'
import { formatBytes } from '../../../base/format.ts'
import { shellWord } from '../../../base/wording.ts'
import type { DriveItem } from '../../../cloud/onedrive/client.ts'
import type { FolderPair } from '../folder-pair.ts'
import { namesOfPath } from '../folder-settings.ts'
import { illegalNameOf } from '../names.ts'
import { topFolder } from '../shared-folder.ts'
import { chosenFolderPair, type OpenedFiles, withFiles } from './context.ts'

export type CloudOptions = { folder?: string | undefined }

/** For commands that change something: afterwards OneDrive is asked what changed. */
export async function withFolderPair(
  context: CliContext,
  { folder }: CloudOptions,
  use: (pair: FolderPair, opened: OpenedFiles) => Promise<void>,
): Promise<void> {
  await withFiles(context, async (opened) => {
    const pair = await chosenFolderPair(opened, folder)
    await use(pair, opened)
  })
}

export async function bringHome({ engine, files }: OpenedFiles, { name, stream }: FolderPair): Promise<void> {
  await engine.streams.open(stream)
  await engine.enqueue(files.kinds.delta, { drive: name }, { stream })
}

export async function findItem(pair: FolderPair, names: readonly string[]): Promise<DriveItem | undefined> {
  const { client, driveId } = pair
  try {
    return await client.itemByPath(driveId, names.join('/'), topFolder(pair))
  } catch (thrown) {
    if (thrown instanceof TidemarkError && thrown.kind === 'gone') return undefined
    throw thrown
  }
}

export async function requireItem(pair: FolderPair, names: readonly string[]): Promise<DriveItem> {
  const found = await findItem(pair, names)
  if (found) return found
  throw new UsageError(`OneDrive has no ${names.join('/') || 'root'}.`, {
    code: 'path-unknown',
    hint: 'Give the path from the top of the drive. What is there: tidemark files ls',
  })
}

export async function requireFolder(pair: FolderPair, names: readonly string[]): Promise<DriveItem> {
  const found = await findItem(pair, names)
  if (found?.type === 'folder' || found?.type === 'root') return found
  const path = names.join('/')
  if (found) throw new UsageError(`${path} is not a folder.`, { code: 'not-a-folder' })
  throw new UsageError(`OneDrive has no folder ${path}.`, {
    code: 'path-unknown',
    hint: `Make it with: tidemark files mkdir ${shellWord(path)} --parents`,
  })
}

/** What OneDrive would refuse is said before it is asked. */
export function checkName(names: readonly string[]): void {
  const name = names.at(-1)!
  const problem = illegalNameOf(name, { isInRoot: names.length === 1, path: names.join('/') })
  if (problem !== undefined) throw new UsageError(`${name}: ${problem}.`, { code: 'name-refused' })
}

export async function removePath(
  context: CliContext,
  { path, recursive, ...options }: CloudOptions & { path: string; recursive?: boolean },
): Promise<void> {
  const names = namesOfPath(path)
  if (names.length === 0) throw new UsageError('The whole drive is not deleted by this command.')
  await withFolderPair(context, options, async (pair, opened) => {
    const item = await requireItem(pair, names)
    if (item.type === 'folder' && !recursive && (await hasChildren(pair, item))) {
      throw new UsageError(`${names.join('/')} is a folder that is not empty.`, {
        code: 'not-empty',
        hint: 'With --recursive it goes to the recycle bin with all that is in it.',
      })
    }
    await pair.client.remove(pair.driveId, item.id, item.eTag === undefined ? {} : { ifMatch: item.eTag })
    await bringHome(opened, pair)
    say(context, { path: names.join('/'), did: 'is in the recycle bin of OneDrive', itemId: item.id })
  })
}

async function hasChildren({ client, driveId }: FolderPair, { id }: DriveItem): Promise<boolean> {
  for await (const _ of client.children(driveId, id, { pageSize: 1 })) return true
  return false
}

export async function makeFolder(
  context: CliContext,
  { path, parents, ...options }: CloudOptions & { path: string; parents?: boolean },
): Promise<void> {
  const names = namesOfPath(path)
  if (names.length === 0) throw new UsageError('Which folder is to be made?')
  await withFolderPair(context, options, async (pair, opened) => {
    let parent = await requireFolder(pair, parents ? [] : names.slice(0, -1))
    for (let at = parents ? 1 : names.length; at <= names.length; at++) {
      const here = names.slice(0, at)
      const there = at < names.length ? await findItem(pair, here) : undefined
      if (there && there.type !== 'folder') throw new UsageError(`${here.join('/')} is not a folder.`)
      parent = there ?? (await makeOne(pair, parent, here))
    }
    await bringHome(opened, pair)
    say(context, { path: names.join('/'), did: 'is a folder in OneDrive now', itemId: parent.id })
  })
}

async function makeOne(pair: FolderPair, parent: DriveItem, names: readonly string[]): Promise<DriveItem> {
  checkName(names)
  const name = names.at(-1)!
  try {
    return await pair.client.createFolder(pair.driveId, { parentId: parent.id, name, conflict: 'fail' })
  } catch (thrown) {
    throw alreadyThere(thrown, names)
  }
}

export function alreadyThere(thrown: unknown, names: readonly string[], hint?: string): unknown {
  if (!(thrown instanceof TidemarkError) || thrown.code !== 'exists') return thrown
  return new UsageError(`OneDrive has ${names.join('/')} already; it was left alone.`, {
    code: 'place-taken',
    cause: thrown,
    ...(hint === undefined ? {} : { hint }),
  })
}

export async function movePath(
  context: CliContext,
  { from, to, ...options }: CloudOptions & { from: string; to: string },
): Promise<void> {
  const [source, wanted] = [namesOfPath(from), namesOfPath(to)]
  if (source.length === 0) throw new UsageError('The whole drive cannot be moved.')
  await withFolderPair(context, options, async (pair, opened) => {
    const item = await requireItem(pair, source)
    const there = await findItem(pair, wanted)
    const isInto = there !== undefined && there.id !== item.id && there.type !== 'file'
    const target = isInto ? [...wanted, source.at(-1)!] : wanted
    if (there && !isInto && there.id !== item.id) {
      throw alreadyThere(new TidemarkError('', { kind: 'permanent', code: 'exists' }), target)
    }
    checkName(target)
    const parent = await requireFolder(pair, target.slice(0, -1))
    const match = item.eTag === undefined ? {} : { ifMatch: item.eTag }
    const change = { parentId: parent.id, name: target.at(-1)! }
    await pair.client.update(pair.driveId, item.id, change, match).catch((thrown: unknown) => {
      throw alreadyThere(thrown, target)
    })
    await bringHome(opened, pair)
    say(context, { path: target.join('/'), did: 'is its place in OneDrive now', itemId: item.id })
  })
}

export function say(
  { output }: CliContext,
  { path, did, itemId, bytes }: { path: string; did: string; itemId: string; bytes?: number },
): void {
  if (output.json) output.value({ path, itemId, ...(bytes === undefined ? {} : { bytes }) })
  else output.line(`${path} ${did}${bytes === undefined ? '' : ` (${formatBytes(bytes)})`}.`)
}
