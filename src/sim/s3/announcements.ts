/** What a bucket tells a queue: events of S3 in the four envelopes in which they come. */
import type { AwsAccount } from '../aws/account.ts'
import type { StoredVersion } from '../objects/bucket.ts'

export const ENVELOPES = ['s3', 'sns', 'sns-raw', 'eventbridge'] as const
export type EventEnvelope = (typeof ENVELOPES)[number]

export type S3Event = {
  /** `ObjectCreated:Put`, `ObjectRemoved:Delete`. */
  name: string
  version: StoredVersion
  /** Of the event: that of the version which came, or a later one for what went. */
  number: number
  atMs: number
}

export type Announcer = { account: AwsAccount; newId: () => string }

/** The bodies of the messages that tell of these events. EventBridge has one for each. */
export function announcementBodies(
  announcer: Announcer,
  envelope: EventEnvelope,
  events: readonly S3Event[],
): string[] {
  if (envelope === 'eventbridge') return events.map((event) => JSON.stringify(bridgeEvent(announcer, event)))
  const message = JSON.stringify({ Records: events.map((event) => recordOf(announcer, event)) })
  return [envelope === 'sns' ? snsBody(announcer, message, events[0]!.atMs) : message]
}

/** What S3 sends when a notification is set up; EventBridge gets none. */
export function testBodies(
  announcer: Announcer,
  envelope: EventEnvelope,
  { bucket, atMs }: { bucket: string; atMs: number },
): string[] {
  if (envelope === 'eventbridge') return []
  const message = JSON.stringify({
    Service: 'Amazon S3',
    Event: 's3:TestEvent',
    Time: new Date(atMs).toISOString(),
    Bucket: bucket,
    RequestId: 'TIDEMARKSIM00001',
    HostId: 'tidemark-sim',
  })
  return [envelope === 'sns' ? snsBody(announcer, message, atMs) : message]
}

/** Rises with every event, and so for every key. */
export function sequencerOf(number: number): string {
  return number.toString(16).toUpperCase().padStart(18, '0')
}

/** A form's way: a space is a plus. */
function formEncoded(key: string): string {
  return new URLSearchParams({ key }).toString().slice('key='.length).replaceAll('%2F', '/')
}

function recordOf({ account }: Announcer, { name, version, number, atMs }: S3Event): object {
  const { bucket, key, etag, content, versionId } = version
  const isCreated = name.startsWith('ObjectCreated')
  const object = {
    key: formEncoded(key),
    ...(isCreated ? { size: content.sizeBytes, eTag: etag } : {}),
    ...(versionId === null ? {} : { versionId }),
    sequencer: sequencerOf(number),
  }
  return {
    eventVersion: '2.1',
    eventSource: 'aws:s3',
    awsRegion: account.region,
    eventTime: new Date(atMs).toISOString(),
    eventName: name,
    userIdentity: { principalId: `AWS:${account.accountId}` },
    requestParameters: { sourceIPAddress: '127.0.0.1' },
    responseElements: { 'x-amz-request-id': 'TIDEMARKSIM00001', 'x-amz-id-2': 'tidemark-sim' },
    s3: {
      s3SchemaVersion: '1.0',
      configurationId: 'tidemark-sim',
      bucket: {
        name: bucket,
        ownerIdentity: { principalId: account.accountId },
        arn: `arn:aws:s3:::${bucket}`,
      },
      object,
    },
  }
}

function snsBody({ account, newId }: Announcer, message: string, atMs: number): string {
  return JSON.stringify({
    Type: 'Notification',
    MessageId: newId(),
    TopicArn: `arn:aws:sns:${account.region}:${account.accountId}:objects`,
    Subject: 'Amazon S3 Notification',
    Message: message,
    Timestamp: new Date(atMs).toISOString(),
    SignatureVersion: '1',
    Signature: 'c2ltdWxhdGVk',
    SigningCertURL: 'https://sns.us-east-1.amazonaws.com/simulated.pem',
    UnsubscribeURL: 'https://sns.us-east-1.amazonaws.com/?Action=Unsubscribe',
  })
}

/** Keys are as they are here. */
function bridgeEvent({ account, newId }: Announcer, { name, version, number, atMs }: S3Event): object {
  const { bucket, key, etag, content, versionId } = version
  const isCreated = name.startsWith('ObjectCreated')
  const object = {
    key,
    ...(isCreated ? { size: content.sizeBytes, etag } : {}),
    ...(versionId === null ? {} : { 'version-id': versionId }),
    sequencer: sequencerOf(number),
  }
  const about = {
    version: '0',
    bucket: { name: bucket },
    object,
    'request-id': 'TIDEMARKSIM00001',
    requester: account.accountId,
    'source-ip-address': '127.0.0.1',
  }
  const deletion = name.endsWith('DeleteMarkerCreated') ? 'Delete Marker Created' : 'Permanently Deleted'
  return {
    version: '0',
    id: newId(),
    'detail-type': isCreated ? 'Object Created' : 'Object Deleted',
    source: 'aws.s3',
    account: account.accountId,
    time: new Date(atMs).toISOString(),
    region: account.region,
    resources: [`arn:aws:s3:::${bucket}`],
    detail: isCreated
      ? { ...about, reason: REASONS[name] ?? 'PutObject' }
      : { ...about, reason: 'DeleteObject', 'deletion-type': deletion },
  }
}

const REASONS: Record<string, string> = {
  'ObjectCreated:Put': 'PutObject',
  'ObjectCreated:Copy': 'CopyObject',
  'ObjectCreated:CompleteMultipartUpload': 'CompleteMultipartUpload',
}
