/** The sync of files in a process: its tables, its folders, and its kinds of jobs. */
import { defineIndexing } from '../../app/documents.ts'
import type { AppPlace } from '../../app/runtime.ts'
import { WantedDocuments } from '../../search/wanted.ts'
import { filesOffer } from './documents.ts'
import { openFileSync } from './index.ts'
import { filesRuntime, type OpenFiles } from './runtime.ts'
import { filesSettingsOf } from './settings.ts'
import { filesSources } from './sources.ts'
import { lookAtFiles } from './status.ts'
import { startFolderPairs } from './work.ts'

export async function openFiles(place: AppPlace): Promise<OpenFiles> {
  const { config } = place
  const files = await openFileSync({ ...place, settings: filesSettingsOf(config) })
  const indexing =
    config.files.index === 'on'
      ? defineIndexing({
          offer: filesOffer({ files, ledger: place.ledger }),
          wanted: await WantedDocuments.open(place.ledger),
          search: place.search,
        })
      : undefined
  return {
    ...files,
    ...(await lookAtFiles(place.ledger)),
    indexing,
    jobs: [...files.jobs, ...(indexing ? [indexing.kind] : [])],
    sources: filesSources(place, { ...files, indexing }),
    work: (runtime, options) => startFolderPairs(filesRuntime(runtime), options),
    async reload() {
      Object.assign(files.settings, filesSettingsOf(config))
      await files.pairs.reload()
    },
  }
}
