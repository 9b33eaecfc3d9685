/** What is said to a language model and what it answers, in words of our own: no SDK's types leave this folder. */
import type { z } from 'zod'

export type ToolCall = {
  /** The provider's, by which an answer to it is told. */
  id: string
  name: string
  /** As the model wrote it: data of others, to be checked by whoever runs the tool. */
  input: unknown
  /** The tool was offered, and the input fits what it takes. */
  isValid: boolean
}

export type ModelMessage =
  | { role: 'user'; text: string }
  | { role: 'assistant'; text: string; toolCalls?: readonly Omit<ToolCall, 'isValid'>[] }
  | { role: 'tool'; results: readonly { id: string; name: string; text: string }[] }

export type JsonSchema = Readonly<Record<string, unknown>>

export type ModelTool = {
  description: string
  /** What it takes: a zod object, or the JSON Schema of an object, as MCP servers tell it. */
  input: z.ZodType | JsonSchema
}

export type ModelTools = Readonly<Record<string, ModelTool>>

export type ModelRequest = {
  model: string
  system: string
  messages: readonly ModelMessage[]
  /** The answer is to be JSON that fits it; it is not checked here. */
  schema?: JsonSchema | undefined
  tools?: ModelTools | undefined
  maxTokens: number
  temperature?: number | undefined
  signal: AbortSignal
}

/** `undefined`: the service did not say. */
export type ModelUsage = { inputTokens: number | undefined; outputTokens: number | undefined }

/** `length`: it was cut off. `filtered`: the service's own filter refused it. */
export type ModelFinish = 'stop' | 'length' | 'tool-calls' | 'filtered' | 'other'

export type ModelAnswer = {
  text: string
  toolCalls: readonly ToolCall[]
  usage: ModelUsage
  finish: ModelFinish
}
