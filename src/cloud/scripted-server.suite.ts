/** An HTTP server whose answers a test writes itself. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export type Request = {
  verb: string
  path: string
  headers: IncomingMessage['headers']
  body: string
  bytes: Buffer
}
export type Script = (request: Request, answer: ServerResponse) => void | Promise<void>

export type ScriptedServer = { url: string; requests: Request[]; close(): Promise<void> }

export async function startServer(script: Script): Promise<ScriptedServer> {
  const requests: Request[] = []
  const server = createServer((incoming, answer) => {
    const chunks: Buffer[] = []
    incoming.on('data', (chunk) => chunks.push(chunk))
    incoming.on('end', () => {
      const bytes = Buffer.concat(chunks)
      const { method = '', url = '', headers } = incoming
      const request = { verb: method, path: url, headers, body: bytes.toString(), bytes }
      requests.push(request)
      void script(request, answer)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    close: () => {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

export function sendJson(answer: ServerResponse, value: unknown, status = 200): void {
  answer.writeHead(status, { 'content-type': 'application/json; charset=UTF-8' })
  answer.end(JSON.stringify(value))
}
