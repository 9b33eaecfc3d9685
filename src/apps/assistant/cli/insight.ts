/** `tidemark assist briefing`, `costs`, `runs` and `eval`. */
import type { CliContext } from '../../../app/command.ts'
import { UsageError } from '../../../base/errors.ts'
import { formatCount } from '../../../base/format.ts'
import { isoTime } from '../../../base/moment.ts'
import { runView, stepView } from '../api/rules.ts'
import { backlogOf, backlogText } from '../backlog.ts'
import { briefingOf } from '../briefing.ts'
import { evaluateSorting, type Sorter, type SortingReport, type Tally } from '../eval/classify.ts'
import { classificationOf, classificationSchema, classifyPrompt } from '../prompts.ts'
import { type AccountOption, chosenAccount, readNumber, withAssist } from './context.ts'

const COST_DAYS = 30
const RUNS_MAX = 100
const MILLION = 1_000_000

export async function briefing(context: CliContext, options: AccountOption): Promise<void> {
  await withAssist(context, async (opened) => {
    const account = await chosenAccount(opened, options)
    const told = await briefingOf(opened.assist.kinds, account)
    if (context.output.json) context.output.value(told)
    else for (const line of told.text.split('\n')) context.output.line(line)
  })
}

export async function costs(
  context: CliContext,
  options: AccountOption & { estimate?: boolean },
): Promise<void> {
  await withAssist(context, async (opened) => {
    const account = await chosenAccount(opened, options)
    const { assist } = opened
    if (options.estimate) {
      const backlog = await backlogOf(assist, account, 'all')
      if (context.output.json) context.output.value(backlog)
      else context.output.line(backlogText(backlog))
      return
    }
    const rows = await assist.calls.costs({ accounts: [account], days: COST_DAYS })
    context.output.listing({
      columns: [
        { title: 'day', value: ({ day }) => day },
        { title: 'for', value: ({ purpose }) => purpose },
        { title: 'model', value: ({ model }) => model },
        { title: 'calls', value: ({ calls }) => formatCount(calls), align: 'right' },
        { title: 'failed', value: ({ failed }) => formatCount(failed), align: 'right' },
        { title: 'tokens in', value: ({ inputTokens }) => formatCount(inputTokens), align: 'right' },
        { title: 'tokens out', value: ({ outputTokens }) => formatCount(outputTokens), align: 'right' },
        { title: 'cost', value: ({ costMicros }) => (costMicros / MILLION).toFixed(4), align: 'right' },
      ],
      rows,
      json: rows,
      empty: 'No model was asked in the last 30 days.',
    })
  })
}

/** The labelled mails that come along; changes nothing. With a model, each mail is a call that is counted. */
export async function evaluate(context: CliContext, options: { model?: boolean }): Promise<void> {
  await withAssist(context, async ({ assist }) => {
    const signal = new AbortController().signal
    const sorter: Sorter = options.model
      ? async (message) => {
          const { system, prompt } = classifyPrompt({
            message,
            thread: [message],
            owner: { name: '', address: 'owner@example.com' },
            styles: [],
            examples: [],
          })
          const { value } = await assist.models.ask({
            account: EVALUATION,
            purpose: 'classify',
            system,
            messages: [{ role: 'user', content: prompt }],
            schema: classificationSchema,
            signal,
          })
          const read = classificationOf(value)
          return read ?? { category: 'needs_response', confidence: 0 }
        }
      : (message, corrections) => assist.kinds.local.classify(message, corrections, signal)
    const rounds = options.model ? [0] : CORRECTIONS
    const reports: SortingReport[] = []
    for (const corrections of rounds) reports.push(await evaluateSorting(sorter, corrections))
    const { output } = context
    if (output.json) {
      output.value(reports)
      return
    }
    for (const { corrections, all, byCategory } of reports) {
      output.line(`With ${corrections} corrections: ${all.right} of ${all.of} right (${share(all)})`)
      for (const [category, tally] of Object.entries(byCategory)) {
        output.line(`  ${category.padEnd(16)} ${tally.right} of ${tally.of} (${share(tally)})`)
      }
    }
  })
}

const CORRECTIONS = [0, 5, 20]
/** No mailbox: its calls are counted and capped like those of one. */
const EVALUATION = 'evaluation'

function share({ right, of }: Tally): string {
  return of === 0 ? '–' : `${Math.round((right / of) * 100)} %`
}

export async function runs(
  context: CliContext,
  run: string | undefined,
  options: AccountOption,
): Promise<void> {
  await withAssist(context, async (opened) => {
    const account = await chosenAccount(opened, options)
    const { store } = opened.assist.agents
    const { output } = context
    if (run !== undefined) {
      const id = readNumber(run, 'a run')
      const found = await store.run(id)
      if (found?.account !== account) throw new UsageError(`There is no run ${id}.`, { code: 'run-unknown' })
      const steps = (await store.steps(id)).map(stepView)
      if (output.json) {
        output.value({ ...runView(found), steps })
        return
      }
      output.line(`${found.profile}: ${found.status} after ${found.iterations} steps. ${found.text}`)
      for (const step of steps) {
        output.line(
          `  ${step.number}  ${step.tool ?? 'answer'}  ${step.outcome}  ${step.arguments} ${step.result}`,
        )
      }
      return
    }
    const rows = await store.runs({ accounts: [account], limit: RUNS_MAX })
    output.listing({
      columns: [
        { title: 'run', value: ({ id }) => id, align: 'right' },
        { title: 'began', value: ({ startedAtMs }) => isoTime(startedAtMs) },
        { title: 'profile', value: ({ profile }) => profile },
        { title: 'rule', value: ({ rule }) => rule },
        { title: 'status', value: ({ status }) => status },
        { title: 'steps', value: ({ iterations }) => iterations, align: 'right' },
        { title: 'said', value: ({ text }) => text },
      ],
      rows,
      json: rows.map(runView),
      empty: 'No agent has run.',
    })
  })
}
