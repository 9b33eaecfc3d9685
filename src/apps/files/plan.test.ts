import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isHeld } from './guard.ts'
import { Sketch, told } from './plan.suite.ts'
import type { Plan } from './plan.ts'
import { ASIDE, type NodeKey } from './trees.ts'

const NAME_HELD = 'the deletion of what has its name on the other side waits for a yes'
const folder = { type: 'folder' } as const

function waits({ waiting }: Plan): [NodeKey, NodeKey][] {
  return waiting.map(({ node, waitsFor }) => [node, waitsFor])
}

function reasons({ reported }: Plan): [NodeKey, string][] {
  return reported.map(({ node, because }) => [node, because])
}

test('here, folders are made before what comes into them', () => {
  const sketch = new Sketch()
  sketch
    .newThere('X', 'a', { in: 'G' })
    .newThere('G', 'inner', { ...folder, in: 'F' })
    .newThere('F', 'outer', folder)
  assert.deepEqual(told(sketch.plan()), [
    'mkdir-local i:F',
    'mkdir-local i:G after i:F',
    'download i:X after i:G',
  ])
})

test('there, folders are made before what comes into them', () => {
  const sketch = new Sketch()
  sketch
    .newHere(9, 'a', { in: 8 })
    .newHere(8, 'inner', { ...folder, in: 7 })
    .newHere(7, 'outer', folder)
  assert.deepEqual(told(sketch.plan()), [
    'mkdir-remote l:7',
    'mkdir-remote l:8 after l:7',
    'upload l:9 after l:8',
  ])
})

test('what is in a folder is deleted before the folder, on either side', () => {
  const tree = (): Sketch => new Sketch().synced('F', 'dir', folder).synced('X', 'a', { in: 'F' })
  assert.deepEqual(told(tree().deletedThere('F').plan()), ['delete-local i:X', 'delete-local i:F after i:X'])
  assert.deepEqual(told(tree().deletedHere('F').plan()), ['delete-remote i:X', 'delete-remote i:F after i:X'])
})

test('a file is moved into a folder after that was made by the same plan', () => {
  const there = new Sketch().synced('X', 'a').newThere('F', 'dir', folder).movedThere('X', { in: 'F' })
  assert.deepEqual(told(there.plan()), ['mkdir-local i:F', 'move-local i:X after i:F'])
  const here = new Sketch().synced('X', 'a').newHere(9, 'dir', folder).movedHere('X', { in: 9 })
  assert.deepEqual(told(here.plan()), ['mkdir-remote l:9', 'move-remote i:X after l:9'])
})

test('what is saved from a folder that is deleted leaves it first', () => {
  const tree = (): Sketch => new Sketch().synced('F', 'dir', folder).synced('X', 'a', { in: 'F' })
  const there = tree().movedThere('X', { in: 'root' }).deletedThere('F')
  assert.deepEqual(told(there.plan()), ['move-local i:X', 'delete-local i:F after i:X'])
  const here = tree().movedHere('X', { in: 1 }).deletedHere('F')
  assert.deepEqual(told(here.plan()), ['move-remote i:X', 'delete-remote i:F after i:X'])
})

test('in a chain of names, who gives up a name comes before who takes it', () => {
  const tree = (): Sketch => new Sketch().synced('X', 'a').synced('Y', 'b').synced('Z', 'c')
  const there = tree()
    .movedThere('X', { name: 'b' })
    .movedThere('Y', { name: 'c' })
    .movedThere('Z', { name: 'd' })
  assert.deepEqual(told(there.plan()), [
    'move-local i:Z',
    'move-local i:Y after i:Z',
    'move-local i:X after i:Y',
  ])
  const here = tree()
    .movedHere('X', { name: 'b' })
    .movedHere('Y', { name: 'c' })
    .movedHere('Z', { name: 'd' })
  assert.deepEqual(told(here.plan()), [
    'move-remote i:Z',
    'move-remote i:Y after i:Z',
    'move-remote i:X after i:Y',
  ])
})

test('two files that exchange their names, two folders just as well: one gets a temporary name', () => {
  for (const drawn of [{}, folder]) {
    const tree = (): Sketch => new Sketch().synced('X', 'a', drawn).synced('Y', 'b', drawn)
    const there = tree().movedThere('X', { name: 'b' }).movedThere('Y', { name: 'a' })
    assert.deepEqual(told(there.plan()), ['move-local i:X (temporary)', 'move-local i:Y after i:X'])
    const here = tree().movedHere('X', { name: 'b' }).movedHere('Y', { name: 'a' })
    assert.deepEqual(told(here.plan()), ['move-remote i:X (temporary)', 'move-remote i:Y after i:X'])
  }
})

test('of three that pass on their names in a circle, one gets a temporary name', () => {
  const tree = (): Sketch => new Sketch().synced('X', 'a').synced('Y', 'b').synced('Z', 'c')
  const there = tree()
    .movedThere('X', { name: 'b' })
    .movedThere('Y', { name: 'c' })
    .movedThere('Z', { name: 'a' })
  const order = ['move-local i:X (temporary)', 'move-local i:Z after i:X', 'move-local i:Y after i:Z']
  assert.deepEqual(told(there.plan()), order)
  const here = tree()
    .movedHere('X', { name: 'b' })
    .movedHere('Y', { name: 'c' })
    .movedHere('Z', { name: 'a' })
  assert.deepEqual(
    told(here.plan()),
    order.map((one) => one.replace('local', 'remote')),
  )
})

test('many exchanges in one plan are all broken up', () => {
  const sketch = new Sketch()
  for (let n = 0; n < 50; n++) sketch.synced(`X${n}`, `x${n}`).synced(`Y${n}`, `y${n}`)
  for (let n = 0; n < 50; n++)
    sketch.movedHere(`X${n}`, { name: `y${n}` }).movedHere(`Y${n}`, { name: `x${n}` })
  const { actions, waiting } = sketch.plan()
  assert.equal(actions.length, 100)
  assert.equal(actions.filter(({ isTemporary }) => isTemporary).length, 50)
  assert.deepEqual(waiting, [])
})

test('a file that was replaced by a folder of its name, and the reverse, on either side', () => {
  for (const [before, now] of [
    [{}, folder],
    [folder, {}],
  ] as const) {
    const make = now === folder ? 'mkdir' : undefined
    const there = new Sketch().synced('X', 'a', before).deletedThere('X').newThere('Y', 'a', now)
    const bring = make ? 'mkdir-local' : 'download'
    assert.deepEqual(told(there.plan()), ['delete-local i:X', `${bring} i:Y after i:X`])
    const here = new Sketch().synced('X', 'a', before).deletedHere('X').newHere(9, 'a', now)
    assert.deepEqual(told(here.plan()), [
      'delete-remote i:X',
      `${make ? 'mkdir-remote' : 'upload'} l:9 after i:X`,
    ])
  }
})

test('a file is moved into a new folder that takes the name of the folder it was in: it steps out of the way', () => {
  const sketch = new Sketch().synced('F', 'a', folder).synced('X', 'x', { in: 'F' })
  sketch.newThere('G', 'a', folder).movedThere('X', { in: 'G' }).deletedThere('F')
  assert.deepEqual(told(sketch.plan()), [
    'move-local i:X (temporary)',
    'delete-local i:F after i:X',
    'mkdir-local i:G after i:F',
  ])
})

test('a folder goes into what was its child after that has left it', () => {
  const tree = (): Sketch =>
    new Sketch().synced('F', 'outer', folder).synced('G', 'inner', { ...folder, in: 'F' })
  const there = tree().movedThere('G', { in: 'root' }).movedThere('F', { in: 'G' })
  assert.deepEqual(told(there.plan()), ['move-local i:G', 'move-local i:F after i:G'])
  const here = tree().movedHere('G', { in: 1 }).movedHere('F', { in: 'G' })
  assert.deepEqual(told(here.plan()), ['move-remote i:G', 'move-remote i:F after i:G'])
})

test('a grandchild is enough: whatever is in between has to leave first', () => {
  const tree = (): Sketch =>
    new Sketch()
      .synced('F', 'f', folder)
      .synced('G', 'g', { ...folder, in: 'F' })
      .synced('H', 'h', { ...folder, in: 'G' })
  const there = tree().movedThere('G', { in: 'root' }).movedThere('F', { in: 'H' })
  assert.deepEqual(told(there.plan()), ['move-local i:G', 'move-local i:F after i:G'])
  const here = tree().movedHere('G', { in: 1 }).movedHere('F', { in: 'H' })
  assert.deepEqual(told(here.plan()), ['move-remote i:G', 'move-remote i:F after i:G'])
})

test("where both sides moved two folders into each other, OneDrive's place counts", () => {
  const sketch = new Sketch().synced('F', 'f', folder).synced('G', 'g', folder)
  sketch.movedHere('F', { in: 'G' }).movedThere('G', { in: 'F' })
  assert.deepEqual(told(sketch.plan()), ['move-local i:F', 'move-local i:G after i:F'])
})

test('a folder that goes back to its place waits until the name that it had there is free', () => {
  const sketch = new Sketch().synced('F', 'f', folder).synced('G', 'g', folder).synced('X', 'x')
  sketch.movedHere('F', { in: 'G' }).movedThere('G', { in: 'F' }).movedHere('X', { name: 'f' })
  const made = sketch.plan()
  assert.deepEqual(told(made), ['conflict i:X'])
  assert.deepEqual(waits(made), [
    ['i:F', 'i:X'],
    ['i:G', 'i:F'],
  ])
})

test('a new file here has the name of a new folder there: the local one gets another name', () => {
  const sketch = new Sketch().newThere('F', 'a', folder).newHere(9, 'a')
  const made = sketch.plan()
  assert.deepEqual(told(made), ['conflict l:9'])
  assert.deepEqual(waits(made), [['i:F', 'l:9']])
})

test('what is new on both sides under one name, in any case, is decided once', () => {
  const differ = new Sketch().newThere('X', 'A.txt', { hash: 'other' }).newHere(9, 'a.txt').plan()
  assert.deepEqual(told(differ), ['conflict i:X'])
  assert.deepEqual(waits(differ), [['l:9', 'i:X']])
  const equal = new Sketch().newThere('X', 'A.txt').newHere(9, 'a.txt').plan()
  assert.deepEqual(
    equal.bookkeeping.map(({ node, decision }) => [node, decision.do]),
    [['i:X', 'adopt']],
  )
  assert.deepEqual(told(equal), [])
})

test('of two new files here that differ in case alone, the one that is spelled as in OneDrive is its pair', () => {
  const made = new Sketch().newThere('X', 'a').newHere(8, 'A', { hash: 'other' }).newHere(9, 'a').plan()
  assert.deepEqual(
    made.bookkeeping.map(({ node, decision }) => [node, decision.do]),
    [['i:X', 'adopt']],
  )
  assert.deepEqual(waits(made), [['l:9', 'i:X']])
})

test('two files here that differ in case alone: the second is left alone, and said, until the first has gone', () => {
  const made = new Sketch().synced('X', 'a').newHere(9, 'A').plan()
  assert.deepEqual(told(made), [])
  assert.deepEqual(made.reported, [
    { node: 'l:9', version: 1, because: 'OneDrive takes a and A for the same name', until: 'i:X' },
  ])
})

test('a rename that changes the case alone is one move, on either side', () => {
  assert.deepEqual(told(new Sketch().synced('X', 'a').movedThere('X', { name: 'A' }).plan()), [
    'move-local i:X',
  ])
  assert.deepEqual(told(new Sketch().synced('X', 'a').movedHere('X', { name: 'A' }).plan()), [
    'move-remote i:X',
  ])
})

test('a folder that was deleted there stays here with a new or changed file in it', () => {
  const tree = (): Sketch => new Sketch().synced('F', 'dir', folder).synced('X', 'x', { in: 'F' })
  const fresh = tree().newHere(9, 'new', { in: 'F' }).deletedThere('F').plan()
  const detached = ({ bookkeeping }: Plan) => bookkeeping.map(({ node, decision }) => [node, decision.do])
  // What goes is gone before the folder here becomes a new one.
  assert.deepEqual(told(fresh), ['delete-local i:X'])
  assert.deepEqual(waits(fresh).sort(), [
    ['i:F', 'i:X'],
    ['l:9', 'i:F'],
  ])
  const alone = new Sketch()
    .synced('F', 'dir', folder)
    .newHere(9, 'new', { in: 'F' })
    .deletedThere('F')
    .plan()
  assert.deepEqual(detached(alone), [['i:F', 'detach']])
  const edited = tree().editedHere('X').deletedThere('F').plan()
  assert.deepEqual(detached(edited).sort(), [
    ['i:F', 'detach'],
    ['i:X', 'detach'],
  ])
})

test('a folder that was deleted there waits for a file in it that nobody has looked into yet', () => {
  const sketch = new Sketch().synced('F', 'dir', folder).synced('X', 'x', { in: 'F' })
  const made = sketch.editedHere('X', null).deletedThere('F').plan()
  assert.deepEqual(told(made), ['check i:X'])
  assert.deepEqual(waits(made), [['i:F', 'i:X']])
})

test('a folder that was deleted there is kept, and said, while something in it is left out', () => {
  const sketch = new Sketch().synced('F', 'dir', folder).newHere(9, 'x.tmp', { in: 'F' }).deletedThere('F')
  const made = sketch.judged('l:9', { hold: { because: 'left out: it is an unfinished file' } }).plan()
  assert.deepEqual(told(made), [])
  assert.deepEqual(reasons(made), [
    ['i:F', 'something in it is left alone'],
    ['l:9', 'left out: it is an unfinished file'],
  ])
  const later = sketch.elsewhere('l:9', 'stuck').plan()
  assert.deepEqual(reasons(later), [['i:F', 'something in it is left alone']])
})

test('a folder that was deleted here comes back with a new or changed file in it', () => {
  const tree = (): Sketch => new Sketch().synced('F', 'dir', folder).synced('X', 'x', { in: 'F' })
  const fresh = tree().deletedHere('F').newThere('Y', 'new', { in: 'F' }).plan()
  assert.deepEqual(told(fresh), ['mkdir-local i:F', 'delete-remote i:X', 'download i:Y after i:F'])
  const edited = tree().deletedHere('F').editedThere('X').plan()
  assert.deepEqual(told(edited), ['mkdir-local i:F', 'download i:X after i:F'])
})

test('a folder that was deleted here, into which another was moved there, comes back', () => {
  const sketch = new Sketch().synced('F', 'dir', folder).synced('G', 'other', folder)
  const made = sketch.deletedHere('F').movedThere('G', { in: 'F' }).plan()
  assert.deepEqual(told(made), ['mkdir-local i:F', 'move-local i:G after i:F'])
})

test('what needs a folder that is not part of the plan waits for it', () => {
  const there = new Sketch()
    .newThere('F', 'dir', folder)
    .newThere('X', 'a', { in: 'F' })
    .elsewhere('i:F', 'in work')
  assert.deepEqual(waits(there.plan()), [['i:X', 'i:F']])
  const here = new Sketch().newHere(8, 'dir', folder).newHere(9, 'a', { in: 8 }).elsewhere('l:8', 'in work')
  assert.deepEqual(waits(here.plan()), [['l:9', 'l:8']])
})

test('what needs a name that is given up elsewhere waits for it', () => {
  const there = new Sketch().synced('X', 'a').deletedThere('X').newThere('Y', 'a').elsewhere('i:X', 'in work')
  assert.deepEqual(waits(there.plan()), [['i:Y', 'i:X']])
  const here = new Sketch().synced('X', 'a').deletedHere('X').newHere(9, 'a').elsewhere('i:X', 'in work')
  assert.deepEqual(waits(here.plan()), [['l:9', 'i:X']])
})

test('what comes after something that waits, waits as well', () => {
  const sketch = new Sketch().newThere('F', 'f', folder).newThere('G', 'g', { ...folder, in: 'F' })
  const made = sketch.newThere('X', 'x', { in: 'G' }).elsewhere('i:F', 'in work').plan()
  assert.deepEqual(told(made), [])
  assert.deepEqual(waits(made).sort(), [
    ['i:G', 'i:F'],
    ['i:X', 'i:G'],
  ])
})

test('a name that OneDrive does not take is left alone with all that is in it', () => {
  const sketch = new Sketch().newHere(8, 'a:b', folder).newHere(9, 'x', { in: 8 })
  const made = sketch.judged('l:8', { illegalName: 'OneDrive does not take it' }).plan()
  assert.deepEqual(reasons(made), [
    ['l:8', 'OneDrive does not take it'],
    ['l:9', 'its folder is left alone'],
  ])
  assert.equal(made.reported[1]!.until, 'l:8')
  assert.deepEqual(waits(made), [])
  const renamed = new Sketch().synced('X', 'a').movedHere('X', { name: 'a:b' })
  const kept = renamed.judged('i:X', { illegalName: 'OneDrive does not take it' }).plan()
  assert.deepEqual([told(kept), reasons(kept)], [[], [['i:X', 'OneDrive does not take it']]])
})

test('folders that OneDrive has inside of each other are left alone with all that is in them, each until the one above it', () => {
  const sketch = new Sketch()
    .newThere('A', 'a', { ...folder, in: 'B' })
    .newThere('B', 'b', { ...folder, in: 'A' })
    .newThere('X', 'x', { in: 'A' })
  const made = sketch.plan()
  assert.deepEqual([told(made), waits(made)], [[], []])
  const circle = 'OneDrive has its folders inside of each other, in a circle'
  assert.deepEqual(
    made.reported.map(({ node, because, until }) => [node, because, until]),
    [
      ['i:A', circle, 'i:B'],
      ['i:B', circle, 'i:A'],
      ['i:X', circle, 'i:A'],
    ],
  )
})

test('folders that were moved into each other in OneDrive stay where they are here', () => {
  const sketch = new Sketch().synced('A', 'a', folder).synced('B', 'b', folder)
  const made = sketch.movedThere('A', { in: 'B' }).movedThere('B', { in: 'A' }).plan()
  assert.deepEqual([told(made), waits(made)], [[], []])
  assert.deepEqual(
    made.reported.map(({ node, until }) => [node, until]),
    [
      ['i:A', 'i:B'],
      ['i:B', 'i:A'],
    ],
  )
})

test('what is in a folder that OneDrive never told of is left alone until it does', () => {
  const made = new Sketch().newThere('X', 'x', { in: 'unknown' }).plan()
  assert.deepEqual(reasons(made), [['i:X', 'OneDrive does not say where its folder is']])
  assert.equal(made.reported[0]!.until, 'i:unknown')
})

test('what depends on a folder that is left alone for its place is left alone, too', () => {
  const sketch = new Sketch().newHere(9, 'dir').newThere('F', 'dir', folder).newThere('X', 'x', { in: 'F' })
  const made = sketch.judged('l:9', { hold: { because: 'left out: a pattern in skip' } }).plan()
  assert.deepEqual(told(made), [])
  assert.deepEqual(reasons(made).sort(), [
    ['i:F', 'something that is not synced has its name here'],
    ['i:X', 'another that must be done first is left alone'],
    ['l:9', 'left out: a pattern in skip'],
  ])
})

test('where only uploads are on, nothing here is renamed for a name that OneDrive has given to another', () => {
  const sketch = (): Sketch => new Sketch().synced('X', 'a').synced('Y', 'b')
  const moved = sketch().movedHere('X', { name: 'c' }).movedThere('Y', { name: 'c' })
  assert.deepEqual(told(moved.plan()).includes('conflict i:X'), true)
  const uploads = moved.plan({ mode: 'upload-only' })
  assert.deepEqual(told(uploads), [])
  assert.match(reasons(uploads).find(([node]) => node === 'i:X')![1], /only uploads are on/)
  const made = sketch().newHere(9, 'c').movedThere('Y', { name: 'c' })
  assert.deepEqual(told(made.plan({ mode: 'upload-only' })), [])
})

test('where only uploads are on, a folder that was moved into what OneDrive has inside of it stays where it is', () => {
  const sketch = new Sketch().synced('F', 'f', folder).synced('G', 'g', folder)
  sketch.movedHere('F', { in: 'G' }).movedThere('G', { in: 'F' })
  assert.match(told(sketch.plan()).join(), /move-local i:F/)
  assert.deepEqual(told(sketch.plan({ mode: 'upload-only' })), [])
})

const half = {
  baseItems: 20,
  baseFiles: 20,
  deletes: { local: 4, remote: 6 },
  deletedFiles: 10,
  forced: 0,
}

test('half of everything may be deleted at once, more is asked for, unless someone has said yes to as many', () => {
  assert.equal(isHeld(half), false)
  const more = { ...half, deletes: { local: 4, remote: 7 }, deletedFiles: 11 }
  assert.equal(isHeld(more), true)
  assert.equal(isHeld({ ...more, forced: 10 }), true)
  assert.equal(isHeld({ ...more, forced: 11 }), false)
})

test('a thousand deletions are made, one more is asked for, however much there is', () => {
  const many = { ...half, baseItems: 100_000, baseFiles: 100_000, deletes: { local: 1_000, remote: 0 } }
  const recent = (lately: number) => ({ recent: { lately, items: lately, files: lately } })
  assert.equal(isHeld(many), false)
  assert.equal(isHeld({ ...many, deletes: { local: 1_000, remote: 1 } }), true)
  assert.equal(isHeld({ ...many, ...recent(1) }), true)
  assert.equal(isHeld({ ...many, deletes: { local: 1, remote: 0 }, ...recent(999) }), false)
})

test('however small a folder is, nobody empties it, or most of it, unasked, in either direction', () => {
  const held = (gone: number, of: number, side: 'local' | 'remote') =>
    isHeld({
      baseItems: of,
      baseFiles: of,
      deletedFiles: gone,
      forced: 0,
      deletes: { local: 0, remote: 0, [side]: gone },
    })
  for (const side of ['local', 'remote'] as const) {
    for (const all of [1, 2, 3, 9]) assert.equal(held(all, all, side), true, `${all} of ${all}`)
    assert.deepEqual([held(2, 3, side), held(8, 9, side)], [true, true])
    assert.deepEqual([held(1, 2, side), held(1, 3, side), held(4, 9, side)], [false, false, false])
  }
})

test('all files of a folder are asked about although their folders stay', () => {
  const guard = { baseItems: 18, baseFiles: 9, deletes: { local: 0, remote: 9 }, deletedFiles: 9, forced: 0 }
  assert.equal(isHeld(guard), true)
  assert.equal(isHeld({ ...guard, baseFiles: 18, baseItems: 36 }), false)
})

test('most of a folder is asked about although it goes little by little', () => {
  const last = { baseItems: 60, baseFiles: 60, deletes: { local: 1, remote: 0 }, deletedFiles: 1, forced: 0 }
  const recent = (items: number) => ({ recent: { lately: 0, items, files: items } })
  assert.equal(isHeld({ ...last, ...recent(40) }), false)
  assert.equal(isHeld({ ...last, baseItems: 50, baseFiles: 50, ...recent(50) }), true)
})

const ALL_DELETED = { baseItems: 2, baseFiles: 1, deletedFiles: 1 }

test('what takes the name of something whose deletion is held waits with its reason, and gets no other name', () => {
  const there = { ...ALL_DELETED, deletes: { local: 0, remote: 1 } }
  const here = new Sketch()
    .synced('X', 'A')
    .deletedHere('X')
    .newHere(9, 'a', folder)
    .newHere(8, 'x', { in: 9 })
  assert.deepEqual(told(here.plan({ guard: there })), [])
  assert.deepEqual(reasons(here.plan({ guard: there })), [
    ['i:X', 'its deletion waits for a yes'],
    ['l:9', NAME_HELD],
    ['l:8', 'another that must be done first is left alone'],
  ])
  assert.deepEqual(told(here.plan({ guard: { ...there, forced: 1 } })), [
    'delete-remote i:X',
    'mkdir-remote l:9 after i:X',
    'upload l:8 after l:9',
  ])
  const local = { ...ALL_DELETED, deletes: { local: 1, remote: 0 } }
  const away = new Sketch().synced('X', 'A').deletedThere('X').newThere('Y', 'a', folder)
  assert.deepEqual(reasons(away.plan({ guard: local })), [
    ['i:X', 'its deletion waits for a yes'],
    ['i:Y', NAME_HELD],
  ])
})

test('what takes the name of a folder whose deletion is held waits for that, and not for ever in silence', () => {
  const guard = { ...ALL_DELETED, deletes: { local: 0, remote: 2 } }
  const sketch = new Sketch().synced('F', 'A', folder).synced('X', 'x', { in: 'F' })
  const made = sketch.deletedHere('F').newHere(9, 'a').plan({ guard })
  assert.deepEqual([told(made), waits(made)], [[], []])
  assert.equal(new Map(reasons(made)).get('l:9'), NAME_HELD)
})

test('what takes the name of something held by an earlier plan, or of what waits for that, waits too', () => {
  const held = new Sketch().synced('X', 'A').deletedHere('X').elsewhere('i:X', 'stuck')
  held.newHere(9, 'a').held('i:X')
  assert.deepEqual(reasons(held.plan()), [['l:9', NAME_HELD]])
  const moved = new Sketch().synced('X', 'A').deletedHere('X').elsewhere('i:X', 'stuck').held('i:X')
  moved.synced('Y', 'b').movedHere('Y', { name: 'a' }).elsewhere('i:Y', 'stuck').waitsFor('i:Y', 'i:X')
  moved.newHere(9, 'b')
  assert.deepEqual(reasons(moved.plan()), [['l:9', NAME_HELD]])
  moved.elsewhere('i:X', 'in work').held('i:X', { isHeld: false })
  assert.deepEqual(waits(moved.plan()), [['l:9', 'i:Y']])
})

test('deletions that are held stay where they are, and everything else goes on', () => {
  const sketch = new Sketch().synced('F', 'dir', folder).synced('X', 'x', { in: 'F' }).deletedHere('F')
  sketch.synced('Y', 'y').editedHere('Y')
  const guard = { baseItems: 20, baseFiles: 20, deletes: { local: 0, remote: 11 }, deletedFiles: 10 }
  const held = sketch.plan({ guard })
  assert.deepEqual(told(held), ['upload i:Y'])
  assert.deepEqual(held.heldDeletes, guard.deletes)
  assert.deepEqual(reasons(held), [
    ['i:F', 'its deletion waits for a yes'],
    ['i:X', 'its deletion waits for a yes'],
  ])
  assert.equal(sketch.plan({ guard: { ...guard, forced: 11 } }).actions.length, 3)
})

test('what went missing while nobody could look at it waits for a yes, however little it is', () => {
  const sketch = new Sketch().synced('X', 'x').synced('Y', 'y').deletedHere('X').deletedHere('Y')
  sketch.unreadable('X', ASIDE.link)
  const guard = { baseItems: 20, baseFiles: 20, deletes: { local: 0, remote: 2 }, deletedFiles: 2 }
  assert.deepEqual(told(sketch.plan({ guard })), ['delete-remote i:Y'])
  assert.deepEqual(reasons(sketch.plan({ guard })), [['i:X', 'its deletion waits for a yes']])
  assert.equal(sketch.plan({ guard: { ...guard, forced: 2 } }).actions.length, 2)
})

test('nothing is done in a folder that cannot be looked into, nor brought into it', () => {
  const sketch = new Sketch().synced('F', 'dir', folder).synced('G', 'sub', { ...folder, in: 'F' })
  sketch.synced('X', 'x', { in: 'G' }).editedThere('X').synced('Y', 'y').movedThere('Y', { in: 'G' })
  sketch.newThere('Z', 'z', { in: 'G' }).unreadable('F', 'EACCES')
  const planned = sketch.plan()
  assert.deepEqual(told(planned), [])
  for (const { node, because, until } of planned.reported.filter((one) => one.node !== 'i:F'))
    assert.deepEqual([because, until], ['its folder is left alone', 'i:F'], node)
  assert.deepEqual(planned.reported.map(({ node }) => node).sort(), ['i:F', 'i:X', 'i:Y', 'i:Z'])
})

/** Folders in each other, a chain of names, deletions and new things, `count` of each kind. */
function crowd(count: number): Sketch {
  const sketch = new Sketch().synced('G', 'gone', folder)
  for (let n = 0; n < count; n++) {
    sketch.synced(`C${n}`, `chain ${n}`).synced(`D${n}`, `d${n}`, { in: 'G' })
    sketch.newThere(`N${n}`, `new ${n}`).newHere(1_000_000 + n, `here ${n}`)
  }
  for (let n = 0; n < count; n++) sketch.movedThere(`C${n}`, { name: `chain ${n + 1}` })
  return sketch.deletedThere('G')
}

test('a plan of four times as many nodes asks about four times as many things', () => {
  const [small, large] = [crowd(250), crowd(1_000)]
  const [few, many] = [small.plan(), large.plan()]
  assert.deepEqual([few.actions.length, many.actions.length], [1_001, 4_001])
  assert.deepEqual([few.waiting, many.waiting], [[], []])
  assert.ok(large.asked <= small.asked * 4.2, `${small.asked} and ${large.asked} questions`)
})
