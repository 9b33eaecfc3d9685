/**
 * The content of an item, fetched into a file of our own, whole and verified. What an interrupted download left is
 * continued: its bytes are hashed first, so that the hash in the end is of all of them.
 */
import { closeSync, constants, fstatSync, lstatSync, open as openCallback, writeFileSync } from 'node:fs'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { promisify } from 'node:util'
import { TidemarkError } from '../../../base/errors.ts'
import type { ActionContext, Ended } from '../action.ts'
import { ContentHash, DIGESTS_OF_NOTHING, digestsOf } from '../content-hash.ts'
import type { FilesSettings } from '../folder-pair.ts'
import { freeBytes, partialPath, settle } from '../local/place.ts'
import type { Root } from '../local/root.ts'
import { errnoOf } from '../local/stat.ts'
import { isOther } from '../store/remote-tree.ts'
import type { Digests, RemoteRow } from '../trees.ts'
import { errorCode, lookAtItem, notGiven, staleWith } from './fresh-look.ts'
import type { Transfer, Transfers } from './transfers.ts'

export type FetchDeps = { settings: Pick<FilesSettings, 'reserveBytes'>; transfers: Transfers }

export type Fetched = { path: string; bytes: number } & Digests

const READ_BYTES = 1024 * 1024
/** Pieces from the network are small; they are written together. */
const WRITE_BYTES = 1024 * 1024
const openFile = promisify(openCallback)
/** What is kept in memory until it is whole. */
export const SMALL_BYTES_MAX = 256 * 1024
const NOTHING = Buffer.alloc(0)
const FLAGS = constants.O_RDWR | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0)

export async function fetchContent(
  deps: FetchDeps,
  context: ActionContext,
  root: Root,
  remote: RemoteRow,
): Promise<Fetched | { ended: Ended }> {
  const path = partialPath(root, { itemId: remote.itemId, cTag: remote.cTag ?? remote.hash ?? remote.eTag })
  const small =
    remote.size <= SMALL_BYTES_MAX ? await fetchSmall(deps, context, root, { remote, path }) : undefined
  return small ?? (await fetchLarge(deps, context, root, { remote, path }))
}

/**
 * In memory first, then written at once, where nothing of it is there from before: a handful of calls of the file
 * system fewer. Undefined: there is something, or it is not small after all.
 */
async function fetchSmall(
  deps: FetchDeps,
  context: ActionContext,
  root: Root,
  { remote, path }: { remote: RemoteRow; path: string },
): Promise<Fetched | { ended: Ended } | undefined> {
  const { job } = context
  const transfer = beginTransfer(deps, context, remote)
  try {
    checkSpace(deps, root, remote.size)
    const bytes = isEmpty(remote) ? NOTHING : await receiveSmall(context, remote)
    if (!bytes) return undefined
    transfer.moved(bytes.length)
    job.progress({ done: bytes.length, total: bytes.length, unit: 'bytes' })
    const fetched = { path, ...digestsOf(bytes), bytes: bytes.length }
    const trouble = await verify(context, remote, fetched, bytes.length)
    if (trouble instanceof TidemarkError) throw trouble
    if (trouble) return { ended: trouble }
    return (await writeNew(path, bytes, remote.modifiedMs)) ? fetched : undefined
  } catch (thrown) {
    if (errorCode(thrown) !== 'not-found') throw thrown
    return { ended: await notFound(context, remote) }
  } finally {
    transfer.end()
  }
}

/** False where something has that name already. */
async function writeNew(path: string, bytes: Uint8Array, modifiedMs: number | null): Promise<boolean> {
  let fd: number
  try {
    // A new name waits for the disk's journal, so not in this thread; the few bytes go to memory.
    fd = await openFile(path, FLAGS | constants.O_EXCL, 0o600)
  } catch (thrown) {
    if (errnoOf(thrown) === 'EEXIST') return false
    throw thrown
  }
  try {
    checkOwn(path, fd)
    writeFileSync(fd, bytes)
    await settle(fd, modifiedMs)
    return true
  } finally {
    closeSync(fd)
  }
}

async function receiveSmall({ pair, job }: ActionContext, remote: RemoteRow): Promise<Buffer | undefined> {
  const answer = await pair.client.download(pair.driveId, remote.itemId, { signal: job.signal })
  if (answer.total !== undefined && answer.total <= SMALL_BYTES_MAX) return answer.bytes()
  await answer.stream.cancel()
  return undefined
}

function beginTransfer(
  { transfers }: FetchDeps,
  { pair, node, job }: ActionContext,
  remote: RemoteRow,
): Transfer {
  return transfers.begin({
    drive: pair.name,
    node,
    localId: undefined,
    direction: 'download',
    path: job.payload.path,
    totalBytes: remote.size,
    startedAtMs: job.clock.now(),
  })
}

async function fetchLarge(
  deps: FetchDeps,
  context: ActionContext,
  root: Root,
  { remote, path }: { remote: RemoteRow; path: string },
): Promise<Fetched | { ended: Ended }> {
  const { job } = context
  const file = await openPartial(path)
  const transfer = beginTransfer(deps, context, remote)
  const download = new PartialDownload(file, path, (bytes, { isKept }) => {
    if (isKept) transfer.kept(bytes)
    else transfer.moved(bytes)
    job.progress({ done: bytes, total: Math.max(bytes, remote.size), unit: 'bytes' })
  })
  try {
    await download.readOn(remote.size, job.signal)
    checkSpace(deps, root, remote.size - download.bytes)
    const total = isEmpty(remote) ? 0 : await receive(context, download, remote)
    const fetched = { path, ...download.digests(), bytes: download.bytes }
    const trouble = await verify(context, remote, fetched, total)
    if (!trouble) {
      download.checkOwn()
      await settle(file.fd, remote.modifiedMs)
      return fetched
    }
    await rm(path, { force: true })
    if (trouble instanceof TidemarkError) throw trouble
    return { ended: trouble }
  } catch (thrown) {
    if (errorCode(thrown) !== 'not-found') throw thrown
    // What came already is kept: if it is given after all, that goes on.
    return { ended: await notFound(context, remote) }
  } finally {
    transfer.end()
    await file.close()
  }
}

/**
 * Where a process died between the two steps that give a whole download its place, this is one more name of the file
 * that people see and edit by now: that is never written to, nor gone on with.
 */
async function openPartial(path: string): Promise<FileHandle> {
  const file = await open(path, FLAGS, 0o600)
  if (fstatSync(file.fd).nlink <= 1) return file
  await file.close()
  await rm(path, { force: true })
  return open(path, FLAGS | constants.O_EXCL, 0o600)
}

/** S6. What other downloads still have to write counts as used already. */
function checkSpace({ settings, transfers }: FetchDeps, root: Root, bytes: number): void {
  const { totalBytes, doneBytes } = transfers.numbers().download
  const ahead = Math.max(bytes, totalBytes - doneBytes)
  if (bytes <= 0 || freeBytes(root) - ahead >= settings.reserveBytes) return
  throw new TidemarkError('The disk is too full for this download', {
    kind: 'transient',
    code: 'disk-full',
    hint: 'Free some space; it goes on by itself. How much stays free is the setting files.disk_reserve.',
  })
}

function isEmpty({ size, hash }: RemoteRow): boolean {
  return size === 0 && (hash === null || hash === DIGESTS_OF_NOTHING.hash)
}

/** Returns how many bytes the whole has, where the server says it. */
async function receive(
  { pair, job }: ActionContext,
  download: PartialDownload,
  remote: RemoteRow,
): Promise<number | undefined> {
  if (download.bytes > 0 && download.bytes === remote.size) {
    if (download.digests().hash === remote.hash) return remote.size
    // Some sizes are wrong: nobody knows whether this is all.
    await download.startOver()
  }
  const { client, driveId } = pair
  const ask = (offset: number) => client.download(driveId, remote.itemId, { offset, signal: job.signal })
  const answer = await ask(download.bytes).catch(async (thrown: unknown) => {
    // The part is longer than the file is now: it belongs to another version.
    if (errorCode(thrown) !== 'range') throw thrown
    await download.startOver()
    return ask(0)
  })
  if (answer.offset !== download.bytes) await download.startOver()
  await download.write(answer.stream)
  return answer.total
}

/** Undefined: it is the content of that row. */
async function verify(
  context: ActionContext,
  remote: RemoteRow,
  { hash, bytes }: Fetched,
  total: number | undefined,
): Promise<Ended | TidemarkError | undefined> {
  const isWhole = bytes === (total ?? remote.size)
  if (remote.hash !== null && hash === remote.hash) return undefined
  if (isEmpty(remote) && bytes === 0) return undefined
  const now = await lookAtItem(context, remote.itemId)
  if (!now) return notGiven(context, [remote.itemId])
  if (!isSameVersion(now, remote)) return staleWith(context, [now], 'it changed in OneDrive meanwhile')
  // OneDrive has no hash of some files: then what counts is that it has the size that OneDrive says, and is still that
  // version. A page of an error that something on the way sends instead is whole as well.
  const hasSize = bytes === remote.size || WRONG_SIZES.test(remote.name)
  if (remote.hash === null && isWhole && hasSize) return undefined
  return new TidemarkError('What came from OneDrive is not what the file should be', {
    kind: 'transient',
    code: 'download-damaged',
  })
}

async function notFound(context: ActionContext, remote: RemoteRow): Promise<Ended> {
  const now = await lookAtItem(context, remote.itemId)
  if (now && isOther(remote, now)) return staleWith(context, [now], 'it changed in OneDrive meanwhile')
  return notGiven(context, [remote.itemId])
}

/** Of these OneDrive may tell the size of another form. */
const WRONG_SIZES = /\.hei[cf]$/i

function isSameVersion(now: RemoteRow, then: RemoteRow): boolean {
  if (now.cTag !== null && then.cTag !== null) return now.cTag === then.cTag
  if (now.hash !== null && then.hash !== null) return now.hash === then.hash
  return now.eTag === then.eTag
}

/**
 * A process that was asleep for long may find that another one has done its work: what it has open is then no partial
 * file any more, but somebody's file.
 */
function checkOwn(path: string, fd: number): void {
  const now = lstatSync(path, { throwIfNoEntry: false })
  if (now?.ino === fstatSync(fd).ino) return
  throw new TidemarkError('Another process has taken over this download', {
    kind: 'transient',
    code: 'partial-taken',
  })
}

/** A file that grows at its end, and the hash of all of it. */
class PartialDownload {
  readonly #file: FileHandle
  readonly #path: string
  readonly #onBytes: (bytes: number, how: { isKept: boolean }) => void
  #hash = new ContentHash()
  #bytes = 0

  constructor(file: FileHandle, path: string, onBytes: (bytes: number, how: { isKept: boolean }) => void) {
    this.#file = file
    this.#path = path
    this.#onBytes = onBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  digests(): Digests {
    return this.#hash.digest()
  }

  /** What is there from before; if that is more than the whole, it is something else. */
  async readOn(size: number, signal: AbortSignal): Promise<void> {
    const { size: there } = fstatSync(this.#file.fd)
    if (there > size) return this.startOver()
    const buffer = Buffer.allocUnsafe(Math.min(READ_BYTES, Math.max(there, 1)))
    while (this.#bytes < there) {
      signal.throwIfAborted()
      const { bytesRead } = await this.#file.read(buffer, 0, buffer.length, this.#bytes)
      if (bytesRead === 0) break
      this.#add(buffer.subarray(0, bytesRead), { isKept: true })
    }
  }

  checkOwn(): void {
    checkOwn(this.#path, this.#file.fd)
  }

  async startOver(): Promise<void> {
    this.checkOwn()
    await this.#file.truncate(0)
    this.#hash = new ContentHash()
    this.#bytes = 0
  }

  /** What came before an interruption is kept. */
  async write(stream: AsyncIterable<Uint8Array>): Promise<void> {
    let pieces: Uint8Array[] = []
    let waiting = 0
    const flush = async (): Promise<void> => {
      const [writing, at] = [pieces, this.#bytes]
      pieces = []
      waiting = 0
      if (writing.length === 0) return
      await this.#writeAll(writing, at)
      for (const piece of writing) this.#add(piece, { isKept: false })
    }
    try {
      for await (const piece of stream) {
        pieces.push(piece)
        waiting += piece.length
        if (waiting >= WRITE_BYTES) await flush()
      }
    } finally {
      await flush()
    }
  }

  async #writeAll(pieces: Uint8Array[], at: number): Promise<void> {
    this.checkOwn()
    const length = pieces.reduce((sum, piece) => sum + piece.length, 0)
    const { bytesWritten } = await this.#file.writev(pieces, at)
    if (bytesWritten === length) return
    // A full disk may take only a part.
    const rest = Buffer.concat(pieces).subarray(bytesWritten)
    await this.#file.write(rest, 0, rest.length, at + bytesWritten)
  }

  #add(piece: Uint8Array, how: { isKept: boolean }): void {
    this.#hash.update(piece)
    this.#bytes += piece.length
    this.#onBytes(this.#bytes, how)
  }
}
