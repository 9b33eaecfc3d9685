/** What takes the name of something whose deletion waits for a yes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { streamOf } from './folder-pair.ts'
import { assertInStep, type FileWorld, PAIR, withFileWorld } from './sync.suite.ts'

const HELD_NAME = 'the deletion of what has its name on the other side waits for a yes'
const OTHER_LEFT = 'another that must be done first is left alone'

/** Nobody says yes by himself. */
const UNANSWERED = { isUnanswered: true }

async function reasonsOf(world: FileWorld): Promise<Map<string, string>> {
  const reported = await world.files.store.reported(PAIR, { limit: 100 })
  return new Map(reported.map(({ path, because }) => [path, because]))
}

/** The only file is deleted, which waits for a yes, and something new takes its name. */
async function takeHeldName(world: FileWorld, take: () => void): Promise<void> {
  world.there.device.write('A', 'the only file')
  await world.sync()
  world.remove('A')
  await world.sync()
  assert.ok(world.there.device.has('A'), 'its deletion waits for a yes')
  take()
  await world.sync()
}

for (const name of ['a', 'A']) {
  test(`S5: a new folder ${name} that takes the name of A, whose deletion waits for a yes, keeps its name`, () =>
    withFileWorld(UNANSWERED, async (world) => {
      await takeHeldName(world, () => world.write(`${name}/x`, 'new'))
      const left = await reasonsOf(world)
      assert.deepEqual([left.get(name), left.get(`${name}/x`)], [HELD_NAME, OTHER_LEFT])
      assert.deepEqual([...world.here().keys()], [`${name}/`, `${name}/x`])
      assert.equal(world.there.device.read('A')?.toString(), 'the only file')
      await world.sayYes()
      await world.settled()
      assertInStep(world)
      assert.deepEqual([...world.here().keys()], [`${name}/`, `${name}/x`])
      assert.deepEqual(await world.files.store.openNodes(PAIR, { limit: 10 }), [])
    }))
}

test('S5: what waits for the name of a held deletion goes on when the deletion is taken back', () =>
  withFileWorld(UNANSWERED, async (world) => {
    await takeHeldName(world, () => world.write('a/x', 'new'))
    world.write('A', 'the only file')
    await world.sync()
    assert.match((await reasonsOf(world)).get('a') ?? '', /takes A and a for the same name/)
    world.move('a', 'b')
    await world.sync()
    assertInStep(world)
    assert.deepEqual([...world.here().keys()].sort(), ['A', 'b/', 'b/x'])
  }))

test('S5: what waits for the name of a held deletion is a conflict once OneDrive has edited that', () =>
  withFileWorld(UNANSWERED, async (world) => {
    await takeHeldName(world, () => world.write('a/x', 'new'))
    world.there.device.edit('A', 'edited there')
    await world.engine.enqueue(world.files.kinds.delta, { drive: PAIR }, { stream: streamOf(PAIR) })
    await world.settled()
    assertInStep(world)
    assert.equal(world.read('A'), 'edited there')
    assert.deepEqual(await world.files.store.openNodes(PAIR, { limit: 10 }), [])
  }))

test('S5: a file that takes the name of a whole folder whose deletion waits for a yes keeps its name', () =>
  withFileWorld(UNANSWERED, async (world) => {
    for (let n = 0; n < 5; n++) world.write(`A/${n}.txt`, `number ${n}`)
    await world.sync()
    world.remove('A')
    await world.sync()
    world.write('a', 'new')
    await world.sync()
    assert.equal((await reasonsOf(world)).get('a'), HELD_NAME)
    await world.sayYes()
    await world.settled()
    assertInStep(world)
    assert.deepEqual([...world.here().keys()], ['a'])
  }))

test('S5: what OneDrive has made under the name of something whose deletion here waits for a yes waits, too', () =>
  withFileWorld({ ...UNANSWERED, files: { A: 'the only file' } }, async (world) => {
    world.there.device.delete('A')
    await world.sync()
    world.there.device.write('a/x', 'new')
    await world.sync()
    assert.equal((await reasonsOf(world)).get('a'), HELD_NAME)
    assert.deepEqual([...world.here().keys()], ['A'])
    await world.sayYes()
    await world.settled()
    assertInStep(world)
    assert.deepEqual([...world.here().keys()], ['a/', 'a/x'])
  }))
