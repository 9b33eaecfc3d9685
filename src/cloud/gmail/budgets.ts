/**
 * What calls of Gmail may cost. A mailbox has one quota, whoever works on it: all that call Gmail for it share these
 * budgets, name by name.
 */
import type { Config } from '../../config/settings.ts'
import type { BudgetSpec } from '../../engine/index.ts'
import type { Limits } from '../../engine/limits/limits.ts'
import type { Pace } from './client.ts'

/** Where Gmail is, and what may be asked of it. */
export type GmailReach = {
  apiUrl: string
  tokenUrl: string
  unitsPerMinute: number
  priceOfGet: number
  requestsPerSecond: { start: number; max: number }
  workers: { start: number; max: number }
}

export function gmailReachOf({ gmail }: Pick<Config, 'gmail'>): GmailReach {
  return {
    apiUrl: gmail.api_url,
    tokenUrl: gmail.token_url,
    unitsPerMinute: gmail.units_per_minute,
    priceOfGet: gmail.price_of_get,
    requestsPerSecond: { start: gmail.requests_per_second_start, max: gmail.requests_per_second_max },
    workers: { start: Math.min(gmail.workers_start, gmail.workers_max), max: gmail.workers_max },
  }
}

/** The price that the service puts on calls. */
export function unitsOf(account: string): string {
  return `gmail-units:${account}`
}

/** What goes over the wire. */
export function requestsOf(account: string): string {
  return `gmail-requests:${account}`
}

/** A batch of 50 large messages may take a while; slower than this, everyone slows down. */
const LATENCY_P95_MAX_MS = 45_000
/**
 * Gmail counts over a minute. A batch comes in one piece, and a busy machine sends some late: at the full rate some
 * minutes hold one batch too many, and a refusal costs 5 % of the two minutes around it. Measured at 6,000 units a
 * minute: of the full rate 91 % are used, of this one all.
 */
const PACED_SHARE = 0.96

export function gmailBudgets(accounts: readonly string[], reach: GmailReach): Record<string, BudgetSpec> {
  const units: BudgetSpec = {
    rate: (reach.unitsPerMinute / 60) * PACED_SHARE,
    workers: reach.workers,
    latencyP95MaxMs: LATENCY_P95_MAX_MS,
  }
  const { start, max } = reach.requestsPerSecond
  const requests: BudgetSpec = { rate: start, rateMax: Math.max(start, max), rateMin: Math.min(start, 1) }
  return Object.fromEntries(
    accounts.flatMap((name) => [
      [unitsOf(name), units],
      [requestsOf(name), requests],
    ]),
  )
}

/** Every call waits for its turn in both budgets. `limits`: the engine's, or none for a single look without one. */
export function gmailPace({
  account,
  reach,
  limits,
}: {
  account: string
  reach: GmailReach
  limits: () => Limits | undefined
}): Pace {
  const [units, requests] = [unitsOf(account), requestsOf(account)]
  return async (call, fn) => {
    const here = limits()
    if (!here) return fn(call.signal)
    const wait = call.signal ? { signal: call.signal } : {}
    // Now, not when the account was opened: settings change while it is open.
    const specs = gmailBudgets([account], reach)
    // Units first: a request that waits for them is not on the wire yet, and must not count as one that is slow.
    return here
      .budget(units, specs[units]!)
      .call(call.units, () => here.budget(requests, specs[requests]!).call(1, fn, wait), {
        ...wait,
        name: call.method,
      })
  }
}
