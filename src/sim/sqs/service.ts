/** SQS in the simulated cloud. */
import type { SimService } from '../service.ts'
import type { Sqs, SqsOptions } from './sqs.ts'

export const sqs: SimService<SqsOptions, Sqs> = {
  title: 'SQS',
  hasAccounts: false,
  faultProfiles: {},
  flags: [
    {
      flag: '--queue <name>',
      about: 'an SQS queue, where new objects of --bucket are announced',
      takes: 'text',
    },
  ],
  fromFlags: (_accounts, { queue }) => (queue === undefined ? {} : { queues: [String(queue)] }),
  start: async (kernel, options) => new (await import('./sqs.ts')).Sqs(kernel, options),
}
