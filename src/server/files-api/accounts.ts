/** The OneDrive accounts that are connected, and which folders each is for. */
import { z } from 'zod'
import { TidemarkError } from '../../errors.ts'
import type { Account } from '../../ledger/accounts.ts'
import { ONEDRIVE, oneDriveAccess, readOneDriveSecret } from '../onedrive-account.ts'
import { defineRoute } from '../route.ts'
import type { Services } from '../services.ts'
import { type FileAccountView, fileAccountSchema } from './schemas.ts'

const listAccounts = defineRoute(
  {
    ...{ method: 'get', path: '/api/files/accounts', tag: 'files', access: 'read' },
    summary: 'The connected OneDrive accounts',
    answer: z.object({ items: z.array(fileAccountSchema) }),
  },
  async (_input, services) => {
    const drives = await services.files.store.drives()
    const rows = await services.accounts.list(ONEDRIVE)
    const items: FileAccountView[] = []
    for (const account of rows) {
      const folders = drives.filter((drive) => drive.account === account.name).map(({ name }) => name)
      items.push({
        ...{ name: account.name, state: account.state, folders },
        access: await accessOf(services, account),
      })
    }
    return { items }
  },
)

/** A list shows what can be shown; connecting the account again mends a secret that cannot be opened. */
async function accessOf(services: Services, account: Account): Promise<FileAccountView['access']> {
  try {
    return oneDriveAccess(account, await readOneDriveSecret({ ...services, account })) ?? null
  } catch (thrown) {
    if (thrown instanceof TidemarkError && thrown.kind === 'auth') return null
    throw thrown
  }
}

export const accountRoutes = [listAccounts]
