/**
 * A pipeline in this process: a queue and a store in memory, an engine on a ledger of its own, and a real index. The queue
 * delivers at least once, and can be told to deliver again, to refuse, or to lose what is asked of it.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freshDatabase, type TestDatabase } from '../../../scripts/test-database.ts'
import { type Clock, systemClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { openVault } from '../../base/vault.ts'
import type {
  ObjectBody,
  ObjectHead,
  ObjectPage,
  ObjectStore,
  ObjectVersion,
} from '../../cloud/object-store.ts'
import type { AcknowledgeResult, ExtendResult, Queue, QueueLimits, QueueMessage } from '../../cloud/queue.ts'
import { createEngine, type Engine } from '../../engine/index.ts'
import { Accounts } from '../../ledger/accounts.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { openLedger } from '../../ledger/open.ts'
import { openSearch, type Search } from '../../search/search.ts'
import { addPipeline } from './configure.ts'
import { ingestKinds, jobsOf } from './jobs.ts'
import { KeptObjects } from './kept-objects.ts'
import type { IngestKinds } from './kinds.ts'
import { mapRecord } from './mapping.ts'
import { type PipelineInput, streamOf } from './pipeline.ts'
import { Pipelines } from './pipelines.ts'
import { Receiver } from './receiver.ts'
import { openRecords } from './records/open-records.ts'
import type { IngestSettings } from './settings.ts'
import { type PipelineStatus, pipelineStatus } from './status.ts'
import { InboxTables } from './store/inbox.ts'
import { IngestTables } from './store/tables.ts'

export const NAME = 'logs'
const BUCKET = 's3://bucket'

type Sent = { id: string; body: Uint8Array; visibleAtMs: number; deliveries: number; isGone: boolean }

export class MemoryQueue implements Queue {
  limits: QueueLimits = { receiveMax: 10, waitMsMax: 0, extendMsMax: 43_200_000, heldMsMax: 43_200_000 }
  readonly sent: Sent[] = []
  readonly acknowledged: string[] = []
  readonly extended: { id: string; byMs: number }[] = []
  visibilityMs = 180_000
  failing: { receive?: TidemarkError; extend?: TidemarkError; acknowledge?: TidemarkError } = {}
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  send(body: unknown): string {
    const id = `m${this.sent.length + 1}`
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    this.sent.push({ id, body: new TextEncoder().encode(text), visibleAtMs: 0, deliveries: 0, isGone: false })
    return id
  }

  /** Whoever has them does not know. */
  redeliver(): void {
    for (const one of this.sent) one.visibleAtMs = 0
  }

  /** The service forgot that these were acknowledged. */
  resurrect(): void {
    for (const one of this.sent) Object.assign(one, { isGone: false, visibleAtMs: 0 })
  }

  async receive({ max }: { max: number }): Promise<QueueMessage[]> {
    if (this.failing.receive) throw this.failing.receive
    const nowMs = this.#clock.now()
    const visible = this.sent.filter(({ isGone, visibleAtMs }) => !isGone && visibleAtMs <= nowMs)
    return visible.slice(0, max).map((one) => {
      one.deliveries += 1
      one.visibleAtMs = nowMs + this.visibilityMs
      const { id, body, deliveries, visibleAtMs } = one
      const receipt = `${id}#${deliveries}`
      return { id, receipt, body, attributes: {}, deliveries, sentAtMs: 0, visibleAtMs }
    })
  }

  async extend(messages: readonly QueueMessage[], byMs: number): Promise<ExtendResult[]> {
    if (this.failing.extend) throw this.failing.extend
    return messages.map((message) => {
      const one = this.#held(message)
      if (!one) return 'lost'
      one.visibleAtMs = this.#clock.now() + byMs
      this.extended.push({ id: one.id, byMs })
      return 'extended'
    })
  }

  async acknowledge(messages: readonly QueueMessage[]): Promise<AcknowledgeResult[]> {
    if (this.failing.acknowledge) throw this.failing.acknowledge
    return messages.map((message) => {
      const one = this.#held(message)
      if (!one) return 'lost'
      one.isGone = true
      this.acknowledged.push(one.id)
      return 'acknowledged'
    })
  }

  async depth() {
    return { waiting: this.sent.filter(({ isGone }) => !isGone).length, inFlight: null, oldestAgeMs: null }
  }

  async close(): Promise<void> {}

  /** By a reader whose clock is so much ahead: times of messages are told by it. */
  seenBy(aheadMs: number): Queue {
    return {
      limits: this.limits,
      receive: async (options) =>
        (await this.receive(options)).map((one) => ({ ...one, visibleAtMs: one.visibleAtMs + aheadMs })),
      extend: (messages, byMs) => this.extend(messages, byMs),
      acknowledge: (messages) => this.acknowledge(messages),
      depth: () => this.depth(),
      close: () => this.close(),
    }
  }

  #held({ id, receipt }: QueueMessage): Sent | undefined {
    return this.sent.find((one) => !one.isGone && one.id === id && receipt === `${id}#${one.deliveries}`)
  }
}

type Stored = { bytes: Buffer; version: ObjectVersion; modifiedAtMs: number }

export class MemoryStore implements ObjectStore {
  readonly scheme = 's3'
  readonly objects = new Map<string, Stored>()
  readonly reads: { uri: string; fromByte: number }[] = []
  readonly tagged: string[] = []
  failing: TidemarkError | undefined
  pieceBytes = 64
  readonly denied = new Set<string>()
  /** Bodies that were neither read to their end nor left. */
  open = 0
  /** Those that were overwritten or removed, where the store keeps versions. */
  readonly older: Stored[] = []
  /** Called while an object is read, with how much of it was given out. */
  onBytes: ((uri: string, bytes: number) => void | Promise<void>) | undefined
  #n = 0

  put(key: string, content: string | Uint8Array): ObjectVersion {
    this.#n += 1
    const version = { id: `etag-${this.#n}`, sequencer: this.#n.toString(16).padStart(4, '0') }
    this.objects.set(`${BUCKET}/${key}`, { bytes: Buffer.from(content), version, modifiedAtMs: this.#n })
    return version
  }

  async read(uri: string, options: { version: ObjectVersion | null; fromByte: number }): Promise<ObjectBody> {
    if (this.failing) throw this.failing
    this.reads.push({ uri, fromByte: options.fromByte })
    const kept = this.older.find(({ version }) => version.id === options.version?.id)
    const found = kept ?? this.objects.get(uri)
    if (!found) throw new TidemarkError(`${uri} is not there`, { kind: 'gone', code: 'object-missing' })
    if (this.denied.has(uri))
      throw new TidemarkError(`${uri} may not be read`, { kind: 'permanent', code: 'object-denied' })
    if (options.version && options.version.id !== found.version.id) {
      throw new TidemarkError(`${uri} was replaced`, { kind: 'gone', code: 'object-replaced' })
    }
    this.open += 1
    return { ...headOf(found), bytes: this.#bytes(uri, found.bytes.subarray(options.fromByte)) }
  }

  async *#bytes(uri: string, bytes: Buffer): AsyncGenerator<Uint8Array> {
    const piece = this.pieceBytes
    try {
      for (let from = 0; from < bytes.length; from += piece) {
        await this.onBytes?.(uri, from)
        yield bytes.subarray(from, from + piece)
      }
    } finally {
      this.open -= 1
    }
  }

  onHead: () => void = () => undefined

  async head(uri: string): Promise<ObjectHead | undefined> {
    this.onHead()
    if (this.failing) throw this.failing
    const found = this.objects.get(uri)
    return found && headOf(found)
  }

  async list({
    prefix,
    after,
    max,
  }: {
    prefix: string
    after: string | null
    max: number
  }): Promise<ObjectPage> {
    if (this.failing) throw this.failing
    const uris = [...this.objects.keys()]
      .filter((uri) => uri.startsWith(prefix) && uri > (after ?? ''))
      .sort()
    const page = uris.slice(0, Math.min(max, this.pageMax))
    const objects = page.map((uri) => {
      const { version, bytes, modifiedAtMs } = this.objects.get(uri)!
      return { uri, version: { id: version.id }, sizeBytes: bytes.length, modifiedAtMs }
    })
    return { objects, next: page.length < uris.length ? page.at(-1)! : null }
  }

  pageMax = 1_000

  async tag(uri: string): Promise<void> {
    this.tagged.push(uri)
  }

  async close(): Promise<void> {}
}

function headOf({ version, bytes, modifiedAtMs }: Stored): ObjectHead {
  return { version, sizeBytes: bytes.length, modifiedAtMs, contentType: null, contentEncoding: null }
}

/** Time moves by itself, and can be put forward. */
export class ShiftedClock implements Clock {
  aheadMs = 0
  now = (): number => systemClock.now() + this.aheadMs
  monotonicMs = (): number => systemClock.monotonicMs() + this.aheadMs
  watchLoop = (): ReturnType<Clock['watchLoop']> => systemClock.watchLoop()
  /** How often each wait was begun. */
  readonly waits = new Map<number, number>()
  timer: Clock['timer'] = (ms, fn, options) => {
    this.waits.set(ms, (this.waits.get(ms) ?? 0) + 1)
    return systemClock.timer(ms, fn, options)
  }
}

export const SETTINGS: IngestSettings = {
  receiveWaitMs: 0,
  commitMs: 60_000,
  visibilityMs: 180_000,
  extensionMs: 60_000,
  marginMs: 4_000,
  windowMs: 14 * 86_400_000,
  onTheirWayMax: 1_000,
  batchBytes: 5_000_000,
  batchRecords: 10,
  badRecordsMax: 100,
  unparsedMax: 5,
  workersMax: 4,
  limits: { recordBytesMax: 1_000_000, expansionMax: 1_000 },
}

/** What a process has open. */
export type Process = {
  ledger: Ledger
  engine: Engine
  kinds: IngestKinds
  search: Search
  receiver: Receiver
  close(): Promise<void>
}

export type WorldOptions = {
  database?: 'sqlite' | 'postgres'
  config?: Partial<PipelineInput>
  settings?: Partial<IngestSettings>
  /** Instead of that in memory. */
  store?: ObjectStore
}

export class IngestWorld {
  readonly clock = new ShiftedClock()
  readonly queue = new MemoryQueue(this.clock)
  readonly store = new MemoryStore()
  readonly errors: unknown[] = []
  readonly home = mkdtempSync(join(tmpdir(), 'tidemark-ingest-'))
  readonly #options: WorldOptions
  #database: TestDatabase | undefined
  #processes: Process[] = []

  constructor(options: WorldOptions = {}) {
    this.#options = options
  }

  static async open(options: WorldOptions = {}): Promise<IngestWorld> {
    const world = new IngestWorld(options)
    if (options.database === 'postgres') world.#database = await freshDatabase()
    await world.start()
    return world
  }

  get process(): Process {
    return this.#processes.at(-1)!
  }

  get #url(): string {
    return this.#database?.url ?? `sqlite:${join(this.home, 'ledger.db')}`
  }

  /** Another process on the same ledger; one of a machine whose clock is so much ahead. */
  async start({ aheadMs = 0 }: { aheadMs?: number } = {}): Promise<Process> {
    const store = this.#options.store ?? this.store
    const clock = aheadMs === 0 ? this.clock : new ShiftedClock()
    if (clock !== this.clock) clock.aheadMs = aheadMs
    const queue = aheadMs === 0 ? this.queue : this.queue.seenBy(aheadMs)
    const ledger = await openLedger(this.#url, { clock })
    const accounts = await Accounts.open(ledger)
    const vault = await openVault({ env: {}, home: this.home })
    const tables = await IngestTables.open(ledger)
    await InboxTables.open(ledger)
    const search = openSearch({ ledger })
    const connector = { queue: async () => queue, store: async () => store }
    const pipelines = new Pipelines({ accounts, vault, connector })
    let receiver: Receiver | undefined
    const kinds = ingestKinds({
      pipelines,
      tables,
      clock,
      settings: { ...SETTINGS, ...this.#options.settings },
      openRecords,
      mapRecord,
      kept: new KeptObjects({ home: this.home, host: 'this-machine' }),
      index: async () => {
        await search.prepare()
        return search
      },
      settled: (_pipeline, shards) => receiver?.settled(shards),
    })
    const engine = await createEngine({ ledger, jobs: jobsOf(kinds), clock })
    if ((await accounts.list('ingest')).length === 0) {
      const config = {
        queue: { kind: 'inbox' as const },
        location: `${BUCKET}/`,
        mapping: { text: ['m'] },
        ...this.#options.config,
      }
      await addPipeline({ accounts, vault, engine }, { name: NAME, config, secret: {} })
    }
    const pipeline = await pipelines.get(NAME)
    const onError = (error: unknown): void => {
      this.errors.push(error)
    }
    receiver = new Receiver({ kinds, engine, pipeline, queue, clock, onError })
    const own: Process = {
      ledger,
      engine,
      kinds,
      search,
      receiver,
      close: async () => {
        this.#processes = this.#processes.filter((one) => one !== own)
        await engine.stop()
        await search.close()
        await ledger.close()
      },
    }
    this.#processes.push(own)
    await engine.streams.open(streamOf(NAME))
    await engine.start()
    return own
  }

  /** Announces what is under these keys, as S3 does, and answers the id of the message. */
  announce(...keys: string[]): string {
    return this.queue.send({ Records: keys.map((key) => this.event(key)) })
  }

  event(key: string, version = this.store.objects.get(`${BUCKET}/${key}`)?.version): object {
    return {
      eventSource: 'aws:s3',
      eventName: 'ObjectCreated:Put',
      eventVersion: '2.1',
      s3: {
        bucket: { name: 'bucket' },
        object: { key, size: 1, eTag: version?.id ?? 'etag-none', sequencer: version?.sequencer ?? '00' },
      },
    }
  }

  /** Receives what there is, and waits until nothing is left to do. */
  async run(process = this.process): Promise<void> {
    await process.receiver.drain(new AbortController().signal)
    await this.settle(process)
  }

  async list(process = this.process): Promise<void> {
    await process.engine.enqueue(process.kinds.list, { pipeline: NAME }, { stream: streamOf(NAME) })
    await this.settle(process)
  }

  async settle(process = this.process): Promise<void> {
    await process.engine.drained()
    await process.receiver.look()
  }

  status(): Promise<PipelineStatus> {
    return pipelineStatus(this.process.kinds.tables, NAME)
  }

  /** Titles of all records that are seen, in their order. */
  async seen(text = 'type:record'): Promise<string[]> {
    const { search } = this.process
    const answer = await search.search({
      text,
      reader: { principals: [streamOf(NAME)] },
      mode: 'words',
      limit: 1_000,
      nowMs: this.clock.now(),
      signal: new AbortController().signal,
    })
    return answer.hits.map(({ title }) => title.map((part) => part.text).join('')).sort()
  }

  async rows(table: string): Promise<number> {
    const row = await this.process.ledger.driver.read((tx) =>
      tx.get<{ n: number }>(`SELECT count(*) AS n FROM ${table}`),
    )
    return Number(row!.n)
  }

  async close(): Promise<void> {
    for (const process of [...this.#processes]) await process.close()
    await this.#database?.drop()
    rmSync(this.home, { recursive: true, force: true })
  }
}

/** So many lines, each a record. */
export function lines(count: number, word = 'line'): string {
  return Array.from({ length: count }, (_, at) => JSON.stringify({ m: `${word} ${at}` })).join('\n')
}
