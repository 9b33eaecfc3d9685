/** Personal drives: what OneDrive says of an upload is not what was sent. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type ActWorld, actWorlds, MIB, noise } from './act-world.suite.ts'
import { DOUBTED } from './upload-doubt.ts'

const worlds = actWorlds()
const world = (rewritesUploads = false): Promise<ActWorld> => worlds({ quirks: { rewritesUploads } })

const SMALL = Buffer.from('small, and whole')
const LARGE = noise(5 * MIB, 3)

function isWhole(w: ActWorld, content: Buffer): boolean {
  return w.there.device.read('/a.docx')!.equals(content)
}

/** New, or as a version of something small. */
async function toSend(w: ActWorld, content: Buffer, isVersion: boolean): Promise<void> {
  if (isVersion) {
    w.write('a.docx', 'before')
    await w.sync()
  }
  w.write('a.docx', content)
}

for (const [name, content] of Object.entries({ small: SMALL, large: LARGE })) {
  for (const isVersion of [false, true]) {
    describe(`a ${name} ${isVersion ? 'version' : 'file'} that arrives damaged`, () => {
      test('is sent again, and agreed on as soon as it is whole', async () => {
        const w = await world()
        await toSend(w, content, isVersion)
        w.there.damagedUploads = 1
        await w.sync()
        assert.ok(isWhole(w, content))
        assert.deepEqual(await w.sync(), [])
        assert.deepEqual([(await w.conflicts()).length, w.trash().length], [0, 0])
        assert.deepEqual(await w.differences(), [])
      })

      test('each time is not agreed on: it is left with its reason, and goes up with the next look', async () => {
        const w = await world()
        await toSend(w, content, isVersion)
        w.there.damagedUploads = 2
        await w.sync()
        assert.ok(!isWhole(w, content))
        const open = await w.store.openNodes('docs', { limit: 10 })
        assert.deepEqual(
          open.map(({ because }) => because),
          [DOUBTED],
        )
        assert.ok(w.bytes('a.docx').equals(content))
        assert.deepEqual(await w.plan(), [], 'it is not sent for ever')
        assert.deepEqual(await w.sync(), ['upload'])
        assert.ok(isWhole(w, content))
        assert.deepEqual([(await w.conflicts()).length, w.trash().length], [0, 0])
        assert.deepEqual(await w.differences(), [])
      })
    })
  }
}

describe('a damaged upload', () => {
  test('that cannot be sent again is not agreed on', async () => {
    const w = await world()
    w.write('a.docx', SMALL)
    const action = await w.only('upload')
    w.there.damagedUploads = 1
    w.sim.faults.set({ rules: [{ do: 'error', status: 500, methods: ['graph.content.put'], skip: 1 }] })
    await w.run(action)
    const [open] = await w.store.openNodes('docs', { limit: 10 })
    assert.equal(open?.because, DOUBTED)
    w.sim.faults.clear()
    await w.sync()
    assert.ok(isWhole(w, SMALL))
    assert.deepEqual([await w.differences(), await w.conflicts()], [[], []])
  })

  test('that somebody has edited in OneDrive before it was sent again is a conflict: both are kept', async () => {
    const w = await world()
    w.write('a.docx', SMALL)
    w.there.damagedUploads = 2
    await w.sync()
    w.there.device.edit('/a.docx', 'edited there')
    await w.sync()
    assert.equal(w.read('a.docx'), 'edited there')
    const [conflict] = await w.conflicts()
    assert.ok(w.bytes(conflict!.copyPath!).equals(SMALL))
    assert.deepEqual(await w.differences(), [])
  })
})

test('a drive that makes the same of it again has its own will: that is agreed on, and not sent a third time', async () => {
  for (const content of [SMALL, LARGE]) {
    const w = await world(true)
    w.write('a.docx', content)
    await w.sync()
    assert.equal(w.there.device.item('/a.docx').versions.length, 1, 'it was sent twice')
    assert.deepEqual(await w.sync(), [])
    assert.ok(w.bytes('a.docx').equals(content))
    assert.deepEqual(await w.store.openNodes('docs', { limit: 10 }), [])
  }
})

test('a drive that works on it once more by itself makes no conflict of it', async () => {
  const w = await world(true)
  w.there.setQuirks({ rewritesUploadsLater: true })
  w.write('a.docx', SMALL)
  await w.sync()
  await w.sync()
  assert.deepEqual(
    [await w.sync(), await w.conflicts(), await w.store.openNodes('docs', { limit: 10 })],
    [[], [], []],
  )
})

test('an edit in OneDrive of what arrived damaged, before it could be sent again, is a conflict: both are kept', async () => {
  const w = await world()
  w.write('a.docx', LARGE)
  const action = await w.only('upload')
  w.there.damagedUploads = 1
  let isEdited = false
  await w.run(action, {
    onProgress: () => {
      if (isEdited || !w.there.device.has('/a.docx')) return
      isEdited = true
      w.there.device.edit('/a.docx', 'edited there')
    },
  })
  assert.ok(isEdited)
  await w.sync()
  assert.equal(w.read('a.docx'), 'edited there')
  const [conflict] = await w.conflicts()
  assert.ok(w.bytes(conflict!.copyPath!).equals(LARGE))
  assert.deepEqual(await w.differences(), [])
})
