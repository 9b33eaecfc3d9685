/** The pages a person sees while signing in to the simulated cloud. */

import { escapeHtml } from '../base/escape-html.ts'

export function consentPage(input: {
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

export function errorPage(error: string, detail: string): string {
  return page(`Error: ${error}`, `<p>${escapeHtml(detail)}</p>`)
}

function page(title: string, body: string): string {
  const head = `<meta charset="utf-8"><title>${escapeHtml(title)}</title>`
  return `<!DOCTYPE html><html><head>${head}</head><body><h1>${escapeHtml(title)}</h1>${body}</body></html>`
}
