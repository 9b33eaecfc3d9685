import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { zstdDecompressSync } from 'node:zlib'
import fc from 'fast-check'
import type { MessageChange } from '../message.ts'
import { parseQuery } from '../query/parse.ts'
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

describe('a stored message', () => {
  test('comes back as it went in', async (context) => {
    const archive = await archiveFor(context)
    const sent = message('m1', {
      labelIds: ['UNREAD', 'INBOX'],
      internalMs: Date.UTC(2020, 4, 5, 6, 7, 8, 9),
    })
    const [outcome] = await archive.store([sent])
    assert.deepEqual(outcome, { id: 'm1', status: 'added', shard: '2020', problems: [] })
    assert.deepEqual(Buffer.from(await archive.raw('m1')), sent.raw)
    assert.match(await archive.text('m1'), /The body of m1\./)
    const stored = await archive.message('m1')
    assert.ok(stored)
    assert.equal(stored.messageId, '<m1@example.com>')
    assert.equal(stored.subject, 'About m1')
    assert.deepEqual(stored.from, [{ name: 'Ann', address: 'ann@example.com' }])
    assert.deepEqual(stored.labelIds, ['INBOX', 'UNREAD'])
    assert.equal(stored.historyId, '100')
    assert.equal(stored.internalMs, sent.internalMs)
    assert.equal(stored.sha256, hash('sha256', sent.raw, 'hex'))
    assert.equal(stored.storedAtMs, NOW_MS)
    assert.equal(stored.shard, '2020')
    assert.equal(await archive.message('nothing'), null)
  })

  test('is there once, however often and however it comes', async (context) => {
    const archive = await archiveFor(context)
    const sent = message('m1')
    const twice = await archive.store([sent, sent])
    assert.deepEqual(
      twice.map(({ status }) => status),
      ['added', 'kept'],
    )
    const [again, other] = await Promise.all([archive.store([sent]), archive.store([sent, message('m2')])])
    assert.equal(again?.[0]?.status, 'kept')
    assert.deepEqual(
      other?.map(({ status }) => status),
      ['kept', 'added'],
    )
    assert.equal((await allOf(archive.entries(ALL))).length, 2)
  })

  test('keeps any bytes, whatever the parser says', async (context) => {
    const archive = await archiveFor(context)
    const raws = [
      Buffer.alloc(0),
      Buffer.from([0, 255, 10, 13, 0]),
      Buffer.from('\r\n\r\n'),
      Buffer.from(noise(50_000)),
      Buffer.from('Content-Type: multipart/mixed; boundary=x\r\n\r\n--x\r\n--x\r\n--x--'),
    ]
    await archive.store(raws.map((raw, index) => message(`m${index}`, { raw })))
    for (const [index, raw] of raws.entries()) {
      assert.deepEqual(Buffer.from(await archive.raw(`m${index}`)), raw)
    }
    const proofs = await archive.prove(raws.map((_, index) => `m${index}`))
    assert.ok(proofs.every(({ state }) => state === 'proven'))
  })

  test('has a stable surrogate where it has no Message-ID', async (context) => {
    const archive = await archiveFor(context)
    const raw = Buffer.from('Subject: none\r\n\r\nhello\r\n')
    await archive.store([message('m1', { raw })])
    const stored = await archive.message('m1')
    assert.equal(stored?.messageId, `<${hash('sha256', raw, 'hex').slice(0, 32)}@surrogate.tidemark>`)
    assert.equal(stored?.messageIdIsSurrogate, true)
  })

  test('is found by its thread, oldest first, over shards', async (context) => {
    const archive = await archiveFor(context)
    await archive.store([
      message('b', { threadId: 't', internalMs: Date.UTC(2021, 0, 1) }),
      message('a', { threadId: 't', internalMs: Date.UTC(2019, 0, 1) }),
      message('c', { threadId: 'u' }),
    ])
    const ids = (await archive.thread('t')).map(({ id }) => id)
    assert.deepEqual(ids, ['a', 'b'])
  })

  test('does not need its caller to keep its hands off the bytes', async (context) => {
    const archive = await archiveFor(context)
    const whole = Buffer.alloc(100_000, 'x')
    const raw = whole.subarray(500, 900)
    const storing = archive.store([message('m1', { raw })])
    assert.equal(raw.byteLength, 400)
    await storing
    assert.deepEqual(Buffer.from(await archive.raw('m1')), Buffer.alloc(400, 'x'))
  })

  test('gives its attachments', async (context) => {
    const archive = await archiveFor(context)
    const content = noise(40_000)
    await archive.store([messageWithFile('m1', content)])
    const stored = await archive.message('m1')
    assert.deepEqual(stored?.attachments, [
      {
        name: 'report.pdf',
        type: 'application/pdf',
        bytes: 40_000,
        sha256: hash('sha256', content, 'hex'),
        index: 0,
      },
    ])
    const got = await archive.attachment('m1', 0)
    assert.deepEqual(Buffer.from(got.content), Buffer.from(content))
    await assert.rejects(archive.attachment('m1', 1), { code: 'message-absent' })
  })

  test('is written for good: another process opens the archive and has it', async (context) => {
    const folder = folderFor(context)
    const first = await openArchive(optionsFor(folder))
    await first.store([message('m1')])
    await first.close()
    const second = await archiveFor(context, { folder, expectExisting: true })
    assert.deepEqual(await second.stored(['m1', 'm2']), new Set(['m1']))
    await assert.rejects(first.store([message('m2')]), { code: 'archive-closed' })
  })
})

test('a message can be read as docs/mail-archive-format.md says', async (context) => {
  const archive = await archiveFor(context)
  const [plain, withFile] = [message('m1'), messageWithFile('m2', noise(30_000))]
  await archive.store([plain, withFile])
  const rows = (file: string, sql: string): Record<string, unknown>[] => {
    const db = new DatabaseSync(join(archive.folder, file), { readOnly: true })
    const found = db.prepare(sql).all()
    db.close()
    return found
  }
  const [first, second] = rows('2020.db', 'SELECT raw FROM bodies JOIN messages USING (pos) ORDER BY id')
  assert.deepEqual(zstdDecompressSync(first?.raw as Uint8Array).subarray(2), plain.raw)
  const parcel = zstdDecompressSync(second?.raw as Uint8Array)
  let at = 1
  const number = (): number => {
    let value = 0
    for (let shift = 0; ; shift += 7) {
      const byte = parcel[at++]!
      value += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return value
    }
  }
  assert.deepEqual([parcel[0], number()], [1, 1])
  const before = number()
  const sha256 = parcel.subarray(at, at + 32)
  at += 32
  const [bytes, lineLength, lineEnd] = [number(), number(), number()]
  assert.deepEqual([bytes, lineLength, lineEnd], [30_000, 76, 2])
  const [content] = rows('attachments-1.db', 'SELECT sha256, packed, content FROM contents')
  assert.deepEqual([Buffer.from(content?.sha256 as Uint8Array), content?.packed], [Buffer.from(sha256), 0])
  const lines = Buffer.from(content?.content as Uint8Array)
    .toString('base64')
    .match(/.{1,76}/g)
  const skeleton = parcel.subarray(at)
  const whole = Buffer.concat([
    skeleton.subarray(0, before),
    Buffer.from(lines?.join('\r\n') ?? ''),
    skeleton.subarray(before),
  ])
  assert.deepEqual(whole, withFile.raw)
})

describe('attachments', () => {
  test('of the same content are kept once in the archive', async (context) => {
    const archive = await archiveFor(context)
    const content = noise(300_000)
    const messages = Array.from({ length: 8 }, (_, index) =>
      messageWithFile(`m${index}`, content, { internalMs: Date.UTC(2015 + index, 1, 1) }),
    )
    await archive.store(messages)
    for (const { id, raw } of messages) assert.deepEqual(Buffer.from(await archive.raw(id)), raw)
    await archive.close()
    const sizes = readdirSync(archive.folder).map((name) => statSync(join(archive.folder, name)).size)
    assert.ok(sizes.reduce((sum, size) => sum + size, 0) < 2_000_000)
    const db = new DatabaseSync(join(archive.folder, 'attachments-1.db'), { readOnly: true })
    assert.equal((db.prepare('SELECT count(*) AS n FROM contents').get() as { n: number }).n, 1)
    db.close()
  })

  test('go to the next file when one has grown too large', async (context) => {
    const archive = await archiveFor(context, { shardBytesMax: 200_000 })
    for (let index = 0; index < 6; index++) {
      await archive.store([messageWithFile(`m${index}`, noise(90_000, index + 1))])
    }
    const files = readdirSync(archive.folder).filter((name) => /^attachments-\d+\.db$/.test(name))
    assert.ok(files.length >= 2, files.join(' '))
    const proofs = await archive.prove(['m0', 'm1', 'm2', 'm3', 'm4', 'm5'])
    assert.ok(proofs.every(({ state }) => state === 'proven'))
  })
})

describe('shards', () => {
  test('may be many more than SQLite can attach', async (context) => {
    const archive = await archiveFor(context, { shardBy: 'month', writers: 2 })
    const messages = Array.from({ length: 48 }, (_, month) =>
      message(`m${month}`, { internalMs: Date.UTC(2018, month, 15) }),
    )
    await archive.store(messages)
    const shards = await archive.shards()
    assert.equal(shards.length, 48)
    assert.ok(shards.every(({ state, messages: n }) => state === 'ok' && n === 1))
    assert.equal(shards[0]?.name, '2021-m12')
    const ids = messages.map(({ id }) => id)
    assert.equal((await archive.stored(ids)).size, 48)
    const proofs = await archive.prove(ids)
    assert.ok(proofs.every(({ state }) => state === 'proven'))
    assert.deepEqual(
      (await allOf(archive.entries({ ...ALL, pageSize: 7 }))).map(({ id }) => id),
      ids,
    )
    const changes = ids.map((id): MessageChange => ({ id, historyId: '200', addLabelIds: ['OLD'] }))
    assert.deepEqual(await archive.apply([...changes, { id: 'x', historyId: '1' }]), {
      changed: 48,
      unknown: ['x'],
      newer: [],
    })
    assert.deepEqual((await archive.message('m0'))?.labelIds, ['INBOX', 'OLD'])
  })

  test('get a next part when they have grown too large, and keep what they have', async (context) => {
    const archive = await archiveFor(context, { shardBytesMax: 150_000 })
    const messages = Array.from({ length: 60 }, (_, index) =>
      message(`m${index}`, {
        body: Buffer.from(noise(6_000, index + 1)).toString('base64'),
        internalMs: Date.UTC(2020, 0, 1) + index * 1_000,
      }),
    )
    for (let start = 0; start < 60; start += 10) await archive.store(messages.slice(start, start + 10))
    const shards = await archive.shards()
    assert.ok(shards.length >= 3)
    assert.ok(shards.some(({ name }) => name === '2020-2'))
    assert.ok(shards.every(({ fileBytes }) => fileBytes < 2_000_000))
    const again = await archive.store(messages)
    assert.ok(again.every(({ status }) => status === 'kept'))
    const ids = (await allOf(archive.entries(ALL))).map(({ id }) => id)
    assert.deepEqual(
      ids,
      messages.map(({ id }) => id),
    )
  })

  test('of another policy are still used: an id stays where it is', async (context) => {
    const folder = folderFor(context)
    const first = await openArchive(optionsFor(folder, { shardBy: 'year' }))
    await first.store([message('m1')])
    await first.close()
    const archive = await archiveFor(context, { folder, shardBy: 'month' })
    const [old, fresh] = await archive.store([
      message('m1', { historyId: '200', labelIds: [] }),
      message('m2'),
    ])
    assert.deepEqual([old?.status, old?.shard], ['updated', '2020'])
    assert.deepEqual([fresh?.status, fresh?.shard], ['added', '2020-m01'])
  })

  test('take messages with absurd times, which keep their true value', async (context) => {
    const archive = await archiveFor(context)
    const times = { past: -5_000_000_000_000, future: 400_000_000_000_000, epoch: 0, before: -1 }
    const outcomes = await archive.store(
      Object.entries(times).map(([id, internalMs]) => message(id, { internalMs })),
    )
    assert.deepEqual(
      outcomes.map(({ shard }) => shard),
      ['earlier', '9999', '1970', 'earlier'],
    )
    assert.equal((await archive.message('future'))?.internalMs, times.future)
    const entries = await allOf(archive.entries(ALL))
    assert.deepEqual(
      entries.map(({ id }) => id),
      ['past', 'before', 'epoch', 'future'],
    )
  })

  test('hold more messages of one second than a second has positions', async (context) => {
    const archive = await archiveFor(context)
    const internalMs = Date.UTC(2020, 0, 1)
    const many = Array.from({ length: 2_100 }, (_, index) => message(`m${index}`, { internalMs }))
    await archive.store(many)
    await archive.store([message('next', { internalMs: internalMs + 1_000 })])
    const entries = await allOf(archive.entries({ fromMs: internalMs, toMs: internalMs + 1 }))
    assert.equal(new Set(entries.map(({ id }) => id)).size, 2_100)
    assert.equal(
      (await allOf(archive.entries({ fromMs: internalMs + 1, toMs: internalMs + 2_000 }))).length,
      1,
    )
  })
})

describe('an imported message', () => {
  const imported = (id: string, options = {}) =>
    message(id, { source: 'import', historyId: '0', labelIds: [], ...options })

  test('is proven only once the cloud had the same bytes', async (context) => {
    const archive = await archiveFor(context)
    await archive.store([imported('m1')])
    assert.equal((await archive.prove(['m1']))[0]?.state, 'imported')
    const [outcome] = await archive.store([message('m1')])
    assert.equal(outcome?.status, 'updated')
    const stored = await archive.message('m1')
    assert.deepEqual([stored?.source, stored?.labelIds], ['gmail', ['INBOX']])
    assert.equal((await archive.prove(['m1']))[0]?.state, 'proven')
  })

  test('that differs is replaced by the cloud, and that is noted', async (context) => {
    const archive = await archiveFor(context)
    await archive.store([imported('m1', { body: 'changed on the way' })])
    const [outcome] = await archive.store([message('m1')])
    assert.match(outcome?.problems.join() ?? '', /imported copy differed/)
    assert.deepEqual(Buffer.from(await archive.raw('m1')), message('m1').raw)
    assert.match((await archive.message('m1'))?.problems.join() ?? '', /imported copy differed/)
  })

  test('with another time than the cloud has is there once, at the time of the cloud', async (context) => {
    const archive = await archiveFor(context, { writers: 2 })
    await archive.store([imported('m1', { internalMs: Date.UTC(2017, 0, 1) })])
    const [outcome] = await archive.store([message('m1')])
    assert.deepEqual([outcome?.status, outcome?.shard], ['updated', '2017'])
    const entries = await allOf(archive.entries({ fromMs: Date.UTC(2020, 0, 1), toMs: Date.UTC(2021, 0, 1) }))
    assert.deepEqual(
      entries.map(({ id }) => id),
      ['m1'],
    )
    assert.equal((await allOf(archive.entries(ALL))).length, 1)
    const [late] = await archive.store([imported('m1', { internalMs: Date.UTC(2010, 0, 1) })])
    assert.equal(late?.status, 'kept')
  })
})

test('what is stored is found by its words at once, and by its new words after it was replaced', async (context) => {
  const archive = await archiveFor(context)
  const words = (word: string) =>
    ({ is: 'text', field: null, words: [word], phrase: false, prefix: false }) as const
  await archive.store([message('m1', { body: 'aardvark', source: 'import', historyId: '0' })])
  assert.equal((await archive.search(words('aardvark'))).hits.length, 1)
  await archive.store([message('m1', { body: 'buffalo' })])
  assert.equal((await archive.search(words('aardvark'))).hits.length, 0)
  assert.equal((await archive.search(words('buffalo'))).hits[0]?.message.id, 'm1')
  assert.equal((await archive.count(words('buffalo'))).messages, 1)
})

test('HTML beside plain text, named text parts and empty groups are found', async (context) => {
  const archive = await archiveFor(context)
  const raw = [
    'To: undisclosed-recipients:;',
    'Content-Type: multipart/mixed; boundary=m',
    '',
    '--m',
    'Content-Type: multipart/alternative; boundary=a',
    '',
    '--a',
    'Content-Type: text/plain',
    '',
    'The plain aardvark has much to tell about itself, its family and its friends.',
    '--a',
    'Content-Type: text/html',
    '',
    '<p>The plain aardvark has much to tell about itself, its family and its friends.</p><p>Two wild buffaloes</p>',
    '--a--',
    '--m',
    'Content-Type: text/plain; name="notes.txt"',
    'Content-Disposition: inline; filename="notes.txt"',
    '',
    'a chameleon',
    '--m--',
  ].join('\r\n')
  await archive.store([message('m1', { raw: Buffer.from(raw) })])
  for (const query of [
    'aardvark',
    '"wild buffaloes"',
    'chameleon',
    'filename:notes',
    'to:undisclosed-recipients',
  ]) {
    assert.equal((await archive.count(parseQuery(query, { now: 0 }))).messages, 1, query)
  }
  assert.match(await archive.text('m1'), /^The plain aardvark has .* friends\.\n\na chameleon$/)
  assert.deepEqual((await archive.message('m1'))?.to, [{ name: 'undisclosed-recipients', address: '' }])
})

test('room is given when little waits, and refused to whoever gave up', async (context) => {
  const archive = await archiveFor(context)
  await archive.room()
  const raw = Buffer.alloc(9_000_000, 'x')
  const storing = archive.store(['a', 'b', 'c', 'd', 'e'].map((id) => message(id, { raw })))
  assert.equal(archive.queuedBytes, 45_000_000)
  await assert.rejects(archive.room(AbortSignal.abort(new Error('enough'))), /enough/)
  await archive.room()
  assert.ok(archive.queuedBytes < 32 * 1_048_576)
  await storing
  assert.equal(archive.queuedBytes, 0)
})

test('stores and changes end in the same state in whatever order stores arrive', async (context) => {
  const archive = await archiveFor(context)
  let run = 0
  // The truth: labels after each history id. Changes come in order, as history gives them; views of the message
  // as it was at any time come in between, early or late. The first and the last view always come.
  const step = fc.record({ label: fc.constantFrom('A', 'B', 'C'), isAdded: fc.boolean() })
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { minLength: 1, maxLength: 6 }),
      fc.infiniteStream(fc.nat(9)),
      async (steps, chance) => {
        const id = `m${run++}`
        const views: string[][] = [[]]
        for (const { label, isAdded } of steps) {
          const labels = new Set(views.at(-1))
          if (isAdded) labels.add(label)
          else labels.delete(label)
          views.push([...labels].sort())
        }
        const storeView = (at: number) =>
          archive.store([message(id, { historyId: String(98 + at), labelIds: views[at]! })])
        const pick = (): number => chance.next().value
        await storeView(0)
        for (const [index, { label, isAdded }] of steps.entries()) {
          if (pick() < 4) await storeView(pick() % views.length)
          const which = isAdded ? { addLabelIds: [label] } : { removeLabelIds: [label] }
          await archive.apply([{ id, historyId: String(99 + index), ...which }])
          if (pick() < 4) await storeView(pick() % views.length)
        }
        const stored = await archive.message(id)
        assert.deepEqual(stored?.labelIds, views.at(-1))
        assert.equal(stored?.historyId, String(98 + steps.length))
      },
    ),
    { numRuns: 40 },
  )
})

test('deletions are marks that only something newer takes away', async (context) => {
  const archive = await archiveFor(context)
  await archive.store([message('m1')])
  await archive.apply([{ id: 'm1', historyId: '105', deletedAtMs: 77 }])
  await archive.store([message('m1', { historyId: '103' })])
  assert.equal((await archive.message('m1'))?.deletedAtMs, 77)
  const [proof] = await archive.prove(['m1'])
  assert.deepEqual([proof?.state, proof?.deletedAtMs], ['proven', 77])
  assert.equal((await archive.shards())[0]?.deleted, 1)
  await archive.store([message('m1', { historyId: '106' })])
  assert.equal((await archive.message('m1'))?.deletedAtMs, null)
  await archive.apply([
    { id: 'm1', historyId: '107', deletedAtMs: 78 },
    { id: 'm1', historyId: '108', restored: true },
  ])
  assert.equal((await archive.message('m1'))?.deletedAtMs, null)
})
