/** `tidemark ingest run` as a process of its own, and Ctrl-C. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type Told, told } from '../../../cli/told.suite.ts'
import { type Sim, startSim } from '../../../sim/start.ts'

const BIN = join(import.meta.dirname, '..', '..', '..', '..', 'bin', 'tidemark')
const home = mkdtempSync(join(tmpdir(), 'tidemark-ingest-run-'))
const RECEIVE_WAIT_MS = 1_000
const env = {
  TIDEMARK_HOME: home,
  TIDEMARK_SEARCH_EMBEDDING: 'off',
  TIDEMARK_INGEST_RECEIVE_WAIT_SECONDS: String(RECEIVE_WAIT_MS / 1_000),
}
let sim: Sim

before(async () => {
  const notify = [{ queue: 'events', envelope: 's3' as const }]
  sim = await startSim({ s3: { buckets: [{ name: 'logs', notify }] }, sqs: { queues: ['events'] } })
})
after(async () => {
  await sim.close()
  rmSync(home, { recursive: true, force: true })
})

async function tidemark(...args: string[]): Promise<Told> {
  return told(args, env)
}

async function until(isSo: () => boolean, failed: () => string | undefined): Promise<void> {
  while (!isSo()) {
    const why = failed()
    if (why !== undefined) assert.fail(why)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

test('what is put while it runs is found; Ctrl-C gives back what is held, and the next run goes on with it', async () => {
  const { accessKeyId, secretAccessKey, region } = sim.s3.account
  writeFileSync(join(home, 'keys.json'), JSON.stringify({ accessKeyId, secretAccessKey }))
  const made = await tidemark(
    ...['ingest', 'add', 'access', '--sqs', `${sim.sqs.baseUrl}/${sim.sqs.account.accountId}/events`],
    ...[
      '--endpoint',
      sim.s3.baseUrl,
      '--queue-endpoint',
      sim.sqs.baseUrl,
      '--region',
      region,
      '--path-style',
    ],
    ...['--allow', 's3://logs/', '--credentials', join(home, 'keys.json'), '--text', 'm'],
  )
  assert.equal(made.code, 0, made.err)
  const child = spawn(BIN, ['ingest', 'run'], {
    env: { PATH: process.env.PATH ?? '', HOME: home, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
  }
  const hasEnded = (): string | undefined => (child.exitCode === null ? undefined : `it ended: ${said}`)
  try {
    const { messages } = sim.sqs.queue('events')
    for (const n of [1, 2, 3]) sim.s3.store.put('logs', `${n}.ndjson`, `{"m":"wave number ${n}"}`)
    await until(
      () => messages.length === 4 && messages.every(({ outcome }) => outcome === 'acknowledged'),
      hasEnded,
    )
    for (const n of [1, 2, 3])
      assert.match((await tidemark('search', 'in:access', 'wave')).out, new RegExp(`wave number ${n}`))
    sim.faults.set({ rules: [{ do: 'stall', ms: null, methods: ['s3.GetObject'] }] })
    sim.s3.store.put('logs', 'held.ndjson', '{"m":"the wave that was held"}')
    await until(() => messages[4]?.receives.length === 1, hasEnded)
    while (!(await tidemark('ingest', 'shards', 'access', '--state', 'open')).out.includes('held.ndjson'))
      assert.equal(hasEnded(), undefined)
    child.kill('SIGINT')
    if (child.exitCode === null) await once(child, 'close')
    sim.faults.clear()
    assert.equal(messages[4]!.outcome, 'waiting')
    // Not at once: the service may not have noticed yet that nobody waits for its last answer, which would take it along.
    assert.equal(messages[4]!.receives.length, 1)
    const againMs = messages[4]!.visibleAtMs - Date.now()
    assert.ok(againMs <= RECEIVE_WAIT_MS + 2_000, `others can have it in ${againMs} ms`)
    await until(
      () => messages[4]!.visibleAtMs <= Date.now(),
      () => undefined,
    )
    const synced = await tidemark('ingest', 'sync')
    assert.equal(synced.code, 0, synced.err)
    assert.equal(messages[4]!.outcome, 'acknowledged')
    assert.match((await tidemark('search', 'in:access', 'held')).out, /the wave that was held/)
    assert.match((await tidemark('ingest', 'status')).out, /4 announced = 4 stored \+ 0 skipped \+ 0 bad/)
  } finally {
    if (child.exitCode === null) child.kill('SIGKILL')
  }
})
