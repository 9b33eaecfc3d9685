/**
 * Taking mail out of Gmail: what a run would do, starting it, watching it, taking it back. What deletes for good is
 * done only to as many messages as were confirmed in words.
 */
import { z } from 'zod'
import { accountText, idParamsOf, readCursor } from '../../../app/inputs.ts'
import { notFound, ProblemError } from '../../../app/problem.ts'
import { cursorQuery, pageOf } from '../../../app/schemas.ts'
import { resumeSignedIn } from '../../../app/signed-in.ts'
import { readSecret } from '../../../cloud/gmail/account.ts'
import { type GmailAction, requireScope } from '../../../cloud/gmail/auth.ts'
import { SERVICE, sourcesOf, streamOf } from '../account.ts'
import { confirmationText, cutoffOf } from '../clean-up/cutoff.ts'
import { understoodQuery } from '../clean-up/selection.ts'
import { type Survey, surveyRun } from '../clean-up/survey.ts'
import { INBOX } from '../clean-up/verdict.ts'
import { unknownAccount } from '../open-accounts.ts'
import type { NewRun } from '../store/journal.ts'
import { planView, proofView, runView } from './clean-up-view.ts'
import type { MailServices } from './route.ts'
import { route } from './route.ts'
import { archivePlanSchema, archiveProofSchema, archiveRunSchema, archiveWishSchema } from './schemas.ts'

const CONFIRM_LENGTH_MAX = 100
export const confirmText = z
  .string()
  .max(CONFIRM_LENGTH_MAX)
  .optional()
  .describe('The words that the plan or the run gives as `confirm`; only where it deletes for good')

const wishBody = archiveWishSchema.extend({ account: accountText })
type Wish = z.output<typeof wishBody>

const plan = route('POST /api/mail/archive/plan', {
  tag: 'archive',
  summary: 'A dry run: what would be taken out of Gmail and what refused, by the index alone',
  description: 'Changes nothing, and asks Gmail nothing. For the proof of every message see …/proofs.',
  errors: [404, 422],
  body: wishBody.strict(),
  answer: archivePlanSchema,
  handle: async ({ body: wish, signal }, services) => {
    const run = await runOf(services, wish)
    const survey = await look(services, { run, signal })
    return planView(survey, { wish, understood: run.query, planned: survey.proven.messages })
  },
})

const prove = route('POST /api/mail/archive/proofs', {
  tag: 'archive',
  status: 202,
  summary: 'A dry run with proof: every message is read back, and Gmail is asked about it',
  description:
    'Changes nothing. It goes on by itself, also after a restart; ask for it by its number. The same wish again ' +
    'joins the proof that is under way, another wish for the account takes its place.',
  errors: [404, 422],
  body: wishBody.strict(),
  answer: archiveProofSchema,
  handle: async ({ body: wish }, services) => {
    const run = await runOf(services, wish)
    await services.engine.streams.open(streamOf(wish.account))
    return proofView(await services.mail.cleanUpRuns.prove({ wish, run }))
  },
})

const showProof = route('GET /api/mail/archive/proofs/{id}', {
  tag: 'archive',
  summary: 'How far a proof is, and what it says when it is done',
  params: idParamsOf('proof'),
  answer: archiveProofSchema,
  handle: async ({ params: { id } }, { mail: { cleanUpRuns } }) => {
    const proof = await cleanUpRuns.proof(id)
    if (proof) return proofView(proof)
    throw notFound(`There is no proof ${id}.`, { code: 'proof-unknown', hint: 'Ask for another one.' })
  },
})

const start = route('POST /api/mail/archive/runs', {
  tag: 'archive',
  status: 202,
  summary: 'Starts a run; deleting for good needs the words that the plan gives as `confirm`',
  description: '409: the account lacks the permission. 422: the words do not confirm it; nothing was begun.',
  errors: [404, 409, 422],
  body: wishBody.extend({ confirm: confirmText }).strict(),
  answer: archiveRunSchema,
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

const listRuns = route('GET /api/mail/archive/runs', {
  tag: 'archive',
  summary: 'Archive runs, newest first',
  query: z.object({ ...cursorQuery, account: accountText.optional().describe('Only of this account') }),
  answer: pageOf(archiveRunSchema),
  handle: async ({ query: { cursor, limit, account } }, { mail: { cleanUpRuns } }) => {
    const before = readCursor(cursor)
    const rows = await (await cleanUpRuns.journal()).runs({
      limit: limit + 1,
      ...(before === undefined ? {} : { before }),
      ...(account === undefined ? {} : { account }),
    })
    const shown = rows.slice(0, limit)
    return {
      items: await Promise.all(shown.map((run) => runView(cleanUpRuns, run))),
      next: rows.length > limit ? String(shown.at(-1)!.id) : null,
    }
  },
})

/** What is wanted, read strictly before anything is begun. */
async function runOf({ accounts, clock, mail }: MailServices, wish: Wish): Promise<Omit<NewRun, 'approved'>> {
  const { account, action } = wish
  const nowMs = clock.now()
  if (!(await accounts.find(SERVICE, account))) throw unknownAccount(account, await accounts.list(SERVICE))
  return {
    ...{ account, action, messagesMax: null },
    query: await understoodQuery(mail.tables, wish.query, { now: nowMs, me: account }),
    label: action === 'unlabel' ? INBOX : null,
    cutoffMs: cutoffOf(wish.olderThan, nowMs),
  }
}

type Look = { run: Omit<NewRun, 'approved'>; signal: AbortSignal }

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

export function checkConfirmed(given: string | undefined, wanted: string): void {
  if (given === wanted) return
  throw new ProblemError(422, 'This deletes for good, and must be confirmed in words. Nothing was begun.', {
    code: 'confirmation-needed',
    hint: `Send confirm: "${wanted}".`,
  })
}

/** What cannot be done is said now and not by a job: the permission, and whether the archive can be opened. */
export async function prepareAction(
  services: MailServices,
  { account, action }: { account: string; action: GmailAction },
): Promise<void> {
  const { accounts, vault, mail, engine } = services
  const row = await accounts.find(SERVICE, account)
  if (!row) throw unknownAccount(account, await accounts.list(SERVICE))
  const { scopes } = await readSecret({ accounts, vault, account: row })
  requireScope(account, scopes, action)
  await mail.accounts.get(account)
  await engine.streams.open(streamOf(account))
  await resumeSignedIn(services, SERVICE, sourcesOf([account]))
}

export const archiveRoutes = [plan, prove, showProof, start, listRuns]
