/** From a URL to a ledger. Only the database that is asked for is loaded. */
import { fileURLToPath } from 'node:url'
import { type Clock, systemClock } from '../base/clock.ts'
import { UsageError } from '../base/errors.ts'
import { type Random, systemRandom } from '../base/random.ts'
import type { CommitPoint } from './cycle.ts'
import { Ledger } from './ledger.ts'

export type OpenLedgerOptions = {
  clock?: Clock
  random?: Random
  /** False only looks: where there is no ledger yet, none is made, and the error has the code `ledger-unmade`. */
  create?: boolean
  /** Of a libSQL database, where it asks for one. */
  token?: string | undefined
  /** SQLite only. NORMAL may lose the last commits to a power cut (never to a crash of the process). */
  synchronous?: 'FULL' | 'NORMAL'
  /** Called at each named commit point, for the crash harness. */
  point?: (name: CommitPoint) => void
}

/** `sqlite:path`, `sqlite::memory:`, `file:///path`, a plain path, `postgres://…`, `libsql://…` or `http(s)://…`. */
export async function openLedger(url: string, options: OpenLedgerOptions = {}): Promise<Ledger> {
  const { clock = systemClock, create = true } = options
  const ledgerOptions = { random: options.random ?? systemRandom, point: options.point }
  if (/^postgres(ql)?:/.test(url)) {
    const { openPostgres } = await import('./postgres/open.ts')
    return new Ledger(await openPostgres({ url, clock, create }), ledgerOptions)
  }
  if (/^(?:libsql|https?):/.test(url)) {
    const { openLibsql } = await import('./libsql/open.ts')
    return new Ledger(await openLibsql({ url, token: options.token, clock, create }), ledgerOptions)
  }
  const { openSqlite } = await import('./sqlite/open.ts')
  return new Ledger(
    await openSqlite({ file: sqliteFile(url), clock, create, synchronous: options.synchronous }),
    ledgerOptions,
  )
}

export function sqliteFile(url: string): string {
  if (url.startsWith('sqlite:')) return url.slice('sqlite:'.length).replace(/^\/\/(?=\/)/, '')
  if (url.startsWith('file:')) return fileURLToPath(url)
  const scheme = /^([a-z][a-z0-9+.-]+):/i.exec(url)?.[1]
  if (scheme) {
    throw new UsageError(`A ledger cannot be kept at ${scheme}:…`, {
      hint: 'Use sqlite:PATH, postgres://USER@HOST/DATABASE or libsql://HOST.',
    })
  }
  return url
}
