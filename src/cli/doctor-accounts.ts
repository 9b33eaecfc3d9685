/** What can be said about accounts without asking their services. */
import { accessOf } from '../cloud/gmail/auth.ts'
import { TESTING_HINT } from '../cloud/oauth-errors.ts'
import { asTidemarkError } from '../errors.ts'
import type { Account, Accounts } from '../ledger/accounts.ts'
import { ACCESS_TEXT, GMAIL, readSecret } from '../server/gmail-account.ts'
import type { Vault } from '../vault.ts'
import { tokenConcerns } from './account-token-age.ts'
import type { Finding, Site } from './doctor-checks.ts'

export async function accountFindings(site: Site): Promise<Finding[]> {
  const { store, list } = site.accounts
  if (!store) return []
  if (list.length === 0)
    return [{ level: 'ok', text: 'none is connected; connect one with: tidemark account add gmail' }]
  const vault = site.vault.opened
  // Without a key nothing can be said about what it seals; the check of the vault has told why.
  if (!vault) return []
  const findings: Finding[] = []
  for (const account of list) findings.push(...(await findingsOf({ account, accounts: store, vault, site })))
  return findings
}

async function findingsOf(input: {
  account: Account
  accounts: Accounts
  vault: Vault
  site: Site
}): Promise<Finding[]> {
  const { account, site } = input
  const { name } = account
  if (account.service !== GMAIL) return [{ level: 'ok', text: `${account.service}: ${name}` }]
  try {
    const secret = await readSecret(input)
    const findings: Finding[] = []
    if (account.state === 'sign-in') findings.push(signInFinding(name))
    const access = accessOf(secret.scopes)
    if (!access) findings.push(noAccessFinding(name))
    else findings.push(...clientFindings(input, secret.kind === 'oauth' ? secret.clientId : undefined))
    if (account.state === 'ready') {
      for (const { text, hint } of tokenConcerns(secret, site.nowMs)) {
        findings.push({ level: 'warning', text: `${name}: ${text}`, hint })
      }
    }
    if (findings.length > 0 || !access) return findings
    const limit = access === 'readonly' ? '; `mail archive` can free no space with that' : ''
    return [{ level: 'ok', text: `${name} is connected (${ACCESS_TEXT[access]}${limit})` }]
  } catch (thrown) {
    const { message, hint } = asTidemarkError(thrown)
    return [{ level: 'problem', text: `${name}: ${message}`, hint }]
  }
}

function signInFinding(name: string): Finding {
  return {
    level: 'problem',
    text: `${name}: Google no longer accepts the sign-in; nothing is synced until it is connected again`,
    hint: `tidemark account add gmail --user ${name}. ${TESTING_HINT}`,
  }
}

function noAccessFinding(name: string): Finding {
  return {
    level: 'problem',
    text: `${name}: the permission to read mail is missing`,
    hint: `Connect it again and allow what is asked for: tidemark account add gmail --user ${name}`,
  }
}

/** A refresh token belongs to the client that it was given to. */
function clientFindings(
  { account, site }: { account: Account; site: Site },
  clientId: string | undefined,
): Finding[] {
  const configured = site.config.gmail.client_id
  if (clientId === undefined || configured === undefined || configured === clientId) return []
  return [
    {
      level: 'warning',
      text: `${account.name} was connected with another OAuth client than gmail.client_id names`,
      hint: `It goes on with the old one. To change over: tidemark account add gmail --user ${account.name}`,
    },
  ]
}
