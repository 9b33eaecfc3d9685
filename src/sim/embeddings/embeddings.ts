/**
 * The simulated embeddings endpoint: OpenAI's `/v1/embeddings` and `/v1/models`, and Ollama's `/api/embed` and
 * `/api/tags`. Vectors are made from the words themselves, so that texts that share words are near each other.
 */
import { z } from 'zod'
import { parse } from '../control.ts'
import type { Refusal } from '../faults.ts'
import { jsonAnswer, type Operation, type Routes, type SimAnswer, type SimCall } from '../server.ts'
import type { Kernel, RunningService, ServiceAbout } from '../service.ts'
import { bearerToken } from '../sign-in.ts'
import { embedText } from './vectors.ts'

export type EmbeddingsOptions = {
  /** Names of models and the length of their vectors. */
  models?: Readonly<Record<string, number>>
  /** What callers must send as Bearer; anything, or nothing, otherwise. */
  apiKey?: string
  /** How many texts a call may bring. */
  textsMax?: number
}

export type EmbeddingCounts = {
  calls: number
  texts: number
  /** Texts that came more than once, by how often. */
  repeated: number
  characters: number
}

/** What the endpoint does wrong on its own, beside the faults that any service meets. */
export type EmbeddingQuirks = {
  /** Vectors have so many numbers more or fewer than the model's. */
  dimensionOff: number
  /** The answer ends in the middle of its JSON, with a length that fits. */
  isMalformed: boolean
  /** One vector fewer than texts. */
  losesOne: boolean
}

const MODELS_DEFAULT = { 'sim-embed-small': 256, 'text-embedding-3-small': 1536, 'nomic-embed-text': 768 }
const TEXTS_MAX = 2048
const REMEMBERED_MAX = 1_000_000

const openAiInput = z.object({
  model: z.string(),
  input: z.union([z.string(), z.array(z.string()).min(1)]),
  dimensions: z.number().int().min(1).max(4096).optional(),
  encoding_format: z.enum(['float', 'base64']).optional(),
  user: z.string().optional(),
})
const ollamaInput = z.object({
  model: z.string(),
  input: z.union([z.string(), z.array(z.string())]),
  dimensions: z.number().int().min(1).max(4096).optional(),
  truncate: z.boolean().optional(),
  keep_alive: z.union([z.string(), z.number()]).optional(),
  options: z.record(z.string(), z.unknown()).optional(),
})
const quirksInput = z.strictObject({
  dimensionOff: z.number().int().optional(),
  isMalformed: z.boolean().optional(),
  losesOne: z.boolean().optional(),
})

export class Embeddings implements RunningService, Routes {
  readonly addresses: readonly string[] = []
  readonly routes: readonly Routes[] = [this]
  readonly quirks: EmbeddingQuirks = { dimensionOff: 0, isMalformed: false, losesOne: false }
  readonly models: Readonly<Record<string, number>>
  readonly #kernel: Kernel
  readonly #apiKey: string | undefined
  readonly #textsMax: number
  /** Every text and how often it came. */
  readonly #seen = new Map<string, number>()
  #counts: EmbeddingCounts = noCounts()

  constructor(kernel: Kernel, { models = MODELS_DEFAULT, apiKey, textsMax = TEXTS_MAX }: EmbeddingsOptions) {
    this.#kernel = kernel
    this.models = models
    this.#apiKey = apiKey
    this.#textsMax = textsMax
  }

  /** Of an OpenAI client: `…/v1`. */
  get baseUrl(): string {
    return `${this.#kernel.origin()}/v1`
  }

  /** Of an Ollama client. */
  get ollamaUrl(): string {
    return this.#kernel.origin()
  }

  get counts(): Readonly<EmbeddingCounts> {
    return this.#counts
  }

  /** How often this text was embedded. */
  timesEmbedded(text: string): number {
    return this.#seen.get(text) ?? 0
  }

  /** What the endpoint answers for a text, for tests that compare. */
  vector(text: string, dimensions = 256): Float32Array {
    return embedText(text, dimensions)
  }

  match(call: SimCall): Operation | undefined {
    const handler = this.#handler(call)
    if (!handler) return undefined
    return { name: handler.name, refuse: refusal, run: handler.run }
  }

  control(call: SimCall, pieces: readonly string[]): SimAnswer | undefined {
    if (pieces[0] !== 'embeddings') return undefined
    switch (`${call.verb} ${pieces.slice(1).join('/')}`) {
      case 'GET ':
        return jsonAnswer({ models: this.models, quirks: this.quirks, counts: this.#counts })
      case 'PUT quirks':
        return jsonAnswer(Object.assign(this.quirks, parse(quirksInput, call)))
      default:
        return undefined
    }
  }

  counters(): Record<string, unknown> {
    return { embeddings: this.#counts }
  }

  resetCounters(): void {
    this.#counts = noCounts()
    this.#seen.clear()
  }

  about(): ServiceAbout {
    const { baseUrl, ollamaUrl, models } = this
    return {
      text: `A simulated embeddings endpoint is at ${baseUrl}, with ${Object.keys(models).join(', ')}.`,
      settings: {},
      refreshTokens: [],
      json: { embeddingsUrl: baseUrl, ollamaUrl, embeddingModels: models },
    }
  }

  #handler(call: SimCall): { name: string; run: () => SimAnswer } | undefined {
    switch (`${call.verb} ${call.path}`) {
      case 'POST /v1/embeddings':
        return { name: 'embeddings.create', run: () => this.#signedIn(call, () => this.#openAi(call)) }
      case 'GET /v1/models':
        return { name: 'embeddings.models', run: () => this.#signedIn(call, () => this.#modelList()) }
      case 'POST /api/embed':
        return { name: 'embeddings.embed', run: () => this.#ollama(call) }
      case 'GET /api/tags':
        return { name: 'embeddings.tags', run: () => this.#tags() }
      default:
        return undefined
    }
  }

  #tags(): SimAnswer {
    return jsonAnswer({ models: Object.keys(this.models).map((name) => ({ name, model: name })) })
  }

  #signedIn(call: SimCall, run: () => SimAnswer): SimAnswer {
    if (this.#apiKey === undefined || bearerToken(call) === this.#apiKey) return run()
    return openAiError(401, { message: 'Incorrect API key provided.', code: 'invalid_api_key' })
  }

  #modelList(): SimAnswer {
    const data = Object.keys(this.models).map((id) => ({
      id,
      object: 'model',
      created: 1_700_000_000,
      owned_by: 'sim',
    }))
    return jsonAnswer({ object: 'list', data })
  }

  #openAi(call: SimCall): SimAnswer {
    const input = read(openAiInput, call)
    if (!input)
      return openAiError(400, { message: 'We could not parse the JSON body of your request.', code: null })
    const length = this.models[input.model]
    if (length === undefined) {
      return openAiError(404, {
        message: `The model \`${input.model}\` does not exist or you do not have access to it.`,
        code: 'model_not_found',
      })
    }
    const texts = typeof input.input === 'string' ? [input.input] : input.input
    if (texts.length > this.#textsMax || texts.includes('')) {
      return openAiError(400, {
        message: "'$.input' is invalid. Please check the API reference.",
        code: null,
      })
    }
    const vectors = this.#embed(texts, input.dimensions ?? length)
    const tokens = Math.ceil(texts.reduce((sum, text) => sum + text.length, 0) / 4)
    const data = vectors.map((vector, index) => ({
      object: 'embedding',
      index,
      embedding: input.encoding_format === 'base64' ? base64Of(vector) : [...vector],
    }))
    return this.#sent({
      object: 'list',
      data,
      model: input.model,
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    })
  }

  #ollama(call: SimCall): SimAnswer {
    const input = read(ollamaInput, call)
    if (!input) return jsonAnswer({ error: 'invalid request' }, 400)
    const name = input.model.replace(/:latest$/, '')
    const length = this.models[name]
    if (length === undefined)
      return jsonAnswer({ error: `model "${input.model}" not found, try pulling it first` }, 404)
    const texts = typeof input.input === 'string' ? [input.input] : input.input
    const vectors = this.#embed(texts, input.dimensions ?? length)
    return this.#sent({
      model: input.model,
      embeddings: vectors.map((vector) => [...vector]),
      total_duration: 1_000_000,
      load_duration: 1_000,
      prompt_eval_count: texts.reduce((sum, text) => sum + Math.ceil(text.length / 4), 0),
    })
  }

  #embed(texts: readonly string[], dimensions: number): Float32Array[] {
    this.#counts.calls += 1
    for (const text of texts) {
      const before = this.#seen.get(text) ?? 0
      if (before > 0 || this.#seen.size < REMEMBERED_MAX) this.#seen.set(text, before + 1)
      this.#counts.texts += 1
      this.#counts.characters += text.length
      if (before > 0) this.#counts.repeated += 1
    }
    const kept = this.quirks.losesOne ? texts.slice(1) : texts
    return kept.map((text) => embedText(text, Math.max(1, dimensions + this.quirks.dimensionOff)))
  }

  #sent(value: unknown): SimAnswer {
    const answer = jsonAnswer(value)
    if (this.quirks.isMalformed) answer.body = (answer.body as Buffer).subarray(0, -20)
    return answer
  }
}

function noCounts(): EmbeddingCounts {
  return { calls: 0, texts: 0, repeated: 0, characters: 0 }
}

function read<Output>(schema: z.ZodType<Output>, { body }: SimCall): Output | undefined {
  try {
    return schema.safeParse(JSON.parse(body.toString('utf8'))).data
  } catch {
    return undefined
  }
}

function base64Of(vector: Float32Array): string {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength).toString('base64')
}

function openAiError(
  status: number,
  { message, code, headers }: { message: string; code: string | null; headers?: Record<string, string> },
): SimAnswer {
  const type = status === 429 ? 'requests' : status >= 500 ? 'server_error' : 'invalid_request_error'
  return jsonAnswer({ error: { message, type, param: null, code } }, status, headers)
}

/** What a fault rule asked for. */
function refusal({ status, message, retryAfterSeconds }: Refusal): SimAnswer {
  const headers: Record<string, string> =
    retryAfterSeconds === undefined ? {} : { 'retry-after': String(Math.ceil(retryAfterSeconds)) }
  const words =
    status === 429
      ? 'Rate limit reached for requests.'
      : 'The server had an error while processing your request.'
  return openAiError(status, {
    message: message ?? words,
    code: status === 429 ? 'rate_limit_exceeded' : null,
    headers,
  })
}
