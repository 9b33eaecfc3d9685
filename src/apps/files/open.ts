/** The sync of files in a process: its tables, its folders, and its kinds of jobs. */
import type { AppPlace } from '../../app/runtime.ts'
import { openFileSync } from './index.ts'
import { filesRuntime, type OpenFiles } from './runtime.ts'
import { filesSettingsOf } from './settings.ts'
import { filesSources } from './sources.ts'
import { lookAtFiles } from './streams-look.ts'
import { startFolderPairs } from './work.ts'

export async function openFiles(place: AppPlace): Promise<OpenFiles> {
  const { config } = place
  const files = await openFileSync({ ...place, settings: filesSettingsOf(config) })
  return {
    ...files,
    ...(await lookAtFiles(place.ledger)),
    sources: filesSources(place, files),
    work: (runtime, options) => startFolderPairs(filesRuntime(runtime), options),
    async reload() {
      Object.assign(files.settings, filesSettingsOf(config))
      await files.pairs.reload()
    },
  }
}
