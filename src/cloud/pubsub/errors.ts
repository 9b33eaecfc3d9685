/** What went wrong with a call to Pub/Sub, and what can be done about it. `classify` is the only place that reads its answers. */
import { TidemarkError } from '../../base/errors.ts'
import { AnswerErrors, betweenHint, type ErrorAnswer, type Verdict } from '../answer-errors.ts'
import { googleError, googleRetryAfter, isRateLimit } from '../google/errors.ts'
import { ackErrorSchema } from './schema.ts'

export const {
  unreachable,
  timedOut,
  wrongContentType,
  damagedAnswer,
  cutShort,
  tooLarge,
  decode,
  parseJson,
} = new AnswerErrors('Pub/Sub')

/** The `cause` of an error about some of the receipts of a call: all others were done with. */
export class RefusedReceipts extends Error {
  readonly lost: ReadonlySet<string>
  readonly later: ReadonlySet<string>

  constructor(lost: ReadonlySet<string>, later: ReadonlySet<string>) {
    super('some receipts were refused')
    this.lost = lost
    this.later = later
  }
}

export function classify(answer: ErrorAnswer): TidemarkError {
  const google = googleError(answer.body)
  const isRate = isRateLimit(google, answer.body)
  const { kind, code, message, hint } = verdictOf(answer.status, { isRate, isGoogle: google !== undefined })
  const said = google?.message ? `: ${google.message}` : ''
  const retryAfterMs = googleRetryAfter(answer, google)
  return new TidemarkError(`${message} (HTTP ${answer.status})${said}`, {
    kind,
    code,
    cause: refusedReceipts(answer.body),
    ...(hint !== undefined && { hint }),
    ...(retryAfterMs !== undefined && { retryAfterMs }),
  })
}

function verdictOf(status: number, { isRate, isGoogle }: { isRate: boolean; isGoogle: boolean }): Verdict {
  if (status === 429 || (status === 403 && isRate)) {
    return { kind: 'throttled', code: 'rate-limit', message: 'Pub/Sub asked to slow down' }
  }
  if (status === 401) {
    const hint = 'Check the key of the service account, or the access token.'
    return { kind: 'auth', code: 'token-refused', message: 'Pub/Sub refused the access token', hint }
  }
  if (status >= 500 || status === 408 || status === 409) {
    return { kind: 'transient', code: 'server-error', message: 'Pub/Sub had a problem of its own' }
  }
  if (!isGoogle || status < 400) {
    const hint = betweenHint('Pub/Sub')
    return { kind: 'transient', code: 'not-pubsub', message: 'The answer is not from Pub/Sub', hint }
  }
  if (status === 403) {
    const hint = 'Give the account the role Pub/Sub Subscriber on the subscription.'
    return { kind: 'auth', code: 'queue-denied', message: 'The account may not use the subscription', hint }
  }
  if (status === 404) {
    const hint = 'A subscription that nobody reads for 31 days is deleted.'
    return { kind: 'permanent', code: 'queue-missing', message: 'There is no such subscription', hint }
  }
  return { kind: 'permanent', code: 'refused', message: 'Pub/Sub refused the call' }
}

function refusedReceipts(body: string): RefusedReceipts | undefined {
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch {
    return undefined
  }
  const parsed = ackErrorSchema.safeParse(value)
  if (!parsed.success) return undefined
  const entries = parsed.data.error.details.flatMap(({ metadata }) => Object.entries(metadata))
  const of = (begin: string): Set<string> =>
    new Set(entries.filter(([, why]) => why.startsWith(begin)).map(([id]) => id))
  const [lost, later] = [of('PERMANENT_FAILURE'), of('TRANSIENT_FAILURE')]
  return lost.size + later.size > 0 ? new RefusedReceipts(lost, later) : undefined
}
