/** `tidemark assist briefing`, `costs`, `runs` and `eval`. */
import type { CliContext } from '../../../app/command.ts'
import { UsageError } from '../../../base/errors.ts'
import { formatCount } from '../../../base/format.ts'
import { isoTime } from '../../../base/moment.ts'
import { runView, stepView } from '../api/rules.ts'
import { briefingOf } from '../briefing.ts'
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
      const { onTheirWay } = await assist.tables.balance(account)
      const estimate = await assist.estimate(account, onTheirWay)
      if (context.output.json) context.output.value(estimate)
      else context.output.line(estimate.text)
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

export async function runs(
  context: CliContext,
  run: string | undefined,
  options: AccountOption,
): Promise<void> {
  await withAssist(context, async (opened) => {
    const account = await chosenAccount(opened, options)
    const store = opened.assist.runs
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
