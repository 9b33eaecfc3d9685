/** The calls of SQS: JSON in, JSON out, against the queues of the cloud. */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { UsageError } from '../../base/errors.ts'
import type { AwsAccount } from '../aws/account.ts'
import type { QueueAttribute, QueueSettings, SentMessage, SimMessage, SimQueue } from '../queues/queue.ts'
import { invalidValue, noQueue, SqsError } from './errors.ts'
import { HELD_MS_MAX, type SqsQueues } from './queues.ts'

export type SqsCall = {
  queues: SqsQueues
  account: AwsAccount
  origin: string
  /** The access key of the caller. */
  by: string
  nowMs: number
  gone: AbortSignal
}

const VISIBILITY_S_MAX = HELD_MS_MAX / 1000
const RECEIVE_MAX = 10
const WAIT_S_MAX = 20
const BATCH_MAX = 10
const MESSAGE_BYTES_MAX = 1_048_576

const url = { QueueUrl: z.string() }
const attributeInput = z.object({
  DataType: z.string(),
  StringValue: z.string().optional(),
  BinaryValue: z.string().optional(),
})
const sendFields = {
  MessageBody: z.string(),
  DelaySeconds: z.number().int().optional(),
  MessageAttributes: z.record(z.string(), attributeInput).optional(),
  MessageGroupId: z.string().optional(),
  MessageDeduplicationId: z.string().optional(),
}
const strings = z.record(z.string(), z.string())
const inputs = {
  create: z.object({ QueueName: z.string(), Attributes: strings.optional() }),
  name: z.object({ QueueName: z.string() }),
  queue: z.object(url),
  list: z.object({ QueueNamePrefix: z.string().optional() }),
  getAttributes: z.object({ ...url, AttributeNames: z.array(z.string()).optional() }),
  setAttributes: z.object({ ...url, Attributes: strings }),
  send: z.object({ ...url, ...sendFields }),
  sendBatch: z.object({ ...url, Entries: z.array(z.object({ Id: z.string(), ...sendFields })) }),
  receive: z.object({
    ...url,
    MaxNumberOfMessages: z.number().int().optional(),
    WaitTimeSeconds: z.number().int().optional(),
    VisibilityTimeout: z.number().int().optional(),
    AttributeNames: z.array(z.string()).optional(),
    MessageSystemAttributeNames: z.array(z.string()).optional(),
    MessageAttributeNames: z.array(z.string()).optional(),
  }),
  change: z.object({ ...url, ReceiptHandle: z.string(), VisibilityTimeout: z.number().int() }),
  changeBatch: z.object({
    ...url,
    Entries: z.array(
      z.object({ Id: z.string(), ReceiptHandle: z.string(), VisibilityTimeout: z.number().int().optional() }),
    ),
  }),
  delete: z.object({ ...url, ReceiptHandle: z.string() }),
  deleteBatch: z.object({
    ...url,
    Entries: z.array(z.object({ Id: z.string(), ReceiptHandle: z.string() })),
  }),
}

type Handler = (call: SqsCall, input: unknown) => unknown

export const sqsCalls: Readonly<Record<string, Handler>> = {
  CreateQueue: handler(inputs.create, createQueue),
  GetQueueUrl: handler(inputs.name, (call, { QueueName }) => {
    if (!call.queues.all.has(QueueName)) throw noQueue()
    return { QueueUrl: queueUrl(call, QueueName) }
  }),
  ListQueues: handler(inputs.list, (call, { QueueNamePrefix = '' }) => ({
    QueueUrls: [...call.queues.all.keys()]
      .filter((name) => name.startsWith(QueueNamePrefix))
      .map((name) => queueUrl(call, name)),
  })),
  DeleteQueue: handler(inputs.queue, (call, { QueueUrl }) => {
    call.queues.all.delete(queueOf(call, QueueUrl).name)
    return {}
  }),
  GetQueueAttributes: handler(inputs.getAttributes, getAttributes),
  SetQueueAttributes: handler(inputs.setAttributes, (call, { QueueUrl, Attributes }) => {
    Object.assign(queueOf(call, QueueUrl).settings, settingsOf(call, Attributes))
    return {}
  }),
  PurgeQueue: handler(inputs.queue, (call, { QueueUrl }) => {
    queueOf(call, QueueUrl).purge(call.by)
    return {}
  }),
  SendMessage: handler(inputs.send, (call, { QueueUrl, ...entry }) =>
    sendOne(queueOf(call, QueueUrl), entry),
  ),
  SendMessageBatch: handler(inputs.sendBatch, (call, { QueueUrl, Entries }) => {
    const queue = queueOf(call, QueueUrl)
    const bytes = Entries.reduce((sum, { MessageBody }) => sum + Buffer.byteLength(MessageBody), 0)
    if (bytes > MESSAGE_BYTES_MAX) {
      throw new SqsError(
        'BatchRequestTooLong',
        `Batch requests cannot be longer than ${MESSAGE_BYTES_MAX} bytes.`,
      )
    }
    return batch(Entries, (entry) => sendOne(queue, entry))
  }),
  ReceiveMessage: handler(inputs.receive, receive),
  ChangeMessageVisibility: handler(inputs.change, (call, { QueueUrl, ...entry }) =>
    change(queueOf(call, QueueUrl), entry),
  ),
  ChangeMessageVisibilityBatch: handler(inputs.changeBatch, (call, { QueueUrl, Entries }) => {
    const queue = queueOf(call, QueueUrl)
    return batch(Entries, (entry) => change(queue, entry))
  }),
  DeleteMessage: handler(inputs.delete, (call, { QueueUrl, ReceiptHandle }) =>
    remove(call, queueOf(call, QueueUrl), ReceiptHandle),
  ),
  DeleteMessageBatch: handler(inputs.deleteBatch, (call, { QueueUrl, Entries }) => {
    const queue = queueOf(call, QueueUrl)
    return batch(Entries, ({ ReceiptHandle }) => remove(call, queue, ReceiptHandle))
  }),
}

export function queueArn({ region, accountId }: AwsAccount, name: string): string {
  return `arn:aws:sqs:${region}:${accountId}:${name}`
}

/** The last piece of an address or of an ARN. */
export function queueName(text: string): string {
  return text.slice(Math.max(text.lastIndexOf('/'), text.lastIndexOf(':')) + 1)
}

function handler<Input>(schema: z.ZodType<Input>, run: (call: SqsCall, input: Input) => unknown): Handler {
  return (call, input) => {
    const parsed = schema.safeParse(input)
    if (parsed.success) return run(call, parsed.data)
    const [first] = parsed.error.issues
    const name = first?.path.map(String).join('.') ?? ''
    throw new SqsError('MissingParameter', `The request must contain a valid parameter ${name}.`)
  }
}

function createQueue(call: SqsCall, { QueueName, Attributes = {} }: z.infer<typeof inputs.create>): object {
  if (QueueName.endsWith('.fifo') !== (Attributes.FifoQueue === 'true')) {
    throw invalidValue(
      'The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo suffix and be 1 to 80 in length.',
    )
  }
  try {
    call.queues.create(QueueName, settingsOf(call, Attributes))
  } catch (error) {
    if (error instanceof UsageError) throw invalidValue(error.message)
    throw error
  }
  return { QueueUrl: queueUrl(call, QueueName) }
}

function queueUrl({ origin, account }: SqsCall, name: string): string {
  return `${origin}/${account.accountId}/${name}`
}

function queueOf({ queues }: SqsCall, address: string): SimQueue {
  const queue = queues.all.get(queueName(address))
  if (!queue) throw noQueue()
  return queue
}

function settingsOf({ queues }: SqsCall, attributes: Record<string, string>): Partial<QueueSettings> {
  const settings: Partial<QueueSettings> = {}
  const seconds = (name: string, max: number): number | undefined => {
    const text = attributes[name]
    if (text === undefined) return undefined
    if (!/^\d+$/.test(text) || Number(text) > max) {
      throw new SqsError('InvalidAttributeValue', `Invalid value for the parameter ${name}.`)
    }
    return Number(text) * 1000
  }
  const visibilityMs = seconds('VisibilityTimeout', VISIBILITY_S_MAX)
  const delayMs = seconds('DelaySeconds', 900)
  const retentionMs = seconds('MessageRetentionPeriod', 1_209_600)
  if (visibilityMs !== undefined) settings.visibilityMs = visibilityMs
  if (delayMs !== undefined) settings.delayMs = delayMs
  if (retentionMs !== undefined) settings.retentionMs = retentionMs
  if (attributes.ContentBasedDeduplication !== undefined) {
    settings.isByContent = attributes.ContentBasedDeduplication === 'true'
  }
  if (attributes.RedrivePolicy === '') settings.deadLetter = null
  else if (attributes.RedrivePolicy !== undefined)
    settings.deadLetter = redriveOf(queues, attributes.RedrivePolicy)
  return settings
}

function redriveOf(queues: SqsQueues, text: string): NonNullable<QueueSettings['deadLetter']> {
  const policy = z
    .object({ deadLetterTargetArn: z.string(), maxReceiveCount: z.coerce.number().int().min(1).max(1000) })
    .safeParse(parseJson(text)).data
  const queue = policy && queues.all.get(queueName(policy.deadLetterTargetArn))
  if (!queue)
    throw new SqsError('InvalidAttributeValue', `Value ${text} for parameter RedrivePolicy is invalid.`)
  return { queue, receivesMax: policy.maxReceiveCount }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Refused like any other value that makes no sense.
    return undefined
  }
}

function getAttributes(
  call: SqsCall,
  { QueueUrl, AttributeNames = [] }: z.infer<typeof inputs.getAttributes>,
): object {
  const queue = queueOf(call, QueueUrl)
  const { settings } = queue
  const depth = queue.depth()
  const all: Record<string, string> = {
    QueueArn: queueArn(call.account, queue.name),
    ApproximateNumberOfMessages: String(depth.waiting),
    ApproximateNumberOfMessagesNotVisible: String(depth.inFlight),
    ApproximateNumberOfMessagesDelayed: String(depth.delayed),
    VisibilityTimeout: String(settings.visibilityMs / 1000),
    DelaySeconds: String(settings.delayMs / 1000),
    MessageRetentionPeriod: String(settings.retentionMs / 1000),
    ReceiveMessageWaitTimeSeconds: '0',
    MaximumMessageSize: String(MESSAGE_BYTES_MAX),
  }
  if (settings.isOrdered) {
    all.FifoQueue = 'true'
    all.ContentBasedDeduplication = String(settings.isByContent)
  }
  if (settings.deadLetter) {
    const { queue: dead, receivesMax } = settings.deadLetter
    all.RedrivePolicy = JSON.stringify({
      deadLetterTargetArn: queueArn(call.account, dead.name),
      maxReceiveCount: receivesMax,
    })
  }
  const asked = Object.entries(all).filter(
    ([name]) => AttributeNames.includes('All') || AttributeNames.includes(name),
  )
  return asked.length === 0 ? {} : { Attributes: Object.fromEntries(asked) }
}

type Entry = Omit<z.infer<typeof inputs.send>, 'QueueUrl'>

function sendOne(queue: SimQueue, entry: Entry): object {
  const { MessageBody, MessageAttributes = {}, DelaySeconds, MessageGroupId, MessageDeduplicationId } = entry
  if (MessageBody === '')
    throw new SqsError('MissingParameter', 'The request must contain the parameter MessageBody.')
  if (Buffer.byteLength(MessageBody) > MESSAGE_BYTES_MAX) {
    throw invalidValue(
      `One or more parameters are invalid. Reason: Message must be shorter than ${MESSAGE_BYTES_MAX} bytes.`,
    )
  }
  const message: SentMessage = { body: MessageBody, attributes: attributesIn(MessageAttributes) }
  if (DelaySeconds !== undefined) {
    if (DelaySeconds < 0 || DelaySeconds > 900)
      throw invalidValue(
        `Value ${DelaySeconds} for parameter DelaySeconds is invalid. Reason: DelaySeconds must be >= 0 and <= 900.`,
      )
    message.delayMs = DelaySeconds * 1000
  }
  if (queue.settings.isOrdered) {
    if (MessageGroupId === undefined) {
      throw new SqsError('MissingParameter', 'The request must contain the parameter MessageGroupId.')
    }
    if (MessageDeduplicationId === undefined && !queue.settings.isByContent) {
      throw invalidValue(
        'The queue should either have ContentBasedDeduplication enabled or MessageDeduplicationId provided explicitly',
      )
    }
  }
  if (MessageGroupId !== undefined) message.group = MessageGroupId
  if (MessageDeduplicationId !== undefined) message.dedupId = MessageDeduplicationId
  const sent = queue.send(message)
  const answer: Record<string, string> = { MessageId: sent.id, MD5OfMessageBody: md5(MessageBody) }
  if (Object.keys(sent.attributes).length > 0) answer.MD5OfMessageAttributes = attributesMd5(sent.attributes)
  if (queue.settings.isOrdered) answer.SequenceNumber = String(sent.sequence).padStart(20, '1')
  return answer
}

async function receive(call: SqsCall, input: z.infer<typeof inputs.receive>): Promise<object> {
  const queue = queueOf(call, input.QueueUrl)
  const { MaxNumberOfMessages: max = 1, WaitTimeSeconds: waitS = 0, VisibilityTimeout: visibilityS } = input
  if (max < 1 || max > RECEIVE_MAX) {
    throw invalidValue(
      `Value ${max} for parameter MaxNumberOfMessages is invalid. Reason: Must be between 1 and 10, if provided.`,
    )
  }
  if (waitS < 0 || waitS > WAIT_S_MAX) {
    throw invalidValue(
      `Value ${waitS} for parameter WaitTimeSeconds is invalid. Reason: Must be >= 0 and <= 20, if provided.`,
    )
  }
  if (visibilityS !== undefined) checkVisibility(visibilityS)
  const taken = await queue.receive(
    {
      max,
      waitMs: waitS * 1000,
      by: call.by,
      ...(visibilityS === undefined ? {} : { visibilityMs: visibilityS * 1000 }),
    },
    call.gone,
  )
  if (taken.length === 0) return {}
  const system = [...(input.AttributeNames ?? []), ...(input.MessageSystemAttributeNames ?? [])]
  const own = input.MessageAttributeNames ?? []
  return { Messages: taken.map((message) => messageJson(call, message, { system, own })) }
}

function messageJson(
  { by }: SqsCall,
  message: SimMessage,
  { system, own }: { system: readonly string[]; own: readonly string[] },
): object {
  const last = message.receives.at(-1)!
  const all: Record<string, string> = {
    ApproximateReceiveCount: String(message.receives.length),
    SentTimestamp: String(message.sentAtMs),
    ApproximateFirstReceiveTimestamp: String(message.receives[0]!.atMs),
    SenderId: by,
  }
  if (message.group !== null) all.MessageGroupId = message.group
  if (message.dedupId !== null) all.MessageDeduplicationId = message.dedupId
  if (message.group !== null) all.SequenceNumber = String(message.sequence).padStart(20, '1')
  if (message.from !== null) all.DeadLetterQueueSourceArn = message.from
  const answer: Record<string, unknown> = {
    MessageId: message.id,
    ReceiptHandle: last.receipt,
    MD5OfBody: md5(message.body),
    Body: message.body,
  }
  const shown = Object.entries(all).filter(([name]) => system.includes('All') || system.includes(name))
  if (shown.length > 0) answer.Attributes = Object.fromEntries(shown)
  const asked = Object.entries(message.attributes).filter(([name]) =>
    own.some((pattern) => names(pattern, name)),
  )
  if (asked.length > 0) {
    answer.MessageAttributes = Object.fromEntries(asked.map(([name, value]) => [name, attributeOut(value)]))
    answer.MD5OfMessageAttributes = attributesMd5(Object.fromEntries(asked))
  }
  return answer
}

function names(pattern: string, name: string): boolean {
  if (pattern === 'All' || pattern === '.*' || pattern === name) return true
  return pattern.endsWith('.*') && name.startsWith(pattern.slice(0, -2))
}

function checkVisibility(seconds: number): void {
  if (seconds >= 0 && seconds <= VISIBILITY_S_MAX) return
  throw invalidValue(
    `Value ${seconds} for parameter VisibilityTimeout is invalid. Reason: Must be between 0 and ${VISIBILITY_S_MAX}, if provided.`,
  )
}

function change(
  queue: SimQueue,
  {
    ReceiptHandle,
    VisibilityTimeout = 30,
  }: { ReceiptHandle: string; VisibilityTimeout?: number | undefined },
): object {
  checkVisibility(VisibilityTimeout)
  switch (queue.extend(ReceiptHandle, VisibilityTimeout * 1000)) {
    case 'extended':
      return {}
    case 'unknown':
      throw invalidReceipt(ReceiptHandle)
    case 'visible':
      throw new SqsError(
        'MessageNotInflight',
        `Value ${ReceiptHandle} for parameter ReceiptHandle is invalid. Reason: Message is not in flight.`,
      )
    case 'stale':
      throw invalidValue(
        `Value ${ReceiptHandle} for parameter ReceiptHandle is invalid. Reason: Message does not exist or is not available for visibility timeout change.`,
      )
    case 'too-long':
      throw invalidValue(
        `Value ${VisibilityTimeout} for parameter VisibilityTimeout is invalid. Reason: Total VisibilityTimeout for the message is beyond the limit [${VISIBILITY_S_MAX} seconds].`,
      )
  }
}

/** A receipt that is not the newest is answered as if it had worked, and deletes nothing. */
function remove({ by }: SqsCall, queue: SimQueue, receipt: string): object {
  switch (queue.acknowledge(receipt, by)) {
    case 'acknowledged':
    case 'stale':
      return {}
    case 'unknown':
      throw invalidReceipt(receipt)
    case 'expired':
      throw invalidValue(
        `Value ${receipt} for parameter ReceiptHandle is invalid. Reason: The receipt handle has expired.`,
      )
  }
}

function invalidReceipt(receipt: string): SqsError {
  return new SqsError(
    'ReceiptHandleIsInvalid',
    `The input receipt handle "${receipt}" is not a valid receipt handle.`,
    404,
  )
}

/** Each answers for itself. */
function batch<One extends { Id: string }>(entries: readonly One[], run: (entry: One) => object): object {
  if (entries.length === 0)
    throw new SqsError('EmptyBatchRequest', 'There should be at least one entry in the request.')
  if (entries.length > BATCH_MAX) {
    throw new SqsError(
      'TooManyEntriesInBatchRequest',
      `Maximum number of entries per request are ${BATCH_MAX}. You have sent ${entries.length}.`,
    )
  }
  if (new Set(entries.map(({ Id }) => Id)).size < entries.length) {
    throw new SqsError(
      'BatchEntryIdsNotDistinct',
      'Two or more batch entries in the request have the same Id.',
    )
  }
  const Successful: object[] = []
  const Failed: object[] = []
  for (const entry of entries) {
    try {
      Successful.push({ Id: entry.Id, ...run(entry) })
    } catch (error) {
      if (!(error instanceof SqsError)) throw error
      Failed.push({ Id: entry.Id, Code: error.code, Message: error.message, SenderFault: error.status < 500 })
    }
  }
  return { Successful, Failed }
}

function md5(text: string): string {
  return createHash('md5').update(text).digest('hex')
}

function attributesIn(input: Record<string, z.infer<typeof attributeInput>>): Record<string, QueueAttribute> {
  return Object.fromEntries(
    Object.entries(input).map(([name, { DataType, StringValue, BinaryValue }]) => {
      const value = DataType.startsWith('Binary') ? BinaryValue : StringValue
      if (value === undefined)
        throw invalidValue(`The message attribute '${name}' must contain a non-empty value.`)
      return [name, { type: DataType, value }]
    }),
  )
}

function attributeOut({ type, value }: QueueAttribute): object {
  return type.startsWith('Binary')
    ? { DataType: type, BinaryValue: value }
    : { DataType: type, StringValue: value }
}

/** By name, each piece after its length: name, type, 1 for text or 2 for bytes, value. */
function attributesMd5(attributes: Readonly<Record<string, QueueAttribute>>): string {
  const hash = createHash('md5')
  const add = (piece: Buffer): void => {
    const length = Buffer.alloc(4)
    length.writeUInt32BE(piece.length)
    hash.update(length).update(piece)
  }
  for (const name of Object.keys(attributes).sort()) {
    const { type, value } = attributes[name]!
    const isBinary = type.startsWith('Binary')
    add(Buffer.from(name))
    add(Buffer.from(type))
    hash.update(Buffer.from([isBinary ? 2 : 1]))
    add(Buffer.from(value, isBinary ? 'base64' : 'utf8'))
  }
  return hash.digest('hex')
}
