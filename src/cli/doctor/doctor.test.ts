import assert from 'node:assert/strict'
import { chmodSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { openVault } from '../../base/vault.ts'
import { GMAIL_SCOPES, type GmailSecret } from '../../cloud/gmail/auth.ts'
import { Accounts } from '../../ledger/accounts.ts'
import { openLedger } from '../../ledger/open.ts'
import { sqliteHome, type TestHome } from '../jobs/jobs.suite.ts'

const DAY_MS = 86_400_000
const REFRESH_TOKEN = 'refresh-token-that-nobody-may-see'

type Finding = { check: string; level: string; text: string; hint?: string }

let home: TestHome
beforeEach(() => {
  home = sqliteHome()
})
afterEach(() => home.remove())

type Added = { name?: string; state?: 'ready' | 'sign-in'; ageMs?: number } & Partial<
  Extract<GmailSecret, { kind: 'oauth' }>
>

async function addAccount({
  name = 'ann@example.com',
  state = 'ready',
  ageMs = 0,
  ...more
}: Added = {}): Promise<void> {
  const ledger = await openLedger(home.url)
  try {
    const accounts = await Accounts.open(ledger)
    const vault = await openVault({ env: {}, home: home.path })
    const secret: GmailSecret = {
      kind: 'oauth',
      clientId: 'client',
      refreshToken: REFRESH_TOKEN,
      scopes: [GMAIL_SCOPES.modify],
      obtainedAtMs: Date.now() - ageMs,
      ...more,
    }
    const sealed = vault.seal(`gmail:${name}`, JSON.stringify(secret))
    const { id } = await accounts.add({ service: 'gmail', name, settings: {}, sealed })
    await accounts.setState(id, state)
  } finally {
    await ledger.close()
  }
}

async function doctor(): Promise<{ code: number | null; found: Finding[]; stdout: string }> {
  const { code, stdout, stderr } = await home.run('doctor', '--json')
  assert.equal(stderr, '')
  assert.doesNotMatch(stdout, /nobody-may-see/)
  const { ok, findings } = JSON.parse(stdout) as { ok: boolean; findings: Finding[] }
  assert.equal(code, ok ? 0 : 1)
  return { code, found: findings, stdout }
}

async function findingsOf(check: string, level: string): Promise<Finding[]> {
  return (await doctor()).found.filter((one) => one.check === check && one.level === level)
}

describe('doctor', () => {
  test('finds nothing wrong with an empty home, and makes nothing in it', async () => {
    const { code, stdout } = await home.run('doctor')
    assert.equal(code, 0)
    assert.match(stdout, /\nEverything is fine\.\n$/)
    assert.deepEqual(readdirSync(home.path), [])
  })

  test('finds nothing wrong with an account that was connected today', async () => {
    await addAccount()
    const { found } = await doctor()
    assert.deepEqual(
      found.map(({ check, level }) => `${check} ${level}`),
      ['home ok', 'space ok', 'ledger ok', 'vault ok', 'secrets ok', 'accounts ok', 'quota ok', 'models ok'],
    )
    assert.match(found[3]?.text ?? '', /master\.key/)
  })

  test('finds a configuration, a token and a key that are open to others', async () => {
    await addAccount()
    const [config, token, key] = ['config.toml', 'server.token', 'master.key'].map((name) =>
      join(home.path, name),
    )
    writeFileSync(config!, '')
    writeFileSync(token!, 'a-token-that-is-long-enough\n', { mode: 0o600 })
    chmodSync(home.path, 0o700)
    for (const mode of [0o600, 0o666]) {
      chmodSync(config!, mode)
      assert.equal((await findingsOf('secrets', 'ok')).length, 1, 'nobody else enters the folder')
    }
    chmodSync(home.path, 0o755)
    assert.match(
      (await findingsOf('secrets', 'problem'))[0]?.text ?? '',
      /config\.toml can be changed by others/,
    )
    chmodSync(config!, 0o644)
    assert.match(
      (await findingsOf('secrets', 'warning'))[0]?.text ?? '',
      /config\.toml can be read by others/,
    )
    chmodSync(config!, 0o600)
    for (const [mode, isFound] of [
      [0o777, true],
      [0o775, true],
      [0o1777, false],
    ] as const) {
      chmodSync(home.path, mode)
      const found = (await findingsOf('secrets', 'problem')).map(({ text }) => text).join()
      assert.equal(/config\.toml can be replaced by others/.test(found), isFound, mode.toString(8))
    }
    chmodSync(home.path, 0o755)
    for (const mode of [0o640, 0o604, 0o620]) {
      chmodSync(token!, mode)
      assert.match((await findingsOf('secrets', 'problem'))[0]?.text ?? '', /server\.token is open to others/)
      chmodSync(key!, mode)
      assert.match(
        (await findingsOf('vault', 'problem'))[0]?.text ?? '',
        /Others may read or change the master key/,
      )
    }
  })

  test('warns of a sign-in that ends by itself, and says how not to', async () => {
    await addAccount({ ageMs: 6 * DAY_MS })
    const [warning, ...rest] = await findingsOf('accounts', 'warning')
    assert.match(warning?.text ?? '', /ann@example\.com: The sign-in is 6 d old/)
    assert.match(warning?.hint ?? '', /Testing.*7 days.*publish/)
    assert.deepEqual(rest, [])
  })

  test('explains a sign-in that Google refused, with the command that mends it, and ends with 1', async () => {
    await addAccount({ state: 'sign-in', ageMs: 8 * DAY_MS })
    const [problem] = await findingsOf('accounts', 'problem')
    assert.match(problem?.hint ?? '', /tidemark account add gmail --user ann@example\.com\. .*7 days/)
    const { code, stdout } = await home.run('doctor')
    assert.equal(code, 1)
    assert.match(stdout, /\n1 problem\.\n$/)
  })

  test('finds permissions that are missing', async () => {
    await addAccount({ scopes: ['openid'] })
    assert.match(
      (await findingsOf('accounts', 'problem'))[0]?.text ?? '',
      /permission to read mail is missing/,
    )
  })

  test('says what an account that may only read cannot do', async () => {
    await addAccount({ scopes: [GMAIL_SCOPES.readonly] })
    assert.match(
      (await findingsOf('accounts', 'ok'))[0]?.text ?? '',
      /read only; `mail clean` can free no space/,
    )
  })

  test('warns when the OAuth client is another one than the account was connected with', async () => {
    await addAccount()
    writeFileSync(join(home.path, 'config.toml'), '[gmail]\nclient_id = "other"\n')
    assert.match((await findingsOf('accounts', 'warning'))[0]?.text ?? '', /another OAuth client/)
  })

  test('finds a master key that others may read, that is gone, and that is another one', async () => {
    await addAccount()
    const key = join(home.path, 'master.key')
    chmodSync(key, 0o644)
    assert.match((await findingsOf('vault', 'problem'))[0]?.hint ?? '', /chmod 600/)
    chmodSync(key, 0o600)
    writeFileSync(key, Buffer.alloc(32, 7).toString('base64'))
    assert.match(
      (await findingsOf('accounts', 'problem'))[0]?.text ?? '',
      /cannot be opened with the master key/,
    )
    rmSync(key)
    const [gone] = await findingsOf('vault', 'problem')
    assert.match(gone?.text ?? '', /missing, but there are secrets/)
    assert.ok(!readdirSync(home.path).includes('master.key'))
  })

  test('finds a home folder that others may change or look into', async () => {
    chmodSync(home.path, 0o777)
    assert.match((await findingsOf('home', 'problem'))[0]?.text ?? '', /can be changed by others/)
    chmodSync(home.path, 0o755)
    assert.match((await findingsOf('home', 'warning'))[0]?.hint ?? '', /chmod 700/)
  })

  test('finds a damaged ledger, leaves it alone, and looks at the rest all the same', async () => {
    const file = join(home.path, 'ledger.db')
    writeFileSync(file, 'my notes\n'.repeat(500))
    const { code, found } = await doctor()
    assert.equal(code, 1)
    assert.match(found.find(({ check }) => check === 'ledger')?.text ?? '', /is not a Tidemark ledger/)
    assert.ok(found.some(({ check, level }) => check === 'vault' && level === 'ok'))
    assert.equal(readFileSync(file, 'utf8'), 'my notes\n'.repeat(500))
  })

  const tiers: [units: number, level: string, text: RegExp][] = [
    [6_000, 'ok', /6,000, some 5 messages a second; older projects can set 15,000/],
    [15_000, 'ok', /15,000, right for older projects only/],
    [20_000, 'warning', /20,000, more than is documented/],
    [600, 'ok', /slower than need be/],
  ]
  for (const [units, level, text] of tiers) {
    test(`compares a quota of ${units} with what is documented`, async () => {
      await addAccount()
      writeFileSync(join(home.path, 'config.toml'), `[gmail]\nunits_per_minute = ${units}\n`)
      assert.match((await findingsOf('quota', level))[0]?.text ?? '', text)
    })
  }
})
