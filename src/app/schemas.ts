/** What the API says about streams, jobs and everything else that the engine keeps. Pages import the types. */
import { z } from 'zod'

/** Milliseconds since the epoch. */
const ms = z.number().int()
const count = z.number().int().min(0)
const lane = z.enum(['interactive', 'bulk'])
const jobState = z.enum(['pending', 'claimed', 'done', 'failed', 'canceled', 'skipped'])
const stage = z.enum(['ready', 'deps', 'time', 'claimed', 'done', 'failed', 'canceled', 'skipped'])
const counts = { listed: count, stored: count, gone: count, skipped: count, bad: count }

export const cursorQuery = {
  limit: z.coerce.number().int().min(1).max(500).default(50).describe('How many at most'),
  cursor: z
    .string()
    .max(2_000)
    .optional()
    .describe('The `next` of the page before; the first page without it'),
}

export const pageOf = <T extends z.ZodType>(item: T) =>
  z.object({
    items: z.array(item),
    next: z.string().nullable().describe('The `cursor` of the next page; null where there is none'),
  })

export const pauseCode = z.string().describe('Why, for programs: `by-hand`, `sign-in`, …')

export const streamSchema = z.object({
  name: z.string(),
  mark: z.string().nullable().describe('Settled up to here, as the stream writes it: a time for mail'),
  markAt: z.number(),
  markMovedAt: ms.nullable(),
  cursor: z.string().nullable(),
  paused: z.boolean(),
  pauseCode: pauseCode.nullable(),
  pauseReason: z.string().nullable(),
  segments: count,
  settledSegments: count,
  ...counts,
  onTheirWay: count.describe('Listed, and neither stored, gone, skipped nor bad yet'),
  whole: count.describe('How many items there will be when all are listed, as far as anybody knows'),
  unbalanced: count,
  rate: z.number().describe('Items settled a second, over the last minute'),
  etaMs: z.number().nullable().describe('How long the rest will take at that pace; null if unknown'),
  health: z.enum(['ok', 'working', 'paused', 'trouble']),
  summary: z.string().describe('One sentence for people: what it is doing or what it needs'),
})
export type StreamView = z.output<typeof streamSchema>

export const segmentSchema = z.object({
  id: z.number().int(),
  from: z.number(),
  to: z.number(),
  state: z.enum(['open', 'sealed', 'settled']),
  label: z.string().nullable(),
  openJobs: count,
  ...counts,
})
export type SegmentView = z.output<typeof segmentSchema>

/** The whole frontier for a picture, in at most `cells` cells: many segments share a cell when there are many. */
export const frontierSchema = z.object({
  stream: z.string(),
  from: z.number(),
  to: z.number(),
  markAt: z.number(),
  segments: count,
  cells: z.array(
    z.object({
      from: z.number(),
      to: z.number(),
      segments: count,
      settled: count,
      state: z
        .enum(['settled', 'active', 'waiting'])
        .describe('`settled`: all of it. `waiting`: nothing in it has begun. `active`: anything in between'),
      ...counts,
    }),
  ),
})
export type FrontierView = z.output<typeof frontierSchema>

const what = z.string().describe('What it does, for people: `Fetching 25 messages`')

export const jobSchema = z.object({
  id: z.number().int(),
  kind: z.string(),
  what,
  stream: z.string().nullable(),
  segment: z.number().int().nullable(),
  parent: z.number().int().nullable(),
  key: z.string().nullable(),
  lane,
  priority: z.number().int(),
  state: jobState,
  stage,
  runAt: ms.nullable(),
  items: count,
  attempt: count,
  failures: count,
  owner: z.number().int().nullable(),
  progress: z
    .object({
      done: z.number().optional(),
      total: z.number().optional(),
      unit: z.string().optional(),
      label: z.string().optional(),
    })
    .nullable(),
  error: z.string().nullable(),
  note: z.string().nullable(),
  noteCode: z.string().nullable().describe('What the note says, for programs'),
  createdAt: ms,
  claimedAt: ms.nullable(),
  settledAt: ms.nullable(),
})
export type JobView = z.output<typeof jobSchema>

const jobLink = jobSchema.pick({ id: true, kind: true, what: true, state: true, stage: true, error: true })
export const jobDetailSchema = jobSchema.extend({
  payload: z.unknown(),
  checkpoint: z.unknown(),
  explanation: z.array(z.string()).describe('Sentences: why it waits, what failed, what becomes of it'),
  errors: z
    .array(
      z.object({
        attempt: count,
        at: ms,
        kind: z.string(),
        message: z.string(),
        code: z.string().nullable().describe('A stable name for programs'),
      }),
    )
    .describe('Failed attempts, the last one first'),
  lease: z
    .object({ worker: z.number().int(), name: z.string(), host: z.string(), until: ms, alive: z.boolean() })
    .nullable()
    .describe('Who holds it; null unless it is claimed'),
  dependsOn: z.array(jobLink),
  dependents: z.array(jobLink),
  children: z.array(jobLink),
  canRetry: z.boolean(),
  canCancel: z.boolean(),
})
export type JobDetail = z.output<typeof jobDetailSchema>

export const badSchema = z.object({
  id: z.number().int(),
  stream: z.string().nullable(),
  kind: z.string(),
  item: z.string(),
  reason: z.string(),
  errorKind: z.string(),
  firstSeen: ms,
  lastTried: ms,
  tries: count,
})
export type BadView = z.output<typeof badSchema>

export const alertSchema = z.object({
  condition: z.string(),
  target: z.string(),
  severity: z.enum(['warning', 'critical']),
  text: z.string(),
  since: ms,
  last: ms,
  count,
})
export type AlertView = z.output<typeof alertSchema>

export const workerSchema = z.object({
  id: z.number().int(),
  name: z.string(),
  host: z.string(),
  pid: z.number().int(),
  startedAt: ms,
  heartbeatAt: ms,
  leaseUntil: ms,
  isHere: z.boolean(),
  alive: z.boolean(),
})
export type WorkerView = z.output<typeof workerSchema>

export const runningSchema = z.object({
  id: z.number().int(),
  kind: z.string(),
  what,
  stream: z.string().nullable(),
  lane,
  label: z.string().nullable(),
  done: z.number(),
  total: z.number().nullable(),
  unit: z.enum(['bytes', 'items']),
  startedAt: ms,
})
export type RunningView = z.output<typeof runningSchema>

export const budgetSchema = z.object({
  name: z.string(),
  rate: z.number(),
  ceiling: z.number().nullable(),
  pausedUntil: ms.nullable(),
  workers: count,
  running: count,
  waiting: count,
  throttles: count,
  p50Ms: z.number().nullable(),
  p95Ms: z.number().nullable(),
})
export type BudgetView = z.output<typeof budgetSchema>

export const scheduleSchema = z.object({
  name: z.string(),
  kind: z.string(),
  spec: z.string(),
  stream: z.string().nullable(),
  nextAt: ms,
  lastAt: ms.nullable(),
})
export type ScheduleView = z.output<typeof scheduleSchema>

/** Everything that the overview and the header show, at once; also sent live as the event `snapshot`. */
export const overviewSchema = z.object({
  at: ms,
  version: z.string(),
  role: z.enum(['all', 'web', 'worker']),
  /** The one sentence: "Copying all mail: 3 h left", "All is settled", "ann@example.com must sign in again". */
  verdict: z.object({ state: z.enum(['settled', 'working', 'attention']), text: z.string() }),
  streams: z.array(streamSchema),
  jobs: z.object({
    ready: count,
    deps: count,
    time: count,
    claimed: count,
    done: count,
    failed: count,
    canceled: count,
    skipped: count,
  }),
  badItems: count,
  alerts: z.array(alertSchema),
  workers: z.array(workerSchema),
  running: z.array(runningSchema),
  /** "fetching 300 messages, 12 waiting" */
  live: z.string(),
  budgets: z.array(budgetSchema),
  pauses: z.array(
    z.object({
      scope: z.enum(['all', 'stream', 'kind']),
      target: z.string(),
      code: pauseCode,
      reason: z.string(),
      at: ms,
    }),
  ),
})
export type Overview = z.output<typeof overviewSchema>

export const seriesSchema = z.object({
  stepS: z.number(),
  points: z.array(
    z.object({
      at: z.number(),
      rate: z.number(),
      running: z.number(),
      waiting: z.number(),
      budgets: z.record(
        z.string(),
        z.object({ allowed: z.number(), used: z.number(), throttled: z.number(), workers: z.number() }),
      ),
    }),
  ),
})
export type SeriesView = z.output<typeof seriesSchema>

export const settingSchema = z.object({
  key: z.string().describe('Such as `mail.poll_minutes`'),
  value: z.string().describe('As it is printed: in its unit, secrets hidden'),
  origin: z.string().describe('`default`, a file and line, or the variable or flag that set it'),
  purpose: z.string().nullable(),
  allowed: z.string().describe('The end of the sentence "it must be …"'),
  change: z
    .enum(['here', 'set-elsewhere', 'no'])
    .describe(
      'Whether it can be changed through this API; `set-elsewhere`: a variable or a flag wins over the file',
    ),
})
export type SettingView = z.output<typeof settingSchema>

export const doneSchema = z.object({
  text: z.string().describe('What happened, in a sentence'),
  outcome: z.enum(['done', 'already']).describe('`already`: it was so before, which is no error'),
})
export type DoneView = z.output<typeof doneSchema>

export const done = (text: string): DoneView => ({ outcome: 'done', text })
export const already = (text: string): DoneView => ({ outcome: 'already', text })
