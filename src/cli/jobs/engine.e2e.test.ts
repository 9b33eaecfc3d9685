/** The launcher beside a running engine, which hears of everything through the ledger, on both databases. */
import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { sleep, systemClock } from '../../base/clock.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { openLedger } from '../../ledger/open.ts'
import { job, postgresHome, sqliteHome, type TestHome } from './jobs.suite.ts'

const WAIT_MS_MAX = 240_000

const makeHomes: Record<string, () => Promise<TestHome>> = {
  SQLite: async () => sqliteHome(),
  PostgreSQL: postgresHome,
}

for (const [database, makeHome] of Object.entries(makeHomes)) {
  describe(`beside an engine on ${database}`, () => {
    let home: TestHome
    let ledger: Ledger
    let engine: ChildProcessWithoutNullStreams
    before(async () => {
      home = await makeHome()
      ledger = await openLedger(home.url)
      engine = await startEngine(home.url)
    })
    after(async () => {
      await end(engine, 'SIGKILL')
      await ledger.close()
      await home.remove()
    })

    const enqueue = async (kind: string): Promise<number> =>
      (await ledger.write({ jobs: [job(kind, {})] }))[0]!.id
    const stateOf = async (id: number): Promise<string | undefined> => (await ledger.job(id))?.job.state
    const untilState = (id: number, state: string): Promise<void> =>
      until(`job #${id} is ${state}`, async () => (await stateOf(id)) === state)

    test('status sees the engine', () => {
      const { code, stdout } = home.launch('status')
      assert.equal(code, 0)
      assert.match(stdout, /^Engines {2}1 running$/m)
      assert.match(
        stdout,
        new RegExp(`demo on .*, pid ${engine.pid}, since \\d\\d:\\d\\d:\\d\\d, last heartbeat`),
      )
      assert.match(stdout, /\nAll settled\.\n$/)
    })

    test('jobs show says who runs a job and how far it is, and jobs cancel stops it', async () => {
      const id = await enqueue('demo.hold')
      await until('its progress is saved', async () => (await ledger.job(id))?.job.progress != null)
      const { stdout } = home.launch('jobs', 'show', String(id))
      assert.match(stdout, new RegExp(`held by worker #\\d+ \\(demo on .*, pid ${engine.pid}\\) since`))
      assert.match(stdout, /So far: copying 3 of 12 \(25 %\)\./)
      assert.match(home.launch('jobs', 'cancel', String(id)).stdout, /is being stopped: the worker was asked/)
      await untilState(id, 'canceled')
    })

    test('a pause holds new jobs back, and resume lets them run', async () => {
      await untilState(await enqueue('demo.quick'), 'done')
      assert.equal(home.launch('pause', '--kind', 'demo.quick', '--reason', 'test').code, 0)
      const id = await enqueue('demo.quick')
      // An engine that took it would have done so before this one, which came later, is done.
      await untilState(await enqueue('demo.flaky'), 'failed')
      assert.equal(await stateOf(id), 'pending')
      assert.match(home.launch('jobs', 'show', String(id)).stdout, /Its kind demo\.quick is paused: test\./)
      assert.equal(home.launch('resume', '--kind', 'demo.quick').code, 0)
      await untilState(id, 'done')
    })

    test('jobs retry makes the engine run a failed job again', async () => {
      const id = await enqueue('demo.flaky')
      await untilState(id, 'failed')
      assert.equal(home.launch('status').code, 1)
      assert.equal(home.launch('jobs', 'retry', '--all-failed').code, 0)
      await untilState(id, 'done')
    })

    test('jobs watch tells what changes until Ctrl-C, and ends with 0', async () => {
      const watch = home.start('jobs', 'watch', '--every', '100ms')
      const seen = collect(watch)
      await until('it has begun', async () => /1 engine, 0 claimed/.test(seen.text))
      const stream = await ledger.stream('drive:ann')
      const segment = { streamId: stream.id, from: 0, to: 10, mark: 'page 7', ref: 'page' }
      await ledger.write({
        segments: [segment],
        jobs: [job('demo.slice', { streamId: stream.id, segment: 'page' })],
      })
      await until('it has seen the mark', async () => /drive:ann: complete up to page 7/.test(seen.text))
      assert.equal(await end(watch, 'SIGINT'), 0)
      assert.equal(seen.errors, '')
    })

    test('an engine that was killed is seen to be dead at once', async () => {
      const id = await enqueue('demo.hold')
      await untilState(id, 'claimed')
      await end(engine, 'SIGKILL')
      const status = home.launch('status')
      assert.equal(status.code, 0)
      assert.match(status.stdout, /^Engines {2}none is running$/m)
      assert.match(status.stdout, /: its process has ended/)
      assert.match(status.stdout, /\n1 claimed, no engine is running: start one with tidemark serve\n$/)
      assert.match(home.launch('jobs', 'cancel', String(id)).stdout, /^Job #\d+ is canceled\.\n$/)
      assert.match(home.launch('status').stdout, /\nAll settled\.\n$/)
    })
  })
}

async function startEngine(url: string): Promise<ChildProcessWithoutNullStreams> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'engine.suite.ts'), url])
  const seen = collect(child)
  await until('the engine has started', async () => {
    if (child.exitCode !== null) throw new Error(`the engine ended: ${seen.errors}`)
    return seen.text.includes('started')
  })
  return child
}

function collect(child: ChildProcessWithoutNullStreams): { text: string; errors: string } {
  const seen = { text: '', errors: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    seen.text += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    seen.errors += text
  })
  return seen
}

async function end(child: ChildProcessWithoutNullStreams, signal: NodeJS.Signals): Promise<number | null> {
  if (child.exitCode !== null || child.signalCode !== null) return child.exitCode
  const closed = once(child, 'close')
  child.kill(signal)
  await closed
  return child.exitCode
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const sinceMs = systemClock.monotonicMs()
  while (!(await isSo())) {
    assert.ok(systemClock.monotonicMs() - sinceMs < WAIT_MS_MAX, `in vain: ${what}`)
    await sleep(systemClock, 20)
  }
}
