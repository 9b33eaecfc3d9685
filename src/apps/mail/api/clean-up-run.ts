/** One archive run: looking at it, and what can be done with it. */
import { z } from 'zod'
import { idParamsOf } from '../../../app/inputs.ts'
import { conflict } from '../../../app/problem.ts'
import { doneSchema } from '../../../app/schemas.ts'
import { formatCount } from '../../../base/format.ts'
import { plural } from '../../../base/wording.ts'
import { checkConfirmed, confirmText, prepareAction } from './clean-up.ts'
import { canUndo, confirmationOf, runView } from './clean-up-view.ts'
import { defineRoute } from './route.ts'
import { archiveRunSchema } from './schemas.ts'

const runParams = idParamsOf('run')
const about = { method: 'post', tag: 'archive', access: 'write', params: runParams } as const

const showRun = defineRoute(
  {
    ...{ method: 'get', path: '/api/mail/archive/runs/{id}', tag: 'archive', access: 'read' },
    summary: 'An archive run: what it has done, what it refused and why',
    params: runParams,
    answer: archiveRunSchema,
  },
  async ({ params: { id } }, { mail: { archiveRuns } }) => runView(archiveRuns, await archiveRuns.get(id)),
)

const undo = defineRoute(
  {
    ...{ ...about, path: '/api/mail/archive/runs/{id}/undo' },
    summary: 'Takes back what a run has done; what it has not done yet is left',
    description: '`already`: it is undone or being undone, or has done nothing that could be taken back.',
    errors: [409, 422],
    answer: doneSchema,
  },
  async ({ params: { id } }, services) => {
    const { archiveRuns } = services.mail
    const run = await archiveRuns.get(id)
    if (run.undo === 'undoing') {
      return { outcome: 'already' as const, text: `Run ${id} is being undone already.` }
    }
    if (!canUndo(run, await (await archiveRuns.journal()).tallies(id))) {
      const why = run.undo === 'undone' ? 'is undone already' : 'has done nothing that could be undone'
      return { outcome: 'already' as const, text: `Run ${id} ${why}.` }
    }
    const action = run.action === 'delete' ? 'insert' : run.action
    await prepareAction(services, { account: run.account, action })
    await archiveRuns.undo(id)
    const done = `${formatCount(run.done)} ${plural(run.done, 'message')}`
    // Gmail takes no date beside the bytes: people are told which of the two changes.
    const how =
      run.action === 'delete'
        ? ' They are inserted again under new ids, with their bytes as they are: Gmail dates them by their Date header.'
        : ''
    return { outcome: 'done' as const, text: `Run ${id} is being undone: ${done}.${how}` }
  },
)

const resume = defineRoute(
  {
    ...{ ...about, path: '/api/mail/archive/runs/{id}/resume' },
    summary: 'Goes on with a run; one that deletes and waits needs the words of its `confirm`',
    errors: [409, 422],
    body: z.strictObject({ confirm: confirmText }),
    answer: doneSchema,
  },
  async ({ params: { id }, body: { confirm } }, services) => {
    const { archiveRuns } = services.mail
    const run = await archiveRuns.get(id)
    if (run.state === 'done' || run.state === 'abandoned') {
      throw conflict(`Run ${id} is ${run.state}: there is nothing to resume.`, { code: 'run-settled' })
    }
    await prepareAction(services, run)
    if (run.state === 'planned') {
      if (run.action === 'delete') checkConfirmed(confirm, confirmationOf(run))
      await archiveRuns.approve(id)
    } else await archiveRuns.resume(id)
    return { outcome: 'done' as const, text: `Run ${id} goes on.` }
  },
)

const halt = defineRoute(
  {
    ...{ ...about, path: '/api/mail/archive/runs/{id}/halt' },
    summary: 'Stops a run until somebody resumes it',
    answer: doneSchema,
  },
  async ({ params: { id } }, { mail: { archiveRuns } }) => {
    const run = await archiveRuns.get(id)
    const isActive = run.state === 'acting' || (run.state === 'planning' && run.approved)
    if (!isActive)
      return { outcome: 'already' as const, text: `Run ${id} is ${run.state}; nothing of it goes on.` }
    await archiveRuns.halt(id)
    return { outcome: 'done' as const, text: `Run ${id} stops; what it is doing this moment is finished.` }
  },
)

const abandon = defineRoute(
  {
    ...{ ...about, path: '/api/mail/archive/runs/{id}/abandon' },
    summary: 'Gives a run up: what is done stays done, the rest is left alone',
    answer: doneSchema,
  },
  async ({ params: { id } }, { mail: { archiveRuns } }) => {
    const didAbandon = await archiveRuns.abandon(id)
    if (!didAbandon) return { outcome: 'already' as const, text: `Run ${id} was over already.` }
    const { done } = await archiveRuns.get(id)
    const kept = `${formatCount(done)} of its messages ${plural(done, 'is', 'are')} done`
    return { outcome: 'done' as const, text: `Run ${id} is given up. ${kept}.` }
  },
)

export const archiveRunRoutes = [showRun, undo, resume, halt, abandon]
