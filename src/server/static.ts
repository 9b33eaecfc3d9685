/**
 * The built pages. All files are read once and found by their name in a table, so that no path of a request ever
 * reaches the file system; a new build is noticed by its index.html. Any other path is a page of the app, which
 * index.html shows.
 */
import { createHash } from 'node:crypto'
import { type Dirent, readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join, relative, sep } from 'node:path'
import type { Context } from 'hono'
import { notFound } from '../app/problem.ts'
import type { App, AppEnv } from './app-env.ts'
import { matchesEtag } from './etag.ts'

const FILES_MAX = 2_000
const FILE_BYTES_MAX = 10_000_000

const TYPES: Record<string, string> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.mjs': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.map': 'application/json; charset=utf-8',
  '.webmanifest': 'application/manifest+json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.webp': 'image/webp',
  '.ico': 'image/x-icon',
  '.woff2': 'font/woff2',
  '.woff': 'font/woff',
  '.txt': 'text/plain; charset=utf-8',
}

const ENCODINGS = [
  { name: 'br', suffix: '.br' },
  { name: 'gzip', suffix: '.gz' },
] as const

type Variant = { encoding: string | null; bytes: Uint8Array<ArrayBuffer>; etag: string }
type SiteFile = { type: string; isHashed: boolean; variants: Variant[] }
type Site = { files: ReadonlyMap<string, SiteFile>; builtMs: number }

/** The bundler puts a hash of the content into the names of all that lies here. */
const HASHED = /^\/assets\/.+[-.][\w-]{8,}\.\w+$/

export function addStatic(app: App, folder: string | undefined): void {
  let site: Site | undefined
  const current = (): Site | undefined => {
    const builtMs = folder === undefined ? undefined : builtAt(folder)
    // A new build takes the folder's place: while neither is there, or half of it, the old pages are as good.
    if (folder === undefined || builtMs === undefined || site?.builtMs === builtMs) return site
    try {
      site = { files: readSite(folder), builtMs }
    } catch (thrown) {
      if (!site) throw thrown
    }
    return site
  }
  app.get('*', (c) => {
    const built = current()
    if (!built) return notBuilt()
    const path = decodeURIComponent(new URL(c.req.url).pathname)
    const file = built.files.get(path) ?? (isPage(path) ? built.files.get('/index.html') : undefined)
    if (!file) throw notFound(`There is no file ${path.slice(0, 200)}.`)
    return serve(c, file)
  })
}

/** What ends like a file that pages load is one; a stream's name may end in `.com`. */
function isPage(path: string): boolean {
  return !path.startsWith('/assets/') && !(extname(path).toLowerCase() in TYPES)
}

function serve(c: Context<AppEnv>, { type, isHashed, variants }: SiteFile): Response {
  const accepted = acceptedEncodings(c.req.header('accept-encoding') ?? '')
  // The smallest that the client understands; the plain one is always there and last.
  const chosen = variants.find(({ encoding }) => encoding === null || accepted.has(encoding))!
  const headers: Record<string, string> = {
    'content-type': type,
    'cache-control': isHashed ? 'public, max-age=31536000, immutable' : 'no-cache',
    etag: chosen.etag,
    vary: 'Accept-Encoding',
  }
  if (matchesEtag(c.req.header('if-none-match'), chosen.etag)) {
    return new Response(null, { status: 304, headers })
  }
  if (chosen.encoding !== null) headers['content-encoding'] = chosen.encoding
  headers['content-length'] = String(chosen.bytes.byteLength)
  return new Response(chosen.bytes, { headers })
}

function acceptedEncodings(header: string): Set<string> {
  const parts = header.split(',').map((part) => part.trim().toLowerCase())
  return new Set(
    parts.filter((part) => !/;\s*q=0(?:\.0*)?$/.test(part)).map((part) => part.split(';')[0]!.trim()),
  )
}

function builtAt(folder: string): number | undefined {
  return statSync(join(folder, 'index.html'), { throwIfNoEntry: false })?.mtimeMs
}

function readSite(folder: string): Map<string, SiteFile> {
  const found = filesIn(folder)
  const files = new Map<string, SiteFile>()
  for (const [path, file] of found) {
    const type = TYPES[extname(path).toLowerCase()]
    if (type === undefined) continue
    const variants = ENCODINGS.flatMap(({ name, suffix }) => {
      const packed = found.get(path + suffix)
      return packed === undefined ? [] : [variantOf(name, packed)]
    })
    variants.push(variantOf(null, file))
    files.set(path, { type, isHashed: HASHED.test(path), variants })
  }
  return files
}

/** Plain files only: a link could lead anywhere. */
function filesIn(folder: string): Map<string, string> {
  const entries: Dirent[] = readdirSync(folder, { recursive: true, withFileTypes: true })
  const files = new Map<string, string>()
  for (const entry of entries) {
    const file = join(entry.parentPath, entry.name)
    const parts = relative(folder, file).split(sep)
    // What begins with a dot is the bundler's own.
    if (!entry.isFile() || parts.some((part) => part.startsWith('.')) || files.size >= FILES_MAX) continue
    if (statSync(file).size > FILE_BYTES_MAX) continue
    files.set(`/${parts.join('/')}`, file)
  }
  return files
}

function variantOf(encoding: string | null, file: string): Variant {
  const bytes = new Uint8Array(readFileSync(file))
  const hash = createHash('sha256').update(bytes).digest('base64url').slice(0, 22)
  return { encoding, bytes, etag: `"${hash}"` }
}

function notBuilt(): Response {
  const text = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Tidemark</title>
<h1>Tidemark is running</h1>
<p>Its pages are not built yet. Build them in the folder of Tidemark, then load this page again:</p>
<pre>npm run build</pre>
<p>The API is there already: <a href="/api/openapi.json">what it offers</a>, <a href="/healthz">health</a>.</p>
</html>
`
  return new Response(text, {
    status: 404,
    headers: { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' },
  })
}
