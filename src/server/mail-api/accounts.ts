/** The connected accounts: how far each is, what it may do, what its archive takes; and forgetting one. */
import { z } from 'zod'
import { mailChoices, SERVICE, streamOf } from '../../apps/mail-archive/account.ts'
import { unknownAccount } from '../../apps/mail-archive/open-accounts.ts'
import { type MailStatus, mailStatus } from '../../apps/mail-archive/status.ts'
import { revokeToken } from '../../cloud/oauth.ts'
import { asTidemarkError } from '../../errors.ts'
import type { Account } from '../../ledger/accounts.ts'
import { startAccounts } from '../account-work.ts'
import { doneSchema } from '../engine-api/schemas.ts'
import { accessOfAccount, readSecret } from '../gmail-account.ts'
import { defineRoute } from '../route.ts'
import type { Services } from '../services.ts'
import { looksAt } from '../shared-looks.ts'
import { accountText } from './inputs.ts'
import { type MailAccountView, mailAccountSchema } from './schemas.ts'

const listAccounts = defineRoute(
  {
    ...{ method: 'get', path: '/api/mail/accounts', tag: 'mail', access: 'read', etag: true },
    summary: 'The connected mail accounts',
    answer: z.object({ items: z.array(mailAccountSchema) }),
  },
  async (_input, services) => {
    const rows = await services.accounts.list(SERVICE)
    const names = rows.map(({ name }) => name)
    const { ledger, clock, mail } = services
    const statuses = await looksAt(ledger).look(`mail status ${JSON.stringify(names)}`, clock, () =>
      mailStatus(ledger, mail.tables, names),
    )
    const items = rows.map((row, at) => accountView(services, row, statuses[at]!))
    return { items: await Promise.all(items) }
  },
)

async function accountView(services: Services, row: Account, status: MailStatus): Promise<MailAccountView> {
  const { accounts, vault, mail } = services
  const { phase, paused, watermarkMs, checkedAtMs, listed, stored, gone, skipped, bad, onTheirWay } = status
  return {
    ...{ name: row.name, stream: streamOf(row.name), state: row.state },
    access: (await accessOfAccount({ accounts, vault, account: row })) ?? null,
    ...{ phase, paused, watermarkMs, checkedAtMs, listed, stored, gone, skipped, bad, onTheirWay },
    ...(await filesOf(services, row.name)),
    choices: mailChoices.parse(row.settings),
    unitsPerMinute: mail.settings.unitsPerMinute,
    labels: (await mail.tables.labels(row.name)).map(({ id, name }) => ({ id, name })),
  }
}

type Files = Pick<MailAccountView, 'files' | 'fileBytes' | 'rawBytes' | 'damagedFiles'>

/** An archive that cannot be opened is damage that is shown, and no reason to show nothing. */
async function filesOf({ mail }: Services, account: string): Promise<Files> {
  try {
    const { archive } = await mail.accounts.get(account)
    const shards = await archive.shards()
    return {
      files: shards.length,
      fileBytes: shards.reduce((sum, { fileBytes }) => sum + fileBytes, 0),
      rawBytes: shards.reduce((sum, { rawBytes }) => sum + rawBytes, 0),
      damagedFiles: shards
        .filter(({ state }) => state !== 'ok')
        .map(({ name, state, detail }) => detail ?? `${name}.db is ${state}.`),
    }
  } catch (thrown) {
    const error = asTidemarkError(thrown)
    const why = error.kind === 'bug' ? `The archive of ${account} cannot be opened.` : error.message
    return { files: 0, fileBytes: 0, rawBytes: 0, damagedFiles: [why] }
  }
}

const removeAccount = defineRoute(
  {
    ...{ method: 'delete', path: '/api/mail/accounts/{name}', tag: 'mail', access: 'write' },
    summary: 'Forgets an account and gives its token back; its archive stays',
    params: z.object({ name: accountText }),
    answer: doneSchema,
  },
  async ({ params: { name } }, services) => {
    const { accounts } = services
    const account = await accounts.find(SERVICE, name)
    if (!account) throw unknownAccount(name, await accounts.list(SERVICE))
    const revoke = await prepareRevocation(services, account)
    // First forgotten, then given back: a crash in between leaves a token, never an account whose token is dead.
    await accounts.remove(account.id)
    await startAccounts(services)
    const failure = await revoke()
    const token =
      failure === undefined
        ? ''
        : ` Its token could not be given back: ${failure} Take the access away at https://myaccount.google.com/permissions.`
    return {
      outcome: 'done' as const,
      text: `The account ${name} is forgotten. Its archive stays where it is.${token}`,
    }
  },
)

/** Opens the secret while it is there. What is returned gives it back, and says why if that does not work. */
async function prepareRevocation(
  services: Services,
  account: Account,
): Promise<() => Promise<string | undefined>> {
  const { accounts, vault, clock, config } = services
  try {
    const secret = await readSecret({ accounts, vault, account })
    // A service account has nothing to give back.
    if (secret.kind !== 'oauth') return async () => undefined
    const calls = { fetch: globalThis.fetch, clock, revokeUrl: config.gmail.revoke_url }
    return () =>
      revokeToken(calls, secret.refreshToken).then(
        () => undefined,
        (thrown: unknown) => asTidemarkError(thrown).message,
      )
  } catch (thrown) {
    const why = asTidemarkError(thrown).message
    return async () => why
  }
}

export const accountRoutes = [listAccounts, removeAccount]
