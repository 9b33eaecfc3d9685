/** `jobs`, `bad`, `pause`, `resume` and `status` on a ledger at rest, on both databases. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { processIdentity } from '../../base/process-identity.ts'
import { openLedger } from '../../ledger/open.ts'
import {
  claim,
  type Filled,
  fillLedger,
  job,
  LEASE_MS,
  postgresHome,
  settle,
  sqliteHome,
  type TestHome,
} from './jobs.suite.ts'

type JobJson = { id: number; state: string; waitsFor: string | null; stream: string | null; failures: number }
type ShowJson = JobJson & {
  payload: unknown
  heldBy: { pid: number; state: string } | null
  errors: { attempt: number; message: string }[]
  dependencies: { id: number; met: boolean }[]
  segmentCounts: Record<string, unknown> | null
}

const makeHomes: Record<string, () => Promise<TestHome>> = {
  SQLite: async () => sqliteHome(),
  PostgreSQL: postgresHome,
}

for (const [database, makeHome] of Object.entries(makeHomes)) {
  describe(`without a ledger on ${database}`, () => {
    let home: TestHome
    before(async () => {
      home = await makeHome()
    })
    after(() => home.remove())

    test('lists are empty, status is calm, and nothing is made', async () => {
      for (const args of [
        ['jobs', 'list'],
        ['jobs', 'stats'],
        ['status'],
        ['bad', 'list'],
        ['jobs', 'watch'],
      ]) {
        const { code, stdout, stderr } = await home.run(...args)
        assert.equal(code, 0, args.join(' '))
        assert.equal(stdout, '')
        assert.match(stderr, /^There is no ledger at \S+ yet\. It is made when/, args.join(' '))
      }
      assert.deepEqual(JSON.parse((await home.run('jobs', 'list', '--json')).stdout), [])
      const status = JSON.parse((await home.run('status', '--json')).stdout) as { verdict: { state: string } }
      assert.equal(status.verdict.state, 'settled')
    })

    test('commands about something in it end with 2', async () => {
      for (const args of [
        ['jobs', 'show', '1'],
        ['jobs', 'retry', '1'],
        ['jobs', 'prune'],
        ['pause', '--all'],
        ['resume'],
      ]) {
        const { code, stderr } = await home.run(...args)
        assert.equal(code, 2, args.join(' '))
        assert.match(stderr, /^tidemark: There is no ledger at /)
      }
      assert.match((await home.run('jobs', 'list')).stderr, /There is no ledger/)
    })
  })

  describe(`looking at a ledger on ${database}`, () => {
    let home: TestHome
    let filled: Filled
    before(async () => {
      home = await makeHome()
      filled = await fillLedger(home.url)
    })
    after(() => home.remove())

    test('jobs list shows the newest first, with what each waits for', async () => {
      const { code, stdout, stderr } = await home.run('jobs', 'list')
      assert.equal(code, 0)
      assert.equal(stderr, '')
      const rows = stdout
        .trimEnd()
        .split('\n')
        .map((line) => line.split('\t'))
      assert.deepEqual(rows[0], ['ID', 'KIND', 'STATE', 'STREAM', 'AGE', 'TAKEN', 'ABOUT'])
      const row = (id: number): string[] => rows.find(([first]) => first === String(id))!
      assert.deepEqual(row(filled.seal).slice(0, 4), [
        String(filled.seal),
        'mail.seal',
        'pending, 2 jobs first',
        'mail:bob',
      ])
      assert.match(row(filled.later)[2]!, /^pending, in [23] min/)
      assert.equal(row(filled.ready)[2], 'pending, ready')
      assert.equal(row(filled.held)[6], 'uploading 1.5 MB of 6 MB (25 %)')
      assert.deepEqual(row(filled.failed).slice(5), ['2, 2 failed', 'permanent: no such folder'])
      assert.match(row(filled.list)[4]!, /^2 h/)
      const ids = rows.slice(1).map(([id]) => Number(id))
      assert.deepEqual(
        ids,
        [...ids].sort((a, b) => b - a),
      )
    })

    test('jobs list narrows by state, kind, stream, parent and age', async () => {
      const ids = async (...args: string[]): Promise<number[]> =>
        (await home.json<JobJson[]>('jobs', 'list', ...args)).map(({ id }) => id)
      assert.deepEqual(await ids('--state', 'failed'), [filled.dependent, filled.failed])
      assert.deepEqual(await ids('--kind', 'mail.seal'), [filled.seal])
      assert.deepEqual(
        (await ids('--stream', 'mail:bob')).sort(),
        [filled.later, filled.seal, filled.ready].sort(),
      )
      assert.deepEqual(await ids('--parent', String(filled.list)), [...filled.fetches].reverse())
      assert.deepEqual(await ids('--state', 'claimed', '--older-than', '1h'), [])
      assert.deepEqual(await ids('--state', 'claimed'), [filled.orphan, filled.held])
    })

    test('jobs list says how to get the next page, and the last page says nothing', async () => {
      const first = await home.run('jobs', 'list', '--state', 'failed', '--limit', '1')
      const next = `tidemark jobs list --state failed --limit 1 --before ${filled.dependent}`
      assert.equal(first.stderr, `More: ${next}\n`)
      const second = await home.run(...next.split(' ').slice(1))
      assert.match(second.stdout, new RegExp(`^${filled.failed}\t`, 'm'))
      assert.equal(second.stderr, '')
    })

    test('jobs list names the nearest kind and stream when none is like that', async () => {
      assert.match(
        (await home.run('jobs', 'list', '--kind', 'mial.fetch')).stderr,
        /did you mean mail\.fetch\?/,
      )
      assert.match((await home.run('jobs', 'list', '--stream', 'mail:an')).stderr, /did you mean mail:ann\?/)
      assert.equal((await home.run('jobs', 'list', '--before', '1')).stderr, 'No job is like that.\n')
    })

    test('jobs show says what a job waits for', async () => {
      const { stdout } = await home.run('jobs', 'show', String(filled.seal))
      const [later, ready] = [filled.later, filled.ready]
      assert.match(
        stdout,
        new RegExp(
          `It waits for job #${later} \\(mail.fetch, pending\\) and job #${ready} \\(mail.read, pending\\)\\.`,
        ),
      )
      assert.match(stdout, /If one of them fails, this job fails too\./)
      const time = (await home.run('jobs', 'show', `#${filled.later}`)).stdout
      assert.match(time, /It starts at (?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d \(in [23] min/)
    })

    test('jobs show says since when a job is ready and whether an engine could take it', async () => {
      const { stdout } = await home.run('jobs', 'show', String(filled.ready))
      assert.match(stdout, /It has been ready since .*\(2 h ago\)\./)
      assert.match(
        stdout,
        /One engine is running: it takes the job when there is room .* if it knows the kind mail\.read\./,
      )
    })

    test('jobs show says who holds a job and until when, and when its holder has died', async () => {
      const held = (await home.run('jobs', 'show', String(filled.held))).stdout
      assert.match(
        held,
        new RegExp(
          `held by worker #${filled.worker} \\(tester on .*, pid ${process.pid}\\) since .*, until .*\\(in (?:10|9) min`,
        ),
      )
      assert.match(held, /So far: uploading 1\.5 MB of 6 MB \(25 %\)\./)
      const orphan = (await home.run('jobs', 'show', String(filled.orphan))).stdout
      assert.match(
        orphan,
        /whose process has ended\.\n {2}The next engine that looks takes it back; that costs no attempt\./,
      )
    })

    test('jobs show says what failed before, and what else has to be tried again', async () => {
      const { stdout } = await home.run('jobs', 'show', String(filled.failed))
      assert.match(stdout, /It failed at .*: permanent: no such folder\./)
      assert.match(stdout, new RegExp(`Try it again: tidemark jobs retry ${filled.failed}`))
      assert.match(stdout, /It failed 2 of 5 times/)
      assert.match(stdout, /\nTimes taken {2}2\nFailures {5}2\n/)
      assert.match(
        stdout,
        /attempt 2, .*: permanent: no such folder\n {2}attempt 1, .*: transient: connection reset/,
      )
      const dependent = (await home.run('jobs', 'show', String(filled.dependent))).stdout
      assert.match(dependent, new RegExp(`It comes back when job #${filled.failed} is tried again`))
    })

    test('jobs show gives programs everything', async () => {
      const shown = await home.json<ShowJson>('jobs', 'show', String(filled.fetches[0]))
      assert.equal(shown.state, 'done')
      assert.deepEqual(shown.payload, { n: 1 })
      assert.deepEqual(shown.segmentCounts, {
        id: (shown.segmentCounts as { id: number }).id,
        label: 'January',
        state: 'settled',
        openJobs: 0,
        listed: 3,
        stored: 1,
        gone: 1,
        skipped: 0,
        bad: 1,
      })
      const held = await home.json<ShowJson>('jobs', 'show', String(filled.held))
      assert.deepEqual([held.heldBy?.pid, held.heldBy?.state], [process.pid, 'live'])
      const seal = await home.json<ShowJson>('jobs', 'show', String(filled.seal))
      assert.deepEqual(
        seal.dependencies.map(({ met }) => met),
        [false, false],
      )
      assert.equal((await home.json<ShowJson>('jobs', 'show', String(filled.failed))).errors.length, 2)
    })

    test('jobs show keeps secrets in a payload from whoever looks over the shoulder', async () => {
      const { stdout } = await home.run('jobs', 'show', String(filled.later))
      assert.match(stdout, /"folder": "inbox",\n {4}"password": "\[redacted\]"/)
      assert.doesNotMatch(stdout, /hunter2/)
      const { payload } = await home.json<ShowJson>('jobs', 'show', String(filled.later))
      assert.deepEqual(payload, { folder: 'inbox', password: 'hunter2' })
    })

    test('jobs stats counts by kind and stage', async () => {
      const { kinds, counters } = await home.json<{ kinds: Record<string, unknown>[]; counters: object }>(
        'jobs',
        'stats',
      )
      assert.deepEqual(
        kinds.find(({ kind }) => kind === 'mail.fetch'),
        {
          kind: 'mail.fetch',
          ready: 0,
          deps: 0,
          time: 1,
          claimed: 0,
          done: 1,
          failed: 0,
          canceled: 0,
          skipped: 2,
        },
      )
      assert.deepEqual(Object.keys(counters), ['hour', 'fiveMinutes'])
      const { stdout } = await home.run('jobs', 'stats')
      assert.match(stdout, /^all\t1\t1\t1\t2\t2\t2\t0\t2$/m)
      assert.match(stdout, /^COUNTER\tLAST HOUR\tA MINUTE\t/m)
    })

    test('status is one screen with streams that add up, and fails because of failed jobs', async () => {
      const { code, stdout } = await home.run('status')
      assert.equal(code, 1)
      assert.match(stdout, new RegExp(`^Ledger {3}.* \\(${database}\\)$`, 'm'))
      assert.match(
        stdout,
        new RegExp(`^ {2}#${filled.worker} tester on .*, pid ${process.pid}, since .*, last heartbeat `, 'm'),
      )
      assert.match(stdout, /ghost on .*: its process has ended/)
      assert.match(stdout, /^mail:ann\t2026-01\t2 h ago\t1\/1\t3\t1\t1\t0\t1\tyes$/m)
      assert.match(stdout, /^Bad {6}1 item$/m)
      assert.match(
        stdout.trimEnd().split('\n').at(-1)!,
        /^2 jobs failed: .*Besides, 3 jobs waiting, 2 claimed, 1 bad item\.$/,
      )
    })

    test('nothing that came from outside reaches the terminal', async () => {
      for (const args of [
        ['jobs', 'list'],
        ['jobs', 'show', String(filled.failed)],
        ['jobs', 'show', String(filled.ready)],
        ['bad', 'list'],
        ['status'],
      ]) {
        for (const more of [[], ['--json']]) {
          const { stdout, stderr } = await home.run(...args, ...more)
          // \t and \n are our own.
          assert.doesNotMatch(stdout + stderr, /(?![\t\n])[\p{Cc}\u202e]/u, args.join(' '))
        }
      }
      assert.match((await home.run('bad', 'list')).stdout, /message 3\\u001b\[2J/)
    })
  })

  describe(`steering a ledger on ${database}`, () => {
    let home: TestHome
    let filled: Filled
    before(async () => {
      home = await makeHome()
      filled = await fillLedger(home.url)
    })
    after(() => home.remove())

    const stateOf = async (id: number): Promise<string> =>
      (await home.json<JobJson>('jobs', 'show', String(id))).state

    test('pause asks which, and names the nearest when there is no such thing', async () => {
      assert.deepEqual(await home.run('pause'), {
        code: 2,
        stdout: '',
        stderr: 'tidemark: What is to be paused?\n  Say --stream NAME, --kind KIND or --all.\n',
      })
      const stream = await home.run('pause', '--stream', 'mail:bbo')
      assert.equal(stream.code, 2)
      assert.match(
        stream.stderr,
        /There is no stream called mail:bbo; did you mean mail:bob\?\n {2}Known streams: mail:ann, mail:bob\./,
      )
      const kind = await home.run('pause', '--kind', 'mail.fetsh')
      assert.equal(kind.code, 2)
      assert.match(kind.stderr, /did you mean mail\.fetch\?/)
      assert.equal((await home.run('pause', '--kind', 'a', '--all')).code, 2)
    })

    test('a paused stream is told everywhere, with its reason, until it is resumed', async () => {
      const paused = await home.run('pause', '--stream', 'mail:bob', '--reason', 'moving house')
      assert.deepEqual(paused, {
        code: 0,
        stdout: 'The stream mail:bob is paused: 3 jobs wait.\n',
        stderr: '',
      })
      assert.match(
        (await home.run('pause', '--stream', 'mail:bob')).stdout,
        /is paused already since .*: moving house\n/,
      )
      const shown = (await home.run('jobs', 'show', String(filled.ready))).stdout
      assert.match(
        shown,
        /Its stream mail:bob is paused: moving house\. Go on with: tidemark resume --stream mail:bob/,
      )
      assert.match((await home.run('jobs', 'list', '--state', 'pending')).stdout, /\tpending, paused\t/)
      assert.match(
        (await home.run('status')).stdout,
        /^Paused\n {2}stream mail:bob, since .*: moving house$/m,
      )
      assert.match((await home.run('resume')).stderr, /Paused are: --stream mail:bob\./)
      assert.match((await home.run('resume', '--kind', 'mail.seal')).stdout, /was not paused/)
      assert.match(
        (await home.run('resume', '--stream', 'mail:bob')).stdout,
        /^The stream mail:bob goes on: 3 jobs wait\.\n/,
      )
      assert.doesNotMatch((await home.run('status')).stdout, /Paused/)
    })

    test('pauses of a kind and of everything count by tallies; what is not known yet needs --force', async () => {
      assert.match(
        (await home.run('pause', '--all')).stdout,
        /^Everything is paused: 3 jobs wait, 2 claimed\.\n/,
      )
      assert.match(
        (await home.run('pause', '--kind', 'mail.seal')).stdout,
        /^The kind mail\.seal is paused: 1 job waits\.\n/,
      )
      assert.match((await home.run('resume', '--all')).stderr, /Still paused: --kind mail\.seal/)
      assert.equal((await home.run('resume', '--kind', 'mail.seal')).code, 0)
      assert.equal((await home.run('pause', '--kind', 'not.yet', '--force')).code, 0)
      const resumed = await home.json<{ changed: boolean; stillPaused: unknown[] }>(
        'resume',
        '--kind',
        'not.yet',
      )
      assert.deepEqual([resumed.changed, resumed.stillPaused], [true, []])
    })

    test('jobs cancel asks the worker that holds a job, and needs none where the worker has died', async () => {
      const { code, stdout } = await home.run(
        'jobs',
        'cancel',
        String(filled.orphan),
        String(filled.held),
        '--reason',
        'no need',
      )
      assert.equal(code, 0)
      assert.equal(
        stdout,
        '1 job is canceled.\n1 job is being stopped: the worker was asked, and nothing of it is kept.\n',
      )
      assert.equal(await stateOf(filled.orphan), 'canceled')
      assert.match(
        (await home.run('jobs', 'show', String(filled.held))).stdout,
        /It was asked to stop \(canceled by hand: no need\)/,
      )
      assert.match((await home.run('jobs', 'list', '--state', 'claimed')).stdout, /\tclaimed, stopping\t/)
      assert.equal(
        (await home.run('jobs', 'cancel', String(filled.orphan))).stdout,
        `Job #${filled.orphan} is canceled already.\n`,
      )
    })

    test('jobs cancel does what it can and ends with 2 when a job has ended or does not exist', async () => {
      const { code, stderr } = await home.run('jobs', 'cancel', String(filled.list), '99999')
      assert.equal(code, 2)
      assert.match(
        stderr,
        new RegExp(
          `Job #${filled.list} is done: there is nothing to cancel\\.\ntidemark: There is no job #99999\\.`,
        ),
      )
    })

    test('jobs cancel by kind says how many first, and does it with --yes', async () => {
      const asked = await home.run('jobs', 'cancel', '--kind', 'mail.read')
      assert.equal(asked.code, 2)
      assert.match(asked.stderr, /This would cancel 1 pending job of mail\.read\.\n {2}Add --yes to do it\./)
      assert.equal(await stateOf(filled.ready), 'pending')
      assert.equal(
        (await home.run('jobs', 'cancel', '--kind', 'mail.read', '--yes')).stdout,
        '1 job is canceled.\n',
      )
      assert.equal(await stateOf(filled.ready), 'canceled')
      // What waited for it has ended with it.
      assert.equal(await stateOf(filled.seal), 'failed')
      assert.equal((await home.run('jobs', 'cancel', '--kind', 'mail.raed', '--yes')).code, 2)
      assert.equal((await home.run('jobs', 'cancel', '1', '--kind', 'mail.read')).code, 2)
      assert.equal((await home.run('jobs', 'cancel')).code, 2)
    })

    test('jobs retry brings a job back, and those that had failed because of it', async () => {
      const { code, stdout } = await home.run('jobs', 'retry', String(filled.failed))
      assert.equal(code, 0)
      assert.equal(stdout, `Job #${filled.failed} is pending again, and 1 that had failed because of it.\n`)
      assert.equal(await stateOf(filled.dependent), 'pending')
      assert.match(
        (await home.run('jobs', 'show', String(filled.failed))).stdout,
        /Its last error was at .*, in attempt 2: permanent/,
      )
      const done = await home.run('jobs', 'retry', String(filled.list))
      assert.equal(done.code, 2)
      assert.match(done.stderr, /only failed and canceled jobs can be tried again/)
      assert.equal((await home.run('jobs', 'retry')).code, 2)
    })

    test('jobs retry --all-failed says what must be tried again before a job that waits for it', async () => {
      const { code, stderr } = await home.run('jobs', 'retry', '--all-failed')
      assert.equal(code, 1)
      assert.match(
        stderr,
        new RegExp(`Job #${filled.seal} waits for job #${filled.ready}, which is canceled`),
      )
      assert.match(stderr, new RegExp(`Try #${filled.ready} again first`))
      // Named in the wrong order, both come back all the same.
      const both = await home.run('jobs', 'retry', String(filled.seal), String(filled.ready))
      assert.deepEqual([both.code, both.stderr.includes('waits for')], [0, false])
      assert.equal((await home.run('jobs', 'retry', '--all-failed')).stdout, 'No job has failed.\n')
      assert.equal((await home.run('jobs', 'retry', '--all-failed', '--kind', 'mail.sael')).code, 2)
    })

    test('bad retry enqueues a job for each item, once', async () => {
      assert.match((await home.run('bad', 'retry', '4711')).stderr, /There is no bad item #4711\./)
      assert.equal((await home.run('bad', 'retry')).code, 2)
      assert.equal((await home.run('bad', 'retry', '--all')).stdout, '1 item is tried again.\n')
      const again = await home.json<{ retried: number; alreadyTrying: number }>(
        'bad',
        'retry',
        '--stream',
        'mail:ann',
      )
      assert.deepEqual([again.retried, again.alreadyTrying], [0, 1])
    })

    test('jobs prune deletes what settled long ago; a dry run counts the same and deletes nothing', async () => {
      const ids = async (): Promise<number> => (await home.json<JobJson[]>('jobs', 'list')).length
      const before = await ids()
      assert.match((await home.run('jobs', 'prune')).stdout, /^0 jobs pruned\.\n/)
      const dry = await home.json<{ pruned: number }>('jobs', 'prune', '--older-than', '1h', '--dry-run')
      assert.equal(await ids(), before)
      const { stdout, stderr } = await home.run('jobs', 'prune', '--older-than', '1h')
      assert.equal(stdout, '4 jobs pruned.\n')
      assert.equal(dry.pruned, 4)
      assert.match(stderr, /failed ones for 30 d/)
      assert.equal(await ids(), before - 4)
      const shown = await home.run('jobs', 'show', String(filled.list))
      assert.equal(shown.code, 2)
      assert.match(shown.stderr, /It may have been pruned\./)
    })
  })

  describe(`the verdict of status on ${database}`, () => {
    let home: TestHome
    before(async () => {
      home = await makeHome()
      const ledger = await openLedger(home.url)
      await ledger.write({ jobs: [job('demo.wait', {})] })
      await ledger.raiseAlert(
        { condition: 'throttled', target: 'gmail', severity: 'warning', text: 'slow' },
        1_000,
      )
      await ledger.close()
    })
    after(() => home.remove())

    test('is calm while work waits, names what is wrong, and says when all is settled', async () => {
      const waiting = await home.run('status')
      assert.equal(waiting.code, 0)
      assert.match(waiting.stdout, /^1 job waiting, no engine is running: start one with tidemark serve$/m)
      assert.match(waiting.stdout, /^Alerts\n {2}warning throttled gmail, since .*: slow$/m)
      await home.run('jobs', 'cancel', '1')
      const settled = await home.run('status')
      assert.equal(settled.code, 0)
      assert.match(settled.stdout, /\nAll settled\.\n$/)
    })

    test('ends with 3 when all is settled but for bad items', async () => {
      const ledger = await openLedger(home.url)
      const owner = await ledger.register({ ...processIdentity(), name: 'tester' }, LEASE_MS)
      await ledger.write({ jobs: [job('demo.poison', {})] })
      const [poison] = await claim(ledger, owner, 'demo.poison')
      const bad = [{ item: 'm1', reason: 'no date', errorKind: 'permanent' as const, payload: '{}' }]
      await settle(ledger, owner, { job: poison!, event: 'skip', bad })
      await ledger.retire(owner)
      await ledger.close()
      const { code, stdout } = await home.run('status')
      assert.equal(code, 3)
      assert.match(stdout, /\nAll settled, but for 1 bad item: see tidemark bad list/)
    })
  })
}
