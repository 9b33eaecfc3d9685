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
    [
      'with the end that each line has',
      '# a\r\n[files]\npoll_seconds = 60\r\nindex = "on"\n[mail]\r\n',
      '# a\r\n[files]\npoll_seconds = 30\r\nindex = "on"\n[mail]\r\n',
    ],
    [
      'beside others that are dotted keys',
      'files.index = "on" # i\nmail.batch = 3\n\n[log]\n',
      'files.index = "on" # i\nfiles.poll_seconds = 30\nmail.batch = 3\n\n[log]\n',
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

describe('comments of a value that is written anew', () => {
  const night = [{ from: '22:00', to: '06:00' }]
  const written = 'timetable = [{ from = "22:00", to = "06:00" }]'

  test('stand in front of it where they were inside of it, and behind it where they were behind it', () => {
    const before =
      '[bandwidth]\n  timetable = [\n    # at "night" all of it\n    { from = "21:00", to = "#1" }, # keep\n  ] # end\n# next\n'
    assert.equal(
      editToml(before, table, night),
      `[bandwidth]\n  # at "night" all of it\n  # keep\n  ${written} # end\n# next\n`,
    )
    assert.equal(
      editToml(before, table, undefined),
      '[bandwidth]\n  # at "night" all of it\n  # keep\n  # end\n# next\n',
    )
  })

  test('stay where it was a list of tables', () => {
    const before =
      '[bandwidth]\nupload = 1\n\n[[bandwidth.timetable]] # one\n# why: the office\nfrom = "08:00" # early\nto = "18:00"\n\n# of the files\n[files]\n'
    const comments = '# one\n# why: the office\n# early\n'
    assert.equal(
      editToml(before, table, night),
      `[bandwidth]\nupload = 1\n${comments}${written}\n\n\n# of the files\n[files]\n`,
    )
    assert.equal(
      editToml(before, table, undefined),
      `[bandwidth]\nupload = 1\n\n${comments}\n# of the files\n[files]\n`,
    )
  })
})

test('a setting that is taken out leaves the rest; one that is not there changes nothing', () => {
  const text = '# a\n[files]\n# how often\npoll_seconds = 60 # x\nindex = "off"\n'
  assert.equal(editToml(text, poll, undefined), '# a\n[files]\n# how often\n# x\nindex = "off"\n')
  assert.equal(editToml('[mail]\nbatch = 3\n', poll, undefined), '[mail]\nbatch = 3\n')
})

test('a file in a form that cannot be changed safely is refused, without a line of it', () => {
  for (const text of ['files = 3\n', '[[files]]\npoll_seconds = 60\n', 'token = "s3cret\n']) {
    assert.throws(
      () => editToml(text, poll, 30),
      (thrown) => {
        assert.ok(thrown instanceof TidemarkError)
        assert.equal(thrown.code, 'config-form')
        assert.equal(thrown.cause, undefined)
        return true
      },
    )
  }
})

/** Lines of a file that can be read. What is the setting's own is marked, and every comment has a number. */
type Part = { lines: string[]; isOwn?: boolean }

const part = (...lines: string[]): Part => ({ lines })
const own = (...lines: string[]): Part => ({ lines, isOwn: true })

const filler = fc.constantFrom(part('#'), part(''), part('  #'), part('# [files]#'))
const others = (prefix: string) =>
  fc.subarray([
    part(`${prefix}index = "#" #`),
    part(`${prefix}note = """`, '[files] # no comment', 'poll_seconds = 60', '"""#'),
    part(`  ${prefix}list = [ #`, "  '#', # ]", '  #', ']'),
    part(`${prefix}"quoted.name" = '[files]'`),
  ])
/** The setting in each of the forms that it may have, or not at all. */
const setting = (prefix: string) =>
  fc.constantFrom(
    [],
    [own(`${prefix}poll_seconds = 60`)],
    [own(`\t${prefix}"poll_seconds"  =  60 #`)],
    [own(`${prefix}poll_seconds = [ #`, '  1, # one', '  #', '] #')],
  )
const mixed = (parts: fc.Arbitrary<Part[]>): fc.Arbitrary<Part[]> =>
  parts.chain((all) =>
    fc
      .array(filler, { minLength: all.length, maxLength: all.length })
      .chain((more) => fc.shuffledSubarray([...all, ...more], { minLength: all.length })),
  )
const body = (prefix: string): fc.Arbitrary<Part[]> =>
  fc
    .tuple(others(prefix), setting(prefix))
    .chain(([some, it]) => fc.shuffledSubarray([...some, ...it], { minLength: some.length + it.length }))
    .chain((all) => mixed(fc.constant(all)))

const other = fc.constantFrom<Part[]>(
  [],
  [part('[mail] #', 'batch = 3', 'poll_seconds = 1 #')],
  [part('[[bandwidth.timetable]]', '# inside #', 'from = "08:00" #')],
)
const files = fc.oneof(
  body('').map((parts) => [part('[files] #'), ...parts]),
  fc.constant([part('["files"]'), own('poll_seconds.a = 1 #'), own('poll_seconds.b = 2'), part('x = 1')]),
  fc.constant([part('[files.sub] #', 'poll_seconds = 9 #')]),
  fc.constant([part('[files]', 'index = 1'), own('[files.poll_seconds] #', '# inside', 'a = 1 #')]),
  fc.constant([]),
)
const documents = fc.oneof(
  fc.tuple(filler, files, other).map(([first, ...rest]) => [first, ...rest.flat()]),
  fc.tuple(filler, other, files).map(([first, ...rest]) => [first, ...rest.flat()]),
  fc.tuple(body('files.'), other).map((parts) => parts.flat()),
  fc.constant([own('files = { poll_seconds = 60, list = [ #', '1 ] } #')]),
)
const ends = fc.array(fc.constantFrom('\n', '\r\n'), { minLength: 1, maxLength: 7 })

/** As a file: each line has an end of its own, and each comment that ends in `#` a number. */
function fileOf(
  parts: readonly Part[],
  eols: readonly string[],
): { text: string; kept: string[]; notes: string[] } {
  let number = 0
  const notes: string[] = []
  const lines = parts.flatMap(({ lines: some, isOwn }) =>
    some.map((line) => ({ line: line.replace(/#(?: (?:\]|one))?$/, () => `#c${number++}`), isOwn })),
  )
  const withEnds = lines.map((one, at) => ({ ...one, line: `${one.line}${eols[at % eols.length]}` }))
  for (const { line } of withEnds) notes.push(...(/#c\d+/g.exec(line) ?? []))
  return {
    text: withEnds.map(({ line }) => line).join(''),
    kept: withEnds.flatMap(({ line, isOwn }) => (isOwn ? [] : [line])),
    notes,
  }
}

const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value))

test('whatever stands in a file, it is changed and not refused, and reads as before but for the one setting', () => {
  fc.assert(
    fc.property(documents, ends, fc.constantFrom(30, undefined), (parts, eols, value) => {
      const { text, kept, notes } = fileOf(parts, eols)
      const before = parse(text)
      const result = editToml(text, poll, value)
      const after = parse(result)
      const wanted = { ...before, files: { ...(before.files as object), poll_seconds: value } }
      assert.deepEqual(plain({ ...after, files: after.files ?? {} }), plain(wanted))
      assert.deepEqual(result.match(/#c\d+/g)?.toSorted() ?? [], notes.toSorted(), 'every comment, once')
      const lines = result.match(/[^\n]*\n/g) ?? []
      let at = 0
      for (const line of lines) if (line === kept[at]) at += 1
      assert.equal(at, kept.length, `in its order, with its end: ${JSON.stringify(kept[at])}`)
    }),
    { numRuns: 2_000 },
  )
})
