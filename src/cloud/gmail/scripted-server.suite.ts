/** A Gmail client that talks to a server whose answers a test writes itself, and pieces of such answers. */
import type { ServerResponse } from 'node:http'
import { systemClock } from '../../base/clock.ts'
import type { Request } from '../scripted-server.suite.ts'
import { GmailClient, type GmailClientOptions, type Pace } from './client.ts'
import { pricesOf } from './prices.ts'

export {
  type Request,
  type Script,
  type ScriptedServer,
  sendJson,
  startServer,
} from '../scripted-server.suite.ts'

export const freePace: Pace = (_call, fn) => fn()

export const steadyToken = { access: async () => 'token-1', refused: () => undefined }

export function clientOf(apiUrl: string, options: Partial<GmailClientOptions> = {}): GmailClient {
  return new GmailClient({
    apiUrl,
    fetch,
    clock: systemClock,
    token: steadyToken,
    pace: freePace,
    prices: pricesOf('current'),
    timeoutMs: 10_000,
    ...options,
  })
}

export type Part = { id: string; status?: number; head?: string; body?: string; contentId?: string }

export const BOUNDARY = 'batch_k3jh'

export function partText({
  id,
  status = 200,
  head = '',
  body = '',
  contentId = `response-${id}`,
}: Part): string {
  return `--${BOUNDARY}\r\nContent-Type: application/http\r\nContent-ID: <${contentId}>\r\n\r\nHTTP/1.1 ${status} Said\r\nContent-Type: application/json; charset=UTF-8\r\n${head}\r\n${body}\r\n`
}

export function batchText(parts: readonly Part[]): string {
  return `${parts.map(partText).join('')}--${BOUNDARY}--\r\n`
}

export function messageJson(id: string, raw = `Subject: ${id}\r\n\r\n`): string {
  return JSON.stringify({
    id,
    threadId: `t${id}`,
    labelIds: ['INBOX'],
    snippet: `of ${id}`,
    historyId: '18446744073709551615',
    internalDate: '1700000000123',
    sizeEstimate: raw.length,
    raw: Buffer.from(raw).toString('base64url'),
    payload: { more: 'than we know' },
  })
}

export function errorJson(code: number, reason: string, message = 'Said so.'): string {
  return JSON.stringify({ error: { code, message, errors: [{ domain: 'global', reason, message }] } })
}

/** The ids that a batch asks for, in its order. */
export function askedIds({ body }: Request): string[] {
  return [...body.matchAll(/Content-ID: <([^>]+)>/g)].map((match) => match[1]!)
}

export function sendBatch(answer: ServerResponse, text: string): void {
  answer.writeHead(200, { 'content-type': `multipart/mixed; boundary=${BOUNDARY}` })
  answer.end(text)
}
