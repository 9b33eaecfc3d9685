/** Turns what the schema refuses into sentences: where, what was found, what is allowed. */
import type { z } from 'zod'
import type { Catalog } from './catalog.ts'
import { type Origin, originText } from './location.ts'
import { nearest } from './nearest.ts'
import { maskAs, maskPasswords } from './secret.ts'
import type { Config } from './settings.ts'

export type Problem = {
  /** The file with its line, the variable or the flag. */
  where: string
  what: string
}

const FOUND_CHARS_MAX = 80

export type IssueInput = {
  catalog: Catalog
  issue: z.core.$ZodIssue
  raw: Record<string, unknown>
  origins: ReadonlyMap<string, Origin>
  file: string
  lines: ReadonlyMap<string, number>
}

export function describeIssue(input: IssueInput): Problem[] {
  const { issue } = input
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({
      where: settingPlace(input, [...issue.path, key]),
      what: unknownKey(input.catalog, issue.path, key),
    }))
  }
  const found = valueAt(input.raw, issue.path)
  const name = pathText(issue.path)
  const where = settingPlace(input, issue.path)
  const allowed = input.catalog.aboutPath(issue.path)?.allowed ?? `a table of settings: [${name}]`
  const state = found === undefined ? 'is missing' : `is ${foundText(input.catalog, issue.path, found)}`
  return [{ where, what: `${name} ${state}, but it must be ${allowed}` }]
}

/** Rules over more than one setting. */
export function crossProblems({ alerts, engine }: Config, origins: ReadonlyMap<string, Origin>): Problem[] {
  const problems: Problem[] = []
  const refuse = (keys: readonly string[], what: string): void => {
    const given = keys.map((key) => origins.get(key)).find((origin) => origin && origin.kind !== 'default')
    problems.push({ where: given ? placeText(given) : 'configuration', what })
  }
  if (alerts.bad_warn > alerts.bad_critical) {
    const values = `${alerts.bad_warn}, but it must not be above alerts.bad_critical, ${alerts.bad_critical}`
    refuse(['alerts.bad_warn', 'alerts.bad_critical'], `alerts.bad_warn is ${values}`)
  }
  if (engine.window < engine.workers) {
    const values = `${engine.window}, but it must not be below engine.workers, ${engine.workers}`
    refuse(['engine.window', 'engine.workers'], `engine.window is ${values}`)
  }
  return problems
}

/** The place as the start of a message. */
export function placeText(origin: Origin): string {
  return origin.kind === 'env' ? `environment variable ${origin.name}` : originText(origin)
}

export function unknownKey(catalog: Catalog, path: readonly PropertyKey[], key: string): string {
  const full = pathText([...path, key])
  const siblings = catalog.keysAt(path)
  const near = nearest(key, siblings)
  if (near) return `unknown key ${full}; did you mean ${pathText([...path, near])}?`
  // Right key, wrong section.
  const elsewhere =
    catalog.entries.find(({ name }) => name === key) ?? catalog.find(nearestKey(catalog, full) ?? '')
  if (elsewhere) return `unknown key ${full}; did you mean ${elsewhere.key}?`
  return `unknown key ${full}; known are ${siblings.join(', ')}`
}

function nearestKey(catalog: Catalog, full: string): string | undefined {
  return nearest(
    full,
    catalog.entries.map(({ key }) => key),
  )
}

/** The line of the key, or of the closest table around it. */
function settingPlace(input: IssueInput, path: readonly PropertyKey[]): string {
  const origin = input.origins.get(path.slice(0, 2).map(String).join('.'))
  if (origin && origin.kind !== 'default' && origin.kind !== 'file') return placeText(origin)
  const names = path.filter((part) => typeof part !== 'number').map(String)
  for (let depth = names.length; depth > 0; depth--) {
    const line = input.lines.get(names.slice(0, depth).join('.'))
    if (line !== undefined) return `${input.file}:${line}`
  }
  return input.file
}

/** `bandwidth.timetable[0].from` */
function pathText(path: readonly PropertyKey[]): string {
  return path
    .map((part, index) => (typeof part === 'number' ? `[${part}]` : `${index > 0 ? '.' : ''}${String(part)}`))
    .join('')
}

function valueAt(raw: unknown, path: readonly PropertyKey[]): unknown {
  return path.reduce<unknown>(
    (value, part) => (value as Record<PropertyKey, unknown> | undefined)?.[part],
    raw,
  )
}

function foundText(catalog: Catalog, path: readonly PropertyKey[], found: unknown): string {
  // JSON has no infinity, TOML has.
  const text = typeof found === 'number' ? String(found) : JSON.stringify(found)
  const secret = catalog.aboutPath(path)?.secret
  const hidden =
    secret === 'path' || secret === 'all' ? `"${maskAs(secret, String(found))}"` : maskPasswords(text)
  return hidden.length > FOUND_CHARS_MAX ? `${hidden.slice(0, FOUND_CHARS_MAX)}…` : hidden
}
