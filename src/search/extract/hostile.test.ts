import assert from 'node:assert/strict'
import { describe, type TestContext, test } from 'node:test'
import { systemClock } from '../../base/clock.ts'
import { docx } from '../../sim/documents/docx.ts'
import * as hostile from '../../sim/documents/hostile.ts'
import { pdf } from '../../sim/documents/pdf.ts'
import { jpeg, png } from '../../sim/documents/plain.ts'
import { xlsx } from '../../sim/documents/xlsx.ts'
import { zip } from '../../sim/documents/zip.ts'
import { DEFAULT_EXTRACT_LIMITS, type Extraction, type SkipCode } from './contract.ts'
import { skippedOf, textOf } from './extract.suite.ts'
import { TextExtractor, type TextExtractorOptions } from './extractor.ts'
import { readDocument } from './read-document.ts'
import { ZipReader } from './zip.ts'

/** However slow the machine is. */
const NEVER_MS = 3_600_000

function extractorOf(t: TestContext, options: Partial<TextExtractorOptions>): TextExtractor {
  const extractor = new TextExtractor({ clock: systemClock, ...options })
  t.after(() => extractor.close())
  return extractor
}

const codeOf = (extraction: Extraction): SkipCode | undefined =>
  extraction.kind === 'skipped' ? extraction.code : undefined

describe('a hostile document', () => {
  const short = docx({ blocks: [{ paragraph: 'A short text.' }] })
  const skipped: [name: string, bytes: Uint8Array, code: SkipCode][] = [
    ['bomb.docx', hostile.bombDocx({ inflatedMb: 1_000 }), 'bomb'],
    ['bomb-that-lies.docx', hostile.bombDocx({ inflatedMb: 1_000, saysBytes: 100 }), 'bomb'],
    ['crowded.docx', hostile.crowdedDocx({ members: 10_001 }), 'bomb'],
    ['flat.zip', hostile.flatZipBomb({ inflatedMb: 1_000 }), 'unsupported-type'],
    ['nested.zip', hostile.nestedZipBomb({ levels: 6 }), 'unsupported-type'],
    ['bomb-called.docx', hostile.flatZipBomb({ inflatedMb: 1_000 }), 'unsupported-type'],
    ['deep.xml', hostile.deepXml({ depth: 100_000 }), 'too-deep'],
    ['deep.html', hostile.deepHtml({ depth: 100_000 }), 'too-deep'],
    ['deep.docx', hostile.deepDocx({ depth: 10_000 }), 'too-deep'],
    ['deep.rtf', Buffer.from(`{\\rtf1${'{'.repeat(100_000)}`), 'too-deep'],
    ['pages.pdf', hostile.loopingPdf('pages'), 'damaged'],
    ['parents.pdf', hostile.loopingPdf('parents'), 'damaged'],
    ['length.pdf', hostile.loopingPdf('length'), 'empty'],
    ['password.pdf', hostile.encryptedPdf(), 'encrypted'],
    ['password.docx', hostile.encryptedDocx(), 'encrypted'],
    ['old.doc', hostile.oldDoc(), 'unsupported-type'],
    ['cut.docx', hostile.truncated(short), 'damaged'],
    ['cut.pdf', hostile.truncated(pdf({ pages: ['one', 'two'] })), 'damaged'],
    ['junk', hostile.junk({ bytes: 10_000 }), 'unsupported-type'],
    ['junk.docx', hostile.junk({ bytes: 10_000 }), 'unsupported-type'],
    [
      'junk-of-a-zip.docx',
      Buffer.concat([Buffer.from('PK\x03\x04'), hostile.junk({ bytes: 9_999 })]),
      'damaged',
    ],
    [
      'junk-of-a-pdf.pdf',
      Buffer.concat([Buffer.from('%PDF-1.7\n'), hostile.junk({ bytes: 9_999 })]),
      'damaged',
    ],
    ['picture.txt', png(), 'unsupported-type'],
    ['picture.docx', jpeg(), 'unsupported-type'],
  ]

  test('is skipped with its reason, and the thread goes on', async (t) => {
    const extractor = extractorOf(t, { limits: { timeMs: NEVER_MS } })
    for (const [name, bytes, code] of skipped) {
      const extraction = await extractor.extract({ bytes, name })
      assert.equal(codeOf(extraction), code, `${name}: ${JSON.stringify(extraction).slice(0, 200)}`)
      assert.ok(extraction.kind === 'skipped' && extraction.reason.length > 10)
    }
    const text = await extractor.extract({ bytes: short, name: 'after.docx' })
    assert.equal(text.kind, 'text')
    assert.equal(extractor.threads, 1)
  })

  test('of which some is readable is read as far as the limits go', async (t) => {
    const extractor = extractorOf(t, { limits: { charsMax: 50_000, pagesMax: 20, timeMs: NEVER_MS } })
    const documents: [name: string, bytes: Uint8Array, isTruncated: boolean][] = [
      ['huge.xlsx', hostile.hugeXlsx({ rows: 100_000 }), true],
      ['crowded.pdf', hostile.crowdedPdf({ pages: 1_000 }), true],
      ['form.pdf', hostile.loopingPdf('form'), false],
      ['laughs.xml', hostile.billionLaughs(), false],
      ['line.txt', Buffer.alloc(100_000_000, 'x'), true],
      ['line.html', Buffer.from(`<html><p>${'x'.repeat(1_000_000)}`), true],
      ['line.csv', Buffer.alloc(1_000_000, 'x,'), true],
      ['headings.md', Buffer.alloc(1_000_000, '# x\n'), true],
    ]
    for (const [name, bytes, isTruncated] of documents) {
      const document = await extractor.extractChunks({ bytes, name })
      assert.ok(document.kind === 'text', `${name}: ${JSON.stringify(document)}`)
      assert.equal(document.isTruncated, isTruncated, name)
      const chars = document.chunks.reduce((sum, { text }) => sum + text.length, 0)
      assert.ok(chars > 0 && chars <= 60_000, `${name}: ${chars}`)
    }
  })

  test('that takes too long ends its thread, and the next is read', async (t) => {
    const extractor = extractorOf(t, { limits: { timeMs: 20 } })
    const slow = Buffer.from(`<html>${'<b>'.repeat(900)}${'</i>'.repeat(2_000_000)}`)
    assert.equal(codeOf(await extractor.extract({ bytes: slow, name: 'slow.html' })), 'timeout')
    assert.equal(extractor.threads, 0)
  })

  test('that becomes large only where it is looked into ends its thread', async (t) => {
    const extractor = extractorOf(t, { buffersMbMax: 48, limits: { timeMs: NEVER_MS } })
    const bomb = hostile.bombPdf({ inflatedMb: 1_000 })
    assert.ok(bomb.length < 10_000)
    assert.equal(codeOf(await extractor.extract({ bytes: bomb, name: 'bomb.pdf' })), 'out-of-memory')
    assert.equal((await extractor.extract({ bytes: short, name: 'after.docx' })).kind, 'text')
  })
})

describe('what is unpacked', () => {
  const inflated = async (bytes: Uint8Array, member: string): Promise<{ bytes: number; code?: SkipCode }> => {
    const zip = new ZipReader(bytes, DEFAULT_EXTRACT_LIMITS)
    try {
      for await (const _ of zip.pieces(member));
      return { bytes: zip.inflatedBytes }
    } catch (thrown) {
      return { bytes: zip.inflatedBytes, code: (thrown as { code: SkipCode }).code }
    }
  }

  test('grows with the document, and of a bomb not at all', async () => {
    const blocks = Array.from({ length: 1_000 }, (_, at) => ({ paragraph: `Number ${at} of many.` }))
    const once = await inflated(docx({ blocks }), 'word/document.xml')
    const twice = await inflated(docx({ blocks: [...blocks, ...blocks] }), 'word/document.xml')
    assert.ok(twice.bytes / once.bytes > 1.9 && twice.bytes / once.bytes < 2.1)
    for (const inflatedMb of [5, 50, 2_000]) {
      const { code, bytes } = await inflated(hostile.bombDocx({ inflatedMb }), 'word/document.xml')
      assert.equal(code, 'bomb')
      assert.ok(bytes < 2_000_000, String(bytes))
    }
  })

  test('is no more than what is written needs', async () => {
    const sheet = hostile.hugeXlsx({ rows: 100_000 })
    const limits = { charsMax: 20_000, inflatedBytesMax: 2_000_000 }
    assert.equal((await textOf(sheet, 'a.xlsx', { limits })).isTruncated, true)
    const whole = { ...limits, charsMax: 100_000_000 }
    assert.equal((await skippedOf(sheet, 'a.xlsx', { limits: whole })).code, 'too-large')
  })

  test('has names of sheets in one short line, since every chunk repeats them', async () => {
    const rows = Array.from({ length: 3 }, (_, n) => [`row ${n}`, 'text'])
    const name = `Costs\nIgnore  all\u2028of this${'x'.repeat(300_000)}`
    const table = `<table:table table:name="${name.replaceAll('\n', '&#10;')}"><table:table-row><table:table-cell>
      <text:p>text</text:p></table:table-cell></table:table-row></table:table>`
    const ods = zip([
      { name: 'mimetype', content: 'application/vnd.oasis.opendocument.spreadsheet' },
      {
        name: 'content.xml',
        content: `<office:body><office:spreadsheet>${table}</office:spreadsheet></office:body>`,
      },
    ])
    for (const [file, bytes] of [
      ['a.xlsx', xlsx({ sheets: [{ name, rows }] })],
      ['a.ods', ods],
    ] as const) {
      const [part] = (await textOf(bytes, file)).parts
      assert.ok(part?.place.kind === 'rows', file)
      assert.equal(part.place.sheet?.length, 100, file)
      assert.match(part.place.sheet, /^Costs Ignore all of thisx+$/, file)
    }
  })

  test('of a container with a changed byte or without its end is text or a reason, and nothing else', async () => {
    const bytes = Buffer.from(xlsx({ sheets: [{ name: 'S', rows: [['some', 'text']] }] }))
    for (let at = 0; at < bytes.length; at += 37) {
      const changed = Buffer.from(bytes)
      changed[at]! ^= 0xff
      for (const document of [changed, bytes.subarray(0, at)]) {
        const extraction = await readDocument({ bytes: document, name: 'a.xlsx' }, DEFAULT_EXTRACT_LIMITS)
        assert.ok(extraction.kind === 'text' || extraction.reason !== '')
      }
    }
  })
})
