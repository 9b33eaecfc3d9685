import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { streamOf } from './account.ts'
import {
  ANN,
  BOB,
  CAT,
  DATABASES,
  type DriveTestWorld,
  type DriveWorldOptions,
  startDriveWorld,
} from './drive-world.suite.ts'
import { type Listed, listedOf } from './plan.ts'
import { takeIn } from './store/access.ts'
import { publishReading } from './store/documents.ts'

const HOUR_MS = 3_600_000
const TEAM = 'team@example.com'

let world: DriveTestWorld
afterEach(() => world.close())

const reader = (email: string) => ({ type: 'user', role: 'reader', email }) as const

/** Found by the words of the first version, and by those of the second. */
async function found(person: string): Promise<[first: boolean, second: boolean]> {
  const [first, second] = [await world.found(person, 'apples'), await world.found(person, 'pears')]
  return [first.length > 0, second.length > 0]
}

/** A look of an account's own listing that is taken in, and after which nothing is read yet. */
async function lookAs(account: string): Promise<void> {
  await takeInAs(account, await looked(account))
}

async function looked(account: string): Promise<Listed[]> {
  const { client } = await world.kinds.accounts.get(account)
  const askedAtMs = world.clock.now()
  const { files } = await client.list({ driveId: undefined })
  const by = { account, askedAtMs, nowMs: world.clock.now(), drive: undefined }
  return files.map((file) => listedOf(file, by))
}

async function takeInAs(account: string, listed: readonly Listed[]): Promise<void> {
  const of = { account, drive: '', generation: 1 }
  await world.ledger.transaction((tx) => takeIn(tx, world.search, of, listed))
}

/** Where the document that has the word lies, as the person is told it. */
async function foldersOf(person: string): Promise<readonly string[] | undefined> {
  const answer = await world.search.search({
    text: 'apples',
    reader: { principals: [streamOf(person)] },
    mode: 'words',
    limit: 1,
    nowMs: world.clock.now(),
    signal: new AbortController().signal,
  })
  return answer.hits[0]?.folders
}

for (const database of DATABASES)
  describe(`on ${database}`, () => {
    async function start(options: DriveWorldOptions = {}): Promise<DriveTestWorld['world']> {
      world = await startDriveWorld({ users: [ANN, BOB, CAT], database, ...options })
      return world.world
    }

    test('a former reader does not find what was written after the unsharing, from the look of the owner on', async () => {
      const drive = await start()
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, content: 'apples' })
      drive.share(id, reader(BOB))
      drive.share(id, reader(CAT))
      await world.sync()
      drive.unshare(id, BOB)
      drive.edit(id, 'pears')
      await world.engine.pause('stream', streamOf(BOB))
      await world.sync(ANN)
      assert.deepEqual(await found(BOB), [false, false])
      assert.deepEqual(
        [await found(ANN), await found(CAT)],
        [
          [false, true],
          [false, true],
        ],
      )
      await world.engine.resume('stream', streamOf(BOB))
      await world.sync(BOB)
      assert.deepEqual(await world.seen(BOB), [])
      assert.equal((await world.tables.access(BOB, '', [id])).size, 0)
    })

    test('the look of a writer tells it as well as that of the owner', async () => {
      const drive = await start({ connected: [BOB, CAT] })
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, content: 'apples' })
      drive.share(id, reader(BOB))
      drive.share(id, { type: 'user', role: 'writer', email: CAT })
      await world.sync()
      assert.deepEqual(await found(BOB), [true, false])
      drive.unshare(id, BOB)
      await world.engine.pause('stream', streamOf(BOB))
      await world.sync(CAT)
      assert.deepEqual(
        [await found(BOB), await found(CAT)],
        [
          [false, false],
          [true, false],
        ],
      )
    })

    test('a look of the former reader that is older than the unsharing brings nothing back', async () => {
      const drive = await start()
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, content: 'apples' })
      drive.share(id, reader(BOB))
      await world.sync()
      const { client } = await world.kinds.accounts.get(BOB)
      const askedAtMs = world.clock.now()
      const page = await client.list({ driveId: undefined })
      drive.unshare(id, BOB)
      drive.edit(id, 'pears')
      await world.engine.pause('stream', streamOf(BOB))
      await world.sync(ANN)
      const by = { account: BOB, askedAtMs, nowMs: world.clock.now(), drive: undefined }
      const late = page.files.map((file) => listedOf(file, by))
      assert.equal(late.length, 1)
      const of = { account: BOB, drive: '', generation: 1 }
      await world.ledger.transaction((tx) => takeIn(tx, world.search, of, late))
      assert.deepEqual(
        [await found(ANN), await found(BOB)],
        [
          [false, true],
          [false, false],
        ],
      )
    })

    test('a list of permissions that is older than the unsharing brings nothing back', async () => {
      const drive = await start()
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, content: 'apples' })
      drive.share(id, reader(BOB))
      drive.share(id, { type: 'user', role: 'writer', email: CAT })
      await world.sync()
      const { client } = await world.kinds.accounts.get(CAT)
      const by = { account: CAT, askedAtMs: world.clock.now(), nowMs: world.clock.now(), drive: undefined }
      const older = (await client.list({ driveId: undefined })).files.map((file) => listedOf(file, by))
      drive.unshare(id, BOB)
      drive.edit(id, 'pears')
      await world.engine.pause('stream', streamOf(BOB))
      await world.sync(ANN)
      const of = { account: CAT, drive: '', generation: 1 }
      await world.ledger.transaction((tx) => takeIn(tx, world.search, of, older))
      // Nor does a look of Bob that is as old as that list.
      const bobs = older.map((one) => ({ ...one, sharing: null }))
      await world.ledger.transaction((tx) => takeIn(tx, world.search, { ...of, account: BOB }, bobs))
      assert.deepEqual(
        [await found(CAT), await found(BOB)],
        [
          [false, true],
          [false, false],
        ],
      )
    })

    test('what a group reads is hidden from its members when it changes, until each of them has looked', async () => {
      const drive = await start({ drive: { groups: [{ address: TEAM, members: [BOB, CAT] }] } })
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, content: 'apples' })
      drive.share(id, { type: 'group', role: 'reader', email: TEAM })
      await world.sync()
      assert.deepEqual(await found(CAT), [true, false])
      drive.setMembers(TEAM, [CAT])
      drive.edit(id, 'pears')
      await world.engine.pause('stream', streamOf(BOB))
      // Cat is asked to look as soon as the new version is there; Bob cannot.
      await world.sync(ANN)
      assert.deepEqual(
        [await found(ANN), await found(BOB), await found(CAT)],
        [
          [false, true],
          [false, false],
          [false, true],
        ],
      )
      // The row stays: nobody has said that Bob is no member any more.
      assert.equal((await world.tables.access(BOB, '', [id])).size, 1)
    })

    test('sharing with one more takes nothing from the members of a group', async () => {
      const drive = await start({ drive: { groups: [{ address: TEAM, members: [BOB] }] } })
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, content: 'apples' })
      drive.share(id, { type: 'group', role: 'reader', email: TEAM })
      await world.sync()
      drive.share(id, reader(CAT))
      await world.engine.pause('stream', streamOf(BOB))
      await world.sync(ANN)
      assert.deepEqual(await found(BOB), [true, false])
    })

    test('what everybody of the domain finds stays found when it changes', async () => {
      const drive = await start()
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, content: 'apples' })
      drive.share(id, { type: 'domain', role: 'reader', domain: 'example.com', isDiscoverable: true })
      await world.sync()
      assert.deepEqual(await found(BOB), [true, false])
      drive.edit(id, 'pears')
      await world.engine.pause('stream', streamOf(BOB))
      await world.sync(ANN)
      assert.deepEqual(await found(BOB), [false, true])
    })

    test('who lost the share and kept the link does not find what was written since', async () => {
      const drive = await start()
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, content: 'apples' })
      drive.share(id, reader(BOB))
      drive.share(id, { type: 'anyone', role: 'reader', isDiscoverable: false })
      await world.sync()
      drive.unshare(id, BOB)
      drive.edit(id, 'pears')
      await world.engine.pause('stream', streamOf(BOB))
      await world.sync(ANN)
      assert.deepEqual(await found(BOB), [false, false])
    })

    test('a folder that is shared no more takes away what lies in it from the look of the owner on', async () => {
      const drive = await start()
      const folder = drive.createFolder({ name: 'Folder', by: ANN })
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, parent: folder.id, content: 'apples' })
      drive.share(folder.id, reader(BOB))
      await world.sync()
      assert.deepEqual(await found(BOB), [true, false])
      drive.unshare(folder.id, BOB)
      drive.edit(id, 'pears')
      await world.engine.pause('stream', streamOf(BOB))
      await world.sync(ANN)
      assert.deepEqual(await found(BOB), [false, false])
    })

    test('who is given a document after something was taken out of it never finds what was there before', async () => {
      const drive = await start()
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, content: 'apples' })
      await world.sync()
      drive.edit(id, 'pears')
      drive.share(id, reader(BOB))
      for (const person of [ANN, BOB]) await lookAs(person)
      assert.deepEqual(
        [await found(ANN), await found(BOB)],
        [
          [true, false],
          [false, false],
        ],
      )
      await world.sync()
      assert.deepEqual(
        [await found(ANN), await found(BOB)],
        [
          [false, true],
          [false, true],
        ],
      )
    })

    test('where the new version cannot be read, who was given it since finds its name, and nobody what was there before', async () => {
      const drive = await start()
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, content: 'apples' })
      await world.sync()
      drive.edit(id, 'pears')
      await lookAs(ANN)
      const { version } = (await world.tables.file(id))!
      const failed = { version, unread: { code: 'failed', reason: 'it breaks off' }, hasFailed: true }
      const publish = () => world.ledger.transaction((tx) => publishReading(tx, world.search, id, failed))
      await publish()
      assert.deepEqual(await found(ANN), [true, false])
      drive.share(id, reader(BOB))
      world.drive.refuse(id, {})
      await world.sync()
      assert.deepEqual(
        [await found(ANN), await found(BOB)],
        [
          [false, false],
          [false, false],
        ],
      )
      assert.deepEqual(await world.found(BOB, 'plan'), ['Plan.txt'])
    })

    test('a new version that could not be read is tried again for who was given it since', async () => {
      const drive = await start()
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, content: 'apples' })
      await world.sync()
      drive.edit(id, 'pears')
      await lookAs(ANN)
      const { version } = (await world.tables.file(id))!
      const failed = { version, unread: { code: 'failed', reason: 'it breaks off' }, hasFailed: true }
      await world.ledger.transaction((tx) => publishReading(tx, world.search, id, failed))
      await world.sync()
      assert.deepEqual(await found(ANN), [true, false])
      drive.share(id, reader(BOB))
      await world.sync()
      assert.deepEqual(
        [await found(ANN), await found(BOB)],
        [
          [false, true],
          [false, true],
        ],
      )
    })

    test('where nobody who may read the new version is signed in, who was given it since finds its name', async () => {
      const drive = await start()
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, content: 'apples' })
      await world.sync()
      drive.edit(id, 'pears')
      drive.share(id, reader(BOB))
      for (const person of [ANN, BOB]) await lookAs(person)
      const { version } = (await world.tables.file(id))!
      const unread = { code: 'no-reader', reason: 'no account that is signed in may read it' }
      const reading = { version, unread, isForNow: true }
      await world.ledger.transaction((tx) => publishReading(tx, world.search, id, reading))
      assert.deepEqual([await found(ANN), await world.found(BOB, 'plan')], [[false, false], ['Plan.txt']])
    })

    test('who had access before a version keeps the older text while the newer one cannot be read', async () => {
      const drive = await start({ drive: { groups: [{ address: TEAM, members: [BOB] }] } })
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, content: 'apples' })
      drive.share(id, { type: 'group', role: 'reader', email: TEAM })
      await world.sync()
      drive.edit(id, 'pears')
      await lookAs(ANN)
      assert.deepEqual(await found(BOB), [false, false])
      await lookAs(BOB)
      const { version } = (await world.tables.file(id))!
      const failed = { version, unread: { code: 'failed', reason: 'it breaks off' }, hasFailed: true }
      await world.ledger.transaction((tx) => publishReading(tx, world.search, id, failed))
      assert.deepEqual(
        [await found(ANN), await found(BOB)],
        [
          [true, false],
          [true, false],
        ],
      )
    })

    test('who was away while a version came and went never finds it', async () => {
      const drive = await start({ drive: { groups: [{ address: TEAM, members: [BOB] }] } })
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, content: 'nuts' })
      drive.share(id, { type: 'group', role: 'reader', email: TEAM })
      await world.sync()
      drive.setMembers(TEAM, [])
      drive.edit(id, 'apples')
      await world.engine.pause('stream', streamOf(BOB))
      await world.sync(ANN)
      drive.edit(id, 'pears')
      drive.setMembers(TEAM, [BOB])
      for (const person of [ANN, BOB]) await lookAs(person)
      assert.deepEqual(
        [await found(ANN), await found(BOB)],
        [
          [true, false],
          [false, false],
        ],
      )
      await world.engine.resume('stream', streamOf(BOB))
      await world.sync()
      assert.deepEqual(await found(BOB), [false, true])
    })

    test('whose look is at the version that others saw later has seen it', async () => {
      const drive = await start({ drive: { groups: [{ address: TEAM, members: [BOB] }] } })
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, content: 'apples' })
      drive.share(id, { type: 'group', role: 'reader', email: TEAM })
      await world.sync()
      drive.edit(id, 'pears')
      const late = await looked(BOB)
      drive.share(id, reader(CAT))
      await lookAs(ANN)
      await takeInAs(BOB, late)
      await world.engine.pause('stream', streamOf(BOB))
      await world.sync(ANN)
      assert.deepEqual(await found(BOB), [false, true])
    })

    test('who saw only what was between two times of the same text does not find it', async () => {
      const drive = await start({ drive: { groups: [{ address: TEAM, members: [] }] } })
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, content: 'apples' })
      drive.share(id, { type: 'group', role: 'reader', email: TEAM })
      await world.sync()
      drive.edit(id, 'pears')
      drive.setMembers(TEAM, [BOB])
      const late = await looked(BOB)
      assert.equal(late.length, 1)
      drive.setMembers(TEAM, [])
      drive.edit(id, 'apples')
      await lookAs(ANN)
      await takeInAs(BOB, late)
      assert.deepEqual(
        [await found(ANN), await found(BOB)],
        [
          [true, false],
          [false, false],
        ],
      )
    })

    test('who is named finds a new version after the look of the owner, also where that of a reader came first', async () => {
      const drive = await start()
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, content: 'apples' })
      for (const person of [BOB, CAT]) drive.share(id, reader(person))
      await world.sync()
      drive.edit(id, 'pears')
      await lookAs(CAT)
      assert.deepEqual(await found(BOB), [false, false])
      await lookAs(ANN)
      assert.deepEqual(await found(BOB), [true, false])
      await world.engine.pause('stream', streamOf(BOB))
      await world.sync(ANN)
      assert.deepEqual(await found(BOB), [false, true])
    })

    test('who is named again, and was away meanwhile, waits for the version that names them', async () => {
      const drive = await start()
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, content: 'nuts' })
      drive.share(id, reader(BOB))
      await world.sync()
      await world.engine.pause('stream', streamOf(BOB))
      drive.unshare(id, BOB)
      drive.edit(id, 'apples')
      await world.sync(ANN)
      drive.edit(id, 'pears')
      drive.share(id, reader(BOB))
      await lookAs(ANN)
      assert.deepEqual(
        [await found(ANN), await found(BOB)],
        [
          [true, false],
          [false, false],
        ],
      )
      await world.sync(ANN)
      assert.deepEqual(await found(BOB), [false, true])
    })

    test('whose access the list of another account has ended is asked to look at once', async () => {
      const drive = await start()
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, content: 'apples' })
      drive.share(id, reader(BOB))
      await world.sync()
      drive.unshare(id, BOB)
      await world.sync(ANN)
      assert.equal((await world.tables.access(BOB, '', [id])).size, 0)
    })

    test('the new name of a folder is told to nobody who has not seen it', async () => {
      const drive = await start()
      const folder = drive.createFolder({ name: 'Folder', by: ANN })
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, parent: folder.id, content: 'apples' })
      drive.share(folder.id, reader(BOB))
      drive.share(id, reader(BOB))
      await world.sync()
      assert.deepEqual(await foldersOf(BOB), ['Folder'])
      await world.engine.pause('stream', streamOf(BOB))
      drive.unshare(folder.id, BOB)
      drive.rename(folder.id, 'Layoffs')
      await world.sync(ANN)
      assert.deepEqual(await foldersOf(BOB), [])
      drive.share(folder.id, reader(BOB))
      await world.engine.resume('stream', streamOf(BOB))
      await world.sync()
      assert.deepEqual([await foldersOf(ANN), await foldersOf(BOB)], [['Layoffs'], ['Layoffs']])
    })

    test('in a shared drive, where nobody is told who may read, a member finds a new version after a look of their own', async () => {
      const members = [ANN, BOB, CAT].map((email) => ({ email, role: 'organizer' as const }))
      const drive = await start({ drive: { drives: [{ name: 'Legal', members }] } })
      const [root] = [...drive.drives.values()]
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, parent: root!.id, content: 'apples' })
      await world.sync()
      assert.deepEqual(await found(BOB), [true, false])
      drive.unshare(root!.id, BOB)
      drive.edit(id, 'pears')
      await world.engine.pause('stream', streamOf(BOB))
      await world.sync(ANN)
      assert.deepEqual(
        [await found(ANN), await found(BOB), await found(CAT)],
        [
          [false, true],
          [false, false],
          [false, true],
        ],
      )
    })

    test('a reader who is told no permissions loses access at the time that the list of the owner says', async () => {
      const drive = await start()
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, content: 'apples' })
      drive.share(id, { ...reader(BOB), expiresMs: world.clock.now() + HOUR_MS })
      await world.sync()
      assert.deepEqual(await found(BOB), [true, false])
      await world.engine.pause('stream', streamOf(BOB))
      await world.relist(ANN)
      assert.deepEqual(await found(BOB), [true, false])
      world.clock.aheadMs += 2 * HOUR_MS
      assert.deepEqual(await found(BOB), [false, false])
    })

    test('what is hidden from all who are left stays, and is found again by who looks', async () => {
      const drive = await start({ drive: { groups: [{ address: TEAM, members: [BOB] }] } })
      const { id } = drive.create({ name: 'Plan.txt', by: ANN, content: 'apples' })
      drive.share(id, { type: 'group', role: 'reader', email: TEAM })
      await world.sync()
      drive.edit(id, 'pears')
      await world.engine.pause('stream', streamOf(BOB))
      await world.sync(ANN)
      const [account] = (await world.accounts.list('drive')).filter(({ name }) => name === ANN)
      await world.accounts.remove(account!.id)
      await world.kinds.accounts.reload()
      await world.engine.enqueue(world.kinds.forget, { account: ANN }, { stream: streamOf(ANN) })
      await world.engine.drained()
      assert.deepEqual(
        [await found(ANN), await found(BOB)],
        [
          [false, false],
          [false, false],
        ],
      )
      await world.engine.resume('stream', streamOf(BOB))
      await world.sync(BOB)
      assert.deepEqual(await found(BOB), [false, true])
    })
  })
