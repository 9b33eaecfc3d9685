/** Who calls a service of Amazon's: the access key of a signature (version 4). The signature itself is not checked. */
import type { SimCall } from '../server.ts'
import type { Kernel } from '../service.ts'

export type AwsAccount = {
  accountId: string
  region: string
  /** The one that is told to people. */
  accessKeyId: string
  secretAccessKey: string
  /** All that are let in. */
  accessKeyIds: Set<string>
}

export type AwsSignature = { accessKeyId: string; service: string; isPresigned: boolean }

const accounts = new WeakMap<Kernel, AwsAccount>()

/** One for each cloud. */
export function awsAccount(kernel: Kernel): AwsAccount {
  const known = accounts.get(kernel)
  if (known) return known
  const accessKeyId = 'AKIATIDEMARKSIM00001'
  const account = {
    accountId: '000000000000',
    region: 'us-east-1',
    accessKeyId,
    secretAccessKey: 'simulated-secret-access-key',
    accessKeyIds: new Set([accessKeyId]),
  }
  accounts.set(kernel, account)
  return account
}

/** Undefined where a call is not signed at all. */
export function signatureOf({ headers, query }: SimCall): AwsSignature | undefined {
  const header = /^AWS4-HMAC-SHA256 .*Credential=([^,\s]+)/.exec(headers.authorization ?? '')?.[1]
  const credential = header ?? query.get('X-Amz-Credential')
  if (!credential) return undefined
  const pieces = credential.split('/')
  return { accessKeyId: pieces[0]!, service: pieces[3] ?? '', isPresigned: header === undefined }
}

/** Environment variables by which Amazon's SDKs and tools find a service. */
export function awsSettings(account: AwsAccount, service: 'S3' | 'SQS', url: string): Record<string, string> {
  return {
    [`AWS_ENDPOINT_URL_${service}`]: url,
    AWS_ACCESS_KEY_ID: account.accessKeyId,
    AWS_SECRET_ACCESS_KEY: account.secretAccessKey,
    AWS_REGION: account.region,
  }
}
