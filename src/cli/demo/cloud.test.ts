import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { apps } from '../../apps/registry.ts'
import { startDemoCloud } from './cloud.ts'

const home = mkdtempSync(join(tmpdir(), 'tidemark-demo-cloud-'))
after(() => rmSync(home, { recursive: true, force: true }))

test('what happened at one service is there after every start: no app writes into the journal of another', async () => {
  const address = 'you@example.com'
  const place = { home, seed: 7, messages: 10, toMs: Date.UTC(2026, 0, 1), address, isFast: true }
  const demos = await Promise.all(apps.map((app) => app.demo()))
  for (const start of [1, 2, 3]) {
    const { sim } = await startDemoCloud(demos, place)
    try {
      const { device } = sim.onedrive.drive(address)
      if (start === 1) device.write('mine.txt', 'kept')
      assert.equal(device.read('mine.txt')?.toString(), 'kept', `at start ${start}`)
      const notes = [...sim.drive.world.items.values()].filter(({ name }) => name.startsWith('Note '))
      assert.deepEqual(notes, [], 'nothing happened in the other Drives')
    } finally {
      await sim.close()
    }
  }
})
