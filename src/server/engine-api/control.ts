/** Pausing and going on: a stream, a kind of jobs, or everything. */
import { z } from 'zod'
import { nameText, streamId } from '../../app/inputs.ts'
import { notFound, ProblemError } from '../../app/problem.ts'
import { route } from '../../app/route.ts'
import { already, done, doneSchema } from '../../app/schemas.ts'
import type { Services } from '../../app/services.ts'
import { isAutomatic, type PauseRow, type PauseScope } from '../../ledger/control.ts'

const REASON_DEFAULT = 'paused by hand'

const scopeBody = {
  scope: z.enum(['all', 'stream', 'kind']).describe('Everything, one stream, or one kind of jobs'),
  target: z
    .string()
    .max(500)
    .optional()
    .describe('The name of the stream or of the kind; none for everything'),
}

const reasonText = z.string().trim().max(500).optional().describe('Shown wherever the pause is shown')

const pause = route('POST /api/pause', {
  tag: 'control',
  summary: 'Starts no more jobs of a stream, of a kind, or at all; those that run end normally',
  description: '`already`: it was paused before, and its reason stays. 404: no such stream or kind.',
  body: z.strictObject({ ...scopeBody, reason: reasonText }),
  errors: [404],
  answer: doneSchema,
  handle: async ({ body }, services) => {
    const wanted = scopeOf(body)
    const before = await pauseOf(services, wanted)
    // One that ends by itself gives way to this one.
    if (before && !isAutomatic(before.code)) {
      return already(`${subject(wanted)} is paused already: ${before.reason}`)
    }
    if (!before) await checkKnown(services, wanted)
    await services.engine.pause(wanted.scope, wanted.target, body.reason || REASON_DEFAULT)
    return done(`${subject(wanted)} is paused.`)
  },
})

const resume = route('POST /api/resume', {
  tag: 'control',
  summary: 'Goes on with what was paused',
  description: '`already`: it was not paused.',
  errors: [404],
  body: z.strictObject(scopeBody),
  answer: doneSchema,
  handle: async ({ body }, services) => {
    const wanted = scopeOf(body)
    if (!(await pauseOf(services, wanted))) {
      await checkKnown(services, wanted)
      return already(`${subject(wanted)} is not paused.`)
    }
    await services.engine.resume(wanted.scope, wanted.target)
    return done(`${subject(wanted)} goes on.`)
  },
})

type Scope = { scope: PauseScope; target: string }

function scopeOf({ scope, target = '' }: { scope: PauseScope; target?: string | undefined }): Scope {
  if (scope === 'all' && target !== '') throw wrong('Everything has no target: leave it out.')
  if (scope !== 'all' && !nameText.safeParse(target).success)
    throw wrong(`Which ${scope}? Name it as target.`)
  return { scope, target }
}

function wrong(detail: string): ProblemError {
  return new ProblemError(400, detail, { code: 'invalid-request' })
}

async function pauseOf({ ledger }: Services, { scope, target }: Scope): Promise<PauseRow | undefined> {
  return (await ledger.pauses()).find((row) => row.scope === scope && row.target === target)
}

async function checkKnown(services: Services, { scope, target }: Scope): Promise<void> {
  if (scope === 'stream') await streamId(services, target)
  if (scope !== 'kind' || services.engine.kinds.find(target)) return
  // Of another process, or of an app that is no longer there.
  const { ledger } = services
  const kinds = [...(await ledger.tallies()), ...(await ledger.schedules())].map(({ kind }) => kind)
  if (!kinds.includes(target)) throw notFound(`No job is of the kind ${target}.`, { code: 'kind-unknown' })
}

function subject({ scope, target }: Scope): string {
  return scope === 'all' ? 'Everything' : scope === 'stream' ? `The stream ${target}` : `The kind ${target}`
}

export const controlRoutes = [pause, resume]
