import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { googleGrant } from '../google/sign-in.ts'
import { GrantedTokens, type TokenSource } from '../token-source.ts'
import {
  accessFor,
  accessOf,
  allows,
  GMAIL_SCOPES,
  type GmailAction,
  type GmailSecret,
  parseGmailSecret,
  requireScope,
} from './auth.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000

type OAuthSecret = Extract<GmailSecret, { kind: 'oauth' }>

const SECRET: OAuthSecret = {
  kind: 'oauth',
  clientId: 'client',
  refreshToken: 'refresh-1',
  scopes: [GMAIL_SCOPES.readonly],
  obtainedAtMs: 0,
}

/** A token endpoint that answers when the test lets it. */
class Endpoint {
  readonly clock = new FakeClock()
  readonly asked: string[] = []
  readonly saved: GmailSecret[] = []
  readonly lost: TidemarkError[] = []
  stored: GmailSecret = SECRET
  answer: () => Response | Promise<Response> = () => this.token()
  save: () => Promise<void> = async () => {}

  source(secret: GmailSecret = SECRET): TokenSource {
    return new GrantedTokens({
      secret,
      clock: this.clock,
      grant: googleGrant({
        clock: this.clock,
        tokenUrl: 'https://service.example/token',
        fetch: async (_url, init) => {
          this.asked.push(new URLSearchParams(String(init.body)).get('refresh_token') ?? '')
          return this.answer()
        },
      }),
      save: async (changed) => {
        await this.save()
        this.saved.push(changed)
      },
      reload: async () => this.stored,
      onLost: async (error) => {
        this.lost.push(error)
      },
    })
  }

  token(more: Record<string, unknown> = {}): Response {
    return Response.json({ access_token: `access-${this.asked.length}`, expires_in: 3600, ...more })
  }
}

const refusal = (status: number, error: string): Response => Response.json({ error }, { status })
const isKind =
  (kind: string) =>
  (error: unknown): boolean =>
    error instanceof TidemarkError && error.kind === kind

describe('an access token', () => {
  test('is asked for once by all who wait for it, and kept until a minute before its end', async () => {
    const endpoint = new Endpoint()
    let release = (): void => {}
    endpoint.answer = () => new Promise((resolve) => (release = () => resolve(endpoint.token())))
    const source = endpoint.source()
    const waiting = Array.from({ length: 20 }, () => source.access())
    await endpoint.clock.advance(0)
    release()
    assert.deepEqual(new Set(await Promise.all(waiting)), new Set(['access-1']))
    endpoint.answer = () => endpoint.token()
    await endpoint.clock.advance(HOUR_MS - MINUTE_MS - 1)
    assert.equal(await source.access(), 'access-1')
    await endpoint.clock.advance(1)
    assert.equal(await source.access(), 'access-2')
    assert.equal(endpoint.asked.length, 2)
  })

  test('that was kept with the secret is used without asking', async () => {
    const endpoint = new Endpoint()
    const expiresAtMs = endpoint.clock.now() + HOUR_MS
    const source = endpoint.source({ ...SECRET, accessToken: 'kept', expiresAtMs })
    assert.equal(await source.access(), 'kept')
    assert.equal(endpoint.asked.length, 0)
  })

  test('that the API refused is not handed out again; an older refusal changes nothing', async () => {
    const endpoint = new Endpoint()
    const source = endpoint.source()
    assert.equal(await source.access(), 'access-1')
    source.refused('access-1')
    assert.equal(await source.access(), 'access-2')
    source.refused('access-1')
    assert.equal(await source.access(), 'access-2')
  })

  test('is kept for the next process, with what was granted', async () => {
    const endpoint = new Endpoint()
    endpoint.answer = () => endpoint.token({ scope: `${GMAIL_SCOPES.modify} openid` })
    await endpoint.source().access()
    assert.deepEqual(endpoint.saved, [
      {
        ...SECRET,
        accessToken: 'access-1',
        expiresAtMs: endpoint.clock.now() + HOUR_MS,
        scopes: [GMAIL_SCOPES.modify, 'openid'],
      },
    ])
  })

  test('is handed out although it could not be kept', async () => {
    const endpoint = new Endpoint()
    endpoint.save = () => Promise.reject(new Error('disk full'))
    assert.equal(await endpoint.source().access(), 'access-1')
  })

  test('still comes for the others when one caller gives up', async () => {
    const endpoint = new Endpoint()
    let release = (): void => {}
    endpoint.answer = () => new Promise((resolve) => (release = () => resolve(endpoint.token())))
    const source = endpoint.source()
    const controller = new AbortController()
    const impatient = source.access(controller.signal)
    const patient = source.access()
    await endpoint.clock.advance(0)
    controller.abort(new Error('enough'))
    await assert.rejects(impatient, /enough/)
    release()
    assert.equal(await patient, 'access-1')
  })
})

describe('a rotated refresh token', () => {
  test('is saved before any token made with it is handed out, and used from then on', async () => {
    const endpoint = new Endpoint()
    endpoint.answer = () => endpoint.token({ refresh_token: `refresh-${endpoint.asked.length + 1}` })
    const source = endpoint.source()
    await endpoint.clock.advance(MINUTE_MS)
    await source.access()
    const [saved] = endpoint.saved as OAuthSecret[]
    assert.deepEqual([saved?.refreshToken, saved?.obtainedAtMs], ['refresh-2', endpoint.clock.now()])
    await endpoint.clock.advance(HOUR_MS)
    await source.access()
    assert.deepEqual(endpoint.asked, ['refresh-1', 'refresh-2'])
  })

  test('that could not be saved stops everything until it is, without another refresh', async () => {
    const endpoint = new Endpoint()
    endpoint.answer = () => endpoint.token({ refresh_token: 'refresh-2' })
    endpoint.save = () => Promise.reject(new TidemarkError('disk full', { kind: 'transient' }))
    const source = endpoint.source()
    await assert.rejects(source.access(), /disk full/)
    await assert.rejects(source.access(), /disk full/)
    endpoint.save = async () => {}
    await endpoint.clock.advance(1_000)
    assert.equal(await source.access(), 'access-1')
    assert.deepEqual(endpoint.asked, ['refresh-1'])
    assert.equal((endpoint.saved as OAuthSecret[])[0]?.refreshToken, 'refresh-2')
  })
})

describe('a refresh that fails', () => {
  test('for a moment is not tried by each caller anew, and then it is', async () => {
    const endpoint = new Endpoint()
    endpoint.answer = () => refusal(503, 'x')
    const source = endpoint.source()
    for (let n = 0; n < 10; n += 1) await assert.rejects(source.access(), isKind('transient'))
    assert.equal(endpoint.asked.length, 1)
    await endpoint.clock.advance(1_000)
    endpoint.answer = () => endpoint.token()
    assert.equal(await source.access(), 'access-2')
  })

  test('is not tried before the time that the service named', async () => {
    const endpoint = new Endpoint()
    endpoint.answer = () => new Response('', { status: 429, headers: { 'retry-after': '30' } })
    const source = endpoint.source()
    await assert.rejects(source.access(), isKind('throttled'))
    await endpoint.clock.advance(29_999)
    await assert.rejects(source.access(), isKind('throttled'))
    assert.equal(endpoint.asked.length, 1)
    await endpoint.clock.advance(1)
    await assert.rejects(source.access(), isKind('throttled'))
    assert.equal(endpoint.asked.length, 2)
  })

  test('in the last minute of a token leaves that token in use', async () => {
    const endpoint = new Endpoint()
    const source = endpoint.source()
    await source.access()
    endpoint.answer = () => refusal(500, 'x')
    await endpoint.clock.advance(HOUR_MS - 30_000)
    assert.equal(await source.access(), 'access-1')
    await endpoint.clock.advance(30_000)
    await assert.rejects(source.access(), isKind('transient'))
  })
})

describe('a secret that the service refused', () => {
  test('is an auth error from then on, without asking again, told once', async () => {
    const endpoint = new Endpoint()
    endpoint.answer = () => refusal(400, 'invalid_grant')
    const source = endpoint.source()
    for (let n = 0; n < 5; n += 1) {
      await assert.rejects(source.access(), (error: TidemarkError) => error.code === 'invalid_grant')
      await endpoint.clock.advance(HOUR_MS)
    }
    assert.deepEqual(endpoint.asked, ['refresh-1'])
    assert.deepEqual(
      endpoint.lost.map(({ kind }) => kind),
      ['auth'],
    )
  })

  test('ends the use of a token that was good for another moment', async () => {
    const endpoint = new Endpoint()
    const source = endpoint.source()
    await source.access()
    endpoint.answer = () => refusal(400, 'invalid_grant')
    await endpoint.clock.advance(HOUR_MS - 30_000)
    await assert.rejects(source.access(), isKind('auth'))
  })

  test('is replaced by what somebody has connected meanwhile, at once or later', async () => {
    for (const delayMs of [0, 1, HOUR_MS]) {
      const endpoint = new Endpoint()
      endpoint.answer = () =>
        endpoint.asked.at(-1) === 'refresh-1' ? refusal(400, 'invalid_grant') : endpoint.token()
      const source = endpoint.source()
      const anew = { ...SECRET, refreshToken: 'refresh-new' }
      if (delayMs === 0) endpoint.stored = anew
      else {
        await assert.rejects(source.access(), isKind('auth'))
        endpoint.stored = anew
        await endpoint.clock.advance(delayMs)
      }
      assert.equal(await source.access(), 'access-2')
      assert.deepEqual(endpoint.asked, ['refresh-1', 'refresh-new'])
      assert.equal(endpoint.lost.length, delayMs === 0 ? 0 : 1)
    }
  })
})

describe('scopes', () => {
  const table: [GmailAction, string, [boolean, boolean, boolean]][] = [
    ['read', GMAIL_SCOPES.readonly, [true, true, true]],
    ['unlabel', GMAIL_SCOPES.modify, [false, true, true]],
    ['trash', GMAIL_SCOPES.modify, [false, true, true]],
    ['insert', GMAIL_SCOPES.modify, [false, true, true]],
    ['delete', GMAIL_SCOPES.full, [false, false, true]],
  ]
  for (const [action, scope, allowed] of table) {
    test(`to ${action} takes ${scope} or more`, () => {
      assert.equal(GMAIL_SCOPES[accessFor(action)], scope)
      const levels = [GMAIL_SCOPES.readonly, GMAIL_SCOPES.modify, GMAIL_SCOPES.full]
      assert.deepEqual(
        levels.map((one) => allows(['openid', one], action)),
        allowed,
      )
    })
  }

  test('that allow nothing about mail have no level, and what is missing is said with the command that mends it', () => {
    assert.equal(accessOf(['openid']), undefined)
    assert.equal(accessOf([GMAIL_SCOPES.full, GMAIL_SCOPES.readonly]), 'full')
    assert.throws(
      () => requireScope('ann@example.com', [GMAIL_SCOPES.modify], 'delete'),
      (error: TidemarkError) =>
        error.code === 'scope-missing' && /--full --user ann@example\.com/.test(error.hint ?? ''),
    )
    requireScope('ann@example.com', [GMAIL_SCOPES.full], 'delete')
  })
})

test('a stored secret of another form is refused without being quoted', () => {
  assert.deepEqual(parseGmailSecret(JSON.stringify(SECRET)), SECRET)
  for (const text of ['hunter2', '{"kind":"oauth","refreshToken":"hunter2"}', '{"kind":"other"}']) {
    assert.throws(
      () => parseGmailSecret(text),
      (error: TidemarkError) => error.kind === 'auth' && !`${error.stack} ${error.cause}`.includes('hunter2'),
    )
  }
})
