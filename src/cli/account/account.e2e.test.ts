/** Connecting accounts, where it matters through the real launcher, with the simulated cloud as Google. */
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { GMAIL_SCOPES } from '../../cloud/gmail/auth.ts'
import { type Sim, startSim } from '../../sim/start.ts'
import { BIN, type Ended, postgresHome, sqliteHome, type TestHome } from '../jobs/jobs.suite.ts'
import { assertNoSecrets, begin, launch as launchAt, signIn } from './account.suite.ts'

const ANN = 'ann@example.com'
const BOB = 'bob@example.com'

let sim: Sim
let home: TestHome
before(async () => {
  sim = await startSim({
    gmail: {
      accounts: [
        { address: ANN, messages: 12 },
        { address: BOB, messages: 3 },
      ],
    },
  })
})
after(() => sim.close())
beforeEach(() => {
  home = sqliteHome()
  writeConfig(home)
  Object.assign(sim.oauth, { autoApprove: true, deny: false, grantOnly: null })
  sim.oauth.delegatedScopes = null
  sim.oauth.refreshTokenMs = null
})
afterEach(() => home.remove())

/** `null`: nothing of a client. */
function writeConfig({ path, url }: TestHome, clientSecret: string | null = sim.gmail.clientSecret): void {
  const gmail = {
    ...(clientSecret !== null && { client_id: sim.gmail.clientId, client_secret: clientSecret }),
    api_url: sim.baseUrl,
    auth_url: sim.gmail.authUrl,
    token_url: sim.gmail.tokenUrl,
    revoke_url: sim.gmail.revokeUrl,
  }
  const lines = Object.entries(gmail).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
  const ledger = url.startsWith('postgres') ? `[ledger]\nurl = ${JSON.stringify(url)}\n` : ''
  writeFileSync(join(path, 'config.toml'), `${ledger}[gmail]\n${lines.join('\n')}\n`)
}

const launch = (...args: string[]): ReturnType<typeof launchAt> => launchAt(home, ...args)
const addByBrowser = (...args: string[]): ReturnType<typeof signIn> =>
  signIn(begin(home, 'account', 'add', 'gmail', ...args))

type Listed = { name: string; state: string; access: string; settings: Record<string, unknown> }
const list = (): Promise<Listed[]> => home.json<Listed[]>('account', 'list')

describe('account add gmail', () => {
  test('signs in through a browser, learns whose account it is, and keeps no token readable', async () => {
    const { code, stdout, stderr, page, url } = await addByBrowser(
      '--spam',
      '--skip-label',
      'Lists',
      '--skip-label',
      'News',
    )
    assert.equal(code, 0, stderr)
    assert.equal(stdout, `The Gmail account ${ANN} is connected (read only, 12 messages).\n`)
    assert.match(page, /Connected/)
    assert.equal(url.searchParams.get('scope'), GMAIL_SCOPES.readonly)
    assert.equal(url.searchParams.get('code_challenge_method'), 'S256')
    const [account] = await list()
    assert.deepEqual(
      [account?.name, account?.state, account?.access, account?.settings],
      [ANN, 'ready', 'readonly', { spam: true, trash: true, onlyLabels: [], skipLabels: ['Lists', 'News'] }],
    )
    assertNoSecrets(home, sim.gmail.grants.list(), [stdout, stderr, page])
    const checked = await home.run('account', 'check')
    assert.equal(checked.code, 0, checked.stdout)
    assert.match(checked.stdout, /^ann@example\.com works: access: read only, 12 messages, signed in /)
    assert.equal((await home.run('doctor')).code, 0)
  })

  test('asks for as much as is wanted, and answers in JSON', async () => {
    const { code, stdout, url } = await addByBrowser('--read-only', '--user', BOB, '--no-trash', '--json')
    assert.equal(code, 0)
    assert.equal(url.searchParams.get('scope'), GMAIL_SCOPES.readonly)
    assert.equal(url.searchParams.get('login_hint'), BOB)
    assert.deepEqual(JSON.parse(stdout), {
      service: 'gmail',
      name: BOB,
      state: 'ready',
      access: 'readonly',
      settings: { spam: false, trash: false, onlyLabels: [], skipLabels: [] },
      reconnected: false,
    })
    assert.equal((await addByBrowser('--full')).url.searchParams.get('scope'), GMAIL_SCOPES.full)
    assert.deepEqual(
      (await list()).map(({ name, access }) => `${name} ${access}`),
      [`${ANN} full`, `${BOB} readonly`],
    )
  })

  test('connects an account anew that is there: the token is new, the settings stay unless flags change them', async () => {
    await addByBrowser('--read-only', '--only-label', 'Work')
    sim.gmail.grants.revokeAccount(ANN)
    assert.equal((await home.run('account', 'check')).code, 1)
    assert.equal((await list())[0]?.state, 'sign-in')
    assert.equal((await home.run('doctor')).code, 1)
    const again = await addByBrowser('--user', ANN)
    assert.match(again.stdout, /is connected again; its settings stay \(read only/)
    assert.equal(
      again.url.searchParams.get('scope'),
      GMAIL_SCOPES.readonly,
      'a named account keeps its access',
    )
    const [account] = await list()
    assert.deepEqual([account?.state, account?.settings.onlyLabels], ['ready', ['Work']])
    assert.equal((await home.run('account', 'check')).code, 0)
    assert.match((await addByBrowser('--spam', '--modify')).stdout, /its settings are changed/)
    const [changed] = await list()
    assert.deepEqual(
      [changed?.settings.spam, changed?.settings.onlyLabels, changed?.access],
      [true, ['Work'], 'modify'],
    )
  })

  test('keeps accounts in PostgreSQL as well', async () => {
    await home.remove()
    home = await postgresHome()
    writeConfig(home)
    const { code, stderr } = await addByBrowser()
    assert.equal(code, 0, stderr)
    assert.equal((await home.run('account', 'check', ANN)).code, 0)
    assert.deepEqual(
      (await list()).map(({ name }) => name),
      [ANN],
    )
  })

  test('works without a browser: the address is pasted', async () => {
    const running = launch('account', 'add', 'gmail', '--paste')
    const answer = await fetch((await running.says(/^(http\S+)$/m))!, { redirect: 'manual' })
    const location = answer.headers.get('location') ?? ''
    assert.match(location, /^http:\/\/127\.0\.0\.1:1\/\?/)
    running.child.stdin.end(`nonsense\n${location}\n`)
    const { code, stderr } = await running.ended
    assert.equal(code, 0, stderr)
    assert.match(stderr, /neither such an address nor a code/)
    assert.deepEqual(
      (await list()).map(({ name }) => name),
      [ANN],
    )
  })

  test('works for a service account with delegation, whose key file is not needed afterwards', async () => {
    const file = join(home.path, 'robot.json')
    writeFileSync(file, JSON.stringify(sim.gmail.serviceAccount()))
    const added = await home.run('account', 'add', 'gmail', '--service-account', file, '--user', BOB)
    assert.equal(added.code, 0, added.stderr)
    writeFileSync(file, '')
    const checked = await home.run('account', 'check')
    assert.equal(checked.code, 0, checked.stdout)
    assert.match(checked.stdout, /bob@example\.com works: .*by the service account/)
  })

  test('says at once that a sign-in of a project in testing will end', async () => {
    sim.oauth.refreshTokenMs = 7 * 86_400_000
    assert.match((await addByBrowser()).stderr, /ends by itself in 7 d\. .*In production/)
    assert.match(
      (await home.run('doctor')).stdout,
      /warning {2}accounts: ann@example\.com: The sign-in ends by itself/,
    )
    assert.equal((await home.run('doctor')).code, 0)
  })
})

describe('account add gmail that does not succeed says why, and keeps nothing:', () => {
  afterEach(async () => assert.deepEqual(await list(), []))

  test('the person refuses', async () => {
    sim.oauth.deny = true
    const { code, stderr, page } = await addByBrowser()
    assert.equal(code, 1)
    assert.match(stderr, /The access was not allowed/)
    assert.match(page, /did not work/)
  })

  test('the box for Gmail is not ticked', async () => {
    sim.oauth.grantOnly = ['openid']
    const { code, stderr } = await addByBrowser()
    assert.equal(code, 1)
    assert.match(stderr, /permission for Gmail was not given.*\n.*ticked/)
  })

  test('somebody else signs in', async () => {
    sim.oauth.autoApprove = BOB
    const { code, stderr } = await addByBrowser('--user', ANN)
    assert.equal(code, 1)
    assert.match(stderr, /This is the account bob@example\.com, not ann@example\.com/)
  })

  test('the client secret is wrong', async () => {
    writeConfig(home, 'wrong-secret-value')
    const { code, stderr } = await addByBrowser()
    assert.equal(code, 1)
    assert.match(stderr, /OAuth client is unknown or its secret is wrong/)
    assert.doesNotMatch(stderr, /wrong-secret-value/)
  })

  test('nobody signs in', async () => {
    const { code, stderr } = await launch('account', 'add', 'gmail', '--wait', '1s').ended
    assert.equal(code, 1)
    assert.match(stderr, /Nobody signed in within 1 s/)
  })

  test('nothing is pasted', async () => {
    const running = launch('account', 'add', 'gmail', '--paste')
    running.child.stdin.end()
    const { code, stderr } = await running.ended
    assert.equal(code, 2)
    assert.match(stderr, /Nothing was pasted/)
  })

  test('the domain has not delegated this', async () => {
    sim.oauth.delegatedScopes = [GMAIL_SCOPES.readonly]
    const file = join(home.path, 'robot.json')
    writeFileSync(file, JSON.stringify(sim.gmail.serviceAccount()))
    const { code, stderr } = await home.run(
      'account',
      'add',
      'gmail',
      '--service-account',
      file,
      '--modify',
      '--user',
      ANN,
    )
    assert.equal(code, 1)
    assert.match(stderr, /Domain-wide delegation/)
    assert.doesNotMatch(stderr, /PRIVATE/)
  })

  const mistakes: [what: string, args: string[], stderr: RegExp][] = [
    ['no user for a service account', ['--service-account', 'x.json'], /ENOENT|For whom/],
    [
      'a key file that is none',
      ['--service-account', BIN, '--user', ANN],
      /is not the key file of a service account/,
    ],
    [
      'a label that is wanted and not',
      ['--only-label', 'A', '--skip-label', 'A'],
      /both to be archived and to be skipped/,
    ],
    ['both levels of access', ['--read-only', '--full'], /cannot be used with/],
    ['a time that is none', ['--wait', 'soon'], /not a length of time/],
  ]
  for (const [what, args, expected] of mistakes) {
    test(what, async () => {
      const { code, stderr } = await home.run('account', 'add', 'gmail', ...args)
      assert.equal(code, 2)
      assert.match(stderr, expected)
    })
  }

  test('no OAuth client is configured: the steps to one are named', async () => {
    writeFileSync(join(home.path, 'config.toml'), '')
    const { code, stderr } = await home.run('account', 'add', 'gmail')
    assert.equal(code, 2)
    assert.match(
      stderr,
      /tidemark account setup gmail[\s\S]*1\. Make a project[\s\S]*Desktop app[\s\S]*gmail\.client_id/,
    )
  })
})

describe('account setup gmail', () => {
  const lines = (id: string, secret: string): string => `${id}\n${secret}\n`
  async function setUp(input: string, ...args: string[]): Promise<Ended> {
    const running = launch('account', 'setup', 'gmail', ...args)
    running.child.stdin.end(input)
    return running.ended
  }
  beforeEach(() => writeConfig(home, null))

  test('shows the steps, asks for id and secret, asks Google, and keeps them sealed: then an account connects', async () => {
    const { code, stdout, stderr } = await setUp(lines(sim.gmail.clientId, sim.gmail.clientSecret))
    assert.equal(code, 0, stderr)
    assert.match(stderr, /1\. Make a project[\s\S]*4\. Create a client of the type "Desktop app"/)
    assert.match(stdout, /^ok: The id and the secret are accepted\./)
    const files = readdirSync(home.path).map((name) => readFileSync(join(home.path, name), 'latin1'))
    for (const text of [stdout, stderr, ...files]) assert.ok(!text.includes(sim.gmail.clientSecret))
    assert.equal((await addByBrowser()).code, 0)
    assert.equal((await home.run('account', 'setup', 'gmail', '--check')).code, 0)
    const forgotten = await home.json<object>('account', 'setup', 'gmail', '--forget')
    assert.deepEqual(forgotten, { service: 'gmail', removed: true })
    assert.equal((await home.run('account', 'check')).code, 0, 'a connected account goes on')
  })

  test('keeps nothing that Google refuses, and nothing that was not given', async () => {
    const wrong = await setUp(lines(sim.gmail.clientId, 'GOCSPX-of-another'))
    assert.equal(wrong.code, 1)
    assert.match(wrong.stderr, /not accepted as those of one client/)
    assert.ok(!wrong.stderr.includes('GOCSPX-of-another'))
    assert.equal((await setUp(`${sim.gmail.clientId}\n`)).code, 2)
    const { code, stderr } = await home.run('account', 'add', 'gmail')
    assert.equal(code, 2)
    assert.match(stderr, /There is no client to sign in with at Google/)
  })

  test('takes the file that Google lets be downloaded, and names what is in the configuration and wins', async () => {
    const file = join(home.path, 'client_secret.json')
    const { clientId: client_id, clientSecret: client_secret } = sim.gmail
    writeFileSync(file, JSON.stringify({ installed: { client_id, client_secret, project_id: 'p' } }))
    assert.equal((await home.run('account', 'setup', 'gmail', '--file', file)).code, 0)
    writeFileSync(file, '{"other": true}')
    assert.match(
      (await home.run('account', 'setup', 'gmail', '--file', file)).stderr,
      /is not the file of a client/,
    )
    writeConfig(home)
    const { code, stderr } = await setUp('')
    assert.equal(code, 2)
    assert.match(stderr, /gmail\.client_id \(.*config\.toml:2\), which wins/)
  })
})

describe('account check', () => {
  test('says of a revoked token what to do, without touching the others', async () => {
    await addByBrowser('--user', ANN)
    await addByBrowser('--user', BOB)
    sim.gmail.grants.revokeAccount(BOB)
    const checked = await home.run('account', 'check', '--json')
    assert.equal(checked.code, 1)
    type Checked = { name: string; ok: boolean; state: string; problems: { code: string; hint: string }[] }
    const [ann, bob] = JSON.parse(checked.stdout) as Checked[]
    assert.deepEqual([ann?.ok, ann?.state, bob?.ok, bob?.state], [true, 'ready', false, 'sign-in'])
    assert.equal(bob?.problems[0]?.code, 'invalid_grant')
    assert.match(bob?.problems[0]?.hint ?? '', /account add.*7 days/)
    assertNoSecrets(home, sim.gmail.grants.list(), [checked.stdout, checked.stderr])
  })

  test('takes a service that does not answer for what it is, and leaves the account ready', async () => {
    await addByBrowser()
    writeFileSync(
      join(home.path, 'config.toml'),
      readFileSync(join(home.path, 'config.toml'), 'utf8').replace(
        sim.gmail.tokenUrl,
        'http://127.0.0.1:1/token',
      ),
    )
    const { code, stdout } = await home.run('account', 'check')
    assert.equal(code, 1)
    assert.match(stdout, /cannot be reached/)
    assert.equal((await list())[0]?.state, 'ready')
  })

  test('answers an unknown account with those there are', async () => {
    assert.match((await home.run('account', 'check', ANN)).stderr, /No account is connected/)
    await addByBrowser()
    const { code, stderr } = await home.run('account', 'check', 'anna@example.com')
    assert.equal(code, 2)
    assert.match(stderr, /did you mean ann@example\.com\?\n {2}There are: ann@example\.com\./)
  })
})

describe('account remove', () => {
  test('forgets the account and gives its token back, after asking', async () => {
    await addByBrowser()
    const asked = await launch('account', 'remove', ANN).ended
    assert.equal(asked.code, 2)
    assert.match(asked.stderr, /Shall the account ann@example\.com be forgotten\?\n {2}Say --yes/)
    assert.equal((await list()).length, 1)
    const mine = new Set(sim.gmail.accounts.map(({ refreshToken }) => refreshToken))
    const issued = (): number =>
      sim.gmail.grants.list().refresh.filter(({ token }) => !mine.has(token)).length
    const before = issued()
    const { code, stdout, stderr } = await home.run('account', 'remove', ANN, '--yes')
    assert.equal(code, 0, stderr)
    assert.match(stdout, /^The account ann@example\.com is forgotten\. /)
    assert.match(stderr, /given back/)
    assert.equal(issued(), before - 1)
    assert.deepEqual(await list(), [])
  })

  test('leaves the access in place when told to', async () => {
    await addByBrowser()
    const before = sim.gmail.grants.list().refresh.length
    const removed = await home.json<{ revoked: string; archive: string }>(
      'account',
      'remove',
      ANN,
      '--yes',
      '--no-revoke',
    )
    assert.equal(removed.revoked, 'kept')
    assert.equal(removed.archive, join(home.path, 'mail', ANN))
    assert.equal(sim.gmail.grants.list().refresh.length, before)
  })

  test('works also when the service cannot be reached and when the master key is lost', async () => {
    await addByBrowser('--user', ANN)
    await addByBrowser('--user', BOB)
    const config = readFileSync(join(home.path, 'config.toml'), 'utf8')
    writeFileSync(
      join(home.path, 'config.toml'),
      config.replace(sim.gmail.revokeUrl, 'http://127.0.0.1:1/revoke'),
    )
    const unreachable = await home.run('account', 'remove', ANN, '--yes')
    assert.equal(unreachable.code, 0)
    assert.match(unreachable.stderr, /could not be given back: .*\n.*myaccount\.google\.com/)
    writeFileSync(join(home.path, 'master.key'), `${Buffer.alloc(32, 1).toString('base64')}\n`)
    assert.equal((await home.run('account', 'remove', BOB, '--yes')).code, 0)
    assert.deepEqual(await list(), [])
  })
})
