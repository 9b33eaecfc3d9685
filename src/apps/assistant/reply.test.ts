import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { MARKER, type Mailbox, type VisibleMessage } from './contract.ts'
import { recipientsOf, replyMime, replySubject, replyText, splitAtMarker } from './reply.ts'
import { visibleMessage } from './text/visible.ts'

const OWNER: Mailbox = { name: 'Jonas Weber', address: 'jonas@weber.example' }
const BASE = { owner: OWNER, key: 'abc123', nowMs: Date.UTC(2026, 10, 17, 9, 5, 3) }

function answered(headers: [string, string][]): VisibleMessage {
  return visibleMessage({ id: 'm', threadId: 't', labelIds: [], internalMs: 0, headers, parts: [] })
}

const PLAIN = answered([
  ['From', 'Ann <ann@friends.example>'],
  ['To', 'jonas@weber.example, bob@friends.example'],
  ['Cc', 'boss@friends.example'],
  ['Subject', 'Lunch'],
  ['Message-ID', '<2@friends.example>'],
  ['References', '<1@friends.example>'],
])

/** Headers by name, unfolded, and the text. */
function parse(mime: Uint8Array): { headers: [string, string][]; body: string } {
  const raw = Buffer.from(mime).toString('latin1')
  const at = raw.indexOf('\r\n\r\n')
  const lines = raw
    .slice(0, at)
    .replaceAll(/\r\n[ \t]/g, ' ')
    .split('\r\n')
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(': ')
    return [line.slice(0, colon), line.slice(colon + 2)]
  })
  return { headers, body: Buffer.from(raw.slice(at), 'base64').toString('utf8') }
}

function decodeWords(value: string): string {
  return value
    .replaceAll(/\?=\s+=\?/g, '?==?')
    .replaceAll(/=\?utf-8\?B\?([^?]*)\?=/g, (_, word: string) => Buffer.from(word, 'base64').toString('utf8'))
}

const NAMES = [
  'From',
  'To',
  'Subject',
  'Date',
  'Message-ID',
  'In-Reply-To',
  'References',
  'X-Tidemark-Draft',
  'MIME-Version',
  'Content-Type',
  'Content-Transfer-Encoding',
]

describe('the message of a draft', () => {
  test('answers in its thread, to the sender alone, with its key and the marker', () => {
    const { headers, body } = parse(replyMime({ ...BASE, answered: PLAIN, text: 'Gern, um eins? ☕' }))
    assert.deepEqual(headers, [
      ['From', '"Jonas Weber" <jonas@weber.example>'],
      ['To', '"Ann" <ann@friends.example>'],
      ['Subject', 'Re: Lunch'],
      ['Date', 'Tue, 17 Nov 2026 09:05:03 +0000'],
      ['Message-ID', '<tidemark.abc123@weber.example>'],
      ['In-Reply-To', '<2@friends.example>'],
      ['References', '<1@friends.example> <2@friends.example>'],
      ['X-Tidemark-Draft', 'abc123'],
      ['MIME-Version', '1.0'],
      ['Content-Type', 'text/plain; charset=utf-8'],
      ['Content-Transfer-Encoding', 'base64'],
    ])
    assert.equal(body, `\r\n${MARKER}\r\n\r\nGern, um eins? ☕\r\n`)
  })

  test('goes to Reply-To before From, and never to the owner', () => {
    const mail = answered([
      ['From', 'list@x.example'],
      ['Reply-To', 'real@x.example, JONAS@weber.example'],
    ])
    assert.deepEqual(recipientsOf(mail, OWNER), [{ name: '', address: 'real@x.example' }])
    const own = answered([
      ['From', 'jonas@weber.example'],
      ['To', 'ann@friends.example'],
    ])
    assert.deepEqual(recipientsOf(own, OWNER), [{ name: '', address: 'ann@friends.example' }])
  })

  test('has one Re:, whatever answers in other languages have added', () => {
    for (const subject of ['Lunch', 'Re: Lunch', 'RE: AW: Re[2]: Lunch', 'Antw: SV: Lunch']) {
      assert.equal(replySubject(subject), 'Re: Lunch')
    }
    assert.equal(replySubject('Re-think lunch'), 'Re: Re-think lunch')
  })

  test('without anybody to answer has no recipient', () => {
    const { headers } = parse(replyMime({ ...BASE, answered: answered([]), text: 'x' }))
    assert.ok(!headers.some(([name]) => ['To', 'Cc', 'Bcc', 'In-Reply-To'].includes(name)))
  })

  test('keeps subjects and names in any writing, in words that fit a line', () => {
    const subject = `Größe 📐 ${'日本語'.repeat(40)}`
    const mail = { ...PLAIN, subject, from: { name: 'Дмитрий', address: 'd@x.example' } }
    const mime = replyMime({ ...BASE, answered: mail, text: 'x' })
    const { headers } = parse(mime)
    assert.equal(decodeWords(headers.find(([name]) => name === 'Subject')![1]), `Re: ${subject}`)
    assert.equal(decodeWords(headers.find(([name]) => name === 'To')![1]), 'Дмитрий <d@x.example>')
    const head = Buffer.from(mime).toString('latin1').split('\r\n\r\n')[0]!
    for (const line of head.split('\r\n')) assert.ok(line.length <= 90, line)
  })

  test('has no header but its own, for any input', () => {
    const odd = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 40 }),
      fc
        .array(
          fc.constantFrom(
            '\r\n',
            '\n',
            '\r',
            'Bcc: x@evil.example',
            ' ',
            '"',
            '<',
            '>',
            '=?utf-8?Q?=0ABcc:x?=',
            '\u2028',
            '\0',
            'é',
            '\ud800',
            '@',
            ',',
          ),
          { maxLength: 12 },
        )
        .map((all) => all.join('')),
    )
    fc.assert(
      fc.property(
        fc.record({ subject: odd, name: odd, address: odd, id: odd, references: odd, text: odd, key: odd }),
        (input) => {
          const mail: VisibleMessage = {
            ...PLAIN,
            subject: input.subject,
            from: { name: input.name, address: input.address },
            messageId: input.id,
            references: input.references,
          }
          const owner = { name: input.name, address: OWNER.address }
          const mime = replyMime({
            ...BASE,
            owner,
            answered: mail,
            text: input.text,
            key: input.key,
          })
          const head = Buffer.from(mime).toString('latin1').split('\r\n\r\n')[0]!
          assert.match(head, /^[\x20-\x7e\r\n]*$/)
          assert.ok(!/\r(?!\n)|(?<!\r)\n/.test(head))
          const names = parse(mime).headers.map(([name]) => name)
          for (const name of names) assert.ok(NAMES.includes(name), name)
          assert.equal(new Set(names).size, names.length)
        },
      ),
      { numRuns: 300 },
    )
  })
})

describe('the marker', () => {
  test('parts the wish of the user from the draft, whatever the editor did to it', () => {
    const wanted = { above: 'shorter please', below: 'Dear Ann,\nyes.' }
    const texts = [
      'shorter please\n✂️\n\nDear Ann,\nyes.',
      'shorter please\r\n\r\n✂\r\nDear Ann,\r\nyes.',
      'shorter please\n --- ✂️ ---\nDear Ann,\nyes.',
      '<div dir="ltr">shorter please<div>✂️</div><div><br></div><div>Dear Ann,</div><div>yes.</div></div>',
      '<div>shorter please<br>\u2702\ufe0f<br>Dear Ann,<br>yes.</div>',
      '<div>shorter please</div><div><img data-emoji="✂️" class="an1" alt="✂️" src="x"></div><div>Dear Ann,<br>yes.</div>',
    ]
    for (const text of texts) assert.deepEqual(splitAtMarker(text), wanted, text)
  })

  test('that runs together with words still parts them', () => {
    assert.deepEqual(splitAtMarker('shorter ✂️ Dear Ann'), { above: 'shorter', below: 'Dear Ann' })
  })

  test('that is gone leaves nothing to split', () => {
    assert.equal(splitAtMarker('Dear Ann,\nyes.'), undefined)
  })

  test('of a draft parts nothing from all of its text, for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }), (text) => {
        const split = splitAtMarker(replyText(text))
        assert.equal(split?.above, '')
        assert.equal(replyText(split!.below), replyText(text))
      }),
      { numRuns: 300 },
    )
  })

  test('within what a model wrote is taken out, so that there is one', () => {
    assert.equal(replyText('one\n✂️\ntwo'), '\n✂️\n\none\ntwo\n')
  })
})
