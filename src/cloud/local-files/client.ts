/**
 * Files below one folder, as objects. An address is `file://` and the path as it is: nothing of it is encoded.
 *
 * Invariants:
 * - nothing outside the folder is read, whatever is a link or becomes one: the file that was opened is the one that lies
 *   at the path with all links resolved, and that path is below the folder
 * - a version is size, time of change in nanoseconds and inode; it is looked at when the file is opened and once more
 *   behind the last byte, so that bytes of a file that changed meanwhile end with an error
 * - a listing shows also what cannot be read: a folder that may not be looked into, a name that is not UTF-8
 * - a copy never replaces another file, lies in a folder of exactly that name, and only the very file that was meant is
 *   removed
 */
import { isUtf8 } from 'node:buffer'
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import {
  type FileHandle,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  realpath,
  rename,
  unlink,
} from 'node:fs/promises'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { TidemarkError } from '../../base/errors.ts'
import { noSuchBytes, objectDenied, objectReplaced } from '../object-bytes.ts'
import type { ObjectBody, ObjectHead, ObjectPage, ObjectStore, ObjectVersion } from '../object-store.ts'
import { classify, folderMissing, otherName } from './errors.ts'

export type FileStoreOptions = {
  /** Nothing outside it is read. */
  root: string
  /** By the path below the root: files that a listing does not show, such as unfinished ones. */
  leavesOut?: (path: string) => boolean
}

export type FileVersionSource = { size: bigint; mtimeNs: bigint; ino: bigint }
/** `onDisk`: the path as the disk has it, which may be no text. */
type Found = { key: string; onDisk: Buffer; isFolder: boolean }
type Files = AsyncGenerator<Found, void, undefined>
/** `file`: the next one, which did not fit into the page. */
type Walked = { prefix: string; after: string | null; files: Files; file: Found | null }

const SCHEME = 'file://'
const CHUNK_BYTES = 256 * 1024
/** Of a file that is about to be removed; with the dot it is nobody's to read. */
const ASIDE = '.tidemark-aside-'

/** The same for a file that is announced, listed and read. */
export function fileVersion({ size, mtimeNs, ino }: FileVersionSource): ObjectVersion {
  return { id: `${size}-${mtimeNs}-${ino}` }
}

export class FileStore implements ObjectStore {
  readonly scheme = 'file'
  readonly #options: FileStoreOptions
  readonly #root: string
  #realRoot: Promise<string> | undefined
  /** Where the last page ended, and the walk that goes on there: folders are not read and sorted anew for every page. */
  #walked: Walked | undefined
  /** Folders that were found by exactly their names. */
  readonly #plain = new Set<string>()

  constructor(options: FileStoreOptions) {
    this.#options = options
    this.#root = resolve(options.root)
  }

  async read(
    uri: string,
    options: { version: ObjectVersion | null; fromByte: number; signal: AbortSignal },
  ): Promise<ObjectBody> {
    const { version, fromByte, signal } = options
    signal.throwIfAborted()
    const { file, head } = await this.#open(uri)
    // Whoever only looks at the head leaves nothing open.
    await file.close()
    if (version && head.version.id !== version.id) throw objectReplaced(uri)
    const sizeBytes = head.sizeBytes ?? 0
    if (fromByte > sizeBytes) throw noSuchBytes(uri, fromByte)
    return { ...head, bytes: this.#chunks(uri, { fromByte, sizeBytes, version: head.version, signal }) }
  }

  async head(uri: string, signal: AbortSignal): Promise<ObjectHead | undefined> {
    signal.throwIfAborted()
    try {
      const { file, head } = await this.#open(uri)
      await file.close()
      return head
    } catch (thrown) {
      const error = classify(thrown, uri)
      if (error.kind === 'gone') return undefined
      throw error
    }
  }

  async list(options: {
    prefix: string
    after: string | null
    max: number
    signal: AbortSignal
  }): Promise<ObjectPage> {
    const asked = this.#pathOf(options.prefix)
    const prefix = asked === this.#root ? `${asked}/` : asked
    const objects: ObjectPage['objects'][number][] = []
    let last: string | null = null
    // The folder in which everything lies that begins like the prefix.
    const from = prefix.slice(0, prefix.lastIndexOf('/') + 1)
    const real = await realpath(from).catch(() => undefined)
    if (real === undefined) {
      // A disk that is not there has not become empty.
      if (!(await lstat(this.#root).catch(() => undefined))) throw folderMissing(this.#root)
      return { objects, next: null }
    }
    if (!isBelow(real, await this.#real())) throw objectDenied(options.prefix)
    const { after, signal } = options
    const walk = this.#walkBehind(prefix, after) ?? { files: this.#walk(from, { prefix, after }), file: null }
    const { files } = walk
    for (let file = walk.file ?? (await nextOf(files)); file !== null; file = await nextOf(files)) {
      signal.throwIfAborted()
      if (this.#options.leavesOut?.(file.key.slice(this.#root.length + 1))) continue
      // Never between names that read alike: whoever goes on behind the first would miss the others.
      if (objects.length >= options.max && file.key !== last) {
        this.#walked = { prefix, after: last, files, file }
        return { objects, next: last }
      }
      const object = await objectOf(file)
      if (!object) continue
      objects.push(object)
      last = file.key
    }
    return { objects, next: null }
  }

  /** Another name of the same file: nothing is copied, and nothing that is there is replaced. */
  async copy(uri: string, version: ObjectVersion, to: string): Promise<void> {
    const target = this.#pathOf(to)
    const from = await this.#check(uri, version)
    try {
      await this.#checkPlain(await existing(dirname(target)))
      await mkdir(dirname(target), { recursive: true })
      await this.#checkPlain(dirname(target))
      await link(from, target)
    } catch (thrown) {
      throw classify(thrown, uri)
    }
  }

  /**
   * It is put aside, looked at once more and removed: a file that took its place at the last moment goes back. One that
   * was put aside by a process that died there is found by its number, and goes as well.
   */
  async remove(uri: string, version: ObjectVersion): Promise<void> {
    const path = this.#pathOf(uri)
    const aside = join(
      dirname(path),
      `${ASIDE}${createHash('sha256').update(path).digest('hex').slice(0, 16)}`,
    )
    const isThis = async (): Promise<boolean> => {
      const stats = await lstat(aside, { bigint: true }).catch(() => undefined)
      return stats !== undefined && fileVersion(stats).id === version.id
    }
    const putBack = async (): Promise<void> => {
      await link(aside, path)
      await unlink(aside)
    }
    try {
      if (!(await isThis())) {
        if (await lstat(aside).catch(() => undefined)) await putBack()
        await this.#check(uri, version)
        await rename(path, aside)
      }
      if (await isThis()) return await unlink(aside)
      await putBack()
    } catch (thrown) {
      throw classify(thrown, uri)
    }
    throw objectReplaced(uri)
  }

  async close(): Promise<void> {}

  async #check(uri: string, version: ObjectVersion): Promise<string> {
    const { file, head } = await this.#open(uri)
    await file.close()
    if (head.version.id !== version.id) throw objectReplaced(uri)
    return this.#pathOf(uri)
  }

  async #open(uri: string): Promise<{ file: FileHandle; head: ObjectHead }> {
    const path = this.#pathOf(uri)
    let file: FileHandle | undefined
    try {
      // A pipe that nobody writes to would be waited for without the last of the flags.
      file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
      const stats = await file.stat({ bigint: true })
      if (!stats.isFile()) throw objectDenied(uri)
      const real = await realpath(path)
      if (!isBelow(real, await this.#real())) throw objectDenied(uri)
      const there = await lstat(real, { bigint: true })
      if (there.ino !== stats.ino || there.dev !== stats.dev) throw objectReplaced(uri)
      return {
        file,
        head: {
          version: fileVersion(stats),
          sizeBytes: Number(stats.size),
          modifiedAtMs: Number(stats.mtimeMs),
          contentType: null,
          contentEncoding: null,
        },
      }
    } catch (thrown) {
      await file?.close()
      throw classify(thrown, uri)
    }
  }

  async *#chunks(
    uri: string,
    options: { fromByte: number; sizeBytes: number; version: ObjectVersion; signal: AbortSignal },
  ): AsyncGenerator<Uint8Array, void, undefined> {
    const { sizeBytes, version, signal } = options
    if (options.fromByte === sizeBytes) return
    const { file, head } = await this.#open(uri)
    try {
      if (head.version.id !== version.id) throw objectReplaced(uri)
      for (let at = options.fromByte; at < sizeBytes; ) {
        signal.throwIfAborted()
        const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, sizeBytes - at))
        const { bytesRead } = await file.read(buffer, 0, buffer.length, at)
        if (bytesRead === 0) throw objectReplaced(uri)
        at += bytesRead
        // Whoever gets the last bytes takes them for the end: first see that they belong to what came before.
        if (at >= sizeBytes && fileVersion(await file.stat({ bigint: true })).id !== version.id) {
          throw objectReplaced(uri)
        }
        yield buffer.subarray(0, bytesRead)
      }
    } catch (thrown) {
      if (signal.aborted) throw signal.reason
      throw classify(thrown, uri)
    } finally {
      await file.close()
    }
  }

  /**
   * The folder is reached by its own name, and not by a link or by other letters of it: it would be listed under another
   * name, and what is copied there be taken for something new.
   */
  async #checkPlain(folder: string): Promise<void> {
    const below = relative(this.#root, folder)
    const realRoot = await this.#real()
    if ((await realpath(folder)) !== join(realRoot, below)) throw otherName(folder)
    if (this.#plain.has(folder)) return
    let parent = realRoot
    for (const name of below === '' ? [] : below.split(sep)) {
      if (!(await readdir(parent)).includes(name)) throw otherName(folder)
      parent = join(parent, name)
    }
    this.#plain.add(folder)
  }

  #real(): Promise<string> {
    this.#realRoot ??= realpath(this.#root)
    return this.#realRoot
  }

  /** Below the root by its words; where its links lead is looked at when it is open. */
  #pathOf(uri: string): string {
    const path = uri.slice(SCHEME.length)
    const isPath = uri.startsWith(`${SCHEME}/`) && !path.includes('\0')
    const isPlain = !path.split('/').some((part) => part === '..' || part === '.')
    if (!isPath || !isPlain || !isBelow(path, this.#root)) throw objectDenied(uri)
    return path
  }

  /** The walk of the page before, for whoever asks for what comes behind it; each goes on once. */
  #walkBehind(prefix: string, after: string | null): Walked | undefined {
    const walked = this.#walked
    this.#walked = undefined
    return walked && after !== null && walked.prefix === prefix && walked.after === after ? walked : undefined
  }

  /** Files in the order of their bytes, which is that of a bucket's keys; and folders that cannot be looked into. */
  async *#walk(folder: string, page: { prefix: string; after: string | null }, inside?: Found[]): Files {
    const { prefix, after } = page
    for (const found of inside ?? (await foundIn(folder))) {
      const { key, isFolder, onDisk } = found
      if (!key.startsWith(prefix) && !(isFolder && prefix.startsWith(key))) continue
      const isBehind = after === null || comparePaths(key, after) > 0
      if (!isBehind && !(isFolder && after.startsWith(key))) continue
      const files = isFolder && isUtf8(onDisk) ? await foundIn(key).catch(ifDenied) : undefined
      if (files) yield* this.#walk(key, page, files)
      else if (isBehind) yield found
    }
  }
}

/** Folders end with a slash, by which they are ordered among the files beside them. Links are left out. */
async function foundIn(folder: string): Promise<Found[]> {
  let entries: { name: Buffer; isDirectory(): boolean; isFile(): boolean }[]
  try {
    entries = await readdir(folder, { withFileTypes: true, encoding: 'buffer' })
  } catch (thrown) {
    const error = classify(thrown, `${SCHEME}${folder}`)
    if (error.kind === 'gone') return []
    throw error
  }
  const from = Buffer.from(folder)
  return entries
    .filter((entry) => entry.isDirectory() || entry.isFile())
    .map((entry) => {
      const onDisk = Buffer.concat([from, entry.name])
      const key = `${onDisk.toString()}${entry.isDirectory() ? '/' : ''}`
      return { key, onDisk, isFolder: entry.isDirectory(), bytes: Buffer.from(key) }
    })
    .sort(
      (a, b) =>
        Buffer.compare(a.bytes, b.bytes) ||
        // A folder that cannot be looked into comes before what lies in one whose name reads like its own.
        Number(isUtf8(a.onDisk)) - Number(isUtf8(b.onDisk)),
    )
}

/** A folder that may not be looked into is one thing that cannot be read, and keeps nothing else from being listed. */
function ifDenied(thrown: unknown): undefined {
  if (!(thrown instanceof TidemarkError) || thrown.kind !== 'permanent') throw thrown
}

/** Undefined where it went, or became something else, since its folder was read. */
async function objectOf({
  key,
  onDisk,
  isFolder,
}: Found): Promise<ObjectPage['objects'][number] | undefined> {
  const uri = `${SCHEME}${key}`
  const unread = { uri, sizeBytes: null, modifiedAtMs: null }
  try {
    const stats = await lstat(onDisk, { bigint: true })
    // One that is filled meanwhile is the same that cannot be looked into.
    if (isFolder)
      return stats.isDirectory() ? { ...unread, version: { id: `folder-${stats.ino}` } } : undefined
    if (!stats.isFile()) return undefined
    const version = fileVersion(stats)
    return { uri, version, sizeBytes: Number(stats.size), modifiedAtMs: Number(stats.mtimeMs) }
  } catch (thrown) {
    if (classify(thrown, uri).kind === 'gone') return undefined
    return { ...unread, version: { id: 'unread' } }
  }
}

/** The folder, or the nearest one above it that is there. */
async function existing(folder: string): Promise<string> {
  const stats = await lstat(folder).catch(() => undefined)
  return stats || folder === dirname(folder) ? folder : existing(dirname(folder))
}

async function nextOf(files: Files): Promise<Found | null> {
  const step = await files.next()
  return step.done ? null : step.value
}

function comparePaths(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

function isBelow(path: string, root: string): boolean {
  return path === root || path.startsWith(root.endsWith(sep) ? root : `${root}${sep}`)
}

export function fileUri(path: string): string {
  return `${SCHEME}${path}`
}
