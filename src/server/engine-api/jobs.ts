/** Jobs: looking for them, one with everything about it, trying again, canceling. */
import { z } from 'zod'
import { idNumber, idParamsOf, nameText, readCursor } from '../../app/inputs.ts'
import { searchJobs } from '../../app/job-search.ts'
import { conflict, notFound } from '../../app/problem.ts'
import { route } from '../../app/route.ts'
import {
  already,
  cursorQuery,
  done,
  doneSchema,
  jobDetailSchema,
  jobSchema,
  pageOf,
} from '../../app/schemas.ts'
import type { Services } from '../../app/services.ts'
import { workTexts } from '../../app/state-views.ts'
import { UsageError } from '../../base/errors.ts'
import { formatCount } from '../../base/format.ts'
import { listEngines } from '../../engine/observe/engines.ts'
import type { JobDetail as JobSight } from '../../ledger/queries.ts'
import { JOB_STATES } from '../../ledger/states.ts'
import { jobDetailView, jobView } from './job-view.ts'

const CHILDREN_MAX = 100
const OLDER_MS_MAX = 1e14
const jobParams = idParamsOf('job')

const listJobs = route('GET /api/jobs', {
  summary: 'Jobs, newest first',
  description:
    'Filters are combined. A page may hold fewer than asked for, or none at all where many jobs had to be passed ' +
    'over; there are more as long as it has a `next`.',
  query: z.object({
    ...cursorQuery,
    state: z.enum(JOB_STATES).optional().describe('Only jobs in this state'),
    kind: nameText.optional().describe('Only jobs of this kind, such as `mail.fetch`'),
    stream: nameText.optional().describe('Only jobs of the stream with this name'),
    parent: idNumber.optional().describe('Only jobs that came from the job with this number'),
    segment: idNumber.optional().describe('Only jobs of the segment with this number'),
    olderThanMs: z.coerce
      .number()
      .int()
      .min(0)
      .max(OLDER_MS_MAX)
      .optional()
      .describe('Only jobs that were created at least so long ago'),
  }),
  answer: pageOf(jobSchema),
  handle: async ({ query }, services) => {
    const { state, kind, stream, parent, segment, olderThanMs, limit } = query
    const filter = {
      state,
      kind,
      stream,
      parentId: parent,
      segmentId: segment,
      before: readCursor(query.cursor),
      createdBefore: olderThanMs === undefined ? undefined : services.ledger.now() - olderThanMs,
    }
    const { rows, next } = await searchJobs(services, filter, limit)
    return {
      items: rows.map((row) => jobView(row, workTexts(services.engine))),
      next: next === null ? null : String(next),
    }
  },
})

const showJob = route('GET /api/jobs/{id}', {
  summary: 'One job: why it waits, what failed, what it depends on and what came from it',
  params: jobParams,
  answer: jobDetailSchema,
  handle: async ({ params: { id } }, services) => {
    const { ledger } = services
    return jobDetailView({
      sight: await jobOf(services, id),
      children: await ledger.jobs({ parentId: id, limit: CHILDREN_MAX }),
      engines: await listEngines(ledger),
      now: ledger.now(),
      texts: workTexts(services.engine),
      kinds: services.engine.kinds,
    })
  },
})

const retryJob = route('POST /api/jobs/{id}/retry', {
  summary: 'Starts a failed or canceled job over, with all its tries',
  description:
    'Jobs that ended because of it start over as well. `already`: it waits or is being worked on. 409: it is done.',
  errors: [409],
  params: jobParams,
  answer: doneSchema,
  handle: async ({ params: { id } }, services) => {
    const { job } = await jobOf(services, id)
    if (job.state === 'pending' || job.state === 'claimed') {
      const doing = job.state === 'pending' ? 'is waiting' : 'is being worked on'
      return already(`Job #${id} ${doing} already.`)
    }
    const redone = await steer(() => services.engine.retry(id))
    const also = redone > 1 ? `, and ${formatCount(redone - 1)} that ended because of it` : ''
    return done(`Job #${id} is tried again${also}.`)
  },
})

const cancelJob = route('POST /api/jobs/{id}/cancel', {
  summary: 'Cancels a job and what came from it; one that runs is asked to stop',
  description: '`already`: it was canceled, or asked to stop, before. 409: it has ended in another way.',
  errors: [409],
  params: jobParams,
  answer: doneSchema,
  handle: async ({ params: { id } }, services) => {
    const { job } = await jobOf(services, id)
    if (job.state === 'claimed' && job.cancel_requested === 1) {
      return already(`Job #${id} has been asked to stop already.`)
    }
    const outcome = await steer(() => services.engine.cancel(id))
    if (outcome === 'already') return { outcome, text: `Job #${id} is canceled already.` }
    const text = outcome === 'canceled' ? `Job #${id} is canceled.` : `Job #${id} has been asked to stop.`
    return done(text)
  },
})

async function jobOf({ ledger }: Services, id: number): Promise<JobSight> {
  const sight = await ledger.job(id)
  if (sight) return sight
  throw notFound(`There is no job #${id}.`, { code: 'job-unknown', hint: 'It may have been pruned.' })
}

/** What the ledger refuses is not a wrong request: the job is not in a state for it. */
async function steer<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (thrown) {
    if (!(thrown instanceof UsageError)) throw thrown
    throw conflict(thrown.message, {
      code: 'job-state',
      cause: thrown,
      ...(thrown.hint === undefined ? {} : { hint: thrown.hint }),
    })
  }
}

export const jobRoutes = [listJobs, showJob, retryJob, cancelJob]
