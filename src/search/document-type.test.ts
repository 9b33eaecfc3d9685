import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DocumentType } from './contract.ts'
import { documentType, mimeTypeOf } from './document-type.ts'

test('a document is what its MIME type says, and what its name says where that tells nothing', () => {
  const cases: [mimeType: string, name: string, type: DocumentType][] = [
    ['application/vnd.google-apps.document', 'Plan', 'document'],
    ['application/vnd.google-apps.spreadsheet', 'Budget', 'sheet'],
    ['application/vnd.google-apps.presentation', 'Pitch', 'slides'],
    [mimeTypeOf('a.DOCX'), 'a.DOCX', 'document'],
    ['text/csv; charset=utf-8', 'rows.csv', 'sheet'],
    ['application/pdf', 'scan', 'pdf'],
    ['application/octet-stream', 'scan.pdf', 'pdf'],
    ['text/plain', 'main.rs', 'code'],
    // TypeScript has the extension of a video format.
    ['video/mp2t', 'stream.ts', 'media'],
    ['text/plain', 'notes.txt', 'text'],
    ['image/png', 'logo.png', 'image'],
    ['', 'song.mp3', 'media'],
    ['application/zip', 'all.zip', 'archive'],
    ['', '.profile', 'other'],
    ['application/octet-stream', 'core', 'other'],
  ]
  for (const [mimeType, name, type] of cases)
    assert.equal(documentType(mimeType, name), type, `${mimeType} ${name}`)
})
