/**
 * What a system adds to the server: its routes, its part of the live snapshot, and its MCP tools. The engine is the
 * first module; every app is another one. See docs/adding-an-app.md.
 */
import type { z } from 'zod'
import type { AnyRoute } from './route.ts'
import type { Services } from './services.ts'

export type ServerModule = {
  /** Lower case, such as `mail`; its routes are under `/api/<name>/…`, those of the engine directly under `/api`. */
  name: string
  routes: readonly AnyRoute[]
  /** Sent to live pages about once a second where it changed; small. */
  snapshot?: (services: Services) => Promise<unknown>
  tools?: readonly McpTool[]
}

export type McpTool = {
  name: string
  title: string
  description: string
  input: z.ZodObject
  /** Tools that change something are offered only where that is switched on. */
  access: 'read' | 'write'
  /** Text for a model, with ids to cite; cut to a size that fits its context by the MCP server. */
  run: (input: never, services: Services) => Promise<string>
}

export function defineTool<S extends z.ZodObject>(
  tool: Omit<McpTool, 'input' | 'run'> & {
    input: S
    run: (input: z.output<S>, services: Services) => Promise<string>
  },
): McpTool {
  return tool as unknown as McpTool
}
