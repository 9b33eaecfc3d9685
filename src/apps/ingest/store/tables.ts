/** The tables of object ingest, for whoever reads them; what is written with a job is in the other files of this folder. */
import type { Tx, Value } from '../../../ledger/contract.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import type { ShardState } from '../shard-states.ts'
import {
  oneOf,
  type PipelineRow,
  type QuarantineRow,
  SHARD_COLUMNS,
  type ShardRow,
  shardsById,
  type UnparsedRow,
} from './rows.ts'
import { ingestSchema } from './schema.ts'
import { DISPOSED } from './shards.ts'

/** `isListed`: the last complete listing shows them, or one that is under way. */
export type ShardCount = {
  state: ShardState
  code: string | null
  isListed: boolean
  n: number
  published: number
  quarantined: number
  bytes: number
}

export type ShardPage = {
  pipeline: string
  state?: ShardState | undefined
  code?: string | undefined
  uri?: string | undefined
  /** Of the last one, from an earlier page. */
  after: string
  limit: number
}

export class IngestTables {
  readonly ledger: Ledger

  private constructor(ledger: Ledger) {
    this.ledger = ledger
  }

  static async open(ledger: Ledger): Promise<IngestTables> {
    await ledger.migrateApp('ingest', ingestSchema(ledger.dialect))
    return new IngestTables(ledger)
  }

  pipeline(name: string): Promise<PipelineRow | undefined> {
    return this.#get<PipelineRow>(`SELECT * FROM ingest_pipelines WHERE name = ?`, [name])
  }

  /** Of which something is kept, configured or not. */
  async pipelines(): Promise<string[]> {
    const rows = await this.#all<{ name: string }>(`SELECT name FROM ingest_pipelines ORDER BY name`)
    return rows.map(({ name }) => name)
  }

  shard(pipeline: string, id: string): Promise<ShardRow | undefined> {
    return this.#get<ShardRow>(`SELECT ${SHARD_COLUMNS} FROM ingest_shards WHERE pipeline = ? AND id = ?`, [
      pipeline,
      id,
    ])
  }

  async data(pipeline: string, id: string): Promise<Uint8Array | null> {
    const row = await this.#get<{ data: Uint8Array | null }>(
      `SELECT data FROM ingest_shards WHERE pipeline = ? AND id = ?`,
      [pipeline, id],
    )
    return row?.data == null ? null : new Uint8Array(row.data)
  }

  /** Of one object, without those that are skipped. */
  versions(pipeline: string, uri: string): Promise<ShardRow[]> {
    return this.#all<ShardRow>(
      `SELECT ${SHARD_COLUMNS} FROM ingest_shards WHERE pipeline = ? AND uri = ? AND state <> 'skipped' ORDER BY id`,
      [pipeline, uri],
    )
  }

  /** What became of these. */
  async states(pipeline: string, ids: readonly string[]): Promise<ReadonlyMap<string, ShardStanding>> {
    const rows = await this.ledger.driver.read((tx) =>
      tx.all<ShardStanding & { id: string }>(
        shardsById(tx, 'id, state, code, token, eof, updated_at, sequencer, disposed, published'),
        [pipeline, JSON.stringify(ids)],
      ),
    )
    return new Map(rows.map(({ id, ...standing }) => [id, standing]))
  }

  /** Those of them that are open, and may be taken. */
  async open(pipeline: string, ids: readonly string[]): Promise<ShardRow[]> {
    const rows = await this.ledger.driver.read((tx) =>
      tx.all<ShardRow>(shardsById(tx, SHARD_COLUMNS), [pipeline, JSON.stringify(ids)]),
    )
    return rows.filter(({ state }) => state === 'open')
  }

  async openCount(pipeline: string): Promise<number> {
    const row = await this.#get<{ n: number }>(
      `SELECT count(*) AS n FROM ingest_shards WHERE pipeline = ? AND state = 'open'`,
      [pipeline],
    )
    return Number(row?.n ?? 0)
  }

  shards(page: ShardPage): Promise<ShardRow[]> {
    const where = ['pipeline = ?', 'id > ?']
    const params: Value[] = [page.pipeline, page.after]
    // As it is: only so the databases see that one of the smaller indexes has them. Most are stored, and found without.
    if (page.state !== undefined) where.push(`state = '${page.state}'`)
    if (page.state !== undefined && page.state !== 'stored') where.push(`state <> 'stored'`)
    for (const column of ['code', 'uri'] as const) {
      const value = page[column]
      if (value === undefined) continue
      where.push(`${column} = ?`)
      params.push(value)
    }
    return this.#all<ShardRow>(
      `SELECT ${SHARD_COLUMNS} FROM ingest_shards WHERE ${where.join(' AND ')} ORDER BY id LIMIT ?`,
      [...params, page.limit],
    )
  }

  /** With one of these addresses, newest first. */
  addressed(pipeline: string, uris: readonly string[], limit: number): Promise<ShardRow[]> {
    return this.ledger.driver.read((tx) =>
      tx.all<ShardRow>(
        `SELECT ${SHARD_COLUMNS} FROM ingest_shards WHERE pipeline = ? AND ${oneOf(tx, 'uri')}
         ORDER BY created_at DESC, id LIMIT ?`,
        [pipeline, JSON.stringify(uris), limit],
      ),
    )
  }

  /** Whose id begins so. */
  beginning(pipeline: string, id: string, limit: number): Promise<ShardRow[]> {
    return this.#all<ShardRow>(
      `SELECT ${SHARD_COLUMNS} FROM ingest_shards WHERE pipeline = ? AND id >= ? AND id < ? ORDER BY id LIMIT ?`,
      [pipeline, id, `${id}g`, limit],
    )
  }

  /** Addresses that end so, behind a slash. Looks through all of the pipeline. */
  async endingWith(pipeline: string, text: string, limit: number): Promise<string[]> {
    const rows = await this.#all<{ uri: string }>(
      `SELECT DISTINCT uri FROM ingest_shards WHERE pipeline = ? AND substr(uri, length(uri) - ?) = ?
       ORDER BY uri LIMIT ?`,
      [pipeline, [...text].length, `/${text}`, limit],
    )
    return rows.map(({ uri }) => uri)
  }

  /** Open for long, without a word: somebody looks after them. */
  stale(pipeline: string, beforeMs: number, limit: number): Promise<ShardRow[]> {
    return this.#all<ShardRow>(
      `SELECT ${SHARD_COLUMNS} FROM ingest_shards WHERE pipeline = ? AND state = 'open' AND updated_at < ?
       ORDER BY updated_at LIMIT ?`,
      [pipeline, beforeMs, limit],
    )
  }

  /** Replaced, and still in the index. */
  replaced(pipeline: string, limit: number): Promise<ShardRow[]> {
    return this.#all<ShardRow>(
      `SELECT ${SHARD_COLUMNS} FROM ingest_shards
       WHERE pipeline = ? AND state = 'skipped' AND published > 0 ORDER BY id LIMIT ?`,
      [pipeline, limit],
    )
  }

  /** Oldest first. */
  async oldestOpenMs(pipeline: string): Promise<number | null> {
    const row = await this.#get<{ at: number | null }>(
      `SELECT min(created_at) AS at FROM ingest_shards WHERE pipeline = ? AND state = 'open'`,
      [pipeline],
    )
    return row?.at ?? null
  }

  /** In the order of the index that has all of it, so that nothing is sorted. */
  async counts(pipeline: string): Promise<ShardCount[]> {
    const rows = await this.#all<
      Omit<ShardCount, 'isListed'> & { listing: number | null; listed: number | null }
    >(
      `SELECT s.state, s.code, s.listing, count(*) AS n, sum(s.published) AS published,
         sum(s.quarantined) AS quarantined, sum(COALESCE(s.size, 0)) AS bytes,
         (SELECT p.listed_generation FROM ingest_pipelines p WHERE p.name = ?) AS listed
       FROM ingest_shards s WHERE s.pipeline = ? GROUP BY s.state, s.code, s.listing`,
      [pipeline, pipeline],
    )
    return rows.map(({ listing, listed, ...row }) => ({
      state: row.state,
      code: row.code,
      isListed: listing !== null && listed !== null && Number(listing) >= Number(listed),
      n: Number(row.n),
      published: Number(row.published),
      quarantined: Number(row.quarantined),
      bytes: Number(row.bytes),
    }))
  }

  /** What was settled since then. */
  async recent(
    pipeline: string,
    sinceMs: number,
  ): Promise<{ objects: number; records: number; bytes: number }> {
    const row = await this.#get<{ objects: number; records: number | null; bytes: number | null }>(
      `SELECT count(*) AS objects, sum(published) AS records, sum(COALESCE(size, 0)) AS bytes FROM ingest_shards
       WHERE pipeline = ? AND state IN ('stored', 'skipped', 'bad') AND settled_at >= ?`,
      [pipeline, sinceMs],
    )
    return {
      objects: Number(row?.objects ?? 0),
      records: Number(row?.records ?? 0),
      bytes: Number(row?.bytes ?? 0),
    }
  }

  async takeovers(pipeline: string): Promise<number> {
    const row = await this.#get<{ n: number | null }>(
      `SELECT sum(takeovers) AS n FROM ingest_shards WHERE pipeline = ? AND takeovers > 0`,
      [pipeline],
    )
    return Number(row?.n ?? 0)
  }

  /** Objects with which something was done besides reading them, or could not be. */
  async afterwards(pipeline: string): Promise<{ code: string; count: number }[]> {
    const rows = await this.#all<{ code: string; n: number }>(
      `SELECT disposed AS code, count(*) AS n FROM ingest_shards WHERE pipeline = ? AND disposed IS NOT NULL
       GROUP BY disposed ORDER BY n DESC, code`,
      [pipeline],
    )
    return rows.map(({ code, n }) => ({ code, count: Number(n) }))
  }

  /** Those with which something was to be done, and that were left where they are: oldest ids first. */
  left(pipeline: string, after: string, limit: number): Promise<ShardRow[]> {
    const over = [...DISPOSED].map((how) => `'${how}'`).join(', ')
    return this.#all<ShardRow>(
      `SELECT ${SHARD_COLUMNS} FROM ingest_shards WHERE pipeline = ? AND disposed IS NOT NULL
         AND disposed NOT IN (${over}) AND state = 'stored' AND id > ? ORDER BY id LIMIT ?`,
      [pipeline, after, limit],
    )
  }

  quarantine(page: {
    pipeline: string
    shard?: string | undefined
    /** Without those of objects that were replaced, of which nothing is read any more. */
    isLive?: boolean
    after: { shard: string; at: number }
    limit: number
  }): Promise<QuarantineRow[]> {
    const { pipeline, shard, isLive, after, limit } = page
    return this.#all<QuarantineRow>(
      `SELECT q.*, COALESCE(s.uri, '') AS uri FROM ingest_quarantine q
         LEFT JOIN ingest_shards s ON s.pipeline = q.pipeline AND s.id = q.shard
       WHERE q.pipeline = ? ${shard === undefined ? '' : 'AND q.shard = ?'}
         ${isLive ? `AND COALESCE(s.state, '') <> 'skipped'` : ''}
         AND (q.shard > ? OR (q.shard = ? AND q.at > ?)) ORDER BY q.shard, q.at LIMIT ?`,
      [pipeline, ...(shard === undefined ? [] : [shard]), after.shard, after.shard, after.at, limit],
    )
  }

  /** The numbers of all records of an object that are in quarantine. */
  async quarantinedAt(pipeline: string, shard: string): Promise<number[]> {
    const rows = await this.#all<{ at: number }>(
      `SELECT at FROM ingest_quarantine WHERE pipeline = ? AND shard = ? ORDER BY at`,
      [pipeline, shard],
    )
    return rows.map(({ at }) => Number(at))
  }

  /** Objects that have such records and may be read, and how many. */
  async quarantinedBy(
    pipeline: string,
    after: string,
    limit: number,
  ): Promise<{ shard: string; n: number }[]> {
    const rows = await this.#all<{ shard: string; n: number }>(
      `SELECT q.shard, count(*) AS n FROM ingest_quarantine q
         JOIN ingest_shards s ON s.pipeline = q.pipeline AND s.id = q.shard AND s.state <> 'skipped'
       WHERE q.pipeline = ? AND q.shard > ? GROUP BY q.shard ORDER BY q.shard LIMIT ?`,
      [pipeline, after, limit],
    )
    return rows.map(({ shard, n }) => ({ shard, n: Number(n) }))
  }

  unparsed(pipeline: string, limit: number): Promise<UnparsedRow[]> {
    return this.#all<UnparsedRow>(
      `SELECT * FROM ingest_unparsed WHERE pipeline = ? ORDER BY last_at DESC, message LIMIT ?`,
      [pipeline, limit],
    )
  }

  async unparsedBy(pipeline: string): Promise<{ code: string; count: number }[]> {
    const rows = await this.#all<{ code: string; n: number }>(
      `SELECT code, count(*) AS n FROM ingest_unparsed WHERE pipeline = ? GROUP BY code ORDER BY n DESC, code`,
      [pipeline],
    )
    return rows.map(({ code, n }) => ({ code, count: Number(n) }))
  }

  #get<T extends object>(sql: string, params: Parameters<Tx['get']>[1] = []): Promise<T | undefined> {
    return this.ledger.driver.read((tx) => tx.get<T>(sql, params))
  }

  #all<T extends object>(sql: string, params: Parameters<Tx['all']>[1] = []): Promise<T[]> {
    return this.ledger.driver.read((tx) => tx.all<T>(sql, params))
  }
}

export type ShardStanding = Pick<
  ShardRow,
  'state' | 'code' | 'token' | 'eof' | 'updated_at' | 'sequencer' | 'disposed' | 'published'
>
