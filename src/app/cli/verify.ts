/**
 * `verify`: is all that should be there, there, and is it what it should be? An app says how one of its sources is
 * checked (`VerifyPart`); the choice, progress, Ctrl-C, JSON and the exit code are the same for all.
 */
import { TidemarkError } from '../../base/errors.ts'
import { formatCount } from '../../base/format.ts'
import { type CliContext, type ExitCode, exitCodes } from '../command.ts'
import type { Source } from '../sources.ts'
import { type SyncInput, stoppable } from './sync.ts'
import { chosenSources, type OpenedSources, type SourcesApp, withSources } from './with-app.ts'

type Options = Readonly<Record<string, unknown>>

export type VerifyPart = {
  /** Refuses what was said wrongly before anything is opened. */
  refuse?(options: Options): void
  open(context: CliContext, opened: OpenedSources, options: Options): Verifying
}

export type Verifying<Report extends object = object> = {
  /** Refuses a source that cannot be checked as was asked, before the first is read. */
  refuse?(source: Source): Promise<void>
  check(source: Source, checking: Checking): Promise<Report>
  /** Mends what was found; what is found then, by checking `again`, counts. */
  mend?(reports: readonly Report[], again: () => Promise<readonly Report[]>): Promise<readonly Report[]>
  print(report: Report): void
  exitCode(report: Report): ExitCode
  close?(): Promise<void>
}

export type Checking = { stop: AbortSignal; tell: (progress: CheckProgress) => void }
export type CheckProgress = { done: number; total?: number; what: string }

export async function verifySources(
  context: CliContext,
  app: SourcesApp,
  { wanted, options }: SyncInput,
  part: VerifyPart,
): Promise<void> {
  const { output } = context
  part.refuse?.(options)
  await withSources(context, app, {}, async (opened) => {
    const sources = await chosenSources(opened, wanted)
    const verifying = part.open(context, opened, options)
    try {
      for (const source of sources) await verifying.refuse?.(source)
      const check = (): Promise<readonly object[]> => checkAll(context, verifying, sources)
      const found = await check()
      const reports = (await verifying.mend?.(found, check)) ?? found
      if (output.json) output.value(reports)
      else for (const report of reports) verifying.print(report)
      const codes = reports.map((report) => verifying.exitCode(report))
      context.exitCode = codes.find((code) => code !== exitCodes.ok) ?? exitCodes.ok
    } finally {
      await verifying.close?.()
    }
  })
}

async function checkAll(
  context: CliContext,
  verifying: Verifying,
  sources: readonly Source[],
): Promise<object[]> {
  const note = context.output.pacedNotes()
  const check = async (stop: AbortSignal): Promise<object[]> => {
    const reports: object[] = []
    for (const source of sources) {
      const tell = ({ done, total, what }: CheckProgress): void => {
        const all = total === undefined ? '' : ` of ${formatCount(total)}`
        note(`${source.name}: ${formatCount(done)}${all} ${what}`)
      }
      reports.push(await verifying.check(source, { stop, tell }))
    }
    return reports
  }
  return stoppable(context, (stop) =>
    check(stop).catch((thrown: unknown) => {
      if (!stop.aborted) throw thrown
      throw new TidemarkError('The check was stopped.', { kind: 'transient', cause: thrown })
    }),
  )
}
