import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import type { TidemarkError } from '../../base/errors.ts'
import { openVault, type Vault } from '../../base/vault.ts'
import { type Account, Accounts, accountKey } from '../../ledger/accounts.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { openLedger } from '../../ledger/open.ts'
import type { TokenSource } from '../token-source.ts'
import { GMAIL_SCOPES, type GmailSecret, openAccountTokens, parseGmailSecret } from './auth.ts'

type OAuthSecret = Extract<GmailSecret, { kind: 'oauth' }>

const HOUR_MS = 3_600_000
const SECRET: OAuthSecret = {
  kind: 'oauth',
  clientId: 'client',
  refreshToken: 'refresh-1',
  scopes: [GMAIL_SCOPES.modify],
  obtainedAtMs: 0,
}

let ledger: Ledger
let accounts: Accounts
let account: Account
let vault: Vault
let clock: FakeClock
/** What the token endpoint does with a refresh token. */
let answer: (refreshToken: string) => Response

beforeEach(async () => {
  ledger = await openLedger('sqlite::memory:')
  accounts = await Accounts.open(ledger)
  vault = await openVault({ env: { TIDEMARK_MASTER_KEY: randomBytes(32).toString('base64') }, home: '/' })
  account = await accounts.add({ service: 'gmail', name: 'ann', settings: {}, sealed: seal(SECRET) })
  clock = new FakeClock()
  answer = (token) => Response.json({ access_token: `for-${token}`, expires_in: 3600 })
})
afterEach(() => ledger.close())

function seal(secret: GmailSecret): Uint8Array {
  return vault.seal(accountKey({ service: 'gmail', name: 'ann' }), JSON.stringify(secret))
}

async function stored(): Promise<OAuthSecret> {
  return parseGmailSecret(vault.open('gmail:ann', await accounts.sealed(account.id))) as OAuthSecret
}

function open(): Promise<TokenSource> {
  return openAccountTokens({
    account,
    accounts,
    vault,
    clock,
    tokenUrl: 'https://service.example/token',
    fetch: async (_url, init) => answer(new URLSearchParams(String(init.body)).get('refresh_token') ?? ''),
  })
}

test('an access token is kept sealed for the next process', async () => {
  assert.equal(await (await open()).access(), 'for-refresh-1')
  answer = () => assert.fail('nobody needs to be asked')
  assert.equal(await (await open()).access(), 'for-refresh-1')
  const sealed = Buffer.from(await accounts.sealed(account.id)).toString('latin1')
  assert.ok(!sealed.includes('refresh-1'))
})

test('what somebody has connected anew is not overwritten by a token of the old sign-in', async () => {
  const old = await open()
  const anew = { ...SECRET, refreshToken: 'refresh-new' }
  await accounts.reconnect(account.id, { sealed: seal(anew), settings: {} })
  assert.equal(await old.access(), 'for-refresh-1')
  assert.deepEqual(await stored(), anew)
})

test('two processes that refresh side by side both end with a token, and the sign-in stays', async () => {
  const both = [await open(), await open()]
  assert.deepEqual(await Promise.all(both.map((one) => one.access())), ['for-refresh-1', 'for-refresh-1'])
  await clock.advance(HOUR_MS)
  assert.deepEqual(await Promise.all(both.map((one) => one.access())), ['for-refresh-1', 'for-refresh-1'])
  assert.equal((await stored()).refreshToken, 'refresh-1')
})

test('a rotated refresh token is kept although another process has written in between', async () => {
  const [one, other] = [await open(), await open()]
  await other.access()
  answer = () => Response.json({ access_token: 'rotated', expires_in: 3600, refresh_token: 'refresh-2' })
  assert.equal(await one.access(), 'rotated')
  assert.equal((await stored()).refreshToken, 'refresh-2')
})

test('a sign-in that was refused marks the account, and a new one is taken up by a process that runs on', async () => {
  answer = (token) =>
    token === 'refresh-1'
      ? Response.json({ error: 'invalid_grant' }, { status: 400 })
      : Response.json({ access_token: `for-${token}`, expires_in: 3600 })
  const source = await open()
  await assert.rejects(source.access(), (error: TidemarkError) => error.kind === 'auth')
  assert.equal((await accounts.find('gmail', 'ann'))?.state, 'sign-in')
  const sealed = seal({ ...SECRET, refreshToken: 'refresh-new' })
  await accounts.reconnect(account.id, { sealed, settings: {} })
  await clock.advance(60_000)
  assert.equal(await source.access(), 'for-refresh-new')
  assert.equal((await accounts.find('gmail', 'ann'))?.state, 'ready')
})
