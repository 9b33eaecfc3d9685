/** Brings one file to OneDrive: at once where it is small, else in pieces that become visible with the last one. */
import { type FileHandle, open } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import type { CliContext } from '../../../app/command.ts'
import { systemClock } from '../../../base/clock.ts'
import { asTidemarkError, TidemarkError, UsageError } from '../../../base/errors.ts'
import { formatBytes } from '../../../base/format.ts'
import { QuickXorHash } from '../../../base/quick-xor-hash.ts'
import { type DriveItem, PUT_BYTES_MAX, type Target } from '../../../cloud/onedrive/client.ts'
import type { FolderPair } from '../folder-pair.ts'
import { namesOfPath } from '../folder-settings.ts'
import { isSameStat, plainStat, toLook } from '../local/stat.ts'
import type { LocalStat } from '../trees.ts'
import {
  alreadyThere,
  bringHome,
  type CloudOptions,
  checkName,
  findItem,
  requireFolder,
  say,
  withFolderPair,
} from './cloud.ts'
import { KeptUpload } from './cloud-kept.ts'

export type PutFileOptions = CloudOptions & { file: string; path: string; force?: boolean }

const FORCE_HINT = 'Replace it with --force: the version before stays in its history.'

export async function putFile(
  context: CliContext,
  { file: source, path, force, ...options }: PutFileOptions,
): Promise<void> {
  const file = await openFile(source)
  try {
    const stat = await openFileStat(file)
    const { size } = stat
    const mtimeMs = Number(stat.mtimeNs) / 1_000_000
    const { home } = await context.loadConfig()
    await withFolderPair(context, options, async (pair, opened) => {
      const { names, known } = await targetPlace(pair, path, basename(resolve(source)))
      checkName(names)
      if (known && !force) throw alreadyThere(existing(), names, FORCE_HINT)
      const parent = await requireFolder(pair, names.slice(0, -1))
      const target: Target = known ? { itemId: known.id } : { parentId: parent.id, name: names.at(-1)! }
      const ifMatch = known?.eTag
      const about = [pair.driveId, target, ifMatch ?? null, resolve(source), stat]
      const kept = new KeptUpload(home.path, about)
      const content = { file, stat, size, modifiedMs: Math.floor(mtimeMs), ifMatch, kept, context }
      const item = await upload(pair, target, content).catch((thrown: unknown) => {
        throw alreadyThere(thrown, names, FORCE_HINT)
      })
      await bringHome(opened, pair)
      say(context, { path: names.join('/'), did: 'is in OneDrive', itemId: item.id, bytes: size })
    })
  } finally {
    await file.close()
  }
}

function existing(): TidemarkError {
  return new TidemarkError('It is there.', { kind: 'permanent', code: 'exists' })
}

async function openFile(path: string): Promise<FileHandle> {
  const file = await open(path, 'r').catch((thrown: unknown) => {
    const isAbsent = (thrown as NodeJS.ErrnoException).code === 'ENOENT'
    const message = isAbsent ? `There is no file ${path}.` : `${path} cannot be read.`
    throw new UsageError(message, { code: 'unreadable', cause: thrown })
  })
  if ((await file.stat()).isFile()) return file
  await file.close()
  throw new UsageError(`${path} is not a file.`, { code: 'not-a-file' })
}

/** A folder that is there takes the file in, under its own name. */
async function targetPlace(
  pair: FolderPair,
  path: string,
  name: string,
): Promise<{ names: string[]; known: DriveItem | undefined }> {
  const wanted = namesOfPath(path)
  const there = wanted.length === 0 || path.endsWith('/') ? 'folder' : await findItem(pair, wanted)
  const isFolder = there === 'folder' || there?.type === 'folder' || there?.type === 'root'
  if (!isFolder) return { names: wanted, known: there }
  const names = [...wanted, name]
  const known = await findItem(pair, names)
  if (known && known.type !== 'file') throw new UsageError(`${names.join('/')} is a folder.`)
  return { names, known }
}

type Content = {
  file: FileHandle
  /** When it was opened. */
  stat: LocalStat
  size: number
  modifiedMs: number
  ifMatch: string | undefined
  kept: KeptUpload
  context: Pick<CliContext, 'output'>
}

/** What OneDrive has then is compared with what was sent. */
async function upload(pair: FolderPair, target: Target, content: Content): Promise<DriveItem> {
  const hash = new QuickXorHash()
  const item =
    content.size <= PUT_BYTES_MAX
      ? await putWhole(pair, target, content, hash)
      : await putPieces(pair, target, content, hash)
  const sent = hash.digest().toString('base64')
  if (item.hash !== undefined && item.hash !== sent && item.size === content.size) {
    throw new TidemarkError('What OneDrive has now is not what was sent.', {
      kind: 'transient',
      code: 'hash-differs',
      hint: 'The file may have been written meanwhile: send it again with --force.',
    })
  }
  return item
}

const conflictOf = (target: Target): 'replace' | 'fail' => ('itemId' in target ? 'replace' : 'fail')

async function putWhole(
  { client, driveId }: FolderPair,
  target: Target,
  { file, stat, size, modifiedMs, ifMatch }: Content,
  hash: QuickXorHash,
): Promise<DriveItem> {
  const body = await readPiece(file, { at: 0, length: size })
  await checkUnchanged(file, stat)
  hash.update(body)
  const item = await client.putContent(driveId, target, body, { conflict: conflictOf(target), ifMatch })
  return client.update(driveId, item.id, { modifiedMs })
}

async function putPieces(
  pair: FolderPair,
  target: Target,
  content: Content,
  hash: QuickXorHash,
): Promise<DriveItem> {
  const { client } = pair
  const { file, stat, size, kept } = content
  const { url, offset } = (await resumed(pair, content)) ?? (await begun(pair, target, content))
  try {
    for (let at = 0; ; ) {
      const length = Math.min(PIECE_BYTES, (at < offset ? offset : size) - at)
      const body = await readPiece(file, { at, length })
      hash.update(body)
      if (at >= offset) {
        // With the last one it becomes visible: it is the file of one moment, or nothing.
        if (at + length === size) await checkUnchanged(file, stat)
        const answer = await client.uploadFragment(url, { offset: at, total: size, body, length })
        if ('item' in answer) {
          kept.drop()
          return answer.item
        }
        if (answer.nextOffset !== at + length || answer.nextOffset >= size) throw interrupted()
      }
      at += length
    }
  } catch (thrown) {
    // What may go well later goes on from there.
    if (isTemporary(thrown)) throw thrown
    kept.drop()
    await client.cancelUpload(url).catch(() => {
      // It ends by itself after some time; what is told is why the upload failed.
    })
    throw thrown
  }
}

type Begun = { url: string; offset: number }

async function begun(
  { client, driveId }: FolderPair,
  target: Target,
  { size, modifiedMs, ifMatch, kept }: Content,
): Promise<Begun> {
  const session = await client.createUploadSession(driveId, target, {
    conflict: conflictOf(target),
    ifMatch,
    modifiedMs,
    size,
  })
  kept.write(session, systemClock.now())
  return { url: session.url, offset: 0 }
}

/** OneDrive knows how much it has of what an earlier command has sent. */
async function resumed({ client }: FolderPair, { size, kept, context }: Content): Promise<Begun | undefined> {
  const session = kept.read(systemClock.now())
  if (!session) return undefined
  try {
    const { nextOffset: offset } = await client.uploadStatus(session.url)
    if (offset >= size) return undefined
    context.output.note(`Goes on after ${formatBytes(offset)} of ${formatBytes(size)}.`)
    return { url: session.url, offset }
  } catch (thrown) {
    if (isTemporary(thrown)) throw thrown
    return undefined
  }
}

function isTemporary(thrown: unknown): boolean {
  const { kind } = asTidemarkError(thrown)
  return kind === 'transient' || kind === 'throttled' || kind === 'auth'
}

/** A multiple of 320 KiB. */
const PIECE_BYTES = 32 * 320 * 1024

function interrupted(): TidemarkError {
  return new TidemarkError('OneDrive lost a part of the upload.', {
    kind: 'transient',
    code: 'range',
    hint: 'Try again: it goes on where it was. Nothing of it is visible in OneDrive yet.',
  })
}

async function openFileStat(file: FileHandle): Promise<LocalStat> {
  return plainStat(toLook(await file.stat({ bigint: true })))
}

async function checkUnchanged(file: FileHandle, stat: LocalStat): Promise<void> {
  if (isSameStat(await openFileStat(file), stat)) return
  throw new UsageError('The file was changed while it was read; nothing was sent to its place.', {
    code: 'file-changed',
    hint: 'Try again when nobody writes to it.',
  })
}

async function readPiece(file: FileHandle, { at, length }: { at: number; length: number }): Promise<Buffer> {
  const body = Buffer.allocUnsafe(length)
  let done = 0
  while (done < length) {
    const { bytesRead } = await file.read(body, done, length - done, at + done)
    if (bytesRead === 0) throw new UsageError('The file became shorter while it was read.')
    done += bytesRead
  }
  return body
}
