/**
 * What went wrong with a call to a language model, and what it may have cost.
 *
 * Nothing of a prompt, of an answer or of the key stands in any of these, nor in their causes: of what a service says,
 * only its codes are told, since its sentences quote what was sent.
 */
import { z } from 'zod'
import { TidemarkError, type TidemarkErrorOptions } from '../../base/errors.ts'
import { type ErrorAnswer, headerWait, longestWait, plainText } from '../answer-errors.ts'

/**
 * - model-down: it cannot be reached, is silent, fails, answers with something that is no answer, or (kind `throttled`)
 *   asks to be asked less
 * - model-refused: it does not take the key, or the model, or the request; somebody must change the settings
 * - model-unusable: this prompt is longer than the model can read
 */
export type ModelErrorCode = 'model-down' | 'model-refused' | 'model-unusable'

export class ModelError extends TidemarkError {
  /** The service may have worked, and may charge for it. */
  readonly mayCost: boolean

  constructor(message: string, options: TidemarkErrorOptions & { code: ModelErrorCode; mayCost: boolean }) {
    super(message, options)
    this.name = 'ModelError'
    this.mayCost = options.mayCost
  }
}

/** An account without credit does not get any within a minute. */
const NO_CREDIT_MS = 60 * 60_000
const CODE = /^[\w.-]{1,80}$/

const said = z.object({
  error: z.union([
    z.string(),
    z.object({
      type: z.string().nullish(),
      status: z.string().nullish(),
      code: z.union([z.string(), z.number()]).nullish(),
      message: z.string().nullish(),
      details: z
        .array(z.looseObject({ reason: z.string().optional(), retryDelay: z.string().optional() }))
        .nullish(),
    }),
  ]),
})

type Said = { codes: readonly string[]; message: string; waitMs: number }

/** The one place that decides what an answer with an error status means. */
export function classify(answer: ErrorAnswer): ModelError {
  const { status, headers, nowMs } = answer
  const { codes, message, waitMs } = readError(answer.body)
  const named = codes.length > 0 ? ` (${codes.join(', ')})` : ''
  const text = `The language model's service answered with ${status}${named}`
  const retryAfterMs = longestWait([headerWait(headers, nowMs), waitMs])
  const wait = retryAfterMs === undefined ? {} : { retryAfterMs }
  const make = (
    kind: TidemarkErrorOptions['kind'],
    code: ModelErrorCode,
    more: { hint?: string; retryAfterMs?: number } = {},
  ): ModelError => new ModelError(text, { kind, code, mayCost: false, ...more })

  if (codes.some((code) => /insufficient_quota|billing|credit/i.test(code)) || status === 402) {
    const hint = 'The account at the provider has no credit left.'
    return make('throttled', 'model-down', { hint, retryAfterMs: retryAfterMs ?? NO_CREDIT_MS })
  }
  if (status === 429) return make('throttled', 'model-down', wait)
  if (status >= 500 || status === 408 || status === 409) return make('transient', 'model-down', wait)
  if (
    status === 401 ||
    status === 403 ||
    codes.some((code) => /api_key|authentication|permission/i.test(code))
  ) {
    return make('permanent', 'model-refused', { hint: 'Check models.api_key.' })
  }
  if (codes.includes('context_length_exceeded') || status === 413 || isTooLong(message)) {
    return make('permanent', 'model-unusable', { hint: 'Name a model that reads longer texts.' })
  }
  if (status === 404 || codes.includes('model_not_found')) {
    const hint = 'Check models.base_url and the names of the models; Ollama must have pulled them.'
    return make('permanent', 'model-refused', { hint })
  }
  if (status >= 300 && status < 400) {
    const hint =
      'Redirects are not followed, since they would take the key elsewhere: set the address that it leads to.'
    return make('permanent', 'model-refused', { hint })
  }
  return make('permanent', 'model-refused', {
    hint: 'If it does not know schemas, set models.json to "object" or "none".',
  })
}

/** Two of the three say it in words only. */
function isTooLong(message: string): boolean {
  return /prompt is too long|exceeds the maximum number of tokens|context (?:length|window|size)/i.test(
    message,
  )
}

function readError(body: string): Said {
  try {
    const { error } = said.parse(JSON.parse(body))
    if (typeof error === 'string') return { codes: [], message: error, waitMs: 0 }
    const { type, status, code, message, details } = error
    const reasons = (details ?? []).map(({ reason }) => reason)
    const codes = [code, type, status, ...reasons].filter(
      (one): one is string => typeof one === 'string' && CODE.test(one),
    )
    const delay = (details ?? []).map(
      ({ retryDelay }) => /^(\d{1,9}(?:\.\d+)?)s$/.exec(retryDelay ?? '')?.[1],
    )
    const waitMs = Math.max(0, ...delay.map((seconds) => Number(seconds ?? 0) * 1_000))
    return { codes: [...new Set(codes)].map(plainText), message: message ?? '', waitMs }
  } catch {
    // A page of a proxy, for instance: the status says enough.
    return { codes: [], message: '', waitMs: 0 }
  }
}

export function unreachable(thrown: unknown): ModelError {
  const code = networkCode(thrown)
  return new ModelError(`The language model's service cannot be reached${code ? ` (${code})` : ''}`, {
    kind: 'transient',
    code: 'model-down',
    hint: 'Check models.base_url, and that it runs.',
    mayCost: !NEVER_SENT.test(code ?? ''),
  })
}

/** There was no connection to send anything over. */
const NEVER_SENT =
  /^(?:ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EAI_NODATA|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT|ERR_TLS.*|CERT.*|.*CERT.*)$/

export function silent(timeoutMs: number): ModelError {
  return new ModelError(`The language model did not answer within ${timeoutMs / 1_000} s`, {
    kind: 'transient',
    code: 'model-down',
    hint: 'If it only needs longer, set models.timeout_seconds.',
    mayCost: true,
  })
}

export function noAnswer(what: string): ModelError {
  return new ModelError(`The language model's service answered with ${what}`, {
    kind: 'transient',
    code: 'model-down',
    hint: 'Check that models.base_url is the address of a language model.',
    mayCost: true,
  })
}

function networkCode(thrown: unknown): string | undefined {
  for (let error = thrown, depth = 0; error instanceof Error && depth < 5; error = error.cause, depth++) {
    const { code } = error as { code?: unknown }
    if (typeof code === 'string' && /^[A-Z_0-9]{2,40}$/.test(code)) return code
  }
  return undefined
}
