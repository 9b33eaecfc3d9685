import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { TidemarkError } from './errors.ts'
import { isSecretKey, MASK, redactFields, redactText, redactValue } from './redaction.ts'

const SECRET = 'hunter2-s3cr3t-Value'

describe('a text hides', () => {
  const texts: string[] = [
    `Authorization: Bearer ${SECRET}`,
    `got 401 with Bearer ${SECRET} twice`,
    `Basic ${SECRET}==`,
    `GET /x?access_token=${SECRET}&page=2`,
    `refresh_token=${SECRET}`,
    `client_secret=${SECRET}; grant_type=refresh_token`,
    `{"access_token": "${SECRET}", "expires_in": 3600}`,
    `{\\"refresh_token\\":\\"${SECRET}\\"}`,
    `{'password': '${SECRET}'}`,
    `password=${SECRET}`,
    `postgres://me:${SECRET}@db.example/tidemark`,
    `cannot connect to postgres://me:p@${SECRET}@db.example/tidemark today`,
    `amqp://:${SECRET}@queue`,
    `Cookie: sid=${SECRET}; theme=dark`,
    `set-cookie: a=${SECRET}`,
    `"authorization":"${SECRET} x"`,
    `https://bucket.s3.amazonaws.com/k?X-Amz-Signature=${SECRET}&X-Amz-Date=1`,
    `https://acct.blob.core.windows.net/c?sv=1&sig=${SECRET}`,
    `https://x.sharepoint.com/upload?tempauth=${SECRET}`,
    `x-api-key=${SECRET}`,
    `-----BEGIN RSA PRIVATE KEY-----\n${SECRET}\n-----END RSA PRIVATE KEY-----`,
    `eyJhbGciOiJI.eyJzdWIiOi${SECRET}.sig`,
    `ya29.a0Af${SECRET}`,
    `key 1//0gabcdefghijklmnopqrst${SECRET}`,
    `sk-proj-0123456789${SECRET}`,
    `client_secret = ${SECRET}`,
    `Invalid TOML document: unrecognized value\n\n1:  [gmail]\n2:  client_secret = ${SECRET}\n                    ^`,
    `password: ${SECRET} and words`,
    `  refresh_token : ${SECRET}, more`,
    `the server said password: ${SECRET}, and hung up`,
    `login failed (api_key = ${SECRET})`,
    `token:${SECRET}`,
    `password = "it's ${SECRET}"`,
    `{'password': 'say "${SECRET}"'}`,
    `"client_secret": "a\\"${SECRET}"`,
    `client_secret = """${SECRET}`,
    `client_secret = '''\nfirst line\n${SECRET}''' is wrong`,
    `secret={"inner":"${SECRET}"}`,
    `{"uploadUrl":"https://up.1drv.com/up/${SECRET}","x":1}`,
    `"@microsoft.graph.downloadUrl":"https://x.1drv.com/${SECRET}"`,
    `webhook_url = https://hooks.example/${SECRET}`,
    `api key: ${SECRET}`,
    `master.key: ${SECRET}`,
    `device_code=${SECRET}`,
    `client_secret%3D${SECRET}`,
    `GET /callback?state=1&code=${SECRET}`,
    `http://127.0.0.1:4141/sign-in#mwjr5wg6.kbFGkTMxGgQgTgPl.${SECRET}`,
    `GET /ticket/SQlYSu6a0r3L${SECRET}`,
    `the client GOCSPX-${SECRET} is unknown`,
    `abc8Q~0123456789${SECRET} is no id`,
  ]
  for (const text of texts) {
    test(text.replaceAll(SECRET, '…').replaceAll('\n', ' '), () => {
      const clean = redactText(text)
      assert.ok(!clean.includes(SECRET), clean)
      assert.ok(clean.includes(MASK), clean)
    })
  }

  test('the same however often it is cleaned', () => {
    for (const text of texts) assert.equal(redactText(redactText(text)), redactText(text))
  })
})

describe('a text keeps', () => {
  const texts = [
    'fetched 12 messages of me@example.com in 250 ms',
    'the token bucket holds 12 tokens',
    'basic auth was refused',
    'see https://example.com/a/b?page=2',
    'connecting to postgres://me@db.example/tidemark',
    'job #12 mail.fetch failed: 404 not found',
    'signature mismatch',
    'a secret stays a secret',
    'the key: none was made',
    'failed with code=ENOENT',
    'see /sign-in and /ticket/short',
    'the url: http://127.0.0.1/x',
    'tokens: 12',
    'the refill is 5 tokens = 1 call',
  ]
  for (const text of texts) {
    test(text, () => {
      assert.equal(redactText(text), text)
    })
  }

  test('what stands around a secret', () => {
    assert.equal(redactText('GET /x?access_token=abc&page=2'), `GET /x?access_token=${MASK}&page=2`)
    assert.equal(redactText('postgres://me:pw@db/t is away'), `postgres://me:${MASK}@db/t is away`)
  })

  test('its beginning when it is endless', () => {
    const clean = redactText('x'.repeat(1_000_000))
    assert.ok(clean.length < 20_000)
    assert.match(clean, /1000000 characters/)
  })
})

describe('a secret that stands behind its name', () => {
  const name = fc.constantFrom(
    ...['client_secret', 'password', 'refresh_token', 'api-key', 'CLIENT_SECRET', 'gmail.client_secret'],
    ...['accessToken', 'master_key', 'passphrase', 'server.token', '"token"', "'db_password'"],
  )
  const sign = fc.constantFrom('=', ': ', ' = ', ' : ', ' =', ':\t', '  =  ')
  const word = fc.stringMatching(/^[\w~.+/-]{6,40}$/).filter((text) => /\d/.test(text))
  const line = fc.stringMatching(/^[\x21\x23-\x26\x28-\x5b\x5d-\x7e][\x20-\x7e]{6,40}$/)

  test('is hidden within any text, whatever stands between them', () => {
    const around = fc.constantFrom('', 'it failed: ', '{', 'a\nb ', '(', '3:  ', '?x=1&')
    fc.assert(
      fc.property(
        around,
        name,
        sign,
        word,
        fc.constantFrom('', ', more', '\n', ' words', ')'),
        (...parts) => {
          const [before, key, between, secret, after] = parts
          const clean = redactText(`${before}${key}${between}${secret}${after}`)
          assert.ok(!clean.includes(secret), clean)
        },
      ),
    )
  })

  test('is hidden to the end of a line of settings, whatever it is made of', () => {
    const spaced = sign.filter((text) => /\s/.test(text))
    fc.assert(
      fc.property(fc.constantFrom('', '  ', '2:  '), name, spaced, line, (before, key, between, secret) => {
        const clean = redactText(`[gmail]\n${before}${key}${between}${secret}\nport = 1`)
        assert.ok(!clean.includes(secret.slice(0, -1)), clean)
        assert.ok(clean.endsWith('\nport = 1'), clean)
      }),
    )
  })

  test('is hidden between quotes of either kind, whatever stands between them', () => {
    fc.assert(
      fc.property(name, sign, fc.constantFrom('"', "'"), fc.string({ minLength: 4 }), (...parts) => {
        const [key, between, quote, text] = parts
        const secret = `${text.replaceAll(/[\r\n\\\u2028\u2029]/g, '')}-5ecret`.replaceAll(quote, '')
        const clean = redactText(`x ${key}${between}${quote}${secret}${quote} y`)
        assert.ok(!clean.includes('5ecret'), clean)
      }),
    )
  })
})

describe('a value hides', () => {
  test('fields with secret names at any depth, in any spelling', () => {
    const names = [
      'password',
      'PASSWORD',
      'dbPassword',
      'Authorization',
      'proxy-authorization',
      'cookie',
      'Set-Cookie',
      'access_token',
      'accessToken',
      'refresh_token',
      'id_token',
      'clientSecret',
      'client_secret',
      'apiKey',
      'api-key',
      'x-api-key',
      'private_key',
      'secretAccessKey',
      'credentials',
      'code_verifier',
      'uploadUrl',
    ]
    for (const name of names) {
      assert.ok(isSecretKey(name), name)
      const text = JSON.stringify(redactValue({ a: [{ b: { [name]: SECRET, x: 1 } }] }))
      assert.ok(!text.includes(SECRET), name)
      assert.ok(text.includes(MASK), name)
    }
  })

  test('secret fields that hold lists, objects or numbers', () => {
    assert.deepEqual(
      redactValue({ cookies: [{ a: SECRET }], credentials: { user: SECRET }, password: 1234 }),
      {
        cookies: MASK,
        credentials: MASK,
        password: MASK,
      },
    )
  })

  test('secrets inside texts, errors, causes, maps, headers and addresses', () => {
    const error = new TidemarkError(`refused: Bearer ${SECRET}`, {
      kind: 'auth',
      cause: Object.assign(new Error(`password=${SECRET}`), {
        config: { headers: { authorization: SECRET } },
      }),
    })
    const value = {
      error,
      map: new Map([['token', SECRET]]),
      headers: new Headers({ authorization: SECRET, accept: 'text/plain' }),
      url: new URL(`postgres://me:${SECRET}@db/x`),
      bytes: Buffer.from(SECRET),
    }
    const text = JSON.stringify(redactValue(value))
    assert.ok(!text.includes(SECRET), text)
    assert.match(text, /"kind":"auth"/)
    assert.match(text, /"accept":"text\/plain"/)
  })

  test('nothing but the secrets: counts, flags and empty values stay', () => {
    const value = {
      tokens: 12,
      hasToken: true,
      token: null,
      password: '',
      name: 'inbox',
      key: 'schedule:nightly',
    }
    assert.deepEqual(redactValue(value), value)
  })

  test('without touching the original', () => {
    const value = { a: { password: SECRET }, list: [`token=${SECRET}`] }
    const before = structuredClone(value)
    redactValue(value)
    assert.deepEqual(value, before)
  })
})

describe('a value ends', () => {
  test('where it turns in a circle, and what is only shared is shown twice', () => {
    const shared = { n: 1 }
    const value: Record<string, unknown> = { a: shared, b: shared }
    value.self = value
    assert.deepEqual(redactFields(value), { a: { n: 1 }, b: { n: 1 }, self: '[circular]' })
  })

  test('where it is too deep or too long', () => {
    let deep: unknown = SECRET
    for (let i = 0; i < 100; i++) deep = { deep }
    assert.match(JSON.stringify(redactValue(deep)), /too deep/)
    assert.equal((redactValue(Array(1_000).fill(1)) as unknown[]).length, 201)
  })

  test('as JSON, whatever was put in', () => {
    fc.assert(
      fc.property(
        fc.anything({ withBigInt: true, withMap: true, withSet: true, withDate: true, withTypedArray: true }),
        (value) => {
          assert.doesNotThrow(() => JSON.stringify(redactValue(value)))
        },
      ),
    )
  })

  test('without its secret, wherever in a tree that stands', () => {
    const tree = fc.letrec((tie) => ({
      node: fc.oneof(
        { depthSize: 'small' },
        fc.record({ n: fc.integer(), password: fc.constant(SECRET) }),
        fc.record({ text: fc.constant(`call failed: access_token=${SECRET}`), more: tie('node') }),
        fc.array(tie('node'), { maxLength: 3 }),
      ),
    })).node
    fc.assert(fc.property(tree, (value) => !JSON.stringify(redactValue(value) ?? null).includes(SECRET)))
  })
})
