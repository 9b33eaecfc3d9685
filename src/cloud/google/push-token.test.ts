import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { describe, test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import { createSigningKey, publicJwk, type SigningKey, signJwt } from '../../sim/google/keys.ts'
import { PushTokens, type PushVerdict } from './push-token.ts'

const AUDIENCE = 'https://tide.example.com/api/assist/push'
const EMAIL = 'push@project.iam.gserviceaccount.com'
const KEYS_URL = 'https://keys.example.com/certs'

const first = createSigningKey('first')
const second = createSigningKey('second')
const stranger = createSigningKey('first')

type World = {
  clock: FakeClock
  tokens: PushTokens
  /** What the address of the keys answers. */
  keys: SigningKey[]
  answer: (() => Response | Promise<Response>) | undefined
  asked: number
  claims(over?: Record<string, unknown>): Record<string, unknown>
  verdict(token: string | undefined): Promise<string>
}

function world(): World {
  const clock = new FakeClock()
  const w: World = {
    clock,
    keys: [first],
    answer: undefined,
    asked: 0,
    tokens: new PushTokens({
      clock,
      keysUrl: KEYS_URL,
      audience: AUDIENCE,
      email: EMAIL,
      fetch: async (url, { signal }) => {
        assert.equal(url, KEYS_URL)
        w.asked += 1
        const aborted = new Promise<never>((_, reject) => {
          signal?.addEventListener('abort', () => reject(signal.reason))
        })
        const answer = w.answer?.() ?? Response.json({ keys: w.keys.map(publicJwk) })
        return await Promise.race([answer, aborted])
      },
    }),
    claims: (over = {}) => {
      const nowS = Math.floor(clock.now() / 1000)
      const base = { iss: 'https://accounts.google.com', aud: AUDIENCE, email: EMAIL, email_verified: true }
      return { ...base, sub: '1', iat: nowS, exp: nowS + 3_600, ...over }
    },
    verdict: async (token) => wordOf(await w.tokens.verify(token)),
  }
  return w
}

function wordOf(verdict: PushVerdict): string {
  return verdict.ok ? 'ok' : verdict.why
}

function encode(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

describe('the token of a push', () => {
  test('holds for the configured audience and service account', async () => {
    const w = world()
    assert.equal(await w.verdict(signJwt(first, w.claims())), 'ok')
    assert.equal(await w.verdict(signJwt(first, w.claims({ iss: 'accounts.google.com' }))), 'ok')
  })

  test('holds again when it is sent again: who sees it twice must not mind', async () => {
    const w = world()
    const token = signJwt(first, w.claims())
    assert.deepEqual([await w.verdict(token), await w.verdict(token)], ['ok', 'ok'])
  })

  test('is refused for every claim that is another, missing or of another sort', async () => {
    const w = world()
    const wrong: Record<string, unknown>[] = [
      { aud: 'https://other.example.com' },
      { aud: ['https://other.example.com'] },
      { aud: undefined },
      { aud: `${AUDIENCE}/` },
      { iss: 'https://accounts.google.com.evil.example' },
      { iss: undefined },
      { email: 'other@project.iam.gserviceaccount.com' },
      { email: EMAIL.toUpperCase() },
      { email: [EMAIL] },
      { email: undefined },
      { email_verified: false },
      { email_verified: 'true' },
      { email_verified: undefined },
      { exp: undefined },
      { exp: '9999999999' },
      { iat: undefined },
      { nbf: Math.floor(w.clock.now() / 1000) + 3_600 },
    ]
    for (const over of wrong) {
      assert.equal(await w.verdict(signJwt(first, w.claims(over))), 'claims', JSON.stringify(over))
    }
  })

  test('is refused once it has expired, with half a minute for clocks that differ', async () => {
    const w = world()
    const nowS = Math.floor(w.clock.now() / 1000)
    assert.equal(await w.verdict(signJwt(first, w.claims({ exp: nowS - 29 }))), 'ok')
    assert.equal(await w.verdict(signJwt(first, w.claims({ exp: nowS - 31 }))), 'expired')
  })

  test('is refused where another signed it, even under the name of a known key', async () => {
    const w = world()
    assert.equal(await w.verdict(signJwt(stranger, w.claims())), 'signature')
    const [head, , signature] = signJwt(first, w.claims()).split('.')
    const other = `${head}.${encode(w.claims({ sub: '2' }))}.${signature}`
    assert.equal(await w.verdict(other), 'signature')
  })

  test('is refused without a signature, and with one made of the public key as a secret', async () => {
    const w = world()
    const body = encode(w.claims())
    for (const alg of ['none', 'None', 'NONE', '']) {
      for (const tail of ['', 'eA']) {
        const head = encode({ alg, kid: 'first', typ: 'JWT' })
        assert.equal(await w.verdict(`${head}.${body}.${tail}`), 'malformed', alg)
      }
    }
    const pem = first.publicKey.export({ type: 'spki', format: 'pem' })
    for (const secret of [pem, JSON.stringify(publicJwk(first))]) {
      const signed = `${encode({ alg: 'HS256', kid: 'first', typ: 'JWT' })}.${body}`
      const mac = createHmac('sha256', secret).update(signed).digest('base64url')
      assert.equal(await w.verdict(`${signed}.${mac}`), 'malformed')
    }
  })

  test('counts for nothing where it brings its own key or the address of one', async () => {
    const w = world()
    const own = { jwk: publicJwk(stranger), jku: 'https://evil.example/keys', x5u: 'https://evil.example/x' }
    const head = encode({ alg: 'RS256', kid: 'first', typ: 'JWT', ...own })
    const signature = signJwt(stranger, w.claims()).split('.')[2]
    assert.equal(await w.verdict(`${head}.${encode(w.claims())}.${signature}`), 'signature')
    assert.equal(w.asked, 1)
  })

  test('is refused where it is no token, without asking for keys', async () => {
    const w = world()
    const odd = ['', 'x', 'a.b', 'a.b.c', 'a.b.c.d', '...', `${'e'.repeat(9_000)}.b.c`, `${encode({})}.a.b`]
    for (const token of [undefined, ...odd]) assert.equal(await w.verdict(token), 'malformed', String(token))
    assert.equal(w.asked, 0)
  })
})

describe('the keys', () => {
  test('are asked for once for a burst, and again after an hour', async () => {
    const w = world()
    const token = signJwt(first, w.claims({ exp: Math.floor(w.clock.now() / 1000) + 90_000 }))
    const words = await Promise.all(Array.from({ length: 100 }, () => w.verdict(token)))
    assert.deepEqual([new Set(words), w.asked], [new Set(['ok']), 1])
    await w.clock.advance(3_599_000)
    assert.deepEqual([await w.verdict(token), w.asked], ['ok', 1])
    await w.clock.advance(2_000)
    assert.deepEqual([await w.verdict(token), w.asked], ['ok', 2])
  })

  test('that were rotated are found by the first token of the new one, and the old one holds no more', async () => {
    const w = world()
    assert.equal(await w.verdict(signJwt(first, w.claims())), 'ok')
    w.keys = [second]
    await w.clock.advance(60_000)
    assert.equal(await w.verdict(signJwt(second, w.claims())), 'ok')
    assert.equal(await w.verdict(signJwt(first, w.claims())), 'signature')
  })

  test('are asked for at most twice a minute, however many keys are invented', async () => {
    const w = world()
    for (let n = 0; n < 60; n++) {
      const invented = { ...stranger, id: `invented-${n}` }
      assert.equal(await w.verdict(signJwt(invented, w.claims())), 'signature')
      await w.clock.advance(1_000)
    }
    assert.equal(w.asked, 2)
  })

  test('that cannot be had are no verdict: that is transient, and a later try asks again', async () => {
    const answers: (() => Response | Promise<Response>)[] = [
      () => new Response('', { status: 503 }),
      () => new Response('<html>'),
      () => Response.json({ keys: 'none' }),
      () => Response.json({ keys: [], more: 'x'.repeat(200_000) }),
      () => Promise.reject(new TypeError('fetch failed')),
    ]
    for (const answer of answers) {
      const w = world()
      w.answer = answer
      const token = signJwt(first, w.claims())
      const away = { kind: 'transient', code: 'push-keys-away' }
      await assert.rejects(w.tokens.verify(token), away)
      w.answer = undefined
      await assert.rejects(w.tokens.verify(token), away, 'it is not asked again at once')
      assert.equal(w.asked, 1)
      await w.clock.advance(6_000)
      assert.equal(await w.verdict(token), 'ok')
    }
  })

  test('are given up after some seconds of silence', async () => {
    const w = world()
    w.answer = () => new Promise(() => {})
    const verdict = assert.rejects(w.tokens.verify(signJwt(first, w.claims())), { code: 'push-keys-away' })
    await w.clock.advance(6_000)
    await verdict
  })

  test('that were had are used for a day while newer ones cannot be had; an unknown one then waits', async () => {
    const w = world()
    const token = signJwt(first, w.claims({ exp: Math.floor(w.clock.now() / 1000) + 900_000 }))
    assert.equal(await w.verdict(token), 'ok')
    w.answer = () => new Response('', { status: 500 })
    await w.clock.advance(20 * 3_600_000)
    assert.equal(await w.verdict(token), 'ok')
    await assert.rejects(w.tokens.verify(signJwt(second, w.claims())), { code: 'push-keys-away' })
    await w.clock.advance(5 * 3_600_000)
    await assert.rejects(w.tokens.verify(token), { code: 'push-keys-away' })
  })
})
