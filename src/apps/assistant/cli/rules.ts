/** `tidemark assist rules` and `route-test`. */
import type { CliContext } from '../../../app/command.ts'
import { oneLine } from '../../../app/plain-text.ts'
import { UsageError } from '../../../base/errors.ts'
import { formatCount } from '../../../base/format.ts'
import { settingsOf } from '../account.ts'
import { describedMessage, routingRules, testRoute } from '../agent/router.ts'
import { headerLines } from '../api/rules.ts'
import { createRule, deleteExample, deleteRule, replayRule, switchExample, updateRule } from '../learning.ts'
import { exampleView, ruleView } from '../views.ts'
import { type AccountOption, chosenAccount, readCategory, readNumber, withAssist } from './context.ts'

export async function listRules(context: CliContext, options: AccountOption): Promise<void> {
  await withAssist(context, async (opened) => {
    const account = await chosenAccount(opened, options)
    const rows = (await opened.assist.tables.rules(account)).map(ruleView)
    context.output.listing({
      columns: [
        { title: 'rule', value: ({ id }) => id, align: 'right' },
        { title: 'state', value: ({ isOn }) => (isOn ? 'on' : 'off') },
        { title: 'from', value: ({ from }) => from ?? '' },
        { title: 'subject', value: ({ subject }) => subject ?? '' },
        { title: 'category', value: ({ category }) => category },
        { title: 'decided', value: ({ hits }) => formatCount(hits), align: 'right' },
        { title: 'origin', value: ({ origin }) => origin },
      ],
      rows,
      json: rows,
      empty: 'There is no rule yet.',
    })
  })
}

const EXAMPLE_CHARS_SHOWN = 80

type AddOptions = AccountOption & { from?: string; subject?: string; on?: boolean }

export async function addRule(context: CliContext, text: string, options: AddOptions): Promise<void> {
  const category = readCategory(text)
  const [from, subject] = [options.from?.trim() || undefined, options.subject?.trim() || undefined]
  const { on: enabled = false } = options
  if (from === undefined && subject === undefined) {
    throw new UsageError('A rule must say what it is about.', { hint: 'Name --from, --subject, or both.' })
  }
  await withAssist(context, async (opened) => {
    const account = await chosenAccount(opened, options)
    const match = {
      ...(from === undefined ? {} : { from }),
      ...(subject === undefined ? {} : { subject }),
    }
    const rule = await createRule(opened.assist.kinds, account, { match, category, enabled })
    if (context.output.json) context.output.value(ruleView(rule))
    else
      context.output.line(
        enabled
          ? `Rule ${rule.id} is on.`
          : `Rule ${rule.id} is added, switched off. Try it with: tidemark assist rules try ${rule.id}`,
      )
  })
}

type Verb = 'try' | 'on' | 'off' | 'remove'

export async function changeRule(
  context: CliContext,
  { verb, rule, options }: { verb: Verb; rule: string; options: AccountOption },
): Promise<void> {
  const id = readNumber(rule, 'a rule')
  await withAssist(context, async (opened) => {
    const account = await chosenAccount(opened, options)
    const { kinds, tables } = opened.assist
    const { output } = context
    if (verb === 'try') {
      const found = await tables.rule(account, id)
      if (!found) throw new UsageError(`There is no rule ${id}.`, { code: 'rule-unknown' })
      const replay = await replayRule(kinds, account, found, new AbortController().signal)
      if (output.json) {
        output.value(replay)
        return
      }
      output.line(
        `Of ${formatCount(replay.looked)} sorted threads it fits ${formatCount(replay.fits)}, and would sort ${formatCount(replay.changes)} of them otherwise. Nothing was changed.`,
      )
      for (const one of replay.shown) output.line(`  ${one.before} → ${one.after}  ${one.subject}`)
      if (replay.archive) output.line(`In the archive it fits ${formatCount(replay.archive.fits)} mails.`)
      return
    }
    if (verb === 'remove') await deleteRule(kinds, { account, id })
    else await updateRule(kinds, { account, id }, { enabled: verb === 'on' })
    const now = verb === 'remove' ? 'forgotten' : verb
    if (output.json) output.value({ id, state: now })
    else output.line(`Rule ${id} is ${now}.`)
  })
}

type EditOptions = AccountOption & { from?: string; subject?: string; category?: string }

export async function editRule(context: CliContext, rule: string, options: EditOptions): Promise<void> {
  const id = readNumber(rule, 'a rule')
  const category = options.category === undefined ? undefined : readCategory(options.category)
  await withAssist(context, async (opened) => {
    const account = await chosenAccount(opened, options)
    const { kinds, tables } = opened.assist
    const found = await tables.rule(account, id)
    if (!found) throw new UsageError(`There is no rule ${id}.`, { code: 'rule-unknown' })
    const [from, subject] = [options.from ?? found.match.from, options.subject ?? found.match.subject]
    if (!from?.trim() && !subject?.trim()) throw new UsageError('A rule must say what it is about.')
    const match = {
      ...(from?.trim() && { from: from.trim() }),
      ...(subject?.trim() && { subject: subject.trim() }),
    }
    const next = await updateRule(kinds, { account, id }, { match, ...(category && { category }) })
    if (context.output.json) context.output.value(ruleView(next))
    else context.output.line(`Rule ${id} is changed. Try it with: tidemark assist rules try ${id}`)
  })
}

export async function listExamples(context: CliContext, options: AccountOption): Promise<void> {
  await withAssist(context, async (opened) => {
    const account = await chosenAccount(opened, options)
    const rows = (await opened.assist.tables.examples(account)).map(exampleView)
    context.output.listing({
      columns: [
        { title: 'example', value: ({ id }) => id, align: 'right' },
        { title: 'state', value: ({ isOn }) => (isOn ? 'on' : 'off') },
        { title: 'category', value: ({ category }) => category },
        { title: 'thread', value: ({ thread }) => thread },
        { title: 'mail', value: ({ text }) => oneLine(text, EXAMPLE_CHARS_SHOWN) },
      ],
      rows,
      json: rows,
      empty: 'You have moved no mail yet: there is nothing to learn from.',
    })
  })
}

export async function changeExample(
  context: CliContext,
  { verb, example, options }: { verb: Exclude<Verb, 'try'>; example: string; options: AccountOption },
): Promise<void> {
  const id = readNumber(example, 'an example')
  await withAssist(context, async (opened) => {
    const account = await chosenAccount(opened, options)
    const { kinds } = opened.assist
    if (verb === 'remove') await deleteExample(kinds, { account, id })
    else await switchExample(kinds, { account, id, enabled: verb === 'on' })
    const now = verb === 'remove' ? 'forgotten' : verb
    if (context.output.json) context.output.value({ id, state: now })
    else context.output.line(`Example ${id} is ${now}.`)
  })
}

type RouteOptions = AccountOption & { from: string; subject: string; header?: readonly string[] }

export async function routeTest(context: CliContext, options: RouteOptions): Promise<void> {
  const { from, subject, header = [] } = options
  await withAssist(context, async (opened) => {
    const account = await chosenAccount(opened, options)
    const row = await opened.assist.tables.account(account)
    const rules = routingRules.parse(row ? settingsOf(row).routing : [])
    const routed = testRoute(
      describedMessage({ from, subject, headers: headerLines(header.join('\n')) }),
      rules,
    )
    const { output } = context
    if (output.json) {
      output.value(routed)
      return
    }
    output.line(
      routed.route === 'agent'
        ? `It goes to the agent ${routed.profile}, by the rule ${routed.rule}.`
        : 'It is sorted like all mail.',
    )
    for (const why of routed.why) output.line(`  ${why}`)
  })
}
