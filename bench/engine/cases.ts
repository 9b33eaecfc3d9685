/** The cases, as data: what is prepared, what is measured, and in which unit. */
import type { Task } from './measure.ts'
import type { Database } from './subject.ts'
import { type Ability, SUBJECTS, type SubjectEntry } from './subjects.ts'

export type Metric = { suffix: string; unit: string; better: 'higher' | 'lower' }

export type Case = {
  name: string
  /** Cases of one group take turns run by run, as they are compared with each other. */
  group?: string
  database: Database
  concurrency: number
  /** The first decides which of two runs was the better. */
  metrics: readonly Metric[]
  subjects: readonly SubjectEntry[]
  /** Once, in a process of its own, before the first run. */
  prepareOnce: readonly Task[]
  /** Before every run, in a process of its own. */
  prepare(subject: SubjectEntry): readonly Task[]
  measure(subject: SubjectEntry): Task
  /** Keeps the database between the two runs, for what takes long to prepare. */
  keep: boolean
  runs: number
}

type Sizes = {
  runs: number
  variants: boolean
  concurrencies: readonly number[]
  databases: readonly Database[]
  /** Where memory and full ledgers are measured: what takes longest. */
  heavy: readonly Database[]
  oneByOne: number
  batched: number
  /** Divides each subject's own number of jobs. */
  drainDivisor: number
  /** Jobs that bring or have something. */
  rich: number
  fanIn: number
  pickUps: number
  pending: number
  memoryMs: number
  settled: readonly [number, number]
  blocked: number
  overJobs: number
  /** These are compared with each other to a tenth or two: one run more. */
  overRuns: number
}

const FULL: Sizes = {
  runs: 2,
  variants: true,
  concurrencies: [10, 100],
  databases: ['sqlite full', 'sqlite normal', 'postgres', 'libsql'],
  heavy: ['sqlite full', 'postgres'],
  oneByOne: 3_000,
  batched: 60_000,
  drainDivisor: 1,
  rich: 30_000,
  fanIn: 50_000,
  pickUps: 200,
  pending: 1_000_000,
  memoryMs: 15_000,
  settled: [10_000, 1_000_000],
  blocked: 100_000,
  overJobs: 50_000,
  overRuns: 3,
}

const QUICK: Sizes = {
  runs: 1,
  variants: false,
  concurrencies: [10],
  databases: ['sqlite full', 'postgres', 'libsql'],
  heavy: ['sqlite full'],
  oneByOne: 100,
  batched: 5_000,
  drainDivisor: 10,
  rich: 2_000,
  fanIn: 2_000,
  pickUps: 20,
  pending: 10_000,
  memoryMs: 1_000,
  settled: [1_000, 20_000],
  blocked: 2_000,
  overJobs: 5_000,
  overRuns: 1,
}

const JOBS_PER_S: readonly Metric[] = [{ suffix: '', unit: 'jobs/s', better: 'higher' }]
/** Where subjects and other work share the cores, what a job costs says more than how many there were a second. */
const DRAIN: readonly Metric[] = [
  ...JOBS_PER_S,
  { suffix: ', processor', unit: 'µs/job', better: 'lower' },
  { suffix: ', processor of the server', unit: 'µs/job', better: 'lower' },
]
const LATENCY: readonly Metric[] = [
  { suffix: ' p50', unit: 'ms', better: 'lower' },
  { suffix: ' p99', unit: 'ms', better: 'lower' },
]
const FAN_IN: readonly Metric[] = [
  { suffix: ', stored after', unit: 's', better: 'lower' },
  { suffix: ', run after', unit: 's', better: 'lower' },
]
const MEMORY: readonly Metric[] = [{ suffix: '', unit: 'MB', better: 'lower' }]
const CONCURRENCY = 10
const PICK_UP_SPREAD_MS = 20
/** Up to here it is filled anew for every run, so that it holds what its name says. */
const SETTLED_ANEW_MAX = 10_000

export function planCases(options: { quick: boolean }): Case[] {
  const sizes = options.quick ? QUICK : FULL
  const perDatabase = sizes.databases.flatMap((database) => [
    ...enqueueCases(database, sizes),
    ...sizes.concurrencies.map((concurrency) => drainCase(database, concurrency, sizes)),
    ...(database === 'sqlite normal' ? [] : effectCases(database, sizes)),
    ...(database === 'sqlite normal' ? [] : [pickUpCase(database, sizes)]),
  ])
  const heavy = sizes.heavy.flatMap((database) => [
    memoryCase(database, sizes),
    ...sizes.settled.map((count) => settledCase(database, count, sizes)),
    ...[0, sizes.blocked].map((count) => blockedCase(database, count, sizes)),
  ])
  return [...perDatabase, ...rawCases(sizes), ...heavy].filter((one) => one.subjects.length > 0)
}

function enqueueCases(database: Database, sizes: Sizes): Case[] {
  const base = { ...blank(database, 'enqueue', sizes), metrics: JOBS_PER_S }
  return [
    {
      ...base,
      name: `${database}: enqueue one by one`,
      measure: () => ({ do: 'enqueue one by one', count: sizes.oneByOne }),
    },
    {
      ...base,
      name: `${database}: enqueue in batches of 1,000`,
      measure: () => ({ do: 'enqueue in batches', count: sizes.batched }),
    },
  ]
}

function drainCase(database: Database, concurrency: number, sizes: Sizes): Case {
  const count = (subject: SubjectEntry): number =>
    Math.ceil(subject.drainJobs(database, concurrency) / sizes.drainDivisor)
  return {
    ...blank(database, 'drain', sizes),
    name: `${database}: drain, ${concurrency} workers`,
    concurrency,
    metrics: drainMetrics(database),
    prepare: (subject) => [{ do: 'enqueue in batches', count: count(subject) }],
    measure: (subject) => ({ do: 'drain', count: count(subject) }),
  }
}

/** On SQLite all of it is the client's. */
function drainMetrics(database: Database): readonly Metric[] {
  return database === 'postgres' ? DRAIN : JOBS_PER_S
}

/** What jobs bring with them, and what it costs. */
function effectCases(database: Database, sizes: Sizes): Case[] {
  const jobs = (subject: SubjectEntry): number => Math.ceil((subject.effectJobs ?? 0) / sizes.drainDivisor)
  const insert = sizes.concurrencies.map((concurrency) => ({
    ...blank(database, 'effects', sizes),
    name: `${database}: drain, one INSERT each, ${concurrency} workers`,
    concurrency,
    metrics: drainMetrics(database),
    prepare: (subject: SubjectEntry): Task[] => [{ do: 'enqueue in batches', count: jobs(subject) }],
    measure: (subject: SubjectEntry): Task => ({ do: 'drain', count: jobs(subject), each: 'insert' }),
  }))
  const own = { ...blank(database, 'own', sizes), metrics: JOBS_PER_S }
  const child: Case = {
    ...own,
    name: `${database}: drain, one child job each`,
    prepare: () => [{ do: 'enqueue in batches', count: sizes.rich }],
    measure: () => ({ do: 'drain', count: sizes.rich, each: 'child' }),
  }
  const keyed: Case = {
    ...own,
    name: `${database}: enqueue with keys, in batches of 1,000`,
    measure: () => ({ do: 'enqueue with keys', count: sizes.rich }),
  }
  const fanIn: Case = {
    ...own,
    name: `${database}: one job after ${words(sizes.fanIn)}`,
    metrics: FAN_IN,
    measure: () => ({ do: 'fan in', count: sizes.fanIn }),
  }
  const together = database === 'postgres' ? togetherCases(sizes) : []
  return [...insert, child, keyed, fanIn, ...failingCases(database, sizes), ...together]
}

/** What a few that fail cost the others that commit with them. */
function failingCases(database: Database, sizes: Sizes): Case[] {
  return (['insert', 'fail'] as const).map((each) => ({
    ...blank(database, 'own', sizes),
    name: `${database}: drain, one INSERT each, ${each === 'fail' ? '1 in 1,000 fails' : 'none fails'}`,
    group: `${database}: failing`,
    metrics: JOBS_PER_S,
    prepare: () => [{ do: 'enqueue in batches', count: sizes.rich }],
    measure: () => ({ do: 'drain', count: sizes.rich, each }),
    runs: sizes.overRuns,
  }))
}

/** The same jobs in one process and in two. */
function togetherCases(sizes: Sizes): Case[] {
  return ([undefined, 'insert'] as const).flatMap((each) =>
    [1, 2].map((processes): Case => {
      const count = (subject: SubjectEntry): number =>
        Math.ceil(
          (each ? subject.effectJobs! : subject.drainJobs('postgres', CONCURRENCY)) / sizes.drainDivisor,
        )
      const base = blank('postgres', 'together', sizes)
      return {
        ...base,
        subjects: base.subjects.filter((subject) => !each || subject.effectJobs !== undefined),
        name: `postgres: drain${each ? ', one INSERT each' : ''}, ${processes} process${processes > 1 ? 'es' : ''}`,
        group: `postgres: processes ${each}`,
        metrics: drainMetrics('postgres'),
        prepare: (subject) => [{ do: 'enqueue in batches', count: count(subject) }],
        measure: (subject) => ({ do: 'drain together', count: count(subject), processes, each }),
      }
    }),
  )
}

function pickUpCase(database: Database, sizes: Sizes): Case {
  const usual = { count: sizes.pickUps, spreadMs: PICK_UP_SPREAD_MS }
  return {
    ...blank(database, 'pick up', sizes),
    name: `${database}: idle pick-up`,
    metrics: LATENCY,
    measure: (subject) => ({ do: 'pick up', ...(subject.pickUps ?? usual) }),
  }
}

function memoryCase(database: Database, sizes: Sizes): Case {
  return {
    ...blank(database, 'memory', sizes),
    name: `${database}: peak memory with ${words(sizes.pending)} pending`,
    metrics: MEMORY,
    prepare: () => [{ do: 'enqueue in batches', count: sizes.pending }],
    measure: () => ({ do: 'memory', count: sizes.pending, forMs: sizes.memoryMs }),
    runs: 1,
  }
}

function settledCase(database: Database, settled: number, sizes: Sizes): Case {
  return {
    ...overCase(database, 'settled', sizes),
    name: `${database}: drain over ${words(settled)} settled`,
    group: `${database}: settled`,
    prepareOnce: [{ do: 'settle', count: settled }],
    keep: settled > SETTLED_ANEW_MAX,
  }
}

function blockedCase(database: Database, blocked: number, sizes: Sizes): Case {
  return {
    ...overCase(database, 'blocked', sizes),
    name: `${database}: drain beside ${words(blocked)} blocked`,
    group: `${database}: blocked`,
    keep: blocked > 0,
    prepareOnce: blocked > 0 ? [{ do: 'block', count: blocked }] : [],
  }
}

/** A drain of the same number of jobs over something that is already there. */
function overCase(database: Database, ability: Ability, sizes: Sizes): Omit<Case, 'name'> {
  // The slow ones would take a minute over it.
  const count = (subject: SubjectEntry): number =>
    Math.min(sizes.overJobs, Math.ceil(subject.drainJobs(database, CONCURRENCY) / sizes.drainDivisor))
  return {
    ...blank(database, ability, sizes),
    metrics: drainMetrics(database),
    prepare: (subject) => [{ do: 'enqueue in batches', count: count(subject) }],
    measure: (subject) => ({ do: 'drain', count: count(subject) }),
    runs: sizes.overRuns,
  }
}

/** What the disk and the databases give at best; only `limit` takes part. */
function rawCases(sizes: Sizes): Case[] {
  const raw = (database: Database, name: string, variant: string, count: number, unit: string): Case => {
    const jobs = Math.ceil(count / sizes.drainDivisor)
    const claims = /^\d/.test(variant)
    return {
      ...blank(database, 'drain', sizes),
      name: `raw: ${name}`,
      subjects: SUBJECTS.filter((subject) => subject.name === 'limit'),
      metrics: [{ suffix: '', unit, better: 'higher' }],
      prepare: () => (claims ? [{ do: 'enqueue in batches', count: jobs }] : []),
      measure: () => ({ do: 'raw', variant, count: jobs }),
    }
  }
  const [perS, jobs] = ['/s', 'jobs/s']
  const sqlite = (['sqlite full', 'sqlite normal'] as const)
    .filter((database) => sizes.databases.includes(database))
    .flatMap((database) => [
      raw(database, `${database}, claim + complete, 1 a transaction`, '1', 8_000, jobs),
      raw(database, `${database}, claim + complete, 100 a transaction`, '100', 300_000, jobs),
      raw(database, `${database}, claim + complete, 1,000 a transaction`, '1000', 300_000, jobs),
    ])
  const postgres = [1, 4].flatMap((connections) =>
    [100, 1000].map((batch) =>
      raw(
        'postgres',
        `postgres, claim + complete, ${words(batch)} a transaction, ${connections} connection${connections > 1 ? 's' : ''}`,
        `${batch} on ${connections}`,
        100_000,
        jobs,
      ),
    ),
  )
  return [
    raw('sqlite full', 'disk, 4 KiB written and synced', 'fdatasync', 4_000, perS),
    ...sqlite,
    raw('postgres', 'postgres, commits on 1 connection', 'commits', 3_000, perS),
    ...postgres,
  ]
}

function blank(
  database: Database,
  ability: Ability,
  sizes: Sizes,
): Omit<Case, 'name' | 'metrics' | 'measure'> {
  return {
    database,
    concurrency: CONCURRENCY,
    subjects: SUBJECTS.filter(
      (subject) =>
        subject.databases.includes(database) &&
        subject.abilities.includes(ability) &&
        (sizes.variants || !subject.variant),
    ),
    prepareOnce: [],
    prepare: () => [],
    keep: false,
    runs: sizes.runs,
  }
}

function words(count: number): string {
  return count >= 1_000_000
    ? `${count / 1_000_000}M`
    : count >= 10_000
      ? `${count / 1000}k`
      : count.toLocaleString('en-US')
}
