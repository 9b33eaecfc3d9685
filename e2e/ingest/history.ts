/**
 * Runs a random history of two pipelines, in which several processes share one ledger, and compares the end with what the
 * simulator holds. Processes are lives in this one, under faults at every commit, or real ones that are killed and stopped.
 */
import { askAgain } from '../../src/apps/ingest/dispose.ts'
import { streamOf } from '../../src/apps/ingest/pipeline.ts'
import { sleep, systemClock } from '../../src/base/clock.ts'
import { seededRandom } from '../../src/base/random.ts'
import type { FaultsInput } from '../../src/sim/fault-rules.ts'
import { differences } from './check.ts'
import { ChildLife } from './child-life.ts'
import { fastClock } from './fast-clock.ts'
import { beginLife, LEASE_MS, type Life } from './life.ts'
import { bucketOf, type Database, JUNK, OracleWorld, PIPELINES, type PipelineName, queueOf } from './world.ts'

export type HistoryOptions = {
  database: Database
  acts: number
  /** Processes of their own, which are killed; otherwise lives in this process, with faults. */
  kills: boolean
  /** So many times as fast as the machine's is the time of lives and services; processes of their own have the machine's. */
  pace?: number
  /** Nothing has changed for so long: then it is told instead of waited for. Without it, whoever runs this decides. */
  silenceMsMax?: number
}

export type HistoryCounts = {
  acts: number
  objects: number
  /** Of these, content that was there before. */
  putBack: number
  messages: number
  /** Deaths, those while shards were open, and those while one of them was being read. */
  deaths: number
  deathsOpen: number
  deathsReading: number
  stops: number
  thefts: number
  takeovers: number
  tidied: number
  madeAnew: number
  /** Objects that were moved or deleted, each looked at in that instant. */
  removals: number
  /** Objects that were overwritten in the instant after the store was asked for them. */
  putsBehindLooks: number
}

export type Ran = { failure: string | undefined; counts: HistoryCounts }

const LIVES = { sqlite: 2, postgres: 3 } as const
const KEYS = 5
const LOOK_MS = 50
/**
 * Longer than anybody takes between a look at what is known and the commit that counts on it, in which a shard could be
 * read, stored and forgotten otherwise. People can set a day at least.
 */
const WINDOW_MS = 500
/** Not everything that is put is announced. */
const BEGIN_LOOKS_MAX = 200
const WEATHER: FaultsInput['rules'] = [
  { do: 'error', status: 503, probability: 0.02, service: 's3' },
  { do: 'reset', when: 'before', probability: 0.01 },
  { do: 'reset', when: 'after', probability: 0.01 },
  { do: 'truncate', probability: 0.02, service: 's3' },
]

export async function runIngestHistory(seed: number, options: HistoryOptions): Promise<Ran> {
  const clock = fastClock(options.kills ? 1 : (options.pace ?? 1))
  const world = await OracleWorld.start(seed, options.database, clock)
  const run = new Run(world, seed, options)
  try {
    const wrong = await run.toTheEnd()
    if (wrong.length === 0) return { failure: undefined, counts: run.counts }
    const told = [...wrong.slice(0, 30), ...run.told.map((line) => `  ${line}`)]
    return { failure: `seed ${seed}: ${told.join('\n')}`, counts: run.counts }
  } finally {
    await run.close()
    await world.close()
  }
}

type Act = { share: number; do: () => Promise<string | undefined> | string | undefined }

function chosen(acts: readonly Act[], at: number): Act {
  let before = 0
  for (const act of acts) {
    before += act.share
    if (at < before) return act
  }
  return acts[0]!
}

class Run {
  readonly told: string[] = []
  readonly counts: HistoryCounts = {
    acts: 0,
    objects: 0,
    putBack: 0,
    messages: 0,
    deaths: 0,
    deathsOpen: 0,
    deathsReading: 0,
    stops: 0,
    thefts: 0,
    takeovers: 0,
    tidied: 0,
    madeAnew: 0,
    removals: 0,
    putsBehindLooks: 0,
  }
  readonly #world: OracleWorld
  readonly #options: HistoryOptions
  readonly #seed: number
  readonly #refused = new Set<string>()
  #lives: Life[] = []
  #children: ChildLife[] = []
  #errors: unknown[] = []
  #n = 0

  constructor(world: OracleWorld, seed: number, options: HistoryOptions) {
    this.#world = world
    this.#seed = seed
    this.#options = options
  }

  async toTheEnd(): Promise<string[]> {
    const { acts, database } = this.#options
    const world = this.#world
    for (let n = 0; n < LIVES[database]; n++) await this.#begin()
    world.weather(WEATHER)
    world.isLively = true
    const all = this.#acts()
    const shares = all.reduce((sum, { share }) => sum + share, 0)
    for (let n = 0; n < acts; n++) {
      const text = await chosen(all, world.random() * shares).do()
      if (text !== undefined) this.told.push(text)
      this.counts.acts += 1
      await world.checkOneSeen()
      await sleep(world.clock, world.random() ** 3 * 400)
    }
    world.isLively = false
    // The last word about some keys is content that was there before, and only the last listing tells of it.
    for (const { pipeline, key } of PIPELINES.flatMap((name) => world.latest(name))) {
      const back = world.putBack(pipeline as PipelineName, key)
      if (!back) continue
      this.counts.putBack += 1
      this.told.push(`put ${pipeline} ${key} ${back.shard} back, untold`)
    }
    return this.#settle()
  }

  async close(): Promise<void> {
    for (const child of this.#children) await child.kill()
    for (const life of this.#lives) await life.drop()
  }

  // --- What happens --------------------------------------------------------------------------------------------------

  #acts(): Act[] {
    return [
      { share: 10, do: () => this.#put() },
      { share: 3, do: () => this.#putTogether() },
      { share: 2, do: () => this.#putAndRemove() },
      { share: 1, do: () => this.#junk() },
      { share: 4, do: () => this.#redeliver() },
      { share: 2, do: () => this.#sendAgain() },
      { share: 1.5, do: () => this.#refuse() },
      { share: 1.5, do: () => this.#list() },
      { share: 2, do: () => this.#steal() },
      { share: 3, do: () => this.#die() },
      { share: 2.5, do: () => this.#tidy() },
      { share: 1.5, do: () => this.#replay() },
      { share: 1, do: () => this.#makeAnew() },
      { share: this.#options.kills ? 1.5 : 0, do: () => this.#stop() },
    ]
  }

  #pipeline(): PipelineName {
    return PIPELINES[Math.floor(this.#world.random() * PIPELINES.length)]!
  }

  #put(): string {
    const { random } = this.#world
    const pipeline = this.#pipeline()
    const n = Math.floor(random() * KEYS)
    const key = `in/${n}${n % 3 === 0 ? '.ndjson.gz' : '.ndjson'}`
    const { shard, isBroken, isOld } = this.#world.put(pipeline, key)
    this.counts.objects += 1
    if (isOld) this.counts.putBack += 1
    return `put ${pipeline} ${key} ${shard}${isBroken ? ' broken' : ''}${isOld ? ' back' : ''}`
  }

  /** Several in one message, some of which were announced before. */
  #putTogether(): string {
    const pipeline = this.#pipeline()
    const told = [this.#put(), this.#put()].join(', ')
    const keys = this.#world.current(pipeline).map(({ key }) => key)
    const some = keys.filter(() => this.#world.random() < 0.6)
    if (some.length > 0) this.#world.sim.s3.store.announceTogether(bucketOf(pipeline), some)
    return `${told}, and ${some.join(', ')} of ${pipeline} announced together`
  }

  #putAndRemove(): string {
    const pipeline = this.#pipeline()
    const there = [...this.#world.known.values()].filter((one) => one.pipeline === pipeline)
    const one = there[Math.floor(this.#world.random() * 2 * there.length)]
    // Half of them where other versions were before, which may have been moved or deleted.
    const key = one?.key ?? `gone/${this.#world.known.size}.ndjson`
    const { shard } = this.#world.putAndTakeAway(pipeline, key)
    return `put and removed ${pipeline} ${key} ${shard}`
  }

  #junk(): string {
    const pipeline = this.#pipeline()
    this.#world.sim.sqs.queue(queueOf(pipeline)).send({ body: `${JUNK} this ${this.counts.acts}` })
    return `junk for ${pipeline}`
  }

  /** Whoever has these does not know that others get them, too. */
  #redeliver(): string {
    const queue = this.#world.sim.sqs.queue(queueOf(this.#pipeline()))
    const held = queue.messages.filter(
      ({ outcome, receives }) => outcome === 'waiting' && receives.length > 0,
    )
    for (const { id } of held) if (this.#world.random() < 0.6) queue.expireReceipt(id)
    return `receipts of ${held.length} messages of ${queue.name} expire`
  }

  /** An old announcement, as a message of its own. */
  #sendAgain(): string | undefined {
    const queue = this.#world.sim.sqs.queue(queueOf(this.#pipeline()))
    const old = queue.messages[Math.floor(this.#world.random() * queue.messages.length)]
    if (!old || old.body.startsWith(JUNK)) return undefined
    queue.send({ body: old.body, attributes: old.attributes })
    return `message ${old.id} is sent again`
  }

  #refuse(): string | undefined {
    const { random, sim } = this.#world
    const pipeline = this.#pipeline()
    const one = this.#world.current(pipeline)[0]
    if (!one) return undefined
    const how = random() < 0.5 ? 'missing' : 'denied'
    const id = `${pipeline} ${one.key}`
    if (this.#refused.delete(id)) sim.s3.store.allow(bucketOf(pipeline), one.key)
    else {
      this.#refused.add(id)
      sim.s3.store.refuse(bucketOf(pipeline), one.key, how)
      if (how === 'missing') this.#world.wasMissing.add(one.uri)
    }
    return `${id}: ${this.#refused.has(id) ? how : 'allowed'}`
  }

  async #list(): Promise<string | undefined> {
    const [life] = this.#lives
    if (!life) return undefined
    const pipeline = this.#pipeline()
    await life.engine.enqueue(life.kinds.list, { pipeline }, { stream: streamOf(pipeline) })
    return `list ${pipeline}`
  }

  async #steal(): Promise<string> {
    const stolen = await this.#world.stealTokens()
    this.counts.thefts += stolen
    return `${stolen} tokens stolen`
  }

  /** What is settled and not listed is forgotten nearly at once. */
  async #tidy(): Promise<string | undefined> {
    const [life] = this.#lives
    if (!life) return undefined
    const pipeline = this.#pipeline()
    life.kinds.settings.windowMs = WINDOW_MS * (this.#options.pace ?? 1)
    await life.engine.enqueue(life.kinds.tidy, { pipeline }, { stream: streamOf(pipeline) })
    this.counts.tidied += 1
    return `tidy ${pipeline}`
  }

  async #replay(): Promise<string | undefined> {
    const [life] = this.#lives
    if (!life) return undefined
    const pipeline = this.#pipeline()
    const replayed = await this.#replayAll(life, pipeline)
    return `replay ${replayed} objects of ${pipeline}`
  }

  async #replayAll({ engine, kinds }: Life, pipeline: PipelineName): Promise<number> {
    const page = { pipeline, after: { shard: '', at: -1 }, limit: 100_000 }
    const shards = new Set((await this.#world.tables.quarantine(page)).map(({ shard }) => shard))
    for (const shard of shards)
      await engine.enqueue(kinds.replay, { pipeline, shard }, { stream: streamOf(pipeline) })
    return shards.size
  }

  /** A pipeline is removed with all that it has, and another of its name begins from nothing. */
  async #makeAnew(): Promise<string> {
    const pipeline = this.#pipeline()
    await this.close()
    this.#lives = []
    this.#children = []
    const { home, ledgerUrl, clock, tables } = this.#world
    await this.#world.removePipeline(pipeline)
    const onError = (error: unknown): void => void this.#errors.push(error)
    const life = await beginLife({ home, ledgerUrl, clock, leaseMs: this.#leaseMs, onError })
    await life.engine.enqueue(life.kinds.forget, { pipeline }, { stream: streamOf(pipeline) })
    while (await tables.pipeline(pipeline)) await sleep(systemClock, LOOK_MS)
    await life.end()
    await this.#world.addPipeline(pipeline)
    for (let n = 0; n < LIVES[this.#options.database]; n++) await this.#begin()
    this.counts.madeAnew += 1
    return `${pipeline} is removed and made anew`
  }

  /** As long as the machine's time has it: a life that ends here gives its lease back, and beats were most of its calls. */
  get #leaseMs(): number {
    return LEASE_MS * (this.#options.kills ? 1 : (this.#options.pace ?? 1))
  }

  // --- Processes -----------------------------------------------------------------------------------------------------

  async #begin(): Promise<void> {
    const { home, ledgerUrl, clock } = this.#world
    const leaseMs = this.#leaseMs
    if (this.#options.kills) {
      const child = new ChildLife({ home, ledgerUrl })
      this.#children.push(child)
      await child.begun
      return
    }
    this.#n += 1
    this.#lives.push(
      await beginLife({
        home,
        ledgerUrl,
        clock,
        leaseMs,
        faults: {
          random: seededRandom(this.#seed * 1_000 + this.#n),
          commitLost: 0.01,
          commitUnheard: 0.01,
          append: 0.02,
          queue: 0.05,
        },
        beforeAcknowledge: (name, messages) => this.#world.checkSettled(name, messages),
        onError: (error) => this.#errors.push(error),
      }),
    )
  }

  /** At some instant after somebody began to read something. */
  async #die(): Promise<string> {
    this.told.push(this.#putTogether())
    for (let n = 0; n < BEGIN_LOOKS_MAX && (await this.#world.unsettled()).midway === 0; n++) {
      await sleep(systemClock, LOOK_MS / 5)
    }
    await sleep(this.#world.clock, this.#world.random() ** 2 * 200)
    this.counts.deaths += 1
    const count = Math.max(this.#children.length, this.#lives.length)
    const at = Math.floor(this.#world.random() * count)
    if (this.#options.kills) await this.#children.splice(at, 1)[0]!.kill()
    const { open, midway } = await this.#world.unsettled()
    if (open > 0) this.counts.deathsOpen += 1
    if (midway > 0) this.counts.deathsReading += 1
    if (!this.#options.kills) await this.#lives.splice(at, 1)[0]!.drop()
    await this.#begin()
    return `process ${at} dies with ${open} open shards, ${midway} of them being read`
  }

  /** For longer than its messages are its own, and its lease. */
  async #stop(): Promise<string> {
    const child = this.#children[Math.floor(this.#world.random() * this.#children.length)]!
    this.counts.stops += 1
    child.stop()
    try {
      for (let n = 0; n < 4; n++) {
        this.told.push(this.#put())
        await sleep(systemClock, 500 + this.#world.random() * 1_000)
      }
      this.told.push(this.#redeliver())
    } finally {
      child.goOn()
    }
    return 'a process stood still for longer than its lease'
  }

  // --- The end -------------------------------------------------------------------------------------------------------

  async #settle(): Promise<string[]> {
    const world = this.#world
    world.weather(null)
    for (const id of this.#refused) {
      const [pipeline, key] = id.split(' ') as [PipelineName, string]
      world.sim.s3.store.allow(bucketOf(pipeline), key)
    }
    await this.close()
    this.#lives = []
    this.#children = []
    const { home, ledgerUrl, clock } = world
    const settings = { limits: { recordBytesMax: 1_000_000, expansionMax: 1_000 } }
    const onError = (error: unknown): void => void this.#errors.push(error)
    const life = await beginLife({ home, ledgerUrl, clock, leaseMs: this.#leaseMs, settings, onError })
    this.#lives.push(life)
    // What could not be read while it was refused is asked for again; the last listing then finds what nobody told of.
    const isQuiet = (await this.#quiet(life)) && (await this.#listAll(life))
    if (!isQuiet) return [`it does not settle: ${await this.#openText()}`, ...this.#errorTexts()]
    for (const pipeline of PIPELINES) world.letDie(pipeline)
    while (this.#waiting('all') > 0) await sleep(systemClock, LOOK_MS)
    for (const pipeline of PIPELINES) {
      this.counts.messages += world.sim.sqs.queue(queueOf(pipeline)).messages.length
      this.counts.takeovers += await world.tables.takeovers(pipeline)
    }
    this.counts.removals += world.removals
    this.counts.objects += world.putsBehindLooks
    this.counts.putsBehindLooks += world.putsBehindLooks
    return differences(world, life)
  }

  /** What a person would do at the end: try again, list, replay, and ask again for what was left where it is. */
  async #listAll(life: Life): Promise<boolean> {
    const { engine, kinds, ledger } = life
    const list = async (): Promise<boolean> => {
      for (const pipeline of PIPELINES)
        await engine.enqueue(kinds.list, { pipeline }, { stream: streamOf(pipeline) })
      return this.#quiet(life)
    }
    await ledger.retryBad()
    if (!(await this.#quiet(life)) || !(await list())) return false
    for (const pipeline of PIPELINES) await this.#replayAll(life, pipeline)
    if (this.#world.after === 'keep') return this.#quiet(life)
    if (!(await this.#quiet(life))) return false
    for (const pipeline of PIPELINES) {
      await engine.write({ jobs: await askAgain(kinds, pipeline) })
    }
    // What was taken away is not in the books of what is there.
    return (await this.#quiet(life)) && list()
  }

  /** However long a slow machine takes: false only where nothing has changed for as long as was said. */
  async #quiet({ engine }: Life): Promise<boolean> {
    const { silenceMsMax = Number.POSITIVE_INFINITY } = this.#options
    const drained = { isOver: false }
    const draining = engine.drained().then(() => {
      drained.isOver = true
    })
    let before = ''
    let sinceMs = systemClock.monotonicMs()
    for (;;) {
      const { open } = await this.#world.unsettled()
      const isOver = drained.isOver && open === 0 && this.#waiting('understood') === 0
      // Messages that came meanwhile have brought jobs.
      if (isOver) return draining.then(() => engine.drained()).then(() => true)
      const now = await this.#openText()
      if (now !== before) sinceMs = systemClock.monotonicMs()
      before = now
      if (systemClock.monotonicMs() - sinceMs > silenceMsMax) return false
      await sleep(systemClock, LOOK_MS)
    }
  }

  #waiting(which: 'understood' | 'all'): number {
    return PIPELINES.flatMap((name) => this.#world.sim.sqs.queue(queueOf(name)).messages).filter(
      ({ outcome, body }) => outcome === 'waiting' && (which === 'all' || !body.startsWith(JUNK)),
    ).length
  }

  async #openText(): Promise<string> {
    const { open, midway } = await this.#world.unsettled()
    return `${open} shards are open, ${midway} of them read, ${this.#waiting('understood')} messages wait`
  }

  #errorTexts(): string[] {
    return this.#errors.slice(-5).map((error) => (error instanceof Error ? error.stack! : String(error)))
  }
}
