/**
 * Where things are: the home folder, the configuration file and the ledger. No zod here, so that
 * commands which only need a path start fast.
 */
import { isAbsolute, join, resolve } from 'node:path'
import { UsageError } from '../base/errors.ts'

export type Environment = Readonly<Record<string, string | undefined>>

/** How a value came to be what it is. */
export type Origin =
  | { kind: 'default' }
  | { kind: 'file'; path: string; line?: number }
  | { kind: 'env'; name: string }
  | { kind: 'flag'; name: string }

export type Located = { path: string; origin: Origin }

export type LocationInput = {
  env: Environment
  flags: { home?: string | undefined; config?: string | undefined }
  /** The user's own folder, for `~` and the default. */
  userHome: string
  cwd: string
}

/** `--home`, then TIDEMARK_HOME, then the XDG data folder. */
export function locateHome(input: LocationInput): Located {
  const given = givenPath(input, { flag: '--home', value: input.flags.home, variable: 'TIDEMARK_HOME' })
  if (given) return given
  const dataHome = input.env.XDG_DATA_HOME
  // The XDG specification says that a relative path is to be ignored.
  const base = dataHome && isAbsolute(dataHome) ? dataHome : join(input.userHome, '.local', 'share')
  return { path: join(base, 'tidemark'), origin: { kind: 'default' } }
}

/** `--config`, then TIDEMARK_CONFIG, then config.toml in the home folder. */
export function locateFile(input: LocationInput, home: string): Located {
  const given = givenPath(input, { flag: '--config', value: input.flags.config, variable: 'TIDEMARK_CONFIG' })
  return given ?? { path: join(home, 'config.toml'), origin: { kind: 'default' } }
}

export type LedgerLocation =
  | { database: 'sqlite'; path: string }
  | { database: 'postgres' | 'libsql'; url: string }

export const DATABASE_NAMES: Record<LedgerLocation['database'], string> = {
  sqlite: 'SQLite',
  postgres: 'PostgreSQL',
  libsql: 'libSQL',
}

/** What `ledger.url` stands for: a file, inside the home folder unless it is absolute, or a server. */
export function locateLedger(url: string, home: string): LedgerLocation {
  if (/^(?:libsql|https?):/.test(url)) return { database: 'libsql', url }
  if (!url.startsWith('sqlite')) return { database: 'postgres', url }
  const path = url.slice('sqlite:'.length) || 'ledger.db'
  return { database: 'sqlite', path: resolve(home, path) }
}

/** Where a value came from, for people. */
export function originText(origin: Origin): string {
  switch (origin.kind) {
    case 'default':
      return 'default'
    case 'file':
      return origin.line === undefined ? origin.path : `${origin.path}:${origin.line}`
    case 'env':
      return `env ${origin.name}`
    case 'flag':
      return `flag ${origin.name}`
  }
}

function givenPath(
  input: LocationInput,
  given: { flag: string; value: string | undefined; variable: string },
): Located | undefined {
  if (given.value !== undefined) {
    if (given.value.trim() === '') throw new UsageError(`${given.flag} needs a path`)
    return { path: expand(input, given.value), origin: { kind: 'flag', name: given.flag } }
  }
  const fromEnv = input.env[given.variable]
  if (!fromEnv) return undefined
  return { path: expand(input, fromEnv), origin: { kind: 'env', name: given.variable } }
}

/** Quoted in a variable or a file, `~` reaches us as it is. */
function expand(input: LocationInput, path: string): string {
  const full = path === '~' || path.startsWith('~/') ? join(input.userHome, path.slice(1)) : path
  return resolve(input.cwd, full)
}
