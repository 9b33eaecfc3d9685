/** The file sync as a module of the server: folders, their trees, transfers, conflicts, deletions, trash. */
import type { ServerModule } from '../../../app/module.ts'
import { resumeSignedIn } from '../../../app/signed-in.ts'
import { accountSources, SERVICE } from '../folder-pair.ts'
import { conflictRoutes } from './conflicts.ts'
import { folderRoutes, readSnapshot } from './folders.ts'
import { heldDeleteRoutes } from './held-deletes.ts'
import { historyRoutes } from './history.ts'
import type { FilesServices } from './route.ts'
import { fileAccountSchema, filesSnapshotSchema } from './schemas.ts'
import { fileTools } from './tools.ts'
import { transferRoutes } from './transfers.ts'
import { trashRoutes } from './trash.ts'
import { treeRoutes } from './tree.ts'

export const filesModule: ServerModule<FilesServices> = {
  name: 'files',
  routes: [
    ...folderRoutes,
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
  accounts: {
    schema: fileAccountSchema,
    async view({ files }, accounts) {
      const pairs = await files.store.folderPairs()
      return accounts.map(({ name }) => ({
        folders: pairs.filter(({ account }) => account === name).map((pair) => pair.name),
      }))
    },
    async changed(services) {
      const { pairs, store } = services.files
      await pairs.reload()
      await resumeSignedIn(services, SERVICE, accountSources(await store.folderPairs()))
    },
    next: 'Choose a folder for it on the page of settings.',
  },
}
