/**
 * Sign-in as Microsoft does it for apps without a secret: authorization code with PKCE, device code, and
 * refresh tokens that are replaced with every use.
 */
import type { Random } from '../../base/random.ts'
import type { Tokens } from '../grants.ts'
import { htmlAnswer, jsonAnswer, type Operation, type SimAnswer, type SimCall } from '../server.ts'
import { type Kernel, randomFor } from '../service.ts'
import { devicePage, form, isLoopback, SignIn, type SignInProblem, splitScopes } from '../sign-in.ts'

export const microsoftClient = { id: '11111111-2222-4333-8444-555555555555' } as const

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

export class MicrosoftSignIn extends SignIn {
  /** How often a device may ask. */
  deviceIntervalS = 5
  /** A refresh token that was used ends at once; otherwise it stays good beside the new one. */
  endsUsedRefresh = false
  readonly #random: Random
  readonly #devices = new Map<string, DeviceCode>()

  constructor(kernel: Kernel, options: { random: Random; addresses: () => readonly string[] }) {
    super(kernel, {
      clientId: microsoftClient.id,
      random: randomFor(kernel, 0x0d07),
      addresses: options.addresses,
    })
    this.#random = options.random
  }

  match(call: SimCall): Operation | undefined {
    if (call.path === '/' && call.verb === 'HEAD') return hostOperation
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
        return this.authorize(call)
      case 'token':
        return this.#token(form(call))
      case 'devicecode':
        return this.#deviceCode(call)
      default:
        return this.#devicePage(call)
    }
  }

  protected problemWith(asked: URLSearchParams): SignInProblem | undefined {
    const detail = this.#problem(asked)
    return detail === undefined ? undefined : { status: 400, error: 'invalid_request', detail }
  }

  #problem(asked: URLSearchParams): string | undefined {
    if (asked.get('client_id') !== this.clientId) {
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

  protected isOffline(asked: URLSearchParams): boolean {
    return isOffline(splitScopes(asked.get('scope')))
  }

  protected override granted(scopes: readonly string[]): readonly string[] {
    return super.granted(scopes.filter((scope) => scope !== 'offline_access'))
  }

  #token(input: URLSearchParams): SimAnswer {
    if (input.get('client_id') !== this.clientId) {
      return oauthFault('invalid_client', 'AADSTS700016: Application was not found in the directory.', 400)
    }
    const { grants } = this
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

  #deviceCode(call: SimCall): SimAnswer {
    const input = form(call)
    const { clock, oauth } = this.kernel
    if (input.get('client_id') !== this.clientId)
      return oauthFault('invalid_client', 'AADSTS700016: Unknown client.')
    const scopes = splitScopes(input.get('scope'))
    if (scopes.length === 0) return oauthFault('invalid_request', 'AADSTS900144: scope is missing.')
    const userCode = this.#text(9, USER_CODE_LETTERS)
    const deviceCode = this.#text(40, 'abcdefghijklmnopqrstuvwxyz0123456789')
    const device: DeviceCode = {
      userCode,
      scopes,
      account: '',
      state: 'pending',
      expiresMs: clock.now() + DEVICE_MS,
    }
    if (oauth.deny) device.state = 'denied'
    else if (oauth.autoApprove !== false) this.#approve(device, this.autoAddress(null))
    this.#devices.set(deviceCode, device)
    const [oldest] = this.#devices.keys()
    if (this.#devices.size > DEVICES_MAX && oldest !== undefined) this.#devices.delete(oldest)
    const verification = `${call.origin}${microsoftPaths.devicePage}`
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
    if (device.expiresMs <= this.kernel.clock.now()) {
      return oauthFault('expired_token', 'AADSTS70020: The device code has expired.')
    }
    if (device.state === 'pending') {
      return oauthFault('authorization_pending', 'AADSTS70016: The user has not yet finished signing in.')
    }
    if (device.state === 'denied') {
      return oauthFault('authorization_declined', 'AADSTS70018: The user declined.')
    }
    device.state = 'used'
    const scopes = this.granted(device.scopes)
    const input = { address: device.account, scopes, isOffline: isOffline(device.scopes) }
    return this.#tokenAnswer(this.grants.issue(input))
  }

  #devicePage(call: SimCall): SimAnswer {
    const asked = call.verb === 'POST' ? form(call) : call.query
    const userCode = (asked.get('user_code') ?? asked.get('otc') ?? '').trim().toUpperCase()
    const addresses = this.addresses()
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
    const isKnown = account !== undefined && this.addresses().includes(account)
    device.state = isKnown ? 'approved' : 'denied'
    device.account = account ?? ''
  }

  #tokenAnswer({ access, refreshToken }: Tokens): SimAnswer {
    const expires = Math.floor((access.expiresAtMs - this.kernel.clock.now()) / 1000)
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
    for (let at = 0; at < length; at++) text += characters[Math.floor(this.#random() * characters.length)]
    return text
  }
}

/** Clients ask the host for its head to see whether there is a network. */
const hostOperation: Operation = {
  name: 'oauth.microsoft.host',
  run: () => htmlAnswer(''),
  refuse: ({ status }) => htmlAnswer('', status),
}

function isOffline(scopes: readonly string[]): boolean {
  return scopes.includes('offline_access')
}

function oauthFault(error: string, description: string, status = 400): SimAnswer {
  const code = Number(/AADSTS(\d+)/.exec(description)?.[1] ?? 0)
  return jsonAnswer({ error, error_description: description, error_codes: [code] }, status)
}
