/**
 * The one error class of the project. Its `kind` says what the caller can do about it; the engine
 * switches over the kinds exhaustively (see engine/retry.ts).
 *
 * - transient: the same call may succeed later (a reset, a 5xx, a busy database)
 * - throttled: the service asked us to slow down; says for how long where it can
 * - auth: the account must be connected again; no item is at fault
 * - gone: what the job is about no longer exists
 * - permanent: this item will never work (malformed, refused, too large)
 * - bug: our own mistake, or an error that nobody classified
 */
export type ErrorKind = 'transient' | 'throttled' | 'auth' | 'gone' | 'permanent' | 'bug'

export type TidemarkErrorOptions = {
  kind: ErrorKind
  cause?: unknown
  /** How long the service asked us to wait. */
  retryAfterMs?: number
  /** Of a call that was throttled in part: how much of its cost was refused; all of it if left out. */
  refusedUnits?: number
  /** What the user can do next, as a sentence. */
  hint?: string
  /** A stable name for programs, such as `ledger-newer`. */
  code?: string
}

export class TidemarkError extends Error {
  readonly kind: ErrorKind
  readonly retryAfterMs: number | undefined
  readonly refusedUnits: number | undefined
  readonly hint: string | undefined
  readonly code: string | undefined

  constructor(message: string, options: TidemarkErrorOptions) {
    super(message, { cause: options.cause })
    this.name = 'TidemarkError'
    this.kind = options.kind
    this.retryAfterMs = options.retryAfterMs
    this.refusedUnits = options.refusedUnits
    this.hint = options.hint
    this.code = options.code
  }
}

/** Wrong usage or configuration: the CLI answers with exit code 2. */
export class UsageError extends TidemarkError {
  constructor(message: string, options: { hint?: string; cause?: unknown; code?: string } = {}) {
    super(message, { kind: 'permanent', ...options })
    this.name = 'UsageError'
  }
}

/** Any thrown thing as a TidemarkError; what nobody classified is a bug until shown otherwise. */
export function asTidemarkError(thrown: unknown): TidemarkError {
  if (thrown instanceof TidemarkError) return thrown
  const message = thrown instanceof Error ? thrown.message : String(thrown)
  return new TidemarkError(message || 'an error without a message', { kind: 'bug', cause: thrown })
}
