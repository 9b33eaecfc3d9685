/** What is in a folder that nobody keeps in step: everything in it is new. For a dry run; it makes no marker. */
import { join } from 'node:path'
import type { Filter } from '../filter.ts'
import { OWN_FOLDER } from '../names.ts'
import type { LocalObservation } from '../store/contract.ts'
import { nameKey, ROOT_ID } from '../trees.ts'
import { listFolder, statAt } from './listing.ts'

const BATCH = 1_000

export type WalkInput = {
  path: string
  filter: Filter
  /** The first of `count` ids for new rows. */
  takeIds: (count: number) => Promise<number>
}

type Task = { id: number; names: string[] }

/** Nothing where there is no such folder. Folders before what is in them. */
export async function* walkUnmarked({
  path,
  filter,
  takeIds,
}: WalkInput): AsyncGenerator<LocalObservation[]> {
  let batch: LocalObservation[] = []
  const tasks: Task[] = [{ id: ROOT_ID, names: [] }]
  for (let task = tasks.pop(); task; task = tasks.pop()) {
    const listing = listFolder(join(path, ...task.names))
    if ('isGone' in listing) continue
    let id = await takeIds(Math.max(1, listing.names.length))
    for (const [at, name] of listing.names.entries()) {
      if (task.id === ROOT_ID && nameKey(name) === OWN_FOLDER) continue
      const kind = listing.types[at]!
      const type = kind === 'file' || kind === 'folder' ? kind : 'other'
      const names = [...task.names, name]
      const stat = statAt(listing, at)
      const about = { type: type === 'folder' ? type : ('file' as const), size: stat.size }
      if (filter.excluded(names.join('/').normalize('NFC'), about) !== undefined) continue
      batch.push({ seen: 'new', id, parentId: task.id, name, type, stat })
      if (type === 'folder') tasks.push({ id, names })
      id += 1
      if (batch.length < BATCH) continue
      yield batch
      batch = []
    }
  }
  if (batch.length > 0) yield batch
}
