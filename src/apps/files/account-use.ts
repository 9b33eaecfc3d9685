/** What the sync of files makes of a OneDrive account: the folders that are kept in step with it. */
import type { AccountUse } from '../../app/accounts/account-use.ts'
import { UsageError } from '../../base/errors.ts'
import { plural } from '../../base/wording.ts'
import type { Account } from '../../ledger/accounts.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { FolderPairRow } from './store/contract.ts'
import { FileStore } from './store/file-store.ts'

export const filesAccountUse: AccountUse = {
  async keeps(account, { ledger }) {
    const folders = await pairsWithAccount(ledger, account)
    return folders.length === 0 ? 'no folder' : namesAndRoots(folders)
  },

  async remains(account, { ledger }) {
    const folders = await pairsWithAccount(ledger, account)
    return {
      question: 'All files stay, here and in OneDrive.',
      text:
        folders.length === 0
          ? 'No folder was kept in step with it.'
          : `${namedPairs(folders)} ${plural(folders.length, 'stays as it is', 'stay as they are')}, and so do the files in OneDrive; until the account is connected again, neither side hears of the other.`,
      details: { folders: folders.map(({ name, root }) => ({ name, root })) },
      inUse: folders.length === 0 ? undefined : inUse(account, folders),
    }
  },

  limitOf: (level) => (level === 'readonly' ? 'nothing can be uploaded with that' : ''),
}

/** On any machine. */
async function pairsWithAccount(ledger: Ledger, { name }: Account): Promise<FolderPairRow[]> {
  const pairs = await (await FileStore.open(ledger)).folderPairs()
  return pairs.filter(({ account }) => account === name)
}

function inUse(account: Account, folders: readonly FolderPairRow[]): UsageError {
  const them = namedPairs(folders)
  return new UsageError(`${them} ${plural(folders.length, 'is', 'are')} kept in step with ${account.name}.`, {
    code: 'account-in-use',
    hint: 'With --force the account is forgotten all the same: nothing happens to any file, here or in OneDrive, but the two are no longer kept in step.',
  })
}

function namedPairs(folders: readonly FolderPairRow[]): string {
  return `The ${plural(folders.length, 'folder')} ${namesAndRoots(folders)}`
}

function namesAndRoots(folders: readonly FolderPairRow[]): string {
  return folders.map(({ name, root }) => `${name} (${root})`).join(', ')
}
