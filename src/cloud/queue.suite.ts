/**
 * What every queue promises, whoever keeps it. Each client of one runs this, against the service itself or the simulated
 * one.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { asTidemarkError, type ErrorKind } from '../base/errors.ts'
import type { Queue, QueueMessage } from './queue.ts'

export type SentMessage = { body: string; attributes?: Readonly<Record<string, string>> }

/** Another answer than the one that was asked for. */
export type QueueFault = 'throttled' | 'auth' | 'unavailable' | 'missing'

export type QueueSite = {
  queue: Queue
  /** The same queue, as another process reads it. */
  other: Queue
  send(messages: readonly SentMessage[]): Promise<void>
  /** So much of the time passes that a message is held for. Services with a clock of their own take theirs. */
  pass(share: number): Promise<void>
  close(): Promise<void>
}

export type QueueHome = {
  name: string
  open(): Promise<QueueSite>
  /** Every call from now on is answered like this; left out where there is no service that could. */
  fail?(site: QueueSite, fault: QueueFault): Promise<void>
  /** What the service cannot do, as its documentation says. */
  cannot?: { tellAttributes?: boolean; tellDepth?: boolean; tellDeliveries?: boolean; passInPart?: boolean }
}

/** Long enough for a service that redelivers by its own clock; nothing waits that long in vain. */
const REDELIVERED_MS_MAX = 20_000
const RECEIVES_MAX = 50
/** Shares of the time that a message is held for. */
const EXPIRED = 1.1
const HALF = 0.6

const KINDS: Record<QueueFault, ErrorKind> = {
  throttled: 'throttled',
  auth: 'auth',
  unavailable: 'transient',
  missing: 'permanent',
}

export function testQueue(home: QueueHome): void {
  const fact = (title: string, fn: (site: QueueSite) => Promise<void>): void => {
    test(title, async () => {
      const site = await home.open()
      try {
        await fn(site)
      } finally {
        await site.close()
      }
    })
  }
  describe(`the queue of ${home.name}`, () => {
    testDelivery(home, fact)
    testReceipts(fact)
    if (!home.cannot?.passInPart) testExtensions(fact)
    testWaiting(fact)
    if (home.fail) testFaults(home.fail, fact)
  })
}

type Fact = (title: string, fn: (site: QueueSite) => Promise<void>) => void

function testDelivery(home: QueueHome, fact: Fact): void {
  fact('gives every message that was sent, with the bytes it was sent with', async ({ queue, send }) => {
    const bodies = Array.from({ length: 12 }, (_, at) => `{"n":${at},"text":"grün, 空, 🚀\\n"}`)
    await send(bodies.map((body) => ({ body })))
    const messages = await take(queue, 12)
    assert.deepEqual(messages.map(textOf).sort(), [...bodies].sort())
    assert.equal(new Set(messages.map(({ receipt }) => receipt)).size, 12)
  })

  fact('never gives more at once than was asked for', async ({ queue, send }) => {
    await send(Array.from({ length: 5 }, (_, at) => ({ body: `m${at}` })))
    const first = await receive(queue, { max: 2 })
    assert.ok(first.length >= 1 && first.length <= 2, String(first.length))
    assert.equal((await take(queue, 5 - first.length)).length, 5 - first.length)
  })

  if (!home.cannot?.tellAttributes) {
    fact('gives attributes by names in lower case', async ({ queue, send }) => {
      await send([{ body: 'm', attributes: { eventType: 'OBJECT_FINALIZE' } }])
      const [message] = await take(queue, 1)
      assert.equal(message!.attributes.eventtype, 'OBJECT_FINALIZE')
    })
  }

  fact('gives what is held to nobody else', async ({ queue, other, send }) => {
    await send([{ body: 'm' }])
    await take(queue, 1)
    assert.deepEqual(await receive(other, { waitMs: 0 }), [])
    assert.deepEqual(await receive(queue, { waitMs: 0 }), [])
  })

  fact('gives a message again when its time is up, and counts', async ({ queue, other, send, pass }) => {
    await send([{ body: 'm' }])
    const [first] = await take(queue, 1)
    await pass(EXPIRED)
    const [again] = await take(other, 1)
    assert.deepEqual([textOf(again!), again!.id], ['m', first!.id])
    if (!home.cannot?.tellDeliveries) assert.deepEqual([first!.deliveries, again!.deliveries], [1, 2])
  })

  fact('gives a message that was acknowledged to nobody any more', async ({ queue, other, send, pass }) => {
    await send([{ body: 'm' }])
    assert.deepEqual(await queue.acknowledge(await take(queue, 1)), ['acknowledged'])
    await pass(EXPIRED)
    await send([{ body: 'next' }])
    // What comes next shows that the time of the first had passed.
    assert.deepEqual((await take(other, 1)).map(textOf), ['next'])
    assert.deepEqual(await receive(other, { waitMs: 0 }), [])
  })

  if (!home.cannot?.tellDepth) {
    fact('tells how many wait and how many are held', async ({ queue, send }) => {
      await send([{ body: 'a' }, { body: 'b' }, { body: 'c' }])
      await receive(queue, { max: 1 })
      const { waiting, inFlight } = await queue.depth()
      assert.deepEqual([waiting, inFlight], [2, 1])
    })
  }
}

function testReceipts(fact: Fact): void {
  fact('gives back at once what is extended by nothing', async ({ queue, other, send }) => {
    await send([{ body: 'm' }])
    assert.deepEqual(await queue.extend(await take(queue, 1), 0), ['extended'])
    assert.deepEqual((await take(other, 1)).map(textOf), ['m'])
  })

  fact('takes a negative extension for none', async ({ queue, other, send }) => {
    await send([{ body: 'm' }])
    assert.deepEqual(await queue.extend(await take(queue, 1), -5_000), ['extended'])
    assert.deepEqual((await take(other, 1)).map(textOf), ['m'])
  })

  fact('says of a receipt that was given anew to another that it is lost', async (site) => {
    const { queue, other, send, pass } = site
    await send([{ body: 'm' }])
    const first = await take(queue, 1)
    await pass(EXPIRED)
    const again = await take(other, 1)
    assert.deepEqual(await queue.extend(first, 30_000), ['lost'])
    assert.deepEqual(await other.acknowledge(again), ['acknowledged'])
  })

  fact('lets a message be acknowledged twice', async ({ queue, send }) => {
    await send([{ body: 'm' }])
    const messages = await take(queue, 1)
    assert.deepEqual(await queue.acknowledge(messages), ['acknowledged'])
    const [second] = await queue.acknowledge(messages)
    assert.ok(second === 'acknowledged' || second === 'lost')
  })
}

function testExtensions(fact: Fact): void {
  fact('keeps what was extended from others beyond its first time', async ({ queue, other, send, pass }) => {
    await send([{ body: 'held' }, { body: 'left' }])
    const messages = await take(queue, 2)
    const held = messages.filter((message) => textOf(message) === 'held')
    await pass(HALF)
    assert.deepEqual(await queue.extend(held, queue.limits.extendMsMax), ['extended'])
    await pass(HALF)
    // The one that was not extended shows that its time had passed.
    assert.deepEqual((await take(other, 1)).map(textOf), ['left'])
    assert.deepEqual(await receive(other, { waitMs: 0 }), [])
  })

  fact('answers for each message of a batch apart', async ({ queue, other, send, pass }) => {
    await send(Array.from({ length: 11 }, (_, at) => ({ body: `m${at}` })))
    const messages = await take(queue, 11)
    await pass(HALF)
    await queue.extend(messages.slice(1), queue.limits.extendMsMax)
    await pass(HALF)
    const [again] = await take(other, 1)
    assert.equal(textOf(again!), textOf(messages[0]!))
    const results = await queue.extend(messages, queue.limits.extendMsMax)
    assert.deepEqual(results, ['lost', ...Array.from({ length: 10 }, () => 'extended')])
    const acknowledged = await queue.acknowledge(messages.slice(1))
    assert.deepEqual(
      acknowledged,
      Array.from({ length: 10 }, () => 'acknowledged'),
    )
  })
}

function testWaiting(fact: Fact): void {
  fact('ends a wait as soon as a message comes', async ({ queue, send }) => {
    const waiting = receive(queue, { waitMs: queue.limits.waitMsMax })
    await send([{ body: 'late' }])
    assert.deepEqual((await waiting).map(textOf), ['late'])
  })

  fact("ends a wait as soon as it is aborted, with the abort's own reason", async ({ queue }) => {
    const controller = new AbortController()
    const reason = new Error('enough')
    const waiting = queue.receive({ max: 1, waitMs: queue.limits.waitMsMax, signal: controller.signal })
    const ended = assert.rejects(waiting, (error) => error === reason)
    setImmediate(() => controller.abort(reason))
    await ended
    await assert.rejects(
      queue.receive({ max: 1, waitMs: 0, signal: controller.signal }),
      (error) => error === reason,
    )
  })

  fact('answers with nothing where nothing is', async ({ queue }) => {
    assert.deepEqual(await receive(queue, { waitMs: 0 }), [])
    assert.deepEqual(await queue.extend([], 1_000), [])
    assert.deepEqual(await queue.acknowledge([]), [])
  })
}

function testFaults(fail: NonNullable<QueueHome['fail']>, fact: Fact): void {
  for (const fault of ['throttled', 'auth', 'unavailable', 'missing'] as const) {
    fact(`calls an answer that is ${fault} ${KINDS[fault]}`, async (site) => {
      await fail(site, fault)
      const error = await receive(site.queue, { waitMs: 0 }).then(
        () => undefined,
        (thrown: unknown) => asTidemarkError(thrown),
      )
      assert.equal(error?.kind, KINDS[fault])
      assert.ok(error?.code)
    })
  }
}

function receive(
  queue: Queue,
  { max = 10, waitMs = 0 }: { max?: number; waitMs?: number },
): Promise<readonly QueueMessage[]> {
  return queue.receive({ max, waitMs, signal: new AbortController().signal })
}

/** So many messages, in as many calls as it takes: a queue may give fewer than it has. */
export async function take(queue: Queue, n: number): Promise<QueueMessage[]> {
  const messages: QueueMessage[] = []
  for (let calls = 0; messages.length < n && calls < RECEIVES_MAX; calls++) {
    const waitMs = Math.min(REDELIVERED_MS_MAX, queue.limits.waitMsMax)
    const max = Math.min(n - messages.length, queue.limits.receiveMax)
    messages.push(...(await receive(queue, { max, waitMs })))
  }
  assert.equal(messages.length, n)
  return messages
}

export function textOf({ body }: QueueMessage): string {
  return Buffer.from(body).toString('utf8')
}
