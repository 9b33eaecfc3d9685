/**
 * Rules about what stands in a source file of src: nothing ambient where things are passed in, SQL
 * only where it belongs, nothing decided by the wording of a text, files that stay small and have names that say
 * something.
 */
import { isInjected, isTest, type SourceFile, type Violation } from './layers.ts'
import { lineAt, scanSource } from './source-scan.ts'

const LINES_MAX = 700

type AmbientRule = { pattern: RegExp; instead: string }

/** `(?<![\w.#$])` keeps methods and fields of the same name out. */
const AMBIENT: AmbientRule[] = [
  { pattern: /\bDate\.now\b/, instead: 'take a Clock' },
  { pattern: /\bnew\s+Date\s*(?:\(\s*\)|(?![\s(]))/, instead: 'take a Clock' },
  { pattern: /(?<![\w.#$]|new\s{1,9})Date\s*\(\s*\)/, instead: 'take a Clock' },
  { pattern: /\bTemporal\.Now\b/, instead: 'take a Clock' },
  { pattern: /\bperformance\s*\.\s*(?:now|timeOrigin)\b/, instead: 'take a Clock' },
  { pattern: /\bprocess\s*\.\s*(?:hrtime|uptime)\b/, instead: 'take a Clock' },
  { pattern: /(?<![\w.#$])set(?:Timeout|Interval)\b/, instead: 'use clock.timer' },
  { pattern: /\bglobalThis\.(?:set\w+|fetch|Date|Math|crypto|process)\b/, instead: 'take it as an argument' },
  { pattern: /\bAbortSignal\.timeout\b/, instead: 'use clock.timer' },
  { pattern: /\bMath\.random\b/, instead: 'take a Random' },
  {
    pattern: /\b(?:randomUUID|randomBytes|randomInt|randomFill|randomFillSync|getRandomValues)\b/,
    instead: 'take a Random',
  },
  { pattern: /\bprocess\s*\.\s*env\b/, instead: 'take a setting' },
]

const FETCH_CALL = /(?<![\w.#$])fetch\s*\(/
const FETCH_AS_VALUE = /(?:\?\?|\|\||=)\s*fetch\b(?!\s*[(:=])/

/** `fetch` as a parameter, a field of an argument or a variable: then it was passed in. */
const FETCH_BOUND = /[({,]\s*fetch\s*\??\s*[,:})]/

/** In capitals any statement; in small letters only what no sentence looks like. */
const SQL = [
  /^\s*(?:SELECT|INSERT INTO|INSERT OR|UPDATE|DELETE FROM|REPLACE INTO|MERGE INTO|WITH|CREATE|ALTER|DROP|TRUNCATE|PRAGMA|VACUUM|ATTACH|NOTIFY|LISTEN)\s/,
  /^\s*(?:BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE)\b(?! [a-z])/,
  /^\s*select\s[\s\S]+\sfrom\s+[\w.]+(?:\s+(?:where|join|left|order|group|limit|as)\b|\s*$)/,
  /^\s*insert\s+into\s+[\w.]+\s*(?:\(|values\b|select\b)/,
  /^\s*update\s+[\w.]+\s+set\s+[\w.]+\s*=/,
  /^\s*delete\s+from\s+[\w.]+\s*(?:where\b|$)/,
  /^\s*(?:create|alter|drop)\s+(?:unique\s+)?(?:table|index|view|trigger|schema|database)\s/,
  /^\s*pragma\s+\w+\s*(?:=|\(|;|$)/,
]

/** A part of an app that keeps something of its own may have a store of its own. */
const SQL_HOMES = [/^src\/ledger\//, /^src\/search\//, /^src\/apps\/[^/]+\/(?:[^/]+\/)?store(?:\.ts$|\/)/]

/** Names that say where something was dropped and not what it is. */
const BANNED_NAMES = /^(?:utils?|helpers?|common|types?|misc|shared|lib|stuff|constants)$/

/** Where an index.ts is the face of a package; elsewhere it would be a barrel. */
const INDEX_HOMES = /^src\/(?:engine|apps\/[^/]+)\/index\.ts$/

export function checkSourceRules(files: SourceFile[]): Violation[] {
  return files.flatMap((file) => [
    ...checkName(file),
    ...checkSize(file),
    ...checkAmbient(file),
    ...checkSql(file),
    ...checkWording(file),
    ...checkServices(file),
    ...checkSpreads(file),
  ])
}

/** A literal that is spread at once has the formatter put several properties on a line, and nothing else. */
const LITERAL_SPREAD = /[{,]\s*\.\.\.\{/g

function checkSpreads(file: SourceFile): Violation[] {
  if (isTest(file.path)) return []
  const { code } = scanSource(file.text)
  return [...code.matchAll(LITERAL_SPREAD)].map(({ index }) =>
    violation(file, index, 'spreads a literal: write its properties'),
  )
}

/** What is about one service is in its folder, or in that of an app that works with it. */
const SERVICE = /gmail|onedrive|microsoft|google/i
const SERVICE_HOMES = [
  /^src\/(?:apps|cloud|sim)\/[^/]+\//,
  /^src\/apps\/[a-z]+\.ts$/,
  /^src\/sim\/registry\.ts$/,
  // Not yet: what all services' clients share.
  /^src\/cloud\/(?:oauth|oauth-errors|registry)\.ts$/,
  // Secrets are known by their form.
  /^src\/base\/redaction\.ts$/,
]

function checkServices(file: SourceFile): Violation[] {
  if (isTest(file.path) || SERVICE_HOMES.some((home) => home.test(file.path))) return []
  const { code, strings } = scanSource(file.text)
  const found = [...code.matchAll(new RegExp(SERVICE, 'gi'))].map(({ index, 0: name }) => ({ index, name }))
  for (const { start, text } of strings) {
    const name = SERVICE.exec(text)?.[0]
    if (name !== undefined) found.push({ index: start, name })
  }
  return found.map(({ index, name }) => violation(file, index, `names ${name}: a service has its own folder`))
}

function checkAmbient(file: SourceFile): Violation[] {
  if (isTest(file.path) || !isInjected(file.path)) return []
  const { code } = scanSource(file.text)
  const found = AMBIENT.flatMap(({ pattern, instead }) =>
    [...code.matchAll(new RegExp(pattern, 'g'))].map((match) =>
      violation(file, match.index, `uses ${match[0].trim()}: ${instead}`),
    ),
  )
  const fetches = FETCH_BOUND.test(code) ? [FETCH_AS_VALUE] : [FETCH_AS_VALUE, FETCH_CALL]
  for (const pattern of fetches) {
    for (const match of code.matchAll(new RegExp(pattern, 'g'))) {
      found.push(violation(file, match.index, 'uses the global fetch: take it as an argument'))
    }
  }
  return found
}

function checkSql(file: SourceFile): Violation[] {
  if (isTest(file.path) || SQL_HOMES.some((home) => home.test(file.path))) return []
  return scanSource(file.text)
    .strings.filter(({ text }) => SQL.some((pattern) => pattern.test(text)))
    .map(({ start, text }) =>
      violation(
        file,
        start,
        `holds SQL (${text.trim().slice(0, 30)}…): it belongs in src/ledger, src/search or an app's store.ts`,
      ),
    )
}

/** What people read, and what is JSON. Who decides something reads the code beside it, or parses it. */
const TEXT = `(?:message|reason|note|because|hint|detail|payload)`
const DECIDES_BY_TEXT = [
  new RegExp(`\\b${TEXT}[?!]?\\.(?:startsWith|endsWith|includes|indexOf|match|matchAll|search)\\(`, 'g'),
  new RegExp(`\\.(?:test|exec)\\(\\s*(?:[\\w?!#]+\\.)*${TEXT}\\b`, 'g'),
]
const BEFORE_TEXT = new RegExp(`\\b${TEXT}\\s*[!=]==?\\s*$`)
const AFTER_TEXT = new RegExp(`^\\s*[!=]==?\\s*(?:[\\w?!#]+\\.)*${TEXT}\\b`)
const SQL_BY_TEXT = new RegExp(`\\b(?:${TEXT}|error)\\s+(?:NOT\\s+)?LIKE\\b`)

/** Other people's errors often have nothing but their words; a schema's steps give the texts of before their codes. */
const TEXT_READERS = [
  ...[/^src\/(?:cloud|ledger)\/(?:[^/]+\/)?(?:[a-z]+-)?errors\.ts$/, /(?:^|\/)schema\.ts$/],
  // Of the library that reads the command line.
  /^src\/cli\/main\.ts$/,
]

function checkWording(file: SourceFile): Violation[] {
  if (isTest(file.path) || file.path.startsWith('src/sim/')) return []
  if (TEXT_READERS.some((home) => home.test(file.path))) return []
  const { code, strings } = scanSource(file.text)
  const found = DECIDES_BY_TEXT.flatMap((pattern) => [...code.matchAll(pattern)].map(({ index }) => index))
  for (const { start, text } of strings) {
    const isCompared =
      text.includes(' ') &&
      (BEFORE_TEXT.test(code.slice(0, start)) || AFTER_TEXT.test(code.slice(start + text.length + 2)))
    if (isCompared || SQL_BY_TEXT.test(text)) found.push(start)
  }
  return found.map((at) => violation(file, at, 'decides by the wording of a text: give it a code'))
}

function checkSize(file: SourceFile): Violation[] {
  const lines = file.text.trimEnd().split('\n').length
  if (isTest(file.path) || lines <= LINES_MAX) return []
  return [violation(file, 0, `has ${lines} lines, more than ${LINES_MAX}`)]
}

function checkName(file: SourceFile): Violation[] {
  const found: Violation[] = []
  for (const part of file.path.split('/').slice(1)) {
    const name = part.replace(/(?:\.(?:test|suite|e2e|bench))*\.\w+$/, '')
    if (BANNED_NAMES.test(name))
      found.push(violation(file, 0, `is named ${name}, which says nothing about it`))
    else if (!/^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name))
      found.push(violation(file, 0, `${part} is not in kebab-case`))
  }
  if (file.path.endsWith('/index.ts') && !INDEX_HOMES.test(file.path)) {
    found.push(violation(file, 0, 'is a barrel: import from the files themselves'))
  }
  return found
}

function violation(file: SourceFile, position: number, message: string): Violation {
  return { path: file.path, line: lineAt(file.text, position), message }
}
