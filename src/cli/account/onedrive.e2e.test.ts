/** Connecting OneDrive accounts, where it matters through the real launcher, with the simulated cloud as Microsoft. */
import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { FileStore } from '../../apps/files/store/file-store.ts'
import { systemClock } from '../../base/clock.ts'
import { ONEDRIVE_SCOPES } from '../../cloud/onedrive/auth.ts'
import { openLedger } from '../../ledger/open.ts'
import { type Sim, startSim } from '../../sim/start.ts'
import { postgresHome, sqliteHome, type TestHome } from '../jobs/jobs.suite.ts'
import { assertNoSecrets, begin, launch, type Running, signIn } from './account.suite.ts'

const ANN = 'ann@example.com'
const BOB = 'bob@example.com'
const HOUR_MS = 3_600_000

let sim: Sim
let home: TestHome
/** How far the simulated cloud's time is ahead. */
let aheadMs = 0
before(async () => {
  sim = await startSim({
    clock: { ...systemClock, now: () => systemClock.now() + aheadMs },
    gmail: { accounts: [{ address: ANN, messages: 2 }] },
    onedrive: {
      drives: [
        { account: ANN, files: 3 },
        { account: BOB, type: 'business' },
      ],
    },
  })
  sim.onedrive.signIn.deviceIntervalS = 0.05
})
after(() => sim.close())
beforeEach(() => {
  aheadMs = 0
  home = sqliteHome()
  writeConfig(home)
  Object.assign(sim.oauth, { autoApprove: true, deny: false, grantOnly: null })
  sim.onedrive.signIn.endsUsedRefresh = true
})
afterEach(() => home.remove())

function writeConfig({ path, url }: TestHome, change: Record<string, string> = {}): void {
  const gmail = {
    client_id: sim.gmail.clientId,
    client_secret: sim.gmail.clientSecret,
    api_url: sim.baseUrl,
    auth_url: sim.gmail.authUrl,
    token_url: sim.gmail.tokenUrl,
    revoke_url: sim.gmail.revokeUrl,
  }
  const onedrive = {
    client_id: sim.onedrive.clientId,
    api_url: sim.onedrive.graphUrl,
    auth_url: sim.onedrive.authUrl,
    token_url: sim.onedrive.tokenUrl,
    device_url: sim.onedrive.deviceUrl,
    ...change,
  }
  const section = (name: string, keys: Record<string, string>): string =>
    `[${name}]\n${Object.entries(keys)
      .map(([key, value]) => `${key} = ${JSON.stringify(value)}\n`)
      .join('')}`
  const ledger = url.startsWith('postgres') ? section('ledger', { url }) : ''
  writeFileSync(join(path, 'config.toml'), ledger + section('gmail', gmail) + section('onedrive', onedrive))
}

const add = (...args: string[]): Running => begin(home, 'account', 'add', 'onedrive', ...args)
const addByBrowser = (...args: string[]): ReturnType<typeof signIn> => signIn(add(...args))

/** A person who decides at the page for device codes. */
async function typeCode(running: Running, decision: 'allow' | 'deny', account = ANN): Promise<string> {
  const code = (await running.says(/Type this code there, and sign in: (\w+)$/m)) ?? ''
  const url = (await running.says(/^(http\S+)$/m)) ?? ''
  const body = new URLSearchParams({ user_code: code, account, decision })
  assert.equal((await fetch(url, { method: 'POST', body })).status, 200)
  return code
}

type Listed = { service: string; name: string; state: string; access: string }
const list = (): Promise<Listed[]> => home.json<Listed[]>('account', 'list')

const listed = async (): Promise<string[]> =>
  (await list()).map(({ service, name, state, access }) => `${service} ${name} ${state} ${access}`)

/** As `files sync` would. */
async function keepFolder(name: string, account: string): Promise<string> {
  const root = join(home.path, name)
  mkdirSync(root)
  writeFileSync(join(root, 'note.txt'), 'mine')
  const { dev, ino, size } = statSync(root)
  const ledger = await openLedger(home.url)
  try {
    const store = await FileStore.open(ledger)
    await store.addFolderPair(
      {
        ...{
          name,
          account,
          root,
          driveId: sim.onedrive.drive(account).id,
          driveType: 'personal',
          rootItemId: 'root',
        },
        markerId: 'marker',
        machine: 'here',
        settings: '{}',
      },
      { dev: String(dev), ino: String(ino), birthNs: '0', mtimeNs: '0', ctimeNs: '0', size },
    )
  } finally {
    await ledger.close()
  }
  return root
}

describe('account add onedrive', () => {
  test('signs in through a browser, learns whose account it is, and keeps no token readable', async () => {
    const { code, stdout, stderr, page, url } = await addByBrowser()
    assert.equal(code, 0, stderr)
    assert.match(
      stdout,
      /^The OneDrive account ann@example\.com is connected \(read and write, a personal drive, .+ of .+ used\)\.\n$/,
    )
    assert.match(page, /Connected/)
    assert.equal(url.searchParams.get('scope'), ONEDRIVE_SCOPES.readwrite.join(' '))
    assert.equal(url.searchParams.get('code_challenge_method'), 'S256')
    assert.match(url.searchParams.get('redirect_uri') ?? '', /^http:\/\/localhost:\d+$/)
    assert.deepEqual(await listed(), [`onedrive ${ANN} ready readwrite`])
    assertNoSecrets(home, sim.onedrive.grants.list(), [stdout, stderr, page])
    const checked = await home.run('account', 'check')
    assert.equal(checked.code, 0, checked.stdout)
    assert.match(checked.stdout, /^ann@example\.com works: access: read and write, a personal drive, /)
    assertNoSecrets(home, sim.onedrive.grants.list(), [checked.stdout, checked.stderr])
    const doctor = await home.run('doctor')
    assert.equal(doctor.code, 0)
    assert.match(doctor.stdout, /accounts: ann@example\.com is connected \(read and write\)/)
    assert.doesNotMatch(doctor.stdout, /gmail/)
  })

  test('asks for nothing but reading when told to, for a person who is named, and answers in JSON', async () => {
    const { code, stdout, url } = await addByBrowser('--read-only', '--user', BOB, '--no-browser', '--json')
    assert.equal(code, 0)
    assert.equal(url.searchParams.get('scope'), ONEDRIVE_SCOPES.readonly.join(' '))
    assert.equal(url.searchParams.get('login_hint'), BOB)
    assert.deepEqual(JSON.parse(stdout), {
      service: 'onedrive',
      name: BOB,
      state: 'ready',
      access: 'readonly',
      drive: { type: 'business' },
      reconnected: false,
    })
    assert.match((await home.run('doctor')).stdout, /read only; nothing can be uploaded with that/)
  })

  test('works with a code that is typed on another device', async () => {
    sim.oauth.autoApprove = false
    const running = add('--device')
    await typeCode(running, 'allow', BOB)
    const { code, stdout, stderr } = await running.ended
    assert.equal(code, 0, stderr)
    assert.match(stdout, /^The OneDrive account bob@example\.com is connected \(/)
    assert.deepEqual(await listed(), [`onedrive ${BOB} ready readwrite`])
    assertNoSecrets(home, sim.onedrive.grants.list(), [stdout, stderr])
    assert.equal((await home.run('account', 'check')).code, 0)
  })

  test('connects an account anew that is there: the secret is new, and it is ready again', async () => {
    await addByBrowser('--read-only')
    sim.onedrive.grants.revokeAccount(ANN)
    const lost = await home.run('account', 'check')
    assert.equal(lost.code, 1)
    assert.match(lost.stdout, /does not work[\s\S]*account add onedrive/)
    assert.deepEqual(await listed(), [`onedrive ${ANN} sign-in readonly`])
    assert.match(
      (await home.run('account', 'list')).stderr,
      /Sign in again with: tidemark account add onedrive --read-only --user ann@example\.com/,
    )
    const doctor = await home.run('doctor')
    assert.equal(doctor.code, 1)
    assert.match(doctor.stdout, /Microsoft no longer accepts the sign-in/)
    const again = await addByBrowser('--user', ANN)
    assert.match(again.stdout, /ann@example\.com is connected again \(read and write/)
    assert.match(again.stderr, /Before, it was allowed: read only\./)
    assert.deepEqual(await listed(), [`onedrive ${ANN} ready readwrite`])
    assert.equal((await home.run('account', 'check')).code, 0)
  })

  test('holds beyond the life of its first token, though each refresh token works once', async () => {
    await addByBrowser()
    for (let times = 0; times < 3; times += 1) {
      aheadMs += 2 * HOUR_MS
      assert.equal((await home.run('account', 'check')).code, 0)
    }
  })

  test('keeps accounts in PostgreSQL as well', async () => {
    await home.remove()
    home = await postgresHome()
    writeConfig(home)
    const { code, stderr } = await addByBrowser()
    assert.equal(code, 0, stderr)
    assert.equal((await home.run('account', 'check', ANN)).code, 0)
    assert.deepEqual(await listed(), [`onedrive ${ANN} ready readwrite`])
  })
})

describe('account add onedrive that does not succeed says why, and keeps nothing:', () => {
  afterEach(async () => assert.deepEqual(await list(), []))

  test('the person refuses in the browser', async () => {
    sim.oauth.deny = true
    const { code, stderr, page } = await addByBrowser()
    assert.equal(code, 1)
    assert.match(stderr, /The access was not allowed\.\n {2}Run the command again/)
    assert.doesNotMatch(stderr, /Google/)
    assert.match(page, /did not work/)
  })

  test('the person refuses on the other device', async () => {
    sim.oauth.autoApprove = false
    const running = add('--device')
    await typeCode(running, 'deny')
    const { code, stderr } = await running.ended
    assert.equal(code, 1)
    assert.match(stderr, /The access was not allowed\.\n {2}Run the command again/)
  })

  test('the code is not typed before it ends', async () => {
    sim.oauth.autoApprove = false
    const running = add('--device')
    await running.says(/(Waiting for the sign-in)/)
    aheadMs = HOUR_MS
    const { code, stderr } = await running.ended
    assert.equal(code, 1)
    assert.match(stderr, /The code has ended: nobody signed in with it in time\.\n {2}.*new code/)
  })

  test('nobody signs in', async () => {
    sim.oauth.autoApprove = false
    for (const flags of [[], ['--device']]) {
      const { code, stderr } = await add('--wait', '1s', ...flags).ended
      assert.equal(code, 1)
      assert.match(stderr, /Nobody signed in within 1 s/)
    }
  })

  test('the permission to change files is not given', async () => {
    sim.oauth.grantOnly = ['Files.Read', 'User.Read']
    const { code, stderr } = await addByBrowser()
    assert.equal(code, 1)
    assert.match(stderr, /not everything that is needed was allowed/)
  })

  test('somebody else signs in', async () => {
    sim.oauth.autoApprove = BOB
    const { code, stderr, page } = await addByBrowser('--user', ANN)
    assert.equal(code, 1)
    assert.match(stderr, /This is the account bob@example\.com, not ann@example\.com/)
    assert.match(page, /did not work/)
  })

  test('the app is not known', async () => {
    writeConfig(home, { client_id: 'other' })
    const { code, stderr } = await add('--device').ended
    assert.equal(code, 1)
    assert.match(stderr, /OAuth client is unknown[\s\S]*app registration/)
  })

  test('no app is configured: the steps to one are named', async () => {
    writeFileSync(join(home.path, 'config.toml'), '')
    const { code, stderr } = await home.run('account', 'add', 'onedrive')
    assert.equal(code, 2)
    assert.match(stderr, /account setup onedrive[\s\S]*App registrations[\s\S]*onedrive\.client_id/)
  })

  const mistakes: [what: string, args: string[], stderr: RegExp][] = [
    ['a flag of Gmail', ['onedrive', '--no-spam'], /--spam and --no-spam is for Gmail/],
    ['pasting', ['onedrive', '--paste'], /--device/],
    ['a device code for Gmail', ['gmail', '--device'], /--paste/],
    ['a browser that is wanted and not', ['onedrive', '--open', '--no-browser'], /opened or not/],
    ['a service that is not there', ['dropbox'], /gmail, onedrive/],
  ]
  for (const [what, args, expected] of mistakes) {
    test(what, async () => {
      const { code, stderr } = await home.run('account', 'add', ...args)
      assert.equal(code, 2)
      assert.match(stderr, expected)
    })
  }
})

describe('two services', () => {
  /** The same address at both. */
  async function addBoth(): Promise<void> {
    await addByBrowser()
    const running = launch(home, 'account', 'add', 'gmail')
    await fetch((await running.says(/^(http\S+)$/m)) ?? '')
    assert.equal((await running.ended).code, 0)
  }

  test('may have accounts of the same address: a command names the service, and touches no other', async () => {
    await addBoth()
    assert.deepEqual(await listed(), [`gmail ${ANN} ready readonly`, `onedrive ${ANN} ready readwrite`])
    const asked = await home.run('account', 'check', ANN)
    assert.equal(asked.code, 2)
    assert.match(asked.stderr, /Name one of: gmail:ann@example\.com, onedrive:ann@example\.com/)
    sim.onedrive.grants.revokeAccount(ANN)
    assert.equal((await home.run('account', 'check', `onedrive:${ANN}`)).code, 1)
    assert.equal((await home.run('account', 'check', `gmail:${ANN}`)).code, 0)
    assert.equal((await home.run('account', 'remove', `onedrive:${ANN}`, '--yes')).code, 0)
    assert.deepEqual(await listed(), [`gmail ${ANN} ready readonly`])
  })

  test('say of themselves what a check found, each in its own words', async () => {
    await addBoth()
    const checked = await home.json<Record<string, unknown>[]>('account', 'check')
    assert.deepEqual(
      checked.map(({ service, ok, messages, drive }) => [service, ok, messages, drive !== undefined]),
      [
        ['gmail', true, 2, false],
        ['onedrive', true, undefined, true],
      ],
    )
  })
})

describe('account remove of a OneDrive account', () => {
  test('forgets it, and says where the access is taken away', async () => {
    await addByBrowser()
    const { code, stdout, stderr } = await home.run('account', 'remove', ANN, '--yes')
    assert.equal(code, 0, stderr)
    assert.match(
      stdout,
      /^The account ann@example\.com is forgotten\. No folder was kept in step with it\.\n$/,
    )
    assert.match(stderr, /Microsoft lets no program give a token back\. .*account\.live\.com/)
    assert.deepEqual(await list(), [])
  })

  test('is refused while a folder is kept in step with it', async () => {
    await addByBrowser()
    const root = await keepFolder('docs', ANN)
    assert.match((await home.run('account', 'list')).stdout, new RegExp(`docs \\(${root}\\)`))
    const { code, stderr } = await home.run('account', 'remove', ANN, '--yes')
    assert.equal(code, 2)
    assert.match(stderr, new RegExp(`The folder docs \\(${root}\\) is kept in step with ann@example.com`))
    assert.match(stderr, /--force/)
    assert.deepEqual(await listed(), [`onedrive ${ANN} ready readwrite`])
  })

  test('with --force leaves the folder and the drive as they are, and the folder goes on when it is connected again', async () => {
    await addByBrowser()
    const root = await keepFolder('docs', ANN)
    await keepFolder('other', BOB)
    const before = JSON.stringify(sim.onedrive.drive(ANN).dump())
    const { code, stdout } = await home.run('account', 'remove', ANN, '--yes', '--force')
    assert.equal(code, 0)
    assert.match(
      stdout,
      new RegExp(`The folder docs \\(${root}\\) stays as it is, and so do the files in OneDrive`),
    )
    assert.deepEqual(await list(), [])
    assert.deepEqual(readdirSync(root), ['note.txt'])
    assert.equal(readFileSync(join(root, 'note.txt'), 'utf8'), 'mine')
    assert.equal(JSON.stringify(sim.onedrive.drive(ANN).dump()), before)
    await addByBrowser()
    assert.match((await home.run('account', 'list')).stdout, /docs \(/)
    const removed = await home.json<{ folders: { name: string }[]; revoked: string }>(
      ...['account', 'remove', ANN, '--yes', '--force'],
    )
    assert.deepEqual([removed.folders.map(({ name }) => name), removed.revoked], [['docs'], 'by-hand'])
  })
})
