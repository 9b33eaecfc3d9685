/**
 * Who may ask, and from where. Everyone on this machine may by default; beyond it a token is required.
 *
 * - Host: on every request one of the names that this server has, so that a page elsewhere cannot reach it under a
 *   name of its own that it lets point here (DNS rebinding).
 * - Origin and Sec-Fetch-Site: pages of other origins may link here and nothing else.
 * - X-Tidemark: 1 on everything that changes something: a form elsewhere cannot send it, and a script only after
 *   asking, which is always refused. This holds without a token as well.
 * - Token: as a bearer, or once for a cookie (sign-in.ts). A cookie changes something only with its own origin.
 */
import { BlockList, isIP } from 'node:net'
import type { Context, MiddlewareHandler } from 'hono'
import { getCookie } from 'hono/cookie'
import type { Clock } from '../clock.ts'
import { UsageError } from '../errors.ts'
import type { AppEnv } from './app-env.ts'
import { ProblemError } from './problem.ts'
import { Sessions, sameSecret } from './sessions.ts'

export const SESSION_COOKIE = 'tidemark_session'
export const CSRF_HEADER = 'x-tidemark'
export const TOKEN_LENGTH_MIN = 16
const SECRET_LENGTH_MAX = 4_096

const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '::1']
const PROTECTED = /^\/(?:api|mcp|metrics)(?:\/|$)/
const OPEN_PATHS = new Set(['/api/sign-in', '/api/sign-out', '/api/session'])
const READING = new Set(['GET', 'HEAD', 'OPTIONS'])

export type Identity = 'open' | 'bearer' | 'cookie'

export type SecurityOptions = {
  clock: Clock
  token?: string | undefined
  /** What the server is bound to. */
  host?: string | undefined
  /** Further names under which it is reached, without ports: `mail.example.com`. */
  allowedHosts?: readonly string[] | undefined
}

export class Security {
  readonly sessions: Sessions
  readonly #token: string | undefined
  readonly #names: ReadonlySet<string>
  readonly #anyAddress: boolean

  constructor({ clock, token, host = '127.0.0.1', allowedHosts = [] }: SecurityOptions) {
    checkExposure({ host, token, allowedHosts })
    this.sessions = new Sessions(clock)
    this.#token = token
    this.#names = new Set([...LOOPBACK_NAMES, host, ...allowedHosts].map((name) => hostnameOf(name) ?? name))
    // Rebinding needs a name: who asks for a bare address was not led here by one.
    this.#anyAddress = !isLoopback(host)
  }

  get required(): boolean {
    return this.#token !== undefined
  }

  readonly middleware: MiddlewareHandler<AppEnv> = async (c, next) => {
    this.#checkHost(c)
    this.#checkOrigin(c)
    const identity = this.identify(c)
    if (needsToken(c.req.path)) this.#checkIdentity(c, identity)
    if (!READING.has(c.req.method)) checkIntent(c, identity)
    await next()
  }

  identify(c: Context<AppEnv>): Identity | undefined {
    if (this.#token === undefined) return 'open'
    const bearer = /^Bearer +(\S+) *$/i.exec(c.req.header('authorization') ?? '')?.[1]
    if (bearer !== undefined) return this.isToken(bearer) ? 'bearer' : undefined
    const cookie = getCookie(c, SESSION_COOKIE)
    return cookie && cookie.length < SECRET_LENGTH_MAX && this.sessions.has(cookie) ? 'cookie' : undefined
  }

  isToken(given: string): boolean {
    if (this.#token === undefined || given.length > SECRET_LENGTH_MAX) return false
    return sameSecret(given, this.#token)
  }

  #checkHost(c: Context<AppEnv>): void {
    const inUrl = new URL(c.req.url).host
    const header = c.req.header('host') ?? inUrl
    for (const host of new Set([inUrl, header])) {
      const name = hostnameOf(host)
      if (name !== undefined && (this.#names.has(name) || (this.#anyAddress && isIP(name) !== 0))) continue
      throw new ProblemError(403, `This server is not known as ${host.slice(0, 100)}.`, {
        hint: 'Use its address, or tell the server that it has this name (its allowed hosts).',
        code: 'host-refused',
      })
    }
  }

  #checkOrigin(c: Context<AppEnv>): void {
    const origin = c.req.header('origin')
    if (origin !== undefined && !isSameOrigin(origin, c.req.header('host') ?? new URL(c.req.url).host)) {
      throw crossOrigin()
    }
    const site = c.req.header('sec-fetch-site')
    if (site === undefined || site === 'same-origin' || site === 'none') return
    const isVisit =
      READING.has(c.req.method) &&
      c.req.header('sec-fetch-mode') === 'navigate' &&
      c.req.header('sec-fetch-dest') === 'document' &&
      !PROTECTED.test(c.req.path)
    if (!isVisit) throw crossOrigin()
  }

  #checkIdentity(c: Context<AppEnv>, identity: Identity | undefined): void {
    // Programs bring the token; a page has no business there.
    const allowed = c.req.path.startsWith('/mcp') && identity === 'cookie' ? undefined : identity
    if (allowed) return
    const given = c.req.header('authorization') !== undefined
    throw new ProblemError(401, given ? 'The token is not the right one.' : 'This needs the token.', {
      hint: 'Sign in on the page, or send the token with the header Authorization: Bearer TOKEN.',
      code: 'sign-in',
      headers: { 'www-authenticate': 'Bearer realm="tidemark"' },
    })
  }
}

type Reach = { host: string; allowedHosts?: readonly string[] | undefined }

/**
 * The name by which others reach the server; undefined where only this machine does. A name counts as well as an
 * address: what has it forwards to us, and whoever it forwards for seems to be on this machine.
 */
export function exposedAs({ host, allowedHosts = [] }: Reach): string | undefined {
  return [host, ...allowedHosts].find((name) => !isLoopback(name))
}

/** Beyond this machine anyone could read the mail: that takes a token. */
export function checkExposure({ token, ...reach }: Reach & { token?: string | undefined }): void {
  if (token !== undefined && token.length < TOKEN_LENGTH_MIN) {
    throw new UsageError(`The server's token has ${token.length} characters.`, {
      hint: `Use at least ${TOKEN_LENGTH_MIN}, made by chance: openssl rand -hex 32`,
      code: 'token-short',
    })
  }
  const name = exposedAs(reach)
  if (token === undefined && name !== undefined) {
    throw new UsageError(`Without a token the server does not listen on ${name}, which others can reach.`, {
      hint: 'Set a token, or listen on 127.0.0.1.',
      code: 'token-needed',
    })
  }
}

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')

export function isLoopback(host: string): boolean {
  const name = host.replace(/^\[(.*)\]$/, '$1').toLowerCase()
  const family = isIP(name)
  return family === 0 ? name === 'localhost' : loopback.check(name, family === 6 ? 'ipv6' : 'ipv4')
}

/** In small letters, without port and brackets; undefined for what is no host at all. */
function hostnameOf(host: string): string | undefined {
  const url = isIP(host) === 6 ? `http://[${host}]` : `http://${host}`
  if (!/^[\w.:[\]-]+$/.test(host) || !URL.canParse(url)) return undefined
  return new URL(url).hostname.replace(/^\[(.*)\]$/, '$1').replace(/\.$/, '')
}

/** The scheme may differ from ours: something before the server may speak https for it. */
function isSameOrigin(origin: string, host: string): boolean {
  if (!/^https?:\/\//.test(origin) || !URL.canParse(origin)) return false
  const { protocol, host: theirs } = new URL(origin)
  return URL.canParse(`${protocol}//${host}`) && new URL(`${protocol}//${host}`).host === theirs
}

/** Where there is a token at all. */
export function needsToken(path: string): boolean {
  return PROTECTED.test(path) && !OPEN_PATHS.has(path)
}

/** Whether whoever sends this means it: see the top. */
function checkIntent(c: Context<AppEnv>, identity: Identity | undefined): void {
  if (c.req.path === '/mcp') {
    // Only POST does something there; the others are told so.
    if (c.req.method !== 'POST') return
    // MCP clients do not send our header; JSON takes the same preflight that pages elsewhere do not pass.
    if (/^application\/json\b/i.test(c.req.header('content-type') ?? '')) return
    throw new ProblemError(415, 'MCP is spoken in JSON.', { code: 'not-json' })
  }
  if (c.req.header(CSRF_HEADER) !== '1') {
    throw new ProblemError(403, 'A request that changes something needs the header X-Tidemark: 1.', {
      hint: 'It shows that no other page sent the request in your name.',
      code: 'csrf',
    })
  }
  const hasOrigin = c.req.header('origin') !== undefined || c.req.header('sec-fetch-site') === 'same-origin'
  if (identity === 'cookie' && !hasOrigin) throw crossOrigin()
}

function crossOrigin(): ProblemError {
  return new ProblemError(403, 'The request comes from another page, which may not do this.', {
    hint: 'Open Tidemark itself and do it there.',
    code: 'cross-origin',
  })
}
