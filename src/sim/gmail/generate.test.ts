import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { seededRandom } from '../../base/random.ts'
import { arrive, type GenerateOptions, generateMailbox } from './generate.ts'
import { bytesIn } from './generate-charsets.ts'
import { kindAt, MESSAGE_KINDS, type MessageKind } from './generate-kinds.ts'
import { WORDINGS } from './generate-words.ts'
import type { Mailbox, SimMessage } from './mailbox.ts'
import type { StoredMessage } from './mailbox-message.ts'
import { parsedContent, topHeaders } from './message-content.ts'
import { headerOf } from './message-headers.ts'
import { messageIdOf } from './search-match.ts'

const FROM_MS = Date.UTC(2006, 0, 1)
const TO_MS = Date.UTC(2026, 0, 1)

function made(options: Partial<GenerateOptions> = {}): Mailbox {
  const now = (): number => TO_MS
  return generateMailbox({
    address: 'me@example.com',
    seed: 5,
    messages: 1500,
    fromMs: FROM_MS,
    toMs: TO_MS,
    now,
    ...options,
  })
}

function everything(mailbox: Mailbox): string {
  const hash = createHash('sha256')
  for (const { id, threadId, internalMs, labels, sha256 } of mailbox.dump()) {
    hash.update(JSON.stringify([id, threadId, internalMs, labels, sha256()]))
  }
  return hash.digest('hex')
}

/** One message of each kind. */
function examples(mailbox: Mailbox, seed = 5): Map<MessageKind, SimMessage> {
  const found = new Map<MessageKind, SimMessage>()
  for (const message of mailbox.newest(10_000)) {
    found.set(kindAt({ seed, index: (message as StoredMessage).index, profile: 'mixed' }), message)
  }
  return found
}

const mailbox = made()
const kinds = examples(mailbox)

function rawOf(kind: MessageKind): string {
  return kinds.get(kind)!.raw().toString('latin1')
}

describe('a generated mailbox', () => {
  test('is the same for the same seed: ids, threads, dates, labels, bytes', () => {
    assert.equal(everything(made({ messages: 900 })), everything(made({ messages: 900 })))
  })

  test('gives the same bytes in whatever order they are asked for', () => {
    const sums = (messages: SimMessage[]): string[] =>
      messages.map((message) => createHash('sha256').update(message.raw()).digest('hex'))
    const [one, other] = [made({ messages: 300 }).newest(300), made({ messages: 300 }).newest(300)]
    assert.deepEqual(sums(one), sums(other.toReversed()).reverse())
  })

  test('is another for another seed', () => {
    assert.notEqual(everything(made({ messages: 200 })), everything(made({ messages: 200, seed: 6 })))
  })

  test('has every kind of message', () => {
    assert.deepEqual(
      MESSAGE_KINDS.filter((kind) => kind !== 'short' && !kinds.has(kind)),
      [],
    )
  })

  test('has every message that is written down', () => {
    const files = readdirSync(join(import.meta.dirname, 'mail/odd'))
    const written = files.map((file) => file.replace(/\.eml$/, '') as MessageKind)
    assert.ok(written.length > 20)
    for (const kind of written) assert.doesNotMatch(rawOf(kind), /\{(?:usual|text|index|none)\}|\\x/)
  })

  test('has all its dates within the given time, more of them late, and some equal', () => {
    const times = mailbox.newest(1500).map(({ internalMs }) => internalMs)
    assert.ok(times.every((ms) => ms >= FROM_MS && ms < TO_MS && Number.isInteger(ms)))
    assert.ok(times.filter((ms) => ms > (FROM_MS + TO_MS) / 2).length > 800)
    assert.ok(new Set(times).size < times.length)
  })

  test('has old-dated arrivals: a younger id with an older date', () => {
    const old = kinds.get('old-dated')!
    assert.ok(Number.parseInt(old.id.slice(0, 11), 16) - old.internalMs > 86_400_000)
  })

  test('has threads whose messages refer to each other, and Gmail would thread them alike', () => {
    const { messagesTotal, threadsTotal } = mailbox.profile()
    assert.ok(threadsTotal < messagesTotal * 0.8)
    const long = mailbox
      .newest(1500)
      .map(({ threadId }) => mailbox.thread(threadId)!)
      .find(({ messages }) => messages.length >= 4)!
    const answer = long.messages.find((message) => headerOf(topHeaders(message.raw()), 'references'))!
    const copy = mailbox.insert({ raw: answer.raw() })
    assert.equal(copy.threadId, long.id)
    mailbox.delete(copy.id)
  })

  test('knows its Message-IDs without making the messages, also the missing and the doubled', () => {
    const seen = new Map<string, number>()
    let missing = 0
    for (const message of made({ messages: 1500 }).newest(1500)) {
      const header = headerOf(topHeaders(message.raw()), 'message-id')?.replaceAll(/^<|>$/g, '')
      const known = messageIdOf(message as StoredMessage)
      if (header !== undefined) assert.equal(known, header)
      if (known === undefined) missing += 1
      else seen.set(known, (seen.get(known) ?? 0) + 1)
    }
    assert.ok(missing > 0)
    assert.ok([...seen.values()].some((count) => count === 2))
  })

  test('has labels of every sort, and drafts that are drafts', () => {
    const all = made({ messages: 5000, profile: 'small' })
    for (const id of [
      'INBOX',
      'SENT',
      'SPAM',
      'TRASH',
      'UNREAD',
      'STARRED',
      'IMPORTANT',
      'DRAFT',
      'CATEGORY_PROMOTIONS',
      'Label_1',
    ]) {
      assert.ok(all.label(id)!.messagesTotal > 0, id)
    }
    const { drafts } = all.listDrafts()
    assert.ok(
      drafts.length > 0 && drafts.every(({ id, message }) => all.draft(id)!.message.id === message.id),
    )
  })

  test('starts with no history', () => {
    const { historyId } = mailbox
    assert.deepEqual(made().history({ startHistoryId: made().historyId }), {
      history: [],
      historyId: made().historyId,
    })
    assert.equal(made().history({ startHistoryId: 18_014_398_509_000_000n }), 'expired')
    assert.ok(historyId > 18_014_398_509_000_000n)
  })
})

describe('sizes', () => {
  test('half of the messages have a few kilobytes, some have many, and the largest are bounded', () => {
    const sizes = made({ messages: 4000 })
      .newest(4000)
      .map(({ sizeEstimate }) => sizeEstimate)
      .sort((a, b) => a - b)
    const median = sizes[2000]!
    assert.ok(median > 3_500 && median < 8_000, String(median))
    assert.ok(sizes[3960]! > 50_000)
    assert.ok(sizes.at(-1)! < 12_000_000)
  })

  for (const meanBytes of [3_000, 15_000, 60_000]) {
    test(`come out near a mean of ${meanBytes} when asked to`, () => {
      const messages = made({ messages: 4000, meanBytes }).newest(4000)
      const mean = messages.reduce((sum, { sizeEstimate }) => sum + sizeEstimate, 0) / messages.length
      assert.ok(mean > meanBytes * 0.6 && mean < meanBytes * 1.6, String(mean))
    })
  }

  test('small mail is small', () => {
    assert.ok(
      made({ profile: 'small', messages: 300 })
        .newest(300)
        .every(({ sizeEstimate }) => sizeEstimate < 4_000),
    )
  })

  test('the same attachment comes with many messages', () => {
    const payloads = new Map<string, number>()
    for (const message of made({ messages: 3000 }).newest(3000)) {
      for (const [, name] of message
        .raw()
        .toString('latin1')
        .matchAll(/filename="([^"]+ \d+\.\w+)"/g)) {
        payloads.set(name!, (payloads.get(name!) ?? 0) + 1)
      }
    }
    assert.ok([...payloads.values()].filter((count) => count >= 3).length >= 3)
  })
})

describe('charsets', () => {
  for (const { sentences, charsets } of Object.values(WORDINGS)) {
    for (const charset of new Set(charsets)) {
      test(`${charset} carries ${sentences[0]!.slice(0, 24)}`, () => {
        const decoder = new TextDecoder(charset === 'us-ascii' ? 'utf-8' : charset, { fatal: true })
        for (const sentence of sentences) {
          assert.equal(decoder.decode(Buffer.from(bytesIn(sentence, charset), 'latin1')), sentence)
        }
      })
    }
  }

  test('bodies in old charsets read as what was written', () => {
    const readings: [MessageKind, string][] = [
      ['charset-iso-8859-1', WORDINGS.de.closing],
      ['charset-iso-8859-2', WORDINGS.pl.greeting],
      ['charset-windows-1251', WORDINGS.ru.greeting],
      ['charset-koi8-r', WORDINGS.ru.closing],
      ['charset-windows-1256', WORDINGS.ar.greeting],
      ['charset-shift-jis', WORDINGS.ja.closing],
      ['charset-iso-2022-jp', WORDINGS.ja.closing],
      ['charset-euc-jp', WORDINGS.ja.closing],
      ['charset-gb18030', WORDINGS.zh.greeting],
      ['charset-big5', '會議記錄'],
      ['charset-euc-kr', WORDINGS.ko.closing],
      ['charset-utf-16', WORDINGS.fr.closing],
      ['encoding-quoted-printable', WORDINGS.de.closing],
      ['encoding-base64', WORDINGS.de.closing],
    ]
    for (const [kind, text] of readings) {
      assert.ok(parsedContent(kinds.get(kind)!.raw()).text.includes(text), `${kind} lacks ${text}`)
    }
  })
})

describe('odd messages are as odd as their name says', () => {
  const patterns: [MessageKind, RegExp][] = [
    ['bare-lf', /^[^\r]*$/],
    ['mixed-line-ends', /\r\n.*[^\r]\n/s],
    ['header-nul', /X-Nul: a\0b/],
    ['header-8bit', /\r\nSubject: [^\r]*\xdc/],
    ['header-no-colon', /\r\nThis line has no colon/],
    ['smime-signed', /multipart\/signed.*application\/pkcs7-signature/s],
    ['smime-encrypted', /application\/pkcs7-mime/],
    ['calendar', /text\/calendar.*BEGIN:VEVENT/s],
    ['message-rfc822', /Content-Type: message\/rfc822/],
    ['inline-image', /multipart\/related.*Content-ID: </s],
    ['attachment-path-name', /filename="\.\.\/\.\.\//],
    ['attachment-rtl-name', /%E2%80%AE/],
    ['html-script', /<script>/],
    ['html-onerror', /onerror=3D/],
    ['huge-header', /X-Huge: [0-9a-f]{80000}/],
    ['date-two-digit-year', /\r\nDate: Tue, 3 Feb 98 /],
    ['encoding-7bit-with-8bit', /Encoding: 7bit\r\n.*[\x80-\xff]/s],
    ['empty-body', /\r\n\r\n$/],
    ['no-final-newline', /[^\n]$/],
    ['rfc2231-names', /filename\*0\*=utf-8''/],
  ]
  for (const [kind, pattern] of patterns) {
    test(kind, () => {
      assert.match(rawOf(kind), pattern)
    })
  }

  test('deep nesting goes hundreds of levels down', () => {
    assert.ok(rawOf('deep-nesting').split('multipart/mixed').length > 300)
  })

  test('a body without a blank line before it begins among the headers', () => {
    assert.ok(
      rawOf('no-blank-line')
        .split('\r\n\r\n')[0]!
        .includes(
          rawOf('no-blank-line')
            .split(/Encoding: \S+\r\n/)[1]!
            .slice(0, 6),
        ),
    )
  })

  test('content is read from every kind without failing', () => {
    for (const message of kinds.values()) assert.equal(typeof message.snippet, 'string')
  })
})

describe('arrivals', () => {
  test('are new mail in the inbox, some of it in known threads, with history', () => {
    const living = made({ messages: 200 })
    const startHistoryId = living.historyId
    const random = seededRandom(9)
    const arrived = Array.from({ length: 60 }, () => arrive(living, { random, now: () => TO_MS }))
    assert.ok(arrived.every(({ labelIds }) => labelIds.has('INBOX') && labelIds.has('UNREAD')))
    assert.ok(arrived.some(({ id, threadId }) => id !== threadId))
    const page = living.history({ startHistoryId, maxResults: 500 })
    assert.ok(page !== 'expired' && page.history.length === 60)
    assert.equal(living.everListed.size, 60)
  })

  test("can be of a kind and a date of one's choice", () => {
    const living = made({ messages: 10 })
    const message = arrive(living, {
      random: seededRandom(1),
      now: () => TO_MS,
      kind: 'calendar',
      internalMs: FROM_MS,
    })
    assert.equal(message.internalMs, FROM_MS)
    assert.match(message.raw().toString('latin1'), /text\/calendar/)
  })
})

test('a listing by slices makes no message: two hundred days of fifty thousand messages in a moment', () => {
  const large = made({ messages: 50_000, profile: 'plain' })
  const refuse = (): never => {
    throw new Error('bytes were made')
  }
  for (const message of large.newest(50_000)) (message as { raw: () => Buffer }).raw = refuse
  const days = Array.from({ length: 200 }, (_, at) => FROM_MS / 1000 + at * 36.5 * 86_400)
  let count = 0
  for (const [at, day] of days.entries()) {
    const before = days[at + 1] ?? TO_MS / 1000
    for (let pageToken: string | undefined, more = true; more; ) {
      const q = `after:${day} before:${before} -in:spam label:inbox`
      const page = large.list({ q, maxResults: 500, pageToken })
      count += page.messages.length
      pageToken = page.nextPageToken
      more = pageToken !== undefined
    }
  }
  assert.equal(count, large.label('INBOX')!.messagesTotal)
})
