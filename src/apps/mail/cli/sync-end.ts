/** How a sync ended: in a line for each account, what is wrong and what to do about it, and the exit code. */

import { type CliContext, exitCodes } from '../../../app/command.ts'
import { systemClock } from '../../../base/clock.ts'
import { formatCount, formatDuration } from '../../../base/format.ts'
import { plural, shellWord } from '../../../base/wording.ts'
import type { Output } from '../../../cli/output/output.ts'
import type { JobRow } from '../../../ledger/contract.ts'
import { SIGN_IN } from '../../../ledger/control.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import { streamOf } from '../account.ts'
import type { Obstacle } from '../obstacles.ts'
import { balanceText, type MailStatus, mailStatus } from '../status.ts'
import type { MailEngine } from './context.ts'

const FAILED_SHOWN_MAX = 5

export type Ending = MailStatus & {
  pauseReason: string | null
  pauseHint?: string | undefined
  obstacle: Obstacle | undefined
  failed: JobRow[]
}

export async function conclude(
  context: CliContext,
  opened: MailEngine,
  { names, stopped }: { names: readonly string[]; stopped: boolean },
): Promise<void> {
  const { output } = context
  const { ledger, tables, kinds } = opened
  const statuses = await mailStatus(ledger, tables, names)
  const endings = await Promise.all(
    statuses.map(async (status): Promise<Ending> => {
      const stream = streamOf(status.account)
      const pause = await pauseOf(ledger, status.account)
      return {
        ...status,
        pauseReason: pause?.reason ?? null,
        pauseHint: pause?.hint,
        obstacle: kinds.obstacles.of(status.account),
        failed: await ledger.jobs({ state: 'failed', stream, limit: 100 }),
      }
    }),
  )
  const failed = endings.flatMap((ending) => ending.failed)
  if (output.json) {
    output.value({ type: 'summary', stopped, accounts: endings.map(toJson), failed: failed.length })
  } else for (const ending of endings) output.line(summaryLine(ending, stopped))
  for (const ending of endings) explain(output, ending)
  const bad = endings.reduce((sum, { bad: n }) => sum + n, 0)
  const isOver = (ending: Ending): boolean => !isWrong(ending, stopped) && !(stopped && isOpen(ending))
  if (!endings.every(isOver)) context.exitCode = exitCodes.failure
  else if (bad > 0 && !stopped) {
    context.exitCode = exitCodes.bad
    output.note(
      `${formatCount(bad)} ${plural(bad, 'message')} could not be fetched. See: tidemark mail bad list`,
    )
  }
}

export type Pause = {
  reason: string
  /** What to do about it. */
  hint: string
}

const KINDS = /^mail\.(?:plan|list|fetch|history|reconcile)$/

/** Why nothing of this account moves, or not all of it, where somebody or something has paused it. */
export async function pauseOf(ledger: Ledger, account: string): Promise<Pause | undefined> {
  const stream = streamOf(account)
  const pauses = await ledger.pauses()
  const own = pauses.find(({ scope, target }) => scope === 'stream' && target === stream)
  if (own?.code === SIGN_IN) {
    const connect = `Connect it again with: tidemark account add gmail --user ${shellWord(account)}.`
    return {
      reason: own.reason,
      hint: `${connect} The next tidemark mail sync then goes on where this one was.`,
    }
  }
  if (own) return { reason: own.reason, hint: `Go on with: tidemark resume --stream ${shellWord(stream)}` }
  const all = pauses.find(({ scope }) => scope === 'all')
  if (all) return { reason: all.reason, hint: 'Go on with: tidemark resume --all' }
  const kind = pauses.find(({ scope, target }) => scope === 'kind' && KINDS.test(target))
  return (
    kind && {
      reason: `jobs of the kind ${kind.target}: ${kind.reason}`,
      hint: `Go on with: tidemark resume --kind ${kind.target}`,
    }
  )
}

function isWrong({ failed, pauseReason: reason, unbalanced, obstacle }: Ending, stopped: boolean): boolean {
  if (unbalanced > 0) return true
  return !stopped && (failed.length > 0 || reason !== null || obstacle !== undefined)
}

function explain(output: Output, ending: Ending): void {
  const { account, pauseReason: reason, pauseHint, obstacle, failed } = ending
  if (reason !== null) {
    output.note(`${account} is paused: ${reason}`)
    if (pauseHint) output.note(`  ${pauseHint}`)
  } else if (obstacle) {
    output.note(`${account} cannot go on: ${obstacle.error.message}`)
    output.note(`  ${obstacleHint(obstacle)}`)
  }
  for (const { id, kind, error } of failed.slice(0, FAILED_SHOWN_MAX)) {
    output.note(`${account}: job #${id} (${kind}) failed: ${errorText(error)}`)
    output.note(`  The next sync tries it again. More about it: tidemark jobs show ${id}`)
  }
}

function obstacleHint({ where, error, sinceMs }: Obstacle): string {
  if (where === 'archive') {
    const hint = error.hint ? `${error.hint} ` : ''
    return `${hint}Nothing is lost: the next tidemark mail sync goes on where this one was.`
  }
  const forText = formatDuration(systemClock.monotonicMs() - sinceMs)
  const hint = error.hint ? ` ${error.hint}` : ''
  return `It was tried for ${forText}.${hint} The next tidemark mail sync goes on where this one was.`
}

/** The ledger keeps errors as JSON. */
function errorText(error: string | null): string {
  try {
    return (JSON.parse(error ?? '') as { message?: string }).message ?? 'no reason was noted'
  } catch {
    return error || 'no reason was noted'
  }
}

function summaryLine(ending: Ending, stopped: boolean): string {
  const mark =
    ending.watermarkMs === null
      ? 'none yet'
      : `${minuteText(ending.watermarkMs)}${ending.watermarkAsOfMs === null ? '' : ` as of ${minuteText(ending.watermarkAsOfMs)}`}`
  return `${ending.account}: ${wordFor(ending, stopped)}; ${balanceText(ending, formatCount)}; watermark ${mark}`
}

const minuteText = (ms: number): string => `${new Date(ms).toISOString().slice(0, 16).replace('T', ' ')} UTC`

export function wordFor(ending: Ending, stopped: boolean): string {
  if (ending.pauseReason !== null) return 'paused'
  if (stopped && isOpen(ending)) return 'stopped'
  return isWrong(ending, stopped) ? 'not finished' : 'done'
}

function isOpen({ phase, obstacle, onTheirWay, settledSlices, slices }: Ending): boolean {
  // Behind an obstacle nobody knows what is new, even where all that was listed is stored.
  const isUnknown = phase === 'new' || obstacle !== undefined
  return isUnknown || onTheirWay > 0 || settledSlices < slices
}

function toJson({ obstacle, failed, pauseHint: _, ...status }: Ending) {
  return {
    ...status,
    failed: failed.length,
    obstacle: obstacle
      ? { where: obstacle.where, message: obstacle.error.message, code: obstacle.error.code ?? null }
      : null,
  }
}
