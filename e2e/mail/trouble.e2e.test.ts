/** Wrong use and bad days: each gives a clear message and the right exit code, and costs no mail. */
import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, describe, test } from 'node:test'
import { setTimeout as pass } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { folderName } from '../../src/apps/mail/account.ts'
import { GMAIL_SCOPES } from '../../src/cloud/gmail/auth.ts'
import { checkAll, checkWatermark, look, withArchive } from './oracle.ts'
import { ADDRESS, type Ended, type World, worldsOf } from './world.ts'

const OTHER = 'bob@example.com'
const LOOK_MS = 5
/** Some in each month of a year: a month is listed, and its messages fetched, for itself. */
const MESSAGES = 40

const { worldOf, syncedWorld } = worldsOf({ messages: MESSAGES, years: 1 })
const scratch = mkdtempSync(join(tmpdir(), 'tidemark-trouble-'))
after(() => rmSync(scratch, { recursive: true, force: true }))

/** One run in another environment. */
function runWith(world: World, env: NodeJS.ProcessEnv, ...args: string[]): Promise<Ended> {
  const before = { ...world.env }
  Object.assign(world.env, env)
  const { ended } = world.start(args)
  for (const key of Object.keys(env)) delete world.env[key]
  Object.assign(world.env, before)
  return ended
}

type ErrorLine = { error: { message: string; hint?: string; code?: string } }

/** The error that a command with --json has written. */
function errorOf({ stderr }: Ended): ErrorLine['error'] {
  return (JSON.parse(stderr.trim().split('\n').at(-1)!) as ErrorLine).error
}

type Summary = { type: string; accounts: Record<string, unknown>[] }

/** Every line is JSON; the last one is returned. */
function lastLine<T = Summary>({ stdout }: Ended): T {
  return stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as T)
    .at(-1)!
}

/** Waits until so many more requests were answered, or the command is over. */
async function served(world: World, requests: number, ended: Promise<Ended>): Promise<void> {
  const until = world.served + requests
  let isOver = false
  void ended.then(() => {
    isOver = true
  })
  while (!isOver && world.served < until) await pass(LOOK_MS)
  assert.ok(!isOver, 'it ended before it could be disturbed')
}

describe('wrong use of mail commands', () => {
  test('without an account, every command says how to connect one, and makes nothing', async () => {
    const world = await worldOf({ messages: 1 })
    const home = join(scratch, 'nobody')
    for (const command of ['sync', 'status', 'verify', 'slices'] as const) {
      const end = await world.run('--home', home, 'mail', command)
      assert.equal(end.code, 2)
      assert.match(
        end.stderr,
        /No mail account is connected\.\n {2}Connect one with: tidemark account add gmail/,
      )
      const json = await world.run('--home', home, 'mail', command, '--json')
      assert.equal(json.code, 2)
      assert.equal(errorOf(json).code, 'no-account')
      assert.equal(json.stdout, '')
    }
  })

  test('an unknown account is named, with those that there are', async () => {
    const world = await worldOf({ messages: 1 })
    for (const command of ['sync', 'status', 'verify', 'slices']) {
      const end = await world.run('mail', command, '--account', OTHER)
      assert.equal(end.code, 2)
      assert.match(
        end.stderr,
        /There is no mail account bob@example\.com\.\n {2}There are: ann@example\.com\./,
      )
    }
    const json = await world.run('mail', 'sync', '--account', OTHER, '--json')
    assert.equal(errorOf(json).code, 'account-unknown')
  })

  test('what is not a date, a slice or a length of time is refused before Gmail is asked', async () => {
    const world = await worldOf({ messages: 1 })
    const calls = world.served
    const wrong: [string[], RegExp][] = [
      [['--since', 'yesterday'], /--since is "yesterday", which is not a day/],
      [['--since', '2021-02-30'], /--since is "2021-02-30", which is not a day/],
      [['--since', '2999-01-01'], /between 1970 and today/],
      [['--slice', 'year'], /'year' is invalid\. Allowed choices are auto, day, week, month/],
      [['--watch', '--every', 'often'], /--every is "often", which is not a length of time/],
      [['--watch', '--every', '0s'], /--every is too short/],
      [['--every', '5m'], /--every belongs to --watch/],
    ]
    for (const [flags, message] of wrong) {
      const end = await world.run('mail', 'sync', ...flags)
      assert.equal(end.code, 2, flags.join(' '))
      assert.match(end.stderr, message)
      assert.match(end.stderr.trim(), /^tidemark: /)
    }
    const both = await world.run('mail', 'verify', '--repair', '--offline')
    assert.equal(both.code, 2)
    assert.equal(world.served, calls)
  })

  test('what the first sync decided is not changed by a later one', async () => {
    const world = await syncedWorld({ messages: 30 })
    const since = await world.run('mail', 'sync', '--since', '2024-01-01')
    assert.equal(since.code, 2)
    assert.match(since.stderr, /begins with the oldest mail; that was decided by its first sync/)
    const slice = await world.run('mail', 'sync', '--slice', 'day')
    assert.equal(slice.code, 0, slice.stderr)
    assert.match(slice.stderr, /--slice changes nothing: its first sync cut it by the month/)
    const shard = await world.run('mail', 'verify', '--shard', '1999.db')
    assert.equal(shard.code, 2)
    assert.match(shard.stderr, /has no file 1999\.db\.\n {2}It has: 20/)
  })
})

describe('what is paused', () => {
  test('is told as such, with how to go on, and is not done', async () => {
    const world = await syncedWorld({ messages: 20 })
    const scopes = [['--stream', `mail:${ADDRESS}`], ['--kind', 'mail.history'], ['--all']]
    for (const scope of scopes) {
      assert.equal((await world.run('pause', ...scope, '--reason', 'a holiday')).code, 0)
      const end = await world.run('mail', 'sync', '--account', 'Ann@Example.com')
      assert.equal(end.code, 1, scope.join(' '))
      assert.match(end.stdout, /^ann@example\.com: paused; /)
      assert.match(end.stderr, /ann@example\.com is paused: .*a holiday/)
      const resume =
        scope[0] === '--stream' ? `mail resume --account ${ADDRESS}` : `resume ${scope.join(' ')}`
      assert.ok(end.stderr.includes(`Go on with: tidemark ${resume}`), end.stderr)
      const status = await world.run('mail', 'status')
      assert.equal(status.code, 1)
      assert.match(status.stdout, /a holiday/)
      assert.equal((await world.run('resume', ...scope)).code, 0)
    }
    assert.equal((await world.run('mail', 'sync')).code, 0)
  })

  test('a mailbox that was never synced cannot be verified', async () => {
    const world = await worldOf({ messages: 5 })
    for (const flags of [[], ['--repair']]) {
      const end = await world.run('mail', 'verify', ...flags)
      assert.notEqual(end.code, 0)
      assert.match(end.stdout + end.stderr, /was never synced/)
      assert.match(end.stderr, /Run: tidemark mail sync/)
    }
  })
})

describe('signing in', () => {
  test('access that ends in the middle pauses the account; connected again, the sync goes on', async () => {
    const world = await worldOf({
      seed: 31,
      accounts: [ADDRESS, OTHER].map((address) => ({ address, messages: MESSAGES, years: 1 })),
    })
    world.sim.faults.add({ do: 'revoke-tokens', methods: ['batch'], account: ADDRESS, skip: 2, max: 1 })
    const lost = await world.run('mail', 'sync')
    assert.equal(lost.code, 1)
    assert.match(lost.stdout, /ann@example\.com: paused; .* on their way/)
    assert.match(lost.stdout, new RegExp(`bob@example\\.com: done; ${MESSAGES} listed = ${MESSAGES} stored`))
    assert.match(lost.stderr, /ann@example\.com is paused: sign-in needed/)
    assert.match(lost.stderr, /Connect it again with: tidemark account add gmail --user ann@example\.com/)
    await withArchive(world, async (archive, ledger) => checkWatermark(world, await look(archive, ledger)))

    const status = await world.run('mail', 'status')
    assert.equal(status.code, 1)
    assert.match(status.stdout, /ann@example\.com: paused\n {2}paused {5}sign-in needed/)
    const again = await world.run('mail', 'sync', '--account', ADDRESS, '--json')
    assert.equal(again.code, 1)
    assert.match(String(lastLine(again).accounts[0]!.pauseReason), /sign-in needed/)
    const other = await world.run('mail', 'sync', '--account', OTHER)
    assert.equal(other.code, 0, other.stderr)

    await world.connect(ADDRESS)
    const end = await world.run('mail', 'sync')
    assert.equal(end.code, 0, end.stderr)
    await checkAll(world)
  })

  test('whoever watches is told once that access ended, and goes on when it is back', async () => {
    const world = await worldOf({ messages: 40, seed: 30 })
    const { child, ended } = world.start(['mail', 'sync', '--watch', '--every', '1s'])
    let shown = ''
    child.stderr!.on('data', (text: Buffer) => (shown += text.toString()))
    const says = async (words: RegExp): Promise<void> => {
      while (!words.test(shown)) await pass(LOOK_MS)
    }
    await says(/Looking for changes every 1 s; Ctrl-C stops/)
    world.sim.gmail.grants.revokeAccount(ADDRESS)
    await says(/ann@example\.com is paused: sign-in needed/)
    const { id } = world.sim.gmail.mailbox(ADDRESS).insert({ raw: Buffer.from('Subject: new\r\n\r\nhello') })
    await world.connect(ADDRESS)
    const isStored = (): Promise<boolean> =>
      withArchive(world, async (archive) => (await archive.stored([id])).has(id))
    while (!(await isStored())) await pass(LOOK_MS)
    child.kill('SIGINT')
    const end = await ended
    assert.equal(end.code, 0, end.stderr)
    assert.equal(end.stderr.match(/is paused/g)?.length, 1)
    await checkAll(world)
  })

  test('access that ended before is told by sync and by verify, which still reads every byte', async () => {
    const world = await syncedWorld({ seed: 32 })
    world.sim.gmail.grants.revokeAccount(ADDRESS)
    const verify = await world.run('mail', 'verify')
    assert.equal(verify.code, 1)
    assert.match(verify.stdout, new RegExp(`${MESSAGES} messages read, .*\\n {2}every message has its hash`))
    assert.match(verify.stdout, /not compared with Gmail: .*no longer valid/)
    assert.match(verify.stderr, /tidemark account add/)
    assert.equal((await world.run('mail', 'verify', '--offline')).code, 0)
    const sync = await world.run('mail', 'sync')
    assert.equal(sync.code, 1)
    assert.match(sync.stderr, /is paused: sign-in needed/)
    await world.connect(ADDRESS)
    assert.equal((await world.run('mail', 'sync')).code, 0)
    assert.equal((await world.run('mail', 'verify')).code, 0)
  })

  test('reading is all that a sync needs, and without that it says what to allow', async () => {
    const world = await worldOf({ messages: 30, seed: 33 })
    await world.connect(ADDRESS, ['https://www.googleapis.com/auth/userinfo.email'])
    const none = await world.run('mail', 'sync')
    assert.equal(none.code, 1)
    assert.match(none.stderr, /is paused: sign-in needed: The account did not allow this/)
    assert.match(none.stderr, /Connect it again/)
    await world.connect(ADDRESS, [GMAIL_SCOPES.readonly])
    const read = await world.run('mail', 'sync')
    assert.equal(read.code, 0, read.stderr)
    await checkAll(world)
  })
})

describe('out of reach', () => {
  test('a sync that reaches nobody says so, gives up when told to, and costs nothing', async () => {
    const world = await worldOf({ seed: 34 })
    world.sim.faults.add({ do: 'reset', skip: 15, methods: ['messages.list', 'batch', 'profile'] })
    const patience = { TIDEMARK_MAIL_PATIENCE_MINUTES: '0' }
    const reset = await runWith(world, patience, 'mail', 'sync')
    assert.equal(reset.code, 1, reset.stdout)
    assert.match(reset.stdout, /ann@example\.com: not finished/)
    assert.match(reset.stderr, /cannot go on: The connection to Gmail failed \(ECONNRESET\)/)
    assert.match(reset.stderr, /The next tidemark mail sync goes on where this one was/)
    world.sim.faults.clear()
    const refused = { ...patience, TIDEMARK_GMAIL_API_URL: 'http://127.0.0.1:39' }
    const nobody = await runWith(world, refused, 'mail', 'sync', '--json')
    assert.equal(nobody.code, 1)
    const [account] = lastLine(nobody).accounts
    assert.equal((account!.obstacle as { code: string }).code, 'connection-failed')
    const end = await world.run('mail', 'sync')
    assert.equal(end.code, 0, end.stderr)
    await checkAll(world)
  })

  test('while it waits it shows why, and when Gmail is back it goes on by itself', async () => {
    const world = await worldOf({ seed: 35 })
    world.sim.faults.add({ do: 'error', status: 503, skip: 15 })
    const { child, ended } = world.start(['mail', 'sync'])
    let shown = ''
    child.stderr!.on('data', (text: Buffer) => {
      shown += text.toString()
      if (/waiting for .*: Gmail had a problem of its own/.test(shown)) world.sim.faults.clear()
    })
    const end = await ended
    assert.match(end.stderr, /waiting for .*: Gmail had a problem of its own/)
    assert.equal(end.code, 0, end.stderr)
    await checkAll(world)
  })

  test('an address that is none is refused', async () => {
    const world = await worldOf({ messages: 1 })
    const end = await runWith(world, { TIDEMARK_GMAIL_API_URL: 'gmail' }, 'mail', 'sync')
    assert.equal(end.code, 2)
    assert.match(
      end.stderr,
      /gmail\.api_url is "gmail", but it must be an https:\/\/ address; http:\/\/ only of this machine/,
    )
  })
})

describe('signals', () => {
  const slow = { do: 'latency', latency: { kind: 'fixed', ms: 40 } } as const
  /** Batches enough that some are still to come when something happens, however late that is. */
  const settings = { TIDEMARK_MAIL_BATCH: '2' }

  test('Ctrl-C stops a sync cleanly, and the next one goes on where it was', async () => {
    const world = await worldOf({ messages: 120, seed: 36, faults: { rules: [slow] }, settings })
    const unbegun = await world.run('mail', 'status')
    assert.equal(unbegun.code, 1, 'nothing is settled, and nobody works on it')
    assert.match(unbegun.stdout, /not synced yet\n {2}begin {6}Run: tidemark mail sync/)
    const first = world.start(['mail', 'sync', '--json'])
    await served(world, 30, first.ended)
    first.child.kill('SIGHUP')
    first.child.kill('SIGINT')
    const stopped = await first.ended
    // Zero would tell a script that all is settled.
    assert.equal(stopped.code, 1, stopped.stderr)
    const status = await world.run('mail', 'status')
    assert.equal(status.code, 1)
    assert.match(status.stdout, /^ann@example\.com: stopped before it was done$/m)
    assert.match(
      status.stdout,
      /^ {2}stopped {4}no process works on it, the last one was seen (?:now|.* ago)$/m,
    )
    assert.doesNotMatch(status.stdout, /copying/)
    assert.match(stopped.stderr, /Stopping; what is under way is kept\. Run it again to go on\./)
    assert.equal((lastLine(stopped) as unknown as { stopped: boolean }).stopped, true)
    await withArchive(world, async (archive, ledger) => checkWatermark(world, await look(archive, ledger)))
    world.sim.faults.clear()
    const end = await world.run('mail', 'sync')
    assert.equal(end.code, 0, end.stderr)
    assert.match(end.stdout, /done; 120 listed = 120 stored/)
    await checkAll(world)
  })

  test('SIGHUP alone changes nothing, and a second Ctrl-C ends it at once', async () => {
    const world = await worldOf({ messages: 300, seed: 37, faults: { rules: [slow] }, settings })
    const { child, ended } = world.start(['mail', 'sync'])
    let shown = ''
    child.stderr!.on('data', (text: Buffer) => (shown += text.toString()))
    await served(world, 20, ended)
    child.kill('SIGHUP')
    while (!/configuration is read when the command starts/.test(shown)) await pass(LOOK_MS)
    // Somebody holds the archive's lock, so that what is under way cannot end.
    const lock = new DatabaseSync(join(world.home, 'mail', folderName(ADDRESS), 'locks', 'all'), {
      timeout: 5_000,
    })
    lock.exec('BEGIN EXCLUSIVE')
    const batches = (): number => world.sim.log.counts().requests.batch?.[200] ?? 0
    const before = batches()
    while (batches() < before + 3) await pass(LOOK_MS)
    child.kill('SIGINT')
    while (!/Stopping;/.test(shown)) await pass(LOOK_MS)
    // Two within a tenth of a second count as one.
    await pass(150)
    child.kill('SIGINT')
    const { code } = await ended
    assert.ok(code === 130 || code === null, `ended by itself with ${code}`)
    lock.close()
    world.sim.faults.clear()
    const end = await world.run('mail', 'sync')
    assert.equal(end.code, 0, end.stderr)
    await checkAll(world)
  })

  test('two syncs at the same time both end well, and nothing is stored twice', async () => {
    const world = await worldOf({ messages: 120, seed: 38, faults: { rules: [slow] } })
    const both = await Promise.all([world.run('mail', 'sync'), world.run('mail', 'sync')])
    for (const end of both) {
      assert.equal(end.code, 0, end.stderr)
      assert.match(end.stdout, /done; 120 listed = 120 stored/)
    }
    world.sim.faults.clear()
    await checkAll(world)
  })
})

describe('a clock that is wrong', () => {
  /** Every Date of the process, its threads' too, is this much off. */
  function shifted(days: number): NodeJS.ProcessEnv {
    const file = join(scratch, `clock${days}.mjs`)
    writeFileSync(
      file,
      `const Real = Date, now = () => Real.now() + ${days} * 86_400_000
       globalThis.Date = class extends Real {
         constructor(...args) { super(...(args.length > 0 ? args : [now()])) }
         static now() { return now() }
       }`,
    )
    return { NODE_OPTIONS: `--import ${pathToFileURL(file).href}` }
  }

  test('a first sync by a clock that is years behind gets all mail, and later ones too', async () => {
    const world = await worldOf({ seed: 39, years: 3 })
    const behind = await runWith(world, shifted(-800), 'mail', 'sync')
    assert.equal(behind.code, 0, behind.stderr)
    await checkAll(world)
    const mailbox = world.sim.gmail.mailbox(ADDRESS)
    mailbox.insert({ raw: Buffer.from('Subject: now\r\n\r\nhello'), labelIds: ['INBOX'] })
    assert.equal((await runWith(world, shifted(-900), 'mail', 'sync')).code, 0)
    await checkAll(world)
    mailbox.insert({ raw: Buffer.from('Subject: then\r\n\r\nhello'), labelIds: ['INBOX'] })
    assert.equal((await world.run('mail', 'sync')).code, 0)
    await checkAll(world)
  })

  test('a clock that is set back in the middle of a sync delays nothing', async () => {
    const world = await worldOf({ messages: 120, years: 3, seed: 40, faults: { profile: 'mixed' } })
    assert.equal(await world.killAfter(['mail', 'sync'], 60), null)
    world.sim.faults.clear()
    const back = await runWith(world, shifted(-400), 'mail', 'sync')
    assert.equal(back.code, 0, back.stderr)
    await checkAll(world)
    const mailbox = world.sim.gmail.mailbox(ADDRESS)
    mailbox.insert({
      raw: Buffer.from('Subject: from the future\r\n\r\nhello'),
      internalMs: Date.now() + 90 * 86_400_000,
    })
    assert.equal((await world.run('mail', 'sync')).code, 0)
    await checkAll(world)
  })
})
