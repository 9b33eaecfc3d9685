/** Runs the demo in this process: cloud, server, sync, and the lines that tell of it. */
import { join } from 'node:path'
import { type CliContext, exitCodes } from '../../app/command.ts'
import type { DemoLine, DemoPart, DemoProgress } from '../../app/demo.ts'
import type { Runtime } from '../../app/runtime.ts'
import { catalog } from '../../apps/catalog.ts'
import { apps } from '../../apps/registry.ts'
import { sleep, systemClock } from '../../base/clock.ts'
import { asTidemarkError, TidemarkError } from '../../base/errors.ts'
import { formatCount } from '../../base/format.ts'
import { replaceFile } from '../../base/whole-file.ts'
import { shellWord } from '../../base/wording.ts'
import { type LoadedConfig, loadConfig } from '../../config/load.ts'
import { silentLogger } from '../../engine/observe/log.ts'
import { type Serving, startServing } from '../serve/process.ts'
import { addressFor, type Stopping, stopSignal, whereLines } from '../serve/run.ts'
import { serverToken } from '../serve/token.ts'
import { buildPages } from '../serve/web.ts'
import { startDemoCloud } from './cloud.ts'
import type { DemoFlags } from './demo.ts'
import { type DemoHome, openDemoHome } from './home.ts'

type NamedPart = DemoPart & { name: string }

const ADDRESS = 'you@example.com'
const MESSAGES_DEFAULT = 3_000
const PORT_DEFAULT = 4180
const SHOW_MS = 10_000

export async function runDemo(context: CliContext, flags: DemoFlags): Promise<void> {
  const home = openDemoHome({
    path: context.flags.home === undefined ? undefined : context.locate().home.path,
    messages: flags.messages ?? MESSAGES_DEFAULT,
    nowMs: systemClock.now(),
  })
  const stopping = stopSignal(context, () =>
    context.output.note('The demo has no configuration to read again.'),
  )
  try {
    await runIn(home, { context, flags, stopping })
  } finally {
    stopping.end()
    home.close()
  }
}

type Running = { context: CliContext; flags: DemoFlags; stopping: Stopping }

async function runIn(home: DemoHome, { context, flags, stopping }: Running): Promise<void> {
  const building = buildPages()
  if (flags.messages !== undefined && flags.messages !== home.world.messages) {
    context.output.note(
      `This demo goes on with the ${formatCount(home.world.messages)} messages that it began with.`,
    )
  }
  const isFast = flags.fast === true
  const demos = await Promise.all(apps.map((app) => app.demo()))
  const place = { ...home.world, home: home.path, address: ADDRESS, isFast }
  const { sim, parts: begun } = await startDemoCloud(demos, place)
  const parts = begun.map((part, at) => ({ ...part, name: apps[at]!.name }))
  let serving: Serving | undefined
  let token = ''
  try {
    serving = await startOnFreePort(flags, async (port) => {
      const loaded = configure(home.path, { parts, port })
      token = await serverToken(loaded)
      return start(loaded, { home, parts, port, token })
    })
    const trouble = await building
    if (trouble !== undefined)
      context.output.note(`The pages could not be built (npm run build says more): ${trouble}`)
    introduce(context, { home, url: serving.url ?? '', token, flags, parts })
    const { runtime } = serving
    await show(context, { runtime, parts, stop: stopping.signal, isOnce: flags.once === true })
  } finally {
    await serving?.close()
    await sim.close()
  }
}

/**
 * Written anew at every start, because the cloud is at another port then. In a file, so that the other commands reach
 * it with --home. The environment does not count: it is about real accounts and a real ledger.
 */
function configure(
  home: string,
  { parts, port }: { parts: readonly NamedPart[]; port: number },
): LoadedConfig {
  const sections = ['# Written by tidemark demo at every start.', ...parts.map(({ config }) => config)]
  replaceFile(join(home, 'config.toml'), `${sections.join('\n')}\n[server]\nport = ${port}\n`)
  return loadConfig({ catalog, env: {}, flags: { home } })
}

type Place = { home: DemoHome; parts: readonly NamedPart[]; port: number; token: string }

function start({ values: config, origins }: LoadedConfig, place: Place): Promise<Serving> {
  const { home, parts, port, token } = place
  return startServing({
    config,
    origins,
    home: home.path,
    env: {},
    role: 'all',
    logger: silentLogger,
    socket: { host: config.server.host, port, token },
    prepare: async (runtime) => {
      for (const part of parts) await part.connect(runtime)
    },
  })
}

/** Who has not asked for a port is given another one. */
async function startOnFreePort(
  { port }: DemoFlags,
  begin: (port: number) => Promise<Serving>,
): Promise<Serving> {
  try {
    return await begin(port ?? PORT_DEFAULT)
  } catch (thrown) {
    const isTaken = thrown instanceof TidemarkError && thrown.code === 'port-taken'
    if (port !== undefined || !isTaken) throw thrown
    return begin(0)
  }
}

type Introduction = {
  home: DemoHome
  url: string
  token: string
  flags: DemoFlags
  parts: readonly NamedPart[]
}

function introduce({ output }: CliContext, { home, url, token, flags, parts }: Introduction): void {
  const signIn = addressFor(url, token)
  if (output.json) {
    output.raw(`${JSON.stringify({ type: 'ready', url, signIn, home: home.path, pid: process.pid })}\n`)
    return
  }
  const command = `tidemark --home ${shellWord(home.path)} sign-in`
  for (const line of whereLines(url, signIn)) output.line(line.replace('tidemark sign-in', command))
  output.line('')
  if (!home.isNew) output.line(`It goes on in ${home.path} where it was.`)
  for (const part of parts) output.line(part.intro({ isNew: home.isNew }))
  if (flags.once) return
  output.line('Worth a look:')
  for (const [path, what] of [...PLACES, ...parts.flatMap((part) => part.places)])
    output.line(`  ${url + path}  ${what}`)
  output.line('')
  output.line(
    home.isTemporary
      ? 'Ctrl-C stops it, and nothing is kept. To kill it and see it go on, give it a folder: --home FOLDER'
      : `Ctrl-C stops it, and so does kill -9. It goes on with: tidemark demo --home ${shellWord(home.path)}`,
  )
}

const PLACES: readonly (readonly [path: string, what: string])[] = [
  ['/', 'how far it is, how fast, and what needs you'],
  ['/work', 'what each worker does now'],
]

type Showing = { runtime: Runtime; parts: readonly NamedPart[]; stop: AbortSignal; isOnce: boolean }

async function show(context: CliContext, showing: Showing): Promise<void> {
  const { runtime, parts, stop, isOnce } = showing
  const leading = parts.find((part) => part.progress)
  const others = parts.filter((part) => part !== leading)
  const progress = leading?.progress?.(context, runtime, () => linesOf(others, runtime))
  // A folder that is full or gone ends what happens, and is told of; what is there can still be looked at.
  const living = isOnce ? [] : parts.map((part) => liveIn(context, part, showing))
  const settled = async (): Promise<void> => {
    await progress?.settle(stop)
    if (isOnce) for (const part of others) await part.settle(runtime, stop)
  }
  await settled()
  if (isOnce && !stop.aborted) {
    // What happened while it was copied, and what an earlier run had not yet heard of.
    await leading?.settle(runtime, stop)
    await settled()
  }
  progress?.end()
  await summarize(context, showing)
  await showOn(progress, showing)
  if (!isOnce && stop.aborted) context.output.note('Stopping.')
  await Promise.all(living)
}

async function showOn(progress: DemoProgress | undefined, { stop, isOnce }: Showing): Promise<void> {
  while (!isOnce && !stop.aborted) {
    await sleep(systemClock, SHOW_MS, stop).catch(() => {})
    if (stop.aborted) break
    await progress?.show()
  }
  progress?.end()
}

function liveIn({ output }: CliContext, part: NamedPart, { runtime, stop }: Showing): Promise<void> {
  return part.live(runtime, stop).catch((thrown: unknown) => {
    output.note(`Nothing more happens in the cloud for ${part.name}: ${asTidemarkError(thrown).message}`)
  })
}

function linesOf(parts: readonly NamedPart[], runtime: Runtime): Promise<DemoLine[]> {
  return Promise.all(
    parts.map(async (part) => {
      const { text, json } = await part.summary(runtime)
      return { text, json: { type: part.name, ...json } }
    }),
  )
}

/** What goes on by itself is waited for only where the demo ends: otherwise the part that leads decides. */
async function summarize(context: CliContext, { runtime, parts, stop, isOnce }: Showing): Promise<void> {
  const { output } = context
  const summaries = await Promise.all(parts.map((part) => part.summary(runtime)))
  const isAllSettled = summaries.every(({ isSettled }) => isSettled)
  const leads = (at: number): boolean => parts[at]!.progress !== undefined
  const isWell = summaries.every(
    ({ isSettled, hasFailed, paused }, at) =>
      !hasFailed && paused === null && (isSettled || (!isOnce && !leads(at))),
  )
  if (output.json) {
    const named = summaries.map(({ json }, at) => [parts[at]!.name, json ?? null])
    output.value({ type: 'summary', settled: isWell, stopped: stop.aborted, ...Object.fromEntries(named) })
  } else {
    const well = isAllSettled ? 'Everything is settled' : 'What it began with is settled'
    const word = isWell ? well : stop.aborted ? 'Stopped' : 'Not everything is settled'
    const [first, ...rest] = summaries.map(({ text }) => text)
    output.line(`${word}: ${first}`)
    for (const text of rest) output.line(text)
    for (const { paused } of summaries) if (paused !== null) output.note(`${ADDRESS} is paused: ${paused}`)
    if (isWell && !isOnce) output.line('More keeps happening in the cloud; Ctrl-C stops.')
  }
  if (isOnce && !isWell) context.exitCode = exitCodes.failure
}
