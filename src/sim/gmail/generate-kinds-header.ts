/** Odd headers: missing, doubled, malformed, huge, in raw 8-bit, and dates that nobody can believe. */
import { bytesIn, encodedWords } from './generate-charsets.ts'
import { type Letter, mailDate } from './generate-letter.ts'

type Compose = (letter: Letter) => string

const HUGE_HEADER_CHARS = 90_000
const MANY_HEADERS = 600
const MANY_RECIPIENTS = 300
const YEAR_MS = 365 * 86_400_000

export const HEADER_ODDITIES = {
  'encoded-words': (letter) =>
    letter.message(letter.text(), {
      subject: `${encodedWords('Grüße, 写真 и ещё кое-что, что не помещается в одно слово', { charset: 'utf-8', as: 'Q' })}`,
      from: `${encodedWords('Zoë Świątek', { charset: 'utf-8', as: 'B' })} <zoe@example.org>`,
    }),
  'encoded-words-broken': (letter) =>
    letter.message(letter.text(), {
      subject: `=?utf-8?B?4oKs4o?= =?utf-8?Q?=E2=82?= =?x-none?Q?what?= =?utf-8?B?###?=`,
    }),
  'header-no-colon': (letter) =>
    letter.message(letter.text(), { extra: ['This line has no colon at all', 'X-After: it goes on'] }),
  'header-odd-folding': (letter) =>
    letter.message(letter.text(), {
      extra: ['X-Folded:\r\n\tone\r\n \t \r\n  two', 'X-Empty:', ' : no name'],
    }),
  'header-nul': (letter) => letter.message(letter.text(), { extra: ['X-Nul: a\0b\0c', 'X-\0: d'] }),
  'header-8bit': (letter) =>
    letter.message(letter.text(), {
      subject: bytesIn('Überfällige Bücher', 'iso-8859-1'),
      extra: [`X-Raw: ${bytesIn('naïve café', 'utf-8')}`],
    }),
  'header-bare-cr': (letter) => letter.message(letter.text(), { extra: ['X-Bare: one\rX-Hidden: two'] }),
  'header-repeated': (letter) =>
    letter.message(letter.text(), { extra: ['Subject: A second subject', 'From: <second@example.net>'] }),
  'header-leading-from': (letter) =>
    `From MAILER-DAEMON Mon Jan 01 00:00:00 2001\r\n${letter.message(letter.text())}`,
  'header-comments': (letter) =>
    letter.message(letter.text(), {
      from: '(a comment) "Last, \\"First\\"" (nested (deep)) <odd."quoted"@example.net>',
    }),
  'no-blank-line': (letter) => letter.message(letter.text()).replace('\r\n\r\n', '\r\n'),
  'no-headers': (letter) => `\r\nOnly a body here, ${letter.plan.index}.\r\n`,
  'no-message-id': (letter) => letter.message(letter.text(), { messageId: null }),
  'duplicate-message-id': (letter) => letter.message(letter.text()),
  'no-from': (letter) => letter.message(letter.text(), { from: null }),
  'no-subject': (letter) => letter.message(letter.text(), { subject: null }),
  'empty-subject': (letter) => letter.message(letter.text(), { subject: '' }),
  'group-addresses': (letter) =>
    letter.message(letter.text(), {
      extra: ['Cc: undisclosed-recipients:;, The team: a@example.com, "B, b" <b@example.com>;'],
    }),
  'many-recipients': (letter) => {
    const addresses = Array.from(
      { length: MANY_RECIPIENTS },
      (_, at) => `"Member ${at}" <m${at}@club.example>`,
    )
    return letter.message(letter.text(), { extra: [`Cc: ${addresses.join(',\r\n ')}`] })
  },
  'huge-header': (letter) =>
    letter.message(letter.text(), {
      extra: [`X-Huge: ${'0123456789abcdef'.repeat(HUGE_HEADER_CHARS / 16)}`],
    }),
  'many-headers': (letter) =>
    letter.message(letter.text(), {
      extra: Array.from({ length: MANY_HEADERS }, (_, at) => `X-Many-${at}: value ${at}`),
    }),
  'date-future': (letter) =>
    letter.message(letter.text(), { date: mailDate(letter.plan.sentMs + 40 * YEAR_MS, '+0000') }),
  'date-two-digit-year': (letter) => letter.message(letter.text(), { date: 'Tue, 3 Feb 98 10:11:12 EST' }),
  'date-garbage': (letter) =>
    letter.message(letter.text(), { date: "yesterday, after 99:99 o'clock (maybe)" }),
  'date-missing': (letter) => letter.message(letter.text(), { date: null }),
  'date-ancient': (letter) => letter.message(letter.text(), { date: 'Thu, 01 Jan 1970 00:00:00 +0000' }),
  /** Arrives late: the mailbox dates it long before (see generate-timeline.ts). */
  'old-dated': (letter) => letter.message(letter.text()),
} satisfies Record<string, Compose>
