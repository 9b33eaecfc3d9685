/** Opens one app for a command, and finds the sources that the command is about. */
import { TidemarkError, UsageError } from '../../base/errors.ts'
import type { Override } from '../../config/load.ts'
import type { CliContext } from '../command.ts'
import { type AppOpening, type OpenApp, openedApp, type Runtime } from '../runtime.ts'
import type { Source, Sources } from '../sources.ts'
import { sourceWords, type WordedApp } from './source-words.ts'

export type AppInput = {
  overrides?: readonly Override[]
  /** What holds for this run, over the configuration: see AppPlace. */
  appOverrides?: unknown
  /** The ledger is made where there is none yet. */
  create?: boolean
}

/** An app with sources, as far as commands about these need to know it. */
export type SourcesApp = AppOpening & WordedApp & { readonly services: readonly string[] }

/** A runtime with one app, which has sources. */
export type OpenedSources = { app: SourcesApp; runtime: Runtime; open: OpenApp; sources: Sources }

/** Opens everything, and starts nothing. It is closed at the end. */
export async function withApp<T>(
  context: CliContext,
  app: SourcesApp,
  { overrides = [], appOverrides = {}, create = false }: AppInput,
  use: (runtime: Runtime) => Promise<T>,
): Promise<T> {
  const opening = context.openRuntime({
    apps: [app],
    name: app.name,
    overrides,
    appOverrides: { [app.name]: appOverrides },
    create,
  })
  const runtime = await opening.catch((thrown: unknown) => {
    throw thrown instanceof TidemarkError && thrown.code === 'ledger-unmade' ? noSource(app, thrown) : thrown
  })
  try {
    return await use(runtime)
  } finally {
    await runtime.close()
  }
}

export function withSources<T>(
  context: CliContext,
  app: SourcesApp,
  input: AppInput,
  use: (opened: OpenedSources) => Promise<T>,
): Promise<T> {
  return withApp(context, app, input, (runtime) => use(openedSources(app, runtime)))
}

export function openedSources(app: SourcesApp, runtime: Runtime): OpenedSources {
  const open = openedApp<OpenApp>(runtime, app.name)
  return { app, runtime, open, sources: open.sources }
}

/** All of them where none is named. */
export async function chosenSources(
  { app, sources }: Pick<OpenedSources, 'app' | 'sources'>,
  wanted: string | undefined,
): Promise<readonly Source[]> {
  if (sources.find) return sources.find(wanted)
  const all = await sources.list()
  if (wanted === undefined) {
    if (all.length > 0) return all
    throw noSource(app)
  }
  const plain = wanted.trim().toLowerCase()
  const found =
    all.find(({ name }) => name === wanted) ?? all.find(({ name }) => name.toLowerCase() === plain)
  if (found) return [found]
  const names = all.map(({ name }) => name)
  const { one, none } = sourceWords(app)
  const noneYet = none?.hint
  throw new UsageError(`There is no ${app.name} ${one} ${wanted}.`, {
    code: `${one}-unknown`,
    hint: [
      names.length > 0 ? `There are: ${names.join(', ')}.` : '',
      noneYet ?? (names.length > 0 ? '' : beginHint(app)),
    ]
      .filter((part) => part !== '')
      .join(' '),
  })
}

export function noSource(app: SourcesApp, cause?: unknown): UsageError {
  const { one, account, none } = sourceWords(app)
  const isAccount = app.services.length > 0
  const text = isAccount ? `No ${account} account is connected.` : `There is no ${app.name} ${one} yet.`
  return new UsageError(none?.text ?? text, {
    code: isAccount ? 'no-account' : `no-${one}`,
    hint: none?.hint ?? beginHint(app),
    ...(cause === undefined ? {} : { cause }),
  })
}

function beginHint({ name, services }: SourcesApp): string {
  const [service] = services
  return service === undefined
    ? `See what there is with: tidemark ${name} --help`
    : `Connect one with: tidemark account add ${service}`
}
