import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { buildWeb } from '../scripts/build-web.ts'

const FIRST_PAGE_BYTES_MAX = 150_000
/** Any page, with everything it needs. */
const PAGE_BYTES_MAX = 150_000

type Chunk = { file: string; css?: string[]; imports?: string[]; isEntry?: boolean; isDynamicEntry?: boolean }

let folder = ''
let chunks: Record<string, Chunk> = {}

before(async () => {
  folder = (await buildWeb()).folder
  chunks = JSON.parse(readFileSync(join(folder, '.vite/manifest.json'), 'utf8')) as Record<string, Chunk>
})

function filesOf(name: string, found = new Set<string>()): Set<string> {
  const chunk = chunks[name]
  if (!chunk || found.has(chunk.file)) return found
  found.add(chunk.file)
  for (const css of chunk.css ?? []) found.add(css)
  for (const other of chunk.imports ?? []) filesOf(other, found)
  return found
}

function gzipBytes(names: string[]): number {
  const files = new Set(names.flatMap((name) => [...filesOf(name)]))
  return [...files].reduce((sum, file) => sum + gzipSync(readFileSync(join(folder, file))).length, 0)
}

describe('the built dashboard', () => {
  test('needs at most 150 kB, compressed, for its first page', () => {
    const bytes = gzipBytes(['index.html', 'src/pages/overview.tsx'])
    assert.ok(bytes > 10_000, `${bytes} bytes are not a dashboard`)
    assert.ok(bytes <= FIRST_PAGE_BYTES_MAX, `${bytes} bytes`)
  })

  test('needs at most 150 kB, compressed, for any page', () => {
    const pages = Object.keys(chunks).filter((name) => chunks[name]?.isDynamicEntry)
    assert.ok(pages.length >= 11, pages.join(', '))
    for (const page of pages) assert.ok(gzipBytes(['index.html', page]) <= PAGE_BYTES_MAX, page)
  })

  test('has nothing inline that the content security policy would refuse', () => {
    const html = readFileSync(join(folder, 'index.html'), 'utf8')
    assert.doesNotMatch(html, /<script(?![^>]*\bsrc=)/)
    assert.doesNotMatch(html, /<style|\sstyle=|\son[a-z]+=|javascript:|data:/i)
    assert.doesNotMatch(html, /https?:\/\//)
  })

  test('is not built again as long as its sources stay the same', async () => {
    assert.deepEqual(await buildWeb(), { folder, built: false })
  })
})
