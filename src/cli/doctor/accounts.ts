/** What can be said about accounts without asking their services. */
import { limitText, usesOf } from '../../app/accounts/account-use.ts'
import { connectCommand } from '../../app/accounts/connecting.ts'
import { apps } from '../../apps/registry.ts'
import { asTidemarkError } from '../../base/errors.ts'
import { type AccountService, accessText } from '../../cloud/account-service.ts'
import { openSecret, type StoredAccount } from '../../cloud/account-store.ts'
import { CONNECT_HINT, findService } from '../../cloud/registry.ts'
import type { Account } from '../../ledger/accounts.ts'
import type { Finding, Site } from './site.ts'

export async function accountFindings(site: Site): Promise<Finding[]> {
  const { store, list } = site.accounts
  if (!store) return []
  if (list.length === 0) return [{ level: 'ok', text: `none is connected. ${CONNECT_HINT}` }]
  const vault = site.vault.opened
  // Without a key nothing can be said about what it seals; the check of the vault has told why.
  if (!vault) return []
  const findings: Finding[] = []
  for (const account of list) findings.push(...(await findingsOf({ account, accounts: store, vault }, site)))
  return findings
}

async function findingsOf(input: StoredAccount, site: Site): Promise<Finding[]> {
  const { account } = input
  const { name } = account
  const service = await findService(account.service)
  if (!service) return [{ level: 'ok', text: `${account.service}: ${name}` }]
  try {
    const secret = service.parse(await openSecret(input))
    const level = service.levelOf(secret, account.settings)
    const { clientId, concerns } = service.look(secret, site.nowMs)
    const findings: Finding[] = []
    if (account.state === 'sign-in') {
      findings.push(signInFinding(service, { account, command: connectCommand(account, { service, level }) }))
    }
    if (level === undefined) findings.push(noAccessFinding(service, account))
    else findings.push(...clientFindings(service, { account, site, clientId }))
    if (account.state === 'ready') {
      for (const { text, hint } of concerns)
        findings.push({ level: 'warning', text: `${name}: ${text}`, hint })
    }
    if (findings.length > 0 || level === undefined) return findings
    const limit = limitText(await usesOf(apps, service.name), level)
    const may = `${accessText(service, level)}${limit && `; ${limit}`}`
    return [{ level: 'ok', text: `${name} is connected (${may})` }]
  } catch (thrown) {
    const { message, hint } = asTidemarkError(thrown)
    return [{ level: 'problem', text: `${name}: ${message}`, hint }]
  }
}

function signInFinding(
  { company, endHint }: AccountService,
  { account, command }: { account: Account; command: string },
): Finding {
  return {
    level: 'problem',
    text: `${account.name}: ${company} no longer accepts the sign-in; nothing is synced until it is connected again`,
    hint: `${command}. ${endHint}`,
  }
}

function noAccessFinding(service: AccountService, account: Account): Finding {
  return {
    level: 'problem',
    text: `${account.name}: ${service.needs} is missing`,
    hint: `Connect it again and allow what is asked for: ${connectCommand(account, { service })}`,
  }
}

/** A refresh token belongs to the client that it was given to. */
function clientFindings(
  service: AccountService,
  { account, site, clientId }: { account: Account; site: Site; clientId: string | undefined },
): Finding[] {
  const configured = service.signIn.setup.configured(site.config)
  if (clientId === undefined || !configured || configured.client.clientId === clientId) return []
  return [
    {
      level: 'warning',
      text: `${account.name} was connected with another OAuth client than ${configured.key} names`,
      hint: `It goes on with the old one. To change over: ${connectCommand(account, { service })}`,
    },
  ]
}

/** The services do not tell: what is configured is compared with what is documented. */
export async function quotaFindings({ config, accounts }: Site): Promise<Finding[]> {
  const names = new Set(accounts.list.map(({ service }) => service))
  const services = await Promise.all([...names].map(findService))
  return services.flatMap((service) => service?.quota?.(config) ?? [])
}
