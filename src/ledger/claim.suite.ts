/** The contract of claiming: shares, priorities, lanes, kinds, pauses, and the lease that fences what follows. */
import assert from 'node:assert/strict'
import type { ClaimedJob, NewJob, Tx } from './contract.ts'
import { LEASE_MS, type LedgerFixture, type LedgerTest } from './ledger-fixture.suite.ts'
import type { Settling } from './states.ts'

const job = (more: Partial<NewJob> = {}): NewJob => ({ kind: 'job', payload: '{}', lane: 'bulk', ...more })
const times = <T>(n: number, make: (index: number) => T): T[] =>
  Array.from({ length: n }, (_, index) => make(index))
const ids = (jobs: readonly ClaimedJob[]): number[] => jobs.map((one) => one.id).sort((a, b) => a - b)

function perStream(jobs: readonly ClaimedJob[]): Record<number, number> {
  const counts: Record<number, number> = {}
  for (const { streamId } of jobs) counts[streamId] = (counts[streamId] ?? 0) + 1
  return counts
}

export function claimContract(test: LedgerTest): void {
  test('each lane is claimed up to its own room', async (fixture) => {
    await fixture.write({ jobs: [...times(5, () => job({ lane: 'interactive' })), ...times(5, () => job())] })
    const { claimed, backlog } = await fixture.cycle({
      claim: fixture.claimRequest({ room: { interactive: 2, bulk: 9 } }),
    })
    assert.deepEqual(claimed.map((one) => one.lane).sort(), [
      ...times(5, () => 'bulk'),
      ...times(2, () => 'interactive'),
    ])
    assert.deepEqual(backlog, { interactive: true, bulk: false })
  })

  test('no room claims nothing', async (fixture) => {
    await fixture.add()
    assert.deepEqual(await fixture.claim({ n: 0 }), [])
  })

  test('a job is claimed once: it has at most one live lease', async (fixture) => {
    await fixture.write({ jobs: times(50, () => job()) })
    const second = await fixture.worker('second')
    const claims = await Promise.all([fixture.claim({ n: 40 }), fixture.claim({ n: 40, owner: second })])
    const all = claims.flat().map((one) => one.id)
    assert.equal(all.length, 50)
    assert.equal(new Set(all).size, 50)
  })

  test('kinds that this process does not know are left for others', async (fixture) => {
    const [known, unknown] = [await fixture.add(), await fixture.add({ kind: 'newer' })]
    assert.deepEqual(await fixture.ledger.hasReady({ kinds: new Set(['nothing']) }), {
      interactive: false,
      bulk: false,
    })
    assert.deepEqual(ids(await fixture.claim({ kinds: ['job'] })), [known])
    assert.deepEqual(ids(await fixture.claim({ kinds: ['newer'] })), [unknown])
  })

  test('closed kinds are left alone until they open', async (fixture) => {
    const [open, closed] = [await fixture.add(), await fixture.add({ kind: 'other' })]
    const kinds = new Set(['job', 'other'])
    assert.deepEqual(ids(await fixture.claim({ closedKinds: ['other'] })), [open])
    assert.deepEqual(
      await fixture.ledger.hasReady({
        kinds,
        roomFor: (queue: { kind: string }) => (queue.kind === 'other' ? 0 : 1),
      }),
      {
        interactive: false,
        bulk: false,
      },
    )
    assert.deepEqual(await fixture.ledger.hasReady({ kinds }), { interactive: true, bulk: false })
    assert.deepEqual(ids(await fixture.claim()), [closed])
  })

  fairness(test)
  priorities(test)
  pauses(test)
}

function fairness(test: LedgerTest): void {
  test('a stream with 5,000 ready jobs leaves another its ten: no stream starves another', async (fixture) => {
    const [big, small] = [await fixture.stream('big'), await fixture.stream('small')]
    await fixture.write({ jobs: times(5_000, () => job({ streamId: big })) })
    await fixture.write({ jobs: times(10, () => job({ streamId: small })) })
    assert.deepEqual(perStream(await fixture.claim({ n: 20 })), { [big]: 10, [small]: 10 })
  })

  test('room that a stream leaves free goes to the others', async (fixture) => {
    const streams = [await fixture.stream('a'), await fixture.stream('b'), await fixture.stream('c')] as const
    const sizes = [100, 2, 7]
    await fixture.write({
      jobs: streams.flatMap((streamId, at) => times(sizes[at]!, () => job({ streamId }))),
    })
    const claimed = await fixture.claim({ n: 30 })
    assert.deepEqual(perStream(claimed), { [streams[0]]: 21, [streams[1]]: 2, [streams[2]]: 7 })
  })

  test('claims of one job at a time serve the streams in turn', async (fixture) => {
    const streams = [await fixture.stream('a'), await fixture.stream('b'), await fixture.stream('c')]
    await fixture.write({ jobs: streams.flatMap((streamId) => times(10, () => job({ streamId }))) })
    const claimed: ClaimedJob[] = []
    for (let n = 0; n < 9; n++) claimed.push(...(await fixture.claim({ n: 1 })))
    assert.deepEqual(Object.values(perStream(claimed)), [3, 3, 3])
  })

  test('of a thousand busy streams, each is served within as many claims as it takes to serve all', async (fixture) => {
    const streams = times(1_000, (n) => n + 1)
    await fixture.write({ jobs: streams.flatMap((streamId) => times(6, () => job({ streamId }))) })
    const served = new Set<number>()
    for (let n = 0; n < 5; n++) for (const one of await fixture.claim({ n: 400 })) served.add(one.streamId)
    assert.equal(served.size, 1_000)
  })

  test('a thousand streams whose work may not start do not hide the one whose work may', async (fixture) => {
    const streams = times(1_000, (n) => n + 1)
    await fixture.write({ jobs: streams.map((streamId) => job({ streamId, kind: 'other' })) })
    const open = await fixture.add({ streamId: streams.at(-1)!, lane: 'bulk' })
    const request = {
      kinds: new Set(['job', 'other']),
      roomFor: (queue: { kind: string }) => (queue.kind === 'other' ? 0 : 1),
    }
    assert.deepEqual(await fixture.ledger.hasReady(request), { interactive: false, bulk: true })
    assert.deepEqual(ids(await fixture.claim({ closedKinds: ['other'] })), [open])
  })
}

function priorities(test: LedgerTest): void {
  test('among the jobs of a stream, higher priority is claimed first', async (fixture) => {
    const added = await fixture.write({ jobs: [0, 5, -3, 5, 9].map((priority) => job({ priority })) })
    const order: number[] = []
    for (let n = 0; n < 5; n++) order.push(...ids(await fixture.claim({ n: 1 })))
    assert.deepEqual(
      order.map((id) => added.findIndex((one) => one.id === id)),
      [4, 1, 3, 0, 2],
    )
  })

  test('priority counts across the kinds of a stream', async (fixture) => {
    await fixture.write({
      jobs: [
        job({ kind: 'alpha', priority: 5 }),
        ...times(20, () => job({ kind: 'alpha' })),
        ...times(3, () => job({ kind: 'beta', priority: 4 })),
      ],
    })
    const claimed = await fixture.claim({ n: 4 })
    assert.deepEqual(claimed.map((one) => `${one.kind} ${one.priority}`).sort(), [
      'alpha 5',
      'beta 4',
      'beta 4',
      'beta 4',
    ])
  })

  test('kinds of equal priority share what their stream may claim', async (fixture) => {
    await fixture.write({
      jobs: [...times(50, () => job({ kind: 'alpha' })), ...times(50, () => job({ kind: 'beta' }))],
    })
    const claimed = await fixture.claim({ n: 10 })
    assert.equal(claimed.filter((one) => one.kind === 'alpha').length, 5)
  })

  test('high priority in one stream takes nothing from another stream', async (fixture) => {
    const [urgent, calm] = [await fixture.stream('urgent'), await fixture.stream('calm')]
    await fixture.write({
      jobs: [
        ...times(50, () => job({ streamId: urgent, priority: 9 })),
        ...times(50, () => job({ streamId: calm })),
      ],
    })
    assert.deepEqual(perStream(await fixture.claim({ n: 10 })), { [urgent]: 5, [calm]: 5 })
  })

  test('a claim with room brings what was given back behind others that are claimed', async (fixture) => {
    await fixture.write({ jobs: times(12, () => job()) })
    const [first] = await fixture.claim({ room: { interactive: 0, bulk: 8 } })
    await fixture.ledger.cycle({ owner: fixture.owner, settle: [{ job: first!, event: 'postpone' }] })
    const rest = await fixture.claim({ room: { interactive: 0, bulk: 20 } })
    assert.equal(rest.length, 5)
    assert.ok(rest.some(({ id }) => id === first!.id))
  })

  test('ready jobs that a claim with room left behind are told as backlog', async (fixture) => {
    const kinds = times(12, (n) => `kind ${n}`)
    await fixture.write({ jobs: kinds.map((kind, priority) => job({ kind, priority })) })
    let left = 12
    for (let n = 0; n < 12; n++) {
      const { claimed, backlog } = await fixture.cycle({ claim: fixture.claimRequest({ kinds }) })
      left -= claimed.length
      assert.ok(left === 0 || backlog.bulk, `${left} were left behind in silence`)
    }
    assert.equal(left, 0)
  })
}

function pauses(test: LedgerTest): void {
  test('a claim brings no more bytes than it asks for, and one job; the rest is told as backlog', async (fixture) => {
    const payload = 'x'.repeat(1_000)
    const all = await fixture.write({ jobs: times(20, () => job({ payload })) })
    const few = await fixture.cycle({ claim: fixture.claimRequest({ bytes: 4_500 }) })
    assert.deepEqual([few.claimed.length, few.backlog.bulk], [5, true])
    assert.deepEqual(
      ids(few.claimed),
      all.slice(0, 5).map(({ id }) => id),
    )
    const one = await fixture.cycle({ claim: fixture.claimRequest({ bytes: 1 }) })
    assert.deepEqual([one.claimed.length, one.claimed[0]!.bytes, one.backlog.bulk], [1, 1_000, true])
    // What a job saved is read with it.
    await fixture.write({ jobs: times(2, () => job({ kind: 'other', payload })) })
    for (const saver of await fixture.claim({ kinds: ['other'] }))
      await fixture.settle(saver, 'postpone', { checkpoint: JSON.stringify('é'.repeat(2_000)) })
    const saved = await fixture.claim({ kinds: ['other'], bytes: 3_000 })
    assert.deepEqual(
      saved.map((claimed) => claimed.bytes),
      [5_002],
    )
    const rest = await fixture.cycle({ claim: fixture.claimRequest() })
    assert.deepEqual([rest.claimed.length, rest.backlog.bulk], [15, false])
  })

  test('where large payloads use up the bytes of a claim, streams and kinds take turns', async (fixture) => {
    const streams = [await fixture.stream('a'), await fixture.stream('b')]
    const payload = 'x'.repeat(1_000)
    for (const streamId of streams)
      for (const kind of ['alpha', 'beta'])
        await fixture.write({ jobs: times(3, () => job({ streamId, kind, payload })) })
    const served: string[] = []
    for (let n = 0; n < 4; n++) {
      const [one, ...more] = await fixture.claim({ bytes: 900 })
      assert.deepEqual(more, [])
      served.push(`${one!.streamId} ${one!.kind}`)
    }
    assert.equal(new Set(served).size, 4, served.join(', '))
    // Each has a part of the bytes, so that none takes them all.
    const shared = await fixture.claim({ bytes: 4_000 })
    assert.equal(new Set(shared.map((one) => `${one.streamId} ${one.kind}`)).size, 4)
  })

  test('a paused stream, kind or everything is not claimed until it is resumed', async (fixture) => {
    const streamId = await fixture.stream('mail')
    const added = await fixture.write({ jobs: [job({ streamId }), job({ kind: 'other' }), job()] })
    const [inStream, ofKind, plain] = added.map((one) => one.id) as [number, number, number]
    const kinds = new Set(['job', 'other'])
    const release = async (): Promise<number> =>
      fixture.ledger.release(
        fixture.owner,
        await Promise.all([inStream, ofKind, plain].map((id) => fixture.row(id))),
      )

    await fixture.ledger.pause('stream', 'mail', 'token expired')
    await fixture.ledger.loadPauses()
    assert.deepEqual(ids(await fixture.claim()), [ofKind, plain])
    await release()
    await fixture.ledger.pause('kind', 'other')
    await fixture.ledger.loadPauses()
    assert.deepEqual(ids(await fixture.claim()), [plain])
    assert.deepEqual(await fixture.ledger.hasReady({ kinds }), { interactive: false, bulk: false })
    await release()
    await fixture.ledger.pause('all')
    await fixture.ledger.loadPauses()
    assert.deepEqual(await fixture.claim(), [])
    assert.deepEqual(await fixture.ledger.hasReady({ kinds }), { interactive: false, bulk: false })
    assert.deepEqual(
      (await fixture.ledger.pauses()).map((one) => [one.scope, one.target, one.reason]),
      [
        ['all', '', 'paused by hand'],
        ['kind', 'other', 'paused by hand'],
        ['stream', 'mail', 'token expired'],
      ],
    )
    for (const [scope, target] of [
      ['all', ''],
      ['kind', 'other'],
      ['stream', 'mail'],
    ] as const) {
      assert.equal(await fixture.ledger.resume(scope, target), true)
      assert.equal(await fixture.ledger.resume(scope, target), false, 'it was resumed already')
    }
    await fixture.ledger.loadPauses()
    assert.deepEqual(await fixture.ledger.hasReady({ kinds }), { interactive: false, bulk: true })
    assert.deepEqual(ids(await fixture.claim()), [inStream, ofKind, plain])
  })

  test('a pause that ends by itself gives way to one by hand, and to no other; what ends it ends no other', async (fixture) => {
    const { ledger } = fixture
    const codes = async (): Promise<string[]> => (await ledger.pauses()).map(({ code }) => code)
    assert.equal(await ledger.pause('stream', 'mail', 'no sign-in', 'sign-in'), true)
    assert.equal(await ledger.pause('stream', 'mail', 'not shared', 'share-gone'), false)
    assert.equal(await ledger.resume('stream', 'mail', 'share-gone'), false)
    assert.deepEqual(await codes(), ['sign-in'])
    assert.equal(await ledger.pause('stream', 'mail', 'holidays'), true)
    assert.equal(await ledger.pause('stream', 'mail', 'removed', 'folder-removal'), false)
    assert.equal(await ledger.pause('stream', 'mail', 'no sign-in', 'sign-in'), false)
    assert.equal(await ledger.resume('stream', 'mail', 'sign-in'), false)
    assert.deepEqual(await codes(), ['by-hand'])
    assert.equal(await ledger.resume('stream', 'mail'), true)
  })

  test('what runs when everything is paused can still be settled', async (fixture) => {
    const running = await fixture.claimed()
    await fixture.ledger.pause('all')
    await fixture.ledger.loadPauses()
    assert.deepEqual(await fixture.settle(running, 'succeed'), { status: 'held', jobs: [] })
  })

  test('a job says what pauses it', async (fixture) => {
    await fixture.stream('mail')
    await fixture.stream('files')
    const id = await fixture.add({ streamId: await fixture.stream('mail') })
    for (const name of ['mail', 'files']) await fixture.ledger.pause('stream', name, `no ${name}`)
    const detail = await fixture.ledger.job(id)
    assert.deepEqual(
      detail!.pausedBy.map((one) => one.reason),
      ['no mail'],
    )
    const paused = (await fixture.ledger.streams()).map((one) => [one.name, Number(one.paused)])
    assert.deepEqual(paused, [
      ['files', 1],
      ['mail', 1],
    ])
  })
}

/** Everything that a worker can report about a job. */
const SETTLINGS: readonly Settling[] = ['succeed', 'skip', 'retry', 'postpone', 'fail', 'stop', 'continue']

async function assertFencedOut(fixture: LedgerFixture, stale: ClaimedJob, owner: number): Promise<void> {
  const before = await fixture.ledger.job(stale.id)
  const work = {
    effects: async (tx: Tx) => void (await tx.run(`INSERT INTO notes VALUES ('stale')`)),
    jobs: [job({ kind: 'fetch' })],
  }
  for (const event of SETTLINGS) {
    const result = await fixture.settle(
      stale,
      event,
      { work, error: { kind: 'bug', message: 'stale' }, checkpoint: 'stale' },
      owner,
    )
    assert.deepEqual(result, { status: 'lost' }, event)
  }
  await fixture.ledger.noteProgress(owner, [{ id: stale.id, attempt: stale.attempt, text: 'stale' }])
  assert.deepEqual(await fixture.ledger.job(stale.id), before)
  assert.equal(await fixture.count('notes'), 0)
  assert.equal((await fixture.ledger.jobs({ kind: 'fetch' })).length, 0)
}

export function leaseContract(test: LedgerTest): void {
  test('after an expired lease is reclaimed, its old owner can change nothing', async (fixture) => {
    await fixture.force(`CREATE TABLE notes (text TEXT)`)
    const stale = await fixture.claimed()
    const second = await fixture.worker('second', LEASE_MS * 10)
    fixture.clock.pass(LEASE_MS + 1)
    assert.deepEqual(await fixture.ledger.reclaim(() => false), { owners: [fixture.owner], jobs: 1 })
    await assertFencedOut(fixture, stale, fixture.owner)
    const [fresh] = await fixture.claim({ owner: second })
    assert.equal(fresh!.attempt, stale.attempt + 1)
    await assertFencedOut(fixture, stale, fixture.owner)
    assert.deepEqual(await fixture.settle(fresh!, 'succeed', {}, second), { status: 'held', jobs: [] })
    await assertFencedOut(fixture, stale, fixture.owner)
  })

  test('an earlier attempt of the same owner can change nothing', async (fixture) => {
    await fixture.force(`CREATE TABLE notes (text TEXT)`)
    const first = await fixture.claimed()
    await fixture.settle(first, 'postpone')
    const [second] = await fixture.claim()
    assert.equal(second!.attempt, 2)
    await assertFencedOut(fixture, first, fixture.owner)
    assert.deepEqual(await fixture.settle(second!, 'succeed'), { status: 'held', jobs: [] })
  })

  test('an earlier attempt that reports in the same cycle as the present one is told apart', async (fixture) => {
    await fixture.force(`CREATE TABLE notes (text TEXT)`)
    const effects = (text: string) => async (tx: Tx) =>
      void (await tx.run(`INSERT INTO notes VALUES (?)`, [text]))
    const first = await fixture.claimed()
    await fixture.settle(first, 'postpone')
    const [second] = await fixture.claim()
    const { settled } = await fixture.cycle({
      settle: [
        { job: first, event: 'succeed', work: { effects: effects('stale') } },
        { job: second!, event: 'succeed', work: { effects: effects('right') } },
        { job: second!, event: 'succeed', work: { effects: effects('twice') } },
      ],
    })
    assert.deepEqual(
      settled.map((one) => one.status),
      ['lost', 'held', 'lost'],
    )
    assert.deepEqual(
      (await fixture.sql<{ text: string }>(`SELECT text FROM notes`)).map((one) => one.text),
      ['right'],
    )
  })

  test('another owner cannot settle a job it does not hold', async (fixture) => {
    await fixture.force(`CREATE TABLE notes (text TEXT)`)
    const held = await fixture.claimed()
    await assertFencedOut(fixture, held, await fixture.worker('second'))
  })

  test('an interrupted attempt costs no attempt', async (fixture) => {
    const failing = await fixture.claimed()
    await fixture.settle(failing, 'retry', { checkpoint: '{"bytes":10}' })
    await fixture.claim()
    const second = await fixture.worker('second')
    await fixture.ledger.reclaim((worker) => worker.id === fixture.owner)
    const [again] = await fixture.claim({ owner: second })
    assert.deepEqual([again!.failures, again!.checkpoint], [1, '{"bytes":10}'])
  })

  test('a dead process is reclaimed at once, a live one with a valid lease never', async (fixture) => {
    const second = await fixture.worker('second')
    await fixture.add()
    await fixture.add({ kind: 'other' })
    const [mine] = await fixture.claim({ kinds: ['job'] })
    const [theirs] = await fixture.claim({ kinds: ['other'], owner: second })
    assert.deepEqual(await fixture.ledger.reclaim(() => false), { owners: [], jobs: 0 })
    const seen: string[] = []
    const result = await fixture.ledger.reclaim((worker) => {
      seen.push(`${worker.host} ${worker.pid} ${worker.pid_start} ${worker.name}`)
      return worker.id === second
    })
    assert.deepEqual(result, { owners: [second], jobs: 1 })
    assert.ok(seen.includes('here 2 then second'))
    assert.deepEqual(await fixture.stages(mine!.id, theirs!.id), ['claimed', 'ready'])
    assert.deepEqual(
      await fixture.ledger.reclaim((worker) => worker.id === second),
      { owners: [], jobs: 0 },
      'once',
    )
  })

  test('a heartbeat extends the lease; that of an owner who was declared gone is refused', async (fixture) => {
    await fixture.claimed()
    fixture.clock.pass(LEASE_MS - 1)
    assert.equal(await fixture.ledger.heartbeat(fixture.owner, LEASE_MS), true)
    fixture.clock.pass(LEASE_MS - 1)
    assert.deepEqual(await fixture.ledger.reclaim(() => false), { owners: [], jobs: 0 })
    fixture.clock.pass(2)
    assert.equal((await fixture.ledger.reclaim(() => false)).jobs, 1)
    assert.equal(await fixture.ledger.heartbeat(fixture.owner, LEASE_MS), false)
  })

  test('an owner who was declared gone claims nothing, so that nothing is stranded with it', async (fixture) => {
    const id = await fixture.add()
    const second = await fixture.worker('second', LEASE_MS * 10)
    fixture.clock.pass(LEASE_MS + 1)
    await fixture.ledger.reclaim(() => false)
    assert.deepEqual(await fixture.claim(), [])
    assert.deepEqual(ids(await fixture.claim({ owner: second })), [id])
  })

  test('a worker that retires gives back what it holds, and leaves the list', async (fixture) => {
    await fixture.write({ jobs: times(3, () => job()) })
    await fixture.claim()
    assert.equal(await fixture.ledger.retire(fixture.owner), 3)
    assert.deepEqual(await fixture.ledger.workers(), [])
    const second = await fixture.worker('second')
    assert.equal((await fixture.claim({ owner: second })).length, 3)
  })

  test('jobs that were claimed but not started can be given back, by their owner', async (fixture) => {
    await fixture.write({ jobs: times(3, () => job()) })
    const all = await fixture.claim()
    assert.equal(await fixture.ledger.release(await fixture.worker('second'), all), 0, 'not by another')
    assert.equal(await fixture.ledger.release(fixture.owner, all), 3)
    assert.deepEqual(await fixture.stages(...ids(all)), ['ready', 'ready', 'ready'])
  })

  test('a job that is given back after someone canceled it is canceled, and who waits for it goes on', async (fixture) => {
    const streamId = await fixture.stream()
    const segment = await fixture.segment(streamId, 0, 10)
    await fixture.write({ counts: [{ segment, seal: true }], jobs: [job({ segment, streamId, key: 'k' })] })
    const [claimed] = await fixture.claim()
    const replacement = await fixture.add({ key: 'k', onKeyTaken: 'replace' })
    assert.deepEqual(await fixture.stages(claimed!.id, replacement), ['claimed', 'deps'])
    assert.equal(await fixture.ledger.release(fixture.owner, [claimed!]), 1)
    assert.deepEqual(await fixture.stages(claimed!.id, replacement), ['canceled', 'ready'])
    assert.equal((await fixture.mark(streamId)).mark_at, 10, 'its segment does not wait for it either')
  })

  test('a claim that did not run is no attempt; one that ran, or may have run, is', async (fixture) => {
    const id = await fixture.add()
    const attempts: number[] = []
    const claimAgain = async (owner = fixture.owner): Promise<ClaimedJob> => {
      const [again] = await fixture.claim({ owner })
      attempts.push(again!.attempt)
      return again!
    }
    for (let n = 0; n < 3; n++) await fixture.ledger.release(fixture.owner, [await claimAgain()])
    await fixture.ledger.release(fixture.owner, [await claimAgain()], { started: true })
    const dead = await fixture.worker('dead')
    await claimAgain(dead)
    await fixture.ledger.reclaim((worker) => worker.id === dead)
    const last = await claimAgain()
    assert.deepEqual(attempts, [1, 1, 1, 1, 2, 3])
    await fixture.settle(last, 'succeed')
    assert.equal((await fixture.row(id)).attempt, 3)
  })

  test('a job that ran and came back to its owner is not given back by an earlier attempt', async (fixture) => {
    const stale = await fixture.claimed()
    await fixture.settle(stale, 'retry')
    const [again] = await fixture.claim()
    assert.equal(await fixture.ledger.release(fixture.owner, [stale]), 0)
    assert.equal(await fixture.stage(stale.id), 'claimed')
    assert.equal(await fixture.ledger.release(fixture.owner, [again!]), 1)
  })

  test('progress is kept while its process holds its lease', async (fixture) => {
    const running = await fixture.claimed()
    await fixture.ledger.noteProgress(fixture.owner, [
      { id: running.id, attempt: running.attempt, text: '{"done":3}' },
    ])
    assert.equal((await fixture.row(running.id)).progress, '{"done":3}')
    const detail = await fixture.ledger.job(running.id)
    assert.deepEqual(
      [detail!.owner!.id, detail!.owner!.name, detail!.owner!.state],
      [fixture.owner, 'first', 'live'],
    )
  })
}
