/**
 * A world in which random things happen to streams, and a model of it in memory that is too simple to be wrong.
 * Each move is made on the ledger and on the model; after each, `check` compares everything that can be seen.
 *
 * Items are the model's own: every item that was ever listed has exactly one fate, and the ledger must agree on
 * the counts, the states, the marks, and (through a table that refuses doubles) on what was stored.
 */
import assert from 'node:assert/strict'
import { TidemarkError, UsageError } from '../base/errors.ts'
import type { ClaimedJob, NewBadItem, NewJob, Settlement, Tx } from './contract.ts'
import { LEASE_MS, type LedgerFixture } from './ledger-fixture.suite.ts'
import type { SegmentState } from './states.ts'

export type Fate = 'waiting' | 'stored' | 'gone' | 'skipped' | 'bad'
type FinalFate = Exclude<Fate, 'waiting'>
const FINAL: readonly FinalFate[] = ['stored', 'gone', 'skipped', 'bad']

type ModelSegment = { id: number; from: number; to: number; state: SegmentState; items: string[] }
type ModelStream = {
  id: number
  tail: number
  segments: ModelSegment[]
  cursor: string | null
  seenMark: number
}
type ModelJob = {
  id: number
  segment: ModelSegment | null
  items: string[]
  /** `stopping`: canceled while it was claimed. `behind`: waits for the one before it to stop. */
  state: 'ready' | 'behind' | 'claimed' | 'stopping' | 'failed' | 'canceled' | 'done'
  lease?: ClaimedJob
  owner?: number
  /** The item of a job that tries a bad one again, outside its segment. */
  retryOf?: string
  predecessor?: ModelJob
}

/** One random move: what to do, and numbers that choose to what and how. */
export type Move = { what: MoveName; a: number; b: number; c: number }

export class World {
  readonly #fixture: LedgerFixture
  readonly #streams: ModelStream[] = []
  readonly #jobs = new Map<number, ModelJob>()
  readonly #fates = new Map<string, Fate>()
  /** Leases that were lost, with the owners that held them. */
  readonly #stale: { lease: ClaimedJob; owner: number }[] = []
  #owners: number[]
  #itemsMade = 0

  private constructor(fixture: LedgerFixture) {
    this.#fixture = fixture
    this.#owners = [fixture.owner]
  }

  static async make(fixture: LedgerFixture): Promise<World> {
    const world = new World(fixture)
    await fixture.force(`CREATE TABLE stored_items (item TEXT PRIMARY KEY)`)
    for (const [name, origin] of [
      ['left', 0],
      ['right', 1_000],
    ] as const) {
      const id = await fixture.stream(name, origin)
      world.#streams.push({ id, tail: origin, segments: [], cursor: null, seenMark: origin })
    }
    world.#owners.push(await fixture.worker('second'))
    return world
  }

  /** Makes the move if it means anything now. */
  async move({ what, a, b, c }: Move): Promise<void> {
    await MOVES[what].call(this, a, b, c)
    this.#settleSegments()
  }

  // --- Moves ------------------------------------------------------------------

  async append(a: number, b: number): Promise<void> {
    const stream = this.#streams[a % 2]!
    const [from, to] = [stream.tail, stream.tail + 2 + (b % 50)]
    const id = await this.#fixture.segment(stream.id, from, to, `m${to}`)
    stream.tail = to
    stream.segments.push({ id, from, to, state: 'open', items: [] })
  }

  async appendWithGap(a: number, b: number): Promise<void> {
    const stream = this.#streams[a % 2]!
    const from = stream.tail + (b % 2 ? 1 + (b % 7) : -1 - (b % 7))
    const work = {
      segments: [{ streamId: stream.id, from, to: stream.tail + 20 }],
      cursors: [{ streamId: stream.id, value: 'never' }],
    }
    await assert.rejects(this.#fixture.write(work), { code: 'segment-gap' })
  }

  /** Items are found: their count, their jobs and the cursor in one transaction, perhaps with the seal. */
  async list(a: number, b: number, c: number): Promise<void> {
    const found = this.#pick(a, this.#segments('open'))
    if (!found) return
    const { stream, segment } = found
    const batches = Array.from({ length: b % 4 }, (_, n) => this.#newItems(1 + ((c + n) % 5)))
    const items = batches.flat()
    const seal = c % 5 === 0
    const cursor = `page ${this.#itemsMade}`
    const added = await this.#fixture.write({
      jobs: batches.map((batch) => this.#jobOf(stream.id, segment.id, batch.length)),
      counts: [{ segment: segment.id, listed: items.length, seal }],
      cursors: [{ streamId: stream.id, value: cursor }],
    })
    stream.cursor = cursor
    segment.items.push(...items)
    if (seal) segment.state = 'sealed'
    for (const [n, batch] of batches.entries()) this.#addJob(added[n]!.id, segment, batch)
  }

  async seal(a: number): Promise<void> {
    const found = this.#pick(a, this.#segments('open'))
    if (!found) return
    await this.#fixture.write({ counts: [{ segment: found.segment.id, seal: true }] })
    found.segment.state = 'sealed'
  }

  async splitSegment(a: number, b: number): Promise<void> {
    const found = this.#pick(a, this.#segments('open'))
    if (!found || found.segment.to - found.segment.from < 2) return
    const { stream, segment } = found
    const at = segment.from + 1 + (b % (segment.to - segment.from - 1))
    await this.#fixture.write({ splits: [{ segmentId: segment.id, at, mark: `m${at}` }] })
    const row = (await this.#fixture.ledger.segments(stream.id, { fromAt: at }))[0]!
    stream.segments.splice(stream.segments.indexOf(segment) + 1, 0, {
      id: row.id,
      from: at,
      to: segment.to,
      state: 'open',
      items: [],
    })
    segment.to = at
  }

  async claim(a: number, b: number): Promise<void> {
    const owner = this.#owners[a % this.#owners.length]!
    const n = 1 + (b % 4)
    const ready = [...this.#jobs.values()].filter((job) => job.state === 'ready')
    const claimed = await this.#fixture.claim({ owner, room: { interactive: 0, bulk: n } })
    assert.equal(claimed.length, Math.min(n, ready.length), 'every ready job can be claimed')
    for (const lease of claimed) {
      const job = this.#jobs.get(lease.id)
      assert.equal(job?.state, 'ready', `job #${lease.id} was claimed although it is ${job?.state}`)
      Object.assign(job!, { state: 'claimed', lease, owner })
    }
  }

  /** Several outcomes in one cycle, each item with a fate of its own. */
  async settle(a: number, b: number, c: number): Promise<void> {
    const owner = this.#owners[a % this.#owners.length]!
    const jobs = this.#claimedBy(owner).slice(0, 1 + (b % 3))
    if (jobs.length === 0) return
    const fates = jobs.map((job, n) => this.#chooseFates(job, c + n))
    const faulty = c % 7 === 0 && jobs.length > 1 ? 0 : -1
    const settle = jobs.map((job, n) => this.#outcome(job, fates[n]!, n === faulty))
    const { settled } = await this.#fixture.ledger.cycle({ owner, settle })
    for (const [n, job] of jobs.entries()) {
      const expected =
        n === faulty && job.state === 'claimed' ? 'error' : job.state === 'stopping' ? 'canceled' : 'held'
      assert.equal(settled[n]!.status, expected)
      if (expected === 'held') this.#fulfil(job, fates[n]!)
      else if (expected === 'canceled') this.#end(job, 'canceled')
    }
  }

  /** The process dies inside the commit: effects had run, and then it is as if nothing had been. */
  async crashInCommit(a: number, b: number, c: number): Promise<void> {
    const job = this.#pick(b, this.#claimedBy(this.#owners[a % this.#owners.length]!))
    if (!job || job.state === 'stopping') return
    const settlement = this.#outcome(job, this.#chooseFates(job, c), true)
    await assert.rejects(
      this.#fixture.ledger.cycle({ owner: job.owner!, settle: [settlement] }),
      /on purpose/,
    )
  }

  async overcount(a: number): Promise<void> {
    const job = this.#pick(
      a,
      [...this.#jobs.values()].filter((one) => one.state === 'claimed' && one.segment?.state === 'sealed'),
    )
    if (!job) return
    const counts = [{ segment: job.segment!.id, stored: job.segment!.items.length + 1 }]
    const attempt = this.#fixture.ledger.cycle({
      owner: job.owner!,
      settle: [{ job: job.lease!, event: 'succeed', work: { counts } }],
    })
    await assert.rejects(attempt, { code: 'segment-overcount' })
  }

  async giveBack(a: number, b: number): Promise<void> {
    const job = this.#pick(a, this.#held())
    if (!job) return
    const event = (['retry', 'postpone', 'fail', 'stop'] as const)[b % 4]!
    const { settled } = await this.#fixture.ledger.cycle({
      owner: job.owner!,
      settle: [{ job: job.lease!, event }],
    })
    assert.equal(settled[0]!.status, job.state === 'stopping' && event !== 'stop' ? 'canceled' : 'held')
    if (job.state === 'stopping' || event === 'stop') this.#end(job, 'canceled')
    else this.#end(job, event === 'fail' ? 'failed' : 'ready')
  }

  async splitBatch(a: number): Promise<void> {
    const job = this.#pick(
      a,
      this.#held().filter((one) => one.state === 'claimed' && one.segment !== null && one.items.length > 1),
    )
    if (!job) return
    const { streamId } = job.lease!
    const middle = Math.ceil(job.items.length / 2)
    const parts = [job.items.slice(0, middle), job.items.slice(middle)]
    const halves = parts.map((part) => this.#jobOf(streamId, job.segment!.id, part.length))
    const before = await this.#newestJob()
    await this.#fixture.ledger.cycle({
      owner: job.owner!,
      settle: [{ job: job.lease!, event: 'skip', splitInto: { halves, failures: 0 } }],
    })
    this.#end(job, 'done')
    const added = (await this.#fixture.ledger.jobs({ limit: 2 }))
      .map((row) => row.id)
      .filter((id) => id > before)
    assert.equal(added.length, 2)
    for (const [n, id] of added.sort((x, y) => x - y).entries()) this.#addJob(id, job.segment!, parts[n]!)
  }

  async cancel(a: number): Promise<void> {
    const job = this.#pick(
      a,
      [...this.#jobs.values()].filter((one) => one.state !== 'done' && one.state !== 'canceled'),
    )
    if (!job) return
    const { outcome } = await this.#fixture.ledger.cancel(job.id)
    const running = job.state === 'claimed' || job.state === 'stopping'
    assert.equal(outcome, running ? 'stopping' : 'canceled')
    job.state = running ? 'stopping' : 'canceled'
  }

  async redo(a: number): Promise<void> {
    const job = this.#pick(
      a,
      [...this.#jobs.values()].filter((one) => one.state === 'failed' || one.state === 'canceled'),
    )
    if (!job) return
    const tooLate = job.state === 'canceled' && job.segment?.state === 'settled'
    const rival = this.#openRetries(job.retryOf).find((one) => one !== job)
    const waits = rival !== undefined && rival === job.predecessor
    if (tooLate || (rival && !waits)) {
      return void (await assert.rejects(this.#fixture.ledger.redo(job.id), UsageError))
    }
    await this.#fixture.ledger.redo(job.id)
    job.state = waits ? 'behind' : 'ready'
    // Another retry has settled the matter: there is nothing left to do for this one.
    if (job.retryOf && this.#fates.get(job.retryOf) !== 'bad') job.items = []
  }

  /** Items whose job someone canceled are written off as skipped. */
  async writeOff(a: number): Promise<void> {
    const job = this.#pick(
      a,
      [...this.#jobs.values()].filter(
        (one) => one.state === 'canceled' && one.segment && one.items.length > 0,
      ),
    )
    if (!job || job.segment!.state === 'settled') return
    await this.#fixture.write({ counts: [{ segment: job.segment!.id, skipped: job.items.length }] })
    for (const item of job.items) this.#decide(item, 'skipped')
    job.items = []
  }

  async retryBad(): Promise<void> {
    const before = await this.#newestJob()
    await this.#fixture.ledger.retryBad()
    const rows = await this.#fixture.ledger.jobs({ limit: 1_000, state: 'pending' })
    for (const { id, item } of await this.#fixture.ledger.badItems()) {
      const open = this.#openRetries(item)
      const holder = open.find((job) => job.state !== 'stopping')
      if (holder?.state === 'failed') holder.state = 'ready' // revived
      if (holder) continue
      const added = rows.find((row) => row.key === `bad:${id}` && row.id > before)
      assert.ok(added, `no retry of ${item}`)
      const job = this.#addJob(added.id, null, [item])
      Object.assign(job, { retryOf: item, predecessor: open[0], state: open[0] ? 'behind' : 'ready' })
    }
  }

  /** An owner is gone, by its lease or by its process; a new one takes its place. */
  async loseOwner(a: number, b: number): Promise<void> {
    const at = a % this.#owners.length
    const owner = this.#owners[at]!
    if (b % 2) await this.#fixture.ledger.reclaim((worker) => worker.id === owner)
    else {
      this.#fixture.clock.pass(LEASE_MS - 1)
      for (const other of this.#owners)
        if (other !== owner) await this.#fixture.ledger.heartbeat(other, LEASE_MS)
      this.#fixture.clock.pass(2)
      await this.#fixture.ledger.reclaim(() => false)
    }
    for (const job of this.#claimedBy(owner)) {
      this.#stale.push({ lease: job.lease!, owner })
      this.#end(job, job.state === 'stopping' ? 'canceled' : 'ready')
    }
    this.#owners[at] = await this.#fixture.worker('next')
  }

  /** Someone who lost his lease comes back and reports. */
  async reportLate(a: number, b: number): Promise<void> {
    const late = this.#pick(a, this.#stale)
    if (!late) return
    const event = (['succeed', 'skip', 'retry', 'fail', 'stop', 'continue'] as const)[b % 6]!
    const counts = late.lease.segmentId === null ? [] : [{ segment: late.lease.segmentId, stored: 1 }]
    const work = { effects: store(['late']), counts, jobs: [this.#jobOf(late.lease.streamId, null, 1)] }
    const { settled } = await this.#fixture.ledger.cycle({
      owner: late.owner,
      settle: [{ job: late.lease, event, work, bad: [badItem('late')] }],
    })
    assert.deepEqual(settled, [{ status: 'lost' }])
  }

  // --- The end ------------------------------------------------------------------

  /** Everything is brought to its end; then nothing may be left over. */
  async finish(): Promise<void> {
    for (const stream of this.#streams) {
      const open = stream.segments.filter((segment) => segment.state === 'open')
      await this.#fixture.write({ counts: open.map((segment) => ({ segment: segment.id, seal: true })) })
      for (const segment of open) segment.state = 'sealed'
    }
    const canceled = [...this.#jobs.values()].filter(
      (job) => job.state === 'canceled' && job.segment && job.items.length > 0,
    )
    for (const job of canceled) {
      await this.#fixture.write({ counts: [{ segment: job.segment!.id, skipped: job.items.length }] })
      for (const item of job.items) this.#decide(item, 'skipped')
      job.items = []
    }
    for (let rounds = 0; [...this.#jobs.values()].some((job) => this.#isOpen(job)); rounds++) {
      assert.ok(rounds < 200, 'the work does not come to an end')
      for (const job of this.#jobs.values())
        if (job.state === 'failed') await this.move({ what: 'redo', a: this.#indexOfRedo(job), b: 0, c: 0 })
      await this.move({ what: 'claim', a: 0, b: 3, c: 0 })
      for (const [at, owner] of this.#owners.entries()) {
        while (this.#claimedBy(owner).length > 0) await this.move({ what: 'settle', a: at, b: 2, c: 1 })
      }
      for (const job of [...this.#jobs.values()].filter(
        (one) => one.state === 'canceled' && one.segment && one.items.length > 0,
      )) {
        await this.#fixture.write({ counts: [{ segment: job.segment!.id, skipped: job.items.length }] })
        for (const item of job.items) this.#decide(item, 'skipped')
        job.items = []
      }
    }
    this.#settleSegments()
    await this.check()
    for (const stream of this.#streams) {
      assert.ok(
        stream.segments.every((segment) => segment.state === 'settled'),
        'a segment is left over',
      )
      assert.equal((await this.#fixture.mark(stream.id)).mark_at, stream.tail)
    }
    assert.ok(![...this.#fates.values()].includes('waiting'), 'an item was forgotten')
  }

  /** Compares the ledger with the model. */
  async check(): Promise<void> {
    const statuses = await this.#fixture.ledger.streams()
    for (const stream of this.#streams) {
      const status = statuses.find((one) => one.id === stream.id)!
      const unsettled = stream.segments.find((segment) => segment.state !== 'settled')
      const mark = unsettled ? unsettled.from : stream.tail
      assert.equal(status.mark_at, mark, 'the mark is the end of the settled stretch')
      assert.equal(
        status.mark,
        stream.segments[0]?.from === mark || stream.segments.length === 0 ? null : `m${mark}`,
      )
      assert.ok(status.mark_at >= stream.seenMark, 'a mark moved backwards')
      stream.seenMark = status.mark_at
      assert.equal(status.cursor, stream.cursor, 'the cursor and the work found with it are one')
      await this.#checkSegments(stream)
    }
    const rows = await this.#fixture.sql<{ item: string }>(`SELECT item FROM stored_items`)
    const stored = [...this.#fates].filter(([, fate]) => fate === 'stored').map(([item]) => item)
    assert.deepEqual(rows.map((row) => row.item).sort(), stored.sort())
    const bad = [...this.#fates].filter(([, fate]) => fate === 'bad').map(([item]) => item)
    assert.deepEqual((await this.#fixture.ledger.badItems()).map((row) => row.item).sort(), bad.sort())
    await this.#fixture.checkBooks()
  }

  async #checkSegments(stream: ModelStream): Promise<void> {
    const rows = await this.#fixture.ledger.segments(stream.id)
    const seen = rows.map((row) => {
      const { id, from_at, to_at, state, open_jobs, listed, stored, gone, skipped, bad } = row
      if (state === 'settled') assert.equal(listed, stored + gone + skipped + bad)
      return { id, from_at, to_at, state, open_jobs, listed, stored, gone, skipped, bad }
    })
    const expected = stream.segments.map((segment) => ({
      id: segment.id,
      from_at: segment.from,
      to_at: segment.to,
      state: segment.state,
      open_jobs: this.#openJobs(segment),
      listed: segment.items.length,
      ...(Object.fromEntries(FINAL.map((fate) => [fate, this.#countOf(segment, fate)])) as Record<
        FinalFate,
        number
      >),
    }))
    assert.deepEqual(seen, expected)
  }

  // --- The model ------------------------------------------------------------------

  #settleSegments(): void {
    for (const segment of this.#streams.flatMap((stream) => stream.segments)) {
      const balanced = segment.items.every((item) => this.#fates.get(item) !== 'waiting')
      if (segment.state === 'sealed' && this.#openJobs(segment) === 0 && balanced) segment.state = 'settled'
    }
  }

  #segments(state: SegmentState): { stream: ModelStream; segment: ModelSegment }[] {
    return this.#streams.flatMap((stream) =>
      stream.segments.filter((segment) => segment.state === state).map((segment) => ({ stream, segment })),
    )
  }

  #openJobs(segment: ModelSegment): number {
    return [...this.#jobs.values()].filter((job) => job.segment === segment && this.#isOpen(job)).length
  }

  #isOpen(job: ModelJob): boolean {
    return job.state !== 'done' && job.state !== 'canceled'
  }

  #openRetries(item: string | undefined): ModelJob[] {
    if (item === undefined) return []
    return [...this.#jobs.values()].filter((job) => job.retryOf === item && this.#isOpen(job))
  }

  #countOf(segment: ModelSegment, fate: Fate): number {
    return segment.items.filter((item) => this.#fates.get(item) === fate).length
  }

  #held(): ModelJob[] {
    return [...this.#jobs.values()].filter((job) => job.state === 'claimed' || job.state === 'stopping')
  }

  #claimedBy(owner: number): ModelJob[] {
    return this.#held().filter((job) => job.owner === owner)
  }

  #pick<T>(n: number, list: readonly T[]): T | undefined {
    return list.length === 0 ? undefined : list[n % list.length]
  }

  #indexOfRedo(job: ModelJob): number {
    return [...this.#jobs.values()]
      .filter((one) => one.state === 'failed' || one.state === 'canceled')
      .indexOf(job)
  }

  #newItems(n: number): string[] {
    const items = Array.from({ length: n }, () => `item ${this.#itemsMade++}`)
    for (const item of items) this.#fates.set(item, 'waiting')
    return items
  }

  #jobOf(streamId: number, segment: number | null, items: number): NewJob {
    return { kind: 'fetch', payload: '{}', streamId, segment, items, lane: 'bulk' }
  }

  #addJob(id: number, segment: ModelSegment | null, items: string[]): ModelJob {
    const job: ModelJob = { id, segment, items, state: 'ready' }
    this.#jobs.set(id, job)
    return job
  }

  async #newestJob(): Promise<number> {
    return (await this.#fixture.ledger.jobs({ limit: 1 }))[0]?.id ?? 0
  }

  #end(job: ModelJob, state: ModelJob['state']): void {
    if (job.lease && state !== 'done') this.#stale.push({ lease: job.lease, owner: job.owner! })
    Object.assign(job, { state, lease: undefined, owner: undefined })
    for (const next of this.#jobs.values()) {
      if (state === 'canceled' && next.state === 'behind' && next.predecessor === job) next.state = 'ready'
    }
  }

  #chooseFates(job: ModelJob, n: number): FinalFate[] {
    return job.items.map((_, index) => FINAL[(n + index * 3) % 4]!)
  }

  /** What a handler would return for these fates; a retry of a bad item reports by its event alone. */
  #outcome(job: ModelJob, fates: readonly FinalFate[], faulty: boolean): Settlement {
    const itemsOf = (fate: FinalFate): string[] => job.items.filter((_, n) => fates[n] === fate)
    const bad = itemsOf('bad').map(badItem)
    const effects = store(itemsOf('stored'), faulty)
    if (job.retryOf) {
      const event = fates[0] === 'stored' ? 'succeed' : 'skip'
      return { job: job.lease!, event, bad, work: { effects } }
    }
    const counts = [
      {
        segment: job.segment!.id,
        stored: itemsOf('stored').length,
        gone: itemsOf('gone').length,
        skipped: itemsOf('skipped').length,
      },
    ]
    return { job: job.lease!, event: 'succeed', bad, work: { effects, counts } }
  }

  #fulfil(job: ModelJob, fates: readonly FinalFate[]): void {
    for (const [n, item] of job.items.entries()) {
      // The ledger knows a mended item as stored or gone.
      this.#decide(item, job.retryOf && fates[n] === 'skipped' ? 'gone' : fates[n]!)
    }
    this.#end(job, 'done')
  }

  #decide(item: string, fate: FinalFate): void {
    const before = this.#fates.get(item)
    assert.ok(
      before === 'waiting' || before === 'bad',
      `${item} was ${before} and is to be ${fate}: two fates`,
    )
    this.#fates.set(item, fate)
  }
}

const MOVES = {
  append: World.prototype.append,
  appendWithGap: World.prototype.appendWithGap,
  list: World.prototype.list,
  seal: World.prototype.seal,
  splitSegment: World.prototype.splitSegment,
  claim: World.prototype.claim,
  settle: World.prototype.settle,
  crashInCommit: World.prototype.crashInCommit,
  overcount: World.prototype.overcount,
  giveBack: World.prototype.giveBack,
  splitBatch: World.prototype.splitBatch,
  cancel: World.prototype.cancel,
  redo: World.prototype.redo,
  writeOff: World.prototype.writeOff,
  retryBad: World.prototype.retryBad,
  loseOwner: World.prototype.loseOwner,
  reportLate: World.prototype.reportLate,
} satisfies Record<string, (this: World, a: number, b: number, c: number) => Promise<void>>

export type MoveName = keyof typeof MOVES
export const MOVE_NAMES = Object.keys(MOVES) as MoveName[]

function store(items: readonly string[], faulty = false): (tx: Tx) => Promise<void> {
  return async (tx) => {
    for (const item of items) await tx.run(`INSERT INTO stored_items VALUES (?)`, [item])
    if (faulty) throw new TidemarkError('on purpose', { kind: 'bug' })
  }
}

function badItem(item: string): NewBadItem {
  return { item, reason: 'malformed', errorKind: 'permanent', payload: JSON.stringify([item]) }
}
