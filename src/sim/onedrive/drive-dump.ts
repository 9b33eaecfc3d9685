/** All that is and was in a drive, for an oracle. */
import type { Drive } from './drive.ts'
import { type Item, type ItemKind, itemPath, sizeOf, subtree } from './item.ts'
import { cTagOf, eTagOf } from './item-json.ts'

export type DumpedItem = {
  id: string
  /** From the root; of a deleted item where it was. */
  path: string
  name: string
  parentId: string | undefined
  kind: ItemKind
  size: number
  /** Of files: QuickXorHash. */
  hash?: string
  /** What `bytesOf` gives the bytes of. */
  contentKey?: string
  eTag: string
  cTag: string
  createdMs: number
  modifiedMs: number
  fsModifiedMs: number
  versions: { id: string; hash: string; contentKey: string; size: number; modifiedMs: number }[]
}

export type DeletedItem = DumpedItem & { deletedMs: number }

export type DriveDump = {
  driveId: string
  type: 'personal' | 'business'
  rootId: string
  seq: number
  quota: { totalBytes: number; usedBytes: number; deletedBytes: number }
  /** Without the root, parents first. */
  items: DumpedItem[]
  /** Each with all that was under it. */
  recycleBin: DeletedItem[]
  /** Deleted for good. */
  purged: DeletedItem[]
}

export function dumpDrive(drive: Drive): DriveDump {
  const items: DumpedItem[] = []
  for (const item of drive.items()) if (item.parent) items.push(dumpItem(drive, item, itemPath(item)))
  return {
    driveId: drive.id,
    type: drive.type,
    rootId: drive.root.id,
    seq: drive.seq,
    quota: { totalBytes: drive.quotaBytes, usedBytes: drive.usedBytes, deletedBytes: drive.binBytes },
    items,
    recycleBin: deleted(drive, drive.recycleBin.values()),
    purged: deleted(drive, drive.purged),
  }
}

function deleted(
  drive: Drive,
  entries: Iterable<{ item: Item; path: string; deletedMs: number }>,
): DeletedItem[] {
  const found: DeletedItem[] = []
  for (const { item, path, deletedMs } of entries) {
    const own = itemPath(item)
    for (const one of subtree(item)) {
      found.push({ ...dumpItem(drive, one, path + itemPath(one).slice(own.length)), deletedMs })
    }
  }
  return found
}

function dumpItem(drive: Drive, item: Item, path: string): DumpedItem {
  const { content } = item
  return {
    id: item.id,
    path,
    name: item.name,
    parentId: item.parent?.id,
    kind: item.kind,
    size: sizeOf(item),
    ...(content ? { hash: content.hash, contentKey: content.key } : {}),
    eTag: eTagOf(drive, item),
    cTag: cTagOf(drive, item),
    createdMs: item.createdMs,
    modifiedMs: item.modifiedMs,
    fsModifiedMs: item.fsModifiedMs,
    versions: item.versions.map(({ id, content: { hash, key, size }, modifiedMs }) => ({
      id,
      hash,
      contentKey: key,
      size,
      modifiedMs,
    })),
  }
}
