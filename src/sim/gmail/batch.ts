/**
 * The batch endpoint: a multipart/mixed of HTTP requests in, one of HTTP answers out. An answer carries the
 * Content-ID of its request with `response-` before it, and may come in another order.
 */
import { STATUS_CODES } from 'node:http'
import type { Random } from '../../base/random.ts'
import { invalid } from '../google/errors.ts'
import { boundaryOf, cutHead, readHeaders, splitMultipart } from '../google/multipart.ts'
import { answerPieces, type SimAnswer, type SimCall, splitUrl } from '../server.ts'

export type BatchPart = { contentId: string | undefined; call: SimCall }
export type AnsweredPart = { contentId: string | undefined; answer: SimAnswer }

const BOUNDARY = 'batch_tidemark-sim_0f3c9a'

export function isBatchPath(path: string): boolean {
  return path === '/batch/gmail/v1' || path === '/batch'
}

export function readBatch(call: SimCall, partsMax: number): BatchPart[] {
  const boundary = boundaryOf(String(call.headers['content-type'] ?? ''))
  if (boundary === undefined) throw invalid('Failed to parse batch request, error: Missing boundary.')
  const parts = splitMultipart(call.body, boundary)
  if (parts.length === 0) throw invalid('Failed to parse batch request, error: 0 items.')
  if (parts.length > partsMax) throw invalid(`The batch request exceeds the maximum of ${partsMax} calls.`)
  const { authorization } = call.headers
  return parts.map(({ headers, body }) => {
    const { head, body: inner } = cutHead(body)
    const [line = '', ...rest] = head.split(/\r?\n/)
    const [, verb, url] = /^([A-Z]+) (\S+)/.exec(line) ?? []
    if (!verb || !url) throw invalid('Failed to parse batch request, error: Failed in parsing HTTP request.')
    const own = readHeaders(rest.join('\n'))
    const auth = own.authorization ?? authorization
    return {
      contentId: headers['content-id'],
      call: {
        ...splitUrl(url),
        origin: call.origin,
        verb,
        headers: auth === undefined ? own : { ...own, authorization: auth },
        body: inner,
      },
    }
  })
}

export function batchAnswer(parts: readonly AnsweredPart[], shuffle?: Random): SimAnswer {
  const body: (string | Buffer)[] = []
  for (const { contentId, answer } of shuffle ? shuffled(parts, shuffle) : parts) {
    writePart(body, contentId, answer)
  }
  body.push(`--${BOUNDARY}--\r\n`)
  const sent = parts.flatMap(({ answer }) => answer.onSent ?? [])
  const whole: SimAnswer = {
    status: 200,
    headers: { 'content-type': `multipart/mixed; boundary=${BOUNDARY}` },
    body,
  }
  if (sent.length > 0) {
    whole.onSent = () => {
      for (const onSent of sent) onSent()
    }
  }
  return whole
}

function writePart(body: (string | Buffer)[], contentId: string | undefined, answer: SimAnswer): void {
  let head = `--${BOUNDARY}\r\nContent-Type: application/http\r\n`
  if (contentId !== undefined) head += `Content-ID: ${responseId(contentId)}\r\n`
  head += `\r\nHTTP/1.1 ${answer.status} ${STATUS_CODES[answer.status] ?? ''}\r\n`
  for (const [name, value] of Object.entries(answer.headers ?? {})) head += `${titled(name)}: ${value}\r\n`
  const pieces = answerPieces(answer.body)
  let bytes = 0
  for (const piece of pieces) bytes += piece.length
  if (bytes > 0) head += `Content-Length: ${bytes}\r\n`
  body.push(`${head}\r\n`, ...pieces, '\r\n')
}

/** `<item1>` → `<response-item1>` */
function responseId(contentId: string): string {
  // A header of the answer must not be written by the caller.
  const safe = contentId.replaceAll(/[^\x20-\x7e]/g, '')
  return safe.startsWith('<') ? `<response-${safe.slice(1)}` : `response-${safe}`
}

function titled(name: string): string {
  return name.replaceAll(/(?:^|-)[a-z]/g, (start) => start.toUpperCase())
}

function shuffled<Item>(items: readonly Item[], random: Random): Item[] {
  const mixed = [...items]
  for (let at = mixed.length - 1; at > 0; at--) {
    const other = Math.floor(random() * (at + 1))
    const kept = mixed[at]!
    mixed[at] = mixed[other]!
    mixed[other] = kept
  }
  return mixed
}
