/** `status`, `pause` and `resume`, the same for every app. */
import { listEngines, liveCount, readAttendance } from '../../engine/observe/engines.ts'
import { type CliContext, type ExitCode, exitCodes } from '../command.ts'
import type { Source } from '../sources.ts'
import { pauseOf, sourceStatus } from './ending.ts'
import type { NounApp, Standing, StatusReport } from './noun.ts'
import { sourceWords } from './source-words.ts'
import type { SyncInput } from './sync.ts'
import { chosenSources, type OpenedSources, withSources } from './with-app.ts'

export async function showStatus(
  context: CliContext,
  app: NounApp,
  { wanted, options }: SyncInput,
): Promise<void> {
  const { output } = context
  const own = await app.noun.status?.report?.()
  await withSources(context, app, {}, async (opened) => {
    const reports: StatusReport[] = []
    for (const source of await chosenSources(opened, wanted)) {
      reports.push(await (own?.(opened.runtime, source, options) ?? plainReport(opened, source)))
    }
    if (output.json) output.value(reports.map(({ json }) => json))
    else for (const { lines } of reports) for (const line of lines) output.line(line)
    context.exitCode = statusCode(reports.map(({ standing }) => standing))
  })
}

/** The first of these that holds for any source decides: what needs a person says more than that the rest waits. */
const CODES: readonly (readonly [Standing, ExitCode])[] = [
  ['missing', exitCodes.usage],
  ['wrong', exitCodes.failure],
  ['needs', exitCodes.bad],
  ['stopped', exitCodes.failure],
  ['going', exitCodes.ok],
  ['bad', exitCodes.bad],
]

export function statusCode(standings: readonly Standing[]): ExitCode {
  return CODES.find(([standing]) => standings.includes(standing))?.[1] ?? exitCodes.ok
}

async function plainReport(opened: OpenedSources, source: Source): Promise<StatusReport> {
  const { name } = source
  const status = await sourceStatus(opened, source)
  const pause = await pauseOf(opened, source)
  const { isAttended } = await readAttendance(opened.runtime.ledger)
  const standing = countedStanding({ ...status, isAttended, isPaused: pause !== undefined })
  const lines = [`${name}: ${pause ? 'paused' : STANDING_TEXTS[standing]}`, `  counts     ${status.text}`]
  if (pause) lines.push(`  paused     ${pause.reason}`, `             ${pause.hint}`)
  else if (standing === 'stopped')
    lines.push(`  stopped    Go on with: tidemark ${opened.app.name} sync, or tidemark serve`)
  return { lines, json: { ...status.json, state: standing, pauseReason: pause?.reason ?? null }, standing }
}

type Facts = { isOpen: boolean; isWrong: boolean; needsYou?: boolean; bad: number } & {
  isAttended: boolean
  isPaused: boolean
}

function countedStanding({ isOpen, isWrong, needsYou, bad, isAttended, isPaused }: Facts): Standing {
  if (isWrong || isPaused) return 'wrong'
  if (needsYou) return 'needs'
  if (isOpen) return isAttended ? 'going' : 'stopped'
  return bad > 0 ? 'bad' : 'settled'
}

const STANDING_TEXTS: Record<Standing, string> = {
  missing: 'not there',
  wrong: 'its counts do not agree',
  needs: 'needs you',
  stopped: 'stopped before it was done',
  going: 'on its way',
  bad: 'settled, but for bad items',
  settled: 'settled',
}

export async function pauseSources(
  context: CliContext,
  app: NounApp,
  { wanted, reason }: { wanted: string | undefined; reason: string },
): Promise<void> {
  const { output } = context
  const { one } = sourceWords(app)
  await withSources(context, app, {}, async (opened) => {
    const changed: object[] = []
    for (const { name, stream } of await chosenSources(opened, wanted)) {
      const isNew = await opened.runtime.ledger.pause('stream', stream, reason)
      changed.push({ [one]: name, paused: true, changed: isNew })
      if (!output.json) output.line(isNew ? `${name} is paused.` : `${name} was paused already.`)
    }
    if (output.json) output.value(changed)
  })
}

export async function resumeSources(
  context: CliContext,
  app: NounApp,
  wanted: string | undefined,
): Promise<void> {
  const { output } = context
  const { one } = sourceWords(app)
  await withSources(context, app, {}, async (opened) => {
    const { engine, ledger } = opened.runtime
    const changed: object[] = []
    for (const source of await chosenSources(opened, wanted)) {
      const { name, stream } = source
      const was = await ledger.resume('stream', stream)
      changed.push({ [one]: name, paused: false, changed: was })
      if (!output.json) output.line(was ? `${name} goes on.` : `${name} was not paused.`)
      // Whoever watched it meanwhile has collected what changed; where nobody did, this finds it.
      await engine.streams.open(stream)
      if (was) {
        await opened.sources.begin(source)
        await opened.sources.follow?.(source)
      }
    }
    const all = (await ledger.pauses()).find(({ scope }) => scope === 'all')
    if (all) output.note('Everything is paused still. Go on with: tidemark resume --all')
    if (liveCount(await listEngines(ledger)) === 0) {
      output.note(`Nothing is running that would sync now. Begin with: tidemark ${app.name} sync`)
    }
    if (output.json) output.value(changed)
  })
}
