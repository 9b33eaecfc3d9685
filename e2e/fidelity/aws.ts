/** Amazon's SDKs of S3 and SQS. */
import assert from 'node:assert/strict'
import {
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  DeleteObjectsCommand,
  GetObjectCommand,
  GetObjectTaggingCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListBucketsCommand,
  ListObjectsV2Command,
  ListObjectVersionsCommand,
  PutBucketVersioningCommand,
  PutObjectCommand,
  PutObjectTaggingCommand,
  paginateListObjectsV2,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import {
  ChangeMessageVisibilityCommand,
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  ListQueuesCommand,
  PurgeQueueCommand,
  ReceiveMessageCommand,
  SendMessageBatchCommand,
  SendMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import type { Sim } from '../../src/sim/start.ts'
import { type Call, type Client, callsOf } from './harness.ts'

const PART_BYTES = 5 * 2 ** 20

export const awsClients: readonly Client[] = [
  { client: '@aws-sdk/client-s3 3', world: { s3: {} }, calls: s3Calls },
  { client: '@aws-sdk/client-sqs 3', world: { sqs: {} }, calls: sqsCalls },
]

function s3Calls(sim: Sim): readonly Call[] {
  const { accessKeyId, secretAccessKey, region } = sim.s3.account
  const credentials = { accessKeyId, secretAccessKey }
  const s3 = new S3Client({
    endpoint: sim.s3.baseUrl,
    region,
    credentials,
    forcePathStyle: true,
    maxAttempts: 1,
  })
  const Bucket = 'fidelity'
  const put = (Key: string, Body: string | Uint8Array = Key) =>
    s3.send(new PutObjectCommand({ Bucket, Key, Body }))
  const text = async (Key: string, Range?: string): Promise<string> =>
    (await s3.send(new GetObjectCommand({ Bucket, Key, Range }))).Body!.transformToString()
  return [
    ...callsOf({
      CreateBucket: () => s3.send(new CreateBucketCommand({ Bucket })),
      HeadBucket: () => s3.send(new HeadBucketCommand({ Bucket })),
      ListBuckets: async () =>
        assert.ok((await s3.send(new ListBucketsCommand({}))).Buckets!.some(({ Name }) => Name === Bucket)),
      PutObject: () => put('a/1.txt', 'hello'),
      GetObject: async () => assert.equal(await text('a/1.txt'), 'hello'),
      'GetObject with Range': async () => assert.equal(await text('a/1.txt', 'bytes=1-2'), 'el'),
      HeadObject: async () =>
        assert.equal((await s3.send(new HeadObjectCommand({ Bucket, Key: 'a/1.txt' }))).ContentLength, 5),
      CopyObject: () =>
        s3.send(new CopyObjectCommand({ Bucket, Key: 'a/2.txt', CopySource: `${Bucket}/a/1.txt` })),
      PutObjectTagging: () =>
        s3.send(
          new PutObjectTaggingCommand({
            Bucket,
            Key: 'a/1.txt',
            Tagging: { TagSet: [{ Key: 'k', Value: 'v' }] },
          }),
        ),
      GetObjectTagging: async () => {
        const { TagSet } = await s3.send(new GetObjectTaggingCommand({ Bucket, Key: 'a/1.txt' }))
        assert.deepEqual(TagSet, [{ Key: 'k', Value: 'v' }])
      },
      ListObjectsV2: async () => {
        const { KeyCount } = await s3.send(new ListObjectsV2Command({ Bucket, Prefix: 'a/' }))
        assert.equal(KeyCount, 2)
      },
      'ListObjectsV2 by pages': async () => {
        const keys: (string | undefined)[] = []
        for await (const page of paginateListObjectsV2({ client: s3, pageSize: 1 }, { Bucket })) {
          keys.push(...(page.Contents ?? []).map(({ Key }) => Key))
        }
        assert.deepEqual(keys, ['a/1.txt', 'a/2.txt'])
      },
      DeleteObject: () => s3.send(new DeleteObjectCommand({ Bucket, Key: 'a/2.txt' })),
      DeleteObjects: async () => {
        await put('b')
        const Delete = { Objects: [{ Key: 'b' }] }
        assert.equal((await s3.send(new DeleteObjectsCommand({ Bucket, Delete }))).Deleted!.length, 1)
      },
      PutBucketVersioning: () =>
        s3.send(new PutBucketVersioningCommand({ Bucket, VersioningConfiguration: { Status: 'Enabled' } })),
      ListObjectVersions: async () => {
        await put('a/1.txt', 'again')
        const { Versions } = await s3.send(new ListObjectVersionsCommand({ Bucket, Prefix: 'a/1.txt' }))
        assert.equal(Versions!.length, 2)
      },
    }),
    {
      call: 'CreateMultipartUpload, UploadPart, CompleteMultipartUpload',
      isLong: true,
      run: async () => {
        const Key = 'large'
        const { UploadId } = await s3.send(new CreateMultipartUploadCommand({ Bucket, Key }))
        const Parts = []
        for (const PartNumber of [1, 2]) {
          const Body = new Uint8Array(PartNumber === 1 ? PART_BYTES : 10)
          const { ETag } = await s3.send(new UploadPartCommand({ Bucket, Key, UploadId, PartNumber, Body }))
          Parts.push({ PartNumber, ETag })
        }
        const MultipartUpload = { Parts }
        await s3.send(new CompleteMultipartUploadCommand({ Bucket, Key, UploadId, MultipartUpload }))
        const { ContentLength } = await s3.send(new HeadObjectCommand({ Bucket, Key }))
        assert.equal(ContentLength, PART_BYTES + 10)
      },
    },
  ]
}

function sqsCalls(sim: Sim): readonly Call[] {
  const { accessKeyId, secretAccessKey, region } = sim.sqs.account
  const credentials = { accessKeyId, secretAccessKey }
  const sqs = new SQSClient({ endpoint: sim.sqs.baseUrl, region, credentials, maxAttempts: 1 })
  let QueueUrl = ''
  const receive = async () =>
    (await sqs.send(new ReceiveMessageCommand({ QueueUrl, MaxNumberOfMessages: 10 }))).Messages ?? []
  return callsOf({
    CreateQueue: async () => {
      QueueUrl = (await sqs.send(new CreateQueueCommand({ QueueName: 'fidelity' }))).QueueUrl!
    },
    GetQueueUrl: async () =>
      assert.equal((await sqs.send(new GetQueueUrlCommand({ QueueName: 'fidelity' }))).QueueUrl, QueueUrl),
    ListQueues: async () =>
      assert.deepEqual((await sqs.send(new ListQueuesCommand({}))).QueueUrls, [QueueUrl]),
    SendMessage: () => sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: 'one' })),
    ReceiveMessage: async () => assert.equal((await receive())[0]!.Body, 'one'),
    'ChangeMessageVisibility and DeleteMessage': async () => {
      await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: 'two' }))
      const [{ ReceiptHandle } = {}] = await receive()
      await sqs.send(new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle, VisibilityTimeout: 60 }))
      await sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }))
    },
    'SendMessageBatch and DeleteMessageBatch': async () => {
      const Entries = ['a', 'b'].map((Id) => ({ Id, MessageBody: Id }))
      await sqs.send(new SendMessageBatchCommand({ QueueUrl, Entries }))
      const found = await receive()
      const { Successful } = await sqs.send(
        new DeleteMessageBatchCommand({
          QueueUrl,
          Entries: found.map(({ ReceiptHandle }, at) => ({ Id: String(at), ReceiptHandle })),
        }),
      )
      assert.equal(Successful!.length, 2)
    },
    GetQueueAttributes: async () => {
      const { Attributes } = await sqs.send(
        new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['All'] }),
      )
      assert.ok(Attributes!.QueueArn)
    },
    PurgeQueue: () => sqs.send(new PurgeQueueCommand({ QueueUrl })),
  })
}
