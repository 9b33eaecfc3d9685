/** `tidemark assist onboard`, `off`, `import` and `export`. */
import { readFileSync } from 'node:fs'
import type { CliContext } from '../../../app/command.ts'
import { UsageError } from '../../../base/errors.ts'
import { settingsOf } from '../account.ts'
import { changeSettings, switchAccount } from '../actions.ts'
import { settingsFromToml, settingsToToml } from '../config-import.ts'
import { onboard as begin } from '../onboard.ts'
import { type AccountOption, chosenAccount, withAssist } from './context.ts'

export async function onboard(context: CliContext, address: string): Promise<void> {
  await withAssist(context, async ({ engine, accounts, vault, assist }) => {
    const name = address.toLowerCase()
    const { isNew, labels } = await begin({ engine, kinds: assist.kinds, accounts, vault }, name)
    const { output } = context
    if (output.json) {
      output.value({ account: name, isNew, labels })
      return
    }
    output.line(isNew ? `The assistant is on for ${name}.` : `The assistant was on for ${name} already.`)
    if (isNew) output.note('Sort what is there with: tidemark assist sync. tidemark serve goes on by itself.')
  })
}

export async function switchOff(context: CliContext, address: string): Promise<void> {
  await withAssist(context, async (opened) => {
    const account = await chosenAccount(opened, { account: address.toLowerCase() })
    await switchAccount({ engine: opened.engine, kinds: opened.assist.kinds }, account, false)
    if (context.output.json) context.output.value({ account, active: false })
    else context.output.line(`The assistant is off for ${account}. Labels, drafts and records stay.`)
  })
}

const STDIN = 0

export async function importSettings(
  context: CliContext,
  file: string,
  options: AccountOption,
): Promise<void> {
  const change = settingsFromToml(readText(file))
  await withAssist(context, async (opened) => {
    const account = await chosenAccount(opened, options)
    const next = await changeSettings({ engine: opened.engine, kinds: opened.assist.kinds }, account, change)
    const { output } = context
    if (output.json) output.value(next)
    else output.line(`Taken over for ${account}: ${Object.keys(change).join(', ') || 'nothing'}.`)
  })
}

function readText(file: string): string {
  try {
    return readFileSync(file === '-' ? STDIN : file, 'utf8')
  } catch (cause) {
    throw new UsageError(`${file} cannot be read: ${(cause as Error).message}`, {
      code: 'file-unreadable',
      cause,
    })
  }
}

export async function exportSettings(context: CliContext, options: AccountOption): Promise<void> {
  await withAssist(context, async (opened) => {
    const account = await chosenAccount(opened, options)
    const row = await opened.assist.tables.account(account)
    const settings = settingsOf(row!)
    if (context.output.json) context.output.value(settings)
    else for (const line of settingsToToml(settings).trimEnd().split('\n')) context.output.line(line)
  })
}
