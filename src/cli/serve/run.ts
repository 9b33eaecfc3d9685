/** Runs the server in this process, until a signal ends it. */

import type { CliContext } from '../../app/command.ts'
import { catalog } from '../../apps/catalog.ts'
import { systemClock } from '../../base/clock.ts'
import { CONNECT_COMMANDS } from '../../cloud/registry.ts'
import { changeSetting } from '../../config/change.ts'
import type { LoadedConfig, Override } from '../../config/load.ts'
import { createLogger } from '../../engine/observe/log.ts'
import { handleSignals } from '../../engine/shutdown.ts'
import { signInUrl } from '../../server/sign-in-code.ts'
import { type Serving, startServing } from './process.ts'
import type { ServeFlags } from './serve.ts'
import { serverToken } from './token.ts'
import { buildPages } from './web.ts'

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
  const socket = isListening
    ? { host: server.host, port: server.port, token: await serverToken(loaded) }
    : undefined
  const building = flags.role === 'worker' ? undefined : buildPages()
  let serving: Serving | undefined
  const stopping = stopSignal(context, () => reload(context, overrides, serving))
  try {
    serving = await startServing({
      config: loaded.values,
      origins: loaded.origins,
      home: loaded.home.path,
      env: context.env,
      role: flags.role,
      socket,
      logger,
      changeSetting: inTurn((key, text) => change(context, overrides, { serving, key, text })),
    })
    const trouble = await building
    if (trouble !== undefined)
      context.output.note(`The pages could not be built (npm run build says more): ${trouble}`)
    await announce(context, flags, { serving, token: socket?.token })
    await stopping.stopped
    context.output.note('Stopping; what is under way is kept.')
    await serving.close()
  } finally {
    stopping.end()
  }
}

function overridesOf({ host, port }: ServeFlags): Override[] {
  return [
    ...(host === undefined ? [] : [{ key: 'server.host', value: host, flag: '--host' }]),
    ...(port === undefined ? [] : [{ key: 'server.port', value: port, flag: '--port' }]),
  ]
}

async function announce(
  { output, env }: CliContext,
  { role }: ServeFlags,
  { serving: { url, runtime }, token }: { serving: Serving; token: string | undefined },
): Promise<void> {
  const accounts = await runtime.accounts.list()
  // Others may read the journal, which keeps what it is told.
  const isKept = env.JOURNAL_STREAM !== undefined
  const canSignIn = role !== 'worker' && !isKept && url !== undefined && token !== undefined
  const signIn = canSignIn ? addressFor(url, token) : null
  if (output.json) {
    const about = { url: url ?? null, signIn, role, pid: process.pid, accounts: accounts.length }
    // One line on a terminal too: a program waits for it.
    output.raw(`${JSON.stringify(about)}\n`)
    return
  }
  if (role === 'worker') output.line(url ? `Working; health is told at ${url}/healthz` : 'Working.')
  else for (const line of whereLines(url ?? '', signIn)) output.line(line)
  if (accounts.length === 0) {
    const commands = `with: ${CONNECT_COMMANDS.join(', or: ')}`
    const page = role === 'worker' ? '' : 'on its page of settings, or '
    output.line(`No account is connected yet. Connect one ${page}${commands}`)
  }
  output.line('Ctrl-C stops it.')
}

/** A server on every address is reached on this machine by its own. */
export function addressFor(url: string, token: string, userId?: number): string {
  const own = url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:')
  return signInUrl(own, token, systemClock.now(), userId)
}

export function whereLines(url: string, signIn: string | null): string[] {
  if (signIn === null)
    return [`Tidemark is at ${url}; sign in with the address that \`tidemark sign-in\` prints.`]
  return [
    `Tidemark is at ${signIn}`,
    'This address signs one browser in, once, within 15 minutes; `tidemark sign-in` prints another.',
  ]
}

type Change = { serving: Serving | undefined; key: string; text: string | undefined }

/** In the file, as the command does it; and in this process, as with SIGHUP. */
async function change(
  { env, flags, locate }: CliContext,
  overrides: readonly Override[],
  { serving, key, text }: Change,
): Promise<void> {
  const { file } = locate()
  const { loaded } = await changeSetting({ catalog, env, flags, overrides, file, key, text })
  await serving?.reload(loaded.values, loaded.origins)
}

/** One after the other: each reads what the one before has written. */
function inTurn<Args extends unknown[]>(
  run: (...args: Args) => Promise<void>,
): (...args: Args) => Promise<void> {
  let last: Promise<void> = Promise.resolve()
  return (...args) => {
    const own = last.then(() => run(...args))
    last = own.catch(() => {})
    return own
  }
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
    'The configuration was read again. Addresses, token, ledger, alerts and embedding need a new start.',
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
