/** Odd bodies: charsets, encodings, structures, line ends, hostile HTML and names of attachments. */

import { base64Lines, bytesIn, quotedPrintable, type TransferEncoding } from './generate-charsets.ts'
import type { Letter } from './generate-letter.ts'
import { mailDate } from './generate-letter.ts'
import {
  documentPart,
  multipart,
  numberedDocument,
  type Part,
  part,
  payload,
  textPart,
} from './generate-parts.ts'
import { fromTemplate } from './generate-template.ts'
import { encodingFor } from './generate-texts.ts'
import { type Language, WORDINGS } from './generate-words.ts'

type Compose = (letter: Letter) => string

const NESTING_LEVELS = 300
const MANY_PARTS = 120
const LONG_LINE_CHARS = 60_000
const LONG_NAME_CHARS = 3_000
const LARGE_LINES = 9_000
/** Of the large messages, so many are very large. */
const HUGE_SHARE = 0.1
const HUGE_LINES = 60_000

export const CONTENT_ODDITIES = {
  'charset-utf-8': inCharset('ru', 'utf-8'),
  'charset-iso-8859-1': inCharset('de', 'iso-8859-1'),
  'charset-iso-8859-2': inCharset('pl', 'iso-8859-2'),
  'charset-windows-1252': inCharset('fr', 'windows-1252'),
  'charset-windows-1251': inCharset('ru', 'windows-1251'),
  'charset-windows-1256': inCharset('ar', 'windows-1256'),
  'charset-koi8-r': inCharset('ru', 'koi8-r'),
  'charset-shift-jis': inCharset('ja', 'shift_jis'),
  'charset-iso-2022-jp': inCharset('ja', 'iso-2022-jp'),
  'charset-euc-jp': inCharset('ja', 'euc-jp'),
  'charset-gb18030': inCharset('zh', 'gb18030'),
  'charset-big5': (letter) => letter.message(big5Part(letter)),
  'charset-euc-kr': inCharset('ko', 'euc-kr'),
  'charset-utf-16': (letter) => letter.message(utf16Part(letter)),
  'charset-unknown': (letter) => letter.message(declared(german(letter, '8bit'), { charset: 'x-made-up-9' })),
  'charset-wrong': (letter) => letter.message(declared(german(letter, '8bit'), { charset: 'utf-8' })),
  'charset-missing': (letter) => letter.message(part('text/plain', german(letter, '8bit').body)),

  'encoding-8bit': (letter) => letter.message(german(letter, '8bit')),
  'encoding-quoted-printable': (letter) => letter.message(german(letter, 'quoted-printable')),
  'encoding-base64': (letter) => letter.message(german(letter, 'base64')),
  'encoding-wrong': (letter) => letter.message(declared(german(letter, '8bit'), { encoding: 'base64' })),
  'encoding-unknown': (letter) => letter.message(declared(german(letter, '8bit'), { encoding: 'x-rot-13' })),
  'encoding-7bit-with-8bit': (letter) =>
    letter.message(declared(german(letter, '8bit'), { encoding: '7bit' })),
  'broken-base64': (letter) => {
    const { head, body } = german(letter, 'base64')
    return letter.message({ head, body: `${body.slice(0, 99)}*!=\r\n${body.slice(99, -5)}` })
  },
  'broken-quoted-printable': (letter) => {
    const { head, body } = german(letter, 'quoted-printable')
    return letter.message({ head, body: `${body}=ZZ =4 =\r\n=` })
  },

  'nested-mixed': (letter) => {
    const inner = multipart('mixed', [letter.alternative(), documentPart(letter.document())], bounded(letter))
    return letter.message(
      multipart('mixed', [inner, letter.text(), documentPart(letter.document())], bounded(letter)),
    )
  },
  'inline-image': (letter) => {
    const image = documentPart(numberedDocument(7, 40), { inline: `pic${letter.plan.index}@example.com` })
    return letter.message(multipart('related', [letter.text('html'), image], bounded(letter)))
  },
  'message-rfc822': (letter) => letter.message(forwarded(letter, 1)),
  'forwarded-chain': (letter) => letter.message(forwarded(letter, 6)),
  'smime-signed': (letter) => {
    const signature = part(
      'application/pkcs7-signature; name="smime.p7s"',
      payload({ first: '', start: letter.plan.index, lines: 50 }),
      ['Content-Transfer-Encoding: base64', 'Content-Disposition: attachment; filename="smime.p7s"'],
    )
    const parameters = ';\r\n protocol="application/pkcs7-signature"; micalg=sha-256'
    return letter.message(multipart('signed', [letter.text(), signature], { ...bounded(letter), parameters }))
  },
  'smime-encrypted': (letter) =>
    letter.message(
      part(
        'application/pkcs7-mime; smime-type=enveloped-data; name="smime.p7m"',
        payload({ first: '', start: letter.plan.index, lines: 90 }),
        ['Content-Transfer-Encoding: base64', 'Content-Disposition: attachment; filename="smime.p7m"'],
      ),
    ),
  calendar: (letter) => letter.message(invitation(letter)),
  'delivery-report': (letter) => letter.message(deliveryReport(letter)),
  'empty-body': (letter) => `${letter.envelope()}\r\n\r\n`,
  'headers-only': (letter) => letter.envelope(),
  'empty-parts': (letter) => {
    const empty = part('text/plain; charset=utf-8', '')
    return letter.message(multipart('mixed', [empty, { head: '', body: '' }, empty], bounded(letter)))
  },
  'unclosed-boundary': (letter) => {
    const { head, body } = multipart(
      'mixed',
      [letter.text(), documentPart(letter.document())],
      bounded(letter),
    )
    return letter.message({ head, body: body.slice(0, body.lastIndexOf('--=_')) })
  },
  'boundary-missing': (letter) => letter.message(part('multipart/mixed', letter.alternative().body)),
  'deep-nesting': (letter) => {
    let inner = letter.text('plain', 1)
    for (let level = 0; level < NESTING_LEVELS; level += 1)
      inner = multipart('mixed', [inner], bounded(letter))
    return letter.message(inner)
  },
  'many-parts': (letter) => {
    const small = Array.from({ length: MANY_PARTS }, (_, at) =>
      part(`text/plain; name="note-${at}.txt"`, `Note ${at}\r\n`),
    )
    return letter.message(multipart('mixed', small, bounded(letter)))
  },
  'large-attachment': (letter) => {
    const lines = letter.random() < HUGE_SHARE ? HUGE_LINES : LARGE_LINES * letter.random()
    const large = numberedDocument(100_000 + letter.plan.index, Math.ceil(lines * letter.plan.scale))
    return letter.message(multipart('mixed', [letter.text(), documentPart(large)], bounded(letter)))
  },
  'shared-attachment': (letter) =>
    letter.message(
      multipart('mixed', [letter.text(), documentPart(numberedDocument(1, 400))], bounded(letter)),
    ),

  'bare-lf': (letter) => letter.message(letter.alternative()).replaceAll('\r\n', '\n'),
  'mixed-line-ends': (letter) => {
    const lines = letter.message(letter.text()).split('\r\n')
    return lines.map((line, at) => (at % 3 === 0 ? `${line}\n` : `${line}\r\n`)).join('')
  },
  'bare-cr': (letter) => letter.message(part('text/plain', 'One line\rand another\rand a third\r')),
  'no-final-newline': (letter) => letter.message(letter.text()).trimEnd(),
  'very-long-line': (letter) =>
    letter.message(part('text/plain', `${'abcdefghi '.repeat(LONG_LINE_CHARS / 10)}\r\n`)),
  'nul-in-body': fromTemplate('nul-in-body'),

  'html-script': fromTemplate('html-script'),
  'html-onerror': fromTemplate('html-onerror'),
  'html-tracking': fromTemplate('html-tracking'),
  'html-unclosed': hostileHtml(`${'<div><b><table><td>'.repeat(400)}still here`),
  'html-terminal': fromTemplate('html-terminal'),

  'attachment-path-name': named('filename="../../../../etc/passwd"'),
  'attachment-windows-path': named('filename="C:\\\\Windows\\\\System32\\\\drivers\\\\etc\\\\hosts"'),
  'attachment-device-name': named('filename="CON"'),
  'attachment-long-name': named(`filename="${'long-'.repeat(LONG_NAME_CHARS / 5)}.txt"`),
  'attachment-rtl-name': named("filename*=utf-8''invoice%E2%80%AEfdp.exe"),
  'attachment-control-name': named("filename*=utf-8''a%00b%0D%0AX-Injected%3A%20yes%1B%5B2J.txt"),
  'attachment-no-name': named(''),
  'attachment-dots-name': named('filename=".."'),
  'rfc2231-names': named(
    'filename*0*=utf-8\'\'%C3%9Cberblick%20;\r\n filename*1*=f%C3%BCr%20alle;\r\n filename*2=".pdf"',
  ),
  'encoded-word-name': named('filename="=?iso-8859-1?Q?Gr=F6=DFen.pdf?="'),
} satisfies Record<string, Compose>

function bounded(letter: Letter): { boundary: string } {
  return { boundary: letter.boundary() }
}

function inCharset(language: Language, charset: string): Compose {
  return (letter) => {
    letter.form = { language, charset, encoding: encodingFor(letter.random, charset) }
    return letter.message(letter.random() < 0.5 ? letter.text() : letter.alternative())
  }
}

function german(letter: Letter, encoding: TransferEncoding): Part {
  letter.form = { language: 'de', charset: 'iso-8859-1', encoding }
  return letter.text()
}

/** The same body under a declaration that is not true. */
function declared(content: Part, wrong: { charset?: string; encoding?: string }): Part {
  const head = content.head
    .replace(/charset=\S+/, (right) => (wrong.charset ? `charset=${wrong.charset}` : right))
    .replace(/Encoding: .*/, (right) => (wrong.encoding ? `Encoding: ${wrong.encoding}` : right))
  return { head, body: content.body }
}

/** The wording in generate-words.ts is in simplified characters, which Big5 lacks. */
function big5Part(letter: Letter): Part {
  const text = `您好：\r\n會議記錄已經寄出，請在星期五之前回覆。\r\nRef. ${letter.plan.index}\r\n祝好\r\n`
  return textPart('plain', { body: bytesIn(text, 'big5'), charset: 'big5', encoding: '8bit' })
}

function utf16Part(letter: Letter): Part {
  const { greeting, closing } = WORDINGS.fr
  const text = `\ufeff${greeting}\r\nRef. ${letter.plan.index}\r\n${closing}\r\n`
  const body = base64Lines(Buffer.from(text, 'utf16le').toString('latin1'))
  return textPart('plain', { body, charset: 'utf-16', encoding: 'base64' })
}

function hostileHtml(html: string): Compose {
  return (letter) =>
    letter.message(
      textPart('html', {
        body: quotedPrintable(
          bytesIn(`<html><body>${html}<p>${letter.plan.index}</p></body></html>\r\n`, 'utf-8'),
        ),
        charset: 'utf-8',
        encoding: 'quoted-printable',
      }),
    )
}

function named(parameters: string): Compose {
  return (letter) => {
    const name = parameters === '' ? 'x-none=1' : parameters
    const document = { ...numberedDocument(3, 4), type: 'application/octet-stream' }
    return letter.message(
      multipart('mixed', [letter.text(), documentPart(document, { name })], bounded(letter)),
    )
  }
}

/** A message within a message, this many deep. */
function forwarded(letter: Letter, levels: number): Part {
  let inner = letter.message(letter.text())
  for (let level = 1; level < levels; level += 1) {
    const wrapped = part('message/rfc822', inner, ['Content-Disposition: inline'])
    inner = letter.message(multipart('mixed', [letter.text('plain', 1), wrapped], bounded(letter)), {
      messageId: `<level${level}.${letter.plan.messageId}>`,
    })
  }
  const wrapped = part('message/rfc822; name="forwarded.eml"', inner, [
    'Content-Disposition: attachment; filename="forwarded.eml"',
  ])
  return multipart('mixed', [letter.text('plain', 1), wrapped], bounded(letter))
}

function calendarBlock(name: string, lines: readonly string[]): string {
  return [`begin:${name}`.toUpperCase(), ...lines, `end:${name}`.toUpperCase()].join('\r\n')
}

function invitation(letter: Letter): Part {
  const { index, owner, sentMs, person } = letter.plan
  const stamp = (ms: number): string => `${new Date(ms).toISOString().replaceAll(/[-:]|\.\d+Z/g, '')}Z`
  const event = calendarBlock('vevent', [
    `UID:${index}@${person.domain}`,
    `DTSTART:${stamp(sentMs + 86_400_000)}`,
    `DTEND:${stamp(sentMs + 90_000_000)}`,
    `ORGANIZER:mailto:${person.address}`,
    `ATTENDEE;RSVP=TRUE:mailto:${owner}`,
    'SUMMARY:Meeting in the library',
  ])
  const body = `${calendarBlock('vcalendar', ['VERSION:2.0', 'METHOD:REQUEST', event])}\r\n`
  const calendar = part('text/calendar; charset=utf-8; method=REQUEST', body)
  const file = part('application/ics; name="invite.ics"', base64Lines(body), [
    'Content-Disposition: attachment; filename="invite.ics"',
    'Content-Transfer-Encoding: base64',
  ])
  const shown = multipart('alternative', [letter.text(), calendar], bounded(letter))
  return multipart('mixed', [shown, file], bounded(letter))
}

function deliveryReport(letter: Letter): Part {
  const { sentMs, person } = letter.plan
  const status = [
    'Reporting-MTA: dns; mx.example.com',
    `Arrival-Date: ${mailDate(sentMs, '+0000')}`,
    '',
    `Final-Recipient: rfc822; nobody@${person.domain}`,
    'Action: failed',
    'Status: 5.1.1',
    '',
  ].join('\r\n')
  const parts = [
    letter.text('plain', 1),
    part('message/delivery-status', status),
    part('text/rfc822-headers', letter.envelope()),
  ]
  return multipart('report', parts, { ...bounded(letter), parameters: '; report-type=delivery-status' })
}
