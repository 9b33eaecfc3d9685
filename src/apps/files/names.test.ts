import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { conflictNameOf, illegalNameOf, isConflictName, unsafeNameOf } from './names.ts'

const inFolder = (name: string) => illegalNameOf(name, { isInRoot: false, path: `a/${name}` })

test('names that OneDrive refuses are named with their reason', () => {
  const refused = [
    'a"b',
    'a*b',
    'a:b',
    'a<b',
    'a>b',
    'a?b',
    'a\\b',
    'a|b',
    ' a',
    'a ',
    'a.',
    '~$a.docx',
    'x_vti_y',
  ]
  for (const name of [
    ...refused,
    'CON',
    'nul',
    'com7',
    'LPT0',
    '.lock',
    'Desktop.ini',
    'a\tb',
    'n'.repeat(256),
  ]) {
    assert.match(inFolder(name) ?? 'taken', /^OneDrive /, name)
  }
})

test('ordinary names are taken', () => {
  for (const name of [
    'a',
    '.hidden',
    'a.b.c',
    'Ünï',
    '~a',
    'console',
    'com10',
    'forms',
    "it's",
    'a#b%c',
    '😀',
  ]) {
    assert.equal(inFolder(name), undefined, name)
  }
})

test('the name forms is refused at the top of a drive alone', () => {
  assert.ok(illegalNameOf('Forms', { isInRoot: true, path: 'Forms' }))
})

test('a path of more than 400 characters is refused', () => {
  assert.ok(illegalNameOf('a', { isInRoot: false, path: `${'b'.repeat(400)}/a` }))
})

test('a name from elsewhere cannot lead out of the folder', () => {
  for (const name of ['', '.', '..', '../x', 'a/b', '/etc', 'a\0b', '\ud800', 'é'.repeat(128)]) {
    assert.ok(unsafeNameOf(name), JSON.stringify(name))
  }
  for (const name of ['...', 'a\\b', '..a', 'é'.repeat(127)])
    assert.equal(unsafeNameOf(name), undefined, name)
})

test('a conflict copy keeps its ending and is known as one', () => {
  const atMs = Date.UTC(2026, 10, 16, 3, 15, 0)
  assert.equal(conflictNameOf('report.pdf', atMs), 'report.conflict-20261116-031500.pdf')
  assert.equal(conflictNameOf('report.pdf', atMs, 2), 'report.conflict-20261116-031500-2.pdf')
  assert.equal(conflictNameOf('.bashrc', atMs), '.bashrc.conflict-20261116-031500')
  assert.equal(conflictNameOf('.tidemark-move-7-report.pdf', atMs), 'report.conflict-20261116-031500.pdf')
  assert.equal(isConflictName('report.pdf'), false)
})

test('a copy of a copy carries one stamp, and any name gives one that a file can have', () => {
  const property = fc.property(fc.string({ unit: 'grapheme', minLength: 1, maxLength: 300 }), (name) => {
    fc.pre(unsafeNameOf(name) === undefined)
    const copy = conflictNameOf(name, 0)
    assert.ok(isConflictName(copy), copy)
    assert.equal(unsafeNameOf(copy), undefined, copy)
    assert.equal(conflictNameOf(copy, 0), copy)
  })
  fc.assert(property)
})
