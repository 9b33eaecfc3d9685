/** Errors as SQS sends them in its JSON protocol. */
import type { Refusal } from '../faults.ts'
import { jsonAnswer, type SimAnswer } from '../server.ts'

export class SqsError extends Error {
  readonly code: string
  readonly status: number

  constructor(code: string, message: string, status = 400) {
    super(message)
    this.code = code
    this.status = status
  }
}

/** Some have another name in the older protocol, which SDKs still tell their callers. */
const OLD_NAMES: Record<string, string> = {
  QueueDoesNotExist: 'AWS.SimpleQueueService.NonExistentQueue',
  MessageNotInflight: 'AWS.SimpleQueueService.MessageNotInflight',
  TooManyEntriesInBatchRequest: 'AWS.SimpleQueueService.TooManyEntriesInBatchRequest',
  EmptyBatchRequest: 'AWS.SimpleQueueService.EmptyBatchRequest',
  BatchEntryIdsNotDistinct: 'AWS.SimpleQueueService.BatchEntryIdsNotDistinct',
  QueueNameExists: 'QueueAlreadyExists',
}

export function errorAnswer({ code, message, status }: SqsError): SimAnswer {
  const fault = status >= 500 ? 'Receiver' : 'Sender'
  return jsonAnswer({ __type: `com.amazonaws.sqs#${code}`, message }, status, {
    'content-type': 'application/x-amz-json-1.0',
    'x-amzn-query-error': `${OLD_NAMES[code] ?? code};${fault}`,
  })
}

/** What a fault rule asked for. */
export function sqsRefusal({ status, reason, message }: Refusal): SimAnswer {
  const isThrottle = status === 429 || reason === 'rateLimitExceeded'
  if (isThrottle) return errorAnswer(new SqsError('RequestThrottled', message ?? 'Rate exceeded'))
  const code =
    reason ?? (status === 503 ? 'ServiceUnavailable' : status >= 500 ? 'InternalFailure' : 'AccessDenied')
  return errorAnswer(new SqsError(code, message ?? 'The request was refused by a simulated fault.', status))
}

export function invalidValue(message: string): SqsError {
  return new SqsError('InvalidParameterValue', message)
}

export function noQueue(): SqsError {
  return new SqsError('QueueDoesNotExist', 'The specified queue does not exist.')
}
