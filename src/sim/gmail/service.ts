/** Gmail in the simulated cloud: what it is called, its flags, and the faults that only it can meet. */
import type { SimService } from '../service.ts'
import type { Gmail, GmailOptions } from './gmail.ts'

export const gmail: SimService<GmailOptions, Gmail> = {
  title: 'Gmail',
  faultProfiles: {
    throttle: [{ do: 'throttle', status: 403, everyNth: 97, burst: 2 }],
    parts: [{ do: 'shuffle-parts', methods: ['batch'] }],
    listing: [
      { do: 'mutate', what: 'arrive', methods: ['messages.list'], everyNth: 5 },
      { do: 'mutate', what: 'arrive-old', methods: ['messages.list'], everyNth: 11 },
      { do: 'mutate', what: 'relabel', methods: ['messages.list'], everyNth: 7, count: 2 },
      { do: 'mutate', what: 'delete', methods: ['messages.list'], everyNth: 13 },
    ],
    history: [
      { do: 'empty-page', methods: ['history.list'], everyNth: 3 },
      { do: 'expire-history', methods: ['history.list'], everyNth: 25 },
    ],
  },
  flags: [
    { flag: '--account <address>', about: 'a mailbox; may be given several times', takes: 'addresses' },
    {
      flag: '--messages <number>',
      about: 'how many messages each mailbox has',
      takes: { min: 0, max: 1_000_000 },
      byDefault: 1_000,
    },
    {
      flag: '--units-per-minute <number>',
      about: 'the quota of each user, or "unlimited"',
      takes: { min: 1, max: 1_000_000_000, word: 'unlimited' },
      byDefault: 6_000,
    },
    {
      flag: '--since <years>',
      about: 'how many years the mail goes back',
      takes: { min: 1, max: 40 },
      byDefault: 10,
    },
    { flag: '--push-to <url>', about: 'where notifications of users.watch are sent', takes: 'text' },
  ],
  fromFlags: (addresses, { messages, since, unitsPerMinute, pushTo }) => ({
    accounts: addresses.map((address) => ({
      address,
      messages: Number(messages),
      years: Number(since),
    })),
    quota: { unitsPerMinute: unitsPerMinute === 'unlimited' ? null : Number(unitsPerMinute) },
    push: { endpoint: pushTo === undefined ? null : String(pushTo) },
  }),
  start: async (kernel, options) => new (await import('./gmail.ts')).Gmail(kernel, options),
}
