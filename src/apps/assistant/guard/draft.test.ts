import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { assertLinear } from '../../../base/growth.suite.ts'
import type { ContextPassage, VisibleMessage } from '../contract.ts'
import { visibleMessage } from '../text/visible.ts'
import { type DraftFacts, guardDraft } from './draft.ts'
import { referencesIn } from './references.ts'
import { withoutSecrets } from './secrets.ts'

function mail(id: string, from: string, text: string): VisibleMessage {
  const bytes = Buffer.from(text)
  return visibleMessage({
    id,
    threadId: 't',
    labelIds: [],
    internalMs: 0,
    headers: [
      ['From', from],
      ['To', 'jonas@weber.example'],
    ],
    parts: [{ mimeType: 'text/plain', fileName: '', headers: [], bytes, sizeBytes: bytes.length }],
  })
}

function passage(text: string, url = ''): ContextPassage {
  return { title: 'mail: x', source: 'mail', documentId: 1, url, text }
}

const ANSWERED = mail(
  '1',
  'Ann <ann@shop.example>',
  'See https://shop.example/offer?id=7 or call +49 40 1234567. Our account: DE89 3704 0044 0532 0130 00.',
)
const FACTS: DraftFacts = {
  thread: [ANSWERED],
  answered: ANSWERED,
  context: [
    passage('Hall booked, see https://hall.example/plan. Ask eve@hall.example.', 'https://drive.example/d/1'),
  ],
  owner: { name: 'Jonas', address: 'jonas@weber.example' },
}

function guarded(text: string, facts: Partial<DraftFacts> = {}): string {
  return guardDraft(text, { ...FACTS, ...facts }).text
}

describe('a draft keeps', () => {
  const kept = [
    'I read https://shop.example/offer?id=7, thank you.',
    'The plan is at https://hall.example/plan (https://drive.example/d/1).',
    '"https://hall.example/plan", <https://hall.example/plan>, (https://hall.example/plan); *https://hall.example/plan*.',
    "Here is shop.example's page: 'https://hall.example/plan'.",
    'I shall ask eve@hall.example or ann@shop.example.',
    'I will call 040 1234567 on 17.11.2026 at 10:30, or on 2026-11-18.',
    'Bis ۱۴۰۵/۰۸/۲۷ or ٢٠٢٦/١١/١٨, 40 m² and 10⁶ of them.',
    'I paid 1.234.567,00 EUR to DE89370400440532013000 in 2025-2026.',
    'Order 4711, room 12, z.B. am 3.4., node.js and report.pdf are fine. Ok.So what.',
    'My mail is jonas@weber.example, our site shop.example.',
    'The price is 5 < 7 and a > b.',
    '[TODO: the date of the meeting]',
  ]
  for (const text of kept) {
    test(text, () => {
      assert.deepEqual(guardDraft(text, FACTS), { text, removed: [] })
    })
  }

  test('what the user said themself: links, numbers and even a password', () => {
    const instruction = 'send him https://mine.example/x, my number 0170 5556667 and the password: Blue!77'
    const text = 'Here: https://mine.example/x, call 0170 5556667, the password is Blue!77.'
    assert.equal(guarded(text, { instruction }), text)
  })

  test('the sign-off of the user with its phone and page', () => {
    const style = {
      name: 'd',
      rules: [],
      signOff: 'Jonas\n+49 170 999 8877\nweber-archive.example',
      examples: [],
      language: '',
    }
    const text = 'Bye\nJonas\n+49 170 999 8877\nweber-archive.example'
    assert.equal(guarded(text, { style }), text)
  })
})

describe('a draft loses', () => {
  const lost: [what: string, text: string, left: string][] = [
    ['a link that nobody gave', 'See https://evil.example/x.', 'See [link removed].'],
    ['a known link with one more parameter', 'https://shop.example/offer?id=7&d=1', '[link removed]'],
    [
      'a known link with something put behind it that programs take for a part of it',
      "https://shop.example/offer?id=7'salary or https://shop.example/offer?id=7|90000 or https://shop.example/offer?id=7]x`{y}",
      '[link removed] or [link removed] or [link removed]',
    ],
    ['a port of a known host', 'shop.example:9000', '[link removed]'],
    ['a known host with a path in disguise', 'https://shop.example\\90000', '[link removed]'],
    ['a known link with another path', 'https://shop.example/Offer?id=7', '[link removed]'],
    [
      'a known host of somebody who only looks like it',
      'https://shop.example.evil.example',
      '[link removed]',
    ],
    ['a bare host', 'Visit evil-shop.com today', 'Visit [link removed] today'],
    ['a host with something put before it', 'hunter2.evil.photography', '[link removed]'],
    ['a path on a bare host', 'evil.whatever/x?y', '[link removed]'],
    ['a link without its scheme', 'see //evil.example/x', 'see [link removed]'],
    ['a link with odd slashes', 'https:\\\\evil.example/x', '[link removed]'],
    ['a link of full width', 'ｈｔｔｐｓ：／／ｅｖｉｌ．ｅｘａｍｐｌｅ／ｘ', '[link removed]'],
    ['a link with invisible letters', 'htt\u200bps://ev\u200bil.example/\u2060x', '[link removed]'],
    ['an address of a machine', 'http://10.0.0.1/x and 10.0.0.1/y', '[link removed] and [link removed]'],
    ['an image', 'Hi ![a](https://shop.example/offer?id=7)', 'Hi [image removed]'],
    [
      'an image by reference',
      '![a][1]\n\n[1]: https://evil.example',
      '[image removed]\n\n[1]: [link removed]',
    ],
    ['an image in HTML', 'Hi <img src="//evil.example/x">', 'Hi [image removed]'],
    ['a link in Markdown', '[our page](https://evil.example)', 'our page [link removed]'],
    ['a link in Markdown to anything', '[x](/relative?d=1)', 'x [link removed]'],
    ['markup', '<b>Hi</b><script>x</script>', 'Hix'],
    ['a scheme that runs something', 'javascript:alert(1)', '[link removed])'],
    ['a file in a link', 'data:text/html;base64,PHg+', '[link removed]'],
    ['a letter that is written already', 'mailto:ann@shop.example?body=x', '[link removed]'],
    ['an address of a stranger', 'Write to eve@evil.example', 'Write to [address removed]'],
    ['a phone number of a stranger', 'Call +44 7700 900 461', 'Call [number removed]'],
    ['a phone number in digits of another script', 'Call +٤٤ ٧٧٠٠ ٩٠٠ ٤٦١', 'Call [number removed]'],
    ['a phone number in letters of mathematics', 'Call +𝟒𝟒 𝟕𝟕𝟎𝟎 𝟗𝟎𝟎 𝟒𝟔𝟏', 'Call [number removed]'],
    [
      'a phone number in small digits',
      'Call ⁴⁴⁷⁷⁰⁰⁹⁰⁰⁴⁶¹ or ④④⑦⑦⓪⓪⑨⓪⓪',
      'Call [number removed] or [number removed]',
    ],
    ['a host in letters of mathematics', 'Visit 𝚎𝚟𝚒𝚕-𝚜𝚑𝚘𝚙.𝚌𝚘𝚖', 'Visit [link removed]'],
    ['a port of a machine', 'Open 10.0.0.1:8080', 'Open [link removed]'],
    ['an account of a stranger', 'Pay to GB29 NWBK 6016 1331 9268 19', 'Pay to [number removed]'],
    ['a long number', 'Card 4111 1111 1111 1111', 'Card [number removed]'],
    ['something encoded', 'aHVudGVyMiBpcyB0aGUgcGFzc3dvcmQ=', '[secret removed]'],
    ['a key', 'Use AKIAIOSFODNN7EXAMPLE now', 'Use [secret removed] now'],
    ['headers of its own', 'To: eve@evil.example\nBcc: x@y.example\nSubject: hi\n\nHello', 'Hello'],
  ]
  for (const [what, text, left] of lost) {
    test(what, () => {
      const { text: got, removed } = guardDraft(text, FACTS)
      assert.equal(got, left)
      assert.ok(removed.length > 0)
    })
  }

  test('secrets of other mails, even those that a passage gave', () => {
    const context = [
      passage('Your password is hunter2x. Your code: 482913. Reset: https://bank.example/reset?t=1'),
    ]
    const { text, removed } = guardDraft('hunter2x, 482913, https://bank.example/reset?t=1', {
      ...FACTS,
      context,
    })
    assert.equal(text, '[secret removed], [secret removed], [link removed]')
    assert.ok(!JSON.stringify(removed).includes('hunter2x'), 'what was removed is shown to people')
  })

  test('what somebody else in the thread wants to be repeated to the one who is answered', () => {
    const other = mail(
      '0',
      'Mallory <m@evil.example>',
      'Use GB29 NWBK 6016 1331 9268 19, m@evil.example, https://evil.example/p',
    )
    const text = 'Pay to GB29 NWBK 6016 1331 9268 19, ask m@evil.example, see https://evil.example/p'
    assert.equal(
      guarded(text, { thread: [other, ANSWERED] }),
      'Pay to [number removed], ask [address removed], see [link removed]',
    )
  })

  test('what is too long, visibly', () => {
    const { text, removed } = guardDraft('word '.repeat(10_000), FACTS)
    assert.ok(text.length < 20_100)
    assert.match(text, /\[TODO: .* cut\]$/)
    assert.equal(removed[0]?.code, 'length')
  })
})

describe('whatever a model writes', () => {
  const piece = fc.oneof(
    fc.webUrl(),
    fc.emailAddress(),
    fc.constantFrom(
      'https://shop.example/offer?id=7',
      '![',
      '](',
      ')',
      '[',
      ']',
      '<',
      '>',
      ' ',
      '\n',
      'www.',
      '//',
      'http:',
      '@',
      '.com',
      '%',
      '\u200b',
    ),
    fc.string({ unit: 'grapheme', maxLength: 8 }),
  )
  const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(''))

  test('no link or address is left that was not given', () => {
    const given = new Set(['shop.example/offer?id=7', 'shop.example', 'weber.example'])
    fc.assert(
      fc.property(text, (draft) => {
        const left = referencesIn(guarded(draft)).filter(({ kind }) => kind === 'link' || kind === 'address')
        assert.deepEqual(
          left.filter(({ key }) => !given.has(key) && !key.endsWith('@shop.example')),
          [],
        )
      }),
      { numRuns: 300 },
    )
  })

  test('guarding it again changes nothing', () => {
    fc.assert(
      fc.property(text, (draft) => {
        const once = guarded(draft)
        assert.equal(guarded(once), once)
      }),
      { numRuns: 200 },
    )
  })
})

describe('secrets', () => {
  const found: [text: string, secret: string][] = [
    ['Your password is: Tr0ub4dor&3', 'Tr0ub4dor&3'],
    ['Passwort: Geheim!2', 'Geheim!2'],
    ['Mot de passe : Soleil99', 'Soleil99'],
    ['La contraseña es Luna-77.', 'Luna-77'],
    ['G-482913 is your Google verification code.', 'G-482913'],
    ['Use 739 204 to verify your login. Code: 739 204', '739 204'],
    ['Ihr Bestätigungscode lautet 55120', '55120'],
    ['PIN: 4821', '4821'],
    ['key AKIAIOSFODNN7EXAMPLE here', 'AKIAIOSFODNN7EXAMPLE'],
    ['token ghp_16C7e42F292c6912E7710c838347Ae178B4a', 'ghp_16C7e42F292c6912E7710c838347Ae178B4a'],
    ['-----BEGIN PRIVATE KEY-----\nabc\n-----END PRIVATE KEY-----', 'abc'],
  ]
  for (const [text, secret] of found) {
    test(`are found: ${text.split('\n')[0]}`, () => {
      assert.ok(!withoutSecrets(text).text.includes(secret), withoutSecrets(text).text)
    })
  }

  test('are not seen in ordinary sentences', () => {
    const ordinary = [
      'The password is required for the portal.',
      'I forgot my password, can you reset it?',
      'We meet on 12 March 2026 at 10:30 in room 1204.',
      'Invoice 20931 over 184.60 is due.',
      'The pin board is in the hall. My cousin pinned it.',
    ]
    for (const text of ordinary) assert.deepEqual(withoutSecrets(text), { text, secrets: [] })
  })

  test('are looked for in time that grows with the text', () => {
    for (const piece of [
      'password is ',
      'code 1 ',
      '1 2 3 4 5 ',
      'a.b.',
      '[![',
      'https:',
      'verification \n',
    ]) {
      assertLinear({
        sizeMax: 24_000,
        make: (size) => piece.repeat(Math.ceil(size / piece.length)),
        work: (text) => {
          withoutSecrets(text)
          referencesIn(text)
        },
      })
    }
  })
})
