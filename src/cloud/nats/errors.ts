/** What went wrong with a call to NATS, and what can be done about it. `classify` is the only place that reads its errors. */
import { TidemarkError } from '../../base/errors.ts'
import { plainText, type Verdict } from '../answer-errors.ts'

const SIGN_IN = /^(?:AuthorizationError|UserAuthenticationExpiredError)$/
const CONSUMER_NOT_FOUND = 10_014
const STREAM_NOT_FOUND = 10_059
const NOT_ENABLED = 10_039

export function classify(thrown: unknown): TidemarkError {
  if (thrown instanceof TidemarkError) return thrown
  const { kind, code, message, hint } = verdictOf(thrown)
  const said = thrown instanceof Error && thrown.message ? `: ${plainText(thrown.message)}` : ''
  return new TidemarkError(`${message}${said}`, {
    kind,
    code,
    cause: thrown,
    ...(hint !== undefined && { hint }),
  })
}

/** Nobody keeps the message of this receipt any more: its consumer is gone. */
export function isNobodyThere(thrown: unknown): boolean {
  return namesOf(thrown).includes('NoRespondersError')
}

/** Of a status that came in place of a message: undefined where it only says that there is none. */
export function statusError(status: number, description: string): TidemarkError | undefined {
  if (status === 404 || status === 408 || status === 100) return undefined
  if (status === 503)
    return classify(Object.assign(new Error('no responders'), { name: 'NoRespondersError' }))
  // Somebody removed the consumer while we waited, or moved it to another server.
  if (status === 409 && /deleted/i.test(description))
    return new TidemarkError(QUEUE_MISSING.message, QUEUE_MISSING)
  if (status === 409 && /exceeded|max/i.test(description)) {
    const message = `NATS has too many that wait: ${plainText(description)}`
    return new TidemarkError(message, { kind: 'throttled', code: 'rate-limit' })
  }
  const message = `NATS did not give any messages (${status} ${plainText(description)})`
  return new TidemarkError(message, { kind: status === 400 ? 'permanent' : 'transient', code: 'status' })
}

const QUEUE_MISSING: Verdict = {
  kind: 'permanent',
  code: 'queue-missing',
  message: 'There is no such stream or consumer',
  hint: 'Create a durable pull consumer on the stream, with explicit acknowledgement.',
}

function verdictOf(thrown: unknown): Verdict {
  const names = namesOf(thrown)
  if (names.some((name) => SIGN_IN.test(name))) {
    const hint = 'Check the user, the password or the token.'
    return { kind: 'auth', code: 'credentials-refused', message: 'NATS refused the credentials', hint }
  }
  if (names.includes('PermissionViolationError')) {
    return { kind: 'auth', code: 'queue-denied', message: 'The credentials may not use the consumer' }
  }
  const code = (thrown as { code?: unknown } | undefined)?.code
  if (code === CONSUMER_NOT_FOUND || code === STREAM_NOT_FOUND) return QUEUE_MISSING
  if (code === NOT_ENABLED) {
    return { kind: 'permanent', code: 'jetstream-off', message: 'JetStream is not enabled' }
  }
  if (names.includes('NoRespondersError')) {
    return { kind: 'transient', code: 'no-responders', message: 'JetStream does not answer' }
  }
  const hint = 'Check the network of this machine, and whether the server runs.'
  return { kind: 'transient', code: 'connection-failed', message: 'The connection to NATS failed', hint }
}

function namesOf(thrown: unknown): string[] {
  const names: string[] = []
  for (let error = thrown, depth = 0; error instanceof Error && depth < 5; error = error.cause, depth++) {
    names.push(error.name, error.constructor.name)
  }
  return names
}
