/** What the browser shows when a service has sent it back. */
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
  return {
    status,
    contentType: 'text/html; charset=utf-8',
    headers: { 'content-security-policy': POLICY },
    bytes: `<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tidemark: ${escapeHtml(title)}</title>
<style>
:root { color-scheme: light dark }
body { font: 18px/1.5 system-ui, sans-serif; max-width: 32em; margin: 20vh auto; padding: 0 1em }
</style>
<h1>${escapeHtml(title)}</h1><p>${escapeHtml(text)}</p>${more}
<p><a href="/settings">Back to Tidemark</a></p>
</html>
`,
  }
}

export function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
    .replaceAll("'", '&#39;')
}
