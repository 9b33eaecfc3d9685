/** One archive run: looking at it, and what can be done with it. */
import { z } from 'zod'
import { idParamsOf } from '../../../app/inputs.ts'
import { conflict } from '../../../app/problem.ts'
import { already, done, doneSchema } from '../../../app/schemas.ts'
import { formatCount } from '../../../base/format.ts'
import { plural } from '../../../base/wording.ts'
import { checkConfirmed, confirmText, prepareAction } from './clean-up.ts'
import { canUndo, confirmationOf, runView } from './clean-up-view.ts'
import { route } from './route.ts'
import { archiveRunSchema } from './schemas.ts'

const runParams = idParamsOf('run')
const showRun = route('GET /api/mail/archive/runs/{id}', {
  tag: 'archive',
  summary: 'An archive run: what it has done, what it refused and why',
  params: runParams,
  answer: archiveRunSchema,
  handle: async ({ params: { id } }, { mail: { cleanUpRuns } }) =>
    runView(cleanUpRuns, await cleanUpRuns.get(id)),
})

const undo = route('POST /api/mail/archive/runs/{id}/undo', {
  tag: 'archive',
  params: runParams,
  summary: 'Takes back what a run has done; what it has not done yet is left',
  description: '`already`: it is undone or being undone, or has done nothing that could be taken back.',
  errors: [409, 422],
  answer: doneSchema,
  handle: async ({ params: { id } }, services) => {
    const { cleanUpRuns } = services.mail
    const run = await cleanUpRuns.get(id)
    if (run.undo === 'undoing') {
      return already(`Run ${id} is being undone already.`)
    }
    if (!canUndo(run, await (await cleanUpRuns.journal()).tallies(id))) {
      const why = run.undo === 'undone' ? 'is undone already' : 'has done nothing that could be undone'
      return already(`Run ${id} ${why}.`)
    }
    const action = run.action === 'delete' ? 'insert' : run.action
    await prepareAction(services, { account: run.account, action })
    await cleanUpRuns.undo(id)
    const messages = `${formatCount(run.done)} ${plural(run.done, 'message')}`
    // Gmail takes no date beside the bytes: people are told which of the two changes.
    const how =
      run.action === 'delete'
        ? ' They are inserted again under new ids, with their bytes as they are: Gmail dates them by their Date header.'
        : ''
    return done(`Run ${id} is being undone: ${messages}.${how}`)
  },
})

const resume = route('POST /api/mail/archive/runs/{id}/resume', {
  tag: 'archive',
  params: runParams,
  summary: 'Goes on with a run; one that deletes and waits needs the words of its `confirm`',
  errors: [409, 422],
  body: z.strictObject({ confirm: confirmText }),
  answer: doneSchema,
  handle: async ({ params: { id }, body: { confirm } }, services) => {
    const { cleanUpRuns } = services.mail
    const run = await cleanUpRuns.get(id)
    if (run.state === 'done' || run.state === 'abandoned') {
      throw conflict(`Run ${id} is ${run.state}: there is nothing to resume.`, { code: 'run-settled' })
    }
    await prepareAction(services, run)
    if (run.state === 'planned') {
      if (run.action === 'delete') checkConfirmed(confirm, confirmationOf(run))
      await cleanUpRuns.approve(id)
    } else await cleanUpRuns.resume(id)
    return done(`Run ${id} goes on.`)
  },
})

const halt = route('POST /api/mail/archive/runs/{id}/halt', {
  tag: 'archive',
  params: runParams,
  summary: 'Stops a run until somebody resumes it',
  answer: doneSchema,
  handle: async ({ params: { id } }, { mail: { cleanUpRuns } }) => {
    const run = await cleanUpRuns.get(id)
    const isActive = run.state === 'acting' || (run.state === 'planning' && run.approved)
    if (!isActive) return already(`Run ${id} is ${run.state}; nothing of it goes on.`)
    await cleanUpRuns.halt(id)
    return done(`Run ${id} stops; what it is doing this moment is finished.`)
  },
})

const abandon = route('POST /api/mail/archive/runs/{id}/abandon', {
  tag: 'archive',
  params: runParams,
  summary: 'Gives a run up: what is done stays done, the rest is left alone',
  answer: doneSchema,
  handle: async ({ params: { id } }, { mail: { cleanUpRuns } }) => {
    const didAbandon = await cleanUpRuns.abandon(id)
    if (!didAbandon) return already(`Run ${id} was over already.`)
    const { done: n } = await cleanUpRuns.get(id)
    const kept = `${formatCount(n)} of its messages ${plural(n, 'is', 'are')} done`
    return done(`Run ${id} is given up. ${kept}.`)
  },
})

export const archiveRunRoutes = [showRun, undo, resume, halt, abandon]
