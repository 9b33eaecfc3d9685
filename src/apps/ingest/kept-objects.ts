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
import { createReadStream } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline as piped } from 'node:stream/promises'
import { createZstdCompress, createZstdDecompress } from 'node:zlib'
import { TidemarkError } from '../../base/errors.ts'

export type KeptAs = { pipeline: string; shard: string }
export type Kept = { sha256: string; sizeBytes: number }

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
  async put(
    as: KeptAs,
    bytes: AsyncIterable<Uint8Array>,
    about: { by: string; uri: string; version: string; nowMs: number; signal: AbortSignal },
  ): Promise<Kept> {
    const { by, signal, nowMs, ...of } = about
    const path = this.pathOf(as)
    const part = `${path}.${by}.part`
    const hash = createHash('sha256')
    let sizeBytes = 0
    const counted = async function* (): AsyncGenerator<Uint8Array> {
      for await (const chunk of bytes) {
        hash.update(chunk)
        sizeBytes += chunk.length
        yield chunk
      }
    }
    await this.#onDisk(path, () => mkdir(dirname(path), { recursive: true }))
    try {
      const file = await this.#onDisk(path, () => open(part, 'w'))
      const stream = file.createWriteStream({ flush: true })
      await piped(Readable.from(counted(), { objectMode: false }), createZstdCompress(), stream, { signal })
      const kept = { sha256: hash.digest('hex'), sizeBytes }
      if ((await this.#hashOf(part)) !== kept.sha256) throw damaged(path)
      const told = { ...of, ...as, ...kept, keptAt: new Date(nowMs).toISOString() }
      await this.#onDisk(path, () => writeWhole(path.replace(/\.zst$/, '.json'), part, told))
      await this.#onDisk(path, () => rename(part, path))
      await this.#onDisk(path, () => syncFolder(dirname(path)))
      return kept
    } finally {
      await rm(part, { force: true })
    }
  }

  /** Reads all of it once more. */
  async holds(as: KeptAs, sha256: string): Promise<boolean> {
    return (await this.#hashOf(this.pathOf(as))) === sha256
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
  async #hashOf(path: string): Promise<string | undefined> {
    const hash = createHash('sha256')
    try {
      for await (const chunk of bytesOf(path)) hash.update(chunk)
    } catch {
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
  const file = await open(beside, 'w')
  try {
    await file.writeFile(`${JSON.stringify(value, null, 2)}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(beside, path)
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
