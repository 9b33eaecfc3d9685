import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { freshDatabase, type TestDatabase } from '../../../scripts/test-database.ts'
import { ADDRESS, type SyncWorld, startSync } from './sync.suite.ts'

const reader = { principals: [`gmail:${ADDRESS}`] }

async function find(
  { search }: SyncWorld,
  text: string,
  as = reader,
): Promise<{ title: string; type: string; folders: readonly string[] }[]> {
  const { hits } = await search.search({
    text,
    reader: as,
    mode: 'words',
    limit: 20,
    nowMs: Date.now(),
    signal: new AbortController().signal,
  })
  return hits.map(({ title, type, folders }) => ({
    title: title.map((part) => part.text).join(''),
    type,
    folders,
  }))
}

const LETTER = [
  'From: Dora Quill <dora@example.org>',
  `To: ${ADDRESS}`,
  'Subject: Heron survey',
  'MIME-Version: 1.0',
  'Content-Type: multipart/mixed; boundary=cut',
  '',
  '--cut',
  'Content-Type: text/plain; charset=utf-8',
  '',
  'The wetland count is attached, twelve nests in all.',
  '--cut',
  'Content-Type: text/markdown; name="nests.md"',
  'Content-Disposition: attachment; filename="nests.md"',
  '',
  '# Nests',
  '',
  'The saltmarsh has the oldest ones.',
  '--cut--',
  '',
].join('\r\n')

const databases: TestDatabase[] = []
after(() => Promise.all(databases.map((database) => database.drop())))

for (const where of ['SQLite', 'PostgreSQL'] as const) {
  test(`mail is found by the search over everything, with its attachments, on ${where}`, async () => {
    const database = where === 'PostgreSQL' ? await freshDatabase() : undefined
    if (database) databases.push(database)
    const world = await startSync({
      messages: 30,
      isIndexed: true,
      ...(database && { ledgerUrl: database.url }),
    })
    try {
      const mailbox = world.sim.gmail.mailbox(ADDRESS)
      await world.sync()
      const { stored } = await world.status()
      const [coverage] = await world.search.coverage(reader)
      assert.equal(coverage?.source, 'mail')
      assert.ok(coverage.documents >= Number(stored), 'each message is a document, and so are attachments')

      const { id } = mailbox.insert({ raw: Buffer.from(LETTER), labelIds: ['INBOX'] })
      await world.follow()
      assert.deepEqual(await find(world, 'wetland'), [
        { title: 'Heron survey', type: 'mail', folders: ['INBOX'] },
      ])
      assert.deepEqual(await find(world, 'from:dora nests type:mail'), await find(world, 'wetland'))
      assert.deepEqual(
        (await find(world, 'saltmarsh')).map(({ title, type }) => [title, type]),
        [['nests.md', 'attachment']],
      )
      assert.deepEqual(await find(world, 'wetland', { principals: ['gmail:ben@example.com'] }), [])

      mailbox.modify(id, { add: ['STARRED'] })
      await world.follow()
      assert.deepEqual((await find(world, 'in:starred wetland')).length, 1)

      // The archive keeps what Gmail has no more, and so it is found.
      mailbox.delete(id)
      await world.follow()
      assert.equal((await find(world, 'wetland')).length, 1)
    } finally {
      await world.close()
    }
  })
}
