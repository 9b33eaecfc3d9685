/** Mail that a test needs, with nothing left to chance. */

export type LetterFile = { name: string; type: string; bytes: Buffer; contentId?: string }

export type Letter = {
  subject: string
  /** As it stands in the header. */
  from?: string
  to?: string
  text?: string
  html?: string
  files?: readonly LetterFile[]
  /** Further headers, as they are. */
  headers?: readonly string[]
}

const BOUNDARY = 'tidemark-letter'

export function letter({ subject, from, to, text, html, files = [], headers = [] }: Letter): Buffer {
  const parts = [
    ...(text === undefined ? [] : [part({ type: 'text/plain; charset=utf-8', bytes: Buffer.from(text) })]),
    ...(html === undefined ? [] : [part({ type: 'text/html; charset=utf-8', bytes: Buffer.from(html) })]),
  ]
  const body = parts.length === 1 ? parts[0]! : several('alternative', parts)
  const whole = files.length === 0 ? body : several('mixed', [body, ...files.map(filePart)])
  return Buffer.from(
    [
      `From: ${from ?? 'Ada Writer <ada@letters.example>'}`,
      `To: ${to ?? 'Ann <ann@example.com>'}`,
      `Subject: ${subject}`,
      'Date: Tue, 03 Jun 2025 10:00:00 +0000',
      ...headers,
      'MIME-Version: 1.0',
      whole,
    ].join('\r\n'),
  )
}

function filePart({ name, type, bytes, contentId }: LetterFile): string {
  const quoted = name.replaceAll(/["\\]/g, '\\$&')
  const headers = [
    `Content-Disposition: ${contentId === undefined ? 'attachment' : 'inline'}; filename="${quoted}"`,
    ...(contentId === undefined ? [] : [`Content-ID: <${contentId}>`]),
  ]
  return part({ type, bytes, headers })
}

function part({
  type,
  bytes,
  headers = [],
}: {
  type: string
  bytes: Buffer
  headers?: readonly string[]
}): string {
  const encoded = bytes.toString('base64').replaceAll(/.{76}/g, '$&\r\n')
  return [`Content-Type: ${type}`, ...headers, 'Content-Transfer-Encoding: base64', '', encoded, ''].join(
    '\r\n',
  )
}

function several(kind: 'mixed' | 'alternative', parts: readonly string[]): string {
  const boundary = `${BOUNDARY}-${kind}`
  return [
    `Content-Type: multipart/${kind}; boundary=${boundary}`,
    '',
    ...parts.map((one) => `--${boundary}\r\n${one}`),
    `--${boundary}--`,
    '',
  ].join('\r\n')
}
