import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TidemarkError } from '../../base/errors.ts'
import { decodedName, trueNames } from './encoded-names.ts'
import {
  type DriveItem,
  deltaPageSchema,
  driveSchema,
  evenDriveId,
  itemSchema,
  progressSchema,
} from './schema.ts'

const HASH = 'SgAAAAAAAAAAAAAAAQAAAAAAAAA='
const EMPTY_HASH = 'AAAAAAAAAAAAAAAAAAAAAAAAAAA='

function file(changes: Record<string, unknown> = {}): DriveItem {
  return itemSchema.parse({
    id: '01AB!7',
    name: 'a.txt',
    size: 1,
    eTag: '"{1},2"',
    cTag: '"c:{1},2"',
    parentReference: { driveId: '0123456789ABCDEF', id: '01AB!1' },
    file: { hashes: { quickXorHash: HASH } },
    lastModifiedDateTime: '2026-01-02T03:04:05.678Z',
    fileSystemInfo: { lastModifiedDateTime: '2025-01-02T03:04:05Z' },
    ...changes,
  })
}

describe('an item', () => {
  test('has what we need of it, in our words', () => {
    assert.deepEqual(file(), {
      id: '01AB!7',
      driveId: '0123456789abcdef',
      type: 'file',
      name: 'a.txt',
      parentId: '01AB!1',
      size: 1,
      eTag: '"{1},2"',
      cTag: '"c:{1},2"',
      hash: HASH,
      modifiedMs: Date.UTC(2025, 0, 2, 3, 4, 5),
      deleted: false,
    })
  })

  test('is one only with an id that can stand in a path', () => {
    for (const id of [undefined, '', 'a/b', '../x', 'a b', 'a%2fb', 'a:b', 7]) {
      assert.throws(() => file({ id }), `${id}`)
    }
  })

  const types: [what: string, changes: Record<string, unknown>, type: DriveItem['type']][] = [
    ['a file', {}, 'file'],
    ['a folder', { file: undefined, folder: { childCount: 0 } }, 'folder'],
    ['the root', { file: undefined, folder: {}, root: {} }, 'root'],
    ['a notebook', { file: undefined, package: { type: 'oneNote' } }, 'package'],
    ['a notebook that is also a folder', { file: undefined, folder: {}, package: {} }, 'package'],
    ['a shortcut to another drive', { folder: {}, remoteItem: { id: 'x' } }, 'shortcut'],
    ['something that nobody knows', { file: undefined }, 'package'],
    ['a deleted folder', { file: undefined, folder: {}, deleted: {} }, 'folder'],
    ['something deleted that does not say what it was', { file: undefined, deleted: {} }, 'file'],
  ]
  for (const [what, changes, type] of types)
    test(`can be ${what}`, () => assert.equal(file(changes).type, type))

  test('may lack everything but its id when it was deleted', () => {
    const item = itemSchema.parse({ id: 'X', deleted: { state: 'deleted' } })
    const { id, driveId, type, deleted, ...rest } = item
    assert.deepEqual([id, driveId, type, deleted], ['X', '', 'file', true])
    assert.deepEqual(new Set(Object.values(rest)), new Set([undefined]))
  })

  test('has no hash where it cannot be right', () => {
    const hashed = (quickXorHash: unknown, more = {}): string | undefined =>
      file({ file: { hashes: { quickXorHash } }, ...more }).hash
    assert.equal(hashed(HASH), HASH)
    assert.equal(hashed(undefined), undefined)
    assert.equal(hashed(''), undefined)
    assert.equal(hashed('short='), undefined)
    assert.equal(hashed(HASH, { deleted: {} }), undefined)
    assert.equal(hashed(EMPTY_HASH), undefined)
    assert.equal(hashed(EMPTY_HASH, { size: undefined }), undefined)
    assert.equal(hashed(EMPTY_HASH, { size: 0 }), EMPTY_HASH)
    assert.equal(file({ file: {} }).hash, undefined)
    assert.equal(file({ file: { hashes: { sha1Hash: 'x' } } }).hash, undefined)
  })

  test('has no time where it is the year 1 or no date, and then that of the item', () => {
    const own = { fileSystemInfo: { lastModifiedDateTime: '0001-01-01T00:00:00Z' } }
    assert.equal(file(own).modifiedMs, Date.UTC(2026, 0, 2, 3, 4, 5, 678))
    const none = { ...own, lastModifiedDateTime: '0001-01-01T08:00:00Z' }
    assert.equal(file(none).modifiedMs, undefined)
    assert.equal(file({ ...own, lastModifiedDateTime: 'yesterday' }).modifiedMs, undefined)
    const old = { fileSystemInfo: { lastModifiedDateTime: '1969-12-31T23:59:59Z' } }
    assert.equal(file(old).modifiedMs, -1_000)
  })

  test('lacks what comes in a form that nobody expects', () => {
    const odd = file({ size: -1, eTag: null, cTag: '', name: 7, parentReference: 'x', fileSystemInfo: [] })
    assert.deepEqual([odd.size, odd.eTag, odd.cTag, odd.name, odd.parentId], Array(5).fill(undefined))
  })
})

test('the id of a personal drive is one, whatever its case and zeros', () => {
  for (const id of ['0AB3456789ABCDEF', '0ab3456789abcdef', 'AB3456789ABCDEF', 'ab3456789abcdef']) {
    assert.equal(evenDriveId(id), '0ab3456789abcdef')
  }
  assert.equal(evenDriveId('b!AbC-d_E'), 'b!AbC-d_E')
  assert.equal(evenDriveId('B!AbC-d_E'), 'b!AbC-d_E')
})

test('a drive without a quota or an owner is a drive', () => {
  assert.deepEqual(driveSchema.parse({ id: 'ABC', driveType: 'moon' }), {
    id: '0000000000000abc',
    type: 'unknown',
    name: '',
    owner: undefined,
    quota: undefined,
  })
})

test('a page of changes leads on or ends, and never both or neither', () => {
  const page = (links: object): boolean => deltaPageSchema.safeParse({ value: [], ...links }).success
  assert.ok(page({ '@odata.nextLink': 'x' }))
  assert.ok(page({ '@odata.deltaLink': 'x' }))
  assert.ok(!page({}))
  assert.ok(!page({ '@odata.nextLink': 'x', '@odata.deltaLink': 'y' }))
  assert.ok(!page({ '@odata.nextLink': '' }))
})

test('an upload goes on at the first byte that is missing', () => {
  const next = (nextExpectedRanges: unknown): number | undefined =>
    progressSchema.parse({ nextExpectedRanges }).nextOffset
  assert.equal(next(['327680-']), 327_680)
  assert.equal(next(['26-99', '12-20']), 12)
  assert.equal(next([]), undefined)
  for (const odd of [undefined, ['x-'], ['-5'], [5]]) assert.throws(() => next(odd), `${odd}`)
})

describe('a name that looks encoded', () => {
  const named = (...names: string[]): DriveItem[] => names.map((name, i) => file({ id: `I${i}`, name }))
  const names = (items: DriveItem[]): (string | undefined)[] => items.map(({ name }) => name)

  test('is decoded where the item itself has another, and its page with it', async () => {
    const items = await trueNames(named('plain.txt', 'a%20b', '%C3%A9.txt'), async (item) => ({
      ...item,
      name: 'a b',
    }))
    assert.deepEqual(names(items), ['plain.txt', 'a b', 'é.txt'])
  })

  test('stays where the item is really called that', async () => {
    const items = await trueNames(named('a%20b', 'c%20d'), async (item) => item)
    assert.deepEqual(names(items), ['a%20b', 'c%20d'])
  })

  test('is decoded where OneDrive lists the item, but does not give it', async () => {
    const items = await trueNames(named('%C3%A9.txt', 'plain'), async () => {
      throw new TidemarkError('not there', { kind: 'gone' })
    })
    assert.deepEqual(names(items), ['é.txt', 'plain'])
  })

  test('costs no call where no name of the page looks so', async () => {
    await trueNames(named('100%', 'a b%20', 'x%ff', 'plain'), () => assert.fail('a call'))
  })

  test('is not decoded into what is no text', () => {
    assert.equal(decodedName('%ff%fe'), '%ff%fe')
    assert.equal(decodedName('50%25'), '50%')
  })
})
