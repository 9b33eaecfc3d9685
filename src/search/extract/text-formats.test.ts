import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { assertLinear } from '../../base/growth.suite.ts'
import { cleanText } from './clean-text.ts'
import { DEFAULT_EXTRACT_LIMITS } from './contract.ts'
import { skippedOf, textOf } from './extract.suite.ts'
import { readHtml } from './html.ts'
import { readMarkdown } from './markdown.ts'
import { TextOutput } from './text-output.ts'
import { readXml } from './xml.ts'

describe('plain text', () => {
  test('is one part with its lines, without the empty ones around it', async () => {
    const { parts, format, isTruncated } = await textOf('\r\n\r\nfirst\r\n\r\nsecond\r\n\r\n', 'a.txt')
    assert.deepEqual(parts, [
      { text: 'first\n\nsecond', headings: [], place: { kind: 'lines', first: 3, last: 5 } },
    ])
    assert.deepEqual([format, isTruncated], ['text', false])
  })

  test('is read in the encoding that its bytes show', async () => {
    const text = 'Žluťoučký kůň € – naïve'
    const utf16 = Buffer.from(text, 'utf16le')
    for (const bytes of [
      Buffer.from(text),
      Buffer.from(`\ufeff${text}`),
      Buffer.concat([Buffer.from([0xff, 0xfe]), utf16]),
      Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from(utf16).swap16()]),
    ]) {
      assert.equal((await textOf(bytes, 'a.txt')).parts[0]!.text, text)
    }
    const plain = 'no mark, but every other byte is empty'
    assert.equal((await textOf(Buffer.from(plain, 'utf16le'), 'a.txt')).parts[0]!.text, plain)
    const latin = Buffer.from('caf\xe9 \x80 na\xefve', 'latin1')
    assert.equal((await textOf(latin, 'a.txt')).parts[0]!.text, 'café € naïve')
  })

  test('that was cut within a character is still UTF-8', async () => {
    const bytes = Buffer.from('café au lait, s’il vous plaît, à tout à l’heure, é')
    assert.match((await textOf(bytes.subarray(0, -1), 'a.txt')).parts[0]!.text, /^café au lait/)
  })

  test('beyond the limit is left out, and the answer says so', async () => {
    const { parts, isTruncated } = await textOf('😀'.repeat(100), 'a.txt', { limits: { charsMax: 51 } })
    assert.equal(isTruncated, true)
    assert.equal(parts[0]!.text, '😀'.repeat(25))
    assert.equal((await textOf('x'.repeat(51), 'a.txt', { limits: { charsMax: 51 } })).isTruncated, false)
  })

  test('that is larger than the limit is not read, and nothing is in an empty one', async () => {
    const large = await skippedOf('x'.repeat(1_001), 'a.txt', { limits: { inputBytesMax: 1_000 } })
    assert.deepEqual(large, {
      kind: 'skipped',
      code: 'too-large',
      reason: 'it has 1 kB, and at most 1 kB are read',
    })
    assert.equal((await skippedOf('', 'a.txt')).code, 'empty')
    assert.equal((await skippedOf(' \n\t\n', 'a.txt')).code, 'empty')
  })
})

describe('clean text', () => {
  test('has no control characters, no marks inside words, no halves of characters, and keeps its lines', () => {
    assert.equal(cleanText('a\0b\x1b[1m\u00adc\u200bd\ufeff\ud800e\r\nf\rg\u2028h'), 'ab[1mcde\nf\ng h')
    assert.equal(cleanText('e\u0301'), 'é')
  })

  test('has no more marks on a letter than any writing has', () => {
    const work = (text: string): number => cleanText(text).length
    assert.equal(work(`a${'\u0316\u0301'.repeat(100_000)}b`), 31)
    assertLinear({ sizeMax: 400_000, make: (size) => '\u0316\u0301'.repeat(size / 2), work })
  })

  test('is clean already when it is cleaned again', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 0, max: 0xffff })), (codes) => {
        const text = String.fromCharCode(...codes)
        const clean = cleanText(text)
        assert.ok(clean.isWellFormed() && !clean.includes('\0'))
        assert.equal(cleanText(clean), clean)
        assert.equal(clean.split('\n').length, text.split(/\r\n?|\n/).length)
      }),
    )
  })
})

describe('Markdown', () => {
  const text = [
    '---',
    'title: "The Manual"',
    'lang: en-GB',
    '---',
    'Before it.',
    '# Setting *up*',
    'One `snake_case` step.',
    '```sh',
    '# no heading',
    '```',
    '## [Linux](https://example.com) ##',
    'apt',
    'Care',
    '====',
    'Wash it.',
  ].join('\n')

  test('has a part for each section, with the path of its headings and its lines', async () => {
    const { parts, title, language, format } = await textOf(text, 'manual.md')
    assert.deepEqual([format, title, language], ['markdown', 'The Manual', 'en-GB'])
    assert.deepEqual(
      parts.map(({ headings, place }) => [headings, place]),
      [
        [[], { kind: 'lines', first: 1, last: 5 }],
        [['Setting up'], { kind: 'lines', first: 6, last: 10 }],
        [['Setting up', 'Linux'], { kind: 'lines', first: 11, last: 12 }],
        [['Care'], { kind: 'lines', first: 13, last: 15 }],
      ],
    )
    assert.equal(parts.map((part) => part.text).join('\n'), text)
  })

  test('without a title is called by its first heading', async () => {
    assert.equal((await textOf('## Small\n# Large\ntext', 'a.md')).title, 'Large')
  })
})

describe('HTML', () => {
  test('is what a reader sees, by sections', async () => {
    const { parts, title, language } = await textOf(
      `<!DOCTYPE html><html lang="de"><head><title>A &amp; B</title><style>p{}</style></head><body>
       <script>alert('no')</script><h1>R&amp;D <em>today</em></h1><p>First
       paragraph,<b>bold</b>.<br>Next<span style="color:red; display: none">no</span></p>
       <div hidden>no<p>no</p></div><template>no</template>
       <h2>Table</h2><table><tr><th>Name</th><th>Age</th></tr><tr><td>Ann</td><td>7</td></tr></table>
       <pre>a\n  b</pre><ul><li>one<li>two</ul><img alt="a cat"><!-- no --></body></html>`,
      'page.html',
    )
    assert.deepEqual([title, language], ['A & B', 'de'])
    assert.deepEqual(parts, [
      {
        text: 'R&D today\n\nFirst paragraph,bold.\nNext',
        headings: ['R&D today'],
        place: { kind: 'none' },
      },
      {
        text: 'Table\n\nName | Age\nAnn | 7\n\na\n  b\n\none\ntwo\n\na cat',
        headings: ['R&D today', 'Table'],
        place: { kind: 'none' },
      },
    ])
  })

  test('comments that Google Docs exports with a document are left out: not all who read it may see them', async () => {
    const mark = (n: number) => `<sup><a href="#cmnt${n}" id="cmnt_ref${n}">[a]</a></sup>`
    const comment = (n: number, text: string) =>
      `<div class="c3"><p><a href="#cmnt_ref${n}" id="cmnt${n}">[a]</a><span>${text}</span></p><p><span>Second of ${text}</span></p></div>`
    const page = `<html><body><p>The offer${mark(1)} stands.</p><div><p>Terms</p>${comment(1, 'Too high, Bob')}</div>
      ${comment(2, 'Not for Ann')}<p><a href="#cmnt_ref3" id="cmnt3">[c]</a>Alone</p><p>The end</p></body></html>`
    assert.equal((await textOf(page, 'a.html')).parts[0]!.text, 'The offer stands.\n\nTerms\n\nThe end')
  })

  test('a page that only names its places as Google Docs does loses nothing', async () => {
    for (const page of [
      '<div><p><a name="cmnt1">One</a> said</p><p>more</p></div>',
      '<div><p><a href="#top" id="cmnt1">One</a> said</p><p>more</p></div>',
      '<div><p><a href="#cmnt_ref1" id="cmnt1">One</a> said</p><p>more</p></div>',
    ]) {
      const whole = `<html><body><p><a id="cmnt_ref1">See</a> this.</p>${page}</body></html>`
      assert.equal((await textOf(whole, 'a.html')).parts[0]!.text, 'See this.\n\nOne said\n\nmore', page)
    }
  })

  test('is read in the charset that it declares', async () => {
    const page = '<html><meta charset="iso-8859-2"><p>\xb9\xe8'
    assert.equal((await textOf(Buffer.from(page, 'latin1'), 'a.html')).parts[0]!.text, 'šč')
  })

  test('is known by its content, whatever its name', async () => {
    assert.equal((await textOf('<!doctype html><p>text', 'notes.txt')).format, 'html')
    assert.equal((await textOf('only text', 'page.html')).format, 'text')
  })

  test('that is nested too deep is skipped', async () => {
    const deep = await skippedOf('<div>'.repeat(5_000), 'a.html')
    assert.deepEqual(deep, {
      kind: 'skipped',
      code: 'too-deep',
      reason: 'its elements are nested more than 1000 deep',
    })
  })

  test('that ends within anything is read as far as it goes', async () => {
    const page = '<html><h1>Head</h1><p title="x">Some &amp; text</p><!-- c --><script>a</script>end'
    for (let length = 30; length < page.length; length++) {
      assert.match((await textOf(page.slice(0, length), 'a.html')).parts[0]!.text, /^Head/)
    }
  })
})

describe('XML', () => {
  test('is its texts and values on their lines', async () => {
    const { parts } = await textOf(
      '<?xml version="1.0"?>\n<a xmlns="urn:x" name="R&amp;D">\n  <b>one</b><b>two &lt; 3</b>\n\n  <c><![CDATA[four]]></c>\n</a>',
      'a.xml',
    )
    assert.deepEqual(parts, [
      { text: 'R&D\none two < 3\n\nfour', headings: [], place: { kind: 'lines', first: 2, last: 5 } },
    ])
  })

  test('declares no entities: a billion laughs are one word', async () => {
    const laughs = Array.from(
      { length: 9 },
      (_, at) => `<!ENTITY l${at + 1} "${`&l${at};`.repeat(10)}">`,
    ).join('\n')
    const { parts } = await textOf(
      `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY l0 "lol">${laughs}]><x>&l9; done</x>`,
      'a.xml',
    )
    assert.equal(parts.length, 1)
    assert.ok(parts[0]!.text.length < 1_000)
    assert.match(parts[0]!.text, /done$/)
  })

  test('that is nested too deep is skipped', async () => {
    assert.equal((await skippedOf(`<?xml version="1.0"?>${'<a>'.repeat(2_000)}`, 'a.xml')).code, 'too-deep')
  })
})

describe('source code and data', () => {
  test('keep their lines', async () => {
    const code = await textOf('export const a = 1\n\n  // why\nexport const b = 2\n', 'src/a.ts')
    assert.equal(code.format, 'code')
    assert.deepEqual(code.parts[0]!.place, { kind: 'lines', first: 1, last: 4 })
    assert.equal((await textOf('{"a": 1}', 'data', { mimeType: 'application/json' })).format, 'json')
    assert.equal((await textOf('a = 1', 'a', { mimeType: 'text/x-python' })).format, 'code')
  })
})

describe('reading', () => {
  test('takes work in proportion to the text, whatever the text', () => {
    const limits = { ...DEFAULT_EXTRACT_LIMITS, charsMax: 100_000_000, partsMax: 1_000_000 }
    const samples: [typeof readHtml, string][] = [
      [readHtml, '<p>text</p>'],
      [readHtml, '<h1>text'],
      [readHtml, '<b>x</i></b>'],
      [readHtml, '&amp; <'],
      [readHtml, '</p>'],
      [readXml, '<a b="c">\n</a>'],
      [readXml, '&lt;'],
      [readMarkdown, '# x\n'],
      [readMarkdown, '[x]('],
      [readMarkdown, '*_`'],
      [readMarkdown, '```\n'],
    ]
    for (const [read, sample] of samples) {
      assertLinear({
        sizeMax: 400_000,
        make: (size) => Buffer.from(sample.repeat(size / sample.length)),
        work: (bytes) => read(bytes, new TextOutput(limits), limits),
      })
    }
  })
})
