/** What an engine refuses from the program that uses it: at once, with the place, and alike on every database. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { z } from 'zod'
import { TidemarkError, UsageError } from '../base/errors.ts'
import { engineOn, type OpenFresh } from './engine.suite.ts'
import type { Engine } from './engine.ts'
import type { EnqueueOptions, Outcome } from './job-kind.ts'
import { defineJob, request } from './kinds.ts'

class Point {
  x = 1
}

const anything = defineJob({ kind: 'test.anything', payload: z.unknown(), run: () => undefined })
const plain = defineJob({ kind: 'test.plain', payload: z.object({}), run: () => undefined })

const circle: { name: string; self?: unknown } = { name: 'round' }
circle.self = circle

const unstorable: [what: string, payload: unknown, place: RegExp][] = [
  ['undefined', undefined, /it is undefined/],
  ['undefined in a list', { list: [1, undefined] }, /at list\[1\] it is undefined/],
  ['a hole in a list', new Array(2), /at \[0\] it is undefined/],
  ['a Date', { a: { at: new Date(0) } }, /at a\.at it is a Date/],
  ['a Map', new Map([[1, 2]]), /it is a Map/],
  ['a Set', { seen: new Set([1]) }, /at seen it is a Set/],
  ['a BigInt', { n: 10n }, /at n it is 10n \(a BigInt\)/],
  ['an instance of a class', [new Point()], /at \[0\] it is a Point/],
  ['bytes', { bytes: Buffer.from('x') }, /at bytes it is a Buffer/],
  ['a function', { fn: () => 1 }, /at fn it is a function/],
  ['a symbol', Symbol('s'), /it is a symbol/],
  ['NaN', { n: Number.NaN }, /at n it is NaN/],
  ['Infinity', [Number.POSITIVE_INFINITY], /at \[0\] it is Infinity/],
  ['a circle', circle, /self\.self.* nested too deep, or in a circle/],
]

const wrongOptions: [what: string, options: EnqueueOptions, message: RegExp][] = [
  ['a start at NaN', { runAt: Number.NaN }, /runAt of test\.plain must be a whole number, not NaN/],
  ['a start at a fraction of a millisecond', { runAt: 1.5 }, /runAt of test\.plain .* not 1\.5/],
  ['a start at infinity', { runAt: Number.POSITIVE_INFINITY }, /runAt of test\.plain .* not Infinity/],
  ['a start as a Date', { runAt: new Date(0) as unknown as number }, /runAt of test\.plain .* not a Date/],
  ['a fractional priority', { priority: 0.5 }, /priority of test\.plain .* not 0\.5/],
  ['a size of NaN', { size: Number.NaN }, /size of test\.plain .* not NaN/],
  ['a negative size', { size: -1 }, /size of test\.plain must be a whole number of at least 0, not -1/],
  ['half an item', { items: 0.5 }, /items of test\.plain .* not 0\.5/],
  ['NUL in a key', { key: 'a\0b' }, /The key of test\.plain contains a NUL/],
  [
    'half a surrogate pair in a key',
    { key: 'a\ud800' },
    /The key of test\.plain contains half of a surrogate/,
  ],
  ['a number as a key', { key: 7 as unknown as string }, /The key of test\.plain must be a text, not 7/],
  ['NUL in the name of a stream', { stream: 'a\0' }, /The name of a stream contains a NUL/],
  ['a lane that there is not', { lane: 'fast' as 'bulk' }, /The lane of test\.plain .* not "fast"/],
  ['a fractional job to wait for', { after: [0.5] }, /waits for must be a whole number/],
  ['a fractional segment', { segment: 1.5 }, /segment of test\.plain must be a whole number/],
  [
    'a key that no index takes',
    { key: 'ä'.repeat(1_001) },
    /The key of test\.plain is longer than 2000 bytes/,
  ],
  ['such a stream', { stream: 'b'.repeat(2_001) }, /The name of a stream is longer than 2000 bytes/],
  ['a misspelled option', { runat: 5 } as EnqueueOptions, /test\.plain: there is no field called "runat"/],
]

const wrongOutcomes: [what: string, outcome: unknown, message: RegExp][] = [
  [
    'a misspelled field',
    { effect: () => {} },
    /What test\.wrong returned: there is no field called "effect"/,
  ],
  ['a misspelled delay', { again: { after: 5 } }, /again of test\.wrong: there is no field called "after"/],
  ['a delay of NaN', { again: { afterMs: Number.NaN } }, /afterMs of test\.wrong .* not NaN/],
  ['a misspelled count', { counts: [{ segment: 1, lsited: 1 }] }, /no field called "lsited"/],
  ['a misspelled bad item', { bad: [{ itm: 'a', reason: 'b' }] }, /no field called "itm"/],
  [
    'a job made by hand',
    { jobs: [{ kind: 'test.plain', payload: {} }] },
    /jobs of test\.wrong are made by request/,
  ],
  ['a job that is no list', { jobs: {} }, /jobs of test\.wrong must be a list, not an object/],
  [
    'effects that are a text',
    { effects: 'INSERT' },
    /effects of test\.wrong must be a function, not "INSERT"/,
  ],
  ['a count of NaN', { stored: Number.NaN }, /stored of test\.wrong must be a whole number, not NaN/],
  ['half an item', { gone: 0.5 }, /gone of test\.wrong must be a whole number, not 0\.5/],
  ['a number as a note', { note: 5 }, /note of test\.wrong must be a text, not 5/],
  ['a text as a seal', { seal: 'yes' }, /seal of test\.wrong must be true or false, not "yes"/],
  ['a text', 'done', /What test\.wrong returned: "done" stands where an object/],
  ['a list', [], /What test\.wrong returned: an array stands where/],
]

export function inputContract(name: string, openFresh: OpenFresh): void {
  const withEngine = engineOn(openFresh)

  async function refused(promise: Promise<unknown>, message: RegExp): Promise<void> {
    const error = await promise.then(
      () => assert.fail(`it was taken: ${message}`),
      (thrown: unknown) => thrown,
    )
    assert.ok(error instanceof UsageError, String(error))
    assert.match(error.message, message)
  }
  const noJobs = async (engine: Engine): Promise<void> => assert.equal((await engine.ledger.jobs()).length, 0)

  describe(`what an engine on ${name} refuses`, () => {
    test('payloads that JSON would change are refused when they are enqueued', async () => {
      await withEngine([anything], async (engine) => {
        for (const [what, payload, place] of unstorable) {
          await refused(engine.enqueue(anything, payload), place)
          await refused(engine.write({ followUp: request(anything, payload) }), place)
          await refused(engine.schedule(what, 'every 1h', anything, payload), place)
        }
        await noJobs(engine)
      })
    })

    test('a payload whose schema does not take what it has made is refused when it is enqueued', async () => {
      const dated = defineJob({
        kind: 'test.dated',
        payload: z.object({ at: z.date() }),
        run: () => undefined,
      })
      const length = z.string().transform((text) => text.length)
      const measured = defineJob({ kind: 'test.measured', payload: length, run: () => undefined })
      await withEngine([dated, measured], async (engine) => {
        await refused(engine.enqueue(dated, { at: new Date(0) }), /test\.dated .* at at it is a Date/)
        const text = 'four' as unknown as number
        await refused(engine.enqueue(measured, text), /test\.measured is not valid a second time/)
        await noJobs(engine)
      })
    })

    test('a handler is given exactly what was enqueued', async () => {
      const seen: unknown[] = []
      const Kept = z.object({ text: z.string(), at: z.coerce.date(), left: z.string().optional() })
      const kept = defineJob({
        kind: 'test.kept',
        payload: Kept,
        run: ({ payload }) => void seen.push(payload),
      })
      const payload = { text: 'NUL \0, half a pair \ud800, "\\u0000"', at: new Date(7), left: undefined }
      await withEngine([kept], async (engine) => {
        await engine.enqueue(kept, payload)
        await engine.start()
        await engine.drained()
      })
      assert.deepEqual(seen, [{ text: payload.text, at: payload.at }])
    })

    test('times, numbers, keys and options that are not possible are refused when they are enqueued', async () => {
      await withEngine([plain], async (engine) => {
        for (const [, options, message] of wrongOptions) {
          await refused(engine.enqueue(plain, {}, options), message)
          await refused(
            engine.transaction((tx) => tx.enqueue([request(plain, {}, options)])),
            message,
          )
        }
        await refused(engine.write({ job: [] } as object), /there is no field called "job"/)
        await refused(engine.schedule('a\0', 'every 1h', plain, {}), /The name of a schedule contains a NUL/)
        await refused(engine.write({ jobs: [{ kind: 'test.plain' }] } as object), /made by request/)
        await refused(engine.pause('sream' as 'stream', 'x'), /must be one of all, stream, kind, not "sream"/)
        for (const id of [Number.NaN, 1.5, 'x' as unknown as number]) {
          await refused(engine.cancel(id), /There is no job #/)
          await refused(engine.retry(id), /There is no job #/)
        }
        await refused(engine.pause('stream', 'a\0'), /What is paused \(stream\) contains a NUL/)
        await noJobs(engine)
      })
    })

    test('segments and counts that are not possible are refused', async () => {
      await withEngine([plain], async (engine, ledger) => {
        const { id: streamId } = await engine.streams.open('box')
        for (const to of [Number.NaN, 1.5, Number.POSITIVE_INFINITY])
          await refused(
            engine.write({ segments: [{ streamId, from: 0, to }] }),
            /end of a segment of box must be a whole/,
          )
        const marked = { streamId, from: 0, to: 1, mark: 'a\0' }
        await refused(engine.write({ segments: [marked] }), /The mark of a segment of box contains a NUL/)
        await engine.write({ segments: [{ streamId, from: 0, to: 9 }] })
        const [segment] = await ledger.segments(streamId)
        for (const listed of [Number.NaN, 0.5])
          await refused(
            engine.write({ counts: [{ segment: segment!.id, listed }] }),
            /listed of segment \d+ must be a whole/,
          )
        await refused(
          engine.write({ cursors: [{ streamId, value: 'a\0' }] }),
          /The cursor of a stream contains a NUL/,
        )
      })
    })

    test('a job that returns what no outcome has fails at once, without a second run', async () => {
      let runs = 0
      const wrong = defineJob({
        kind: 'test.wrong',
        payload: z.object({ which: z.number() }),
        // A batch, too: no item is at fault, so that it is not taken apart.
        items: { of: () => ['a', 'b'], only: (payload) => payload },
        run: ({ payload }) => {
          runs += 1
          return wrongOutcomes[payload.which]![1] as Outcome
        },
      })
      await withEngine([wrong], async (engine, ledger) => {
        const added = await engine.enqueueMany(
          wrong,
          wrongOutcomes.map((_, which) => ({ which })),
        )
        await engine.start()
        await engine.drained()
        for (const [at, [what, , message]] of wrongOutcomes.entries()) {
          const { job } = (await ledger.job(added[at]!.id))!
          assert.equal(job.state, 'failed', what)
          assert.match(JSON.parse(job.error!).message, message, what)
        }
        assert.equal(runs, wrongOutcomes.length)
      })
    })

    test('a checkpoint that JSON would change fails its job with the place', async () => {
      const job = defineJob({
        kind: 'test.saving',
        payload: z.object({}),
        run: async ({ save }) => await save({ at: [new Date(0)] }),
      })
      await withEngine([job], async (engine, ledger) => {
        const { id } = await engine.enqueue(job, {})
        await engine.start()
        await engine.drained()
        const { error } = (await ledger.job(id))!.job
        assert.match(
          error!,
          /The checkpoint of test\.saving does not survive as JSON: at at\[0\] it is a Date/,
        )
      })
    })

    test('texts for people may hold anything: what cannot be stored is replaced', async () => {
      const Which = z.object({ which: z.enum(['throws', 'notes', 'isolates']) })
      const job = defineJob({
        kind: 'test.texts',
        payload: Which,
        run: ({ payload: { which } }): Outcome => {
          if (which === 'throws') throw new TidemarkError('bad \0 byte \ud800', { kind: 'permanent' })
          return which === 'notes' ? { note: 'a\0b' } : { bad: [{ item: 'i\0', reason: 'r\0' }] }
        },
      })
      await withEngine([job], async (engine, ledger) => {
        const [thrown, noted] = await engine.enqueueMany(job, [
          { which: 'throws' },
          { which: 'notes' },
          { which: 'isolates' },
        ])
        await engine.start()
        await engine.drained()
        const failed = (await ledger.job(thrown!.id))!
        assert.deepEqual([failed.job.state, failed.errors[0]!.message], ['failed', 'bad \ufffd byte \ufffd'])
        assert.equal((await ledger.job(noted!.id))!.job.note, 'a\ufffdb')
        assert.deepEqual(
          (await ledger.badItems()).map(({ item, reason }) => [item, reason]),
          [['i\ufffd', 'r\ufffd']],
        )
      })
    })

    test('parameters of a statement that only one database would take, or too few or many, are refused', async () => {
      const wrong: [params: unknown[], message: RegExp][] = [
        [['a'], /has 2 places for parameters \(\?\), and was given 1/],
        [['a', 1, 2], /has 2 places for parameters \(\?\), and was given 3/],
        [['a', Number.NaN], /Parameter 2 of a statement is NaN/],
        [[new Date(0), 1], /Parameter 1 of a statement is a Date/],
        [['a', true], /Parameter 2 of a statement is true/],
        [[{}, 1], /Parameter 1 of a statement is an object/],
      ]
      const insert = `INSERT INTO effects(name, times) VALUES (?, ?) -- not a place: ?`
      const effect = defineJob({
        kind: 'test.effect',
        payload: z.object({ which: z.number() }),
        attempts: 1,
        run: ({ payload: { which } }): Outcome => ({
          effects: async (tx) => void (await tx.run(insert, wrong[which]![0] as string[])),
        }),
      })
      await withEngine([effect], async (engine, ledger) => {
        for (const [params, message] of wrong)
          await refused(
            engine.transaction((tx) => tx.run(insert, params as string[])),
            message,
          )
        const added = await engine.enqueueMany(
          effect,
          wrong.map((_, which) => ({ which })),
        )
        await engine.start()
        await engine.drained()
        for (const [at, [, message]] of wrong.entries()) {
          const { job } = (await ledger.job(added[at]!.id))!
          assert.equal(job.state, 'failed')
          assert.match(JSON.parse(job.error!).message, message)
        }
      })
    })

    test('an item with a name that no index takes is isolated under a shorter one, and mended by it', async () => {
      const names = ['x', 'y'].map((last) => `${'ä'.repeat(3_000)}${last}`)
      let mended = false
      const job = defineJob({
        kind: 'test.long',
        payload: z.object({ items: z.array(z.string()) }),
        items: { of: ({ items }) => items, only: (_, items) => ({ items: [...items] }) },
        run: (): Outcome | undefined =>
          mended ? undefined : { bad: names.map((item) => ({ item, reason: 'long' })) },
      })
      await withEngine([job], async (engine, ledger) => {
        await engine.enqueue(job, { items: names })
        await engine.start()
        await engine.drained()
        const found = await ledger.badItems()
        assert.equal(new Set(found.map(({ item }) => item)).size, 2)
        for (const { item } of found) assert.match(item, /^ä{900,1000}… [0-9a-f]{32}$/)
        mended = true
        assert.equal(await ledger.retryBad(), 2)
        engine.wake()
        await engine.drained()
        assert.deepEqual(await ledger.badItems(), [])
      })
    })
  })
}
