/** The contract of claiming: shares, priorities, lanes, kinds, pauses, and the lease that fences what follows. */
import assert from 'node:assert/strict'
import type { ClaimedJob, NewJob, Tx } from './contract.ts'
import { type Desk, type DeskTest, LEASE_MS } from './desk.suite.ts'
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

export function claimContract(test: DeskTest): void {
  test('each lane is claimed up to its own room', async (desk) => {
    await desk.write({ jobs: [...times(5, () => job({ lane: 'interactive' })), ...times(5, () => job())] })
    const { claimed, backlog } = await desk.cycle({
      claim: desk.claimRequest({ room: { interactive: 2, bulk: 9 } }),
    })
    assert.deepEqual(claimed.map((one) => one.lane).sort(), [
      ...times(5, () => 'bulk'),
      ...times(2, () => 'interactive'),
    ])
    assert.deepEqual(backlog, { interactive: true, bulk: false })
  })

  test('no room claims nothing', async (desk) => {
    await desk.add()
    assert.deepEqual(await desk.claim({ n: 0 }), [])
  })

  test('a job is claimed once: it has at most one live lease', async (desk) => {
    await desk.write({ jobs: times(50, () => job()) })
    const second = await desk.worker('second')
    const claims = await Promise.all([desk.claim({ n: 40 }), desk.claim({ n: 40, owner: second })])
    const all = claims.flat().map((one) => one.id)
    assert.equal(all.length, 50)
    assert.equal(new Set(all).size, 50)
  })

  test('kinds that this process does not know are left for others', async (desk) => {
    const [known, unknown] = [await desk.add(), await desk.add({ kind: 'newer' })]
    assert.deepEqual(await desk.ledger.hasReady({ kinds: new Set(['nothing']) }), {
      interactive: false,
      bulk: false,
    })
    assert.deepEqual(ids(await desk.claim({ kinds: ['job'] })), [known])
    assert.deepEqual(ids(await desk.claim({ kinds: ['newer'] })), [unknown])
  })

  test('closed kinds are left alone until they open', async (desk) => {
    const [open, closed] = [await desk.add(), await desk.add({ kind: 'other' })]
    const kinds = new Set(['job', 'other'])
    assert.deepEqual(ids(await desk.claim({ closedKinds: ['other'] })), [open])
    assert.deepEqual(
      await desk.ledger.hasReady({
        kinds,
        roomFor: (queue: { kind: string }) => (queue.kind === 'other' ? 0 : 1),
      }),
      {
        interactive: false,
        bulk: false,
      },
    )
    assert.deepEqual(await desk.ledger.hasReady({ kinds }), { interactive: true, bulk: false })
    assert.deepEqual(ids(await desk.claim()), [closed])
  })

  fairness(test)
  priorities(test)
  pauses(test)
}

function fairness(test: DeskTest): void {
  test('a stream with 5,000 ready jobs leaves another its ten: no stream starves another', async (desk) => {
    const [big, small] = [await desk.stream('big'), await desk.stream('small')]
    await desk.write({ jobs: times(5_000, () => job({ streamId: big })) })
    await desk.write({ jobs: times(10, () => job({ streamId: small })) })
    assert.deepEqual(perStream(await desk.claim({ n: 20 })), { [big]: 10, [small]: 10 })
  })

  test('room that a stream leaves free goes to the others', async (desk) => {
    const streams = [await desk.stream('a'), await desk.stream('b'), await desk.stream('c')] as const
    const sizes = [100, 2, 7]
    await desk.write({ jobs: streams.flatMap((streamId, at) => times(sizes[at]!, () => job({ streamId }))) })
    const claimed = await desk.claim({ n: 30 })
    assert.deepEqual(perStream(claimed), { [streams[0]]: 21, [streams[1]]: 2, [streams[2]]: 7 })
  })

  test('claims of one job at a time serve the streams in turn', async (desk) => {
    const streams = [await desk.stream('a'), await desk.stream('b'), await desk.stream('c')]
    await desk.write({ jobs: streams.flatMap((streamId) => times(10, () => job({ streamId }))) })
    const claimed: ClaimedJob[] = []
    for (let n = 0; n < 9; n++) claimed.push(...(await desk.claim({ n: 1 })))
    assert.deepEqual(Object.values(perStream(claimed)), [3, 3, 3])
  })

  test('of a thousand busy streams, each is served within as many claims as it takes to serve all', async (desk) => {
    const streams = times(1_000, (n) => n + 1)
    await desk.write({ jobs: streams.flatMap((streamId) => times(6, () => job({ streamId }))) })
    const served = new Set<number>()
    for (let n = 0; n < 5; n++) for (const one of await desk.claim({ n: 400 })) served.add(one.streamId)
    assert.equal(served.size, 1_000)
  })

  test('a thousand streams whose work may not start do not hide the one whose work may', async (desk) => {
    const streams = times(1_000, (n) => n + 1)
    await desk.write({ jobs: streams.map((streamId) => job({ streamId, kind: 'other' })) })
    const open = await desk.add({ streamId: streams.at(-1)!, lane: 'bulk' })
    const request = {
      kinds: new Set(['job', 'other']),
      roomFor: (queue: { kind: string }) => (queue.kind === 'other' ? 0 : 1),
    }
    assert.deepEqual(await desk.ledger.hasReady(request), { interactive: false, bulk: true })
    assert.deepEqual(ids(await desk.claim({ closedKinds: ['other'] })), [open])
  })
}

function priorities(test: DeskTest): void {
  test('among the jobs of a stream, higher priority is claimed first', async (desk) => {
    const added = await desk.write({ jobs: [0, 5, -3, 5, 9].map((priority) => job({ priority })) })
    const order: number[] = []
    for (let n = 0; n < 5; n++) order.push(...ids(await desk.claim({ n: 1 })))
    assert.deepEqual(
      order.map((id) => added.findIndex((one) => one.id === id)),
      [4, 1, 3, 0, 2],
    )
  })

  test('priority counts across the kinds of a stream', async (desk) => {
    await desk.write({
      jobs: [
        job({ kind: 'alpha', priority: 5 }),
        ...times(20, () => job({ kind: 'alpha' })),
        ...times(3, () => job({ kind: 'beta', priority: 4 })),
      ],
    })
    const claimed = await desk.claim({ n: 4 })
    assert.deepEqual(claimed.map((one) => `${one.kind} ${one.priority}`).sort(), [
      'alpha 5',
      'beta 4',
      'beta 4',
      'beta 4',
    ])
  })

  test('kinds of equal priority share what their stream may claim', async (desk) => {
    await desk.write({
      jobs: [...times(50, () => job({ kind: 'alpha' })), ...times(50, () => job({ kind: 'beta' }))],
    })
    const claimed = await desk.claim({ n: 10 })
    assert.equal(claimed.filter((one) => one.kind === 'alpha').length, 5)
  })

  test('high priority in one stream takes nothing from another stream', async (desk) => {
    const [urgent, calm] = [await desk.stream('urgent'), await desk.stream('calm')]
    await desk.write({
      jobs: [
        ...times(50, () => job({ streamId: urgent, priority: 9 })),
        ...times(50, () => job({ streamId: calm })),
      ],
    })
    assert.deepEqual(perStream(await desk.claim({ n: 10 })), { [urgent]: 5, [calm]: 5 })
  })

  test('a claim with room brings what was given back behind others that are claimed', async (desk) => {
    await desk.write({ jobs: times(12, () => job()) })
    const [first] = await desk.claim({ room: { interactive: 0, bulk: 8 } })
    await desk.ledger.cycle({ owner: desk.owner, settle: [{ job: first!, event: 'postpone' }] })
    const rest = await desk.claim({ room: { interactive: 0, bulk: 20 } })
    assert.equal(rest.length, 5)
    assert.ok(rest.some(({ id }) => id === first!.id))
  })

  test('ready jobs that a claim with room left behind are told as backlog', async (desk) => {
    const kinds = times(12, (n) => `kind ${n}`)
    await desk.write({ jobs: kinds.map((kind, priority) => job({ kind, priority })) })
    let left = 12
    for (let n = 0; n < 12; n++) {
      const { claimed, backlog } = await desk.cycle({ claim: desk.claimRequest({ kinds }) })
      left -= claimed.length
      assert.ok(left === 0 || backlog.bulk, `${left} were left behind in silence`)
    }
    assert.equal(left, 0)
  })
}

function pauses(test: DeskTest): void {
  test('a claim brings no more bytes than it asks for, and one job; the rest is told as backlog', async (desk) => {
    const payload = 'x'.repeat(1_000)
    const all = await desk.write({ jobs: times(20, () => job({ payload })) })
    const few = await desk.cycle({ claim: desk.claimRequest({ bytes: 4_500 }) })
    assert.deepEqual([few.claimed.length, few.backlog.bulk], [5, true])
    assert.deepEqual(
      ids(few.claimed),
      all.slice(0, 5).map(({ id }) => id),
    )
    const one = await desk.cycle({ claim: desk.claimRequest({ bytes: 1 }) })
    assert.deepEqual([one.claimed.length, one.claimed[0]!.bytes, one.backlog.bulk], [1, 1_000, true])
    // What a job saved is read with it.
    await desk.write({ jobs: times(2, () => job({ kind: 'other', payload })) })
    for (const saver of await desk.claim({ kinds: ['other'] }))
      await desk.settle(saver, 'postpone', { checkpoint: JSON.stringify('é'.repeat(2_000)) })
    const saved = await desk.claim({ kinds: ['other'], bytes: 3_000 })
    assert.deepEqual(
      saved.map((claimed) => claimed.bytes),
      [5_002],
    )
    const rest = await desk.cycle({ claim: desk.claimRequest() })
    assert.deepEqual([rest.claimed.length, rest.backlog.bulk], [15, false])
  })

  test('where large payloads use up the bytes of a claim, streams and kinds take turns', async (desk) => {
    const streams = [await desk.stream('a'), await desk.stream('b')]
    const payload = 'x'.repeat(1_000)
    for (const streamId of streams)
      for (const kind of ['alpha', 'beta'])
        await desk.write({ jobs: times(3, () => job({ streamId, kind, payload })) })
    const served: string[] = []
    for (let n = 0; n < 4; n++) {
      const [one, ...more] = await desk.claim({ bytes: 900 })
      assert.deepEqual(more, [])
      served.push(`${one!.streamId} ${one!.kind}`)
    }
    assert.equal(new Set(served).size, 4, served.join(', '))
    // Each has a part of the bytes, so that none takes them all.
    const shared = await desk.claim({ bytes: 4_000 })
    assert.equal(new Set(shared.map((one) => `${one.streamId} ${one.kind}`)).size, 4)
  })

  test('a paused stream, kind or everything is not claimed until it is resumed', async (desk) => {
    const streamId = await desk.stream('mail')
    const added = await desk.write({ jobs: [job({ streamId }), job({ kind: 'other' }), job()] })
    const [inStream, ofKind, plain] = added.map((one) => one.id) as [number, number, number]
    const kinds = new Set(['job', 'other'])
    const release = async (): Promise<number> =>
      desk.ledger.release(desk.owner, await Promise.all([inStream, ofKind, plain].map((id) => desk.row(id))))

    await desk.ledger.pause('stream', 'mail', 'token expired')
    await desk.ledger.loadPauses()
    assert.deepEqual(ids(await desk.claim()), [ofKind, plain])
    await release()
    await desk.ledger.pause('kind', 'other')
    await desk.ledger.loadPauses()
    assert.deepEqual(ids(await desk.claim()), [plain])
    assert.deepEqual(await desk.ledger.hasReady({ kinds }), { interactive: false, bulk: false })
    await release()
    await desk.ledger.pause('all')
    await desk.ledger.loadPauses()
    assert.deepEqual(await desk.claim(), [])
    assert.deepEqual(await desk.ledger.hasReady({ kinds }), { interactive: false, bulk: false })
    assert.deepEqual(
      (await desk.ledger.pauses()).map((one) => [one.scope, one.target, one.reason]),
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
      assert.equal(await desk.ledger.resume(scope, target), true)
      assert.equal(await desk.ledger.resume(scope, target), false, 'it was resumed already')
    }
    await desk.ledger.loadPauses()
    assert.deepEqual(await desk.ledger.hasReady({ kinds }), { interactive: false, bulk: true })
    assert.deepEqual(ids(await desk.claim()), [inStream, ofKind, plain])
  })

  test('what runs when everything is paused can still be settled', async (desk) => {
    const running = await desk.claimed()
    await desk.ledger.pause('all')
    await desk.ledger.loadPauses()
    assert.deepEqual(await desk.settle(running, 'succeed'), { status: 'held', jobs: [] })
  })

  test('a job says what pauses it', async (desk) => {
    await desk.stream('mail')
    await desk.stream('files')
    const id = await desk.add({ streamId: await desk.stream('mail') })
    for (const name of ['mail', 'files']) await desk.ledger.pause('stream', name, `no ${name}`)
    const detail = await desk.ledger.job(id)
    assert.deepEqual(
      detail!.pausedBy.map((one) => one.reason),
      ['no mail'],
    )
    const paused = (await desk.ledger.streams()).map((one) => [one.name, Number(one.paused)])
    assert.deepEqual(paused, [
      ['files', 1],
      ['mail', 1],
    ])
  })
}

/** Everything that a worker can report about a job. */
const SETTLINGS: readonly Settling[] = ['succeed', 'skip', 'retry', 'postpone', 'fail', 'stop', 'continue']

async function assertFencedOut(desk: Desk, stale: ClaimedJob, owner: number): Promise<void> {
  const before = await desk.ledger.job(stale.id)
  const work = {
    effects: async (tx: Tx) => void (await tx.run(`INSERT INTO notes VALUES ('stale')`)),
    jobs: [job({ kind: 'fetch' })],
  }
  for (const event of SETTLINGS) {
    const result = await desk.settle(
      stale,
      event,
      { work, error: { kind: 'bug', message: 'stale' }, checkpoint: 'stale' },
      owner,
    )
    assert.deepEqual(result, { status: 'lost' }, event)
  }
  await desk.ledger.noteProgress(owner, [{ id: stale.id, attempt: stale.attempt, text: 'stale' }])
  assert.deepEqual(await desk.ledger.job(stale.id), before)
  assert.equal(await desk.count('notes'), 0)
  assert.equal((await desk.ledger.jobs({ kind: 'fetch' })).length, 0)
}

export function leaseContract(test: DeskTest): void {
  test('after an expired lease is reclaimed, its old owner can change nothing', async (desk) => {
    await desk.force(`CREATE TABLE notes (text TEXT)`)
    const stale = await desk.claimed()
    const second = await desk.worker('second', LEASE_MS * 10)
    desk.clock.pass(LEASE_MS + 1)
    assert.deepEqual(await desk.ledger.reclaim(() => false), { owners: [desk.owner], jobs: 1 })
    await assertFencedOut(desk, stale, desk.owner)
    const [fresh] = await desk.claim({ owner: second })
    assert.equal(fresh!.attempt, stale.attempt + 1)
    await assertFencedOut(desk, stale, desk.owner)
    assert.deepEqual(await desk.settle(fresh!, 'succeed', {}, second), { status: 'held', jobs: [] })
    await assertFencedOut(desk, stale, desk.owner)
  })

  test('an earlier attempt of the same owner can change nothing', async (desk) => {
    await desk.force(`CREATE TABLE notes (text TEXT)`)
    const first = await desk.claimed()
    await desk.settle(first, 'postpone')
    const [second] = await desk.claim()
    assert.equal(second!.attempt, 2)
    await assertFencedOut(desk, first, desk.owner)
    assert.deepEqual(await desk.settle(second!, 'succeed'), { status: 'held', jobs: [] })
  })

  test('an earlier attempt that reports in the same cycle as the present one is told apart', async (desk) => {
    await desk.force(`CREATE TABLE notes (text TEXT)`)
    const effects = (text: string) => async (tx: Tx) =>
      void (await tx.run(`INSERT INTO notes VALUES (?)`, [text]))
    const first = await desk.claimed()
    await desk.settle(first, 'postpone')
    const [second] = await desk.claim()
    const { settled } = await desk.cycle({
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
      (await desk.sql<{ text: string }>(`SELECT text FROM notes`)).map((one) => one.text),
      ['right'],
    )
  })

  test('another owner cannot settle a job it does not hold', async (desk) => {
    await desk.force(`CREATE TABLE notes (text TEXT)`)
    const held = await desk.claimed()
    await assertFencedOut(desk, held, await desk.worker('second'))
  })

  test('an interrupted attempt costs no attempt', async (desk) => {
    const failing = await desk.claimed()
    await desk.settle(failing, 'retry', { checkpoint: '{"bytes":10}' })
    await desk.claim()
    const second = await desk.worker('second')
    await desk.ledger.reclaim((worker) => worker.id === desk.owner)
    const [again] = await desk.claim({ owner: second })
    assert.deepEqual([again!.failures, again!.checkpoint], [1, '{"bytes":10}'])
  })

  test('a dead process is reclaimed at once, a live one with a valid lease never', async (desk) => {
    const second = await desk.worker('second')
    await desk.add()
    await desk.add({ kind: 'other' })
    const [mine] = await desk.claim({ kinds: ['job'] })
    const [theirs] = await desk.claim({ kinds: ['other'], owner: second })
    assert.deepEqual(await desk.ledger.reclaim(() => false), { owners: [], jobs: 0 })
    const seen: string[] = []
    const result = await desk.ledger.reclaim((worker) => {
      seen.push(`${worker.host} ${worker.pid} ${worker.pid_start} ${worker.name}`)
      return worker.id === second
    })
    assert.deepEqual(result, { owners: [second], jobs: 1 })
    assert.ok(seen.includes('here 2 then second'))
    assert.deepEqual(await desk.stages(mine!.id, theirs!.id), ['claimed', 'ready'])
    assert.deepEqual(
      await desk.ledger.reclaim((worker) => worker.id === second),
      { owners: [], jobs: 0 },
      'once',
    )
  })

  test('a heartbeat extends the lease; that of an owner who was declared gone is refused', async (desk) => {
    await desk.claimed()
    desk.clock.pass(LEASE_MS - 1)
    assert.equal(await desk.ledger.heartbeat(desk.owner, LEASE_MS), true)
    desk.clock.pass(LEASE_MS - 1)
    assert.deepEqual(await desk.ledger.reclaim(() => false), { owners: [], jobs: 0 })
    desk.clock.pass(2)
    assert.equal((await desk.ledger.reclaim(() => false)).jobs, 1)
    assert.equal(await desk.ledger.heartbeat(desk.owner, LEASE_MS), false)
  })

  test('an owner who was declared gone claims nothing, so that nothing is stranded with it', async (desk) => {
    const id = await desk.add()
    const second = await desk.worker('second', LEASE_MS * 10)
    desk.clock.pass(LEASE_MS + 1)
    await desk.ledger.reclaim(() => false)
    assert.deepEqual(await desk.claim(), [])
    assert.deepEqual(ids(await desk.claim({ owner: second })), [id])
  })

  test('a worker that retires gives back what it holds, and leaves the list', async (desk) => {
    await desk.write({ jobs: times(3, () => job()) })
    await desk.claim()
    assert.equal(await desk.ledger.retire(desk.owner), 3)
    assert.deepEqual(await desk.ledger.workers(), [])
    const second = await desk.worker('second')
    assert.equal((await desk.claim({ owner: second })).length, 3)
  })

  test('jobs that were claimed but not started can be given back, by their owner', async (desk) => {
    await desk.write({ jobs: times(3, () => job()) })
    const all = await desk.claim()
    assert.equal(await desk.ledger.release(await desk.worker('second'), all), 0, 'not by another')
    assert.equal(await desk.ledger.release(desk.owner, all), 3)
    assert.deepEqual(await desk.stages(...ids(all)), ['ready', 'ready', 'ready'])
  })

  test('a job that is given back after someone canceled it is canceled, and who waits for it goes on', async (desk) => {
    const streamId = await desk.stream()
    const segment = await desk.segment(streamId, 0, 10)
    await desk.write({ counts: [{ segment, seal: true }], jobs: [job({ segment, streamId, key: 'k' })] })
    const [claimed] = await desk.claim()
    const replacement = await desk.add({ key: 'k', onKeyTaken: 'replace' })
    assert.deepEqual(await desk.stages(claimed!.id, replacement), ['claimed', 'deps'])
    assert.equal(await desk.ledger.release(desk.owner, [claimed!]), 1)
    assert.deepEqual(await desk.stages(claimed!.id, replacement), ['canceled', 'ready'])
    assert.equal((await desk.mark(streamId)).mark_at, 10, 'its segment does not wait for it either')
  })

  test('a claim that did not run is no attempt; one that ran, or may have run, is', async (desk) => {
    const id = await desk.add()
    const attempts: number[] = []
    const claimAgain = async (owner = desk.owner): Promise<ClaimedJob> => {
      const [again] = await desk.claim({ owner })
      attempts.push(again!.attempt)
      return again!
    }
    for (let n = 0; n < 3; n++) await desk.ledger.release(desk.owner, [await claimAgain()])
    await desk.ledger.release(desk.owner, [await claimAgain()], { started: true })
    const dead = await desk.worker('dead')
    await claimAgain(dead)
    await desk.ledger.reclaim((worker) => worker.id === dead)
    const last = await claimAgain()
    assert.deepEqual(attempts, [1, 1, 1, 1, 2, 3])
    await desk.settle(last, 'succeed')
    assert.equal((await desk.row(id)).attempt, 3)
  })

  test('a job that ran and came back to its owner is not given back by an earlier attempt', async (desk) => {
    const stale = await desk.claimed()
    await desk.settle(stale, 'retry')
    const [again] = await desk.claim()
    assert.equal(await desk.ledger.release(desk.owner, [stale]), 0)
    assert.equal(await desk.stage(stale.id), 'claimed')
    assert.equal(await desk.ledger.release(desk.owner, [again!]), 1)
  })

  test('progress is kept while its process holds its lease', async (desk) => {
    const running = await desk.claimed()
    await desk.ledger.noteProgress(desk.owner, [
      { id: running.id, attempt: running.attempt, text: '{"done":3}' },
    ])
    assert.equal((await desk.row(running.id)).progress, '{"done":3}')
    const detail = await desk.ledger.job(running.id)
    assert.deepEqual(
      [detail!.owner!.id, detail!.owner!.name, detail!.owner!.state],
      [desk.owner, 'first', 'live'],
    )
  })
}
