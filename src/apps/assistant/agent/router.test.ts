import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { assertLinear } from '../../../base/growth.suite.ts'
import {
  describedMessage,
  type RoutingRule,
  routeMessage,
  routingRule,
  routingRules,
  testRoute,
} from './router.ts'

function rule(name: string, match: object, more: object = { profile: 'shop' }): RoutingRule {
  return routingRule.parse({ name, match, ...more })
}

const mail = (over: Partial<Parameters<typeof describedMessage>[0]> = {}) =>
  describedMessage({ from: 'Ann <Ann@Shop.Example.com>', subject: 'Where is Order 4711?', ...over })

function routed(match: object, over: Parameters<typeof mail>[0] = {}): boolean {
  return routeMessage(mail(over), [rule('one', match)]).route === 'agent'
}

describe('a rule', () => {
  test('fits by the whole address of the sender, without case, and by nothing like it', () => {
    assert.ok(routed({ sender_email: 'ann@shop.example.com' }))
    assert.ok(routed({ sender_email: ['bob@example.com', 'ANN@SHOP.EXAMPLE.COM'] }))
    for (const other of ['nn@shop.example.com', 'ann@shop.example.com.evil.example', 'ann@shop.example.co']) {
      assert.ok(!routed({ sender_email: other }), other)
    }
  })

  test('fits by the domain of the sender or one above it, and not by its letters', () => {
    for (const domain of ['shop.example.com', 'example.com', '@Example.com']) {
      assert.ok(routed({ sender_domain: domain }), domain)
    }
    for (const from of ['x@notexample.com', 'x@example.com.evil.example', 'example.com@evil.example']) {
      assert.ok(!routed({ sender_domain: 'example.com' }, { from }), from)
    }
  })

  test('fits by a text in the subject, which is no pattern', () => {
    assert.ok(routed({ subject_contains: 'order 4711' }))
    assert.ok(!routed({ subject_contains: 'order .*' }))
    assert.ok(routed({ subject_contains: '.*' }, { subject: 'a .* b' }))
  })

  test('fits by a header that is there, and by what stands in it', () => {
    const headers = [['X-Helpdesk', 'Crisp/2'] as const]
    assert.ok(routed({ header_match: { name: 'x-helpdesk' } }, { headers }))
    assert.ok(routed({ header_match: { name: 'X-Helpdesk', contains: 'crisp' } }, { headers }))
    assert.ok(!routed({ header_match: { name: 'x-helpdesk', contains: 'zendesk' } }, { headers }))
    assert.ok(!routed({ header_match: { name: 'x-other' } }, { headers }))
  })

  test('fits by who wrote a forwarded mail first', () => {
    const text = '---------- Forwarded message ---------\nFrom: Cy <cy@client.example>\n\nhello'
    assert.ok(routed({ forwarded_from: 'cy@client.example' }, { text }))
    assert.ok(routed({ forwarded_from: 'client.example' }, { text }))
    assert.ok(!routed({ forwarded_from: 'lient.example' }, { text }))
    assert.ok(!routed({ forwarded_from: 'client.example' }, { from: 'x@client.example' }))
  })

  test('fits only where all that it names holds', () => {
    const both = { sender_domain: 'example.com', subject_contains: 'order' }
    assert.ok(routed(both))
    assert.ok(!routed(both, { subject: 'hello' }))
    assert.ok(!routed(both, { from: 'a@b.example' }))
  })

  test('that names nothing, an unknown condition, or a route without its profile is refused', () => {
    const wrong = [
      { name: 'a', match: {}, profile: 'p' },
      { name: 'a', match: { sender: 'x' }, profile: 'p' },
      { name: 'a', match: { all: false }, profile: 'p' },
      { name: 'a', match: { all: true } },
      { name: 'a', match: { all: true }, route: 'pipeline', profile: 'p' },
      { name: '', match: { all: true }, profile: 'p' },
      { name: 'a', match: { header_match: { name: 'x: y' } }, profile: 'p' },
      { name: 'a', match: { subject_contains: [] }, profile: 'p' },
    ]
    for (const one of wrong) assert.ok(!routingRule.safeParse(one).success, JSON.stringify(one))
    assert.ok(
      !routingRules.safeParse(Array(201).fill({ name: 'a', match: { all: true }, profile: 'p' })).success,
    )
  })
})

describe('of several rules', () => {
  const rules = [
    rule('vip', { sender_email: 'boss@example.com' }, { route: 'pipeline' }),
    rule('orders', { subject_contains: 'order' }, { profile: 'shop' }),
    rule('rest', { all: true }, { profile: 'desk' }),
  ]

  test('the first that fits counts, whatever comes later', () => {
    assert.deepEqual(routeMessage(mail(), rules), { route: 'agent', profile: 'shop', rule: 'orders' })
    const boss = { from: 'boss@example.com', subject: 'order!' }
    assert.deepEqual(routeMessage(mail(boss), rules), { route: 'pipeline' })
    assert.deepEqual(routeMessage(mail({ subject: 'hi' }), rules), {
      route: 'agent',
      profile: 'desk',
      rule: 'rest',
    })
    assert.deepEqual(routeMessage(mail(), []), { route: 'pipeline' })
  })

  test('the tester says which fits and why, and agrees with the route', () => {
    const tested = testRoute(mail(), rules)
    assert.deepEqual(tested, {
      route: 'agent',
      profile: 'shop',
      rule: 'orders',
      why: [
        'vip does not fit: the sender ann@shop.example.com is not boss@example.com.',
        'orders fits: the subject contains order.',
      ],
    })
    assert.deepEqual(
      testRoute(mail({ subject: 'x' }), rules.slice(0, 2)).why.at(-1),
      'No rule fits: it is sorted like all mail.',
    )
    const odd = testRoute(mail({ from: 'a\n\u202eb@evil.example' }), rules)
    assert.ok(odd.why.every((line) => !/[\n\u202e]/.test(line)))
  })

  test('a mail of any length is routed in time that grows with it and no faster', () => {
    const many = Array.from({ length: 100 }, (_, n) =>
      rule(`r${n}`, { subject_contains: `${'ab'.repeat(50)}${n}`, forwarded_from: `x${n}.example` }),
    )
    assertLinear({
      sizeMax: 40_000,
      make: (size) => {
        const text = `${'From: a@b.c\n'.repeat(size / 20)}${'ab'.repeat(size)}`
        return mail({ subject: 'ab'.repeat(size), text })
      },
      work: (message) => void routeMessage(message, many),
    })
  })
})
