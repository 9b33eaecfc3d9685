/** The file sync as a module of the server: folders, their trees, transfers, conflicts, deletions, trash. */
import type { ServerModule } from '../module.ts'
import { accountRoutes } from './accounts.ts'
import { conflictRoutes } from './conflicts.ts'
import { connectRoutes } from './connect.ts'
import { driveNeeds, driveRoutes } from './drives.ts'
import { folderAddRoutes } from './folder-add.ts'
import { heldDeleteRoutes } from './held-deletes.ts'
import { historyRoutes } from './history.ts'
import { filesSnapshotSchema } from './schemas.ts'
import { readSnapshot } from './snapshot.ts'
import { fileTools } from './tools.ts'
import { transferRoutes } from './transfers.ts'
import { trashRoutes } from './trash.ts'
import { treeRoutes } from './tree.ts'

export const filesModule: ServerModule = {
  name: 'files',
  routes: [
    ...accountRoutes,
    ...connectRoutes,
    ...driveRoutes,
    ...folderAddRoutes,
    ...treeRoutes,
    ...transferRoutes,
    ...historyRoutes,
    ...conflictRoutes,
    ...heldDeleteRoutes,
    ...trashRoutes,
  ],
  snapshot: readSnapshot,
  snapshotSchema: filesSnapshotSchema,
  tools: fileTools,
  needs: driveNeeds,
}
