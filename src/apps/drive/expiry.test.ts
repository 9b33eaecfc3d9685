import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { streamOf } from './account.ts'
import { ANN, BOB, DATABASES, type DriveTestWorld, startDriveWorld } from './drive-world.suite.ts'
import { moveToken } from './store/feeds.ts'
import { EXPIRED_MAX } from './store/tables.ts'

const HOUR_MS = 3_600_000

let world: DriveTestWorld
afterEach(() => world.close())

async function start(database: (typeof DATABASES)[number]): Promise<DriveTestWorld['world']> {
  world = await startDriveWorld({ database })
  return world.world
}

for (const database of DATABASES)
  describe(`on ${database}`, () => {
    test('an access that ends by itself ends in the index at that moment', async () => {
      const drive = await start(database)
      const file = drive.create({ name: 'Brief.txt', by: ANN, content: 'brief' })
      drive.share(file.id, {
        type: 'user',
        role: 'writer',
        email: BOB,
        expiresMs: world.clock.now() + HOUR_MS,
      })
      await world.sync()
      assert.deepEqual(await world.seen(BOB), [file.id])
      world.clock.aheadMs += 2 * HOUR_MS
      assert.deepEqual(await world.seen(BOB), [])
      await world.sync()
      assert.deepEqual([await world.seen(ANN), await world.seen(BOB)], [[file.id], []])
    })

    test('an access that has ended does not come back to who still holds the link', async () => {
      const drive = await start(database)
      const file = drive.create({ name: 'Brief.txt', by: ANN, content: 'brief' })
      drive.share(file.id, {
        type: 'user',
        role: 'writer',
        email: BOB,
        expiresMs: world.clock.now() + HOUR_MS,
      })
      drive.share(file.id, { type: 'anyone', role: 'reader', isDiscoverable: false })
      await world.sync()
      assert.deepEqual(await world.seen(BOB), [file.id])
      world.clock.aheadMs += 2 * HOUR_MS
      await world.sync()
      assert.deepEqual([await world.seen(ANN), await world.seen(BOB)], [[file.id], []])
      assert.equal((await world.status(BOB)).listed, 0)
      await world.relist(BOB)
      assert.equal((await world.tables.access(BOB, '', [file.id])).size, 0)
    })

    for (const told of ['by a change', 'by nobody'])
      test(`a new name that the search does not know yet hides the file, and loses it for nobody, where it is told ${told}`, async () => {
        const drive = await start(database)
        const { id } = drive.create({ name: 'Brief.txt', by: ANN, content: 'brief' })
        drive.share(id, { type: 'user', role: 'reader', email: BOB })
        await world.sync()
        drive.rename(id, 'Letter.txt')
        world.drive.listing.notYetNamed.add(id)
        if (told === 'by nobody') {
          const { client } = await world.kinds.accounts.get(BOB)
          const token = await client.startPageToken({ driveId: undefined })
          await world.ledger.transaction(async (tx) => {
            await moveToken(tx, { account: BOB, drive: '' }, token)
            await tx.run(`UPDATE drive_access SET expires_at = 0 WHERE account = ?`, [BOB])
          })
        }
        // The list of the owner, who is asked otherwise, names him.
        await (told === 'by nobody' ? world.sync(BOB) : world.sync())
        assert.deepEqual([await world.seen(ANN), await world.seen(BOB)], [[id], []])
        assert.deepEqual(
          [(await world.status(BOB)).listed, (await world.tables.access(BOB, '', [id])).size],
          [0, 1],
        )
        world.drive.listing.notYetNamed.clear()
        await world.sync()
        assert.deepEqual(
          [await world.found(BOB, 'brief'), (await world.status(BOB)).listed],
          [['Letter.txt'], 1],
        )
      })

    test('where more is unconfirmed than is asked about one by one, everything is listed anew', async () => {
      await start(database)
      await world.sync()
      const { tables } = world
      const before = Number((await tables.feed(BOB, ''))?.generation)
      const expired = tables.expired.bind(tables)
      const unconfirmed = Array.from({ length: EXPIRED_MAX }, () => ({ drive: '', file: 'none' }))
      let isDone = false
      tables.expired = async (account, nowMs) => {
        if (account !== BOB || isDone) return expired(account, nowMs)
        isDone = true
        return unconfirmed
      }
      await world.sync(BOB)
      assert.ok(Number((await tables.feed(BOB, ''))?.generation) > before)
    })

    test('an access that is left unconfirmed while its account ends a sync is asked about before it ends', async () => {
      const drive = await start(database)
      const { id } = drive.create({ name: 'Brief.txt', by: ANN, content: 'brief' })
      drive.share(id, { type: 'user', role: 'reader', email: BOB })
      await world.sync()
      const { tables } = world
      const expired = tables.expired.bind(tables)
      let isDone = false
      tables.expired = async (account, nowMs) => {
        const rows = await expired(account, nowMs)
        if (account !== BOB || isDone) return rows
        isDone = true
        await world.ledger.transaction((tx) =>
          tx.run(`UPDATE drive_access SET expires_at = 0 WHERE account = ?`, [BOB]),
        )
        return rows
      }
      await world.engine.enqueue(world.kinds.sync, { account: BOB }, { stream: streamOf(BOB) })
      await world.engine.drained()
      assert.deepEqual([isDone, await expired(BOB, world.clock.now())], [true, []])
    })

    test('an access that has ended stays where the whole domain may find the file', async () => {
      const drive = await start(database)
      const file = drive.create({ name: 'Brief.txt', by: ANN, content: 'brief' })
      drive.share(file.id, {
        type: 'user',
        role: 'writer',
        email: BOB,
        expiresMs: world.clock.now() + HOUR_MS,
      })
      await world.sync()
      // Its change is told to nobody in time: it is behind the token.
      drive.share(file.id, { type: 'domain', role: 'reader', domain: 'example.com', isDiscoverable: true })
      const { client } = await world.kinds.accounts.get(BOB)
      const token = await client.startPageToken({ driveId: undefined })
      await world.ledger.transaction((tx) => moveToken(tx, { account: BOB, drive: '' }, token))
      world.clock.aheadMs += 2 * HOUR_MS
      await world.sync()
      assert.deepEqual(await world.seen(BOB), [file.id])
      assert.equal((await world.tables.access(BOB, '', [file.id])).size, 0)
    })

    test('the name of a skipped file is not told any more once the access has ended', async () => {
      const drive = await start(database)
      const file = drive.create({ name: 'Layoffs.png', by: ANN, mimeType: 'image/png', content: 'png' })
      drive.share(file.id, {
        type: 'user',
        role: 'writer',
        email: BOB,
        expiresMs: world.clock.now() + HOUR_MS,
      })
      await world.sync()
      const skippedFor = async (account: string): Promise<string[]> => {
        const page = { accounts: [account], code: 'unsupported-type', after: '', limit: 10 }
        return (await world.tables.skipped(page)).map(({ name }) => name)
      }
      assert.deepEqual(await skippedFor(BOB), ['Layoffs.png'])
      world.clock.aheadMs += 2 * HOUR_MS
      assert.deepEqual([await skippedFor(ANN), await skippedFor(BOB)], [['Layoffs.png'], []])
    })
  })
