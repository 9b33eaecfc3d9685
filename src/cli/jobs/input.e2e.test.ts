/** Wrong input, and ledgers that cannot be read: what the launcher says and how it ends. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import pg from 'pg'
import {
  type Ended,
  environment,
  fillLedger,
  launch,
  postgresHome,
  ROOT,
  runHere,
  sqliteHome,
  type TestHome,
} from './jobs.suite.ts'

let home: TestHome
let folder: string
before(async () => {
  home = sqliteHome()
  await fillLedger(home.url)
  folder = mkdtempSync(join(tmpdir(), 'tidemark-bad-'))
})
after(async () => {
  rmSync(folder, { recursive: true, force: true })
  await home.remove()
})

const mistakes: [what: string, args: string[], stderr: RegExp][] = [
  ['a job that is no number', ['jobs', 'show', 'x'], /^tidemark: "x" is not the number of a job\.\n {2}Give/],
  ['a negative number', ['jobs', 'cancel', '--', '-3'], /"-3" is not the number of a job/],
  ['the number 0', ['jobs', 'retry', '0'], /"0" is not the number of a job/],
  [
    'an unknown job',
    ['jobs', 'show', '4711'],
    /^tidemark: There is no job #4711\.\n {2}It may have been pruned\./,
  ],
  ['no job at all', ['jobs', 'show'], /missing required argument 'id'/],
  [
    'a misspelt state',
    ['jobs', 'list', '--state', 'penidng'],
    /did you mean pending\?\n {2}The states are pending, claimed, done/,
  ],
  [
    'a state that cannot be canceled',
    ['jobs', 'cancel', '--kind', 'a', '--state', 'done'],
    /The states are pending, claimed, failed\./,
  ],
  [
    'a limit of 0',
    ['jobs', 'list', '--limit', '0'],
    /--limit is "0", but it must be a whole number from 1 up\./,
  ],
  ['too large a limit', ['jobs', 'list', '--limit', '5000'], /at most 1000 are shown at once/],
  ['a page that is no number', ['jobs', 'list', '--before', 'last'], /--before is "last"/],
  [
    'no length of time',
    ['jobs', 'prune', '--older-than', 'soon'],
    /which is not a length of time\.\n {2}Write it like 90s/,
  ],
  ['a misspelt verb', ['jobs', 'lst'], /unknown command 'lst'\n {2}Did you mean list\?/],
  ['jobs and --all-failed', ['jobs', 'retry', '1', '--all-failed'], /but not both/],
  ['items and --all', ['bad', 'retry', '1', '--all'], /but not both/],
  ['a bad item that is no number', ['bad', 'retry', 'x'], /"x" is not the number of a bad item/],
  ['a pause without a scope', ['pause'], /What is to be paused\?/],
]
for (const [what, args, expected] of mistakes) {
  test(`${what} is answered with a hint and ends with 2`, async () => {
    const { code, stdout, stderr } = await home.run(...args)
    assert.equal(code, 2)
    assert.equal(stdout, '')
    assert.match(stderr, expected)
  })
}

test('the launcher ends with the same codes, prints a stack only under --debug, and errors as JSON under --json', () => {
  const plain = home.launch('jobs', 'show', '4711')
  assert.equal(plain.code, 2)
  assert.doesNotMatch(plain.stderr, /\n\s+at /)
  assert.match(home.launch('jobs', 'show', '4711', '--debug').stderr, /\n\s+at showJob|\n\s+at .*show\.ts/)
  const json = JSON.parse(home.launch('jobs', 'show', '4711', '--json').stderr) as { error: { code: string } }
  assert.equal(json.error.code, 'job-unknown')
  assert.equal(home.launch('status').code, 1)
  assert.equal(home.launch('jobs', 'list').code, 0)
})

describe('a ledger that cannot be read ends with 1 and is left as it is:', () => {
  const refused: [what: string, write: (file: string) => void, stderr: RegExp][] = [
    [
      'a text file',
      (file) => writeFileSync(file, 'my notes\n'.repeat(500)),
      /ledger\.db is not a Tidemark ledger\.\n {2}Choose another file/,
    ],
    ['a database of something else', (file) => writeForeign(file), /is not a Tidemark ledger/],
    [
      'a ledger of a newer Tidemark',
      (file) => writeNewer(file),
      /has schema version 99; .*\n {2}It was written by a newer Tidemark/,
    ],
    [
      'a damaged ledger',
      (file) => writeDamaged(file),
      /ledger\.db is damaged\.\n {2}Restore it from a backup/,
    ],
    ['a ledger that was cut off', (file) => writeCut(file), /is damaged|is not a Tidemark ledger/],
  ]
  for (const [what, write, expected] of refused) {
    test(what, async () => {
      const path = mkdtempSync(join(folder, 'home-'))
      const file = join(path, 'ledger.db')
      write(file)
      const before = readFileSync(file)
      for (const args of [['status'], ['jobs', 'list'], ['pause', '--all']]) {
        const { code, stderr } = await runHere(args, environment(path))
        assert.equal(code, 1, `${args.join(' ')}: ${stderr}`)
        assert.match(stderr, expected)
      }
      assert.deepEqual(readFileSync(file), before)
    })
  }

  function writeForeign(file: string): void {
    const db = new DatabaseSync(file)
    db.exec('CREATE TABLE recipes (name TEXT)')
    db.close()
  }

  function copyLedger(file: string): void {
    // Through the database: what is still in the log belongs to it.
    const db = new DatabaseSync(join(home.path, 'ledger.db'))
    db.exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
    db.close()
    copyFileSync(join(home.path, 'ledger.db'), file)
  }

  function writeNewer(file: string): void {
    copyLedger(file)
    const db = new DatabaseSync(file)
    db.exec(`UPDATE meta SET value = '99' WHERE name = 'schema_version'; PRAGMA journal_mode = DELETE`)
    db.close()
  }

  function writeDamaged(file: string): void {
    copyLedger(file)
    const bytes = readFileSync(file)
    bytes.fill(0xa5, 8_192, bytes.length)
    writeFileSync(file, bytes)
  }

  function writeCut(file: string): void {
    copyLedger(file)
    truncateSync(file, 3 * 4_096 + 100)
  }
})

test('a ledger that may not be written is named, with what to check, and ends with 1', () => {
  const path = mkdtempSync(join(folder, 'readonly-'))
  const file = join(path, 'ledger.db')
  const db = new DatabaseSync(join(home.path, 'ledger.db'))
  db.exec(`PRAGMA wal_checkpoint(TRUNCATE)`)
  db.close()
  copyFileSync(join(home.path, 'ledger.db'), file)
  chmodSync(folder, 0o755)
  chmodSync(file, 0o444)
  chmodSync(path, 0o555)
  for (const args of [['status'], ['pause', '--all']]) {
    const { code, stderr } = runUnprivileged(path, args)
    assert.equal(code, 1)
    assert.match(stderr, /The ledger at .* cannot be (?:written|opened)\.\n {2}Check /)
  }
  chmodSync(path, 0o755)
})

test('a folder in which nothing may be looked up is no empty ledger', () => {
  const path = mkdtempSync(join(folder, 'closed-'))
  mkdirSync(join(path, 'inner'))
  writeFileSync(join(path, 'inner', 'ledger.db'), 'x')
  chmodSync(join(path, 'inner'), 0o000)
  chmodSync(path, 0o755)
  chmodSync(folder, 0o755)
  const { code, stderr } = runUnprivileged(path, ['jobs', 'list'], {
    TIDEMARK_LEDGER_URL: 'sqlite:inner/ledger.db',
  })
  assert.equal(code, 1)
  assert.match(stderr, /The ledger at .* cannot be (?:written|opened)\./)
  chmodSync(join(path, 'inner'), 0o755)
})

/** For root nothing is read-only: everything is loaded first, then the process becomes nobody. */
function runUnprivileged(path: string, args: string[], more: Record<string, string> = {}): Ended {
  const source = (name: string): string => pathToFileURL(join(ROOT, 'src', name)).href
  const needed = [
    'config/load.ts',
    'ledger/sqlite/open.ts',
    'ledger/open.ts',
    'cli/jobs/list.ts',
    'cli/jobs/status.ts',
    'cli/jobs/engines.ts',
  ]
  const script = `
    const { runCommand } = await import(${JSON.stringify(source('cli/main.ts'))})
    for (const url of ${JSON.stringify(needed.map(source))}) await import(url)
    if (process.getuid() === 0) process.seteuid(65534)
    const { env, stdout, stderr } = process
    process.exitCode = await runCommand({ args: ${JSON.stringify(args)}, env, stdout, stderr })`
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
    env: { ...environment(path), ...more },
    cwd: tmpdir(),
  })
  return { code: status, stdout, stderr }
}

describe('a PostgreSQL', () => {
  const refused: [what: string, url: string, code: number, stderr: RegExp][] = [
    [
      'that is not there ends with 1',
      'postgres://ann:s3cret@127.0.0.1:1/tide',
      1,
      /postgres:\/\/ann@127\.0\.0\.1:1\/tide cannot be reached: .*\n {2}Check that the server is running/,
    ],
    [
      'with an address that is none ends with 2',
      'postgres://ann:s3cret@[::1/tide',
      2,
      /ledger\.url is .*, but it must be/,
    ],
    [
      'of another kind ends with 2',
      'mysql://ann:s3cret@db/tide',
      2,
      /ledger\.url is "mysql:\/\/ann:\*\*\*@db\/tide", but it must be/,
    ],
  ]
  for (const [what, url, expectedCode, expected] of refused) {
    test(`${what}, and its password is not printed`, async () => {
      const env = { ...environment(folder), TIDEMARK_LEDGER_URL: url }
      for (const args of [['status'], ['jobs', 'show', '1', '--json'], ['jobs', 'list', '--debug']]) {
        const { code, stdout, stderr } = await runHere(args, env)
        assert.equal(code, expectedCode, stderr)
        if (!args.includes('--json')) assert.match(stderr, expected)
        assert.doesNotMatch(stdout + stderr, /s3cret/)
      }
    })
  }

  test('without such a database, with a wrong password, or with a newer ledger is named', async () => {
    const server = await postgresHome()
    try {
      const at = (change: (url: URL) => void): Record<string, string> => {
        const url = new URL(server.url)
        change(url)
        return { ...environment(server.path), TIDEMARK_LEDGER_URL: url.href }
      }
      const none = await runHere(
        ['status'],
        at((url) => {
          url.pathname = '/no_such_database'
        }),
      )
      assert.equal(none.code, 1)
      assert.match(none.stderr, /There is no such database: .*\n {2}Create it/)
      const stranger = await runHere(
        ['status'],
        at((url) => {
          url.username = 'stranger'
        }),
      )
      assert.equal(stranger.code, 1)
      assert.match(stranger.stderr, /refused the login/)
      await fillLedger(server.url)
      const client = new pg.Client({ connectionString: server.url })
      await client.connect()
      await client.query(`UPDATE tidemark.meta SET value = '99' WHERE name = 'schema_version'`)
      await client.end()
      const newer = await server.run('jobs', 'list')
      assert.equal(newer.code, 1)
      assert.match(newer.stderr, /has schema version 99/)
    } finally {
      await server.remove()
    }
  })
})

describe('completion', () => {
  const suggestions = (...words: string[]): string[] =>
    launch(['complete', '--', ...words], environment(folder))
      .stdout.trimEnd()
      .split('\n')
      .filter((line) => !line.startsWith(':'))
      .map((line) => line.split('\t')[0]!)

  test('knows the verbs, flags and states', () => {
    assert.deepEqual(suggestions('jobs', ''), [
      'list',
      'show',
      'stats',
      'watch',
      'retry',
      'cancel',
      'prune',
      'help',
    ])
    assert.deepEqual(suggestions('jobs', 'list', '--state', 'c'), ['claimed', 'canceled'])
    assert.deepEqual(suggestions('jobs', 'cancel', '--state', ''), ['pending', 'claimed', 'failed'])
    assert.deepEqual(suggestions('pause', '--st'), ['--stream'])
    assert.deepEqual(suggestions('re'), ['resume'])
  })
})
