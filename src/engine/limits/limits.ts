/**
 * The limits of one process: its budgets, its bandwidth, and the gates by which the dispatcher learns
 * whether work under a budget may start. The shared part of each lives in the store.
 */
import type { Clock } from '../../base/clock.ts'
import { UsageError } from '../../base/errors.ts'
import type { Random } from '../../base/random.ts'
import type { BudgetStore } from '../../ledger/contract-budgets.ts'
import { Bandwidth, type BandwidthSnapshot, type BandwidthSpec } from './bandwidth.ts'
import { Budget, type BudgetEvent, type BudgetSnapshot } from './budget.ts'
import type { Gate } from './gate.ts'
import { type BudgetSpec, checkSpec } from './spec.ts'
import type { OffsetMinutes } from './timetable.ts'

export type LimitsOptions = {
  store: BudgetStore
  clock: Clock
  random: Random
  onEvent?: (event: BudgetEvent) => void
  /** The name of this process among those that share the store; one is made up if left out. */
  member?: string
  /** The lease of this process, by which it holds its workers; 0 without one. */
  owner?: () => number
  /** Local time for bandwidth timetables; UTC if left out. */
  offsetMinutes?: OffsetMinutes
}

export type LimitsSnapshot = { budgets: BudgetSnapshot[]; bandwidth: Record<string, BandwidthSnapshot> }

export type Limits = {
  /** The budget of that name; a spec that differs from the last one takes effect at once. */
  budget(name: string, spec: BudgetSpec): Budget
  bandwidth(spec: BandwidthSpec, name?: string): Bandwidth
  gate(name: string): Gate
  /** Whether a worker under the budget may start now: not paused, and not all workers busy. */
  canStart(name: string): boolean
  /** Calls `fn` when the budget allows a start again after `canStart` said no. Returns how to stop that. */
  onOpen(name: string, fn: () => void): () => void
  /** Counts a worker under the budget; the result ends it. */
  startWorker(name: string): () => void
  snapshot(): LimitsSnapshot
  /** Gives unused units back; those who wait are rejected. */
  close(): Promise<void>
}

export function createLimits(options: LimitsOptions): Limits {
  const { store, clock, random, onEvent } = options
  const member = options.member ?? Math.floor(random() * 2 ** 48).toString(36)
  const budgets = new Map<string, Budget>()
  const bandwidths = new Map<string, Bandwidth>()
  const shared = { store, clock, random, member, owner: options.owner }

  const known = (name: string): Budget => {
    const budget = budgets.get(name)
    if (budget) return budget
    throw new UsageError(`There is no budget "${name}".`, {
      hint: `Define it first; there are: ${[...budgets.keys()].join(', ') || 'none'}.`,
      code: 'budget-unknown',
    })
  }

  return {
    budget(name, spec) {
      checkSpec(name, spec)
      const existing = budgets.get(name)
      if (existing) {
        void existing.setSpec(spec)
        return existing
      }
      const budget = new Budget({ ...shared, name, spec, onEvent })
      budgets.set(name, budget)
      return budget
    },
    bandwidth(spec, name = 'bandwidth') {
      const existing = bandwidths.get(name)
      if (existing) {
        existing.setSpec(spec)
        return existing
      }
      const bandwidth = new Bandwidth({
        ...shared,
        name,
        spec,
        offsetMinutes: options.offsetMinutes ?? (() => 0),
        onError: (error) => onEvent?.({ type: 'error', budget: name, error }),
      })
      bandwidths.set(name, bandwidth)
      return bandwidth
    },
    gate: (name) => known(name).gate,
    canStart: (name) => known(name).gate.canStart(),
    onOpen: (name, fn) => known(name).gate.onOpen(fn),
    startWorker: (name) => known(name).startWorker(),
    snapshot: () => ({
      budgets: [...budgets.values()].map((budget) => budget.snapshot()),
      bandwidth: Object.fromEntries([...bandwidths].map(([name, bandwidth]) => [name, bandwidth.snapshot()])),
    }),
    async close() {
      await Promise.all([...budgets.values(), ...bandwidths.values()].map((limit) => limit.close()))
    },
  }
}
