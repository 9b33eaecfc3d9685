/** A OneDrive client that talks to a server whose answers a test writes itself. */
import type { ServerResponse } from 'node:http'
import { after, afterEach } from 'node:test'
import { systemClock } from '../../base/clock.ts'
import { createHttpExchange } from '../../base/http-exchange.ts'
import type { Pace } from '../pace.ts'
import { type Script, type ScriptedServer, sendJson, startServer } from '../scripted-server.suite.ts'
import { OneDriveClient, type OneDriveClientOptions } from './client.ts'

export const DRIVE = '0123456789abcdef'
export const ITEM = '01AB!7'

export const freePace: Pace = (_call, fn) => fn()
export const steadyToken = { access: async () => 'token-1', refused: () => undefined }

const exchange = createHttpExchange()
const servers: ScriptedServer[] = []

/** Each test file calls it once. */
export function cleanUp(): void {
  afterEach(async () => {
    for (const server of servers.splice(0)) await server.close()
  })
  after(() => exchange.close())
}

export async function scripted(
  script: Script,
  options: Partial<OneDriveClientOptions> = {},
): Promise<{ client: OneDriveClient; server: ScriptedServer }> {
  const server = await startServer(script)
  servers.push(server)
  return { server, client: clientOf(server.url, options) }
}

export function clientOf(origin: string, options: Partial<OneDriveClientOptions> = {}): OneDriveClient {
  return new OneDriveClient({
    exchange,
    clock: systemClock,
    apiUrl: `${origin}/v1.0`,
    token: steadyToken,
    pace: freePace,
    timeoutMs: 20_000,
    ...options,
  })
}

export function itemJson(changes: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    id: ITEM,
    name: 'a.txt',
    size: 5,
    eTag: '"{1},2"',
    parentReference: { driveId: DRIVE, id: '01AB!1' },
    file: { hashes: {} },
    ...changes,
  }
}

export function sendError(answer: ServerResponse, status: number, code: string, inner?: string): void {
  const error = { code, message: 'Said so.', ...(inner && { innererror: { code: inner } }) }
  sendJson(answer, { error }, status)
}

export async function bytesOf(stream: ReadableStream<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of stream) chunks.push(chunk)
  return Buffer.concat(chunks)
}
