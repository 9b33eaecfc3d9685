/** Many files with other contents at once, or with older ones: ransomware, and backups that are copied over a folder. */
import assert from 'node:assert/strict'
import { chmodSync, cpSync, renameSync, utimesSync } from 'node:fs'
import { describe, test } from 'node:test'
import { judgeOverwrite, type OverwriteGuard } from './guard.ts'
import { plan } from './plan.ts'
import { assertInStep, type FileWorld, PAIR, withFileWorld } from './sync.suite.ts'

const UNANSWERED = { isUnanswered: true }
const FILES = Array.from({ length: 30 }, (_, n) => `d${n % 3}/f${n}.txt`)
const WEEK_S = 7 * 86_400

/** As somebody had them a week ago. */
async function begin(world: FileWorld, names = FILES): Promise<void> {
  for (const name of names) saveOld(world, name, `first ${name}`)
  await world.sync()
}

function saveOld(world: FileWorld, name: string, content: string): void {
  world.write(name, content)
  const then = Date.now() / 1000 - WEEK_S
  utimesSync(world.path(name), then, then)
}

async function held(world: FileWorld): Promise<unknown> {
  return (await world.files.store.heldAhead(PAIR)) ?? null
}

function contents(tree: Map<string, string>, beginning: string): number {
  return [...tree.values()].filter((content) => content.startsWith(beginning)).length
}

const guard: OverwriteGuard = {
  ahead: { local: 0, remote: 15 },
  older: 0,
  unread: 0,
  unreadOlder: 0,
  reading: undefined,
  chosen: new Set(),
  baseFiles: 30,
  recent: { files: 0, older: 0 },
  forced: 0,
}
const edit = { isOlder: false }
const older = { isOlder: true }

describe('contents that replace others', () => {
  test('wait for a yes from twenty up where they are most of the folder, and above a thousand', () => {
    assert.equal(judgeOverwrite(guard, edit), 'free')
    assert.equal(judgeOverwrite({ ...guard, ahead: { local: 4, remote: 16 } }, edit), 'held')
    assert.equal(judgeOverwrite({ ...guard, ahead: { local: 0, remote: 19 }, baseFiles: 19 }, edit), 'free')
    assert.equal(judgeOverwrite({ ...guard, recent: { files: 10, older: 0 } }, edit), 'held')
    const many = { ...guard, baseFiles: 100_000, ahead: { local: 0, remote: 1_000 } }
    assert.equal(judgeOverwrite(many, edit), 'free')
    assert.equal(judgeOverwrite({ ...many, ahead: { local: 1, remote: 1_000 } }, edit), 'held')
    assert.equal(judgeOverwrite({ ...many, ahead: { local: 1, remote: 1_000 }, forced: 1_001 }, edit), 'free')
  })

  test('wait for a yes from three up where they are older than what they replace', () => {
    assert.equal(judgeOverwrite({ ...guard, older: 2 }, older), 'free')
    assert.equal(judgeOverwrite({ ...guard, older: 3 }, older), 'held')
    assert.equal(judgeOverwrite({ ...guard, older: 3 }, edit), 'free')
    assert.equal(judgeOverwrite({ ...guard, older: 1, recent: { files: 2, older: 2 } }, older), 'held')
  })

  test('wait until it is known how many they are', () => {
    assert.equal(judgeOverwrite({ ...guard, unread: 10 }, edit), 'unclear')
    assert.equal(judgeOverwrite({ ...guard, older: 1, unreadOlder: 2 }, older), 'unclear')
    assert.equal(judgeOverwrite({ ...guard, unread: 2 }, edit), 'free')
  })

  for (const side of ['here', 'in OneDrive'] as const) {
    test(`of most files of a folder, ${side}, wait for a yes, and then are done`, () =>
      withFileWorld(UNANSWERED, async (world) => {
        await begin(world)
        for (const name of FILES) {
          if (side === 'here') world.write(name, `scrambled ${name}`)
          else world.there.device.write(name, `scrambled ${name}`)
        }
        world.write('new.txt', 'goes on')
        await world.sync()
        await world.sync()
        const other = side === 'here' ? world.thereTree() : world.here()
        assert.equal(contents(other, 'first'), 30)
        assert.equal(other.get('new.txt'), 'goes on')
        const replaced = side === 'here' ? { local: 0, remote: 30 } : { local: 30, remote: 0 }
        assert.deepEqual(await held(world), { ...replaced, replaced })
        await world.sayYes()
        await world.settled()
        assertInStep(world)
        assert.equal(contents(world.thereTree(), 'scrambled'), 30)
        // The yes was for those.
        assert.equal((await world.files.store.folderPair(PAIR)).forcedOverwrites, 0)
      }))
  }

  test('wait for a yes although they come little by little', () =>
    withFileWorld(UNANSWERED, async (world) => {
      await begin(world)
      for (const name of FILES) {
        world.write(name, `scrambled ${name}`)
        if (FILES.indexOf(name) % 5 === 4) await world.sync()
      }
      assert.equal(contents(world.thereTree(), 'scrambled'), 15)
    }))

  test('of the same few files, saved again and again, are nobody’s mistake', () =>
    withFileWorld(UNANSWERED, async (world) => {
      await begin(world, FILES.slice(0, 15))
      for (const version of ['second', 'third', 'fourth']) {
        for (const name of FILES.slice(0, 15)) world.write(name, `${version} ${name}`)
        await world.sync()
      }
      assertInStep(world)
      assert.equal(contents(world.thereTree(), 'fourth'), 15)
    }))

  test('wait also for files that no plan has come to yet', () =>
    withFileWorld(UNANSWERED, async (world) => {
      await begin(world)
      for (const name of FILES) world.write(name, `scrambled ${name}`)
      await world.engine.pause('kind', 'files.plan')
      await world.syncStopped(async () => (await world.files.store.openCounts(PAIR)).unplanned >= 30)
      const { store } = world.files
      // One of them was read, and is planned before the others.
      const [known] = (await store.unplanned(PAIR, 1)).nodes
      await store.write((tx) =>
        tx.run(`UPDATE file_local SET hash = 'read' WHERE id = ?`, [known!.local!.id]),
      )
      const view = await store.unplanned(PAIR, 1)
      const nodes = view.nodes.map((node) => ({ ...node, path: view.pathOf(node.node) }))
      const nowMs = Date.now()
      const overwrites = await store.overwriteGuard(await store.folderPair(PAIR), { mode: 'two-way', nowMs })
      const deletes = { ...(await store.deletesAhead(PAIR)), forced: 0 }
      const made = plan(nodes, view.around, { mode: 'two-way', guard: deletes, overwrites })
      assert.deepEqual(made.actions, [])
      assert.deepEqual(
        made.waiting.map(({ node, because }) => [node, because]),
        [[known!.node, 'others are read first']],
      )
    }))

  test('among many files that were only touched are not held', () =>
    withFileWorld(UNANSWERED, async (world) => {
      await begin(world)
      for (const name of FILES) chmodSync(world.path(name), 0o700)
      for (const name of FILES.slice(0, 4)) world.write(name, `edited ${name}`)
      await world.sync()
      assertInStep(world)
      assert.equal(await held(world), null)
      assert.equal(contents(world.thereTree(), 'edited'), 4)
    }))
})

describe('a backup of the folder', () => {
  test('that is copied over it waits for a yes, and an edit of the same day does not', () =>
    withFileWorld(UNANSWERED, async (world) => {
      await begin(world)
      for (const name of FILES.slice(0, 5)) world.write(name, `newer ${name}`)
      await world.sync()
      for (const name of FILES.slice(0, 5)) saveOld(world, name, `first ${name}`)
      world.write(FILES[9]!, 'edited today')
      await world.sync()
      assert.equal(contents(world.thereTree(), 'newer'), 5)
      assert.equal(world.there.device.read(FILES[9]!)?.toString(), 'edited today')
      const replaced = { local: 0, remote: 5 }
      assert.deepEqual(await held(world), { ...replaced, replaced })
      await world.sayYes()
      await world.settled()
      assertInStep(world)
      assert.equal(contents(world.thereTree(), 'newer'), 0)
    }))

  test('of which one file is taken is somebody’s wish', () =>
    withFileWorld(UNANSWERED, async (world) => {
      await begin(world)
      world.write(FILES[0]!, 'newer')
      await world.sync()
      saveOld(world, FILES[0]!, 'older')
      await world.sync()
      assertInStep(world)
      assert.equal(world.there.device.read(FILES[0]!)?.toString(), 'older')
    }))

  test('waits for a yes also where the files once had a conflict that somebody decided', () =>
    withFileWorld({ ...UNANSWERED, choices: { conflicts: 'keep-local' } }, async (world) => {
      await begin(world)
      const few = FILES.slice(0, 4)
      for (const name of few) {
        world.write(name, `chosen ${name}`)
        world.there.device.write(name, `not chosen ${name}`)
      }
      await world.sync()
      assertInStep(world)
      assert.equal(contents(world.thereTree(), 'chosen'), 4)
      for (const name of few) saveOld(world, name, `first ${name}`)
      await world.sync()
      assert.equal(contents(world.thereTree(), 'chosen'), 4)
      const replaced = { local: 0, remote: 4 }
      assert.deepEqual(await held(world), { ...replaced, replaced })
    }))

  test('does not hold an older version that somebody has chosen in a conflict', () =>
    withFileWorld({ ...UNANSWERED, choices: { conflicts: 'keep-local' } }, async (world) => {
      await begin(world)
      const [chosen, ...backup] = FILES.slice(0, 5) as [string, ...string[]]
      for (const name of backup) world.write(name, `newer ${name}`)
      await world.sync()
      for (const name of backup) saveOld(world, name, `first ${name}`)
      await world.sync()
      saveOld(world, chosen, 'chosen')
      world.there.device.write(chosen, 'newer, and not chosen')
      await world.sync()
      assert.equal(world.there.device.read(chosen)?.toString(), 'chosen')
      assert.equal(contents(world.thereTree(), 'newer'), 4)
      const replaced = { local: 0, remote: 4 }
      assert.deepEqual(await held(world), { ...replaced, replaced })
    }))

  test('that takes its place holds no edit, however many files of it differ', () =>
    withFileWorld(UNANSWERED, async (world) => {
      await begin(world)
      cpSync(world.root, `${world.root}-copy`, { recursive: true, preserveTimestamps: true })
      // So many wait for a yes.
      for (const name of FILES.slice(0, 25)) world.write(name, `newer ${name}`)
      await world.sync()
      await world.sayYes()
      await world.settled()
      renameSync(world.root, `${world.root}-broken`)
      renameSync(`${world.root}-copy`, world.root)
      world.there.device.write(FILES[29]!, 'edited in OneDrive')
      await world.engine.pause('kind', 'files.check')
      await world.syncStopped(async () => (await world.files.store.openCounts(PAIR)).inWork > 0)
      const row = await world.files.store.folderPair(PAIR)
      const guarded = await world.files.store.overwriteGuard(row, { mode: 'two-way', nowMs: Date.now() })
      assert.deepEqual(
        [guarded.ahead.remote, guarded.older, guarded.unread, guarded.unreadOlder],
        [0, 0, 0, 0],
      )
      await world.engine.resume('kind', 'files.check')
      await world.settled()
      await world.sync()
      assertInStep(world)
      assert.equal(await held(world), null)
    }))

  test('that takes its place replaces nothing in OneDrive: of what differs both are kept', () =>
    withFileWorld(UNANSWERED, async (world) => {
      await begin(world)
      cpSync(world.root, `${world.root}-copy`, { recursive: true, preserveTimestamps: true })
      for (const name of FILES.slice(0, 4)) world.write(name, `newer ${name}`)
      await world.sync()
      renameSync(world.root, `${world.root}-broken`)
      renameSync(`${world.root}-copy`, world.root)
      await world.sync()
      assertInStep(world)
      for (const name of FILES.slice(0, 4)) assert.equal(world.read(name), `newer ${name}`)
      const copies = [...world.here()].filter(([path]) => /\.conflict-/.test(path))
      assert.deepEqual(
        copies.map(([, content]) => content).sort(),
        FILES.slice(0, 4)
          .map((name) => `first ${name}`)
          .sort(),
      )
      // From then on an edit is one.
      world.write(FILES[0]!, 'edited in the copy')
      await world.sync()
      assert.equal(world.there.device.read(FILES[0]!)?.toString(), 'edited in the copy')
      assertInStep(world)
    }))
})
