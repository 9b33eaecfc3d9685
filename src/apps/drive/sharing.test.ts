import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { endOfAccess, granteesOf, type KnownFile, newestSharing, UNCONFIRMED } from './sharing.ts'

const BOB = 'bob@example.com'
const look = { account: BOB, serial: 5, askedAtMs: 1_000, endsAtMs: null }
const named = (endsAtMs: number | null = null) => [{ to: BOB, endsAtMs }]
const ann: ReturnType<typeof named> = [{ to: 'ann@example.com', endsAtMs: null }]
const listed = (serial: number, atMs: number, grantees = ann) => ({ serial, atMs, grantees })
const file = (versionSerial: number, sharing: KnownFile['sharing'] = null): KnownFile => ({
  versionSerial,
  owner: 'ann@example.com',
  sharing,
})

describe('an access', () => {
  const cases: [title: string, known: KnownFile, end: number | null][] = [
    ['holds for a version that its own look saw', file(5), null],
    ['is unconfirmed for a newer one', file(6), UNCONFIRMED],
    ['holds for a newer one where a list that is as new names it', file(6, listed(6, 1, named())), null],
    ['ends when that list says', file(6, listed(6, 1, named(9_000))), 9_000],
    [
      'is unconfirmed where the list that names it is older than the version',
      file(7, listed(6, 1, named())),
      UNCONFIRMED,
    ],
    ['ends by a newer list that leaves it no way', file(5, listed(6, 1)), UNCONFIRMED],
    ['ends by a list with the same counter that came later', file(5, listed(5, 2_000)), UNCONFIRMED],
    ['holds against one that was there when it was asked for', file(5, listed(5, 1_000)), null],
    ['holds against an older list', file(5, listed(4, 2_000)), null],
    [
      'holds for what it saw where a newer list has a group',
      file(5, listed(6, 1, [{ to: '?', endsAtMs: null }])),
      null,
    ],
    [
      'is unconfirmed for a newer version where the list has a group',
      file(6, listed(6, 1, [{ to: '?', endsAtMs: null }])),
      UNCONFIRMED,
    ],
    [
      'holds where all of its domain find it',
      file(6, listed(6, 1, [{ to: '@example.com', endsAtMs: null }])),
      null,
    ],
    [
      'is unconfirmed where all of another domain do',
      file(6, listed(6, 1, [{ to: '@ample.com', endsAtMs: null }])),
      UNCONFIRMED,
    ],
    [
      'holds for what it saw where all of another domain find it: that may have this address, too',
      file(5, listed(6, 1, [{ to: '@ample.com', endsAtMs: null }])),
      null,
    ],
    ['holds where everybody finds it', file(6, listed(6, 1, [{ to: '*', endsAtMs: null }])), null],
    ['of the owner holds', { ...file(6), owner: 'Bob@example.com' }, null],
  ]
  for (const [title, known, end] of cases) test(title, () => assert.equal(endOfAccess(look, known), end))
})

describe('of two lists', () => {
  const both = [
    { to: 'ann@example.com', endsAtMs: null },
    { to: BOB, endsAtMs: null },
  ]
  const one = [{ to: 'ann@example.com', endsAtMs: null }]

  test('the one with the higher counter holds, whichever came last', () => {
    const older = { serial: 5, askedAtMs: 8, atMs: 9, grantees: both }
    const newer = { serial: 6, askedAtMs: 1, atMs: 2, grantees: one }
    for (const [first, second] of [
      [older, newer],
      [newer, older],
    ] as const) {
      const { grantees, serial } = newestSharing(newestSharing(null, first), second)
      assert.deepEqual([grantees, serial], [one, 6])
    }
  })

  test('with the same counter, that which was asked for after the other was there', () => {
    const kept = { serial: 5, atMs: 2, grantees: one }
    assert.deepEqual(newestSharing(kept, { serial: 5, askedAtMs: 2, atMs: 3, grantees: both }).grantees, both)
  })

  test('that were asked for at the same time, what both say', () => {
    const lists = [
      { serial: 5, askedAtMs: 1, atMs: 4, grantees: both },
      { serial: 5, askedAtMs: 2, atMs: 3, grantees: one },
    ] as const
    for (const [first, second] of [lists, lists.toReversed()]) {
      assert.deepEqual(newestSharing(newestSharing(null, first!), second!), {
        serial: 5,
        atMs: 5,
        grantees: one,
      })
    }
  })

  test('that were asked for at the same time and differ, neither look proves what the other list denies', () => {
    const own = { serial: 5, askedAtMs: 1, atMs: 4, grantees: both }
    const sharing = newestSharing({ serial: 5, atMs: 3, grantees: one }, own)
    assert.equal(endOfAccess({ ...look, askedAtMs: own.atMs }, file(5, sharing)), UNCONFIRMED)
  })

  test('that say the same, the look that brought one of them holds against it', () => {
    const own = { serial: 5, askedAtMs: 1, atMs: 4, grantees: one }
    const sharing = newestSharing({ serial: 5, atMs: 3, grantees: one }, own)
    assert.equal(endOfAccess({ ...look, askedAtMs: own.atMs }, file(5, sharing)), null)
  })
})

test('permissions that name nobody for certain, are deleted or are of a view let nobody in', () => {
  const given = { id: '1', role: 'reader' }
  assert.deepEqual(
    granteesOf([
      { ...given, type: 'user', emailAddress: 'Bob@Example.com' },
      { ...given, type: 'user', emailAddress: 'cat@example.com', deleted: true },
      { ...given, type: 'user', emailAddress: 'dan@example.com', view: 'metadata' },
      { ...given, type: 'group', emailAddress: 'team@example.com' },
      { ...given, type: 'domain', domain: 'example.com', allowFileDiscovery: false },
      { ...given, type: 'domain', domain: 'example.org', allowFileDiscovery: true },
    ]).map(({ to }) => to),
    ['?', '?', '@example.org', BOB],
  )
})
