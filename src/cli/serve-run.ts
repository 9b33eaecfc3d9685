/** Runs the server in this process, until a signal ends it. */
import { systemClock } from '../clock.ts'
import type { LoadedConfig, Override } from '../config/load.ts'
import { createLogger } from '../engine/log.ts'
import { handleSignals } from '../engine/shutdown.ts'
import { exposedAs } from '../server/security.ts'
import type { CliContext } from './context.ts'
import type { ServeFlags } from './serve.ts'
import { type Serving, startServing } from './serve-process.ts'
import { keptToken } from './serve-token.ts'
import { buildPages } from './serve-web.ts'

export async function serve(context: CliContext, flags: ServeFlags): Promise<void> {
  const overrides = overridesOf(flags)
  const loaded = await context.loadConfig(overrides)
  const { log, server } = loaded.values
  const stream = {
    write: (text: string) => context.output.rawError(text),
    isTTY: process.stderr.isTTY === true,
  }
  const logger = await createLogger({ clock: systemClock, stream, level: log.level, format: log.format })
  // Several workers on one machine would be in each other's way: they listen where they are told to.
  const isListening = flags.role !== 'worker' || flags.port !== undefined
  const token = isListening ? await tokenFor(context, loaded) : undefined
  const building = flags.role === 'worker' ? undefined : buildPages()
  let serving: Serving | undefined
  const stopping = stopSignal(context, () => reload(context, overrides, serving))
  try {
    serving = await startServing({
      ...{ config: loaded.values, origins: loaded.origins, home: loaded.home.path, env: context.env },
      ...{ role: flags.role, host: server.host, port: isListening ? server.port : undefined, token, logger },
    })
    const trouble = await building
    if (trouble !== undefined)
      context.output.note(`The pages could not be built (npm run build says more): ${trouble}`)
    await announce(context, flags, serving)
    await stopping.stopped
    context.output.note('Stopping; what is under way is kept.')
    await serving.close()
  } finally {
    stopping.end()
  }
}

function overridesOf({ host, port, token }: ServeFlags): Override[] {
  return [
    ...(host === undefined ? [] : [{ key: 'server.host', value: host, flag: '--host' }]),
    ...(port === undefined ? [] : [{ key: 'server.port', value: port, flag: '--port' }]),
    ...(token === undefined ? [] : [{ key: 'server.token', value: token, flag: '--token' }]),
  ]
}

/** None where only this machine can ask and nobody has set one. */
async function tokenFor({ output }: CliContext, loaded: LoadedConfig): Promise<string | undefined> {
  const { host, token, allowed_hosts: allowedHosts } = loaded.values.server
  const name = exposedAs({ host, allowedHosts })
  if (token !== undefined || name === undefined) return token
  const kept = await keptToken(loaded.home.path)
  if (kept.isNew) {
    output.note(`Others can reach ${name}, so a token was made. It is shown this once:`)
    output.note(`  ${kept.token}`)
    output.note(`It is kept in ${kept.file}; server.token takes its place.`)
  } else output.note(`The token to sign in with is in ${kept.file}.`)
  return kept.token
}

async function announce(
  { output }: CliContext,
  { role }: ServeFlags,
  { url, runtime }: Serving,
): Promise<void> {
  const accounts = await runtime.accounts.list()
  if (output.json) {
    // One line on a terminal too: a program waits for it.
    output.raw(`${JSON.stringify({ url: url ?? null, role, pid: process.pid, accounts: accounts.length })}\n`)
    return
  }
  if (role === 'worker') output.line(url ? `Working; health is told at ${url}/healthz` : 'Working.')
  else output.line(`Tidemark is at ${url}`)
  if (accounts.length === 0) {
    const commands = 'with: tidemark account add gmail, or: tidemark account add onedrive'
    const page = role === 'worker' ? '' : `at ${url}/settings, or `
    output.line(`No account is connected yet. Connect one ${page}${commands}`)
  }
  output.line('Ctrl-C stops it.')
}

async function reload(
  context: CliContext,
  overrides: readonly Override[],
  serving: Serving | undefined,
): Promise<void> {
  if (!serving) return
  let loaded: LoadedConfig
  try {
    loaded = await context.loadConfig(overrides)
  } catch (thrown) {
    context.output.error(thrown)
    context.output.note('Nothing was changed: the configuration that was read before still holds.')
    return
  }
  await serving.reload(loaded.values, loaded.origins)
  context.output.note(
    'The configuration was read again. Addresses, token, ledger and alerts need a new start.',
  )
}

export type Stopping = {
  /** Settles with the first SIGINT or SIGTERM; another one ends the process at once. */
  stopped: Promise<void>
  signal: AbortSignal
  end(): void
}

export function stopSignal({ output }: CliContext, onReload: () => void | Promise<void>): Stopping {
  const controller = new AbortController()
  const { promise: stopped, resolve } = Promise.withResolvers<void>()
  const end = handleSignals({
    process,
    clock: systemClock,
    onStop: () => {
      controller.abort()
      resolve()
    },
    onReload,
    exit: (code) => process.exit(code),
    onError: (error) => output.error(error),
  })
  return { stopped, signal: controller.signal, end }
}
