/** Fetches one file: whole and verified, or not at all. */
import { randomUUID } from 'node:crypto'
import { existsSync, linkSync, renameSync, statSync } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import type { FileDrive } from '../apps/file-sync/drive.ts'
import { unsafeNameOf } from '../apps/file-sync/names.ts'
import type { DriveItem } from '../cloud/onedrive/client.ts'
import { TidemarkError, UsageError } from '../errors.ts'
import { QuickXorHash } from '../quick-xor-hash.ts'
import type { CliContext } from './context.ts'
import { type CloudOptions, requireItem, say, withDrive } from './files-cloud-run.ts'
import { namesOfPath } from './files-context.ts'

export type GetOptions = CloudOptions & { path: string; to?: string | undefined; force?: boolean }

export async function getFile(
  context: CliContext,
  { path, to, force, ...options }: GetOptions,
): Promise<void> {
  const names = namesOfPath(path)
  await withDrive(context, options, async (drive) => {
    const item = await requireItem(drive, names)
    if (item.type !== 'file') throw new UsageError(`${names.join('/') || 'The root'} is not a file.`)
    const target = targetOf(to, names.at(-1)!)
    if (!force && existsSync(target)) throw taken(target)
    const bytes = await fetchTo(drive, item, { target, isReplacing: force === true })
    say(context, { path: names.join('/'), did: `is at ${target}`, itemId: item.id, bytes })
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
  drive: FileDrive,
  item: DriveItem,
  { target, isReplacing }: { target: string; isReplacing: boolean },
): Promise<number> {
  const draft = join(dirname(target), `.${basename(target).slice(0, 60)}.${randomUUID()}.partial`)
  try {
    const { hash, bytes } = await download(drive, item, draft)
    const isOther = item.hash === undefined ? item.size !== bytes : item.hash !== hash
    if (isOther) {
      throw new TidemarkError('What arrived is not what OneDrive says the file is. Nothing was kept.', {
        ...{ kind: 'transient', code: 'hash-differs' },
        hint: 'It may have been changed just now: try again.',
      })
    }
    if (isReplacing) renameSync(draft, target)
    else {
      // A link never replaces anything.
      try {
        linkSync(draft, target)
      } catch (thrown) {
        if (existsSync(target)) throw taken(target)
        throw thrown
      }
    }
    return bytes
  } finally {
    await rm(draft, { force: true })
  }
}

async function download(
  { client, driveId }: FileDrive,
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
