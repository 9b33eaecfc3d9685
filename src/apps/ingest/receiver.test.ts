/** What a receiver does with time: messages that it stops holding, and when it receives nothing. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TidemarkError } from '../../base/errors.ts'
import { IngestWorld, lines, NAME, type Process, type WorldOptions } from './ingest-world.suite.ts'
import { streamOf } from './pipeline.ts'
import { SHARD_LOST, takeShard } from './store/shards.ts'

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await turn()
}

/** Blocks whoever reads an object behind so many bytes, until it is opened. */
function gate(world: IngestWorld, behindBytes: number): { reached: Promise<void>; open: () => void } {
  const reached = Promise.withResolvers<void>()
  const opened = Promise.withResolvers<void>()
  world.store.onBytes = async (_uri, bytes) => {
    if (bytes < behindBytes) return
    reached.resolve()
    await opened.promise
  }
  return { reached: reached.promise, open: opened.resolve }
}

const drain = ({ receiver }: Process): Promise<number> => receiver.drain(new AbortController().signal)

for (const database of ['sqlite', 'postgres'] as const) {
  const withWorld = (
    title: string,
    run: (world: IngestWorld) => Promise<void>,
    options: WorldOptions = {},
  ): void => {
    test(title, async () => {
      const world = await IngestWorld.open({ ...options, database })
      try {
        await run(world)
      } finally {
        await world.close()
      }
    })
  }

  describe(`a receiver on ${database}`, () => {
    withWorld(
      'that stops extending loses its message to another, which acknowledges it; nothing is published twice',
      async (world) => {
        world.store.put('a.ndjson', lines(60))
        world.announce('a.ndjson')
        const first = world.process
        const reading = gate(world, 700)
        await drain(first)
        await reading.reached
        const second = await world.start()
        assert.equal(await drain(second), 0, 'it is invisible to others')
        world.clock.aheadMs += world.queue.visibilityMs + 1
        assert.equal(await drain(second), 1, 'it was delivered again')
        assert.deepEqual([first.receiver.held.size, second.receiver.held.size], [1, 1])
        await first.receiver.look()
        assert.equal(first.receiver.held.size, 0, 'it knows that the message is not its own any more')
        reading.open()
        await Promise.all([world.settle(first), world.settle(second)])
        await second.receiver.look()
        assert.deepEqual(world.queue.acknowledged, ['m1'])
        assert.deepEqual(world.queue.extended, [])
        assert.equal(await world.rows('search_documents'), 60)
        assert.equal((await world.seen()).length, 60)
      },
    )

    withWorld(
      'of two who take a shard over, one is told at once, before it has read anything',
      async (world) => {
        world.store.put('a.ndjson', lines(1))
        world.announce('a.ndjson')
        await world.process.engine.pause('all')
        await drain(world.process)
        const { ledger, kinds } = world.process
        const [row] = await kinds.tables.shards({ pipeline: NAME, after: '', limit: 1 })
        const take = (token: string): Promise<void> =>
          ledger.transaction((tx) => takeShard(tx, row!, { token, isStaged: false, nowMs: row!.updated_at }))
        const results = await Promise.allSettled([take('one'), take('other')])
        const lost = results.filter((result) => result.status === 'rejected')
        assert.deepEqual(
          lost.map(({ reason }) => (reason as TidemarkError).code),
          [SHARD_LOST],
        )
        assert.deepEqual(world.store.reads, [])
      },
    )

    withWorld(
      'receives nothing while its pipeline is paused, goes on afterwards, and lets others work while there is nothing',
      async (world) => {
        const { receiver, engine } = world.process
        await engine.pause('all')
        world.store.put('a.ndjson', lines(2))
        world.announce('a.ndjson')
        receiver.start()
        try {
          await until(() => (world.clock.waits.get(2_000) ?? 0) >= 2)
          assert.equal(world.queue.sent[0]!.deliveries, 0)
          await engine.resume('all')
          await until(() => world.queue.acknowledged.length === 1)
          assert.equal((await world.seen()).length, 2)
        } finally {
          await receiver.stop()
        }
      },
    )

    withWorld(
      'receives nothing while too many objects are on their way',
      async (world) => {
        world.queue.limits = { ...world.queue.limits, receiveMax: 1 }
        for (const key of ['a', 'b', 'c']) {
          world.store.put(`${key}.ndjson`, lines(1, key))
          world.announce(`${key}.ndjson`)
        }
        const reading = gate(world, 0)
        const { receiver } = world.process
        receiver.start()
        try {
          await until(() => receiver.held.size === 2)
          const begun = world.clock.waits.get(1_000) ?? 0
          await until(() => (world.clock.waits.get(1_000) ?? 0) >= begun + 4)
          assert.equal(world.queue.sent[2]!.deliveries, 0)
          reading.open()
          await until(() => world.queue.acknowledged.length === 3)
        } finally {
          reading.open()
          await receiver.stop()
        }
        assert.deepEqual(await world.seen(), ['a 0', 'b 0', 'c 0'])
      },
      { settings: { onTheirWayMax: 2 } },
    )

    withWorld('receives nothing more while what it receives cannot be written', async (world) => {
      for (let n = 0; n < 30; n++) {
        world.store.put(`${n}.ndjson`, lines(1, `of${n}`))
        world.announce(`${n}.ndjson`)
      }
      const { receiver, ledger } = world.process
      const rename = (from: string, to: string): Promise<unknown> =>
        ledger.transaction(async (tx) => void (await tx.run(`ALTER TABLE ${from} RENAME TO ${to}`)))
      await rename('ingest_pipelines', 'away')
      const delivered = (): number => world.queue.sent.reduce((n, { deliveries }) => n + deliveries, 0)
      receiver.start()
      try {
        await until(() => world.errors.length >= 6)
        assert.equal(delivered(), 10, 'one batch, which comes again')
        assert.equal(receiver.held.size, 0)
        await rename('away', 'ingest_pipelines')
        world.queue.redeliver()
        await until(() => world.queue.acknowledged.length === 30)
      } finally {
        await receiver.stop()
      }
      assert.equal((await world.seen()).length, 30)
    })

    withWorld(
      'asks a store that is away less and less often, and pauses where its sign-in is refused',
      async (world) => {
        world.store.put('a.ndjson', lines(1))
        world.queue.send({ uri: 's3://bucket/a.ndjson' })
        world.store.failing = new TidemarkError('away', { kind: 'transient' })
        await drain(world.process)
        world.clock.aheadMs += 6_000
        await drain(world.process)
        assert.deepEqual(
          world.queue.extended.map(({ byMs }) => byMs),
          [5_000, 10_000],
        )
        assert.equal(world.queue.sent[0]!.deliveries, 2, 'one drain, one delivery')
        world.store.failing = new TidemarkError('wait', { kind: 'transient', retryAfterMs: 90_000 })
        world.clock.aheadMs += 11_000
        await drain(world.process)
        assert.equal(world.queue.extended.at(-1)!.byMs, 90_000)
        world.store.failing = new TidemarkError('who are you', { kind: 'auth' })
        world.clock.aheadMs += 91_000
        world.process.receiver.start()
        await until(() => (world.clock.waits.get(2_000) ?? 0) >= 1)
        await world.process.receiver.stop()
        assert.equal(world.queue.sent[0]!.deliveries, 4)
        const [pause] = await world.process.ledger.pauses()
        assert.equal(pause?.target, streamOf(NAME))
      },
    )

    withWorld(
      'reads no object that is neither listed nor allowed, and the others of its message',
      async (world) => {
        world.store.put('a.ndjson', lines(1))
        const uris = ['s3://secrets/keys.ndjson', 's3://bucket-of-another/a', 's3://bucket/a.ndjson']
        world.queue.send({ uris })
        world.queue.send({ uri: 's3://other/part/a' })
        await world.run()
        assert.deepEqual(
          world.store.reads.map(({ uri }) => uri),
          ['s3://bucket/a.ndjson'],
        )
        assert.deepEqual(await world.seen(), ['line 0'])
        assert.deepEqual(world.queue.acknowledged, [])
        const shown = await world.process.kinds.tables.unparsed(NAME, 10)
        assert.deepEqual(
          shown.map(({ code }) => code),
          ['not-allowed', 'not-allowed'],
        )
      },
    )

    withWorld(
      'reads the others of a message in which one address is too long, and shows it',
      async (world) => {
        world.store.put('a.ndjson', lines(1))
        world.queue.send({ uris: [`s3://bucket/${'u'.repeat(2_100)}`, 's3://bucket/a.ndjson'] })
        await world.run()
        assert.deepEqual(await world.seen(), ['line 0'])
        assert.deepEqual(world.queue.acknowledged, [])
        const shown = await world.process.kinds.tables.unparsed(NAME, 10)
        assert.deepEqual(
          shown.map(({ code }) => code),
          ['too-long'],
        )
      },
    )

    withWorld(
      'extends what it received while it still asks about it, and asks about no more than it can',
      async (world) => {
        const uris = Array.from({ length: 20 }, (_, at) => `s3://bucket/${at}.ndjson`)
        for (const at of uris.keys()) world.store.put(`${at}.ndjson`, lines(1, `of${at}`))
        world.store.onHead = () => {
          world.clock.aheadMs += 10_000
        }
        world.queue.send({ uris })
        world.queue.send({ uris: Array.from({ length: 1_001 }, (_, at) => `s3://bucket/many/${at}`) })
        await world.run()
        assert.ok(world.queue.extended.length > 0)
        assert.equal((await world.seen()).length, 20)
        assert.deepEqual(world.queue.acknowledged, ['m1'])
        const shown = await world.process.kinds.tables.unparsed(NAME, 10)
        assert.deepEqual(
          shown.map(({ code }) => code),
          ['too-many'],
        )
      },
    )

    withWorld(
      'receives while many objects of a listing are on their way',
      async (world) => {
        for (const key of ['a', 'b', 'c']) world.store.put(`${key}.ndjson`, lines(1, key))
        const { engine, kinds, receiver } = world.process
        for (const { kind } of [kinds.object, kinds.some]) await engine.pause('kind', kind)
        await engine.enqueue(kinds.list, { pipeline: NAME }, { stream: streamOf(NAME) })
        while ((await world.status()).objects.onTheirWay < 3) await turn()
        world.announce('a.ndjson')
        await drain(world.process)
        assert.equal(receiver.held.size, 1)
        for (const { kind } of [kinds.object, kinds.some]) await engine.resume('kind', kind)
        await world.settle()
      },
      { settings: { onTheirWayMax: 1 } },
    )

    withWorld(
      'shows a message of an inbox that nobody understands, and ends it after some deliveries',
      async (world) => {
        world.queue.send('what is this')
        for (let n = 1; n <= 6; n++) {
          await drain(world.process)
          world.queue.redeliver()
        }
        assert.equal(world.queue.sent[0]!.deliveries, 5)
        assert.equal((await world.process.kinds.tables.unparsed(NAME, 10)).length, 1)
      },
    )

    withWorld('ends a message of an inbox of which only a part may be read, after as many', async (world) => {
      world.store.put('a.ndjson', lines(1))
      const other = {
        ...world.event('a.ndjson'),
        s3: { bucket: { name: 'other' }, object: { key: 'b', eTag: 'x' } },
      }
      world.queue.send({ Records: [world.event('a.ndjson'), other] })
      for (let n = 1; n <= 8; n++) {
        await world.run()
        world.queue.redeliver()
      }
      assert.equal(world.queue.sent[0]!.deliveries, 5)
      assert.deepEqual(world.queue.acknowledged, ['m1'])
      assert.equal((await world.seen()).length, 1)
      assert.equal((await world.process.kinds.tables.unparsed(NAME, 10))[0]!.code, 'not-allowed')
    })

    withWorld(
      'receives by several calls at once while there is much, and holds each message once',
      async (world) => {
        const { engine, receiver } = world.process
        await engine.pause('all')
        for (let n = 0; n < 95; n++) {
          world.store.put(`${n}.ndjson`, lines(1, `${n}`))
          world.announce(`${n}.ndjson`)
        }
        let atOnce = 0
        let most = 0
        const receive = world.queue.receive.bind(world.queue)
        world.queue.receive = async (options) => {
          most = Math.max(most, ++atOnce)
          await turn()
          atOnce -= 1
          return receive(options)
        }
        await drain(world.process)
        assert.ok(most > 1, `${most} calls`)
        assert.equal(receiver.held.size, 95)
        await engine.resume('all')
        await world.settle()
        assert.equal(world.queue.acknowledged.length, 95)
        assert.equal((await world.status()).messages.acknowledged, 95)
      },
    )

    withWorld('that is stopped gives back what it holds, at once, also if a call is lost', async (world) => {
      const extend = world.queue.extend.bind(world.queue)
      let lost = 0
      world.queue.extend = async (messages, byMs) => {
        if (byMs === 0 && lost++ === 0)
          throw new TidemarkError('the connection was closed', { kind: 'transient' })
        return extend(messages, byMs)
      }
      world.store.put('a.ndjson', lines(1))
      world.announce('a.ndjson')
      const { receiver, engine } = world.process
      await engine.pause('all')
      await drain(world.process)
      assert.equal(receiver.held.size, 1)
      await receiver.stop()
      assert.equal(receiver.held.size, 0)
      assert.ok(world.queue.sent[0]!.visibleAtMs <= world.clock.now())
      assert.deepEqual(world.queue.acknowledged, [])
    })

    const waitMs = 20_000
    withWorld(
      'that is stopped while a service waits for messages gives nothing back to the call that nobody hears any more',
      async (world) => {
        world.queue.limits = { ...world.queue.limits, waitMsMax: waitMs }
        const receive = world.queue.receive.bind(world.queue)
        const isWaiting = Promise.withResolvers<void>()
        let askedAtMs = Number.NaN
        // Answers at once what it has; without anything it waits, and the service does not notice who leaves.
        world.queue.receive = async ({ max, signal }: { max: number; signal?: AbortSignal }) => {
          const nowMs = world.clock.now()
          const messages = await receive({ max })
          if (messages.length > 0) return messages
          askedAtMs = nowMs
          isWaiting.resolve()
          return new Promise((_resolve, reject) => {
            signal!.addEventListener('abort', () => reject(signal!.reason))
          })
        }
        world.store.put('a.ndjson', lines(1))
        world.announce('a.ndjson')
        const { receiver, engine, kinds } = world.process
        await engine.pause('kind', kinds.object.kind)
        receiver.start()
        await isWaiting.promise
        assert.equal(receiver.held.size, 1)
        const leftMs = waitMs - 5_000
        world.clock.aheadMs += waitMs - leftMs
        await receiver.stop()
        const { visibleAtMs } = world.queue.sent[0]!
        assert.ok(visibleAtMs > askedAtMs + waitMs, 'not while that call may get it')
        assert.ok(visibleAtMs <= world.clock.now() + leftMs + 2_000, 'and not much later')
      },
      {
        config: { queue: { kind: 'sqs', url: 'http://127.0.0.1/1/q', region: 'eu-north-1' } },
        settings: { receiveWaitMs: waitMs },
      },
    )
  })
}
