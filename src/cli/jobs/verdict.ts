/** The one sentence about everything, and the exit code that says the same. Pure. */

import { type ExitCode, exitCodes } from '../../app/command.ts'
import { formatCount } from '../../base/format.ts'
import { plural } from '../../base/wording.ts'
import type { StageCounts } from './stats.ts'

export type VerdictInput = {
  /** Without the engine's own house-keeping. */
  jobs: StageCounts
  badItems: { count: number; atLeast: boolean }
  /** Segments whose work is done but whose counts do not agree. */
  unbalanced: number
  /** Segments that are not settled. */
  openSegments: number
  enginesLive: number
  pauses: number
  /** What waits for a person, a sentence each, such as `OneDrive: 1 conflict to decide.` */
  needs: readonly string[]
  startCommand: string | undefined
}

export type Verdict = {
  state: 'failed' | 'needs-you' | 'working' | 'waiting' | 'bad-items' | 'settled'
  text: string
  exitCode: ExitCode
}

export function judge(input: VerdictInput): Verdict {
  const verdict = judgeWork(input)
  const [first, ...more] = input.needs
  if (first === undefined) return verdict
  const needs = more.length === 0 ? first : `${first} And ${formatCount(more.length)} more.`
  if (verdict.state === 'failed') return { ...verdict, text: `${verdict.text} ${needs}` }
  return { state: 'needs-you', text: `${needs} ${verdict.text}`, exitCode: exitCodes.bad }
}

function judgeWork(input: VerdictInput): Verdict {
  const { jobs, unbalanced, openSegments } = input
  const allSettled = input.needs.length > 0 ? 'Everything else is settled' : 'All settled'
  const waiting = jobs.ready + jobs.deps + jobs.time
  if (jobs.failed > 0 || unbalanced > 0) return failed(input, waiting)
  if (waiting + jobs.claimed > 0) return unfinished(input, waiting)
  if (input.badItems.count > 0) {
    const items = badText(input)
    const text = `${allSettled}, but for ${items}: see tidemark bad list, try again with tidemark bad retry --all`
    return { state: 'bad-items', text, exitCode: exitCodes.bad }
  }
  if (openSegments > 0) {
    const segments = `${formatCount(openSegments)} ${plural(openSegments, 'segment is', 'segments are')} still open`
    return {
      state: 'waiting',
      text: `No job waits, but ${segments}${engineText(input).replace(',', ';') || '.'}`,
      exitCode: exitCodes.ok,
    }
  }
  return { state: 'settled', text: `${allSettled}.`, exitCode: exitCodes.ok }
}

function failed(input: VerdictInput, waiting: number): Verdict {
  const { jobs, unbalanced } = input
  const parts: string[] = []
  if (jobs.failed > 0) {
    const ones = `${formatCount(jobs.failed)} ${plural(jobs.failed, 'job')} failed`
    parts.push(
      `${ones}: see tidemark jobs list --state failed, try again with tidemark jobs retry --all-failed`,
    )
  }
  if (unbalanced > 0) {
    const ones = `${formatCount(unbalanced)} ${plural(unbalanced, 'segment')}`
    parts.push(`the counts of ${ones} do not agree: nothing is complete beyond them`)
  }
  const rest = waiting + jobs.claimed > 0 ? ` Besides, ${lower(unfinished(input, waiting).text)}` : ''
  return { state: 'failed', text: `${upper(parts.join('; '))}.${rest}`, exitCode: exitCodes.failure }
}

function unfinished(input: VerdictInput, waiting: number): Verdict {
  const { jobs, enginesLive } = input
  const counts: string[] = []
  if (waiting > 0) counts.push(`${formatCount(waiting)} ${plural(waiting, 'job')} waiting`)
  if (jobs.claimed > 0) counts.push(`${formatCount(jobs.claimed)} claimed`)
  if (input.badItems.count > 0) counts.push(badText(input))
  const pauses =
    input.pauses > 0
      ? ` ${formatCount(input.pauses)} ${plural(input.pauses, 'pause holds', 'pauses hold')}.`
      : ''
  const text = `${counts.join(', ')}${engineText(input) || '.'}${pauses}`
  return { state: enginesLive > 0 ? 'working' : 'waiting', text, exitCode: exitCodes.ok }
}

function engineText({ enginesLive, startCommand }: VerdictInput): string {
  if (enginesLive > 0) return ''
  return `, no engine is running${startCommand === undefined ? '.' : `: start one with ${startCommand}`}`
}

function badText({ badItems: { count, atLeast } }: VerdictInput): string {
  return `${atLeast ? 'at least ' : ''}${formatCount(count)} bad ${plural(count, 'item')}`
}

const upper = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1)
const lower = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1)
