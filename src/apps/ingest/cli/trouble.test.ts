/** Pipelines that are configured wrongly, or whose queue, bucket or folder is not there: what commands say of them. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Told, told } from '../../../cli/told.suite.ts'
import { type Sim, startSim } from '../../../sim/start.ts'

const home = mkdtempSync(join(tmpdir(), 'tidemark-ingest-trouble-'))
const env = { TIDEMARK_HOME: home, TIDEMARK_SEARCH_EMBEDDING: 'off' }
let sim: Sim
let s3: string[]
let sqs: (name: string) => string[]

before(async () => {
  sim = await startSim({ s3: { buckets: ['logs'] }, sqs: { queues: ['events'] } })
  const { accessKeyId, secretAccessKey, accountId } = sim.s3.account
  const keys = join(home, 'keys.json')
  writeFileSync(keys, JSON.stringify({ accessKeyId, secretAccessKey }))
  s3 = ['--endpoint', sim.s3.baseUrl, '--path-style', '--credentials', keys, '--text', 'm']
  sqs = (name) => ['--sqs', `${sim.sqs.baseUrl}/${accountId}/${name}`, '--queue-endpoint', sim.sqs.baseUrl]
})
after(async () => {
  await sim.close()
  rmSync(home, { recursive: true, force: true })
})

async function tidemark(...args: string[]): Promise<Told> {
  return told(args, env)
}

async function ingest(...args: string[]): Promise<string> {
  const { code, out, err } = await tidemark('ingest', ...args)
  assert.equal(code, 0, err)
  return out
}

test('a queue that cannot be read keeps no other pipeline from being read, and is told of until it can', async () => {
  await ingest('add', 'a-gone', ...sqs('nowhere'), '--allow', 's3://logs/', ...s3)
  // Nobody listens there.
  const nats = ['--nats', 'nats://127.0.0.1:1', '--nats-stream', 's', '--nats-consumer', 'c']
  await ingest('add', 'b-closed', ...nats, '--allow', 's3://logs/', ...s3)
  await ingest('add', 'c-whole', ...sqs('events'), '--bucket', 's3://logs/', ...s3)
  sim.s3.store.put('logs', 'a.ndjson', '{"m":"a wave"}\n')
  const synced = await tidemark('ingest', 'sync')
  assert.equal(synced.code, 1)
  assert.match(synced.out, /c-whole: done; bucket lists 1 = 1 stored/)
  assert.match(synced.out, /a-gone: not finished/)
  assert.match(synced.err, /a-gone cannot go on: There is no such queue.*\n.*Check the address of the queue/)
  assert.match(synced.err, /b-closed cannot go on: /)
  for (const name of ['a-gone', 'b-closed']) {
    const status = await tidemark('ingest', 'status', name)
    assert.equal(status.code, 1)
    assert.match(status.out, /cannot be read\n[\s\S]*\n {2}problem {5}\S/)
  }
  sim.sqs.queues.create('nowhere')
  await ingest('sync', 'a-gone')
  assert.match(await ingest('status', 'a-gone'), /a-gone: settled\n/, 'it is there, and has nothing')
  for (const name of ['a-gone', 'b-closed', 'c-whole']) await ingest('remove', name, '--yes')
})

test('a bucket that cannot be listed is told of by its status, until it can', async () => {
  await ingest('add', 'absent', '--bucket', 's3://absent', ...s3)
  assert.equal((await tidemark('ingest', 'sync', 'absent')).code, 1)
  const status = await tidemark('ingest', 'status', 'absent')
  assert.equal(status.code, 1)
  assert.match(status.out, /problem {5}it cannot be listed: There is no such bucket/)
  sim.s3.store.createBucket('absent')
  await ingest('sync', 'absent')
  assert.match(await ingest('status', 'absent'), /absent: settled\n/)
  await ingest('remove', 'absent', '--yes')
})

test('what is listed is an address that can be listed, and a folder that is there', async () => {
  for (const [flags, why] of [
    [['--bucket', 'logs', ...s3], /--bucket: it must begin with s3:\/\//],
    [['--bucket', 'http://logs/', ...s3], /--bucket/],
    [['--inbox', '--allow', 'logs'], /--allow/],
    [['--sqs', 'events', ...s3], /--sqs/],
    [['--folder', join(home, 'absent')], /The folder .*absent is not there/],
    [['--folder', join(home, 'keys.json')], /keys\.json is no folder/],
  ] as const) {
    const refused = await tidemark('ingest', 'add', 'wrong', ...flags)
    assert.equal(refused.code, 2, `${flags.join(' ')}: ${refused.out}`)
    assert.match(refused.err, why)
  }
  const told = await tidemark('ingest', 'add', 'wrong', '--bucket', 's3://absent-too', ...s3.slice(0, -2))
  assert.match(told.err, /No object can be read yet: There is no such bucket/)
  await ingest('remove', 'wrong', '--yes')
})

test('a pipeline that was never listed is not told to be settled, and quarantined lines of what was replaced are not counted', async () => {
  const folder = join(home, 'fresh')
  mkdirSync(folder)
  writeFileSync(join(folder, 'a.ndjson'), '{"m":"a wave"}\nnot json\n')
  await ingest('add', 'fresh', '--folder', folder, '--text', 'm')
  const status = await tidemark('ingest', 'status', 'fresh')
  assert.equal(status.code, 1)
  assert.match(status.out, /fresh: not listed yet; read what is there with: tidemark ingest sync fresh\n/)
  await ingest('sync', 'fresh')
  assert.match(await ingest('status', 'fresh'), /1 in the index, 1 in quarantine/)
  assert.match(await ingest('quarantine', 'fresh'), /a\.ndjson/)
  writeFileSync(join(folder, 'a.ndjson'), '{"m":"a better wave"}\n')
  await ingest('sync', 'fresh')
  assert.match(await ingest('status', 'fresh'), /1 in the index, 0 in quarantine/)
  assert.doesNotMatch(await ingest('quarantine', 'fresh'), /a\.ndjson/)
  await ingest('remove', 'fresh', '--yes')
})

test('a pipeline that is given another folder lists that one', async () => {
  const [one, other] = ['one', 'other'].map((name) => join(home, name)) as [string, string]
  for (const folder of [one, other]) {
    mkdirSync(folder)
    writeFileSync(join(folder, 'a.ndjson'), '{"m":"a wave"}\n')
  }
  await ingest('add', 'moved', '--folder', one, '--text', 'm')
  await ingest('sync', 'moved')
  rmSync(one, { recursive: true })
  await ingest('add', 'moved', '--update', '--folder', other)
  assert.match(await ingest('sync', 'moved'), /done; folder lists 1 = 1 stored/)
  assert.match(await ingest('show', 'moved', `file://${other}/a.ndjson`), /state {8}stored/)
})

test('a file and a folder whose names nobody can write are bad, and gone once they are renamed', async () => {
  const folder = join(home, 'names')
  mkdirSync(folder)
  const odd = (name: string): Buffer => Buffer.concat([Buffer.from(join(folder, name)), Buffer.from([0xff])])
  writeFileSync(odd('file'), '{"m":"a wave"}\n')
  mkdirSync(odd('folder'))
  writeFileSync(Buffer.concat([odd('folder'), Buffer.from('/b.ndjson')]), '{"m":"another wave"}\n')
  await ingest('add', 'names', '--folder', folder, '--text', 'm')
  const first = await tidemark('ingest', 'sync', 'names')
  assert.match(first.out, /folder lists 2 = 0 stored \+ 0 skipped \+ 2 bad/)
  renameSync(odd('file'), join(folder, 'a.ndjson'))
  renameSync(odd('folder'), join(folder, 'deep'))
  await ingest('sync', 'names')
  const status = await ingest('status', 'names')
  assert.match(status, /names: settled\n/)
  assert.match(status, /folder lists 2 = 2 stored \+ 0 skipped \+ 0 bad/)
})
