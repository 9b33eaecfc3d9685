import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { actWorld } from './act-world.suite.ts'

/** By one call on a Personal drive, through a session on a Business one. */
for (const type of ['personal', 'business'] as const) {
  for (const before of [undefined, 'the first']) {
    const what = before === undefined ? 'a new file' : 'an edit'
    test(`who saves again just when OneDrive has taken ${what} has no conflict with themselves, on a ${type} drive`, async () => {
      const w = await actWorld({ type })
      try {
        if (before !== undefined) {
          w.write('a.txt', before)
          await w.sync()
        }
        w.write('a.txt', 'saved once')
        await w.hear()
        await w.look()
        const [first] = await w.plan()
        if (first!.verb === 'check') await w.run(first!)
        const action = first!.verb === 'check' ? await w.only('upload') : first!
        const row = await w.store.localAt('docs', ['a.txt'])
        let stopped = 0
        let isOver = false
        const onceTaken = (): void => {
          if (isOver) return
          const there = w.there.device.has('/a.txt') ? w.there.device.read('/a.txt') : undefined
          if (there?.toString() !== 'saved once') return void setImmediate(onceTaken)
          // Its answer is still on the way.
          w.write('a.txt', 'saved once more')
          stopped = w.transfers.changed('docs', [row!.id])
        }
        setImmediate(onceTaken)
        await w.run(action)
        isOver = true
        assert.equal(stopped, 1)
        await w.sync()
        assert.deepEqual(readdirSync(w.pair.root).sort(), ['.tidemark', 'a.txt'])
        assert.deepEqual(await w.conflicts(), [])
        assert.equal(w.read('a.txt'), 'saved once more')
        assert.equal(w.there.device.read('/a.txt')?.toString(), 'saved once more')
        assert.deepEqual(await w.differences(), [])
      } finally {
        await w.close()
      }
    })
  }
}
