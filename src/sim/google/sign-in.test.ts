/** Sign-in on its own; with Google's client it is tested in gmail/google-client.test.ts. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import { gmailScopes } from '../gmail/scopes.ts'
import { type Sim, startSim } from '../start.ts'
import { createSigningKey, signJwt } from './keys.ts'

const ALICE = 'alice@example.com'
const BOB = 'bob@example.com'
const REDIRECT = 'http://127.0.0.1:8123/back'
const VERIFIER = 'v'.repeat(64)
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url')
const WEEK_MS = 7 * 86_400_000

let sim: Sim
const clock = new FakeClock()

before(async () => {
  const accounts = [ALICE, BOB].map((address) => ({ address, messages: 2 }))
  sim = await startSim({ clock, gmail: { accounts } })
})
after(() => sim.close())

function authUrl(change: Record<string, string> = {}): string {
  const query = new URLSearchParams({
    client_id: sim.gmail.clientId,
    redirect_uri: REDIRECT,
    response_type: 'code',
    scope: `${gmailScopes.readonly} ${gmailScopes.modify}`,
    state: 'abc',
    code_challenge: CHALLENGE,
    code_challenge_method: 'S256',
    ...change,
  })
  return `${sim.gmail.authUrl}?${query}`
}

async function open(
  url: string,
  init: RequestInit = {},
): Promise<{ status: number; text: string; to: URLSearchParams }> {
  const answer = await fetch(url, { redirect: 'manual', ...init })
  const location = answer.headers.get('location')
  return {
    status: answer.status,
    text: await answer.text(),
    to: location === null ? new URLSearchParams() : new URL(location).searchParams,
  }
}

type TokenAnswer = {
  error?: string
  error_description?: string
  access_token?: string
  refresh_token?: string
  refresh_token_expires_in?: number
  expires_in?: number
  scope?: string
}

async function token(fields: Record<string, string>): Promise<TokenAnswer & { status: number }> {
  const client = { client_id: sim.gmail.clientId, client_secret: sim.gmail.clientSecret }
  const answer = await fetch(sim.gmail.tokenUrl, {
    method: 'POST',
    body: new URLSearchParams({ ...client, ...fields }),
  })
  return { status: answer.status, ...((await answer.json()) as TokenAnswer) }
}

async function newCode(change: Record<string, string> = {}): Promise<string> {
  sim.oauth.autoApprove = true
  const { to } = await open(authUrl(change))
  sim.oauth.autoApprove = false
  return to.get('code')!
}

const redeem = (code: string, change: Record<string, string> = {}): ReturnType<typeof token> =>
  token({
    grant_type: 'authorization_code',
    code,
    redirect_uri: REDIRECT,
    code_verifier: VERIFIER,
    ...change,
  })

async function profileStatus(accessToken: string): Promise<number> {
  const headers = { authorization: `Bearer ${accessToken}` }
  return (await fetch(`${sim.baseUrl}/gmail/v1/users/me/profile`, { headers })).status
}

describe('the consent page', () => {
  test('shows who may sign in and what is asked, and its answer leads back with a code', async () => {
    const page = await open(authUrl())
    assert.equal(page.status, 200)
    assert.match(page.text, /alice@example\.com/)
    assert.match(page.text, /gmail\.modify/)
    const fields = new URL(authUrl()).searchParams
    fields.set('account', BOB)
    fields.set('decision', 'allow')
    const allowed = await open(sim.gmail.authUrl, { method: 'POST', body: fields })
    assert.equal(allowed.status, 302)
    assert.equal(allowed.to.get('state'), 'abc')
    const tokens = await redeem(allowed.to.get('code')!)
    assert.equal(sim.gmail.grants.access(tokens.access_token!)!.address, BOB)
    fields.set('decision', 'deny')
    const denied = await open(sim.gmail.authUrl, { method: 'POST', body: fields })
    assert.equal(denied.to.get('error'), 'access_denied')
  })

  test('writes what it was given as text, never as markup', async () => {
    const { text } = await open(authUrl({ scope: '<script>alert(1)</script>' }))
    assert.ok(!text.includes('<script>'))
  })

  test('can consent or refuse by itself, and grant less than was asked', async () => {
    sim.oauth.autoApprove = BOB
    sim.oauth.grantOnly = [gmailScopes.readonly]
    const tokens = await redeem((await open(authUrl())).to.get('code')!)
    assert.equal(tokens.scope, gmailScopes.readonly)
    sim.oauth.deny = true
    assert.equal((await open(authUrl())).to.get('error'), 'access_denied')
    Object.assign(sim.oauth, { autoApprove: false, grantOnly: null, deny: false })
  })

  test('does not lead away to anywhere but the loopback address', async () => {
    for (const uri of ['https://evil.example/', 'http://127.0.0.1.evil.example/', 'javascript:1', '']) {
      const { status, to } = await open(authUrl({ redirect_uri: uri }))
      assert.equal(status, 400)
      assert.equal(to.size, 0)
    }
    assert.equal((await open(authUrl({ client_id: 'x' }))).status, 401)
    assert.equal((await open(authUrl({ code_challenge_method: 'plain' }))).status, 400)
    assert.equal((await open(authUrl({ scope: '' }))).status, 400)
  })
})

describe('the token endpoint', () => {
  test('wants the verifier, the same redirect, and the client’s secret', async () => {
    const code = await newCode()
    assert.equal((await redeem(code, { code_verifier: 'w'.repeat(64) })).error, 'invalid_grant')
    assert.equal((await redeem(code, { code_verifier: '' })).error_description, 'Missing code verifier.')
    assert.equal((await redeem(code, { redirect_uri: 'http://127.0.0.1:1/' })).error, 'redirect_uri_mismatch')
    assert.deepEqual(
      await redeem(code, { client_secret: 'x' }).then(({ status, error }) => [status, error]),
      [401, 'invalid_client'],
    )
    assert.equal((await redeem(code)).status, 200)
  })

  test('a code that is used twice takes back what it gave', async () => {
    const code = await newCode()
    const tokens = await redeem(code)
    assert.equal(await profileStatus(tokens.access_token!), 200)
    assert.equal((await redeem(code)).error, 'invalid_grant')
    assert.equal(await profileStatus(tokens.access_token!), 401)
  })

  test('access tokens end with their time; a refresh token gives new ones until it is revoked', async () => {
    const tokens = await redeem(await newCode())
    assert.equal(tokens.expires_in, 3_599)
    await clock.advance(3_600_000)
    assert.equal(await profileStatus(tokens.access_token!), 401)
    const refresh = { grant_type: 'refresh_token', refresh_token: tokens.refresh_token! }
    const fresh = await token(refresh)
    assert.equal(await profileStatus(fresh.access_token!), 200)
    assert.equal(fresh.refresh_token, undefined)
    const revoke = (): Promise<Response> =>
      fetch(`${sim.gmail.revokeUrl}?token=${fresh.access_token}`, { method: 'POST' })
    assert.equal((await revoke()).status, 200)
    assert.equal((await revoke()).status, 400)
    assert.deepEqual(await token(refresh).then(({ status, error }) => [status, error]), [
      400,
      'invalid_grant',
    ])
  })

  test('refresh tokens of an app in testing end after a week, and say so', async () => {
    sim.oauth.refreshTokenMs = WEEK_MS
    const tokens = await redeem(await newCode())
    sim.oauth.refreshTokenMs = null
    assert.equal(tokens.refresh_token_expires_in, 604_800)
    const refresh = { grant_type: 'refresh_token', refresh_token: tokens.refresh_token! }
    assert.equal((await token(refresh)).status, 200)
    await clock.advance(WEEK_MS)
    assert.equal((await token(refresh)).error, 'invalid_grant')
  })

  test('access_type online gives no refresh token', async () => {
    const tokens = await redeem(await newCode({ access_type: 'online' }))
    assert.ok(tokens.access_token)
    assert.equal(tokens.refresh_token, undefined)
  })

  test('an unknown grant is refused', async () => {
    assert.equal((await token({ grant_type: 'password' })).error, 'unsupported_grant_type')
  })
})

describe('a service account', () => {
  function claims(change: Record<string, unknown> = {}): Record<string, unknown> {
    const { client_email, token_uri } = sim.gmail.serviceAccount()
    const iat = Math.floor(clock.now() / 1000)
    return {
      iss: client_email,
      aud: token_uri,
      sub: ALICE,
      scope: gmailScopes.readonly,
      iat,
      exp: iat + 3600,
      ...change,
    }
  }

  async function assertion(text: string): ReturnType<typeof token> {
    return token({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion: text })
  }

  async function signed(change: Record<string, unknown> = {}): ReturnType<typeof token> {
    const { createPrivateKey, createPublicKey } = await import('node:crypto')
    const privateKey = createPrivateKey(sim.gmail.serviceAccount().private_key)
    return assertion(signJwt({ id: 'k', privateKey, publicKey: createPublicKey(privateKey) }, claims(change)))
  }

  test('gets a token for the user it acts for', async () => {
    const tokens = await signed()
    assert.equal(await profileStatus(tokens.access_token!), 200)
    assert.equal(tokens.refresh_token, undefined)
  })

  test('is refused with a foreign key, an unknown user, a scope nobody delegated, or an old assertion', async () => {
    assert.equal(
      (await assertion(signJwt(createSigningKey('x'), claims()))).error_description,
      'Invalid JWT Signature.',
    )
    assert.equal((await assertion('nonsense')).error, 'invalid_grant')
    assert.equal((await signed({ sub: 'nobody@example.com' })).error_description, 'Invalid email or User ID')
    assert.equal((await signed({ exp: 1 })).error, 'invalid_grant')
    assert.equal((await signed({ aud: 'https://elsewhere.example' })).error, 'invalid_grant')
    sim.oauth.delegatedScopes = [gmailScopes.readonly]
    assert.equal((await signed({ scope: gmailScopes.full })).error, 'unauthorized_client')
    assert.equal((await signed()).status, 200)
    sim.oauth.delegatedScopes = null
  })
})
