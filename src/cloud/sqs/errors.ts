/** What went wrong with a call to SQS, and what can be done about it. `classify` is the only place that reads its errors. */
import { TidemarkError } from '../../base/errors.ts'
import type { Verdict } from '../answer-errors.ts'
import { type AwsError, awsError, isSignIn, isThrottle } from '../aws/errors.ts'

export function classify(thrown: unknown, nowMs: number): TidemarkError {
  if (thrown instanceof TidemarkError) return thrown
  const aws = awsError(thrown, nowMs)
  const { kind, code, message, hint } = verdictOf(aws)
  const status = aws.status === undefined ? '' : ` (HTTP ${aws.status})`
  const said = aws.message ? `: ${aws.message}` : ''
  return new TidemarkError(`${message}${status}${said}`, {
    kind,
    code,
    cause: thrown,
    ...(hint !== undefined && { hint }),
    ...(aws.retryAfterMs !== undefined && { retryAfterMs: aws.retryAfterMs }),
  })
}

/** Of an entry of a batch: the receipt is not that of a message that is held any more. */
export function isLostReceipt(code: string | undefined): boolean {
  return LOST_RECEIPT.test((code ?? '').replace(/^.*[#.]/, ''))
}

/** InvalidParameterValue: the message does not exist any more, or would be held for longer than 12 hours. */
const LOST_RECEIPT =
  /^(?:ReceiptHandleIsInvalid|MessageNotInflight|InvalidParameterValue|InvalidIdFormat|MessageNotInflightException)$/
const NO_QUEUE = /^(?:QueueDoesNotExist|NonExistentQueue|InvalidAddress|QueueDeletedRecently)$/
const DENIED = /^(?:AccessDenied\w*|KmsAccessDenied|KmsDisabled|KmsNotFound|KmsOptInRequired)$/

function verdictOf(aws: AwsError): Verdict {
  if (isThrottle(aws)) return { kind: 'throttled', code: 'rate-limit', message: 'SQS asked to slow down' }
  if (isSignIn(aws)) {
    const hint = 'Check the access key, the session token and the clock of this machine.'
    return { kind: 'auth', code: 'credentials-refused', message: 'SQS refused the credentials', hint }
  }
  if (DENIED.test(aws.name) || aws.status === 403) {
    const hint =
      'Allow sqs:ReceiveMessage, sqs:DeleteMessage, sqs:ChangeMessageVisibility and sqs:GetQueueAttributes.'
    return { kind: 'auth', code: 'queue-denied', message: 'The credentials may not use the queue', hint }
  }
  if (NO_QUEUE.test(aws.name)) {
    const hint = 'Check the address of the queue and its region.'
    return { kind: 'permanent', code: 'queue-missing', message: 'There is no such queue', hint }
  }
  if (aws.status === undefined) {
    const hint = 'Check the network of this machine.'
    return { kind: 'transient', code: 'connection-failed', message: 'The connection to SQS failed', hint }
  }
  if (aws.status >= 500 || aws.status === 408 || aws.status < 400) {
    return { kind: 'transient', code: 'server-error', message: 'SQS had a problem of its own' }
  }
  return { kind: 'permanent', code: 'refused', message: 'SQS refused the call' }
}
