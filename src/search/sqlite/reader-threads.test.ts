import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import { ASIDE_MAX, QUESTION_MS_MAX, type ReaderThread, ReaderThreads, SLOW_MS } from './reader-threads.ts'

/** Threads that answer when they are told to, and go when they are told to. */
function world({ startSlowly = false } = {}) {
  const clock = new FakeClock()
  const started: FakeThread[] = []
  const threads = new ReaderThreads({
    clock,
    start: () => {
      const thread = new FakeThread()
      if (!startSlowly) thread.started.resolve(true)
      started.push(thread)
      return thread
    },
  })
  const outcomes = new Map<string, unknown>()
  const ask = (name: string): void => {
    threads.ask<string>('search', name).then(
      (value) => outcomes.set(name, value),
      (thrown) => outcomes.set(name, (thrown as { code: string }).code),
    )
  }
  return { clock, started, threads, outcomes, ask }
}

class FakeThread implements ReaderThread {
  readonly open: string[] = []
  readonly started = Promise.withResolvers<unknown>()
  readonly #answers: { resolve: (value: never) => void; reject: (thrown: unknown) => void }[] = []
  readonly #gone = Promise.withResolvers<void>()
  isEnding = false

  ask<Value>(method: string, args: unknown): Promise<Value> {
    if (method === 'ready') return this.started.promise as Promise<Value>
    this.open.push(args as string)
    return new Promise((resolve, reject) => this.#answers.push({ resolve, reject }))
  }

  answer(): void {
    this.#answers.shift()!.resolve(`answer to ${this.open.shift()}` as never)
  }

  /** Native code has come to its end. */
  go(): void {
    for (const { reject } of this.#answers.splice(0))
      reject(Object.assign(new Error('gone'), { code: 'gone' }))
    this.#gone.resolve()
  }

  end(): Promise<void> {
    this.isEnding = true
    return this.#gone.promise
  }

  async stop(): Promise<void> {}
}

const settled = () => new Promise((resolve) => setImmediate(resolve))

test('questions that are answered soon share one thread, one after another', async () => {
  const { started, outcomes, ask } = world()
  ask('a')
  ask('b')
  await settled()
  assert.deepEqual(started[0]!.open, ['a'])
  started[0]!.answer()
  await settled()
  assert.deepEqual(started[0]!.open, ['b'])
  started[0]!.answer()
  await settled()
  assert.deepEqual(
    [...outcomes],
    [
      ['a', 'answer to a'],
      ['b', 'answer to b'],
    ],
  )
  assert.equal(started.length, 1)
})

test('a question that takes long holds up nobody, and is still answered', async () => {
  const { clock, started, outcomes, ask } = world()
  ask('slow')
  ask('fast')
  await clock.advance(SLOW_MS)
  assert.deepEqual(started[1]!.open, ['fast'])
  started[1]!.answer()
  await settled()
  assert.equal(outcomes.get('fast'), 'answer to fast')
  started[0]!.answer()
  await settled()
  assert.equal(outcomes.get('slow'), 'answer to slow')
  assert.ok(started[0]!.isEnding)
  ask('next')
  await settled()
  assert.deepEqual(started[1]!.open, ['next'])
})

test('the time that a thread takes to start is not the time of a question', async () => {
  const { clock, started, outcomes, ask } = world({ startSlowly: true })
  ask('first')
  await clock.advance(2 * QUESTION_MS_MAX)
  assert.deepEqual([started.length, outcomes.size], [1, 0])
  started[0]!.started.resolve(true)
  await settled()
  started[0]!.answer()
  await settled()
  assert.equal(outcomes.get('first'), 'answer to first')
})

test('a thread that does not start refuses its question, and the next one has another', async () => {
  const { started, outcomes, ask } = world({ startSlowly: true })
  ask('first')
  ask('second')
  started[0]!.started.reject(Object.assign(new Error('no memory'), { code: 'search-thread' }))
  await settled()
  assert.equal(outcomes.get('first'), 'search-thread')
  started[1]!.started.resolve(true)
  await settled()
  assert.deepEqual(started[1]!.open, ['second'])
})

test('a question that takes too long is refused with that reason, and its thread ends', async () => {
  const { clock, started, outcomes, ask } = world()
  ask('hostile')
  await clock.advance(QUESTION_MS_MAX)
  await settled()
  assert.equal(outcomes.get('hostile'), 'search-took-too-long')
  assert.ok(started[0]!.isEnding)
  ask('next')
  await settled()
  assert.deepEqual(started[1]!.open, ['next'])
})

test('threads that have not gone yet count: no more are set aside than there may be', async () => {
  const { clock, started, outcomes, ask } = world()
  for (let i = 0; i <= ASIDE_MAX; i++) ask(`hostile ${i}`)
  ask('last')
  for (let i = 0; i <= ASIDE_MAX; i++) await clock.advance(SLOW_MS)
  assert.equal(started.length, ASIDE_MAX + 1)
  assert.equal(outcomes.size, 0)
  started[0]!.answer()
  await settled()
  // It has answered, but is still there.
  await clock.advance(SLOW_MS)
  assert.equal(started.length, ASIDE_MAX + 1)
  started[0]!.go()
  await settled()
  assert.deepEqual(started[ASIDE_MAX + 1]!.open, ['last'])
})

test('hostile questions pile up no threads: who waits is refused until one has gone', async () => {
  const { clock, started, outcomes, ask } = world()
  for (let i = 0; i <= ASIDE_MAX; i++) ask(`hostile ${i}`)
  for (let i = 0; i <= ASIDE_MAX; i++) await clock.advance(SLOW_MS)
  ask('waiting')
  await clock.advance(QUESTION_MS_MAX)
  await settled()
  for (let i = 0; i <= ASIDE_MAX; i++) assert.equal(outcomes.get(`hostile ${i}`), 'search-took-too-long')
  assert.equal(outcomes.get('waiting'), 'search-busy')
  for (let i = 0; i < 10; i++) {
    ask(`later ${i}`)
    await clock.advance(QUESTION_MS_MAX)
    assert.equal(outcomes.get(`later ${i}`), 'search-busy')
  }
  assert.equal(started.length, ASIDE_MAX + 1)
  assert.ok(started.every(({ isEnding }) => isEnding))
  started[0]!.go()
  await settled()
  ask('next')
  await settled()
  assert.deepEqual(started[ASIDE_MAX + 1]!.open, ['next'])
})

test('the thread that answers is replaced when it has gone itself', async () => {
  const { clock, started, outcomes, ask } = world()
  for (let i = 0; i <= ASIDE_MAX; i++) ask(`hostile ${i}`)
  await clock.advance(QUESTION_MS_MAX + (ASIDE_MAX + 1) * SLOW_MS)
  started[ASIDE_MAX]!.go()
  await settled()
  ask('next')
  await settled()
  started[ASIDE_MAX + 1]!.answer()
  await settled()
  assert.equal(outcomes.get('next'), 'answer to next')
  assert.equal(started.length, ASIDE_MAX + 2)
})

test('a slow question is set aside as soon as a place is free', async () => {
  const { clock, started, outcomes, ask } = world()
  for (let i = 0; i <= ASIDE_MAX; i++) ask(`slow ${i}`)
  for (let i = 0; i <= ASIDE_MAX; i++) await clock.advance(SLOW_MS)
  ask('fast')
  await settled()
  assert.equal(started.length, ASIDE_MAX + 1)
  started[0]!.answer()
  started[0]!.go()
  await settled()
  assert.deepEqual(started[ASIDE_MAX + 1]!.open, ['fast'])
  started[ASIDE_MAX]!.answer()
  await settled()
  assert.equal(outcomes.get(`slow ${ASIDE_MAX}`), `answer to slow ${ASIDE_MAX}`)
})

test('after the end nobody is kept waiting', async () => {
  const { threads, outcomes, ask } = world()
  ask('open')
  ask('waiting')
  await threads.stop()
  ask('late')
  await settled()
  assert.equal(outcomes.get('waiting'), 'search-thread')
  assert.equal(outcomes.get('late'), 'search-thread')
})
