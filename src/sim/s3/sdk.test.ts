import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { request } from 'node:http'
import { Readable } from 'node:stream'
import { after, before, beforeEach, describe, test } from 'node:test'
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetBucketNotificationConfigurationCommand,
  GetBucketVersioningCommand,
  GetObjectCommand,
  type GetObjectCommandInput,
  GetObjectTaggingCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListBucketsCommand,
  ListObjectsV2Command,
  type ListObjectsV2CommandInput,
  ListObjectVersionsCommand,
  ListPartsCommand,
  PutBucketNotificationConfigurationCommand,
  PutBucketVersioningCommand,
  PutObjectCommand,
  PutObjectTaggingCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { FakeClock } from '../../base/clock.ts'
import { bytesOf } from '../objects/content.ts'
import { type Sim, startSim } from '../start.ts'

let sim: Sim
let s3: S3Client
let clock: FakeClock
let number = 0

before(async () => {
  clock = new FakeClock()
  sim = await startSim({ clock, s3: {} })
  s3 = client()
})

after(async () => {
  s3.destroy()
  await sim.close()
})

beforeEach(() => sim.faults.clear())

function client(accessKeyId = sim.s3.account.accessKeyId): S3Client {
  const { secretAccessKey, region } = sim.s3.account
  const credentials = { accessKeyId, secretAccessKey }
  return new S3Client({ endpoint: sim.s3.baseUrl, region, credentials, forcePathStyle: true, maxAttempts: 1 })
}

function newBucket({ isVersioned = false } = {}): string {
  number += 1
  return sim.s3.store.createBucket(`bucket-${number}`, { isVersioned }).name
}

function put(Bucket: string, Key: string, Body: string | Uint8Array = 'x') {
  return s3.send(new PutObjectCommand({ Bucket, Key, Body }))
}

async function text(Bucket: string, Key: string, more: Partial<GetObjectCommandInput> = {}): Promise<string> {
  const { Body } = await s3.send(new GetObjectCommand({ Bucket, Key, ...more }))
  return Body!.transformToString()
}

async function keys(
  Bucket: string,
  input: Partial<ListObjectsV2CommandInput> = {},
): Promise<(string | undefined)[]> {
  const { Contents = [] } = await s3.send(new ListObjectsV2Command({ Bucket, ...input }))
  return Contents.map(({ Key }) => Key)
}

function md5(bytes: Uint8Array | string): string {
  return createHash('md5').update(bytes).digest('hex')
}

function statusOf(path: string, headers: Record<string, string> = {}): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = request({ host: '127.0.0.1', port: sim.port, path, headers }, (answer) => {
      answer.resume()
      answer.once('end', () => resolve(answer.statusCode))
    })
    asked.once('error', reject)
    asked.end()
  })
}

describe('the SDK of S3', () => {
  test('makes a bucket, puts, gets, heads and deletes', async () => {
    const Bucket = 'made-by-hand'
    await s3.send(new CreateBucketCommand({ Bucket }))
    await s3.send(new HeadBucketCommand({ Bucket }))
    const { Buckets } = await s3.send(new ListBucketsCommand({}))
    assert.ok(Buckets?.some(({ Name }) => Name === Bucket))
    const Key = 'a dir/ä + b&c?d=é.ndjson'
    const { ETag } = await s3.send(
      new PutObjectCommand({
        Bucket,
        Key,
        Body: '{"a":1}\n',
        ContentType: 'application/x-ndjson',
        ContentEncoding: 'identity',
        Metadata: { origin: 'test' },
      }),
    )
    assert.equal(ETag, `"${md5('{"a":1}\n')}"`)
    const got = await s3.send(new GetObjectCommand({ Bucket, Key }))
    assert.equal(await got.Body?.transformToString(), '{"a":1}\n')
    assert.equal(got.ContentType, 'application/x-ndjson')
    assert.equal(got.ContentEncoding, 'identity')
    assert.deepEqual(got.Metadata, { origin: 'test' })
    const head = await s3.send(new HeadObjectCommand({ Bucket, Key }))
    assert.equal(head.ContentLength, 8)
    assert.equal(head.ETag, ETag)
    assert.equal(head.LastModified?.getTime(), clock.now())
    assert.deepEqual(await keys(Bucket), [Key])
    await s3.send(new DeleteObjectCommand({ Bucket, Key }))
    await assert.rejects(text(Bucket, Key), { name: 'NoSuchKey' })
    await assert.rejects(s3.send(new HeadObjectCommand({ Bucket, Key })), { name: 'NotFound' })
    await assert.rejects(text('nowhere', Key), { name: 'NoSuchBucket' })
    assert.equal(bytesOf(sim.s3.store.history(Bucket)[0]!.content).toString(), '{"a":1}\n')
  })

  test('uploads a stream in chunks with a checksum behind them', async () => {
    const Bucket = newBucket()
    const bytes = Buffer.alloc(300_000, 'abcdefg')
    const pieces = Array.from({ length: 5 }, (_, at) => bytes.subarray(at * 60_000, (at + 1) * 60_000))
    await s3.send(
      new PutObjectCommand({
        Bucket,
        Key: 'stream',
        Body: Readable.from(pieces),
        ContentLength: bytes.length,
        ContentEncoding: 'gzip',
      }),
    )
    const [stored] = sim.s3.store.history(Bucket)
    assert.equal(stored?.etag, md5(bytes))
    assert.equal(stored?.contentEncoding, 'gzip')
  })

  test('reads ranges, and says which there are', async () => {
    const Bucket = newBucket()
    await put(Bucket, 'a', '0123456789')
    assert.equal(await text(Bucket, 'a', { Range: 'bytes=3-5' }), '345')
    assert.equal(await text(Bucket, 'a', { Range: 'bytes=8-' }), '89')
    assert.equal(await text(Bucket, 'a', { Range: 'bytes=-2' }), '89')
    assert.equal(await text(Bucket, 'a', { Range: 'bytes=8-100' }), '89')
    const { ContentRange } = await s3.send(new GetObjectCommand({ Bucket, Key: 'a', Range: 'bytes=3-5' }))
    assert.equal(ContentRange, 'bytes 3-5/10')
    await assert.rejects(text(Bucket, 'a', { Range: 'bytes=10-' }), { name: 'InvalidRange' })
    await put(Bucket, 'empty', '')
    assert.equal(await text(Bucket, 'empty'), '')
    await assert.rejects(text(Bucket, 'empty', { Range: 'bytes=0-' }), { name: 'InvalidRange' })
  })

  test('an object that was replaced does not match its old etag any more', async () => {
    const Bucket = newBucket()
    const { ETag } = await put(Bucket, 'a', 'old')
    assert.equal(await text(Bucket, 'a', { IfMatch: ETag }), 'old')
    await put(Bucket, 'a', 'new')
    const refused = (error: { name: string; $metadata: { httpStatusCode?: number } }): boolean =>
      error.name === 'PreconditionFailed' && error.$metadata.httpStatusCode === 412
    await assert.rejects(text(Bucket, 'a', { IfMatch: ETag }), refused)
    await assert.rejects(s3.send(new DeleteObjectCommand({ Bucket, Key: 'a', IfMatch: ETag })), refused)
    await assert.rejects(s3.send(new PutObjectCommand({ Bucket, Key: 'a', IfNoneMatch: '*' })), refused)
  })

  test('copies, also with other metadata and only from the version that is meant', async () => {
    const Bucket = newBucket()
    const { ETag } = await put(Bucket, 'a b/ü', 'body')
    const CopySource = `${Bucket}/${encodeURIComponent('a b/ü')}`
    await s3.send(new CopyObjectCommand({ Bucket, Key: 'to', CopySource, CopySourceIfMatch: ETag }))
    assert.equal(await text(Bucket, 'to'), 'body')
    await s3.send(
      new CopyObjectCommand({
        Bucket,
        Key: 'to',
        CopySource,
        MetadataDirective: 'REPLACE',
        Metadata: { a: 'b' },
      }),
    )
    const head = await s3.send(new HeadObjectCommand({ Bucket, Key: 'to' }))
    assert.deepEqual(head.Metadata, { a: 'b' })
    const other = new CopyObjectCommand({ Bucket, Key: 'to', CopySource, CopySourceIfMatch: '"other"' })
    await assert.rejects(s3.send(other), { name: 'PreconditionFailed' })
    await assert.rejects(
      s3.send(new CopyObjectCommand({ Bucket, Key: 'to', CopySource: `${Bucket}/none` })),
      { name: 'NoSuchKey' },
    )
  })

  test('tags objects', async () => {
    const Bucket = newBucket()
    await s3.send(new PutObjectCommand({ Bucket, Key: 'a', Tagging: 'x=1' }))
    const TagSet = [
      { Key: 'state', Value: 'done & dusted' },
      { Key: 'b', Value: '' },
    ]
    await s3.send(new PutObjectTaggingCommand({ Bucket, Key: 'a', Tagging: { TagSet } }))
    const tags = await s3.send(new GetObjectTaggingCommand({ Bucket, Key: 'a' }))
    assert.deepEqual(tags.TagSet, TagSet)
  })

  test('a wrong access key is refused, and so is nobody', async () => {
    const Bucket = newBucket()
    const stranger = client('AKIASTRANGER')
    const command = new ListObjectsV2Command({ Bucket })
    await assert.rejects(stranger.send(command), { name: 'InvalidAccessKeyId' })
    stranger.destroy()
    const anonymous = await fetch(`${sim.s3.baseUrl}/${Bucket}/a`)
    assert.equal(anonymous.status, 403)
    assert.match(await anonymous.text(), /<Code>AccessDenied<\/Code>/)
  })

  test('a presigned address is good until it expires, also with the bucket in the host', async () => {
    const Bucket = newBucket()
    await put(Bucket, 'a b', 'x')
    const date = new Date(clock.now()).toISOString().replace(/[-:]|\.\d+/g, '')
    const signed = new URLSearchParams({
      'X-Amz-Algorithm': 'AWS4-HMAC-SHA256',
      'X-Amz-Credential': `${sim.s3.account.accessKeyId}/20260101/us-east-1/s3/aws4_request`,
      'X-Amz-Date': date,
      'X-Amz-Expires': '60',
    })
    const byPath = `/${Bucket}/a%20b?${signed}`
    assert.equal(await statusOf(byPath), 200)
    const hosted = { host: `${Bucket}.localhost:${sim.port}` }
    assert.equal(await statusOf(`/a%20b?${signed}`, hosted), 200)
    await clock.advance(61_000)
    assert.equal(await statusOf(byPath), 403)
  })

  test('bytes that do not fit their checksum are refused', async () => {
    const Bucket = newBucket()
    const command = new PutObjectCommand({
      Bucket,
      Key: 'a',
      Body: 'x',
      ContentMD5: 'AAAAAAAAAAAAAAAAAAAAAA==',
    })
    await assert.rejects(s3.send(command), { name: 'BadDigest' })
  })
})

describe('a listing', () => {
  test('goes page by page in the order of bytes', async () => {
    const Bucket = newBucket()
    const all = ['a', 'a/1', 'a/2', 'b', 'z', 'é', '\uffff', '😀']
    for (const key of all.toReversed()) sim.s3.store.put(Bucket, key, key)
    assert.deepEqual(await keys(Bucket), all)
    const paged: (string | undefined)[] = []
    let token: string | undefined
    do {
      const page = await s3.send(new ListObjectsV2Command({ Bucket, MaxKeys: 3, ContinuationToken: token }))
      assert.equal(page.IsTruncated, page.NextContinuationToken !== undefined)
      paged.push(...(page.Contents ?? []).map(({ Key }) => Key))
      token = page.NextContinuationToken
    } while (token !== undefined)
    assert.deepEqual(paged, all)
    assert.deepEqual(await keys(Bucket, { Prefix: 'a/' }), ['a/1', 'a/2'])
    assert.deepEqual(await keys(Bucket, { StartAfter: 'b' }), ['z', 'é', '\uffff', '😀'])
    assert.deepEqual(await keys(Bucket, { Prefix: 'a/', StartAfter: 'a/1' }), ['a/2'])
    assert.deepEqual(await keys(Bucket, { Prefix: 'nothing' }), [])
  })

  test('encodes keys where that is asked for, and groups them', async () => {
    const Bucket = newBucket()
    for (const key of ['a b/1', 'a b/2', 'c+d']) sim.s3.store.put(Bucket, key, '')
    assert.deepEqual(await keys(Bucket, { EncodingType: 'url' }), ['a+b/1', 'a+b/2', 'c%2Bd'])
    const { CommonPrefixes, Contents } = await s3.send(
      new ListObjectsV2Command({ Bucket, Delimiter: '/', MaxKeys: 5 }),
    )
    assert.deepEqual(CommonPrefixes, [{ Prefix: 'a b/' }])
    assert.deepEqual(
      Contents?.map(({ Key }) => Key),
      ['c+d'],
    )
  })

  test('deletes many at once', async () => {
    const Bucket = newBucket()
    for (const key of ['a', 'b&', 'c']) sim.s3.store.put(Bucket, key, '')
    const Objects = [{ Key: 'a' }, { Key: 'b&' }, { Key: 'never' }]
    const { Deleted } = await s3.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects } }))
    assert.deepEqual(
      Deleted?.map(({ Key }) => Key),
      ['a', 'b&', 'never'],
    )
    assert.deepEqual(await keys(Bucket), ['c'])
  })
})

describe('versions', () => {
  test('are kept, read by their id, listed, hidden by a marker and deleted for good', async () => {
    const Bucket = newBucket()
    await s3.send(new PutBucketVersioningCommand({ Bucket, VersioningConfiguration: { Status: 'Enabled' } }))
    assert.equal((await s3.send(new GetBucketVersioningCommand({ Bucket }))).Status, 'Enabled')
    const { VersionId: first } = await put(Bucket, 'a', 'one')
    const { VersionId: second } = await put(Bucket, 'a', 'two')
    assert.equal(await text(Bucket, 'a'), 'two')
    assert.equal(await text(Bucket, 'a', { VersionId: first! }), 'one')
    const { DeleteMarker, VersionId: marker } = await s3.send(new DeleteObjectCommand({ Bucket, Key: 'a' }))
    assert.equal(DeleteMarker, true)
    await assert.rejects(text(Bucket, 'a'), { name: 'NoSuchKey' })
    assert.deepEqual(await keys(Bucket), [])
    const listed = await s3.send(new ListObjectVersionsCommand({ Bucket }))
    assert.deepEqual(
      listed.Versions?.map(({ VersionId }) => VersionId),
      [second, first],
    )
    assert.deepEqual(
      listed.DeleteMarkers?.map(({ VersionId }) => VersionId),
      [marker],
    )
    await s3.send(new DeleteObjectCommand({ Bucket, Key: 'a', VersionId: marker! }))
    assert.equal(await text(Bucket, 'a'), 'two')
    await s3.send(new DeleteObjectCommand({ Bucket, Key: 'a', VersionId: second! }))
    assert.equal(await text(Bucket, 'a'), 'one')
    await assert.rejects(text(Bucket, 'a', { VersionId: second! }), { name: 'NoSuchVersion' })
    assert.equal(sim.s3.store.history(Bucket).length, 3, 'the truth forgets nothing')
  })
})

describe('an upload in parts', () => {
  test('becomes one object when it is complete, with the number of parts in its etag', async () => {
    const Bucket = newBucket()
    const Key = 'large'
    const big = Buffer.alloc(5 * 2 ** 20, 'a')
    const { UploadId } = await s3.send(
      new CreateMultipartUploadCommand({ Bucket, Key, ContentType: 'text/plain' }),
    )
    const parts = [big, Buffer.from('the rest')]
    const Parts = []
    for (const [at, Body] of parts.entries()) {
      const { ETag } = await s3.send(
        new UploadPartCommand({ Bucket, Key, UploadId, PartNumber: at + 1, Body }),
      )
      Parts.push({ PartNumber: at + 1, ETag })
    }
    const listed = await s3.send(new ListPartsCommand({ Bucket, Key, UploadId }))
    assert.deepEqual(
      listed.Parts?.map(({ Size }) => Size),
      [5 * 2 ** 20, 8],
    )
    await assert.rejects(text(Bucket, Key), { name: 'NoSuchKey' })
    const wrong = { Parts: [{ PartNumber: 1, ETag: '"other"' }] }
    await assert.rejects(
      s3.send(new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: wrong })),
      {
        name: 'InvalidPart',
      },
    )
    const { ETag } = await s3.send(
      new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload: { Parts } }),
    )
    const digests = parts.map((part) => Buffer.from(md5(part), 'hex'))
    assert.equal(ETag, `"${md5(Buffer.concat(digests))}-2"`)
    assert.equal(await text(Bucket, Key, { Range: `bytes=${5 * 2 ** 20 - 2}-` }), 'aathe rest')
  })

  test('leaves nothing when it is aborted', async () => {
    const Bucket = newBucket()
    const { UploadId } = await s3.send(new CreateMultipartUploadCommand({ Bucket, Key: 'a' }))
    await s3.send(new AbortMultipartUploadCommand({ Bucket, Key: 'a', UploadId }))
    const part = new UploadPartCommand({ Bucket, Key: 'a', UploadId, PartNumber: 1, Body: 'x' })
    await assert.rejects(s3.send(part), { name: 'NoSuchUpload' })
    assert.deepEqual(await keys(Bucket), [])
  })
})

describe('a synthetic object', () => {
  test('of five gigabytes is served in part without being held', async () => {
    const Bucket = newBucket()
    const sizeBytes = 5 * 2 ** 30
    let made = 0
    const line = (at: number): number => 97 + (at % 26)
    sim.s3.store.putSynthetic(Bucket, 'huge', {
      sizeBytes,
      bytesAt(from, to) {
        made += to - from
        return Buffer.from(Array.from({ length: to - from }, (_, at) => line(from + at)))
      },
    })
    const head = await s3.send(new HeadObjectCommand({ Bucket, Key: 'huge' }))
    assert.equal(head.ContentLength, sizeBytes)
    const from = 2 ** 32 + 5
    const bytes = await text(Bucket, 'huge', { Range: `bytes=${from}-${from + 9}` })
    assert.equal(bytes, Array.from({ length: 10 }, (_, at) => String.fromCharCode(line(from + at))).join(''))
    assert.equal(made, 10)
  })
})

describe('a notification', () => {
  function bodies(queue: string): Record<string, unknown>[] {
    return sim.sqs.queue(queue).messages.map(({ body }) => JSON.parse(body) as Record<string, unknown>)
  }

  type Record1 = {
    eventName: string
    s3: { object: { key: string; size: number; sequencer: string; versionId?: string } }
  }

  test('is set up by the SDK, begins with a test event, and has form-encoded keys', async () => {
    const Bucket = newBucket()
    sim.sqs.queues.create('direct')
    const QueueArn = 'arn:aws:sqs:us-east-1:000000000000:direct'
    const Filter = { Key: { FilterRules: [{ Name: 'prefix' as const, Value: 'in/' }] } }
    await s3.send(
      new PutBucketNotificationConfigurationCommand({
        Bucket,
        NotificationConfiguration: {
          QueueConfigurations: [{ QueueArn, Events: ['s3:ObjectCreated:*'], Filter }],
        },
      }),
    )
    const configured = await s3.send(new GetBucketNotificationConfigurationCommand({ Bucket }))
    assert.equal(configured.QueueConfigurations?.[0]?.QueueArn, QueueArn)
    await put(Bucket, 'in/a b+ü.json', '{}')
    await put(Bucket, 'out/a', '{}')
    await s3.send(new DeleteObjectCommand({ Bucket, Key: 'in/a b+ü.json' }))
    const [first, second, ...rest] = bodies('direct')
    assert.equal(first?.Event, 's3:TestEvent')
    assert.deepEqual(rest, [])
    const [record] = second!.Records as Record1[]
    assert.equal(record?.eventName, 'ObjectCreated:Put')
    assert.equal(record?.s3.object.key, 'in/a+b%2B%C3%BC.json')
    assert.equal(record?.s3.object.size, 2)
    const nowhere = new PutBucketNotificationConfigurationCommand({
      Bucket,
      NotificationConfiguration: {
        QueueConfigurations: [
          { QueueArn: QueueArn.replace('direct', 'nowhere'), Events: ['s3:ObjectCreated:*'] },
        ],
      },
    })
    await assert.rejects(s3.send(nowhere), { name: 'InvalidArgument' })
  })

  test('comes in every envelope, in EventBridge with the key as it is', async () => {
    const Bucket = newBucket({ isVersioned: true })
    for (const envelope of ['sns', 'sns-raw', 'eventbridge'] as const) {
      sim.s3.store.notify(Bucket, { queue: `by-${envelope}`, envelope })
    }
    const { VersionId } = await put(Bucket, 'a b', '{}')
    const [testEvent, wrapped] = bodies('by-sns')
    assert.equal((JSON.parse(String(testEvent?.Message)) as { Event: string }).Event, 's3:TestEvent')
    assert.equal(wrapped?.Type, 'Notification')
    const { Records } = JSON.parse(String(wrapped?.Message)) as { Records: Record1[] }
    assert.equal(Records[0]?.s3.object.versionId, VersionId)
    assert.ok(bodies('by-sns-raw')[1]?.Records)
    const [bridged, ...rest] = bodies('by-eventbridge')
    assert.deepEqual(rest, [])
    assert.equal(bridged?.['detail-type'], 'Object Created')
    const detail = bridged?.detail as { object: Record<string, unknown>; reason: string }
    assert.equal(detail.object.key, 'a b')
    assert.equal(detail.object['version-id'], VersionId)
    assert.equal(detail.reason, 'PutObject')
  })

  test('has a sequencer that rises for a key, over deletions too, and can tell of several objects', async () => {
    const Bucket = newBucket()
    sim.s3.store.notify(Bucket, {
      queue: 'rising',
      envelope: 's3',
      events: ['s3:ObjectCreated:*', 's3:ObjectRemoved:*'],
    })
    await put(Bucket, 'a', '1')
    await s3.send(new DeleteObjectCommand({ Bucket, Key: 'a' }))
    await put(Bucket, 'a', '2')
    await put(Bucket, 'b', '3')
    const records = (): Record1[] => bodies('rising').flatMap(({ Records = [] }) => Records as Record1[])
    const sequencers = records().map(({ s3: { object } }) => object.sequencer)
    assert.equal(sequencers.length, 4)
    assert.deepEqual(sequencers, sequencers.toSorted())
    assert.equal(new Set(sequencers).size, 4)
    assert.equal(records()[1]?.eventName, 'ObjectRemoved:Delete')
    sim.s3.store.announceTogether(Bucket, ['a', 'b'])
    const last = bodies('rising').at(-1)?.Records as Record1[]
    assert.deepEqual(
      last.map(({ s3: { object } }) => object.key),
      ['a', 'b'],
    )
    assert.deepEqual(
      last.map(({ s3: { object } }) => object.sequencer),
      sequencers.slice(2),
      'duplicates share it',
    )
  })

  test('gets lost, comes twice, late or behind the next one, as it is asked for', async () => {
    const Bucket = newBucket()
    const { store } = sim.s3
    store.notify(Bucket, { queue: 'weather', envelope: 's3' })
    const arrived = (): string[] =>
      bodies('weather').flatMap(({ Records = [] }) => (Records as Record1[]).map((one) => one.s3.object.key))
    const set = (faults: object) =>
      fetch(`${sim.controlUrl}/s3/notices`, { method: 'PUT', body: JSON.stringify(faults) })
    assert.equal((await set({ lose: 1 })).status, 200)
    store.put(Bucket, 'lost', '')
    await set({ lose: 0, duplicate: 1 })
    store.put(Bucket, 'twice', '')
    assert.deepEqual(arrived(), ['twice', 'twice'])
    await set({ duplicate: 0, delay: 1, delayMsMax: 1_000 })
    store.put(Bucket, 'late', '')
    await set({ delay: 0, reorder: 1 })
    store.put(Bucket, 'behind', '')
    await set({ reorder: 0 })
    store.put(Bucket, 'last', '')
    assert.deepEqual(arrived().slice(2), ['last', 'behind'])
    await clock.advance(1_000)
    assert.deepEqual(arrived().slice(4), ['late'])
    await set({ reorder: 1 })
    store.put(Bucket, 'alone', '')
    await clock.advance(1_000)
    assert.equal(arrived().at(-1), 'alone', 'nothing is held for ever')
    await set({ reorder: 0 })
    const { counts } = store.notices
    assert.deepEqual([counts.lost, counts.duplicated, counts.delayed, counts.reordered], [1, 1, 1, 2])
  })
})

test('the same seed loses the same announcements', async () => {
  const arrived = async (seed: number): Promise<string[]> => {
    const notify = [{ queue: 'q', envelope: 'eventbridge' as const }]
    const own = await startSim({ clock, seed, s3: { buckets: [{ name: 'b', notify }] } })
    Object.assign(own.s3.store.notices.faults, { lose: 0.3, duplicate: 0.3 })
    for (let at = 0; at < 50; at++) own.s3.store.put('b', `k${at}`, '')
    await own.close()
    type Event = { detail: { object: { key: string } } }
    return own.sqs.queue('q').messages.map(({ body }) => (JSON.parse(body) as Event).detail.object.key)
  }
  const first = await arrived(7)
  assert.deepEqual(await arrived(7), first)
  assert.notDeepEqual(await arrived(8), first)
  assert.ok(new Set(first).size < 50 && first.length > new Set(first).size)
})

describe('faults', () => {
  test('come in the shape of S3', async () => {
    const Bucket = newBucket()
    await put(Bucket, 'a', '0123456789')
    sim.faults.set({ rules: [{ do: 'throttle', service: 's3', max: 1 }] })
    await assert.rejects(text(Bucket, 'a'), { name: 'SlowDown' })
    sim.faults.set({ rules: [{ do: 'error', status: 500, methods: ['s3.GetObject'], max: 1 }] })
    await assert.rejects(text(Bucket, 'a'), { name: 'InternalError' })
    sim.faults.set({ rules: [{ do: 'error', status: 403, target: `${Bucket}/a` }] })
    await assert.rejects(text(Bucket, 'a'), { name: 'AccessDenied' })
    assert.deepEqual(await keys(Bucket), ['a'])
    sim.faults.set({ rules: [{ do: 'truncate', share: 0.5, methods: ['s3.GetObject'], max: 1 }] })
    await assert.rejects(text(Bucket, 'a'))
    assert.equal(await text(Bucket, 'a'), '0123456789')
  })

  test('an object is missing or denied until it is allowed again', async () => {
    const Bucket = newBucket()
    await put(Bucket, 'a', 'x')
    sim.s3.store.refuse(Bucket, 'a', 'missing')
    await assert.rejects(text(Bucket, 'a'), { name: 'NoSuchKey' })
    const post = (what: string, body: object) =>
      fetch(`${sim.controlUrl}/s3/${what}`, { method: 'POST', body: JSON.stringify(body) })
    await post('refuse', { bucket: Bucket, key: 'a', how: 'denied' })
    await assert.rejects(text(Bucket, 'a'), { name: 'AccessDenied' })
    await post('allow', { bucket: Bucket, key: 'a' })
    assert.equal(await text(Bucket, 'a'), 'x')
  })

  test('calls are counted', async () => {
    const Bucket = newBucket()
    const before = sim.s3.calls.PutObject!
    await put(Bucket, 'a', 'x')
    assert.equal(sim.s3.calls.PutObject, before + 1)
  })
})
