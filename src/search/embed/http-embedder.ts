/**
 * Embedders behind HTTP: services that answer as OpenAI's `/embeddings` does, and Ollama's `/api/embed`.
 *
 * Invariants:
 * - texts and keys travel in the clear on this machine only; no redirect is followed, since it would take them elsewhere
 * - messages quote neither a text nor the key
 * - an answer with another number of vectors, or of numbers in one, is refused: it is another model's
 */
import { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import { TidemarkError, UsageError } from '../../base/errors.ts'
import { isLoopback } from '../../base/loopback.ts'
import { redactText } from '../../base/redaction.ts'
import type { Budget } from '../../engine/limits/budget.ts'
import { type Embedder, type EmbedOptions, normalise, type Purpose } from './embedder.ts'

export type HttpEmbedderSettings = {
  kind: 'openai' | 'ollama'
  /** Up to and without `/embeddings` or `/api/embed`. */
  url: string
  model: string
  /** Sent as a bearer token. */
  key?: string
  dims: number
  /** Texts of one call. */
  batch: number
  /** The cosine that texts about different things have; CHANCE if left out. */
  chance?: number
  /** Put before each text; some models were trained with such words. */
  prefix?: Partial<Record<Purpose, string>>
}

type Tools = { fetch: typeof fetch; clock: Clock; budget?: Budget }

/** Models that give as many numbers as they are asked for; services refuse to be asked so for others. */
const SHORTENS = /^text-embedding-3/
const ANSWER_BYTES_MAX = 64 * 1024 * 1024
const ERROR_CHARS_MAX = 300
const RETRY_AFTER_MS_MAX = 24 * 60 * 60_000
/** Of one call, whatever the batch: services refuse larger bodies. */
const CALL_CHARS_MAX = 400_000
/** Between what models of OpenAI (0.2) and Ollama's nomic-embed-text (0.45) have. */
const CHANCE = 0.3
/** English has four characters to a token, other languages fewer: rather too much is counted than too little. */
const CHARS_PER_TOKEN = 3

const openAiAnswer = z.object({
  data: z.array(z.object({ index: z.int().min(0).optional(), embedding: z.array(z.number()) })),
})
const ollamaAnswer = z.object({ embeddings: z.array(z.array(z.number())) })

export function openHttpEmbedder(settings: HttpEmbedderSettings, tools: Tools): Embedder {
  const base = checkedUrl(settings.url)
  const closed = new AbortController()
  return {
    model: `${settings.kind}:${settings.model}`,
    dims: settings.dims,
    chance: settings.chance ?? CHANCE,
    async embed(texts, options) {
      const signal = AbortSignal.any([options.signal, closed.signal])
      const vectors: Float32Array[] = []
      const prefix = settings.prefix?.[options.purpose] ?? ''
      for (const batch of batchesOf(
        texts.map((text) => prefix + text),
        settings.batch,
      )) {
        const run = (): Promise<number[][]> => call(settings, base, batch, { ...tools, signal })
        const cost = batch.reduce((sum, text) => sum + Math.ceil(text.length / CHARS_PER_TOKEN), 0)
        const name = 'embeddings'
        const answer = await (tools.budget ? tools.budget.call(cost, run, { signal, name }) : run())
        for (const vector of checked(answer, batch.length, settings)) vectors.push(vector)
      }
      return vectors
    },
    close() {
      closed.abort(new TidemarkError('The embedder was closed.', { kind: 'transient', code: 'closed' }))
      return Promise.resolve()
    },
  }
}

/** Of a whole file, say: as many texts to a call as the settings and the services allow. */
function* batchesOf(texts: readonly string[], batch: number): Generator<string[]> {
  let next: string[] = []
  let chars = 0
  for (const text of texts) {
    if (next.length > 0 && (next.length >= batch || chars + text.length > CALL_CHARS_MAX)) {
      yield next
      next = []
      chars = 0
    }
    next.push(text)
    chars += text.length
  }
  if (next.length > 0) yield next
}

type Call = Tools & { signal: EmbedOptions['signal'] }

async function call(
  { kind, model, key, dims }: HttpEmbedderSettings,
  base: string,
  input: readonly string[],
  { fetch, clock, signal }: Call,
): Promise<number[][]> {
  const shortened = SHORTENS.test(model) ? { dimensions: dims } : {}
  const body = kind === 'ollama' ? { model, input } : { model, input, encoding_format: 'float', ...shortened }
  const answer = await fetch(base + (kind === 'ollama' ? '/api/embed' : '/embeddings'), {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(key && { authorization: `Bearer ${key}` }) },
    body: JSON.stringify(body),
    redirect: 'manual',
    signal,
  }).catch((cause) => {
    throw signal.aborted ? signal.reason : unreachable(cause)
  })
  const text = await readText(answer).catch((cause) => {
    throw signal.aborted ? signal.reason : unreachable(cause)
  })
  if (answer.status !== 200) throw classify(answer, text, clock.now())
  return kind === 'ollama' ? parsed(ollamaAnswer, text).embeddings : inOrder(parsed(openAiAnswer, text).data)
}

/** By their index, where they have one. */
function inOrder(data: z.output<typeof openAiAnswer>['data']): number[][] {
  const sorted = data.every(({ index }) => index !== undefined)
    ? data.toSorted((a, b) => a.index! - b.index!)
    : data
  return sorted.map(({ embedding }) => embedding)
}

function checked(answer: number[][], count: number, { dims, model }: HttpEmbedderSettings): Float32Array[] {
  if (answer.length !== count) {
    throw new TidemarkError(
      `The embedding service answered with ${answer.length} vectors for ${count} texts.`,
      {
        kind: 'transient',
        code: 'embedding-count',
      },
    )
  }
  return answer.map((vector) => {
    if (vector.length === dims) return normalise(Float32Array.from(vector))
    throw new TidemarkError(
      `The embedding model ${model} gives vectors of ${vector.length} numbers, not of ${dims}.`,
      {
        kind: 'permanent',
        code: 'embedding-dims',
        hint: `Set the number of dimensions to ${vector.length}, or name another model.`,
      },
    )
  })
}

/** What the status of an answer means for the job that asked. */
function classify(answer: Response, text: string, nowMs: number): TidemarkError {
  const { status } = answer
  const said = messageOf(text)
  const options = { code: `embedding-${status}` }
  const message = `The embedding service answered with ${status}${said ? `: ${said}` : ''}`
  if (status === 429) {
    return new TidemarkError(message, { ...options, kind: 'throttled', retryAfterMs: waitOf(answer, nowMs) })
  }
  if (status === 401 || status === 403) {
    return new TidemarkError(message, {
      ...options,
      kind: 'auth',
      hint: 'Check the key of the embedding service.',
    })
  }
  if (status === 404) {
    const hint = 'Check the address and the model; Ollama must have pulled it.'
    return new TidemarkError(message, { ...options, kind: 'permanent', hint })
  }
  if (status >= 300 && status < 400) {
    const hint = 'Redirects are not followed: set the address that it leads to.'
    return new TidemarkError(message, { ...options, kind: 'permanent', hint })
  }
  if (status >= 500 || status === 408 || status === 409) {
    return new TidemarkError(message, { ...options, kind: 'transient', retryAfterMs: waitOf(answer, nowMs) })
  }
  return new TidemarkError(message, { ...options, kind: 'permanent' })
}

/** Of Retry-After: seconds, or a date. */
function waitOf(answer: Response, nowMs: number): number | undefined {
  const value = answer.headers.get('retry-after')?.trim() ?? ''
  const waitMs = /^\d{1,9}(?:\.\d+)?$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - nowMs
  return waitMs > 0 ? Math.min(waitMs, RETRY_AFTER_MS_MAX) : undefined
}

const errorAnswer = z.object({
  error: z.union([z.string(), z.object({ code: z.string().nullish(), type: z.string().nullish() })]),
})

/** Ollama's sentence, or OpenAI's code: its sentences may quote what was sent. */
function messageOf(text: string): string {
  try {
    const { error } = errorAnswer.parse(JSON.parse(text))
    const said = typeof error === 'string' ? error : (error.code ?? error.type ?? '')
    return redactText(said.replaceAll(/[\p{C}\p{Z}\s]+/gu, ' ').slice(0, ERROR_CHARS_MAX))
  } catch {
    // A page of a proxy, for instance: the status says enough.
    return ''
  }
}

async function readText(answer: Response): Promise<string> {
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of answer.body ?? []) {
    bytes += piece.length
    if (bytes > ANSWER_BYTES_MAX) throw new Error('the answer is too large')
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString('utf8')
}

function parsed<T>(schema: z.ZodType<T>, text: string): T {
  try {
    return schema.parse(JSON.parse(text))
  } catch {
    // What is wrong with it would quote it.
    throw new TidemarkError('The embedding service answered with something else than vectors.', {
      kind: 'transient',
      code: 'embedding-answer',
      hint: 'Check that the address is that of an embedding service.',
    })
  }
}

function unreachable(cause: unknown): TidemarkError {
  return new TidemarkError('The embedding service cannot be reached.', {
    kind: 'transient',
    code: 'embedding-unreachable',
    hint: 'Check its address, and that it runs.',
    cause,
  })
}

function checkedUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  const isAllowed = url?.protocol === 'https:' || (url?.protocol === 'http:' && isLoopback(url.hostname))
  if (isAllowed) return text.replace(/\/+$/, '')
  throw new UsageError('The address of the embedding service is not possible.', {
    hint: 'It must be an https:// address; http:// only of this machine.',
    code: 'embedding-url',
  })
}
