/**
 * Which part of src may know which: imports point down only.
 *
 *   cli > server, runtime > apps/registry > apps > app > output, config > cloud > engine > ledger > base
 *
 * The simulated cloud stands aside: only the command line and tests may start it, and everything
 * else reaches it over HTTP like the real service.
 */
import { posix } from 'node:path'
import { importsOf, lineAt, scanSource } from './source-scan.ts'

export type SourceFile = {
  /** From the repository's root, with forward slashes: `src/engine/lane.ts`. */
  path: string
  text: string
}

export type Violation = { path: string; line: number; message: string }

const DOWN = ['app', 'output', 'config', 'search', 'cloud', 'engine', 'ledger', 'base'] as const

/** What each layer may import besides itself. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  cli: ['server', 'runtime', 'apps', 'demo', 'sim', ...DOWN],
  server: DOWN,
  runtime: DOWN,
  apps: ['demo', ...DOWN],
  demo: ['apps', 'sim', ...DOWN],
  pages: ['app', 'apps', 'base'],
  app: ['demo', ...DOWN.slice(1)],
  output: ['config', 'engine', 'ledger', 'base'],
  config: ['base'],
  search: ['engine', 'ledger', 'base'],
  cloud: ['config', 'engine', 'ledger', 'base'],
  engine: ['ledger', 'base'],
  ledger: ['base'],
  sim: ['base'],
  base: [],
}

/** Folders in which neighbours do not know each other: an app no other app, and so on. */
const STRANGERS: Record<string, string> = {
  apps: 'an app imports no other app',
  cloud: 'a cloud client imports no other',
  ledger: 'a ledger imports no other ledger',
}

/** What all services of a company share: their clients know it, and it knows none of them. */
const COMPANIES: readonly string[] = ['src/cloud/aws/', 'src/cloud/google/']

/** Layers that tell people which version they are of, which the package says. */
const TELLS_VERSION: readonly string[] = ['cli', 'server']

/** Packages that belong to one place. */
const PACKAGE_HOMES: Record<string, readonly RegExp[]> = {
  pg: [/^src\/ledger\/postgres\//],
  'node:sqlite': [/^src\/ledger\/sqlite\//, /^src\/apps\/[^/]+\/store(?:\.ts$|\/)/],
  commander: [/^src\/cli\//, /^src\/app\/(?:command\.ts$|cli\/)/, /^src\/apps\/[^/]+\/cli\//],
  '@bomb.sh/tab': [/^src\/cli\//],
  'smol-toml': [/^src\/config\//],
}

/** Where code takes its clock, its timers and its network from outside. */
const INJECTED_LAYERS: readonly string[] = ['engine', 'ledger', 'search', 'app', 'apps', 'cloud']

/** Commands are the surroundings, those of apps, too. */
export function isInjected(path: string): boolean {
  return INJECTED_LAYERS.includes(layerOf(path)) && !/^src\/(?:app|apps\/[^/]+)\/cli\//.test(path)
}

const AMBIENT_MODULES =
  /^(?:node:)?(?:https?|http2|net|tls|dgram|dns|timers)(?:\/promises)?$|^(?:undici|ws|axios|got)$/

export function isTest(path: string): boolean {
  return /\.(?:test|suite)\.ts$/.test(path)
}

/** Pages are built for a browser, with the dashboard's own parts. */
function isPage(path: string): boolean {
  return /^src\/apps\/(?:[^/]+\/web\/|pages\.ts$)/.test(path)
}

/** Parts of the demo stand in the simulated cloud; nothing else of an app knows it. */
function isDemo(path: string): boolean {
  return /^src\/(?:app\/demo\.ts$|apps\/[^/]+\/demo\/)/.test(path)
}

/** The layer of a file in src. What lies directly in it is a test of the whole. */
export function layerOf(path: string): string {
  const parts = path.split('/')
  if (parts.length <= 2) return 'base'
  if (isPage(path)) return 'pages'
  if (isDemo(path)) return 'demo'
  // What commands print with: those of apps, too.
  if (path.startsWith('src/cli/output/')) return 'output'
  return parts[1] ?? 'base'
}

export function checkLayers(files: SourceFile[]): Violation[] {
  return files.flatMap((file) => {
    if (!(layerOf(file.path) in MAY_IMPORT)) {
      return [{ path: file.path, line: 1, message: `src/${layerOf(file.path)} is not a layer` }]
    }
    return importsOf(scanSource(file.text)).flatMap(({ specifier, start }) => {
      const message = refusal(file.path, specifier)
      return message ? [{ path: file.path, line: lineAt(file.text, start), message }] : []
    })
  })
}

/**
 * Files that import each other in a circle. Of values, whichever is loaded first finds the others half made; of types,
 * none of them can be read, moved or tested without all the others. What is imported when it is needed closes no circle.
 */
export function checkCycles(files: SourceFile[]): Violation[] {
  const imports = new Map(files.map((file) => [file.path, staticImports(file)]))
  const done = new Set<string>()
  const found: Violation[] = []
  const follow = (path: string, way: readonly string[]): void => {
    if (way.includes(path)) {
      const circle = [...way.slice(way.indexOf(path)), path]
      found.push({ path, line: 1, message: `imports itself by way of ${circle.slice(1).join(', ')}` })
      return
    }
    if (done.has(path)) return
    for (const target of imports.get(path) ?? []) follow(target, [...way, path])
    done.add(path)
  }
  for (const { path } of files) follow(path, [])
  return found
}

function staticImports({ path, text }: SourceFile): string[] {
  const scanned = scanSource(text)
  return importsOf(scanned).flatMap(({ specifier, start }) => {
    if (!specifier?.startsWith('.') || !isStatic(scanned.code, start)) return []
    return [posix.normalize(posix.join(posix.dirname(path), specifier))]
  })
}

/** `from './b.ts'`, `import './b.ts'`, and a type that is named where it stands: `import('./b.ts').B`. */
function isStatic(code: string, start: number): boolean {
  if (/^(?:from|import)\s*['"]/.test(code.slice(start))) return true
  const isType = /^import\s*\(\s*(['"])[^'"]*\1\s*\)\s*\.\s*[A-Z]/.test(code.slice(start))
  return isType || /\btypeof\s+$/.test(code.slice(0, start))
}

function refusal(path: string, specifier: string | undefined): string | undefined {
  if (specifier === undefined) return 'imports something that cannot be read from the source'
  if (!specifier.startsWith('.')) return packageRefusal(path, specifier)
  const target = posix.normalize(posix.join(posix.dirname(path), specifier))
  if (!target.startsWith('src/')) {
    if (isPage(path) && target.startsWith('web/src/')) return undefined
    if (isTest(path) || (TELLS_VERSION.includes(layerOf(path)) && target === 'package.json')) return undefined
    return `imports ${target}, which is outside src`
  }
  return layerRefusal(path, target)
}

function packageRefusal(path: string, specifier: string): string | undefined {
  if (isTest(path)) return undefined
  const name = Object.keys(PACKAGE_HOMES).find((one) => specifier === one || specifier.startsWith(`${one}/`))
  const homes = name ? PACKAGE_HOMES[name] : undefined
  if (homes && !homes.some((home) => home.test(path))) return `imports ${specifier}, which has its own place`
  if (isInjected(path) && AMBIENT_MODULES.test(specifier)) {
    return `imports ${specifier}: time and network are passed in`
  }
  return undefined
}

function layerRefusal(path: string, target: string): string | undefined {
  if (isTest(target) && !isTest(path)) return `imports the test ${target}`
  const from = layerOf(path)
  const to = layerOf(target)
  const strangers = strangersIn(path, target)
  if (strangers && !isTest(path)) return `imports ${target}: ${strangers}`
  if (from === to) return undefined
  if (from === 'pages' && to === 'apps' && !/\/api\/schemas\.ts$/.test(target)) {
    return `imports ${target}: a page knows only what answers look like`
  }
  if (from === 'apps' && to === 'demo' && !/\/app\.ts$/.test(path)) {
    return `imports ${target}: only app.ts offers the demo`
  }
  if (from === 'cli' && to === 'apps' && !isTest(path) && !/^src\/apps\/[a-z]+\.ts$/.test(target)) {
    return `imports ${target}: the command line knows apps by their registry`
  }
  // A test sets up what it needs around what it tests.
  if (MAY_IMPORT[from]?.includes(to) || isTest(path)) return undefined
  return `imports ${target}: ${from} may not know ${to}`
}

/** Why two files of neighbouring folders must not know each other, if that is so. */
function strangersIn(path: string, target: string): string | undefined {
  const place = path.split('/')[1]!
  const [own, other] = [neighbourOf(path), neighbourOf(target)]
  if (place !== target.split('/')[1] || !own || !other || own === other) return undefined
  if (COMPANIES.some((company) => target.startsWith(company))) return undefined
  return STRANGERS[place]
}

/** The app, service or database whose folder the file is in. */
function neighbourOf(path: string): string | undefined {
  const parts = path.split('/')
  return parts.length > 3 ? parts[2] : undefined
}
