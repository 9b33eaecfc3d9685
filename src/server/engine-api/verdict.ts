/** The one sentence about everything: first what needs somebody, then what is under way. Pure. */

import type { Need } from '../../app/need.ts'
import type { AlertView, Overview } from '../../app/schemas.ts'
import { formatCount } from '../../base/format.ts'
import { counted, plural } from '../../base/wording.ts'
import type { PauseRow } from '../../ledger/control.ts'
import { displayName, leftText, needsSignIn, troubleText } from './stream-view.ts'

export type VerdictInput = Pick<Overview, 'streams' | 'jobs' | 'badItems' | 'live'> & {
  alerts: readonly AlertView[]
  pauses: readonly PauseRow[]
  /** Processes that run jobs. */
  workersAlive: number
  /** What apps know of that waits for somebody. */
  needs: readonly Need[]
}

export type Verdict = Overview['verdict']

/** Named one by one; of more, only how many. */
const NAMED_MAX = 2

export function overallVerdict(input: VerdictInput): Verdict {
  const needs = whatNeedsSomebody(input)
  if (needs !== undefined) return { state: 'attention', text: needs }
  if (isWorking(input)) return { state: 'working', text: whatIsUnderWay(input) }
  if (input.badItems > 0) {
    const items = `${formatCount(input.badItems)} bad ${plural(input.badItems, 'item')}`
    return { state: 'settled', text: `All is settled, but for ${items}.` }
  }
  if (input.streams.length === 0)
    return { state: 'settled', text: 'Nothing to do yet: connect an account to begin.' }
  return { state: 'settled', text: 'All is settled.' }
}

function waitingOf({ jobs }: VerdictInput): number {
  return jobs.ready + jobs.deps + jobs.time
}

function isWorking(input: VerdictInput): boolean {
  return waitingOf(input) + input.jobs.claimed > 0 || input.streams.some(({ health }) => health === 'working')
}

function whatNeedsSomebody(input: VerdictInput): string | undefined {
  const signIns = input.pauses.filter(needsSignIn).map(({ target }) => displayName(target))
  if (signIns.length > 0) return `${named(signIns)} must sign in again.`
  const everything = input.pauses.find(({ scope }) => scope === 'all')
  if (everything) return `Everything is paused: ${everything.reason.replace(/\.$/, '')}.`
  const critical = input.alerts.find(({ severity }) => severity === 'critical')
  if (critical) return critical.text
  const unbalanced = input.streams.reduce((sum, stream) => sum + stream.unbalanced, 0)
  const trouble = troubleText({ failedJobs: input.jobs.failed, unbalanced })
  if (trouble) return trouble
  if (input.workersAlive === 0 && isWorking(input)) {
    const waiting = waitingOf(input)
    const jobs =
      waiting > 0 ? `${formatCount(waiting)} ${plural(waiting, 'job waits', 'jobs wait')}` : 'work waits'
    return `No engine is running, and ${jobs}.`
  }
  const [first, ...more] = input.needs
  if (first === undefined) return undefined
  const text = `${displayName(first.stream)}: ${first.text}`
  return more.length === 0 ? text : `${text} And ${formatCount(more.length)} more.`
}

function whatIsUnderWay(input: VerdictInput): string {
  const working = input.streams.filter(({ health }) => health === 'working')
  if (working.length === 0)
    return input.live === '' || input.live === 'idle' ? 'Work is under way.' : `Working: ${input.live}.`
  const etas = working.flatMap(({ etaMs }) => (etaMs === null ? [] : [etaMs]))
  const items = working.reduce((sum, { onTheirWay }) => sum + onTheirWay, 0)
  // As long as the slowest takes; nothing is promised while one of them is not known.
  if (etas.length === working.length) {
    return `Working on ${named(working.map(({ name }) => displayName(name)))}: ${leftText(Math.max(...etas))}.`
  }
  const way = items > 0 ? `: ${counted(items, 'item')} on ${plural(items, 'its', 'their')} way` : ''
  return `Working on ${named(working.map(({ name }) => displayName(name)))}${way}.`
}

function named(names: readonly string[]): string {
  if (names.length <= NAMED_MAX) return names.join(' and ')
  return `${names[0]} and ${formatCount(names.length - 1)} others`
}
