/**
 * Copies of objects that are deleted in their bucket afterwards, in the home of one machine:
 *
 *   <home>/ingest/kept/<pipeline>/<ab>/<shard>.zst    the bytes of the object, compressed
 *   <home>/ingest/kept/<pipeline>/<ab>/<shard>.json   whose they are, how many, and their SHA-256
 *
 * Invariants:
 * - a copy has its name only when it is on disk as a whole, and reads back as what came in
 * - nothing here is ever removed: once the object is gone, this is all that is left of it. Not even with its pipeline,
 *   and the file beside each tells what it is without any database
 */
import { createHash } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline as piped } from 'node:stream/promises'
import { createZstdCompress, createZstdDecompress } from 'node:zlib'
import { TidemarkError } from '../../base/errors.ts'

export type KeptAs = { pipeline: string; shard: string }
/** `md5` as stores tell it, in base64. */
export type Kept = { sha256: string; md5: string; sizeBytes: number }

export type KeptAbout = {
  by: string
  uri: string
  version: string
  contentType: string | null
  contentEncoding: string | null
  nowMs: number
  signal: AbortSignal
  /** With every piece, written or read back. */
  onBytes: () => void
}

type Reading = { onBytes?: () => void; signal?: AbortSignal }

/** Of a private bucket, perhaps: nobody else on the machine reads them. */
const FOLDER_MODE = 0o700
const FILE_MODE = 0o600

export class KeptObjects {
  readonly folder: string
  /** Of the machine: others do not have its files. */
  readonly host: string

  constructor({ home, host }: { home: string; host: string }) {
    this.folder = join(home, 'ingest', 'kept')
    this.host = host
  }

  pathOf({ pipeline, shard }: KeptAs): string {
    return join(this.folder, pipeline, shard.slice(0, 2), `${shard}.zst`)
  }

  /** `by`: of whoever writes, so that two never write to one file. */
  async put(as: KeptAs, bytes: AsyncIterable<Uint8Array>, about: KeptAbout): Promise<Kept> {
    const { by, signal, nowMs, onBytes, ...of } = about
    const path = this.pathOf(as)
    const part = `${path}.${by}.part`
    const hash = createHash('sha256')
    const md5 = createHash('md5')
    let sizeBytes = 0
    const counted = async function* (): AsyncGenerator<Uint8Array> {
      for await (const chunk of bytes) {
        hash.update(chunk)
        md5.update(chunk)
        sizeBytes += chunk.length
        onBytes()
        yield chunk
      }
    }
    await this.#onDisk(path, () => makeFolder(dirname(path)))
    try {
      const file = await this.#onDisk(path, () => open(part, 'w', FILE_MODE))
      const stream = file.createWriteStream({ flush: true })
      await piped(Readable.from(counted(), { objectMode: false }), createZstdCompress(), stream, { signal })
      const kept = { sha256: hash.digest('hex'), md5: md5.digest('base64'), sizeBytes }
      if ((await this.#hashOf(part, { onBytes, signal })) !== kept.sha256) throw damaged(path)
      const told = { ...of, ...as, ...kept, keptAt: new Date(nowMs).toISOString() }
      await this.#onDisk(path, () => writeWhole(path.replace(/\.zst$/, '.json'), part, told))
      await this.#onDisk(path, () => rename(part, path))
      await this.#onDisk(path, () => syncFolder(dirname(path)))
      return kept
    } finally {
      await rm(part, { force: true })
      await rm(`${part}.json`, { force: true })
    }
  }

  /** Reads all of it once more. */
  async holds(as: KeptAs, sha256: string, reading: Reading = {}): Promise<boolean> {
    return (await this.#hashOf(this.pathOf(as), reading)) === sha256
  }

  /** Whether it is on this machine, whatever that is called by now. */
  has(as: KeptAs): boolean {
    return existsSync(this.pathOf(as))
  }

  /** The object's bytes from there on. */
  async *read(as: KeptAs, fromByte: number): AsyncGenerator<Uint8Array, void, undefined> {
    let at = 0
    for await (const chunk of bytesOf(this.pathOf(as))) {
      const skip = Math.min(chunk.length, Math.max(0, fromByte - at))
      at += chunk.length
      if (skip < chunk.length) yield chunk.subarray(skip)
    }
  }

  /** Undefined where it is not there, or is no copy. */
  async #hashOf(path: string, { onBytes, signal }: Reading): Promise<string | undefined> {
    const hash = createHash('sha256')
    try {
      for await (const chunk of bytesOf(path)) {
        signal?.throwIfAborted()
        hash.update(chunk)
        onBytes?.()
      }
    } catch (thrown) {
      if (signal?.aborted) throw thrown
      // Whatever keeps it from being read: it is no proof of anything.
      return undefined
    }
    return hash.digest('hex')
  }

  async #onDisk<T>(path: string, run: () => Promise<T>): Promise<T> {
    try {
      return await run()
    } catch (cause) {
      const why = (cause as NodeJS.ErrnoException).code ?? 'unknown'
      const hint = `Look at the disk and the rights of ${this.folder}.`
      const message = `A copy could not be written to ${path} (${why}).`
      throw new TidemarkError(message, { kind: 'transient', code: 'not-kept', hint, cause })
    }
  }
}

async function* bytesOf(path: string): AsyncGenerator<Uint8Array, void, undefined> {
  const file = createReadStream(path)
  const bytes = createZstdDecompress()
  const feeding = piped(file, bytes).catch(() => {
    // It destroys what is read below, which then fails with the same reason.
  })
  yield* bytes as AsyncIterable<Uint8Array>
  await feeding
}

/** What is there is all of it, whenever power goes. */
async function writeWhole(path: string, part: string, value: object): Promise<void> {
  const beside = `${part}.json`
  const file = await open(beside, 'w', FILE_MODE)
  try {
    await file.writeFile(`${JSON.stringify(value, null, 2)}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(beside, path)
}

/** Its name, and those of the folders that had to be made above it, are on disk as well. */
async function makeFolder(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode: FOLDER_MODE })
  if (first === undefined) return
  for (let made = path; made.length >= first.length; made = dirname(made)) await syncFolder(dirname(made))
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

function damaged(path: string): TidemarkError {
  const message = `What was written to ${path} does not read back as the object that it is a copy of.`
  return new TidemarkError(message, { kind: 'transient', code: 'not-kept' })
}
