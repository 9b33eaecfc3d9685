/**
 * Who may ask, and from where. Whoever asks brings the server's token, a token of their own or a session: that a request
 * comes from this machine says nothing about who sent it.
 *
 * - Host: on every request one of the names that this server has, so that a page elsewhere cannot reach it under a
 *   name of its own that it lets point here (DNS rebinding).
 * - Origin and Sec-Fetch-Site: pages of other origins may link here and nothing else.
 * - Authorization: the token, which programs read from its file and which is the owner's; a user's own token; or a
 *   session, which a page was given for a token or for a code (sign-in.ts). Whether the user is still there, active, and
 *   in which role, is looked up each time: what was taken away is gone with the next request. There is no cookie: a browser sends cookies to every port of a host, and so to
 *   services of other people; what a page keeps in its own storage, other ports do not see.
 * - Members may ask for what is declared for them (`access: 'member'`), and for nothing else.
 * - What other services send (`access: 'signed'`) brings no token of ours: the route itself checks who sent it, by a
 *   bearer that no page elsewhere can have a browser send.
 * - X-Tidemark: 1 on everything else that changes something: a form elsewhere cannot send it, and a script only after
 *   asking, which is always refused.
 */
import { isIP } from 'node:net'
import type { Context, MiddlewareHandler } from 'hono'
import { ProblemError } from '../app/problem.ts'
import { OWNER, type RequestUser } from '../app/user.ts'
import type { Clock } from '../base/clock.ts'
import { UsageError } from '../base/errors.ts'
import { isLoopback } from '../base/loopback.ts'
import { OWNER_ID } from '../ledger/accounts.ts'
import { TOKEN_PREFIX, type Users } from '../ledger/users.ts'
import { type AppEnv, clientAddress, type Identity } from './app-env.ts'
import { RefusalLog, type WrongSecret } from './refusal-log.ts'
import { isSessionId, type SessionOf, Sessions, sameSecret } from './sessions.ts'

export const CSRF_HEADER = 'x-tidemark'
export const TOKEN_LENGTH_MIN = 16
const SECRET_LENGTH_MAX = 4_096

const LOOPBACK_NAMES = ['localhost', '127.0.0.1', '::1']
const PROTECTED = /^\/(?:api|mcp|metrics)(?:\/|$)/
const OPEN_PATHS = new Set(['/api/sign-in'])
const READING = new Set(['GET', 'HEAD', 'OPTIONS'])

/** `GET /api/search/documents/{id}`. */
export type RouteAddress = { method: string; path: string }

export type SecurityOptions = {
  clock: Clock
  token: string
  users: Pick<Users, 'active' | 'byToken'>
  /** All others are for admins alone. */
  memberRoutes?: readonly RouteAddress[] | undefined
  /** Those that check for themselves who asks. */
  signedRoutes?: readonly RouteAddress[] | undefined
  /** What the server is bound to. */
  host?: string | undefined
  /** Further names under which it is reached, without ports: `mail.example.com`. */
  allowedHosts?: readonly string[] | undefined
  /** Told of wrong tokens and codes, a few times a minute at most. */
  onWrongSecret?: ((wrong: WrongSecret) => void) | undefined
}

export class Security {
  readonly sessions: Sessions
  readonly #token: string
  readonly #users: SecurityOptions['users']
  readonly #memberMay: (method: string, path: string) => boolean
  readonly #isSigned: (method: string, path: string) => boolean
  readonly #refusals: RefusalLog
  readonly #names: ReadonlySet<string>
  readonly #anyAddress: boolean

  constructor(options: SecurityOptions) {
    const { clock, token, host = '127.0.0.1', allowedHosts = [], onWrongSecret = () => {} } = options
    checkToken(token)
    this.sessions = new Sessions(clock)
    this.#token = token
    this.#users = options.users
    this.#memberMay = routeCheck(options.memberRoutes ?? [])
    this.#isSigned = routeCheck(options.signedRoutes ?? [])
    this.#refusals = new RefusalLog({ clock, tell: onWrongSecret })
    this.#names = new Set([...LOOPBACK_NAMES, host, ...allowedHosts].map((name) => hostnameOf(name) ?? name))
    // Rebinding needs a name: who asks for a bare address was not led here by one.
    this.#anyAddress = !isLoopback(host)
  }

  readonly middleware: MiddlewareHandler<AppEnv> = async (c, next) => {
    this.#checkHost(c)
    this.#checkOrigin(c)
    if (!this.#isSigned(c.req.method, c.req.path)) {
      if (needsToken(c.req.path)) await this.#checkIdentity(c)
      if (!READING.has(c.req.method)) checkIntent(c)
    }
    await next()
  }

  async identify(c: Context<AppEnv>): Promise<Identity | undefined> {
    const bearer = bearerOf(c)
    if (bearer === undefined || bearer.length > SECRET_LENGTH_MAX) return undefined
    if (!isSessionId(bearer)) return this.byToken(bearer)
    const of = this.sessions.find(bearer)
    const user = of && (await this.#active(of))
    return user && { by: 'session', user, tokenId: of.tokenId }
  }

  /** The server's own is asked for first: it lets the owner in whatever the database does. */
  async byToken(given: string): Promise<Identity | undefined> {
    if (this.isToken(given)) return { by: 'token', user: OWNER }
    if (!given.startsWith(TOKEN_PREFIX)) return undefined
    const found = await this.#users.byToken(given)
    return found && { by: 'token', user: userOf(found), tokenId: found.tokenId }
  }

  /** Whether what was found out earlier holds still, for answers that go on. */
  async holds({ user, tokenId }: Identity): Promise<boolean> {
    const now = await this.#active({ userId: user.id, tokenId })
    return now?.role === user.role
  }

  async #active({ userId, tokenId }: SessionOf): Promise<RequestUser | undefined> {
    if (userId === OWNER_ID && tokenId === undefined) return OWNER
    const user = await this.#users.active(userId, tokenId)
    return user && userOf(user)
  }

  isToken(given: string): boolean {
    return given.length <= SECRET_LENGTH_MAX && sameSecret(given, this.#token)
  }

  /** Somebody tried a secret that is none. */
  noteWrong(c: Context<AppEnv>, what: WrongSecret['what']): void {
    this.#refusals.note({ what, from: clientAddress(c), path: c.req.path.slice(0, 200) })
  }

  close(): void {
    this.#refusals.close()
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

  async #checkIdentity(c: Context<AppEnv>): Promise<void> {
    const identity = await this.identify(c)
    // Programs bring the token; a page has no business there.
    const isPage = c.req.path.startsWith('/mcp') && identity?.by === 'session'
    if (identity && !isPage) {
      c.env?.admit?.()
      c.set('identity', identity)
      if (identity.user.role !== 'admin' && !this.#memberMay(c.req.method, c.req.path)) throw adminsOnly()
      return
    }
    const given = c.req.header('authorization')
    const isOver = isSessionId(bearerOf(c) ?? '')
    if (given !== undefined && !isOver) this.noteWrong(c, 'token')
    throw new ProblemError(
      401,
      isOver ? 'You are signed out.' : given ? WRONG_TOKEN : 'This needs the token.',
      {
        hint: 'Open the address that `tidemark sign-in` prints, or send the token of the file server.token with the header Authorization: Bearer TOKEN.',
        code: 'sign-in',
        headers: { 'www-authenticate': 'Bearer realm="tidemark"' },
      },
    )
  }
}

function userOf({ id, name, role }: RequestUser): RequestUser {
  return { id, name, role }
}

/** What a parameter stands for is one part of the path, as the router has it. */
function routeCheck(routes: readonly RouteAddress[]): (method: string, path: string) => boolean {
  const known = routes.map(({ method, path }) => ({
    method: method.toUpperCase(),
    path: new RegExp(`^${path.replaceAll(/[.+*?^$()|[\]\\]/g, '\\$&').replaceAll(/\{\w+\}/g, '[^/]+')}$`),
  }))
  return (method, path) => {
    const asked = method === 'HEAD' ? 'GET' : method
    return known.some((one) => one.method === asked && one.path.test(path))
  }
}

export function adminsOnly(): ProblemError {
  return new ProblemError(403, 'This is for admins.', {
    hint: 'Ask whoever looks after this Tidemark.',
    code: 'admins-only',
  })
}

export const WRONG_TOKEN = 'The token is not the right one.'

export function bearerOf(c: Context<AppEnv>): string | undefined {
  return /^Bearer +(\S+) *$/i.exec(c.req.header('authorization') ?? '')?.[1]
}

export function checkToken(token: string): void {
  if (token.length >= TOKEN_LENGTH_MIN) return
  throw new UsageError(`The server's token has ${token.length} characters.`, {
    hint: `Use at least ${TOKEN_LENGTH_MIN}, made by chance: openssl rand -hex 32`,
    code: 'token-short',
  })
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

export function needsToken(path: string): boolean {
  return PROTECTED.test(path) && !OPEN_PATHS.has(path)
}

/** Whether whoever sends this means it: see the top. */
function checkIntent(c: Context<AppEnv>): void {
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
}

function crossOrigin(): ProblemError {
  return new ProblemError(403, 'The request comes from another page, which may not do this.', {
    hint: 'Open Tidemark itself and do it there.',
    code: 'cross-origin',
  })
}
