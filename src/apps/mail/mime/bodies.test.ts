import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TEXT_CHARS_MAX } from './limits.ts'
import { parseMessage } from './parse.ts'
import type { ParsedMessage } from './parsed.ts'

type TestPart = { type: string; text: string; disposition?: string }

function multipart(kind: string, parts: readonly TestPart[]): ParsedMessage {
  const lines = parts.flatMap(({ type, text, disposition }) => [
    ...['--b', `Content-Type: ${type}`],
    ...(disposition ? [`Content-Disposition: ${disposition}`] : []),
    ...['', text],
  ])
  return parseMessage(
    Buffer.from([`Content-Type: multipart/${kind}; boundary=b`, '', ...lines, '--b--'].join('\r\n')),
  )
}

const alternative = (plain: string, html: string): ParsedMessage =>
  multipart('alternative', [
    { type: 'text/plain', text: plain },
    { type: 'text/html', text: html },
  ])

describe('of alternatives', () => {
  test('HTML is shown where the plain text only says that HTML is needed', () => {
    const { text, unshown } = alternative(
      'This message needs an HTML viewer.',
      '<p>The concert is on Friday at eight, in the old town hall.</p><p>Bring your violin.</p>',
    )
    assert.match(text, /^The concert is on Friday/)
    assert.equal(unshown, 'This message needs an HTML viewer.')
  })

  test('HTML is shown where most of its words are missing in the plain text', () => {
    const { text, unshown } = alternative(
      'Your invoice\r\n\r\nView it online: https://example.com/invoices/view?id=1&utm_source=mail',
      '<h1>Your invoice</h1><table><tr><td>Strings for a cello</td><td>40 EUR</td></tr></table><a href="x">View it online</a>',
    )
    assert.equal(text, 'Your invoice\n\nStrings for a cello 40 EUR\n\nView it online')
    assert.equal(unshown, '')
  })

  test('plain text is shown where both say about the same, and what HTML says besides is searched', () => {
    const { text, unshown } = alternative(
      'Dear Ann,\r\nthe rehearsal of our quartet is on Monday\r\nat nine in the morning.',
      '<div>Dear Ann,</div><div>the rehearsal of our quartet is on Monday at nine in the morning.</div><div>Sent from a harpsichord</div>',
    )
    assert.match(text, /^Dear Ann,\nthe rehearsal/)
    assert.equal(unshown, 'Sent from a harpsichord')
  })

  test('plain text is shown where it says more', () => {
    const { text, unshown } = alternative(
      'The whole story, told in plain words.',
      '<p>Please see the text.</p>',
    )
    assert.equal(text, 'The whole story, told in plain words.')
    assert.equal(unshown, 'Please see the text.')
  })

  test('words that may be broken are whole', () => {
    const { text, unshown } = alternative(
      'Short',
      '<p>Der Haus&shy;meister hat den Schl&#8203;üssel, &#x2060;morgen</p>',
    )
    assert.equal(text, 'Der Hausmeister hat den Schlüssel, morgen')
    assert.equal(unshown, 'Short')
  })

  test('an empty one says nothing', () => {
    assert.equal(alternative(' ', '<p>html</p>').text, 'html')
    assert.equal(alternative('plain', '<p> </p>').text, 'plain')
  })

  test('what is searched besides is bounded, and takes nothing from what is shown', () => {
    const words = (prefix: string, length: number): string =>
      Array.from({ length }, (_, n) => `${prefix}${n}`).join(' \n')
    const { text, unshown, problems } = alternative(words('w', 150_000), words('<br>hypertext', 60_000))
    assert.equal(text.length, TEXT_CHARS_MAX)
    assert.ok(unshown.endsWith('hypertext59999') && unshown.length <= TEXT_CHARS_MAX)
    assert.match(problems.join(), /longer than 1,000,000 characters/)
  })
})

describe('text parts with a name', () => {
  const named = (type: string, disposition?: string): ParsedMessage =>
    multipart('mixed', [
      { type: 'text/plain', text: 'letter' },
      { type: `${type}; name="n.txt"`, text: 'inside', ...(disposition ? { disposition } : {}) },
    ])
  const cases: [type: string, disposition: string | undefined, isRead: boolean][] = [
    ['text/plain', 'inline; filename="n.txt"', true],
    ['text/plain', undefined, true],
    ['text/html', 'inline', true],
    ['text/html', undefined, true],
    ['text/x-patch', 'inline', true],
    ['text/x-patch', undefined, false],
    ['text/plain', 'attachment', false],
    ['text/html', 'attachment; filename="n.html"', false],
    ['text/vcard', 'inline', false],
    ['text/calendar', 'inline', false],
    ['application/pdf', 'inline', false],
  ]
  for (const [type, disposition, isRead] of cases) {
    test(`${type}, ${disposition ?? 'without a disposition'}: ${isRead ? 'read' : 'not read'}, and listed`, () => {
      const { text, attachments } = named(type, disposition)
      assert.equal(text, isRead ? 'letter\n\ninside' : 'letter')
      assert.deepEqual(
        attachments.map(({ content }) => Buffer.from(content).toString()),
        ['inside'],
      )
    })
  }
})
