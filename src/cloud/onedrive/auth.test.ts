import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { openVault, type Vault } from '../../base/vault.ts'
import { type Account, Accounts, accountKey } from '../../ledger/accounts.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { openLedger } from '../../ledger/open.ts'
import { type Sim, startSim } from '../../sim/start.ts'
import { createPkce, type Fetch } from '../oauth.ts'
import { GrantedTokens, type GrantedTokensInput, type TokenSource } from '../token-source.ts'
import {
  accessOf,
  ONEDRIVE_SCOPES,
  type OneDriveSecret,
  oneDriveGrant,
  openAccountTokens,
  parseOneDriveSecret,
  signInByCode,
  signInByDevice,
  signInUrl,
} from './auth.ts'

const ACCOUNT = 'ann@example.com'
const HOUR_MS = 3_600_000

let sim: Sim
let clock: FakeClock
let underway = 0
const fetch: Fetch = async (url, init) => {
  underway += 1
  try {
    const answer = await globalThis.fetch(url, init)
    return new Response(await answer.bytes(), answer)
  } finally {
    underway -= 1
  }
}

beforeEach(async () => {
  clock = new FakeClock()
  sim = await startSim({ clock, onedrive: { drives: [{ account: ACCOUNT }] } })
})
afterEach(() => sim.close())

function calls() {
  return { fetch, clock, tokenUrl: sim.onedrive.tokenUrl, deviceUrl: sim.onedrive.deviceUrl }
}

function codeOf(code: string): (error: unknown) => boolean {
  return (error) => error instanceof TidemarkError && error.code === code && error.kind === 'auth'
}

describe('signing in with a browser', () => {
  const redirectUri = 'http://127.0.0.1:45678'

  async function signIn(access: 'readwrite' | 'readonly', verifier?: string): Promise<OneDriveSecret> {
    const pkce = createPkce(randomBytes)
    const input = {
      authUrl: sim.onedrive.authUrl,
      clientId: sim.onedrive.clientId,
      redirectUri,
      access,
      pkce,
    }
    const page = await globalThis.fetch(signInUrl({ ...input, user: ACCOUNT }), { redirect: 'manual' })
    const back = new URL(page.headers.get('location')!)
    assert.equal(back.searchParams.get('state'), pkce.state)
    const code = back.searchParams.get('code') ?? ''
    const client = { clientId: sim.onedrive.clientId, redirectUri, verifier: verifier ?? pkce.verifier, code }
    return await signInByCode(calls(), client)
  }

  test('gives a secret that can be kept and read again', async () => {
    sim.oauth.autoApprove = true
    const secret = await signIn('readwrite')
    assert.equal(accessOf(secret.scopes), 'readwrite')
    assert.equal(secret.obtainedAtMs, clock.now())
    assert.deepEqual(parseOneDriveSecret(JSON.stringify(secret)), secret)
    assert.equal(accessOf((await signIn('readonly')).scopes), 'readonly')
  })

  test('with a verifier that is another’s fails', async () => {
    sim.oauth.autoApprove = true
    await assert.rejects(signIn('readwrite', 'v'.repeat(43)), codeOf('invalid_grant'))
  })

  test('that allows less than is needed is refused', async () => {
    sim.oauth.autoApprove = true
    sim.oauth.grantOnly = ['User.Read']
    await assert.rejects(signIn('readwrite'), codeOf('scope-missing'))
  })
})

describe('signing in with a device code', () => {
  async function begin() {
    return await signInByDevice(calls(), { clientId: sim.onedrive.clientId, access: 'readwrite' })
  }

  /** Time goes on until it is settled, but not while the service is being asked. */
  async function settled<T>(work: Promise<T>): Promise<T> {
    let isDone = false
    const done = work.finally(() => {
      isDone = true
    })
    done.catch(() => undefined)
    while (!isDone) {
      if (underway === 0) await clock.advance(1_000)
      else await new Promise((resolve) => setImmediate(resolve))
    }
    return await done
  }

  async function enter(userCode: string, decision: 'allow' | 'deny'): Promise<void> {
    const page = new URL('/devicelogin', sim.onedrive.tokenUrl)
    const body = new URLSearchParams({ user_code: userCode, account: ACCOUNT, decision })
    assert.equal((await globalThis.fetch(page, { method: 'POST', body })).status, 200)
  }

  test('waits until the code was entered elsewhere', async () => {
    const { code, finish } = await begin()
    assert.match(code.verificationUrl, /\/devicelogin$/)
    assert.ok(code.expiresAtMs > clock.now())
    const done = finish()
    let asked = 0
    while (asked < 3) {
      if (underway > 0) asked += 1
      while (underway > 0) await new Promise((resolve) => setImmediate(resolve))
      await clock.advance(1_000)
    }
    await enter(code.userCode, 'allow')
    const secret = await settled(done)
    assert.equal(accessOf(secret.scopes), 'readwrite')
  })

  test('ends where it was refused, and where nobody enters the code', async () => {
    const refused = await begin()
    await enter(refused.code.userCode, 'deny')
    await assert.rejects(settled(refused.finish()), codeOf('authorization_declined'))
    const forgotten = await begin()
    const waiting = forgotten.finish()
    waiting.catch(() => undefined)
    await assert.rejects(settled(waiting), codeOf('expired_token'))
  })

  test('can be stopped', async () => {
    const stop = new AbortController()
    const { finish } = await signInByDevice(
      { ...calls(), signal: stop.signal },
      { clientId: sim.onedrive.clientId, access: 'readonly' },
    )
    const done = finish()
    const reason = new Error('enough')
    stop.abort(reason)
    await assert.rejects(done, reason)
  })

  test('of a client that nobody knows says what to check', async () => {
    const error = await signInByDevice(calls(), { clientId: 'other', access: 'readonly' }).catch(
      (thrown) => thrown,
    )
    assert.ok(error instanceof TidemarkError)
    assert.match(error.hint ?? '', /app registration/)
  })
})

describe('tokens', () => {
  function secret(): OneDriveSecret {
    const { refreshToken } = sim.onedrive.issue(ACCOUNT)
    const scopes = [...ONEDRIVE_SCOPES.readwrite]
    return { kind: 'oauth', clientId: sim.onedrive.clientId, refreshToken, scopes, obtainedAtMs: 0 }
  }

  function sourceOf(given: Pick<GrantedTokensInput<OneDriveSecret>, 'secret' | 'save'>): TokenSource {
    return new GrantedTokens({ ...given, clock, grant: oneDriveGrant(calls()) })
  }

  test('every refresh brings a new refresh token, which is saved before its access token is used', async () => {
    sim.onedrive.signIn.endsUsedRefresh = true
    const saved: string[] = []
    const first = secret()
    const save = async ({ refreshToken }: OneDriveSecret): Promise<void> => void saved.push(refreshToken)
    const source = sourceOf({ secret: first, save })
    const one = await source.access()
    assert.equal(saved.length, 1)
    await clock.advance(2 * HOUR_MS)
    const two = await source.access()
    assert.notEqual(one, two)
    assert.equal(new Set([first.refreshToken, ...saved]).size, 3)
    source.refused(two)
    assert.notEqual(await source.access(), two)
  })

  test('a rotated token that cannot be saved gives no access until it can', async () => {
    sim.onedrive.signIn.endsUsedRefresh = true
    let broken = true
    const save = async (): Promise<void> => {
      if (broken) throw new TidemarkError('The disk is full', { kind: 'transient' })
    }
    const source = sourceOf({ secret: secret(), save })
    await assert.rejects(source.access(), /disk is full/)
    broken = false
    await clock.advance(2_000)
    assert.ok(await source.access())
  })

  test('a withdrawn access asks to connect again', async () => {
    const given = secret()
    sim.onedrive.grants.revokeAccount(ACCOUNT)
    const source = sourceOf({ secret: given, save: async () => undefined })
    const error = await source.access().catch((thrown: unknown) => thrown)
    assert.ok(error instanceof TidemarkError)
    assert.equal(error.kind, 'auth')
    assert.match(error.hint ?? '', /account add onedrive/)
    assert.doesNotMatch(error.hint ?? '', /Google/)
  })
})

describe('the tokens of an account', () => {
  let ledger: Ledger
  let accounts: Accounts
  let vault: Vault
  let account: Account

  beforeEach(async () => {
    ledger = await openLedger('sqlite::memory:')
    accounts = await Accounts.open(ledger)
    vault = await openVault({ env: { TIDEMARK_MASTER_KEY: randomBytes(32).toString('base64') }, home: '/' })
    const { refreshToken } = sim.onedrive.issue(ACCOUNT)
    const scopes = [...ONEDRIVE_SCOPES.readwrite]
    const secret = { kind: 'oauth', clientId: sim.onedrive.clientId, refreshToken, scopes, obtainedAtMs: 0 }
    const sealed = vault.seal(accountKey({ service: 'onedrive', name: 'ann' }), JSON.stringify(secret))
    account = await accounts.add({ service: 'onedrive', name: 'ann', settings: {}, sealed })
  })
  afterEach(() => ledger.close())

  function open(): Promise<TokenSource> {
    return openAccountTokens({ ...calls(), account, accounts, vault })
  }

  test('live on in the next process though each refresh token works once', async () => {
    sim.onedrive.signIn.endsUsedRefresh = true
    const kept = await (await open()).access()
    assert.equal(await (await open()).access(), kept)
    for (let hours = 0; hours < 3; hours++) {
      await clock.advance(2 * HOUR_MS)
      assert.ok(await (await open()).access())
    }
  })

  test('that were withdrawn mark the account for a new sign-in', async () => {
    sim.onedrive.grants.revokeAccount(ACCOUNT)
    await assert.rejects((await open()).access(), { kind: 'auth' })
    const [stored] = await accounts.list()
    assert.equal(stored?.state, 'sign-in')
  })
})

test('what scopes allow is known however they are written', () => {
  assert.equal(accessOf(['https://graph.microsoft.com/Files.ReadWrite', 'openid']), 'readwrite')
  assert.equal(accessOf(['files.readwrite.all']), 'shared', 'personal accounts are given none for sites')
  assert.equal(accessOf(['Files.Read', 'User.Read']), 'readonly')
  assert.equal(accessOf(['User.Read', 'Files.ReadNothing']), undefined)
  assert.throws(() => parseOneDriveSecret('{"kind":"other"}'), codeOf('secret-form'))
})
