/** `tidemark config`: what holds, where it came from, and what could be set. */
import { existsSync } from 'node:fs'
import { type Command, Option } from 'commander'
import type { CliContext } from '../app/command.ts'
import { UsageError } from '../base/errors.ts'
import type { Catalog } from '../config/catalog.ts'

const ORIGIN_KINDS = ['default', 'file', 'env', 'flag']

export function registerConfig(program: Command, context: CliContext): void {
  const config = program.command('config').description('show the configuration, and change it')
  config
    .command('show')
    .description('print every setting that holds and where it came from')
    .addOption(new Option('--origin <kind...>', 'only settings that came from there').choices(ORIGIN_KINDS))
    .action((options: { origin?: string[] }) => showConfig(context, options.origin))
  config
    .command('path')
    .description('print where the configuration file is')
    .action(() => showPath(context))
  config
    .command('keys')
    .description('print every key, what it allows and its environment variable')
    .action(() => showKeys(context))
  config
    .command('set')
    .description('change a setting in the configuration file; comments and order stay')
    .argument('<key>', 'such as files.poll_seconds')
    .argument('[value]', 'in the form of config keys; a list as in TOML; - reads it from standard input')
    .addHelpText('after', SET_HELP)
    .action(async (key: string, value: string | undefined) =>
      change(context, key, await givenValue(context, key, value)),
    )
  config
    .command('unset')
    .description('take a setting out of the configuration file: its default holds again')
    .argument('<key>', 'such as files.poll_seconds')
    .action((key: string) => change(context, key, undefined))
}

const SET_HELP = `
The value is checked before anything is written, and the file is replaced as a whole. A server that is running takes it
over when it is sent SIGHUP, or starts anew; what is changed on its page of settings holds there at once. Every comment
stays; one inside of a list that is written anew comes to stand in front of it. The file keeps its owner and its group.

A secret (a client_secret, ledger.token, a ledger.url with a password) is no argument, which other users of the
machine can read: without a value it is asked for and not shown, and with - it is read from standard input.

Examples:
  tidemark config set bandwidth.upload 1MB/s
  tidemark config set ledger.token - < token.txt
  tidemark config set bandwidth.timetable '[{ from = "22:00", to = "06:00", upload = "unlimited" }]'

With --json: key, value, file, changed, overriddenBy ({kind, name}, or null).`

/** What is to be set, from where it may be given: arguments are seen by all users, and kept by the shell. */
async function givenValue(context: CliContext, key: string, argument: string | undefined): Promise<string> {
  const [{ catalog }, { maskAs }, { readHidden, readLines }] = await Promise.all([
    import('../apps/catalog.ts') as Promise<{ catalog: Catalog }>,
    import('../config/secret.ts'),
    import('./output/prompt.ts'),
  ])
  const secret = catalog.find(key)?.about.secret
  const hint = `Leave the value out to be asked for it, or give it on standard input: tidemark config set ${key} -`
  if (argument === '-') {
    const lines = readLines({ rawError() {} })
    try {
      return required(await lines.next(''), key)
    } finally {
      lines.close()
    }
  }
  if (argument === undefined) {
    if (process.stdin.isTTY && secret) return required(await readHidden(context.output, `${key}: `), key)
    throw new UsageError(`${key} needs a value.`, { code: 'value-needed', hint })
  }
  if (secret && maskAs(secret, argument) !== argument) {
    throw new UsageError(`${key} is a secret, which must not be an argument. Nothing was changed.`, {
      code: 'secret-argument',
      hint,
    })
  }
  return argument
}

function required(text: string | undefined, key: string): string {
  if (text) return text
  throw new UsageError(`No value of ${key} was given. Nothing was changed.`, { code: 'value-needed' })
}

async function change(context: CliContext, key: string, text: string | undefined): Promise<void> {
  const [{ changeSetting }, { displayValue, hideSecret }, { originText }, { catalog }] = await Promise.all([
    import('../config/change.ts'),
    import('../config/catalog.ts'),
    import('../config/location.ts'),
    import('../apps/catalog.ts'),
  ])
  const { output, env, flags } = context
  const { file } = context.locate()
  const input = { catalog, env, flags, file, key, text }
  const { loaded, isOther, overriddenBy, isClosed } = await changeSetting(input)
  const entry = catalog.find(key)!
  const section = loaded.values[entry.section as keyof typeof loaded.values] as Record<string, unknown>
  const value = section[entry.name]
  if (output.json) {
    const shown = hideSecret(entry, value) ?? null
    output.value({ key, value: shown, file: file.path, changed: isOther, overriddenBy: overriddenBy ?? null })
    return
  }
  const origin = loaded.origins.get(key) ?? { kind: 'default' }
  output.line(`${key} is ${displayValue(entry, value)} (${originText(origin)})`)
  if (overriddenBy) output.note(`${originText(overriddenBy)} wins over what stands in ${file.path}.`)
  else if (!isOther) output.note('Nothing was changed: it was so already.')
  if (isClosed) {
    output.note(
      `Any user could read ${file.path}; its owner and its group still can. A service of another user needs its group.`,
    )
  }
}

async function showConfig(context: CliContext, kinds: string[] = ORIGIN_KINDS): Promise<void> {
  const { displayValue, hideSecret } = await import('../config/catalog.ts')
  const { originText } = await import('../config/location.ts')
  const { catalog, values, origins, home, file } = await context.loadConfig()
  const rows = catalog.entries.flatMap((entry) => {
    const section = values[entry.section as keyof typeof values] as Record<string, unknown>
    const origin = origins.get(entry.key) ?? { kind: 'default' }
    return kinds.includes(origin.kind) ? [{ entry, value: section[entry.name], origin }] : []
  })
  const settings = rows.map(({ entry, value, origin }) => ({
    key: entry.key,
    value: hideSecret(entry, value) ?? null,
    origin,
  }))
  context.output.listing({
    columns: [
      { title: 'key', value: ({ entry }) => entry.key },
      { title: 'value', value: ({ entry, value }) => displayValue(entry, value) },
      { title: 'origin', value: ({ origin }) => originText(origin) },
    ],
    rows,
    json: { home, file, settings },
    empty: 'No setting came from there.',
  })
}

/** Also answers when the file is broken: one has to find it to mend it. */
function showPath({ output, locate }: CliContext): void {
  const { file, home } = locate()
  const exists = existsSync(file.path)
  if (output.json) output.value({ path: file.path, exists, home: home.path })
  else output.line(file.path)
  if (!exists && output.isTerminal) output.note('There is no such file yet: the defaults hold.')
}

async function showKeys(context: CliContext): Promise<void> {
  const { catalog } = await import('../apps/catalog.ts')
  context.output.listing({
    columns: [
      { title: 'key', value: ({ key }) => key },
      { title: 'purpose', value: ({ about }) => about.purpose },
      { title: 'allowed', value: ({ about }) => about.allowed },
      { title: 'variable', value: ({ variable }) => variable },
    ],
    rows: catalog.entries,
    json: catalog.entries.map(({ key, variable, about }) => ({
      key,
      variable,
      purpose: about.purpose,
      allowed: about.allowed,
    })),
  })
}
