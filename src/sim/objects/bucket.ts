/**
 * A bucket of the simulated cloud, whichever protocol speaks of it: keys, and versions of each.
 *
 * Invariants:
 * - `history` has every version that ever was, with its bytes, in the order in which they came
 * - numbers rise over all buckets of a service; whatever orders events or names versions is made from them
 * - a version is the current one of its key, or noncurrent (kept by a versioned bucket), or gone
 */
import { createHash } from 'node:crypto'
import type { ObjectContent } from './content.ts'

export type ObjectFields = {
  contentType: string
  contentEncoding: string | null
  metadata: Readonly<Record<string, string>>
  tags: Readonly<Record<string, string>>
}

export type StoredVersion = ObjectFields & {
  readonly bucket: string
  readonly key: string
  readonly number: number
  /** Null in a bucket without versions. */
  readonly versionId: string | null
  readonly etag: string
  readonly content: ObjectContent
  readonly atMs: number
  readonly isDeleteMarker: boolean
  /** In base64, where it is known. */
  readonly md5: string | null
  readonly crc32: string | null
  state: 'current' | 'noncurrent' | 'gone'
  goneAtMs: number | null
  /** Rises when tags or metadata change. */
  metageneration: number
}

export type NewVersion = Partial<ObjectFields> & {
  key: string
  content: ObjectContent
  etag: string
  md5?: string | null
  crc32?: string | null
}

export type BucketListing = { objects: StoredVersion[]; prefixes: string[]; next: string | null }

const NO_BYTES: ObjectContent = { sizeBytes: 0, read: () => [] }

export class SimBucket {
  readonly name: string
  isVersioned: boolean
  readonly history: StoredVersion[] = []
  readonly #now: () => number
  readonly #nextNumber: () => number
  readonly #byKey = new Map<string, StoredVersion[]>()
  #keys: string[] = []
  #isSorted = true

  constructor(name: string, options: { isVersioned: boolean; now: () => number; nextNumber: () => number }) {
    this.name = name
    this.isVersioned = options.isVersioned
    this.#now = options.now
    this.#nextNumber = options.nextNumber
  }

  /** What a plain read finds. */
  current(key: string): StoredVersion | undefined {
    const last = this.#byKey.get(key)?.at(-1)
    return last && last.state === 'current' && !last.isDeleteMarker ? last : undefined
  }

  /** Delete markers too. */
  version(key: string, isMeant: (version: StoredVersion) => boolean): StoredVersion | undefined {
    return this.#byKey.get(key)?.find((version) => version.state !== 'gone' && isMeant(version))
  }

  /** Those that can still be read, the oldest first. */
  versions(key: string): readonly StoredVersion[] {
    return (this.#byKey.get(key) ?? []).filter(({ state }) => state !== 'gone')
  }

  put(input: NewVersion): StoredVersion {
    return this.#add(input, false)
  }

  /** Of a versioned bucket a marker that hides the key; otherwise it is gone. Undefined where nothing was there. */
  remove(key: string): StoredVersion | undefined {
    if (this.isVersioned) return this.#add({ key, content: NO_BYTES, etag: '' }, true)
    const current = this.current(key)
    if (current) this.#end(current)
    return current
  }

  /** One version for good; the one before it is current again. */
  removeVersion(version: StoredVersion): void {
    this.#end(version)
    const last = this.versions(version.key).at(-1)
    if (last) last.state = 'current'
    const kept = this.#byKey.get(version.key)!.filter(({ state }) => state !== 'gone')
    this.#byKey.set(version.key, kept)
  }

  /** In the order of keys as bytes, behind `after`. */
  list(input: {
    prefix: string
    after: string | null
    max: number
    delimiter?: string
    /** The first key that counts. */
    from?: string
  }): BucketListing {
    const { prefix, after, max, delimiter = '', from: lowest = '' } = input
    const keys = this.keys()
    const start = compareKeys(lowest, prefix) > 0 ? lowest : prefix
    const from =
      after !== null && compareKeys(after, start) >= 0 ? firstBehind(keys, after) : firstFrom(keys, start)
    const objects: StoredVersion[] = []
    const prefixes: string[] = []
    let last: string | null = null
    for (let at = from; at < keys.length; at++) {
      const key = keys[at]!
      if (!key.startsWith(prefix)) break
      const object = this.current(key)
      if (!object) continue
      const cut = delimiter === '' ? -1 : key.indexOf(delimiter, prefix.length)
      const group = cut < 0 ? undefined : key.slice(0, cut + delimiter.length)
      if (group !== undefined && (group === prefixes.at(-1) || after?.startsWith(group))) {
        last = key
        continue
      }
      if (objects.length + prefixes.length >= max) return { objects, prefixes, next: last }
      if (group === undefined) objects.push(object)
      else prefixes.push(group)
      last = key
    }
    return { objects, prefixes, next: null }
  }

  keys(): readonly string[] {
    // What is nearly in order is put into order fast.
    if (!this.#isSorted) this.#keys.sort(compareKeys)
    this.#isSorted = true
    return this.#keys
  }

  #add(input: NewVersion, isDeleteMarker: boolean): StoredVersion {
    const { key, content, etag, md5 = null, crc32 = null } = input
    const versions = this.#byKey.get(key) ?? []
    if (!this.#byKey.has(key)) {
      const last = this.#keys.at(-1)
      if (last !== undefined && compareKeys(last, key) > 0) this.#isSorted = false
      this.#keys.push(key)
      this.#byKey.set(key, versions)
    }
    const before = versions.at(-1)
    if (before?.state === 'current') {
      if (this.isVersioned) before.state = 'noncurrent'
      else this.#end(before)
    }
    const number = this.#nextNumber()
    const version: StoredVersion = {
      bucket: this.name,
      key,
      number,
      versionId: this.isVersioned ? versionIdOf(number) : null,
      etag,
      content,
      md5,
      crc32,
      atMs: this.#now(),
      isDeleteMarker,
      state: 'current',
      goneAtMs: null,
      metageneration: 1,
      contentType: input.contentType ?? 'binary/octet-stream',
      contentEncoding: input.contentEncoding ?? null,
      metadata: input.metadata ?? {},
      tags: input.tags ?? {},
    }
    versions.push(version)
    this.history.push(version)
    return version
  }

  #end(version: StoredVersion): void {
    version.state = 'gone'
    version.goneAtMs = this.#now()
  }
}

function versionIdOf(number: number): string {
  return createHash('sha256').update(`version ${number}`).digest('base64url').slice(0, 32)
}

/** As their UTF-8 bytes are ordered: a surrogate stands for a character behind all others. */
export function compareKeys(one: string, other: string): number {
  const length = Math.min(one.length, other.length)
  for (let at = 0; at < length; at++) {
    const a = one.charCodeAt(at)
    const b = other.charCodeAt(at)
    if (a === b) continue
    const isSurrogate = (unit: number): boolean => unit >= 0xd800 && unit <= 0xdfff
    if (isSurrogate(a) !== isSurrogate(b))
      return isSurrogate(a) ? (b >= 0xe000 ? 1 : a - b) : a >= 0xe000 ? -1 : a - b
    return a - b
  }
  return one.length - other.length
}

function firstFrom(keys: readonly string[], key: string): number {
  let low = 0
  let high = keys.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if (compareKeys(keys[middle]!, key) < 0) low = middle + 1
    else high = middle
  }
  return low
}

function firstBehind(keys: readonly string[], key: string): number {
  const at = firstFrom(keys, key)
  return keys[at] === key ? at + 1 : at
}
