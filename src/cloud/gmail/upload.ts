/** The two ways in which a message is handed over: inside JSON, or, where it is large, beside it. */

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
