/** What the simulated Cloud Storage holds beside its objects: to which topics each bucket announces them, and how. */
import type { StoredVersion } from '../objects/bucket.ts'
import { type CreatedBy, ObjectWorld } from '../objects/world.ts'
import { type PubSubTopics, pubSubTopics } from '../pubsub/topics.ts'
import type { Kernel } from '../service.ts'

export const EVENT_TYPES = [
  'OBJECT_FINALIZE',
  'OBJECT_METADATA_UPDATE',
  'OBJECT_DELETE',
  'OBJECT_ARCHIVE',
] as const
export type GcsEventType = (typeof EVENT_TYPES)[number]

export type NotificationConfig = {
  id: string
  /** `projects/P/topics/T` */
  topic: string
  /** All of them otherwise. */
  events?: readonly GcsEventType[]
  prefix?: string
  /** Without it only attributes are sent. */
  hasPayload: boolean
}

type GcsEvent = { type: GcsEventType; version: StoredVersion; attributes?: Record<string, string> }

export class GcsStore extends ObjectWorld {
  readonly configs = new Map<string, NotificationConfig[]>()
  readonly #topics: PubSubTopics
  #configs = 0

  constructor(kernel: Kernel) {
    super(kernel, 0x6c5)
    this.#topics = pubSubTopics(kernel)
  }

  hasTopic(name: string): boolean {
    return this.#topics.topics.has(name)
  }

  /** Where somebody hears of its objects. */
  subscriptionOf(bucket: string): string | undefined {
    const topics = (this.configs.get(bucket) ?? []).map(({ topic }) => topic)
    return [...this.#topics.subscriptions.values()].find(({ topic }) => topics.includes(topic))?.name
  }

  /** Announces from now on; the topic is made if there is none. */
  notify(
    bucket: string,
    input: { topic: string; events?: readonly GcsEventType[]; prefix?: string; hasPayload?: boolean },
  ): NotificationConfig {
    this.bucket(bucket)
    this.#topics.createTopic(input.topic)
    this.#configs += 1
    const config = { hasPayload: true, ...input, id: String(this.#configs) }
    this.configs.set(bucket, [...(this.configs.get(bucket) ?? []), config])
    return config
  }

  /** Metadata or tags were changed. */
  announceUpdated(version: StoredVersion): void {
    this.#announce({ type: 'OBJECT_METADATA_UPDATE', version })
  }

  protected announceCreated(
    version: StoredVersion,
    _how: CreatedBy,
    before: StoredVersion | undefined,
  ): void {
    const attributes: Record<string, string> = before ? { overwroteGeneration: String(before.number) } : {}
    this.#announce({ type: 'OBJECT_FINALIZE', version, attributes })
    if (!before) return
    const type = before.state === 'noncurrent' ? 'OBJECT_ARCHIVE' : 'OBJECT_DELETE'
    this.#announce({ type, version: before, attributes: { overwrittenByGeneration: String(version.number) } })
  }

  protected announceRemoved(version: StoredVersion): void {
    if (!version.isDeleteMarker) {
      this.#announce({ type: 'OBJECT_DELETE', version })
      return
    }
    // Versions are kept: the one that was there before goes to the archive.
    const archived = this.bucket(version.bucket)
      .versions(version.key)
      .findLast((one) => !one.isDeleteMarker)
    if (archived) this.#announce({ type: 'OBJECT_ARCHIVE', version: archived })
  }

  #announce(event: GcsEvent): void {
    const { bucket, key } = event.version
    for (const config of this.configs.get(bucket) ?? []) {
      if (!(config.events ?? EVENT_TYPES).includes(event.type) || !key.startsWith(config.prefix ?? ''))
        continue
      this.notices.deliver(() => this.#publish(config, event))
    }
  }

  #publish(config: NotificationConfig, { type, version, attributes = {} }: GcsEvent): void {
    const { bucket, key, number } = version
    const json = JSON.stringify(objectJson(version, this.kernel.origin()))
    this.#topics.publish(config.topic, {
      data: config.hasPayload ? Buffer.from(json).toString('base64') : '',
      attributes: {
        notificationConfig: `projects/_/buckets/${bucket}/notificationConfigs/${config.id}`,
        eventType: type,
        payloadFormat: config.hasPayload ? 'JSON_API_V1' : 'NONE',
        bucketId: bucket,
        objectId: key,
        objectGeneration: String(number),
        eventTime: new Date(this.nowMs()).toISOString(),
        ...attributes,
      },
    })
  }
}

/** An object's resource, in answers and in announcements. */
export function objectJson(version: StoredVersion, origin: string): Record<string, unknown> {
  const { bucket, key, number, atMs, content } = version
  const selfLink = `${origin}/storage/v1/b/${bucket}/o/${encodeURIComponent(key)}`
  const at = new Date(atMs).toISOString()
  return {
    kind: 'storage#object',
    id: `${bucket}/${key}/${number}`,
    selfLink,
    mediaLink: `${origin}/download/storage/v1/b/${bucket}/o/${encodeURIComponent(key)}?generation=${number}&alt=media`,
    name: key,
    bucket,
    generation: String(number),
    metageneration: String(version.metageneration),
    contentType: version.contentType,
    ...(version.contentEncoding === null ? {} : { contentEncoding: version.contentEncoding }),
    storageClass: 'STANDARD',
    size: String(content.sizeBytes),
    ...(version.md5 === null ? {} : { md5Hash: version.md5 }),
    etag: Buffer.from(`${number}/${version.metageneration}`).toString('base64'),
    timeCreated: at,
    updated: at,
    ...(Object.keys(version.metadata).length === 0 ? {} : { metadata: version.metadata }),
  }
}
