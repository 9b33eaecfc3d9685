/**
 * Two pipelines on one ledger, each with a bucket and a queue of the simulated cloud: one in which a new version replaces
 * the one before, one in which it is added. In some worlds objects that are stored are moved or deleted. It remembers what
 * was put where, and looks at whoever acknowledges a message or removes an object, in that instant.
 */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freshDatabase, type TestDatabase } from '../../scripts/test-database.ts'
import { addPipeline, removePipeline } from '../../src/apps/ingest/configure.ts'
import { compareSequencers, parseEnvelope } from '../../src/apps/ingest/envelope.ts'
import { KeptObjects } from '../../src/apps/ingest/kept-objects.ts'
import { keyOf, SERVICE, shardId, streamOf } from '../../src/apps/ingest/pipeline.ts'
import type { IngestTables } from '../../src/apps/ingest/store/tables.ts'
import { type Clock, systemClock } from '../../src/base/clock.ts'
import { type Random, seededRandom } from '../../src/base/random.ts'
import type { Vault } from '../../src/base/vault.ts'
import type { Engine } from '../../src/engine/index.ts'
import type { Accounts } from '../../src/ledger/accounts.ts'
import type { Tx } from '../../src/ledger/contract.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { openSearch, type Search } from '../../src/search/search.ts'
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

/** What becomes of objects that are stored. */
export const AFTERS = ['keep', 'move', 'delete'] as const
export type After = (typeof AFTERS)[number]
/** So that versions, envelopes and these come in all combinations. */
const SEEDS_PER_AFTER = 12

const ENVELOPES = ['s3', 'sns', 'sns-raw', 'eventbridge'] as const
/** Of the times at which the store tells which version it has. */
const BEHIND_LOOKS_SHARE = 0.05
/** Of what is put where there was another version: content that was there before, which has the same etag. */
const OLD_SHARE = 0.4
/** Of these: only a listing tells of them. */
const UNTOLD_SHARE = 0.5
/** Nothing dies before the end, when only what nobody understands is left. */
const RECEIVES_MAX = 100_000
/** How messages begin that nobody understands. */
export const JUNK = 'nobody understands'
/** More than all that can be seen of a pipeline at a time, so that one look is one moment. */
const SEEN_MAX = 10_000
/** Below which objects are moved. */
const DONE = 'done/'
/** As lives call it. */
export const HOST = 'this-machine'

export const bucketOf = (pipeline: PipelineName): string => `bucket-${pipeline}`
export const queueOf = (pipeline: PipelineName): string => `queue-${pipeline}`
const deadOf = (pipeline: PipelineName): string => `dead-${pipeline}`
const pipelineOf = (bucket: string): PipelineName => PIPELINES.find((name) => bucketOf(name) === bucket)!

/**
 * Every shard that was ever settled, as what, when, and up to which announcement of it: written by the database itself,
 * whoever settles it.
 */
async function watchSettled(tx: Tx): Promise<void> {
  const isSqlite = tx.dialect === 'sqlite'
  await tx.run(
    `CREATE TABLE oracle_settled (n ${isSqlite ? 'INTEGER PRIMARY KEY' : 'BIGINT GENERATED ALWAYS AS IDENTITY'},
       pipeline TEXT NOT NULL, id TEXT NOT NULL, state TEXT NOT NULL, sequencer TEXT,
       at ${isSqlite ? 'INTEGER' : 'BIGINT'} NOT NULL)`,
  )
  await tx.run(`CREATE INDEX oracle_settled_id ON oracle_settled(pipeline, id)`)
  const nowMs = isSqlite
    ? `CAST(unixepoch('subsec') * 1000 AS INTEGER)`
    : `(extract(epoch FROM clock_timestamp()) * 1000)::bigint`
  const note = `INSERT INTO oracle_settled(pipeline, id, state, sequencer, at)
    VALUES (NEW.pipeline, NEW.id, NEW.state, NEW.sequencer, ${nowMs});`
  // Whoever had the shard has lost it: nothing but a takeover may change what is published of it.
  const isStolen = `OLD.token = '${THIEF}' AND ((NEW.token = OLD.token AND NEW.records <> OLD.records)
    OR (NEW.state = 'stored' AND OLD.state = 'open'))`
  await tx.run(`CREATE TABLE oracle_stolen (pipeline TEXT NOT NULL, id TEXT NOT NULL)`)
  const noteStolen = `INSERT INTO oracle_stolen(pipeline, id) VALUES (NEW.pipeline, NEW.id);`
  if (isSqlite) {
    await tx.run(
      `CREATE TRIGGER oracle_stolen AFTER UPDATE ON ingest_shards WHEN ${isStolen} BEGIN ${noteStolen} END`,
    )
    for (const when of ['INSERT', 'UPDATE OF state, sequencer'])
      await tx.run(`CREATE TRIGGER oracle_${when.slice(0, 6)} AFTER ${when} ON ingest_shards
        WHEN NEW.state <> 'open' BEGIN ${note} END`)
    return
  }
  await tx.run(
    `CREATE FUNCTION oracle_note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${note} RETURN NEW; END $$`,
  )
  await tx.run(
    `CREATE FUNCTION oracle_note_stolen() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${noteStolen} RETURN NEW; END $$`,
  )
  await tx.run(`CREATE TRIGGER oracle_stolen AFTER UPDATE ON ingest_shards FOR EACH ROW
    WHEN (${isStolen}) EXECUTE FUNCTION oracle_note_stolen()`)
  await tx.run(`CREATE TRIGGER oracle_settled AFTER INSERT OR UPDATE OF state, sequencer ON ingest_shards FOR EACH ROW
    WHEN (NEW.state <> 'open') EXECUTE FUNCTION oracle_note()`)
}

const THIEF = 'thief'
/** What a pipeline is called that was removed, and has a successor of its name. */
const before = (name: string): string => `${name}, before`
const COMMITTED_AT = `floor(extract(epoch FROM pg_xact_commit_timestamp(xmin)) * 1000)`

/** Only a PostgreSQL that was told so keeps the time of each commit. */
async function isCommitTimed(tx: Tx): Promise<boolean> {
  if (tx.dialect === 'sqlite') return false
  const row = await tx.get<{ setting: string }>(`SELECT current_setting('track_commit_timestamp') AS setting`)
  return row?.setting === 'on'
}

type VersionNames = { uri: string; version: string; version_id: string | null }

export class OracleWorld {
  readonly sim: Sim
  readonly home: string
  readonly ledgerUrl: string
  readonly random: Random
  readonly clock: Clock
  readonly isVersioned: boolean
  readonly after: After
  readonly kept: KeptObjects
  /** By shard; the same bytes under the same key are one. */
  readonly known = new Map<string, KnownVersion>()
  /** By pipeline and key: what somebody put there last, wherever it is now. Its records must be found. */
  readonly #latest = new Map<string, KnownVersion>()
  /** By pipeline and key: the shard of what was put there last, where somebody took it away. */
  readonly #takenAway = new Map<string, string>()
  /** Acknowledged before it was settled, or removed before it was safe. */
  readonly early: string[] = []
  /** By whoever ingests. */
  removals = 0
  /** Whether people are at work. */
  isLively = false
  putsBehindLooks = 0
  /** Addresses of which the store has said for a time that nothing was there. */
  readonly wasMissing = new Set<string>()
  ledger!: Ledger
  tables!: IngestTables
  readonly #database: TestDatabase | undefined
  readonly #looks: Promise<void>[] = []
  /** Messages that a pipeline had done with before it was removed: the next one of its name never hears of them. */
  readonly #forgotten = new Set<string>()
  readonly #madeAnewAtMs = new Map<PipelineName, number>()
  /** When somebody wrote it, or better when that was committed: what is committed later is no excuse. */
  #settledAt = 'at'
  #search!: Search
  #accounts!: Accounts
  #vault!: Vault
  #n = 0

  private constructor(
    seed: number,
    parts: {
      sim: Sim
      home: string
      clock: Clock
      database: TestDatabase | undefined
      isVersioned: boolean
    },
  ) {
    this.sim = parts.sim
    this.clock = parts.clock
    this.home = parts.home
    this.#database = parts.database
    this.isVersioned = parts.isVersioned
    this.after = AFTERS[Math.floor(seed / SEEDS_PER_AFTER) % AFTERS.length]!
    this.kept = new KeptObjects({ home: parts.home, host: HOST })
    this.ledgerUrl = parts.database?.url ?? `sqlite:${join(parts.home, 'ledger.db')}`
    this.random = seededRandom(seed)
  }

  static async start(seed: number, kind: Database, clock: Clock): Promise<OracleWorld> {
    const database = kind === 'postgres' ? await freshDatabase() : undefined
    const home = mkdtempSync(join(tmpdir(), 'tidemark-oracle-'))
    const isVersioned = seed % 3 !== 0
    const envelope = ENVELOPES[seed % ENVELOPES.length]!
    const sim = await startSim({
      seed,
      clock,
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
    const world = new OracleWorld(seed, { sim, home, clock, database, isVersioned })
    await world.#configure()
    return world
  }

  async #configure(): Promise<void> {
    const { ledger, accounts, vault, tables } = await openParts(this)
    this.ledger = ledger
    this.tables = tables
    this.#accounts = accounts
    this.#vault = vault
    await ledger.transaction((tx) => watchSettled(tx))
    if (await ledger.driver.read((tx) => isCommitTimed(tx))) this.#settledAt = COMMITTED_AT
    for (const name of PIPELINES) {
      await this.addPipeline(name)
      this.#watchAcknowledgements(name)
    }
    this.#watchRemovals()
    this.#putBehindLooks()
    this.#search = openSearch({ ledger })
    await this.#search.prepare()
  }

  async addPipeline(name: PipelineName): Promise<void> {
    const { accessKeyId, secretAccessKey, region } = this.sim.s3.account
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
      after:
        this.after === 'move' ? { do: this.after, to: `s3://${bucketOf(name)}/${DONE}` } : { do: this.after },
    }
    const place = { accounts: this.#accounts, vault: this.#vault, engine: undefined as unknown as Engine }
    await addPipeline(place, { name, config, secret: { aws: { accessKeyId, secretAccessKey } } })
  }

  /** What was announced and done with is asked for by nobody any more, and what is not in its place is found by nobody. */
  async removePipeline(name: PipelineName): Promise<void> {
    const place = { accounts: this.#accounts, vault: this.#vault, engine: undefined as unknown as Engine }
    await removePipeline(place, name)
    for (const { id, outcome } of this.sim.sqs.queue(queueOf(name)).messages)
      if (outcome !== 'waiting') this.#forgotten.add(id)
    const there = new Set(this.current(name).map(({ shard }) => shard))
    for (const [at, { pipeline, shard }] of this.#latest) {
      if (pipeline === name && !there.has(shard)) this.#latest.delete(at)
    }
    // What the pipeline before settled is no excuse for the next one of its name, but for acknowledgements on their way.
    await this.allLooked()
    await this.ledger.transaction((tx) =>
      tx.run(`UPDATE oracle_settled SET pipeline = ? WHERE pipeline = ?`, [before(name), name]),
    )
    this.#madeAnewAtMs.set(name, this.clock.now())
  }

  /** In the instant of an acknowledgement, whoever made it. */
  #watchAcknowledgements(name: PipelineName): void {
    const queue = this.sim.sqs.queue(queueOf(name))
    const acknowledge = queue.acknowledge.bind(queue)
    queue.acknowledge = (receipt, by) => {
      const message = queue.messages.find(({ receives }) => receives.at(-1)?.receipt === receipt)
      if (message?.outcome === 'waiting') {
        const isOfBefore = message.receives.at(-1)!.atMs < (this.#madeAnewAtMs.get(name) ?? 0)
        const told = [{ id: message.id, body: Buffer.from(message.body) }]
        this.#looks.push(this.checkSettled(name, told, { isOfBefore }))
      }
      return acknowledge(receipt, by)
    }
  }

  /**
   * What these messages announce was settled before now, with this announcement or a later one of it, or the history has
   * failed. What is settled while the ledger is asked comes too late. One that was received before the pipeline was made
   * anew may have been placed before that, or after.
   */
  async checkSettled(
    name: string,
    messages: readonly { id: string; body: Uint8Array }[],
    { isOfBefore = false } = {},
  ): Promise<void> {
    const nowMs = systemClock.now()
    for (const { id, body } of messages) {
      const envelope = parseEnvelope({ body, attributes: {} })
      if (envelope.kind === 'unknown')
        this.early.push(`${name}: ${id}, which nobody understands, was acknowledged`)
      if (envelope.kind !== 'objects') continue
      for (const { uri, version } of envelope.objects) {
        if (this.#isMovedTo(uri)) continue
        const shard = shardId(uri, version?.id ?? '')
        const settled = await this.#settled(name, shard, nowMs)
        if (isOfBefore) settled.push(...(await this.#settled(before(name), shard, nowMs)))
        const told = version?.sequencer
        const isCovered = settled.some(
          ({ sequencer }) =>
            told === undefined || (sequencer !== null && compareSequencers(sequencer, told) >= 0),
        )
        if (isCovered) continue
        this.early.push(
          `${name}: ${id} was acknowledged before ${uri} ${shard} was settled: ${JSON.stringify(settled)}`,
        )
      }
    }
  }

  #settled(
    pipeline: string,
    shard: string,
    nowMs: number,
  ): Promise<{ state: string; sequencer: string | null }[]> {
    return this.ledger.driver.read((tx) =>
      tx.all<{ state: string; sequencer: string | null }>(
        `SELECT state, sequencer FROM oracle_settled WHERE pipeline = ? AND id = ? AND ${this.#settledAt} <= ?
         ORDER BY n`,
        [pipeline, shard, nowMs],
      ),
    )
  }

  #isMovedTo(uri: string): boolean {
    return this.after === 'move' && PIPELINES.some((name) => uri.startsWith(`s3://${bucketOf(name)}/${DONE}`))
  }

  /** In the instant in which an object is removed by a call: its records are stored, and its bytes are somewhere else. */
  #watchRemovals(): void {
    const { store } = this.sim.s3
    const remove = store.remove.bind(store)
    store.remove = (bucket, key) => {
      const now = store.bucket(bucket).current(key)
      if (now) this.#looks.push(this.#checkRemoval(pipelineOf(bucket), key, now.etag))
      return remove(bucket, key)
    }
    this.#remove = remove
  }

  /** Somebody puts another one there in the instant after the store has told which it has: also before it is removed. */
  #putBehindLooks(): void {
    for (const pipeline of PIPELINES) {
      const bucket = this.sim.s3.store.bucket(bucketOf(pipeline))
      const current = bucket.current.bind(bucket)
      bucket.current = (key) => {
        const told = current(key)
        if (told && this.isLively && !key.startsWith(DONE) && this.random() < BEHIND_LOOKS_SHARE) {
          queueMicrotask(() => {
            this.put(pipeline, key)
            this.putsBehindLooks += 1
          })
        }
        return told
      }
    }
  }

  #remove: (bucket: string, key: string) => unknown = () => undefined
  /** By pipeline and shard: when whoever ingests removed it last. */
  readonly #removedAtMs = new Map<string, number>()

  removedAtMs({ pipeline, shard }: KnownVersion): number | undefined {
    return this.#removedAtMs.get(`${pipeline}/${shard}`)
  }

  async #checkRemoval(pipeline: PipelineName, key: string, etag: string): Promise<void> {
    this.removals += 1
    const nowMs = systemClock.now()
    const shard = shardId(`s3://${bucketOf(pipeline)}/${key}`, etag)
    const tell = (what: string): void => {
      this.early.push(`${pipeline}: ${key} ${shard} was removed ${what}`)
    }
    const version = this.known.get(`${pipeline}/${shard}`)
    if (!version) return tell('and nobody had put it there')
    this.#removedAtMs.set(`${pipeline}/${shard}`, this.clock.now())
    if (!this.#hasCopy(pipeline, version)) tell(`by --after ${this.after} without a copy`)
    // What was replaced since is not stored any more, until it is read again.
    if ((await this.#settled(pipeline, shard, nowMs)).at(-1)?.state !== 'stored') tell('before it was stored')
  }

  /** Looked at without waiting: what is copied later is too late. */
  #hasCopy(pipeline: PipelineName, version: KnownVersion): boolean {
    if (this.after === 'delete') return this.kept.has({ pipeline, shard: version.shard })
    if (this.after !== 'move') return false
    return this.copies(pipeline, version).length > 0
  }

  /** At this moment a reader finds records of one version of each object, where one replaces the other: never none, either. */
  async checkOneSeen(): Promise<void> {
    const pipeline = 'replaced'
    const stored = await this.ledger.driver.read((tx) =>
      tx.all<{ uri: string }>(
        `SELECT DISTINCT uri FROM ingest_shards WHERE pipeline = ? AND state = 'stored' AND published > 0`,
        [pipeline],
      ),
    )
    const of = { source: SERVICE, principal: streamOf(pipeline), after: '', limit: SEEN_MAX }
    const shards = new Set((await this.#search.refs(of)).map((ref) => ref.split('/')[1]!))
    const seen = [...shards].flatMap((shard) => this.known.get(`${pipeline}/${shard}`) ?? [])
    for (const [uri, versions] of Map.groupBy(seen, (one) => one.uri)) {
      if (versions.length > 1)
        this.early.push(`${uri} was seen as ${versions.map((one) => one.shard).join()}`)
    }
    // Of some versions nothing can be read, and they replace others as well.
    const mayBeEmpty = (uri: string): boolean =>
      [...this.known.values()].some((one) => one.uri === uri && one.titles.size === one.long.size)
    for (const { uri } of stored) {
      if (!seen.some((one) => one.uri === uri) && !mayBeEmpty(uri))
        this.early.push(`${uri} was stored, and nothing of it was seen`)
    }
  }

  /** What was moved of it: objects below the place for these, with its bytes. */
  copies(pipeline: PipelineName, { key, bytes }: KnownVersion): string[] {
    const bucket = this.sim.s3.store.bucket(bucketOf(pipeline))
    return bucket.keys().filter((name) => {
      const there = name.startsWith(`${DONE}${key}`) ? bucket.current(name) : undefined
      return there && Buffer.concat([...there.content.read(0, there.content.sizeBytes)]).equals(bytes)
    })
  }

  /** Somebody puts something new there and takes it away, whoever needs it. A bucket with versions still has it. */
  putAndTakeAway(pipeline: PipelineName, key: string): KnownVersion {
    const { isOld, ...version } = this.put(pipeline, key)
    this.#remove(bucketOf(pipeline), key)
    this.#latest.delete(`${pipeline}/${key}`)
    if (!isOld) this.#takenAway.set(`${pipeline}/${key}`, version.shard)
    return version
  }

  /** It is what was put there last, and only by its announcement and its version somebody finds it. */
  isTakenAway({ pipeline, key, shard }: KnownVersion): boolean {
    return this.#takenAway.get(`${pipeline}/${key}`) === shard
  }

  async allLooked(): Promise<void> {
    await Promise.all(this.#looks)
  }

  /** Puts a new version there, or one that was there before, and announces it as the bucket does. */
  put(pipeline: PipelineName, key: string): KnownVersion & { isOld: boolean } {
    const bucket = bucketOf(pipeline)
    const now = this.current(pipeline).find((one) => one.key === key)
    // Also what was there last, where it is not there any more.
    const earlier = [...this.known.values()].filter(
      (one) => one.pipeline === pipeline && one.key === key && one.shard !== now?.shard,
    )
    const isOld = earlier.length > 0 && this.random() < OLD_SHARE
    this.#n += 1
    const old = isOld ? earlier[Math.floor(this.random() * earlier.length)] : undefined
    const made = old ?? makeObject(this.random, key, this.#n)
    const { faults } = this.sim.s3.store.notices
    const { lose } = faults
    if (isOld && this.random() < UNTOLD_SHARE) faults.lose = 1
    const { etag } = this.sim.s3.store.put(bucket, key, made.bytes)
    faults.lose = lose
    const version = knownVersion(made, { pipeline, bucket, etag })
    this.known.set(`${pipeline}/${version.shard}`, version)
    this.#latest.set(`${pipeline}/${key}`, version)
    this.#takenAway.delete(`${pipeline}/${key}`)
    return { ...version, isOld }
  }

  /** What was there before, where there was something, without a word to anybody. */
  putBack(pipeline: PipelineName, key: string): KnownVersion | undefined {
    const now = this.current(pipeline).find((one) => one.key === key)
    const old = [...this.known.values()].find(
      (one) => one.pipeline === pipeline && one.key === key && one.shard !== now?.shard,
    )
    if (!old) return undefined
    const { faults } = this.sim.s3.store.notices
    const { lose } = faults
    faults.lose = 1
    this.sim.s3.store.put(bucketOf(pipeline), key, old.bytes)
    faults.lose = lose
    this.#latest.set(`${pipeline}/${key}`, old)
    return old
  }

  /** What somebody put there last, wherever it is now. */
  latest(pipeline: PipelineName): KnownVersion[] {
    return [...this.#latest.values()].filter((one) => one.pipeline === pipeline)
  }

  /** By its version id, where one was told; a version that nobody can name is not there unless it is the current one. */
  hasVersion(pipeline: PipelineName, { uri, version, version_id }: VersionNames): boolean {
    const bucket = this.sim.s3.store.bucket(bucketOf(pipeline))
    if (version_id === null) return bucket.current(keyOf(uri))?.etag === version
    return bucket.version(keyOf(uri), (one) => one.versionId === version_id) !== undefined
  }

  /** What the bucket has now, in the places where people put it. */
  current(pipeline: PipelineName): KnownVersion[] {
    const bucket = this.sim.s3.store.bucket(bucketOf(pipeline))
    return bucket.keys().flatMap((key) => {
      const now = key.startsWith(DONE) ? undefined : bucket.current(key)
      const uri = `s3://${bucket.name}/${key}`
      return now ? [this.known.get(`${pipeline}/${shardId(uri, now.etag)}`)!] : []
    })
  }

  /** Shards of which the pipeline was told since it was made, each with the last sequencer that was told of it. */
  announced(pipeline: PipelineName): Map<string, string> {
    const shards = new Map<string, string>()
    for (const { id, body } of this.sim.sqs.queue(queueOf(pipeline)).messages) {
      if (this.#forgotten.has(id)) continue
      const envelope = parseEnvelope({ body: Buffer.from(body), attributes: {} })
      if (envelope.kind !== 'objects') continue
      for (const { uri, version } of envelope.objects) {
        const shard = shardId(uri, version?.id ?? '')
        const before = shards.get(shard) ?? ''
        const told = version?.sequencer ?? ''
        shards.set(shard, compareSequencers(before, told) > 0 ? before : told)
      }
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
      tx.run(`UPDATE ingest_shards SET token = '${THIEF}', updated_at = updated_at + 1 WHERE state = 'open'`),
    )
  }

  /** Of which something was published after their token was stolen, by whoever had it before. */
  async publishedStolen(): Promise<string[]> {
    const rows = await this.ledger.driver.read((tx) =>
      tx.all<{ pipeline: string; id: string }>(`SELECT pipeline, id FROM oracle_stolen`),
    )
    return rows.map(({ pipeline, id }) => `${pipeline}: ${id} was published by one whose token was stolen`)
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
    await this.#search.close()
    await this.ledger.close()
    await this.sim.close()
    await this.#database?.drop()
    rmSync(this.home, { recursive: true, force: true })
  }
}
