/** Hides what must not be read over a shoulder or in a pasted report. */
const MASK = '***'

/**
 * The password of every URL in the text. Up to the last `@` of a word, since a password that was
 * not encoded may hold one itself; also in `?password=…`.
 */
export function maskPasswords(text: string): string {
  return text
    .replaceAll(/\b([a-z][a-z0-9+.-]*:\/\/[^\s:@/]*):[^\s]*@/gi, `$1:${MASK}@`)
    .replaceAll(/([?&](?:password|(?:auth)?token|jwt|key|secret)=)[^\s&]*/gi, `$1${MASK}`)
}

/** Everything after the host: the address of a webhook is the secret itself. */
export function maskPath(url: string): string {
  const match = /^([a-z][a-z0-9+.-]*:\/\/)(?:[^\s/]*@)?([^\s/?#]*)(.*)$/is.exec(url)
  if (!match) return MASK
  return `${match[1]}${match[2]}${match[3] === '' || match[3] === '/' ? '' : `/${MASK}`}`
}

/** What a setting's kind of secret asks for. */
export function maskAs(secret: 'password' | 'path' | 'all' | undefined, text: string): string {
  if (secret === 'all') return MASK
  return secret === 'path' ? maskPath(text) : maskPasswords(text)
}
