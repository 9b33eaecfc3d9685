import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { Silence } from './test-file.ts'
import { longestFirst, readTimes, writeTimes } from './test-order.ts'
import { changedFiles, repositoryFiles, testsConcerned } from './test-selection.ts'

const ROOT = join(import.meta.dirname, '..')

function concerned(files: Record<string, string>, ...changed: string[]): string[] {
  const sources = Object.entries(files).map(([path, text]) => ({ path, text }))
  return testsConcerned(sources, changed)
}

describe('a change concerns', () => {
  const files = {
    'src/a.ts': 'export const a = 1',
    'src/b.ts': `import { a } from './a.ts'`,
    'src/a.test.ts': `import { a } from './a.ts'`,
    'src/b.test.ts': `const { b } = await import('./b.ts')`,
    'src/other.test.ts': `import { test } from 'node:test'`,
    'src/cli/main.ts': `import '../b.ts'`,
    'bin/tidemark': '',
    'bin/tidemark.js': `await import('../src/cli/main.ts')`,
    'src/cli/launch.suite.ts': `export const BIN = join(ROOT, 'bin', 'tidemark')`,
    'src/cli/launch.e2e.test.ts': `import { BIN } from './launch.suite.ts'`,
    'src/cli/url.e2e.test.ts': `spawn(new URL('../../bin/tidemark', import.meta.url))`,
    'src/worker.ts': `new Worker(new URL('./thread.ts', import.meta.url))`,
    'src/thread.ts': '',
    'src/worker.test.ts': `import './worker.ts'`,
    'docs/mail.md': '',
    'e2e/page.e2e.test.ts': `const PAGE = join(ROOT, 'docs', 'mail.md')`,
    'e2e/pages.e2e.test.ts': `globSync('docs/**/*.md', { cwd: join(import.meta.dirname, '..') })`,
    'package.json': '{}',
  }
  const all = Object.keys(files).filter((path) => path.endsWith('.test.ts'))
  // The last one does what a document says.
  const launched = ['src/cli/launch.e2e.test.ts', 'src/cli/url.e2e.test.ts', 'e2e/page.e2e.test.ts']
  const cases: [what: string, changed: string[], tests: string[]][] = [
    [
      'every test that imports the file, directly or not, and those that launch it',
      ['src/a.ts'],
      ['src/a.test.ts', 'src/b.test.ts', ...launched],
    ],
    ['the tests of the command line, when only that has changed', ['src/cli/main.ts'], launched],
    ['a test that was changed itself', ['src/other.test.ts'], ['src/other.test.ts']],
    ['the tests of what starts the file as a thread', ['src/thread.ts'], ['src/worker.test.ts']],
    [
      'the tests that read a document, by its name or by a pattern',
      ['docs/mail.md'],
      ['e2e/page.e2e.test.ts', 'e2e/pages.e2e.test.ts'],
    ],
    ['all tests, when it is of the packages', ['package.json'], all],
    ['no test, when none reaches the file', ['LICENSE'], []],
  ]
  for (const [what, changed, tests] of cases) {
    test(what, () => assert.deepEqual(concerned(files, ...changed), tests))
  }

  test('the tests that still import a file which is gone', () => {
    const { 'src/a.ts': _, ...rest } = files
    assert.ok(concerned(rest, 'src/a.ts').includes('src/b.test.ts'))
  })

  test('the tests of this project that one would name by hand', () => {
    const sources = repositoryFiles(ROOT)
    const reached = (path: string): string[] => testsConcerned(sources, [path])
    assert.ok(reached('src/cli/main.ts').includes('e2e/mail/document.e2e.test.ts'))
    assert.ok(reached('docs/mail.md').includes('e2e/mail/document.e2e.test.ts'))
    assert.ok(reached('src/ledger/settle.suite.ts').includes('src/ledger/contract.test.ts'))
    assert.ok(reached('src/apps/mail/mime/bodies.ts').includes('src/layers.test.ts'))
    assert.ok(!reached('src/apps/files/decide.ts').includes('src/apps/mail/mime/parse.test.ts'))
  })
})

test('what differs from a reference is what was committed since, what was not yet, and what is new', (t) => {
  const root = mkdtempSync(join(tmpdir(), 'tidemark-changed-'))
  t.after(() => rmSync(root, { recursive: true }))
  const git = (...args: string[]): void => {
    const person = ['-c', 'user.name=Ann', '-c', 'user.email=ann@example.com']
    execFileSync('git', [...person, ...args], { cwd: root, stdio: 'ignore' })
  }
  const write = (name: string, text: string): void => writeFileSync(join(root, name), text)
  git('init', '--initial-branch=main')
  for (const name of ['same.ts', 'edited.ts', 'gone.ts', 'theirs.ts']) write(name, 'first')
  write('.gitignore', 'ignored.ts\n')
  git('add', '.')
  git('commit', '-m', 'first')
  git('checkout', '-b', 'work')
  write('committed.ts', 'x')
  git('add', '.')
  git('commit', '-m', 'second')
  git('checkout', 'main')
  write('theirs.ts', 'changed by others')
  git('commit', '-am', 'third')
  git('checkout', 'work')
  for (const name of ['edited.ts', 'né w.ts', 'ignored.ts']) write(name, 'x')
  rmSync(join(root, 'gone.ts'))
  assert.deepEqual(changedFiles(root, 'main'), ['committed.ts', 'edited.ts', 'gone.ts', 'né w.ts'])
  assert.throws(() => changedFiles(root, 'nowhere'), /nowhere/)
})

describe('the order of files', () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-order-'))
  const at = (name: string): string => join(folder, name)
  const nameOf = (file: string): string => file.slice(folder.length + 1)

  test('begins with those that took longest; a new one is judged by its source and its suites', (t) => {
    t.after(() => rmSync(folder, { recursive: true }))
    writeFileSync(at('long.suite.ts'), 'x'.repeat(30_000))
    writeFileSync(at('suites.test.ts'), `import './long.suite.ts'`)
    writeFileSync(at('short.test.ts'), 'x')
    writeFileSync(at('plain.test.ts'), 'x'.repeat(1_000))
    writeFileSync(at('starts.e2e.test.ts'), 'x'.repeat(900))
    const times = { 'known.test.ts': 20_000, 'quick.test.ts': 10 }
    const names = ['short', 'quick', 'plain', 'known', 'starts.e2e', 'suites'].map(
      (name) => `${name}.test.ts`,
    )
    const ordered = longestFirst(names.map(at), { times, nameOf }).map(nameOf)
    const expected = ['suites', 'known', 'starts.e2e', 'plain', 'quick', 'short']
    assert.deepEqual(
      ordered,
      expected.map((name) => `${name}.test.ts`),
    )
  })

  test('is remembered; what is gone or broken is not', (t) => {
    const file = join(mkdtempSync(join(tmpdir(), 'tidemark-times-')), 'cache', 'times.json')
    t.after(() => rmSync(join(file, '..', '..'), { recursive: true }))
    assert.deepEqual(readTimes(file), {})
    writeTimes(file, { times: { a: 1, b: 2 }, exists: () => true })
    writeTimes(file, { times: { b: 3 }, exists: (name) => name !== 'a' })
    assert.deepEqual(readTimes(file), { b: 3 })
    for (const broken of ['{', 'null', '{"a":"x"}']) {
      writeFileSync(file, broken)
      assert.deepEqual(readTimes(file), {})
    }
  })
})

test('silence is counted in the time of a quiet machine, and ends with every word', () => {
  const silence = new Silence()
  silence.pass(100, 1)
  assert.equal(silence.pass(100, 1), 200)
  assert.equal(silence.pass(100, 5), 220)
  silence.end()
  assert.equal(silence.pass(50, 10), 5)
})
