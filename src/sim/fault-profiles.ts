/**
 * Named sets of fault rules, for the command line and for tests that want weather rather than one fault. What
 * could happen to any service is here; a service adds what only its own calls can meet.
 */
import type { FaultRule } from './fault-rules.ts'
import { simServices } from './registry.ts'

const flaky: FaultRule[] = [
  { do: 'error', status: 503, probability: 0.02 },
  { do: 'error', status: 500, probability: 0.01 },
  { do: 'reset', when: 'before', probability: 0.01 },
  { do: 'reset', when: 'after', probability: 0.005 },
  { do: 'truncate', probability: 0.01 },
  { do: 'truncate', close: false, probability: 0.005 },
  { do: 'content-type', probability: 0.005 },
]

const throttle: FaultRule[] = [{ do: 'throttle', status: 429, everyNth: 60, burst: 4, retryAfterSeconds: 1 }]

const parts: FaultRule[] = [
  { do: 'error', status: 500, on: 'part', probability: 0.01 },
  { do: 'throttle', status: 429, on: 'part', probability: 0.02 },
]

const general: Record<string, readonly FaultRule[]> = {
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
  tokens: [{ do: 'expire-access', everyNth: 150 }],
  mixed: [
    { do: 'latency', latency: { kind: 'lognormal', medianMs: 4, sigma: 0.8, maxMs: 200 } },
    ...flaky,
    ...throttle,
    ...parts,
    { do: 'expire-access', everyNth: 250 },
  ],
}

export const faultProfiles: Readonly<Record<string, readonly FaultRule[]>> = allProfiles()

function allProfiles(): Record<string, readonly FaultRule[]> {
  const profiles = { ...general }
  for (const [service, { faultProfiles: own }] of Object.entries(simServices)) {
    const rules = (name: string): FaultRule[] => own[name]?.map((rule) => ({ ...rule, service })) ?? []
    for (const name of Object.keys(own)) {
      profiles[name] = [...(profiles[name] ?? []), ...rules(name)]
      // All that can happen to a service happens to it in mixed weather, too.
      if (name !== 'mixed') profiles.mixed = [...profiles.mixed!, ...rules(name)]
    }
  }
  return profiles
}
