/** Errors as all of AWS's SDKs throw them. What they mean for a service, its own `classify` says. */
import { headerWait, longestWait, plainText } from '../answer-errors.ts'

export type AwsError = {
  /** The name of the error in the service's own words: `SlowDown`, `NoSuchKey`. Empty where no service has answered. */
  name: string
  message: string
  /** Undefined where no service has answered. */
  status: number | undefined
  retryAfterMs: number | undefined
}

const THROTTLED =
  /^(?:SlowDown|Throttl\w*|RequestThrottled\w*|TooManyRequests\w*|RequestLimitExceeded|BandwidthLimitExceeded|ProvisionedThroughputExceededException|OverLimit|KmsThrottled)$/
const SIGN_IN =
  /^(?:InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken\w*|InvalidToken|InvalidClientTokenId|UnrecognizedClientException|MissingAuthenticationToken\w*|TokenRefreshRequired|RequestTimeTooSkewed|InvalidSecurity|IncompleteSignature|NotSignedUp|OptInRequired|CredentialsProviderError|AuthFailure|InvalidSignatureException)$/

export function isThrottle({ name, status }: AwsError): boolean {
  return status === 429 || THROTTLED.test(name)
}

/** Nothing that is asked for is at fault: nobody would be answered with these credentials. */
export function isSignIn({ name, status }: AwsError): boolean {
  return status === 401 || SIGN_IN.test(name)
}

export function awsError(thrown: unknown, nowMs: number): AwsError {
  const error = (thrown ?? {}) as {
    name?: unknown
    Code?: unknown
    message?: unknown
    $metadata?: { httpStatusCode?: unknown }
    $response?: { headers?: Record<string, string>; statusCode?: unknown }
  }
  const headers = error.$response?.headers ?? {}
  // A body that is no XML or JSON of the service leaves its status on the answer alone.
  const status = [error.$metadata?.httpStatusCode, error.$response?.statusCode].find(
    (one): one is number => typeof one === 'number',
  )
  const said = typeof error.Code === 'string' ? error.Code : error.name
  const name = typeof said === 'string' ? said.replace(/^.*[#.]/, '') : ''
  const get = (header: string): string | null => headers[header] ?? null
  return {
    name,
    status,
    message: typeof error.message === 'string' ? plainText(error.message) : '',
    retryAfterMs: longestWait([headerWait({ get }, nowMs)]),
  }
}
