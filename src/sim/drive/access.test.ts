/** What the service answers about access against the oracle, which is written the other way round. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { FakeClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import { seededRandom } from '../../base/random.ts'
import { type Item, isFolder, type Role } from './item.ts'
import { Listing } from './listing.ts'
import { whoSees } from './oracle.ts'
import { DriveWorld } from './world.ts'

const USERS = ['ann@example.com', 'bob@example.com', 'cy@example.com', 'eve@elsewhere.org']
const GROUPS = ['one@example.com', 'two@example.com', 'three@example.com']
const ALL_DRIVES = { supportsAllDrives: 'true', includeItemsFromAllDrives: 'true', q: 'trashed = false' }
const ROLES: readonly Role[] = ['reader', 'commenter', 'writer']
const RUNS = 200
const STEPS_MAX = 80

type Step = { what: number; a: number; b: number; c: number }

const step = fc.record({
  what: fc.nat(19),
  a: fc.nat(1000),
  b: fc.nat(1000),
  c: fc.nat(1000),
})

function newWorld(): { world: DriveWorld; clock: FakeClock; listing: Listing } {
  const clock = new FakeClock()
  const world = new DriveWorld({ clock, random: seededRandom(7) })
  for (const user of USERS) world.addUser(user)
  for (const address of GROUPS) world.addGroup({ address, members: [USERS[1]!] })
  for (const name of ['Red', 'Blue'])
    world.addDrive({ name, members: [{ email: USERS[0]!, role: 'organizer' }] })
  return { world, clock, listing: new Listing(world) }
}

function pick<Value>(list: readonly Value[], at: number): Value {
  return list[at % list.length]!
}

/** Anything that people do; what makes no sense is refused, and that is all right. */
async function act(world: DriveWorld, clock: FakeClock, { what, a, b, c }: Step): Promise<void> {
  const items = [...world.items.values()]
  const folders = items.filter(isFolder)
  const own = items.filter(({ isRoot }) => !isRoot)
  const drives = [...world.drives.values()]
  const item = pick(own.length > 0 ? own : items, a)
  const role = pick(ROLES, c)
  switch (what) {
    case 0:
    case 1:
      world.createFolder({ name: `folder ${items.length}`, parent: pick(folders, a).id, by: pick(USERS, b) })
      return
    case 2:
    case 3:
    case 4:
      world.create({ name: `file ${items.length}`, parent: pick(folders, a).id, by: pick(USERS, b) })
      return
    case 5:
    case 6:
      world.share(item.id, { type: 'user', role, email: pick(USERS, b) })
      return
    case 7:
      world.share(item.id, { type: 'group', role, email: pick(GROUPS, b) })
      return
    case 8:
      world.share(item.id, {
        type: 'domain',
        role,
        domain: pick(['example.com', 'elsewhere.org'], b),
        isDiscoverable: c % 2 === 0,
      })
      return
    case 9:
      world.share(item.id, { type: 'anyone', role, isDiscoverable: c % 4 === 0 })
      return
    case 10:
      world.share(item.id, {
        type: 'user',
        role,
        email: pick(USERS, b),
        expiresMs: clock.now() + 1 + (c % 5) * 1000,
      })
      return
    case 11: {
      const shared = pick(items, a)
      const [whose] = [...shared.permissions.keys()].slice(b % Math.max(1, shared.permissions.size))
      if (whose !== undefined) world.unshare(shared.id, whose)
      return
    }
    case 12:
      world.move(item.id, pick(folders, b).id, pick(USERS, c))
      return
    case 13:
      if (item.trashed) world.untrash(item.id)
      else world.trash(item.id)
      return
    case 14:
      if (b % 3 === 0) world.delete(item.id)
      return
    case 15:
      world.limit(pick(folders, a).id, b % 3 !== 0)
      return
    case 16:
      world.setMembers(pick(GROUPS, a), [pick([...USERS, ...GROUPS], b), pick([...USERS, ...GROUPS], c)])
      return
    case 17:
      world.share(pick(drives, a).id, {
        type: b % 4 === 0 ? 'group' : 'user',
        role: pick(['reader', 'writer', 'organizer'] as const, c),
        email: b % 4 === 0 ? pick(GROUPS, b) : pick(USERS, b),
      })
      return
    case 18:
      if (c % 2 === 0) world.open(pick(USERS, b), item.id)
      else world.share(item.id, { type: 'user', role: 'owner', email: pick(USERS, b) })
      return
    default:
      await clock.advance(700 + (a % 5) * 500)
  }
}

async function tryTo(run: () => Promise<void>): Promise<void> {
  try {
    await run()
  } catch (thrown) {
    if (!(thrown instanceof TidemarkError)) throw thrown
  }
}

/** Every file that a user can come across by listing whatever can be listed. */
function listed({ world, listing, clock }: ReturnType<typeof newWorld>, address: string): string[] {
  const user = world.user(address)
  const found = new Set<string>()
  const add = (query: Record<string, string>): void => {
    let pageToken: string | undefined
    do {
      const params = new URLSearchParams({
        ...ALL_DRIVES,
        ...query,
        pageSize: '7',
        ...(pageToken ? { pageToken } : {}),
      })
      const page = listing.list(user, params, clock.now())
      for (const { item } of page.files) if (!isFolder(item)) found.add(item.id)
      pageToken = page.nextPageToken
    } while (pageToken !== undefined)
  }
  add({})
  add({ corpora: 'domain' })
  for (const root of world.drives.values()) {
    if (world.access(user, root)) add({ corpora: 'drive', driveId: root.id })
  }
  const all = new Set(found)
  add({ corpora: 'allDrives' })
  assert.deepEqual(found, all, 'a search over all drives finds nothing else')
  return [...found].sort()
}

function readable({ world }: ReturnType<typeof newWorld>, address: string): string[] {
  const isReadable = (item: Item): boolean => {
    const access = world.access(world.user(address), item)
    return access !== undefined && !access.isMetadataOnly
  }
  return [...world.items.values()]
    .filter((item) => !isFolder(item) && isReadable(item))
    .map(({ id }) => id)
    .sort()
}

describe('access', () => {
  test('after any history every user lists and reads exactly what the oracle says', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 10, maxLength: STEPS_MAX }), async (steps) => {
        const made = newWorld()
        for (const [at, one] of steps.entries()) {
          await tryTo(() => act(made.world, made.clock, one))
          if (at % 10 !== 9 && at !== steps.length - 1) continue
          const truth = whoSees(made.world, made.clock.now())
          for (const address of USERS) {
            assert.deepEqual(listed(made, address), truth[address]!.find, `${address} finds`)
            assert.deepEqual(readable(made, address), truth[address]!.read, `${address} reads`)
          }
        }
      }),
      { numRuns: RUNS, seed: 4 },
    )
  })

  test('the role is the highest of all ways, and the oracle names each of them', () => {
    const { world, clock } = newWorld()
    const [ann, bob] = USERS as [string, string]
    const top = world.createFolder({ name: 'Top', by: ann })
    const file = world.create({ name: 'file', by: ann, parent: top.id })
    world.share(top.id, { type: 'group', role: 'writer', email: GROUPS[0]! })
    world.share(file.id, { type: 'user', role: 'reader', email: bob })
    assert.equal(world.access(world.user(bob), file)!.role, 'writer')
    const seen = whoSees(world, clock.now())[bob]!.items.find(({ id }) => id === file.id)!
    assert.equal(seen.role, 'writer')
    assert.deepEqual(
      seen.through.map(({ type, role, on, isInherited }) => [type, role, on, isInherited]).sort(),
      [
        ['group', 'writer', top.id, true],
        ['user', 'reader', file.id, false],
      ],
    )
  })

  test('organizers pass a limited-access folder of their drive, other members see its name only', () => {
    const { world } = newWorld()
    const [ann, bob, cy] = USERS as [string, string, string]
    const root = [...world.drives.values()][0]!
    world.share(root.id, { type: 'user', role: 'fileOrganizer', email: bob })
    const folder = world.createFolder({ name: 'Board', parent: root.id, by: ann })
    const file = world.create({ name: 'salaries', parent: folder.id, by: ann })
    world.limit(folder.id, true)
    world.share(folder.id, { type: 'user', role: 'reader', email: cy })
    const roles = [ann, bob, cy].map((address) => world.access(world.user(address), file)?.role)
    assert.deepEqual(roles, ['organizer', undefined, 'reader'])
    assert.equal(world.access(world.user(bob), folder)!.isMetadataOnly, true)
  })
})

describe('changes', () => {
  const plain = fc.record({
    what: fc.constantFrom(2, 3, 5, 6, 11, 13, 14, 17, 21),
    a: fc.nat(1000),
    b: fc.nat(1000),
    c: fc.nat(1000),
  })

  /** Files in My Drives and in shared drives, shared one by one: what changes.list tells whole. */
  async function actPlainly({ world, clock }: ReturnType<typeof newWorld>, one: Step): Promise<void> {
    const files = [...world.items.values()].filter((item) => !isFolder(item))
    const roots = [...world.users.values()].map(({ rootId }) => world.item(rootId))
    const file = files.length > 0 ? pick(files, one.a) : undefined
    if (one.what === 2 || one.what === 3) {
      const parent = pick([...roots, ...world.drives.values()], one.a)
      world.create({ name: `file ${files.length}`, parent: parent.id, by: parent.owner ?? USERS[0]! })
    } else if (one.what === 17) {
      const drive = pick([...world.drives.values()], one.a)
      const email = pick(USERS.slice(1), one.b)
      if (one.c % 3 === 0) world.unshare(drive.id, email)
      else world.share(drive.id, { type: 'user', role: 'reader', email })
    } else if (file && one.what === 21) world.edit(file.id, `text ${one.b}`)
    else if (file && one.what === 11) {
      const shared = [...file.permissions.values()].filter(({ role }) => role !== 'owner')
      if (shared.length > 0) world.unshare(file.id, pick(shared, one.b).id)
    } else if (file)
      await act(world, clock, {
        ...one,
        a: [...world.items.values()].filter(({ isRoot }) => !isRoot).indexOf(file),
      })
  }

  test('who follows the changes of files, and lists what they join, knows what a listing shows', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(plain, { minLength: 5, maxLength: 50 }), async (steps) => {
        const made = newWorld()
        const mirrors = USERS.map((address) => new Mirror(made.world, address))
        for (const [at, one] of steps.entries()) {
          await tryTo(() => actPlainly(made, one))
          if (at % 8 !== 7 && at !== steps.length - 1) continue
          for (const mirror of mirrors) {
            mirror.follow()
            assert.deepEqual(mirror.found(), listed(made, mirror.address), mirror.address)
          }
        }
      }),
      { numRuns: RUNS, seed: 11 },
    )
  })
})

/** A client that listed once and follows the logs since. */
class Mirror {
  readonly address: string
  readonly #world: DriveWorld
  /** Ids that are there, by the log that said so. */
  readonly #logs = new Map<string, { token: number; ids: Set<string> }>()

  constructor(world: DriveWorld, address: string) {
    this.#world = world
    this.address = address
    this.#logs.set('', { token: world.log({ user: address }).next, ids: new Set() })
    for (const id of world.drives.keys())
      if (world.access(world.user(address), world.drive(id))) this.#join(id)
  }

  follow(): void {
    for (const drive of [...this.#logs.keys()]) {
      const { token, ids } = this.#logs.get(drive) ?? { token: 0, ids: new Set<string>() }
      if (!this.#logs.has(drive)) continue
      const log = drive === '' ? this.#world.log({ user: this.address }) : this.#world.log({ drive })
      const page = log.page(String(token), 10_000)!
      assert.equal(page.isLast, true)
      for (const { kind, id } of page.changes) {
        const item = this.#world.items.get(id)
        const access = item && this.#world.access(this.#world.user(this.address), item)
        if (kind === 'drive') {
          if (access && !this.#logs.has(id)) this.#join(id)
          if (!access) this.#logs.delete(id)
        } else if (access && !item?.trashed) ids.add(id)
        else ids.delete(id)
      }
      const own = this.#logs.get(drive)
      if (own) own.token = page.next
    }
  }

  found(): string[] {
    return [...new Set([...this.#logs.values()].flatMap(({ ids }) => [...ids]))].sort()
  }

  /** A shared drive is crawled when it is joined. */
  #join(id: string): void {
    const ids = [...this.#world.children(this.#world.drive(id))].filter(
      (item) => !isFolder(item) && !item.trashed,
    )
    this.#logs.set(id, {
      token: this.#world.log({ drive: id }).next,
      ids: new Set(ids.map((item) => item.id)),
    })
  }
}
