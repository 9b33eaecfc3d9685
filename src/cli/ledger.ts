/**
 * Opens the ledger that the configuration names. Looking never makes one: a home without a ledger is told
 * apart from an empty ledger.
 */
import { statSync } from 'node:fs'
import { systemClock } from '../clock.ts'
import { type LedgerLocation, locateLedger } from '../config/location.ts'
import { maskPasswords } from '../config/secret.ts'
import type { Config } from '../config/settings.ts'
import { UsageError } from '../errors.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { systemRandom } from '../random.ts'
import type { CliContext } from './context.ts'

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
  const { values: config, home } = await context.loadConfig()
  const location = locateLedger(config.ledger.url, home.path)
  const where = location.database === 'sqlite' ? location.path : maskPasswords(location.url)
  const place = { database: location.database, where, config }
  const isThere =
    location.database === 'sqlite' ? holdsSomething(location.path) : await hasTables(location.url)
  if (!isThere) return missing(place)
  const { openLedger } = await import('../ledger/open.ts')
  const ledger = await openLedger(location.database === 'sqlite' ? `sqlite:${location.path}` : location.url)
  try {
    return await use({ ...place, ledger })
  } finally {
    await ledger.close()
  }
}

/** An empty file is what a crash before the first write leaves: no ledger yet. */
function holdsSomething(path: string): boolean {
  try {
    const size = statSync(path, { throwIfNoEntry: false })?.size
    return size !== undefined && size > 0
  } catch {
    // A folder that may not be read, or a file where a folder should be: opening says which.
    return true
  }
}

/** The server's word for a table that is not there: https://www.postgresql.org/docs/current/errcodes-appendix.html */
const UNDEFINED_TABLE = '42P01'

/** Opening would make them. A driver on its own looks without. */
async function hasTables(url: string): Promise<boolean> {
  const { parseTarget } = await import('../ledger/postgres/connection.ts')
  const { PostgresDriver } = await import('../ledger/postgres/driver.ts')
  const { codeOf } = await import('../ledger/postgres/errors.ts')
  const { Ledger } = await import('../ledger/ledger.ts')
  const target = parseTarget(url)
  const driver = new PostgresDriver({ target, clock: systemClock, instance: 'look', offsetMs: 0 })
  try {
    await new Ledger(driver, { random: systemRandom }).pauses()
    return true
  } catch (thrown) {
    if (codeOf(thrown) === UNDEFINED_TABLE) return false
    throw thrown
  } finally {
    await driver.close()
  }
}
