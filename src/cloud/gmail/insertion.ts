/**
 * How a message is handed over that is put into the mailbox: inside JSON or, where it is large, beside it.
 *
 * Of the date that Gmail gives to it: the API takes none, with `dateHeader` it reads the Date
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

/** JSON bodies have a limit of their own, well below that of uploads. */
const JSON_BYTES_MAX = 4 * 1024 * 1024

export type Upload = {
  /** Goes before the path of the method. */
  path: '' | '/upload'
  uploadType?: 'multipart'
  body: string | Uint8Array<ArrayBuffer>
  contentType: string
}

export function buildUpload(
  metadata: { labelIds: readonly string[]; threadId?: string | undefined },
  raw: Uint8Array,
): Upload {
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  if (bytes.length <= JSON_BYTES_MAX) {
    const body = JSON.stringify({ ...metadata, raw: bytes.toString('base64url') })
    return { path: '', body, contentType: 'application/json' }
  }
  const boundary = freeBoundary(bytes)
  const head = `--${boundary}\r\nContent-Type: application/json; charset=UTF-8\r\n\r\n${JSON.stringify(metadata)}\r\n--${boundary}\r\nContent-Type: message/rfc822\r\n\r\n`
  return {
    path: '/upload',
    uploadType: 'multipart',
    body: Buffer.concat([Buffer.from(head), bytes, Buffer.from(`\r\n--${boundary}--\r\n`)]),
    contentType: `multipart/related; boundary=${boundary}`,
  }
}

/** One that does not occur in the message; no message can hold all of them. */
function freeBoundary(bytes: Buffer): string {
  for (let number = 0; ; number++) {
    const boundary = `tidemark_upload_${number}`
    if (!bytes.includes(boundary)) return boundary
  }
}
