/** Google Cloud Storage in the simulated cloud. */
import type { SimService } from '../service.ts'
import type { Gcs, GcsOptions } from './gcs.ts'

export const gcs: SimService<GcsOptions, Gcs> = {
  title: 'Google Cloud Storage',
  hasAccounts: false,
  faultProfiles: {},
  flags: [
    {
      flag: '--gcs-bucket <name>',
      about: 'a bucket of Google Cloud Storage; its new objects are announced in --subscription',
      takes: 'text',
    },
  ],
  fromFlags: (_accounts, { gcsBucket, subscription }) => {
    if (gcsBucket === undefined) return {}
    const topic = `projects/tidemark-sim/topics/${subscription}`
    return { buckets: [{ name: String(gcsBucket), notify: subscription === undefined ? [] : [{ topic }] }] }
  },
  start: async (kernel, options) => new (await import('./gcs.ts')).Gcs(kernel, options),
}
