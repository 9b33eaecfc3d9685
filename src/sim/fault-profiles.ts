/** Named sets of fault rules, for the command line and for tests that want weather rather than one fault. */
import type { FaultRule } from './fault-rules.ts'

const flaky: FaultRule[] = [
  { do: 'error', status: 503, probability: 0.02 },
  { do: 'error', status: 500, probability: 0.01 },
  { do: 'reset', when: 'before', probability: 0.01 },
  { do: 'reset', when: 'after', probability: 0.005 },
  { do: 'truncate', probability: 0.01 },
  { do: 'truncate', close: false, probability: 0.005 },
  { do: 'content-type', probability: 0.005 },
]

const throttle: FaultRule[] = [
  { do: 'throttle', status: 429, everyNth: 60, burst: 4, retryAfterSeconds: 1 },
  { do: 'throttle', status: 403, everyNth: 97, burst: 2 },
]

const parts: FaultRule[] = [
  { do: 'error', status: 500, on: 'part', probability: 0.01 },
  { do: 'throttle', status: 429, on: 'part', probability: 0.02 },
  { do: 'shuffle-parts', methods: ['batch'] },
]

const listing: FaultRule[] = [
  { do: 'mutate', what: 'arrive', methods: ['messages.list'], everyNth: 5 },
  { do: 'mutate', what: 'arrive-old', methods: ['messages.list'], everyNth: 11 },
  { do: 'mutate', what: 'relabel', methods: ['messages.list'], everyNth: 7, count: 2 },
  { do: 'mutate', what: 'delete', methods: ['messages.list'], everyNth: 13 },
]

const history: FaultRule[] = [
  { do: 'empty-page', methods: ['history.list'], everyNth: 3 },
  { do: 'expire-history', methods: ['history.list'], everyNth: 25 },
]

export const faultProfiles: Record<string, readonly FaultRule[]> = {
  none: [],
  throttle,
  /** A quarter of every twenty seconds nothing is answered but "slow down". */
  storm: [{ do: 'throttle', status: 429, window: { everyMs: 20_000, forMs: 5_000 } }],
  flaky,
  /** Every 200th request waits until the caller gives up, in turn before and in the middle of the answer. */
  stall: [
    { do: 'stall', everyNth: 200 },
    { do: 'stall', at: 'middle', everyNth: 333 },
  ],
  slow: [{ do: 'latency', latency: { kind: 'lognormal', medianMs: 120, sigma: 0.6, maxMs: 5_000 } }],
  parts,
  listing,
  history,
  tokens: [{ do: 'expire-access', everyNth: 150 }],
  mixed: [
    { do: 'latency', latency: { kind: 'lognormal', medianMs: 4, sigma: 0.8, maxMs: 200 } },
    ...flaky,
    ...throttle,
    ...parts,
    ...listing,
    ...history,
    { do: 'expire-access', everyNth: 250 },
  ],
}
