/** Errors about answers that never came, or that are not what was asked for, in the name of one service. */
import type { z } from 'zod'
import { TidemarkError } from '../base/errors.ts'
import { redactText } from '../base/redaction.ts'

export type AnswerHeaders = { get(name: string): string | null }

/** An answer that says that something went wrong. */
export type ErrorAnswer = {
  status: number
  /** As it came, at most its first part. */
  body: string
  headers: AnswerHeaders
  /** Times in answers are turned into waits. */
  nowMs: number
}

/** What a client makes of one. */
export type Verdict = Pick<TidemarkError, 'kind' | 'message'> & { code: string; hint?: string }

const TEXT_MAX = 200
/** Bandwidth limits last hours; a longer wait than a day is a mistake of some clock. */
const RETRY_AFTER_MS_MAX = 24 * 60 * 60 * 1_000

/** Text of the service, safe to print: one line, short, without secrets. */
export function plainText(text: string): string {
  const line = text
    .slice(0, TEXT_MAX * 4)
    .replaceAll(/[\p{C}\p{Z}\s]+/gu, ' ')
    .trim()
  const clean = redactText(line)
  return clean.length > TEXT_MAX ? `${clean.slice(0, TEXT_MAX)}…` : clean
}

/** What stands as `error` in a body; undefined where the body has not this shape, and so came from somebody else. */
export function errorIn<T>(body: string, shape: z.ZodType<{ error: T }>): T | undefined {
  try {
    return shape.parse(JSON.parse(body)).error
  } catch {
    return undefined
  }
}

/** The longest of several waits in ms; what is no number, or not in the future, is none. */
export function longestWait(waits: readonly number[]): number | undefined {
  const longest = Math.max(0, ...waits.filter((wait) => Number.isFinite(wait)))
  return longest > 0 ? Math.min(longest, RETRY_AFTER_MS_MAX) : undefined
}

/** Of the header Retry-After: seconds, or a date. */
export function headerWait(headers: AnswerHeaders, nowMs: number): number {
  const value = headers.get('retry-after')?.trim()
  if (!value) return 0
  return /^\d{1,9}$/.test(value) ? Number(value) * 1_000 : Date.parse(value) - nowMs
}

export function betweenHint(service: string): string {
  return `Something between this machine and ${service} answers in its place: a proxy, or a network that wants a login.`
}

export class AnswerErrors {
  readonly #service: string

  constructor(service: string) {
    this.#service = service
  }

  /** A reset, a refused connection, a name that cannot be resolved, a body that ended too early. */
  readonly unreachable = (thrown: unknown): TidemarkError => {
    const code = networkCode(thrown)
    const message = `The connection to ${this.#service} failed${code ? ` (${code})` : ''}`
    const hint = 'Check the network of this machine.'
    return new TidemarkError(message, { kind: 'transient', code: 'connection-failed', hint, cause: thrown })
  }

  readonly timedOut = (timeoutMs: number): TidemarkError => {
    const message = `${this.#service} was silent for ${timeoutMs / 1_000} s`
    return new TidemarkError(message, { kind: 'transient', code: 'timeout' })
  }

  /** An error page with status 200, for instance. */
  readonly wrongContentType = (got: string | null, wanted: string): TidemarkError => {
    const kind = got ? plainText(got).slice(0, 60) : 'nothing that says what it is'
    return new TidemarkError(`${this.#service} should have answered with ${wanted}, but it was ${kind}`, {
      kind: 'transient',
      code: 'wrong-content-type',
      hint: betweenHint(this.#service),
    })
  }

  /** `why` must not quote the answer. */
  readonly damagedAnswer = (what: string, why: string): TidemarkError =>
    new TidemarkError(`The answer about ${what} is damaged: ${why}`, {
      kind: 'transient',
      code: 'damaged-answer',
    })

  readonly cutShort = (what: string): TidemarkError =>
    new TidemarkError(`The answer about ${what} ended too early`, { kind: 'transient', code: 'cut-short' })

  readonly tooLarge = (what: string, bytesMax: number): TidemarkError => {
    const message = `The answer about ${what} is larger than ${Math.floor(bytesMax / 1e6)} MB`
    return new TidemarkError(message, { kind: 'permanent', code: 'answer-too-large' })
  }

  /** The parsed answer, or a transient error that names the field and quotes nothing. */
  readonly decode = <T>(schema: z.ZodType<T>, value: unknown, what: string): T => {
    const parsed = schema.safeParse(value)
    if (parsed.success) return parsed.data
    const path = parsed.error.issues[0]?.path.map(String).join('.') || 'it'
    throw this.damagedAnswer(what, `${path} is not as it should be`)
  }

  readonly parseJson = (text: string, what: string): unknown => {
    try {
      return JSON.parse(text)
    } catch {
      // The parser's own message quotes the text, which is somebody's own.
      throw this.damagedAnswer(what, 'it is not JSON')
    }
  }
}

function networkCode(thrown: unknown): string | undefined {
  for (let error = thrown, depth = 0; error instanceof Error && depth < 5; error = error.cause, depth++) {
    const code = (error as { code?: unknown }).code
    if (typeof code === 'string' && /^[A-Z_0-9]{2,40}$/.test(code)) return code
  }
  return undefined
}
