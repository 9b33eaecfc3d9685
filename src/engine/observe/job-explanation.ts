/**
 * Answers in sentences: what is a job waiting for, who holds it, what failed before. Pure; what it is told
 * was read from the ledger.
 */
import { formatCount, formatDuration } from '../../base/format.ts'
import { clockTime, moment } from '../../base/moment.ts'
import { plural, shellWord } from '../../base/wording.ts'
import type { DependencyRow, JobDetail } from '../../ledger/queries.ts'
import { ATTEMPTS } from '../kinds.ts'
import { type ListedEngine, liveCount, workerText } from './engines.ts'
import { errorText, failureCount, progressText } from './job-texts.ts'

export type Explaining = {
  detail: JobDetail
  engines: readonly ListedEngine[]
  now: number
  /** In a terminal commands are named; a page has buttons. */
  reader?: 'terminal' | 'page'
}

/** Named in full before "and 3 more". */
const NAMED_MAX = 3

export function explainJob(input: Explaining): string[] {
  return [...whatItDoes(input), ...whatStopsIt(input), ...whatFailed(input)]
}

function whatItDoes(input: Explaining): string[] {
  const { detail, now } = input
  const { job } = detail
  const ended = job.settled_at === null ? '' : ` at ${moment(job.settled_at, now)}`
  const why = job.note ? `: ${job.note}` : ''
  switch (job.state) {
    case 'pending':
      return whatItWaitsFor(input)
    case 'claimed':
      return whoHoldsIt(input)
    case 'done':
      return [`It was done${ended}${ranFor(input)}${why}.`]
    case 'skipped':
      return [`It was skipped${ended}${why}.`]
    case 'canceled':
      return [
        `It was canceled${ended}${why || reasonOf(job.error)}.`,
        ...(isPage(input) ? [] : [`Start it after all: tidemark jobs retry ${job.id}`]),
      ]
    case 'failed':
      return [`It failed${ended}${reasonOf(job.error)}.`, ...tryAgain(input, brokenDependency(detail))]
  }
}

function isPage({ reader = 'terminal' }: Explaining): boolean {
  return reader === 'page'
}

/** What it waits or waited for and will not come by itself. */
function brokenDependency({ waitsFor }: JobDetail): DependencyRow | undefined {
  return waitsFor.find(({ met, state }) => met === 0 && (state === 'failed' || state === 'canceled'))
}

function tryAgain(input: Explaining, broken: DependencyRow | undefined): string[] {
  if (!broken) return isPage(input) ? [] : [`Try it again: tidemark jobs retry ${input.detail.job.id}`]
  const command = isPage(input) ? '.' : `: tidemark jobs retry ${broken.id}`
  return [`It comes back when job #${broken.id} is tried again${command}`]
}

function reasonOf(error: string | null): string {
  const text = errorText(error)
  return text === undefined ? '' : `: ${text.replace(/\.$/, '')}`
}

function ranFor({ detail: { job } }: Explaining): string {
  if (job.claimed_at === null || job.settled_at === null || job.settled_at < job.claimed_at) return ''
  return `, ${formatDuration(job.settled_at - job.claimed_at)} after it was claimed`
}

function whatItWaitsFor(input: Explaining): string[] {
  const { detail, now, engines } = input
  const { job } = detail
  const sentences: string[] = []
  if (job.wait === 'deps') {
    const open = detail.waitsFor.filter(({ met }) => met === 0)
    sentences.push(`It waits for ${namedJobs(open, Math.max(job.deps_left, open.length))}.`)
    const broken = brokenDependency(detail)
    if (broken)
      sentences.push(
        `Job #${broken.id} ${broken.state === 'failed' ? 'failed' : 'was canceled'}. ${tryAgain(input, broken).join('')}`,
      )
    else if (open.some(({ state }) => state === null)) {
      sentences.push('What it waits for is no longer in the ledger: cancel it, or enqueue it anew.')
    } else if (open[0]) sentences.push(consequence(open))
    if (job.run_at !== null && job.run_at > now)
      sentences.push(`After that, it starts at ${moment(job.run_at, now)}.`)
  } else if (job.wait === 'time' && job.run_at !== null) {
    const why = job.error === null ? '' : ', after an error'
    sentences.push(
      job.run_at > now
        ? `It starts at ${moment(job.run_at, now)}${why}.`
        : `It was to start at ${moment(job.run_at, now)}${why}, and starts when an engine looks.`,
    )
  } else if (readySince(detail) !== undefined) {
    sentences.push(`It has been ready since ${moment(readySince(detail)!, now)}.`)
  } else {
    sentences.push('It is ready; since when is not recorded, for it was given back or tried again.')
  }
  return [...sentences, ...whetherAnyoneTakesIt(input, liveCount(engines))]
}

/** The latest of what a job that was never claimed had to wait for. */
function readySince({ job, waitsFor }: JobDetail): number | undefined {
  if (job.state !== 'pending' || job.wait !== null || job.attempt > 0) return undefined
  return Math.max(job.created_at, job.run_at ?? 0, ...waitsFor.map(({ settled_at }) => settled_at ?? 0))
}

/** What the failure of a dependency does, if that is the same for all of them. */
function consequence(open: readonly DependencyRow[]): string {
  const ways = new Set(open.map(({ on_failure }) => on_failure))
  const what = open.length === 1 ? 'If that one fails' : 'If one of them fails'
  if (ways.size > 1) return `${what}, this job ends too, or runs anyway, as was said for each.`
  if (ways.has('run')) return `${what}, this job runs anyway.`
  return `${what}, this job ${ways.has('cancel') ? 'is canceled' : 'fails'} too.`
}

function whetherAnyoneTakesIt({ detail: { job, pausedBy } }: Explaining, live: number): string[] {
  if (live === 0) return ['No engine is running.']
  if (job.wait !== null || pausedBy.length > 0) return []
  const running = live === 1 ? 'One engine is running: it takes' : `${live} engines are running: one takes`
  return [
    `${running} the job when there is room for its kind, stream and lane, if it knows the kind ${job.kind}.`,
  ]
}

function namedJobs(rows: readonly DependencyRow[], total: number): string {
  const named = rows.slice(0, NAMED_MAX).map(dependencyText)
  const more = total - named.length
  if (named.length === 0) return `${formatCount(total)} other ${plural(total, 'job')}`
  if (more > 0) return `${named.join(', ')} and ${formatCount(more)} more`
  return named.length === 1 ? named[0]! : `${named.slice(0, -1).join(', ')} and ${named.at(-1)}`
}

/** `job #12 (mail.list, claimed)` */
export function dependencyText({ id, kind, state }: DependencyRow): string {
  return kind === null || state === null ? `job #${id} (pruned)` : `job #${id} (${kind}, ${state})`
}

function whoHoldsIt({ detail, engines, now }: Explaining): string[] {
  const { job, owner } = detail
  const since = job.claimed_at === null ? '' : ` since ${moment(job.claimed_at, now)}`
  const sentences: string[] = []
  const seen = engines.find(({ id }) => id === job.owner)
  if (!owner) {
    sentences.push(`Worker #${job.owner} has held it${since}, but nothing else is known about that worker.`)
  } else if (seen?.liveness === 'live') {
    sentences.push(
      `It is held by ${workerText(owner)}${since}, until ${moment(owner.lease_until, now)} unless that is extended.`,
    )
    const progress = progressText(job.progress)
    if (progress) sentences.push(`So far: ${progress}.`)
  } else {
    const fate =
      seen?.liveness === 'dead'
        ? 'whose process has ended'
        : `which has been silent; its lease ran out at ${moment(owner.lease_until, now)}`
    sentences.push(
      `It is held by ${workerText(owner)}${since}, ${fate}.`,
      'The next engine that looks takes it back; that costs no attempt.',
    )
    if (liveCount(engines) === 0) sentences.push('No engine is running.')
  }
  if (job.cancel_requested === 1) {
    sentences.push(
      `It was asked to stop${job.note ? ` (${job.note})` : ''} and ends when its worker lets go of it.`,
    )
  }
  return sentences
}

function whatStopsIt(input: Explaining): string[] {
  const { job, pausedBy } = input.detail
  if (job.state !== 'pending' && job.state !== 'claimed') return []
  return pausedBy.map(({ scope, target, reason }) => {
    const what = scope === 'all' ? 'Everything' : `Its ${scope} ${target}`
    const flag = scope === 'all' ? '--all' : `--${scope} ${shellWord(target)}`
    const command = isPage(input) ? '' : ` Go on with: tidemark resume ${flag}`
    return `${what} is paused: ${reason.replace(/\.$/, '')}.${command}`
  })
}

function whatFailed({ detail, now }: Explaining): string[] {
  const { job, errors } = detail
  const last = errors[0]
  if (!last) return []
  const failures = failureCount(job)
  const sentences: string[] = []
  if (failures > 0) {
    const budget = `${Math.max(ATTEMPTS, failures)} times`
    const caveat = `${ATTEMPTS} unless its kind says otherwise`
    sentences.push(`It failed ${formatCount(failures)} of ${budget} (${caveat}).`)
  }
  if (job.state !== 'failed') {
    const [at, message] = [clockTime(last.at, now), last.message.replace(/\.$/, '')]
    sentences.push(`Its last error was at ${at}, in attempt ${last.attempt}: ${last.kind}: ${message}.`)
  }
  return sentences
}
