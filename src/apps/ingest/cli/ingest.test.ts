import assert from 'node:assert/strict'
import { existsSync, mkdtempSync, readFileSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { systemClock } from '../../../base/clock.ts'
import { type Told, told } from '../../../cli/told.suite.ts'
import { loadConfig } from '../../../config/load.ts'
import { openRuntime } from '../../../runtime/runtime.ts'
import { createServer, createServices } from '../../../server/server.ts'
import { type Sim, startSim } from '../../../sim/start.ts'
import { catalog } from '../../catalog.ts'
import { ingestModule } from '../api/module.ts'
import { ingestApp } from '../app.ts'

const TOKEN = 'a-token-that-is-long-enough'
const home = mkdtempSync(join(tmpdir(), 'tidemark-ingest-cli-'))
const env = { TIDEMARK_HOME: home, TIDEMARK_SEARCH_EMBEDDING: 'off' }
let sim: Sim

before(async () => {
  const notify = [{ queue: 'events', envelope: 's3' as const }]
  sim = await startSim({ s3: { buckets: [{ name: 'logs', notify }] }, sqs: { queues: ['events'] } })
  const { accessKeyId, secretAccessKey } = sim.s3.account
  writeFileSync(join(home, 'keys.json'), JSON.stringify({ accessKeyId, secretAccessKey }))
})
after(async () => {
  await sim.close()
  rmSync(home, { recursive: true, force: true })
})

async function tidemark(...args: string[]): Promise<Told> {
  return told(args, env)
}

test('a pipeline is made, read, looked at, reconciled, replayed and forgotten by commands', async () => {
  const { store } = sim.s3
  store.put('logs', '2026/a b.ndjson', '{"m":"the first wave","level":"info"}\nnot json\n')
  const queueUrl = `${sim.sqs.baseUrl}/${sim.sqs.account.accountId}/events`
  const made = await tidemark(
    ...['ingest', 'add', 'access', '--sqs', queueUrl, '--bucket', 's3://logs/', '--path-style'],
    ...['--endpoint', sim.s3.baseUrl, '--queue-endpoint', sim.sqs.baseUrl, '--region', sim.s3.account.region],
    ...['--credentials', join(home, 'keys.json'), '--text', 'm', '--facet', 'level'],
  )
  assert.equal(made.code, 0, made.err)
  assert.doesNotMatch(made.out + made.err, new RegExp(sim.s3.account.secretAccessKey))
  assert.equal((await tidemark('ingest', 'add', 'access', '--inbox')).code, 2)
  assert.equal((await tidemark('ingest', 'add', 'Not A Name', '--inbox')).code, 2)
  assert.match(
    (await tidemark('account', 'list')).err,
    /No account is connected/,
    'a pipeline is no account of a person',
  )
  const preview = await tidemark('ingest', 'preview', 'access')
  assert.match(preview.out, /the first wave/)
  const synced = await tidemark('ingest', 'sync')
  assert.equal(synced.code, 0, synced.err)
  assert.match(synced.out, /access: done; bucket lists 1 = 1 stored \+ 0 skipped \+ 0 bad \+ 0 on their way/)
  assert.match(synced.err, /access: 1 record is in quarantine. See: tidemark ingest quarantine access/)
  const outcomes = sim.sqs.queue('events').messages.map(({ outcome }) => outcome)
  assert.deepEqual(
    outcomes,
    ['acknowledged', 'acknowledged'],
    'the test event of the bucket, and the announcement',
  )
  assert.match((await tidemark('search', 'in:access', 'wave')).out, /the first wave/)
  const status = (await tidemark('ingest', 'status', 'access')).out
  assert.match(status, /1 in the index, 1 in quarantine/)
  assert.match(status, /queue {7}looked at .*, 0 waiting, 0 in hand/)
  assert.match((await tidemark('ingest', 'shards', 'access', '--state', 'stored')).out, /a b\.ndjson/)
  assert.match((await tidemark('ingest', 'show', 'access', 's3://logs/2026/a b.ndjson')).out, /the end/)
  assert.match((await tidemark('ingest', 'quarantine', 'access')).out, /not json/)
  assert.equal((await tidemark('ingest', 'replay', 'access', 's3://logs/2026/a b.ndjson')).code, 0)
  store.notices.faults.lose = 1
  store.put('logs', '2026/lost.ndjson', '{"m":"nobody told of it"}')
  const reconciled = await tidemark('ingest', 'reconcile', 'access')
  assert.equal(reconciled.code, 0, reconciled.err)
  assert.match(reconciled.out, /bucket lists 2 = 2 stored/)
  const json = JSON.parse((await tidemark('ingest', 'status', '--json')).out) as {
    listing: { total: number }
  }[]
  assert.equal(json[0]!.listing.total, 2)
  assert.equal((await tidemark('ingest', 'status', 'nothing')).code, 2)
})

test('a pipeline that is not told what the text is takes what its first object proposes, or everything', async () => {
  const drop = mkdtempSync(join(home, 'drop-'))
  assert.equal((await tidemark('ingest', 'add', 'empty', '--folder', drop)).code, 0)
  writeFileSync(join(drop, 'a.ndjson'), '{"message":"spring tide at noon","n":1}\n')
  const made = await tidemark('ingest', 'add', 'asked', '--folder', drop, '--json')
  assert.deepEqual(
    (JSON.parse(made.out) as { config: { mapping: { text: string[] } } }).config.mapping.text,
    ['message'],
  )
  for (const name of ['empty', 'asked']) {
    assert.equal((await tidemark('ingest', 'sync', name)).code, 0)
    assert.match((await tidemark('search', `in:${name}`, 'noon')).out, /spring tide at noon/)
    assert.equal((await tidemark('ingest', 'remove', name, '--yes')).code, 0)
  }
})

test('a file that is deleted, or moved, after it was read can be had again, and wrong places are refused', async () => {
  const drop = mkdtempSync(join(tmpdir(), 'tidemark-drop-'))
  const greedy = (...flags: string[]) =>
    tidemark('ingest', 'add', 'greedy', '--folder', drop, '--text', 'm', ...flags)
  for (const [wrong, why] of [
    [['--after', 'move'], /needs --to/],
    [['--after', 'move', '--to', '/elsewhere'], /cannot be moved to file:\/\/\/elsewhere\//],
    [['--after', 'move', '--to', drop], /cannot be moved/],
    [['--after', 'move', '--to', `file://${drop}//done`], /is no plain address/],
    [['--after', 'delete', '--to', 'done'], /--to belongs to --after move/],
    [['--after', 'burn'], /keep, tag, move, delete/],
  ] as const) {
    const refused = await greedy(...wrong)
    assert.equal(refused.code, 2, refused.out)
    assert.match(refused.err, why)
  }
  assert.equal((await greedy('--after', 'delete')).code, 0)
  const text = '{"m":"a wave that left"}\nnot json\n'
  for (const name of ['a', 'b']) {
    const uri = `file://${drop}/${name}.ndjson`
    writeFileSync(join(drop, `${name}.ndjson`), text)
    // Younger ones may still be written.
    utimesSync(join(drop, `${name}.ndjson`), 1_700_000_000, 1_700_000_000)
    assert.equal((await tidemark('ingest', 'sync', 'greedy')).code, 0)
    assert.ok(!existsSync(join(drop, `${name}.ndjson`)))
    assert.match((await tidemark('ingest', 'show', 'greedy', uri)).out, /its bytes .*(kept|done)/)
    const back = join(home, `${name}.back`)
    assert.equal((await tidemark('ingest', 'get', 'greedy', uri, back)).code, 0)
    assert.equal(readFileSync(back, 'utf8'), text)
    assert.equal((await tidemark('ingest', 'get', 'greedy', uri, back)).code, 2, 'no file is replaced')
    assert.equal((await greedy('--update', '--after', 'move', '--to', 'done')).code, 0)
  }
  assert.match((await tidemark('ingest', 'status', 'greedy')).out, /afterwards {2}1 deleted, 1 moved/)
  writeFileSync(join(drop, 'young.ndjson'), text)
  const young = await tidemark('ingest', 'sync', 'greedy')
  assert.equal(young.code, 0, 'it does not wait until the file is old enough')
  assert.match(young.err, /greedy: 1 file may still be written to/)
  utimesSync(join(drop, 'young.ndjson'), 1_700_000_000, 1_700_000_000)
  assert.equal((await tidemark('ingest', 'dispose', 'greedy')).code, 0)
  rmSync(join(drop, 'young.ndjson'))
  assert.equal((await greedy('--update', '--after', 'keep')).code, 0)
  assert.match(
    (await tidemark('ingest', 'sync', 'greedy')).out,
    /folder lists 0/,
    'what was moved is not read again',
  )
  const removed = await tidemark('ingest', 'remove', 'greedy', '--yes')
  assert.match(removed.err, /copies of 1 object that were deleted .* stay in .*kept\/greedy/)
  rmSync(drop, { recursive: true, force: true })
})

test('a pipeline whose messages may name nothing says so when it is made', async () => {
  assert.match(
    (await tidemark('ingest', 'add', 'mute', '--inbox', '--text', 'm')).err,
    /may not name any object yet/,
  )
  const told = await tidemark('ingest', 'add', 'mute', '--update', '--allow', 's3://logs/')
  assert.doesNotMatch(told.err, /may not name any object/)
  assert.equal((await tidemark('ingest', 'remove', 'mute', '--yes')).code, 0)
})

test('keys of the machine are used only where that was asked for, and addresses hold no passwords', async () => {
  const bucket = ['--bucket', 's3://logs', '--path-style', '--endpoint', sim.s3.baseUrl]
  const made = await tidemark('ingest', 'add', 'ambient', ...bucket, '--text', 'm', '--json')
  assert.equal((JSON.parse(made.out) as { config: { location: string } }).config.location, 's3://logs/')
  const refused = await tidemark('ingest', 'preview', 'ambient')
  assert.match(refused.err, /may not read anything of AWS[\s\S]*--ambient-credentials/)
  assert.equal((await tidemark('ingest', 'remove', 'ambient', '--yes')).code, 0)
  const nats = ['--nats-stream', 'S', '--nats-consumer', 'c']
  for (const flags of [
    ['--nats', 'nats://h:4222,nats://u:secret@h', ...nats],
    ['--inbox', '--endpoint', 'https://u:secret@h/'],
  ]) {
    const told = await tidemark('ingest', 'add', 'told', ...flags)
    assert.match(told.err, /must not hold a user or a password/)
    assert.doesNotMatch(told.err, /secret/)
  }
})

test('the API tells the same, takes messages for an inbox, and its answers fit what it declares', async () => {
  assert.equal((await tidemark('ingest', 'add', 'pushed', '--inbox', '--carries-data')).code, 0)
  const { values: config } = loadConfig({ catalog, env, flags: {} })
  const runtime = await openRuntime({ config, home, env, role: 'all', apps: [ingestApp] })
  try {
    const services = createServices(runtime, { clock: systemClock, catalog })
    const server = createServer({ services, modules: [ingestModule], checkAnswers: true, token: TOKEN })
    const ask = async (path: string, body?: unknown) => {
      const headers = {
        authorization: `Bearer ${TOKEN}`,
        'x-tidemark': '1',
        'content-type': 'application/json',
      }
      const sent = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }
      const answer = await server.app.request(`/api/ingest${path}`, { headers, ...sent })
      return { status: answer.status, json: (await answer.json()) as Record<string, unknown> }
    }
    const scraped = await server.app.request('/metrics', { headers: { authorization: `Bearer ${TOKEN}` } })
    const samples = new Map(
      (await scraped.text()).split('\n').map((line) => line.split(' ') as [string, string]),
    )
    const access = (name: string, more = ''): string | undefined =>
      samples.get(`tidemark_ingest_${name}{pipeline="access"${more}}`)
    assert.deepEqual(
      ['messages_total', 'acknowledged_total', 'dropped_total', 'unparsed_total', 'records'].map((name) =>
        access(name),
      ),
      ['2', '2', '1', '0', '2'],
    )
    assert.deepEqual([access('quarantined_records'), access('takeovers')], ['1', '0'])
    assert.deepEqual([access('objects', ',state="stored"'), access('objects', ',state="open"')], ['2', '0'])
    assert.equal(access('queue_messages', ',state="waiting"'), '0')
    assert.equal(access('oldest_open_seconds'), undefined, 'nothing is open')
    const all = (await ask('/pipelines')).json.pipelines as { pipeline: string; listing: { total: number } }[]
    assert.deepEqual(
      all.map(({ pipeline }) => pipeline),
      ['access', 'pushed'],
    )
    assert.equal(all[0]!.listing.total, 2)
    const page = (await ask('/pipelines/access/shards?state=stored')).json.items as {
      id: string
      quarantined: number
    }[]
    assert.equal(page.length, 2)
    const bad = page.find(({ quarantined }) => quarantined === 1)!
    assert.equal((await ask(`/pipelines/access/shards/${bad.id}`)).status, 200)
    const held = (await ask(`/pipelines/access/quarantine?shard=${bad.id}`)).json.items as { line: number }[]
    assert.equal(held[0]!.line, 2)
    assert.equal((await ask('/pipelines/access/unparsed')).status, 200)
    assert.equal((await ask('/pipelines/access/reconcile', {})).status, 202)
    assert.equal((await ask(`/pipelines/access/shards/${bad.id}/replay`, {})).status, 202)
    assert.equal((await ask('/pipelines/access/messages', { messages: [{ body: 'x' }] })).status, 409)
    assert.equal(
      (await ask('/pipelines/pushed/messages', { messages: [{ body: { m: 'pushed here' } }] })).status,
      202,
    )
    assert.equal((await ask('/pipelines/nothing')).status, 404)
    const inbox = '/pipelines/pushed/messages'
    const many = Array.from({ length: 1_001 }, () => ({ body: 'x' }))
    assert.equal((await ask(inbox, { messages: many })).status, 400)
    assert.equal((await ask(inbox, { messages: [] })).status, 400)
    assert.equal((await ask(inbox, { messages: [{ body: 'x'.repeat(1_100_000) }] })).status, 413)
    const body = JSON.stringify({ messages: [{ body: 'x' }] })
    const strange = async (headers: Record<string, string>): Promise<number> => {
      const more = { 'content-type': 'application/json', ...headers }
      return (await server.app.request(`/api/ingest${inbox}`, { method: 'POST', body, headers: more })).status
    }
    assert.equal(await strange({ 'x-tidemark': '1' }), 401, 'nobody')
    assert.equal(await strange({ 'x-tidemark': '1', authorization: 'Bearer another' }), 401)
    assert.equal(await strange({ authorization: `Bearer ${TOKEN}` }), 403, 'another page of a browser')
  } finally {
    await runtime.close()
  }
  const synced = await tidemark('ingest', 'sync', 'pushed')
  assert.equal(synced.code, 0, synced.err)
  assert.match(synced.out, /1 announced = 1 stored/)
  assert.equal((await tidemark('ingest', 'remove', 'pushed', '--yes')).code, 0)
  assert.equal((await tidemark('ingest', 'status', 'pushed')).code, 2)
  const again = await tidemark('ingest', 'add', 'pushed', '--inbox')
  assert.equal(again.code, 2, 'its records are still there: nobody else may have them')
  assert.match(again.err, /not removed yet/)
})
