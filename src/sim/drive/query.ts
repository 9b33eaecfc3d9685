/**
 * The search language of files.list: `name contains 'plan' and not trashed and ('me' in owners or sharedWithMe)`.
 * A query becomes a function over items; what is no query is refused as the service does it.
 */
import { type Access, canShare } from './access.ts'
import { invalidParameter } from './errors.ts'
import { type Item, isAtLeast, isFolder, isNative, isTrashed, type User } from './item.ts'

/** An item as the caller sees it. */
export type Seen = { item: Item; access: Access; user: User }

export type Matches = (seen: Seen) => boolean

const QUERY_MAX = 10_000
const DEPTH_MAX = 50

type Token = { kind: 'word' | 'text' | 'sign'; value: string }
type Reader = { tokens: Token[]; at: number }

export function parseQuery(text: string | null): Matches {
  if (text === null || text.trim() === '') return () => true
  if (text.length > QUERY_MAX) throw invalidParameter('q')
  const reader: Reader = { tokens: tokensOf(text), at: 0 }
  const matches = parseOr(reader, 0)
  if (reader.at < reader.tokens.length) throw invalidParameter('q')
  return matches
}

const TOKEN = /\s*(?:'((?:[^'\\]|\\.)*)'|([\w.]+(?::[\d.:+-]+)?)|(!=|<=|>=|[=<>(){}]))/y

function tokensOf(text: string): Token[] {
  const tokens: Token[] = []
  TOKEN.lastIndex = 0
  const trimmed = text.trimEnd()
  while (TOKEN.lastIndex < trimmed.length) {
    const match = TOKEN.exec(trimmed)
    if (!match) throw invalidParameter('q')
    if (match[1] !== undefined) tokens.push({ kind: 'text', value: match[1].replace(/\\(.)/g, '$1') })
    else if (match[2] !== undefined) tokens.push({ kind: 'word', value: match[2] })
    else tokens.push({ kind: 'sign', value: match[3]! })
  }
  return tokens
}

function parseOr(reader: Reader, depth: number): Matches {
  let left = parseAnd(reader, depth)
  while (takes(reader, 'or')) {
    const [one, other] = [left, parseAnd(reader, depth)]
    left = (seen) => one(seen) || other(seen)
  }
  return left
}

function parseAnd(reader: Reader, depth: number): Matches {
  let left = parseNot(reader, depth)
  while (takes(reader, 'and')) {
    const [one, other] = [left, parseNot(reader, depth)]
    left = (seen) => one(seen) && other(seen)
  }
  return left
}

function parseNot(reader: Reader, depth: number): Matches {
  if (depth > DEPTH_MAX) throw invalidParameter('q')
  if (takes(reader, 'not')) {
    const inner = parseNot(reader, depth + 1)
    return (seen) => !inner(seen)
  }
  if (takes(reader, '(')) {
    const inner = parseOr(reader, depth + 1)
    if (!takes(reader, ')')) throw invalidParameter('q')
    return inner
  }
  return parseTerm(reader)
}

function parseTerm(reader: Reader): Matches {
  const first = next(reader)
  if (first.kind === 'text') {
    if (!takes(reader, 'in')) throw invalidParameter('q')
    return collectionTerm(first.value, next(reader).value)
  }
  const flag = flags[first.value]
  const operator = peek(reader)
  if (flag && (operator === undefined || !['=', '!='].includes(operator.value))) return flag
  const sign = next(reader).value
  const { value } = next(reader)
  if (flag && (value === 'true' || value === 'false')) {
    const wanted = (value === 'true') === (sign === '=')
    return (seen) => flag(seen) === wanted
  }
  if (first.value === 'properties' || first.value === 'appProperties') return propertyTerm(reader, value)
  return fieldTerm(first.value, sign, value)
}

const flags: Record<string, Matches> = {
  trashed: ({ item }) => isTrashed(item),
  starred: ({ item, user }) => item.starredBy.has(user.address),
  sharedWithMe: ({ item, user }) => item.driveId === undefined && item.owner !== user.address,
}

function collectionTerm(value: string, collection: string): Matches {
  const address = ({ address: me }: User): string => (value === 'me' ? me : value)
  switch (collection) {
    case 'parents':
      return ({ item, user }) => item.parent?.id === (value === 'root' ? user.rootId : value)
    case 'owners':
      return ({ item, user }) => item.owner === address(user)
    case 'writers':
    case 'readers': {
      const least = collection === 'writers' ? 'writer' : 'reader'
      return ({ item, access, user }) => {
        if (value === 'me' || value === user.address) return isAtLeast(access.role, least)
        if (!canShare(item, access)) return false
        return [...item.permissions.values()].some(
          (one) => one.email === address(user) && isAtLeast(one.role, least),
        )
      }
    }
    default:
      throw invalidParameter('q')
  }
}

/** `properties has { key='a' and value='b' }`; the brace is read already. */
function propertyTerm(reader: Reader, brace: string): Matches {
  const pieces = Array.from({ length: 8 }, () => next(reader).value)
  const [key, is, name, and, value, equals, wanted, end] = pieces
  const isWhole = [brace, key, is, and, value, equals, end].join(' ') === '{ key = and value = }'
  if (!isWhole) throw invalidParameter('q')
  return ({ item }) => item.properties[name!] === wanted
}

function fieldTerm(field: string, sign: string, value: string): Matches {
  switch (field) {
    case 'name':
      return textTerm(sign, value, ({ item }) => item.name, hasPrefix)
    case 'mimeType':
      return textTerm(
        sign,
        value,
        ({ item }) => item.mimeType,
        (text, wanted) => text.startsWith(wanted),
      )
    case 'fullText':
      if (sign !== 'contains') throw invalidParameter('q')
      return (seen) => hasWords(fullTextOf(seen.item), value)
    case 'shortcutDetails.targetId':
      return textTerm(sign, value, ({ item }) => item.target?.id ?? '')
    case 'visibility':
      return textTerm(sign, value, ({ item }) => visibilityOf(item))
    case 'modifiedTime':
      return timeTerm(sign, value, ({ item }) => item.modifiedMs)
    case 'createdTime':
      return timeTerm(sign, value, ({ item }) => item.createdMs)
    case 'viewedByMeTime':
      return timeTerm(sign, value, ({ item, user }) => item.openedBy.get(user.address))
    case 'sharedWithMeTime':
      return timeTerm(sign, value, ({ item, user }) => item.sharedAt.get(user.address)?.atMs)
    default:
      throw invalidParameter('q')
  }
}

type Contains = (text: string, wanted: string) => boolean

function textTerm(sign: string, wanted: string, read: (seen: Seen) => string, contains?: Contains): Matches {
  if (sign === '=') return (seen) => read(seen) === wanted
  if (sign === '!=') return (seen) => read(seen) !== wanted
  if (sign === 'contains' && contains) return (seen) => contains(read(seen), wanted)
  throw invalidParameter('q')
}

function timeTerm(sign: string, value: string, read: (seen: Seen) => number | undefined): Matches {
  const wantedMs = Date.parse(value)
  if (Number.isNaN(wantedMs)) throw invalidParameter('q')
  const compare: Record<string, (ms: number) => boolean> = {
    '=': (ms) => ms === wantedMs,
    '!=': (ms) => ms !== wantedMs,
    '<': (ms) => ms < wantedMs,
    '<=': (ms) => ms <= wantedMs,
    '>': (ms) => ms > wantedMs,
    '>=': (ms) => ms >= wantedMs,
  }
  const test = compare[sign]
  if (!test) throw invalidParameter('q')
  return (seen) => {
    const ms = read(seen)
    return ms !== undefined && test(ms)
  }
}

/** `contains` on names is by the beginnings of words. */
function hasPrefix(text: string, wanted: string): boolean {
  const words = queryWords(text)
  return queryWords(wanted).every((word) => words.some((one) => one.startsWith(word)))
}

function hasWords(text: string, wanted: string): boolean {
  if (wanted.startsWith('"') && wanted.endsWith('"')) {
    return text.toLowerCase().includes(wanted.slice(1, -1).toLowerCase())
  }
  const words = new Set(queryWords(text))
  return queryWords(wanted).every((word) => words.has(word))
}

function queryWords(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
}

function fullTextOf(item: Item): string {
  const isText = isNative(item) || item.mimeType.startsWith('text/')
  const text = isText && !isFolder(item) ? (item.content?.text() ?? '') : ''
  return `${item.name} ${item.description ?? ''} ${text}`
}

function visibilityOf(item: Item): string {
  for (const { type, isDiscoverable } of item.permissions.values()) {
    if (type === 'anyone') return isDiscoverable ? 'anyoneCanFind' : 'anyoneWithLink'
    if (type === 'domain') return isDiscoverable ? 'domainCanFind' : 'domainWithLink'
  }
  return 'limited'
}

function peek({ tokens, at }: Reader): Token | undefined {
  return tokens[at]
}

function next(reader: Reader): Token {
  const token = reader.tokens[reader.at]
  if (!token) throw invalidParameter('q')
  reader.at += 1
  return token
}

function takes(reader: Reader, value: string): boolean {
  const token = peek(reader)
  if (!token || token.kind === 'text' || token.value.toLowerCase() !== value) return false
  reader.at += 1
  return true
}
