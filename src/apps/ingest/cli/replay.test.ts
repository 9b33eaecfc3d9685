/** How objects are named on the command line, and what a replay says. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { freshDatabase } from '../../../../scripts/test-database.ts'
import { type Told, told } from '../../../cli/told.suite.ts'
import { type Sim, startSim } from '../../../sim/start.ts'
import { IngestWorld, lines, NAME } from '../ingest-world.suite.ts'
import { dropPipeline } from '../store/pipelines.ts'
import { replayed } from './replay.ts'

const home = mkdtempSync(join(tmpdir(), 'tidemark-ingest-replay-'))
const drop = join(home, 'drop')
const env: Record<string, string> = { TIDEMARK_HOME: home, TIDEMARK_SEARCH_EMBEDDING: 'off' }
let sim: Sim

before(async () => {
  sim = await startSim({ s3: { buckets: ['logs'] } })
  mkdirSync(join(drop, 'deep'), { recursive: true })
})
after(async () => {
  await sim.close()
  rmSync(home, { recursive: true, force: true })
})

async function ingest(...args: string[]): Promise<Told> {
  return told(['ingest', ...args], env)
}

test('a replay says how many records it reads again, what came of them, and which numbers are wrong', async () => {
  const long = JSON.stringify({ m: `a long wave ${'~'.repeat(2_000)}` })
  const good = '{"m":"a wave"}\n'
  writeFileSync(join(drop, 'a.ndjson'), `${good}not json\n${long}\n${good}not json either\n`)
  writeFileSync(join(drop, 'deep', 'b.ndjson'), `${long}\n`)
  writeFileSync(join(drop, 'good.ndjson'), good)
  env.TIDEMARK_INGEST_RECORD_BYTES_MAX = '1KB'
  assert.equal((await ingest('add', 'logs', '--folder', drop, '--text', 'm')).code, 0)
  assert.match((await ingest('sync', 'logs')).err, /4 records are in quarantine/)
  const wrong = await ingest('replay', 'logs', 'a.ndjson', '1', '7')
  assert.equal(wrong.code, 2)
  assert.match(wrong.err, /Record 7 of file:.*a\.ndjson is not in quarantine\.\n {2}These are: 1, 2, 4\./)
  assert.match((await ingest('replay', 'logs', 'a.ndjson', 'x')).err, /"x" is not the number of a record/)
  assert.match((await ingest('replay', 'nothing')).err, /no pipeline/i)
  assert.match(
    (await ingest('replay', 'logs', 'good.ndjson')).out,
    /logs: no record of file:.*good\.ndjson is in quarantine, and nothing was read again/,
  )
  const one = await ingest('replay', 'logs', 'a.ndjson', '2')
  assert.equal(one.code, 0, one.err)
  assert.match(one.err, /logs: reading 1 quarantined record of file:.*a\.ndjson again/)
  assert.match(one.out, /logs: 0 records published, 1 still in quarantine\n {2}record 2, line 3 of file:.*: /)
  assert.doesNotMatch(one.out, /record 1/, 'only what was asked for')
  delete env.TIDEMARK_INGEST_RECORD_BYTES_MAX
  const all = await ingest('replay', 'logs')
  assert.match(all.err, /logs: reading 4 quarantined records of 2 objects again/)
  assert.match(all.out, /logs: 2 records published, 2 still in quarantine\n/)
  const json = await ingest('replay', 'logs', '--json')
  const last = JSON.parse(json.out.trim().split('\n').at(-1)!) as Record<string, unknown>
  assert.deepEqual(
    { ...last, jobs: (last.jobs as number[]).length },
    {
      type: 'replay',
      pipeline: 'logs',
      objects: 1,
      records: 2,
      published: 0,
      quarantined: 2,
      waiting: 0,
      replaced: 0,
      jobs: 1,
    },
  )
})

test('an object is found by what people paste: address, path, last parts, id, and the name of a bad item', async () => {
  const state = (out: string): string | undefined => /^(\S+)\n/.exec(out)?.[1]
  const uri = `file://${drop}/deep/b.ndjson`
  const listed = JSON.parse((await ingest('shards', 'logs', '--json')).out) as {
    id: string
    uri: string
    version: string
  }[]
  const { id, version } = listed.find((one) => one.uri === uri)!
  for (const text of [
    uri,
    `${drop}/deep/b.ndjson`,
    'deep/b.ndjson',
    './deep/b.ndjson',
    'b.ndjson',
    id,
    id.slice(0, 8),
    `${uri}@${version}`,
    `deep/b.ndjson@${version}`,
  ]) {
    const shown = await ingest('show', 'logs', text)
    assert.equal(state(shown.out), uri, `${text}: ${shown.err}`)
  }
  for (const text of ['c.ndjson', `${uri}@other`, 'ndjson', 'ffffffffffff']) {
    const unknown = await ingest('show', 'logs', text)
    assert.equal(unknown.code, 2)
    assert.match(unknown.err, /knows of no object/, text)
  }
  writeFileSync(join(drop, 'b.ndjson'), '{"m":"another"}\n')
  mkdirSync(join(drop, 'deeper'))
  writeFileSync(join(drop, 'deeper', 'b.ndjson'), '{"m":"a third"}\n')
  await ingest('sync', 'logs')
  assert.equal(state((await ingest('show', 'logs', 'b.ndjson')).out), `file://${drop}/b.ndjson`)
  rmSync(join(drop, 'b.ndjson'))
  writeFileSync(join(drop, 'deep', 'c.ndjson'), '{"m":"c"}\n')
  writeFileSync(join(drop, 'deeper', 'c.ndjson'), '{"m":"c"}\n')
  await ingest('sync', 'logs')
  const several = await ingest('show', 'logs', 'c.ndjson')
  assert.equal(several.code, 2)
  assert.match(
    several.err,
    /Several objects of logs are meant by c\.ndjson\.\n {2}Name one of these:\n {4}file:.*deep\/c\.ndjson\n {4}file:.*deeper\/c/,
  )
})

test('an object of a bucket is found below what is listed, in its bucket, and with it; on PostgreSQL too', async () => {
  const { accessKeyId, secretAccessKey } = sim.s3.account
  const keys = join(home, 'keys.json')
  writeFileSync(keys, JSON.stringify({ accessKeyId, secretAccessKey }))
  const database = await freshDatabase()
  try {
    env.TIDEMARK_LEDGER_URL = database.url
    sim.s3.store.put('logs', '2026/app/a b.ndjson', '{"m":"first"}\n')
    const at = ['--endpoint', sim.s3.baseUrl, '--path-style', '--credentials', keys, '--text', 'm']
    assert.equal((await ingest('add', 'bucket', '--bucket', 's3://logs/2026/', ...at)).code, 0)
    assert.equal((await ingest('sync', 'bucket')).code, 0)
    sim.s3.store.put('logs', '2026/app/a b.ndjson', '{"m":"second"}\nnot json\n')
    await ingest('sync', 'bucket')
    for (const text of ['app/a b.ndjson', '2026/app/a b.ndjson', 'logs/2026/app/a b.ndjson', 'a b.ndjson']) {
      const { out, err } = await ingest('show', 'bucket', text)
      assert.match(out, /^s3:\/\/logs\/2026\/app\/a b\.ndjson\n/, `${text}: ${err}`)
      assert.match(out, /\n {2}state {8}stored\n[\s\S]*\n {2}another {6}[0-9a-f]{12}, skipped \(replaced\)\n/)
    }
    const older = JSON.parse((await ingest('shards', 'bucket', '--state', 'skipped', '--json')).out) as {
      id: string
    }[]
    const replayed = await ingest('replay', 'bucket', older[0]!.id)
    assert.match(replayed.err, /cannot be replayed: a newer version of the object took its place/)
    assert.match((await ingest('replay', 'bucket')).out, /bucket: 0 records published, 1 still in quarantine/)
  } finally {
    delete env.TIDEMARK_LEDGER_URL
    await database.drop()
  }
})

test('records of an object that is replaced, or known no more, while they are read again are not told as published', async () => {
  const world = await IngestWorld.open()
  try {
    const { kinds, ledger } = world.process
    for (const key of ['a.ndjson', 'b.ndjson']) world.store.put(key, `not json\n{"m":"a wave of ${key}"}`)
    await world.list()
    const asked = await kinds.tables.quarantinedBy(NAME, '', 10)
    const told = { name: NAME, asked, ids: asked.map(() => 0) }
    const before = await replayed(kinds.tables, told)
    assert.deepEqual(before.sums, { published: 0, quarantined: 2, waiting: 0, replaced: 0 })
    world.store.put('a.ndjson', lines(1))
    await world.list()
    const after = await replayed(kinds.tables, told)
    assert.deepEqual(after.sums, { published: 0, quarantined: 1, waiting: 0, replaced: 1 })
    await ledger.transaction((tx) => dropPipeline(tx, NAME))
    const gone = await replayed(kinds.tables, told)
    assert.deepEqual(gone.sums, { published: 0, quarantined: 0, waiting: 0, replaced: 2 })
  } finally {
    await world.close()
  }
})
