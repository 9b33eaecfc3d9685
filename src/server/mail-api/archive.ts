/**
 * Taking mail out of Gmail: what a run would do, starting it, watching it, taking it back. What deletes for good is
 * done only to as many messages as were confirmed in words.
 */
import { z } from 'zod'
import { SERVICE, streamOf } from '../../apps/mail-archive/account.ts'
import { confirmationText, cutoffOf } from '../../apps/mail-archive/archiver/cutoff.ts'
import { type Survey, surveyRun } from '../../apps/mail-archive/archiver/survey.ts'
import { INBOX } from '../../apps/mail-archive/archiver/verdict.ts'
import { unknownAccount } from '../../apps/mail-archive/open-accounts.ts'
import { parseQuery } from '../../apps/mail-archive/query/parse.ts'
import type { NewRun } from '../../apps/mail-archive/store/journal.ts'
import { type GmailAction, requireScope } from '../../cloud/gmail/auth.ts'
import { resumeSignedIn } from '../account-work.ts'
import { readCursor } from '../engine-api/inputs.ts'
import { cursorQuery, pageOf } from '../engine-api/schemas.ts'
import { readSecret } from '../gmail-account.ts'
import { conflict, ProblemError } from '../problem.ts'
import { defineRoute } from '../route.ts'
import type { Services } from '../services.ts'
import { planView, runView } from './archive-view.ts'
import { accountText } from './inputs.ts'
import { archivePlanSchema, archiveRunSchema, archiveWishSchema } from './schemas.ts'

const CONFIRM_LENGTH_MAX = 100
export const confirmText = z
  .string()
  .max(CONFIRM_LENGTH_MAX)
  .optional()
  .describe('The words that the plan or the run gives as `confirm`; only where it deletes for good')

const wishBody = archiveWishSchema.extend({ account: accountText })
type Wish = z.output<typeof wishBody>

/** Looking at everything costs calls: one look at a time for an account. */
const lookingBy = new WeakMap<Services['mail'], Set<string>>()

const plan = defineRoute(
  {
    ...{ method: 'post', path: '/api/mail/archive/plan', tag: 'archive', access: 'write' },
    summary: 'A dry run: what would be taken out of Gmail and what refused; quick looks at the index only',
    description:
      'Changes nothing. It reads back every message that it counts and asks Gmail about it, so it may take a while; ' +
      'one plan at a time for an account (409 while another is made).',
    errors: [404, 409, 422],
    body: wishBody
      .extend({ quick: z.boolean().default(false).describe('Looks only at the index: fast, and less sure') })
      .strict(),
    answer: archivePlanSchema,
  },
  async ({ body: { quick, ...wish }, signal }, services) => {
    const run = await runOf(services, wish)
    const survey = await aloneFor(services, wish.account, () =>
      look(services, { run, depth: quick ? 'index' : 'full', signal }),
    )
    return {
      wish,
      ...planView(survey),
      confirm: wish.action === 'delete' ? confirmationText(await countOf(services, run, signal)) : null,
    }
  },
)

const start = defineRoute(
  {
    ...{ method: 'post', path: '/api/mail/archive/runs', tag: 'archive', access: 'write', status: 202 },
    summary: 'Starts a run; deleting for good needs the words that the plan gives as `confirm`',
    description:
      '409: the account lacks the permission. 422: the words do not confirm it; nothing was begun.',
    errors: [404, 409, 422],
    body: wishBody.extend({ confirm: confirmText }).strict(),
    answer: archiveRunSchema,
  },
  async ({ body: { confirm, ...wish }, signal }, services) => {
    const { archiveRuns } = services.mail
    const run = await runOf(services, wish)
    await prepareAction(services, { account: wish.account, action: wish.action })
    // No more than was confirmed, whatever has come in meanwhile.
    const limit =
      wish.action === 'delete' ? { messagesMax: await confirmed(services, { run, confirm, signal }) } : {}
    return runView(archiveRuns, await archiveRuns.start({ ...run, ...limit, approved: true }))
  },
)

const listRuns = defineRoute(
  {
    ...{ method: 'get', path: '/api/mail/archive/runs', tag: 'archive', access: 'read' },
    summary: 'Archive runs, newest first',
    query: z.object({ ...cursorQuery, account: accountText.optional().describe('Only of this account') }),
    answer: pageOf(archiveRunSchema),
  },
  async ({ query: { cursor, limit, account } }, { mail: { archiveRuns } }) => {
    const before = readCursor(cursor)
    const rows = await (await archiveRuns.journal()).runs({
      limit: limit + 1,
      ...(before === undefined ? {} : { before }),
      ...(account === undefined ? {} : { account }),
    })
    const shown = rows.slice(0, limit)
    return {
      items: await Promise.all(shown.map((run) => runView(archiveRuns, run))),
      next: rows.length > limit ? String(shown.at(-1)!.id) : null,
    }
  },
)

/** What is wanted, read strictly before anything is begun. */
async function runOf({ accounts, clock }: Services, wish: Wish): Promise<Omit<NewRun, 'approved'>> {
  const { account, action, query } = wish
  const nowMs = clock.now()
  if (!(await accounts.find(SERVICE, account))) throw unknownAccount(account, await accounts.list(SERVICE))
  parseQuery(query, { now: nowMs, me: account })
  return {
    ...{ account, action, query, messagesMax: null },
    label: action === 'unlabel' ? INBOX : null,
    cutoffMs: cutoffOf(wish.olderThan, nowMs),
  }
}

type Look = { run: Omit<NewRun, 'approved'>; depth: 'full' | 'index'; signal: AbortSignal }

async function look({ ledger, clock, mail }: Services, input: Look): Promise<Survey> {
  const account = await mail.accounts.get(input.run.account)
  return surveyRun({ ...input, account, ledger, clock, tables: mail.tables })
}

/** How many a run would plan: as many as the index does not refuse. */
async function countOf(services: Services, run: Look['run'], signal: AbortSignal): Promise<number> {
  return (await look(services, { run, depth: 'index', signal })).proven.messages
}

async function confirmed(
  services: Services,
  { run, confirm, signal }: { run: Look['run']; confirm: string | undefined; signal: AbortSignal },
): Promise<number> {
  const messages = await countOf(services, run, signal)
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

async function aloneFor<T>({ mail }: Services, account: string, act: () => Promise<T>): Promise<T> {
  const looking = lookingBy.get(mail) ?? new Set<string>()
  lookingBy.set(mail, looking)
  if (looking.has(account)) {
    throw conflict(`Another plan for ${account} is being made.`, { code: 'plan-busy', hint: 'Wait for it.' })
  }
  looking.add(account)
  try {
    return await act()
  } finally {
    looking.delete(account)
  }
}

/** What cannot be done is said now and not by a job: the permission, and whether the archive can be opened. */
export async function prepareAction(
  services: Services,
  { account, action }: { account: string; action: GmailAction },
): Promise<void> {
  const { accounts, vault, mail, engine } = services
  const row = await accounts.find(SERVICE, account)
  if (!row) throw unknownAccount(account, await accounts.list(SERVICE))
  const { scopes } = await readSecret({ accounts, vault, account: row })
  requireScope(account, scopes, action)
  await mail.accounts.get(account)
  await engine.streams.open(streamOf(account))
  await resumeSignedIn(services, [account])
}

export const archiveRoutes = [plan, start, listRuns]
