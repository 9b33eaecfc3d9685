/**
 * Changes one setting in the text of a configuration file, and leaves everything else as a person wrote it: order, blank
 * lines, the end of each line, and every comment. A comment inside of a value that is written anew comes to stand in
 * front of it; one behind a setting that is taken out stays as a line.
 *
 * TOML lets one setting stand in several forms: `[files]` with `poll_seconds = 60` below it, `files.poll_seconds = 60`,
 * `files = { poll_seconds = 60 }`, and for lists of tables `[[bandwidth.timetable]]`. Invariant: what is returned reads
 * as the old file with exactly that one setting changed, and has all of its comments; where that cannot be shown, nothing
 * is returned but an error.
 */
import { isDeepStrictEqual } from 'node:util'
import { parse, TomlError } from 'smol-toml'
import { TidemarkError } from '../base/errors.ts'
import { isTable } from './load.ts'

type Setting = { section: string; name: string }

/** Of a text that can be read. Undefined takes the setting out. */
export function editToml(text: string, setting: Setting, value: unknown): string {
  try {
    const result = editLines(linesOf(text), setting, value).join('')
    assertOnlyChange(text, result, setting, value)
    return result
  } catch (thrown) {
    // Without what the parser says, which repeats lines of the file: there may be secrets in them.
    throw thrown instanceof TomlError ? unfit(setting) : thrown
  }
}

/** Each with its own end; the last may have none. */
function linesOf(text: string): string[] {
  return text.match(/[^\n]*\n|[^\n]+$/g) ?? []
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
  /** Before the first header. */
  isRoot?: boolean
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
  if (assignment && value !== undefined) return withValue(lines, assignment, value)
  // Tables of the setting, with everything up to the next header, and dotted keys below it.
  const tables = own.filter(({ table }) => table)
  const ranges = [...tables.map((one) => ({ from: one.from, to: endOfTable(statements, one) })), ...own]
  const taken = ranges.filter(
    (one, at) => !ranges.slice(0, at).some(({ from, to }) => from <= one.from && one.from < to),
  )
  const isTaken = (at: number): boolean => taken.some(({ from, to }) => from <= at && at < to)
  const kept = taken.flatMap(({ from, to }) => commentLines(lines.slice(from, to)))
  if (value !== undefined) {
    const rest = lines.filter((_, at) => !isTaken(at))
    return inserted(rest, setting, { line: `${name} = ${tomlValue(value)}`, above: kept })
  }
  return lines.flatMap((line, at) => {
    const begun = taken.find(({ from }) => from === at)
    if (begun) return commentLines(lines.slice(begun.from, begun.to))
    return isTaken(at) ? [] : [line]
  })
}

/** Another value in the same place, with the comment behind it; those inside of the old one come before it. */
function withValue(lines: readonly string[], { from, to, head }: Statement, value: unknown): string[] {
  const old = lines.slice(from, to)
  const { behind, inside } = splitComments(old)
  const line = `${head}${tomlValue(value)}${behind}${endOf(old.at(-1)!)}`
  return [...lines.slice(0, from), ...ownLines(inside, old), line, ...lines.slice(to)]
}

/** Behind the last setting of its section; a section that is not there yet comes last. */
function inserted(
  lines: readonly string[],
  { section }: Setting,
  { line, above }: { line: string; above: readonly string[] },
): string[] {
  const statements = readStatements(lines)
  const header = statements.findIndex(
    ({ table, isArray }) => !isArray && table?.length === 1 && table[0] === section,
  )
  // A table that was begun with dotted keys cannot have a header.
  const dotted = statements.findLast(({ key, isRoot }) => isRoot && key?.[0] === section)
  if (header < 0 && !dotted) {
    const end = endOf(lines.at(-1) ?? '') || '\n'
    const gap = lines.length > 0 && lines.at(-1)!.trim() !== '' ? [end] : []
    // Tables below it may be there without it: it may still be written behind them.
    return [...ended(lines, end), ...gap, `[${section}]${end}`, ...above, `${line}${end}`]
  }
  let last = dotted ?? statements[header]!
  for (const one of dotted ? [] : statements.slice(header + 1)) {
    if (one.table) break
    last = one
  }
  const before = lines.slice(0, last.to)
  const end = endOf(before.at(-1)!) || '\n'
  const indent = last.key ? /^\s*/.exec(lines[last.from]!)![0] : ''
  const own = `${indent}${dotted ? `${tomlKey(section)}.` : ''}${line}${end}`
  return [...ended(before, end), ...above, own, ...lines.slice(last.to)]
}

function editInline(lines: readonly string[], one: Statement, { name }: Setting, value: unknown): string[] {
  const text = lines.slice(one.from, one.to).join('')
  const table = { ...(parse(text)[one.key![0]!] as Record<string, unknown>) }
  if (value === undefined && !Object.hasOwn(table, name)) return [...lines]
  if (value === undefined) delete table[name]
  else table[name] = value
  return withValue(lines, one, table)
}

function endOf(line: string): string {
  return /\r?\n$/.exec(line)?.[0] ?? ''
}

/** The last line with an end, so that another can follow. */
function ended(lines: readonly string[], end: string): string[] {
  return lines.map((line) => (endOf(line) === '' ? `${line}${end}` : line))
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
      const key = [...table, ...keyParts(dotted)]
      statements.push({ from, to, head, key, isRoot: table.length === 0 })
    }
    from = to
  }
  return statements
}

function isWhole(lines: readonly string[]): boolean {
  try {
    parse(lines.join(''))
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

/** Texts, which may hold a `#`, longest delimiter first; and comments, up to the end of the line. */
const TEXT_OR_COMMENT =
  /"""(?:[^\\]|\\[\s\S])*?"{3,5}|'''[\s\S]*?'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|(?<comment>#[^\r\n]*)/g

type Comment = { text: string; at: number }

function commentsIn(text: string): Comment[] {
  return [...text.matchAll(TEXT_OR_COMMENT)].flatMap(({ groups, index }) =>
    groups?.comment === undefined ? [] : [{ text: groups.comment, at: index }],
  )
}

/** What stands behind a value, with the blanks before it, and the comments inside of it. */
function splitComments(lines: readonly string[]): { behind: string; inside: string[] } {
  const text = lines.join('')
  const comments = commentsIn(text)
  const last = comments.at(-1)
  const lastFrom = text.length - lines.at(-1)!.length
  if (!last || last.at < lastFrom) return { behind: '', inside: comments.map((one) => one.text) }
  const before = text.slice(lastFrom, last.at)
  const blanks = before.slice(before.trimEnd().length)
  return { behind: `${blanks}${last.text}`, inside: comments.slice(0, -1).map((one) => one.text) }
}

function commentLines(lines: readonly string[]): string[] {
  return ownLines(
    commentsIn(lines.join('')).map(({ text }) => text),
    lines,
  )
}

/** With the indent and the end of the line that they were found at. */
function ownLines(comments: readonly string[], [first = '']: readonly string[]): string[] {
  const indent = /^[ \t]*/.exec(first)![0]
  return comments.map((text) => `${indent}${text}${endOf(first) || '\n'}`)
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

function assertOnlyChange(before: string, after: string, setting: Setting, value: unknown): void {
  const { section, name } = setting
  const wanted = parse(before) as Record<string, unknown>
  if (!isTable(wanted[section] ?? {})) throw unfit(setting)
  const table = { ...(wanted[section] as Record<string, unknown> | undefined) }
  if (value === undefined) delete table[name]
  else table[name] = value
  wanted[section] = table
  if (!isDeepStrictEqual(plain(wanted, section), plain(parse(after), section))) throw unfit(setting)
  const sorted = (text: string): string[] =>
    commentsIn(text)
      .map((one) => one.text)
      .sort()
  if (!isDeepStrictEqual(sorted(before), sorted(after))) throw unfit(setting)
}

function unfit({ section, name }: Setting): TidemarkError {
  return new TidemarkError(
    `The file has a form in which ${section}.${name} cannot be changed by a program.`,
    {
      kind: 'permanent',
      code: 'config-form',
      hint: 'Change it in an editor. Nothing was written.',
    },
  )
}

/** A section that is empty is as good as none. */
function plain(table: Record<string, unknown>, section: string): unknown {
  const copy = JSON.parse(JSON.stringify(table)) as Record<string, unknown>
  if (isDeepStrictEqual(copy[section], {})) delete copy[section]
  return copy
}
