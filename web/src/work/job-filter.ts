/** The filter of the job explorer, as it stands in the address. */
import type { JobFilter } from '../api.ts'

export type FilterOption = { value: string; text: string }

export const STATE_OPTIONS = optionsOf({
  '': 'Any state',
  pending: 'Waiting',
  claimed: 'Running',
  done: 'Done',
  failed: 'Failed',
  canceled: 'Cancelled',
  skipped: 'Skipped',
})

export const AGE_OPTIONS = optionsOf({
  '': 'Any age',
  '1m': 'Older than a minute',
  '10m': 'Older than 10 minutes',
  '1h': 'Older than an hour',
  '1d': 'Older than a day',
  '7d': 'Older than a week',
  '30d': 'Older than 30 days',
})

const UNIT_MS: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000 }

export const PARAM_NAMES = ['state', 'kind', 'stream', 'age', 'parent', 'segment'] as const
export type FilterParams = Record<(typeof PARAM_NAMES)[number], string>

/** What does not fit is left out: a link that somebody cut short still shows jobs. */
export function filterOf(params: FilterParams): JobFilter {
  const filter: JobFilter = {}
  if (STATE_OPTIONS.some(({ value }) => value !== '' && value === params.state)) filter.state = params.state
  if (params.kind !== '') filter.kind = params.kind
  if (params.stream !== '') filter.stream = params.stream
  const [, amount, unit] = /^(\d{1,4})([mhd])$/.exec(params.age) ?? []
  if (amount && unit) filter.olderThanMs = Number(amount) * UNIT_MS[unit]!
  if (isId(params.parent)) filter.parent = Number(params.parent)
  if (isId(params.segment)) filter.segment = Number(params.segment)
  return filter
}

const isId = (text: string): boolean => /^[1-9]\d{0,14}$/.test(text)

function optionsOf(texts: Record<string, string>): FilterOption[] {
  return Object.entries(texts).map(([value, text]) => ({ value, text }))
}
