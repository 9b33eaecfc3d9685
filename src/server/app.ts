/**
 * The modules' routes as a hono app. Each request is checked against its route's schemas, the handler's answer is
 * sent as JSON or bytes, and whatever is thrown becomes a problem. What a client sends never leads to a 5xx; that
 * takes a mistake of ours or a database that is away.
 */
import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { readCacheOf } from '../app/ledger-read-cache.ts'
import { type ServerModule, servicesFor } from '../app/module.ts'
import { asProblem, notFound, ProblemError, problemResponse } from '../app/problem.ts'
import type { AnyRoute, Download, DownloadAnswer, Route } from '../app/route.ts'
import type { Services } from '../app/services.ts'
import { NOBODY } from '../app/user.ts'
import { TidemarkError } from '../base/errors.ts'
import type { App, AppEnv } from './app-env.ts'
import { matchesEtag, taggedAnswer } from './etag.ts'
import { checkBodyLength, readInput, URL_LENGTH_MAX } from './request-input.ts'
import { adminsOnly, bearerOf, needsToken } from './security.ts'

/** Told of what went wrong inside; the client hears only that something did. */
export type OnError = (thrown: unknown, about: { method: string; path: string }) => void

export function createApp(onError: OnError = () => {}): App {
  const app: App = new Hono()
  app.onError((thrown, c) => refuse(c, thrown, onError))
  app.notFound((c) => problemResponse(nothingAt(c.req.path)))
  app.use('*', securityHeaders)
  app.use('*', async (c, next) => {
    checkRequest(c.req.raw)
    await next()
  })
  return app
}

export type RouteOptions = {
  services: Services
  onError?: OnError
  /** Holds every answer against its schema; for tests. */
  checkAnswers?: boolean
}

export function addModules(app: App, modules: readonly ServerModule[], options: RouteOptions): void {
  for (const module of modules) {
    const services = servicesFor(module, options.services)
    for (const route of module.routes) addRoute(app, route, { ...options, services })
  }
}

/** To be called when all routes are there: other methods on known paths, and everything unknown under /api. */
export function closeApi(app: App, documented: readonly { method: string; path: string }[]): void {
  const methods = new Map<string, Set<string>>()
  for (const { method, path } of documented) {
    const allowed = methods.get(honoPath(path)) ?? new Set()
    allowed.add(method.toUpperCase())
    if (method.toLowerCase() === 'get') allowed.add('HEAD')
    methods.set(honoPath(path), allowed)
  }
  for (const [path, allowed] of methods) {
    const allow = [...allowed].join(', ')
    app.all(path, (c) => {
      throw new ProblemError(405, `${c.req.method} does not work on ${c.req.path.slice(0, 200)}.`, {
        hint: `It takes ${allow}.`,
        code: 'method',
        headers: { allow },
      })
    })
  }
  const unknown = (c: Context<AppEnv>): Response => problemResponse(nothingAt(c.req.path))
  app.all('/api', unknown)
  app.all('/api/*', unknown)
}

export function assertNoDuplicates(routes: readonly { method: string; path: string }[]): void {
  const seen = new Set<string>()
  for (const { method, path } of routes) {
    const name = `${method} ${path.replaceAll(/\{\w+\}/g, '{}')}`
    if (seen.has(name)) throw new TidemarkError(`There are two routes ${name}.`, { kind: 'bug' })
    seen.add(name)
  }
}

function addRoute(app: App, route: AnyRoute, options: RouteOptions): void {
  const { method, path } = route.spec
  app.on(method.toUpperCase(), honoPath(path), async (c) => {
    try {
      return route.kind === 'json' ? await answer(c, route, options) : await download(c, route, options)
    } catch (thrown) {
      return refuse(c, thrown, options.onError ?? (() => {}))
    }
  })
}

async function answer(c: Context<AppEnv>, { spec, handle }: Route, options: RouteOptions): Promise<Response> {
  const input = await inputOf(c, spec)
  const value = await handle(input as never, options.services as never)
  // Whoever changed something wants to see it.
  if (spec.method !== 'get' && !spec.onlyReads) readCacheOf(options.services.ledger).forget()
  if (options.checkAnswers) checkAnswer(spec, value)
  const headers: Record<string, string> = {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': spec.etag ? 'private, no-cache' : 'private, no-store',
  }
  if (spec.etag) {
    const { text, etag } = taggedAnswer(value)
    headers.etag = etag
    const isSame = matchesEtag(c.req.header('if-none-match'), etag)
    return new Response(isSame ? null : text, { status: isSame ? 304 : (spec.status ?? 200), headers })
  }
  return new Response(JSON.stringify(value), { status: spec.status ?? 200, headers })
}

async function download(
  c: Context<AppEnv>,
  { spec, handle }: Download,
  options: RouteOptions,
): Promise<Response> {
  const input = await inputOf(c, spec)
  return downloadResponse(await handle(input as never, options.services as never))
}

async function inputOf(c: Context<AppEnv>, spec: AnyRoute['spec']): Promise<unknown> {
  const user = c.get('identity')?.user ?? NOBODY
  // Said a second time, where the route itself is known: no address leads around it.
  if (needsToken(spec.path) && user.role !== 'admin' && spec.access === undefined) throw adminsOnly()
  const input = await readInput(c.req.raw, spec, c.req.param() as Record<string, string>)
  const bearer = spec.access === 'signed' ? bearerOf(c) : undefined
  return { ...input, user, bearer, signal: c.req.raw.signal, origin: originOf(c) }
}

/** The host is one of ours: see security.ts. Something before the server may speak https for it. */
function originOf(c: Context<AppEnv>): string {
  const { protocol, host } = new URL(c.req.url)
  const forwarded = c.req.header('x-forwarded-proto')?.split(',')[0]?.trim().toLowerCase()
  return `${forwarded === 'https' ? 'https:' : protocol}//${host}`
}

function checkAnswer(spec: Route['spec'], value: unknown): void {
  const parsed = spec.answer.safeParse(JSON.parse(JSON.stringify(value) ?? 'null'))
  if (parsed.success) return
  throw new TidemarkError(`The answer of ${spec.method} ${spec.path} is not what it says.`, {
    kind: 'bug',
    cause: parsed.error,
  })
}

const CONTENT_TYPE = /^[\w.+-]+\/[\w.+-]+(?:\s*;\s*[\w-]+="?[\w.+:/-]+"?)*$/

function downloadResponse({
  bytes,
  contentType,
  status = 200,
  fileName,
  headers = {},
}: DownloadAnswer): Response {
  const safe: Record<string, string> = {
    'content-type': CONTENT_TYPE.test(contentType) ? contentType : 'application/octet-stream',
    'cache-control': 'private, no-store',
    ...headers,
  }
  if (fileName !== undefined) safe['content-disposition'] = disposition(fileName)
  // A copy would cost as much as the attachment is large; the types differ in what kind of buffer is behind.
  return new Response(bytes as Uint8Array<ArrayBuffer> | string, { status, headers: safe })
}

const NAME_LENGTH_MAX = 150

/** No folders, no control or direction characters that make `exe.pdf` out of `fdp.exe`, nothing to end the header. */
export function disposition(fileName: string): string {
  const name =
    fileName
      .toWellFormed()
      .replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '')
      .replaceAll(/[/\\:*?"<>|]/g, '_')
      .replace(/^[.\s]+/, '')
      .slice(0, NAME_LENGTH_MAX)
      .toWellFormed()
      .trim() || 'download'
  const ascii = name.replaceAll(/[^\x20-\x7e]/g, '_').replaceAll(/["\\%;]/g, '_')
  const encoded = encodeURIComponent(name).replaceAll(/['()*]/g, (c) => `%${c.charCodeAt(0).toString(16)}`)
  return `attachment; filename="${ascii}"; filename*=UTF-8''${encoded}`
}

/** `/api/jobs/{id}` is `/api/jobs/:id` for hono. */
export function honoPath(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1')
}

function checkRequest(request: Request): void {
  if (request.url.length > URL_LENGTH_MAX) {
    throw new ProblemError(414, `The address has more than ${URL_LENGTH_MAX} characters.`, {
      code: 'too-long',
    })
  }
  checkBodyLength(request)
  const { pathname } = new URL(request.url)
  try {
    if (decodeURIComponent(pathname).includes('\0')) throw new URIError('a NUL')
  } catch (cause) {
    throw new ProblemError(400, 'The address is not encoded correctly.', { code: 'invalid-request', cause })
  }
}

function nothingAt(path: string): ProblemError {
  return notFound(`There is nothing at ${path.slice(0, 200)}.`, {
    hint: 'GET /api/openapi.json lists everything that there is.',
  })
}

function refuse(c: Context<AppEnv>, thrown: unknown, onError: OnError): Response {
  const problem = asProblem(thrown)
  // Who went away hears nothing, and that the work then stopped is no mistake.
  const left = c.req.raw.signal.aborted
  if (problem.problem.status >= 500 && !left) onError(thrown, { method: c.req.method, path: c.req.path })
  return problemResponse(problem)
}

const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

const ALWAYS: readonly [name: string, value: string][] = [
  ['x-content-type-options', 'nosniff'],
  ['referrer-policy', 'no-referrer'],
  ['cross-origin-opener-policy', 'same-origin'],
  ['cross-origin-resource-policy', 'same-origin'],
  ['permissions-policy', 'camera=(), microphone=(), geolocation=(), payment=(), usb=(), interest-cohort=()'],
  ['x-dns-prefetch-control', 'off'],
]

/** Headers that every answer has. An answer with a content security policy of its own (a mail's HTML) keeps it. */
const securityHeaders: MiddlewareHandler<AppEnv> = async (c, next) => {
  await next()
  const { headers } = c.res
  for (const [name, value] of ALWAYS) if (!headers.has(name)) headers.set(name, value)
  if (headers.has('content-security-policy')) return
  headers.set('content-security-policy', PAGE_POLICY)
  // For browsers that do not know frame-ancestors; an own policy says itself who may frame it.
  headers.set('x-frame-options', 'DENY')
}
