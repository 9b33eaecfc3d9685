import assert from 'node:assert/strict'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { TidemarkError, UsageError } from '../../../base/errors.ts'
import { openArchive } from './archive.ts'
import {
  ALL,
  allOf,
  archiveFor,
  folderFor,
  message,
  messageWithFile,
  NOW_MS,
  noise,
  optionsFor,
} from './archive-fixture.suite.ts'
import { compressed } from './compression.ts'
import type { Archive, VerifyEvent } from './contract.ts'
import { prepareMessage } from './prepared-message.ts'
import { createFile, openForWriting } from './shard-file.ts'
import { ShardWriter } from './shard-writer.ts'

const in2019 = { internalMs: Date.UTC(2019, 5, 1) }

function alter(file: string, sql: string, ...values: (string | Uint8Array)[]): void {
  const db = new DatabaseSync(file)
  db.prepare(sql).run(...values)
  db.close()
}

async function verified(archive: Archive): Promise<VerifyEvent[]> {
  const events: VerifyEvent[] = []
  for await (const event of archive.verify()) if (event.type !== 'progress') events.push(event)
  return events
}

/** Overwrites every page but the first with what no database has. */
function scribble(file: string): void {
  const bytes = readFileSync(file)
  bytes.fill(0x5a, 4_096)
  writeFileSync(file, bytes)
}

describe('bytes that were tampered with', () => {
  test('are a mismatch, are refused, and are mended by the next store of the message', async (context) => {
    const archive = await archiveFor(context)
    await archive.store([message('m1'), message('m2')])
    const wrong = compressed(Buffer.concat([Buffer.from([1, 0]), message('m2', { body: 'other' }).raw]))
    alter(
      join(archive.folder, '2020.db'),
      `UPDATE bodies SET raw = ? WHERE pos = (SELECT pos FROM messages WHERE id = 'm2')`,
      wrong,
    )
    const [good, bad] = await archive.prove(['m1', 'm2'])
    assert.deepEqual([good?.state, bad?.state], ['proven', 'mismatch'])
    await assert.rejects(archive.raw('m2'), { code: 'bytes-mismatch' })
    const events = await verified(archive)
    assert.deepEqual(
      events
        .filter(({ type }) => type === 'message')
        .map((event) => 'id' in event && [event.id, event.state]),
      [['m2', 'mismatch']],
    )
    const [outcome] = await archive.store([message('m2')])
    assert.equal(outcome?.status, 'updated')
    assert.equal((await archive.prove(['m2']))[0]?.state, 'proven')
    assert.deepEqual(await verified(archive), [{ type: 'shard', shard: '2020', messages: 2, state: 'ok' }])
  })

  test('are found where they are no zstd at all, or gone', async (context) => {
    const archive = await archiveFor(context)
    await archive.store([message('m1'), message('m2')])
    const file = join(archive.folder, '2020.db')
    alter(file, `UPDATE bodies SET raw = x'00' WHERE pos = (SELECT pos FROM messages WHERE id = 'm1')`)
    alter(file, `DELETE FROM bodies WHERE pos = (SELECT pos FROM messages WHERE id = 'm2')`)
    const states = (await archive.prove(['m1', 'm2', 'm3'])).map(({ state }) => state)
    assert.deepEqual(states, ['mismatch', 'mismatch', 'absent'])
  })
})

describe('a shard that is missing', () => {
  async function withoutShard(context: Parameters<typeof archiveFor>[0]): Promise<Archive> {
    const folder = folderFor(context)
    const first = await openArchive(optionsFor(folder))
    await first.store([message('old', in2019), message('new')])
    await first.close()
    renameSync(join(folder, '2019.db'), join(folder, 'kept'))
    return await archiveFor(context, { folder })
  }

  test('is named by whoever needs it, and never made anew by itself', async (context) => {
    const archive = await withoutShard(context)
    await assert.rejects(archive.message('old'), { code: 'shard-missing', kind: 'transient' })
    await assert.rejects(archive.raw('old'), /2019\.db is missing/)
    await assert.rejects(archive.store([message('old2', in2019)]), { code: 'shard-missing' })
    await assert.rejects(archive.apply([{ id: 'old', historyId: '200', addLabelIds: ['A'] }]), {
      code: 'shard-missing',
    })
    await assert.rejects(allOf(archive.entries(ALL)), { code: 'shard-missing' })
    assert.equal((await archive.prove(['old']))[0]?.state, 'unreadable')
    const shards = await archive.shards()
    assert.deepEqual(
      shards.map(({ name, state }) => [name, state]),
      [
        ['2020', 'ok'],
        ['2019', 'missing'],
      ],
    )
    assert.ok((await verified(archive)).some((event) => event.type === 'shard' && event.state === 'missing'))
    assert.equal(existsSync(join(archive.folder, '2019.db')), false)
  })

  test('stops nobody who does not need it', async (context) => {
    const archive = await withoutShard(context)
    assert.equal((await archive.message('new'))?.id, 'new')
    const [outcome] = await archive.store([message('newer')])
    assert.equal(outcome?.status, 'added')
    assert.deepEqual(await archive.stored(['old', 'new']), new Set(['new']))
    assert.equal((await archive.apply([{ id: 'new', historyId: '200', addLabelIds: ['A'] }])).changed, 1)
    // What is refused takes nothing else along, though both were written together.
    const [bad, good] = await Promise.allSettled([
      archive.store([message('old2', in2019)]),
      archive.store([message('newest')]),
    ])
    assert.deepEqual([bad?.status, good?.status], ['rejected', 'fulfilled'])
  })

  test('makes nobody wait for a writer of another shard', async (context) => {
    const archive = await archiveFor(context)
    await archive.store([message('m1'), message('m2', in2019)])
    rmSync(join(archive.folder, '2019.db'))
    rmSync(join(archive.folder, 'catalogue.db'))
    await archive.store([message('m3')])
    // Somebody else writes: whoever would have the archive alone waits for a minute, and gives up.
    const other = new DatabaseSync(join(archive.folder, 'locks', 'all'))
    context.after(() => other.close())
    other.exec('BEGIN; SELECT 1 FROM sqlite_schema')
    const [outcome] = await archive.store([message('m4')])
    assert.equal(outcome?.status, 'added')
    assert.deepEqual((await archive.apply([{ id: 'm4', historyId: '101', addLabelIds: ['X'] }])).unknown, [])
  })

  test('works again when it is put back', async (context) => {
    const archive = await withoutShard(context)
    await assert.rejects(archive.message('old'))
    renameSync(join(archive.folder, 'kept'), join(archive.folder, '2019.db'))
    assert.equal((await archive.message('old'))?.id, 'old')
    assert.equal((await archive.store([message('old', in2019)]))[0]?.status, 'kept')
  })

  test('can be forgotten, and its messages fetched again', async (context) => {
    const archive = await withoutShard(context)
    assert.deepEqual(await archive.setAside('2019'), { movedTo: null })
    assert.equal((await archive.prove(['old']))[0]?.state, 'absent')
    assert.equal((await archive.store([message('old', in2019)]))[0]?.status, 'added')
    assert.equal((await archive.prove(['old']))[0]?.state, 'proven')
  })

  test('is noticed while the archive is open', async (context) => {
    const archive = await archiveFor(context)
    await archive.store([message('m1')])
    assert.equal((await archive.message('m1'))?.id, 'm1')
    for (const end of ['', '-wal', '-shm']) rmSync(join(archive.folder, `2020.db${end}`), { force: true })
    await assert.rejects(archive.store([message('m2')]), { code: 'shard-missing' })
    await assert.rejects(archive.message('m1'), { code: 'shard-missing' })
  })
})

describe('a shard that is corrupt', () => {
  for (const [how, damage] of [
    ['scribbled over', scribble],
    ['no database', (file: string) => writeFileSync(file, 'hello '.repeat(2_000))],
    ['empty', (file: string) => truncateSync(file, 0)],
    ['cut short', (file: string) => truncateSync(file, Math.floor(statSync(file).size / 8_192) * 4_096)],
  ] as const) {
    test(`(${how}) is named, set aside and filled again`, async (context) => {
      const folder = folderFor(context)
      const first = await openArchive(optionsFor(folder))
      await first.store([message('old', in2019), message('new')])
      await first.close()
      damage(join(folder, '2019.db'))
      const archive = await archiveFor(context, { folder })
      const event = (await verified(archive)).find((one) => one.type === 'shard' && one.shard === '2019')
      assert.equal(event?.type === 'shard' && event.state, 'corrupt')
      assert.equal((await archive.message('new'))?.id, 'new')
      assert.notEqual((await archive.prove(['old']))[0]?.state, 'proven')
      const { movedTo } = await archive.setAside('2019')
      assert.match(movedTo ?? '', /2019\.db\.corrupt-20260601T000000Z$/)
      assert.ok(existsSync(movedTo ?? ''))
      await archive.store([message('old', in2019)])
      assert.equal((await archive.prove(['old']))[0]?.state, 'proven')
      assert.ok((await verified(archive)).every((one) => one.type === 'shard' && one.state === 'ok'))
    })
  }

  test('set aside by one opener is not written to by another', async (context) => {
    const folder = folderFor(context)
    const one = await archiveFor(context, { folder })
    const other = await archiveFor(context, { folder })
    await one.store([message('m1')])
    await other.store([message('m2')])
    await other.setAside('2020')
    assert.equal((await one.store([message('m3')]))[0]?.status, 'added')
    assert.deepEqual(await other.stored(['m1', 'm2', 'm3']), new Set(['m3']))
    assert.deepEqual(await one.stored(['m1', 'm2', 'm3']), new Set(['m3']))
  })
})

describe('an attachment file that is missing', () => {
  test('is reported for each message that needs it, and filled again by storing them', async (context) => {
    const folder = folderFor(context)
    const first = await openArchive(optionsFor(folder))
    const withFile = messageWithFile('m1', noise(50_000))
    await first.store([withFile, message('m2')])
    await first.close()
    rmSync(join(folder, 'attachments-1.db'))
    const archive = await archiveFor(context, { folder })
    const events = await verified(archive)
    assert.deepEqual(
      events.map((event) => [event.type, event.shard, 'state' in event && event.state]),
      [
        ['shard', 'attachments-1', 'missing'],
        ['message', '2020', 'unreadable'],
        ['shard', '2020', 'ok'],
      ],
    )
    assert.deepEqual(
      (await archive.prove(['m1', 'm2'])).map(({ state }) => state),
      ['unreadable', 'proven'],
    )
    await assert.rejects(archive.store([withFile]), { code: 'shard-missing' })
    await archive.setAside('attachments-1')
    assert.equal((await archive.store([withFile]))[0]?.status, 'updated')
    assert.equal((await archive.prove(['m1']))[0]?.state, 'proven')
  })

  test('content that was damaged is not relied on', async (context) => {
    const archive = await archiveFor(context)
    await archive.store([messageWithFile('m1', noise(50_000))])
    alter(join(archive.folder, 'attachments-1.db'), `UPDATE contents SET content = zeroblob(50000)`)
    assert.equal((await archive.prove(['m1']))[0]?.state, 'unreadable')
    await archive.store([messageWithFile('m2', noise(50_000))])
    const states = (await archive.prove(['m1', 'm2'])).map(({ state }) => state)
    assert.deepEqual(states, ['proven', 'proven'])
  })
})

describe('a folder', () => {
  test('of another archive or account is refused', async (context) => {
    const folder = folderFor(context)
    await (await openArchive(optionsFor(folder))).close()
    const refused = { code: 'archive-foreign', name: 'UsageError' }
    await assert.rejects(openArchive(optionsFor(folder, { archiveId: 'archive-2' })), refused)
    await assert.rejects(openArchive(optionsFor(folder, { account: 'you@example.com' })), refused)
  })

  test('with databases but no archive.json is not taken over', async (context) => {
    const folder = folderFor(context)
    writeFileSync(join(folder, '2019.db'), '')
    await assert.rejects(openArchive(optionsFor(folder)), { code: 'archive-foreign' })
    assert.deepEqual(readdirSync(folder), ['2019.db'])
  })

  test('that should hold an archive and does not is a missing archive', async (context) => {
    const folder = folderFor(context)
    const missing = { code: 'archive-missing', kind: 'transient' }
    await assert.rejects(openArchive(optionsFor(folder, { expectExisting: true })), missing)
    await assert.rejects(openArchive(optionsFor(join(folder, 'no'), { expectExisting: true })), missing)
    assert.deepEqual(readdirSync(folder), [])
  })

  test('of a newer format is refused', async (context) => {
    const folder = folderFor(context)
    await (await openArchive(optionsFor(folder))).close()
    const file = join(folder, 'archive.json')
    writeFileSync(file, readFileSync(file, 'utf8').replace('"format": 1', '"format": 2'))
    await assert.rejects(openArchive(optionsFor(folder)), (thrown) => {
      return thrown instanceof UsageError && thrown.code === 'archive-newer'
    })
  })

  test('and its files can be read by their owner alone', async (context) => {
    const folder = join(folderFor(context), 'mail')
    const archive = await archiveFor(context, { folder })
    await archive.store([messageWithFile('m1', noise(50_000))])
    assert.equal(statSync(folder).mode & 0o777, 0o700)
    for (const name of ['archive.json', '2020.db', '2020.db-wal', 'attachments-1.db']) {
      assert.equal(statSync(join(folder, name)).mode & 0o077, 0, name)
    }
  })

  test('with a shard of another archive under a name of its own has it refused and left alone', async (context) => {
    const others = folderFor(context)
    const other = await openArchive(optionsFor(others, { archiveId: 'archive-2' }))
    await other.store([message('theirs')])
    await other.close()
    const folder = folderFor(context)
    const first = await openArchive(optionsFor(folder))
    await first.store([message('ours')])
    await first.close()
    copyFileSync(join(others, '2020.db'), join(folder, '2020.db'))
    const archive = await archiveFor(context, { folder })
    await assert.rejects(archive.store([message('ours2')]), { code: 'shard-foreign' })
    await assert.rejects(archive.message('ours'), { code: 'shard-foreign' })
  })

  test('with a shard that the list lost takes it in again', async (context) => {
    const folder = folderFor(context)
    const first = await openArchive(optionsFor(folder))
    await first.store([message('m1')])
    await first.close()
    const file = join(folder, 'archive.json')
    const list = JSON.parse(readFileSync(file, 'utf8')) as object
    writeFileSync(file, JSON.stringify({ ...list, shards: [] }))
    const archive = await archiveFor(context, { folder })
    await archive.store([message('m2')])
    assert.deepEqual(await archive.stored(['m1', 'm2']), new Set(['m1', 'm2']))
  })
})

test('a full disk refuses the whole transaction, and goes on when there is room', (context) => {
  const folder = folderFor(context)
  const file = join(folder, '2020.db')
  const identity = { kind: 'shard', name: '2020', archiveId: 'a', account: 'me' } as const
  createFile(file, identity, NOW_MS)
  const db = openForWriting(file, identity)
  const writer = new ShardWriter({ name: '2020', file, db })
  const arrival = (id: string) => ({
    isIntact: true,
    message: prepareMessage(message(id, { body: Buffer.from(noise(30_000)).toString('base64') })),
  })
  writer.store([arrival('m1')], NOW_MS)
  const { page_count: pages } = db.prepare('PRAGMA page_count').get() as { page_count: number }
  db.exec(`PRAGMA max_page_count = ${pages + 12}`)
  const many = ['m2', 'm3', 'm4'].map(arrival)
  assert.throws(
    () => writer.store(many, NOW_MS),
    (thrown) => thrown instanceof TidemarkError && thrown.code === 'disk-full' && thrown.kind === 'transient',
  )
  const count = () => (db.prepare('SELECT count(*) AS n FROM messages').get() as { n: number }).n
  assert.equal(count(), 1)
  db.exec('PRAGMA max_page_count = 100000')
  writer.store(many, NOW_MS)
  assert.equal(count(), 4)
  writer.close()
})

test('a file in the place of the folder gives a clear refusal', async (context) => {
  const folder = folderFor(context)
  mkdirSync(join(folder, 'x'))
  writeFileSync(join(folder, 'x', 'mail'), '')
  await assert.rejects(openArchive(optionsFor(join(folder, 'x', 'mail'))), TidemarkError)
})
