import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startDriveWorld } from './drive-world.suite.ts'

const USERS = Array.from({ length: 10 }, (_, n) => `user${n}@example.com`)
const DOCUMENTS = 60

test('documents that ten people share are fetched once each, and read once each', async () => {
  const world = await startDriveWorld({
    users: USERS,
    drive: { documents: DOCUMENTS, sharing: 'all', kinds: 'text' },
  })
  try {
    await world.sync()
    const { downloads, exports } = world.drive.counts.list()
    const fetched = [...Object.values(downloads), ...Object.values(exports)]
    assert.equal(fetched.length, DOCUMENTS)
    assert.deepEqual(new Set(fetched), new Set([1]))
    for (const user of USERS) assert.deepEqual(await world.seen(user), world.truth(user))
    await world.relist()
    const again = world.drive.counts.list()
    assert.deepEqual(again, { downloads, exports })
  } finally {
    await world.close()
  }
})
