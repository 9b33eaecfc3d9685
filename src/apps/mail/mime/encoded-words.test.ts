import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { decodeWords, headerText } from './encoded-words.ts'
import { parseParameters } from './parameters.ts'

describe('encoded words', () => {
  const cases: readonly [what: string, text: string, decoded: string][] = [
    ['in B', '=?utf-8?B?w6TDtsO8?=', 'äöü'],
    ['in Q', '=?ISO-8859-1?q?Keld_J=F8rn_Simonsen?=', 'Keld Jørn Simonsen'],
    ['with a language', '=?us-ascii*en?Q?hello?=', 'hello'],
    ['among plain text', 'Re: =?utf-8?Q?=C3=A4?= and =?utf-8?Q?=C3=B6?= end', 'Re: ä and ö end'],
    ['drop the blanks between them', '=?utf-8?Q?a?= =?utf-8?Q?b?=\t=?utf-8?B?Yw==?=', 'abc'],
    ['that share a character', '=?utf-8?B?w6TD?= =?utf-8?B?tsO8?=', 'äöü'],
    ['that share a character in two encodings', '=?utf-8?Q?=C3?= =?utf-8?B?pA==?=', 'ä'],
    ['of two charsets', '=?utf-8?Q?=C3=A4?= =?iso-8859-1?Q?=F6?=', 'äö'],
    ['in ISO-2022-JP', '=?ISO-2022-JP?B?GyRCRnxLXDhsGyhC?=', '日本語'],
    ['with a question mark that should be escaped', '=?utf-8?Q?What??=', 'What?'],
    ['with blanks that should be escaped', '=?utf-8?Q?two words?=', 'two words'],
    ['without padding', '=?utf-8?B?YQ?=', 'a'],
    ['that never end stay as they are', '=?utf-8?Q?abc =?utf-8?Q?def?=', '=?utf-8?Q?abc def'],
    ['of an unknown encoding stay as they are', '=?utf-8?X?abc?=', '=?utf-8?X?abc?='],
    ['without a charset stay as they are', '=??Q?abc?=', '=??Q?abc?='],
    ['of an unknown charset are guessed', '=?x-klingon?Q?=C3=A4?=', 'ä'],
  ]
  for (const [what, text, decoded] of cases) test(what, () => assert.equal(decodeWords(text), decoded))
})

test('raw bytes in a header are UTF-8, or else in the charset of the message', () => {
  assert.equal(headerText(Buffer.from('größe').toString('latin1')), 'größe')
  assert.equal(headerText('gr\xf6\xdfe'), 'größe')
  assert.equal(headerText('\xf0\xd2\xc9\xd7\xc5\xd4', 'koi8-r'), 'Привет')
})

describe('parameters', () => {
  const parameter = (text: string, name: string): string | undefined =>
    parseParameters(text).parameters.get(name)

  test('are tokens, quoted strings, and names with blanks in them', () => {
    const { value, parameters } = parseParameters(
      ' Text/PLAIN (text) ; Charset=UTF-8; name="a \\"b\\"; c.txt" ; x=1; filename=my file.pdf',
    )
    assert.equal(value, 'text/plain')
    assert.deepEqual(
      [...parameters],
      [
        ['charset', 'UTF-8'],
        ['name', 'a "b"; c.txt'],
        ['x', '1'],
        ['filename', 'my file.pdf'],
      ],
    )
  })

  test('keep the backslashes of paths, and end an open quote at the semicolon', () => {
    assert.equal(parameter('a; name="C:\\docs\\x.txt"', 'name'), 'C:\\docs\\x.txt')
    assert.equal(parameter('a; name="open; charset=utf-8', 'name'), 'open')
    assert.equal(parameter('a; name="open; charset=utf-8', 'charset'), 'utf-8')
  })

  test('may be encoded words, which the standard forbids and everyone writes', () => {
    assert.equal(parameter('a; name="=?utf-8?B?w6Q=?=.pdf"', 'name'), 'ä.pdf')
  })

  test('continue in sections, with one charset for all of them', () => {
    const text = 'a; filename*1*=%C3%A4; filename*0*=utf-8\'de\'f%20; filename*2="%.txt"'
    assert.equal(parameter(text, 'filename'), 'f ä%.txt')
    assert.equal(parameter("a; filename*0*=utf-8''%C3; filename*1*=%A4", 'filename'), 'ä')
    assert.equal(parameter('a; name*0="long "; name*1=name', 'name'), 'long name')
  })

  test('in the extended form count more than the plain one', () => {
    assert.equal(parameter("a; filename=x.txt; filename*=iso-8859-1''%e4.txt", 'filename'), 'ä.txt')
    assert.equal(parameter("a; filename*=koi8-r''%f0; filename=x", 'filename'), 'П')
  })

  test('of a name are the first of it', () => {
    assert.equal(parameter('a; boundary=one; boundary=two', 'boundary'), 'one')
  })
})
