/**
 * Builds the dashboard into `web/dist` when its sources are newer than what is there: `npm run build`, and whatever
 * serves it. Newer is told by a hash of the sources that is stored beside the result, not by dates, which a checkout
 * sets at will. A package that ships the result without its sources is served as it is.
 */
import { createHash } from 'node:crypto'
import { globSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { mkdir, rename, rm } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { brotliCompress, gzip } from 'node:zlib'

const gzipped = promisify(gzip)
const brotlied = promisify(brotliCompress)

const ROOT = join(import.meta.dirname, '..')
const WEB = join(ROOT, 'web')
const DIST = join(WEB, 'dist')
const HASH_FILE = 'sources.sha256'

/** Answers are typed by the server's schemas, but types leave no trace in what is built. */
const SOURCES = [
  'web/index.html',
  'web/vite.config.ts',
  'web/public/**',
  'web/src/**',
  'src/apps/*/web/**',
  'package-lock.json',
]

export type WebBuild = { folder: string; built: boolean }

export async function buildWeb(options: { force?: boolean } = {}): Promise<WebBuild> {
  const hash = hashOfSources()
  if (hash === undefined) {
    if (storedHash() === undefined)
      throw new Error(`There is no dashboard in ${DIST}, and nothing to build it from.`)
    return { folder: DIST, built: false }
  }
  if (!options.force && storedHash() === hash) return { folder: DIST, built: false }
  await buildInto(hash)
  return { folder: DIST, built: true }
}

/** Into a folder of its own, which then takes the place of the old one: who serves it never sees half of it. */
async function buildInto(hash: string): Promise<void> {
  const fresh = join(WEB, `dist-${process.pid}-${performance.now().toFixed(0)}`)
  try {
    const { build } = await import('vite')
    await mkdir(fresh, { recursive: true })
    await build({ configFile: join(WEB, 'vite.config.ts'), logLevel: 'warn', build: { outDir: fresh } })
    await compress(fresh)
    writeFileSync(join(fresh, HASH_FILE), `${hash}\n`)
    await replace(fresh)
  } finally {
    rmSync(fresh, { recursive: true, force: true })
  }
}

/** Once here instead of with every answer; below this size it is not worth the header. */
const COMPRESSED_BYTES_MIN = 500

async function compress(folder: string): Promise<void> {
  for (const path of globSync('**/*.{js,css,html,svg}', { cwd: folder })) {
    const bytes = readFileSync(join(folder, path))
    if (bytes.length < COMPRESSED_BYTES_MIN) continue
    const [small, smaller] = await Promise.all([gzipped(bytes, { level: 9 }), brotlied(bytes)])
    writeFileSync(join(folder, `${path}.gz`), small)
    writeFileSync(join(folder, `${path}.br`), smaller)
  }
}

async function replace(fresh: string): Promise<void> {
  const old = `${fresh}-old`
  await rename(DIST, old).catch(() => undefined)
  try {
    await rename(fresh, DIST)
  } catch (error) {
    // Another process built at the same time and was first: its result is as good.
    if (storedHash() === undefined) throw error
  }
  await rm(old, { recursive: true, force: true })
}

function storedHash(): string | undefined {
  try {
    return readFileSync(join(DIST, HASH_FILE), 'utf8').trim()
  } catch {
    return undefined
  }
}

function hashOfSources(): string | undefined {
  const paths = globSync(SOURCES, { cwd: ROOT })
    .map((path) => join(ROOT, path))
    .filter((path) => !path.endsWith('.test.ts') && statSync(path).isFile())
    .sort()
  if (!paths.some((path) => path.endsWith('index.html'))) return undefined
  const hash = createHash('sha256')
  for (const path of paths)
    hash
      .update(`${relative(ROOT, path)}\0`)
      .update(readFileSync(path))
      .update('\0')
  return hash.digest('hex')
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const { folder, built } = await buildWeb({ force: process.argv.includes('--force') })
  process.stdout.write(`${built ? 'Built' : 'Up to date'}: ${relative(process.cwd(), folder)}\n`)
}
