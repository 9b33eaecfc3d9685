/**
 * The date that Gmail gives to an inserted message. The API takes none: with `dateHeader` it reads the Date
 * header (in whole seconds), with `receivedTime` it takes the present. So the time at which a message was
 * received can come back only by way of its Date header, which is another time: usually by seconds,
 * sometimes by years.
 */

/** Longer heads are left alone: no mail that was ever delivered has one. */
const HEAD_BYTES_MAX = 1024 * 1024

/**
 * The message with a Date header that says `internalMs`; a former one is kept as X-Original-Date. The same bytes
 * where the header says so already, to the second.
 */
export function redate(raw: Uint8Array, internalMs: number): { raw: Uint8Array; altered: boolean } {
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  const bodyAt = headLength(bytes)
  const head = bytes.toString('latin1', 0, bodyAt)
  const dates = [...head.matchAll(/^date[ \t]*:(.*(?:\r?\n[ \t].*)*)/gim)]
  const seconds = dates.map((date) => Math.floor(Date.parse((date[1] ?? '').trim()) / 1_000))
  if (seconds.length === 1 && seconds[0] === Math.floor(internalMs / 1_000)) return { raw, altered: false }
  const eol = /\r\n/.test(head) || !/\n/.test(head) ? '\r\n' : '\n'
  const date = new Date(internalMs).toUTCString().replace('GMT', '+0000')
  const rest = head.replaceAll(/^date([ \t]*:)/gim, 'X-Original-Date$1')
  const newHead = Buffer.from(`Date: ${date}${eol}${rest}`, 'latin1')
  return { raw: Buffer.concat([newHead, bytes.subarray(bodyAt)]), altered: true }
}

/** Up to the empty line that ends the head; where there is none, all of it is head. */
function headLength(bytes: Buffer): number {
  const window = bytes.subarray(0, HEAD_BYTES_MAX)
  // A message may begin with its body.
  if (/^\r?\n/.test(window.toString('latin1', 0, 2))) return 0
  const ends = [window.indexOf('\n\r\n'), window.indexOf('\n\n')].filter((at) => at >= 0)
  return ends.length > 0 ? Math.min(...ends) + 1 : window.length
}
