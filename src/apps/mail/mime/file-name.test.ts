import assert from 'node:assert/strict'
import { basename, posix, win32 } from 'node:path'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { safeFileName } from './file-name.ts'

describe('a safe file name', () => {
  const cases: readonly [name: string, safe: string][] = [
    ['report.pdf', 'report.pdf'],
    ['../../etc/passwd', 'passwd'],
    ['/etc/passwd', 'passwd'],
    ['C:\\Users\\me\\report.pdf', 'report.pdf'],
    ['..\\..\\boot.ini', 'boot.ini'],
    ['AC/DC: live?.mp3', 'AC_DC_ live_.mp3'],
    ['.bashrc', 'bashrc'],
    ['...', 'fallback'],
    ['///', 'fallback'],
    ['', 'fallback'],
    ['con', '_con'],
    ['NUL.txt', '_NUL.txt'],
    ['com1 .tar.gz', '_com1 .tar.gz'],
    ['invoice\u202efdp.exe', 'invoicefdp.exe'],
    ['a\u0000b\nc.txt', 'abc.txt'],
    ['name. . ', 'name'],
    ['Jörg 日本.txt', 'Jörg 日本.txt'],
  ]
  for (const [name, safe] of cases) {
    test(JSON.stringify(name), () => assert.equal(safeFileName(name, 'fallback'), safe))
  }

  test('keeps its extension when it is cut', () => {
    const name = safeFileName(`${'ä'.repeat(5_000)}.tar.gz`, 'x')
    assert.ok(name.endsWith('ä.gz') || name.endsWith('.tar.gz'), name)
    assert.ok(Buffer.byteLength(name) <= 200)
  })

  test('is never empty, even where the fallback is no name either', () => {
    assert.equal(safeFileName('..', '/'), 'unnamed')
  })

  test('is one path segment, whatever it is made of', () => {
    const nasty = fc.array(
      fc.constantFrom('/', '\\', '.', '..', ' ', 'con', ':', '\u202e', '\u0000', 'a', '\ud800', 'é'),
      { maxLength: 12 },
    )
    fc.assert(
      fc.property(
        fc.oneof(
          nasty.map((pieces) => pieces.join('')),
          fc.string({ unit: 'binary', maxLength: 400 }),
        ),
        (name) => {
          const safe = safeFileName(name, 'attachment')
          assert.equal(basename(safe), safe)
          assert.equal(win32.basename(safe), safe)
          assert.equal(posix.normalize(safe), safe)
          assert.match(safe, /^[^/\\:*?"<>|. ]/)
          assert.ok(!/[. ]$/.test(safe) && safe.isWellFormed() && Buffer.byteLength(safe) <= 200)
        },
      ),
      { numRuns: 500 },
    )
  })
})
