/** Bytes on their way into Cloud Storage: alone, with their metadata in one body, or in a resumable session. */
import { invalid } from '../google/errors.ts'
import { boundaryOf, splitMultipart } from '../google/multipart.ts'
import type { SimAnswer, SimCall } from '../server.ts'

export type GcsUpload = { fields: Record<string, unknown>; bytes: Buffer; contentType: string | undefined }

export type UploadSession = {
  id: string
  bucket: string
  query: URLSearchParams
  fields: Record<string, unknown>
  contentType: string | undefined
  chunks: Buffer[]
  received: number
  end: SimAnswer | undefined
}

const SESSIONS_MAX = 1_000

/** All of it in one call. */
export function simpleUpload(call: SimCall): GcsUpload {
  const type = call.headers['content-type']
  if (call.query.get('uploadType') !== 'multipart') return { fields: {}, bytes: call.body, contentType: type }
  const boundary = boundaryOf(type ?? '')
  const parts = boundary === undefined ? [] : splitMultipart(call.body, boundary)
  if (parts.length !== 2) throw invalid('Malformed multipart body.')
  const [about, media] = parts as [(typeof parts)[0], (typeof parts)[0]]
  return { fields: jsonObject(about.body), bytes: media.body, contentType: media.headers['content-type'] }
}

export class UploadSessions {
  readonly #sessions = new Map<string, UploadSession>()
  #count = 0

  begin(input: Pick<UploadSession, 'bucket' | 'query' | 'fields' | 'contentType'>): UploadSession {
    this.#count += 1
    const session: UploadSession = {
      ...input,
      id: `sim-upload-${this.#count}`,
      chunks: [],
      received: 0,
      end: undefined,
    }
    this.#sessions.set(session.id, session)
    if (this.#sessions.size > SESSIONS_MAX) this.#sessions.delete([...this.#sessions.keys()][0]!)
    return session
  }

  find(id: string): UploadSession | undefined {
    return this.#sessions.get(id)
  }

  /** The whole when the last byte came; otherwise the answer that says how far it is. */
  take(session: UploadSession, call: SimCall): SimAnswer | Buffer {
    if (session.end) return session.end
    const range = /^bytes (?:(\d+)-(\d+)|\*)\/(\d+|\*)$/.exec(call.headers['content-range'] ?? '')
    if (!range) return call.body
    const [, from, , total] = range
    if (from !== undefined && Number(from) === session.received) {
      session.chunks.push(call.body)
      session.received += call.body.length
    }
    if (total !== '*' && session.received === Number(total)) return Buffer.concat(session.chunks)
    const headers: Record<string, string> =
      session.received === 0 ? {} : { range: `bytes=0-${session.received - 1}` }
    return { status: 308, headers, body: '' }
  }
}

export function jsonObject(body: Buffer): Record<string, unknown> {
  if (body.length === 0) return {}
  try {
    const value: unknown = JSON.parse(body.toString('utf8'))
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>
  } catch {
    // Refused below, like JSON that is no object.
  }
  throw invalid('Parse Error')
}
