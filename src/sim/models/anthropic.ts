/** Anthropic's messages, in the form that the ai SDK's provider uses. */
import { z } from 'zod'
import { jsonAnswer, type SimAnswer } from '../server.ts'
import type { Asked, AskedMessage } from './exchange.ts'
import { eventStream, headerText, type ProtocolAdapter, piecesOf } from './protocol.ts'

const block = z.looseObject({
  type: z.string(),
  text: z.string().optional(),
  id: z.string().optional(),
  name: z.string().optional(),
  input: z.unknown().optional(),
  content: z.unknown().optional(),
})
const content = z.union([z.string(), z.array(block)])
const schemaInput = z.record(z.string(), z.unknown())
const body = z.looseObject({
  model: z.string(),
  max_tokens: z.number().int().positive(),
  system: content.optional(),
  messages: z.array(z.looseObject({ role: z.enum(['user', 'assistant', 'system']), content })).min(1),
  tools: z
    .array(
      z.looseObject({
        name: z.string(),
        description: z.string().optional(),
        input_schema: schemaInput.optional(),
      }),
    )
    .optional(),
  tool_choice: z.looseObject({ type: z.string(), name: z.string().optional() }).optional(),
  output_config: z
    .looseObject({ format: z.looseObject({ type: z.string(), schema: schemaInput }).optional() })
    .optional(),
  temperature: z.number().optional(),
  stream: z.boolean().optional(),
})

/** The SDK has older models answer JSON as the input of this tool. */
const JSON_TOOL = 'json'
const FINISH = {
  stop: 'end_turn',
  length: 'max_tokens',
  'tool-calls': 'tool_use',
  filtered: 'refusal',
} as const

/** Which calls are to be answered by the tool that stands for JSON. */
const byTool = new WeakSet<Asked>()

export const anthropic: ProtocolAdapter = {
  keyOf: ({ headers }) => headerText(headers['x-api-key']),

  read({ json }) {
    const parsed = body.safeParse(json)
    if (!parsed.success) return undefined
    const { data } = parsed
    const jsonTool = data.tools?.find(({ name }) => name === JSON_TOOL)
    const schema = data.output_config?.format?.schema ?? jsonTool?.input_schema
    const system = data.system === undefined ? [] : [readMessage('system', data.system)]
    const asked: Asked = {
      protocol: 'anthropic',
      model: data.model,
      messages: [...system, ...data.messages.flatMap((one) => readTurn(one.role, one.content))],
      tools: (data.tools ?? [])
        .filter(({ name }) => name !== JSON_TOOL)
        .map(({ name, description, input_schema }) => ({
          name,
          description: description ?? '',
          schema: input_schema ?? {},
        })),
      json: schema && { schema },
      maxTokens: data.max_tokens,
      temperature: data.temperature,
      isStream: data.stream === true,
    }
    if (jsonTool) byTool.add(asked)
    return asked
  },

  answer(asked, { text, toolCalls, finish, usage }, id) {
    const calls = toolCalls.map(({ name, input }) => ({ name, input: parsedOr(input) }))
    const isByTool = byTool.has(asked) && calls.length === 0 && parsedOr(text, null) !== null
    if (isByTool) calls.push({ name: JSON_TOOL, input: parsedOr(text) })
    const whole: Message = {
      id: `msg_${id}`,
      type: 'message',
      role: 'assistant',
      model: asked.model,
      content: [
        ...(text === '' || isByTool ? [] : [{ type: 'text', text } as const]),
        ...calls.map(
          ({ name, input }, at) => ({ type: 'tool_use', id: `toolu_${id}_${at}`, name, input }) as const,
        ),
      ],
      stop_reason: isByTool ? 'tool_use' : FINISH[finish],
      stop_sequence: null,
      // It always says so: where a script leaves it out, nothing was counted.
      usage: { input_tokens: usage?.input ?? 0, output_tokens: usage?.output ?? 0 },
    }
    return asked.isStream ? streamed(whole) : jsonAnswer(whole)
  },

  refuse(status, { message, code, headers }) {
    return jsonAnswer({ type: 'error', error: { type: code ?? 'api_error', message } }, status, headers)
  },

  problems: {
    key: { status: 401, code: 'authentication_error', message: 'invalid x-api-key' },
    model: (name) => ({ status: 404, code: 'not_found_error', message: `model: ${name}` }),
    body: { status: 400, code: 'invalid_request_error', message: 'messages: field required' },
    context: ({ tokens, tokensMax }) => ({
      status: 400,
      code: 'invalid_request_error',
      message: `prompt is too long: ${tokens} tokens > ${tokensMax} maximum`,
    }),
    throttled: { code: 'rate_limit_error', message: 'This request would exceed your rate limit.' },
    failed: { code: 'overloaded_error', message: 'Overloaded' },
  },
}

type Block = { type: 'text'; text: string } | { type: 'tool_use'; id: string; name: string; input: unknown }
type Message = {
  id: string
  type: 'message'
  role: 'assistant'
  model: string
  content: Block[]
  stop_reason: string
  stop_sequence: null
  usage: { input_tokens: number; output_tokens: number }
}

/** The beginning, each block in pieces, why it ended and what it used, and the end. */
function streamed(whole: Message): SimAnswer {
  const { content: blocks, stop_reason, stop_sequence, usage } = whole
  const begun = { ...whole, content: [], stop_reason: null, usage: { ...usage, output_tokens: 0 } }
  const events: { type: string; [field: string]: unknown }[] = [{ type: 'message_start', message: begun }]
  for (const [index, one] of blocks.entries()) {
    const empty = one.type === 'text' ? { ...one, text: '' } : { ...one, input: {} }
    events.push({ type: 'content_block_start', index, content_block: empty })
    const deltas =
      one.type === 'text'
        ? piecesOf(one.text).map((text) => ({ type: 'text_delta', text }))
        : piecesOf(JSON.stringify(one.input)).map((partial_json) => ({
            type: 'input_json_delta',
            partial_json,
          }))
    for (const delta of deltas) events.push({ type: 'content_block_delta', index, delta })
    events.push({ type: 'content_block_stop', index })
  }
  events.push(
    { type: 'message_delta', delta: { stop_reason, stop_sequence }, usage },
    { type: 'message_stop' },
  )
  return eventStream(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}`))
}

function readMessage(role: AskedMessage['role'], said: z.output<typeof content>): AskedMessage {
  const blocks = typeof said === 'string' ? [{ type: 'text', text: said }] : said
  return {
    role,
    text: blocks.map((one) => one.text ?? '').join('\n'),
    toolCalls: (blocks as z.output<typeof block>[])
      .filter(({ type }) => type === 'tool_use')
      .map(({ id, name, input }) => ({ id: id ?? '', name: name ?? '', input })),
  }
}

/** Answers of tools come within what the user says. */
function readTurn(role: 'user' | 'assistant' | 'system', said: z.output<typeof content>): AskedMessage[] {
  if (typeof said === 'string') return [readMessage(role, said)]
  const results = said.filter(({ type }) => type === 'tool_result')
  const rest = said.filter(({ type }) => type !== 'tool_result')
  return [
    ...results.map((one): AskedMessage => ({ role: 'tool', text: resultText(one.content), toolCalls: [] })),
    ...(rest.length > 0 ? [readMessage(role, rest)] : []),
  ]
}

function resultText(said: unknown): string {
  const parsed = content.safeParse(said)
  return parsed.success ? readMessage('tool', parsed.data).text : JSON.stringify(said ?? '')
}

function parsedOr(text: string, fallback: unknown = {}): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // A script may ask for an input that is no JSON, which this protocol cannot say.
    return fallback
  }
}
