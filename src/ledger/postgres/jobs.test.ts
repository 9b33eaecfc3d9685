import assert from 'node:assert/strict'
import { after, before, describe, mock, test } from 'node:test'
import pg from 'pg'
import { freshDatabase, type TestDatabase } from '../../../scripts/test-database.ts'
import { systemClock } from '../../base/clock.ts'
import { seededRandom } from '../../base/random.ts'
import type { ClaimedJob, InsertRow } from '../contract.ts'
import { Ledger } from '../ledger.ts'
import { connect, hangUp, parseTarget } from './connection.ts'
import { DONE, DONE_MIXED, READY, TAKE } from './jobs.ts'
import { openPostgres } from './open.ts'

let database: TestDatabase
let ledger: Ledger
let client: pg.Client
before(async () => {
  database = await freshDatabase()
  ledger = new Ledger(await openPostgres({ url: database.url, clock: systemClock }), {
    random: seededRandom(1),
  })
  client = await connect(parseTarget(database.url), 'writer')
})
after(async () => {
  await hangUp(client)
  await ledger.close()
  await database.drop()
})

type Plan = { 'Node Type': string; 'Index Name'?: string; 'Relation Name'?: string; Plans?: Plan[] }
type Explained = { Plan: Plan & { 'Shared Hit Blocks': number; 'Shared Read Blocks': number } }

/** The plan that is kept for a prepared statement, and how many pages it touched. */
async function explain(sql: string, args: string): Promise<{ ways: Set<string>; pages: number }> {
  await client.query('BEGIN READ WRITE')
  try {
    await client.query('SET LOCAL plan_cache_mode = force_generic_plan')
    await client.query(`PREPARE explained AS ${sql}`)
    const { rows } = await client.query(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE explained(${args})`)
    const [top] = JSON.parse(rows[0]['QUERY PLAN'] as string) as [Explained]
    const ways = new Set<string>()
    const walk = (plan: Plan): void => {
      const isWay = plan['Relation Name'] !== undefined || plan['Index Name'] !== undefined
      if (isWay && plan['Node Type'] !== 'ModifyTable') {
        ways.add(`${plan['Node Type']} ${plan['Index Name'] ?? ''}`.trim())
      }
      for (const child of plan.Plans ?? []) walk(child)
    }
    walk(top.Plan)
    return { ways, pages: top.Plan['Shared Hit Blocks'] + top.Plan['Shared Read Blocks'] }
  } finally {
    await client.query('ROLLBACK')
    await client.query('DEALLOCATE ALL')
  }
}

describe('the plans of the hot statements', () => {
  before(async () => {
    await client.query('BEGIN READ WRITE; ALTER TABLE jobs SET (autovacuum_enabled = off); COMMIT')
    // The worst case: what the server knows of the table is from when it was empty.
    await client.query('BEGIN READ WRITE; ANALYZE jobs; COMMIT')
    await client.query(`BEGIN READ WRITE;
      INSERT INTO jobs(kind, lane, payload, created_at, stream_id) SELECT 'big', 'bulk', '{}', 1, 5 FROM generate_series(1, 100000);
      INSERT INTO jobs(kind, lane, payload, created_at, stream_id, priority) VALUES ('small', 'bulk', '{}', 1, 5, 7), ('big', 'bulk', '{}', 1, 9, 3);
      COMMIT`)
  })

  test('finding the queues skips along the ready index, however long they are', async () => {
    const { ways, pages } = await explain(
      READY,
      `'bulk', 512, '{0}', '{""}', '{99}', '{""}', '{}', '{}', '{}', '{}'`,
    )
    assert.deepEqual([...ways], ['Index Only Scan jobs_ready'])
    assert.ok(pages < 40, `${pages} pages`)
    const queues = await ledger.driver.read((tx) =>
      ledger.driver.readyQueues(tx, 'bulk', { fromStream: 0, max: 512 }),
    )
    assert.deepEqual(queues, [
      { streamId: 5, kind: 'big', priority: 0 },
      { streamId: 5, kind: 'small', priority: 7 },
      { streamId: 9, kind: 'big', priority: 3 },
    ])
  })

  test('taking jobs reads the ready index, then the rows where they are', async () => {
    const { ways } = await explain(
      TAKE,
      `'bulk', '{5}', '{big}', '{100}', '{-1}', '{9007199254740991}', '{0}', 1, 1, '{1000000}', 1000000, 5, 'big'`,
    )
    assert.deepEqual([...ways].sort(), ['Index Scan jobs_ready', 'Tid Scan'])
  })

  test('settling jobs reads the primary key, however many jobs the owner holds', async () => {
    const { ways, pages } = await explain(DONE, `1, '{1,2,3}', 1, 1`)
    assert.deepEqual([...ways].sort(), ['Bitmap Heap Scan', 'Bitmap Index Scan jobs_pkey'])
    assert.ok(pages < 40, `${pages} pages`)
    const mixed = await explain(DONE_MIXED, `1, '{1,2,3}', '{1,2,1}', 1`)
    assert.deepEqual([...mixed.ways].sort(), ['Index Scan jobs_pkey', 'Tid Scan'])
    assert.ok(mixed.pages < 40, `${mixed.pages} pages`)
  })
})

describe('inserting jobs', () => {
  const row = (name: string, key: string | null): InsertRow => ({
    kind: 'insert',
    key,
    streamId: 0,
    segmentId: null,
    parentId: null,
    lane: 'interactive',
    priority: 0,
    wait: 'time',
    runAt: 9,
    depsLeft: 0,
    payload: JSON.stringify({ name }),
    size: null,
    items: 1,
    badId: null,
    createdAt: 1,
  })

  test('gives each row its own id, in order, and none where the key is taken', async () => {
    const rows = [
      row('a', null),
      row('b', 'k1'),
      row('c', 'k1'),
      row('d', null),
      row('e', 'k2'),
      row('f', 'k3'),
      row('g', null),
    ]
    await ledger.driver.transaction((tx) => ledger.driver.insertJobs(tx, [row('holder', 'k2')]))
    const ids = await ledger.driver.transaction((tx) => ledger.driver.insertJobs(tx, rows))
    assert.deepEqual(
      ids.map((id) => id === null),
      [false, false, true, false, true, false, false],
    )
    for (const [index, id] of ids.entries()) {
      if (id !== null) assert.equal((await ledger.job(id))!.job.payload, rows[index]!.payload)
    }
  })

  test('keeps every character of a text', async () => {
    const nasty = [
      '',
      '"',
      '\\',
      '\\"',
      '{a,b}',
      'NULL',
      "it's",
      'a\nb\tc',
      '\u{1f30a} ä',
      ' ',
      '$1 ?',
      '{"a":"\\u0000"}',
    ]
    const rows = nasty.map((text) => ({ ...row('', null), payload: text }))
    const ids = await ledger.driver.transaction((tx) => ledger.driver.insertJobs(tx, rows))
    for (const [index, id] of ids.entries()) assert.equal((await ledger.job(id!))!.job.payload, nasty[index])
  })
})

describe('jobs of one batch', () => {
  const like: InsertRow = {
    kind: 'like',
    key: null,
    streamId: 7,
    segmentId: 3,
    parentId: null,
    lane: 'bulk',
    priority: -2,
    wait: 'deps',
    runAt: null,
    depsLeft: 2,
    payload: '{}',
    size: 5,
    items: 4,
    badId: null,
    createdAt: 11,
  }
  const other: InsertRow = {
    kind: 'other',
    key: 'k',
    streamId: 0,
    segmentId: null,
    parentId: 1,
    lane: 'interactive',
    priority: 0,
    wait: 'time',
    runAt: 9,
    depsLeft: 0,
    payload: '[]',
    size: null,
    items: 1,
    badId: 6,
    createdAt: 12,
  }
  const stored = `SELECT kind, key, stream_id AS "streamId", segment_id AS "segmentId", parent_id AS "parentId", lane, priority,
    wait, run_at AS "runAt", deps_left AS "depsLeft", payload, size, items, bad_id AS "badId", created_at AS "createdAt"
    FROM jobs WHERE id = ?`

  async function insertAndRead(rows: readonly InsertRow[]): Promise<unknown[]> {
    const { driver } = ledger
    return driver.transaction(async (tx) => {
      const ids = await driver.insertJobs(tx, rows)
      return Promise.all(ids.map((id) => tx.get(stored, [id!])))
    })
  }

  test('come back as they were given, whether all, some or none agree in a column', async () => {
    const names = Object.keys(like) as (keyof InsertRow)[]
    const mixed = names.map((name, n) => ({ ...like, [name]: other[name], payload: `${n}` }))
    for (const rows of [[like], [like, like], [other], [{ ...other, key: 'l' }, like], mixed]) {
      const read = await insertAndRead(rows)
      assert.deepEqual(
        read.map((row) => ({ ...(row as InsertRow) })),
        rows,
      )
    }
  })

  test('send what they have in common once', async () => {
    const { mock: sent } = mock.method(pg.Client.prototype, 'query')
    try {
      await insertAndRead(Array.from({ length: 1_000 }, (_, n) => ({ ...like, payload: `${n}` })))
      const inserts = sent.calls
        .map((call) => call.arguments[0] as { text?: string; values?: unknown[] })
        .filter(({ text }) => text?.includes('INSERT INTO jobs'))
      assert.equal(inserts.length, 1)
      const long = inserts[0]!.values!.filter((value) => String(value).length > 20)
      assert.equal(long.length, 1, 'only the payloads are sent for each job')
    } finally {
      sent.restore()
    }
  })

  test('of several queues are claimed each with its own stream, kind, priority, items and failures', async () => {
    const owner = await ledger.register({ host: 'h', pid: 1, pidStart: '', name: 'several' }, 600_000)
    const streams = [(await ledger.stream('several a')).id, (await ledger.stream('several b')).id]
    const wanted = streams.flatMap((streamId, at) =>
      ['several.x', 'several.y'].map((kind) => ({
        kind,
        streamId,
        payload: '{}',
        priority: at * 3,
        items: at + 1,
      })),
    )
    await ledger.write({ jobs: wanted })
    const claim = { owner, room: { interactive: 100, bulk: 0 }, kinds: new Set(['several.x', 'several.y']) }
    const first = (await ledger.cycle({ owner, claim })).claimed
    const pick = ({ kind, streamId, payload, priority, items }: ClaimedJob): unknown => ({
      kind,
      streamId,
      payload,
      priority,
      items,
    })
    const sorted = (list: readonly unknown[]): string[] => list.map((one) => JSON.stringify(one)).sort()
    assert.deepEqual(sorted(first.map(pick)), sorted(wanted))
    assert.deepEqual(new Set(first.map((job) => job.failures)), new Set([0]))
    const error = { kind: 'bug' as const, message: 'again' }
    const settle = first.map((job) => ({ job, event: 'retry' as const, error }))
    const second = (await ledger.cycle({ owner, settle, claim })).claimed
    assert.deepEqual(sorted(second.map(pick)), sorted(wanted))
    assert.deepEqual(new Set(second.map((job) => job.failures)), new Set([1]))
  })
})

describe('the remembered head of a queue', () => {
  const KIND = 'headed'
  let owner: number
  before(async () => {
    owner = await ledger.register({ host: 'h', pid: 1, pidStart: '', name: 'heads' }, 600_000)
  })

  const add = (n: number, priority = 0): Promise<{ id: number }[]> =>
    ledger.write({ jobs: Array.from({ length: n }, () => ({ kind: KIND, payload: '{}', priority })) })

  async function claim(
    n: number,
    settle: readonly ClaimedJob[] = [],
    event: 'succeed' | 'postpone' = 'succeed',
  ): Promise<ClaimedJob[]> {
    const result = await ledger.cycle({
      owner,
      settle: settle.map((job) => ({ job, event })),
      claim: { owner, room: { interactive: n, bulk: 0 }, kinds: new Set([KIND]) },
    })
    return result.claimed
  }

  test('jobs that become ready behind it are found before the queue is called empty', async () => {
    await add(50)
    const early = await claim(10)
    const late = await claim(10)
    assert.ok(late[0]!.id > early[9]!.id)
    // The first ten come back, behind the head.
    const rest = await claim(100, early, 'postpone')
    const seen = new Set([...late, ...rest].map((job) => job.id))
    while (seen.size < 50) {
      const more = await claim(100)
      assert.ok(more.length > 0, `only ${seen.size} of 50 were found`)
      for (const job of more) seen.add(job.id)
    }
    assert.deepEqual(await claim(100), [])
    await ledger.cycle({ owner, settle: [] })
  })

  test('a higher priority overtakes it', async () => {
    await add(50)
    await claim(10)
    await claim(10)
    const [urgent] = await add(1, 9)
    const [first] = await claim(1)
    assert.equal(first!.id, urgent!.id)
    assert.equal((await claim(100)).length, 30)
  })

  test('a lower priority follows it', async () => {
    await add(20, 5)
    const low = await add(20, -5)
    await claim(10)
    const mixed = await claim(20)
    assert.deepEqual(
      mixed.map((job) => job.priority),
      [...Array(10).fill(5), ...Array(10).fill(-5)],
    )
    assert.equal(mixed[10]!.id, low[0]!.id)
    assert.equal((await claim(100)).length, 10)
  })

  test('a claim that was rolled back leaves its jobs to be found', async () => {
    await add(30)
    await claim(10)
    const { driver } = ledger
    const share = { streamId: 0, kind: KIND, n: 10, bytesMax: 1_000, priorityMin: 0 }
    const rolledBack = driver.transaction(async (tx) => {
      await driver.readyQueues(tx, 'interactive', { fromStream: 0, max: 512 })
      const jobs = await driver.take(tx, 'interactive', [share], { owner, now: 1, bytesMax: 1_000 })
      assert.equal(jobs.length, 10)
      throw new Error('rolled back')
    })
    await assert.rejects(rolledBack, /rolled back/)
    assert.equal((await claim(100)).length, 20)
  })
})
