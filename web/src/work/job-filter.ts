/** The filter of the job explorer, as it stands in the address. */
import type { JobFilter } from '../api.ts'

export const STATE_OPTIONS = [
  { value: '', text: 'Any state' },
  { value: 'pending', text: 'Waiting' },
  { value: 'claimed', text: 'Running' },
  { value: 'done', text: 'Done' },
  { value: 'failed', text: 'Failed' },
  { value: 'canceled', text: 'Cancelled' },
  { value: 'skipped', text: 'Skipped' },
] as const

export const AGE_OPTIONS = [
  { value: '', text: 'Any age' },
  { value: '1m', text: 'Older than a minute' },
  { value: '10m', text: 'Older than 10 minutes' },
  { value: '1h', text: 'Older than an hour' },
  { value: '1d', text: 'Older than a day' },
  { value: '7d', text: 'Older than a week' },
  { value: '30d', text: 'Older than 30 days' },
] as const

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
