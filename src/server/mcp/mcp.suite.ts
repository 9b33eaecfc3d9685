/** A real MCP client on a real socket, before a server with the given services. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import type { ServerModule } from '../../app/module.ts'
import { mailModule } from '../../apps/mail/api/module.ts'
import { engineModule } from '../engine-api/module.ts'
import { startHttpServer } from '../http-server.ts'
import { TOKEN } from '../server.suite.ts'
import { createServer } from '../server.ts'
import type { ServerServices } from '../services.ts'
import { createMcpHttp } from './http.ts'

export type Called = { text: string; isError: boolean }

export type McpWorld = {
  url: string
  /** What went wrong inside, of which clients are not told. */
  errors: unknown[]
  connect(options?: { token?: string; era?: 'legacy' | 'auto' }): Promise<Client>
  close(): Promise<void>
}

export type McpWorldOptions = {
  services: ServerServices
  modules?: readonly ServerModule[]
  allowsWriting?: () => boolean
}

export async function startMcp(options: McpWorldOptions): Promise<McpWorld> {
  const { services, modules = [engineModule, mailModule], allowsWriting = () => false } = options
  const errors: unknown[] = []
  const mcp = createMcpHttp({ services, modules, allowsWriting, onError: (thrown) => errors.push(thrown) })
  const server = createServer({ services, modules, token: TOKEN, mcp: mcp.handle })
  const http = await startHttpServer({ app: server.app, port: 0 })
  const clients: Client[] = []
  return {
    url: `${http.url}/mcp`,
    errors,
    async connect({ token = TOKEN, era = 'legacy' } = {}) {
      const client = new Client(
        { name: 'test', version: '1' },
        era === 'auto' ? { versionNegotiation: { mode: 'auto' } } : {},
      )
      const headers = { authorization: `Bearer ${token}` }
      await client.connect(
        new StreamableHTTPClientTransport(new URL(`${http.url}/mcp`), { requestInit: { headers } }),
      )
      clients.push(client)
      return client
    },
    async close() {
      for (const client of clients) await client.close()
      await server.close()
      await mcp.close()
      await http.close()
    },
  }
}

export async function call(
  client: Client,
  name: string,
  args: Record<string, unknown> = {},
): Promise<Called> {
  const { content, isError } = await client.callTool({ name, arguments: args })
  const [first, ...rest] = content
  if (first?.type !== 'text' || rest.length > 0) throw new Error(`${name} answered no text alone`)
  return { text: first.text, isError: isError === true }
}
