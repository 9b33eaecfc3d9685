/** Google's generateContent, in the form that the ai SDK's provider uses. */
import { z } from 'zod'
import { jsonAnswer } from '../server.ts'
import type { AskedMessage } from './exchange.ts'
import { eventStream, headerText, type ProtocolAdapter, piecesOf } from './protocol.ts'

const part = z.looseObject({
  text: z.string().optional(),
  functionCall: z
    .looseObject({ id: z.string().optional(), name: z.string(), args: z.unknown().optional() })
    .optional(),
  functionResponse: z.looseObject({ name: z.string(), response: z.unknown().optional() }).optional(),
})
const turn = z.looseObject({ role: z.enum(['user', 'model']).optional(), parts: z.array(part) })
const schemaInput = z.record(z.string(), z.unknown())
const body = z.looseObject({
  contents: z.array(turn).min(1),
  systemInstruction: turn.nullish(),
  tools: z
    .union([
      z.array(
        z.looseObject({
          functionDeclarations: z
            .array(
              z.looseObject({
                name: z.string(),
                description: z.string().optional(),
                parameters: schemaInput.nullish(),
                parametersJsonSchema: schemaInput.nullish(),
              }),
            )
            .optional(),
        }),
      ),
      z.null(),
    ])
    .optional(),
  generationConfig: z
    .looseObject({
      maxOutputTokens: z.number().int().positive().optional(),
      temperature: z.number().optional(),
      responseMimeType: z.string().optional(),
      responseSchema: schemaInput.optional(),
      responseJsonSchema: schemaInput.optional(),
    })
    .optional(),
})

const FINISH = { stop: 'STOP', length: 'MAX_TOKENS', 'tool-calls': 'STOP', filtered: 'SAFETY' } as const

export const google: ProtocolAdapter = {
  keyOf: ({ headers }) => headerText(headers['x-goog-api-key']),

  read({ json, path, model = '' }) {
    const parsed = body.safeParse(json)
    if (!parsed.success) return undefined
    const { data } = parsed
    const config = data.generationConfig ?? {}
    const system = data.systemInstruction ? [readTurn('system', data.systemInstruction.parts)] : []
    return {
      protocol: 'google',
      model,
      messages: [
        ...system,
        ...data.contents.map(({ role, parts }) => readTurn(role === 'model' ? 'assistant' : 'user', parts)),
      ],
      tools: (data.tools ?? [])
        .flatMap(({ functionDeclarations }) => functionDeclarations ?? [])
        .map(({ name, description, parameters, parametersJsonSchema }) => ({
          name,
          description: description ?? '',
          schema: parametersJsonSchema ?? parameters ?? {},
        })),
      json:
        config.responseMimeType === 'application/json'
          ? { schema: config.responseJsonSchema ?? config.responseSchema }
          : undefined,
      maxTokens: config.maxOutputTokens,
      temperature: config.temperature,
      isStream: path.endsWith(':streamGenerateContent'),
    }
  },

  answer({ model, isStream }, { text, toolCalls, finish, usage }, id) {
    const calls = toolCalls.map(({ name, input }) => ({ functionCall: { name, args: argsOf(input) } }))
    const last = isStream ? calls : [...(text === '' ? [] : [{ text }]), ...calls]
    const about = { modelVersion: model, responseId: id }
    const candidate = (parts: readonly object[]): object => ({ content: { role: 'model', parts }, index: 0 })
    const end = {
      candidates: [{ ...candidate(last), finishReason: FINISH[finish] }],
      ...(usage && {
        usageMetadata: {
          promptTokenCount: usage.input,
          candidatesTokenCount: usage.output,
          totalTokenCount: usage.input + usage.output,
        },
      }),
      ...about,
    }
    if (!isStream) return jsonAnswer(end)
    const chunks = piecesOf(text).map((piece) => ({ candidates: [candidate([{ text: piece }])], ...about }))
    return eventStream([...chunks, end].map((chunk) => `data: ${JSON.stringify(chunk)}`))
  },

  refuse(status, { message, code, reason, headers }) {
    const details = reason && [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason }]
    const error = { code: status, message, status: code ?? 'INTERNAL', ...(details && { details }) }
    return jsonAnswer({ error }, status, headers)
  },

  problems: {
    key: {
      status: 400,
      code: 'INVALID_ARGUMENT',
      reason: 'API_KEY_INVALID',
      message: 'API key not valid. Please pass a valid API key.',
    },
    model: (name) => ({
      status: 404,
      code: 'NOT_FOUND',
      message: `models/${name} is not found for API version v1beta, or is not supported for generateContent.`,
    }),
    body: { status: 400, code: 'INVALID_ARGUMENT', message: 'Invalid JSON payload received.' },
    context: ({ tokens, tokensMax }) => ({
      status: 400,
      code: 'INVALID_ARGUMENT',
      message: `The input token count (${tokens}) exceeds the maximum number of tokens allowed (${tokensMax}).`,
    }),
    throttled: { code: 'RESOURCE_EXHAUSTED', message: 'You exceeded your current quota.' },
    failed: { code: 'UNAVAILABLE', message: 'The model is overloaded. Please try again later.' },
  },
}

function readTurn(role: AskedMessage['role'], parts: readonly z.output<typeof part>[]): AskedMessage {
  const responses = parts.flatMap(({ functionResponse }) => functionResponse ?? [])
  const texts = parts.map(({ text }) => text ?? '')
  return {
    role: responses.length > 0 ? 'tool' : role,
    text: [...texts, ...responses.map(({ response }) => JSON.stringify(response))].filter(Boolean).join('\n'),
    toolCalls: parts.flatMap(({ functionCall }) =>
      functionCall ? [{ id: functionCall.id ?? '', name: functionCall.name, input: functionCall.args }] : [],
    ),
  }
}

function argsOf(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // This protocol cannot say an input that is no JSON.
    return {}
  }
}
