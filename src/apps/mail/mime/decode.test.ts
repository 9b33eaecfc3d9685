import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { decodeBase64, decodeQuotedPrintable, decodeTransfer } from './decode.ts'

const base64 = (text: string): { content: string; problem?: string } => {
  const { content, problem } = decodeBase64(Buffer.from(text, 'latin1'))
  return problem ? { content: content.toString('latin1'), problem } : { content: content.toString('latin1') }
}
const quotedPrintable = (text: string): string =>
  decodeQuotedPrintable(Buffer.from(text, 'latin1')).toString('latin1')

describe('base64', () => {
  test('may be broken into lines and may lack its padding', () => {
    assert.deepEqual(base64('aGVs\r\nbG8=\r\n'), { content: 'hello' })
    assert.deepEqual(base64('aGVsbG8'), { content: 'hello' })
    assert.deepEqual(base64(''), { content: '' })
  })

  test('with foreign characters gives what there is, and a problem', () => {
    const problem = 'says that it is base64, but is not throughout'
    const text = 'hello world, how are you today?'
    const encoded = Buffer.from(text).toString('base64')
    assert.deepEqual(base64(`${encoded.slice(0, 5)}!${encoded.slice(5)}`), { content: text, problem })
    assert.deepEqual(base64(`${encoded.slice(0, 5)}=${encoded.slice(5)}`), { content: text, problem })
    assert.deepEqual(base64('aGVsbG8=aGVsbG8=aGk=aGVs'), { content: 'hellohellohihel', problem })
    assert.deepEqual(base64('a'), { content: '', problem })
    assert.equal(base64('-_-_').content, '\xfb\xff\xbf')
  })

  test('that is something else comes back as it is', () => {
    const text = 'This is plain text, whatever it says.'
    assert.deepEqual(base64(text), { content: text, problem: 'says that it is base64, but is not' })
  })
})

describe('quoted-printable', () => {
  test('resolves escapes and soft line breaks', () => {
    assert.equal(quotedPrintable('gr=C3=B6=c3=9fe'), 'gr\xc3\xb6\xc3\x9fe')
    assert.equal(quotedPrintable('one=\r\ntwo=  \r\nthree=\nfour='), 'onetwothreefour')
  })

  test('drops blanks at the end of a line unless they are escaped', () => {
    assert.equal(quotedPrintable('a  \t\r\nb=20 \nc '), 'a\r\nb \nc ')
  })

  test('leaves alone what is no escape', () => {
    assert.equal(quotedPrintable('1=2 =ZZ =\rx == y'), '1=2 =ZZ =\rx == y')
  })
})

test('what is not encoded is not copied, and an unknown encoding is a problem', () => {
  const bytes = Buffer.from('x')
  assert.equal(decodeTransfer(bytes, '8bit').content, bytes)
  assert.deepEqual(decodeTransfer(bytes, 'x-rot13'), {
    content: bytes,
    problem: 'has an unknown transfer encoding',
  })
})
