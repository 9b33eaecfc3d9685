/** Bodies in several parts: uploads with their metadata, and batches. */

export function boundaryOf(contentType: string): string | undefined {
  const match = /^multipart\/[^;]*;(?:.*;)?\s*boundary=(?:"([^"]+)"|([^;\s]+))/i.exec(contentType)
  return match?.[1] ?? match?.[2]
}

export type BodyPart = { headers: Record<string, string>; body: Buffer }

const PARTS_MAX = 1_001

/** The parts of a body; forgiving about a missing last boundary. */
export function splitMultipart(body: Buffer, boundary: string): BodyPart[] {
  const mark = Buffer.from(`--${boundary}`, 'latin1')
  const parts: BodyPart[] = []
  let at = body.indexOf(mark)
  while (at >= 0 && parts.length < PARTS_MAX) {
    const after = at + mark.length
    if (body[after] === DASH && body[after + 1] === DASH) break
    const line = body.indexOf(LF, after)
    if (line < 0) break
    const next = body.indexOf(mark, line + 1)
    parts.push(readPart(body.subarray(line + 1, next < 0 ? body.length : withoutBreak(body, next))))
    at = next
  }
  return parts
}

const LF = 10
const CR = 13
const DASH = 45

function withoutBreak(body: Buffer, end: number): number {
  const at = body[end - 1] === LF ? end - 1 : end
  return body[at - 1] === CR ? at - 1 : at
}

function readPart(part: Buffer): BodyPart {
  const { head, body } = cutHead(part)
  return { headers: readHeaders(head), body }
}

/** Head and body at the first empty line. */
export function cutHead(part: Buffer): { head: string; body: Buffer } {
  if (part[0] === LF) return { head: '', body: part.subarray(1) }
  if (part[0] === CR && part[1] === LF) return { head: '', body: part.subarray(2) }
  const crlf = part.indexOf('\r\n\r\n')
  const lf = part.indexOf('\n\n')
  if (crlf < 0 && lf < 0) return { head: part.toString('latin1'), body: part.subarray(part.length) }
  const isCrlf = lf < 0 || (crlf >= 0 && crlf < lf)
  const at = isCrlf ? crlf : lf
  return { head: part.toString('latin1', 0, at), body: part.subarray(at + (isCrlf ? 4 : 2)) }
}

export function readHeaders(head: string): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const line of head.split(/\r?\n/)) {
    const colon = line.indexOf(':')
    if (colon > 0) headers[line.slice(0, colon).trim().toLowerCase()] = line.slice(colon + 1).trim()
  }
  return headers
}
