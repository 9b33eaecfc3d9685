import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { attachmentOf, payloadHeaders, payloadOf } from './payload.ts'

function message(...lines: string[]): Buffer {
  return Buffer.from(lines.join('\r\n'), 'latin1')
}

const MIXED = message(
  'From: A <a@example.com>',
  'Subject: =?utf-8?B?R3LDvMOfZQ==?=',
  'X-Long: one',
  '\ttwo',
  'Content-Type: multipart/mixed; boundary="outer"',
  '',
  'preamble',
  '--outer',
  'Content-Type: multipart/alternative; boundary=inner',
  '',
  '--inner',
  'Content-Type: text/plain; charset=iso-8859-1',
  'Content-Transfer-Encoding: quoted-printable',
  '',
  'Gr=FC=DFe',
  '--inner',
  'Content-Type: text/html',
  '',
  '<p>Hi</p>',
  '--inner--',
  '--outer',
  'Content-Type: application/pdf; name="../a.pdf"',
  'Content-Disposition: attachment; filename="../a.pdf"',
  'Content-Transfer-Encoding: base64',
  '',
  Buffer.from('%PDF-1').toString('base64'),
  '--outer--',
  'epilogue',
)

describe('the payload of a message', () => {
  test('is the tree of its parts, with text decoded and attachments by id', () => {
    const payload = payloadOf(MIXED)
    assert.equal(payload.mimeType, 'multipart/mixed')
    assert.deepEqual(
      payload.headers.slice(0, 3).map(({ name, value }) => `${name}: ${value}`),
      ['From: A <a@example.com>', 'Subject: Grüße', 'X-Long: one two'],
    )
    const [text, file] = payload.parts!
    assert.deepEqual(
      text!.parts!.map(({ partId, mimeType }) => [partId, mimeType]),
      [
        ['0.0', 'text/plain'],
        ['0.1', 'text/html'],
      ],
    )
    assert.equal(Buffer.from(text!.parts![0]!.body.data!, 'base64url').toString(), 'Grüße')
    assert.equal(file!.filename, '../a.pdf')
    assert.equal(file!.body.size, 6)
    assert.equal(file!.body.data, undefined)
    assert.equal(attachmentOf(MIXED, file!.body.attachmentId!)?.toString(), '%PDF-1')
  })

  test('of a forwarded message holds that message', () => {
    const raw = message('Content-Type: message/rfc822', '', 'Subject: Inner', '', 'text')
    const payload = payloadOf(raw)
    assert.equal(payload.parts?.[0]?.headers[0]?.value, 'Inner')
    assert.ok(payload.body.attachmentId !== undefined)
  })

  test('of a plain or a broken message is one part', () => {
    assert.equal(payloadOf(Buffer.from('no header at all')).mimeType, 'text/plain')
    assert.equal(payloadOf(message('Content-Type: multipart/mixed', '', 'no boundary')).parts, undefined)
    const open = payloadOf(
      message('Content-Type: multipart/mixed; boundary=b', '', '--b', '', 'never closed'),
    )
    assert.equal(Buffer.from(open.parts![0]!.body.data!, 'base64url').toString(), 'never closed')
  })

  test('names only the headers that were asked for', () => {
    assert.deepEqual(payloadHeaders(MIXED, ['subject']), [{ name: 'Subject', value: 'Grüße' }])
  })

  test('an attachment id of nobody finds nothing', () => {
    for (const id of ['', 'x', 'ANGjdJ', `ANGjdJ${Buffer.from('9.9').toString('base64url')}`]) {
      const found = attachmentOf(MIXED, id)
      assert.ok(found === undefined || id === 'ANGjdJ')
    }
  })

  test('never fails, however broken or deep the message is', () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 2_000 }), (bytes) => void payloadOf(Buffer.from(bytes))))
    let nested = 'Content-Type: text/plain\r\n\r\nend'
    for (let depth = 0; depth < 500; depth++) {
      nested = `Content-Type: multipart/mixed; boundary=b${depth}\r\n\r\n--b${depth}\r\n${nested}\r\n--b${depth}--`
    }
    assert.equal(payloadOf(Buffer.from(nested)).mimeType, 'multipart/mixed')
  })
})
