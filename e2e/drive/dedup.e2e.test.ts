/** Documents that many people share are downloaded, read and embedded once each: counted by those who did it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startDriveWorld } from '../../src/apps/drive/drive-world.suite.ts'
import { begin } from './processes.ts'

const USERS = Array.from({ length: 10 }, (_, n) => `user${n}@example.com`)
const DOCUMENTS = 1_000

test('a thousand documents that ten people see are fetched, read and embedded a thousand times, and not ten thousand', async () => {
  const world = await startDriveWorld({
    users: USERS,
    drive: { documents: DOCUMENTS, sharing: 'all', kinds: 'text' },
    sim: { embeddings: {} },
  })
  try {
    await world.stop()
    const settings = {
      TIDEMARK_SEARCH_EMBEDDING: 'openai',
      TIDEMARK_SEARCH_URL: world.sim.embeddings.baseUrl,
      TIDEMARK_SEARCH_MODEL: 'sim-embed-small',
      TIDEMARK_SEARCH_DIMS: '256',
    }
    for (const args of [
      ['drive', 'sync'],
      ['search', '--embed'],
    ]) {
      const { code, stderr } = await begin(world, args, settings).ended
      assert.equal(code, 0, stderr)
    }
    await world.open()
    const { downloads, exports } = world.drive.counts.list()
    const fetched = [...Object.values(downloads), ...Object.values(exports)]
    assert.equal(fetched.length, DOCUMENTS)
    assert.deepEqual(new Set(fetched), new Set([1]))
    const chunks = await world.ledger.driver.read((tx) =>
      tx.get<{ n: number }>('SELECT count(*) AS n FROM search_chunks'),
    )
    const { texts, repeated } = world.sim.embeddings.counts
    assert.deepEqual({ texts, repeated }, { texts: Number(chunks?.n), repeated: 0 })
    assert.ok(texts >= DOCUMENTS)
    for (const user of USERS) {
      const { listed, indexed } = await world.status(user)
      assert.deepEqual([listed, indexed], [DOCUMENTS, DOCUMENTS])
    }
    assert.deepEqual(await world.seen(USERS[9]!), world.truth(USERS[9]!))
  } finally {
    await world.close()
  }
})
