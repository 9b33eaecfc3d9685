/**
 * Changes one setting in the text of a configuration file, and leaves everything else as a person wrote it: comments,
 * order, blank lines, line ends.
 *
 * TOML lets one setting stand in several forms: `[files]` with `poll_seconds = 60` below it, `files.poll_seconds = 60`,
 * `files = { poll_seconds = 60 }`, and for lists of tables `[[bandwidth.timetable]]`. Invariant: what is returned reads
 * as the old file with exactly that one setting changed; where that cannot be shown, nothing is returned but an error.
 */
import { isDeepStrictEqual } from 'node:util'
import { parse } from 'smol-toml'
import { TidemarkError } from '../base/errors.ts'
import { isTable } from './load.ts'

type Setting = { section: string; name: string }

/** Undefined takes the setting out. */
export function editToml(text: string, setting: Setting, value: unknown): string {
  const eol = text.includes('\r\n') ? '\r\n' : '\n'
  const lines = text === '' ? [] : text.replace(/\r?\n$/, '').split(/\r?\n/)
  const edited = editLines(lines, setting, value)
  const result = edited.length === 0 ? '' : `${edited.join(eol)}${eol}`
  assertOnlyChange(text, result, setting, value)
  return result
}

/** From `from` up to, and without, `to`. */
type Statement = {
  from: number
  to: number
  /** Of a header: the table that it begins. */
  table?: string[]
  isArray?: boolean
  /** Of an assignment: its whole key. */
  key?: string[]
  /** What stands before the value. */
  head?: string
}

function editLines(lines: readonly string[], setting: Setting, value: unknown): string[] {
  const { section, name } = setting
  const statements = readStatements(lines)
  const inline = statements.find(({ key }) => key?.length === 1 && key[0] === section)
  if (inline) return editInline(lines, inline, setting, value)
  const isSetting = ([first, second]: readonly string[]): boolean => first === section && second === name
  const own = statements.filter(({ key, table }) => isSetting(key ?? table ?? []))
  const assignment = own.find(({ key }) => key?.length === 2)
  if (assignment && value !== undefined) {
    const { from, to, head } = assignment
    return spliced(lines, {
      from,
      to,
      add: [`${head}${tomlValue(value)}${commentOf(lines[to - 1]!, lines.slice(from, to))}`],
    })
  }
  // Tables of the setting, and dotted keys below it, with everything up to the next header.
  const taken = new Set(
    own.flatMap((one) => {
      const to = one.table ? endOfTable(statements, one) : one.to
      return Array.from({ length: to - one.from }, (_, at) => one.from + at)
    }),
  )
  const rest = lines.filter((_, at) => !taken.has(at))
  return value === undefined ? rest : inserted(rest, setting, `${name} = ${tomlValue(value)}`)
}

/** Behind the last setting of its section; a section that is not there yet comes last. */
function inserted(lines: readonly string[], { section }: Setting, line: string): string[] {
  const statements = readStatements(lines)
  const header = statements.findIndex(
    ({ table, isArray }) => !isArray && table?.length === 1 && table[0] === section,
  )
  if (header < 0) {
    const gap = lines.length > 0 && lines.at(-1)!.trim() !== '' ? [''] : []
    // Tables below it may be there without it: it may still be written behind them.
    return [...lines, ...gap, `[${section}]`, line]
  }
  let last = statements[header]!
  for (const one of statements.slice(header + 1)) {
    if (one.table) break
    last = one
  }
  const indent = last.key ? /^\s*/.exec(lines[last.from]!)![0] : ''
  return spliced(lines, { from: last.to, to: last.to, add: [`${indent}${line}`] })
}

function editInline(lines: readonly string[], one: Statement, { name }: Setting, value: unknown): string[] {
  const text = lines.slice(one.from, one.to).join('\n')
  const table = { ...(parse(text)[one.key![0]!] as Record<string, unknown>) }
  if (value === undefined) delete table[name]
  else table[name] = value
  const comment = commentOf(lines[one.to - 1]!, lines.slice(one.from, one.to))
  return spliced(lines, { from: one.from, to: one.to, add: [`${one.head}${tomlValue(table)}${comment}`] })
}

function spliced(
  lines: readonly string[],
  { from, to, add }: { from: number; to: number; add: string[] },
): string[] {
  return [...lines.slice(0, from), ...add, ...lines.slice(to)]
}

/** Behind its last setting: comments and blank lines before the next table are that one's. */
function endOfTable(statements: readonly Statement[], own: Statement): number {
  const next = statements.findIndex(({ from, table }) => table && from > own.from)
  const before = next < 0 ? statements.at(-1)! : statements[next - 1]!
  return before.to
}

const KEY = /(?:[\w-]+|"(?:[^"\\]|\\.)*"|'[^']*')/
const DOTTED = new RegExp(`${KEY.source}(?:\\s*\\.\\s*${KEY.source})*`)
const HEADER = new RegExp(`^\\s*(\\[\\[?)\\s*(${DOTTED.source})\\s*\\]`)
const ASSIGNMENT = new RegExp(`^(\\s*(${DOTTED.source})\\s*=\\s*)`)

/** A value may have several lines: it ends with the first at which it can be read. */
function readStatements(lines: readonly string[]): Statement[] {
  const statements: Statement[] = []
  let table: string[] = []
  let isArray = false
  for (let from = 0; from < lines.length; ) {
    const header = HEADER.exec(lines[from]!)
    const [, head, dotted] = header ? [] : (ASSIGNMENT.exec(lines[from]!) ?? [])
    let to = from + 1
    if (header) {
      table = keyParts(header[2]!)
      isArray = header[1] === '[['
      statements.push({ from, to, table, isArray })
    } else if (head !== undefined && dotted !== undefined) {
      while (to < lines.length && !isWhole(lines.slice(from, to))) to += 1
      statements.push({ from, to, head, key: [...table, ...keyParts(dotted)] })
    }
    from = to
  }
  return statements
}

function isWhole(lines: readonly string[]): boolean {
  try {
    parse(lines.join('\n'))
    return true
  } catch {
    return false
  }
}

function keyParts(dotted: string): string[] {
  const table = parse(`${dotted} = 0`)
  const parts: string[] = []
  for (let at: unknown = table; typeof at === 'object' && at !== null; ) {
    const [name] = Object.keys(at)
    if (name === undefined) break
    parts.push(name)
    at = (at as Record<string, unknown>)[name]
  }
  return parts
}

/** What stands behind a value: the longest end of its last line without which it reads the same. */
function commentOf(last: string, lines: readonly string[]): string {
  const whole = parse(lines.join('\n'))
  for (let at = 0; at < last.length; at++) {
    if (last[at] !== '#') continue
    const before = last.slice(0, at)
    try {
      if (isDeepStrictEqual(parse([...lines.slice(0, -1), before].join('\n')), whole)) {
        const value = before.trimEnd()
        return last.slice(value.length)
      }
    } catch {
      // Inside of a text.
    }
  }
  return ''
}

/** On one line, however deep. */
export function tomlValue(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value).replaceAll('\u007f', '\\u007f')
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  if (Array.isArray(value)) return `[${value.map(tomlValue).join(', ')}]`
  if (typeof value === 'object' && value !== null) {
    const pairs = Object.entries(value).map(([name, one]) => `${tomlKey(name)} = ${tomlValue(one)}`)
    return pairs.length === 0 ? '{}' : `{ ${pairs.join(', ')} }`
  }
  throw new Error(`a setting cannot be ${typeof value}`)
}

const tomlKey = (name: string): string => (/^[\w-]+$/.test(name) ? name : tomlValue(name))

function assertOnlyChange(before: string, after: string, { section, name }: Setting, value: unknown): void {
  const wanted = parse(before) as Record<string, unknown>
  if (!isTable(wanted[section] ?? {})) throw unfit(section, name)
  const table = { ...(wanted[section] as Record<string, unknown> | undefined) }
  if (value === undefined) delete table[name]
  else table[name] = value
  wanted[section] = table
  if (isDeepStrictEqual(plain(wanted, section), plain(readAgain(after), section))) return
  throw unfit(section, name)
}

function unfit(section: string, name: string): TidemarkError {
  return new TidemarkError(
    `The file has a form in which ${section}.${name} cannot be changed by a program.`,
    {
      kind: 'permanent',
      code: 'config-form',
      hint: 'Change it in an editor. Nothing was written.',
    },
  )
}

function readAgain(text: string): Record<string, unknown> {
  try {
    return parse(text)
  } catch {
    // Told as what it means: the edit did not work.
    return { unreadable: true }
  }
}

/** A section that is empty is as good as none. */
function plain(table: Record<string, unknown>, section: string): unknown {
  const copy = JSON.parse(JSON.stringify(table)) as Record<string, unknown>
  if (isDeepStrictEqual(copy[section], {})) delete copy[section]
  return copy
}
