import assert from 'node:assert/strict'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, describe, test } from 'node:test'
import { TidemarkError } from '../../base/errors.ts'
import { assertRaised, firstVersionStatements } from '../first-version.suite.ts'
import type { Ledger } from '../ledger.ts'
import { openLedger, sqliteFile } from '../open.ts'
import { APPLICATION_ID, SCHEMA_VERSION } from '../schema.ts'

const folder = mkdtempSync(join(tmpdir(), 'tidemark-open-'))
after(() => rmSync(folder, { recursive: true, force: true }))

/** Under root, permission bits bind nobody: for the time of `fn` this process is nobody. */
async function asNobody(fn: () => Promise<void>): Promise<void> {
  if (process.getuid?.() !== 0) return fn()
  process.seteuid!(65_534)
  try {
    await fn()
  } finally {
    process.seteuid!(0)
  }
}

/** What the user is told, and that nothing in the file's folder has changed. */
async function refused(file: string, code: string, dir = folder): Promise<TidemarkError> {
  const before = snapshot(dir)
  const error = await openLedger(`sqlite:${file}`).then(
    async (ledger) => {
      await ledger.close()
      return assert.fail(`${file} was opened`)
    },
    (thrown: unknown) => thrown,
  )
  assert.ok(error instanceof TidemarkError, `no clear message, but: ${error}`)
  assert.equal(error.code, code)
  assert.ok(error.message.includes(file), `the message names the file: ${error.message}`)
  assert.ok(error.hint, 'the message says what to do')
  assert.deepEqual(snapshot(dir), before)
  return error
}

function snapshot(dir: string): Record<string, string> {
  const files = readdirSync(dir, { withFileTypes: true, recursive: true }).filter((entry) => entry.isFile())
  return Object.fromEntries(
    files.map((entry) => {
      const path = join(entry.parentPath, entry.name)
      return [path, readFileSync(path).toString('base64')]
    }),
  )
}

async function makeLedger(
  file: string,
  fill: (ledger: Ledger) => Promise<unknown> = async () => {},
): Promise<void> {
  const ledger = await openLedger(`sqlite:${file}`)
  await fill(ledger)
  await ledger.close()
}

const jobs = (n: number) => ({
  jobs: Array.from({ length: n }, () => ({ kind: 'job', payload: '{"a":"b"}' })),
})

describe('a file that is not ours', () => {
  test('is refused when it is somebody’s SQLite database, and left as it is', async () => {
    for (const mode of ['DELETE', 'WAL']) {
      const file = join(folder, `foreign-${mode}.db`)
      const db = new DatabaseSync(file)
      db.exec(
        `PRAGMA journal_mode = ${mode}; CREATE TABLE contacts (name TEXT); INSERT INTO contacts VALUES ('Ada')`,
      )
      db.close()
      await refused(file, 'ledger-foreign')
    }
  })

  test('is refused when it carries another application’s mark but no table yet', async () => {
    const file = join(folder, 'marked.db')
    const db = new DatabaseSync(file)
    db.exec(`PRAGMA application_id = 252006674; PRAGMA user_version = 3`)
    db.close()
    await refused(file, 'ledger-foreign')
  })

  test('is refused when it is no database at all', async () => {
    const file = join(folder, 'letter.txt')
    writeFileSync(file, 'Dear Ada,\n'.repeat(1_000))
    await refused(file, 'ledger-foreign')
  })
})

describe('a ledger that is damaged', () => {
  test('is reported as damaged when it is opened or read, not as somebody’s mistake', async () => {
    const file = join(folder, 'damaged.db')
    await makeLedger(file, (ledger) => ledger.write(jobs(5_000)))
    const bytes = readFileSync(file)
    // The header and the schema's first page stay; the rest is noise.
    for (let at = 4_096; at < bytes.length; at += 7) bytes[at] = (at * 31) & 0xff
    writeFileSync(file, bytes)
    const attempt = async (): Promise<void> => {
      const ledger = await openLedger(`sqlite:${file}`)
      try {
        await ledger.jobs({ limit: 1_000 })
        await ledger.write(jobs(1_000))
      } finally {
        await ledger.close()
      }
    }
    await assert.rejects(attempt(), { code: 'ledger-corrupt', kind: 'permanent' })
  })

  test('is reported as damaged when its end is missing', async () => {
    const file = join(folder, 'cut.db')
    await makeLedger(file, (ledger) => ledger.write(jobs(5_000)))
    writeFileSync(file, readFileSync(file).subarray(0, 20_000))
    const attempt = async (): Promise<void> => {
      const ledger = await openLedger(`sqlite:${file}`)
      try {
        await ledger.countedTallies()
      } finally {
        await ledger.close()
      }
    }
    await assert.rejects(attempt(), { code: 'ledger-corrupt' })
  })
})

describe('the schema’s version', () => {
  test('that is newer than ours is refused, and not a byte is changed', async () => {
    const file = join(folder, 'newer.db')
    await makeLedger(file, (ledger) => ledger.write(jobs(10)))
    const db = new DatabaseSync(file)
    db.exec(`UPDATE meta SET value = '${SCHEMA_VERSION + 1}' WHERE name = 'schema_version'`)
    db.exec(`ALTER TABLE jobs ADD COLUMN tomorrow TEXT`)
    db.close()
    const error = await refused(file, 'ledger-newer')
    assert.match(error.message, new RegExp(`version ${SCHEMA_VERSION + 1}`))
  })

  test('that is ours opens again with everything in it', async () => {
    const file = join(folder, 'again.db')
    await makeLedger(file, (ledger) => ledger.write(jobs(10)))
    const ledger = await openLedger(file)
    assert.deepEqual(
      (await ledger.tallies()).map((one) => ({ ...one })),
      [{ kind: 'job', stage: 'ready', n: 10 }],
    )
    await ledger.close()
  })

  test('that is older is brought up to ours, with everything in it, and once', async () => {
    const file = join(folder, 'older.db')
    const db = new DatabaseSync(file)
    for (const sql of firstVersionStatements('sqlite')) db.exec(sql)
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
    db.close()
    for (const _ of ['raises it', 'finds it raised']) await makeLedger(file, assertRaised)
  })

  test('an older one that cannot be brought up stays as it was', async () => {
    const file = join(folder, 'stuck.db')
    const db = new DatabaseSync(file)
    for (const sql of firstVersionStatements('sqlite')) db.exec(sql)
    db.exec(`PRAGMA application_id = ${APPLICATION_ID}`)
    db.exec(`CREATE TRIGGER stuck BEFORE UPDATE ON pauses BEGIN SELECT RAISE(ABORT, 'stuck'); END`)
    await assert.rejects(openLedger(`sqlite:${file}`))
    const columns = db.prepare(`SELECT name FROM pragma_table_info('jobs') WHERE name = 'note_code'`).all()
    const version = db.prepare(`SELECT value FROM meta WHERE name = 'schema_version'`).get()
    assert.deepEqual([columns, { ...version }], [[], { value: '1' }])
    db.close()
  })

  test('an empty file becomes a ledger', async () => {
    const file = join(folder, 'empty.db')
    writeFileSync(file, '')
    await makeLedger(file, (ledger) => ledger.write(jobs(1)))
  })
})

describe('a place where no ledger can be', () => {
  test('a new ledger is for its owner alone, in a folder that is open to all too', async () => {
    const dir = join(folder, 'open-to-all')
    mkdirSync(dir)
    chmodSync(dir, 0o755)
    const ledger = await openLedger(`sqlite:${join(dir, 'ledger.db')}`)
    const modes = readdirSync(dir).map((name) => [name, statSync(join(dir, name)).mode & 0o777])
    await ledger.close()
    assert.ok(modes.length >= 3, 'its log is there too')
    assert.deepEqual(
      modes,
      modes.map(([name]) => [name, 0o600]),
    )
  })

  test('is refused when a folder of its path is a file', async () => {
    const file = join(folder, 'plain-file')
    writeFileSync(file, 'x')
    await refused(join(file, 'ledger.db'), 'ledger-cantopen')
    await refused(join(file, 'deeper', 'ledger.db'), 'ledger-cantopen')
  })

  test('is refused when it is a folder itself', async () => {
    const dir = join(folder, 'a-folder')
    mkdirSync(dir)
    await refused(dir, 'ledger-cantopen')
  })

  test('is refused when its name is too long for the file system', async () => {
    await refused(join(folder, 'x'.repeat(300), 'ledger.db'), 'ledger-cantopen')
  })

  test('is refused when its folder may not be written', async () => {
    chmodSync(folder, 0o755)
    const dir = join(folder, 'locked')
    mkdirSync(dir)
    chmodSync(dir, 0o555)
    await asNobody(async () => {
      await refused(join(dir, 'sub', 'ledger.db'), 'ledger-readonly', dir)
      await refused(join(dir, 'ledger.db'), 'ledger-cantopen', dir)
    })
  })

  test('a ledger that may be read but not written says so at the first write, and shows what it holds', async () => {
    chmodSync(folder, 0o755)
    const dir = join(folder, 'read-only')
    mkdirSync(dir)
    const file = join(dir, 'ledger.db')
    await makeLedger(file, (ledger) => ledger.write(jobs(3)))
    chmodSync(file, 0o444)
    chmodSync(dir, 0o777)
    await asNobody(async () => {
      const ledger = await openLedger(`sqlite:${file}`)
      try {
        assert.equal((await ledger.jobs()).length, 3)
        await assert.rejects(ledger.write(jobs(1)), { code: 'ledger-readonly' })
      } finally {
        await ledger.close()
      }
    })
  })
})

test('a ledger’s address may be written in several ways', () => {
  assert.equal(sqliteFile('sqlite::memory:'), ':memory:')
  assert.equal(sqliteFile('sqlite:data/x.db'), 'data/x.db')
  assert.equal(sqliteFile('sqlite:/data/x.db'), '/data/x.db')
  assert.equal(sqliteFile('sqlite:///data/x.db'), '/data/x.db')
  assert.equal(sqliteFile('file:///data/my%20x.db'), '/data/my x.db')
  assert.equal(sqliteFile('data/x.db'), 'data/x.db')
  assert.throws(() => sqliteFile('mysql://host/x'), /mysql/)
})
