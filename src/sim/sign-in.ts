/**
 * Sign-in with OAuth as services share it: a consent page with an authorization code, tokens, and a person who is
 * simulated by settings where there is none. How a service words its errors and what its token endpoint knows
 * besides is its own.
 *
 * The redirect goes to a loopback address, or nowhere: on a machine without a browser the person copies the
 * address that the browser could not open, and that address holds the code all the same.
 */
import { escapeHtml } from '../base/escape-html.ts'
import type { Random } from '../base/random.ts'
import { Grants } from './grants.ts'
import { htmlAnswer, type Operation, type Routes, type SimAnswer, type SimCall } from './server.ts'
import type { Kernel } from './service.ts'

export type SignInProblem = { status: number; error: string; detail: string }

export abstract class SignIn implements Routes {
  readonly grants: Grants
  protected readonly kernel: Kernel
  protected readonly clientId: string
  /** Who can sign in. */
  protected readonly addresses: () => readonly string[]

  constructor(
    kernel: Kernel,
    options: { random: Random; clientId: string; addresses: () => readonly string[] },
  ) {
    this.kernel = kernel
    this.clientId = options.clientId
    this.addresses = options.addresses
    this.grants = new Grants({ clock: kernel.clock, random: options.random, times: kernel.oauth })
  }

  abstract match(call: SimCall): Operation | undefined

  /** Why this request for consent cannot be shown to anybody. */
  protected abstract problemWith(asked: URLSearchParams): SignInProblem | undefined

  /** Whether the app is to have a refresh token. */
  protected abstract isOffline(asked: URLSearchParams): boolean

  /** What a redirect says besides the code. */
  protected redirectFields(_granted: readonly string[]): Record<string, string> {
    return {}
  }

  /** GET asks; POST is the answer from the consent page. */
  protected authorize(call: SimCall): SimAnswer {
    const asked = call.verb === 'POST' ? form(call) : call.query
    const problem = this.problemWith(asked)
    if (problem) return htmlAnswer(errorPage(problem.error, problem.detail), problem.status)
    // Nobody is signed in at this browser, and nobody may be asked (OpenID Connect Core 3.1.2.6).
    if (asked.get('prompt') === 'none') return redirect(asked, { error: 'interaction_required' })
    const scopes = splitScopes(asked.get('scope'))
    const { autoApprove, deny } = this.kernel.oauth
    if (call.verb !== 'POST' && !deny && autoApprove === false) {
      return htmlAnswer(consentPage({ asked, scopes, addresses: this.addresses() }))
    }
    const address = call.verb === 'POST' ? chosenAddress(asked) : this.autoAddress(asked.get('login_hint'))
    if (address === undefined || !this.addresses().includes(address)) {
      return redirect(asked, { error: 'access_denied' })
    }
    return this.#grant(asked, address, scopes)
  }

  /** For whom consent is given where nobody is asked. */
  protected autoAddress(hint: string | null): string | undefined {
    const { autoApprove, deny } = this.kernel.oauth
    const [first] = this.addresses()
    if (deny) return undefined
    const wanted = typeof autoApprove === 'string' ? autoApprove : (hint ?? first)
    return this.addresses().find((address) => address === wanted)
  }

  /** Those of the scopes that the person allows. */
  protected granted(scopes: readonly string[]): readonly string[] {
    const only = this.kernel.oauth.grantOnly
    return only ? scopes.filter((scope) => only.includes(scope)) : scopes
  }

  #grant(asked: URLSearchParams, address: string, scopes: readonly string[]): SimAnswer {
    const challenge = asked.get('code_challenge')
    const granted = this.granted(scopes)
    const code = this.grants.issueCode({
      address,
      scopes: granted,
      redirectUri: asked.get('redirect_uri')!,
      isOffline: this.isOffline(asked),
      ...(challenge === null ? {} : { challenge }),
    })
    return redirect(asked, { code, ...this.redirectFields(granted) })
  }
}

function chosenAddress(asked: URLSearchParams): string | undefined {
  return asked.get('decision') === 'allow' ? (asked.get('account') ?? undefined) : undefined
}

function redirect(asked: URLSearchParams, fields: Record<string, string>): SimAnswer {
  const target = new URL(asked.get('redirect_uri')!)
  const state = asked.get('state')
  if (state !== null) target.searchParams.set('state', state)
  for (const [name, value] of Object.entries(fields)) target.searchParams.set(name, value)
  return { status: 302, headers: { location: target.href }, body: '' }
}

/** The access token that a call carries. */
export function bearerToken(call: { headers: SimCall['headers'] }): string {
  const header = call.headers.authorization
  return header !== undefined && /^bearer /i.test(header) ? header.slice(7).trim() : ''
}

export function form(call: SimCall): URLSearchParams {
  return new URLSearchParams(call.body.toString('utf8'))
}

export function splitScopes(text: string | null): string[] {
  return (text ?? '').split(/\s+/).filter((scope) => scope !== '')
}

export function isLoopback(uri: string): boolean {
  if (!URL.canParse(uri)) return false
  const { protocol, hostname } = new URL(uri)
  return protocol === 'http:' && ['127.0.0.1', 'localhost', '[::1]'].includes(hostname)
}

function consentPage(input: {
  asked: URLSearchParams
  scopes: readonly string[]
  addresses: readonly string[]
}): string {
  const hidden = [...input.asked].map(
    ([name, value]) => `<input type="hidden" name="${escapeHtml(name)}" value="${escapeHtml(value)}">`,
  )
  const hint = input.asked.get('login_hint')
  const choices = input.addresses.map(
    (address) => `<option${address === hint ? ' selected' : ''}>${escapeHtml(address)}</option>`,
  )
  return page(
    'Sign in to the simulated cloud',
    `<form method="post">${hidden.join('')}
<p>An app wants to:</p><ul>${input.scopes.map((scope) => `<li>${escapeHtml(scope)}</li>`).join('')}</ul>
<p><label>Account <select name="account">${choices.join('')}</select></label></p>
<p><button name="decision" value="allow">Allow</button> <button name="decision" value="deny">Deny</button></p>
</form>`,
  )
}

/** Where a person types the code that another device shows. */
export function devicePage(input: {
  userCode: string
  addresses: readonly string[]
  detail?: string
}): string {
  const choices = input.addresses.map((address) => `<option>${escapeHtml(address)}</option>`)
  return page(
    'Connect a device to the simulated cloud',
    `${input.detail === undefined ? '' : `<p>${escapeHtml(input.detail)}</p>`}<form method="post">
<p><label>Code <input name="user_code" value="${escapeHtml(input.userCode)}"></label></p>
<p><label>Account <select name="account">${choices.join('')}</select></label></p>
<p><button name="decision" value="allow">Allow</button> <button name="decision" value="deny">Deny</button></p>
</form>`,
  )
}

function errorPage(error: string, detail: string): string {
  return page(`Error: ${error}`, `<p>${escapeHtml(detail)}</p>`)
}

function page(title: string, body: string): string {
  const head = `<meta charset="utf-8"><title>${escapeHtml(title)}</title>`
  return `<!DOCTYPE html><html><head>${head}</head><body><h1>${escapeHtml(title)}</h1>${body}</body></html>`
}
