import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { docx, docxMembers } from '../../sim/documents/docx.ts'
import { pdf } from '../../sim/documents/pdf.ts'
import { csv } from '../../sim/documents/plain.ts'
import { pptx } from '../../sim/documents/pptx.ts'
import { xlsx, xlsxMembers } from '../../sim/documents/xlsx.ts'
import { type ZipMember, zip } from '../../sim/documents/zip.ts'
import { numberedDocument, payload } from '../../sim/gmail/generate-parts.ts'
import type { ExtractedText } from './contract.ts'
import { skippedOf, textOf } from './extract.suite.ts'

const texts = ({ parts }: ExtractedText): string[] => parts.map(({ text }) => text)
const replaced = (members: ZipMember[], name: string, content: string): Uint8Array =>
  zip(members.map((member) => (member.name === name ? { name, content } : member)))
const word = (body: string): Uint8Array =>
  replaced(
    docxMembers({ blocks: [] }),
    'word/document.xml',
    `<w:document xmlns:w="w" xmlns:mc="mc"><w:body>${body}</w:body></w:document>`,
  )
const NONE = { kind: 'none' }

describe('Word documents', () => {
  test('are read by sections, with tables, header, footer and footnotes', async () => {
    const document = await textOf(
      docx({
        title: 'The plan',
        header: 'Confidential',
        footer: 'Page x of y',
        blocks: [
          { paragraph: 'Before all.' },
          { heading: 'Goals & aims' },
          { paragraph: 'We grow 😀.', footnote: 'In metres.' },
          { heading: 'By when', level: 2 },
          {
            table: [
              ['Step', 'Day'],
              ['First', 'Monday'],
            ],
          },
          { heading: 'Risks' },
          { paragraph: 'None.' },
        ],
      }),
      'plan.docx',
    )
    assert.deepEqual([document.format, document.title], ['docx', 'The plan'])
    assert.deepEqual(document.parts, [
      { text: 'Before all.', headings: [], place: NONE },
      { text: 'Goals & aims\n\nWe grow 😀.', headings: ['Goals & aims'], place: NONE },
      {
        text: 'By when\n\nStep | Day\nFirst | Monday',
        headings: ['Goals & aims', 'By when'],
        place: NONE,
      },
      { text: 'Risks\n\nNone.', headings: ['Risks'], place: NONE },
      { text: 'Confidential', headings: [], place: NONE },
      { text: 'Page x of y', headings: [], place: NONE },
      { text: 'In metres.', headings: [], place: NONE },
    ])
  })

  test('are read without what is deleted, moved, hidden, a field code or an old copy', async () => {
    const document = await textOf(
      word(
        `<w:p><w:r><w:t>kept</w:t><w:tab/></w:r><w:del><w:r><w:delText>no</w:delText></w:r></w:del>
         <w:moveFrom><w:r><w:t>no</w:t></w:r></w:moveFrom><w:r><w:rPr><w:vanish/></w:rPr><w:t>no</w:t></w:r>
         <w:r><w:instrText>PAGE no</w:instrText></w:r><w:r><w:t>too</w:t><w:br/><w:t>below</w:t></w:r></w:p>
         <mc:AlternateContent><mc:Choice><w:p><w:r><w:t>box</w:t></w:r></w:p></mc:Choice>
         <mc:Fallback><w:p><w:r><w:t>no</w:t></w:r></w:p></mc:Fallback></mc:AlternateContent>`,
      ),
      'a.docx',
    )
    assert.deepEqual(texts(document), ['kept too\nbelow\n\nbox'])
  })

  test('keep text boxes and tables that stand in paragraphs and cells', async () => {
    const inner = '<w:tbl><w:tr><w:tc><w:p><w:r><w:t>inner</w:t></w:r></w:p></w:tc></w:tr></w:tbl>'
    const document = await textOf(
      word(
        `<w:p><w:r><w:t>around</w:t><w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent></w:r></w:p>
         <w:tbl><w:tr><w:tc><w:p><w:r><w:t>outer</w:t></w:r></w:p>${inner}</w:tc><w:tc><w:p/></w:tc></w:tr></w:tbl>`,
      ),
      'a.docx',
    )
    assert.deepEqual(texts(document), ['boxed\n\naround\n\nouter inner'])
  })
})

describe('workbooks', () => {
  test('are read by rows, with the names of columns, dates as dates and numbers as shown', async () => {
    const document = await textOf(
      xlsx({
        title: 'Costs',
        sheets: [
          {
            name: 'Year & month',
            rows: [
              ['What', 'Paid', 'On', 'Done'],
              ['Rent', 1200.5, new Date(Date.UTC(2026, 1, 28)), true],
              [],
              ['Sum', 0.1 + 0.2, new Date(Date.UTC(2026, 2, 1, 9, 30)), false],
              ['Rent', null, null, null],
            ],
          },
          { name: 'Plain', rows: [[1, 2, 3]] },
        ],
      }),
      'costs.xlsx',
    )
    assert.equal(document.title, 'Costs')
    assert.deepEqual(document.parts, [
      {
        text: 'What | Paid | On | Done\nWhat: Rent | Paid: 1200.5 | On: 2026-02-28 | Done: TRUE',
        headings: ['Year & month'],
        place: { kind: 'rows', sheet: 'Year & month', first: 1, last: 2 },
      },
      {
        text: 'What: Sum | Paid: 0.3 | On: 2026-03-01 09:30 | Done: FALSE\nWhat: Rent',
        headings: ['Year & month'],
        place: { kind: 'rows', sheet: 'Year & month', first: 4, last: 5 },
      },
      {
        text: '1 | 2 | 3',
        headings: ['Plain'],
        place: { kind: 'rows', sheet: 'Plain', first: 1, last: 1 },
      },
    ])
  })

  test('tell dates from numbers by their formats, in both systems of days', async () => {
    const formats = ['yyyy-mm-dd', '0.00 "days"', '[Red]#,##0', '[h]:mm', '0.0%', 'General']
    const xfs = formats.map((_, at) => `<xf numFmtId="${164 + at}"/>`)
    const codes = formats.map(
      (code, at) => `<numFmt numFmtId="${164 + at}" formatCode="${code.replaceAll('"', '&quot;')}"/>`,
    )
    const styles = `<styleSheet><numFmts>${codes.join('')}</numFmts><cellXfs>${xfs.join('')}</cellXfs></styleSheet>`
    const cells = [46082, 1.5, 46082, 0.5, 0.256, 59].map((value, at) => `<c s="${at}"><v>${value}</v></c>`)
    const sheet = `<worksheet><sheetData><row>${cells.join('')}</row></sheetData></worksheet>`
    const members = xlsxMembers({ sheets: [{ name: 'S', rows: [] }] })
    const withStyles = (book: string): Uint8Array =>
      zip(
        members.map((member) => {
          if (member.name === 'xl/styles.xml') return { ...member, content: styles }
          if (member.name === 'xl/worksheets/sheet1.xml') return { ...member, content: sheet }
          if (member.name === 'xl/workbook.xml')
            return { ...member, content: String(member.content).replace('<sheets>', `${book}<sheets>`) }
          return member
        }),
      )
    const row = '| 1.5 | 46082 | 12:00 | 25.6% | 59'
    assert.deepEqual(texts(await textOf(withStyles(''), 'a.xlsx')), [`2026-03-01 ${row}`])
    assert.deepEqual(texts(await textOf(withStyles('<workbookPr date1904="1"/>'), 'a.xlsx')), [
      `2030-03-02 ${row}`,
    ])
  })

  test('are read where strings are inline, rich, or results of formulas', async () => {
    const members = xlsxMembers({ sheets: [{ name: 'S', rows: [['shared']] }] })
    const sheet = `<worksheet><sheetData><row r="7"><c r="B7" t="s"><v>0</v></c><c r="D7" t="inlineStr"><is><r><t>in</t></r><r><t>line</t></r></is></c>
      <c t="str"><f>A1&amp;"x"</f><v>result</v></c><c t="e"><v>#DIV/0!</v></c></row></sheetData></worksheet>`
    const document = await textOf(replaced(members, 'xl/worksheets/sheet1.xml', sheet), 'a.xlsx')
    assert.deepEqual(document.parts, [
      {
        text: 'shared | inline | result | #DIV/0!',
        headings: ['S'],
        place: { kind: 'rows', sheet: 'S', first: 7, last: 7 },
      },
    ])
  })
})

describe('presentations', () => {
  test('are read slide by slide, with the notes of the speaker', async () => {
    const { parts, title } = await textOf(
      pptx({
        title: 'Kick-off',
        slides: [
          { title: 'Why', lines: ['Because & so', 'and on'], notes: 'Smile here.' },
          { title: 'How', lines: ['Step by step'] },
        ],
      }),
      'a.pptx',
    )
    assert.equal(title, 'Kick-off')
    assert.deepEqual(parts, [
      { text: 'Why\nBecause & so\nand on', headings: ['Why'], place: { kind: 'slide', slide: 1 } },
      { text: 'Smile here.', headings: ['Why'], place: { kind: 'slide', slide: 1 } },
      { text: 'How\nStep by step', headings: ['How'], place: { kind: 'slide', slide: 2 } },
    ])
  })
})

describe('PDF', () => {
  test('is read page by page, in any script', async () => {
    const { parts, title } = await textOf(
      pdf({ title: 'Čtení', pages: ['First (page)\nwith two lines', 'Žluťoučký kůň', ''] }),
      'a.pdf',
    )
    assert.equal(title, 'Čtení')
    assert.deepEqual(parts, [
      { text: 'First (page)\nwith two lines', headings: [], place: { kind: 'page', page: 1 } },
      { text: 'Žluťoučký kůň', headings: [], place: { kind: 'page', page: 2 } },
    ])
  })

  test('has its words whole that a line cuts, and pages beyond the limit left out', async () => {
    const pages = ['an exam-\nple of what-\nEver', 'second', 'third']
    const document = await textOf(pdf({ pages }), 'a.pdf', { limits: { pagesMax: 2 } })
    assert.deepEqual(texts(document), ['an example of what-\nEver', 'second'])
    assert.equal(document.isTruncated, true)
  })

  test('without text, as a scanner makes it, is empty', async () => {
    assert.deepEqual(await skippedOf(pdf({ pages: ['', ''] }), 'scan.pdf'), {
      kind: 'skipped',
      code: 'empty',
      reason: 'its pages have no text, as with scanned pages',
    })
  })
})

describe('OpenDocument', () => {
  const open = (kind: string, body: string, manifest = ''): Uint8Array =>
    zip([
      { name: 'mimetype', content: `application/vnd.oasis.opendocument.${kind}` },
      { name: 'META-INF/manifest.xml', content: `<manifest>${manifest}</manifest>` },
      { name: 'meta.xml', content: '<office:meta><dc:title>Title</dc:title></office:meta>' },
      { name: 'content.xml', content: `<office:body>${body}</office:body>` },
    ])

  test('text is read by sections', async () => {
    const { parts, title, format } = await textOf(
      open(
        'text',
        `<office:text><text:tracked-changes><text:p>no</text:p></text:tracked-changes>
         <text:h text:outline-level="1">Head</text:h><text:p>One<text:s text:c="2"/>two<text:note><text:note-body><text:p>note</text:p></text:note-body></text:note></text:p>
         <table:table><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell><table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table></office:text>`,
      ),
      'a.odt',
    )
    assert.deepEqual([title, format], ['Title', 'odt'])
    assert.deepEqual(parts, [{ text: 'Head\n\nnote\n\nOne two\n\na | b', headings: ['Head'], place: NONE }])
  })

  test('workbooks are read by rows, however often one is repeated', async () => {
    const cell = (text: string, more = ''): string =>
      `<table:table-cell ${more}><text:p>${text}</text:p></table:table-cell>`
    const { parts } = await textOf(
      open(
        'spreadsheet',
        `<office:spreadsheet><table:table table:name="S"><table:table-row>${cell('Name')}${cell('City')}</table:table-row>
         <table:table-row table:number-rows-repeated="1000000000"><table:table-cell table:number-columns-repeated="1000000000"/></table:table-row>
         <table:table-row><table:table-cell/>${cell('Rome')}${cell('3/1/26', 'office:date-value="2026-03-01T09:30:00"')}</table:table-row></table:table></office:spreadsheet>`,
      ),
      'a.ods',
    )
    assert.deepEqual(
      parts.map(({ text, place }) => [text, place]),
      [
        ['Name | City', { kind: 'rows', sheet: 'S', first: 1, last: 1 }],
        [
          'City: Rome | 2026-03-01 09:30:00',
          { kind: 'rows', sheet: 'S', first: 1_000_000_002, last: 1_000_000_002 },
        ],
      ],
    )
  })

  test('presentations are read by slides', async () => {
    const { parts } = await textOf(
      open(
        'presentation',
        `<office:presentation><draw:page><draw:frame presentation:class="title"><text:p>Why</text:p></draw:frame><draw:frame><text:p>So</text:p></draw:frame></draw:page><draw:page><text:p>Next</text:p></draw:page></office:presentation>`,
      ),
      'a.odp',
    )
    assert.deepEqual(parts, [
      { text: 'Why\nSo', headings: ['Why'], place: { kind: 'slide', slide: 1 } },
      { text: 'Next', headings: [], place: { kind: 'slide', slide: 2 } },
    ])
  })

  test('with a password is skipped', async () => {
    const document = open('text', '', '<manifest:encryption-data/>')
    assert.equal((await skippedOf(document, 'a.odt')).code, 'encrypted')
  })
})

describe('tables of text', () => {
  test('are read by rows with the names of their columns, whatever separates them', async () => {
    const rows = [
      ['Name', 'Note'],
      ['Ann', 'says "hi",\nand; goes'],
      ['Bob', ''],
    ]
    for (const separator of [',', ';', '\t', '|']) {
      const { parts, format } = await textOf(csv(rows, separator), 'a.csv')
      assert.equal(format, 'csv')
      assert.deepEqual(parts, [
        {
          text: 'Name | Note\nName: Ann | Note: says "hi", and; goes\nName: Bob',
          headings: [],
          place: { kind: 'rows', first: 1, last: 3, sheet: undefined },
        },
      ])
    }
  })

  test('of numbers have no names', async () => {
    assert.deepEqual(texts(await textOf('1,2\n3,4\n', 'a.csv')), ['1 | 2\n3 | 4'])
  })

  test('are read to their end where a quote is never closed', async () => {
    assert.deepEqual(texts(await textOf('a,b\nc,"d\ne,f', 'a.csv')), ['a | b\na: c | b: d e,f'])
  })
})

describe('rich text', () => {
  test('is what is shown of it', async () => {
    const rtf = String.raw`{\rtf1\ansi\ansicpg1250{\fonttbl{\f0 Arial;}}{\*\generator no;}{\info{\title no}}
\pard\outlinelevel0 Head\par\pard Caf\'e9 \u382?lu\'9d and \{braces\}\tab x{\v no}\line next\par
\trowd a\cell b\cell\row{\pict 0102ff}end}`
    const { parts, format } = await textOf(rtf, 'a.rtf')
    assert.equal(format, 'rtf')
    assert.deepEqual(parts, [
      { text: 'Head\n\nCafé žluť and {braces} x\nnext\n\na | b\n\nend', headings: ['Head'], place: NONE },
    ])
  })
})

test('what comes attached to simulated mail is read, however large it is', async () => {
  const numbers = Array.from({ length: 60 }, (_, number) => number)
  for (const extension of ['pdf', 'docx']) {
    const number = numbers.find((one) => numberedDocument(one, 1).name.endsWith(extension))!
    for (const lines of [0, 1, 300, 20_000]) {
      const { name, ...document } = numberedDocument(number, lines)
      const bytes = Buffer.from(payload(document), 'base64')
      assert.ok(bytes.length >= lines * 57, name)
      const found = texts(await textOf(bytes, name)).join(' ')
      assert.match(found, /(?:[A-Z][^.?!]+[.?!]\s*){6}/, `${name} of ${lines} lines: ${found.slice(0, 300)}`)
    }
  }
})
