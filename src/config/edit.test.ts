import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { parse } from 'smol-toml'
import { TidemarkError } from '../base/errors.ts'
import { editToml } from './edit.ts'

const poll = { section: 'files', name: 'poll_seconds' }
const table = { section: 'bandwidth', name: 'timetable' }

describe('a setting is changed, and everything else stays as it was written:', () => {
  const cases: [what: string, before: string, after: string][] = [
    ['in an empty file', '', '[files]\npoll_seconds = 30\n'],
    [
      'in its place, with the comment behind it',
      '# mine\n[files]\n  poll_seconds   = 60   # often # enough\nscan_minutes = 5\n',
      '# mine\n[files]\n  poll_seconds   = 30   # often # enough\nscan_minutes = 5\n',
    ],
    [
      'behind the others of its section, before the blank line and the next one',
      '[files]\nscan_minutes = 5 # s\n\n# of the mail\n[mail]\nbatch = 3\n',
      '[files]\nscan_minutes = 5 # s\npoll_seconds = 30\n\n# of the mail\n[mail]\nbatch = 3\n',
    ],
    [
      'at the end where there is no such section',
      '[mail]\nbatch = 3',
      '[mail]\nbatch = 3\n\n[files]\npoll_seconds = 30\n',
    ],
    ['as a dotted key', 'files.poll_seconds = 60\n[mail]\n', 'files.poll_seconds = 30\n[mail]\n'],
    [
      'in an inline table',
      'files = { poll_seconds = 60, index = "on" } # all\n',
      'files = { poll_seconds = 30, index = "on" } # all\n',
    ],
    [
      'not where a text or a list only looks like it',
      '[mail]\nnote = """\n[files]\npoll_seconds = 60\n"""\nlist = [\n  "[files]", # x\n]\n',
      '[mail]\nnote = """\n[files]\npoll_seconds = 60\n"""\nlist = [\n  "[files]", # x\n]\n\n[files]\npoll_seconds = 30\n',
    ],
    ['with quoted names', '["files"]\n"poll_seconds" = 60\n', '["files"]\n"poll_seconds" = 30\n'],
    [
      'with the line ends of another system',
      '[files]\r\npoll_seconds = 60\r\n',
      '[files]\r\npoll_seconds = 30\r\n',
    ],
  ]
  for (const [what, before, after] of cases) {
    test(what, () => assert.equal(editToml(before, poll, 30), after))
  }

  test('tables of a list become one line, and only they', () => {
    const before =
      '[bandwidth]\nupload = "1MB/s"\n\n[[bandwidth.timetable]]\nfrom = "08:00"\nto = "18:00"\n[[bandwidth.timetable]]\nfrom = "20:00"\nto = "22:00"\n# of the mail\n[mail]\nbatch = 3\n'
    const value = [{ from: '09:00', to: '17:00', upload: '2MB/s' }]
    assert.equal(
      editToml(before, table, value),
      '[bandwidth]\nupload = "1MB/s"\ntimetable = [{ from = "09:00", to = "17:00", upload = "2MB/s" }]\n\n# of the mail\n[mail]\nbatch = 3\n',
    )
    assert.equal(
      editToml(before, table, undefined),
      '[bandwidth]\nupload = "1MB/s"\n\n# of the mail\n[mail]\nbatch = 3\n',
    )
  })
})

test('a setting that is taken out leaves the rest; one that is not there changes nothing', () => {
  const text = '# a\n[files]\n# how often\npoll_seconds = 60 # x\nindex = "off"\n'
  assert.equal(editToml(text, poll, undefined), '# a\n[files]\n# how often\nindex = "off"\n')
  assert.equal(editToml('[mail]\nbatch = 3\n', poll, undefined), '[mail]\nbatch = 3\n')
})

test('a file in a form that cannot be changed safely is refused', () => {
  assert.throws(() => editToml('files = 3\n', poll, 30), TidemarkError)
})

test('whatever stands in a file, it reads as before but for the one setting', () => {
  const line = fc.constantFrom(
    '[files]',
    '[mail]',
    '[[bandwidth.timetable]]',
    '[bandwidth]',
    '',
    '# [files]',
    'poll_seconds = 1',
    'index = "#"',
    'x = """',
    'y = [',
    ']',
    '"""',
    'files.poll_seconds = 2',
    "z = '[files]' # c",
    '[files.sub]',
    'from = "08:00"',
  )
  const texts = fc.array(line, { maxLength: 12 }).map((lines) => lines.join('\n'))
  fc.assert(
    fc.property(texts, fc.constantFrom(30, undefined), (text, value) => {
      let before: Record<string, unknown>
      try {
        before = parse(text)
      } catch {
        return
      }
      let after: Record<string, unknown>
      try {
        after = parse(editToml(text, poll, value))
      } catch (thrown) {
        assert.ok(thrown instanceof TidemarkError, String(thrown))
        return
      }
      const files = { ...(before.files as object), poll_seconds: value }
      if (value === undefined) delete (files as { poll_seconds?: unknown }).poll_seconds
      const wanted = { ...before, files }
      const told = { ...after, files: after.files ?? {} }
      assert.deepEqual(JSON.parse(JSON.stringify(told)), JSON.parse(JSON.stringify(wanted)))
    }),
    { numRuns: 2_000 },
  )
})
