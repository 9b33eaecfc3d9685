/**
 * files.list: which items a search looks at (`corpora`), their order, and pages.
 *
 * A page token says where the last page ended by its order, not by a number: what is added or goes between two pages
 * moves nothing else. Without an order the newest come first, so that what is edited meanwhile moves to pages that
 * were read already, as it does with the real service.
 */
import { createHash } from 'node:crypto'
import type { Access } from './access.ts'
import { badRequest, driveNotFound, invalidParameter } from './errors.ts'
import { type Item, isFolder, isTrashed, type User } from './item.ts'
import { parseQuery, type Seen } from './query.ts'
import type { DriveWorld } from './world.ts'

export type Page = { files: Seen[]; nextPageToken?: string; incompleteSearch: boolean }

type Listed = { revision: number; untilMs: number; items: readonly Seen[] }
type Found = { seen: Seen; keys: Key[] }
type Search = { corpus: Corpus; query: URLSearchParams; order: readonly Order[]; nowMs: number }
type Corpus = 'user' | 'drive' | 'allDrives' | 'domain'
type Key = number | string

const PAGE_DEFAULT = 100
const PAGE_MAX = 1000
/** One of so many is left out of an incomplete search. */
const LEFT_OUT_OF = 3
const LISTS_MAX = 100

export class Listing {
  readonly #world: DriveWorld
  /** Whether searches over all drives stop before they are through. */
  isIncomplete = false
  /** Ids of what searches by name do not find under its present name yet; everything else lists it. */
  readonly notYetNamed = new Set<string>()
  /** What each user lists, while the world stays as it is. */
  readonly #seen = new Map<string, Listed>()
  /** What each search found, likewise: the pages of a list are cut from one piece. */
  readonly #lists = new Map<string, { revision: number; untilMs: number; found: readonly Found[] }>()

  constructor(world: DriveWorld) {
    this.#world = world
  }

  list(user: User, query: URLSearchParams, nowMs: number): Page {
    const corpus = corpusOf(query)
    const size = pageSize(query, { max: PAGE_MAX, byDefault: PAGE_DEFAULT })
    const order = orderOf(query.get('orderBy'))
    const after = pageStart(query)
    const all = this.#found(user, { corpus, query, order, nowMs })
    const isLate = this.notYetNamed.size > 0 && (query.get('q')?.includes('name = ') ?? false)
    const found = isLate ? all.filter(({ seen }) => !this.notYetNamed.has(seen.item.id)) : all
    const from = after ? firstAfter(found, after, order) : 0
    const shown = found.slice(from, from + size)
    const page: Page = {
      files: shown.map(({ seen }) => seen),
      incompleteSearch: this.#isIncompleteFor(corpus),
    }
    if (from + size < found.length) page.nextPageToken = tokenOf(query, shown.at(-1)!.keys)
    return page
  }

  /** All that a search finds, in order. */
  #found(user: User, search: Search): readonly Found[] {
    const { corpus, query, order, nowMs } = search
    const matches = parseQuery(query.get('q'))
    this.#check(user, query)
    const { items, revision, untilMs } = this.#listed(user, nowMs)
    const isIncomplete = this.#isIncompleteFor(corpus)
    const key = [user.address, listOf(query), isIncomplete].join()
    const known = this.#lists.get(key)
    if (known && known.revision === revision && known.untilMs === untilMs) return known.found
    const found: Found[] = []
    for (const seen of items) {
      if (!isIn(corpus, seen, query) || !matches(seen) || (isIncomplete && isLeftOut(seen.item))) continue
      found.push({ seen, keys: order.map(({ read }) => read(seen)) })
    }
    found.sort((a, b) => compare(a.keys, b.keys, order))
    if (this.#lists.size >= LISTS_MAX) this.#lists.clear()
    this.#lists.set(key, { revision, untilMs, found })
    return found
  }

  #isIncompleteFor(corpus: Corpus): boolean {
    return this.isIncomplete && (corpus === 'allDrives' || corpus === 'domain')
  }

  #check(user: User, query: URLSearchParams): void {
    const driveId = driveOf(query)
    if (withDrives(query) && !isTrue(query, 'supportsAllDrives', 'supportsTeamDrives')) {
      throw forbiddenCombination('includeItemsFromAllDrives', 'requires the supportsAllDrives parameter.')
    }
    if (driveId !== null) this.#checkDrive(user, driveId)
  }

  #checkDrive(user: User, driveId: string): void {
    const root = this.#world.drives.get(driveId)
    if (!root || !this.#world.access(user, root)) throw driveNotFound(driveId)
  }

  #listed(user: User, nowMs: number): Listed {
    const { revision } = this.#world
    const known = this.#seen.get(user.address)
    if (known && known.revision === revision && nowMs < known.untilMs) return known
    const items: Seen[] = []
    let untilMs = Number.POSITIVE_INFINITY
    for (const item of this.#world.items.values()) {
      for (const { expiresMs } of item.permissions.values()) {
        if (expiresMs !== undefined && expiresMs > nowMs) untilMs = Math.min(untilMs, expiresMs)
      }
      if (item.isRoot) continue
      const access = this.#world.access(user, item)
      if (access?.isListed) items.push({ item, access, user })
    }
    const listed = { revision, untilMs, items }
    this.#seen.set(user.address, listed)
    return listed
  }
}

/** By being a member of the shared drive, rather than by a share of the item. */
function isMemberAccess({ through }: Access): boolean {
  return through.some(({ on }) => on.isRoot && on.driveId !== undefined)
}

function isIn(corpus: Corpus, { item, access, user }: Seen, query: URLSearchParams): boolean {
  const { driveId } = item
  if (driveId !== undefined && !withDrives(query)) return false
  // What others trashed in their My Drive is nobody else's business.
  if (driveId === undefined && item.owner !== user.address && isTrashed(item)) return false
  if (corpus === 'drive') return driveId === driveOf(query) && isMemberAccess(access)
  if (corpus === 'domain') return access.through.some(({ permission }) => permission.isDiscoverable === true)
  const isOwn =
    item.openedBy.has(user.address) ||
    access.through.some(({ permission, on }) => {
      const isPersonal = permission.type === 'user' || permission.type === 'group'
      return isPersonal && !(on.isRoot && on.driveId !== undefined)
    })
  return isOwn || (corpus === 'allDrives' && isMemberAccess(access))
}

function driveOf(query: URLSearchParams): string | null {
  return query.get('driveId') ?? query.get('teamDriveId')
}

function withDrives(query: URLSearchParams): boolean {
  return isTrue(query, 'includeItemsFromAllDrives', 'includeTeamDriveItems')
}

function corpusOf(query: URLSearchParams): Corpus {
  const text = query.get('corpora') ?? query.get('corpus') ?? 'user'
  const isWide = withDrives(query)
  switch (text) {
    case 'user':
    case 'domain':
      return text
    case 'drive':
    case 'teamDrive':
      if (driveOf(query) === null) {
        throw forbiddenCombination('driveId', 'must be specified for the drive corpus.')
      }
      if (!isWide)
        throw forbiddenCombination('includeItemsFromAllDrives', 'must be true for the drive corpus.')
      return 'drive'
    case 'allDrives':
    case 'allTeamDrives':
      if (!isWide)
        throw forbiddenCombination('includeItemsFromAllDrives', 'must be true for the allDrives corpus.')
      return 'allDrives'
    default:
      throw invalidParameter('corpora', `Invalid value '${text}'.`)
  }
}

function forbiddenCombination(name: string, what: string): ReturnType<typeof badRequest> {
  return badRequest(`The ${name} parameter ${what}`, 'invalid')
}

export function isTrue(query: URLSearchParams, ...names: readonly string[]): boolean {
  return names.some((name) => query.get(name) === 'true')
}

export function pageSize(
  query: URLSearchParams,
  { max, byDefault }: { max: number; byDefault: number },
): number {
  const text = query.get('pageSize')
  if (text === null) return byDefault
  const size = Number(text)
  if (!/^\d+$/.test(text) || size < 1 || size > max) {
    throw invalidParameter(
      'pageSize',
      `Invalid value '${text}'. Values must be within the range: [1, ${max}]`,
    )
  }
  return size
}

type Order = { read: (seen: Seen) => Key; isDown: boolean }

const sortKeys: Record<string, (seen: Seen) => Key> = {
  createdTime: ({ item }) => item.createdMs,
  folder: ({ item }) => (isFolder(item) ? 0 : 1),
  modifiedByMeTime: ({ item, user }) => (item.modifiedBy === user.address ? item.modifiedMs : 0),
  modifiedTime: ({ item }) => item.modifiedMs,
  name: ({ item }) => item.name.toLowerCase(),
  name_natural: ({ item }) => item.name.toLowerCase().replace(/\d+/g, (digits) => digits.padStart(12, '0')),
  quotaBytesUsed: ({ item }) => item.content?.digests.size ?? 0,
  recency: ({ item, user }) => Math.max(item.modifiedMs, item.openedBy.get(user.address) ?? 0),
  sharedWithMeTime: ({ item, user }) => item.sharedAt.get(user.address)?.atMs ?? 0,
  starred: ({ item, user }) => (item.starredBy.has(user.address) ? 0 : 1),
  viewedByMeTime: ({ item, user }) => item.openedBy.get(user.address) ?? 0,
}

function orderOf(text: string | null): Order[] {
  const wanted = text === null || text === '' ? ['modifiedTime desc'] : text.split(',')
  const order = wanted.map((piece): Order => {
    const [name = '', direction, more] = piece.trim().split(/\s+/)
    const read = Object.hasOwn(sortKeys, name) ? sortKeys[name] : undefined
    if (!read || more !== undefined || (direction !== undefined && direction !== 'desc')) {
      throw invalidParameter('orderBy', `Invalid value '${piece.trim()}'.`)
    }
    return { read, isDown: direction === 'desc' }
  })
  return [...order, { read: ({ item }) => item.id, isDown: false }]
}

function compare(one: readonly Key[], other: readonly Key[], order: readonly Order[]): number {
  for (const [at, { isDown }] of order.entries()) {
    const [a, b] = [one[at]!, other[at]!]
    if (a === b) continue
    return a < b === isDown ? 1 : -1
  }
  return 0
}

/** Where a page begins that goes on after these keys. */
function firstAfter(found: readonly Found[], after: readonly Key[], order: readonly Order[]): number {
  let [from, to] = [0, found.length]
  while (from < to) {
    const middle = (from + to) >> 1
    if (compare(found[middle]!.keys, after, order) > 0) to = middle
    else from = middle + 1
  }
  return from
}

const TOKEN_PREFIX = '~!!~'

/** Whatever decides what is listed: a token is good for the same list only. */
function listOf(query: URLSearchParams): string {
  const names = ['q', 'orderBy', 'corpora', 'corpus', 'driveId', 'teamDriveId', 'spaces']
  const wide = withDrives(query)
  return createHash('sha256')
    .update(JSON.stringify([wide, ...names.map((name) => query.get(name))]))
    .digest('base64url')
    .slice(0, 12)
}

function tokenOf(query: URLSearchParams, keys: readonly Key[]): string {
  return TOKEN_PREFIX + Buffer.from(JSON.stringify([listOf(query), keys])).toString('base64url')
}

function pageStart(query: URLSearchParams): Key[] | undefined {
  const token = query.get('pageToken')
  if (token === null || token === '') return undefined
  try {
    if (!token.startsWith(TOKEN_PREFIX)) throw new TypeError('no token of ours')
    const [list, keys] = JSON.parse(Buffer.from(token.slice(TOKEN_PREFIX.length), 'base64url').toString())
    if (list === listOf(query) && Array.isArray(keys)) return keys
  } catch {
    // Refused below like a token of another list.
  }
  throw invalidParameter('pageToken')
}

function isLeftOut({ id }: Item): boolean {
  let sum = 0
  for (const letter of id) sum = (Math.imul(sum, 31) + letter.charCodeAt(0)) >>> 0
  return sum % LEFT_OUT_OF === 0
}
