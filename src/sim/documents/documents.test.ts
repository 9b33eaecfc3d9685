import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { inflateRawSync } from 'node:zlib'
import { docx } from './docx.ts'
import * as hostile from './hostile.ts'
import { pdf } from './pdf.ts'
import { csv, html, jpeg, markdown, png } from './plain.ts'
import { pptx } from './pptx.ts'
import { columnName, xlsx } from './xlsx.ts'
import { zip } from './zip.ts'

describe('made documents', () => {
  const blocks = [
    { heading: 'Head & shoulders' },
    { paragraph: 'A text.', footnote: 'A note.' },
    {
      table: [
        ['a', 'b'],
        ['c', 'd'],
      ],
    },
  ]
  const makers: Record<string, () => Uint8Array> = {
    docx: () => docx({ title: 'T', blocks, header: 'H', footer: 'F' }),
    xlsx: () => xlsx({ sheets: [{ name: 'S', rows: [['a', 1, true, null, new Date(0)]] }] }),
    pptx: () => pptx({ slides: [{ title: 'T', lines: ['l'], notes: 'n' }] }),
    pdf: () => pdf({ title: 'T', pages: ['one', 'dvě'] }),
    html: () => html({ title: 'T', blocks }),
    markdown: () => markdown({ blocks }),
    csv: () => csv([['a', 'b "c"']]),
    png: () => png({ size: 4 }),
    jpeg,
    junk: () => hostile.junk({ bytes: 100 }),
    'bomb in a docx': () => hostile.bombDocx({ inflatedMb: 3 }),
    'bomb in a PDF': () => hostile.bombPdf({ inflatedMb: 3 }),
    'looping PDF': () => hostile.loopingPdf('form'),
  }
  for (const [name, make] of Object.entries(makers)) {
    test(`are the same bytes each time: ${name}`, () => {
      assert.ok(make().length > 0)
      assert.deepEqual(make(), make())
    })
  }

  test('in zip containers inflate to what was put in', () => {
    const bytes = Buffer.from(zip([{ name: 'a', content: 'some text' }]))
    const data = bytes.subarray(31, 31 + bytes.readUInt32LE(18))
    assert.equal(inflateRawSync(data).toString(), 'some text')
  })

  test('are small where they are bombs', () => {
    assert.ok(hostile.bombDocx({ inflatedMb: 100 }).length < 300_000)
    assert.ok(hostile.nestedZipBomb({ levels: 6 }).length < 50_000)
    assert.ok(hostile.hugeXlsx({ rows: 100_000 }).length < 6_000_000)
    assert.ok(hostile.bombPdf({ inflatedMb: 500 }).length < 20_000)
  })

  test('name columns as workbooks do', () => {
    assert.deepEqual([0, 25, 26, 701, 702].map(columnName), ['A', 'Z', 'AA', 'ZZ', 'AAA'])
  })
})
