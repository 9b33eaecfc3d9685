/** Brings one file to OneDrive: at once where it is small, else in pieces that become visible with the last one. */
import { type FileHandle, open } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import type { FileDrive } from '../apps/file-sync/drive.ts'
import { type DriveItem, PUT_BYTES_MAX, type Target } from '../cloud/onedrive/client.ts'
import { TidemarkError, UsageError } from '../errors.ts'
import { QuickXorHash } from '../quick-xor-hash.ts'
import type { CliContext } from './context.ts'
import {
  alreadyThere,
  bringHome,
  type CloudOptions,
  checkName,
  findItem,
  requireFolder,
  say,
  withDrive,
} from './files-cloud-run.ts'
import { namesOfPath } from './files-context.ts'

export type PutFileOptions = CloudOptions & { file: string; path: string; force?: boolean }

const FORCE_HINT = 'Replace it with --force: the version before stays in its history.'

export async function putFile(
  context: CliContext,
  { file: source, path, force, ...options }: PutFileOptions,
): Promise<void> {
  const file = await openFile(source)
  try {
    const { size, mtimeMs } = await file.stat()
    await withDrive(context, options, async (drive, opened) => {
      const { names, known } = await placeOf(drive, path, basename(resolve(source)))
      checkName(names)
      if (known && !force) throw alreadyThere(existing(), names, FORCE_HINT)
      const parent = await requireFolder(drive, names.slice(0, -1))
      const target: Target = known ? { itemId: known.id } : { parentId: parent.id, name: names.at(-1)! }
      const content = { file, size, modifiedMs: Math.floor(mtimeMs), ifMatch: known?.eTag }
      const item = await upload(drive, target, content).catch((thrown: unknown) => {
        throw alreadyThere(thrown, names, FORCE_HINT)
      })
      await bringHome(opened, drive)
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
    throw new UsageError(`${path} cannot be read.`, { code: 'unreadable', cause: thrown })
  })
  if ((await file.stat()).isFile()) return file
  await file.close()
  throw new UsageError(`${path} is not a file.`, { code: 'not-a-file' })
}

/** A folder that is there takes the file in, under its own name. */
async function placeOf(
  drive: FileDrive,
  path: string,
  name: string,
): Promise<{ names: string[]; known: DriveItem | undefined }> {
  const wanted = namesOfPath(path)
  const there = wanted.length === 0 || path.endsWith('/') ? 'folder' : await findItem(drive, wanted)
  const isFolder = there === 'folder' || there?.type === 'folder' || there?.type === 'root'
  if (!isFolder) return { names: wanted, known: there }
  const names = [...wanted, name]
  const known = await findItem(drive, names)
  if (known && known.type !== 'file') throw new UsageError(`${names.join('/')} is a folder.`)
  return { names, known }
}

type Content = { file: FileHandle; size: number; modifiedMs: number; ifMatch: string | undefined }

/** What OneDrive has then is compared with what was sent. */
async function upload(drive: FileDrive, target: Target, content: Content): Promise<DriveItem> {
  const hash = new QuickXorHash()
  const item =
    content.size <= PUT_BYTES_MAX
      ? await putWhole(drive, target, content, hash)
      : await putPieces(drive, target, content, hash)
  const sent = hash.digest().toString('base64')
  if (item.hash !== undefined && item.hash !== sent && item.size === content.size) {
    throw new TidemarkError('What OneDrive has now is not what was sent.', {
      ...{ kind: 'transient', code: 'hash-differs' },
      hint: 'The file may have been written meanwhile: send it again with --force.',
    })
  }
  return item
}

const conflictOf = (target: Target): 'replace' | 'fail' => ('itemId' in target ? 'replace' : 'fail')

async function putWhole(
  { client, driveId }: FileDrive,
  target: Target,
  { file, size, modifiedMs, ifMatch }: Content,
  hash: QuickXorHash,
): Promise<DriveItem> {
  const body = await readPiece(file, { at: 0, length: size })
  hash.update(body)
  const item = await client.putContent(driveId, target, body, { conflict: conflictOf(target), ifMatch })
  return client.update(driveId, item.id, { modifiedMs })
}

async function putPieces(
  { client, driveId }: FileDrive,
  target: Target,
  { file, size, modifiedMs, ifMatch }: Content,
  hash: QuickXorHash,
): Promise<DriveItem> {
  const session = await client.createUploadSession(driveId, target, {
    ...{ conflict: conflictOf(target), ifMatch, modifiedMs, size },
  })
  try {
    for (let at = 0; ; ) {
      const length = Math.min(PIECE_BYTES, size - at)
      const body = await readPiece(file, { at, length })
      hash.update(body)
      const answer = await client.uploadFragment(session.url, { offset: at, total: size, body, length })
      if ('item' in answer) return answer.item
      at += length
      if (answer.nextOffset !== at || at >= size) throw interrupted()
    }
  } catch (thrown) {
    await client.cancelUpload(session.url).catch(() => {
      // It ends by itself after some time; what is told is why the upload failed.
    })
    throw thrown
  }
}

/** A multiple of 320 KiB. */
const PIECE_BYTES = 32 * 320 * 1024

function interrupted(): TidemarkError {
  return new TidemarkError('OneDrive lost a part of the upload.', {
    ...{ kind: 'transient', code: 'range' },
    hint: 'Try again. Nothing of it is visible in OneDrive.',
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
