/** Where AWS is, and as whom it is asked. Static keys are given, or the SDK looks where it always looks. */
export type AwsAccess = {
  region: string
  /** Another place than AWS: `http://127.0.0.1:9000`. */
  endpoint?: string | undefined
  credentials?: AwsCredentials | undefined
}

export type AwsCredentials = {
  accessKeyId: string
  secretAccessKey: string
  sessionToken?: string | undefined
}

/** The part of an SDK client's configuration that is the same for every service. */
export function awsConfig({ region, endpoint, credentials }: AwsAccess): {
  region: string
  maxAttempts: number
  endpoint?: string
  credentials?: { accessKeyId: string; secretAccessKey: string; sessionToken?: string }
} {
  return {
    region,
    // Whoever calls retries, with limits and pauses of its own.
    maxAttempts: 1,
    ...(endpoint !== undefined && { endpoint }),
    ...(credentials && {
      credentials: {
        accessKeyId: credentials.accessKeyId,
        secretAccessKey: credentials.secretAccessKey,
        ...(credentials.sessionToken !== undefined && { sessionToken: credentials.sessionToken }),
      },
    }),
  }
}
