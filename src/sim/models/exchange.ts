/** What is asked of the simulated model and what it answers, whatever the protocol. */
import { z } from 'zod'

export type Protocol = 'openai' | 'anthropic' | 'google'

export type AskedMessage = {
  role: 'system' | 'user' | 'assistant' | 'tool'
  text: string
  toolCalls: readonly { id: string; name: string; input: unknown }[]
}

export type AskedTool = { name: string; description: string; schema: JsonSchema }

export type JsonSchema = { readonly [key: string]: unknown }

export type Asked = {
  protocol: Protocol
  model: string
  messages: readonly AskedMessage[]
  tools: readonly AskedTool[]
  /** The answer is to be JSON, of this schema where one was given. */
  json: { schema: JsonSchema | undefined } | undefined
  maxTokens: number | undefined
  temperature: number | undefined
  isStream: boolean
}

const count = z.number().int().min(0)

/** What a test or the control API can have the model say. */
export const answerInput = z.strictObject({
  text: z.string().optional(),
  /** The same as text that is JSON. */
  json: z.unknown().optional(),
  toolCalls: z
    .array(
      z.strictObject({
        name: z.string(),
        input: z.unknown().optional(),
        /** Instead of `input`: as it stands, JSON or not. */
        rawInput: z.string().optional(),
      }),
    )
    .optional(),
  finish: z.enum(['stop', 'length', 'filtered']).optional(),
  /** What it says of its tokens; counted otherwise. Null: nothing. */
  usage: z.strictObject({ input: count, output: count }).nullable().optional(),
  /** The body ends too early, with a length that fits. */
  isMalformed: z.boolean().optional(),
  /** An error instead of an answer, in the shape of the protocol. */
  status: z.number().int().min(400).max(599).optional(),
  code: z.string().optional(),
  message: z.string().optional(),
  retryAfterSeconds: z.number().min(0).optional(),
})

export type ScriptedAnswer = z.output<typeof answerInput>

export type Answered = {
  text: string
  toolCalls: readonly { name: string; input: string }[]
  finish: 'stop' | 'length' | 'tool-calls' | 'filtered'
  usage: { input: number; output: number } | undefined
}

const CHARS_PER_TOKEN = 4

export function tokensOf(text: string): number {
  return Math.ceil(text.length / CHARS_PER_TOKEN)
}

export function promptTokens({ messages, tools, json }: Asked): number {
  const texts = messages.map(({ text, toolCalls }) => text + JSON.stringify(toolCalls))
  return tokensOf([...texts, JSON.stringify(tools), JSON.stringify(json ?? {})].join(''))
}

/** All that it was told, without what it said itself. */
export function promptText({ messages }: Pick<Asked, 'messages'>): string {
  return messages
    .filter(({ role }) => role !== 'assistant')
    .map(({ text }) => text)
    .join('\n\n')
}

/** With the tokens that it may use; what is over is cut off. */
export function completed(asked: Asked, scripted: ScriptedAnswer): Answered {
  const whole = scripted.json === undefined ? (scripted.text ?? '') : JSON.stringify(scripted.json)
  const toolCalls = (scripted.toolCalls ?? []).map(({ name, input, rawInput }) => ({
    name,
    input: rawInput ?? JSON.stringify(input ?? {}),
  }))
  const charsMax = (asked.maxTokens ?? Number.POSITIVE_INFINITY) * CHARS_PER_TOKEN
  const text = whole.slice(0, charsMax)
  const isCut = text.length < whole.length
  const finish = scripted.finish ?? (isCut ? 'length' : toolCalls.length > 0 ? 'tool-calls' : 'stop')
  const counted = {
    input: promptTokens(asked),
    output: tokensOf(text) + toolCalls.reduce((sum, { input }) => sum + tokensOf(input), 0),
  }
  return {
    text,
    toolCalls,
    finish,
    usage: scripted.usage === null ? undefined : (scripted.usage ?? counted),
  }
}
