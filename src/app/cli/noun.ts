/**
 * An app's noun on the command line, and the verbs that every app with sources has: sync, status, pause, resume and bad,
 * and verify where it can check what it keeps. An app says in what its sources differ (`AppNoun`), and adds the verbs that are its own. Nothing heavy is imported
 * before a verb runs.
 */
import type { Command, Option } from 'commander'
import { durationOption } from '../../cli/output/input.ts'
import type { CliContext, Register } from '../command.ts'
import type { Runtime } from '../runtime.ts'
import type { Source } from '../sources.ts'
import { type SourceWords, sourceWords } from './source-words.ts'
import type { SyncPart } from './sync.ts'
import type { VerifyPart } from './verify.ts'
import type { SourcesApp } from './with-app.ts'

export type AppNoun = {
  /** `the mail archive` */
  readonly description: string
  readonly words?: Partial<SourceWords>
  readonly sync?: VerbTexts & {
    readonly part?: () => Promise<SyncPart>
  }
  readonly status?: VerbTexts & {
    readonly report?: () => Promise<StatusReporter>
  }
  /** Where it can check what it keeps. */
  readonly verify?: VerbTexts & {
    readonly part: () => Promise<VerifyPart>
  }
  /** Verbs of its own. */
  readonly verbs?: readonly RegisterVerb[]
  /** Where an app has no sources, and so none of the verbs about these: all that can be said of it. */
  readonly whole?: RegisterVerb
}

export type RegisterVerb = (noun: Command, context: CliContext) => void

type VerbTexts = {
  readonly description?: string
  readonly help?: string
  readonly choiceText?: string
  readonly options?: readonly Option[]
}

/** How a source stands, for `status`. Which of several decides over the exit code is in verbs.ts. */
export type Standing = 'missing' | 'wrong' | 'needs' | 'stopped' | 'going' | 'bad' | 'settled'
export type StatusReport = { lines: readonly string[]; json: object; standing: Standing }
export type StatusReporter = (
  runtime: Runtime,
  source: Source,
  options: Readonly<Record<string, unknown>>,
) => Promise<StatusReport>

type Options = Readonly<Record<string, unknown>>
type Action = (wanted: string | undefined, options: Options) => Promise<void>

/** What the verbs need of an app. */
export type NounApp = SourcesApp & { readonly noun: AppNoun }

export function registerNoun(app: NounApp): Register {
  return (program, context) => {
    const noun = program.command(app.name).description(app.noun.description)
    if (app.noun.whole) {
      app.noun.whole(noun, context)
      return
    }
    registerSync(noun, context, app)
    registerStatus(noun, context, app)
    registerPause(noun, context, app)
    if (sourceWords(app).hasBadItems) registerBad(noun, context, app)
    if (app.noun.verify) registerVerify(noun, context, app, app.noun.verify)
    for (const register of app.noun.verbs ?? []) register(noun, context)
  }
}

/** A verb about one source or all of them: the choice comes as its argument or as its option, as the app has it. */
function addVerb(parent: Command, app: NounApp, name: string, texts: VerbTexts, run: Action): Command {
  const { choice, choiceText } = { ...sourceWords(app), ...texts }
  const isOption = choice.startsWith('-')
  const command = parent.command(name).description(texts.description ?? '')
  if (isOption) command.option(choice, choiceText)
  else command.argument(choice, choiceText)
  for (const option of texts.options ?? []) command.addOption(option)
  if (texts.help) command.addHelpText('after', texts.help)
  const key = choice.replace(/^--(\S+).*$/, '$1')
  return command.action((first: unknown, second: Options) =>
    isOption
      ? run((first as Record<string, string | undefined>)[key], first as Options)
      : run(first as string | undefined, second),
  )
}

function registerSync(noun: Command, context: CliContext, app: NounApp): void {
  const { many } = sourceWords(app)
  const texts = { description: `bring ${many} up to date`, help: SYNC_HELP, ...app.noun.sync }
  const sync = addVerb(noun, app, 'sync', texts, async (wanted, options) => {
    const { syncSources } = await import('./sync.ts')
    await syncSources(context, app, { wanted, options }, await app.noun.sync?.part?.())
  })
  const has = (flag: string): boolean => sync.options.some(({ long }) => long === flag)
  if (!has('--watch')) {
    sync.option('--watch', 'go on, and look for changes every few minutes')
    sync.addOption(durationOption('--every <time>', 'with --watch: how often to look, such as 2m'))
  }
}

const SYNC_HELP = `
It can be stopped at any time with Ctrl-C and goes on where it was. Ends with 0 when all is settled, 1 when something
failed or it was stopped before that, 3 when all is settled but for bad items or something needs you.`

function registerStatus(noun: Command, context: CliContext, app: NounApp): void {
  const { many } = sourceWords(app)
  const texts = { description: `show how far ${many} are`, ...app.noun.status }
  addVerb(noun, app, 'status', texts, async (wanted, options) => {
    const { showStatus } = await import('./verbs.ts')
    await showStatus(context, app, { wanted, options })
  })
}

const PAUSE_HELP = `
What is under way ends normally. What changes meanwhile is not forgotten: it is seen to when it goes on.`

function registerPause(noun: Command, context: CliContext, app: NounApp): void {
  const texts = { description: 'do nothing for a while', help: PAUSE_HELP }
  addVerb(noun, app, 'pause', texts, async (wanted, { reason }) => {
    const { pauseSources } = await import('./verbs.ts')
    await pauseSources(context, app, { wanted, reason: String(reason) })
  }).option('--reason <text>', 'why, for those who wonder', 'by hand')
  addVerb(noun, app, 'resume', { description: 'go on with what was paused' }, async (wanted) => {
    const { resumeSources } = await import('./verbs.ts')
    await resumeSources(context, app, wanted)
  })
}

function registerBad(noun: Command, context: CliContext, app: NounApp): void {
  const { items, badText, choice, choiceText } = sourceWords(app)
  // Behind the ids of the items an argument would be one of them.
  const [flags, key] = choice.startsWith('-')
    ? [choice, choice.replace(/^--(\S+).*$/, '$1')]
    : [`--${sourceWords(app).one} <name>`, sourceWords(app).one]
  const bad = noun.command('bad').description(`${items} that ${badText}`)
  const chosen = (options: Options): string | undefined => options[key] as string | undefined
  bad
    .command('list')
    .description('list them, each with its reason')
    .option(flags, choiceText)
    .action(async (options: Options) => {
      const { listBad } = await import('./bad.ts')
      await listBad(context, app, chosen(options))
    })
  bad
    .command('show')
    .description('show all that is known about one')
    .argument('<id>', `what the list calls the ${sourceWords(app).item}`)
    .option(flags, choiceText)
    .action(async (id: string, options: Options) => {
      const { showBad } = await import('./bad.ts')
      await showBad(context, app, { id, wanted: chosen(options) })
    })
  bad
    .command('retry')
    .description('try them again, now')
    .argument('[ids...]', `what the list calls them; all of them if none is named`)
    .option(flags, choiceText)
    .action(async (ids: string[], options: Options) => {
      const { retryBad } = await import('./bad.ts')
      await retryBad(context, app, { ids, wanted: chosen(options) })
    })
}

function registerVerify(
  noun: Command,
  context: CliContext,
  app: NounApp,
  own: NonNullable<AppNoun['verify']>,
): void {
  const texts = { description: `check ${sourceWords(app).many}`, ...own }
  addVerb(noun, app, 'verify', texts, async (wanted, options) => {
    const { verifySources } = await import('./verify.ts')
    await verifySources(context, app, { wanted, options }, await own.part())
  })
}
