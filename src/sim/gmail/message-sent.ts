import { topHeaders } from './message-content.ts'
import { headerOf } from './message-headers.ts'

/** A message as Gmail sends it: with a Date, a From and a Message-ID if it had none. */
export function withSentHeaders(
  raw: Buffer,
  options: { address: string; nowMs: number; unique: string },
): Buffer {
  const headers = topHeaders(raw)
  const missing: string[] = []
  if (!headerOf(headers, 'date')) {
    missing.push(`Date: ${new Date(options.nowMs).toUTCString().replace('GMT', '+0000')}`)
  }
  if (!headerOf(headers, 'from')) missing.push(`From: ${options.address}`)
  if (!headerOf(headers, 'message-id')) missing.push(`Message-ID: <${options.unique}@mail.gmail.com>`)
  if (missing.length === 0) return raw
  return Buffer.concat([Buffer.from(`${missing.join('\r\n')}\r\n`), raw])
}
