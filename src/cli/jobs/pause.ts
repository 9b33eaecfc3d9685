/** `tidemark pause` and `tidemark resume`: a stream, a kind, or everything. Work with or without an engine. */
import { type Command, Option } from 'commander'
import type { CliContext } from '../../app/command.ts'
import { UsageError } from '../../base/errors.ts'
import { formatCount } from '../../base/format.ts'
import type { PauseRow, PauseScope } from '../../ledger/control.ts'
import type { Ledger } from '../../ledger/ledger.ts'

type ScopeOptions = { stream?: string; kind?: string; all?: boolean }
type PauseOptions = ScopeOptions & { reason?: string; force?: boolean }
type Scope = { scope: PauseScope; target: string }

const RUNNING_HINT = 'Jobs that are running end normally; no more are started.'

export function registerPause(program: Command, context: CliContext): void {
  scoped(program.command('pause'))
    .description('start no more jobs of a stream, of a kind, or at all')
    .option('--reason <text>', 'why, for whoever looks later')
    .option('--force', 'also a stream or kind that the ledger has not seen yet')
    .addHelpText('after', `\n${RUNNING_HINT}`)
    .action((options: PauseOptions) => pauseScope(context, options))
}

export function registerResume(program: Command, context: CliContext): void {
  scoped(program.command('resume'))
    .description('go on with what was paused')
    .action((options: ScopeOptions) => resumeScope(context, options))
}

function scoped(command: Command): Command {
  return command
    .addOption(new Option('--stream <name>', 'one stream').conflicts(['kind', 'all']))
    .addOption(new Option('--kind <kind>', 'one kind of jobs').conflicts(['stream', 'all']))
    .addOption(new Option('--all', 'everything').conflicts(['stream', 'kind']))
}

async function pauseScope(context: CliContext, options: PauseOptions): Promise<void> {
  const { withLedger } = await import('../../app/with-ledger.ts')
  const wanted = scopeOf(options)
  if (!wanted) {
    throw new UsageError('What is to be paused?', { hint: 'Say --stream NAME, --kind KIND or --all.' })
  }
  await withLedger(context, async ({ ledger }) => {
    if (!options.force) await checkKnown(ledger, wanted)
    const reason = options.reason?.trim() || 'paused by hand'
    const added = await ledger.pause(wanted.scope, wanted.target, reason)
    const jobs = await affected(ledger, wanted)
    if (context.output.json) {
      context.output.value({
        ...wanted,
        reason,
        paused: true,
        changed: added,
        waiting: jobs.waiting,
        claimed: jobs.claimed,
      })
    } else await reportPause(context, { ledger, wanted, added, jobs })
  })
}

async function reportPause(
  { output }: CliContext,
  { ledger, wanted, added, jobs }: { ledger: Ledger; wanted: Scope; added: boolean; jobs: Affected },
): Promise<void> {
  const { clockTime } = await import('../../base/moment.ts')
  if (!added) {
    const row = (await ledger.pauses()).find((one) => isSame(one, wanted))
    const since = row ? ` since ${clockTime(row.at, ledger.now())}: ${row.reason}` : ''
    output.line(`${subject(wanted)} is paused already${since}`)
    return
  }
  output.line(`${subject(wanted)} is paused: ${jobsText(jobs)}`)
  if (jobs.claimed > 0) output.note(RUNNING_HINT)
}

async function resumeScope(context: CliContext, options: ScopeOptions): Promise<void> {
  const { withLedger } = await import('../../app/with-ledger.ts')
  const { output } = context
  const wanted = scopeOf(options)
  await withLedger(context, async ({ ledger }) => {
    const pauses = await ledger.pauses()
    if (!wanted) throw new UsageError('What is to go on?', { hint: resumeHint(pauses) })
    const wasPaused = pauses.some((row) => isSame(row, wanted))
    if (!wasPaused) await checkKnown(ledger, wanted, pauses)
    const removed = wasPaused && (await ledger.resume(wanted.scope, wanted.target))
    const left = (await ledger.pauses()).filter((row) => !isSame(row, wanted))
    if (output.json) {
      const jobs = await affected(ledger, wanted)
      output.value({
        ...wanted,
        paused: false,
        changed: removed,
        waiting: jobs.waiting,
        stillPaused: left.map(toScope),
      })
      return
    }
    if (!removed) output.line(`${subject(wanted)} was not paused.`)
    else output.line(`${subject(wanted)} goes on: ${jobsText(await affected(ledger, wanted))}`)
    for (const row of left) output.note(`Still paused: ${flagOf(row)} (${row.reason})`)
    if (removed) await noteEngines(context, ledger)
  })
}

async function noteEngines({ output }: CliContext, ledger: Ledger): Promise<void> {
  const { liveCount, listEngines } = await import('../../engine/observe/engines.ts')
  if (liveCount(await listEngines(ledger)) === 0) output.note('No engine is running.')
}

function resumeHint(pauses: readonly PauseRow[]): string {
  if (pauses.length === 0) return 'Nothing is paused.'
  return `Paused are: ${pauses.map(flagOf).join(', ')}. Say which.`
}

function scopeOf({ stream, kind, all }: ScopeOptions): Scope | undefined {
  if (stream !== undefined) return { scope: 'stream', target: stream }
  if (kind !== undefined) return { scope: 'kind', target: kind }
  return all ? { scope: 'all', target: '' } : undefined
}

const toScope = ({ scope, target, reason }: PauseRow) => ({ scope, target, reason })
const isSame = (row: PauseRow, { scope, target }: Scope): boolean =>
  row.scope === scope && row.target === target
const flagOf = ({ scope, target }: Scope): string => (scope === 'all' ? '--all' : `--${scope} ${target}`)

function subject({ scope, target }: Scope): string {
  return scope === 'all' ? 'Everything' : scope === 'stream' ? `The stream ${target}` : `The kind ${target}`
}

async function checkKnown(
  ledger: Ledger,
  { scope, target }: Scope,
  pauses: readonly PauseRow[] = [],
): Promise<void> {
  if (scope === 'all') return
  const paused = pauses.filter((row) => row.scope === scope).map((row) => row.target)
  const known = new Set([
    ...paused,
    ...(scope === 'stream' ? await streamsOf(ledger) : await kindsOf(ledger)),
  ])
  if (known.has(target)) return
  const { didYouMean } = await import('../output/input.ts')
  const what = scope === 'stream' ? 'There is no stream called' : 'No job is of the kind'
  throw new UsageError(`${what} ${target}${didYouMean(target, known)}`, {
    code: `${scope}-unknown`,
    hint: knownHint(scope, [...known].sort()),
  })
}

const NAMED_MAX = 10

function knownHint(scope: 'stream' | 'kind', known: readonly string[]): string {
  if (known.length === 0) return `The ledger has not seen any ${scope} yet; --force pauses it all the same.`
  const more = known.length > NAMED_MAX ? `, and ${known.length - NAMED_MAX} more` : ''
  return `Known ${scope}s: ${known.slice(0, NAMED_MAX).join(', ')}${more}.`
}

async function streamsOf(ledger: Ledger): Promise<string[]> {
  return (await ledger.streamNames()).map(({ name }) => name)
}

/** Those with jobs, and those that a schedule will bring. */
async function kindsOf(ledger: Ledger): Promise<string[]> {
  const scheduled = (await ledger.schedules()).map(({ kind }) => kind)
  return [...new Set([...(await ledger.tallies()).map(({ kind }) => kind), ...scheduled])]
}

type Affected = { waiting: number; claimed: number; atLeast: boolean }

/** By tallies; those are kept by kind, so a stream's jobs are looked at, up to a page of them. */
async function affected(ledger: Ledger, { scope, target }: Scope): Promise<Affected> {
  if (scope === 'stream') {
    const { PAGE_MAX } = await import('../../ledger/queries.ts')
    const waiting = (await ledger.jobs({ stream: target, state: 'pending', limit: PAGE_MAX })).length
    const claimed = (await ledger.jobs({ stream: target, state: 'claimed', limit: PAGE_MAX })).length
    return { waiting, claimed, atLeast: waiting === PAGE_MAX }
  }
  const tallies = (await ledger.tallies()).filter(({ kind }) => scope === 'all' || kind === target)
  const sum = (...stages: string[]): number =>
    tallies.filter(({ stage }) => stages.includes(stage)).reduce((total, { n }) => total + n, 0)
  return { waiting: sum('ready', 'deps', 'time'), claimed: sum('claimed'), atLeast: false }
}

function jobsText({ waiting, claimed, atLeast }: Affected): string {
  const count = `${atLeast ? 'at least ' : ''}${formatCount(waiting)}`
  const waits = waiting === 0 ? 'no job waits' : waiting === 1 ? '1 job waits' : `${count} jobs wait`
  return claimed === 0 ? `${waits}.` : `${waits}, ${formatCount(claimed)} claimed.`
}
