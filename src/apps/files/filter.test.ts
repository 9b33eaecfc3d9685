import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFilter, type FilterSettings, filterSchema } from './filter.ts'

function filterOf(settings: Partial<FilterSettings> = {}, ignoreFile?: string) {
  const filter = createFilter(filterSchema.parse(settings), ignoreFile)
  return {
    file: (path: string, size = 1) => filter.excluded(path, { type: 'file', size }),
    folder: (path: string) => filter.excluded(path, { type: 'folder' }),
  }
}

test('without settings everything takes part but unfinished files and our own folder', () => {
  const { file, folder } = filterOf()
  for (const path of ['a', 'a/b.txt', '.hidden', 'a/.git/config', 'tmp', 'x.tmpl', 'a~b']) {
    assert.equal(file(path), undefined, path)
  }
  for (const path of [
    'x.partial',
    'a/x.tmp',
    '~x',
    '.~lock.a#',
    'a/.x.swp',
    'b.crdownload',
    '.tidemark/root',
  ]) {
    assert.ok(file(path), path)
  }
  assert.ok(folder('.tidemark'))
  assert.equal(folder('a/.tidemark'), undefined)
})

test('sync_paths leaves only these, and the folders on the way to them', () => {
  const { file, folder } = filterOf({ sync_paths: ['/Photos/2024/', 'notes.txt'] })
  assert.equal(folder('Photos'), undefined)
  assert.equal(folder('Photos/2024/a'), undefined)
  assert.equal(file('Photos/2024/a/b.jpg'), undefined)
  assert.equal(file('notes.txt'), undefined)
  assert.ok(file('Photos/x.jpg'))
  assert.ok(folder('Photos/2023'))
  assert.ok(file('Photos'))
  assert.ok(folder('Photos/20245'))
})

test('patterns are those of a .gitignore, in the settings and in the folder', () => {
  const { file, folder } = filterOf(
    { skip: ['*.iso', '/build/'] },
    '# comment\nnode_modules/\n!keep.log\n*.log\n',
  )
  assert.match(file('a/x.iso') ?? '', /skip/)
  assert.ok(folder('build'))
  assert.equal(folder('a/build'), undefined)
  assert.match(file('a/node_modules/x/y') ?? '', /\.tidemarkignore/)
  assert.ok(file('x.log'))
  assert.equal(filterOf({}, '*.log\n!keep.log').file('keep.log'), undefined)
})

test('dotfiles and large files are skipped where that is asked for', () => {
  const { file } = filterOf({ skip_dotfiles: true, size_mb_max: 1 })
  assert.ok(file('.a'))
  assert.ok(file('.git/config'))
  assert.equal(file('a', 1024 * 1024), undefined)
  assert.ok(file('a', 1024 * 1024 + 1))
})

test('what is no proper path is judged all the same', () => {
  const { file, folder } = filterOf({ skip: ['*.iso'] }, '*.log')
  for (const path of ['/a', '../a', './a', '..', '//']) {
    assert.equal(file(path), undefined, path)
    assert.equal(folder(path), undefined, path)
  }
})

test('another setting is another key', () => {
  const key = (settings: Partial<FilterSettings>, text?: string) =>
    createFilter(filterSchema.parse(settings), text).key
  assert.equal(key({}), key({}))
  assert.notEqual(key({}), key({ skip: ['a'] }))
  assert.notEqual(key({}), key({}, 'a'))
})
