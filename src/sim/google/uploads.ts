/**
 * Resumable uploads, as services of Google have them.
 *
 * A session is open until its last byte came; then it answers its end to whoever asks again. Bytes come in order, in
 * multiples of 256 KiB except the last; what came stays, and 308 says how much that is.
 */
import type { Random } from '../../base/random.ts'
import type { SimAnswer, SimCall } from '../server.ts'
import type { GoogleError } from './errors.ts'

export type UploadSession<Purpose> = {
  id: string
  /** What it is for, in the service's own words. */
  purpose: Purpose
  address: string
  /** The JSON that came with the first call. */
  metadata: Buffer
  /** Of the first call. */
  query: URLSearchParams
  chunks: Buffer[]
  received: number
  /** What was answered to the last byte. */
  end: SimAnswer | undefined
}

const CHUNK_BYTES = 256 * 1024
const SESSIONS_MAX = 1_000

export class Uploads<Purpose> {
  readonly #random: Random
  readonly #badRequest: (message: string) => GoogleError
  readonly #sessions = new Map<string, UploadSession<Purpose>>()

  constructor(random: Random, { badRequest }: { badRequest: (message: string) => GoogleError }) {
    this.#random = random
    this.#badRequest = badRequest
  }

  /** The answer says where the bytes go. */
  begin({ call, address, purpose }: { call: SimCall; address: string; purpose: Purpose }): SimAnswer {
    const id = `AP4tsim${Math.floor(this.#random() * 2 ** 50).toString(36)}${this.#sessions.size}`
    this.#sessions.set(id, {
      id,
      purpose,
      address,
      metadata: call.body,
      query: call.query,
      chunks: [],
      received: 0,
      end: undefined,
    })
    if (this.#sessions.size > SESSIONS_MAX) this.#sessions.delete([...this.#sessions.keys()][0]!)
    const query = new URLSearchParams(call.query)
    query.set('upload_id', id)
    const location = `${call.origin}${call.path}?${query}`
    return { status: 200, headers: { location, 'x-guploader-uploadid': id }, body: '' }
  }

  /** The session of a call, if it is the caller's. */
  find(call: SimCall, address: string): UploadSession<Purpose> | undefined {
    const session = this.#sessions.get(call.query.get('upload_id') ?? '')
    return session?.address === address ? session : undefined
  }

  /** Takes the bytes of a call; with the last of them comes the end, which is kept. */
  resume(session: UploadSession<Purpose>, call: SimCall, finish: (bytes: Buffer) => SimAnswer): SimAnswer {
    if (session.end) return session.end
    if (!this.#take(session, call)) return incomplete(session)
    session.end = finish(Buffer.concat(session.chunks))
    session.chunks = []
    return session.end
  }

  /** True when they are all there. */
  #take(session: UploadSession<Purpose>, call: SimCall): boolean {
    const header = String(call.headers['content-range'] ?? '')
    if (header === '') {
      session.chunks = [call.body]
      session.received = call.body.length
      return true
    }
    const [, from, to, total] = /^bytes (?:(\d+)-(\d+)|\*)\/(\d+|\*)$/.exec(header) ?? []
    if (total === undefined) throw this.#badRequest('Failed to parse Content-Range header.')
    if (from === undefined) return total !== '*' && session.received >= Number(total)
    if (Number(from) > session.received || Number(to) - Number(from) + 1 !== call.body.length) {
      throw this.#badRequest('Invalid request. The range does not continue what was received.')
    }
    const isLast = total !== '*' && Number(to) + 1 === Number(total)
    const fresh = call.body.subarray(session.received - Number(from))
    if (!isLast && fresh.length % CHUNK_BYTES !== 0) {
      throw this.#badRequest(
        'Invalid request. The number of bytes uploaded is required to be equal or greater than 262144, except for the final request.',
      )
    }
    session.chunks.push(fresh)
    session.received += fresh.length
    return isLast
  }
}

/** A call that brings bytes of an upload which was begun before: by PUT, or as some clients do it, by POST. */
export function isResumption({ verb, path, query }: Pick<SimCall, 'verb' | 'path' | 'query'>): boolean {
  return (verb === 'PUT' || verb === 'POST') && path.startsWith('/upload/') && query.has('upload_id')
}

function incomplete({ received }: { received: number }): SimAnswer {
  const headers: Record<string, string> = received === 0 ? {} : { range: `bytes=0-${received - 1}` }
  return { status: 308, headers, body: '' }
}
