import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import type { Tx } from '../../ledger/contract.ts'
import { ANN, BOB, DATABASES, type DriveTestWorld, startDriveWorld } from './drive-world.suite.ts'
import { PART_FILES_MAX } from './plan.ts'

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

for (const database of DATABASES) {
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
