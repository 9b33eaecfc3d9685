/**
 * Random histories of sharing: people write, share, move, trash and take back, in folders, limited folders, shared drives
 * and groups. Each act says whether anything but a listing can find it: members of groups and the end of an access are
 * told nowhere.
 */
import { UsageError } from '../../base/errors.ts'
import type { Random } from '../../base/random.ts'
import type { Sim } from '../../sim/start.ts'

type World = Sim['drive']['world']
type Item = ReturnType<World['item']>

/** `untold`: only a listing finds it. `aheadMs`: so much later, for who has the clock. `id`: what it happened to. */
export type Act = { text: string; untold?: boolean; aheadMs?: number; id?: string }

export type HistoryPlace = {
  world: World
  random: Random
  people: readonly string[]
  /** Addresses of groups. */
  groups: readonly string[]
  nowMs: () => number
}

const HOUR_MS = 3_600_000
const TRIES_MAX = 20
const DOC = 'application/vnd.google-apps.document'
const FOLDER = 'application/vnd.google-apps.folder'
const SHORTCUT = 'application/vnd.google-apps.shortcut'

/** One act, whichever is possible. */
export function actOnce(place: HistoryPlace, n: number): Act {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    try {
      const act = pick(place.random, ACTS)(place, n)
      if (act) return act
    } catch (thrown) {
      // What people cannot do they do not do.
      if (!(thrown instanceof UsageError)) throw thrown
    }
  }
  return { text: 'nothing' }
}

export function pick<T>(random: Random, list: readonly T[]): T {
  return list[Math.floor(random() * list.length)]!
}

type MakeAct = (place: HistoryPlace, n: number) => Act | undefined

const create: MakeAct = (place, n) => {
  const { world, random, people } = place
  const by = pick(random, people)
  const parent = random() < 0.6 ? pickItem(place, isOpenFolder) : undefined
  const isDoc = random() < 0.3
  const name = isDoc ? `Paper ${n}` : `Text ${n}.txt`
  const made = world.create({
    name,
    by,
    content: `Words number ${n} by ${by}`,
    ...(parent && { parent: parent.id }),
    ...(isDoc && { mimeType: DOC }),
  })
  return { text: `${by} writes ${name} (${made.id}) in ${parent?.name ?? 'My Drive'}` }
}

const makeFolder: MakeAct = (place, n) => {
  const { world, random, people } = place
  const by = pick(random, people)
  const parent = random() < 0.6 ? pickItem(place, isOpenFolder) : undefined
  world.createFolder({ name: `Folder ${n}`, by, ...(parent && { parent: parent.id }) })
  return { text: `${by} makes Folder ${n} in ${parent?.name ?? 'My Drive'}` }
}

const makeShortcut: MakeAct = (place, n) => {
  const { world, random, people } = place
  const target = pickItem(place, ({ mimeType }) => mimeType !== FOLDER && mimeType !== SHORTCUT)
  if (!target) return undefined
  const by = pick(random, people)
  world.create({ name: `Shortcut ${n}`, by, mimeType: SHORTCUT, target: target.id })
  return { text: `${by} makes a shortcut to ${target.name}` }
}

const share: MakeAct = (place) => {
  const { world, random, people, groups, nowMs } = place
  const item = pickItem(place, ({ isRoot, driveId }) => !isRoot || driveId !== undefined)
  if (!item) return undefined
  const role = item.isRoot
    ? pick(random, ['reader', 'writer', 'organizer'] as const)
    : pick(random, ['reader', 'commenter', 'writer'] as const)
  const kind = item.isRoot
    ? pick(random, ['user', 'group'] as const)
    : pick(random, ['user', 'user', 'user', 'group', 'domain', 'anyone'] as const)
  const expires = !item.isRoot && kind === 'user' && random() < 0.15 ? { expiresMs: nowMs() + HOUR_MS } : {}
  const whom =
    kind === 'user'
      ? { email: pick(random, people) }
      : kind === 'group'
        ? { email: pick(random, groups) }
        : kind === 'domain'
          ? { domain: 'example.com', isDiscoverable: random() < 0.5 }
          : { isDiscoverable: false }
  if ('email' in whom && whom.email === item.owner) return undefined
  if (
    kind === 'user' &&
    [...item.permissions.values()].some(({ email }) => 'email' in whom && email === whom.email)
  )
    return undefined
  world.share(item.id, { type: kind, role, ...whom, ...expires })
  return {
    text: `${item.name} is shared with ${kind} ${JSON.stringify(whom)} as ${role}${'expiresMs' in expires ? ' for an hour' : ''}`,
  }
}

const unshare: MakeAct = (place) => {
  const { world, random } = place
  const item = pickItem(place, ({ permissions }) =>
    [...permissions.values()].some(({ role }) => role !== 'owner'),
  )
  if (!item) return undefined
  const given = pick(
    random,
    [...item.permissions.values()].filter(({ role }) => role !== 'owner'),
  )
  // A drive without an organizer has nobody who could look after it.
  if (item.isRoot && given.role === 'organizer') return undefined
  world.unshare(item.id, given.id)
  return { text: `${item.name} is taken from ${given.email ?? given.domain ?? 'anyone'}`, id: item.id }
}

/** Taken from somebody, and changed before anybody has looked: the document itself, or one that lies below. */
const unshareAndEdit: MakeAct = (place, n) => {
  const unshared = unshare(place, n)
  if (!unshared?.id) return unshared
  const below = (item: Item): boolean =>
    item.id === unshared.id || (item.parent !== undefined && below(item.parent))
  const item = pickItem(place, (one) => one.content !== undefined && below(one))
  if (!item) return unshared
  place.world.edit(item.id, `Words number ${n}, written behind a closed door`)
  return { ...unshared, text: `${unshared.text}, and then ${item.name} is edited` }
}

const limit: MakeAct = (place) => {
  const folder = pickItem(place, (item) => isOpenFolder(item) && !item.isRoot)
  if (!folder) return undefined
  place.world.limit(folder.id, !folder.isLimited)
  return { text: `${folder.name} is ${folder.isLimited ? 'limited' : 'open again'}` }
}

const move: MakeAct = (place) => {
  const item = pickItem(place, ({ isRoot }) => !isRoot)
  const to = pickItem(place, isOpenFolder)
  if (!item || !to || item.driveId !== to.driveId || (item.owner !== undefined && to.owner !== item.owner))
    return undefined
  place.world.move(item.id, to.id)
  return { text: `${item.name} moves to ${to.name}` }
}

const trash: MakeAct = (place) => {
  const item = pickItem(place, ({ isRoot, trashed }) => !isRoot && !trashed)
  if (!item) return undefined
  place.world.trash(item.id)
  return { text: `${item.name} is trashed` }
}

const untrash: MakeAct = (place) => {
  const item = pickItem(place, ({ trashed }) => trashed !== undefined)
  if (!item) return undefined
  place.world.untrash(item.id)
  return { text: `${item.name} is taken out of the trash` }
}

const remove: MakeAct = (place) => {
  const item = pickItem(place, ({ isRoot }) => !isRoot)
  if (!item) return undefined
  place.world.delete(item.id)
  return { text: `${item.name} is deleted` }
}

const edit: MakeAct = (place, n) => {
  const item = pickItem(place, ({ content }) => content !== undefined)
  if (!item) return undefined
  place.world.edit(item.id, `Words number ${n}, written anew`)
  return { text: `${item.name} is edited` }
}

const rename: MakeAct = (place, n) => {
  const item = pickItem(place, ({ isRoot }) => !isRoot)
  if (!item) return undefined
  place.world.rename(item.id, `${item.name.replace(/ renamed.*/, '')} renamed ${n}`)
  return { text: `${item.name} has a new name` }
}

const regroup: MakeAct = ({ world, random, people, groups }) => {
  const group = pick(random, groups)
  const members = people.filter(() => random() < 0.5)
  world.setMembers(group, members)
  return { text: `${group} are ${members.join(', ') || 'nobody'}`, untold: true }
}

const look: MakeAct = (place) => {
  const item = pickItem(place, ({ mimeType }) => mimeType !== FOLDER)
  if (!item) return undefined
  const address = pick(place.random, place.people)
  place.world.open(address, item.id)
  return { text: `${address} looks at ${item.name}` }
}

const wait: MakeAct = () => ({ text: 'two hours pass', untold: true, aheadMs: 2 * HOUR_MS })

/** What is done often stands here several times. */
const ACTS: readonly MakeAct[] = [
  ...[create, create, create, create, create, makeFolder, makeFolder, makeShortcut],
  ...[share, share, share, share, share, unshare, unshareAndEdit, unshareAndEdit, limit, move, move],
  ...[trash, untrash, remove, edit, edit, rename, regroup, look, wait],
]

function pickItem({ world, random }: HistoryPlace, is: (item: Item) => boolean): Item | undefined {
  const items = [...world.items.values()].filter((item) => !item.isDeleted && isPlace(item) && is(item))
  return items.length === 0 ? undefined : pick(random, items)
}

/** The top of a My Drive is nobody's to share. */
function isPlace({ isRoot, driveId }: Item): boolean {
  return !isRoot || driveId !== undefined
}

function isOpenFolder({ mimeType, trashed, isRoot, driveId }: Item): boolean {
  return mimeType === FOLDER && !trashed && (!isRoot || driveId !== undefined)
}
