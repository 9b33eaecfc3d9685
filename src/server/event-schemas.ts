/** The live events as the document describes them: `event:` is the name here, `data:` is JSON of this form. */
import { z } from 'zod'
import { pauseCode } from '../app/schemas.ts'

const ms = z.number().int().describe('Milliseconds since the epoch')
const name = z.string().nullable()

const hello = z
  .object({
    epoch: z.string().describe('Changes with every start of the server: ids of another epoch mean nothing'),
    resumed: z.boolean().describe('True: all that came after Last-Event-ID follows. False: load anew'),
  })
  .describe('The first event of every connection')

const job = z
  .object({
    what: z.enum(['retried', 'failed', 'split', 'stalled', 'lost']),
    id: z.number().int(),
    kind: z.string(),
    stream: name,
    attempt: z.number().int(),
    ms: z.number().optional().describe('How long the attempt took'),
    error: z.object({ kind: z.string(), code: z.string().optional(), message: z.string() }).optional(),
    detail: z.string().optional(),
    at: ms,
  })
  .describe('A job in trouble; those that go well are not told one by one')

const mark = z
  .object({ stream: z.string(), mark: z.string(), position: z.number(), at: ms })
  .describe('A stream is settled up to here now')

const bad = z
  .object({ stream: name, kind: z.string(), item: z.string(), reason: z.string(), at: ms })
  .describe('An item would not work')

const alert = z
  .object({
    what: z.enum(['raised', 'cleared']),
    condition: z.string(),
    target: z.string(),
    severity: z.enum(['warning', 'critical']),
    text: z.string(),
    at: ms,
  })
  .describe('Something needs somebody, or no longer does')

const pause = z
  .object({
    what: z.enum(['paused', 'resumed']),
    scope: z.enum(['all', 'stream', 'kind']),
    target: z.string(),
    code: pauseCode,
    reason: z.string(),
    at: ms,
  })
  .describe('Work was paused, or goes on')

const budget = z
  .object({
    what: z.enum(['throttled', 'rate']),
    name: z.string(),
    rate: z.number().nullable(),
    pausedUntil: ms.nullable(),
    at: ms,
  })
  .describe('A service asked for less, or a rate was changed')

const skipped = z
  .record(z.string(), z.number().int().min(1))
  .describe('How many events of each type were left out within the last second, since there were too many')

const news = z
  .object({})
  .describe('To members: something of theirs has changed; ask for what is shown. Admins are told what it was')

export const eventSchemas = {
  hello,
  news,
  job,
  mark,
  bad,
  alert,
  pause,
  budget,
  skipped,
} as const satisfies Record<string, z.ZodType>
