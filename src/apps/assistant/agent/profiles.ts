/**
 * What an agent is: its words, its limits, and the closed list of what it may do. All of it is least where nothing is
 * said: a profile that names no tool can do nothing but read the mail that came and say something about it.
 *
 * Code holds a run to its profile, not the prompt: see run.ts. A profile that names nobody in `send_to` cannot send.
 */
import { z } from 'zod'

export const TOOL_NAMES = [
  'search_archive',
  'read_thread',
  'create_draft',
  'apply_label',
  'escalate',
  'http_get',
  'send',
] as const
export type ToolName = (typeof TOOL_NAMES)[number]

/** Labels that say what a mail is. The others are how a user asks for work, and would start it. */
export const AGENT_LABELS = ['action_required', 'payment_request', 'fyi', 'waiting'] as const
export type AgentLabel = (typeof AGENT_LABELS)[number]

export const ITERATIONS_DEFAULT = 10
const ITERATIONS_MAX = 30

const name = z.string().trim().min(1).max(60)

/** A name of the public network: no address, no port, nothing that only this machine knows. */
const host = z
  .string()
  .max(253)
  .transform((one) => one.toLowerCase())
  .refine(
    (one) => /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]$/.test(one),
    'must be the name of a host, such as api.example.com',
  )
const path = z
  .string()
  .max(500)
  .regex(/^\/[\w./~-]*$/, 'must be a path, such as /orders/')

/** One address, and nothing that could be read as another: no name, no comment, no letters that look like others. */
const recipient = z
  .string()
  .max(254)
  .transform((one) => one.toLowerCase())
  .refine(
    (one) => /^[a-z0-9][a-z0-9._+-]{0,63}@(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$/.test(one),
    'must be one address, such as bob@example.com',
  )

export const httpAllowance = z.strictObject({
  host,
  /** What addresses begin with: a whole path, or up to a slash. */
  paths: z.array(path).min(1).max(50).default(['/']),
  /** Those of them that may have a query: what stands in it leaves this machine. */
  queries: z.array(path).max(50).default([]),
})
export type HttpAllowance = z.output<typeof httpAllowance>

export const mcpAllowance = z.strictObject({
  /** As the file of servers calls it: see mcp-servers.ts. */
  server: z
    .string()
    .regex(/^[a-z0-9][a-z0-9-]{0,30}$/, 'must be the name of a server: letters, digits and -'),
  tools: z
    .array(z.string().regex(/^[\w.-]{1,60}$/, 'must be the name of a tool'))
    .min(1)
    .max(50),
  /** Calling one of them twice does no harm: after a crash it is called again instead of given up. */
  repeatable: z.boolean().default(false),
})
export type McpAllowance = z.output<typeof mcpAllowance>

export const agentProfile = z
  .strictObject({
    name,
    /** That of the purpose `agent` where it is left out. */
    model: z.string().max(200).default(''),
    temperature: z.number().min(0).max(2).default(0),
    max_iterations: z.int().min(1).max(ITERATIONS_MAX).default(ITERATIONS_DEFAULT),
    system_prompt: z.string().max(20_000).default(''),
    /** How the mail is read before the agent sees it. */
    preprocessor: z.enum(['default', 'helpdesk']).default('default'),
    tools: z.array(z.enum(TOOL_NAMES)).max(TOOL_NAMES.length).default([]),
    labels: z
      .array(z.enum(AGENT_LABELS))
      .max(AGENT_LABELS.length)
      .default([...AGENT_LABELS]),
    http: z.array(httpAllowance).max(50).default([]),
    mcp: z.array(mcpAllowance).max(20).default([]),
    /** To whom `send` sends: to nobody else, and to nobody where it is left out. */
    send_to: z.array(recipient).max(20).default([]),
  })
  .refine(
    ({ tools, send_to }) => tools.includes('send') === send_to.length > 0,
    'the tool send and send_to, which says to whom, belong together',
  )
export type AgentProfile = z.output<typeof agentProfile>

export const agentProfiles = z
  .array(agentProfile)
  .max(50)
  .refine((all) => new Set(all.map((one) => one.name)).size === all.length, 'two profiles have the same name')

const MCP_PREFIX = 'mcp_'

export function isMcpTool(name: string): boolean {
  return name.startsWith(MCP_PREFIX)
}

/** As models are offered it. What a server calls its tool may hold a dot, which some models do not take. */
export function mcpToolName({ server, tool }: { server: string; tool: string }): string {
  return `${MCP_PREFIX}${server}_${tool}`.replaceAll(/[^\w-]/g, '_').slice(0, 64)
}
