import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { decodeCharset, PLATFORM_LABELS } from './charsets.ts'

const SAMPLES: readonly [label: string, hex: string, text: string][] = [
  ['koi8-r', 'f0d2c9d7c5d42c20cdc9d2', 'Привет, мир'],
  ['KOI8-U', 'b7d6c1cb', 'Їжак'],
  ['windows-1250', '5a61bff3b3e6', 'Zażółć'],
  ['cp1251', 'cff0e8e2e5f2', 'Привет'],
  ['windows-1252', '936e61ef76659420962080', '“naïve” – €'],
  ['windows-1253', 'cae1ebe7ecddf1e1', 'Καλημέρα'],
  ['windows-1254', 'dd7374616e62756c', 'İstanbul'],
  ['windows-1255', 'f9ece5ed', 'שלום'],
  ['windows-1256', 'e3d1cdc8c7', 'مرحبا'],
  ['windows-1257', 'c0fe756f6c6173', 'Ąžuolas'],
  ['windows-1258', 'e9', 'é'],
  ['latin1', 'e9e8', 'éè'],
  ['ISO_8859-2', '5a61bff3b3e6', 'Zażółć'],
  ['iso8859-15', '313020a4', '10 €'],
  ['"iso-8859-15"', '313020a4', '10 €'],
  ['ibm866', '8fe0a8a2a5e2', 'Привет'],
  ['shift_jis', '82b182f182c982bf82cd', 'こんにちは'],
  ['cp932', '8740eee0', '①髙'],
  ['euc-jp', 'c6fccbdcb8ec', '日本語'],
  ['iso-2022-jp', '1b2442467c4b5c386c2546253925481b2842', '日本語テスト'],
  ['cp50221', '1b2442467c4b5c386c2546253925481b2842', '日本語テスト'],
  ['gb18030', 'c4e3bac3a3accac0bde7', '你好，世界'],
  ['gb2312', 'd6d0cec4', '中文'],
  ['hz-gb-2312', '7e7b44633a437e7d206f6b', '你好 ok'],
  ['big5', 'c163c5e9a4a4a4e5', '繁體中文'],
  ['euc-kr', 'bec8b3e7c7cfbcbcbfe4', '안녕하세요'],
  ['ks_c_5601-1987', 'bec8b3e7c7cfbcbcbfe4', '안녕하세요'],
  ['iso-2022-kr', '1b2429430e3e483367474f3c3c3f640f', '안녕하세요'],
  ['utf-16', 'fffee9007400e900', 'été'],
  ['utf-7', '4869204d6f6d202d2b4a6a6f2d2d2120312b2d313d32', 'Hi Mom -☺-! 1+1=2'],
  ['utf8', 'efbbbfc3a9', 'é'],
]

describe('the text of bytes', () => {
  for (const [label, hex, text] of SAMPLES) {
    test(`in ${label}`, () => {
      assert.deepEqual(decodeCharset(Buffer.from(hex, 'hex'), label), { text })
    })
  }

  test('of an unknown charset is UTF-8 where it can be, and else windows-1252', () => {
    for (const label of ['x-unknown', '', 'klingon-1']) {
      assert.equal(decodeCharset(Buffer.from('größe'), label).text, 'größe')
      assert.equal(decodeCharset(Buffer.from('größe', 'latin1'), label).text, 'größe')
    }
    assert.equal(decodeCharset(Buffer.from('größe'), 'klingon-1').problem, 'names an unknown charset')
  })

  test('of an unknown charset is read without asking the platform, and every label that is known is one of its own', (t) => {
    let asked = 0
    const Original = globalThis.TextDecoder
    globalThis.TextDecoder = class extends Original {
      constructor(label?: string) {
        asked += 1
        super(label)
      }
    }
    t.after(() => {
      globalThis.TextDecoder = Original
    })
    decodeCharset(Buffer.from('größe', 'latin1'), 'windows-1252')
    asked = 0
    for (let n = 0; n < 1_000; n++) {
      assert.equal(decodeCharset(Buffer.from('größe', 'latin1'), `x-made-up-${n}`).text, 'größe')
    }
    assert.equal(asked, 0)
    for (const label of PLATFORM_LABELS) assert.ok(new Original(label))
  })

  test('that names none is in the charset of the message where it is no UTF-8', () => {
    const bytes = Buffer.from('f0d2c9d7c5d4', 'hex')
    assert.equal(decodeCharset(bytes, '', 'koi8-r').text, 'Привет')
    assert.equal(decodeCharset(bytes, '', 'no-such').text, 'ðÒÉ×ÅÔ')
  })

  test('that says ASCII or UTF-8 and is not is read all the same, and said to be wrong', () => {
    const bytes = Buffer.from('größe', 'latin1')
    assert.deepEqual(decodeCharset(bytes, 'us-ascii'), {
      text: 'größe',
      problem: 'says that it is ASCII, but is not',
    })
    assert.deepEqual(decodeCharset(bytes, 'utf-8'), {
      text: 'größe',
      problem: 'says that it is UTF-8, but is not',
    })
    assert.deepEqual(decodeCharset(Buffer.from('größe').subarray(0, 5), 'utf-8'), {
      text: 'grö\ufffd',
      problem: 'says that it is UTF-8, but is not throughout',
    })
  })

  test('in broken UTF-7 holds no halves of characters', () => {
    assert.equal(decodeCharset(Buffer.from('a+2D0-b'), 'utf-7').text, 'a\ufffdb')
    assert.equal(decodeCharset(Buffer.from('a+'), 'utf-7').text, 'a+')
    assert.equal(decodeCharset(Buffer.from('a+-b'), 'utf-7').text, 'a+b')
  })
})
