/** Odd headers: missing, doubled, malformed, huge, in raw 8-bit, and dates that nobody can believe. */
import { type Letter, mailDate } from './generate-letter.ts'
import { fromTemplate } from './generate-template.ts'

type Compose = (letter: Letter) => string

const HUGE_HEADER_CHARS = 90_000
const MANY_HEADERS = 600
const MANY_RECIPIENTS = 300
const YEAR_MS = 365 * 86_400_000

export const HEADER_ODDITIES = {
  'encoded-words': fromTemplate('encoded-words'),
  'encoded-words-broken': fromTemplate('encoded-words-broken'),
  'header-no-colon': fromTemplate('header-no-colon'),
  'header-odd-folding': fromTemplate('header-odd-folding'),
  'header-nul': fromTemplate('header-nul'),
  'header-8bit': fromTemplate('header-8bit'),
  'header-bare-cr': fromTemplate('header-bare-cr'),
  'header-repeated': fromTemplate('header-repeated'),
  'header-leading-from': (letter) =>
    `From MAILER-DAEMON Mon Jan 01 00:00:00 2001\r\n${letter.message(letter.text())}`,
  'header-comments': fromTemplate('header-comments'),
  'no-blank-line': (letter) => letter.message(letter.text()).replace('\r\n\r\n', '\r\n'),
  'no-headers': fromTemplate('no-headers'),
  'no-message-id': fromTemplate('no-message-id'),
  'duplicate-message-id': (letter) => letter.message(letter.text()),
  'no-from': fromTemplate('no-from'),
  'no-subject': fromTemplate('no-subject'),
  'empty-subject': fromTemplate('empty-subject'),
  'group-addresses': fromTemplate('group-addresses'),
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
  'date-two-digit-year': fromTemplate('date-two-digit-year'),
  'date-garbage': fromTemplate('date-garbage'),
  'date-missing': fromTemplate('date-missing'),
  'date-ancient': fromTemplate('date-ancient'),
  /** Arrives late: the mailbox dates it long before (see generate-timeline.ts). */
  'old-dated': (letter) => letter.message(letter.text()),
} satisfies Record<string, Compose>
