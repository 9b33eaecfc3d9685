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
  /** The form of that part, for the document. */
  snapshotSchema?: z.ZodType
  tools?: readonly McpTool[]
  /** What waits for somebody, in whole sentences: the verdict over everything must not call it settled. */
  needs?: (services: Services) => Promise<readonly string[]>
}

export type McpTool = {
  name: string
  title: string
  description: string
  input: z.ZodObject
  /** Tools that change something are offered only where that is switched on. */
  access: 'read' | 'write'
  /** How to ask for less, or for the rest, where an answer had to be cut. */
  narrower: string
  run: (input: never, services: Services) => Promise<ToolAnswer>
}

/** Text for a model, with ids to cite; cut to a size that fits its context by the MCP server. */
export type ToolAnswer = readonly AnswerPart[]

/**
 * Words of our own, or text of others: mail, file names, what a service said. The MCP server fences it off, so that
 * it can neither pose as ours nor as an instruction.
 */
export type AnswerPart = string | { quote: string }

export function defineTool<S extends z.ZodObject>(
  tool: Omit<McpTool, 'input' | 'run'> & {
    input: S
    run: (input: z.output<S>, services: Services) => Promise<ToolAnswer>
  },
): McpTool {
  return tool as unknown as McpTool
}
