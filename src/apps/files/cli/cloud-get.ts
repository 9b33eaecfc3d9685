/** Fetches one file: whole and verified, or not at all. */
import { randomUUID } from 'node:crypto'
import { chmodSync, existsSync, lstatSync, renameSync, type Stats, statSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { basename, dirname, join, relative, resolve, sep } from 'node:path'
import type { CliContext } from '../../../app/command.ts'
import { systemClock } from '../../../base/clock.ts'
import { TidemarkError, UsageError } from '../../../base/errors.ts'
import { QuickXorHash } from '../../../base/quick-xor-hash.ts'
import type { DriveItem } from '../../../cloud/onedrive/client.ts'
import type { FolderPair } from '../folder-pair.ts'
import { namesOfPath } from '../folder-settings.ts'
import { copyAttributes } from '../local/attributes.ts'
import { moveIfFree } from '../local/exclusive.ts'
import { openRoot } from '../local/root.ts'
import { putBack, takeReplaced } from '../local/trash.ts'
import { unsafeNameOf } from '../names.ts'
import { type CloudOptions, requireItem, say, withFolderPair } from './cloud.ts'

export type GetOptions = CloudOptions & { path: string; to?: string | undefined; force?: boolean }

export async function getFile(
  context: CliContext,
  { path, to, force, ...options }: GetOptions,
): Promise<void> {
  const names = namesOfPath(path)
  await withFolderPair(context, options, async (pair) => {
    const item = await requireItem(pair, names)
    if (item.type !== 'file') throw new UsageError(`${names.join('/') || 'The root'} is not a file.`)
    const target = targetOf(to, names.at(-1)!)
    if (!force && existsSync(target)) throw taken(target)
    const { bytes, kept } = await fetchTo(pair, item, { target, isReplacing: force === true })
    say(context, { path: names.join('/'), did: `is at ${target}`, itemId: item.id, bytes })
    if (kept) context.output.note(`What was there is in the trash of ${pair.name}: ${kept.join('/')}`)
  })
}

function taken(target: string): UsageError {
  return new UsageError(`${target} is there already; it was left alone.`, {
    code: 'place-taken',
    hint: 'Choose another place, or replace it with --force.',
  })
}

/** Into a folder under its own name: that comes from the cloud, and must not lead anywhere else. */
function targetOf(to: string | undefined, name: string): string {
  const isFolder = to === undefined || /[/\\]$/.test(to) || (existsSync(to) && statSync(to).isDirectory())
  if (!isFolder) return resolve(to)
  const problem = unsafeNameOf(name)
  if (problem !== undefined) {
    throw new UsageError(`${name} cannot be a file here: ${problem}.`, {
      hint: 'Give it another name: tidemark files get PATH NAME',
    })
  }
  const folder = resolve(to ?? '.')
  if (!existsSync(folder)) throw new UsageError(`There is no folder ${folder}.`)
  return join(folder, name)
}

async function fetchTo(
  pair: FolderPair,
  item: DriveItem,
  { target, isReplacing }: { target: string; isReplacing: boolean },
): Promise<{ bytes: number; kept?: string[] }> {
  const draft = join(dirname(target), `.${basename(target).slice(0, 60)}.${randomUUID()}.partial`)
  try {
    const { hash, bytes } = await download(pair, item, draft)
    const isOther = item.hash === undefined ? item.size !== bytes : item.hash !== hash
    if (isOther) {
      throw new TidemarkError('What arrived is not what OneDrive says the file is. Nothing was kept.', {
        kind: 'transient',
        code: 'hash-differs',
        hint: 'It may have been changed just now: try again.',
      })
    }
    const there = lstatSync(target, { throwIfNoEntry: false })
    if (isReplacing && there) return { bytes, kept: replace(pair, draft, { target, there }) }
    if (!moveIfFree(draft, target)) throw taken(target)
    return { bytes }
  } finally {
    await rm(draft, { force: true })
  }
}

/** What is there may be the only copy of it: it goes to the trash of the folder first. */
function replace(
  pair: FolderPair,
  draft: string,
  { target, there }: { target: string; there: Stats },
): string[] {
  if (there.isDirectory()) throw new UsageError(`${target} is a folder; it was left alone.`)
  const root = openRoot(pair.root, pair.markerId)
  if (there.isFile()) {
    copyAttributes(target, draft)
    chmodSync(draft, there.mode & 0o777)
  }
  const isInside = target.startsWith(root.path + sep)
  const names = isInside ? relative(root.path, target).split(sep) : [basename(target)]
  const { kept, isCopy } = takeReplaced(root, target, { names, atMs: systemClock.now() })
  if (isCopy) renameSync(draft, target)
  else if (!moveIfFree(draft, target)) {
    putBack(root, kept, target)
    throw taken(target)
  }
  return kept
}

async function download(
  { client, driveId }: FolderPair,
  item: DriveItem,
  draft: string,
): Promise<{ hash: string; bytes: number }> {
  const file = await open(draft, 'wx', 0o600)
  try {
    const { stream } = await client.download(driveId, item.id)
    const hash = new QuickXorHash()
    let bytes = 0
    for await (const chunk of stream) {
      hash.update(chunk)
      await file.writeFile(chunk)
      bytes += chunk.length
    }
    if (item.modifiedMs !== undefined) await file.utimes(item.modifiedMs / 1_000, item.modifiedMs / 1_000)
    await file.sync()
    return { hash: hash.digest().toString('base64'), bytes }
  } finally {
    await file.close()
  }
}
