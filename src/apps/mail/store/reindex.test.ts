import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type TestContext, test } from 'node:test'
import type { FetchedMessage } from '../message.ts'
import { openArchive } from './archive.ts'
import { folderFor, message, messageWithFile, noise, optionsFor } from './archive-fixture.suite.ts'
import { compressed } from './compression.ts'
import type { Archive, VerifyEvent } from './contract.ts'
import { derivedOf } from './prepared-message.ts'
import { DERIVATION } from './schema.ts'

const INSERT_WORDS =
  'INSERT OR REPLACE INTO words(rowid, subject, sender, recipients, cc, bcc, files, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?)'

async function withArchive<T>(folder: string, work: (archive: Archive) => Promise<T>): Promise<T> {
  const archive = await openArchive(optionsFor(folder))
  try {
    return await work(archive)
  } finally {
    await archive.close()
  }
}

async function stored(context: TestContext, messages: readonly FetchedMessage[]): Promise<string> {
  const folder = folderFor(context)
  await withArchive(folder, (archive) => archive.store(messages))
  return folder
}

function inShard(folder: string, work: (db: DatabaseSync) => void, shard = '2020'): void {
  const db = new DatabaseSync(join(folder, `${shard}.db`))
  work(db)
  db.close()
}

/** What the check finds, by id. */
async function found(archive: Archive): Promise<Record<string, string>> {
  const wrong: Record<string, string> = {}
  for await (const event of archive.verify()) {
    if (event.type === 'message') wrong[event.id] = `${wrong[event.id] ?? ''}${textOf(event)}; `
    if (event.type === 'shard') assert.equal(event.state, 'ok', event.detail ?? '')
  }
  return wrong
}

function textOf({ state, detail }: Extract<VerifyEvent, { type: 'message' }>): string {
  return `${state} ${detail.replace(': not what follows from its bytes', '')}`
}

async function run(archive: Archive, options?: Parameters<Archive['reindex']>[0]): Promise<number> {
  const done = new Map<string, number>()
  for await (const { shard, messages } of archive.reindex(options)) done.set(shard, messages)
  return [...done.values()].reduce((sum, n) => sum + n, 0)
}

type Harm = (db: DatabaseSync, pos: number) => void

const set =
  (column: string, value: string | number): Harm =>
  (db, pos) =>
    db.prepare(`UPDATE messages SET ${column} = ? WHERE pos = ?`).run(value, pos)

const HARMS: Record<string, { does: Harm; says: string }> = {
  subject: { does: set('subject', 'Another one'), says: 'differs its subject; ' },
  sender: { does: set('sender', '[]'), says: 'differs its sender; ' },
  people: {
    does: set('people', '{"to":[],"cc":[],"bcc":[],"replyTo":[]}'),
    says: 'differs its recipients; ',
  },
  'people unreadable': { does: set('people', '{"to'), says: 'differs its recipients; ' },
  'sender of another form': { does: set('sender', '{}'), says: 'differs its sender; ' },
  size: { does: set('bytes', 7), says: 'differs its size; ' },
  arrival: { does: set('internal_ms', Date.UTC(1999, 0)), says: 'differs its time of arrival; ' },
  date: { does: set('header_ms', 7), says: 'differs its date; ' },
  snippet: { does: set('snippet', ''), says: 'differs its snippet; ' },
  'message-id': { does: set('message_id', '<other>'), says: 'differs its Message-ID; ' },
  attachments: { does: set('has_attachment', 1), says: 'differs its attachments; ' },
  text: {
    does: (db, pos) =>
      db.prepare('UPDATE bodies SET text = ? WHERE pos = ?').run(compressed(Buffer.from('other')), pos),
    says: 'differs its text; ',
  },
  packed: {
    does: (db, pos) => db.prepare('UPDATE bodies SET text = ? WHERE pos = ?').run(Buffer.from('junk'), pos),
    says: 'differs its text; ',
  },
  unindexed: {
    does: (db, pos) => db.prepare('DELETE FROM words WHERE rowid = ?').run(pos),
    says: 'differs the search index; ',
  },
  'other word': {
    does: (db, pos) => {
      const words = [
        'About other word',
        'Ann ann@example.com',
        'me@example.com',
        '',
        '',
        '',
        'The soul of x.',
      ]
      const insert = db.prepare(INSERT_WORDS)
      insert.setReadBigInts(true)
      insert.run(pos, ...words)
    },
    says: 'differs the search index; ',
  },
  'label too many': {
    does: (db, pos) => db.prepare('INSERT INTO message_labels VALUES (?, ?)').run('X', pos),
    says: 'differs the index of labels; ',
  },
  'label lost': {
    does: (db, pos) => db.prepare('DELETE FROM message_labels WHERE pos = ?').run(pos),
    says: 'differs the index of labels; ',
  },
}

test('a check names what does not follow from the bytes, and rebuilding those messages mends all of it', async (context) => {
  const ids = Object.keys(HARMS)
  const folder = await stored(context, [
    ...[...ids, 'sound'].map((id) => message(id.replaceAll(' ', '-'))),
    messageWithFile('with-file', noise(40_000)),
  ])
  inShard(folder, (db) => {
    for (const id of ids) {
      const row = db.prepare('SELECT pos FROM messages WHERE id = ?').get(id.replaceAll(' ', '-'))
      HARMS[id]!.does(db, (row as { pos: number }).pos)
    }
    const insert = db.prepare(INSERT_WORDS)
    insert.setReadBigInts(true)
    insert.run(5, 'nobody', '', '', '', '', '', '')
  })
  await withArchive(folder, async (archive) => {
    const wrong = await found(archive)
    const expected = ids.map((id) => [id.replaceAll(' ', '-'), HARMS[id]!.says])
    assert.deepEqual(wrong, {
      ...Object.fromEntries(expected),
      'at 5': 'differs the search index of no message; ',
    })
    const all = await archive.search({ is: 'all' }, { limit: 100 })
    assert.equal(all.hits.length, ids.length + 2, 'what is damaged does not keep others from being found')
    await run(archive, { only: new Map([['2020', Object.keys(wrong)]]) })
    assert.deepEqual(await found(archive), {})
    assert.equal((await archive.message('subject'))?.subject, 'About subject')
    const { messages } = await archive.count({
      is: 'text',
      field: 'body',
      words: ['body'],
      phrase: false,
      prefix: false,
    })
    assert.equal(messages, ids.length + 1)
  })
})

test('labels that cannot be read are for the cloud to tell: the message is named as damaged, and stored again', async (context) => {
  const folder = await stored(context, [message('a'), message('b')])
  inShard(folder, (db) => db.exec(`UPDATE messages SET labels = '[broken' WHERE id = 'a'`))
  await withArchive(folder, async (archive) => {
    assert.match((await found(archive)).a!, /^mismatch its labels cannot be read; /)
    await archive.store([message('a', { historyId: '200', labelIds: ['STARRED'] })])
    assert.deepEqual((await archive.message('a'))?.labelIds, ['STARRED'])
  })
})

test('a message whose row was lost is stored again beside what is left of it', async (context) => {
  const folder = await stored(context, [message('a'), message('b')])
  inShard(folder, (db) => db.exec(`DELETE FROM messages WHERE id = 'a'`))
  await withArchive(folder, async (archive) => {
    await archive.store([message('a')])
    const wrong = await found(archive)
    assert.deepEqual(Object.keys(wrong).length, 1)
    await run(archive, { only: new Map([['2020', Object.keys(wrong)]]) })
    assert.deepEqual(await found(archive), {})
    assert.equal((await archive.prove(['a']))[0]?.state, 'proven')
  })
})

test('mail of every kind, replaced and changed mail and mail that arrives meanwhile is nothing to report', async (context) => {
  const folder = await stored(context, [
    message('empty', { raw: Buffer.alloc(0) }),
    message('binary', { raw: noise(3_000, 7) as Buffer }),
    message('surrogate', { headers: 'X: 1\r\nSubject: =?utf-8?B?7aC97bid?= \u0000 x\r\n' }),
    message('latin', {
      raw: Buffer.from('Subject: caf\xe9\r\nFrom: \xff\xfe\r\n\r\nna\xefve\r\n', 'latin1'),
    }),
    message('replaced', { source: 'import', body: 'first words' }),
    message('html', { headers: 'Content-Type: text/html\r\n', body: '<p>Hello <b>world</b></p>' }),
  ])
  await withArchive(folder, async (archive) => {
    await archive.store([
      message('replaced', { body: 'other words', historyId: '500', labelIds: ['B', 'A'] }),
    ])
    await archive.apply([{ id: 'latin', historyId: '600', addLabelIds: ['Z'], removeLabelIds: ['INBOX'] }])
    const events: VerifyEvent[] = []
    for await (const event of archive.verify()) {
      if (event.type === 'progress') await archive.store([message(`meanwhile-${events.length}`)])
      events.push(event)
    }
    assert.deepEqual(
      events.filter((event) => event.type === 'message'),
      [],
    )
  })
})

test('a rebuilding that is interrupted goes on where it was, in another process, and then begins anew', async (context) => {
  const many = Array.from({ length: 330 }, (_, n) =>
    message(`m${n}`, { internalMs: Date.UTC(n < 220 ? 2020 : 2021, 0, 1, 0, 0, n) }),
  )
  const folder = await stored(context, many)
  inShard(folder, (db) => db.exec(`UPDATE messages SET subject = 'gone'`))
  let first = 0
  await withArchive(folder, async (archive) => {
    for await (const { shard, messages } of archive.reindex()) {
      first = shard === '2020' ? 110 + messages : messages
      if (shard === '2020') break
    }
  })
  await withArchive(folder, async (archive) => {
    assert.equal(first + (await run(archive)), many.length)
    assert.deepEqual(await found(archive), {})
    assert.equal(await run(archive), many.length, 'a new run does all of it')
  })
})

test('what an earlier version derived is outdated and not damaged, until it is derived anew', async (context) => {
  const folder = await stored(context, [message('a'), message('b')])
  inShard(folder, (db) => {
    db.exec(`UPDATE meta SET value = '0' WHERE key = 'derivation'`)
    db.exec(`UPDATE messages SET snippet = 'shorter' WHERE id = 'a'`)
  })
  await withArchive(folder, async (archive) => {
    assert.deepEqual(await found(archive), { a: 'outdated its snippet; ' })
    await run(archive)
    assert.deepEqual(await found(archive), {})
  })
  inShard(folder, (db) => {
    const row = db.prepare(`SELECT value FROM meta WHERE key = 'derivation'`).get()
    assert.equal((row as { value: string }).value, String(DERIVATION))
  })
})

test('bytes that are damaged are named by a rebuilding, and the rest is done', async (context) => {
  const folder = await stored(context, [message('a'), message('b')])
  inShard(folder, (db) => {
    db.exec(`UPDATE bodies SET raw = x'00' WHERE pos = (SELECT pos FROM messages WHERE id = 'a')`)
    db.exec(`UPDATE messages SET subject = 'x'`)
  })
  await withArchive(folder, async (archive) => {
    const damaged: string[] = []
    for await (const event of archive.reindex()) damaged.push(...event.damaged)
    assert.deepEqual(damaged, ['a'])
    assert.equal((await archive.message('b'))?.subject, 'About b')
  })
})

test('whoever changes what is derived counts DERIVATION up', () => {
  const samples = [
    message('a', { headers: 'Cc: Bob <bob@example.com>\r\nDate: Thu, 1 Jan 2015 00:00:00 +0000\r\n' }),
    message('b', { headers: 'Content-Type: text/html\r\n', body: '<p>Hello <b>world</b> &amp; all</p>' }),
    messageWithFile('c', noise(20_000)),
  ]
  const digest = createHash('sha256')
  for (const { raw } of samples) {
    digest.update(JSON.stringify(derivedOf(raw, createHash('sha256').update(raw).digest())))
  }
  assert.deepEqual(
    { [DERIVATION]: digest.digest('hex').slice(0, 16) },
    { 3: '5f7798b5482397d0' },
    'rows of shards would differ from what is derived now: count DERIVATION up, and pin the new digest',
  )
})
