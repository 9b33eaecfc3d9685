/**
 * Taking mail out of Gmail: what a run would do, starting it, watching it, taking it back. What deletes for good is
 * done only to as many messages as were confirmed in words.
 */
import { z } from 'zod'
import { accountText, idParamsOf, pageOfRows, readCursor } from '../../../app/inputs.ts'
import { conflict, notFound, ProblemError } from '../../../app/problem.ts'
import { already, cursorQuery, done, doneSchema, pageOf } from '../../../app/schemas.ts'
import { formatCount } from '../../../base/format.ts'
import { counted, plural } from '../../../base/wording.ts'
import type { GmailAction } from '../../../cloud/gmail/auth.ts'
import { SERVICE, streamOf } from '../account.ts'
import { confirmationText } from '../clean-up/cutoff.ts'
import { type Survey, surveyRun } from '../clean-up/survey.ts'
import { prepareStream, requirePermission, type Wish, type WishedRun, wishedRun } from '../clean-up/wish.ts'
import { unknownAccount } from '../open-accounts.ts'
import type { RunRow } from '../store/journal.ts'
import { canUndo, confirmationOf, planView, proofView, runView } from './clean-up-view.ts'
import type { MailServices } from './route.ts'
import { route } from './route.ts'
import { cleanUpPlanSchema, cleanUpProofSchema, cleanUpRunSchema, cleanUpWishSchema } from './schemas.ts'

const CONFIRM_LENGTH_MAX = 100
const confirmText = z
  .string()
  .max(CONFIRM_LENGTH_MAX)
  .optional()
  .describe('The words that the plan or the run gives as `confirm`; only where it deletes for good')

const wishBody = cleanUpWishSchema.extend({ account: accountText })

const plan = route('POST /api/mail/clean-up/plan', {
  tag: 'clean-up',
  summary: 'A dry run: what would be taken out of Gmail and what refused, by the index alone',
  description: 'Changes nothing, and asks Gmail nothing. For the proof of every message see …/proofs.',
  errors: [404, 422],
  onlyReads: true,
  body: wishBody.strict(),
  answer: cleanUpPlanSchema,
  handle: async ({ body: wish, signal }, services) => {
    const run = await runOf(services, wish)
    const survey = await look(services, { run, signal })
    return planView(survey, { wish, understood: run.query, planned: survey.proven.messages })
  },
})

const prove = route('POST /api/mail/clean-up/proofs', {
  tag: 'clean-up',
  status: 202,
  summary: 'A dry run with proof: every message is read back, and Gmail is asked about it',
  description:
    'Changes nothing. It goes on by itself, also after a restart; ask for it by its number. The same wish again ' +
    'joins the proof that is under way, another wish for the account takes its place.',
  errors: [404, 422],
  body: wishBody.strict(),
  answer: cleanUpProofSchema,
  handle: async ({ body: wish }, services) => {
    const run = await runOf(services, wish)
    await services.engine.streams.open(streamOf(wish.account))
    return proofView(await services.mail.cleanUpRuns.prove({ wish, run }))
  },
})

const showProof = route('GET /api/mail/clean-up/proofs/{id}', {
  tag: 'clean-up',
  summary: 'How far a proof is, and what it says when it is done',
  params: idParamsOf('proof'),
  answer: cleanUpProofSchema,
  handle: async ({ params: { id } }, { mail: { cleanUpRuns } }) => {
    const proof = await cleanUpRuns.proof(id)
    if (proof) return proofView(proof)
    throw notFound(`There is no proof ${id}.`, { code: 'proof-unknown', hint: 'Ask for another one.' })
  },
})

const start = route('POST /api/mail/clean-up/runs', {
  tag: 'clean-up',
  status: 202,
  summary: 'Starts a run; deleting for good needs the words that the plan gives as `confirm`',
  description: '409: the account lacks the permission. 422: the words do not confirm it; nothing was begun.',
  errors: [404, 409, 422],
  body: wishBody.extend({ confirm: confirmText }).strict(),
  answer: cleanUpRunSchema,
  handle: async ({ body: { confirm, ...wish }, signal }, services) => {
    const { cleanUpRuns } = services.mail
    const run = await runOf(services, wish)
    await prepareAction(services, { account: wish.account, action: wish.action })
    // No more than was confirmed, whatever has come in meanwhile.
    const limit =
      wish.action === 'delete' ? { messagesMax: await confirmed(services, { run, confirm, signal }) } : {}
    return runView(cleanUpRuns, await cleanUpRuns.start({ ...run, ...limit, approved: true }))
  },
})

const listRuns = route('GET /api/mail/clean-up/runs', {
  tag: 'clean-up',
  summary: 'Runs, newest first',
  query: z.object({ ...cursorQuery, account: accountText.optional().describe('Only of this account') }),
  answer: pageOf(cleanUpRunSchema),
  handle: async ({ query: { cursor, limit, account } }, { mail: { cleanUpRuns } }) => {
    const before = readCursor(cursor)
    const rows = await (await cleanUpRuns.journal()).runs({
      limit: limit + 1,
      ...(before === undefined ? {} : { before }),
      ...(account === undefined ? {} : { account }),
    })
    const view = (run: RunRow) => runView(cleanUpRuns, run)
    const { items, next } = pageOfRows(rows, { limit, view, cursor: ({ id }) => id })
    return { items: await Promise.all(items), next }
  },
})

const runParams = idParamsOf('run')
const showRun = route('GET /api/mail/clean-up/runs/{id}', {
  tag: 'clean-up',
  summary: 'A run: what it has done, what it refused and why',
  params: runParams,
  answer: cleanUpRunSchema,
  handle: async ({ params: { id } }, { mail: { cleanUpRuns } }) =>
    runView(cleanUpRuns, await cleanUpRuns.get(id)),
})

const undo = route('POST /api/mail/clean-up/runs/{id}/undo', {
  tag: 'clean-up',
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
    const messages = counted(run.done, 'message')
    // Gmail takes no date beside the bytes: people are told which of the two changes.
    const how =
      run.action === 'delete'
        ? ' They are inserted again under new ids, with their bytes as they are: Gmail dates them by their Date header.'
        : ''
    return done(`Run ${id} is being undone: ${messages}.${how}`)
  },
})

const resume = route('POST /api/mail/clean-up/runs/{id}/resume', {
  tag: 'clean-up',
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

const halt = route('POST /api/mail/clean-up/runs/{id}/halt', {
  tag: 'clean-up',
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

const abandon = route('POST /api/mail/clean-up/runs/{id}/abandon', {
  tag: 'clean-up',
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

async function runOf(services: MailServices, wish: Wish): Promise<WishedRun> {
  const { accounts, clock } = services
  const known = await accounts.find(SERVICE, wish.account)
  if (!known) throw unknownAccount(wish.account, await accounts.list(SERVICE))
  return wishedRun(services, wish, { nowMs: clock.now() })
}

type Look = { run: WishedRun; signal: AbortSignal }

async function look({ ledger, clock, mail }: MailServices, input: Look): Promise<Survey> {
  const account = await mail.accounts.get(input.run.account)
  return surveyRun({ ...input, depth: 'index', account, ledger, clock, tables: mail.tables })
}

async function confirmed(
  services: MailServices,
  { run, confirm, signal }: { run: Look['run']; confirm: string | undefined; signal: AbortSignal },
): Promise<number> {
  // As many as a run would plan: those that the index does not refuse.
  const { messages } = (await look(services, { run, signal })).proven
  checkConfirmed(confirm, confirmationText(messages))
  return messages
}

function checkConfirmed(given: string | undefined, wanted: string): void {
  if (given === wanted) return
  throw new ProblemError(422, 'This deletes for good, and must be confirmed in words. Nothing was begun.', {
    code: 'confirmation-needed',
    hint: `Send confirm: "${wanted}".`,
  })
}

/** What cannot be done is said now and not by a job: the permission, and whether the archive can be opened. */
async function prepareAction(
  services: MailServices,
  { account, action }: { account: string; action: GmailAction },
): Promise<void> {
  await requirePermission(services, { account, action })
  await prepareStream(services, account)
}

export const cleanUpRoutes = [plan, prove, showProof, start, listRuns, showRun, undo, resume, halt, abandon]
