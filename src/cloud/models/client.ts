/**
 * Asks language models over the ai SDK: one call is one request, and nothing is tried twice here.
 *
 * Invariants:
 * - the prompt and the key go to the configured host only: no redirect is followed, and in the clear on this machine only
 * - an answer is read up to a bound, and awaited for a time; both end in an error, never in half an answer
 * - errors hold neither prompt, answer nor key, not in their causes either (the SDK's own do)
 * - tools are never run here: a call of one is told to whoever asked
 */
import { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import { TidemarkError, UsageError } from '../../base/errors.ts'
import { isLoopback } from '../../base/loopback.ts'
import type { Fetch } from '../oauth.ts'
import type {
  JsonSchema,
  ModelAnswer,
  ModelFinish,
  ModelMessage,
  ModelRequest,
  ModelTools,
  ToolCall,
} from './conversation.ts'
import { classify, noAnswer, silent, unreachable } from './errors.ts'
import type { ModelsSettings } from './settings.ts'

export type ModelClient = {
  ask(request: ModelRequest): Promise<ModelAnswer>
}

export type ModelClientOptions = {
  settings: Pick<ModelsSettings, 'provider' | 'base_url' | 'api_key' | 'json' | 'timeout_seconds'>
  fetch: Fetch
  clock: Clock
}

const ANSWER_BYTES_MAX = 4 * 1024 * 1024
const ERROR_BYTES_MAX = 16 * 1024
const URLS = {
  'openai-compatible': 'https://api.openai.com/v1',
  anthropic: 'https://api.anthropic.com/v1',
  google: 'https://generativelanguage.googleapis.com/v1beta',
} as const

/** Of the provider, to the SDK. */
const PROVIDER_NAME = 'models'

type Provider = keyof typeof URLS
type Sdk = typeof import('ai')
type SdkFetch = typeof fetch
type SdkModel = Exclude<Parameters<Sdk['generateText']>[0]['model'], string>

/** Nothing is loaded before the first call: the SDK takes a while. */
export function openModelClient({ settings, fetch, clock }: ModelClientOptions): ModelClient {
  const { provider } = settings
  if (provider === 'off') throw new UsageError('No language model is configured.', { code: 'no-model' })
  const baseUrl = checkedUrl(settings.base_url ?? URLS[provider])
  const timeoutMs = settings.timeout_seconds * 1_000
  const carried = carrier({ fetch, clock, host: new URL(baseUrl).host })
  let opened: Promise<{ sdk: Sdk; model: (name: string) => SdkModel }> | undefined
  const open = () => {
    opened ??= Promise.all([
      import('ai'),
      loadProvider(provider, {
        baseUrl,
        apiKey: settings.api_key ?? '',
        json: settings.json,
        fetch: carried,
      }),
    ]).then(([sdk, model]) => ({ sdk: quiet(sdk), model }))
    return opened
  }
  return {
    async ask(request) {
      const { sdk, model } = await open()
      const stop = new AbortController()
      const cancel = clock.timer(timeoutMs, () => stop.abort(silent(timeoutMs)))
      const signal = AbortSignal.any([request.signal, stop.signal])
      try {
        return await generate(sdk, model(request.model), { ...request, json: settings.json, signal })
      } catch (thrown) {
        throw failure(thrown, signal)
      } finally {
        cancel()
      }
    },
  }
}

/** It would write to the console what it thinks of a call. */
function quiet(sdk: Sdk): Sdk {
  ;(globalThis as { AI_SDK_LOG_WARNINGS?: false }).AI_SDK_LOG_WARNINGS = false
  return sdk
}

type ProviderOptions = { baseUrl: string; apiKey: string; json: ModelsSettings['json']; fetch: SdkFetch }

async function loadProvider(
  provider: Provider,
  { baseUrl: baseURL, apiKey, json, fetch }: ProviderOptions,
): Promise<(name: string) => SdkModel> {
  switch (provider) {
    case 'openai-compatible': {
      const { createOpenAICompatible } = await import('@ai-sdk/openai-compatible')
      return createOpenAICompatible({
        name: PROVIDER_NAME,
        baseURL,
        apiKey,
        fetch,
        supportsStructuredOutputs: json === 'schema',
        // OpenAI's newer models refuse the old name of the limit, and others do not know the new one.
        transformRequestBody: ({ max_tokens, ...body }) =>
          baseURL === URLS['openai-compatible']
            ? { ...body, max_completion_tokens: max_tokens }
            : { ...body, max_tokens },
      })
    }
    case 'anthropic': {
      const { createAnthropic } = await import('@ai-sdk/anthropic')
      return createAnthropic({ baseURL, apiKey, fetch })
    }
    case 'google': {
      const { createGoogle } = await import('@ai-sdk/google')
      return createGoogle({ baseURL, apiKey, fetch })
    }
  }
}

async function generate(
  sdk: Sdk,
  model: SdkModel,
  request: ModelRequest & { json: ModelsSettings['json'] },
): Promise<ModelAnswer> {
  const { messages, schema, tools = {}, maxTokens, temperature, signal, json } = request
  const instructions = schema && json !== 'schema' ? withSchema(request.system, schema) : request.system
  try {
    const result = await sdk.generateText({
      model,
      instructions,
      messages: messages.map(sdkMessage),
      maxOutputTokens: maxTokens,
      maxRetries: 0,
      abortSignal: signal,
      telemetry: { isEnabled: false },
      // Strict ones refuse schemas with optional fields; what comes is checked anyway.
      providerOptions: { [PROVIDER_NAME]: { strictJsonSchema: false } },
      ...(temperature !== undefined && { temperature }),
      ...(Object.keys(tools).length > 0 && { tools: sdkTools(sdk, tools) }),
      ...(schema &&
        json !== 'none' && { output: sdk.Output.object({ schema: sdk.jsonSchema(schema as object) }) }),
    })
    return {
      text: result.text,
      toolCalls: result.toolCalls.map(
        (call): ToolCall => ({
          id: call.toolCallId,
          name: call.toolName,
          input: call.input,
          isValid: !('invalid' in call && call.invalid === true),
        }),
      ),
      usage: usageOf(result.usage),
      finish: finishOf(result.finishReason),
    }
  } catch (thrown) {
    // It was an answer all the same: what it lacks is for the caller to say.
    if (!sdk.NoObjectGeneratedError.isInstance(thrown)) throw thrown
    const { text = '', usage, finishReason } = thrown
    return { text, toolCalls: [], usage: usageOf(usage), finish: finishOf(finishReason) }
  }
}

function withSchema(system: string, schema: JsonSchema): string {
  return `${system}\n\nAnswer with JSON only, without any other words. It must fit this JSON Schema:\n${JSON.stringify(schema)}`
}

function usageOf(usage: { inputTokens: number | undefined; outputTokens: number | undefined } | undefined) {
  return { inputTokens: usage?.inputTokens, outputTokens: usage?.outputTokens }
}

function finishOf(reason: string | undefined): ModelFinish {
  switch (reason) {
    case 'stop':
    case 'length':
    case 'tool-calls':
      return reason
    case 'content-filter':
      return 'filtered'
    default:
      return 'other'
  }
}

type SdkMessage = NonNullable<Parameters<Sdk['generateText']>[0]['messages']>[number]

function sdkMessage(message: ModelMessage): SdkMessage {
  switch (message.role) {
    case 'user':
      return { role: 'user', content: message.text }
    case 'assistant': {
      const calls = (message.toolCalls ?? []).map(({ id, name, input }) => ({
        type: 'tool-call' as const,
        toolCallId: id,
        toolName: name,
        input,
      }))
      const said = message.text === '' ? [] : [{ type: 'text' as const, text: message.text }]
      return { role: 'assistant', content: [...said, ...calls] }
    }
    case 'tool':
      return {
        role: 'tool',
        content: message.results.map(({ id, name, text }) => ({
          type: 'tool-result' as const,
          toolCallId: id,
          toolName: name,
          output: { type: 'text' as const, value: text },
        })),
      }
  }
}

/** Without anything to run: the SDK hands their calls out. */
function sdkTools(sdk: Sdk, tools: ModelTools): NonNullable<Parameters<Sdk['generateText']>[0]['tools']> {
  return Object.fromEntries(
    Object.entries(tools).map(([name, { description, input }]) => [
      name,
      sdk.tool({
        description,
        inputSchema: input instanceof z.ZodType ? input : sdk.jsonSchema(input as object),
      }),
    ]),
  )
}

/** The SDK's fetch: to one host, without redirects, whole and bounded, with errors of our own. */
function carrier({ fetch, clock, host }: { fetch: Fetch; clock: Clock; host: string }): SdkFetch {
  return async (input, init = {}) => {
    const url = new URL(input instanceof Request ? input.url : input)
    if (url.host !== host) {
      throw new TidemarkError('A language model was to be asked at a host that is not configured.', {
        kind: 'bug',
      })
    }
    const signal = init.signal ?? undefined
    try {
      const answer = await fetch(url.href, { ...init, redirect: 'manual' })
      const isError = answer.status < 200 || answer.status > 299
      const bytes = await readBody(answer, isError ? ERROR_BYTES_MAX : ANSWER_BYTES_MAX, { cuts: isError })
      const { status, headers } = answer
      if (isError) throw classify({ status, body: bytes.toString('utf8'), headers, nowMs: clock.now() })
      if (!/\bjson\b/i.test(headers.get('content-type') ?? '')) throw noAnswer('something that is no JSON')
      return new Response(new Uint8Array(bytes), { status, headers: { 'content-type': 'application/json' } })
    } catch (thrown) {
      if (signal?.aborted) throw signal.reason
      throw thrown instanceof TidemarkError ? thrown : unreachable(thrown)
    }
  }
}

async function readBody(answer: Response, bytesMax: number, { cuts }: { cuts: boolean }): Promise<Buffer> {
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of answer.body ?? []) {
    pieces.push(piece)
    bytes += piece.length
    if (bytes <= bytesMax) continue
    if (cuts) break
    throw noAnswer(`more than ${bytesMax / 1024 / 1024} MB`)
  }
  return Buffer.concat(pieces).subarray(0, bytesMax)
}

/** The SDK's errors hold the whole prompt and the whole answer: nothing of them goes on. */
function failure(thrown: unknown, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason
  for (let error = thrown, depth = 0; error instanceof Error && depth < 5; error = error.cause, depth++) {
    if (error instanceof TidemarkError) return error
  }
  return noAnswer('something that cannot be understood')
}

function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isAllowed = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname))
  if (isAllowed) return text.replace(/\/+$/, '')
  throw new UsageError('The address of the language model is not possible.', {
    hint: 'models.base_url must be an https:// address; http:// only of this machine.',
    code: 'model-url',
  })
}
