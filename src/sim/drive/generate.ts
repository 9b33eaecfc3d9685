/**
 * A world made from a seed: people of one company, the groups they are in, shared drives, folders in folders, and
 * documents on many subjects, shared as people share them. Nothing is written before it is read: a document is its
 * subject and a number, and its words are made from those when somebody asks.
 */
import type { Random } from '../../base/random.ts'
import { type DocumentSpec, generatedDocument } from './generate-documents.ts'
import { type KindChoice, pick } from './generate-kinds.ts'
import type { Item } from './item.ts'
import type { DriveWorld } from './world.ts'

export type GenerateOptions = {
  /** People; who is named twice is there once. */
  users?: readonly (string | { address: string; name?: string })[]
  groups?: readonly { address: string; members: readonly string[] }[]
  /** Shared drives; members by address, with their roles. */
  drives?: readonly {
    name: string
    members: readonly {
      email: string
      role: 'organizer' | 'fileOrganizer' | 'writer' | 'commenter' | 'reader'
    }[]
  }[]
  /** How many documents all of them have together. */
  documents?: number
  /** `mixed`: shared as people do it. `all`: in one shared folder that every user may read. */
  sharing?: 'mixed' | 'all'
  /**
   * `mixed`: all kinds. `readable`: those that hold text and can be read. `text`: plain texts, Markdown and native Docs
   * only.
   */
  kinds?: KindChoice
  /** When the newest was written; the beginning of this day otherwise. */
  toMs?: number
}

const DOCUMENTS_MAX = 1_000_000
const DOCUMENTS_PER_FOLDER = 25
const DAY_MS = 86_400_000
const YEARS_MS = 4 * 365 * DAY_MS
const FOLDERS = [
  'Projects',
  'Minutes',
  'Finance',
  'Contracts',
  'Travel',
  'Recipes',
  'Engineering',
  'Archive',
  'Team',
  'Plans',
  'Kunden',
  'Voyages',
]

export function generateWorld(world: DriveWorld, options: GenerateOptions, made: Making): void {
  world.quietly(() => generate(world, options, made))
}

type Making = { random: Random; nowMs: number }

function generate(world: DriveWorld, options: GenerateOptions, { random, nowMs }: Making): void {
  const { users = [], groups = [], drives = [], documents = 0, sharing = 'mixed', kinds = 'mixed' } = options
  if (!(documents >= 0 && documents <= DOCUMENTS_MAX))
    throw new RangeError(`a world has 0 to ${DOCUMENTS_MAX} documents`)
  for (const user of users) {
    if (!world.users.has(typeof user === 'string' ? user : user.address)) world.addUser(user)
  }
  for (const group of groups) world.addGroup(group)
  for (const drive of drives) world.addDrive(drive)
  if (documents === 0 || users.length === 0) return
  const addresses = [...world.users.keys()]
  // The day, not the moment: the same world all day long.
  const toMs = options.toMs ?? Math.floor(nowMs / DAY_MS) * DAY_MS
  const folders = makeFolders(world, {
    random,
    toMs,
    count: Math.ceil(documents / DOCUMENTS_PER_FOLDER),
    sharing,
  })
  for (let at = 0; at < documents; at++) {
    const folder = pick(folders, random)
    const modifiedMs = Math.floor(toMs - random() * YEARS_MS)
    const spec: DocumentSpec = { number: at, seed: Math.floor(random() * 2 ** 31), kinds }
    const { name, mimeType, content } = generatedDocument(spec)
    const by = folder.owner ?? pick(addresses, random)
    const item = world.create({
      name,
      mimeType,
      content,
      parent: folder.id,
      by,
      modifiedMs,
      createdMs: modifiedMs - 3_600_000,
    })
    if (sharing === 'mixed') shareFile(world, item, random)
  }
}

function makeFolders(
  world: DriveWorld,
  { random, toMs, count, sharing }: { random: Random; toMs: number; count: number; sharing: 'mixed' | 'all' },
): Item[] {
  const users = [...world.users.values()]
  const makeOne = (parent: string, by: string, at: number): Item =>
    world.createFolder({ name: `${pick(FOLDERS, random)} ${at + 1}`, parent, by, createdMs: toMs - YEARS_MS })
  if (sharing === 'all') {
    const top = world.createFolder({
      name: 'Shared with all',
      by: users[0]!.address,
      createdMs: toMs - YEARS_MS,
    })
    for (const { address } of users.slice(1))
      world.share(top.id, { type: 'user', role: 'reader', email: address })
    const folders = [top]
    for (let at = 1; at < count; at++) folders.push(makeOne(pick(folders, random).id, users[0]!.address, at))
    return folders
  }
  const folders: Item[] = []
  const roots = [...users.map(({ rootId }) => world.item(rootId)), ...world.drives.values()]
  for (let at = 0; at < Math.max(count, roots.length); at++) {
    const root = roots[at % roots.length]!
    const near = folders.filter((one) => one.owner === root.owner && one.driveId === root.driveId)
    const parent = near.length > 0 && random() < 0.6 ? pick(near, random) : root
    const folder = makeOne(parent.id, root.owner ?? pick(users, random).address, at)
    shareFolder(world, folder, random)
    folders.push(folder)
  }
  return folders
}

function shareFolder(world: DriveWorld, folder: Item, random: Random): void {
  const chance = random()
  const { groups } = world
  const users = [...world.users.keys()]
  if (chance < 0.35) {
    for (const email of users.filter((address) => address !== folder.owner && random() < 0.5)) {
      world.share(folder.id, { type: 'user', role: random() < 0.3 ? 'writer' : 'reader', email })
    }
  } else if (chance < 0.5 && groups.size > 0) {
    world.share(folder.id, { type: 'group', role: 'reader', email: pick([...groups.keys()], random) })
  } else if (chance > 0.93) world.limit(folder.id, true)
}

function shareFile(world: DriveWorld, item: Item, random: Random): void {
  const chance = random()
  const users = [...world.users.values()]
  const other = pick(users, random)
  if (chance < 0.08 && other.address !== item.owner) {
    world.share(item.id, { type: 'user', role: random() < 0.3 ? 'writer' : 'reader', email: other.address })
  } else if (chance > 0.98) {
    world.share(item.id, {
      type: 'domain',
      role: 'reader',
      domain: other.domain,
      isDiscoverable: random() < 0.5,
    })
  } else if (chance > 0.97) world.share(item.id, { type: 'anyone', role: 'reader' })
}
