/**
 * One process of object ingest from its inside: a ledger, an engine, a receiver for each pipeline, the real clients of S3
 * and SQS. In this process it can be given faults at every place where something is committed, sent or acknowledged.
 */
import { connectorOf } from '../../src/apps/ingest/connect.ts'
import { ingestKinds, jobsOf } from '../../src/apps/ingest/jobs.ts'
import { KeptObjects } from '../../src/apps/ingest/kept-objects.ts'
import type { IngestKinds } from '../../src/apps/ingest/kinds.ts'
import { mapRecord } from '../../src/apps/ingest/mapping.ts'
import { streamOf } from '../../src/apps/ingest/pipeline.ts'
import { type Connector, Pipelines } from '../../src/apps/ingest/pipelines.ts'
import { Receivers } from '../../src/apps/ingest/receivers.ts'
import { openRecords } from '../../src/apps/ingest/records/open-records.ts'
import type { IngestSettings } from '../../src/apps/ingest/settings.ts'
import { InboxTables } from '../../src/apps/ingest/store/inbox.ts'
import { IngestTables } from '../../src/apps/ingest/store/tables.ts'
import { type Clock, systemClock } from '../../src/base/clock.ts'
import { TidemarkError } from '../../src/base/errors.ts'
import type { Random } from '../../src/base/random.ts'
import { openVault } from '../../src/base/vault.ts'
import type { Queue, QueueMessage } from '../../src/cloud/queue.ts'
import { createEngine, type Engine } from '../../src/engine/index.ts'
import { Accounts } from '../../src/ledger/accounts.ts'
import type { Driver } from '../../src/ledger/contract.ts'
import { onTimer } from '../../src/ledger/heartbeat-loop.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { openLedger } from '../../src/ledger/open.ts'
import type { IndexWriter } from '../../src/search/contract.ts'
import { openSearch, type Search } from '../../src/search/search.ts'
import { LONG_BYTES } from './objects.ts'

/** Small batches, so that most objects take many commits, and each of them can be the last. */
export const SETTINGS: IngestSettings = {
  receiveWaitMs: 1_000,
  commitMs: 2_000,
  visibilityMs: 4_000,
  extensionMs: 3_000,
  marginMs: 1_000,
  windowMs: 14 * 86_400_000,
  onTheirWayMax: 40,
  batchBytes: 5_000_000,
  batchRecords: 5,
  badRecordsMax: 1_000,
  unparsedMax: 100,
  workersMax: 4,
  limits: { recordBytesMax: LONG_BYTES, expansionMax: 1_000 },
}

export const LEASE_MS = 1_500

/** Shares of all calls, from 0 to 1. */
export type LifeFaults = {
  random: Random
  /** A transaction that is lost before it began, or of whose commit nobody hears. */
  commitLost: number
  commitUnheard: number
  /** The index refuses in the middle of a transaction. */
  append: number
  /** A call of the queue that is not made, or whose answer is lost. */
  queue: number
}

export type LifeOptions = {
  home: string
  ledgerUrl: string
  settings?: Partial<IngestSettings> | undefined
  leaseMs?: number | undefined
  clock?: Clock
  /** No power is cut where processes are killed, so NORMAL is enough; a bench measures what users have. */
  synchronous?: 'FULL' | 'NORMAL'
  faults?: LifeFaults | undefined
  /** Asked before each acknowledgement. */
  beforeAcknowledge?: ((pipeline: string, messages: readonly QueueMessage[]) => Promise<void>) | undefined
  onError?: (error: unknown) => void
}

export type Life = {
  ledger: Ledger
  engine: Engine
  kinds: IngestKinds
  search: Search
  /** As if it had died, as far as the services see: nothing that it holds is given back or acknowledged. */
  drop(): Promise<void>
  end(): Promise<void>
}

type PartsOptions = Pick<LifeOptions, 'home' | 'ledgerUrl' | 'synchronous' | 'clock'>

export async function openParts(options: PartsOptions) {
  const { home, ledgerUrl, synchronous = 'NORMAL', clock = systemClock } = options
  const ledger = await openLedger(ledgerUrl, { synchronous, clock })
  const { driver } = ledger
  // A thread beats by the machine's time.
  if (clock !== systemClock) driver.startHeartbeat = async (beat) => onTimer(driver, clock, beat)
  const accounts = await Accounts.open(ledger)
  const vault = await openVault({ env: {}, home })
  const tables = await IngestTables.open(ledger)
  return { ledger, accounts, vault, tables }
}

export async function beginLife(options: LifeOptions): Promise<Life> {
  const { ledger, accounts, vault, tables } = await openParts(options)
  const { faults, clock = systemClock } = options
  const settings = { ...SETTINGS, ...options.settings }
  const onError = (error: unknown): void => options.onError?.(error)
  const gone = { isGone: false }
  const search = openSearch({ ledger })
  const inbox = await InboxTables.open(ledger)
  // Nothing here has an https address.
  const resolve = async (): Promise<string[]> => []
  const place = { inbox, clock, fetch, resolve, settings, onError }
  const connector = hooked(connectorOf(place), options, gone)
  const pipelines = new Pipelines({ accounts, vault, connector })
  await pipelines.reload()
  const holder: { engine?: Engine } = {}
  const receivers: Receivers = new Receivers({
    kinds: () => kinds,
    engine: () => holder.engine,
    clock,
  })
  receivers.onError = onError
  const kinds = ingestKinds({
    pipelines,
    tables,
    clock,
    settings,
    openRecords,
    mapRecord,
    kept: new KeptObjects({ home: options.home, host: 'this-machine' }),
    index: async () => {
      await search.prepare()
      return faults ? breakIndex(search, faults) : search
    },
    settled: (pipeline, shards) => receivers.settled(pipeline, shards),
  })
  const engine = await createEngine({
    ledger,
    jobs: jobsOf(kinds),
    workers: settings.workersMax + 2,
    leaseMs: options.leaseMs ?? LEASE_MS,
    clock,
  })
  holder.engine = engine
  for (const name of pipelines.names()) await engine.streams.open(streamOf(name))
  await engine.start()
  // Beginning and ending are the ledger's own matters, and proven elsewhere.
  const heal = faults ? breakCommits(ledger.driver, faults) : () => {}
  await receivers.follow(pipelines.names())
  const end = async (): Promise<void> => {
    heal()
    await receivers.stop()
    await engine.stop()
    await pipelines.close()
    await search.close()
    await ledger.close()
  }
  return {
    ledger,
    engine,
    kinds,
    search,
    end,
    async drop() {
      gone.isGone = true
      await end()
    },
  }
}

function away(what: string, code = 'oracle-lost'): TidemarkError {
  return new TidemarkError(`${what} was lost on its way`, { kind: 'transient', code })
}

/** Of a ledger's transactions. What is thrown is what a lost connection is: the engine waits and commits again. */
function breakCommits(driver: Driver, faults: LifeFaults): () => void {
  const { random } = faults
  const transaction = driver.transaction.bind(driver)
  driver.transaction = async (fn, options) => {
    if (random() < faults.commitLost) throw away('a transaction', 'ledger-down')
    const result = await transaction(fn, options)
    if (random() < faults.commitUnheard) throw away('the answer to a commit', 'ledger-down')
    return result
  }
  return () => {
    driver.transaction = transaction
  }
}

function breakIndex(search: Search, { random, append }: LifeFaults): IndexWriter {
  return new Proxy(search, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name)
      if (typeof value !== 'function') return value
      if (name !== 'append') return value.bind(target)
      return async (...args: Parameters<IndexWriter['append']>) => {
        await target.append(...args)
        if (random() < append) throw away('a batch')
      }
    },
  })
}

/** The acknowledgements of a queue are looked at, and its calls get lost. */
function hooked(connector: Connector, options: LifeOptions, gone: { isGone: boolean }): Connector {
  return {
    store: (pipeline, secret, scheme) => connector.store(pipeline, secret, scheme),
    async queue(pipeline, secret) {
      const queue = await connector.queue(pipeline, secret)
      return queue && hookedQueue(queue, pipeline.name, options, gone)
    },
  }
}

function hookedQueue(
  queue: Queue,
  name: string,
  { faults, beforeAcknowledge }: LifeOptions,
  gone: { isGone: boolean },
): Queue {
  const call = async <T>(what: string, run: () => Promise<T>): Promise<T> => {
    if (gone.isGone) throw away(what)
    if (!faults) return run()
    if (faults.random() < faults.queue / 2) throw away(what)
    const answer = await run()
    if (faults.random() < faults.queue / 2) throw away(`the answer to ${what}`)
    return answer
  }
  return {
    limits: queue.limits,
    receive: (asked) => call('a receive', () => queue.receive(asked)),
    extend: (messages, ms) => call('an extension', () => queue.extend(messages, ms)),
    acknowledge: (messages) =>
      call('an acknowledgement', async () => {
        await beforeAcknowledge?.(name, messages)
        return queue.acknowledge(messages)
      }),
    depth: () => queue.depth(),
    close: () => queue.close(),
  }
}
