/**
 * What goes wrong in the simulated cloud, and when: rules that can be changed at run time, each with a
 * counter and a random of its own, drawn from one seed.
 *
 * Invariants:
 * - The same seed, rules and order of calls give the same faults; a rule's draws do not depend on the others.
 * - A call meets at most one refusal, reset or stall; delays add up.
 * - What a refusal looks like and what an effect does is said by the service that is called.
 */
import { type Clock, systemClock } from '../base/clock.ts'
import { UsageError } from '../base/errors.ts'
import { type Random, seededRandom } from '../base/random.ts'
import {
  type FaultEffect,
  type FaultRule,
  faultsInput,
  type Latency,
  type Poison,
  type PoisonMode,
} from './fault-rules.ts'

export type FaultPlace = 'request' | 'part'

export type FaultCall = {
  /** Whose call it is; what rules of one service ask for. */
  service?: string
  /** What is called: `messages.list`, `batch`, `oauth.token`. */
  method: string
  account?: string | undefined
  place: FaultPlace
  /** Ids of what the call is about. */
  targets?: readonly string[] | undefined
  /** A listing that goes on where an earlier page ended. */
  isNextPage?: boolean
}

export type Refusal = {
  status: number
  reason?: string | undefined
  message?: string | undefined
  retryAfterSeconds?: number | undefined
}

/** What is to happen to one call. */
export type FaultPlan = {
  delayMs: number
  refuse?: Refusal
  reset?: 'before' | 'after'
  /** `ms` null: for as long as the caller waits. */
  stall?: { ms: number | null; at: 'start' | 'middle' }
  truncate?: { share: number; close: boolean }
  contentType?: string
  /** Done to the account before the call is worked on. */
  effects: FaultEffect[]
  /** Batch parts are answered in another order. */
  shuffle?: Random
  /** A page without items that has a next page. */
  emptyPage?: boolean
}

export type FaultProfiles = Readonly<Record<string, readonly FaultRule[]>>

export type FaultCounts = { rule: FaultRule; seen: number; struck: number }

type LiveRule = {
  rule: FaultRule
  random: Random
  seen: number
  struck: number
  left: number
  sinceMs: number
}

const RULES_MAX = 100
const POISON_MAX = 10_000

export class Faults {
  readonly #clock: Clock
  readonly #profiles: FaultProfiles
  #seed: number
  #profile = 'none'
  #rules: LiveRule[] = []
  #hasPartRules = false
  #rulesAdded = 0
  readonly #poison = new Map<string, PoisonMode>()
  #release = new AbortController()

  constructor(options: { seed?: number; clock?: Clock; profiles?: FaultProfiles } = {}) {
    this.#clock = options.clock ?? systemClock
    this.#profiles = options.profiles ?? { none: [] }
    this.#seed = options.seed ?? 1
  }

  /** Replaces profile, rules or poison by what is given; what is left out stays. */
  set(input: unknown): void {
    const parsed = faultsInput.safeParse(input)
    if (!parsed.success) throw wrongFaults(parsed.error)
    const { seed, profile, rules, poison } = parsed.data
    if (seed !== undefined) this.#seed = seed
    if (profile !== undefined || rules !== undefined) {
      const named = profile === undefined ? [] : this.#rulesOf(profile)
      this.#rules = []
      this.#rulesAdded = 0
      this.#profile = profile ?? 'none'
      for (const rule of [...named, ...(rules ?? [])]) this.#push(rule)
      this.#changed()
    }
    if (poison) {
      this.#poison.clear()
      for (const entry of poison) this.poison(entry)
    }
  }

  /** One more rule beside those that hold. */
  add(rule: FaultRule): void {
    const parsed = faultsInput.safeParse({ rules: [rule] })
    if (!parsed.success) throw wrongFaults(parsed.error)
    this.#push(parsed.data.rules![0]!)
    this.#changed()
  }

  clear(): void {
    this.set({ profile: 'none', rules: [], poison: [] })
  }

  /** Lets calls go on that a stall holds by now. For tests that do something while they are held. */
  release(): void {
    this.#release.abort()
    this.#release = new AbortController()
  }

  get released(): AbortSignal {
    return this.#release.signal
  }

  poison({ id, mode }: Poison): void {
    if (this.#poison.size >= POISON_MAX) throw new UsageError(`There are ${POISON_MAX} poison ids already.`)
    this.#poison.set(id, mode)
  }

  poisonOf(id: string): PoisonMode | undefined {
    return this.#poison.size === 0 ? undefined : this.#poison.get(id)
  }

  get profile(): string {
    return this.#profile
  }

  get hasPartRules(): boolean {
    return this.#hasPartRules
  }

  get poisoned(): Poison[] {
    return [...this.#poison].map(([id, mode]) => ({ id, mode }))
  }

  counts(): FaultCounts[] {
    return this.#rules.map(({ rule, seen, struck }) => ({ rule, seen, struck }))
  }

  /** Undefined where nothing is to happen, which is the ordinary case and costs nothing. */
  plan(call: FaultCall): FaultPlan | undefined {
    if (this.#rules.length === 0) return undefined
    let plan: FaultPlan | undefined
    for (const live of this.#rules) {
      if (!concerns(live.rule, call)) continue
      if (plan && isEnd(live.rule) && (plan.refuse || plan.reset || plan.stall)) continue
      if (!this.#strikes(live)) continue
      plan ??= { delayMs: 0, effects: [] }
      applyRule(plan, live)
    }
    return plan
  }

  #strikes(live: LiveRule): boolean {
    const { rule } = live
    live.seen += 1
    if (live.seen <= (rule.skip ?? 0)) return false
    if (rule.max !== undefined && live.struck >= rule.max) return false
    if (rule.window) {
      const sinceMs = this.#clock.monotonicMs() - live.sinceMs
      if (sinceMs % rule.window.everyMs >= rule.window.forMs) return false
    }
    if (live.left > 0) live.left -= 1
    else if (begins(live)) live.left = (rule.burst ?? 1) - 1
    else return false
    live.struck += 1
    return true
  }

  #push(rule: FaultRule): void {
    if (this.#rules.length >= RULES_MAX)
      throw new UsageError(`There can be ${RULES_MAX} fault rules at most.`)
    this.#rulesAdded += 1
    const random = seededRandom((this.#seed * 0x9e3779b1 + this.#rulesAdded * 0x85ebca6b) >>> 0)
    this.#rules.push({ rule, random, seen: 0, struck: 0, left: 0, sinceMs: this.#clock.monotonicMs() })
  }

  #rulesOf(profile: string): readonly FaultRule[] {
    const rules = Object.hasOwn(this.#profiles, profile) ? this.#profiles[profile] : undefined
    if (rules) return rules
    throw new UsageError(`There is no fault profile "${profile}".`, {
      hint: `There are ${Object.keys(this.#profiles).join(', ')}.`,
    })
  }

  #changed(): void {
    this.#hasPartRules = this.#rules.some(({ rule }) => rule.on !== undefined && rule.on !== 'request')
  }
}

function begins({ rule, random, seen }: LiveRule): boolean {
  if (rule.everyNth !== undefined) return (seen - (rule.skip ?? 0)) % rule.everyNth === 0
  if (rule.probability !== undefined) return random() < rule.probability
  return true
}

/** A rule that names no method leaves sign-in alone: `oauth.*` must be asked for. */
function concerns(rule: FaultRule, call: FaultCall): boolean {
  const place = rule.on ?? 'request'
  if (place !== 'any' && place !== call.place) return false
  if (rule.service !== undefined && rule.service !== call.service) return false
  if (rule.account !== undefined && rule.account !== call.account) return false
  if (rule.target !== undefined && !call.targets?.includes(rule.target)) return false
  if (rule.nextPage && !call.isNextPage) return false
  if (!rule.methods) return !call.method.startsWith('oauth.')
  return rule.methods.some((pattern) => matchesMethod(pattern, call.method))
}

function matchesMethod(pattern: string, method: string): boolean {
  if (pattern === '*' || pattern === method) return true
  return pattern.endsWith('*') && method.startsWith(pattern.slice(0, -1))
}

function isEnd({ do: what }: FaultRule): boolean {
  return what === 'throttle' || what === 'error' || what === 'reset' || what === 'stall'
}

function applyRule(plan: FaultPlan, { rule, random }: LiveRule): void {
  switch (rule.do) {
    case 'throttle': {
      const { status = 429, reason, retryAfterSeconds, message } = rule
      plan.refuse = { status, reason: reason ?? throttleReason(status), retryAfterSeconds, message }
      return
    }
    case 'error':
      plan.refuse = { status: rule.status ?? 503, reason: rule.reason, message: rule.message }
      return
    case 'reset':
      plan.reset = rule.when ?? 'before'
      return
    case 'stall':
      plan.stall = { ms: rule.ms ?? null, at: rule.at ?? 'start' }
      return
    case 'truncate':
      plan.truncate = { share: rule.share ?? random(), close: rule.close ?? true }
      return
    case 'content-type':
      plan.contentType = rule.type ?? 'text/html; charset=UTF-8'
      return
    case 'latency':
      plan.delayMs += drawLatency(rule.latency, random)
      return
    case 'shuffle-parts':
      plan.shuffle = random
      return
    case 'empty-page':
      plan.emptyPage = true
      return
    case 'mutate':
    case 'expire-access':
    case 'revoke-tokens':
    case 'expire-history':
      plan.effects.push(effectOf(rule, random))
  }
}

function effectOf(rule: FaultRule, random: Random): FaultEffect {
  if (rule.do === 'mutate') return { do: 'mutate', what: rule.what, count: rule.count ?? 1, random }
  return { do: rule.do as 'expire-access' | 'revoke-tokens' | 'expire-history' }
}

function throttleReason(status: number): string {
  return status === 403 ? 'userRateLimitExceeded' : 'rateLimitExceeded'
}

export function drawLatency(latency: Latency, random: Random): number {
  switch (latency.kind) {
    case 'fixed':
      return latency.ms
    case 'uniform':
      return latency.minMs + random() * (latency.maxMs - latency.minMs)
    case 'exponential':
      return Math.min(-Math.log(1 - random()) * latency.meanMs, latency.maxMs ?? latency.meanMs * 20)
    case 'lognormal': {
      // Box-Muller: two uniform draws make one normal one.
      const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
      const ms = latency.medianMs * Math.exp(latency.sigma * normal)
      return Math.min(ms, latency.maxMs ?? latency.medianMs * 50)
    }
  }
}

function wrongFaults(error: { issues: readonly { path: PropertyKey[]; message: string }[] }): UsageError {
  const [first] = error.issues
  const where = first?.path.map(String).join('.') || 'the input'
  return new UsageError(`These faults make no sense at ${where}: ${first?.message ?? 'unknown'}`, {
    hint: 'The rules are described in src/sim/README.md.',
  })
}
