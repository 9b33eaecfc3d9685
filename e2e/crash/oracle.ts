/**
 * The oracle: what must hold in the ledger at every instant, whoever was killed in the middle of whatever, and
 * what must hold at the end. It knows the truth from the source (source.ts) and reads the ledger by itself.
 *
 * Each check returns sentences about what is wrong; none means that all is well. The checks of the engine's own
 * books are in books.ts.
 */
import { checkBooks } from './books.ts'
import type { CountedFact, JobFact, SegmentFact, Snapshot, StreamFact } from './snapshot.ts'
import {
  CATEGORY_OF,
  type Category,
  countFates,
  fateOf,
  itemsIn,
  PAGE_SPAN,
  pagesIn,
  positionOf,
  SEGMENT_SPAN,
  type SourceSize,
  streamEnd,
} from './source.ts'
import { VERSIONS } from './workload.ts'

/** At any instant. */
export function checkInstant(size: SourceSize, now: Snapshot): string[] {
  return [
    ...now.violations.map(({ what }) => what),
    ...checkOnce(now),
    ...checkCategories(now),
    ...now.streams.flatMap((stream) => checkStream(size, now, stream)),
    ...checkEffects(now),
    ...checkCheckpoints(size, now),
    ...checkBooks(now),
  ]
}

/** Between two instants of one ledger: what was settled stays settled, and marks only ever grow. */
export function checkSince(before: Snapshot, now: Snapshot): string[] {
  const problems: string[] = []
  for (const stream of before.streams) {
    const later = now.streams.find(({ id }) => id === stream.id)
    if (!later || later.mark_at < stream.mark_at)
      problems.push(`the mark of ${stream.name} went back from ${stream.mark_at}`)
  }
  const stateNow = new Map(now.jobs.map((job) => [job.id, job.state]))
  for (const job of before.jobs) {
    const later = stateNow.get(job.id)
    if (later === undefined) problems.push(`job #${job.id} (${job.kind}) is no longer there`)
    else if (SETTLED.has(job.state) && later !== job.state)
      problems.push(`job #${job.id} was ${job.state} and is ${later}`)
  }
  for (const table of ['applied', 'told', 'pages', 'parts', 'steps', 'published'] as const) {
    const names = namesOf(now[table])
    for (const { name } of before[table])
      if (!names.has(name)) problems.push(`${name} was in ${table} and is no longer`)
  }
  return problems
}

/** When everything is done. */
export function checkEnd(size: SourceSize, end: Snapshot): string[] {
  const problems = checkInstant(size, end)
  for (const job of end.jobs) {
    if (!isHouseJob(job) && (job.state === 'pending' || job.state === 'claimed'))
      problems.push(`job #${job.id} (${job.kind}) is still ${job.state}`)
  }
  for (const name of size.streams) {
    const stream = end.streams.find((one) => one.name === name)
    if (stream?.mark_at !== streamEnd(size))
      problems.push(`the mark of ${name} ends at ${stream?.mark_at} instead of ${streamEnd(size)}`)
    const items = itemsIn(size, name, 0, streamEnd(size)).filter(
      (item) => CATEGORY_OF[fateOf(item)] === 'stored',
    )
    const applied = namesOf(end.applied)
    for (const item of items) if (!applied.has(item)) problems.push(`${item} was never stored`)
    if (!end.published.some((row) => row.name === `${name} ${VERSIONS}`))
      problems.push(`the last version of ${name} was never published`)
  }
  return problems
}

/**
 * Everything that must come out the same in every run, as lines that can be compared; also what the jobs spent of
 * their budgets, because an interrupted attempt costs nothing. Of publications only the number of requests
 * counts (and that the last one was done): how many were replaced in time is a matter of timing.
 */
export function finalState(end: Snapshot): string[] {
  const lines = (label: string, values: string[]): string[] => values.map((value) => `${label} ${value}`)
  const counted = (rows: CountedFact[]): string[] =>
    rows.map(({ name, value, times }) => `${name} ${value} x${times}`)
  const nameOf = new Map(end.streams.map(({ id, name }) => [id, name]))
  const jobs = new Map<string, { n: number; failures: number }>()
  for (const job of end.jobs) {
    if (isHouseJob(job)) continue
    const what = job.kind === 'crash.publish' ? job.kind : `${job.kind} ${job.state}`
    const { n, failures } = jobs.get(what) ?? { n: 0, failures: 0 }
    jobs.set(what, { n: n + 1, failures: failures + job.failures })
  }
  return [
    ...lines(
      'mark',
      end.streams.map((s) => `${s.name} ${s.mark} ${s.mark_at} ${s.tail_at} ${s.cursor}`),
    ),
    ...lines('segment', end.segments.map((s) => segmentLine(nameOf.get(s.stream_id)!, s)).sort()),
    ...lines('jobs', [...jobs].map(([what, { n, failures }]) => `${what} ${n}, failures ${failures}`).sort()),
    ...lines(
      'bad',
      end.bad.map(({ item, reason, tries }) => `${item} ${reason} ${tries}`),
    ),
    ...lines(
      'entry',
      end.entries.map(({ name }) => name),
    ),
    ...(['applied', 'told', 'pages', 'parts', 'steps', 'digests'] as const).flatMap((table) =>
      lines(table, counted(end[table])),
    ),
  ]
}

function segmentLine(stream: string, s: SegmentFact): string {
  return `${stream} ${s.from_at}-${s.to_at} ${s.mark} ${s.state} ${s.listed}=${s.stored}+${s.gone}+${s.skipped}+${s.bad}`
}

const SETTLED = new Set(['done', 'skipped', 'canceled'])
const isHouseJob = (job: JobFact): boolean => job.kind.startsWith('engine.')
const namesOf = (rows: readonly { name: string }[]): Set<string> => new Set(rows.map(({ name }) => name))
const payloadOf = <T>(job: JobFact): T => JSON.parse(job.payload) as T

/** Nothing is applied twice. */
function checkOnce(now: Snapshot): string[] {
  const problems: string[] = []
  for (const table of ['applied', 'told', 'pages', 'parts', 'steps', 'digests', 'published'] as const) {
    for (const { name, times } of now[table])
      if (times !== 1) problems.push(`${name} was written ${times} times to ${table}`)
  }
  const listed = now.entries.map(({ name }) => name).join(' ')
  if (listed !== now.applied.map(({ name }) => name).join(' '))
    problems.push('the list of entries differs from what was applied')
  return problems
}

/** An item is in one category only, and in the right one. */
function checkCategories(now: Snapshot): string[] {
  const problems: string[] = []
  const seen = new Map<string, Category>()
  const note = (item: string, category: Category): void => {
    const other = seen.get(item)
    if (other !== undefined && other !== category) problems.push(`${item} is both ${other} and ${category}`)
    seen.set(item, category)
    const truth = CATEGORY_OF[fateOf(item)]
    if (truth !== category) problems.push(`${item} ended as ${category}, but is ${truth} (${fateOf(item)})`)
  }
  for (const { name } of now.applied) note(name, 'stored')
  for (const { name, value } of now.told) note(name, value as Category)
  for (const { item, tries } of now.bad) {
    note(item, 'bad')
    if (tries !== 1) problems.push(`${item} was isolated ${tries} times`)
  }
  return problems
}

/** The mark is where the settled stretch ends, and what lies before it is all there. */
function checkStream(size: SourceSize, now: Snapshot, stream: StreamFact): string[] {
  const segments = now.segments.filter((segment) => segment.stream_id === stream.id)
  const problems: string[] = []
  let at = 0
  for (const segment of segments) {
    if (segment.from_at !== at)
      problems.push(`${stream.name}: a segment starts at ${segment.from_at}, the one before ends at ${at}`)
    at = segment.to_at
    problems.push(...checkSegment(size, now, { stream: stream.name, segment }))
  }
  if (at !== stream.tail_at)
    problems.push(`${stream.name}: the last segment ends at ${at}, the tail is ${stream.tail_at}`)
  const open = segments.find(({ state }) => state !== 'settled')
  const position = open ? open.from_at : stream.tail_at
  if (stream.mark_at !== position)
    problems.push(`${stream.name}: the mark is at ${stream.mark_at}, the settled stretch ends at ${position}`)
  const mark = segments.findLast(({ to_at }) => to_at <= position)?.mark ?? null
  if (stream.mark !== mark) problems.push(`${stream.name}: the mark is ${stream.mark} instead of ${mark}`)
  const found = stream.cursor === null ? 0 : Number(stream.cursor.replace('found ', ''))
  if (found * SEGMENT_SPAN !== stream.tail_at)
    problems.push(`${stream.name}: the cursor says ${stream.cursor}, the tail is ${stream.tail_at}`)
  return problems
}

function checkSegment(
  size: SourceSize,
  now: Snapshot,
  { stream, segment }: { stream: string; segment: SegmentFact },
): string[] {
  const problems: string[] = []
  const { from_at, to_at } = segment
  const inside = (name: string): boolean =>
    name.startsWith(`${stream}:`) && positionOf(name) >= from_at && positionOf(name) < to_at
  const here = (rows: readonly { name: string; value: string }[], value?: string): number =>
    rows.filter((row) => inside(row.name) && (value === undefined || row.value === value)).length
  const bad = now.bad.filter(({ item }) => inside(item))
  const expect = (what: string, found: number, wanted: number): void => {
    if (found !== wanted)
      problems.push(
        `${stream} ${from_at}-${to_at} (${segment.state}): ${what} is ${found}, should be ${wanted}`,
      )
  }
  expect('listed', segment.listed, here(now.pages) * size.pageItems)
  expect('stored', segment.stored, here(now.applied))
  expect('skipped', segment.skipped, here(now.told, 'skipped'))
  expect('bad', segment.bad, bad.length)
  if (bad.some(({ segment_id }) => segment_id !== segment.id))
    problems.push(`${stream} ${from_at}: a bad item names another segment`)
  if (segment.state !== 'settled') return problems
  const items = itemsIn(size, stream, from_at, to_at)
  const truth = countFates(items)
  expect('listed', segment.listed, items.length)
  for (const category of ['stored', 'gone', 'skipped', 'bad'] as const)
    expect(category, segment[category], truth[category])
  const known = new Set([...namesOf(now.applied), ...namesOf(now.told), ...now.bad.map(({ item }) => item)])
  for (const item of items) {
    if (fateOf(item) !== 'gone' && !known.has(item))
      problems.push(`${item} lies before a settled end, but nothing is known of it`)
  }
  return problems
}

/** A job is done if and only if its effects are there. */
function checkEffects(now: Snapshot): string[] {
  const problems: string[] = []
  const applied = namesOf(now.applied)
  const owed = new Set<string>()
  for (const job of now.jobs) {
    if (job.kind !== 'crash.store' || job.state !== 'done') continue
    for (const item of payloadOf<{ items: string[] }>(job).items) {
      if (CATEGORY_OF[fateOf(item)] === 'stored') owed.add(item)
    }
  }
  for (const item of owed)
    if (!applied.has(item)) problems.push(`the job of ${item} is done, but it is not stored`)
  for (const item of applied) if (!owed.has(item)) problems.push(`${item} is stored, but its job is not done`)
  const steps = namesOf(now.steps)
  const published = namesOf(now.published)
  for (const job of now.jobs) {
    const done = job.state === 'done'
    if (job.kind === 'crash.step' || job.kind.startsWith('crash.after-')) {
      const { name } = payloadOf<{ name: string }>(job)
      if (done !== steps.has(name))
        problems.push(`step ${name} is ${job.state}, its effect is ${done ? 'missing' : 'there'}`)
    } else if (job.kind === 'crash.publish') {
      const { stream, version } = payloadOf<{ stream: string; version: number }>(job)
      if (done !== published.has(`${stream} ${version}`))
        problems.push(
          `publication ${stream} ${version} is ${job.state}, its effect is ${done ? 'missing' : 'there'}`,
        )
    }
  }
  return problems
}

/** A checkpoint says exactly what was committed with it. */
function checkCheckpoints(size: SourceSize, now: Snapshot): string[] {
  const problems: string[] = []
  const pages = namesOf(now.pages)
  const versions = (stream: string): number =>
    now.jobs.filter(
      (job) => job.kind === 'crash.publish' && payloadOf<{ stream: string }>(job).stream === stream,
    ).length
  for (const job of now.jobs) {
    const saved = job.checkpoint === null ? null : (JSON.parse(job.checkpoint) as Record<string, number>)
    if (job.kind === 'crash.list') {
      const { stream, from, to } = payloadOf<{ stream: string; from: number; to: number }>(job)
      const end = saved?.to ?? to
      const listed = pagesIn(size, from, end).filter((at) => pages.has(`${stream}:${at}`))
      const until = saved === null ? from : saved.at!
      if (listed.length !== (until - from) / PAGE_SPAN)
        problems.push(`the listing of ${stream} ${from} stands at ${until} with ${listed.length} pages`)
    } else if (job.kind === 'crash.upload') {
      const { name } = payloadOf<{ name: string }>(job)
      const parts = now.parts.filter((part) => part.name.startsWith(`${name} `)).length
      if (parts !== (saved?.done ?? 0))
        problems.push(`${name} has ${parts} parts, its checkpoint says ${saved?.done ?? 0}`)
    } else if (job.kind === 'crash.edit') {
      const { stream } = payloadOf<{ stream: string }>(job)
      if (versions(stream) !== (saved?.done ?? 0))
        problems.push(`${stream} has ${versions(stream)} versions, the checkpoint says ${saved?.done ?? 0}`)
    }
  }
  return problems
}
