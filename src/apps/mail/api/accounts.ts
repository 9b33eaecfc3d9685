/** What the archive says of its accounts: how far each is, what was chosen for it, and what it takes. */

import { readCacheOf } from '../../../app/ledger-read-cache.ts'
import type { AccountsPart } from '../../../app/module.ts'
import { asTidemarkError } from '../../../base/errors.ts'
import { formatCount } from '../../../base/format.ts'
import type { Account } from '../../../ledger/accounts.ts'
import { choicesOf, streamOf } from '../account.ts'
import { totalsText } from '../mailbox-totals.ts'
import { type MailStatus, mailStatus } from '../status.ts'
import { startAccounts } from '../work.ts'
import type { MailServices } from './route.ts'
import { type MailAccountView, mailAccountSchema } from './schemas.ts'

export const mailAccounts: AccountsPart<MailServices> = {
  schema: mailAccountSchema,
  async view(services, rows) {
    const names = rows.map(({ name }) => name)
    const { ledger, clock, mail } = services
    const statuses = await readCacheOf(ledger).read(`mail status ${JSON.stringify(names)}`, clock, () =>
      mailStatus(ledger, mail.tables, names),
    )
    return Promise.all(rows.map((row, at) => accountView(services, row, statuses[at]!)))
  },
  changed: startAccounts,
}

async function accountView(
  services: MailServices,
  row: Account,
  status: MailStatus,
): Promise<MailAccountView> {
  const { mail } = services
  const { phase, paused, watermarkMs, watermarkAsOfMs, checkedAtMs } = status
  const { listed, stored, gone, skipped, bad, onTheirWay } = status
  const { gmail, leftOut, whole } = status
  const { missing, lost, lostImports, verified } = status
  const { kept, ...files } = await archiveFiles(services, row.name)
  return {
    stream: streamOf(row.name),
    phase,
    paused,
    watermarkMs,
    watermarkAsOfMs,
    checkedAtMs,
    listed,
    stored,
    gone,
    skipped,
    bad,
    onTheirWay,
    missing,
    lost,
    lostImports,
    verified,
    gmail,
    leftOut,
    whole,
    inGmail: gmail && leftOut ? totalsText(gmail, { ...leftOut, kept }, formatCount) : null,
    ...files,
    choices: choicesOf(row),
    unitsPerMinute: mail.settings.unitsPerMinute,
    labels: (await mail.tables.labels(row.name)).map(({ id, name }) => ({ id, name })),
  }
}

/** `kept`: what is stored although Gmail has it no more. */
type Files = Pick<MailAccountView, 'files' | 'fileBytes' | 'rawBytes' | 'damagedFiles'> & { kept: number }

/** An archive that cannot be opened is damage that is shown, and no reason to show nothing. */
async function archiveFiles({ mail }: MailServices, account: string): Promise<Files> {
  try {
    const { archive } = await mail.accounts.get(account)
    const shards = await archive.shards()
    return {
      files: shards.length,
      kept: shards.reduce((sum, { deleted }) => sum + deleted, 0),
      fileBytes: shards.reduce((sum, { fileBytes }) => sum + fileBytes, 0),
      rawBytes: shards.reduce((sum, { rawBytes }) => sum + rawBytes, 0),
      damagedFiles: shards
        .filter(({ state }) => state !== 'ok')
        .map(({ name, state, detail }) => detail ?? `${name}.db is ${state}.`),
    }
  } catch (thrown) {
    const error = asTidemarkError(thrown)
    const why = error.kind === 'bug' ? `The archive of ${account} cannot be opened.` : error.message
    return { files: 0, kept: 0, fileBytes: 0, rawBytes: 0, damagedFiles: [why] }
  }
}
