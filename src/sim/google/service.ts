/** What the simulated services of Google share: where they are, who signs in, and how a path finds its route. */
import type { Grants } from '../grants.ts'
import { safeDecode } from '../server.ts'
import type { Kernel } from '../service.ts'
import {
  type GoogleSignIn,
  googleClient,
  googlePaths,
  joinGoogleSignIn,
  type ServiceAccount,
} from './sign-in.ts'

/** An account with tokens, as a client would have got them. */
export type GoogleAccount = { address: string; accessToken: string; refreshToken: string }

export abstract class GoogleService {
  readonly clientId = googleClient.id
  readonly clientSecret = googleClient.secret
  protected readonly kernel: Kernel
  protected readonly signIn: GoogleSignIn

  constructor(kernel: Kernel) {
    this.kernel = kernel
    this.signIn = joinGoogleSignIn(kernel, () => this.addresses)
  }

  abstract get addresses(): readonly string[]

  get grants(): Grants {
    return this.signIn.grants
  }

  /** `rootUrl` of Google's client. */
  get baseUrl(): string {
    return this.kernel.origin()
  }

  get authUrl(): string {
    return this.baseUrl + googlePaths.auth
  }

  get tokenUrl(): string {
    return this.baseUrl + googlePaths.token
  }

  get revokeUrl(): string {
    return this.baseUrl + googlePaths.revoke
  }

  serviceAccount(): ServiceAccount {
    return this.signIn.serviceAccount(this.baseUrl)
  }

  protected issueTo(address: string, scopes: readonly string[]): GoogleAccount {
    const { access, refreshToken = '' } = this.grants.issue({ address, scopes, isOffline: true })
    return { address, accessToken: access.token, refreshToken }
  }
}

/**
 * A literal second piece (`messages/send`) goes before an id: `messages/*`. Below `settings` a name comes first, and then
 * the id: `settings/sendAs/*`.
 */
export function findRoute<Route>(
  routes: Readonly<Record<string, Route>>,
  verb: string,
  path: string,
): { route: Route; ids: string[] } | undefined {
  const pieces = path.split('/')
  const literal = pieces.length <= 2 ? routes[`${verb} ${path}`] : undefined
  if (literal) return { route: literal, ids: [] }
  return routeBy((at) => at % 2 === 1) ?? routeBy((at) => at > 0 && at % 2 === 0)

  function routeBy(isId: (at: number) => boolean): { route: Route; ids: string[] } | undefined {
    const route = routes[`${verb} ${pieces.map((piece, at) => (isId(at) ? '*' : piece)).join('/')}`]
    return route && { route, ids: pieces.filter((_, at) => isId(at)).map(safeDecode) }
  }
}
