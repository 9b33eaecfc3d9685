/** How an engine behaves when apps, databases or people make trouble; on whichever database it runs. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { z } from 'zod'
import { TidemarkError, UsageError } from '../errors.ts'
import { engineOn, type OpenFresh } from './engine.suite.ts'
import { createEngine } from './engine.ts'
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
        const what = '1 job of box was canceled: 2 listed items are left out, and its mark waits there.'
        const next = `Nothing is deleted; to go on: tidemark jobs retry ${batch!.id}`
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
