/**
 * Keeps secrets out of logs, alerts and reports: by the name of a field at any depth, and by their shape
 * inside texts. Too much is hidden rather than too little; counts (`tokens: 12`) stay readable.
 *
 * Pure and bounded: values are copied down to a depth, a number of entries and a length, never changed in place,
 * and cycles end.
 */
export const MASK = '[redacted]'

const DEPTH_MAX = 8
const ENTRIES_MAX = 200
const TEXT_MAX = 16_384

/** Hidden whatever the value is. Compared without case, `-` and `_`. */
const SECRET_KEY =
  /^(?:authorization|proxyauthorization|wwwauthenticate|setcookie)$|cookies?$|passw(?:or)?d|^pwd$|passphrase|secret|api?key$|accesskey|privatekey|masterkey|signingkey|credentials?$|codeverifier|clientassertion|uploadurl|downloadurl|webhookurl/
/** Hidden unless it is a number or a flag: `tokens` is a count as often as a secret. */
const TOKEN_KEY = /tokens?$|jwt$|^(?:auth|bearer|sig|signature|sessionid|sid|otp|pin)$/

const NAMES =
  'token|secret|passw(?:or)?d|passphrase|(?:api|access|private|master)[ ._-]?key|(?:upload|download|webhook)_?url|device_code|\\bpwd|\\btempauth|\\bsig|signature|\\bassertion|\\bcode_verifier|credentials?|session[_-]?id'
/** What stands between a name, which may be quoted, and its value. */
const SIGN = `(?:\\\\?["'])?[ \\t]{0,4}(?:[=:]|%3D)[ \\t]{0,4}`
const UNQUOTED = `(?![ \\t]|\\\\?["']|\\[redacted\\])`

/** Repetitions are bounded or cannot overlap, so that no text takes more than linear time times a small number. */
const PATTERNS: readonly [pattern: RegExp, replacement: string][] = [
  [/-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|$)/g, MASK],
  // To the last @ of the word, since a password that was not encoded may hold one itself.
  [/\b([a-z][a-z0-9+.-]{0,20}:\/\/[^\s:@/'"]{0,256}):[^\s'"]{0,512}@/gi, `$1:${MASK}@`],
  [
    /\b((?:proxy-)?authorization|(?:set-)?cookie)(["']?\s{0,4}[:=]\s{0,4}["']?)(?!\s{0,4}\[redacted\])[^\r\n"'}]+/gi,
    `$1$2${MASK}`,
  ],
  [/\b(bearer|basic)(\s{1,4})(?=[^\s]{6})[\w.~+/=-]+/gi, `$1$2${MASK}`],
  // A line of settings, `name = value` or `name: value`, also behind its number: all that follows the name.
  [
    new RegExp(
      `^([ \\t]*(?:\\d{1,7}[:|][ \\t]{0,8})?["']?[\\w.-]{0,64}?(?:${NAMES})["']?(?:[ \\t]{1,4}[=:][ \\t]{0,4}|[=:][ \\t]{1,4}))${UNQUOTED}[^\\r\\n]+`,
      'gim',
    ),
    `$1${MASK}`,
  ],
  // Texts of several lines, and lists and tables: to the end of what there is.
  [new RegExp(`((?:${NAMES})${SIGN})("{3}|'{3})(?:(?!\\2)[^])*`, 'gi'), `$1$2${MASK}`],
  [new RegExp(`((?:${NAMES})${SIGN})${UNQUOTED}[{[][^\\r\\n]*`, 'gi'), `$1${MASK}`],
  // "name": "value", also with its quotes escaped, and with quotes of the other kind in the value.
  [new RegExp(`((?:${NAMES})${SIGN}\\\\")(?:(?!\\\\")[^\\r\\n])*`, 'gi'), `$1${MASK}`],
  [new RegExp(`((?:${NAMES})${SIGN}")(?:[^"\\\\\\r\\n]|\\\\.)*`, 'gi'), `$1${MASK}`],
  [new RegExp(`((?:${NAMES})${SIGN}')(?:[^'\\\\\\r\\n]|\\\\.)*`, 'gi'), `$1${MASK}`],
  // name=value, name: value and name = value within a text: in forms, queries and messages.
  [new RegExp(`((?:${NAMES})${SIGN})${UNQUOTED}[^\\s&"'\\\\,;)}\\]]+`, 'gi'), `$1${MASK}`],
  // Codes in addresses: of a sign-in elsewhere, and of our own, and tickets.
  [/([?&]code=)[^\s&"']+/gi, `$1${MASK}`],
  [/(\/sign-in#|\/ticket\/)[\w.-]{16,}/g, `$1${MASK}`],
  // Shapes that are secrets wherever they stand: JSON web tokens, Google's access and refresh tokens, API keys.
  [/\beyJ[\w-]{8,2048}\.[\w-]{8,}(?:\.[\w-]*)?/g, MASK],
  [/\bya29\.[\w-]{8,}/g, MASK],
  [/(?<![\w/:])1\/\/0[\w-]{20,}/g, MASK],
  // Client secrets of Google and Microsoft, and the sessions of our own server.
  [/\bGOCSPX-[\w-]{8,}|[\w.~-]{3}\dQ~[\w.~-]{20,}|\bsession-[\w-]{43}/g, MASK],
  [/\b(?:sk|pk|rk)-[\w-]{16,}|\bgh[pousr]_\w{20,}|\bxox[abprs]-[\w-]{10,}|\bAIza[\w-]{30,}/g, MASK],
]

/** A cheap look first: most lines hold nothing that any pattern could match. */
const SUSPICIOUS =
  /token|secret|passw|passphrase|pwd|key|bearer|basic|authorization|cookie|:\/\/[^\s/]*@|sig|tempauth|assertion|verifier|credential|eyJ|ya29\.|1\/\/0|sk-|pk-|rk-|gh[pousr]_|xox|AIza|PRIVATE KEY|GOCSPX|\dQ~|session-|(?:upload|download|webhook)_?url|device_code|[?&]code=|\/sign-in#|\/ticket\//i

export function redactText(text: string): string {
  const cut = text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX)}… (${text.length} characters)` : text
  if (!SUSPICIOUS.test(cut)) return cut
  return PATTERNS.reduce((clean, [pattern, replacement]) => clean.replace(pattern, replacement), cut)
}

export function isSecretKey(key: string): boolean {
  const plain = key.toLowerCase().replaceAll(/[-_.\s]/g, '')
  return SECRET_KEY.test(plain) || TOKEN_KEY.test(plain)
}

/** A copy that is safe to write down: plain objects, arrays, texts, numbers. */
export function redactValue(value: unknown): unknown {
  return copy(value, 0, new Set())
}

export function redactFields(fields: Record<string, unknown>): Record<string, unknown> {
  return copyEntries(Object.entries(fields), 0, new Set([fields]))
}

function copy(value: unknown, depth: number, above: Set<object>): unknown {
  if (typeof value === 'string') return redactText(value)
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'function' || typeof value === 'symbol') return undefined
  if (typeof value !== 'object' || value === null) return value
  if (above.has(value)) return '[circular]'
  if (depth >= DEPTH_MAX) return '[too deep]'
  above.add(value)
  try {
    return copyObject(value, depth, above)
  } finally {
    above.delete(value)
  }
}

function copyObject(value: object, depth: number, above: Set<object>): unknown {
  if (value instanceof Error) return copyError(value, depth, above)
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? 'Invalid Date' : value.toISOString()
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return `[${value.byteLength} bytes]`
  if (value instanceof URL) return redactText(value.href)
  if (value instanceof Map || isHeaders(value)) return copyEntries([...value], depth, above)
  if (Array.isArray(value) || value instanceof Set) {
    const items = [...value]
    const kept = items.slice(0, ENTRIES_MAX).map((item) => copy(item, depth + 1, above))
    return items.length > ENTRIES_MAX ? [...kept, `… ${items.length - ENTRIES_MAX} more`] : kept
  }
  return copyEntries(Object.entries(value), depth, above)
}

function copyEntries(
  entries: readonly (readonly [unknown, unknown])[],
  depth: number,
  above: Set<object>,
): Record<string, unknown> {
  const safe: Record<string, unknown> = {}
  for (const [key, value] of entries.slice(0, ENTRIES_MAX)) {
    const name = String(key)
    safe[name] = hides(name, value) ? MASK : copy(value, depth + 1, above)
  }
  if (entries.length > ENTRIES_MAX) safe['…'] = `${entries.length - ENTRIES_MAX} more`
  return safe
}

function hides(key: string, value: unknown): boolean {
  if (value === null || value === undefined || value === '' || typeof value === 'boolean') return false
  const plain = key.toLowerCase().replaceAll(/[-_.\s]/g, '')
  if (SECRET_KEY.test(plain)) return true
  return TOKEN_KEY.test(plain) && typeof value !== 'number'
}

/** Message and fields of an error (`kind`, `code`, `hint`, `status`), its cause, and its stack last. */
function copyError(error: Error, depth: number, above: Set<object>): Record<string, unknown> {
  const { name, message, stack, cause } = error
  const own = Object.entries(error).filter(([key]) => !['name', 'message', 'stack', 'cause'].includes(key))
  return {
    name,
    message: redactText(message),
    ...copyEntries(
      own.filter(([, value]) => value !== undefined),
      depth,
      above,
    ),
    ...(cause === undefined ? {} : { cause: copy(cause, depth + 1, above) }),
    ...(stack === undefined ? {} : { stack: redactText(stack) }),
  }
}

/** Headers of fetch, without asking for the class: any that can be walked in pairs. */
function isHeaders(value: object): value is Iterable<[string, string]> & object {
  return value.constructor?.name === 'Headers' && Symbol.iterator in value
}
