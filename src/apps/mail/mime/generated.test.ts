import assert from 'node:assert/strict'
import { test } from 'node:test'
import { generateMailbox } from '../../../sim/gmail/generate.ts'
import { encodeParcel, packMessage, unpackMessage } from './parcel.ts'
import { PARSER_FAILED, parseMessage } from './parse.ts'

const MESSAGES = 700

/** What comes of bytes read in a wrong charset, and of encodings that were not resolved. */
const UNREADABLE = /\ufffd|=\?[\w-]+\?[BbQq]\?|Ã[\u0080-\u00bf]|=[0-9A-F]{2}=[0-9A-F]{2}/

const mailbox = (profile: 'mixed' | 'plain') =>
  generateMailbox({
    address: 'ada@example.com',
    seed: 11,
    messages: MESSAGES,
    fromMs: Date.UTC(2015, 0),
    toMs: Date.UTC(2024, 0),
    now: () => Date.UTC(2024, 0),
    profile,
  }).newest(MESSAGES)

test('sound mail in many languages is read without problems', () => {
  let attachments = 0
  for (const message of mailbox('plain')) {
    const parsed = parseMessage(message.raw())
    assert.deepEqual(parsed.problems, [])
    assert.ok(parsed.text.length > 20 && parsed.subject !== '' && parsed.messageId && parsed.headerMs)
    assert.equal(UNREADABLE.exec(`${parsed.subject}\n${parsed.text}`), null, parsed.subject)
    assert.match(parsed.from[0]!.address, /^[^@\s]+@[^@\s]+$/)
    attachments += parsed.attachments.length
  }
  assert.ok(attachments > 10)
})

test('odd mail is read in almost all cases, and all of it comes back byte for byte', () => {
  let unreadable = 0
  let cuts = 0
  for (const message of mailbox('mixed')) {
    const raw = message.raw()
    const parsed = parseMessage(raw)
    assert.ok(!parsed.problems.some((problem) => problem.startsWith(PARSER_FAILED)))
    if (UNREADABLE.test(`${parsed.subject}\n${parsed.text}`)) unreadable++
    const parcel = packMessage(raw, parsed)
    cuts += parcel.cuts.length
    const contents = new Map(parcel.contents.map(({ sha256, content }) => [sha256, content]))
    assert.ok(Buffer.from(raw).equals(unpackMessage(encodeParcel(parcel), (sha256) => contents.get(sha256)!)))
  }
  // Encoded words that end within a character, and the like, cannot be read by anyone.
  assert.ok(unreadable <= MESSAGES / 100, `${unreadable} are unreadable`)
  assert.ok(cuts > 10)
})
