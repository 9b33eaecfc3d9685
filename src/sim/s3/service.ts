/** S3 in the simulated cloud. */
import type { SimService } from '../service.ts'
import type { S3, S3Options } from './s3.ts'

export const s3: SimService<S3Options, S3> = {
  title: 'S3',
  hasAccounts: false,
  faultProfiles: {},
  flags: [
    {
      flag: '--bucket <name>',
      about: 'an S3 bucket; its new objects are announced in --queue',
      takes: 'text',
    },
  ],
  fromFlags: (_accounts, { bucket, queue }) => {
    if (bucket === undefined) return {}
    const notify = queue === undefined ? [] : [{ queue: String(queue), envelope: 's3' as const }]
    return { buckets: [{ name: String(bucket), notify }] }
  },
  start: async (kernel, options) => new (await import('./s3.ts')).S3(kernel, options),
}
