/** What an engine promises, on whichever database it runs. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { z } from 'zod'
import { TidemarkError, UsageError } from '../base/errors.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { createEngine, type Engine, type EngineOptions } from './engine.ts'
import type { AnyJobKind, Outcome } from './job-kind.ts'
import { defineJob, request } from './kinds.ts'
import type { NumberedEvent } from './observe/events.ts'

export type OpenFresh = () => Promise<{ ledger: Ledger; close: () => Promise<void> }>

const Item = z.object({ name: z.string() })
const Batch = z.object({ ids: z.array(z.string()) })
const batchItems = {
  of: (p: { ids: string[] }) => p.ids,
  only: (p: { ids: string[] }, ids: readonly string[]) => ({ ...p, ids: [...ids] }),
}

/** A promise to be settled by hand: how tests wait for a moment instead of for a time. */
function gate(): { opened: Promise<void>; open: () => void } {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

/** Runs a test on a fresh ledger with an engine that is stopped at its end, and checks the tallies. */
export function engineOn(openFresh: OpenFresh) {
  return async function withEngine(
    jobs: readonly AnyJobKind[],
    fn: (engine: Engine, ledger: Ledger) => Promise<void>,
    options: Partial<EngineOptions> = {},
  ): Promise<void> {
    const { ledger, close } = await openFresh()
    await ledger.migrateApp('test', [
      [`CREATE TABLE effects (name TEXT PRIMARY KEY, times INTEGER NOT NULL)`],
    ])
    // Backoff is a thousandth of its bound: tests wait for the rule, not for the delay.
    const engine = await createEngine({ ledger, jobs, random: () => 0.001, ...options })
    try {
      await fn(engine, ledger)
      // While it runs, what is committed between the two readings would tell them apart.
      await engine.stop()
      assert.deepEqual(await ledger.tallies(), await ledger.countedTallies(), 'tallies equal counted rows')
    } finally {
      await engine.stop()
      await close()
    }
  }
}

export function engineContract(name: string, openFresh: OpenFresh): void {
  const withEngine = engineOn(openFresh)

  const note = (text: string): Outcome => ({
    effects: async (tx) => {
      await tx.run(
        `INSERT INTO effects(name, times) VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET times = effects.times + 1`,
        [text],
      )
    },
  })
  const effects = (ledger: Ledger): Promise<Record<string, number>> =>
    ledger.driver.read(async (tx) => {
      const rows = await tx.all<{ name: string; times: number }>(
        `SELECT name, times FROM effects ORDER BY name`,
      )
      return Object.fromEntries(rows.map((row) => [row.name, Number(row.times)]))
    })
  const stateOf = async (ledger: Ledger, id: number): Promise<string> => (await ledger.job(id))!.job.state

  describe(`engine on ${name}`, () => {
    test('a job runs once and its effects commit with its done', async () => {
      const job = defineJob({ kind: 'test.note', payload: Item, run: ({ payload }) => note(payload.name) })
      await withEngine([job], async (engine, ledger) => {
        await engine.enqueueMany(
          job,
          ['a', 'b', 'c'].map((n) => ({ name: n })),
        )
        await engine.start()
        await engine.drained()
        assert.deepEqual(await effects(ledger), { a: 1, b: 1, c: 1 })
      })
    })

    test('an outcome that cannot be written is rolled back alone and tried again', async () => {
      let broken = true
      const job = defineJob({
        kind: 'test.note',
        payload: Item,
        run: ({ payload }) =>
          payload.name === 'bad' && broken
            ? {
                effects: async (tx) => {
                  await tx.run(`INSERT INTO effects(name, times) VALUES ('half', 1)`)
                  broken = false
                  throw new Error('the effects broke')
                },
              }
            : note(payload.name),
      })
      await withEngine([job], async (engine, ledger) => {
        const results = await engine.enqueueMany(
          job,
          ['a', 'bad', 'c'].map((n) => ({ name: n })),
        )
        await engine.start()
        await engine.drained()
        assert.deepEqual(await effects(ledger), { a: 1, bad: 1, c: 1 })
        const detail = await ledger.job(results[1]!.id)
        assert.equal(detail!.job.failures, 1)
        assert.match(detail!.errors[0]!.message, /the effects broke/)
      })
    })

    test('a poison item in a batch is isolated in O(log n) splits and blocks nothing', async () => {
      let runs = 0
      const job = defineJob({
        kind: 'test.batch',
        payload: Batch,
        items: batchItems,
        run: ({ payload }) => {
          runs += 1
          if (payload.ids.includes('poison')) throw new TidemarkError('malformed', { kind: 'permanent' })
          return {
            effects: async (tx) => {
              for (const id of payload.ids)
                await tx.run(`INSERT INTO effects(name, times) VALUES (?, 1)`, [id])
            },
          }
        },
      })
      await withEngine([job], async (engine, ledger) => {
        const ids = Array.from({ length: 256 }, (_, i) => (i === 77 ? 'poison' : `item ${i}`))
        const stream = await engine.streams.open('box')
        await engine.write({
          segments: [{ streamId: stream.id, from: 0, to: 100, ref: 's' }],
          counts: [{ segment: 's', listed: 256, seal: true }],
          jobs: [request(job, { ids }, { stream: 'box', segment: 's' })],
        })
        await engine.start()
        await engine.drained()
        assert.equal(Object.keys(await effects(ledger)).length, 255)
        assert.ok(runs <= 2 * Math.log2(256) + 1, `${runs} runs`)
        const [bad] = await ledger.badItems()
        assert.deepEqual([bad!.item, bad!.reason, bad!.tries], ['poison', 'malformed', 1])
        const [row] = await ledger.streams()
        assert.deepEqual([row!.listed, row!.stored, row!.bad, row!.mark_at].map(Number), [256, 255, 1, 100])
      })
    })

    test('a bad item that works on a retry is stored after all, and its segment says so', async () => {
      let healed = false
      const job = defineJob({
        kind: 'test.batch',
        payload: Batch,
        items: batchItems,
        run: ({ payload }) => {
          if (!healed && payload.ids.includes('sick'))
            throw new TidemarkError('not today', { kind: 'permanent' })
          return note(payload.ids.join())
        },
      })
      await withEngine([job], async (engine, ledger) => {
        const stream = await engine.streams.open('box')
        await engine.write({
          segments: [{ streamId: stream.id, from: 0, to: 10, ref: 's' }],
          counts: [{ segment: 's', listed: 1, seal: true }],
          jobs: [request(job, { ids: ['sick'] }, { stream: 'box', segment: 's' })],
        })
        await engine.start()
        await engine.drained()
        assert.equal((await ledger.badItems()).length, 1)
        healed = true
        assert.equal(await ledger.retryBad(), 1)
        engine.wake()
        await engine.drained()
        assert.deepEqual(await ledger.badItems(), [])
        const [row] = await ledger.streams()
        assert.deepEqual([row!.listed, row!.stored, row!.bad].map(Number), [1, 1, 0])
      })
    })

    test('cancelling a running job aborts its signal, and it leaves no effect', async () => {
      const running = gate()
      const job = defineJob({
        kind: 'test.slow',
        payload: Item,
        run: async ({ signal, payload }) => {
          running.open()
          await new Promise((resolve) => signal.addEventListener('abort', resolve))
          return note(payload.name) // finished anyway: too late
        },
      })
      await withEngine([job], async (engine, ledger) => {
        const { id } = await engine.enqueue(job, { name: 'x' })
        await engine.start()
        await running.opened
        assert.equal(await engine.cancel(id), 'stopping')
        await engine.drained()
        assert.equal(await stateOf(ledger, id), 'canceled')
        assert.deepEqual(await effects(ledger), {})
      })
    })

    test('a replacement starts only after the job it replaces has stopped', async () => {
      const running = gate()
      const mayStop = gate()
      const log: string[] = []
      const job = defineJob({
        kind: 'test.upload',
        payload: Item,
        key: () => 'one file',
        onKeyTaken: 'replace',
        run: async ({ payload, signal }) => {
          log.push(`start ${payload.name}`)
          if (payload.name === 'old') {
            running.open()
            await new Promise((resolve) => signal.addEventListener('abort', resolve))
            await mayStop.opened
          }
          log.push(`end ${payload.name}`)
          return note(payload.name)
        },
      })
      await withEngine([job], async (engine, ledger) => {
        await engine.enqueue(job, { name: 'old' })
        await engine.start()
        await running.opened
        assert.equal((await engine.enqueue(job, { name: 'middle' })).outcome, 'replaced')
        assert.equal((await engine.enqueue(job, { name: 'new' })).outcome, 'replaced')
        mayStop.open()
        await engine.drained()
        assert.deepEqual(log, ['start old', 'end old', 'start new', 'end new'])
        assert.deepEqual(await effects(ledger), { new: 1 })
      })
    })

    test('a paused stream, a paused kind and a full pause hold jobs back until resumed', async () => {
      const job = defineJob({ kind: 'test.note', payload: Item, run: ({ payload }) => note(payload.name) })
      for (const [scope, target] of [
        ['stream', 'box'],
        ['kind', 'test.note'],
        ['all', ''],
      ] as const) {
        await withEngine([job], async (engine, ledger) => {
          await engine.streams.open('box')
          await engine.start()
          await engine.pause(scope, target)
          await engine.enqueue(job, { name: 'held' }, { stream: 'box' })
          if (scope === 'stream') {
            await engine.enqueue(job, { name: 'other stream' })
            while (!(await effects(ledger))['other stream'])
              await new Promise((resolve) => setImmediate(resolve))
          }
          const before = await effects(ledger)
          assert.equal(before.held, undefined)
          await engine.resume(scope, target)
          await engine.drained()
          assert.equal((await effects(ledger)).held, 1)
        })
      }
    })

    test('jobs already claimed are given back when their stream is paused', async () => {
      const running = gate()
      const release = gate()
      const job = defineJob({
        kind: 'test.note',
        payload: Item,
        run: async ({ payload }) => {
          running.open()
          await release.opened
          return note(payload.name)
        },
      })
      await withEngine(
        [job],
        async (engine, ledger) => {
          await engine.streams.open('box')
          await engine.enqueueMany(
            job,
            ['a', 'b', 'c', 'd'].map((n) => ({ name: n })),
            { stream: 'box' },
          )
          await engine.start()
          await running.opened
          await engine.pause('stream', 'box')
          while (engine.window.waiting.interactive > 0) await new Promise((resolve) => setImmediate(resolve))
          release.open()
          while (engine.window.size > 0) await new Promise((resolve) => setImmediate(resolve))
          assert.equal(Object.keys(await effects(ledger)).length, 1)
          assert.equal((await ledger.jobs({ state: 'pending' })).length, 3)
        },
        { workers: 1 },
      )
    })

    test('a job waits for its dependencies, and `followUp` runs after all children', async () => {
      const order: string[] = []
      const step: AnyJobKind = defineJob({
        kind: 'test.step',
        payload: Item,
        run: ({ payload }): Outcome | undefined => {
          order.push(payload.name)
          if (payload.name !== 'fan') return undefined
          return {
            jobs: ['x', 'y', 'z'].map((n) => request(step, { name: n })),
            followUp: request(step, { name: 'join' }),
          }
        },
      })
      await withEngine([step], async (engine) => {
        await engine.write({
          jobs: [
            request(step, { name: 'last' }, { after: ['b', 'c'] }),
            request(step, { name: 'b' }, { ref: 'b', after: ['a'] }),
            request(step, { name: 'c' }, { ref: 'c', after: ['a'] }),
            request(step, { name: 'a' }, { ref: 'a' }),
            request(step, { name: 'fan' }),
          ],
        })
        await engine.start()
        await engine.drained()
        const at = (n: string): number => order.indexOf(n)
        assert.equal(order.length, 9)
        assert.ok(at('a') < at('b') && at('a') < at('c') && at('b') < at('last') && at('c') < at('last'))
        assert.ok(Math.max(at('x'), at('y'), at('z')) < at('join'))
      })
    })

    test('a throttled job comes again after the pause and has lost no attempt', async () => {
      let tries = 0
      const job = defineJob({
        kind: 'test.throttled',
        payload: Item,
        run: () => {
          tries += 1
          if (tries <= 8) throw new TidemarkError('slow down', { kind: 'throttled', retryAfterMs: 1 })
        },
      })
      await withEngine([job], async (engine, ledger) => {
        const { id } = await engine.enqueue(job, { name: 'x' })
        await engine.start()
        await engine.drained()
        const detail = await ledger.job(id)
        assert.deepEqual([detail!.job.state, detail!.job.failures, tries], ['done', 0, 9])
      })
    })

    test('a job out of budget fails, keeps its errors, blocks its segment, and can be tried again', async () => {
      let broken = true
      const job = defineJob({
        kind: 'test.flaky',
        payload: Item,
        attempts: 3,
        run: () => {
          if (broken) throw new TidemarkError('no luck', { kind: 'transient' })
          return { stored: 1 }
        },
      })
      await withEngine([job], async (engine, ledger) => {
        const stream = await engine.streams.open('box')
        const [{ id }] = (await engine.write({
          segments: [{ streamId: stream.id, from: 0, to: 5, ref: 's' }],
          counts: [{ segment: 's', listed: 1, seal: true }],
          jobs: [request(job, { name: 'x' }, { stream: 'box', segment: 's' })],
        })) as unknown as [{ id: number }]
        await engine.start()
        await engine.drained()
        assert.equal(await stateOf(ledger, id), 'failed')
        assert.equal((await ledger.job(id))!.errors.length, 3)
        assert.equal(Number((await ledger.streams())[0]!.mark_at), 0, 'the mark waits')
        broken = false
        assert.equal(await engine.retry(id), 1)
        await engine.drained()
        assert.equal(await stateOf(ledger, id), 'done')
        assert.equal(Number((await ledger.streams())[0]!.mark_at), 5)
      })
    })

    test('an auth error pauses its stream and tells why; other streams go on', async () => {
      let signedIn = false
      const job = defineJob({
        kind: 'test.call',
        payload: Item,
        run: ({ payload, stream }) => {
          if (stream === 'out' && !signedIn) throw new TidemarkError('token revoked', { kind: 'auth' })
          return note(payload.name)
        },
      })
      await withEngine([job], async (engine, ledger) => {
        const paused = new Promise<NumberedEvent>((resolve) => {
          engine.events.on((event) => event.type === 'pause' && resolve(event), { jobs: false })
        })
        await engine.streams.open('out')
        await engine.streams.open('in')
        await engine.enqueue(job, { name: 'x' }, { stream: 'out' })
        await engine.start()
        const event = await paused
        assert.match((event as { reason: string }).reason, /token revoked/)
        assert.equal((event as { code: string }).code, 'sign-in')
        await engine.enqueue(job, { name: 'y' }, { stream: 'in' })
        while (!(await effects(ledger)).y) await new Promise((resolve) => setImmediate(resolve))
        assert.equal((await effects(ledger)).x, undefined)
        signedIn = true
        assert.equal((await ledger.jobs({ stream: 'out' }))[0]!.failures, 0)
      })
    })

    test('a job that commits page by page resumes from its last checkpoint after an interruption', async () => {
      const interrupted = gate()
      const pages: number[] = []
      let first = true
      const job = defineJob({
        kind: 'test.list',
        payload: Item,
        run: async (ctx) => {
          let page = (ctx.checkpoint as number | null) ?? 0
          for (; page < 5; page++) {
            if (page === 3 && first) {
              first = false
              interrupted.open()
              await new Promise((_, reject) =>
                ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)),
              )
            }
            pages.push(page)
            await ctx.commit({ ...note(`page ${page}`), checkpoint: page + 1 })
          }
        },
      })
      const { ledger, close } = await openFresh()
      await ledger.migrateApp('test', [
        [`CREATE TABLE effects (name TEXT PRIMARY KEY, times INTEGER NOT NULL)`],
      ])
      const one = await createEngine({ ledger, jobs: [job] })
      const { id } = await one.enqueue(job, { name: 'x' })
      await one.start()
      await interrupted.opened
      await one.stop()
      const between = (await ledger.job(id))!.job
      assert.deepEqual([between.state, between.checkpoint, between.failures], ['pending', '3', 0])
      const two = await createEngine({ ledger, jobs: [job] })
      await two.start()
      await two.drained()
      await two.stop()
      assert.deepEqual(pages, [0, 1, 2, 3, 4])
      assert.deepEqual(Object.values(await effects(ledger)), [1, 1, 1, 1, 1])
      await close()
    })

    test('no more jobs of a kind run at once than its concurrency allows, and the window does not fill with them', async () => {
      let now = 0
      let most = 0
      const narrow = defineJob({
        kind: 'test.narrow',
        payload: Item,
        concurrency: 2,
        run: async () => {
          most = Math.max(most, ++now)
          await new Promise((resolve) => setImmediate(resolve))
          now -= 1
        },
      })
      await withEngine([narrow], async (engine) => {
        await engine.enqueueMany(
          narrow,
          Array.from({ length: 60 }, (_, i) => ({ name: `${i}` })),
        )
        await engine.start()
        await engine.drained()
        assert.equal(most, 2)
      })
    })

    test('kinds that this process does not know are left for others', async () => {
      const known = defineJob({ kind: 'test.known', payload: Item, run: ({ payload }) => note(payload.name) })
      await withEngine([known], async (engine, ledger) => {
        const [foreign] = await ledger.write({ jobs: [{ kind: 'other.job', payload: '{}' }] })
        await engine.enqueue(known, { name: 'mine' })
        await engine.start()
        while (!(await effects(ledger)).mine) await new Promise((resolve) => setImmediate(resolve))
        assert.equal(await stateOf(ledger, foreign!.id), 'pending')
      })
    })

    test('a payload that does not parse is refused at the door, and fails with its reason if it got in earlier', async () => {
      const job = defineJob({ kind: 'test.note', payload: Item, run: ({ payload }) => note(payload.name) })
      await withEngine([job], async (engine, ledger) => {
        await assert.rejects(engine.enqueue(job, { nam: 'x' } as unknown as { name: string }), UsageError)
        const [old] = await ledger.write({ jobs: [{ kind: 'test.note', payload: '{"nam":"x"}' }] })
        await engine.start()
        await engine.drained()
        const detail = await ledger.job(old!.id)
        assert.equal(detail!.job.state, 'failed')
        assert.match(detail!.job.error!, /does not fit test.note/)
      })
    })

    test('work from an app transaction appears with its commit and not without', async () => {
      const job = defineJob({ kind: 'test.note', payload: Item, run: ({ payload }) => note(payload.name) })
      await withEngine([job], async (engine, ledger) => {
        await engine.start()
        await assert.rejects(
          engine.transaction(async (tx) => {
            await tx.enqueue([request(job, { name: 'never' })])
            throw new Error('changed my mind')
          }),
          /changed my mind/,
        )
        await engine.transaction(async (tx) => {
          await tx.run(`INSERT INTO effects(name, times) VALUES ('mine', 1)`)
          await tx.enqueue([request(job, { name: 'job' })])
        })
        await engine.drained()
        assert.deepEqual(await effects(ledger), { job: 1, mine: 1 })
      })
    })

    test('a process whose lease is lost stops its jobs, commits nothing of them, and goes on with a new lease', async () => {
      const running = gate()
      let first = true
      const job = defineJob({
        kind: 'test.slow',
        payload: Item,
        run: async ({ signal, payload }) => {
          if (first) {
            first = false
            running.open()
            await new Promise((resolve) => signal.addEventListener('abort', resolve))
            return note('from the lost lease')
          }
          return note(payload.name)
        },
      })
      await withEngine(
        [job],
        async (engine, ledger) => {
          const { id } = await engine.enqueue(job, { name: 'x' })
          await engine.start()
          const owner = engine.owner
          await running.opened
          // As another process would, when this one has been silent for too long.
          const { owners } = await ledger.reclaim((worker) => worker.id === owner)
          assert.deepEqual(owners, [owner])
          await engine.drained()
          assert.notEqual(engine.owner, owner)
          assert.deepEqual(await effects(ledger), { x: 1 })
          assert.equal((await ledger.job(id))!.job.failures, 0)
        },
        { leaseMs: 400 },
      )
    })

    test('a delayed job starts when its time has come, not before', async () => {
      let startedAt = 0
      const job = defineJob({
        kind: 'test.later',
        payload: Item,
        run: ({ clock }) => {
          startedAt = clock.now()
        },
      })
      await withEngine([job], async (engine, ledger) => {
        await engine.start()
        const runAt = ledger.now() + 150
        await engine.enqueue(job, { name: 'x' }, { runAt })
        await engine.drained()
        assert.ok(startedAt >= runAt - 2, `${runAt - startedAt} ms early`)
      })
    })
  })
}
