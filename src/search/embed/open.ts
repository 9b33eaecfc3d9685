/** Which embedder the settings ask for, and what its calls may cost. */
import type { Clock } from '../../base/clock.ts'
import type { Budget } from '../../engine/limits/budget.ts'
import type { BudgetSpec } from '../../engine/limits/spec.ts'
import { openBuiltin } from './builtin.ts'
import type { Embedder } from './embedder.ts'
import { type HttpEmbedderSettings, openHttpEmbedder } from './http-embedder.ts'

export type EmbedderSettings =
  | { kind: 'builtin' /** Threads that calculate. */; threads: number }
  | HttpEmbedderSettings
  | { kind: 'off' }

export type EmbedderTools = {
  fetch: typeof fetch
  clock: Clock
  /** What calls may cost, in tokens: see `priceBudget`. Without one nothing is held back. */
  budget?: Budget
}

/** Undefined where search is by words alone. */
export function openEmbedder(settings: EmbedderSettings, tools: EmbedderTools): Embedder | undefined {
  switch (settings.kind) {
    case 'builtin':
      return openBuiltin(settings, tools)
    case 'openai':
    case 'ollama':
      return openHttpEmbedder(settings, tools)
    case 'off':
      return undefined
  }
}

const DAY_S = 24 * 60 * 60
/** Of the day's money, what may be spent at once after quiet: a first hour of work does not wait. */
const BURST_MS = 60 * 60_000

export type Price = {
  /** Money for a million tokens, in any currency. */
  pricePerMillion: number
  /** Money for a day, in the same one. */
  budgetPerDay: number
}

/** A day's money as a steady flow of tokens; undefined where nothing is paid or nothing limits it. */
export function priceBudget({ pricePerMillion, budgetPerDay }: Price): BudgetSpec | undefined {
  if (!(pricePerMillion > 0 && budgetPerDay > 0)) return undefined
  const rate = ((budgetPerDay / pricePerMillion) * 1e6) / DAY_S
  return { rate, rateMin: rate, rateMax: rate, burstMs: BURST_MS }
}
