/**
 * Some listings have names as they stand in addresses: `a%20b` for `a b`. A file may be called `a%20b`, so a name
 * alone cannot tell. Read by itself an item has its true name: one that looks encoded is read, and what holds for
 * it holds for its page. Costs one call for each page that has such a name, and there hardly ever is one.
 */
import { TidemarkError } from '../../base/errors.ts'
import type { DriveItem } from './schema.ts'

const READS_MAX = 3

export async function trueNames(
  items: DriveItem[],
  read: (item: DriveItem) => Promise<DriveItem>,
): Promise<DriveItem[]> {
  const suspects = items.filter(({ name, deleted }) => !deleted && decodedName(name) !== name)
  if (suspects.length === 0) return items
  if (!(await areEncoded(suspects, read))) return items
  return items.map((item) => ({ ...item, name: decodedName(item.name) }))
}

async function areEncoded(
  suspects: readonly DriveItem[],
  read: (item: DriveItem) => Promise<DriveItem>,
): Promise<boolean> {
  let isAnyRead = false
  for (const suspect of suspects.slice(0, READS_MAX)) {
    try {
      const { name } = await read(suspect)
      isAnyRead = true
      if (name === suspect.name) return false
      if (name === decodedName(suspect.name)) return true
      // Renamed since: it says nothing.
    } catch (error) {
      if (!(error instanceof TidemarkError) || error.kind !== 'gone') throw error
      // Deleted since, or listed before it is given: the next one may be there.
    }
  }
  // Where none is given, the likelier: people hardly ever write names in this way.
  return !isAnyRead
}

/** The name itself where it cannot be an encoded one. */
export function decodedName(name: string | undefined): string | undefined {
  if (name === undefined || !/%[0-9a-f]{2}/i.test(name) || !/^[\x21-\x7e]+$/.test(name)) return name
  try {
    return decodeURIComponent(name)
  } catch {
    // Not a text in UTF-8, so no encoded one.
    return name
  }
}
