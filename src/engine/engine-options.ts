/** The settings of an engine, checked before it is made: with a wrong one it would stand still without a word. */
import { checkWhole } from '../ledger/input-check.ts'
import type { EngineOptions } from './engine.ts'
import { checkFields, type Fields } from './fields.ts'

const FIELDS: Fields<EngineOptions> = {
  ...{ ledger: true, jobs: true, workers: true, window: true, leaseMs: true, bulkBytes: true, budgets: true },
  ...{ offsetMinutes: true, name: true, clock: true, random: true, housekeeping: true, point: true },
}

export function checkEngineOptions(options: EngineOptions): void {
  checkFields('The options of an engine', options, FIELDS)
  checkEngineSize(options)
}

export function checkEngineSize(options: Partial<EngineOptions>): void {
  for (const name of ['workers', 'window', 'leaseMs', 'bulkBytes'] as const) {
    const value = options[name]
    if (value !== undefined) checkWhole(`${name} of an engine`, value, 1)
  }
}
