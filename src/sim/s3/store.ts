/**
 * What the simulated S3 holds beside its objects: uploads in parts, and to which queues each bucket announces its
 * objects, in which envelope.
 */
import { createHash } from 'node:crypto'
import { UsageError } from '../../base/errors.ts'
import type { Random } from '../../base/random.ts'
import { type AwsAccount, awsAccount } from '../aws/account.ts'
import type { ObjectFields, StoredVersion } from '../objects/bucket.ts'
import { heldContent, type ObjectContent } from '../objects/content.ts'
import { type CreatedBy, ObjectWorld } from '../objects/world.ts'
import { type Kernel, randomFor } from '../service.ts'
import { type SqsQueues, sqsQueues, uuidOf } from '../sqs/queues.ts'
import { announcementBodies, type EventEnvelope, type S3Event, testBodies } from './announcements.ts'

export type NotificationTarget = {
  queue: string
  envelope: EventEnvelope
  /** Patterns such as `s3:ObjectCreated:*`; all that are created otherwise. */
  events?: readonly string[]
  prefix?: string
  suffix?: string
}

export type UploadPart = { content: ObjectContent; md5: string; etag: string; atMs: number }

export type Upload = {
  id: string
  bucket: string
  key: string
  fields: Partial<ObjectFields>
  parts: Map<number, UploadPart>
}

const UPLOADS_MAX = 10_000
const CREATED: Readonly<Record<CreatedBy, string>> = {
  put: 'ObjectCreated:Put',
  copy: 'ObjectCreated:Copy',
  parts: 'ObjectCreated:CompleteMultipartUpload',
}

export class S3Store extends ObjectWorld {
  readonly uploads = new Map<string, Upload>()
  readonly targets = new Map<string, NotificationTarget[]>()
  readonly account: AwsAccount
  readonly #queues: SqsQueues
  readonly #random: Random

  constructor(kernel: Kernel) {
    super(kernel, 0x0707)
    this.#random = randomFor(kernel, 0x53b0)
    this.#queues = sqsQueues(kernel)
    this.account = awsAccount(kernel)
  }

  /** Announces from now on; the queue is made if there is none, and told with a test event. */
  notify(bucket: string, target: NotificationTarget): void {
    this.bucket(bucket)
    this.#queues.create(target.queue)
    this.targets.set(bucket, [...(this.targets.get(bucket) ?? []), target])
    this.sendTest(bucket, target)
  }

  hasQueue(name: string): boolean {
    return this.#queues.all.has(name)
  }

  sendTest(bucket: string, { envelope, queue }: NotificationTarget): void {
    const atMs = this.nowMs()
    for (const body of testBodies(this.#announcer, envelope, { bucket, atMs }))
      this.#queues.queue(queue).send({ body })
  }

  /** Announces what is there once more, all of it in one message where the envelope can hold several. */
  announceTogether(bucket: string, keys: readonly string[]): void {
    const events = keys.map((key): S3Event => {
      const version = this.bucket(bucket).current(key)
      if (!version) throw new UsageError(`There is no object ${key}.`, { code: 'sim-not-found' })
      return { name: 'ObjectCreated:Put', version, number: version.number, atMs: version.atMs }
    })
    for (const target of this.targets.get(bucket) ?? []) this.#send(target, events)
  }

  beginUpload(bucket: string, key: string, fields: Partial<ObjectFields>): Upload {
    if (this.uploads.size >= UPLOADS_MAX) throw new UsageError(`There can be ${UPLOADS_MAX} uploads at most.`)
    const id = uuidOf(this.#random).replaceAll('-', '')
    const upload: Upload = { id, bucket, key, fields, parts: new Map() }
    this.uploads.set(id, upload)
    return upload
  }

  /** The parts as one object, with the hash of their hashes and their number as its etag. */
  completeUpload(upload: Upload, numbers: readonly number[]): StoredVersion {
    const parts = numbers.map((number) => upload.parts.get(number)!)
    const digests = parts.map(({ md5 }) => Buffer.from(md5, 'base64'))
    const etag = `${createHash('md5').update(Buffer.concat(digests)).digest('hex')}-${parts.length}`
    const pieces = parts.flatMap(({ content }) => [...content.read(0, content.sizeBytes)])
    this.uploads.delete(upload.id)
    const { key, fields } = upload
    const version = { ...fields, key, content: heldContent(pieces), etag }
    return this.store(upload.bucket, version, 'parts')
  }

  protected announceCreated(version: StoredVersion, how: CreatedBy): void {
    this.#announce({ name: CREATED[how], version, number: version.number, atMs: version.atMs })
  }

  protected announceRemoved(version: StoredVersion): void {
    const isHidden = version.isDeleteMarker && version.state === 'current'
    const name = isHidden ? 'ObjectRemoved:DeleteMarkerCreated' : 'ObjectRemoved:Delete'
    this.#announce({ name, version, number: this.nextNumber(), atMs: this.nowMs() })
  }

  get #announcer(): { account: AwsAccount; newId: () => string } {
    return { account: this.account, newId: () => uuidOf(this.#random) }
  }

  #announce(event: S3Event): void {
    for (const target of this.targets.get(event.version.bucket) ?? []) {
      if (isWanted(target, event)) this.notices.deliver(() => this.#send(target, [event]))
    }
  }

  #send({ queue, envelope }: NotificationTarget, events: readonly S3Event[]): void {
    for (const body of announcementBodies(this.#announcer, envelope, events)) {
      // A queue that was deleted in the meantime hears nothing.
      this.#queues.all.get(queue)?.send({ body })
    }
  }
}

function isWanted(
  { events = ['s3:ObjectCreated:*'], prefix = '', suffix = '' }: NotificationTarget,
  event: S3Event,
): boolean {
  const { key } = event.version
  if (!key.startsWith(prefix) || !key.endsWith(suffix)) return false
  const name = `s3:${event.name}`
  return events.some((pattern) =>
    pattern.endsWith('*') ? name.startsWith(pattern.slice(0, -1)) : name === pattern,
  )
}
