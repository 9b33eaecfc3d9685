/**
 * Bytes on their way in: with the metadata in one body (media, multipart), or in a resumable session.
 *
 * A session is open until its last byte came; then it answers its end to whoever asks again. Bytes come in order, in
 * multiples of 256 KiB except the last; what came stays, and 308 says how much that is.
 */
import type { Random } from '../../base/random.ts'
import { boundaryOf, splitMultipart } from '../google/multipart.ts'
import type { SimAnswer, SimCall } from '../server.ts'
import { badRequest } from './errors.ts'
import { jsonObject } from './route.ts'

export type Upload = {
  fields: Record<string, unknown>
  bytes: Buffer | undefined
  mimeType: string | undefined
}

export type UploadSession = {
  id: string
  /** What it is for: the file that is replaced, or none for a new one. */
  fileId: string | undefined
  address: string
  fields: Record<string, unknown>
  mimeType: string | undefined
  query: URLSearchParams
  chunks: Buffer[]
  received: number
  /** What was answered to the last byte. */
  end: SimAnswer | undefined
}

const CHUNK_BYTES = 256 * 1024
const SESSIONS_MAX = 1_000

export class Uploads {
  readonly #random: Random
  readonly #sessions = new Map<string, UploadSession>()

  constructor(random: Random) {
    this.#random = random
  }

  begin(input: Omit<UploadSession, 'id' | 'chunks' | 'received' | 'end'>): UploadSession {
    const id = `AP4tsim${Math.floor(this.#random() * 2 ** 50).toString(36)}${this.#sessions.size}`
    const session: UploadSession = { ...input, id, chunks: [], received: 0, end: undefined }
    this.#sessions.set(id, session)
    if (this.#sessions.size > SESSIONS_MAX) this.#sessions.delete([...this.#sessions.keys()][0]!)
    return session
  }

  find(id: string): UploadSession | undefined {
    return this.#sessions.get(id)
  }

  /** Takes the bytes of a call; true when they are all there. */
  take(session: UploadSession, call: SimCall): boolean {
    const header = String(call.headers['content-range'] ?? '')
    if (header === '') {
      session.chunks = [call.body]
      session.received = call.body.length
      return true
    }
    const [, from, to, total] = /^bytes (?:(\d+)-(\d+)|\*)\/(\d+|\*)$/.exec(header) ?? []
    if (total === undefined) throw badRequest('Failed to parse Content-Range header.')
    if (from === undefined) return total !== '*' && session.received >= Number(total)
    if (Number(from) > session.received || Number(to) - Number(from) + 1 !== call.body.length) {
      throw badRequest('Invalid request. The range does not continue what was received.')
    }
    const isLast = total !== '*' && Number(to) + 1 === Number(total)
    const fresh = call.body.subarray(session.received - Number(from))
    if (!isLast && fresh.length % CHUNK_BYTES !== 0) {
      throw badRequest(
        'Invalid request. The number of bytes uploaded is required to be equal or greater than 262144, except for the final request.',
      )
    }
    session.chunks.push(fresh)
    session.received += fresh.length
    return isLast
  }
}

export function incomplete({ received }: UploadSession): SimAnswer {
  const headers: Record<string, string> = received === 0 ? {} : { range: `bytes=0-${received - 1}` }
  return { status: 308, headers, body: '' }
}

/** Metadata and bytes of a call that brings both at once. */
export function uploaded(call: SimCall): Upload {
  const type = String(call.headers['content-type'] ?? '')
  if (call.query.get('uploadType') !== 'multipart') {
    return { fields: {}, bytes: call.body, mimeType: type === '' ? undefined : type }
  }
  const boundary = boundaryOf(type)
  const [first, second] = boundary === undefined ? [] : splitMultipart(call.body, boundary)
  if (!first || !second) throw badRequest('Missing end boundary in multipart body.')
  return { fields: jsonObject(first.body), bytes: second.body, mimeType: second.headers['content-type'] }
}
