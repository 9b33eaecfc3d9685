/** What the ledger alone tells of folders. */
import type { Need } from '../../app/need.ts'
import type { AppLook } from '../../app/runtime.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { streamOf } from './folder-pair.ts'
import { fileStatus } from './status.ts'
import { FileStore } from './store/file-store.ts'

export async function lookAtFiles(ledger: Ledger): Promise<AppLook> {
  const store = await FileStore.open(ledger)
  return {
    /** The ledger keeps the streams of folders that nobody keeps in step any more: they would be news to nobody. */
    async shownStreams(rows) {
      const kept = new Set((await store.folderPairs()).map(({ name }) => streamOf(name)))
      return rows.filter(({ name }) => kept.has(name))
    },
    /** Conflicts and deletions that wait for a person. */
    async needs() {
      const needs: Need[] = []
      for (const { name } of await store.folderPairs()) {
        const { state, text } = await fileStatus({ store, ledger }, name)
        if (state === 'needs you') needs.push({ stream: streamOf(name), text })
      }
      return needs
    },
  }
}
