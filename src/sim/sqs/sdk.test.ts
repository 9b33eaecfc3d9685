import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import {
  ChangeMessageVisibilityBatchCommand,
  ChangeMessageVisibilityCommand,
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  DeleteMessageCommand,
  GetQueueAttributesCommand,
  GetQueueUrlCommand,
  ListQueuesCommand,
  PurgeQueueCommand,
  ReceiveMessageCommand,
  type ReceiveMessageCommandInput,
  SendMessageBatchCommand,
  SendMessageCommand,
  SetQueueAttributesCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import { FakeClock } from '../../base/clock.ts'
import { type Sim, startSim } from '../start.ts'

let sim: Sim
let sqs: SQSClient
let clock: FakeClock
let number = 0

before(async () => {
  clock = new FakeClock()
  sim = await startSim({ clock, sqs: { queues: [{ name: 'work', deadLetter: 'dead', receivesMax: 2 }] } })
  sqs = client()
})

after(async () => {
  sqs.destroy()
  await sim.close()
})

beforeEach(() => sim.faults.clear())

function client(accessKeyId = sim.sqs.account.accessKeyId): SQSClient {
  const { secretAccessKey, region } = sim.sqs.account
  const credentials = { accessKeyId, secretAccessKey }
  return new SQSClient({ endpoint: sim.sqs.baseUrl, region, credentials, maxAttempts: 1 })
}

async function newQueue(attributes: Record<string, string> = {}): Promise<string> {
  number += 1
  const QueueName = `queue-${number}${attributes.FifoQueue === 'true' ? '.fifo' : ''}`
  const { QueueUrl } = await sqs.send(new CreateQueueCommand({ QueueName, Attributes: attributes }))
  return QueueUrl!
}

async function receive(QueueUrl: string, input: Partial<ReceiveMessageCommandInput> = {}) {
  const { Messages = [] } = await sqs.send(
    new ReceiveMessageCommand({
      QueueUrl,
      MaxNumberOfMessages: 10,
      MessageSystemAttributeNames: ['All'],
      ...input,
    }),
  )
  return Messages
}

async function send(QueueUrl: string, body: string, more: object = {}): Promise<string> {
  const { MessageId } = await sqs.send(new SendMessageCommand({ QueueUrl, MessageBody: body, ...more }))
  return MessageId!
}

function change(
  QueueUrl: string,
  ReceiptHandle: string | undefined,
  VisibilityTimeout: number,
): Promise<unknown> {
  return sqs.send(new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle, VisibilityTimeout }))
}

function remove(QueueUrl: string, ReceiptHandle: string | undefined): Promise<unknown> {
  return sqs.send(new DeleteMessageCommand({ QueueUrl, ReceiptHandle }))
}

async function attributes(QueueUrl: string): Promise<Record<string, string>> {
  const { Attributes } = await sqs.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['All'] }))
  return Attributes as Record<string, string>
}

describe('the SDK of SQS', () => {
  test('sends, receives with attributes, and deletes', async () => {
    const url = await newQueue()
    const id = await send(url, 'häl😀lo', {
      MessageAttributes: {
        kind: { DataType: 'String', StringValue: 'a' },
        raw: { DataType: 'Binary', BinaryValue: new Uint8Array([1, 2, 255]) },
      },
    })
    const [message] = await receive(url, { MessageAttributeNames: ['All'] })
    assert.equal(message?.MessageId, id)
    assert.equal(message?.Body, 'häl😀lo')
    assert.equal(message?.Attributes?.ApproximateReceiveCount, '1')
    assert.equal(message?.Attributes?.SentTimestamp, String(clock.now()))
    assert.equal(message?.Attributes?.ApproximateFirstReceiveTimestamp, String(clock.now()))
    assert.equal(message?.MessageAttributes?.kind?.StringValue, 'a')
    assert.deepEqual([...message!.MessageAttributes!.raw!.BinaryValue!], [1, 2, 255])
    assert.equal((await attributes(url)).ApproximateNumberOfMessagesNotVisible, '1')
    await remove(url, message?.ReceiptHandle)
    await clock.advance(3_600_000)
    assert.deepEqual(await receive(url), [])
    const [truth] = sim.sqs.queue(url.split('/').at(-1)!).messages
    assert.equal(truth?.outcome, 'acknowledged')
    assert.equal(truth?.outcomeBy, sim.sqs.account.accessKeyId)
  })

  test('finds queues by name and tells their depths', async () => {
    const url = await newQueue({ VisibilityTimeout: '60', DelaySeconds: '0' })
    const name = url.split('/').at(-1)!
    const found = await sqs.send(new GetQueueUrlCommand({ QueueName: name }))
    assert.equal(found.QueueUrl, url)
    const { QueueUrls } = await sqs.send(new ListQueuesCommand({ QueueNamePrefix: name }))
    assert.deepEqual(QueueUrls, [url])
    await send(url, 'one')
    await send(url, 'two')
    await send(url, 'later', { DelaySeconds: 5 })
    await receive(url, { MaxNumberOfMessages: 1 })
    const depth = await attributes(url)
    assert.equal(depth.ApproximateNumberOfMessages, '1')
    assert.equal(depth.ApproximateNumberOfMessagesNotVisible, '1')
    assert.equal(depth.ApproximateNumberOfMessagesDelayed, '1')
    assert.equal(depth.VisibilityTimeout, '60')
    await sqs.send(new SetQueueAttributesCommand({ QueueUrl: url, Attributes: { VisibilityTimeout: '90' } }))
    assert.equal((await attributes(url)).VisibilityTimeout, '90')
    await sqs.send(new PurgeQueueCommand({ QueueUrl: url }))
    assert.equal((await attributes(url)).ApproximateNumberOfMessages, '0')
    await assert.rejects(sqs.send(new GetQueueUrlCommand({ QueueName: 'nowhere' })), {
      name: 'QueueDoesNotExist',
    })
  })

  test('each entry of a batch answers for itself', async () => {
    const url = await newQueue()
    const Entries = Array.from({ length: 10 }, (_, at) => ({
      Id: `${at}`,
      MessageBody: at === 3 ? '' : `m${at}`,
    }))
    const sent = await sqs.send(new SendMessageBatchCommand({ QueueUrl: url, Entries }))
    assert.equal(sent.Successful?.length, 9)
    assert.equal(sent.Failed?.[0]?.Id, '3')
    const messages = await receive(url)
    assert.equal(messages.length, 9)
    const handles = messages.map(({ ReceiptHandle }, at) => ({ Id: `${at}`, ReceiptHandle }))
    const changed = await sqs.send(
      new ChangeMessageVisibilityBatchCommand({
        QueueUrl: url,
        Entries: [
          { Id: 'bad', ReceiptHandle: 'nonsense', VisibilityTimeout: 60 },
          ...handles.slice(0, 2).map((one) => ({ ...one, VisibilityTimeout: 60 })),
        ],
      }),
    )
    assert.deepEqual(
      changed.Failed?.map(({ Id, Code }) => [Id, Code]),
      [['bad', 'ReceiptHandleIsInvalid']],
    )
    assert.equal(changed.Successful?.length, 2)
    const deleted = await sqs.send(new DeleteMessageBatchCommand({ QueueUrl: url, Entries: handles }))
    assert.equal(deleted.Successful?.length, 9)
  })

  test('a wrong access key is refused', async () => {
    const stranger = client('AKIASTRANGER')
    await assert.rejects(stranger.send(new ListQueuesCommand({})), { name: 'InvalidClientTokenId' })
    stranger.destroy()
  })
})

describe('visibility', () => {
  test('a message comes back when its time is over, with a new receipt, and only the newest deletes', async () => {
    const url = await newQueue({ VisibilityTimeout: '30' })
    await send(url, 'a')
    const [first] = await receive(url)
    await clock.advance(29_999)
    assert.deepEqual(await receive(url), [])
    await clock.advance(1)
    const [second] = await receive(url)
    assert.equal(second?.Attributes?.ApproximateReceiveCount, '2')
    await remove(url, first?.ReceiptHandle)
    assert.equal(
      (await attributes(url)).ApproximateNumberOfMessagesNotVisible,
      '1',
      'an old receipt deletes nothing',
    )
    await assert.rejects(change(url, first?.ReceiptHandle, 10), { name: 'InvalidParameterValue' })
    await remove(url, second?.ReceiptHandle)
    assert.equal((await attributes(url)).ApproximateNumberOfMessagesNotVisible, '0')
    await remove(url, second?.ReceiptHandle)
  })

  test('an extension counts from now, 0 gives back, and beyond 12 hours from the receive it is refused', async () => {
    const url = await newQueue()
    await send(url, 'a')
    const [message] = await receive(url, { VisibilityTimeout: 60 })
    const handle = message?.ReceiptHandle
    await assert.rejects(change(url, handle, 43_201), { name: 'InvalidParameterValue' })
    await change(url, handle, 43_200)
    await clock.advance(10_000_000)
    await assert.rejects(change(url, handle, 33_201), /beyond the limit \[43200 seconds\]/)
    await change(url, handle, 33_200)
    await clock.advance(33_199_000)
    assert.deepEqual(await receive(url), [])
    await assert.rejects(change(url, handle, 2), { name: 'InvalidParameterValue' })
    await change(url, handle, 0)
    await assert.rejects(change(url, handle, 10), { name: 'MessageNotInflight' })
    assert.equal((await receive(url)).length, 1)
  })

  test('a receipt that nobody gave out is invalid', async () => {
    const url = await newQueue()
    await assert.rejects(change(url, 'nonsense', 10), { name: 'ReceiptHandleIsInvalid' })
    await assert.rejects(remove(url, 'nonsense'), { name: 'ReceiptHandleIsInvalid' })
  })

  test('a receipt can be expired and a message be held, on demand', async () => {
    const url = await newQueue()
    const queue = sim.sqs.queue(url.split('/').at(-1)!)
    const id = await send(url, 'a')
    const [message] = await receive(url)
    const expired = await fetch(`${sim.controlUrl}/sqs/expire-receipt`, {
      method: 'POST',
      body: JSON.stringify({ queue: queue.name, id }),
    })
    assert.equal(expired.status, 200)
    await assert.rejects(change(url, message?.ReceiptHandle, 10), { name: 'InvalidParameterValue' })
    await remove(url, message?.ReceiptHandle)
    assert.equal(queue.message(id)?.outcome, 'waiting')
    assert.ok(queue.hide(id, 5_000))
    assert.deepEqual(await receive(url), [])
    await clock.advance(5_000)
    assert.equal((await receive(url)).length, 1)
  })

  test('what is older than the retention is gone', async () => {
    const url = await newQueue({ MessageRetentionPeriod: '60' })
    await send(url, 'a')
    await clock.advance(60_000)
    assert.deepEqual(await receive(url), [])
    assert.equal(sim.sqs.queue(url.split('/').at(-1)!).messages[0]?.outcome, 'expired')
  })
})

describe('a long poll', () => {
  test('ends with the message that comes', async () => {
    const url = await newQueue()
    const { waiting } = await polling(url)
    await send(url, 'a')
    assert.equal((await waiting)[0]?.Body, 'a')
  })

  test('ends with the message whose time is over, and with its own time', async () => {
    const url = await newQueue({ VisibilityTimeout: '5' })
    await send(url, 'a')
    await receive(url)
    const { waiting } = await polling(url)
    await clock.advance(5_000)
    assert.equal((await waiting)[0]?.Attributes?.ApproximateReceiveCount, '2')
    const { waiting: none } = await polling(await newQueue())
    await clock.advance(20_000)
    assert.deepEqual(await none, [])
  })

  test('ends when the caller goes, who gets nothing any more', async () => {
    const url = await newQueue()
    const timers = clock.pendingTimers
    const abort = new AbortController()
    const { waiting } = await polling(url, abort.signal)
    const rejected = assert.rejects(waiting, { name: 'AbortError' })
    abort.abort()
    await rejected
    while (clock.pendingTimers > timers) await turn()
    await send(url, 'a')
    assert.equal((await receive(url))[0]?.Attributes?.ApproximateReceiveCount, '1')
  })

  test('two of them get a message each', async () => {
    const url = await newQueue()
    const { waiting: one } = await polling(url)
    const { waiting: other } = await polling(url)
    await send(url, 'a')
    await send(url, 'b')
    assert.deepEqual(
      (await Promise.all([one, other])).flat().map(({ Body }) => Body),
      ['a', 'b'],
    )
  })
})

describe('an ordered queue', () => {
  const fifo = { FifoQueue: 'true', VisibilityTimeout: '30' }

  test('keeps a group back while one of it is in flight, and its order when that comes back', async () => {
    const url = await newQueue(fifo)
    for (const [at, group] of ['a', 'a', 'b'].entries()) {
      await send(url, `${group}${at}`, { MessageGroupId: group, MessageDeduplicationId: `${at}` })
    }
    const bodies = (messages: { Body?: string | undefined }[]) => messages.map(({ Body }) => Body)
    const [first] = await receive(url, { MaxNumberOfMessages: 1 })
    assert.equal(first?.Attributes?.MessageGroupId, 'a')
    assert.deepEqual(bodies(await receive(url)), ['b2'])
    await clock.advance(30_000)
    const again = await receive(url)
    assert.deepEqual(bodies(again), ['a0', 'a1', 'b2'])
    await assert.rejects(change(url, first?.ReceiptHandle, 10), { name: 'InvalidParameterValue' })
    await clock.advance(30_000)
    await assert.rejects(remove(url, again[0]?.ReceiptHandle), /receipt handle has expired/)
    const [third] = await receive(url, { MaxNumberOfMessages: 1 })
    const { waiting } = await polling(url)
    await clock.advance(0)
    assert.equal((await waiting)[0]?.Body, 'b2')
    const { waiting: next } = await polling(url)
    await remove(url, third?.ReceiptHandle)
    assert.equal((await next)[0]?.Body, 'a1', 'a deletion frees the group for who waits')
  })

  test('drops what was sent again within five minutes', async () => {
    const url = await newQueue(fifo)
    const again = { MessageGroupId: 'a', MessageDeduplicationId: 'x' }
    const id = await send(url, 'one', again)
    assert.equal(await send(url, 'one', again), id)
    assert.equal((await attributes(url)).ApproximateNumberOfMessages, '1')
    await clock.advance(300_000)
    assert.notEqual(await send(url, 'one', again), id)
    await assert.rejects(send(url, 'x', { MessageGroupId: 'a' }), { name: 'InvalidParameterValue' })
    await assert.rejects(send(url, 'x'), { name: 'MissingParameter' })
  })
})

describe('a dead-letter queue', () => {
  test('gets what was received too often, and the books say so', async () => {
    const url = sim.sqs.queueUrl('work')
    const id = await send(url, 'poison')
    for (const count of ['1', '2']) {
      const [message] = await receive(url)
      assert.equal(message?.Attributes?.ApproximateReceiveCount, count)
      await change(url, message?.ReceiptHandle, 0)
    }
    assert.deepEqual(await receive(url), [])
    const [dead] = await receive(sim.sqs.queueUrl('dead'))
    assert.equal(dead?.MessageId, id)
    assert.equal(sim.sqs.queue('work').message(id)?.outcome, 'dead-lettered')
    const policy = JSON.parse((await attributes(url)).RedrivePolicy!) as object
    assert.deepEqual(policy, {
      deadLetterTargetArn: 'arn:aws:sqs:us-east-1:000000000000:dead',
      maxReceiveCount: 2,
    })
  })

  test('is set up over the API', async () => {
    const dead = await newQueue()
    const deadLetterTargetArn = (await attributes(dead)).QueueArn
    const url = await newQueue({
      RedrivePolicy: JSON.stringify({ deadLetterTargetArn, maxReceiveCount: '1' }),
    })
    await send(url, 'poison')
    await receive(url, { VisibilityTimeout: 0 })
    assert.deepEqual(await receive(url), [])
    assert.equal((await attributes(dead)).ApproximateNumberOfMessages, '1')
  })
})

describe('faults', () => {
  test('come in the shape of SQS', async () => {
    const url = sim.sqs.queueUrl('work')
    sim.faults.set({ rules: [{ do: 'throttle', service: 'sqs', max: 1 }] })
    await assert.rejects(receive(url), { name: 'RequestThrottled' })
    sim.faults.set({ rules: [{ do: 'error', status: 503, methods: ['sqs.ReceiveMessage'], max: 1 }] })
    await assert.rejects(receive(url), { name: 'ServiceUnavailable' })
    sim.faults.set({ rules: [{ do: 'error', status: 500, target: 'work' }] })
    await assert.rejects(receive(url), { name: 'InternalFailure' })
    assert.deepEqual(await receive(sim.sqs.queueUrl('dead')), [], 'only one queue was meant')
  })

  test('an answer that is lost after the work leaves a delivered message behind', async () => {
    const url = await newQueue()
    await send(url, 'a')
    sim.faults.set({ rules: [{ do: 'reset', when: 'after', methods: ['sqs.ReceiveMessage'], max: 1 }] })
    await assert.rejects(receive(url))
    assert.equal((await attributes(url)).ApproximateNumberOfMessagesNotVisible, '1')
  })

  test('calls are counted', async () => {
    const before = sim.sqs.calls.ReceiveMessage!
    await receive(sim.sqs.queueUrl('dead'))
    assert.equal(sim.sqs.calls.ReceiveMessage, before + 1)
  })
})

/** A long poll is there when its timers are. */
async function polling(
  QueueUrl: string,
  abortSignal?: AbortSignal,
): Promise<{ waiting: ReturnType<typeof receive> }> {
  const timers = clock.pendingTimers
  const command = new ReceiveMessageCommand({
    QueueUrl,
    WaitTimeSeconds: 20,
    MessageSystemAttributeNames: ['All'],
  })
  const waiting = sqs
    .send(command, abortSignal === undefined ? {} : { abortSignal })
    .then(({ Messages = [] }) => Messages)
  let isOver = false
  waiting
    .finally(() => {
      isOver = true
    })
    .catch(() => {})
  while (clock.pendingTimers === timers && !isOver) await turn()
  return { waiting }
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
