/** What the assistant makes of a Gmail account: records of what it sorted, and rules of its user. */
import type { AccountUse } from '../../app/accounts/account-use.ts'
import { formatCount } from '../../base/format.ts'
import type { Account } from '../../ledger/accounts.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { AssistTables } from './store/tables.ts'

export const assistAccountUse: AccountUse = {
  async keeps(account, { ledger }) {
    const sorted = await sortedOf(ledger, account)
    return sorted === undefined ? '' : `${formatCount(sorted)} messages sorted by the assistant`
  },

  async remains(account, { ledger }) {
    const sorted = await sortedOf(ledger, account)
    if (sorted === undefined) return { question: '', text: '', details: { sorted: 0 } }
    return {
      question: 'What the assistant knows of it goes; labels and drafts in Gmail stay.',
      text: 'What the assistant knew of it goes when Tidemark next runs; its labels and drafts in Gmail stay.',
      details: { sorted },
    }
  },

  limitOf: (level) => (level === 'readonly' ? 'the assistant can set no labels with that' : ''),
}

async function sortedOf(ledger: Ledger, { name }: Account): Promise<number | undefined> {
  const tables = await AssistTables.open(ledger)
  return (await tables.account(name)) && (await tables.balance(name)).classified
}
