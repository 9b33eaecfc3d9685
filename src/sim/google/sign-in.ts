/**
 * Sign-in as Google does it, for every service of its cloud: the consent page (authorization code with PKCE), the
 * token endpoint (code, refresh token, signed JWT of a service account), revocation and token info.
 */
import type { Access, Tokens } from '../grants.ts'
import { jsonAnswer, type Operation, type SimAnswer, type SimCall } from '../server.ts'
import { type Kernel, randomFor } from '../service.ts'
import { bearerToken, form, isLoopback, SignIn, type SignInProblem, splitScopes } from '../sign-in.ts'
import { isCloudScope } from './cloud-access.ts'
import { createSigningKey, privatePem, type SigningKey, verifyJwt } from './keys.ts'

export const googleClient: { readonly id: string; readonly secret: string } = {
  id: '000000000000-tidemarksim.apps.googleusercontent.com',
  secret: 'GOCSPX-tidemark-sim',
}

/** What is known about a service account with delegation over the domain. */
export type ServiceAccount = {
  type: 'service_account'
  project_id: string
  client_email: string
  client_id: string
  private_key_id: string
  private_key: string
  token_uri: string
}

export const googlePaths = {
  auth: '/o/oauth2/v2/auth',
  token: '/token',
  revoke: '/revoke',
  tokenInfo: '/tokeninfo',
} as const

const JWT_GRANT = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const SERVICE_EMAIL = 'archiver@tidemark-sim.iam.gserviceaccount.com'
const JWT_AHEAD_S_MAX = 3600

const signIns = new WeakMap<Kernel, GoogleSignIn>()

/** One for each cloud: an account and its tokens are the same at every service that joins. */
export function joinGoogleSignIn(kernel: Kernel, addresses: () => readonly string[]): GoogleSignIn {
  const signIn = signIns.get(kernel) ?? new GoogleSignIn(kernel)
  signIns.set(kernel, signIn)
  signIn.join(addresses)
  return signIn
}

export class GoogleSignIn extends SignIn {
  readonly #services: (() => readonly string[])[] = []
  #serviceKey: SigningKey | undefined

  constructor(kernel: Kernel) {
    super(kernel, {
      random: randomFor(kernel, 0x0a07),
      clientId: googleClient.id,
      addresses: () => [...new Set(this.#services.flatMap((own) => own()))],
    })
  }

  join(addresses: () => readonly string[]): void {
    this.#services.push(addresses)
  }

  match(call: SimCall): Operation | undefined {
    const run = this.#handler(call)
    if (!run) return undefined
    return {
      name: run.name,
      run: run.answer,
      refuse: ({ status, reason, message }) =>
        oauthError(status, reason ?? (status >= 500 ? 'internal_failure' : 'rate_limit_exceeded'), message),
    }
  }

  /** The key file that an administrator would download. */
  serviceAccount(origin: string): ServiceAccount {
    const key = this.#key()
    return {
      type: 'service_account',
      project_id: 'tidemark-sim',
      client_email: SERVICE_EMAIL,
      client_id: '100000000000000000001',
      private_key_id: key.id,
      private_key: privatePem(key),
      token_uri: `${origin}${googlePaths.token}`,
    }
  }

  #handler(call: SimCall): { name: string; answer: () => SimAnswer } | undefined {
    switch (call.path) {
      case googlePaths.auth:
        return { name: 'oauth.auth', answer: () => this.authorize(call) }
      case googlePaths.token:
      case '/oauth2/v4/token':
      case '/o/oauth2/token':
        return { name: 'oauth.token', answer: () => this.#token(call) }
      case googlePaths.revoke:
      case '/o/oauth2/revoke':
        return { name: 'oauth.revoke', answer: () => this.#revoke(call) }
      case googlePaths.tokenInfo:
      case '/oauth2/v3/tokeninfo':
        return { name: 'oauth.tokeninfo', answer: () => this.#tokenInfo(call) }
      default:
        return undefined
    }
  }

  protected problemWith(asked: URLSearchParams): SignInProblem | undefined {
    const wrong = (error: string, detail: string) => ({ status: 400, error, detail })
    if (asked.get('client_id') !== this.clientId) {
      return { status: 401, error: 'invalid_client', detail: 'The OAuth client was not found.' }
    }
    if (!isLoopback(asked.get('redirect_uri') ?? '')) {
      return wrong('redirect_uri_mismatch', 'The redirect must go to http://127.0.0.1, [::1] or localhost.')
    }
    if (asked.get('response_type') !== 'code')
      return wrong('unsupported_response_type', 'Only code is supported.')
    if (splitScopes(asked.get('scope')).length === 0)
      return wrong('invalid_request', 'Missing required parameter: scope')
    const method = asked.get('code_challenge_method')
    if (asked.has('code_challenge') && method !== 'S256') {
      return wrong('invalid_request', 'Only the code challenge method S256 is supported.')
    }
    return undefined
  }

  protected isOffline(asked: URLSearchParams): boolean {
    return asked.get('access_type') !== 'online'
  }

  protected override redirectFields(granted: readonly string[]): Record<string, string> {
    return { scope: granted.join(' ') }
  }

  #token(call: SimCall): SimAnswer {
    if (call.verb !== 'POST') return oauthError(405, 'invalid_request', 'Only POST is allowed.')
    const input = form(call)
    switch (input.get('grant_type')) {
      case 'authorization_code':
        return this.#checkClient(call, input) ?? this.#redeem(input)
      case 'refresh_token':
        return this.#checkClient(call, input) ?? this.#refresh(input)
      case JWT_GRANT:
        return this.#serviceToken(input.get('assertion') ?? '', call)
      default:
        return oauthError(
          400,
          'unsupported_grant_type',
          `Invalid grant_type: ${input.get('grant_type') ?? ''}`,
        )
    }
  }

  #checkClient(call: SimCall, input: URLSearchParams): SimAnswer | undefined {
    const basic = /^Basic (.+)$/i.exec(call.headers.authorization ?? '')?.[1]
    const [basicId, basicSecret] = basic ? Buffer.from(basic, 'base64').toString().split(':') : []
    if ((input.get('client_id') ?? basicId) !== this.clientId) {
      return oauthError(401, 'invalid_client', 'The OAuth client was not found.')
    }
    if ((input.get('client_secret') ?? basicSecret) !== googleClient.secret) {
      return oauthError(401, 'invalid_client', 'Unauthorized')
    }
    return undefined
  }

  #redeem(input: URLSearchParams): SimAnswer {
    const verifier = input.get('code_verifier')
    const tokens = this.grants.redeem({
      code: input.get('code') ?? '',
      redirectUri: input.get('redirect_uri') ?? '',
      ...(verifier === null ? {} : { verifier }),
    })
    if (tokens === 'redirect_uri_mismatch') return oauthError(400, tokens, 'Bad Request')
    if (typeof tokens === 'string') return oauthError(400, 'invalid_grant', tokens)
    return jsonAnswer(this.#tokenBody(tokens.access, tokens))
  }

  #refresh(input: URLSearchParams): SimAnswer {
    const access = this.grants.refresh(input.get('refresh_token') ?? '')
    if (!access) return oauthError(400, 'invalid_grant', 'Token has been expired or revoked.')
    return jsonAnswer(this.#tokenBody(access))
  }

  #serviceToken(assertion: string, call: SimCall): SimAnswer {
    const claims = verifyJwt(this.#key(), assertion)
    if (!claims) return oauthError(400, 'invalid_grant', 'Invalid JWT Signature.')
    const { iss, sub, aud, exp, scope } = claims
    const nowS = this.kernel.clock.now() / 1000
    if (iss !== SERVICE_EMAIL) return oauthError(400, 'invalid_grant', 'Invalid grant: account not found')
    if (typeof aud !== 'string' || !aud.endsWith(call.path)) {
      return oauthError(400, 'invalid_grant', 'Invalid JWT: Failed audience check.')
    }
    if (typeof exp !== 'number' || exp <= nowS || exp > nowS + JWT_AHEAD_S_MAX + 300) {
      const detail =
        'Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe.'
      return oauthError(400, 'invalid_grant', detail)
    }
    const scopes = splitScopes(typeof scope === 'string' ? scope : '')
    if (sub === undefined && scopes.length > 0 && scopes.every(isCloudScope)) {
      // On its own behalf: buckets and queues are no person's.
      const own = this.grants.issue({ address: SERVICE_EMAIL, scopes, isOffline: false })
      return jsonAnswer(this.#tokenBody(own.access))
    }
    if (typeof sub !== 'string' || !this.addresses().includes(sub)) {
      return oauthError(400, 'invalid_grant', 'Invalid email or User ID')
    }
    const delegated = this.kernel.oauth.delegatedScopes
    if (scopes.length === 0 || (delegated && !scopes.every((one) => delegated.includes(one)))) {
      const detail =
        'Client is unauthorized to retrieve access tokens using this method, or client not authorized for any of the scopes requested.'
      return oauthError(401, 'unauthorized_client', detail)
    }
    return jsonAnswer(this.#tokenBody(this.grants.issue({ address: sub, scopes, isOffline: false }).access))
  }

  #tokenBody(access: Access, tokens?: Tokens): Record<string, unknown> {
    return {
      access_token: access.token,
      expires_in: Math.floor((access.expiresAtMs - this.kernel.clock.now()) / 1000),
      ...(tokens?.refreshToken === undefined ? {} : { refresh_token: tokens.refreshToken }),
      ...(tokens?.refreshExpiresInS === undefined
        ? {}
        : { refresh_token_expires_in: tokens.refreshExpiresInS }),
      scope: access.scopes.join(' '),
      token_type: 'Bearer',
    }
  }

  #revoke(call: SimCall): SimAnswer {
    const token = call.query.get('token') ?? form(call).get('token') ?? ''
    if (this.grants.revoke(token)) return jsonAnswer({})
    return oauthError(400, 'invalid_token', 'Token expired or revoked')
  }

  #tokenInfo(call: SimCall): SimAnswer {
    const token = call.query.get('access_token') ?? form(call).get('access_token') ?? bearerToken(call)
    const access = this.grants.access(token)
    if (!access) return oauthError(400, 'invalid_token', 'Invalid Value')
    const { clientId } = this
    return jsonAnswer({
      azp: clientId,
      aud: clientId,
      scope: access.scopes.join(' '),
      exp: String(Math.floor(access.expiresAtMs / 1000)),
      expires_in: String(Math.floor((access.expiresAtMs - this.kernel.clock.now()) / 1000)),
      email: access.address,
      email_verified: 'true',
      access_type: 'offline',
    })
  }

  #key(): SigningKey {
    this.#serviceKey ??= createSigningKey('sim-service-account')
    return this.#serviceKey
  }
}

function oauthError(status: number, error: string, description = 'Bad Request'): SimAnswer {
  return jsonAnswer({ error, error_description: description }, status)
}
