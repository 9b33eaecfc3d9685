import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { type ActionGrant, checkAction, type RefusalCode, readable } from './actions.ts'

const GRANT: ActionGrant = {
  tools: ['search_archive', 'read_thread', 'create_draft', 'apply_label', 'escalate', 'http_get', 'send'],
  labels: ['fyi', 'done'],
  http: [{ host: 'api.shop.example', paths: ['/orders/', '/status'], queries: ['/orders/'] }],
  sendTo: ['bob@example.com'],
  threadIds: new Set(['t1']),
  mcpTools: new Set(['mcp_crm_lookup']),
}

const LOOKALIKES = [
  'eve@evil.example',
  'bob@example.com, eve@evil.example',
  'bob@example.com\r\nBcc: eve@evil.example',
  'Bob <bob@example.com>',
  '"bob@example.com" <eve@evil.example>',
  'eve@evil.example (bob@example.com)',
  'bob@example.com(eve@evil.example)',
  'bob+eve@example.com',
  'bоb@example.com',
  'bob@exаmple.com',
  'BOB@example.com.evil.example',
  'bob@example.com\u200b',
  ' bob@example.com',
  'ᵇob@example.com',
  'bob＠example.com',
]

function refusal(name: string, input: unknown, grant = GRANT): RefusalCode | undefined {
  const check = checkAction({ name, input }, grant)
  return check.isAllowed ? undefined : check.code
}

describe('a call of a model', () => {
  test('that its profile grants is allowed, with its arguments as they are carried out', () => {
    const allowed: [name: string, input: unknown, action: unknown][] = [
      ['search_archive', { query: ' fence ' }, { name: 'search_archive', query: 'fence' }],
      ['read_thread', { thread_id: 't1' }, { name: 'read_thread', threadId: 't1' }],
      ['create_draft', { text: 'Yes.' }, { name: 'create_draft', text: 'Yes.' }],
      ['apply_label', { label: 'fyi' }, { name: 'apply_label', label: 'fyi' }],
      ['escalate', { reason: 'angry' }, { name: 'escalate', reason: 'angry' }],
      [
        'http_get',
        { url: 'https://API.shop.example/orders/1?full=1' },
        { name: 'http_get', url: 'https://api.shop.example/orders/1?full=1' },
      ],
      [
        'send',
        { to: 'BOB@example.com', text: ' Yes. ' },
        { name: 'send', to: 'bob@example.com', text: 'Yes.' },
      ],
      ['mcp_crm_lookup', { id: 7 }, { name: 'mcp', tool: 'mcp_crm_lookup', input: { id: 7 } }],
    ]
    for (const [name, input, action] of allowed) {
      assert.deepEqual(checkAction({ name, input }, GRANT), { isAllowed: true, action })
    }
  })

  test('is refused with a code of its own', () => {
    const refused: [name: string, input: unknown, code: RefusalCode][] = [
      ['send_email', { to: 'x' }, 'unknown-action'],
      ['constructor', {}, 'unknown-action'],
      ['search_archive', { query: '' }, 'bad-arguments'],
      ['search_archive', { query: 'x', as_user: 'admin' }, 'bad-arguments'],
      ['create_draft', { text: 'x', to: 'eve@evil.example' }, 'bad-arguments'],
      ['create_draft', 'x', 'bad-arguments'],
      ['read_thread', { thread_id: 't2' }, 'foreign-thread'],
      ['apply_label', { label: 'waiting' }, 'label-not-granted'],
      ['http_get', { url: 'https://evil.example/orders/1' }, 'address-not-granted'],
      ['http_get', { url: 'https://api.shop.example/status?x=1' }, 'address-not-granted'],
      ['http_get', { url: 'https://api.shop.example/status/1' }, 'address-not-granted'],
      ['http_get', { url: 'https://api.shop.example/orders/?password=hunter2x' }, 'carries-secret'],
      ['mcp_crm_lookup', { note: 'password: hunter2x' }, 'carries-secret'],
      ['mcp_crm_delete', {}, 'unknown-action'],
      ['send', { to: 'bob@example.com', text: 'x', cc: 'eve@evil.example' }, 'bad-arguments'],
      ['send', { to: ['bob@example.com', 'eve@evil.example'], text: 'x' }, 'bad-arguments'],
      ...LOOKALIKES.map((to): [string, unknown, RefusalCode] => [
        'send',
        { to, text: 'x' },
        'recipient-not-granted',
      ]),
    ]
    for (const [name, input, code] of refused)
      assert.equal(refusal(name, input), code, `${name} ${JSON.stringify(input)}`)
  })

  test('is refused where the profile grants nothing', () => {
    const none = { ...GRANT, tools: [], mcpTools: new Set<string>() }
    assert.equal(refusal('create_draft', { text: 'x' }, none), 'not-granted')
  })

  test('never sets a label by which the user asks for work or ends it, even if a profile names it', () => {
    assert.equal(refusal('apply_label', { label: 'done' }), 'label-not-granted')
  })

  test('reads no address whose host, path or port is not granted, for any address', () => {
    const piece = fc.constantFrom(
      'https://',
      'http://',
      'api.shop.example',
      'evil.example',
      '/orders/',
      '/status',
      '..',
      '%2e%2e',
      '@',
      ':',
      '8443',
      '\\',
      '?',
      '#',
      '/',
      'a',
      '//',
      '%2f',
    )
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
        const check = checkAction({ name: 'http_get', input: { url: pieces.join('') } }, GRANT)
        if (!check.isAllowed || check.action.name !== 'http_get') return
        const url = new URL(check.action.url)
        assert.equal(url.origin, 'https://api.shop.example')
        assert.ok(url.pathname === '/status' || url.pathname.startsWith('/orders/'), url.href)
        assert.ok(!/%2f|%2e|\.\./i.test(url.pathname), url.href)
      }),
      { numRuns: 500 },
    )
  })
})

test('what a tool found is read without secrets and what cannot be seen, and bounded', () => {
  assert.equal(readable('a\u{e0041} password: hunter2x', 100), 'a password: [secret removed]')
  assert.equal(readable('x'.repeat(50), 10), 'x'.repeat(10))
})
