/** What the Drive index makes of an account: documents that are found through it. */
import type { AccountUse } from '../../app/accounts/account-use.ts'
import { formatCount } from '../../base/format.ts'
import type { Account } from '../../ledger/accounts.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { DriveTables } from './store/tables.ts'

export const driveAccountUse: AccountUse = {
  async keeps(account, { ledger }) {
    const files = await filesOf(ledger, account)
    return files === 0 ? 'nothing yet' : `${formatCount(files)} files`
  },

  async remains(account, { ledger }) {
    const documents = await filesOf(ledger, account)
    return {
      question: 'What only it could see leaves the index; nothing changes in Google Drive.',
      text: `${formatCount(documents)} files are found through it no more; those that nobody else sees leave the index when Tidemark next runs.`,
      details: { documents },
    }
  },

  limitOf: () => '',
}

async function filesOf(ledger: Ledger, { name }: Account): Promise<number> {
  const totals = await (await DriveTables.open(ledger)).totals(name)
  return totals.reduce((sum, { n }) => sum + n, 0)
}
