/** Routes about mailboxes: switching the assistant on and off, how far it is, what it cost, its settings. */
import { z } from 'zod'
import { noteWithoutEngine } from '../../../app/engine-note.ts'
import { accountText } from '../../../app/inputs.ts'
import { conflict } from '../../../app/problem.ts'
import { done, doneSchema } from '../../../app/schemas.ts'
import { pauseNote } from '../../../app/sync-request.ts'
import { settingsOf, streamOf } from '../account.ts'
import { changeSettings, lookNow, requestSync, switchAccount } from '../actions.ts'
import { routedAgents } from '../agent/router.ts'
import { agreeToBacklog, backlogOf, backlogText } from '../backlog.ts'
import { type Briefing, briefingOf } from '../briefing.ts'
import { settingsFromToml, settingsToToml } from '../config-import.ts'
import { CATEGORIES } from '../contract.ts'
import { onboard } from '../onboard.ts'
import { type AssistStatus, assistStatus } from '../status.ts'
import { chosenMailboxes, connectedMailbox, ownMailbox } from './access.ts'
import { type AssistServices, route } from './route.ts'
import {
  type AssistAccountView,
  accountSchema,
  type BriefingView,
  briefingSchema,
  callSchema,
  settingsSchema,
} from './schemas.ts'

const TOML_CHARS_MAX = 1_000_000
const COST_DAYS = 30
const accountParams = z.object({ account: accountText })

export async function accountViews(
  services: AssistServices,
  names: readonly string[],
): Promise<AssistAccountView[]> {
  const { assist, ledger } = services
  const all = await assistStatus(ledger, assist.tables, names)
  return Promise.all(all.map((status) => accountView(services, status)))
}

async function accountView({ assist }: AssistServices, status: AssistStatus): Promise<AssistAccountView> {
  const { account, active, inbox, classified, skipped, onTheirWay, held, draftsWaiting, counts } = status
  const { models, cap, today } = await assist.models.status(account)
  const row = await assist.tables.account(account)
  return {
    account,
    isActive: active,
    inbox,
    classified,
    skipped,
    onTheirWay,
    held,
    backlog: held + status.heldDrafts === 0 ? null : backlogText(await backlogOf(assist, account)),
    draftsWaiting,
    byCategory: CATEGORIES.map((category) => ({
      category,
      count: counts.filter((one) => one.category === category).reduce((sum, { count }) => sum + count, 0),
    })),
    lastMailAtMs: status.lastMailAtMs,
    lastPushAtMs: status.lastPushAtMs,
    lastSyncAtMs: status.lastSyncAtMs,
    watchUntilMs: status.watchUntilMs,
    problem:
      status.problem ?? (status.watchProblem === null ? null : { code: 'push', text: status.watchProblem }),
    model: models.draft ?? null,
    sendsTo: [...new Set((row ? routedAgents(settingsOf(row)) : []).flatMap(({ send_to }) => send_to))],
    spentTodayMicros: today.spent.costMicros,
    capPerDayMicros: cap.costMicros,
  }
}

export const getAccounts = route('GET /api/assist/accounts', {
  summary: 'Mailboxes with the assistant: what came, and what became of it',
  access: 'member',
  answer: z.object({ items: z.array(accountSchema) }),
  handle: async ({ user }, services) => {
    const names = await chosenMailboxes(services, user, { what: 'looked at the assistant' })
    return { items: await accountViews(services, names) }
  },
})

export const addAccount = route('POST /api/assist/accounts', {
  status: 202,
  summary: 'Switches the assistant on for a connected mailbox; again changes nothing',
  access: 'member',
  errors: [404, 409],
  body: z.strictObject({ account: accountText }),
  answer: doneSchema,
  handle: async ({ body, user, signal }, services) => {
    const { engine, accounts, vault, assist } = services
    const name = await connectedMailbox(services, user, body.account)
    const { isNew } = await onboard({ engine, kinds: assist.kinds, accounts, vault }, name, {}, signal)
    const text = isNew
      ? 'The assistant is on: new mail is sorted from now on.'
      : 'The assistant was on already.'
    return done(`${text}${await noteWithoutEngine(services)}`)
  },
})

export const changeAccount = route('PUT /api/assist/accounts/{account}', {
  summary: 'Switches the assistant off or on; labels, drafts and records stay',
  access: 'member',
  errors: [404],
  params: accountParams,
  body: z.strictObject({ isActive: z.boolean().describe('Whether it is on') }),
  answer: doneSchema,
  handle: async ({ params, body, user }, services) => {
    const account = await ownMailbox(services, user, {
      account: params.account,
      what: 'switched the assistant',
    })
    await switchAccount({ engine: services.engine, kinds: services.assist.kinds }, account, body.isActive)
    return done(`The assistant is ${body.isActive ? 'on' : 'off'} for ${account}.`)
  },
})

export const startSync = route('POST /api/assist/sync', {
  status: 202,
  summary: 'Looks at mailboxes now',
  access: 'member',
  errors: [404, 409],
  body: z.strictObject({
    account: accountText.optional().describe('Only this one; all if left out'),
    full: z.boolean().optional().describe('Looks through the inbox of the last days, too'),
  }),
  answer: doneSchema,
  handle: async ({ body, user }, services) => {
    const names = await chosenMailboxes(services, user, { account: body.account, what: 'had mail sorted' })
    const { engine, ledger, assist } = services
    const place = { engine, ledger, kinds: assist.kinds }
    const begun: string[] = []
    for (const name of names) {
      const isBegun = body.full ? requestSync(place, name, { full: true }) : lookNow(place, name)
      if (await isBegun) begun.push(name)
    }
    if (begun.length === 0) {
      throw conflict('The assistant is switched on for no such mailbox.', { code: 'no-account' })
    }
    const held = await pauseNote(
      services,
      begun.map((name) => ({ name, stream: streamOf(name) })),
    )
    return done(`New mail is looked for: ${begun.join(', ')}.${held}${await noteWithoutEngine(services)}`)
  },
})

export const agreeToCosts = route('POST /api/assist/accounts/{account}/backlog', {
  status: 202,
  summary: 'Agrees to what sorting the mail that waits costs: it is sorted, within the caps',
  access: 'member',
  errors: [404, 409],
  params: accountParams,
  answer: doneSchema,
  handle: async ({ params, user }, services) => {
    const { engine, assist } = services
    const account = await ownMailbox(services, user, {
      account: params.account,
      what: 'agreed to the cost of sorting',
    })
    if (!(await agreeToBacklog({ engine, kinds: assist.kinds }, account))) {
      throw conflict('The assistant is switched off for this mailbox.', { code: 'no-account' })
    }
    return done(`What waits is sorted.${await noteWithoutEngine(services)}`)
  },
})

export const getSettings = route('GET /api/assist/accounts/{account}/settings', {
  summary: 'Styles, contacts, blacklist, routing and agents of a mailbox, as TOML',
  access: 'member',
  errors: [404],
  params: accountParams,
  answer: settingsSchema,
  handle: async ({ params, user }, services) => {
    const account = await ownMailbox(services, user, { account: params.account, what: 'read its settings' })
    const row = await services.assist.tables.account(account)
    return { account, toml: row ? settingsToToml(settingsOf(row)) : '' }
  },
})

export const putSettings = route('PUT /api/assist/accounts/{account}/settings', {
  summary: 'Takes them over: what the text names changes, the rest stays',
  access: 'member',
  errors: [400, 404],
  params: accountParams,
  body: z.strictObject({ toml: z.string().max(TOML_CHARS_MAX).describe('As the GET gives it') }),
  answer: doneSchema,
  handle: async ({ params, body, user }, services) => {
    const account = await ownMailbox(services, user, {
      account: params.account,
      what: 'changed its settings',
    })
    const change = settingsFromToml(body.toml)
    await changeSettings({ engine: services.engine, kinds: services.assist.kinds }, account, change)
    return done('Saved.')
  },
})

export const getCosts = route('GET /api/assist/costs', {
  summary: 'What models were asked in the last 30 days, and what it cost',
  access: 'member',
  errors: [404],
  query: z.object({ account: accountText.optional() }),
  answer: z.object({ items: z.array(callSchema) }),
  handle: async ({ query, user }, services) => {
    const accounts = await chosenMailboxes(services, user, {
      account: query.account,
      what: 'looked at costs',
    })
    return { items: await services.assist.calls.costs({ accounts, days: COST_DAYS }) }
  },
})

export const getBriefing = route('GET /api/assist/briefing', {
  summary: 'What came, what waits and what was done since yesterday',
  access: 'member',
  errors: [404],
  query: z.object({ account: accountText.optional() }),
  answer: z.object({ items: z.array(briefingSchema) }),
  handle: async ({ query, user }, services) => {
    const accounts = await chosenMailboxes(services, user, {
      account: query.account,
      what: 'read the briefing',
    })
    const all = await Promise.all(accounts.map((account) => briefingOf(services.assist.kinds, account)))
    return { items: all.map(briefingView) }
  },
})

export function briefingView({ account, sinceMs, untilMs, text, ...lists }: Briefing): BriefingView {
  const { drafts, actions, payments, waiting } = lists
  const plain = (lines: Briefing['drafts']): BriefingView['drafts'] =>
    lines.map((line) => ({ account, ...line }))
  return {
    account,
    sinceMs,
    untilMs,
    text,
    drafts: plain(drafts),
    actions: plain(actions),
    payments: plain(payments),
    waiting: plain(waiting),
  }
}
