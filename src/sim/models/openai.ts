/** OpenAI's chat completions, as Ollama, llama.cpp and many others speak them, too. */
import { z } from 'zod'
import { jsonAnswer, type SimAnswer } from '../server.ts'
import { bearerToken } from '../sign-in.ts'
import type { Answered, Asked, AskedMessage } from './exchange.ts'
import { eventStream, type ProtocolAdapter, piecesOf } from './protocol.ts'

const part = z.looseObject({ type: z.string(), text: z.string().optional() })
const content = z.union([z.string(), z.array(part)]).nullish()
const message = z.looseObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']),
  content,
  tool_calls: z
    .array(
      z.looseObject({ id: z.string(), function: z.looseObject({ name: z.string(), arguments: z.string() }) }),
    )
    .nullish(),
})
const body = z.looseObject({
  model: z.string(),
  messages: z.array(message).min(1),
  tools: z
    .array(
      z.looseObject({
        function: z.looseObject({
          name: z.string(),
          description: z.string().nullish(),
          parameters: z.record(z.string(), z.unknown()).optional(),
        }),
      }),
    )
    .nullish(),
  response_format: z
    .looseObject({
      type: z.enum(['text', 'json_object', 'json_schema']),
      json_schema: z.looseObject({ schema: z.record(z.string(), z.unknown()) }).optional(),
    })
    .nullish(),
  max_tokens: z.number().int().positive().nullish(),
  max_completion_tokens: z.number().int().positive().nullish(),
  temperature: z.number().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.looseObject({ include_usage: z.boolean().optional() }).nullish(),
})

const FINISH = {
  stop: 'stop',
  length: 'length',
  'tool-calls': 'tool_calls',
  filtered: 'content_filter',
} as const
export const openai: ProtocolAdapter = {
  keyOf: bearerToken,

  read(call) {
    const parsed = body.safeParse(call.json)
    if (!parsed.success) return undefined
    const { data } = parsed
    const format = data.response_format
    return {
      protocol: 'openai',
      model: data.model,
      messages: data.messages.map(readMessage),
      tools: (data.tools ?? []).map(({ function: { name, description, parameters } }) => ({
        name,
        description: description ?? '',
        schema: parameters ?? {},
      })),
      json: format && format.type !== 'text' ? { schema: format.json_schema?.schema } : undefined,
      maxTokens: data.max_completion_tokens ?? data.max_tokens ?? undefined,
      temperature: data.temperature ?? undefined,
      isStream: data.stream === true,
    }
  },

  answer: (asked, answered, id) =>
    asked.isStream ? streamed(asked, answered, id) : jsonAnswer(completion(asked, answered, id)),

  refuse(status, { message: text, code, headers }) {
    const type = status === 429 ? 'requests' : status >= 500 ? 'server_error' : 'invalid_request_error'
    return jsonAnswer({ error: { message: text, type, param: null, code } }, status, headers)
  },

  problems: {
    key: { status: 401, code: 'invalid_api_key', message: 'Incorrect API key provided.' },
    model: (name) => ({
      status: 404,
      code: 'model_not_found',
      message: `The model \`${name}\` does not exist or you do not have access to it.`,
    }),
    body: { status: 400, code: null, message: 'We could not parse the JSON body of your request.' },
    context: ({ tokens, tokensMax }) => ({
      status: 400,
      code: 'context_length_exceeded',
      message: `This model's maximum context length is ${tokensMax} tokens. However, your messages resulted in ${tokens} tokens.`,
    }),
    throttled: { code: 'rate_limit_exceeded', message: 'Rate limit reached for requests.' },
    failed: { code: null, message: 'The server had an error while processing your request.' },
  },
}

export function modelList(names: readonly string[]): SimAnswer {
  const data = names.map((id) => ({ id, object: 'model', created: 1_700_000_000, owned_by: 'simulated' }))
  return jsonAnswer({ object: 'list', data })
}

function readMessage({ role, content: said, tool_calls }: z.output<typeof message>): AskedMessage {
  const text = typeof said === 'string' ? said : (said ?? []).map((one) => one.text ?? '').join('\n')
  return {
    role: role === 'developer' ? 'system' : role,
    text,
    toolCalls: (tool_calls ?? []).map(({ id, function: { name, arguments: input } }) => ({
      id,
      name,
      input,
    })),
  }
}

function completion({ model }: Asked, { text, toolCalls, finish, usage }: Answered, id: string): object {
  return {
    id: `chatcmpl-${id}`,
    object: 'chat.completion',
    created: 1_700_000_000,
    model,
    system_fingerprint: 'simulated',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: text === '' && toolCalls.length > 0 ? null : text,
          refusal: null,
          ...(toolCalls.length > 0 && { tool_calls: toolCallsOf(toolCalls, id) }),
        },
        finish_reason: FINISH[finish],
        logprobs: null,
      },
    ],
    ...(usage && { usage: usageOf(usage) }),
  }
}

function toolCallsOf(toolCalls: Answered['toolCalls'], id: string): object[] {
  return toolCalls.map(({ name, input }, index) => ({
    index,
    id: `call_${id}_${index}`,
    type: 'function',
    function: { name, arguments: input },
  }))
}

function usageOf({ input, output }: { input: number; output: number }): object {
  return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
}

/** Server-sent events: the role, the text in pieces, the calls of tools, the end, what it used, and [DONE]. */
function streamed({ model }: Asked, answered: Answered, id: string): SimAnswer {
  const { text, toolCalls, finish, usage } = answered
  const about = { id: `chatcmpl-${id}`, object: 'chat.completion.chunk', created: 1_700_000_000, model }
  const chunk = (delta: object, end: string | null = null): object => ({
    ...about,
    choices: [{ index: 0, delta, finish_reason: end }],
  })
  const chunks = [chunk({ role: 'assistant', content: '' })]
  for (const content of piecesOf(text)) chunks.push(chunk({ content }))
  if (toolCalls.length > 0) chunks.push(chunk({ tool_calls: toolCallsOf(toolCalls, id) }))
  chunks.push(chunk({}, FINISH[finish]))
  if (usage) chunks.push({ ...about, choices: [], usage: usageOf(usage) })
  return eventStream([...chunks.map((one) => JSON.stringify(one)), '[DONE]'].map((data) => `data: ${data}`))
}
