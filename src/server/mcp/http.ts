/**
 * POST /mcp: a server for each request, and nothing kept between two of them, so that any process can answer any
 * request. Who may ask is decided before (security.ts); GET and DELETE, which belong to sessions, are refused by the
 * app.
 */
import { createMcpHandler } from '@modelcontextprotocol/server'
import { NOBODY, type RequestUser } from '../../app/user.ts'
import { BODY_BYTES_MAX } from '../request-input.ts'
import { type McpOptions, mcpServers } from './server.ts'

export type McpHttp = {
  handle(request: Request, user: RequestUser): Promise<Response>
  /** Ends what is under way. */
  close(): Promise<void>
}

export function createMcpHttp(options: McpOptions): McpHttp {
  const servers = mcpServers(options)
  const handler = createMcpHandler(({ authInfo }) => servers(callerOf(authInfo?.extra)), {
    maxRequestBodySize: BODY_BYTES_MAX,
    // Nothing changes that a client could wait to hear of.
    maxSubscriptions: 0,
    onerror: (error) => options.onProtocolError?.(error),
  })
  return {
    handle: (request, user) =>
      handler.fetch(request, {
        authInfo: { token: '', clientId: String(user.id), scopes: [], extra: { user } },
      }),
    close: () => handler.close(),
  }
}

/** Who was found out before; where that got lost, nobody. */
function callerOf(extra: Record<string, unknown> | undefined): RequestUser {
  return (extra?.user as RequestUser | undefined) ?? NOBODY
}
