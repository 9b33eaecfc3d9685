/** Settings from TIDEMARK_<SECTION>_<KEY>. A variable that means nothing is an error, not a surprise. */
import { parse } from 'smol-toml'
import { MASTER_KEY_FILE_VARIABLE, MASTER_KEY_VARIABLE } from '../base/vault.ts'
import type { Catalog, CatalogEntry } from './catalog.ts'
import type { Environment, Origin } from './location.ts'
import { nearest } from './nearest.ts'
import { type Problem, placeText } from './problem.ts'

const PREFIX = 'TIDEMARK_'

/** Read elsewhere: where things are, the vault's key, and what the tests pass on. */
const OTHER_VARIABLES = ['TIDEMARK_HOME', 'TIDEMARK_CONFIG', MASTER_KEY_VARIABLE, MASTER_KEY_FILE_VARIABLE]
const TEST_PREFIX = 'TIDEMARK_TEST_'

export type EnvironmentSettings = {
  settings: { key: string; value: unknown; origin: Origin }[]
  problems: Problem[]
}

export function readEnvironment(env: Environment, catalog: Catalog): EnvironmentSettings {
  const byVariable = new Map(catalog.entries.map((entry) => [entry.variable, entry]))
  const found: EnvironmentSettings = { settings: [], problems: [] }
  for (const [variable, text] of Object.entries(env)) {
    // Empty is the same as not set: that is how container files switch a variable off.
    if (!variable.startsWith(PREFIX) || text === undefined || text === '') continue
    if (OTHER_VARIABLES.includes(variable) || variable.startsWith(TEST_PREFIX)) continue
    const entry = byVariable.get(variable)
    if (!entry) found.problems.push(unknownVariable(variable, [...byVariable.keys(), ...OTHER_VARIABLES]))
    else {
      const origin: Origin = { kind: 'env', name: variable }
      found.settings.push({ key: entry.key, value: readSettingText(entry, text), origin })
    }
  }
  return found
}

/** Compared without what all names begin with, which would make any two of them look alike. */
function unknownVariable(variable: string, known: string[]): Problem {
  const ends = known.map((name) => name.slice(PREFIX.length))
  const near = nearest(variable.slice(PREFIX.length), ends)
  const what = near ? `did you mean ${PREFIX}${near}?` : 'no setting has this name'
  return { where: placeText({ kind: 'env', name: variable }), what: `unknown; ${what}` }
}

/** Text that cannot be read stays text, so that the check of the value reports it as it was given. */
export function readSettingText(entry: CatalogEntry, text: string): unknown {
  const trimmed = text.trim()
  if (entry.kind === 'number') return /^[+-]?\d+(?:\.\d+)?$/.test(trimmed) ? Number(trimmed) : text
  if (entry.kind === 'text') return trimmed
  try {
    return parse(`value = ${trimmed}`).value
  } catch {
    // Reported by the check as a value of the wrong form.
    return text
  }
}
