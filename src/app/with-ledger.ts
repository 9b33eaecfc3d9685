/**
 * Opens the ledger that the configuration names. Looking never makes one: a home without a ledger is told
 * apart from an empty ledger.
 */

import { TidemarkError, UsageError } from '../base/errors.ts'
import { type LedgerLocation, locateLedger } from '../config/location.ts'
import { maskPasswords } from '../config/secret.ts'
import type { Config } from '../config/settings.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { CliContext } from './command.ts'

export type OpenedLedger = {
  ledger: Ledger
  database: LedgerLocation['database']
  /** For people: the file, or the address without its password. */
  where: string
  config: Config
}

export type LedgerPlace = Pick<OpenedLedger, 'database' | 'where' | 'config'>

/** For commands about something in the ledger: without one there is nothing they could be about. */
export async function withLedger<T>(
  context: CliContext,
  use: (opened: OpenedLedger) => Promise<T>,
): Promise<T> {
  return openAnd(context, use, (place) => {
    throw new UsageError(noLedgerText(place), { code: 'no-ledger', hint: NO_LEDGER_HINT })
  })
}

/** For commands that list: `missing` answers where there is no ledger yet. */
export async function lookAtLedger(
  context: CliContext,
  input: { look: (opened: OpenedLedger) => Promise<void>; missing: (place: LedgerPlace) => void },
): Promise<void> {
  await openAnd(context, input.look, (place) => {
    input.missing(place)
    context.output.note(`${noLedgerText(place)} ${NO_LEDGER_HINT}`)
  })
}

/** For commands that bring something new: makes the ledger where there is none yet. */
export async function withLedgerMade<T>(
  context: CliContext,
  use: (opened: OpenedLedger) => Promise<T>,
): Promise<T> {
  const { location, place } = await locate(context)
  const { openLedger } = await import('../ledger/open.ts')
  const ledger = await openLedger(urlOf(location), { token: place.config.ledger.token })
  try {
    return await use({ ...place, ledger })
  } finally {
    await ledger.close()
  }
}

/** For commands that look at a ledger among other things. Whoever opens it closes it. */
export async function openIfThere(
  context: CliContext,
): Promise<{ place: LedgerPlace; ledger: Ledger | undefined }> {
  const { location, place } = await locate(context)
  return { place, ledger: await openExisting(location, place.config.ledger.token) }
}

const NO_LEDGER_HINT =
  'It is made when work is first enqueued. Another place is given by --home or ledger.url.'

function noLedgerText({ where }: LedgerPlace): string {
  return `There is no ledger at ${where} yet.`
}

async function openAnd<T>(
  context: CliContext,
  use: (opened: OpenedLedger) => Promise<T>,
  missing: (place: LedgerPlace) => T,
): Promise<T> {
  const { ledger, place } = await openIfThere(context)
  if (!ledger) return missing(place)
  try {
    return await use({ ...place, ledger })
  } finally {
    await ledger.close()
  }
}

async function locate(context: CliContext): Promise<{ location: LedgerLocation; place: LedgerPlace }> {
  const { values: config, home } = await context.loadConfig()
  const location = locateLedger(config.ledger.url, home.path)
  const where = location.database === 'sqlite' ? location.path : maskPasswords(location.url)
  return { location, place: { database: location.database, where, config } }
}

function urlOf(location: LedgerLocation): string {
  return location.database === 'sqlite' ? `sqlite:${location.path}` : location.url
}

async function openExisting(
  location: LedgerLocation,
  token: string | undefined,
): Promise<Ledger | undefined> {
  const { openLedger } = await import('../ledger/open.ts')
  try {
    return await openLedger(urlOf(location), { create: false, token })
  } catch (thrown) {
    if (thrown instanceof TidemarkError && thrown.code === 'ledger-unmade') return undefined
    throw thrown
  }
}
