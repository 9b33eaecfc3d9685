/**
 * Tools of other programs, by the Model Context Protocol. Which servers there are stands in a file of this machine
 * (`assist-mcp.json` in the home folder) that no user of the pages can write, because a server is a program that is
 * started, or an address inside a network; which of their tools an agent may call stands in its profile.
 *
 * Servers are not trusted: what they say of their tools is cut and simplified, what they answer is data. One that hangs,
 * dies or floods costs the run one call that failed: it is then left alone for the rest of the run.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Client, type ClientOptions, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { z } from 'zod'
import { oneLine } from '../../../app/plain-text.ts'
import type { Clock } from '../../../base/clock.ts'
import { UsageError } from '../../../base/errors.ts'
import type { JsonSchema } from '../../../cloud/models/conversation.ts'
import type { Fetch } from '../../../cloud/oauth.ts'
import { type McpAllowance, mcpToolName } from './profiles.ts'
import { type AgentTool, defineTool, ToolRefusal } from './tool.ts'

export const SERVERS_FILE = 'assist-mcp.json'

const CONNECT_MS = 10_000
const CALL_MS = 30_000
const CLOSE_MS = 5_000
const MESSAGE_BYTES_MAX = 1_000_000
const TOOLS_MAX = 500
const DESCRIPTION_CHARS_MAX = 500
const ANSWER_CHARS_MAX = 20_000

const environmentName = z.string().regex(/^\w{1,100}$/)

/** Secrets are named by the variables that hold them, so that none stands in the file. */
const accounts = z.array(z.string().min(1).max(320)).max(1_000).optional()
const server = z.union([
  z.strictObject({
    /** Mailboxes whose agents may use it; where it is left out, those of admins. */
    accounts,
    command: z.string().min(1).max(1_000),
    args: z.array(z.string().max(1_000)).max(50).default([]),
    /** Variables of this process that the program is given besides the usual ones. */
    env: z.array(environmentName).max(50).default([]),
  }),
  z.strictObject({
    accounts,
    url: z.url({ protocol: /^https?$/ }).max(2_000),
    /** By header: the variable that holds its value. */
    headers_env: z.record(z.string().regex(/^[\w-]{1,100}$/), environmentName).default({}),
  }),
])
export type McpServer = z.output<typeof server>

const serversFile = z.strictObject({ servers: z.record(z.string(), server) })

export type McpServers = Readonly<Record<string, McpServer>>

/** None where there is no file. */
export async function readMcpServers(home: string): Promise<McpServers> {
  const path = join(home, SERVERS_FILE)
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw new UsageError(`${path} cannot be read.`, { cause })
  }
  const parsed = serversFile.safeParse(jsonOf(text))
  if (parsed.success) return parsed.data.servers
  const [issue] = parsed.error.issues
  throw new UsageError(`${path} is not right: ${issue?.path.join('.')}: ${issue?.message}.`, {
    code: 'mcp-file',
    hint: 'It looks like {"servers": {"crm": {"command": "crm-mcp", "args": []}}}.',
  })
}

/** What they hold belongs to who wrote the file: a mailbox has those that are for it, and others are as not there. */
export async function serversFor(
  servers: McpServers,
  account: string,
  isAdmins: (account: string) => Promise<boolean>,
): Promise<McpServers> {
  const hasDefault = await isAdmins(account)
  const isFor = ({ accounts: named }: McpServer): boolean =>
    named?.some((one) => one.toLowerCase() === account.toLowerCase()) ?? hasDefault
  return Object.fromEntries(Object.entries(servers).filter(([, one]) => isFor(one)))
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The check says what it should look like.
    return undefined
  }
}

export type McpParts = {
  servers: McpServers
  env: Readonly<Record<string, string | undefined>>
  fetch: Fetch
  clock: Clock
}

export type OpenMcp = {
  tools: readonly AgentTool[]
  /** Servers that cannot be used just now, for people. */
  missing: readonly string[]
  close(): Promise<void>
}

/** For one run: connects to the servers that its profile names, and closes them at its end. */
export async function openMcp(
  allowances: readonly McpAllowance[],
  parts: McpParts,
  signal: AbortSignal,
): Promise<OpenMcp> {
  const opened = await Promise.all(allowances.map((allowance) => openServer(allowance, parts, signal)))
  const close = async (): Promise<void> => {
    await Promise.all(opened.map((one) => one.close()))
  }
  // Not before all of them are known: a program that was started must be ended.
  if (signal.aborted) {
    await close()
    throw signal.reason
  }
  const tools = new Map<string, AgentTool>()
  // Of two tools that would have the same name, the first one has it.
  for (const tool of opened.flatMap((one) => one.tools)) {
    if (!tools.has(tool.name)) tools.set(tool.name, tool)
  }
  return {
    tools: [...tools.values()],
    missing: opened.flatMap((one) => one.missing),
    close,
  }
}

async function openServer(allowance: McpAllowance, parts: McpParts, signal: AbortSignal): Promise<OpenMcp> {
  const { server: name } = allowance
  const config = parts.servers[name]
  const nothing = { tools: [], missing: [name], close: async () => {} }
  if (!config) return nothing
  const connection = new Connection(name, config, parts)
  try {
    const listed = await connection.tools(signal)
    const tools = listed
      .filter((one) => allowance.tools.includes(one.name))
      .map((one) => toolOf(one, allowance, connection))
    return { tools, missing: [], close: () => connection.close() }
  } catch {
    await connection.close()
    return nothing
  }
}

type ListedTool = { name: string; description?: string | undefined; inputSchema: unknown }

function toolOf(
  listed: ListedTool,
  { server: name, repeatable }: McpAllowance,
  connection: Connection,
): AgentTool {
  const schema = simpleSchema(listed.inputSchema)
  const takes = z.fromJSONSchema(schema)
  return defineTool('mcp', {
    name: mcpToolName({ server: name, tool: listed.name }),
    description: `A tool of ${name}: ${harmless(listed.description ?? '', DESCRIPTION_CHARS_MAX)}`,
    input: schema,
    effect: repeatable ? 'none' : 'once',
    timeoutMs: CALL_MS,
    run: async ({ input }, { signal }) => {
      const parsed = takes.safeParse(input)
      if (!parsed.success) {
        const [issue] = parsed.error.issues
        throw new ToolRefusal('bad-arguments', `${issue?.path.join('.') ?? ''}: ${issue?.message ?? ''}`)
      }
      return connection.call(listed.name, input, signal)
    },
  })
}

/** Of what is quoted to a model and never taken for more than text, any form will do. */
const TAKES_ALL: NonNullable<ClientOptions['jsonSchemaValidator']> = {
  getValidator: () => (input) => ({ valid: true, data: input as never, errorMessage: undefined }),
}

/** One server for one run. Once it has failed it is not asked again. */
class Connection {
  readonly #name: string
  readonly #client: Client
  readonly #transport: StdioClientTransport | StreamableHTTPClientTransport
  readonly #clock: Clock
  #hasFailed = false

  constructor(name: string, config: McpServer, { env, fetch, clock }: McpParts) {
    this.#name = name
    this.#clock = clock
    // It is offered nothing: no sampling, no questions to the user, no files. Nor are its patterns run over its answers.
    const options = { capabilities: {}, jsonSchemaValidator: TAKES_ALL }
    this.#client = new Client({ name: 'tidemark', version: '1' }, options)
    this.#transport = 'command' in config ? stdioOf(config, env) : httpOf(config, { env, fetch })
  }

  async tools(signal: AbortSignal): Promise<ListedTool[]> {
    const within = { signal, timeout: CONNECT_MS, maxTotalTimeout: CONNECT_MS }
    await this.#inTime(this.#client.connect(this.#transport, within), CONNECT_MS, signal)
    const { tools } = await this.#inTime(this.#client.listTools({}, within), CONNECT_MS, signal)
    return tools.slice(0, TOOLS_MAX)
  }

  async call(
    tool: string,
    input: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<{ text: string; quote: string }> {
    if (this.#hasFailed) throw new ToolRefusal('server-gone', `${this.#name} has failed before in this run.`)
    try {
      const within = { signal, timeout: CALL_MS, maxTotalTimeout: CALL_MS }
      const answer = await this.#client.callTool({ name: tool, arguments: input }, within)
      const quote = textOf(answer.content)
      return { text: answer.isError === true ? 'It answered with an error.' : 'It answered.', quote }
    } catch (cause) {
      this.#hasFailed = true
      throw cause
    }
  }

  /** A program that does not end by itself is ended by the transport; nobody waits longer for that than for a call. */
  async close(): Promise<void> {
    const never = new AbortController().signal
    // What cannot be closed has ended already, or is given up.
    await this.#inTime(this.#client.close(), CLOSE_MS, never).catch(() => undefined)
  }

  async #inTime<T>(work: Promise<T>, ms: number, signal: AbortSignal): Promise<T> {
    const { promise: stopped, reject } = Promise.withResolvers<never>()
    const onAbort = (): void => reject(signal.reason)
    const cancel = this.#clock.timer(ms, () => reject(new Error(`${this.#name} was silent for ${ms} ms`)))
    signal.addEventListener('abort', onAbort, { once: true })
    if (signal.aborted) onAbort()
    try {
      return await Promise.race([work, stopped])
    } finally {
      cancel()
      signal.removeEventListener('abort', onAbort)
    }
  }
}

function stdioOf(
  { command, args, env: names }: Extract<McpServer, { command: string }>,
  env: McpParts['env'],
): StdioClientTransport {
  const given = names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]] as const]))
  return new StdioClientTransport({
    command,
    args,
    env: Object.fromEntries(given),
    // What it complains about is its own; the log is not its place.
    stderr: 'ignore',
    maxBufferSize: MESSAGE_BYTES_MAX,
  })
}

function httpOf(
  { url, headers_env }: Extract<McpServer, { url: string }>,
  { env, fetch }: Pick<McpParts, 'env' | 'fetch'>,
): StreamableHTTPClientTransport {
  const headers = Object.entries(headers_env).map(([name, variable]) => [name, env[variable] ?? ''])
  return new StreamableHTTPClientTransport(new URL(url), {
    requestInit: { headers: Object.fromEntries(headers), redirect: 'error' },
    fetch: async (to, init) => boundedResponse(await fetch(String(to), { ...init, redirect: 'error' })),
    reconnectionOptions: {
      initialReconnectionDelay: 1_000,
      maxReconnectionDelay: 1_000,
      reconnectionDelayGrowFactor: 1,
      maxRetries: 0,
    },
  })
}

/** A body that goes on for ever ends with an error. */
function boundedResponse(response: Response): Response {
  if (response.body === null) return response
  let bytes = 0
  const bound = new TransformStream<Uint8Array, Uint8Array>({
    transform(chunk, controller) {
      bytes += chunk.byteLength
      if (bytes > MESSAGE_BYTES_MAX) controller.error(new Error('the answer is too large'))
      else controller.enqueue(chunk)
    },
  })
  const { status, statusText, headers } = response
  return new Response(response.body.pipeThrough(bound), { status, statusText, headers })
}

function textOf(content: unknown): string {
  const parts = Array.isArray(content) ? (content as { type?: unknown; text?: unknown }[]) : []
  const texts = parts.map(({ type, text }) =>
    type === 'text' && typeof text === 'string' ? text : '[no text]',
  )
  return texts.join('\n').slice(0, ANSWER_CHARS_MAX)
}

/** What a server says of its tools stands outside of all marks, so it can make none. */
function harmless(text: string, charsMax: number): string {
  return oneLine(text, charsMax).replaceAll('<', '‹')
}

const SCHEMA_DEPTH_MAX = 5
const PROPERTIES_MAX = 50
const TYPES = ['string', 'number', 'integer', 'boolean', 'object', 'array']

/**
 * What a model needs of the schema that a server tells: kinds and names. Patterns, references and all else that costs
 * whoever checks it, or says something to the model, is left out; the server checks its arguments itself.
 */
export function simpleSchema(schema: unknown, depth = 0): JsonSchema {
  const given = isObject(schema) ? schema : {}
  const type = TYPES.includes(String(given.type)) ? String(given.type) : depth === 0 ? 'object' : undefined
  if (depth >= SCHEMA_DEPTH_MAX) return {}
  const simple: Record<string, unknown> = type === undefined ? {} : { type }
  if (typeof given.description === 'string') simple.description = harmless(given.description, 200)
  if (type === 'string' && Array.isArray(given.enum) && given.enum.length <= PROPERTIES_MAX) {
    const texts = given.enum.filter((one) => typeof one === 'string' && one.length <= 100)
    if (texts.length > 0 && texts.length === given.enum.length) simple.enum = texts
  }
  if (type === 'array') simple.items = simpleSchema(given.items, depth + 1)
  if (type === 'object') {
    const properties = Object.entries(isObject(given.properties) ? given.properties : {})
      .filter(([name]) => /^[\w-]{1,64}$/.test(name) && name !== '__proto__')
      .slice(0, PROPERTIES_MAX)
    simple.properties = Object.fromEntries(
      properties.map(([name, one]) => [name, simpleSchema(one, depth + 1)]),
    )
    const required = Array.isArray(given.required) ? given.required : []
    simple.required = properties.map(([name]) => name).filter((name) => required.includes(name))
  }
  return simple
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
