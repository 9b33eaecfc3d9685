/** `tidemark assist classify`, `reclassify`, `draft`, `rework` and `undo`: what is said is written down, then done. */
import { runWork } from '../../../app/cli/sync.ts'
import { openedSources } from '../../../app/cli/with-app.ts'
import type { CliContext } from '../../../app/command.ts'
import { UsageError } from '../../../base/errors.ts'
import {
  type ActionPlace,
  correctCategory,
  orderDraft,
  orderRework,
  reclassify as sortAgain,
  type ThreadOf,
  undoEvent,
} from '../actions.ts'
import { assistApp } from '../app.ts'
import type { AssistRuntime } from '../runtime.ts'
import { assistSource } from '../sources.ts'
import {
  type AccountOption,
  chosenAccount,
  chosenThread,
  readCategory,
  readNumber,
  withAssist,
} from './context.ts'

export function classify(context: CliContext, thread: string, options: AccountOption): Promise<void> {
  return change(context, thread, options, sortAgain)
}

export async function reclassify(
  context: CliContext,
  input: { thread: string; category: string; options: AccountOption },
): Promise<void> {
  const category = readCategory(input.category)
  await change(context, input.thread, input.options, (place, of) => correctCategory(place, of, category))
}

export function draft(
  context: CliContext,
  thread: string,
  options: AccountOption & { instruction?: string },
): Promise<void> {
  return change(context, thread, options, (place, of) => orderDraft(place, of, options.instruction ?? ''))
}

export async function rework(
  context: CliContext,
  { thread, instruction, options }: { thread: string; instruction: string; options: AccountOption },
): Promise<void> {
  const said = instruction.trim()
  if (said === '') throw new UsageError('A rework must say what should be different.')
  return change(context, thread, options, (place, of) => orderRework(place, of, said))
}

export async function undo(context: CliContext, event: string, options: AccountOption): Promise<void> {
  const number = readNumber(event, 'an event')
  await withAssist(context, async (opened) => {
    const account = await chosenAccount(opened, options)
    await undoEvent(placeOf(opened), account, number)
    await work(context, opened, account)
  })
}

async function change(
  context: CliContext,
  thread: string,
  options: AccountOption,
  run: (place: ActionPlace, of: ThreadOf) => Promise<unknown>,
): Promise<void> {
  await withAssist(context, async (opened) => {
    const { account } = await chosenThread(opened, thread, options)
    await opened.engine.streams.open(assistSource(account).stream)
    await run(placeOf(opened), { account, thread })
    await work(context, opened, account)
  })
}

function placeOf({ engine, assist }: AssistRuntime): ActionPlace {
  return { engine, kinds: assist.kinds }
}

async function work(context: CliContext, opened: AssistRuntime, account: string): Promise<void> {
  await runWork(context, openedSources(assistApp, opened), [assistSource(account)])
}
