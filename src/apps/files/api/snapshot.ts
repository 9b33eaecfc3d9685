/** What live pages are told of files about once a second, where it changed. */

import { readFolderPairs } from './folder-pairs.ts'
import type { FilesServices } from './route.ts'
import type { FilesSnapshot } from './schemas.ts'
import { readTransfers } from './transfers.ts'

const TRANSFERS_MAX = 30

export async function readSnapshot(services: FilesServices): Promise<FilesSnapshot> {
  return {
    drives: await readFolderPairs(services),
    transfers: await readTransfers(services, { limit: TRANSFERS_MAX }),
  }
}
