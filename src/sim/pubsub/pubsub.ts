/** The simulated Pub/Sub put together: topics and subscriptions, the REST API (v1), the control API. */
import { z } from 'zod'
import { UsageError } from '../../base/errors.ts'
import { parse } from '../control.ts'
import { CLOUD_TOKEN, cloudCaller } from '../google/cloud-access.ts'
import { faultAnswer, GoogleError, invalid, refusalAnswer } from '../google/errors.ts'
import { joinGoogleSignIn } from '../google/sign-in.ts'
import type { Grants } from '../grants.ts'
import type { SimQueue } from '../queues/queue.ts'
import { jsonAnswer, type Operation, type Routes, type SimAnswer, type SimCall } from '../server.ts'
import type { Kernel, RunningService, ServiceAbout } from '../service.ts'
import { type PubSubTopics, pubSubTopics, type Subscription, type SubscriptionOptions } from './topics.ts'

export type PubSubOptions = {
  /** Whole names of subscriptions and their topics. */
  subscriptions?: readonly ({ name: string; topic: string } & SubscriptionOptions)[]
  /** How long a pull waits for the first message. */
  pullWaitMs?: number
}

const SERVICE = 'pubsub.googleapis.com'
const PATH = /^\/v1\/(projects\/([^/]+)\/(topics|subscriptions)(?:\/([^/:]+))?)(?::(\w+))?$/
const ACK_DEADLINE_S_MAX = 600
const PULL_MAX = 1_000
const PULL_WAIT_MS = 10_000

const ackIds = z.array(z.string()).min(1)
const seconds = z.string().regex(/^\d+s$/)
const inputs = {
  publish: z.object({
    messages: z
      .array(
        z.object({
          data: z.base64().optional(),
          attributes: z.record(z.string(), z.string()).optional(),
          orderingKey: z.string().optional(),
        }),
      )
      .min(1)
      .max(1_000),
  }),
  subscribe: z.object({
    topic: z.string(),
    ackDeadlineSeconds: z.number().int().optional(),
    messageRetentionDuration: seconds.optional(),
    enableMessageOrdering: z.boolean().optional(),
    deadLetterPolicy: z
      .object({
        deadLetterTopic: z.string(),
        maxDeliveryAttempts: z.number().int().min(5).max(100).optional(),
      })
      .optional(),
  }),
  pull: z.object({ maxMessages: z.number().int().min(1), returnImmediately: z.boolean().optional() }),
  acknowledge: z.object({ ackIds }),
  modify: z.object({ ackIds, ackDeadlineSeconds: z.number().int() }),
  control: {
    subscribe: z.strictObject({ name: z.string().min(1), topic: z.string().min(1) }),
    message: z.strictObject({ subscription: z.string().min(1), id: z.string().min(1) }),
    hide: z.strictObject({
      subscription: z.string().min(1),
      id: z.string().min(1),
      ms: z.number().min(0),
    }),
  },
}

type Called = { name: string; run(): object | Promise<object> }

export class PubSub implements RunningService, Routes {
  readonly addresses: readonly string[] = []
  readonly routes: readonly Routes[] = [this]
  readonly topics: PubSubTopics
  /** Of a Bearer; tokens of a service account are good, too. */
  readonly accessToken = CLOUD_TOKEN
  readonly #kernel: Kernel
  readonly #grants: Grants
  readonly #pullWaitMs: number
  #calls: Record<string, number> = {}

  constructor(kernel: Kernel, { subscriptions = [], pullWaitMs = PULL_WAIT_MS }: PubSubOptions) {
    this.#kernel = kernel
    this.#grants = joinGoogleSignIn(kernel, () => []).grants
    this.#pullWaitMs = pullWaitMs
    this.topics = pubSubTopics(kernel)
    for (const { name, topic, ...options } of subscriptions) this.topics.subscribe(name, topic, options)
  }

  get baseUrl(): string {
    return this.#kernel.origin()
  }

  get calls(): Readonly<Record<string, number>> {
    return this.#calls
  }

  /** The messages of a subscription and what became of them. */
  subscription(name: string): SimQueue {
    return this.topics.subscription(name).queue
  }

  match(call: SimCall): Operation | undefined {
    const match = PATH.exec(call.path)
    if (!match) return undefined
    const [, path = '', project = '', kind = '', last, verb] = match
    const gone = new AbortController()
    const by = cloudCaller(this.#grants, call, SERVICE)
    const caller = typeof by === 'string' ? by : ''
    const called =
      kind === 'topics'
        ? this.#topicCall(call, { path, project, last, verb })
        : this.#subscriptionCall(call, { path, last, verb, gone: gone.signal, caller })
    return {
      name: `pubsub.${called?.name ?? 'unknown'}`,
      ...(typeof by === 'string' ? { account: by } : {}),
      targets: [path],
      refuse: refusalAnswer,
      // Called when the exchange is over, one way or the other: who has gone waits for nothing.
      admit: () => () => gone.abort(),
      run: async () => (typeof by === 'string' ? this.#answer(called) : faultAnswer(by)),
    }
  }

  async #answer(called: Called | undefined): Promise<SimAnswer> {
    if (!called) return faultAnswer({ status: 404, message: 'Method not found.', reason: 'notFound' })
    this.#calls[called.name] = (this.#calls[called.name] ?? 0) + 1
    try {
      return jsonAnswer(await called.run())
    } catch (error) {
      if (error instanceof GoogleError) return faultAnswer(error.fault)
      throw error
    }
  }

  #topicCall(
    call: SimCall,
    {
      path,
      project,
      last,
      verb,
    }: { path: string; project: string; last: string | undefined; verb: string | undefined },
  ): Called | undefined {
    const { topics } = this.topics
    switch (`${call.verb} ${last === undefined ? 'all' : (verb ?? 'one')}`) {
      case 'GET all': {
        const own = (): string[] =>
          [...topics.keys()].filter((name) => name.startsWith(`projects/${project}/`))
        return { name: 'topics.list', run: () => ({ topics: own().map((name) => ({ name })) }) }
      }
      case 'PUT one':
        return { name: 'topics.create', run: () => this.#createTopic(path) }
      case 'GET one':
        return { name: 'topics.get', run: () => ({ name: found(topics, path).name }) }
      case 'DELETE one':
        return { name: 'topics.delete', run: () => removed(topics, path) }
      case 'POST publish':
        return { name: 'topics.publish', run: () => this.#publish(call, path) }
      default:
        return undefined
    }
  }

  #createTopic(name: string): object {
    if (this.topics.topics.has(name)) throw alreadyThere(name)
    this.topics.createTopic(name)
    return { name }
  }

  #publish(call: SimCall, topic: string): object {
    found(this.topics.topics, topic)
    const { messages } = read(inputs.publish, call)
    const messageIds = messages.map(({ data = '', attributes = {}, orderingKey }) => {
      if (data === '' && Object.keys(attributes).length === 0) {
        throw invalid(
          'One or more messages in the publish request is empty. Each message must contain either non-empty data, or at least one attribute.',
        )
      }
      return this.topics.publish(topic, { data, attributes, ...(orderingKey ? { orderingKey } : {}) })
    })
    return { messageIds }
  }

  #subscriptionCall(
    call: SimCall,
    {
      path,
      last,
      verb,
      gone,
      caller,
    }: {
      path: string
      last: string | undefined
      verb: string | undefined
      gone: AbortSignal
      caller: string
    },
  ): Called | undefined {
    const { subscriptions } = this.topics
    if (last === undefined) return undefined
    const own = (): Subscription => found(subscriptions, path)
    switch (`${call.verb} ${verb ?? 'one'}`) {
      case 'PUT one':
        return { name: 'subscriptions.create', run: () => this.#subscribe(call, path) }
      case 'GET one':
        return { name: 'subscriptions.get', run: () => subscriptionJson(own()) }
      case 'DELETE one':
        return { name: 'subscriptions.delete', run: () => removed(subscriptions, path) }
      case 'POST pull':
        return { name: 'subscriptions.pull', run: () => this.#pull(call, own(), { gone, caller }) }
      case 'POST acknowledge':
        return { name: 'subscriptions.acknowledge', run: () => acknowledge(call, own(), caller) }
      case 'POST modifyAckDeadline':
        return { name: 'subscriptions.modifyAckDeadline', run: () => modify(call, own()) }
      default:
        return undefined
    }
  }

  #subscribe(call: SimCall, name: string): object {
    const input = read(inputs.subscribe, call)
    if (this.topics.subscriptions.has(name)) throw alreadyThere(name)
    found(this.topics.topics, input.topic)
    const options: SubscriptionOptions = { isOrdered: input.enableMessageOrdering ?? false }
    const { ackDeadlineSeconds = 0, messageRetentionDuration, deadLetterPolicy } = input
    if (ackDeadlineSeconds !== 0) {
      if (ackDeadlineSeconds < 10 || ackDeadlineSeconds > ACK_DEADLINE_S_MAX) {
        throw invalid('Invalid ack deadline given. It must be between 10 and 600 seconds.')
      }
      options.ackDeadlineMs = ackDeadlineSeconds * 1000
    }
    if (messageRetentionDuration !== undefined)
      options.retentionMs = Number.parseInt(messageRetentionDuration, 10) * 1000
    if (deadLetterPolicy) {
      const { deadLetterTopic, maxDeliveryAttempts = 5 } = deadLetterPolicy
      options.deadLetter = { topic: deadLetterTopic, attemptsMax: maxDeliveryAttempts }
    }
    return subscriptionJson(this.topics.subscribe(name, input.topic, options))
  }

  async #pull(
    call: SimCall,
    { queue }: Subscription,
    { gone, caller }: { gone: AbortSignal; caller: string },
  ): Promise<object> {
    const { maxMessages, returnImmediately = false } = read(inputs.pull, call)
    const waitMs = returnImmediately ? 0 : this.#pullWaitMs
    const taken = await queue.receive({ max: Math.min(maxMessages, PULL_MAX), waitMs, by: caller }, gone)
    if (taken.length === 0) return {}
    const hasDeadLetters = queue.settings.deadLetter !== null
    return {
      receivedMessages: taken.map(({ id, body, attributes, group, sentAtMs, receives }) => ({
        ackId: receives.at(-1)!.receipt,
        message: {
          data: body,
          attributes: Object.fromEntries(
            Object.entries(attributes).map(([name, { value }]) => [name, value]),
          ),
          messageId: id,
          publishTime: new Date(sentAtMs).toISOString(),
          ...(group === null ? {} : { orderingKey: group }),
        },
        ...(hasDeadLetters ? { deliveryAttempt: receives.length } : {}),
      })),
    }
  }

  control(call: SimCall, pieces: readonly string[]): SimAnswer | undefined {
    if (pieces[0] !== 'pubsub') return undefined
    switch (`${call.verb} ${pieces.slice(1).join('/')}`) {
      case 'GET ':
        return jsonAnswer({
          topics: [...this.topics.topics.values()],
          subscriptions: [...this.topics.subscriptions.values()].map(({ name, topic, queue }) => ({
            name,
            topic,
            ...queue.depth(),
          })),
          calls: this.#calls,
        })
      case 'GET messages':
        return jsonAnswer({ messages: this.subscription(call.query.get('subscription') ?? '').messages })
      case 'POST subscriptions': {
        const { name, topic } = parse(inputs.control.subscribe, call)
        return jsonAnswer(subscriptionJson(this.topics.subscribe(name, topic)))
      }
      case 'POST expire-receipt': {
        const { subscription, id } = parse(inputs.control.message, call)
        return this.#changed(subscription, id, (queue) => queue.expireReceipt(id))
      }
      case 'POST hide': {
        const { subscription, id, ms } = parse(inputs.control.hide, call)
        return this.#changed(subscription, id, (queue) => queue.hide(id, ms))
      }
      default:
        return undefined
    }
  }

  #changed(subscription: string, id: string, run: (queue: SimQueue) => boolean): SimAnswer {
    const queue = this.subscription(subscription)
    if (run(queue)) return jsonAnswer(queue.message(id) ?? {})
    throw new UsageError(`${subscription} has no such message ${id} now.`, { code: 'sim-not-found' })
  }

  counters(): Record<string, unknown> {
    return { pubsub: { calls: this.#calls } }
  }

  resetCounters(): void {
    this.#calls = {}
  }

  about(): ServiceAbout {
    const { baseUrl, accessToken } = this
    const names = [...this.topics.subscriptions.keys()]
    return {
      text: `A simulated Pub/Sub is at ${baseUrl}/v1, with ${names.join(', ') || 'no subscription'}; token ${accessToken}.`,
      settings: {},
      refreshTokens: [],
      json: { pubsubUrl: baseUrl, pubsubSubscriptions: names, googleCloudToken: accessToken },
    }
  }
}

function subscriptionJson({ name, topic, queue }: Subscription): object {
  const { visibilityMs, retentionMs, isOrdered, deadLetter } = queue.settings
  return {
    name,
    topic,
    ackDeadlineSeconds: visibilityMs / 1000,
    messageRetentionDuration: `${retentionMs / 1000}s`,
    ...(isOrdered ? { enableMessageOrdering: true } : {}),
    ...(deadLetter
      ? {
          deadLetterPolicy: {
            deadLetterTopic: deadLetter.queue.name,
            maxDeliveryAttempts: deadLetter.receivesMax,
          },
        }
      : {}),
    state: 'ACTIVE',
  }
}

/** An id that was overtaken by a later delivery is answered as if it had worked, and does nothing. */
function acknowledge(call: SimCall, { queue }: Subscription, by: string): object {
  for (const ackId of read(inputs.acknowledge, call).ackIds) {
    if (queue.acknowledge(ackId, by) === 'unknown') throw wrongAckId()
  }
  return {}
}

function modify(call: SimCall, { queue }: Subscription): object {
  const { ackIds: ids, ackDeadlineSeconds } = read(inputs.modify, call)
  if (ackDeadlineSeconds < 0 || ackDeadlineSeconds > ACK_DEADLINE_S_MAX) {
    throw invalid('Invalid ack deadline given. It must be between 0 and 600 seconds.')
  }
  for (const ackId of ids)
    if (queue.extend(ackId, ackDeadlineSeconds * 1000) === 'unknown') throw wrongAckId()
  return {}
}

function wrongAckId(): GoogleError {
  return invalid('You have passed an ack ID that is too long or malformed to the service (ack_id=...).')
}

function found<One>(things: ReadonlyMap<string, One>, name: string): One {
  const thing = things.get(name)
  if (thing !== undefined) return thing
  const kind = name.includes('/topics/') ? 'topic' : 'subscription'
  throw new GoogleError({
    status: 404,
    message: `Resource not found (resource=${kind} ${name}).`,
    reason: 'notFound',
  })
}

function removed<One>(things: Map<string, One>, name: string): object {
  found(things, name)
  things.delete(name)
  return {}
}

function alreadyThere(name: string): GoogleError {
  const message = `Resource already exists in the project (resource=${name.split('/').at(-1)}).`
  return new GoogleError({ status: 409, message, reason: 'alreadyExists' })
}

function read<Output>(schema: z.ZodType<Output>, { body }: SimCall): Output {
  let value: unknown
  try {
    value = body.length === 0 ? {} : JSON.parse(body.toString('utf8'))
  } catch {
    throw invalid('Invalid JSON payload received.')
  }
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const [first] = parsed.error.issues
  throw invalid(`Invalid value at '${first?.path.map(String).join('.') ?? ''}': ${first?.message ?? ''}`)
}
