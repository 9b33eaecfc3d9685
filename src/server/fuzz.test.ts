import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import fc from 'fast-check'
import { startCore, withToken } from './server.suite.ts'

/** Routes that throw on purpose are left out: what is asked is whether a request alone can break something. */
const PATHS = [
  '/api/things',
  '/api/things/',
  '/api/sync',
  '/api/overview',
  '/api/files/',
  '/api/sign-in',
  '/api/tickets',
  '/ticket/',
]

const core = await startCore()
after(async () => {
  await core.close()
})

const text = fc.oneof(fc.string({ unit: 'binary', maxLength: 40 }), fc.string({ maxLength: 40 }))
const piece = fc.oneof(
  text.map((one) => encodeURIComponent(one.toWellFormed())),
  fc.constantFrom(
    '%',
    '%00',
    '%ff',
    '..',
    '%2e%2e',
    '%2F',
    '\\',
    ':',
    '*',
    '__proto__',
    'constructor',
    '{id}',
  ),
)
const path = fc
  .tuple(fc.constantFrom(...PATHS, '/', '/api/', '/x/'), fc.array(piece, { maxLength: 3 }))
  .map(([start, rest]) => start + rest.join('/'))
const name = fc.constantFrom('limit', 'state', 'tag', 'q', '__proto__', 'lastEventId')
const query = fc.array(fc.tuple(fc.oneof(name, piece), piece), { maxLength: 4 })
const headerValue = fc.string({ maxLength: 40 }).map((one) => one.replaceAll(/[^\x20-\x7e]/g, '').trim())
const headerName = fc.constantFrom(
  ...['host', 'origin', 'authorization', 'cookie', 'if-none-match', 'content-type', 'x-tidemark'],
  ...['last-event-id', 'sec-fetch-site', 'accept-encoding', 'x-forwarded-proto', 'range', 'content-length'],
)
const usual = fc.constant({ 'x-tidemark': '1', 'content-type': 'application/json' })
const headers = fc.oneof(usual, fc.dictionary(headerName, headerValue, { maxKeys: 4 }))
const body = fc.oneof(
  fc.json({ maxDepth: 5 }),
  text,
  fc.record({ id: fc.anything(), name: fc.anything() }).map((one) => JSON.stringify(one, bigints) ?? ''),
  fc.integer({ min: 0, max: 5_000 }).map((depth) => '['.repeat(depth)),
)
const method = fc.constantFrom('GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS')

function bigints(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value
}

const anyRequest = fc.record({ path, query, headers, body, method }).map((one) => {
  const search = one.query.map(([key, value]) => `${key}=${value}`).join('&')
  const hasBody = one.method !== 'GET' && one.method !== 'HEAD'
  const init = { method: one.method, headers: one.headers, ...(hasBody ? { body: one.body } : {}) }
  return { path: search ? `${one.path}?${search}` : one.path, init }
})

function check(response: Response, what: string): void {
  assert.ok(response.status < 500, `${what} gave ${response.status}`)
  if (response.status < 400 || response.headers.get('content-type')?.startsWith('text/html')) return
  assert.match(response.headers.get('content-type') ?? '', /^application\/problem\+json/, what)
}

test('no request gives a 5xx, and every refusal is a problem', async () => {
  const property = fc.asyncProperty(anyRequest, async ({ path: target, init }) => {
    for (const sent of [init, withToken(init)]) {
      let request: Request
      try {
        request = new Request(`http://localhost${target}`, sent)
      } catch {
        // What cannot be said in a Request is left to e2e/api, which asks a whole server on its socket.
        continue
      }
      const response = await core.server.app.fetch(request, undefined)
      check(response, `${init.method} ${target}`)
      await response.body?.cancel()
    }
  })
  await fc.assert(property, { numRuns: 1_000 })
  assert.deepEqual(core.errors, [])
})
