/**
 * What a call costs in quota units. Prices belong to the Google Cloud project, not to this code: there
 * are two tiers, and single prices can be overridden by configuration when Google changes them.
 */
import { UsageError } from '../../base/errors.ts'

/** `current`: projects made since May 2026. `older`: projects that were active before and kept the old prices. */
export type PriceTier = 'current' | 'older'

const CURRENT = {
  'messages.get': 20,
  'messages.list': 5,
  'messages.insert': 25,
  'messages.modify': 5,
  'messages.trash': 20,
  'messages.untrash': 5,
  'messages.batchModify': 50,
  'messages.batchDelete': 50,
  'threads.get': 40,
  'threads.modify': 10,
  'drafts.list': 5,
  'drafts.get': 5,
  'drafts.create': 10,
  'drafts.update': 15,
  'drafts.send': 100,
  'history.list': 2,
  'labels.list': 1,
  'labels.get': 1,
  'labels.create': 5,
  'labels.patch': 5,
  getProfile: 1,
  watch: 100,
  stop: 50,
}

export type GmailMethod = keyof typeof CURRENT

export type Prices = Readonly<Record<GmailMethod, number>>

const TIERS: Readonly<Record<PriceTier, Prices>> = {
  current: CURRENT,
  older: { ...CURRENT, 'messages.get': 5, 'messages.trash': 5, 'threads.get': 10 },
}

/** The table of a tier, with single prices replaced: `{ 'messages.get': 10 }`. */
export function pricesOf(tier: PriceTier, overrides: Readonly<Record<string, number>> = {}): Prices {
  const prices: Record<GmailMethod, number> = { ...TIERS[tier] }
  for (const [method, units] of Object.entries(overrides)) {
    if (!isMethod(method)) {
      throw new UsageError(`There is no price for ${JSON.stringify(method)}.`, {
        hint: `Prices can be set for ${Object.keys(CURRENT).join(', ')}.`,
      })
    }
    if (!Number.isFinite(units) || units < 0) {
      throw new UsageError(`The price of ${method} must be a number of units, 0 or more.`)
    }
    prices[method] = units
  }
  return prices
}

function isMethod(name: string): name is GmailMethod {
  return Object.hasOwn(CURRENT, name)
}
