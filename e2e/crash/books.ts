/** The engine's own books: what its tables say about each other, whatever the workload. See oracle.ts. */
import type { JobFact, Snapshot } from './snapshot.ts'

export function checkBooks(now: Snapshot): string[] {
  return [...checkTallies(now), ...checkOwners(now), ...checkWaits(now), ...checkOpenJobs(now)]
}

/** The tallies are exactly the jobs that there are. */
function checkTallies(now: Snapshot): string[] {
  const counted = new Map<string, number>()
  for (const job of now.jobs) {
    const stage = job.state === 'pending' ? (job.wait ?? 'ready') : job.state
    counted.set(`${job.kind} ${stage}`, (counted.get(`${job.kind} ${stage}`) ?? 0) + 1)
  }
  const tallied = new Map(
    now.tallies.filter(({ n }) => n !== 0).map(({ kind, stage, n }) => [`${kind} ${stage}`, n]),
  )
  return [...new Set([...counted.keys(), ...tallied.keys()])]
    .filter((what) => counted.get(what) !== tallied.get(what))
    .map((what) => `the tally of ${what} is ${tallied.get(what) ?? 0}, there are ${counted.get(what) ?? 0}`)
}

/** What is claimed belongs to a live owner: nobody would ever take it back from a gone one. */
function checkOwners(now: Snapshot): string[] {
  const stateOf = new Map(now.workers.map(({ id, state }) => [id, state]))
  const problems: string[] = []
  for (const job of now.jobs) {
    if (job.state === 'claimed' && stateOf.get(job.owner ?? 0) !== 'live') {
      problems.push(
        `job #${job.id} (${job.kind}) is claimed by #${job.owner}, which is ${stateOf.get(job.owner ?? 0) ?? 'unknown'}`,
      )
    }
    if (job.state === 'pending' && job.owner !== null)
      problems.push(`job #${job.id} (${job.kind}) is pending, but has an owner`)
  }
  return problems
}

/** A pending job waits if and only if something is left to wait for. */
function checkWaits(now: Snapshot): string[] {
  const unmet = new Map(now.unmet.map(({ job_id, n }) => [job_id, n]))
  const wrong = (job: JobFact): boolean => {
    const left = unmet.get(job.id) ?? 0
    return (job.wait === 'deps') !== left > 0 || (left > 0 && job.deps_left !== left)
  }
  return now.jobs
    .filter((job) => job.state === 'pending' && wrong(job))
    .map(
      (job) =>
        `job #${job.id} (${job.kind}) waits for ${job.wait}, deps_left ${job.deps_left}, unmet ${unmet.get(job.id) ?? 0}`,
    )
}

/** A segment knows how many of its jobs are unsettled. */
function checkOpenJobs(now: Snapshot): string[] {
  const open = new Map<number, number>()
  for (const { segment_id, state } of now.jobs) {
    if (segment_id === null || !UNSETTLED.has(state)) continue
    open.set(segment_id, (open.get(segment_id) ?? 0) + 1)
  }
  return now.segments
    .filter((segment) => segment.open_jobs !== (open.get(segment.id) ?? 0))
    .map(
      (segment) =>
        `segment #${segment.id} counts ${segment.open_jobs} open jobs, there are ${open.get(segment.id) ?? 0}`,
    )
}

const UNSETTLED = new Set(['pending', 'claimed', 'failed'])
