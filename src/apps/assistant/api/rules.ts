/** Routes about rules of a user's own, routing, and runs of agents. */
import { z } from 'zod'
import { accountText, idParamsOf } from '../../../app/inputs.ts'
import { notFound } from '../../../app/problem.ts'
import { done, doneSchema } from '../../../app/schemas.ts'
import type { RequestUser } from '../../../app/user.ts'
import { UsageError } from '../../../base/errors.ts'
import { settingsOf } from '../account.ts'
import { describedMessage, routingRules, testRoute } from '../agent/router.ts'
import type { Run, Step } from '../agent/store.ts'
import { createRule, deleteExample, deleteRule, replayRule, switchExample, updateRule } from '../learning.ts'
import type { Example, Rule } from '../store/rules.ts'
import { exampleView, ruleView } from '../views.ts'
import { chosenMailboxes, noteSeen, ownMailbox } from './access.ts'
import { type AssistServices, route } from './route.ts'
import {
  categorySchema,
  exampleSchema,
  type RunView,
  replayedSchema,
  routedSchema,
  ruleSchema,
  runDetailSchema,
  runSchema,
  type StepView,
} from './schemas.ts'

const RUNS_SHOWN_MAX = 100
const EXAMPLES_SHOWN_MAX = 200
const SHOWN_CHARS_MAX = 4_000
const globText = z.string().trim().min(1).max(320).describe('The sender, such as `*@example.com`')
const subjectText = z.string().trim().min(1).max(200).describe('A text that the subject contains')

/** Whichever of the user's mailboxes it is of; one of another's is as one that is not there. */
async function ownRule(services: AssistServices, user: RequestUser, id: number): Promise<Rule> {
  for (const account of await chosenMailboxes(services, user, { what: `looked at rule ${id}` })) {
    const rule = await services.assist.tables.rule(account, id)
    if (rule) return rule
  }
  throw notFound(`There is no rule #${id}.`, { code: 'rule-unknown' })
}

export const getRules = route('GET /api/assist/rules', {
  summary: 'Rules of the user, and those that corrections made',
  access: 'member',
  errors: [404],
  query: z.object({ account: accountText.optional() }),
  answer: z.object({ items: z.array(ruleSchema) }),
  handle: async ({ query, user }, services) => {
    const accounts = await chosenMailboxes(services, user, { account: query.account, what: 'listed rules' })
    const rules = await Promise.all(accounts.map((account) => services.assist.tables.rules(account)))
    return { items: rules.flat().map(ruleView) }
  },
})

export const addRule = route('POST /api/assist/rules', {
  status: 201,
  summary: 'Adds a rule, switched off: it can be tried over past mail first',
  access: 'member',
  errors: [404],
  body: z
    .strictObject({
      account: accountText,
      from: globText.nullable().describe('The sender, such as `*@example.com`; null for anybody'),
      subject: subjectText.nullable().describe('A text that the subject contains; null for any'),
      category: categorySchema.describe('Where it leads'),
      isOn: z.boolean().optional().describe('Switched on at once'),
    })
    .refine(({ from, subject }) => from !== null || subject !== null, 'a rule must say what it is about'),
  answer: doneSchema,
  handle: async ({ body, user }, services) => {
    const account = await ownMailbox(services, user, { account: body.account, what: 'added a rule' })
    const { from, subject, category, isOn = false } = body
    const match = { ...(from === null ? {} : { from }), ...(subject === null ? {} : { subject }) }
    const rule = await createRule(services.assist.kinds, account, { match, category, enabled: isOn })
    return done(`Rule #${rule.id} is added${isOn ? '' : ', switched off'}.`)
  },
})

export const changeRule = route('PUT /api/assist/rules/{id}', {
  summary: 'Switches a rule on or off, or changes what it is about and where it leads',
  access: 'member',
  errors: [400, 404],
  params: idParamsOf('rule'),
  body: z.strictObject({
    isOn: z.boolean().optional().describe('Switched on or off; as it is if left out'),
    from: globText.nullable().optional().describe('The sender; null for anybody; as it is if left out'),
    subject: subjectText.nullable().optional().describe('As `from`, of the subject'),
    category: categorySchema.optional().describe('Where it leads; as it is if left out'),
  }),
  answer: doneSchema,
  handle: async ({ params, body, user }, services) => {
    const { account, id, match: before } = await ownRule(services, user, params.id)
    const { isOn: enabled, category } = body
    const { from = before.from ?? null, subject = before.subject ?? null } = body
    if (from === null && subject === null) throw new UsageError('A rule must say what it is about.')
    const change = {
      match: { ...(from !== null && { from }), ...(subject !== null && { subject }) },
      ...(enabled !== undefined && { enabled }),
      ...(category && { category }),
    }
    const rule = await updateRule(services.assist.kinds, { account, id }, change)
    return done(`Rule #${id} is ${rule.enabled ? 'on' : 'off'}.`)
  },
})

/** As `ownRule`. */
async function ownExample(services: AssistServices, user: RequestUser, id: number): Promise<Example> {
  for (const account of await chosenMailboxes(services, user, { what: `looked at example ${id}` })) {
    const found = (await services.assist.tables.examples(account)).find((one) => one.id === id)
    if (found) return found
  }
  throw notFound(`There is no example #${id}.`, { code: 'example-unknown' })
}

export const getExamples = route('GET /api/assist/examples', {
  summary: 'What the assistant learns from: mail that the user has moved, the newest first',
  access: 'member',
  errors: [404],
  query: z.object({ account: accountText.optional() }),
  answer: z.object({ items: z.array(exampleSchema) }),
  handle: async ({ query, user }, services) => {
    const accounts = await chosenMailboxes(services, user, {
      account: query.account,
      what: 'listed examples',
    })
    const all = await Promise.all(accounts.map((account) => services.assist.tables.examples(account)))
    return { items: all.flat().slice(0, EXAMPLES_SHOWN_MAX).map(exampleView) }
  },
})

export const changeExample = route('PUT /api/assist/examples/{id}', {
  summary: 'Whether it is learned from',
  access: 'member',
  errors: [404],
  params: idParamsOf('example'),
  body: z.strictObject({ isOn: z.boolean().describe('Learned from or not') }),
  answer: doneSchema,
  handle: async ({ params, body, user }, services) => {
    const { account, id } = await ownExample(services, user, params.id)
    await switchExample(services.assist.kinds, { account, id, enabled: body.isOn })
    return done(`Example #${id} is ${body.isOn ? 'on' : 'off'}.`)
  },
})

export const dropExample = route('DELETE /api/assist/examples/{id}', {
  summary: 'Forgets an example',
  access: 'member',
  errors: [404],
  params: idParamsOf('example'),
  answer: doneSchema,
  handle: async ({ params, user }, services) => {
    const { account, id } = await ownExample(services, user, params.id)
    await deleteExample(services.assist.kinds, { account, id })
    return done(`Example #${id} is forgotten.`)
  },
})

export const dropRule = route('DELETE /api/assist/rules/{id}', {
  summary: 'Forgets a rule',
  access: 'member',
  errors: [404],
  params: idParamsOf('rule'),
  answer: doneSchema,
  handle: async ({ params, user }, services) => {
    const { account, id } = await ownRule(services, user, params.id)
    await deleteRule(services.assist.kinds, { account, id })
    return done(`Rule #${id} is forgotten.`)
  },
})

export const tryRule = route('POST /api/assist/rules/{id}/replay', {
  summary: 'What a rule would change of past mail; changes nothing',
  access: 'member',
  errors: [404],
  params: idParamsOf('rule'),
  answer: replayedSchema,
  handle: async ({ params, user, signal }, services) => {
    const rule = await ownRule(services, user, params.id)
    const replay = await replayRule(services.assist.kinds, rule.account, rule, signal)
    return {
      looked: replay.looked,
      fits: replay.fits,
      changes: replay.changes,
      shown: replay.shown.map(({ thread, subject, before, after }) => ({
        thread,
        subject,
        was: before,
        becomes: after,
      })),
      archive: replay.archive?.fits ?? null,
    }
  },
})

export const testRouting = route('POST /api/assist/accounts/{account}/route-test', {
  summary: 'Which agent a mail would go to, and why; changes nothing',
  access: 'member',
  errors: [404],
  params: z.object({ account: accountText }),
  body: z.strictObject({
    from: z.string().min(1).max(1_000).describe('Who sends it'),
    subject: z.string().max(1_000).optional().describe('Its subject'),
    headers: z.string().max(10_000).optional().describe('Further headers, one in each line'),
  }),
  answer: routedSchema,
  handle: async ({ params, body, user }, services) => {
    const account = await ownMailbox(services, user, { account: params.account, what: 'tried its routing' })
    const row = await services.assist.tables.account(account)
    const rules = routingRules.parse(row ? settingsOf(row).routing : [])
    const message = describedMessage({
      from: body.from,
      subject: body.subject ?? '',
      headers: headerLines(body.headers ?? ''),
    })
    return testRoute(message, rules)
  },
})

export function headerLines(text: string): [name: string, value: string][] {
  return text.split('\n').flatMap((line) => {
    const at = line.indexOf(':')
    return at < 1 ? [] : [[line.slice(0, at).trim(), line.slice(at + 1).trim()] as [string, string]]
  })
}

export const getRuns = route('GET /api/assist/runs', {
  summary: 'Runs of agents, the newest first',
  access: 'member',
  errors: [404],
  query: z.object({ account: accountText.optional() }),
  answer: z.object({ items: z.array(runSchema) }),
  handle: async ({ query, user }, services) => {
    const accounts = await chosenMailboxes(services, user, {
      account: query.account,
      what: 'listed runs of agents',
    })
    const runs = await services.assist.agents.store.runs({ accounts, limit: RUNS_SHOWN_MAX })
    return { items: runs.map(runView) }
  },
})

export const getRun = route('GET /api/assist/runs/{id}', {
  summary: 'One run of an agent, step by step',
  access: 'member',
  errors: [404],
  params: idParamsOf('run'),
  answer: runDetailSchema,
  handle: async ({ params, user }, services) => {
    const { store } = services.assist.agents
    const run = await store.run(params.id)
    const accounts = await chosenMailboxes(services, user, { what: `looked at run ${params.id}` })
    if (!run || !accounts.includes(run.account)) {
      throw notFound(`There is no run #${params.id}.`, { code: 'run-unknown' })
    }
    await noteSeen(services, user, run)
    return { ...runView(run), steps: (await store.steps(run.id)).map(stepView) }
  },
})

export function runView(run: Run): RunView {
  const { id, account, thread, profile, rule, status, iterations, startedAtMs, endedAtMs, text } = run
  return { id, account, thread, profile, rule, status, iterations, startedAtMs, endedAtMs, text }
}

export function stepView({ number, atMs, tool, input, text, outcome }: Step): StepView {
  return {
    number,
    atMs,
    tool: tool === '' ? null : tool,
    arguments: input.slice(0, SHOWN_CHARS_MAX),
    result: text.slice(0, SHOWN_CHARS_MAX),
    outcome,
  }
}
