/**
 * The crash proof on libSQL in its short form; `npm run crash -- --db libsql` is the long one. A process that is killed
 * inside a transaction holds the server's lock until that ends it, after five seconds: so there are few kills here.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { startLibsql } from '../../scripts/libsql.ts'
import { COMMIT_POINTS } from '../../src/ledger/cycle.ts'
import { onLibsql } from '../../src/ledger/home.suite.ts'
import { Life, surviveKills, undisturbed } from './life.ts'
import { SMALL } from './source.ts'

onLibsql(() => {
  describe('on libSQL', () => {
    test('kill -9 at every commit point, and a server that crashes under two engines, cost nothing but time', async () => {
      const server = await startLibsql()
      const disturbed = await startLibsql()
      const shaken = await startLibsql()
      try {
        const reference = await undisturbed(server.url, SMALL)
        assert.deepEqual(Object.keys(reference.hits).sort(), [...COMMIT_POINTS].sort())
        const kills = COMMIT_POINTS.map((point) => ({ point, hit: 2 }))
        const landed = await surviveKills({ url: disturbed.url, size: SMALL, kills, reference })
        assert.equal(landed.length, COMMIT_POINTS.length)
        const life = new Life(shaken.url, { ...SMALL, paceMs: 5 })
        const children = [life.start(), life.start()]
        try {
          await Promise.all(children.map((child) => child.said('ready')))
          await children[0]!.said('tick')
          await shaken.restart()
          await life.look('after the server came back')
          for (const child of children) await life.finished(child)
          await life.judge('after a crash of the server', reference)
        } finally {
          for (const child of children) await child.destroy()
        }
      } finally {
        for (const one of [server, disturbed, shaken]) await one.stop()
      }
    })
  })
})
