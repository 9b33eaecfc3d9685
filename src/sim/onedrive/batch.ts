/** JSON batches: up to twenty requests in one, each with an answer of its own. */
import type { Random } from '../../base/random.ts'
import { answerPieces, jsonAnswer, type SimAnswer, type SimCall, splitUrl } from '../server.ts'
import { invalid } from './errors.ts'
import { jsonBody } from './route.ts'

export type BatchPart = { id: string; call: SimCall; dependsOn: readonly string[] }

const PARTS_MAX = 20

export function isBatchPath(path: string): boolean {
  return path === '/$batch' || path === '/%24batch'
}

export function readBatch(call: SimCall, prefix: string): BatchPart[] {
  if (call.verb !== 'POST') throw invalid('A batch is posted.')
  const { requests } = jsonBody({ call })
  if (!Array.isArray(requests)) throw invalid('The batch has no requests.')
  if (requests.length > PARTS_MAX) throw invalid(`The batch has more than ${PARTS_MAX} requests.`)
  const ids = new Set<string>()
  return requests.map((request: unknown) => {
    const part = readPart(request, { prefix, outer: call })
    if (ids.has(part.id)) throw invalid('Two requests of the batch have the same id.')
    if (part.dependsOn.some((id) => !ids.has(id)))
      throw invalid('A request depends on one that is not before it.')
    ids.add(part.id)
    return part
  })
}

function readPart(request: unknown, { prefix, outer }: { prefix: string; outer: SimCall }): BatchPart {
  if (typeof request !== 'object' || request === null) throw invalid('A request of the batch is no object.')
  const { id, method, url, headers, body, dependsOn } = request as Record<string, unknown>
  if (typeof id !== 'string' || typeof method !== 'string' || typeof url !== 'string') {
    throw invalid('A request of the batch needs id, method and url.')
  }
  const own = Object.fromEntries(
    Object.entries((headers ?? {}) as Record<string, unknown>).map(([name, value]) => [
      name.toLowerCase(),
      String(value),
    ]),
  )
  const { path, query } = splitUrl(`${prefix}/${url.replace(/^\/+/, '')}`)
  return {
    id,
    dependsOn: Array.isArray(dependsOn) ? dependsOn.map(String) : [],
    call: {
      path,
      query,
      verb: method.toUpperCase(),
      origin: outer.origin,
      headers: { ...own, authorization: outer.headers.authorization },
      body: requestBody(body),
    },
  }
}

/** JSON as it is; anything else as base64. */
function requestBody(body: unknown): Buffer {
  if (body === undefined || body === null) return Buffer.alloc(0)
  return typeof body === 'string' ? Buffer.from(body, 'base64') : Buffer.from(JSON.stringify(body))
}

export function batchAnswer(answers: ReadonlyMap<string, SimAnswer>, shuffle: Random | undefined): SimAnswer {
  const responses = [...answers].map(([id, answer]) => ({
    id,
    status: answer.status,
    headers: answer.headers ?? {},
    ...partBody(answer),
  }))
  if (shuffle) responses.sort(() => shuffle() - 0.5)
  return jsonAnswer({ responses })
}

function partBody(answer: SimAnswer): { body?: unknown } {
  const bytes = Buffer.concat(
    answerPieces(answer.body).map((piece) =>
      typeof piece === 'string' ? Buffer.from(piece, 'latin1') : piece,
    ),
  )
  if (bytes.length === 0) return {}
  const isJson = answer.headers?.['content-type']?.startsWith('application/json')
  return { body: isJson ? JSON.parse(bytes.toString('utf8')) : bytes.toString('base64') }
}
