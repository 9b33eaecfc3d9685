/** Files that are missing, damaged or in the wrong place, and disks that are full: named, mended, and no mail lost. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  closeSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { folderName } from '../../src/apps/mail/account.ts'
import { checkAll, checkWatermark, look, withArchive } from './oracle.ts'
import { ADDRESS, type Ended, type World, worldsOf } from './world.ts'

const TIDEMARK = fileURLToPath(new URL('../../bin/tidemark', import.meta.url))
/** The files of two whole years, and the messages that are in them: every month until now takes its time. */
const [EARLIER, LATER] = [2, 1].map((ago) => String(new Date().getUTCFullYear() - ago)) as [string, string]
const FROM_MS = Date.UTC(Number(EARLIER), 0, 1)
/** Some in each of these years, and some with large attachments. */
const MESSAGES = 32
const PAGE_BYTES = 4_096

const { worldOf } = worldsOf({ messages: MESSAGES, years: 1 })
const scratch = mkdtempSync(join(tmpdir(), 'tidemark-damage-'))
after(() => rmSync(scratch, { recursive: true, force: true }))

function folderOf(world: World): string {
  return join(world.home, 'mail', folderName(ADDRESS))
}

function fileOf(world: World, name: string): string {
  return join(folderOf(world), `${name}.db`)
}

/** The file and its log. */
function remove(file: string): void {
  for (const path of [file, `${file}-wal`, `${file}-shm`]) rmSync(path, { force: true })
}

function overwrite(file: string, { from, bytes }: { from: number; bytes: number }): void {
  const descriptor = openSync(file, 'r+')
  writeSync(descriptor, Buffer.alloc(bytes, 'junk'), 0, bytes, from)
  closeSync(descriptor)
}

async function sync(world: World): Promise<Ended> {
  const end = await world.run('mail', 'sync')
  assert.equal(end.code, 0, end.stderr)
  return end
}

type Report = {
  shards: { name: string; state: string }[]
  damaged: { id: string; shard: string }[]
  cloud: { missing: string[] } | null
}

function reportsOf({ stdout }: Ended): Report[] {
  return JSON.parse(stdout.trim().split('\n').at(-1)!) as Report[]
}

describe('a file of the archive', () => {
  let world: World
  before(async () => {
    world = await worldOf({ seed: 44, fromMs: FROM_MS })
    await sync(world)
  })

  /** Named by status and verify, left alone by sync, and mended by verify --repair. */
  async function isMended(name: string, state: 'missing' | 'corrupt'): Promise<void> {
    const says = state === 'missing' ? `${name}\\.db is missing` : `${name}\\.db is damaged`
    const status = await world.run('mail', 'status')
    assert.equal(status.code, 1)
    assert.match(status.stdout, new RegExp(`DAMAGED {4}The archive's file ${says}`))
    assert.match(status.stdout, /tidemark mail verify --repair/)

    const calls = world.served
    const refused = await world.run('mail', 'sync')
    assert.equal(refused.code, 1)
    assert.match(refused.stderr, new RegExp(`The archive's file ${says}`))
    assert.match(refused.stderr, /run tidemark mail verify --repair/)
    assert.equal(world.served, calls, 'nothing was fetched beside it')
    assert.equal(existsSync(fileOf(world, name)), state !== 'missing', 'nothing was made in its place')

    const verify = await world.run('mail', 'verify', '--offline', '--json')
    assert.equal(verify.code, 1)
    assert.equal(reportsOf(verify)[0]!.shards.find((one) => one.name === name)?.state, state)
    const repair = await world.run('mail', 'verify', '--repair')
    assert.equal(repair.code, 0, repair.stdout + repair.stderr)
    assert.match(
      repair.stdout,
      /After the repair:\n.*\n {2}every message has its hash.*\n {2}Gmail lists .*; all are stored/,
    )
    await checkAll(world)
    const kept = readdirSync(folderOf(world)).filter((one) => one.startsWith(`${name}.db.corrupt-`))
    assert.equal(kept.length > 0, state === 'corrupt', 'what was damaged is kept, what is missing cannot be')
  }

  test('that was deleted is named, not made anew, and fetched again', async () => {
    remove(fileOf(world, LATER))
    const told = await world.run('mail', 'verify', '--offline')
    assert.equal(told.code, 1)
    assert.match(told.stdout, new RegExp(`The archive's file ${LATER}\\.db is missing`))
    await isMended(LATER, 'missing')
    assert.equal((await world.run('mail', 'status')).code, 0)
    await sync(world)
  })

  test('whose middle was overwritten is named and fetched again', async () => {
    const file = fileOf(world, LATER)
    overwrite(file, { from: PAGE_BYTES * 4, bytes: PAGE_BYTES * 8 })
    await isMended(LATER, 'corrupt')
  })

  test('that was cut short is named and fetched again', async () => {
    const file = fileOf(world, LATER)
    truncateSync(file, Math.floor(statSync(file).size / 3))
    await isMended(LATER, 'corrupt')
  })

  test('in whose place there is a text file is named and fetched again', async () => {
    const file = fileOf(world, EARLIER)
    remove(file)
    writeFileSync(file, 'This is no database, but somebody saved it here.\n')
    await isMended(EARLIER, 'corrupt')
  })

  test('with attachments that was deleted is named, and the attachments are fetched again', async () => {
    remove(fileOf(world, 'attachments-1'))
    await isMended('attachments-1', 'missing')
  })

  test('with attachments that is no database is named, and the attachments are fetched again', async () => {
    const file = fileOf(world, 'attachments-1')
    remove(file)
    writeFileSync(file, 'nor is this')
    await isMended('attachments-1', 'corrupt')
    assert.equal((await world.run('mail', 'status')).code, 0)
    await sync(world)
  })

  test('in which bytes have changed unnoticed: verify names the messages, and mends them', async () => {
    const db = new DatabaseSync(fileOf(world, EARLIER))
    const rows = db
      .prepare('SELECT m.pos, m.id, b.raw FROM messages m JOIN bodies b USING (pos) ORDER BY pos LIMIT 5')
      .all() as { pos: number; id: string; raw: Uint8Array }[]
    for (const { pos, raw } of rows) {
      const bytes = Buffer.from(raw)
      bytes[bytes.length >> 1]! ^= 0xff
      db.prepare('UPDATE bodies SET raw = ? WHERE pos = ?').run(bytes, pos)
    }
    db.close()
    const ids = rows.map(({ id }) => id).sort()
    const verify = await world.run('mail', 'verify', '--json')
    assert.equal(verify.code, 1)
    const found = reportsOf(verify)[0]!.damaged.map(({ id }) => id)
    assert.deepEqual(found.sort(), ids)
    const told = await world.run('mail', 'verify', '--offline', '--shard', `${EARLIER}.db`)
    assert.equal(told.code, 1)
    assert.match(told.stdout, /5 messages are damaged/)
    assert.match(told.stdout, new RegExp(`${ids[0]} in ${EARLIER}\\.db: The stored bytes of message`))
    const repair = await world.run('mail', 'verify', '--repair', '--json')
    assert.equal(repair.code, 0, repair.stdout + repair.stderr)
    assert.deepEqual(reportsOf(repair)[0]!.damaged, [])
    await checkAll(world)
  })

  test('whose texts, headers, labels and index are damaged: verify names them, and makes them anew from the bytes', async () => {
    const db = new DatabaseSync(fileOf(world, EARLIER))
    const rows = db.prepare('SELECT pos, id FROM messages ORDER BY pos LIMIT 4').all()
    const [subject, text, words, labels] = rows as { pos: number; id: string }[]
    db.prepare(`UPDATE messages SET subject = 'nothing' WHERE pos = ?`).run(subject!.pos)
    db.prepare(`UPDATE bodies SET text = x'00' WHERE pos = ?`).run(text!.pos)
    db.prepare('DELETE FROM words WHERE rowid = ?').run(words!.pos)
    db.prepare(`INSERT INTO message_labels VALUES ('X', ?)`).run(labels!.pos)
    db.close()
    const verify = await world.run('mail', 'verify', '--offline', '--json')
    assert.equal(verify.code, 1)
    const found = reportsOf(verify)[0]!.damaged.map(({ id }) => id)
    assert.deepEqual(found.sort(), [subject, text, words, labels].map((row) => row!.id).sort())
    const status = await world.run('mail', 'status')
    const damaged = `verified .*: ${MESSAGES} messages, 4 damaged\\. Run: tidemark mail verify --repair`
    assert.match(status.stdout, new RegExp(damaged))
    const repair = await world.run('mail', 'verify', '--repair', '--json')
    assert.equal(repair.code, 0, repair.stdout + repair.stderr)
    assert.deepEqual(reportsOf(repair)[0]!.damaged, [])
    const { stdout } = await world.run('mail', 'status')
    assert.match(stdout, new RegExp(`verified .*: ${MESSAGES} messages, all well`))
    const reindex = await world.run('mail', 'reindex', '--json')
    assert.equal(reindex.code, 0, reindex.stderr)
    assert.deepEqual(JSON.parse(reindex.stdout), [{ account: ADDRESS, messages: MESSAGES, damaged: [] }])
    assert.equal((await world.run('mail', 'verify', '--offline')).code, 0)
  })

  test('that lost the row of a message and has another under a wrong id: the repair tries twice, and fetches both', async () => {
    const db = new DatabaseSync(fileOf(world, EARLIER))
    const rows = db.prepare('SELECT pos, id FROM messages ORDER BY pos LIMIT 2').all()
    const [lost, renamed] = rows as { pos: number; id: string }[]
    // Its bytes and words stay where they are.
    db.prepare('DELETE FROM messages WHERE pos = ?').run(lost!.pos)
    db.prepare(`UPDATE messages SET id = 'deadbeef00000000' WHERE pos = ?`).run(renamed!.pos)
    db.close()
    const repair = await world.run('mail', 'verify', '--repair', '--json')
    assert.equal(repair.code, 0, repair.stdout + repair.stderr)
    const [report] = reportsOf(repair)
    assert.deepEqual([report!.damaged, report!.cloud!.missing], [[], []])
    for (const row of [lost, renamed]) assert.equal((await world.run('mail', 'show', row!.id)).code, 0)
    // What nobody ever had goes, for the tests after this one.
    const again = new DatabaseSync(fileOf(world, EARLIER))
    for (const table of ['messages', 'bodies', 'message_labels'])
      again.prepare(`DELETE FROM ${table} WHERE pos = ?`).run(renamed!.pos)
    const unindex = again.prepare('DELETE FROM words WHERE rowid = ?')
    unindex.setReadBigInts(true)
    unindex.run(renamed!.pos)
    again.close()
    await checkAll(world)
  })

  test('that is put back from an older copy: status does not claim what it lacks, and the next sync fetches it', async () => {
    const copy = join(scratch, 'older.db')
    const db = new DatabaseSync(fileOf(world, EARLIER))
    // All of it: some may be in its log.
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    db.close()
    copyFileSync(fileOf(world, EARLIER), copy)
    const raw = Buffer.from('Subject: late\r\nMessage-ID: <late@x>\r\n\r\nlate\r\n')
    const internalMs = Date.UTC(Number(EARLIER), 6, 1)
    world.sim.gmail.mailbox(ADDRESS).insert({ raw, labelIds: ['INBOX'], internalMs })
    await sync(world)
    remove(fileOf(world, EARLIER))
    copyFileSync(copy, fileOf(world, EARLIER))
    // Who only reads leaves it to others to notice.
    assert.equal((await world.run('mail', 'search', 'late')).code, 0)
    const status = await world.run('mail', 'status')
    assert.equal(status.code, 1)
    assert.match(status.stdout, /MISSING {4}1 message is not in the archive any more/)
    assert.match(status.stdout, new RegExp(`complete {3}up to ${EARLIER}-01-01`))
    const books = `${MESSAGES + 1} listed = ${MESSAGES} stored .* \\+ 1 on their way`
    assert.match(status.stdout, new RegExp(books))
    await sync(world)
    await checkAll(world)
    assert.equal((await world.run('mail', 'status')).code, 0)
  })

  test('whose search index is broken keeps all of its mail, also what Gmail no longer has', async () => {
    const mailbox = world.sim.gmail.mailbox(ADDRESS)
    const gone = [...mailbox.dump()]
      .filter(
        ({ internalMs, deleted }) => !deleted && new Date(internalMs).getUTCFullYear() === Number(LATER),
      )
      .slice(0, 5)
      .map(({ id }) => id)
    for (const id of gone) mailbox.delete(id)
    await sync(world)
    const file = fileOf(world, LATER)
    const db = new DatabaseSync(file)
    const { rootpage } = db.prepare(`SELECT rootpage FROM sqlite_schema WHERE name = 'words_data'`).get() as {
      rootpage: number
    }
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    db.close()
    overwrite(file, { from: (rootpage - 1) * PAGE_BYTES, bytes: PAGE_BYTES })
    assert.equal((await world.run('mail', 'verify')).code, 1)
    world.sim.log.reset()
    const repair = await world.run('mail', 'verify', '--repair')
    assert.equal(repair.code, 0, repair.stdout + repair.stderr)
    assert.match(repair.stderr, new RegExp(`messages could be taken over from .*${LATER}\\.db\\.corrupt-`))
    assert.equal(world.sim.log.counts().requests.batch, undefined, 'nothing had to be fetched again')
    await checkAll(world)
    await withArchive(world, async (archive, ledger) => {
      const { entries } = await look(archive, ledger)
      for (const id of gone) assert.notEqual(entries.get(id)?.deletedAtMs ?? null, null, `${id} is kept`)
      const proofs = await archive.prove(gone)
      assert.ok(proofs.every(({ state }) => state === 'proven'))
    })
  })

  test('that cannot be fetched again because access ended is not taken apart', async () => {
    const file = fileOf(world, LATER)
    const bytes = readFileSync(file)
    truncateSync(file, Math.floor(bytes.length / 2))
    world.sim.gmail.grants.revokeAccount(ADDRESS)
    const repair = await world.run('mail', 'verify', '--repair')
    assert.equal(repair.code, 1)
    assert.match(repair.stderr, /no longer valid/)
    assert.equal(statSync(file).size, Math.floor(bytes.length / 2))
    await world.connect(ADDRESS)
    assert.equal((await world.run('mail', 'verify', '--repair')).code, 0)
    await checkAll(world)
  })
})

describe("an archive's folder", () => {
  test('that was moved away is missed, and nothing is fetched into an empty one', async () => {
    const world = await worldOf({ messages: 30, seed: 42 })
    await sync(world)
    const folder = folderOf(world)
    const away = join(scratch, 'away')
    renameSync(folder, away)
    const calls = world.served
    const ways: [() => void, ('sync' | 'verify' | 'search')[]][] = [
      [() => {}, ['sync', 'verify']],
      [() => mkdirSync(folder), ['sync', 'search']],
    ]
    for (const [prepare, commands] of ways) {
      prepare()
      for (const command of commands) {
        const end = await world.run('mail', command, ...(command === 'search' ? ['hello'] : []))
        assert.equal(end.code, 1)
        assert.match(
          end.stderr,
          /The mail archive at .* is missing: there is no (?:such folder|archive\.json in it)/,
        )
        assert.match(end.stderr, /Mount the disk it is on, or put it back from a backup/)
      }
      const status = await world.run('mail', 'status')
      assert.equal(status.code, 1)
      assert.match(status.stdout, /30 listed = 30 stored[\s\S]*DAMAGED {4}The mail archive at .* is missing/)
    }
    assert.equal(world.served, calls)
    assert.deepEqual(readdirSync(folder), [])
    rmSync(folder, { recursive: true })
    renameSync(away, folder)
    await sync(world)
    await checkAll(world)
  })

  test('with the archive of another account is refused, and left as it is', async () => {
    const other = 'bob@example.com'
    const world = await worldOf({
      seed: 43,
      accounts: [ADDRESS, other].map((address) => ({ address, messages: 40, years: 1 })),
    })
    await sync(world)
    const folder = folderOf(world)
    const away = join(scratch, 'other')
    renameSync(folder, away)
    renameSync(join(world.home, 'mail', folderName(other)), folder)
    const list = readFileSync(join(folder, 'archive.json'), 'utf8')
    const end = await world.run('mail', 'sync', '--account', ADDRESS)
    assert.equal(end.code, 2)
    assert.match(end.stderr, /holds another archive/)
    assert.match(end.stderr, /Nothing was written to it/)
    assert.equal(readFileSync(join(folder, 'archive.json'), 'utf8'), list)
    renameSync(folder, join(world.home, 'mail', folderName(other)))
    renameSync(away, folder)
    await sync(world)
    await checkAll(world)
  })

  test("whose one account's trouble does not keep the other from its mail", async () => {
    const other = 'bob@example.com'
    const world = await worldOf({
      seed: 44,
      accounts: [ADDRESS, other].map((address) => ({ address, messages: 40, years: 1 })),
    })
    await sync(world)
    world.sim.gmail
      .mailbox(ADDRESS)
      .insert({ raw: Buffer.from('Subject: new\r\n\r\nhello'), labelIds: ['INBOX'] })
    rmSync(join(world.home, 'mail', folderName(other)), { recursive: true })
    const end = await world.run('mail', 'sync')
    assert.equal(end.code, 1)
    assert.match(end.stderr, /bob@example\.com is missing[\s\S]*bob@example\.com is left out of this sync/)
    assert.match(end.stdout, /ann@example\.com: done; 41 listed = 41 stored/)
    await checkAll(world)
  })
})

describe('an archive without its ledger, and a ledger without its archive', () => {
  test('a lost ledger costs no mail: the archive is taken over, and nothing is fetched twice', async () => {
    const world = await worldOf({ messages: 40, seed: 47 })
    await sync(world)
    for (const entry of readdirSync(world.home).filter((one) => one.startsWith('ledger.db')))
      rmSync(join(world.home, entry))
    const none = await world.run('mail', 'status')
    assert.equal(none.code, 2)
    assert.match(none.stderr, /No mail account is connected/)
    await world.connect(ADDRESS)
    const mailbox = world.sim.gmail.mailbox(ADDRESS)
    const [first] = [...mailbox.dump()].map(({ id }) => id)
    mailbox.delete(first!)
    mailbox.insert({ raw: Buffer.from('Subject: new\r\n\r\nhello'), labelIds: ['INBOX'] })

    const foreign = await world.run('mail', 'sync')
    assert.equal(foreign.code, 2)
    assert.match(foreign.stderr, /holds another archive/)
    assert.match(foreign.stderr, /If the ledger that knew it was lost, tidemark mail recover takes it over/)
    assert.match((await world.run('mail', 'status')).stdout, /DAMAGED .*holds another archive/)

    const recover = await world.run('mail', 'recover')
    assert.equal(recover.code, 0, recover.stderr)
    assert.match(recover.stdout, /was taken over, with \d+ files/)
    world.sim.log.reset()
    await sync(world)
    const gets = world.sim.log.counts().parts['messages.get']?.[200] ?? 0
    assert.ok(gets <= 2, `${gets} messages were fetched again`)
    await checkAll(world)
    assert.equal((await world.run('mail', 'verify')).code, 0)
    const again = await world.run('mail', 'recover', '--json')
    assert.equal(again.code, 0)
    assert.deepEqual((JSON.parse(again.stdout) as { did: string[] }[])[0]!.did, [])
  })

  test('a list of files that is lost or damaged is written anew from the files', async () => {
    const world = await worldOf({ messages: 40, seed: 48 })
    await sync(world)
    const list = join(folderOf(world), 'archive.json')
    for (const damage of [() => rmSync(list), () => writeFileSync(list, '{"format": 1, "arch')]) {
      damage()
      const end = await world.run('mail', 'sync')
      assert.equal(end.code, 1)
      assert.match(end.stderr, /is missing: [\s\S]*tidemark mail recover/)
      const recover = await world.run('mail', 'recover')
      assert.equal(recover.code, 0, recover.stderr)
      assert.match(recover.stdout, /its list of \d+ files was written anew/)
      await sync(world)
      assert.equal((await world.run('mail', 'verify')).code, 0)
      await checkAll(world)
    }
  })

  test('an archive that is lost for good is begun anew only when told so, and filled again', async () => {
    const world = await worldOf({ messages: 40, seed: 49 })
    await sync(world)
    rmSync(folderOf(world), { recursive: true })
    const asked = await world.run('mail', 'recover')
    assert.equal(asked.code, 2)
    assert.match(asked.stderr, /If it is lost for good, add --empty/)
    assert.equal(existsSync(folderOf(world)), false)
    const recover = await world.run('mail', 'recover', '--empty')
    assert.equal(recover.code, 0, recover.stderr)
    assert.match(recover.stdout, /an empty archive was begun[\s\S]*tidemark mail verify --repair/)
    const status = await world.run('mail', 'status')
    assert.equal(status.code, 1)
    assert.match(status.stdout, /MISSING {4}40 messages are not in the archive any more/)
    const repair = await world.run('mail', 'verify', '--repair')
    assert.equal(repair.code, 0, repair.stdout + repair.stderr)
    assert.equal((await world.run('mail', 'status')).code, 0)
    await checkAll(world)
  })
})

describe('a full disk', () => {
  test('under the archive ends a sync with a message, and with room again it goes on', async () => {
    const world = await worldOf({ messages: 200, seed: 45 })
    const preload = join(scratch, 'full.mjs')
    // SQLite itself then says that the file cannot grow, as it does when the disk says so.
    writeFileSync(
      preload,
      `import { DatabaseSync } from 'node:sqlite'
       const { exec } = DatabaseSync.prototype, seen = new WeakSet()
       DatabaseSync.prototype.exec = function (sql) {
         if (!seen.has(this) && /\\d{4}\\.db$/.test(this.location() ?? '')) {
           seen.add(this)
           exec.call(this, 'PRAGMA max_page_count = 40')
         }
         return exec.call(this, sql)
       }`,
    )
    world.env.NODE_OPTIONS = `--import ${pathToFileURL(preload).href}`
    for (let round = 0; round < 2; round++) {
      const full = await world.run('mail', 'sync')
      assert.equal(full.code, 1)
      assert.match(full.stdout, /ann@example\.com: not finished; .* 0 bad \+ \d+ on their way/)
      assert.match(full.stderr, /cannot go on: The disk is full: .*\.db cannot grow\.\n {2}Free some space\./)
      await withArchive(world, async (archive, ledger) => checkWatermark(world, await look(archive, ledger)))
    }
    delete world.env.NODE_OPTIONS
    const end = await sync(world)
    assert.match(end.stdout, /done; 200 listed = 200 stored/)
    await checkAll(world)
  })

  test('under the ledger is told too, and costs nothing', async () => {
    const world = await worldOf({
      messages: 120,
      years: 3,
      seed: 46,
      settings: { TIDEMARK_MAIL_PATIENCE_MINUTES: '0' },
    })
    const script = `trap '' XFSZ; ulimit -f 900; exec "$0" "$@"`
    const child = spawn('sh', ['-c', script, TIDEMARK, 'mail', 'sync'], {
      env: world.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    let shown = ''
    child.stderr.on('data', (text: Buffer) => (shown += text.toString()))
    child.stdout.resume()
    const [code] = (await once(child, 'close')) as [number | null]
    assert.equal(code, 1, shown)
    assert.match(shown, /tidemark: Reading or writing the ledger at .* failed\.\n {2}Check the disk/)
    await sync(world)
    await checkAll(world)
  })
})
