/** What the checks of `tidemark doctor` look at, and what they find. */
import type { CliContext } from '../../app/command.ts'
import { type LedgerPlace, openIfThere } from '../../app/with-ledger.ts'
import { openVault, type Vault } from '../../base/vault.ts'
import type { Config } from '../../config/settings.ts'
import { type Account, Accounts } from '../../ledger/accounts.ts'
import type { Ledger } from '../../ledger/ledger.ts'

export type Level = 'ok' | 'warning' | 'problem'

export type Finding = { level: Level; text: string; hint?: string | undefined }

/** What the checks look at: opened once for all of them. */
export type Site = {
  env: CliContext['env']
  home: string
  configFile: string
  config: Config
  nowMs: number
  ledger: { place: LedgerPlace | undefined; opened: Ledger | undefined; error: unknown }
  accounts: { store: Accounts | undefined; list: Account[] }
  vault: { opened: Vault | undefined; error: unknown }
}

export async function openSite(context: CliContext): Promise<Site> {
  const { values: config, home } = await context.loadConfig()
  const ledger: Site['ledger'] = { place: undefined, opened: undefined, error: undefined }
  const accounts: Site['accounts'] = { store: undefined, list: [] }
  try {
    const { place, ledger: opened } = await openIfThere(context)
    Object.assign(ledger, { place, opened })
    accounts.store = opened && (await Accounts.open(opened))
    accounts.list = (await accounts.store?.list()) ?? []
  } catch (error) {
    ledger.error = error
  }
  const vault: Site['vault'] = { opened: undefined, error: undefined }
  try {
    const hasSealed = (await accounts.store?.hasSealed()) ?? false
    vault.opened = await openVault({ env: context.env, home: home.path, hasSealed })
  } catch (error) {
    vault.error = error
  }
  const configFile = context.locate().file.path
  return { env: context.env, home: home.path, configFile, config, nowMs: Date.now(), ledger, accounts, vault }
}
