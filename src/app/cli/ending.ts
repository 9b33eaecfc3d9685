/** How a sync ended: in a line for each source, what is wrong and what to do about it, and the exit code. */
import { systemClock } from '../../base/clock.ts'
import { formatCount, formatDuration } from '../../base/format.ts'
import { plural, shellWord } from '../../base/wording.ts'
import { findService } from '../../cloud/registry.ts'
import { errorCode, errorMessage } from '../../engine/observe/job-texts.ts'
import type { JobRow } from '../../ledger/contract.ts'
import { SIGN_IN } from '../../ledger/control.ts'
import { BROKEN_CODE } from '../../ledger/dependencies.ts'
import { connectCommand } from '../accounts/connecting.ts'
import { type CliContext, type ExitCode, exitCodes } from '../command.ts'
import { countedStatus, type Source, type SourceObstacle, type SourceStatus } from '../sources.ts'
import { choiceOf, sourceWords } from './source-words.ts'
import type { OpenedSources } from './with-app.ts'

const FAILED_MAX = 100
const FAILED_SHOWN_MAX = 5

export type Ending = {
  source: Source
  status: SourceStatus
  pause: Pause | undefined
  obstacle: SourceObstacle | undefined
  failed: readonly JobRow[]
}

export type Concluding = {
  sources: readonly Source[]
  stopped: boolean
  /** Says what waits for a person in this source, and what to do about it. */
  explain?: ((source: Source) => Promise<void>) | undefined
}

export async function conclude(
  context: CliContext,
  opened: OpenedSources,
  { sources, stopped, explain: own }: Concluding,
): Promise<void> {
  const { output } = context
  const { app } = opened
  const { many, item, items, badText } = sourceWords(app)
  const endings: Ending[] = []
  for (const source of sources) endings.push(await endingOf(opened, source))
  if (output.json) {
    const failed = endings.reduce((sum, ending) => sum + ending.failed.length, 0)
    output.event({ type: 'summary', stopped, [many]: endings.map(endingJson), failed })
  } else {
    for (const ending of endings) {
      output.line(`${ending.source.name}: ${endingWord(ending, stopped)}; ${ending.status.text}`)
    }
  }
  for (const ending of endings) {
    explain(context, opened, ending)
    await own?.(ending.source)
  }
  context.exitCode = endingsExitCode(endings, stopped)
  const bad = endings.reduce((sum, { status }) => sum + status.bad, 0)
  if (bad > 0 && context.exitCode === exitCodes.bad) {
    output.note(
      `${formatCount(bad)} ${plural(bad, item, items)} ${badText}. See: tidemark ${app.name} bad list`,
    )
  }
}

async function endingOf(opened: OpenedSources, source: Source): Promise<Ending> {
  const { sources, runtime } = opened
  const { stream } = source
  return {
    source,
    status: await sourceStatus(opened, source),
    pause: await pauseOf(opened, source),
    obstacle: sources.obstacle?.(source),
    failed: await runtime.ledger.jobs({ state: 'failed', stream, limit: FAILED_MAX }),
  }
}

export function sourceStatus({ sources, runtime }: OpenedSources, source: Source): Promise<SourceStatus> {
  return sources.status?.(source) ?? countedStatus(runtime.ledger, source)
}

function isWrong({ status, failed, pause, obstacle }: Ending, stopped: boolean): boolean {
  if (status.isWrong) return true
  // Behind an obstacle nobody knows what is new, even where all that was listed is stored.
  return stopped
    ? isOpen({ status, obstacle })
    : failed.length > 0 || pause !== undefined || obstacle !== undefined
}

function isOpen({ status, obstacle }: Pick<Ending, 'status' | 'obstacle'>): boolean {
  return status.isOpen || obstacle !== undefined
}

export function endingsExitCode(endings: readonly Ending[], stopped: boolean): ExitCode {
  if (endings.some((ending) => isWrong(ending, stopped))) return exitCodes.failure
  if (!stopped && endings.some(({ status }) => status.needsYou)) return exitCodes.bad
  // Something waits that nobody is going to wake: it is not settled, whatever the reason.
  if (endings.some(isOpen)) return exitCodes.failure
  return !stopped && endings.some(({ status }) => status.bad > 0) ? exitCodes.bad : exitCodes.ok
}

export function endingWord(ending: Ending, stopped: boolean): string {
  if (ending.pause) return 'paused'
  if (stopped && isOpen(ending)) return 'stopped'
  if (isWrong(ending, stopped) || isOpen(ending)) return 'not finished'
  return ending.status.word ?? 'done'
}

function explain({ output }: CliContext, { app }: OpenedSources, ending: Ending): void {
  const { source, pause, obstacle, failed } = ending
  const { name } = source
  if (pause) {
    output.note(`${name} is paused: ${pause.reason}`)
    output.note(`  ${pause.hint}`)
  } else if (obstacle) {
    output.note(`${obstacle.part?.name ?? name} cannot go on: ${obstacle.error.message}`)
    output.note(`  ${obstacleHint(app.name, obstacle)}`)
  }
  // What only waited for another that failed is explained by that one.
  const first = failed.filter(({ error }) => errorCode(error) !== BROKEN_CODE)
  for (const { id, kind, error } of first.slice(0, FAILED_SHOWN_MAX)) {
    output.note(`${name}: job #${id} (${kind}) failed: ${errorMessage(error)}`)
    output.note(`  The next sync tries it again. More about it: tidemark jobs show ${id}`)
  }
}

function obstacleHint(app: string, { where, error, sinceMs }: SourceObstacle): string {
  const hint = error.hint ? `${error.hint} ` : ''
  const goesOn = `next tidemark ${app} sync goes on where this one was.`
  if (where !== 'cloud') return `${hint}Nothing is lost: the ${goesOn}`
  const forText = formatDuration(systemClock.monotonicMs() - sinceMs)
  return `It was tried for ${forText}. ${hint}Nothing is lost. The ${goesOn}`
}

function endingJson({ status, obstacle, failed, pause }: Ending): object {
  return {
    pauseReason: pause?.reason ?? null,
    ...status.json,
    failed: failed.length,
    obstacle: obstacleJson(obstacle),
  }
}

export function obstacleJson(obstacle: SourceObstacle | undefined): object | null {
  if (!obstacle) return null
  const { where, error } = obstacle
  return { where, message: error.message, code: error.code ?? null }
}

/** `hint`: what to do about it. */
export type Pause = { reason: string; hint: string }

/** Why nothing of this source moves, or not all of it, where somebody or something has paused it. */
export async function pauseOf(
  { app, open, sources, runtime }: OpenedSources,
  source: Source,
): Promise<Pause | undefined> {
  const { stream, name, account } = source
  const pauses = await runtime.ledger.pauses()
  const own = pauses.find(({ scope, target }) => scope === 'stream' && target === stream)
  if (own?.code === SIGN_IN && account && app.services.includes(account.service)) {
    const known = await runtime.accounts.find(account.service, account.name)
    const service = await findService(account.service)
    const connect = connectCommand(known ?? account, { service })
    const hint = `Connect it again with: ${connect}. The next tidemark ${app.name} sync then goes on where this one was.`
    return { reason: own.reason, hint }
  }
  if (own) {
    const hint = `Go on with: tidemark ${app.name} resume${choiceOf(app, shellWord(name))}`
    return { reason: own.reason, hint }
  }
  const all = pauses.find(({ scope }) => scope === 'all')
  if (all) return { reason: all.reason, hint: 'Go on with: tidemark resume --all' }
  const kinds = sources.kinds ?? new Set(open.jobs.map(({ kind }) => kind))
  const kind = pauses.find(({ scope, target }) => scope === 'kind' && kinds.has(target))
  if (!kind) return undefined
  return {
    reason: `jobs of the kind ${kind.target}: ${kind.reason}`,
    hint: `Go on with: tidemark resume --kind ${kind.target}`,
  }
}
