/**
 * Reads the queue of one pipeline in one process. What a message announces is committed as shards and jobs; the message is
 * held, invisible to others, until all of them are settled in a committed transaction, and acknowledged only then.
 *
 * Invariants:
 * - nothing is acknowledged before all that it announces is settled, by this process or by whichever did it
 * - what dies between two steps costs one more delivery, and changes nothing: shards are known by what they are
 * - a message that nobody understands is neither acknowledged nor extended: the queue's own rules take care of it
 * - with `onTheirWayMax` announced shards of a pipeline open, nothing more is received; listed ones do not count
 * - an object that a message may not name is not read and its message not acknowledged; the others of it are read
 * - nothing is received while the pipeline is paused, or while what is received could not be written
 */
import { createHash } from 'node:crypto'
import { type CancelTimer, type Clock, sleep } from '../../base/clock.ts'
import { asTidemarkError, TidemarkError } from '../../base/errors.ts'
import type { Queue, QueueDepth, QueueMessage } from '../../cloud/queue.ts'
import type { Engine } from '../../engine/engine.ts'
import { SIGN_IN } from '../../ledger/control.ts'
import type { Envelope, Refusal } from './contract.ts'
import { parseEnvelope } from './envelope.ts'
import { type Held, HeldMessages } from './held-messages.ts'
import type { IngestKinds, SettledShard } from './kinds.ts'
import { type Pipeline, streamOf } from './pipeline.ts'
import { foundByMessage, foundOf, type PreparedPlacing, preparePlacing } from './placing.ts'
import { distinct, type Found } from './plan.ts'
import { isLeftOut, isWithinReach, outOfReach } from './reach.ts'
import { announcedOpen } from './store/on-their-way.ts'
import {
  type Counter,
  type Counts,
  count,
  endProblem,
  type NotedDepth,
  noteDepth,
  noteProblem,
  noteReceived,
  putPipeline,
  putUnparsed,
} from './store/pipelines.ts'
import type { Placed } from './store/shards.ts'
import { visibilityStep } from './visibility.ts'

export type ReceiverInput = {
  kinds: IngestKinds
  engine: Pick<Engine, 'write' | 'pause' | 'ledger'>
  pipeline: Pipeline
  queue: Queue
  clock: Clock
  onError: (error: unknown) => void
}

/** How soon it is seen that another process has settled a shard. */
const TICK_MS = 1_000
const FULL_MS = 1_000
const PAUSED_MS = 2_000
/** A queue that does not wait for messages answers at once that it has none: this process has other things to do. */
const EMPTY_MS = 200
const FAILED_MS_MIN = 1_000
const FAILED_MS_MAX = 60_000
/** How old what is told of the queue may be. */
const DEPTH_MS = 15_000
/** A drain ends with an empty answer; this is how long it waits for one. */
const DRAIN_WAIT_MS = 1_000
const DRAINS_MAX = 100_000
const EXCERPT_BYTES_MAX = 2_048
/** Of receiving, and of acknowledging: of ten each, together as many as small objects are read at once. */
const CALLS_MAX = 10
const RELEASE_TRIES = 3
/** How much later than we reckon a service may end a call. */
const ABANDONED_MARGIN_MS = 1_000
/** Objects of one message whose store is asked for their version: at a time, and at most. */
const HEADS_AT_ONCE = 8
const HEADS_MAX = 1_000
/** When a message comes again whose store could not be asked. */
const LATER_MS_MIN = 5_000
const LATER_MS_MAX = 600_000
/** The inbox has no rules of its own for what nobody understands: so often it is delivered, and is then only shown. */
const INBOX_DELIVERIES_MAX = 5

/** A message, and what it is about. */
type Read =
  | {
      message: QueueMessage
      kind: 'found'
      found: readonly Found[]
      dropped: number
      /** What else it names and may not be read: it is left to the queue's own rules, as if nobody understood it. */
      refused: Refusal | undefined
    }
  | { message: QueueMessage; kind: 'nothing' }
  | { message: QueueMessage; kind: 'unknown'; code: string; reason: string }
  /** Its store cannot be asked now: it comes again. */
  | { message: QueueMessage; kind: 'later'; error: TidemarkError }

/** What was granted last, where that was needed. */
type Keeping = { grant: { nowMs: number; byMs: number } | undefined; keep(): Promise<void> }
type Taken = { receivedAtMs: number; keeping: Keeping }

export class Receiver {
  readonly held = new HeldMessages()
  readonly #in: ReceiverInput
  readonly #stop = new AbortController()
  #loop: Promise<void> | undefined
  #later: TidemarkError | undefined
  /** Whether the queue was read when it was last asked, be it that nothing was there. */
  #isRead = false
  #depthAtMs = Number.NEGATIVE_INFINITY
  #ticking: Promise<void> = Promise.resolve()
  #cancelTick: CancelTimer = () => undefined
  #turn: Promise<void> = Promise.resolve()
  #isAcknowledging = false
  /** What was counted and is not written yet. */
  #counts: Counts = {}
  /** Calls to receive that are made at once: more while there is more than one of them brings. */
  #calls = 1
  /** When the service ends the call to receive that was made last; undefined when it was answered. */
  #asksUntilMs: number | undefined

  constructor(input: ReceiverInput) {
    this.#in = input
  }

  get name(): string {
    return this.#in.pipeline.name
  }

  /** Receives until it is stopped. */
  start(): void {
    this.#loop ??= this.#run()
    this.#armTick()
  }

  /** Others get what is not settled: at once, or when no call of ours can take it any more. */
  async stop(): Promise<void> {
    this.#stop.abort(new TidemarkError('the receiver was stopped', { kind: 'transient', code: 'stopped' }))
    this.#cancelTick()
    await this.#loop
    await this.#turn
    await this.#ticking
    await this.#giveBack(this.held.all(), this.#abandonedMs())
    await this.#writeCounts()
    await this.#in.queue.close()
  }

  /** Receives until nothing is there; answers how many messages brought something to do. */
  async drain(signal: AbortSignal): Promise<number> {
    let brought = 0
    let failed: TidemarkError | undefined
    for (let n = 0; n < DRAINS_MAX && !signal.aborted; n++) {
      await this.look()
      const room = await this.#room()
      if (room <= 0) break
      const messages = await this.#receive(DRAIN_WAIT_MS, room, signal).catch(async (thrown: unknown) => {
        await this.#failed(asTidemarkError(thrown))
        throw thrown
      })
      if (messages.length === 0) break
      brought += await this.take(messages)
      failed = this.#later ?? failed
      if (failed?.kind === 'auth') break
    }
    if (failed) await this.#failed(failed)
    await this.#writeCounts()
    await this.noteDepth()
    return brought
  }

  /** Shards were settled here: what they were announced by need not wait for the next look. */
  settled(shards: readonly SettledShard[]): void {
    for (const { id, sequencer } of shards) this.held.settled(id, sequencer)
    // Whatever completes until its turn comes is acknowledged with it.
    if (this.#isAcknowledging || this.held.completed().length === 0) return
    this.#isAcknowledging = true
    this.#inTurn(() => {
      this.#isAcknowledging = false
      return this.#acknowledgeCompleted()
    }).catch(() => {
      // Told by #inTurn.
    })
  }

  /** One look at what is held: what is settled is acknowledged, what would become visible to others is extended. */
  async look(): Promise<void> {
    await this.#inTurn(async () => {
      const waiting = this.held.waiting()
      if (waiting.length > 0) {
        const mark = this.held.mark()
        const standings = await this.#in.kinds.tables.states(this.name, waiting)
        for (const shard of waiting) this.held.learn(shard, standings.get(shard), mark)
      }
      await this.#acknowledgeCompleted()
      await this.#keepVisible()
    })
    await this.#writeCounts()
  }

  /** For people and for alerts: how much waits, and since when; and that what was wrong with the queue is over. */
  async noteDepth(): Promise<void> {
    const { queue, engine, clock } = this.#in
    try {
      const depth = await queue.depth().catch(() => undefined)
      // One in flight may be put off, because its store was away: when it comes again, that is known.
      const isOver = this.#isRead && !this.#later && !depth?.inFlight
      if (!depth && !isOver) return
      await engine.write({
        turn: turnOfCounts(this.name),
        effects: async (tx) => {
          if (isOver) await endProblem(tx, this.name)
          if (depth) await noteDepth(tx, this.name, this.#noted(depth, clock.now()))
        },
      })
    } catch {
      // Whoever may receive need not be allowed to ask for it: what was heard last stays, with its time.
    }
  }

  #noted({ waiting, inFlight, oldestAgeMs }: QueueDepth, nowMs: number): NotedDepth {
    const sent = this.held.all().flatMap(({ message }) => message.sentAtMs ?? [])
    const inHandAtMs = sent.length === 0 ? null : Math.min(...sent)
    return { waiting, inFlight, oldestAtMs: oldestAgeMs === null ? inHandAtMs : nowMs - oldestAgeMs, nowMs }
  }

  /** What was received becomes shards and jobs, in one transaction. Answers how many messages brought something to do. */
  async take(messages: readonly QueueMessage[]): Promise<number> {
    const receivedAtMs = this.#in.clock.now()
    const keeping = this.#keeping(messages)
    const all = await Promise.all(messages.map((message) => this.#read(message, keeping)))
    this.#later = undefined
    try {
      return await this.#place(all, { receivedAtMs, keeping })
    } catch (thrown) {
      if (all.length === 1) throw thrown
      return this.#placeEach(all, { receivedAtMs, keeping }, thrown)
    }
  }

  /** One transaction each: a message that cannot be written holds up no other. Nothing is done about it: it comes again. */
  async #placeEach(all: readonly Read[], taken: Taken, why: unknown): Promise<number> {
    let brought = 0
    let failures = 0
    for (const read of all) {
      try {
        brought += await this.#place([read], taken)
      } catch (thrown) {
        failures += 1
        this.#in.onError(thrown)
      }
    }
    // Then it is not the messages, but what they are written to.
    if (failures === all.length) throw why
    return brought
  }

  async #place(all: readonly Read[], { receivedAtMs, keeping }: Taken): Promise<number> {
    const { kinds, engine, clock } = this.#in
    const found = all.flatMap((read) => (read.kind === 'found' ? read.found : []))
    const prepared = await preparePlacing(kinds, this.name, found)
    const counted = { ...this.#counts }
    let placed: Placed[] = []
    await engine.write({
      jobs: prepared.jobs,
      locks: prepared.locks,
      turn: `${this.name} objects`,
      effects: async (tx) => {
        placed = await prepared.place(tx)
        const nowMs = clock.now()
        for (const read of all) {
          const refusal = refusalOf(read)
          if (!refusal) continue
          const row = this.#unparsed(read.message, refusal)
          await putUnparsed(tx, row, { nowMs, max: kinds.settings.unparsedMax })
        }
        const counts = { ...counted, ...countsOf(all, prepared, placed) }
        await noteReceived(tx, this.name, { counts, nowMs })
      },
    })
    this.#uncount(counted)
    // From here on a crash costs another delivery, and nothing else.
    const open = new Set(placed.filter(({ state }) => state === 'open').map(({ id }) => id))
    const done: QueueMessage[] = []
    let brought = 0
    for (const read of all) {
      const { message } = read
      const isGivenUp = this.#isGivenUp(read)
      if (read.kind !== 'found') {
        if (read.kind === 'nothing' || isGivenUp) done.push(message)
        continue
      }
      const waiting = distinct(read.found).filter(({ id }) => open.has(id))
      // What it names and may not be read is shown; an inbox has no other end for it.
      if (refusalOf(read) && !isGivenUp) brought += waiting.length > 0 ? 1 : 0
      else if (waiting.length === 0) done.push(message)
      else {
        this.held.hold(message, waiting, receivedAtMs)
        if (keeping.grant) this.held.extended(message.id, keeping.grant)
        brought += 1
      }
    }
    await this.#inTurn(() => this.#acknowledge(done))
    await this.#putOff(all)
    return brought
  }

  /** Later each time: a store that is away is not asked in a circle, nor a message delivered until it is a dead letter. */
  async #putOff(all: readonly Read[]): Promise<void> {
    for (const read of all) {
      if (read.kind !== 'later') continue
      const { message, error } = read
      const growing = LATER_MS_MIN * 2 ** Math.min(10, (message.deliveries ?? 1) - 1)
      const byMs = Math.min(LATER_MS_MAX, Math.max(growing, error.retryAfterMs ?? 0))
      if (this.#later?.kind !== 'auth') this.#later = error
      await this.#extend([message], Math.min(byMs, this.#in.queue.limits.extendMsMax))
    }
  }

  /** Extends what was received while it is not held yet, because stores are asked about it. */
  #keeping(messages: readonly QueueMessage[]): Keeping {
    const { kinds, clock } = this.#in
    const byMs = kinds.settings.extensionMs
    let untilMs = Math.min(...messages.map(({ visibleAtMs }) => visibleAtMs))
    const keeping: Keeping = {
      grant: undefined,
      keep: async () => {
        const nowMs = clock.now()
        if (nowMs + byMs / 2 < untilMs) return
        untilMs = nowMs + byMs
        keeping.grant = { nowMs, byMs }
        await this.#extend(messages, byMs)
      },
    }
    return keeping
  }

  #isGivenUp(read: Read): boolean {
    const isOwn = isOwnQueue(this.#in.pipeline)
    return isOwn && refusalOf(read) !== undefined && (read.message.deliveries ?? 1) >= INBOX_DELIVERIES_MAX
  }

  // --- Receiving ---------------------------------------------------------------------------------------------------

  async #run(): Promise<void> {
    const { signal } = this.#stop
    let failedMs = 0
    let unnoted: TidemarkError | undefined
    while (!signal.aborted) {
      try {
        // Where not even this can be written, what is received could not be either.
        if (unnoted) await noteFailure(this.#in, unnoted)
        unnoted = undefined
        const isPaused = await this.#isPaused()
        const room = isPaused ? 0 : await this.#room()
        if (room <= 0) await this.#sleep(isPaused ? PAUSED_MS : FULL_MS)
        else {
          const messages = await this.#receive(this.#in.kinds.settings.receiveWaitMs, room, signal)
          if (messages.length > 0) await this.take(messages)
          else await this.#sleep(EMPTY_MS)
          if (messages.length > 0 && this.#later) throw this.#later
        }
        failedMs = 0
      } catch (thrown) {
        if (signal.aborted) return
        failedMs = Math.min(FAILED_MS_MAX, Math.max(FAILED_MS_MIN, failedMs * 2))
        const error = asTidemarkError(thrown)
        unnoted = (await this.#failed(error)) ? undefined : error
        await this.#sleep(error.retryAfterMs ?? failedMs)
      }
    }
  }

  /**
   * By as many calls at once as there seems to be work for: a service gives ten at a time. Only a single call waits for
   * messages, so that what came by another does not wait with it.
   */
  async #receive(waitMs: number, room: number, signal: AbortSignal): Promise<readonly QueueMessage[]> {
    const { queue, clock } = this.#in
    const { receiveMax, waitMsMax } = queue.limits
    const calls = Math.max(1, Math.min(this.#calls, Math.floor(room / receiveMax)))
    const asked = { max: receiveMax, waitMs: calls > 1 ? 0 : Math.min(waitMs, waitMsMax), signal }
    this.#asksUntilMs = clock.monotonicMs() + asked.waitMs
    const answers = await Promise.allSettled(Array.from({ length: calls }, () => queue.receive(asked)))
    const messages = answers.flatMap((answer) => (answer.status === 'fulfilled' ? answer.value : []))
    const failed = answers.find((answer) => answer.status === 'rejected')
    if (!failed) this.#asksUntilMs = undefined
    // What came must not wait for its visibility to end.
    this.#isRead = !failed || messages.length > 0
    if (failed && !this.#isRead) throw failed.reason
    const isFull = messages.length >= calls * receiveMax
    this.#calls = isFull ? Math.min(CALLS_MAX, calls * 2) : 1
    if (messages.length > 0 || calls === 1) return distinctMessages(messages)
    return this.#receive(waitMs, room, signal)
  }

  /** For how many more announced objects there is. */
  async #room(): Promise<number> {
    const { tables, settings } = this.#in.kinds
    return settings.onTheirWayMax - (await announcedOpen(tables.ledger, this.name))
  }

  async #isPaused(): Promise<boolean> {
    const pauses = await this.#in.engine.ledger.pauses()
    const stream = streamOf(this.name)
    return pauses.some(({ scope, target }) => scope === 'all' || (scope === 'stream' && target === stream))
  }

  #sleep(ms: number): Promise<void> {
    return sleep(this.#in.clock, ms, this.#stop.signal).catch(() => {
      // Told to stop: the loop ends by itself.
    })
  }

  /** Shown with the pipeline until something is received again. A refused sign-in pauses it, as a refused job does. */
  async #failed(error: TidemarkError): Promise<boolean> {
    const { engine, onError } = this.#in
    onError(error)
    try {
      await noteFailure(this.#in, error)
      if (error.kind === 'auth')
        await engine.pause('stream', streamOf(this.name), `sign-in needed: ${error.message}`, SIGN_IN)
      return true
    } catch (thrown) {
      // The ledger is away as well: whoever asks for it says so.
      onError(thrown)
      return false
    }
  }

  // --- Reading messages --------------------------------------------------------------------------------------------

  async #read(message: QueueMessage, keeping: Keeping): Promise<Read> {
    const { pipeline } = this.#in
    const envelope = parseEnvelope(message, { carriesData: pipeline.config.carriesData })
    switch (envelope.kind) {
      case 'unknown':
        return { message, ...envelope }
      case 'nothing':
        return { message, kind: 'nothing' }
      case 'data':
        return {
          message,
          kind: 'found',
          found: [inlineFound(message, envelope.data)],
          dropped: 0,
          refused: undefined,
        }
      case 'objects':
        return this.#announced(message, envelope, keeping)
    }
  }

  async #announced(
    message: QueueMessage,
    envelope: Extract<Envelope, { kind: 'objects' }>,
    keeping: Keeping,
  ): Promise<Read> {
    const { kinds, pipeline } = this.#in
    const objects = envelope.objects.filter(({ uri }) => !isLeftOut(pipeline.config, uri))
    const dropped = envelope.dropped + envelope.objects.length - objects.length
    const allowed = objects.filter(({ uri }) => isWithinReach(pipeline.config, uri))
    const asked = allowed.filter(({ version }) => version === null).length
    if (asked > HEADS_MAX) {
      const reason = `it names ${asked} objects without their version, and at most ${HEADS_MAX} are asked for`
      return { message, kind: 'unknown', code: 'too-many', reason }
    }
    const outside = objects.filter((one) => !allowed.includes(one))
    const refusals: Refusal[] = [...outside.map(({ uri }) => outOfReach(uri)), ...envelope.refused]
    const found: Found[] = []
    for (let from = 0; from < allowed.length; from += HEADS_AT_ONCE) {
      const some = allowed.slice(from, from + HEADS_AT_ONCE)
      const results = await Promise.allSettled(
        some.map((one) => foundByMessage(kinds, this.name, one, this.#stop.signal)),
      )
      for (const result of results) {
        if (result.status === 'fulfilled') found.push(result.value)
        else {
          const error = asTidemarkError(result.reason)
          if (error.kind !== 'permanent' && error.kind !== 'gone') return { message, kind: 'later', error }
          refusals.push({ code: error.code ?? 'refused', reason: error.message })
        }
      }
      if (asked > 0) await keeping.keep()
    }
    const [first] = refusals
    if (first && found.length === 0) return { message, kind: 'unknown', ...first }
    return { message, kind: 'found', found, dropped, refused: first }
  }

  #unparsed(message: QueueMessage, { code, reason }: Refusal) {
    return {
      pipeline: this.name,
      message: message.id,
      code,
      reason,
      excerpt: message.body.slice(0, EXCERPT_BYTES_MAX),
      deliveries: message.deliveries ?? 1,
    }
  }

  // --- Holding and acknowledging -------------------------------------------------------------------------------------

  async #acknowledgeCompleted(): Promise<void> {
    await this.#acknowledge(this.held.completed().map(({ message }) => message))
  }

  /** What cannot be acknowledged comes again, and is acknowledged then: no reason to try twice. */
  async #acknowledge(messages: readonly QueueMessage[]): Promise<void> {
    if (messages.length === 0) return
    const { queue, onError } = this.#in
    for (const { id } of messages) this.held.drop(id)
    const acknowledge = async (some: readonly QueueMessage[]): Promise<void> => {
      try {
        const results = await queue.acknowledge(some)
        this.#count({ acknowledged: results.filter((result) => result === 'acknowledged').length })
      } catch (thrown) {
        onError(thrown)
      }
    }
    const { receiveMax } = queue.limits
    for (let from = 0; from < messages.length; from += CALLS_MAX * receiveMax) {
      const calls = Array.from({ length: CALLS_MAX }, (_, n) =>
        messages.slice(from + n * receiveMax, from + (n + 1) * receiveMax),
      )
      await Promise.all(calls.filter((some) => some.length > 0).map(acknowledge))
    }
  }

  async #keepVisible(): Promise<void> {
    const { kinds, queue, clock } = this.#in
    const { extensionMs, marginMs } = kinds.settings
    const extended = new Map<number, Held[]>()
    const released: Held[] = []
    for (const held of this.held.all()) {
      const about = { limits: queue.limits, rules: { extensionMs, marginMs }, nowMs: clock.now() }
      const step = visibilityStep(held, about)
      if (step.act === 'extend') extended.set(step.byMs, [...(extended.get(step.byMs) ?? []), held])
      if (step.act === 'release') released.push(held)
    }
    for (const [byMs, some] of extended) {
      await this.#extend(
        some.map(({ message }) => message),
        byMs,
      )
    }
    await this.#giveBack(released)
  }

  /**
   * A service may not notice that nobody waits for its answer any more: what becomes visible while it waits goes to that
   * call, and to nobody else until its visibility ends. Calls to our own queues end with us.
   */
  #abandonedMs(): number {
    const { pipeline, clock } = this.#in
    if (this.#asksUntilMs === undefined || isOwnQueue(pipeline)) return 0
    const leftMs = this.#asksUntilMs + ABANDONED_MARGIN_MS - clock.monotonicMs()
    // Services count in whole seconds.
    return Math.max(0, Math.ceil(leftMs / 1_000) * 1_000)
  }

  /** Nobody asks again later, and others would wait for the visibility to end: so it is tried some times. */
  async #giveBack(held: readonly Held[], afterMs = 0): Promise<void> {
    const fromMs = this.#in.clock.now() + afterMs
    const stillOurs = held.filter(({ visibleAtMs }) => visibleAtMs > fromMs).map(({ message }) => message)
    for (let tries = 0; tries < RELEASE_TRIES && !(await this.#extend(stillOurs, afterMs)); tries++);
    for (const { message } of held) this.held.drop(message.id)
    this.#count({ released: held.length })
  }

  /** A failure is no end: it is tried again with the next look, until the message is visible to others anyway. */
  async #extend(messages: readonly QueueMessage[], byMs: number): Promise<boolean> {
    const { queue, clock, onError } = this.#in
    let isDone = true
    for (let from = 0; from < messages.length; from += queue.limits.receiveMax) {
      const some = messages.slice(from, from + queue.limits.receiveMax)
      const nowMs = clock.now()
      try {
        const results = await queue.extend(some, byMs)
        let extensions = 0
        for (const [at, { id }] of some.entries()) {
          if (results[at] === 'lost') this.held.drop(id)
          else if (byMs > 0) {
            this.held.extended(id, { nowMs, byMs })
            extensions += 1
          }
        }
        this.#count({ extensions })
      } catch (thrown) {
        isDone = false
        onError(thrown)
      }
    }
    return isDone
  }

  /** Numbers for people, on which nothing depends: written with what comes next, or with the next look. */
  #count(counts: Counts): void {
    for (const [name, n] of Object.entries(counts) as [Counter, number][]) {
      this.#counts[name] = (this.#counts[name] ?? 0) + n
    }
  }

  #uncount(written: Counts): void {
    for (const [name, n] of Object.entries(written) as [Counter, number][]) this.#counts[name]! -= n
  }

  async #writeCounts(): Promise<void> {
    const counts = { ...this.#counts }
    if (Object.values(counts).every((n) => n === 0)) return
    this.#uncount(counts)
    try {
      await this.#in.engine.write({
        turn: turnOfCounts(this.name),
        effects: (tx) => count(tx, this.name, counts),
      })
    } catch (thrown) {
      this.#count(counts)
      this.#in.onError(thrown)
    }
  }

  /** One thing at a time is done with what is held. */
  #inTurn(run: () => Promise<void>): Promise<void> {
    const turn = this.#turn.then(run)
    this.#turn = turn.catch(this.#in.onError)
    return turn
  }

  async #noteDepthNow(): Promise<void> {
    const nowMs = this.#in.clock.monotonicMs()
    if (nowMs - this.#depthAtMs < DEPTH_MS) return
    this.#depthAtMs = nowMs
    await this.noteDepth()
  }

  #armTick(): void {
    this.#cancelTick = this.#in.clock.timer(TICK_MS, () => {
      this.#ticking = this.look()
        .then(() => this.#noteDepthNow())
        .catch(() => {
          // Told by #inTurn.
        })
        .finally(() => {
          if (!this.#stop.signal.aborted) this.#armTick()
        })
    })
  }
}

/** Behind its objects: whoever places these counts as well, at the end, and holds what is counted until it is committed. */
function turnOfCounts(pipeline: string): string {
  return `${pipeline} then counts`
}

/** Its queue cannot be opened, or not be read. */
export async function noteFailure(
  { engine, clock, pipeline }: Pick<ReceiverInput, 'engine' | 'clock' | 'pipeline'>,
  { message }: TidemarkError,
): Promise<void> {
  const nowMs = clock.now()
  await engine.write({
    turn: turnOfCounts(pipeline.name),
    effects: async (tx) => {
      await putPipeline(tx, pipeline.name)
      await noteProblem(tx, pipeline.name, { problem: message, nowMs })
    },
  })
}

function countsOf(all: readonly Read[], { found }: PreparedPlacing, placed: readonly Placed[]): Counts {
  const told = all.reduce((n, read) => n + (read.kind === 'found' ? read.found.length : 0), 0)
  const known = placed.filter(({ act }) => act === 'known').length
  return {
    messages: all.length,
    duplicates: known + told - found.length,
    dropped: all.reduce(
      (n, read) => n + (read.kind === 'nothing' ? 1 : read.kind === 'found' ? read.dropped : 0),
      0,
    ),
    unparsed: all.filter((read) => refusalOf(read)).length,
  }
}

/** Known by the message, which has the same id when it comes again, and by its bytes. */
function inlineFound({ id }: QueueMessage, data: Uint8Array): Found {
  const hash = createHash('sha256').update(data).digest('hex')
  return foundOf(`message:${id}`, { id: hash }, { sizeBytes: data.length, isCurrent: false, data })
}

function isOwnQueue({ config: { queue } }: Pipeline): boolean {
  return queue.kind === 'inbox' || queue.kind === 'folder'
}

function refusalOf(read: Read): Refusal | undefined {
  if (read.kind === 'unknown') return { code: read.code, reason: read.reason }
  return read.kind === 'found' ? read.refused : undefined
}

/** Calls that are made at once may bring one message twice; the last receipt counts. */
function distinctMessages(messages: readonly QueueMessage[]): QueueMessage[] {
  return [...new Map(messages.map((message) => [message.id, message])).values()]
}
