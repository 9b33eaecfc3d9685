/**
 * The engine against its peers and against the bare databases: enqueueing, draining, picking up, memory,
 * and what a full ledger costs. Subjects take turns within a case and each has two runs, of which the
 * better counts: what else the machine does hits all of them alike.
 */
import type { Bench, BenchOptions, BenchRun, Row } from '../bench.ts'
import { formatValue } from '../table.ts'
import { type Case, planCases } from './cases.ts'
import { runOrder, runTogether } from './child.ts'
import { conditions, explain } from './explanation.ts'
import type { Task } from './measure.ts'
import type { Target } from './subject.ts'
import type { SubjectEntry } from './subjects.ts'
import { Workspace } from './workspace.ts'

export const bench: Bench = {
  title: 'engine: jobs through the ledger',
  async run(options): Promise<BenchRun> {
    const workspace = new Workspace()
    const session: Session = { options, workspace, rows: [], failures: [], missing: new Map() }
    try {
      for (const group of groups(chosenCases(options))) await runGroup(session, group)
    } finally {
      await workspace.close()
    }
    const { rows, failures, missing } = session
    return {
      rows,
      failures,
      conditions: conditions({ quick: options.quick, missing, postgresVersion: workspace.postgresVersion }),
      explanation: explain(rows),
    }
  },
}

type Session = {
  options: BenchOptions
  workspace: Workspace
  rows: Row[]
  failures: string[]
  /** Peers that are not installed, and why. */
  missing: Map<string, string>
}

/** Cases, or all cases of some subjects, by parts of their names. */
export function chosenCases(options: { quick: boolean; only: readonly string[] }): Case[] {
  const cases = planCases(options)
  if (options.only.length === 0) return cases
  const matches = (name: string): boolean => options.only.some((text) => name.includes(text))
  return cases.flatMap((one) => {
    if (matches(one.name)) return [one]
    const subjects = one.subjects.filter((subject) => matches(subject.name))
    return subjects.length > 0 ? [{ ...one, subjects }] : []
  })
}

/** Cases that are compared with each other stand side by side in time, too. */
function groups(cases: readonly Case[]): Case[][] {
  return [...Map.groupBy(cases, (one) => one.group ?? one.name).values()]
}

type Progress = {
  best: Map<SubjectEntry, number[]>
  /** Databases that are kept for the next run. */
  kept: Map<SubjectEntry, Target>
  failed: Set<SubjectEntry>
}

async function runGroup(session: Session, cases: readonly Case[]): Promise<void> {
  const steps = cases.map((one) => {
    const progress: Progress = { best: new Map(), kept: new Map(), failed: new Set() }
    return { one, progress }
  })
  const runs = Math.max(...cases.map((one) => one.runs))
  for (let run = 1; run <= runs; run++) {
    for (const { one, progress } of steps) await runOnce(session, one, progress)
  }
  for (const { one, progress } of steps) {
    for (const target of progress.kept.values()) await session.workspace.discard(target)
    session.rows.push(...caseRows(one, progress))
  }
}

/** Every subject of the case, one after the other. */
async function runOnce(session: Session, one: Case, progress: Progress): Promise<void> {
  for (const subject of one.subjects) {
    if (session.missing.has(subject.name) || progress.failed.has(subject)) continue
    const values = await runSubject(session, one, subject, progress.kept)
    if (values) progress.best.set(subject, betterRun(progress.best.get(subject), values, one))
    else progress.failed.add(subject)
  }
}

function caseRows(one: Case, { best }: Progress): Row[] {
  return one.metrics.flatMap(({ suffix, unit }, index) =>
    one.subjects.flatMap((subject) => {
      const value = best.get(subject)?.[index]
      return value === undefined
        ? []
        : [{ case: one.name + suffix, subject: subject.name, value: round(value), unit }]
    }),
  )
}

/** The values of one run, or nothing if the subject failed, which is noted. */
async function runSubject(
  session: Session,
  one: Case,
  subject: SubjectEntry,
  kept: Map<SubjectEntry, Target>,
): Promise<number[] | undefined> {
  const { workspace } = session
  let target = kept.get(subject)
  const tasks: Task[] = target ? [] : [...one.prepareOnce]
  target ??= await workspace.open(one.database)
  if (one.keep) kept.set(subject, target)
  tasks.push(...one.prepare(subject), one.measure(subject))
  let values: number[] | undefined = []
  for (const [index, task] of tasks.entries()) {
    if (index === tasks.length - 1) await workspace.rest(target)
    values = await runTask(session, { one, subject, target, task })
    if (!values) break
  }
  if (values) session.options.say(`${one.name} · ${subject.name} · ${describe(one, values)}`)
  if (!one.keep) await workspace.discard(target)
  return values
}

async function runTask(
  session: Session,
  step: { one: Case; subject: SubjectEntry; target: Target; task: Task },
): Promise<number[] | undefined> {
  const { one, subject, target, task } = step
  const order = { subject: subject.name, target, concurrency: one.concurrency, task }
  const answer =
    task.do === 'drain together' ? await runTogether(order, task.processes) : await runOrder(order)
  if ('values' in answer)
    return task.do === 'drain together'
      ? answer.values.with(0, task.count / answer.values[0]!)
      : answer.values
  if ('missing' in answer) {
    session.missing.set(subject.name, answer.missing)
    session.options.say(`${subject.name} is left out: ${answer.missing}`)
  } else {
    session.failures.push(`${one.name} · ${subject.name} (${task.do}): ${answer.error}`)
    session.options.say(`${one.name} · ${subject.name} failed (${task.do}): ${answer.error}`)
  }
  return undefined
}

/** Decided by the first metric; the others come from the same run. */
export function betterRun(
  best: number[] | undefined,
  values: number[],
  one: Pick<Case, 'metrics'>,
): number[] {
  const [before, now] = [best?.[0], values[0]]
  if (!best || before === undefined || now === undefined) return values
  const isBetter = one.metrics[0]?.better === 'lower' ? now < before : now > before
  return isBetter ? values : best
}

function describe(one: Case, values: readonly number[]): string {
  return one.metrics
    .slice(0, values.length)
    .map((metric, index) => `${metric.suffix} ${formatValue(values[index] ?? 0)} ${metric.unit}`.trim())
    .join(', ')
}

function round(value: number): number {
  return value < 100 ? Math.round(value * 1000) / 1000 : Math.round(value)
}
