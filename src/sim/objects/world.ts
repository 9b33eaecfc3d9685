/**
 * What a simulated object store holds, without HTTP: buckets with all versions that ever were, what is refused, and
 * how its announcements travel. Tests change it and read the truth from it; a service says what it announces.
 */
import { createHash } from 'node:crypto'
import { UsageError } from '../../base/errors.ts'
import { type Kernel, randomFor } from '../service.ts'
import { type NewVersion, type ObjectFields, SimBucket, type StoredVersion } from './bucket.ts'
import { crc32Of, heldContent, type SyntheticObject, syntheticContent } from './content.ts'
import { Notices } from './notices.ts'

export type CreatedBy = 'put' | 'copy' | 'parts'
export type ObjectRefusal = 'missing' | 'denied'

const BUCKETS_MAX = 10_000
/** Numbers look like times in microseconds, as generations do, and rise. */
const FIRST_NUMBER = 1_767_225_600_000_000

export abstract class ObjectWorld {
  readonly buckets = new Map<string, SimBucket>()
  readonly notices: Notices
  protected readonly kernel: Kernel
  readonly #refusals = new Map<string, ObjectRefusal>()
  #number = FIRST_NUMBER

  constructor(kernel: Kernel, purpose: number) {
    this.kernel = kernel
    this.notices = new Notices({ clock: kernel.clock, random: randomFor(kernel, purpose) })
  }

  protected abstract announceCreated(
    version: StoredVersion,
    how: CreatedBy,
    before: StoredVersion | undefined,
  ): void
  protected abstract announceRemoved(version: StoredVersion): void

  nowMs(): number {
    return this.kernel.clock.now()
  }

  createBucket(name: string, { isVersioned = false }: { isVersioned?: boolean } = {}): SimBucket {
    const known = this.buckets.get(name)
    if (known) return known
    if (this.buckets.size >= BUCKETS_MAX) throw new UsageError(`There can be ${BUCKETS_MAX} buckets at most.`)
    const bucket = new SimBucket(name, {
      isVersioned,
      now: () => this.nowMs(),
      nextNumber: () => this.nextNumber(),
    })
    this.buckets.set(name, bucket)
    return bucket
  }

  /** For tests, which know that it is there. */
  bucket(name: string): SimBucket {
    const bucket = this.buckets.get(name)
    if (bucket) return bucket
    throw new UsageError(`There is no bucket ${name}.`, { code: 'sim-not-found' })
  }

  /** Every version that ever was, with its bytes; of one bucket, or of all. */
  history(bucket?: string): readonly StoredVersion[] {
    if (bucket !== undefined) return this.bucket(bucket).history
    return [...this.buckets.values()].flatMap(({ history }) => history)
  }

  put(
    bucket: string,
    key: string,
    body: string | Uint8Array,
    fields: Partial<ObjectFields> = {},
  ): StoredVersion {
    const bytes = Buffer.from(body)
    const digest = createHash('md5').update(bytes).digest()
    const etag = digest.toString('hex')
    const md5 = digest.toString('base64')
    const content = heldContent([bytes])
    return this.store(bucket, { ...fields, key, content, etag, md5, crc32: crc32Of(bytes) }, 'put')
  }

  /** An object of any size whose bytes are made while they are read; its etag is that of an upload in parts. */
  putSynthetic(
    bucket: string,
    key: string,
    object: SyntheticObject & { etag?: string },
    fields: Partial<ObjectFields> = {},
  ): StoredVersion {
    const made = createHash('md5').update(`${bucket}/${key} ${this.#number}`).digest('hex')
    const etag = object.etag ?? `${made}-2`
    return this.store(bucket, { ...fields, key, content: syntheticContent(object), etag }, 'parts')
  }

  /** Puts it there and announces it. */
  store(bucket: string, version: NewVersion, how: CreatedBy): StoredVersion {
    const own = this.bucket(bucket)
    const before = own.current(version.key)
    const stored = own.put(version)
    this.announceCreated(stored, how, before)
    return stored
  }

  /** What a delete without a version does: hidden where versions are kept, gone otherwise. */
  remove(bucket: string, key: string): StoredVersion | undefined {
    const removed = this.bucket(bucket).remove(key)
    if (removed) this.announceRemoved(removed)
    return removed
  }

  removeVersion(version: StoredVersion): void {
    this.bucket(version.bucket).removeVersion(version)
    this.announceRemoved(version)
  }

  /** Reads of it fail as if it were not there, or not allowed, until `allow`. */
  refuse(bucket: string, key: string, how: ObjectRefusal): void {
    this.#refusals.set(`${bucket}/${key}`, how)
  }

  allow(bucket: string, key: string): void {
    this.#refusals.delete(`${bucket}/${key}`)
  }

  refusalOf(bucket: string, key: string): ObjectRefusal | undefined {
    return this.#refusals.get(`${bucket}/${key}`)
  }

  protected nextNumber(): number {
    this.#number += 1
    return this.#number
  }
}
