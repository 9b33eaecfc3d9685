/** A first look at an object, before a pipeline reads it. */
import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { after, test } from 'node:test'
import { type Told, told } from '../../../cli/told.suite.ts'

const home = mkdtempSync(join(tmpdir(), 'tidemark-ingest-preview-'))
after(() => rmSync(home, { recursive: true, force: true }))

async function preview(...args: string[]): Promise<Told> {
  return tidemark('preview', ...args)
}

async function tidemark(...args: string[]): Promise<Told> {
  const env = { TIDEMARK_HOME: home, TIDEMARK_SEARCH_EMBEDDING: 'off' }
  return told(['ingest', ...args], env)
}

test('a file is looked at without a pipeline: its fields with their types, a proposal, the first records', async () => {
  const file = join(home, 'a.ndjson')
  const records = [
    { at: '2026-11-01T10:00:00Z', level: 'info', message: 'the tide came in', n: 1 },
    { at: '2026-11-01T11:00:00Z', level: 'warning', message: 'the tide went out', n: 'two' },
  ]
  writeFileSync(file, `${records.map((one) => JSON.stringify(one)).join('\n')}\nnot json\n`)
  for (const what of [file, `file://${file}`, relative(process.cwd(), file)]) {
    const { code, out, err } = await preview(what)
    assert.equal(code, 0, err)
    assert.match(
      out,
      /a\.ndjson: ndjson, compression none\nFields:\n {2}at {2}time {2}2026-11-01T10:00:00Z\n/,
    )
    assert.match(out, /\n {2}n {2}(?:number or text|text or number) {2}1\n/)
    assert.match(out, /\nProposed: --text message .*--time at/)
    assert.match(out, /\nRecords:\n {2}0 {2}the tide came in[\s\S]*\n {2}2 {2}cannot be read: /)
  }
})

test('a pipeline that is called like a file is meant before it', async () => {
  const name = 'package.json'
  assert.match((await preview(name)).out, /package\.json: json/)
  assert.equal((await tidemark('add', name, '--inbox', '--text', 'm')).code, 0)
  assert.match((await preview(name)).err, /Nothing is listed for package\.json/)
  assert.equal((await tidemark('remove', name, '--yes')).code, 0)
})

test('an object of a pipeline is named by its path, and one that nobody may read is refused', async () => {
  const drop = join(home, 'drop')
  mkdirSync(join(drop, 'deep'), { recursive: true })
  writeFileSync(join(drop, 'a-first.ndjson'), '')
  writeFileSync(join(drop, 'deep', 'b.ndjson'), '{"m":"a deep wave"}\n')
  assert.equal((await tidemark('add', 'logs', '--folder', drop)).code, 0)
  assert.match((await preview('logs', 'deep/b.ndjson')).out, /a deep wave/)
  assert.match((await preview('logs')).out, /deep\/b\.ndjson/, 'the first one that has anything in it')
  const refused = await preview('s3://elsewhere/a.ndjson')
  assert.equal(refused.code, 2)
  assert.match(refused.err, /No pipeline may read s3:\/\/elsewhere\/a\.ndjson\.\n {2}Make one/)
  assert.match((await preview('absent')).err, /There is no pipeline absent/)
})
