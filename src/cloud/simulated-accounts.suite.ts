/** Accounts of the simulated cloud in a ledger, as `account add` would put them there, without a person to ask. */
import { systemClock } from '../base/clock.ts'
import type { Vault } from '../base/vault.ts'
import { type Accounts, accountKey } from '../ledger/accounts.ts'
import type { Sim } from '../sim/start.ts'
import { GMAIL_SCOPES } from './gmail/auth.ts'
import { ONEDRIVE_SCOPES, type OneDriveAccess } from './onedrive/auth.ts'

type Place = { accounts: Accounts; vault: Vault; sim: Sim }

export async function connectGmail(
  place: Place,
  name: string,
  { scopes = [GMAIL_SCOPES.full], settings = {} }: { scopes?: readonly string[]; settings?: object } = {},
): Promise<void> {
  const { clientId, clientSecret } = place.sim.gmail
  const { refreshToken } = place.sim.gmail.issue(name, scopes)
  await keep(place, { service: 'gmail', name }, { clientId, clientSecret, refreshToken, scopes }, settings)
}

export async function connectOneDrive(
  place: Place,
  name: string,
  { access = 'readwrite', settings = {} }: { access?: OneDriveAccess; settings?: object } = {},
): Promise<void> {
  const scopes = ONEDRIVE_SCOPES[access]
  const { clientId } = place.sim.onedrive
  const { refreshToken } = place.sim.onedrive.issue(name, scopes)
  await keep(place, { service: 'onedrive', name }, { clientId, refreshToken, scopes }, settings)
}

async function keep(
  { accounts, vault }: Place,
  account: { service: string; name: string },
  grant: object,
  settings: object,
): Promise<void> {
  const secret = { kind: 'oauth', ...grant, obtainedAtMs: systemClock.now() }
  const sealed = vault.seal(accountKey(account), JSON.stringify(secret))
  const found = await accounts.find(account.service, account.name)
  if (found) {
    await accounts.setSealed(found.id, sealed)
    await accounts.setState(found.id, 'ready')
  } else await accounts.add({ ...account, settings: { ...settings }, sealed })
}
