/**
 * What a system adds to the server: its routes, its part of the live snapshot, and its MCP tools. The engine is the
 * first module; every app is another one. See docs/adding-an-app.md.
 */
import type { z } from 'zod'
import type { Account } from '../ledger/accounts.ts'
import type { AnyRoute } from './route.ts'
import type { Services } from './services.ts'
import type { RequestUser } from './user.ts'

export type ServerModule<S extends Services = never> = {
  /** Lower case, such as `mail`; its routes are under `/api/<name>/…`, those of the engine directly under `/api`. */
  name: string
  routes: readonly AnyRoute[]
  /** Sent to live pages about once a second where it changed; small. */
  snapshot?: (services: S) => Promise<unknown>
  /** The form of that part, for the document. */
  snapshotSchema?: z.ZodType
  tools?: readonly McpTool[]
  /** For models, in a few sentences: what its tools are good for, and in which order. */
  instructions?: string
  /** What it says of the accounts that it works for: see accounts/module.ts. */
  accounts?: AccountsPart<S>
}

export type AccountsPart<S extends Services = never> = {
  /** Of what it says of one account. */
  schema: z.ZodType
  /** Of all its accounts, in their order. */
  view: (services: S, accounts: readonly Account[]) => Promise<readonly unknown[]>
  /** Accounts were connected or forgotten: sees it at once. */
  changed: (services: S) => Promise<void>
  /** What to do next with an account that was just connected. */
  next?: string
}

export type McpTool = {
  name: string
  title: string
  description: string
  input: z.ZodObject
  /** Tools that change something are offered only where that is switched on. */
  access: 'read' | 'write'
  /** Members are offered it, too, and it answers with what is theirs. Admins alone where it is left out. */
  audience?: 'member'
  /** How to ask for less, or for the rest, where an answer had to be cut. */
  narrower: string
  run: (input: never, services: never, caller: ToolCaller) => Promise<ToolAnswer>
}

/** Who lets the tool run. */
export type ToolCaller = { user: RequestUser }

/** Text for a model, with ids to cite; cut to a size that fits its context by the MCP server. */
export type ToolAnswer = readonly AnswerPart[]

/**
 * Words of our own, or text of others: mail, file names, what a service said. The MCP server fences it off, so that
 * it can neither pose as ours nor as an instruction.
 */
export type AnswerPart = string | { quote: string }

export function defineTool<I extends z.ZodObject, S extends Services = Services>(
  tool: Omit<McpTool, 'input' | 'run'> & {
    input: I
    run: (input: z.output<I>, services: S, caller: ToolCaller) => Promise<ToolAnswer>
  },
): McpTool {
  return tool as unknown as McpTool
}

/** The same for an app, whose tools are also given the app itself, under its name. */
export function toolsOf<S extends Services>() {
  return <I extends z.ZodObject>(
    tool: Omit<McpTool, 'input' | 'run'> & {
      input: I
      run: (input: z.output<I>, services: S, caller: ToolCaller) => Promise<ToolAnswer>
    },
  ) => defineTool<I, S>(tool)
}

/**
 * What the parts of a module are given: an app's find the app itself under its name. That of search finds the index
 * there, which it is about.
 */
export function servicesFor({ name }: Pick<ServerModule, 'name'>, services: Services): never {
  const app = services.apps.get(name)
  return (app && !(name in services) ? { ...services, [name]: app } : services) as never
}
