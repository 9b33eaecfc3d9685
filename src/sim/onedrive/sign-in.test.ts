import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import { type Sim, startSim } from '../start.ts'

const ANN = 'ann@example.com'
const BEN = 'ben@example.com'
const REDIRECT = 'http://localhost:8123/back'
const VERIFIER = 'v'.repeat(64)
const CHALLENGE = createHash('sha256').update(VERIFIER).digest('base64url')
const SCOPE = 'Files.ReadWrite User.Read offline_access'
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

const clock = new FakeClock()
let sim: Sim

before(async () => {
  sim = await startSim({
    clock,
    onedrive: { drives: [{ account: ANN }, { account: BEN, type: 'business' }] },
  })
})
after(() => sim.close())

type TokenAnswer = {
  status: number
  error?: string
  access_token: string
  refresh_token?: string
  scope?: string
  expires_in?: number
}

async function post(
  url: string,
  fields: Record<string, string>,
): Promise<Record<string, unknown> & { status: number }> {
  const answer = await fetch(url, { method: 'POST', body: new URLSearchParams(fields), redirect: 'manual' })
  const isJson = answer.headers.get('content-type')?.startsWith('application/json')
  const text = await answer.text()
  const json = isJson
    ? (JSON.parse(text) as Record<string, unknown>)
    : { text, location: answer.headers.get('location') }
  return { ...json, status: answer.status }
}

const token = (fields: Record<string, string>): Promise<TokenAnswer> =>
  post(sim.onedrive.tokenUrl, {
    client_id: sim.onedrive.clientId,
    ...fields,
  }) as unknown as Promise<TokenAnswer>

function authUrl(change: Record<string, string> = {}): string {
  const query = new URLSearchParams({
    client_id: sim.onedrive.clientId,
    redirect_uri: REDIRECT,
    response_type: 'code',
    scope: SCOPE,
    state: 'abc',
    code_challenge: CHALLENGE,
    code_challenge_method: 'S256',
    ...change,
  })
  return `${sim.onedrive.authUrl}?${query}`
}

async function ownerOf(accessToken: string): Promise<unknown> {
  const answer = await fetch(`${sim.onedrive.graphUrl}/me`, {
    headers: { authorization: `Bearer ${accessToken}` },
  })
  return answer.ok ? ((await answer.json()) as { mail: string }).mail : answer.status
}

async function newCode(change: Record<string, string> = {}): Promise<string> {
  sim.oauth.autoApprove = true
  const answer = await fetch(authUrl(change), { redirect: 'manual' })
  sim.oauth.autoApprove = false
  return new URL(answer.headers.get('location')!).searchParams.get('code')!
}

const redeem = (code: string, change: Record<string, string> = {}): Promise<TokenAnswer> =>
  token({
    grant_type: 'authorization_code',
    code,
    redirect_uri: REDIRECT,
    code_verifier: VERIFIER,
    ...change,
  })

describe('the code flow', () => {
  test('asks a person, and leads back with a code for the account that was chosen', async () => {
    const page = await (await fetch(authUrl())).text()
    assert.match(page, /ann@example\.com/)
    const fields = Object.fromEntries(new URL(authUrl()).searchParams)
    const allowed = await post(sim.onedrive.authUrl, { ...fields, account: BEN, decision: 'allow' })
    const back = new URL(String(allowed.location)).searchParams
    assert.equal(back.get('state'), 'abc')
    const tokens = await redeem(back.get('code')!)
    assert.equal(await ownerOf(tokens.access_token), BEN)
    assert.equal(tokens.scope, 'Files.ReadWrite User.Read')
    const denied = await post(sim.onedrive.authUrl, { ...fields, account: BEN, decision: 'deny' })
    assert.equal(new URL(String(denied.location)).searchParams.get('error'), 'access_denied')
  })

  test('needs the client, a loopback redirect, PKCE, and the verifier', async () => {
    const wrong: Record<string, string>[] = [
      { client_id: 'x' },
      { redirect_uri: 'https://evil.example/' },
      { code_challenge_method: 'plain' },
      { scope: '' },
    ]
    for (const change of wrong) {
      assert.equal((await fetch(authUrl(change), { redirect: 'manual' })).status, 400)
    }
    const code = await newCode()
    assert.equal((await redeem(code, { code_verifier: 'w'.repeat(64) })).error, 'invalid_grant')
    assert.equal((await redeem(code, { client_id: 'x' })).error, 'invalid_client')
    assert.equal((await redeem(code)).status, 200)
    assert.equal((await redeem(code)).error, 'invalid_grant')
  })

  test('works under the name of any tenant, and gives no refresh token unless it is asked for', async () => {
    const tokens = await redeem(await newCode({ scope: 'Files.Read' }))
    assert.equal(tokens.refresh_token, undefined)
    const url = sim.onedrive.tokenUrl.replace('/common/', '/consumers/')
    assert.equal(
      (await post(url, { client_id: sim.onedrive.clientId, grant_type: 'x' })).error,
      'unsupported_grant_type',
    )
  })
})

describe('refresh tokens', () => {
  const refresh = (refreshToken: string): Promise<TokenAnswer> =>
    token({ grant_type: 'refresh_token', refresh_token: refreshToken })

  test('are replaced with every use; the old one stays good unless told otherwise', async () => {
    const first = sim.onedrive.issue(ANN)
    const second = await refresh(first.refreshToken)
    assert.notEqual(second.refresh_token, first.refreshToken)
    assert.equal(await ownerOf(second.access_token), ANN)
    assert.equal((await refresh(first.refreshToken)).status, 200)
    sim.onedrive.signIn.endsUsedRefresh = true
    const third = await refresh(second.refresh_token!)
    assert.equal((await refresh(second.refresh_token!)).error, 'invalid_grant')
    assert.equal((await refresh(third.refresh_token!)).status, 200)
    sim.onedrive.signIn.endsUsedRefresh = false
  })

  test('give new access when the old one has ended, until they are revoked', async () => {
    const { accessToken, refreshToken } = sim.onedrive.issue(ANN)
    await clock.advance(3_600_000)
    assert.equal(await ownerOf(accessToken), 401)
    assert.equal((await refresh(refreshToken)).expires_in, 3_599)
    sim.onedrive.grants.revokeAccount(ANN)
    assert.equal((await refresh(refreshToken)).error, 'invalid_grant')
  })
})

describe('the device flow', () => {
  const begin = async (): Promise<Record<string, string>> =>
    (await post(sim.onedrive.deviceUrl, {
      client_id: sim.onedrive.clientId,
      scope: SCOPE,
    })) as unknown as Record<string, string>
  const poll = (code: string): Promise<TokenAnswer> => token({ grant_type: DEVICE_GRANT, device_code: code })

  test('waits until a person has typed the code elsewhere', async () => {
    const device = await begin()
    assert.equal(device.interval as unknown, 5)
    assert.match(device.message!, new RegExp(device.user_code!))
    assert.equal((await poll(device.device_code!)).error, 'authorization_pending')
    const page = await (await fetch(`${device.verification_uri}?otc=${device.user_code}`)).text()
    assert.match(page, new RegExp(device.user_code!))
    const wrong = await post(device.verification_uri!, { user_code: 'NOPE', account: ANN, decision: 'allow' })
    assert.equal(wrong.status, 400)
    const typed = device.user_code!.toLowerCase()
    assert.equal(
      (await post(device.verification_uri!, { user_code: typed, account: BEN, decision: 'allow' })).status,
      200,
    )
    const tokens = await poll(device.device_code!)
    assert.equal(await ownerOf(tokens.access_token), BEN)
    assert.ok(tokens.refresh_token)
    assert.equal((await poll(device.device_code!)).error, 'bad_verification_code')
  })

  test('ends with a refusal, with its time, or at once where consent needs nobody', async () => {
    const refused = await begin()
    await post(refused.verification_uri!, { user_code: refused.user_code!, account: ANN, decision: 'deny' })
    assert.equal((await poll(refused.device_code!)).error, 'authorization_declined')
    const late = await begin()
    await clock.advance(15 * 60_000)
    assert.equal((await poll(late.device_code!)).error, 'expired_token')
    sim.oauth.autoApprove = BEN
    const quick = await begin()
    assert.equal(await ownerOf((await poll(quick.device_code!)).access_token), BEN)
    sim.oauth.autoApprove = false
  })

  test('its page writes what it was given as text, never as markup', async () => {
    const url = `${sim.onedrive.tokenUrl.replace(/\/common.*/, '')}/devicelogin?user_code=${encodeURIComponent('"><script>')}`
    assert.ok(!(await (await fetch(url)).text()).includes('<SCRIPT>'))
  })
})
