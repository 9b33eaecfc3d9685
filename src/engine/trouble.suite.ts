/** How an engine behaves when apps, databases or people make trouble; on whichever database it runs. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { z } from 'zod'
import { asTidemarkError, TidemarkError, UsageError } from '../base/errors.ts'
import type { Tx } from '../ledger/contract.ts'
import { engineOn, type OpenFresh } from './engine.suite.ts'
import { createEngine, type Engine } from './engine.ts'
import type { JobKind } from './job-kind.ts'
import { defineJob, request } from './kinds.ts'

const Item = z.object({ name: z.string() })
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

export function troubleContract(name: string, openFresh: OpenFresh): void {
  const withEngine = engineOn(openFresh)

  describe(`trouble on ${name}`, () => {
    test('a new stream can be used first inside an app transaction, and is gone if that rolls back', async () => {
      const ran: (string | null)[] = []
      const job = defineJob({ kind: 'test.job', payload: Item, run: ({ stream }) => void ran.push(stream) })
      await withEngine([job], async (engine, ledger) => {
        await engine.start()
        const undone = engine.transaction(async (tx) => {
          await tx.enqueue([request(job, { name: 'x' }, { stream: 'never' })])
          throw new Error('undone')
        })
        await assert.rejects(undone, /undone/)
        await engine.transaction((tx) => tx.enqueue([request(job, { name: 'x' }, { stream: 'fresh' })]))
        await engine.drained()
        assert.equal(ran.length, 1)
        assert.deepEqual(
          (await ledger.streams()).map((s) => s.name),
          ['fresh'],
        )
      })
    })

    test('a kind whose budget is not defined here waits and is told of; everything else goes on', async () => {
      const stuck = defineJob({
        kind: 'test.stuck',
        payload: Item,
        budget: (s) => `mail:${s}`,
        run: () => {},
      })
      let ran = 0
      const other = defineJob({ kind: 'test.other', payload: Item, run: () => void ran++ })
      await withEngine([stuck, other], async (engine, ledger) => {
        const alerted = new Promise<string>((resolve) => {
          engine.events.on((event) => event.type === 'alert' && resolve(event.text), { jobs: false })
        })
        await engine.start()
        await engine.enqueue(stuck, { name: 'x' })
        await engine.enqueueMany(
          other,
          Array.from({ length: 10 }, (_, i) => ({ name: `${i}` })),
        )
        while (ran < 10) await turn()
        assert.match(await alerted, /test\.stuck cannot start in this process/)
        assert.equal((await ledger.jobs({ kind: 'test.stuck' }))[0]!.state, 'pending')
      })
    })

    test('what a job brings to its end but cannot be written costs an attempt, keeps its error, and ends', async () => {
      const broken = {
        effects: async (): Promise<void> => {
          throw new Error('these effects never work')
        },
      }
      const skips = defineJob({
        kind: 'test.skips',
        payload: Item,
        attempts: 3,
        run: () => ({ skip: 'nothing', ...broken }),
      })
      const again = defineJob({
        kind: 'test.again',
        payload: Item,
        attempts: 3,
        run: () => ({ again: {}, ...broken }),
      })
      await withEngine([skips, again], async (engine, ledger) => {
        await engine.enqueue(skips, { name: 'x' })
        await engine.enqueue(again, { name: 'x' })
        await engine.start()
        await engine.drained()
        for (const row of await ledger.jobs()) {
          assert.deepEqual([row.state, row.attempt], ['failed', 3], row.kind)
          assert.match(row.error!, /these effects never work/)
        }
      })
    })

    test('a Retry-After in fractions of a millisecond is honoured', async () => {
      const calls: number[] = []
      const job = defineJob({
        kind: 'test.throttled',
        payload: Item,
        run: ({ clock }) => {
          calls.push(clock.monotonicMs())
          if (calls.length === 1) throw new TidemarkError('slow', { kind: 'throttled', retryAfterMs: 150.5 })
        },
      })
      await withEngine([job], async (engine) => {
        await engine.start()
        await engine.enqueue(job, { name: 'x' })
        await engine.drained()
        assert.equal(calls.length, 2)
        assert.ok(calls[1]! - calls[0]! >= 149, `${calls[1]! - calls[0]!} ms`)
      })
    })

    test('a kind that runs one at a time does not keep others of its lane from running', async () => {
      let finish = (): void => {}
      const slow = defineJob({
        kind: 'test.slow',
        payload: Item,
        concurrency: 1,
        run: ({ signal }) =>
          new Promise((resolve) => {
            finish = () => resolve(undefined)
            signal.addEventListener('abort', () => resolve(undefined))
          }),
      })
      let ran = 0
      const quick = defineJob({ kind: 'test.quick', payload: Item, run: () => void ran++ })
      await withEngine([slow, quick], async (engine) => {
        await engine.enqueueMany(
          slow,
          Array.from({ length: 100 }, (_, i) => ({ name: `${i}` })),
        )
        await engine.start()
        while (engine.dispatcher.runningOf('test.slow') === 0) await turn()
        await engine.enqueueMany(
          quick,
          Array.from({ length: 100 }, (_, i) => ({ name: `${i}` })),
        )
        while (ran < 100) await turn()
        assert.ok(engine.window.waitingOf('test.slow') <= 2)
        finish()
      })
    })

    test('jobs that could not be given back just then are given back later', async () => {
      const job = defineJob({
        kind: 'test.job',
        payload: Item,
        run: ({ signal }) =>
          new Promise((resolve) => signal.addEventListener('abort', () => resolve(undefined))),
      })
      await withEngine(
        [job],
        async (engine, ledger) => {
          await engine.streams.open('box')
          await engine.enqueueMany(
            job,
            Array.from({ length: 10 }, (_, i) => ({ name: `${i}` })),
            { stream: 'box' },
          )
          await engine.start()
          while (engine.window.waiting.interactive === 0) await turn()
          const release = ledger.release.bind(ledger)
          let refused = 0
          ledger.release = async (...args) => {
            if (refused++ === 0) throw new TidemarkError('full', { kind: 'transient', code: 'ledger-full' })
            return release(...args)
          }
          await engine.pause('stream', 'box').catch(() => {})
          const claimed = async (): Promise<number> => (await ledger.jobs({ state: 'claimed' })).length
          while ((await claimed()) > engine.dispatcher.running.size) await turn()
          assert.ok(refused >= 2)
        },
        { workers: 2 },
      )
    })

    test('a job that is canceled before it starts ends, although its end could not be written at first', async () => {
      let finish = (): void => {}
      const run = (): Promise<undefined> => new Promise((resolve) => (finish = () => resolve(undefined)))
      const job = defineJob({ kind: 'test.job', payload: Item, run })
      await withEngine(
        [job],
        async (engine, ledger) => {
          const [, waiting] = await engine.enqueueMany(job, [{ name: 'first' }, { name: 'second' }])
          await engine.start()
          while (engine.window.waiting.interactive === 0) await turn()
          const cycle = ledger.cycle.bind(ledger)
          const refused = Promise.withResolvers<void>()
          ledger.cycle = async (one) => {
            if (!one.settle?.some(({ event }) => event === 'stop')) return cycle(one)
            ledger.cycle = cycle
            refused.resolve()
            throw new Error('refused on purpose')
          }
          await engine.cancel(waiting!.id)
          await refused.promise
          // It is tried again by itself, a little later; a busy machine begins that late.
          const stateNow = async (): Promise<string> => (await ledger.job(waiting!.id))!.job.state
          while ((await stateNow()) === 'claimed') await turn()
          assert.equal(await stateNow(), 'canceled')
          finish()
          assert.equal(await engine.drained(), true)
        },
        { workers: 1 },
      )
    })

    test('a job that is replaced while it is given back ends as canceled, and its replacement runs', async () => {
      const ran: string[] = []
      let finish = (): void => {}
      const job = defineJob({
        kind: 'test.job',
        payload: Item,
        onKeyTaken: 'replace',
        run: ({ payload }) =>
          new Promise((resolve) => {
            ran.push(payload.name)
            finish = () => resolve(undefined)
            if (payload.name !== 'first') finish()
          }),
      })
      await withEngine(
        [job],
        async (engine, ledger) => {
          await engine.enqueue(job, { name: 'first' })
          const [old] = await engine.enqueueMany(job, [{ name: 'old' }], { key: 'k', stream: 'box' })
          await engine.start()
          while (engine.window.waiting.interactive === 0) await turn()
          const release = ledger.release.bind(ledger)
          ledger.release = async (...args) => {
            ledger.release = release
            await engine.enqueue(job, { name: 'new' }, { key: 'k', stream: 'box' })
            return release(...args)
          }
          await engine.pause('stream', 'box')
          await engine.resume('stream', 'box')
          finish()
          assert.equal(await engine.drained(), true)
          assert.deepEqual(ran, ['first', 'new'])
          assert.equal((await ledger.job(old!.id))!.job.state, 'canceled')
        },
        { workers: 1 },
      )
    })

    test('that the ledger is away is told once, and once that it is back, whoever notices', async () => {
      let ran = 0
      const job = defineJob({ kind: 'test.job', payload: Item, run: () => void ran++ })
      await withEngine([job], async (engine, ledger) => {
        const told: string[] = []
        engine.events.on((event) => void (event.type === 'ledger' && told.push(event.what)), { jobs: false })
        await engine.start()
        const away = new TidemarkError('gone', { kind: 'transient', code: 'ledger-down' })
        const cycle = ledger.cycle.bind(ledger)
        for (let round = 0; round < 2; round++) {
          let refused = 0
          ledger.cycle = async (asked) => {
            if (refused++ < 2) throw away
            return cycle(asked)
          }
          await engine.enqueue(job, { name: 'x' })
        }
        await engine.drained()
        assert.equal(ran, 2)
        assert.deepEqual(told, ['down', 'up', 'down', 'up'])
        engine.housekeeping.onTrouble(away)
        engine.housekeeping.onTrouble(away)
        while (told.length < 6) await turn()
        assert.deepEqual(told.slice(4), ['down', 'up'])
      })
    })

    test('a part that nobody awaited is written before its job is done, and the job is not done without it', async () => {
      let broken = true
      const insert = (name: string) => ({
        effects: async (tx: Tx): Promise<void> => {
          if (name === 'bad' && broken) {
            broken = false
            throw new Error('this part broke')
          }
          await tx.run(`INSERT INTO effects(name, times) VALUES (?, 1)`, [name])
        },
      })
      const loose = defineJob({
        kind: 'test.loose',
        payload: Item,
        run: ({ payload, commit }) => {
          void commit(insert(payload.name))
        },
      })
      const swallowing = defineJob({
        kind: 'test.swallowing',
        payload: Item,
        run: async ({ payload, commit }) => {
          commit(insert(payload.name)).catch(() => {})
          await turn()
        },
      })
      await withEngine([loose, swallowing], async (engine, ledger) => {
        const results = await engine.enqueueMany(loose, [{ name: 'a' }, { name: 'bad' }, { name: 'c' }])
        await engine.enqueue(swallowing, { name: 'd' })
        await engine.start()
        await engine.drained()
        const rows = await ledger.driver.read((tx) =>
          tx.all<{ name: string; times: number }>(`SELECT name, times FROM effects ORDER BY name`),
        )
        assert.deepEqual(
          rows.map(({ name, times }) => [name, Number(times)]),
          ['a', 'bad', 'c', 'd'].map((name) => [name, 1]),
        )
        const bad = await ledger.job(results[1]!.id)
        assert.deepEqual([bad!.job.state, bad!.job.attempt, bad!.job.failures], ['done', 2, 1])
      })
    })

    test('a stream that is paused before anybody opens it is paused from its first job on', async () => {
      const ran: string[] = []
      const job = defineJob({
        kind: 'test.job',
        payload: Item,
        run: ({ payload }) => void ran.push(payload.name),
      })
      await withEngine([job], async (engine, ledger) => {
        await engine.start()
        await engine.pause('stream', 'later')
        await engine.enqueue(job, { name: 'held' }, { stream: 'later' })
        await engine.enqueue(job, { name: 'free' }, { stream: 'other' })
        while (ran.length === 0) await turn()
        engine.wake()
        await engine.enqueue(job, { name: 'last' }, { stream: 'other' })
        while (ran.length < 2) await turn()
        assert.deepEqual(ran, ['free', 'last'])
        assert.deepEqual(await ledger.hasReady({ kinds: engine.kinds.names }), {
          interactive: false,
          bulk: false,
        })
        await engine.resume('stream', 'later')
        await engine.drained()
        assert.deepEqual(ran, ['free', 'last', 'held'])
      })
    })

    test("an app's own functions that throw fail the job, not the process; a listener that throws hears no more", async () => {
      const job = defineJob({
        kind: 'test.batch',
        payload: Item,
        items: {
          of: () => ['a', 'b'],
          only: () => {
            throw new Error('cannot take it apart')
          },
        },
        run: () => {
          throw new TidemarkError('no', { kind: 'permanent' })
        },
      })
      await withEngine([job], async (engine, ledger) => {
        engine.events.on(() => {
          throw new Error('a broken listener')
        })
        const { id } = await engine.enqueue(job, { name: 'x' })
        await engine.start()
        await engine.drained()
        const detail = await ledger.job(id)
        assert.equal(detail!.job.state, 'failed')
        assert.match(detail!.job.error!, /cannot take it apart/)
      })
    })

    test('a job that is canceled by hand leaves its items out: a warning says so, and how to go on', async () => {
      const job = defineJob({
        kind: 'test.batch',
        payload: z.object({ ids: z.array(z.string()) }),
        items: { of: (p) => p.ids, only: (_p, ids) => ({ ids: [...ids] }) },
        run: ({ payload }) => ({ stored: payload.ids.length }),
      })
      await withEngine([job], async (engine, ledger) => {
        const alerted = new Promise<{ severity: string; text: string }>((resolve) => {
          engine.events.on((event) => event.type === 'alert' && resolve(event), { jobs: false })
        })
        const stream = await engine.streams.open('box')
        await engine.pause('stream', 'box')
        await engine.start()
        const [batch] = await engine.write({
          segments: [{ streamId: stream.id, from: 0, to: 9, ref: 's' }],
          counts: [{ segment: 's', listed: 2, seal: true }],
          jobs: [request(job, { ids: ['a', 'b'] }, { stream: 'box', segment: 's' })],
        })
        await engine.cancel(batch!.id)
        const { severity, text } = await alerted
        const what =
          '1 job of box was canceled: 2 listed items are left out, and box is complete up to there only.'
        const next = `Nothing is deleted; to go on, retry job ${batch!.id}.`
        assert.deepEqual([severity, text], ['warning', `${what} ${next}`])
        await engine.retry(batch!.id)
        await engine.resume('stream', 'box')
        await engine.drained()
        assert.deepEqual(await ledger.unbalanced(), [])
        assert.equal(Number((await ledger.streams())[0]!.mark_at), 9)
      })
    })

    test('bad items of a part that is committed on the way are registered and counted', async () => {
      const job = defineJob({
        kind: 'test.parts',
        payload: z.object({ ids: z.array(z.string()) }),
        items: { of: (p) => p.ids, only: (_p, ids) => ({ ids: [...ids] }) },
        run: async ({ commit }) => {
          await commit({ stored: 2, bad: [{ item: 'c', reason: 'torn' }] })
          return { stored: 1 }
        },
      })
      await withEngine([job], async (engine, ledger) => {
        const stream = await engine.streams.open('box')
        await engine.write({
          segments: [{ streamId: stream.id, from: 0, to: 9, ref: 's' }],
          counts: [{ segment: 's', listed: 4, seal: true }],
          jobs: [request(job, { ids: ['a', 'b', 'c', 'd'] }, { stream: 'box', segment: 's' })],
        })
        await engine.start()
        await engine.drained()
        const [row] = await ledger.streams()
        assert.deepEqual([row!.stored, row!.bad, row!.mark_at].map(Number), [3, 1, 9])
        assert.equal((await ledger.badItems())[0]!.item, 'c')
      })
    })

    test('items that a batch leaves to another job are counted by that one', async () => {
      const job: JobKind<{ ids: string[] }> = defineJob({
        kind: 'test.rest',
        payload: z.object({ ids: z.array(z.string()) }),
        items: { of: (p) => p.ids, only: (_p, ids) => ({ ids: [...ids] }) },
        run: ({ payload: { ids }, segment }) => ({
          stored: 1,
          jobs: ids.length === 1 ? [] : [request(job, { ids: ids.slice(1) }, { segment: segment! })],
        }),
      })
      await withEngine([job], async (engine, ledger) => {
        const stream = await engine.streams.open('box')
        await engine.write({
          segments: [{ streamId: stream.id, from: 0, to: 9, ref: 's' }],
          counts: [{ segment: 's', listed: 3, seal: true }],
          jobs: [request(job, { ids: ['a', 'b', 'c'] }, { stream: 'box', segment: 's' })],
        })
        await engine.start()
        await engine.drained()
        assert.deepEqual(await ledger.unbalanced(), [])
        assert.equal((await ledger.counters({ sinceMinute: 0 })).processed, 3)
      })
    })

    test('the engine cannot be used inside its own transaction, effects or either of them in turn, and stops', async () => {
      const inEffects: string[] = []
      const job = defineJob({
        kind: 'test.inside',
        payload: z.object({ use: z.string() }),
        attempts: 1,
        run: ({ payload, commit, limits }) => ({
          effects: async () => {
            try {
              if (payload.use === 'enqueue') await engineOf.enqueue(job, { use: 'nothing' })
              if (payload.use === 'transaction') await engineOf.transaction(async () => {})
              if (payload.use === 'commit') await commit({})
              if (payload.use === 'pause') await engineOf.pause('stream', 'any')
              if (payload.use === 'budget') await limits.budget('test.calls', { rate: 10 }).take(1)
            } catch (thrown) {
              inEffects.push(asTidemarkError(thrown).code ?? String(thrown))
              throw thrown
            }
          },
        }),
      })
      let engineOf: Engine
      await withEngine([job], async (engine, ledger) => {
        engineOf = engine
        const nested = engine.transaction(() => engine.enqueue(job, { use: 'nothing' }))
        await assert.rejects(nested, /cannot be used inside a transaction on the ledger/)
        const twice = engine.transaction(() => engine.transaction(async () => {}))
        await assert.rejects(twice, { code: 'inside-transaction' })
        for (const waited of [() => engine.drained(), () => engine.stop()])
          await assert.rejects(engine.transaction<unknown>(waited), { code: 'inside-transaction' })
        for (const use of ['enqueue', 'transaction', 'commit', 'pause', 'budget', 'nothing'])
          await engine.enqueue(job, { use })
        await engine.start()
        await engine.drained()
        assert.deepEqual(inEffects, Array(5).fill('inside-transaction'))
        const tallies = (await ledger.tallies()).filter((one) => one.kind === 'test.inside')
        assert.deepEqual(
          tallies.map(({ stage, n }) => [stage, Number(n)]),
          [
            ['done', 1],
            ['failed', 5],
          ],
        )
      })
    })

    test('a handler may return any thenable, and its work is waited for', async () => {
      let finished = false
      const job = defineJob({
        kind: 'test.thenable',
        payload: Item,
        run: () => {
          const later = {
            // biome-ignore lint/suspicious/noThenProperty: that is what is tested
            then: (resolve: (value: undefined) => void) => {
              setImmediate(() => {
                finished = true
                resolve(undefined)
              })
            },
          }
          return later as unknown as Promise<undefined>
        },
      })
      await withEngine([job], async (engine) => {
        await engine.enqueue(job, { name: 'x' })
        await engine.start()
        await engine.drained()
        assert.equal(finished, true)
      })
    })

    test('stop during start, stop twice, and enqueue after stop all end clearly', async () => {
      const job = defineJob({ kind: 'test.job', payload: Item, run: () => {} })
      const { ledger, close } = await openFresh()
      const engine = await createEngine({ ledger, jobs: [job] })
      const starting = engine.start()
      await Promise.all([engine.stop(), engine.stop(), starting])
      assert.equal(engine.state, 'stopped')
      assert.deepEqual(await ledger.workers(), [])
      await assert.rejects(engine.enqueue(job, { name: 'late' }), UsageError)
      await assert.rejects(engine.start(), UsageError)
      await close()
    })
  })
}
