/** `jobs watch` and tables on a terminal, with streams that say that they are one. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, test } from 'node:test'
import { markOf } from '../../apps/mail/plan.ts'
import { noteMissing } from '../../apps/mail/store/missing-messages.ts'
import { MailTables, notePlan } from '../../apps/mail/store/tables.ts'
import { openLedger } from '../../ledger/open.ts'
import {
  type Ended,
  environment,
  fillLedger,
  job,
  postgresHome,
  runHere,
  sqliteHome,
  type TestHome,
} from './jobs.suite.ts'

const ESCAPE = '\u001b'

describe('on a terminal', () => {
  let home: TestHome
  before(async () => {
    home = sqliteHome()
    await fillLedger(home.url)
  })
  after(() => home.remove())

  test('lists are aligned and cut to its width', async () => {
    const { stdout } = await runHere(['jobs', 'list'], environment(home.path), { columns: 90 })
    const lines = stdout.trimEnd().split('\n')
    assert.match(lines[0]!, /^ ?ID {2}KIND +STATE +STREAM +AGE {2}TAKEN +ABOUT$/)
    assert.ok(lines.every((line) => line.length <= 90))
    assert.match(stdout, /…$/m)
  })

  test('watch draws one screen over the last, in its own control sequences only, and shows the cursor at the end', async () => {
    const { code, stdout } = await watchUntil(home, {
      columns: 100,
      enough: (text) => text.split(`${ESCAPE}[H`).length > 3,
    })
    assert.equal(code, 0)
    assert.ok(stdout.startsWith(`${ESCAPE}[?25l${ESCAPE}[2J${ESCAPE}[H`))
    assert.ok(stdout.endsWith(`${ESCAPE}[?25h`))
    const screens = stdout.split(`${ESCAPE}[H`).slice(1)
    assert.ok(screens.length >= 2)
    const lines = screens[0]!.replaceAll(`${ESCAPE}[K`, '').replaceAll(`${ESCAPE}[J`, '').split('\n')
    assert.match(
      lines[1]!,
      /^1 engine, 2 claimed, 1 ready, 1 after other jobs, 1 later, 2 failed, 0 items\/s$/,
    )
    assert.equal(lines[2], 'Lanes: 2 interactive, 0 bulk')
    assert.ok(lines.some((line) => /^mail:ann +2026-01 +2 h ago +3 +1 +1$/.test(line)))
    assert.ok(lines.some((line) => /^ *\d+ +demo\.hold .* uploading 1\.5 MB of 6 MB \(25 %\)$/.test(line)))
    const own = ['?25l', '?25h', '2J', 'H', 'K', 'J'].map((code) => `${ESCAPE}[${code}`)
    const left = own.reduce((text, sequence) => text.replaceAll(sequence, ''), stdout)
    assert.doesNotMatch(left, /(?!\n)\p{Cc}/u)
  })
})

test('watch goes on while the ledger does not answer, and says so once', async () => {
  const home = await postgresHome()
  await enqueueOne(home)
  let dropped = false
  const { code, stdout } = await watchUntil(home, {
    enough: (text) => {
      if (!dropped) void home.remove()
      dropped = true
      return text.includes('does not answer')
    },
  })
  assert.equal(code, 0)
  assert.match(stdout, /^\d\d:\d\d:\d\d {2}no engine, .*\nThe ledger does not answer: .*\n$/)
})

describe('elsewhere', () => {
  let home: TestHome
  before(async () => {
    home = sqliteHome()
    await enqueueOne(home)
  })
  after(() => home.remove())

  test('watch prints a line only when something has changed', async () => {
    let asked = false
    const { code, stdout, stderr } = await watchUntil(home, {
      enough: (text) => {
        if (!asked) void enqueueOne(home)
        asked = true
        return text.includes('2 ready')
      },
    })
    assert.equal(code, 0)
    assert.equal(stderr, '')
    const lines = stdout.trimEnd().split('\n')
    assert.deepEqual(
      lines.map((line) => line.replace(/^\d\d:\d\d:\d\d {2}/, '')),
      ['no engine, 0 claimed, 1 ready, 0 items/s', 'no engine, 0 claimed, 2 ready, 0 items/s'],
    )
  })

  test('watch prints an object each time with --json', async () => {
    const { stdout } = await watchUntil(home, {
      args: ['--json'],
      enough: (text) => text.split('\n').length > 2,
    })
    const seen = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as { jobs: { ready: number } })
    assert.ok(seen.length >= 2)
    assert.ok(seen.every(({ jobs }) => jobs.ready === 2))
  })
})

test('watch and status show a mailbox up to its watermark, also while another process writes for long', async (t) => {
  const home = sqliteHome()
  t.after(() => home.remove())
  await fillLedger(home.url)
  const ledger = await openLedger(home.url)
  const tables = await MailTables.open(ledger)
  await tables.mailbox('ann', () => 'archive-1')
  await ledger.transaction(async (tx) => {
    await notePlan(tx, { account: 'ann', granularity: 'month', sinceS: null, atMs: 1_000, choices: {} })
    const lost = { id: 'm', shard: '1970', fromMs: 50_000, wasStored: true, state: 'noted' as const }
    await noteMissing(tx, 'ann', [lost], 1_000)
  })
  await ledger.close()
  const other = new DatabaseSync(home.url.slice('sqlite:'.length))
  other.exec('BEGIN IMMEDIATE')
  const watched = await watchUntil(home, { args: ['--json'], enough: (text) => text.includes('\n') })
  const status = await runHere(['status', '--json'], environment(home.path))
  other.close()
  for (const { stdout } of [watched, status]) {
    const { streams } = JSON.parse(stdout.split('\n{')[0]!) as { streams: { name: string; mark: string }[] }
    assert.equal(streams.find(({ name }) => name === 'mail:ann')?.mark, markOf(50))
  }
})

async function enqueueOne(home: TestHome): Promise<void> {
  const ledger = await openLedger(home.url)
  await ledger.write({ jobs: [job('demo.wait', {})] })
  await ledger.close()
}

/** Ctrl-C comes when enough was seen, so certainly while it watches. */
async function watchUntil(
  home: TestHome,
  input: { args?: string[]; columns?: number; enough: (stdout: string) => boolean },
): Promise<Ended> {
  let isOver = false
  const onOutput = (stdout: string): void => {
    if (isOver || !input.enough(stdout)) return
    isOver = true
    process.kill(process.pid, 'SIGINT')
  }
  const args = ['jobs', 'watch', '--every', '100ms', ...(input.args ?? [])]
  return runHere(args, environment(home.path), { columns: input.columns, onOutput })
}
