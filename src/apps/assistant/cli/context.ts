/** What commands of the assistant work with, and how they find the mailbox and the thread that are meant. */
import { withApp } from '../../../app/cli/with-app.ts'
import type { CliContext } from '../../../app/command.ts'
import { UsageError } from '../../../base/errors.ts'
import { assistApp } from '../app.ts'
import { CATEGORIES, type Category } from '../contract.ts'
import { type AssistRuntime, assistRuntime } from '../runtime.ts'
import type { ThreadRecord } from '../store/records.ts'

export type AccountOption = { account?: string }

/** Opens everything, and starts nothing. */
export function withAssist<T>(context: CliContext, use: (opened: AssistRuntime) => Promise<T>): Promise<T> {
  return withApp(context, assistApp, {}, (runtime) => use(assistRuntime(runtime)))
}

/** The one that is named; the only one that is switched on where none is. */
export async function chosenAccount({ assist }: AssistRuntime, { account }: AccountOption): Promise<string> {
  const names = (await assist.tables.accounts()).map((row) => row.account)
  if (account !== undefined) {
    if (names.includes(account)) return account
    throw new UsageError(`The assistant is not switched on for ${account}.`, {
      code: 'account-unknown',
      hint: `Switch it on with: tidemark assist onboard ${account}`,
    })
  }
  const [only, ...others] = names
  if (only !== undefined && others.length === 0) return only
  throw new UsageError(
    only === undefined
      ? 'The assistant is switched on for no mailbox.'
      : `Several mailboxes have the assistant: ${names.join(', ')}.`,
    {
      code: 'account-missing',
      hint:
        only === undefined
          ? 'Switch it on with: tidemark assist onboard ADDRESS'
          : 'Say which one with --account ADDRESS.',
    },
  )
}

export async function chosenThread(
  opened: AssistRuntime,
  thread: string,
  options: AccountOption,
): Promise<ThreadRecord> {
  const account = await chosenAccount(opened, options)
  const record = await opened.assist.tables.record(account, thread)
  if (record) return record
  throw new UsageError(`The assistant knows of no thread ${thread} in ${account}.`, {
    code: 'thread-unknown',
    hint: 'tidemark assist list shows those it knows.',
  })
}

export function readCategory(text: string): Category {
  const found = CATEGORIES.find((one) => one === text)
  if (found) return found
  throw new UsageError(`There is no category ${text}.`, { hint: `There are: ${CATEGORIES.join(', ')}.` })
}

export function readNumber(text: string, what: string): number {
  if (/^[1-9]\d{0,14}$/.test(text)) return Number(text)
  throw new UsageError(`"${text}" is not the number of ${what}.`)
}
