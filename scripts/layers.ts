/**
 * Which part of src may know which: imports point down only.
 *
 *   cli, server > config > apps > search, cloud > engine > ledger > errors, clock, random, redaction
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

const DOWN = ['config', 'apps', 'search', 'cloud', 'engine', 'ledger', 'base'] as const

/** What each layer may import besides itself. */
const MAY_IMPORT: Record<string, readonly string[]> = {
  cli: ['server', 'sim', ...DOWN],
  server: DOWN,
  config: DOWN.slice(1),
  apps: DOWN.slice(2),
  search: ['engine', 'ledger', 'base'],
  cloud: ['engine', 'ledger', 'base'],
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

/** Layers that tell people which version they are of, which the package says. */
const TELLS_VERSION: readonly string[] = ['cli', 'server']

/** Packages that belong to one place. */
const PACKAGE_HOMES: Record<string, readonly RegExp[]> = {
  pg: [/^src\/ledger\/postgres\//],
  'node:sqlite': [/^src\/ledger\/sqlite\//, /^src\/apps\/[^/]+\/store(?:\.ts$|\/)/],
  commander: [/^src\/cli\//],
  '@bomb.sh/tab': [/^src\/cli\//],
  'smol-toml': [/^src\/config\//],
}

/** Where code takes its clock, its timers and its network from outside. */
export const INJECTED_LAYERS: readonly string[] = ['engine', 'ledger', 'search', 'apps', 'cloud']

const AMBIENT_MODULES =
  /^(?:node:)?(?:https?|http2|net|tls|dgram|dns|timers)(?:\/promises)?$|^(?:undici|ws|axios|got)$/

export function isTest(path: string): boolean {
  return /\.(?:test|suite)\.ts$/.test(path)
}

/** The layer of a file in src; `base` for what lies directly in it. */
export function layerOf(path: string): string {
  const parts = path.split('/')
  return parts.length <= 2 ? 'base' : (parts[1] ?? 'base')
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

function refusal(path: string, specifier: string | undefined): string | undefined {
  if (specifier === undefined) return 'imports something that cannot be read from the source'
  if (!specifier.startsWith('.')) return packageRefusal(path, specifier)
  const target = posix.normalize(posix.join(posix.dirname(path), specifier))
  if (!target.startsWith('src/')) {
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
  if (INJECTED_LAYERS.includes(layerOf(path)) && AMBIENT_MODULES.test(specifier)) {
    return `imports ${specifier}: time and network are passed in`
  }
  return undefined
}

function layerRefusal(path: string, target: string): string | undefined {
  const from = layerOf(path)
  const to = layerOf(target)
  if (isTest(target) && !isTest(path)) return `imports the test ${target}`
  if (from === to) {
    const [own, other] = [neighbourOf(path), neighbourOf(target)]
    const strangers = STRANGERS[from]
    return strangers && own && other && own !== other ? `imports ${target}: ${strangers}` : undefined
  }
  if (to === 'sim' && isTest(path)) return undefined
  if (MAY_IMPORT[from]?.includes(to)) return undefined
  // Tests that lie directly in src look at the whole of it.
  if (from === 'base' && isTest(path)) return undefined
  return `imports ${target}: ${from} may not know ${to}`
}

/** The app, service or database whose folder the file is in. */
function neighbourOf(path: string): string | undefined {
  const parts = path.split('/')
  return parts.length > 3 ? parts[2] : undefined
}
