/** Pub/Sub in the simulated cloud. */
import type { SimService } from '../service.ts'
import type { PubSub, PubSubOptions } from './pubsub.ts'

export const pubsub: SimService<PubSubOptions, PubSub> = {
  title: 'Pub/Sub',
  hasAccounts: false,
  faultProfiles: {},
  flags: [
    {
      flag: '--subscription <name>',
      about: 'a Pub/Sub subscription, where new objects of --gcs-bucket are announced',
      takes: 'text',
    },
  ],
  fromFlags: (_accounts, { subscription }) => {
    if (subscription === undefined) return {}
    const name = `projects/tidemark-sim/subscriptions/${subscription}`
    return { subscriptions: [{ name, topic: `projects/tidemark-sim/topics/${subscription}` }] }
  },
  start: async (kernel, options) => new (await import('./pubsub.ts')).PubSub(kernel, options),
}
