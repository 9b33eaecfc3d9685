import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import type { VisibleMessage } from './contract.ts'
import { judgeSender, matchesAddress, matchesGlob } from './rules.ts'
import { visibleMessage } from './text/visible.ts'

function mail(from: string, headers: [string, string][] = []): VisibleMessage {
  return visibleMessage({
    id: 'm',
    threadId: 't',
    labelIds: [],
    internalMs: 0,
    headers: [['From', from], ...headers],
    parts: [],
  })
}

const NONE = { blacklist: [] }

describe('a message is automated', () => {
  const automated: [why: string, from: string, headers: [string, string][]][] = [
    ['it was submitted by a program', 'a@b.example', [['Auto-Submitted', 'auto-generated']]],
    ['it is bulk mail', 'a@b.example', [['Precedence', 'bulk']]],
    ['it came through a list', 'a@b.example', [['List-Id', '<l.b.example>']]],
    ['it offers to unsubscribe', 'a@b.example', [['LIST-UNSUBSCRIBE', '<mailto:x@y>']]],
    ['its sender wants no automatic answer', 'a@b.example', [['X-Auto-Response-Suppress', 'All']]],
    ['it has the mark of bulk mail', 'a@b.example', [['Feedback-ID', '1:2']]],
    ['it is a report of delivery', 'a@b.example', [['Return-Path', '<>']]],
    ['nobody reads answers', 'no-reply+77@shop.example', []],
    ['nobody reads answers in German', 'keine-antwort@amt.example', []],
    ['the mail system wrote it', 'MAILER-DAEMON@b.example', []],
    ['it has no sender', 'undisclosed', []],
  ]
  for (const [why, from, headers] of automated) {
    test(`if ${why}`, () => {
      const judged = judgeSender(mail(from, headers), NONE)
      assert.equal(judged.isAutomated, true)
      assert.equal(judged.reasons.length, 1)
    })
  }

  test('not if a person wrote it, even one whose name sounds like it', () => {
    for (const from of [
      'juno.replyson@b.example',
      'auto@haus.example',
      'nora.alerta@b.example',
      'bob@notifications.example',
    ]) {
      assert.deepEqual(judgeSender(mail(from, [['Auto-Submitted', 'no']]), NONE), {
        isAutomated: false,
        reasons: [],
        category: undefined,
      })
    }
  })

  test('and for information only if it is an answer of a machine or the user shut its sender out', () => {
    const away = judgeSender(mail('a@b.example', [['Auto-Submitted', 'auto-replied (vacation)']]), NONE)
    assert.equal(away.category, 'fyi')
    assert.equal(judgeSender(mail('x@spam.example'), { blacklist: ['*@spam.example'] }).category, 'fyi')
    assert.equal(judgeSender(mail('shop@b.example', [['Precedence', 'bulk']]), NONE).category, undefined)
  })
})

describe('a glob', () => {
  test('is an address, a part of one, or a domain with what is below it', () => {
    const yes: [string, string][] = [
      ['a@b.example', 'A@B.example'],
      ['*@b.example', 'any@b.example'],
      ['@b.example', 'any@b.example'],
      ['news*@*.example', 'newsletter@x.y.example'],
      ['b.example', 'x@mail.b.example'],
      ['?@b.example', 'x@b.example'],
    ]
    for (const [glob, address] of yes) assert.ok(matchesAddress(glob, address), `${glob} ${address}`)
    const no: [string, string][] = [
      ['b.example', 'x@notb.example'],
      ['*@b.example', 'x@b.example.evil'],
      ['', 'x@b.example'],
      ['a.c@b.example', 'abc@b.example'],
    ]
    for (const [glob, address] of no) assert.ok(!matchesAddress(glob, address), `${glob} ${address}`)
  })

  test('means what the same regular expression means', () => {
    const letters = fc.array(fc.constantFrom('a', 'b', '*', '?'), { maxLength: 8 })
    const text = fc.array(fc.constantFrom('a', 'b'), { maxLength: 10 })
    fc.assert(
      fc.property(letters, text, (glob, of) => {
        const pattern = glob.map((one) => (one === '*' ? '.*' : one === '?' ? '.' : one)).join('')
        const wanted = new RegExp(`^${pattern}$`).test(of.join(''))
        assert.equal(matchesGlob(glob.join(''), of.join('')), wanted)
      }),
      { numRuns: 300 },
    )
  })
})
