/**
 * Sign-in as Microsoft does it for apps without a secret: authorization code with PKCE, device code, and
 * refresh tokens that are replaced with every use.
 *
 * What the person at the page does is said by the same settings as for the other sign-in (`Consent`).
 */
import type { Clock } from '../../base/clock.ts'
import type { Random } from '../../base/random.ts'
import { type Consent, denied, form, isLoopback, redirect, splitScopes } from '../oauth.ts'
import type { Grants, Tokens } from '../oauth-grants.ts'
import { consentPage, devicePage, errorPage } from '../oauth-page.ts'
import {
  htmlAnswer,
  jsonAnswer,
  type Operation,
  type Service,
  type SimAnswer,
  type SimCall,
} from '../server.ts'

export type MicrosoftSignInOptions = {
  clock: Clock
  random: Random
  grants: Grants
  consent: Consent
  clientId: string
  accounts: () => readonly string[]
  origin: () => string
}

type DeviceCode = {
  userCode: string
  scopes: readonly string[]
  expiresMs: number
  state: 'pending' | 'approved' | 'denied' | 'used'
  account: string
}

export const microsoftPaths = {
  auth: '/common/oauth2/v2.0/authorize',
  token: '/common/oauth2/v2.0/token',
  device: '/common/oauth2/v2.0/devicecode',
  devicePage: '/devicelogin',
} as const

const PATH = /^\/[\w.-]+\/oauth2\/v2\.0\/(authorize|token|devicecode)$/
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
const DEVICE_MS = 15 * 60_000
const DEVICES_MAX = 1_000
const USER_CODE_LETTERS = 'BCDFGHJKLMNPQRSTVWXZ'

export class MicrosoftSignIn implements Service {
  /** How often a device may ask. */
  deviceIntervalS = 5
  /** A refresh token that was used ends at once; otherwise it stays good beside the new one. */
  endsUsedRefresh = false
  readonly #options: MicrosoftSignInOptions
  readonly #devices = new Map<string, DeviceCode>()

  constructor(options: MicrosoftSignInOptions) {
    this.#options = options
  }

  match(call: SimCall): Operation | undefined {
    const name = call.path === microsoftPaths.devicePage ? 'devicelogin' : PATH.exec(call.path)?.[1]
    if (name === undefined) return undefined
    return {
      name: `oauth.microsoft.${name}`,
      run: () => this.#answer(name, call),
      refuse: ({ status, message }) =>
        oauthFault(
          status >= 500 ? 'server_error' : 'temporarily_unavailable',
          message ?? 'Try again.',
          status,
        ),
    }
  }

  #answer(name: string, call: SimCall): SimAnswer {
    switch (name) {
      case 'authorize':
        return this.#authorize(call)
      case 'token':
        return this.#token(form(call))
      case 'devicecode':
        return this.#deviceCode(form(call))
      default:
        return this.#devicePage(call)
    }
  }

  #authorize(call: SimCall): SimAnswer {
    const asked = call.verb === 'POST' ? form(call) : call.query
    const problem = this.#problemOf(asked)
    if (problem) return htmlAnswer(errorPage('invalid_request', problem), 400)
    const scopes = splitScopes(asked.get('scope'))
    const accounts = this.#options.accounts()
    const { autoApprove, deny } = this.#options.consent
    if (call.verb === 'POST') {
      const account = asked.get('account') ?? ''
      const isDenied = asked.get('decision') !== 'allow' || !accounts.includes(account)
      return isDenied ? denied(asked) : this.#grant(asked, account, scopes)
    }
    if (deny) return denied(asked)
    if (autoApprove === false) return htmlAnswer(consentPage({ asked, scopes, addresses: accounts }))
    const account = this.#autoAccount(asked.get('login_hint'))
    return account === undefined ? denied(asked) : this.#grant(asked, account, scopes)
  }

  #problemOf(asked: URLSearchParams): string | undefined {
    if (asked.get('client_id') !== this.#options.clientId) {
      return 'AADSTS700016: Application was not found in the directory.'
    }
    if (!isLoopback(asked.get('redirect_uri') ?? '')) {
      return 'AADSTS50011: The redirect URI does not match the ones of the application.'
    }
    if (asked.get('response_type') !== 'code') return 'AADSTS70005: response_type must be code.'
    if (splitScopes(asked.get('scope')).length === 0) return 'AADSTS900144: scope is missing.'
    if (!asked.has('code_challenge') || asked.get('code_challenge_method') !== 'S256') {
      return 'AADSTS9002325: Proof Key for Code Exchange is required, with the method S256.'
    }
    return undefined
  }

  #grant(asked: URLSearchParams, account: string, scopes: readonly string[]): SimAnswer {
    const code = this.#options.grants.issueCode({
      address: account,
      scopes: this.#granted(scopes),
      redirectUri: asked.get('redirect_uri')!,
      isOffline: isOffline(scopes),
      challenge: asked.get('code_challenge')!,
    })
    return redirect(asked, { code })
  }

  #token(input: URLSearchParams): SimAnswer {
    if (input.get('client_id') !== this.#options.clientId) {
      return oauthFault('invalid_client', 'AADSTS700016: Application was not found in the directory.', 400)
    }
    const { grants } = this.#options
    switch (input.get('grant_type')) {
      case 'authorization_code': {
        const tokens = grants.redeem({
          code: input.get('code') ?? '',
          redirectUri: input.get('redirect_uri') ?? '',
          verifier: input.get('code_verifier') ?? '',
        })
        if (typeof tokens === 'string') return oauthFault('invalid_grant', `AADSTS70008: ${tokens}`)
        return this.#tokenAnswer(tokens)
      }
      case 'refresh_token': {
        const tokens = grants.rotate(input.get('refresh_token') ?? '', { endsOld: this.endsUsedRefresh })
        if (!tokens) {
          return oauthFault('invalid_grant', 'AADSTS70000: The refresh token has expired or was revoked.')
        }
        return this.#tokenAnswer(tokens)
      }
      case DEVICE_GRANT:
        return this.#deviceToken(input.get('device_code') ?? '')
      default:
        return oauthFault('unsupported_grant_type', 'AADSTS70003: The grant type is not supported.')
    }
  }

  #deviceCode(input: URLSearchParams): SimAnswer {
    const { clientId, clock, consent, origin } = this.#options
    if (input.get('client_id') !== clientId)
      return oauthFault('invalid_client', 'AADSTS700016: Unknown client.')
    const scopes = splitScopes(input.get('scope'))
    if (scopes.length === 0) return oauthFault('invalid_request', 'AADSTS900144: scope is missing.')
    const userCode = this.#text(9, USER_CODE_LETTERS)
    const deviceCode = this.#text(40, 'abcdefghijklmnopqrstuvwxyz0123456789')
    const device: DeviceCode = {
      ...{ userCode, scopes, account: '', state: 'pending' },
      expiresMs: clock.now() + DEVICE_MS,
    }
    if (consent.deny) device.state = 'denied'
    else if (consent.autoApprove !== false) this.#approve(device, this.#autoAccount(null))
    this.#devices.set(deviceCode, device)
    const [oldest] = this.#devices.keys()
    if (this.#devices.size > DEVICES_MAX && oldest !== undefined) this.#devices.delete(oldest)
    const verification = `${origin()}${microsoftPaths.devicePage}`
    return jsonAnswer({
      device_code: deviceCode,
      user_code: userCode,
      verification_uri: verification,
      expires_in: DEVICE_MS / 1000,
      interval: this.deviceIntervalS,
      message: `To sign in, open ${verification} in a browser and enter the code ${userCode}.`,
    })
  }

  #deviceToken(deviceCode: string): SimAnswer {
    const device = this.#devices.get(deviceCode)
    if (!device || device.state === 'used') {
      return oauthFault('bad_verification_code', 'AADSTS501491: The device code is not known.')
    }
    if (device.expiresMs <= this.#options.clock.now()) {
      return oauthFault('expired_token', 'AADSTS70020: The device code has expired.')
    }
    if (device.state === 'pending') {
      return oauthFault('authorization_pending', 'AADSTS70016: The user has not yet finished signing in.')
    }
    if (device.state === 'denied') {
      return oauthFault('authorization_declined', 'AADSTS70018: The user declined.')
    }
    device.state = 'used'
    const scopes = this.#granted(device.scopes)
    const input = { address: device.account, scopes, isOffline: isOffline(device.scopes) }
    return this.#tokenAnswer(this.#options.grants.issue(input))
  }

  #devicePage(call: SimCall): SimAnswer {
    const asked = call.verb === 'POST' ? form(call) : call.query
    const userCode = (asked.get('user_code') ?? asked.get('otc') ?? '').trim().toUpperCase()
    const addresses = this.#options.accounts()
    if (call.verb !== 'POST') return htmlAnswer(devicePage({ userCode, addresses }))
    const device = [...this.#devices.values()].find(
      (one) => one.userCode === userCode && one.state === 'pending',
    )
    if (!device) {
      const detail = 'This code is not known, or it was used already.'
      return htmlAnswer(devicePage({ userCode, addresses, detail }), 400)
    }
    const isAllowed = asked.get('decision') === 'allow'
    this.#approve(device, isAllowed ? (asked.get('account') ?? undefined) : undefined)
    const done = isAllowed ? 'The device is connected. You can close this page.' : 'The device was refused.'
    return htmlAnswer(devicePage({ userCode: '', addresses, detail: done }))
  }

  #approve(device: DeviceCode, account: string | undefined): void {
    const isKnown = account !== undefined && this.#options.accounts().includes(account)
    device.state = isKnown ? 'approved' : 'denied'
    device.account = account ?? ''
  }

  #autoAccount(hint: string | null): string | undefined {
    const { consent, accounts } = this.#options
    const [first] = accounts()
    const wanted = typeof consent.autoApprove === 'string' ? consent.autoApprove : (hint ?? first)
    return accounts().find((account) => account === wanted)
  }

  #granted(scopes: readonly string[]): readonly string[] {
    const only = this.#options.consent.grantOnly
    const named = scopes.filter((scope) => scope !== 'offline_access')
    return only ? named.filter((scope) => only.includes(scope)) : named
  }

  #tokenAnswer({ access, refreshToken }: Tokens): SimAnswer {
    const expires = Math.floor((access.expiresAtMs - this.#options.clock.now()) / 1000)
    return jsonAnswer({
      token_type: 'Bearer',
      scope: access.scopes.join(' '),
      expires_in: expires,
      ext_expires_in: expires,
      access_token: access.token,
      ...(refreshToken === undefined ? {} : { refresh_token: refreshToken }),
    })
  }

  #text(length: number, characters: string): string {
    let text = ''
    for (let at = 0; at < length; at++)
      text += characters[Math.floor(this.#options.random() * characters.length)]
    return text
  }
}

function isOffline(scopes: readonly string[]): boolean {
  return scopes.includes('offline_access')
}

function oauthFault(error: string, description: string, status = 400): SimAnswer {
  const code = Number(/AADSTS(\d+)/.exec(description)?.[1] ?? 0)
  return jsonAnswer({ error, error_description: description, error_codes: [code] }, status)
}
