/** The topics and subscriptions of one cloud: what Pub/Sub answers from, and where objects are announced. */
import { UsageError } from '../../base/errors.ts'
import { type QueueAttribute, type SimMessage, SimQueue } from '../queues/queue.ts'
import type { Kernel } from '../service.ts'

export type Topic = { name: string; published: number }

export type Subscription = { name: string; topic: string; queue: SimQueue }

export type SubscriptionOptions = {
  ackDeadlineMs?: number
  retentionMs?: number
  isOrdered?: boolean
  deadLetter?: { topic: string; attemptsMax: number }
}

export type Published = { data: string; attributes?: Readonly<Record<string, string>>; orderingKey?: string }

const DAY_MS = 86_400_000
const THINGS_MAX = 10_000
const FIRST_ID = 10_000_000_000_000_000n

const worlds = new WeakMap<Kernel, PubSubTopics>()

/** One for each cloud: other services publish to its topics. */
export function pubSubTopics(kernel: Kernel): PubSubTopics {
  const known = worlds.get(kernel) ?? new PubSubTopics(kernel)
  worlds.set(kernel, known)
  return known
}

/** Names are whole: `projects/P/topics/T`. */
export class PubSubTopics {
  readonly topics = new Map<string, Topic>()
  readonly subscriptions = new Map<string, Subscription>()
  readonly #kernel: Kernel
  #messages = 0n

  constructor(kernel: Kernel) {
    this.#kernel = kernel
  }

  createTopic(name: string): Topic {
    const known = this.topics.get(name)
    if (known) return known
    if (this.topics.size >= THINGS_MAX) throw new UsageError(`There can be ${THINGS_MAX} topics at most.`)
    const topic = { name, published: 0 }
    this.topics.set(name, topic)
    return topic
  }

  /** What is published from now on goes to it. */
  subscribe(name: string, topic: string, options: SubscriptionOptions = {}): Subscription {
    this.createTopic(topic)
    if (this.subscriptions.size >= THINGS_MAX) {
      throw new UsageError(`There can be ${THINGS_MAX} subscriptions at most.`)
    }
    const { ackDeadlineMs = 10_000, retentionMs = 7 * DAY_MS, isOrdered = false, deadLetter } = options
    const queue = new SimQueue(name, {
      clock: this.#kernel.clock,
      newId: () => this.#newId(),
      settings: {
        visibilityMs: ackDeadlineMs,
        delayMs: 0,
        retentionMs,
        isOrdered,
        isByContent: false,
        heldMsMax: null,
        deadLetter: deadLetter
          ? { queue: this.#deadLetters(deadLetter.topic), receivesMax: deadLetter.attemptsMax }
          : null,
      },
    })
    const subscription = { name, topic, queue }
    this.subscriptions.set(name, subscription)
    return subscription
  }

  /** The id of the message, the same in every subscription. */
  publish(topic: string, { data, attributes = {}, orderingKey }: Published): string {
    const id = this.#newId()
    this.createTopic(topic).published += 1
    const typed: Record<string, QueueAttribute> = {}
    for (const [name, value] of Object.entries(attributes)) typed[name] = { type: 'String', value }
    for (const subscription of this.subscriptions.values()) {
      if (subscription.topic !== topic) continue
      const message = { id, body: data, attributes: typed }
      subscription.queue.send(orderingKey ? { ...message, group: orderingKey } : message)
    }
    return id
  }

  /** For tests, which know that it is there. */
  subscription(name: string): Subscription {
    const subscription = this.subscriptions.get(name)
    if (subscription) return subscription
    throw new UsageError(`There is no subscription ${name}.`, { code: 'sim-not-found' })
  }

  #deadLetters(topic: string): { name: string; acceptDead(message: SimMessage, from: string): void } {
    return {
      name: topic,
      acceptDead: ({ body, attributes, group, receives }, from) => {
        const own = Object.fromEntries(Object.entries(attributes).map(([name, { value }]) => [name, value]))
        const told = {
          ...own,
          CloudPubSubDeadLetterSourceSubscription: from.split('/').at(-1)!,
          CloudPubSubDeadLetterSourceDeliveryCount: String(receives.length),
        }
        this.publish(topic, {
          data: body,
          attributes: told,
          ...(group === null ? {} : { orderingKey: group }),
        })
      },
    }
  }

  #newId(): string {
    this.#messages += 1n
    return String(FIRST_ID + this.#messages)
  }
}
