/** Headers that every answer has. An answer with a content security policy of its own (a mail's HTML) keeps it. */
import type { MiddlewareHandler } from 'hono'
import type { AppEnv } from './app-env.ts'

export const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

const ALWAYS: readonly [name: string, value: string][] = [
  ['x-content-type-options', 'nosniff'],
  ['referrer-policy', 'no-referrer'],
  ['cross-origin-opener-policy', 'same-origin'],
  ['cross-origin-resource-policy', 'same-origin'],
  ['permissions-policy', 'camera=(), microphone=(), geolocation=(), payment=(), usb=(), interest-cohort=()'],
  ['x-dns-prefetch-control', 'off'],
]

export const securityHeaders: MiddlewareHandler<AppEnv> = async (c, next) => {
  await next()
  const { headers } = c.res
  for (const [name, value] of ALWAYS) if (!headers.has(name)) headers.set(name, value)
  if (headers.has('content-security-policy')) return
  headers.set('content-security-policy', PAGE_POLICY)
  // For browsers that do not know frame-ancestors; an own policy says itself who may frame it.
  headers.set('x-frame-options', 'DENY')
}
