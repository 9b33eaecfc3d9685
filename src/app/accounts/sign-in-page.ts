/** What the browser shows when a service has sent it back. */
import { escapeHtml } from '../../base/escape-html.ts'
import type { DownloadAnswer } from '../route.ts'

export type SignInPage = { status: number; title: string; text: string; hint?: string | undefined }

const POLICY = [
  "default-src 'none'",
  "style-src 'unsafe-inline'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

export function signInPage({ status, title, text, hint }: SignInPage): DownloadAnswer {
  const more = hint === undefined ? '' : `<p>${escapeHtml(hint)}</p>`
  const body = `<p>${escapeHtml(text)}</p>${more}
<p><a href="/settings">Back to Tidemark</a></p>`
  return page({ status, title, body })
}

/** Goes on by itself; without a script, which this page may not have. */
export function goOnPage(url: string): DownloadAnswer {
  const href = escapeHtml(url)
  return page({
    status: 200,
    title: 'One moment',
    head: `<meta http-equiv="refresh" content="0; url=${href}">`,
    body: `<p><a href="${href}">Go on to Tidemark</a></p>`,
  })
}

type PageParts = { status: number; title: string; body: string; head?: string }

function page({ status, title, body, head = '' }: PageParts): DownloadAnswer {
  return {
    status,
    contentType: 'text/html; charset=utf-8',
    headers: { 'content-security-policy': POLICY, 'referrer-policy': 'no-referrer' },
    bytes: `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">${head}
<title>Tidemark: ${escapeHtml(title)}</title>
<style>
:root { color-scheme: light dark }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0; background: light-dark(#f5f7f7, #101718); color: light-dark(#16282b, #e3ebec) }
main { box-sizing: border-box; max-width: 32em; margin: 18vh auto 0; padding: 1.5em 2em; overflow-wrap: anywhere; border: 1px solid light-dark(#d9e0e1, #2a3a3d); border-radius: 10px; background: light-dark(#fff, #172123) }
h1 { margin: 0; font-size: 1.5em }
a { color: light-dark(#0b6b73, #5cc9cf) }
</style>
<main>
<h1>${escapeHtml(title)}</h1>${body}
</main>
</html>
`,
  }
}
