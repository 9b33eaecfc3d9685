/**
 * A real Chromium that comes from npm, and pages in it that are watched: what a page complains about (errors on its
 * console, exceptions, refusals by the content security policy, failed requests) fails the test that opened it.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'
import sparticuz from '@sparticuz/chromium'
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core'

/** Made for a place without neighbours; tests are to see what a person's browser would refuse. */
const UNWANTED_ARGS = new Set([
  '--single-process',
  '--no-zygote',
  '--disable-web-security',
  '--allow-running-insecure-content',
  '--disable-site-isolation-trials',
])
/**
 * A graphics card that the processor imitates costs more than half of a file's processor time (25.7 s instead of 11.9
 * for the tests of the reader); without one Chromium draws by itself.
 */
const GRAPHICS_ARGS = new Set([
  '--ignore-gpu-blocklist',
  '--use-gl=angle',
  '--use-angle=swiftshader',
  '--enable-unsafe-swiftshader',
])
/** Nothing leaves the machine by itself. */
const QUIET_ARGS = [
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  '--no-first-run',
]
/** What is not there by then never comes, also on a machine that is many times too busy. */
const PATIENCE_MS = 240_000

export type WatchedPage = Page & {
  /** What the page complained about so far. */
  trouble: string[]
}

export type VisitOptions = {
  /** `http://127.0.0.1:1234`; paths given to `goto` are below it. */
  url: string
  /** Opened at once; undefined leaves the page blank. */
  path?: string | undefined
  dark?: boolean
  widthPx?: number
  heightPx?: number
  /** Complaints that belong to what is tested: each must be met by no other. */
  expected?: readonly RegExp[]
  /** False: as somebody who has not signed in yet. */
  signedIn?: boolean
  /** A person who wants no motion gets none; tests are like that unless they look at motion. */
  motion?: boolean
}

const tokens = new Map<string, string>()

/** From now on pages of that server are opened signed in. */
export function signInBy(url: string, token: string): void {
  tokens.set(url, token)
}

/** What a page keeps when it has signed in. */
export async function signedInState(origin: string, token = tokens.get(origin)): Promise<StorageState> {
  if (token === undefined) return { cookies: [], origins: [] }
  const answer = await fetch(`${origin}/api/sign-in`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-tidemark': '1' },
    body: JSON.stringify({ token }),
  })
  const { session, user } = (await answer.json()) as { session: string; user: object }
  const localStorage = [
    { name: 'tidemark.session', value: session },
    { name: 'tidemark.user', value: JSON.stringify(user) },
  ]
  return { cookies: [], origins: [{ origin, localStorage }] }
}

type StorageState = Exclude<BrowserContextOptions['storageState'], string | undefined>

/** One for a test file; close it in `after`. */
export async function openBrowser(): Promise<Browser> {
  const args = sparticuz.args.filter((arg) => !UNWANTED_ARGS.has(arg) && !GRAPHICS_ARGS.has(arg))
  return chromium.launch({
    executablePath: await chromiumPath(),
    args: [...args, '--disable-gpu', ...QUIET_ARGS],
    headless: true,
  })
}

/** A page in a context of its own, closed when the test ends; the test fails if the page had trouble. */
export async function visit(
  test: TestContext,
  browser: Browser,
  options: VisitOptions,
): Promise<WatchedPage> {
  const { url, path, dark = false, widthPx = 1280, heightPx = 800, expected = [], motion = false } = options
  const context = await browser.newContext({
    ...(options.signedIn === false ? {} : { storageState: await signedInState(new URL(url).origin) }),
    baseURL: url,
    viewport: { width: widthPx, height: heightPx },
    colorScheme: dark ? 'dark' : 'light',
    reducedMotion: motion ? 'no-preference' : 'reduce',
    deviceScaleFactor: 1,
    locale: 'en-GB',
    timezoneId: 'UTC',
  })
  context.setDefaultTimeout(PATIENCE_MS)
  const page = watched(await context.newPage())
  test.after(async () => {
    await context.close()
    assert.deepEqual(
      page.trouble.filter((text) => !expected.some((pattern) => pattern.test(text))),
      [],
      'the page had trouble',
    )
  })
  if (path !== undefined) await page.goto(path)
  return page
}

/** Another page in the same context: with the same cookies and storage. */
export async function visitBeside(page: WatchedPage, path: string): Promise<WatchedPage> {
  const other = watched(await page.context().newPage(), page.trouble)
  await other.goto(path)
  return other
}

function watched(page: Page, trouble: string[] = []): WatchedPage {
  page.on('console', (message) => {
    if (message.type() === 'error') trouble.push(`console: ${message.text()} (${message.location().url})`)
  })
  page.on('pageerror', (error) => trouble.push(`exception: ${error.stack ?? error.message}`))
  page.on('requestfailed', (request) => {
    const reason = request.failure()?.errorText ?? 'failed'
    // Taken back by the page itself: a list that is no longer shown, a page that was left.
    if (reason !== 'net::ERR_ABORTED') trouble.push(`request: ${request.url()} ${reason}`)
  })
  page.on('response', (response) => {
    if (response.status() >= 400) trouble.push(`answer: ${response.status()} ${response.url()}`)
  })
  return Object.assign(page, { trouble })
}

const ROOT = join(import.meta.dirname, '..', '..')
const CACHE = join(ROOT, 'node_modules', '.cache', 'chromium')
const PACKAGE = join(ROOT, 'node_modules', '@sparticuz', 'chromium', 'package.json')
const UNPACK = `import chromium from '@sparticuz/chromium'; await chromium.executablePath()`

/**
 * The Chromium that comes packed from npm, unpacked once for all test files and kept beside the packages. The package
 * itself unpacks into the folder for temporary files, where a file that runs at the same time finds half of it.
 */
async function chromiumPath(): Promise<string> {
  const { version } = JSON.parse(readFileSync(PACKAGE, 'utf8')) as { version: string }
  const folder = join(CACHE, version)
  if (!existsSync(folder)) await unpack(folder)
  return join(folder, 'chromium')
}

async function unpack(folder: string): Promise<void> {
  mkdirSync(CACHE, { recursive: true })
  const draft = mkdtempSync(join(CACHE, 'draft-'))
  try {
    const env = { ...process.env, TMPDIR: draft }
    await promisify(execFile)(process.execPath, ['--input-type=module', '-e', UNPACK], { cwd: ROOT, env })
    renameSync(draft, folder)
  } catch (error) {
    rmSync(draft, { recursive: true, force: true })
    // Another file was faster.
    if (!existsSync(folder)) throw error
  }
}
