/** Two people and one folder: what the owner shares, killed, withdrawn in the middle, and shared for reading. */
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { ANN } from '../../src/apps/files/cli/files.suite.ts'
import type { SimDrive } from '../../src/sim/onedrive/sim-drive.ts'
import { CliWorld } from './cli-world.ts'

const BEN = 'ben@example.com'
const FILES = 60

/** Paths and contents of a folder, without what Tidemark keeps there. */
function contentOf(root: string): Record<string, string> {
  const found: Record<string, string> = {}
  for (const entry of readdirSync(root, { recursive: true }).map(String).sort()) {
    if (entry.startsWith('.tidemark') || statSync(join(root, entry)).isDirectory()) continue
    found[entry] = readFileSync(join(root, entry), 'utf8')
  }
  return found
}

for (const type of ['personal', 'business'] as const) {
  describe(`two people and a shared folder of a ${type} drive`, () => {
    let world: CliWorld
    let ben: SimDrive
    before(async () => {
      world = await CliWorld.start({
        drives: [{ account: ANN }, { account: BEN, type }],
        access: 'shared',
        env: { TIDEMARK_FILES_CHUNK_SIZE: '320KiB' },
      })
      ben = world.sim.onedrive.drive(BEN)
      for (let number = 0; number < FILES; number++) {
        world.write(`Team/${number % 7}/${number}.txt`, `number ${number}`, bens())
      }
      world.write('Private/diary.txt', 'of Ben', bens())
      await settled('--account', BEN, '--name', 'bens', bens())
      ben.share('Team', ANN)
    })
    after(() => world.close())
    const bens = (): string => world.root('bens')
    const anns = (): string => world.root('team')

    async function settled(...args: string[]): Promise<void> {
      const { code, stdout, stderr } = await world.run('files', 'sync', ...args)
      assert.equal(code, 0, stdout + stderr)
    }

    /** Both ways, until neither has news for the other. */
    async function bothInStep(): Promise<void> {
      for (let round = 0; round < 2; round++) {
        await settled(bens())
        await settled(anns())
      }
      assert.deepEqual(contentOf(anns()), contentOf(join(bens(), 'Team')))
    }

    test('killed again and again with kill -9, the guest ends with what the owner has, and the owner with what both made', async () => {
      const args = ['files', 'sync', anns(), '--account', ANN, '--drive', `Team (ben)`]
      let kills = 0
      for (const requests of [3, 12, 30, 45]) {
        const isNew = !existsSync(join(anns(), '.tidemark/root.json'))
        if (!(await world.killAfter(requests, ...(isNew ? args : args.slice(0, 3))))) kills += 1
      }
      assert.ok(kills >= 2, `only ${kills} died at work`)
      const isNew = !existsSync(join(anns(), '.tidemark/root.json'))
      await settled(...(isNew ? args.slice(2) : [anns()]))
      assert.deepEqual(contentOf(anns()), contentOf(join(bens(), 'Team')))

      world.write('0/0.txt', 'edited by Ann', anns())
      world.write('new/large.bin', 'x'.repeat(5_000_000), anns())
      rmSync(join(anns(), '1/1.txt'))
      world.write('Team/2/2.txt', 'edited by Ben', bens())
      rmSync(join(bens(), 'Team/3/3.txt'))
      for (const requests of [6, 14]) await world.killAfter(requests, 'files', 'sync', anns())
      await bothInStep()
      assert.equal(world.read('Team/0/0.txt', bens()), 'edited by Ann')
      assert.equal(world.read('2/2.txt', anns()), 'edited by Ben')
      for (const gone of ['1/1.txt', '3/3.txt']) assert.ok(!world.has(gone, anns()), gone)
      assert.equal(readFileSync(join(bens(), 'Team/new/large.bin'), 'utf8').length, 5_000_000)
      assert.equal(world.read('Private/diary.txt', bens()), 'of Ben')
      assert.deepEqual(world.thereNow(), {}, 'nothing went into the guest’s own drive')
    })

    test('withdrawn in the middle of a sync, nothing that the guest has is deleted or lost', async () => {
      const before = contentOf(anns())
      for (let number = 0; number < FILES; number++) {
        world.write(`mine/${number}.txt`, `of Ann ${number}`, anns())
        ben.device.write(`Team/his/${number}.txt`, `of Ben ${number}`)
      }
      const from = world.sim.log.served
      const running = world.begin('files', 'sync', anns())
      await world.until(() => world.sim.log.served > from + 40, running)
      ben.unshare('Team', ANN)
      const { code, stderr } = await running.ended
      assert.equal(code, 1, stderr)
      const now = contentOf(anns())
      for (const [path, text] of Object.entries(before)) assert.equal(now[path], text, path)
      for (let number = 0; number < FILES; number++)
        assert.equal(now[`mine/${number}.txt`], `of Ann ${number}`)
      const status = await world.run('files', 'status', 'team')
      assert.match(status.stdout, /does not share it with you any more/)
      assert.match(status.stdout, /All files here stay as they are/)

      ben.share('Team', ANN)
      await settled(anns())
      await bothInStep()
      assert.equal(world.read('Team/mine/7.txt', bens()), 'of Ann 7')
      assert.equal(world.read('his/7.txt', anns()), 'of Ben 7')
    })

    test('from now on for reading: what the guest edits stays with her, is told, and goes on once she may again', async () => {
      ben.share('Team', ANN, 'read')
      world.write('2/2.txt', 'edited while reading', anns())
      ben.device.write('Team/4/4.txt', 'news of Ben')
      const { code, stderr } = await world.run('files', 'sync', anns())
      assert.equal(code, 3, stderr)
      assert.match(stderr, /it is shared with you for reading only, and stays here as it is/)
      assert.equal(world.read('4/4.txt', anns()), 'news of Ben')
      assert.equal(world.read('2/2.txt', anns()), 'edited while reading')
      assert.equal(ben.device.read('Team/2/2.txt')?.toString(), 'edited by Ben')
      ben.share('Team', ANN)
      await bothInStep()
      assert.equal(world.read('Team/2/2.txt', bens()), 'edited while reading')
    })
  })
}
