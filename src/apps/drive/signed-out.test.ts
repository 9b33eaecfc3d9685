import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { sleep, systemClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { streamOf } from './account.ts'
import { ANN, BOB, DATABASES, type DriveTestWorld, startDriveWorld } from './drive-world.suite.ts'

let world: DriveTestWorld
afterEach(() => world.close())

/** Downloads of the account fail as with a token that was revoked; the result signs it in again. */
async function signOut(account: string): Promise<() => void> {
  const { client } = await world.kinds.accounts.get(account)
  const download = client.download.bind(client)
  client.download = async () => {
    throw new TidemarkError('sign in again', { kind: 'auth', code: 'token-refused' })
  }
  return () => {
    client.download = download
  }
}

async function pausedStreams(): Promise<string[]> {
  return (await world.ledger.pauses()).map(({ target }) => target)
}

for (const database of DATABASES)
  describe(`on ${database}`, () => {
    test('a document is kept while its only reader is signed out, and read when it is signed in again', async () => {
      world = await startDriveWorld({ connected: [ANN], database })
      const file = world.world.create({ name: 'Plan.txt', by: ANN, content: 'apples in autumn' })
      await world.sync()
      const signIn = await signOut(ANN)
      world.world.edit(file.id, 'apples in winter')
      const synced = world.sync()
      for (let look = 0; look < 500 && (await pausedStreams()).length === 0; look++)
        await sleep(systemClock, 10)
      assert.deepEqual(await pausedStreams(), [streamOf(ANN)])
      assert.deepEqual(await world.found(ANN, 'autumn'), ['Plan.txt'])
      assert.equal((await world.tables.file(file.id))?.state, 'waiting')
      signIn()
      await world.ledger.wakeStream(streamOf(ANN))
      await world.engine.resume('stream', streamOf(ANN))
      await synced
      assert.deepEqual(await world.found(ANN, 'winter'), ['Plan.txt'])
      assert.deepEqual((await world.status(ANN)).skippedBy, [])
    })

    test('somebody else who is signed out pauses no stream, empties no document, and hides no refusal', async () => {
      world = await startDriveWorld({ database })
      const file = world.world.create({ name: 'Plan.txt', by: ANN, content: 'apples in autumn' })
      world.world.share(file.id, { type: 'user', role: 'reader', email: BOB })
      file.copyNeedsWriter = true
      await world.sync()
      assert.deepEqual(await world.found(BOB, 'autumn'), ['Plan.txt'])
      const signIn = await signOut(ANN)
      world.world.edit(file.id, 'apples in winter')
      await world.sync(BOB)
      assert.deepEqual(await pausedStreams(), [])
      assert.deepEqual(await world.found(BOB, 'autumn'), ['Plan.txt'])
      assert.deepEqual((await world.status(BOB)).skippedBy, [{ code: 'cannotDownloadFile', count: 1 }])
      signIn()
      await world.relist()
      assert.deepEqual(await world.found(BOB, 'winter'), ['Plan.txt'])
      assert.deepEqual((await world.status(BOB)).skippedBy, [])
    })
  })
