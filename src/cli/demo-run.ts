/** Runs the demo in this process: cloud, server, sync, and the lines that tell of it. */
import { join } from 'node:path'
import { streamOf } from '../apps/mail-archive/account.ts'
import { balanceText, mailStatus } from '../apps/mail-archive/status.ts'
import { sleep, systemClock } from '../clock.ts'
import type { LoadedConfig } from '../config/load.ts'
import { silentLogger } from '../engine/log.ts'
import { asTidemarkError, TidemarkError } from '../errors.ts'
import { formatCount } from '../format.ts'
import type { Runtime } from '../server/runtime.ts'
import { shellWord } from '../wording.ts'
import { type CliContext, exitCodes } from './context.ts'
import type { DemoFlags } from './demo.ts'
import { configureDemo, connectDemo, DEMO_UNITS_PER_MINUTE } from './demo-account.ts'
import { DEMO_ADDRESS, type DemoCloud, startDemoCloud } from './demo-cloud.ts'
import { connectDemoFiles, DEMO_FOLDER, filesSummary, liveFiles, settleFiles } from './demo-files.ts'
import { type DemoHome, openDemoHome } from './demo-home.ts'
import type { MailEngine } from './mail-context.ts'
import { pauseOf } from './mail-sync-end.ts'
import { SyncProgress } from './mail-sync-progress.ts'
import { settle } from './mail-sync-settle.ts'
import { type Serving, startServing } from './serve-process.ts'
import { type Stopping, stopSignal } from './serve-run.ts'
import { buildPages } from './serve-web.ts'

const MESSAGES_DEFAULT = 3_000
const PORT_DEFAULT = 4180
const ARRIVE_MS = 4_000
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
  const cloud = await startDemoCloud(home, { unitsPerMinute: isFast ? null : DEMO_UNITS_PER_MINUTE })
  let serving: Serving | undefined
  try {
    serving = await startOnFreePort(flags, (port) => {
      const loaded = configureDemo(home.path, { sim: cloud.sim, port, isFast })
      return start(loaded, { home, cloud, port })
    })
    const trouble = await building
    if (trouble !== undefined)
      context.output.note(`The pages could not be built (npm run build says more): ${trouble}`)
    introduce(context, { home, url: serving.url ?? '', flags })
    await show(context, { serving, cloud, stopping, isOnce: flags.once === true })
  } finally {
    await serving?.close()
    await cloud.sim.close()
  }
}

type Place = { home: DemoHome; cloud: DemoCloud; port: number }

function start({ values: config, origins }: LoadedConfig, { home, cloud, port }: Place): Promise<Serving> {
  return startServing({
    ...{ config, origins, home: home.path, env: {}, role: 'all', host: config.server.host, port },
    ...{ token: undefined, logger: silentLogger },
    prepare: async (runtime) => {
      await connectDemo(runtime, cloud.sim)
      await connectDemoFiles(runtime, { sim: cloud.sim, home: home.path })
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

function introduce(
  { output }: CliContext,
  { home, url, flags }: { home: DemoHome; url: string; flags: DemoFlags },
): void {
  const messages = formatCount(home.world.messages)
  if (output.json) {
    output.raw(`${JSON.stringify({ type: 'ready', url, home: home.path, pid: process.pid })}\n`)
    return
  }
  output.line(`Tidemark is at ${url}`)
  output.line('')
  output.line(
    home.isNew
      ? `It copies a simulated mailbox of ${messages} messages, ${DEMO_ADDRESS}, from a cloud that stumbles now and then.`
      : `It goes on in ${home.path} where it was, with the simulated mailbox ${DEMO_ADDRESS}.`,
  )
  output.line(
    `It keeps ${join(home.path, DEMO_FOLDER)} in step with a simulated OneDrive, where another device is at work.`,
  )
  if (flags.once) return
  output.line('Worth a look:')
  for (const [path, what] of PLACES) output.line(`  ${url + path}  ${what}`)
  output.line('')
  output.line(
    home.isTemporary
      ? 'Ctrl-C stops it, and nothing is kept. To kill it and see it go on, give it a folder: --home FOLDER'
      : `Ctrl-C stops it, and so does kill -9. It goes on with: tidemark demo --home ${shellWord(home.path)}`,
  )
}

const PLACES: readonly (readonly [path: string, what: string])[] = [
  ['/', 'how far it is, how fast, and what needs you'],
  [`/streams/${encodeURIComponent(streamOf(DEMO_ADDRESS))}`, 'the mailbox as a picture, slice by slice'],
  ['/work', 'what each worker does now'],
  [`/files/${DEMO_FOLDER}`, 'a folder and OneDrive, kept in step: its tree, transfers, conflicts'],
  ['/search?q=invoice', 'all mail that is stored, found at once'],
]

type Showing = { serving: Serving; cloud: DemoCloud; stopping: Stopping; isOnce: boolean }

async function show(context: CliContext, { serving, cloud, stopping, isOnce }: Showing): Promise<void> {
  const { runtime } = serving
  const opened = mailEngineOf(runtime)
  const names = [DEMO_ADDRESS]
  const stop = stopping.signal
  const progress = new SyncProgress(context, opened, names, async () => {
    const { text, status } = await filesSummary(runtime)
    return { text, json: { type: 'files', ...status } }
  })
  // A folder that is full or gone ends what arrives, and is told of; what is there can still be looked at.
  const living = isOnce
    ? Promise.resolve()
    : live(runtime, cloud, stop).catch((thrown: unknown) => {
        context.output.note(`No more mail arrives: ${asTidemarkError(thrown).message}`)
      })
  const livingFiles = isOnce
    ? Promise.resolve()
    : liveFiles(runtime, cloud, stop).catch((thrown: unknown) => {
        context.output.note(`Nothing more happens to the files: ${asTidemarkError(thrown).message}`)
      })
  const settled = async (): Promise<void> => {
    await settle(context, opened, { names, stop, patienceMs: undefined, progress })
    if (isOnce) await settleFiles(runtime, stop)
  }
  await settled()
  if (isOnce && !stop.aborted) {
    // What happened while it was copied, and what an earlier run had not yet heard of.
    await follow(runtime)
    await settled()
  }
  progress.end()
  await summarize(context, opened, { runtime, stopped: stop.aborted, isOnce })
  while (!isOnce && !stop.aborted) {
    await sleep(systemClock, SHOW_MS, stop).catch(() => {})
    if (stop.aborted) break
    await progress.show()
  }
  progress.end()
  if (!isOnce && stop.aborted) context.output.note('Stopping.')
  await living
  await livingFiles
}

/** New mail keeps arriving, and is looked for at once: a real mailbox would send a notification. */
async function live(runtime: Runtime, cloud: DemoCloud, stop: AbortSignal): Promise<void> {
  for (;;) {
    await sleep(systemClock, ARRIVE_MS, stop).catch(() => {})
    if (stop.aborted || !cloud.arrive()) return
    const [status] = await mailStatus(runtime.ledger, runtime.mail.tables, [DEMO_ADDRESS])
    if (status && status.phase !== 'new' && !status.paused) await follow(runtime)
  }
}

async function follow({ engine, mail }: Runtime): Promise<void> {
  await engine.enqueue(mail.kinds.history, { account: DEMO_ADDRESS }, { stream: streamOf(DEMO_ADDRESS) })
}

async function summarize(
  context: CliContext,
  opened: MailEngine,
  { runtime, stopped, isOnce }: { runtime: Runtime; stopped: boolean; isOnce: boolean },
): Promise<void> {
  const { output } = context
  const { ledger, tables } = opened
  const [status] = await mailStatus(ledger, tables, [DEMO_ADDRESS])
  if (!status) return
  const reason = (await pauseOf(ledger, DEMO_ADDRESS))?.reason ?? null
  const failed = await ledger.jobs({ state: 'failed', stream: streamOf(DEMO_ADDRESS), limit: 1 })
  const isSettled =
    status.phase !== 'new' && status.onTheirWay === 0 && status.settledSlices === status.slices
  const files = await filesSummary(runtime)
  const isMailWell = isSettled && status.unbalanced === 0 && reason === null && failed.length === 0
  // Files go on by themselves in a demo that stays; only one that ends waits for them.
  const isWell = isMailWell && !files.hasFailed && (!isOnce || files.isSettled)
  if (output.json) output.value({ type: 'summary', settled: isWell, stopped, ...status, files: files.status })
  else {
    const well = files.isSettled ? 'Everything is settled' : 'All mail is settled'
    const word = isWell ? well : stopped ? 'Stopped' : 'Not everything is settled'
    output.line(`${word}: ${balanceText(status, formatCount)}.`)
    output.line(files.text)
    if (reason !== null) output.note(`${DEMO_ADDRESS} is paused: ${reason}`)
    if (isWell && !isOnce) output.line('New mail keeps arriving, and files keep changing; Ctrl-C stops.')
  }
  if (isOnce && !isWell) context.exitCode = exitCodes.failure
}

function mailEngineOf(runtime: Runtime): MailEngine {
  const { ledger, engine, accounts, config, home, mail } = runtime
  const { settings, tables, kinds } = mail
  return { ledger, engine, accounts, config, home, settings, tables, kinds, mail: mail.accounts }
}
