/**
 * Loads the configuration: the defaults, over them the file, over it TIDEMARK_<SECTION>_<KEY>, over
 * those the flags. Every value knows where it came from. All problems are reported at once, each
 * with its place, what was found and what is allowed.
 */
import { readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { parse, TomlError } from 'smol-toml'
import { UsageError } from '../base/errors.ts'
import type { Catalog, CatalogEntry } from './catalog.ts'
import { readEnvironment } from './environment.ts'
import {
  type Environment,
  type Located,
  type LocationInput,
  locateFile,
  locateHome,
  type Origin,
} from './location.ts'
import { crossProblems, describeIssue, type Problem } from './problem.ts'
import type { Config } from './settings.ts'

export type Override = {
  /** `engine.workers` */
  key: string
  value: unknown
  /** `--workers` */
  flag: string
}

export type LoadInput = {
  /** Every setting that there is. */
  catalog: Catalog
  env: Environment
  flags?: { home?: string | undefined; config?: string | undefined }
  /** Settings given as flags of a command. */
  overrides?: readonly Override[]
  /** Throws with code ENOENT where there is no file. */
  readFile?: (path: string) => string
  userHome?: string
  cwd?: string
}

export type LoadedConfig = {
  catalog: Catalog
  values: Config
  /** By key, such as `engine.workers`: every key has one. */
  origins: ReadonlyMap<string, Origin>
  home: Located
  file: Located & { exists: boolean }
}

export type RawConfig = Record<string, unknown>

export function loadConfig(input: LoadInput): LoadedConfig {
  const location: LocationInput = {
    env: input.env,
    flags: input.flags ?? {},
    userHome: input.userHome ?? homedir(),
    cwd: input.cwd ?? process.cwd(),
  }
  const home = locateHome(location)
  const file = locateFile(location, home.path)
  const text = readText(file, input.readFile ?? ((path) => readFileSync(path, 'utf8')))
  const raw: RawConfig = text === undefined ? {} : parseToml(file.path, text)
  const origins = fileOrigins({ catalog: input.catalog, path: file.path, raw, lines: tomlLines(text ?? '') })
  const problems: Problem[] = []
  for (const { key, value, origin } of givenSettings(input, problems)) {
    setValue(raw, input.catalog.find(key), value)
    origins.set(key, origin)
  }
  const values = validate({
    catalog: input.catalog,
    raw,
    origins,
    file: file.path,
    lines: tomlLines(text ?? ''),
    problems,
  })
  return { catalog: input.catalog, values, origins, home, file: { ...file, exists: text !== undefined } }
}

type Given = { key: string; value: unknown; origin: Origin }

function givenSettings(input: LoadInput, problems: Problem[]): Given[] {
  const fromEnv = readEnvironment(input.env, input.catalog)
  problems.push(...fromEnv.problems)
  const fromFlags = (input.overrides ?? []).map(({ key, value, flag }): Given => {
    if (!input.catalog.find(key)) throw new Error(`${flag} sets ${key}, which is not a setting`)
    return { key, value, origin: { kind: 'flag', name: flag } }
  })
  return [...fromEnv.settings, ...fromFlags]
}

function readText(file: Located, readFile: (path: string) => string): string | undefined {
  try {
    return readFile(file.path)
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code
    if (code === 'ENOENT' && file.origin.kind === 'default') return undefined
    const what = code === 'ENOENT' ? 'there is no such file' : (cause as Error).message
    throw new UsageError(`cannot read the configuration file ${file.path}: ${what}`, {
      cause,
      hint: 'Check the path given by --config or TIDEMARK_CONFIG and who may read it.',
    })
  }
}

/** The text of the file at that path. */
export function parseToml(path: string, text: string): RawConfig {
  try {
    return parse(text)
  } catch (cause) {
    if (!(cause instanceof TomlError)) throw cause
    const [what = ''] = cause.message.replace(/^Invalid TOML document:\s*/, '').split('\n')
    throw new UsageError(`${path}:${cause.line}:${cause.column}: not valid TOML: ${what}`, {
      // Without the lines around it, which the parser's own error repeats: there may be secrets in them.
      cause: new Error(what),
      code: 'config-broken',
      hint: 'Correct the line; the form of the file is described at https://toml.io.',
    })
  }
}

function fileOrigins(input: {
  catalog: Catalog
  path: string
  raw: RawConfig
  lines: Map<string, number>
}): Map<string, Origin> {
  const origins = new Map<string, Origin>()
  for (const { section, name, key } of input.catalog.entries) {
    const table = input.raw[section]
    const inFile = isTable(table) && Object.hasOwn(table, name)
    const line = input.lines.get(key)
    const fromFile: Origin = { kind: 'file', path: input.path, ...(line === undefined ? {} : { line }) }
    origins.set(key, inFile ? fromFile : { kind: 'default' })
  }
  return origins
}

function setValue(raw: RawConfig, setting: CatalogEntry | undefined, value: unknown): void {
  if (!setting) throw new Error('what is set is not a setting')
  // A section that is no table stays as it is and is reported as such.
  if (!Object.hasOwn(raw, setting.section)) raw[setting.section] = {}
  const table = raw[setting.section]
  if (isTable(table)) table[setting.name] = value
}

function validate(input: {
  catalog: Catalog
  raw: RawConfig
  origins: Map<string, Origin>
  file: string
  lines: Map<string, number>
  problems: Problem[]
}): Config {
  const { catalog, raw, origins, file, lines } = input
  const result = catalog.schema.safeParse(raw)
  const problems = [...input.problems]
  if (result.success) problems.push(...crossProblems(result.data as unknown as Config, origins))
  else
    problems.push(
      ...result.error.issues.flatMap((issue) => describeIssue({ catalog, issue, raw, origins, file, lines })),
    )
  if (result.success && problems.length === 0) return result.data as unknown as Config
  throw new UsageError(problems.map(({ where, what }) => `${where}: ${what}`).join('\n'), {
    code: 'config-invalid',
    hint: 'See all keys and what they allow with: tidemark config keys',
  })
}

export function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Date)
}

/**
 * Finds the line on which a key stands. The TOML parser does not say; this looks at headers and at
 * `key =` alone, so a key inside an inline table has the line of the table, or none.
 */
export function tomlLines(text: string): Map<string, number> {
  const lines = new Map<string, number>()
  let table: string[] = []
  for (const [index, line] of text.split('\n').entries()) {
    const header = /^\s*\[\[?\s*([^\]]+?)\s*\]\]?/.exec(line)
    if (header?.[1]) table = keyParts(header[1])
    const assignment = header
      ? null
      : /^\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=/.exec(line)
    const parts = assignment?.[1] ? [...table, ...keyParts(assignment[1])] : table
    // The first line wins, for the key itself and for each table around it.
    for (let depth = 1; depth <= parts.length; depth++) {
      const key = parts.slice(0, depth).join('.')
      if (!lines.has(key)) lines.set(key, index + 1)
    }
  }
  return lines
}

function keyParts(text: string): string[] {
  return text.split('.').map((part) => part.trim().replace(/^(["'])(.*)\1$/, '$2'))
}
