/**
 * What `tidemark doctor` looks at: a list of checks, each of which finds things. To add one, write it in a file of its
 * own and name it in `checks`. A check that fails is a finding itself, and keeps no other from running.
 */
import { accessSync, constants, existsSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Config } from '../config/settings.ts'
import { asTidemarkError } from '../errors.ts'
import { formatBytes, formatCount } from '../format.ts'
import { type Account, Accounts } from '../ledger/accounts.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { GMAIL } from '../server/gmail-account.ts'
import { openVault, type Vault } from '../vault.ts'
import type { CliContext } from './context.ts'
import { accountFindings } from './doctor-accounts.ts'
import type { LedgerPlace } from './ledger.ts'
import { openIfThere } from './ledger.ts'

export type Level = 'ok' | 'warning' | 'problem'

export type Finding = { level: Level; text: string; hint?: string | undefined }

/** What the checks look at: opened once for all of them. */
export type Site = {
  env: CliContext['env']
  home: string
  config: Config
  nowMs: number
  ledger: { place: LedgerPlace | undefined; opened: Ledger | undefined; error: unknown }
  accounts: { store: Accounts | undefined; list: Account[] }
  vault: { opened: Vault | undefined; error: unknown }
}

export type Check = { name: string; run: (site: Site) => Promise<Finding[]> | Finding[] }

const checks: readonly Check[] = [
  { name: 'home', run: lookAtHome },
  { name: 'space', run: lookAtSpace },
  { name: 'ledger', run: lookAtLedgerItself },
  { name: 'vault', run: lookAtVault },
  { name: 'accounts', run: accountFindings },
  { name: 'quota', run: lookAtQuota },
]

export async function examine(context: CliContext): Promise<({ check: string } & Finding)[]> {
  const site = await openSite(context)
  const findings: ({ check: string } & Finding)[] = []
  try {
    for (const { name, run } of checks) {
      for (const finding of await attempt(() => run(site))) findings.push({ check: name, ...finding })
    }
  } finally {
    await site.ledger.opened?.close()
  }
  return findings
}

async function attempt(run: () => Promise<Finding[]> | Finding[]): Promise<Finding[]> {
  try {
    return await run()
  } catch (thrown) {
    return [problemOf(thrown)]
  }
}

function problemOf(thrown: unknown): Finding {
  const { message, hint } = asTidemarkError(thrown)
  return { level: 'problem', text: message, hint }
}

async function openSite(context: CliContext): Promise<Site> {
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
    const hasSealed = accounts.list.length > 0
    vault.opened = await openVault({ env: context.env, home: home.path, hasSealed })
  } catch (error) {
    vault.error = error
  }
  return { env: context.env, home: home.path, config, nowMs: Date.now(), ledger, accounts, vault }
}

function lookAtHome({ home }: Site): Finding[] {
  const stat = statSync(home, { throwIfNoEntry: false })
  if (!stat) return [{ level: 'ok', text: `${home} is not there yet; it is made when it is needed` }]
  if (!stat.isDirectory()) {
    const hint = 'Name another one by --home or TIDEMARK_HOME.'
    return [{ level: 'problem', text: `${home} is not a folder`, hint }]
  }
  try {
    accessSync(home, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch {
    const hint = 'Make it yours: check its owner and its mode.'
    return [{ level: 'problem', text: `${home} cannot be written to`, hint }]
  }
  const mode = process.platform === 'win32' ? 0 : stat.mode & 0o077
  const hint = `chmod 700 ${home}`
  if ((mode & 0o022) !== 0) {
    return [{ level: 'problem', text: `${home} can be changed by others`, hint }]
  }
  if (mode !== 0) return [{ level: 'warning', text: `${home} can be looked into by others`, hint }]
  return [{ level: 'ok', text: `${home} can be written to, by its owner alone` }]
}

const SPACE_WARN_BYTES = 2_000_000_000
const SPACE_PROBLEM_BYTES = 200_000_000

function lookAtSpace({ home }: Site): Finding[] {
  let folder = home
  while (!existsSync(folder) && dirname(folder) !== folder) folder = dirname(folder)
  const { bavail, bsize } = statfsSync(folder)
  const free = bavail * bsize
  const text = `${formatBytes(free)} are free at ${home}`
  const hint = 'Free some space, or move the home folder to a larger disk.'
  const level = free < SPACE_PROBLEM_BYTES ? 'problem' : free < SPACE_WARN_BYTES ? 'warning' : 'ok'
  return [{ level, text, hint }]
}

function lookAtLedgerItself({ ledger }: Site): Finding[] {
  if (ledger.error !== undefined) return [problemOf(ledger.error)]
  const { database, where } = ledger.place!
  if (!ledger.opened)
    return [{ level: 'ok', text: `there is none at ${where} yet; it is made when it is needed` }]
  return [
    {
      level: 'ok',
      text: `${database === 'sqlite' ? 'SQLite' : 'PostgreSQL'} at ${where} can be read and written`,
    },
  ]
}

function lookAtVault({ vault, home }: Site): Finding[] {
  const { opened, error } = vault
  if (!opened) return [problemOf(error)]
  if (!opened.isMade)
    return [{ level: 'ok', text: `there is no master key yet; ${opened.where} is made when needed` }]
  const text = `the master key is ${opened.where}`
  if (!opened.where.startsWith(home)) return [{ level: 'ok', text }]
  return [
    {
      level: 'ok',
      text: `${text}, readable by its owner alone; without it, accounts must be connected again`,
    },
  ]
}

const UNITS_NEW = 6_000
const UNITS_OLD = 15_000
const PRICE_NEW = 20

/** The service does not tell: what is configured is compared with what is documented. */
function lookAtQuota({ config, accounts }: Site): Finding[] {
  if (!accounts.list.some(({ service }) => service === GMAIL)) return []
  const units = config.gmail.units_per_minute
  const text = `gmail.units_per_minute is ${formatCount(units)}`
  const tiers = `Projects have ${formatCount(UNITS_NEW)} units a minute for each user; those that used the API from November 2025 to April 2026 have ${formatCount(UNITS_OLD)}.`
  const quotas = 'Yours is under "Quotas" of the Gmail API in the Google Cloud console.'
  if (units > UNITS_OLD) {
    const hint = `${tiers} More leads to throttling, unless Google has raised your quota. ${quotas}`
    return [{ level: 'warning', text: `${text}, more than is documented`, hint }]
  }
  if (units > UNITS_NEW)
    return [{ level: 'ok', text: `${text}, right for older projects only`, hint: `${tiers} ${quotas}` }]
  if (units < UNITS_NEW)
    return [{ level: 'ok', text: `${text}, less than any project has: it is slower than need be` }]
  const perSecond = units / 60 / Math.max(config.gmail.price_of_get, 1)
  const older =
    config.gmail.price_of_get === PRICE_NEW ? `; older projects can set ${formatCount(UNITS_OLD)}` : ''
  return [{ level: 'ok', text: `${text}, some ${formatCount(perSecond)} messages a second${older}` }]
}
