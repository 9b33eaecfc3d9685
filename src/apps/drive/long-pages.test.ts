import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { TidemarkError } from '../../base/errors.ts'
import type { Tx } from '../../ledger/contract.ts'
import { ANN, BOB, DATABASES, type DriveTestWorld, startDriveWorld } from './drive-world.suite.ts'
import { PART_FILES_MAX } from './plan.ts'
import { DOMAIN } from './store/schema.ts'

/** More than two parts. */
const DOCUMENTS = PART_FILES_MAX * 2 + 20

let world: DriveTestWorld
afterEach(() => world.close())

/** How many documents are told anew, given or taken away in the longest transaction so far. */
function longest(): () => number {
  const counts = new Map<Tx, number>()
  const count = (tx: Tx): void => void counts.set(tx, (counts.get(tx) ?? 0) + 1)
  const { search } = world
  const [describe, grant, revoke] = [search.describe, search.grant, search.revoke]
  search.describe = (tx, document) => {
    count(tx)
    return describe.call(search, tx, document)
  }
  search.grant = (tx, ...rest) => {
    count(tx)
    return grant.call(search, tx, ...rest)
  }
  search.revoke = (tx, ...rest) => {
    count(tx)
    return revoke.call(search, tx, ...rest)
  }
  return () => {
    const most = Math.max(0, ...counts.values())
    counts.clear()
    return most
  }
}

/** Lets the second transaction that gives somebody access fail once, behind its first document. */
function failSecond(): () => boolean {
  const { search } = world
  const { grant } = search
  const seen = new Set<Tx>()
  let hasFailed = false
  search.grant = (tx, ...rest) => {
    seen.add(tx)
    if (seen.size === 2 && !hasFailed) {
      hasFailed = true
      throw new TidemarkError('it ends here', { kind: 'transient' })
    }
    return grant.call(search, tx, ...rest)
  }
  return () => hasFailed
}

for (const database of DATABASES) {
  test(`nor is one on which they come to be found through the domain, or not so any more, on ${database}`, async () => {
    world = await startDriveWorld({ database })
    const drive = world.world
    const files = Array.from({ length: DOCUMENTS }, (_, n) =>
      drive.create({ name: `Notice ${n}.txt`, by: ANN, content: `notice ${n}` }),
    )
    const toAll = { type: 'domain', role: 'reader', domain: 'example.com', isDiscoverable: true } as const
    for (const { id } of files) drive.share(id, { type: 'user', role: 'reader', email: BOB })
    await world.sync()
    /** How many of them Bob finds by himself, and how many as one of the domain. */
    const byFeed = async (): Promise<number[]> => {
      const rows = await world.ledger.driver.read((tx) =>
        tx.all<{ drive: string }>('SELECT drive FROM drive_access WHERE account = ?', [BOB]),
      )
      assert.deepEqual(await world.seen(BOB), world.truth(BOB))
      return ['', DOMAIN].map((feed) => rows.filter((row) => row.drive === feed).length)
    }
    assert.deepEqual(await byFeed(), [DOCUMENTS, 0])
    const most = longest()
    for (const { id } of files) {
      drive.share(id, toAll)
      drive.unshare(id, BOB)
    }
    const hasFailed = failSecond()
    await world.sync(BOB)
    assert.ok(hasFailed(), 'the first attempt ends after a part')
    assert.deepEqual(await byFeed(), [0, DOCUMENTS])
    const gone = most()
    assert.ok(gone > 0 && gone <= PART_FILES_MAX * 3, `${gone} when only the domain is left`)
    for (const { id } of files) drive.share(id, { type: 'user', role: 'reader', email: BOB })
    await world.sync(BOB)
    assert.deepEqual(await byFeed(), [DOCUMENTS, 0])
    const back = most()
    assert.ok(back > 0 && back <= PART_FILES_MAX * 3, `${back} when they are shared again`)
  })

  test(`a page on which many documents change hands is no long transaction, on ${database}`, async () => {
    world = await startDriveWorld({ database })
    const drive = world.world
    const folder = drive.createFolder({ name: 'Letters', by: ANN })
    const files = Array.from({ length: DOCUMENTS }, (_, n) =>
      drive.create({ name: `Letter ${n}.txt`, by: ANN, content: `letter ${n}`, parent: folder.id }),
    )
    await world.sync()
    const most = longest()
    // Of each: the grant, and its place, of which Bob must not be told the folder.
    for (const { id } of files) drive.share(id, { type: 'user', role: 'reader', email: BOB })
    await world.sync()
    assert.deepEqual(await world.seen(BOB), world.truth(BOB))
    assert.equal((await world.seen(BOB)).length, DOCUMENTS)
    const given = most()
    assert.ok(given > 0 && given <= PART_FILES_MAX * 2, `${given} when they are given`)
    await world.relist(BOB)
    for (const { id } of files) drive.unshare(id, BOB)
    await world.sync()
    assert.deepEqual(await world.seen(BOB), [])
    const taken = most()
    assert.ok(taken > 0 && taken <= PART_FILES_MAX * 2, `${taken} when they are taken away`)
    for (const { id } of files) drive.trash(id)
    await world.sync()
    assert.deepEqual(await world.seen(ANN), [])
    assert.ok(most() <= PART_FILES_MAX * 2)
  })
}
