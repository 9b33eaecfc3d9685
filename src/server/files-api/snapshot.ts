/** What live pages are told of files about once a second, where it changed. */
import type { Services } from '../services.ts'
import { readDrives } from './drives.ts'
import type { FilesSnapshot } from './schemas.ts'
import { readTransfers } from './transfers.ts'

const TRANSFERS_MAX = 30

export async function readSnapshot(services: Services): Promise<FilesSnapshot> {
  return {
    drives: await readDrives(services),
    transfers: await readTransfers(services, { limit: TRANSFERS_MAX }),
  }
}
