import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { seededRandom } from '../../base/random.ts'
import type { DeltaCursor } from './change-log.ts'
import { Device } from './device.ts'
import { Drive, nameKey, nameProblem } from './drive.ts'
import { dumpDrive } from './drive-dump.ts'
import { DriveFault, type DriveFaultCode } from './drive-fault.ts'
import type { DriveType, Item } from './item.ts'
import { cTagOf, eTagOf } from './item-json.ts'

type World = { drive: Drive; device: Device; clock: { ms: number } }

function world(type: DriveType = 'personal', quotaBytes?: number): World {
  const clock = { ms: Date.UTC(2026, 0, 1) }
  const drive = new Drive({
    ...{
      id: '0c00000000000001',
      type,
      owner: 'ann@example.com',
      now: () => clock.ms,
      random: seededRandom(1),
    },
    ...(quotaBytes === undefined ? {} : { quotaBytes }),
  })
  return { drive, device: new Device(drive), clock }
}

const code = (wanted: DriveFaultCode) => (thrown: unknown) =>
  thrown instanceof DriveFault && thrown.code === wanted

const tags = (drive: Drive, item: Item): [string, string] => [eTagOf(drive, item), cTagOf(drive, item)]

describe('names', () => {
  test('that differ only in case or composition are one name', () => {
    assert.equal(nameKey('Résumé.TXT'), nameKey('re\u0301sume\u0301.txt'))
    assert.notEqual(nameKey('a'), nameKey('b'))
  })

  test('are refused where the service refuses them', () => {
    const bad = [
      '',
      'a"b',
      'a*',
      'a:b',
      '<a',
      'a>',
      'a?',
      'a/b',
      'a\\b',
      'a|b',
      ' a',
      'a ',
      'a.',
      '..',
      '~$a.docx',
    ]
    for (const name of [
      ...bad,
      'x_vti_y',
      'CON',
      'nul',
      'COM7',
      'lpt0',
      '.lock',
      'Desktop.ini',
      'a'.repeat(256),
      'a\u0007',
    ]) {
      assert.notEqual(nameProblem(name), undefined, JSON.stringify(name))
    }
    for (const name of ['a', '.a', 'con.txt', 'forms', 'a.b.c', '~a', 'a'.repeat(255), '#%&', 'COM10']) {
      assert.equal(nameProblem(name), undefined, JSON.stringify(name))
    }
    assert.notEqual(nameProblem('Forms', { isInRoot: true }), undefined)
  })
})

describe('a drive', () => {
  test('finds items by path and by id, whatever the case and composition', () => {
    const { drive, device } = world()
    const item = device.write('Fotos/Zürich/a.txt', 'a')
    assert.equal(drive.at('fotos/ZU\u0308RICH/A.TXT'), item)
    assert.equal(drive.get(item.id), item)
    assert.equal(drive.at('fotos/none'), undefined)
  })

  test('has no two children with the same name', () => {
    const { drive, device } = world()
    device.write('a.txt', '1')
    const content = drive.addContent('2')
    const put = (conflict: 'fail' | 'rename') =>
      drive.putFile({ parent: drive.root, name: 'A.TXT', content, conflict }).item
    assert.throws(() => put('fail'), code('nameAlreadyExists'))
    assert.equal(put('rename').name, 'A 1.TXT')
    assert.throws(() => drive.createFolder(drive.root, 'A.txt'), code('nameAlreadyExists'))
    assert.throws(() => device.rename('A 1.TXT', 'a.TXT'), code('nameAlreadyExists'))
    assert.equal(device.rename('a.txt', 'A.txt').name, 'A.txt')
    assert.throws(() => drive.putFile({ parent: drive.root, name: 'x:y', content }), code('invalidRequest'))
    const path = `${'a/'.repeat(150)}${'b'.repeat(120)}`
    assert.throws(() => device.write(path, 'x'), code('invalidRequest'))
  })

  test('a folder is not put where a file is, nor a file where a folder is', () => {
    const { drive, device } = world()
    device.mkdir('a')
    device.write('b', 'x')
    assert.throws(() => device.write('a', 'x'), code('nameAlreadyExists'))
    assert.throws(
      () => drive.createFolder(drive.root, 'b', { conflict: 'replace' }),
      code('nameAlreadyExists'),
    )
    assert.throws(() => device.move('b', 'a', { conflict: 'replace' }), code('nameAlreadyExists'))
  })

  test('every change makes a new eTag, a change of content a new cTag, also of the folders above', () => {
    const { drive, device } = world()
    const item = device.write('a/b.txt', '1')
    const folder = drive.at('a')!
    const before = { item: tags(drive, item), folder: tags(drive, folder) }
    device.rename('a/b.txt', 'c.txt')
    const renamed = { item: tags(drive, item), folder: tags(drive, folder) }
    assert.notEqual(renamed.item[0], before.item[0])
    assert.equal(renamed.item[1], before.item[1])
    assert.equal(renamed.folder[0], before.folder[0])
    assert.notEqual(renamed.folder[1], before.folder[1])
    device.edit('a/c.txt', '2')
    assert.notEqual(tags(drive, item)[0], renamed.item[0])
    assert.notEqual(tags(drive, item)[1], renamed.item[1])
  })

  test('content that was replaced is a version, and on Business a new time is one, too', () => {
    for (const type of ['personal', 'business'] as const) {
      const { drive, device } = world(type)
      device.write('a.txt', 'one')
      device.edit('a.txt', 'two')
      device.setTimes('a.txt', { modifiedMs: 5 })
      const { versions } = drive.at('a.txt')!
      const hashes = versions.map(({ content }) => content.hash)
      const expected = type === 'personal' ? ['one'] : ['one', 'two']
      assert.deepEqual(
        hashes,
        expected.map((text) => drive.addContent(text).hash),
      )
      assert.equal(drive.at('a.txt')!.fsModifiedMs, 5)
    }
  })

  test('folders are not moved into themselves, and the root stays', () => {
    const { drive, device } = world()
    device.mkdir('a/b/c')
    const move = (parent: Item): Item => drive.update(drive.at('a')!, { parent })
    assert.throws(() => move(drive.at('a/b/c')!), code('invalidRequest'))
    assert.throws(() => move(drive.at('a')!), code('invalidRequest'))
    assert.throws(() => drive.delete(drive.root), code('accessDenied'))
    assert.throws(() => drive.update(drive.root, { name: 'x' }), code('accessDenied'))
  })

  test('what is deleted can come back with the same ids, until the recycle bin is emptied', () => {
    const { drive, device } = world()
    const item = device.write('a/b/c.txt', 'hello')
    device.delete('a')
    assert.equal(drive.get(item.id), undefined)
    assert.deepEqual(
      dumpDrive(drive).recycleBin.map(({ path, hash }) => [path, hash !== undefined]),
      [
        ['a', false],
        ['a/b', false],
        ['a/b/c.txt', true],
      ],
    )
    device.mkdir('a')
    assert.throws(() => device.restore('a'), code('nameAlreadyExists'))
    assert.equal(device.restore('a', { conflict: 'rename' }).name, 'a 1')
    assert.equal(drive.get(item.id), item)
    device.delete('a 1/b')
    device.emptyRecycleBin()
    const dump = dumpDrive(drive)
    assert.equal(dump.recycleBin.length, 0)
    assert.deepEqual(
      dump.purged.map(({ path }) => path),
      ['a 1/b', 'a 1/b/c.txt'],
    )
    assert.ok(drive.contents.get(dump.purged[1]!.contentKey!))
  })

  test('what was deleted from a folder that is gone, too, comes back to the root', () => {
    const { drive, device } = world()
    const item = device.write('a/b.txt', 'x')
    device.delete('a/b.txt')
    device.delete('a')
    drive.restore(item.id)
    assert.equal(drive.at('b.txt'), item)
  })

  test('counts bytes of folders and of the quota, with what lies in the recycle bin', () => {
    const { drive, device } = world('personal', 100)
    device.write('a/b/c', Buffer.alloc(40))
    device.write('a/d', Buffer.alloc(20))
    assert.equal(drive.at('a')!.bytes, 60)
    assert.throws(() => device.write('e', Buffer.alloc(41)), code('quotaLimitReached'))
    device.move('a/b', 'f')
    assert.deepEqual([drive.at('a')!.bytes, drive.at('f')!.bytes, drive.usedBytes], [20, 40, 60])
    device.delete('f')
    assert.deepEqual([drive.root.bytes, drive.usedBytes], [20, 60])
    device.emptyRecycleBin()
    assert.equal(drive.usedBytes, 20)
  })

  test('copies with all that is under it, also into itself', () => {
    const { drive, device } = world()
    device.write('a/b/c.txt', 'x')
    drive.copy(drive.at('a')!, { parent: drive.at('a/b')!, name: 'again' })
    assert.ok(device.has('a/b/again/b/c.txt'))
    assert.ok(!device.has('a/b/again/b/again'))
  })
})

type Mirror = Map<string, { name: string; parentId: string | undefined; hash: string | undefined }>

/** What a client does: the last row wins, and what hangs on nothing is gone. */
class Reader {
  mirror: Mirror = new Map()
  cursor: DeltaCursor | undefined
  readonly #drive: Drive

  constructor(drive: Drive) {
    this.#drive = drive
  }

  page(rowsMax: number, untilMs?: number): boolean {
    this.cursor ??= { seq: 0, fullUntil: this.#drive.seq }
    const page = this.#drive.delta({
      cursor: this.cursor,
      rowsMax,
      ...(untilMs === undefined ? {} : { untilMs }),
    })
    for (const { item, isDeleted } of page.rows) {
      if (isDeleted) this.mirror.delete(item.id)
      else this.mirror.set(item.id, { name: item.name, parentId: item.parent?.id, hash: item.content?.hash })
    }
    this.cursor = page.cursor
    if (page.isLast) this.#prune()
    return page.isLast
  }

  drain(rowsMax: number, untilMs?: number): void {
    for (let pages = 0; !this.page(rowsMax, untilMs); pages++) assert.ok(pages < 10_000, 'it ends')
  }

  paths(): string[] {
    return [...this.mirror].map(([id, { hash }]) => `${this.#path(id)} ${hash ?? '-'} ${id}`).sort()
  }

  #path(id: string): string | undefined {
    const item = this.mirror.get(id)
    if (!item) return undefined
    if (item.parentId === undefined) return ''
    const above = this.#path(item.parentId)
    return above === undefined ? undefined : `${above}/${item.name}`
  }

  #prune(): void {
    for (const id of [...this.mirror.keys()]) if (this.#path(id) === undefined) this.mirror.delete(id)
  }
}

function truth(drive: Drive): string[] {
  const items = dumpDrive(drive).items.map(({ path, hash, id }) => `/${path} ${hash ?? '-'} ${id}`)
  return [` - ${drive.root.id}`, ...items].sort()
}

const OPERATIONS = [
  'write',
  'mkdir',
  'edit',
  'move',
  'rename',
  'case',
  'delete',
  'restore',
  'purge',
  'copy',
  'page',
  'drain',
  'wait',
] as const
type Step = { what: (typeof OPERATIONS)[number]; a: number; b: number }

/** Names are few, so that they meet. */
const NAMES = ['a', 'B', 'c.txt', 'É', 'e\u0301']

function someOf(drive: Drive, at: number, isWanted: (item: Item) => boolean): Item | undefined {
  const found = [...drive.items()].filter(isWanted)
  return found[at % Math.max(1, found.length)]
}

function act({ drive, device, clock }: World, { what, a, b }: Step, number: number): void {
  const folder = someOf(drive, b, ({ kind }) => kind === 'folder')!
  const item = someOf(drive, a, ({ parent }) => parent !== undefined)
  const name = NAMES[a % NAMES.length]!
  switch (what) {
    case 'write':
      drive.putFile({ parent: folder, name, content: drive.addContent(`text ${number}`), conflict: 'rename' })
      return
    case 'mkdir':
      drive.createFolder(folder, name, { conflict: 'rename' })
      return
    case 'edit':
      if (item?.kind === 'file') drive.setContent(item, drive.addContent(`edit ${number}`))
      return
    case 'move':
      if (item) drive.update(item, { parent: folder, conflict: b % 2 === 0 ? 'rename' : 'replace' })
      return
    case 'rename':
      if (item) drive.update(item, { name, conflict: 'rename' })
      return
    case 'case':
      if (item) drive.update(item, { name: item.name.toUpperCase(), conflict: 'rename' })
      return
    case 'delete':
      if (item) drive.delete(item)
      return
    case 'restore': {
      const entries = [...drive.recycleBin.keys()]
      if (entries.length > 0) drive.restore(entries[a % entries.length]!, { conflict: 'rename' })
      return
    }
    case 'purge':
      device.emptyRecycleBin()
      return
    case 'copy':
      if (item) drive.copy(item, { parent: folder, name: `copy ${number}` })
      return
    case 'wait':
      clock.ms += 1_000
  }
}

const step: fc.Arbitrary<Step> = fc.record({
  what: fc.constantFrom(...OPERATIONS),
  a: fc.nat(1_000),
  b: fc.nat(1_000),
})

/** A move into itself and the like: refused, and nothing has happened. */
function tolerate(run: () => void): void {
  try {
    run()
  } catch (thrown) {
    if (!(thrown instanceof DriveFault)) throw thrown
  }
}

describe('delta', () => {
  test('a folder is not replaced by what is in it, which would go with it', () => {
    const { drive } = world()
    const outer = drive.createFolder(drive.root, 'a').item
    const inner = drive.createFolder(outer, 'a').item
    assert.throws(() => drive.update(inner, { parent: drive.root, conflict: 'replace' }), /already exists/)
    assert.deepEqual([outer.deleted, inner.deleted], ['no', 'no'])
  })

  test('replayed into a mirror is the drive, whatever happened between and during the pages', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), fc.integer({ min: 1, max: 7 }), (steps, rowsMax) => {
        const own = world()
        const reader = new Reader(own.drive)
        for (const [number, one] of steps.entries()) {
          if (one.what === 'page') reader.page(rowsMax)
          else if (one.what === 'drain') {
            reader.drain(rowsMax)
            assert.deepEqual(reader.paths(), truth(own.drive))
          } else tolerate(() => act(own, one, number))
        }
        reader.drain(rowsMax)
        assert.deepEqual(reader.paths(), truth(own.drive))
        const fresh = new Reader(own.drive)
        fresh.drain(rowsMax)
        assert.deepEqual(fresh.paths(), truth(own.drive))
      }),
      { numRuns: 400 },
    )
  })

  test('that lags shows everything in the end', () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 50 }), fc.integer({ min: 1, max: 5 }), (steps, rowsMax) => {
        const own = world()
        const reader = new Reader(own.drive)
        const untilMs = (): number => own.clock.ms - 2_500
        for (const [number, one] of steps.entries()) {
          if (one.what === 'page') reader.page(rowsMax, untilMs())
          else if (one.what === 'drain') reader.drain(rowsMax, untilMs())
          else tolerate(() => act(own, one, number))
        }
        own.clock.ms += 10_000
        reader.drain(rowsMax, untilMs())
        assert.deepEqual(reader.paths(), truth(own.drive))
      }),
      { numRuns: 300 },
    )
  })

  const rowsOf = (drive: Drive, seq: number): string[] =>
    drive
      .delta({ cursor: { seq }, rowsMax: 1_000 })
      .rows.map(({ item, isDeleted }) => `${isDeleted ? '-' : ''}${item.name}`)

  test('names the folders above what changed, once', () => {
    const { drive, device } = world()
    device.write('a/b/c.txt', '1')
    device.write('a/b/d.txt', '1')
    const { seq } = drive
    device.edit('a/b/c.txt', '2')
    device.edit('a/b/d.txt', '2')
    assert.deepEqual(rowsOf(drive, seq), ['root', 'a', 'b', 'c.txt', 'd.txt'])
  })

  test('of a renamed or deleted folder does not name what is in it', () => {
    const { drive, device } = world()
    device.write('a/b/c.txt', '1')
    let { seq } = drive
    device.rename('a', 'x')
    assert.deepEqual(rowsOf(drive, seq), ['root', 'x'])
    seq = drive.seq
    device.delete('x')
    assert.deepEqual(rowsOf(drive, seq), ['root', '-x'])
  })

  test('tells that something is gone which was moved into a folder before that was deleted', () => {
    const { drive, device } = world()
    device.write('c.txt', '1')
    device.mkdir('a')
    const { seq } = drive
    device.move('c.txt', 'a/c.txt')
    device.delete('a')
    assert.ok(rowsOf(drive, seq).includes('-c.txt'))
  })

  test('of everything is silent about what was gone before, and the log does not grow for ever', () => {
    const { drive, device } = world()
    device.write('a.txt', '1')
    device.delete('a.txt')
    for (let time = 0; time < 30_000; time++) device.write('b.txt', `${time % 2}`)
    const reader = new Reader(drive)
    reader.drain(1)
    assert.deepEqual(reader.paths(), truth(drive))
    const page = drive.delta({ cursor: { seq: 0, fullUntil: drive.seq }, rowsMax: 10 })
    assert.deepEqual(
      page.rows.map(({ item }) => item.name),
      ['root', 'b.txt'],
    )
    assert.ok(page.isLast)
  })
})
