/**
 * Two pipelines on one ledger, each with a bucket and a queue of the simulated cloud: one in which a new version replaces
 * the one before, one in which it is added. It remembers what was put where, and whoever acknowledges is looked at.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freshDatabase, type TestDatabase } from '../../scripts/test-database.ts'
import { addPipeline } from '../../src/apps/ingest/configure.ts'
import { parseEnvelope } from '../../src/apps/ingest/envelope.ts'
import { shardId } from '../../src/apps/ingest/pipeline.ts'
import type { IngestTables } from '../../src/apps/ingest/store/tables.ts'
import { type Random, seededRandom } from '../../src/base/random.ts'
import type { Engine } from '../../src/engine/index.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import type { FaultsInput } from '../../src/sim/fault-rules.ts'
import { type Sim, startSim } from '../../src/sim/start.ts'
import { openParts } from './life.ts'
import { type KnownVersion, knownVersion, makeObject } from './objects.ts'

export type Database = 'sqlite' | 'postgres'
export type Overwrites = 'replace' | 'append'

export const PIPELINES = ['replaced', 'appended'] as const
export type PipelineName = (typeof PIPELINES)[number]
export const OVERWRITES: Readonly<Record<PipelineName, Overwrites>> = {
  replaced: 'replace',
  appended: 'append',
}

const ENVELOPES = ['s3', 'sns', 'sns-raw', 'eventbridge'] as const
/** Nothing dies before the end, when only what nobody understands is left. */
const RECEIVES_MAX = 100_000

export const bucketOf = (pipeline: PipelineName): string => `bucket-${pipeline}`
export const queueOf = (pipeline: PipelineName): string => `queue-${pipeline}`
const deadOf = (pipeline: PipelineName): string => `dead-${pipeline}`

export class OracleWorld {
  readonly sim: Sim
  readonly home: string
  readonly ledgerUrl: string
  readonly random: Random
  readonly isVersioned: boolean
  /** By shard; the same bytes under the same key are one. */
  readonly known = new Map<string, KnownVersion>()
  readonly early: string[] = []
  ledger!: Ledger
  tables!: IngestTables
  readonly #database: TestDatabase | undefined
  readonly #looks: Promise<void>[] = []
  #n = 0

  private constructor(
    seed: number,
    parts: { sim: Sim; home: string; database: TestDatabase | undefined; isVersioned: boolean },
  ) {
    this.sim = parts.sim
    this.home = parts.home
    this.#database = parts.database
    this.isVersioned = parts.isVersioned
    this.ledgerUrl = parts.database?.url ?? `sqlite:${join(parts.home, 'ledger.db')}`
    this.random = seededRandom(seed)
  }

  static async start(seed: number, kind: Database): Promise<OracleWorld> {
    const database = kind === 'postgres' ? await freshDatabase() : undefined
    const home = mkdtempSync(join(tmpdir(), 'tidemark-oracle-'))
    const isVersioned = seed % 3 !== 0
    const envelope = ENVELOPES[seed % ENVELOPES.length]!
    const sim = await startSim({
      seed,
      sqs: {
        queues: PIPELINES.flatMap((name) => [
          deadOf(name),
          { name: queueOf(name), deadLetter: deadOf(name), receivesMax: RECEIVES_MAX },
        ]),
      },
      s3: {
        buckets: PIPELINES.map((name) => ({
          name: bucketOf(name),
          isVersioned,
          notify: [{ queue: queueOf(name), envelope }],
        })),
      },
    })
    const world = new OracleWorld(seed, { sim, home, database, isVersioned })
    await world.#configure()
    return world
  }

  async #configure(): Promise<void> {
    const { ledger, accounts, vault, tables } = await openParts(this)
    this.ledger = ledger
    this.tables = tables
    const { accessKeyId, secretAccessKey, region } = this.sim.s3.account
    for (const name of PIPELINES) {
      const config = {
        queue: {
          kind: 'sqs' as const,
          url: this.sim.sqs.queueUrl(queueOf(name)),
          region,
          endpoint: this.sim.sqs.baseUrl,
        },
        location: `s3://${bucketOf(name)}/`,
        store: { region, endpoint: this.sim.s3.baseUrl, pathStyle: true },
        mapping: { title: 'm', text: ['m'] },
        overwrites: OVERWRITES[name],
        listEveryMinutes: 0,
      }
      const place = { accounts, vault, engine: undefined as unknown as Engine }
      await addPipeline(place, { name, config, secret: { aws: { accessKeyId, secretAccessKey } } })
      this.#watchAcknowledgements(name)
    }
  }

  /** In the instant of an acknowledgement, whoever made it. */
  #watchAcknowledgements(name: PipelineName): void {
    const queue = this.sim.sqs.queue(queueOf(name))
    const acknowledge = queue.acknowledge.bind(queue)
    queue.acknowledge = (receipt, by) => {
      const message = queue.messages.find(({ receives }) => receives.at(-1)?.receipt === receipt)
      if (message?.outcome === 'waiting') {
        this.#looks.push(this.checkSettled(name, [{ id: message.id, body: Buffer.from(message.body) }]))
      }
      return acknowledge(receipt, by)
    }
  }

  /** What these messages announce is settled in the ledger as others see it, or the history has failed. */
  async checkSettled(name: string, messages: readonly { id: string; body: Uint8Array }[]): Promise<void> {
    for (const { id, body } of messages) {
      const envelope = parseEnvelope({ body, attributes: {} })
      if (envelope.kind === 'unknown')
        this.early.push(`${name}: ${id}, which nobody understands, was acknowledged`)
      if (envelope.kind !== 'objects') continue
      for (const { uri, version } of envelope.objects) {
        const row = await this.tables.shard(name, shardId(uri, version?.id ?? ''))
        // What was reopened meanwhile has been settled before.
        const isReopened = row !== undefined && row.created_at > (row.announced_at ?? row.listed_at ?? 0)
        if (row && (row.state !== 'open' || isReopened)) continue
        this.early.push(`${name}: ${id} was acknowledged while ${uri} was ${row ? row.state : 'unknown'}`)
      }
    }
  }

  async allLooked(): Promise<void> {
    await Promise.all(this.#looks)
  }

  /** Puts a new version there, or one that was there before, and announces it as the bucket does. */
  put(pipeline: PipelineName, key: string): KnownVersion {
    const bucket = bucketOf(pipeline)
    const earlier = [...this.known.values()].filter((one) => one.pipeline === pipeline && one.key === key)
    const isOld = earlier.length > 1 && this.random() < 0.1
    this.#n += 1
    const made = isOld ? earlier[0]! : makeObject(this.random, key, this.#n)
    const { etag } = this.sim.s3.store.put(bucket, key, made.bytes)
    const version = knownVersion(made, { pipeline, bucket, etag })
    this.known.set(`${pipeline}/${version.shard}`, version)
    return version
  }

  /** What the bucket has now. */
  current(pipeline: PipelineName): KnownVersion[] {
    const bucket = this.sim.s3.store.bucket(bucketOf(pipeline))
    return bucket.keys().flatMap((key) => {
      const now = bucket.current(key)
      const uri = `s3://${bucket.name}/${key}`
      return now ? [this.known.get(`${pipeline}/${shardId(uri, now.etag)}`)!] : []
    })
  }

  /** Shards of which the queue was told, whatever became of the messages. */
  announced(pipeline: PipelineName): Set<string> {
    const shards = new Set<string>()
    for (const { body } of this.sim.sqs.queue(queueOf(pipeline)).messages) {
      const envelope = parseEnvelope({ body: Buffer.from(body), attributes: {} })
      if (envelope.kind !== 'objects') continue
      for (const { uri, version } of envelope.objects) shards.add(shardId(uri, version?.id ?? ''))
    }
    return shards
  }

  /** The services fail now and then, and notices get lost on their way; null for fair weather. */
  weather(rules: FaultsInput['rules'] | null): void {
    this.sim.faults.set({ rules: rules ?? [] })
    const share = rules ? 0.12 : 0
    Object.assign(this.sim.s3.store.notices.faults, {
      lose: share,
      duplicate: 2 * share,
      reorder: 2 * share,
      delay: share,
      delayMsMax: 3_000,
    })
    if (!rules) this.sim.s3.store.notices.flush()
  }

  /** What is left in a queue is what nobody understands: it goes to the dead letters. */
  letDie(pipeline: PipelineName): void {
    const queue = this.sim.sqs.queue(queueOf(pipeline))
    if (queue.settings.deadLetter) queue.settings.deadLetter.receivesMax = 1
    for (const { id, outcome } of queue.messages) if (outcome === 'waiting') queue.expireReceipt(id)
  }

  /** Somebody else has the shards that are open now. Answers how many. */
  async stealTokens(): Promise<number> {
    return this.ledger.transaction((tx) =>
      tx.run(
        `UPDATE ingest_shards SET token = 'thief', updated_at = updated_at + 1
         WHERE state = 'open' AND token IS NOT NULL`,
      ),
    )
  }

  /** Open shards, and those of which a part is published. */
  async unsettled(): Promise<{ open: number; midway: number }> {
    const row = await this.ledger.driver.read((tx) =>
      tx.get<{ open: number; midway: number | null }>(
        `SELECT count(*) AS open, sum(CASE WHEN token IS NOT NULL THEN 1 ELSE 0 END) AS midway
         FROM ingest_shards WHERE state = 'open'`,
      ),
    )
    return { open: Number(row?.open ?? 0), midway: Number(row?.midway ?? 0) }
  }

  async close(): Promise<void> {
    await this.ledger.close()
    await this.sim.close()
    await this.#database?.drop()
    rmSync(this.home, { recursive: true, force: true })
  }
}
