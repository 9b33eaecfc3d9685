/**
 * What an app makes of the accounts that it works for (App.services): what is chosen for one, what is kept of it, and
 * what is left when it is forgotten. Several apps may work on one account.
 */
import type { z } from 'zod'
import type { UsageError } from '../../base/errors.ts'
import type { Account } from '../../ledger/accounts.ts'
import type { Ledger } from '../../ledger/ledger.ts'

/** Light, as the app itself: what takes time to load is behind `load`. */
export type AccountPart = {
  /** Further flags of `tidemark account add`; see AccountChoices.ofFlags. */
  readonly flags?: readonly AccountFlag[]
  /** For the help: the choices in JSON, what `remove` tells in JSON, and what keeps it from forgetting. */
  readonly told: { settings?: string; remove: string; inUse?: string }
  load(): Promise<AccountUse>
}

export type AccountFlag = {
  /** `--only-label <label>` */
  flags: string
  text: string
  /** May be given several times. */
  isList?: boolean
}

/** Where an app finds what it keeps; it is not open. */
export type AccountPlace = { ledger: Ledger; home: string }

export type AccountUse = {
  readonly choices?: AccountChoices
  /** In a few words: what of it is kept. */
  keeps(account: Account, place: AccountPlace): Promise<string>
  remains(account: Account, place: AccountPlace): Promise<Remains>
  /** What it cannot do at this level of access; '' where it can do everything. */
  limitOf(level: string): string
}

/** What is chosen for each account. It stands in the account's settings under the name of the app. */
export type AccountChoices = {
  /** What may be said of it through the API. */
  readonly schema: z.ZodObject
  /** All of it, given the settings of the account. */
  read(settings: Account['settings']): Record<string, unknown>
  /** The settings with what is chosen now. */
  write(settings: Account['settings'], chosen: Record<string, unknown>): Account['settings']
  /** By the names that the flags have in code. */
  ofFlags(flags: Record<string, unknown>): Record<string, unknown>
}

/** What is left of an account that is forgotten. */
export type Remains = {
  /** Ends the question whether it shall be forgotten. */
  question: string
  /** For who has forgotten it. */
  text: string
  details: Record<string, unknown>
  /** Why it must not be forgotten, unless somebody insists. */
  inUse?: UsageError | undefined
}

/** By the name of the app. */
export type AccountUses = ReadonlyMap<string, AccountUse>

type UsingApp = {
  readonly name: string
  readonly services: readonly string[]
  readonly accounts?: AccountPart
}

/** Those of the apps that work for accounts of a service. */
export async function usesOf(apps: readonly UsingApp[], service: string): Promise<AccountUses> {
  const using = apps.filter(({ services, accounts }) => accounts && services.includes(service))
  return new Map(await Promise.all(using.map(async (app) => [app.name, await app.accounts!.load()] as const)))
}

export async function keepsText(uses: AccountUses, account: Account, place: AccountPlace): Promise<string> {
  const texts = await Promise.all([...uses.values()].map((use) => use.keeps(account, place)))
  return texts.filter((text) => text !== '').join('; ')
}

export function limitText(uses: AccountUses, level: string): string {
  return [...uses.values()]
    .map((use) => use.limitOf(level))
    .filter((text) => text !== '')
    .join('; ')
}

/** The settings as they are told: what was chosen for every app, and what the service keeps. */
export function shownSettings(uses: AccountUses, settings: Account['settings']): Record<string, unknown> {
  const shown = { ...settings }
  for (const [app, { choices }] of uses) {
    if (!choices) continue
    delete shown[app]
    Object.assign(shown, choices.read(settings))
  }
  return shown
}

const NOTHING_KNOWN: Remains = {
  question: 'What was kept of it stays.',
  text: 'What was kept of it stays.',
  details: {},
}

/** An app that keeps nothing of it says nothing. */
function joined(texts: readonly string[]): string {
  return texts.filter((text) => text !== '').join(' ')
}

export async function remainsOf(uses: AccountUses, account: Account, place: AccountPlace): Promise<Remains> {
  const all = await Promise.all([...uses.values()].map((use) => use.remains(account, place)))
  if (all.length === 0) return NOTHING_KNOWN
  return {
    question: joined(all.map(({ question }) => question)),
    text: joined(all.map(({ text }) => text)),
    details: Object.assign({}, ...all.map(({ details }) => details)),
    inUse: all.find(({ inUse }) => inUse)?.inUse,
  }
}
