/** Many deletions at once wait for a yes: the question, with its numbers and examples, and what a yes does. */
import { driveSettings, streamOf } from '../apps/file-sync/drive.ts'
import { heldDeletes } from '../apps/file-sync/store/browse.ts'
import type { DriveRow } from '../apps/file-sync/store/contract.ts'
import { freeHeld } from '../apps/file-sync/store/ends.ts'
import { setDrive } from '../apps/file-sync/store/file-store.ts'
import { formatCount } from '../format.ts'
import { plural, shellWord } from '../wording.ts'
import { type Lines, readLines } from './account-prompt.ts'
import type { CliContext } from './context.ts'
import type { OpenedFiles } from './files-context.ts'

const EXAMPLES_MAX = 5

export type Asking = { isTerminal: boolean; lines: () => Lines }

export function terminalAsking({ output }: CliContext): Asking {
  return {
    isTerminal: process.stdin.isTTY === true && output.isTerminal,
    lines: () => readLines(output),
  }
}

export type Held = { local: number; remote: number }

/** How many wait for a yes now; undefined where none does. */
export async function heldNow(
  { files, ledger }: Pick<OpenedFiles, 'files' | 'ledger'>,
  name: string,
): Promise<Held | undefined> {
  const [some] = await heldDeletes(ledger, name, 1)
  if (!some) return undefined
  const { local, remote } = await files.store.deletesAhead(name)
  return { local, remote }
}

export type Answering = {
  names: readonly string[]
  options: { forceDeletes?: boolean; watch?: boolean }
  stop: AbortSignal
  asking: Asking
  progress: { end(): void }
  settled: () => Promise<void>
}

/** Asks where somebody is there, and goes on with what was said yes to. Returns those that were shown. */
export async function answerHeld(
  context: CliContext,
  opened: OpenedFiles,
  { names, options, stop, asking, settled }: Answering,
): Promise<ReadonlySet<string>> {
  const allowed: string[] = []
  const shown = new Set<string>()
  for (const name of names) {
    const held = await heldNow(opened, name)
    if (!held || stop.aborted) continue
    const isAsked = asking.isTerminal && !context.output.json
    if (!options.forceDeletes && isAsked) {
      shown.add(name)
      await describeHeld(context, opened, { name, held })
    }
    if (!options.forceDeletes && !(isAsked && (await ask(asking, held)))) continue
    await allow(opened, name, held)
    allowed.push(name)
  }
  if (allowed.length > 0) await settled()
  for (const name of allowed) await forgetYes(opened, name)
  return shown
}

/** While a folder is watched nobody is asked: it is told once, or done where that was said beforehand. */
export async function tellHeld(
  context: CliContext,
  opened: OpenedFiles,
  { names, options, told }: Pick<Answering, 'names' | 'options'> & { told: Set<string> },
): Promise<void> {
  for (const name of names) {
    const held = await heldNow(opened, name)
    if (!held) {
      told.delete(name)
      // Another process may have been given a yes that is not carried out yet.
      const { local, remote } = await opened.files.store.deletesAhead(name)
      if (local + remote === 0) await forgetYes(opened, name)
    } else if (options.forceDeletes) await allow(opened, name, held)
    else if (!told.has(name)) {
      told.add(name)
      await describeHeld(context, opened, { name, held })
      for (const hint of await heldHints(opened, name)) context.output.note(`  ${hint}`)
    }
  }
}

/** So many, and not one more. */
export async function allow(
  { files, engine }: Pick<OpenedFiles, 'files' | 'engine'>,
  name: string,
  { local, remote }: Held,
): Promise<void> {
  await files.store.write(async (tx) => {
    await setDrive(tx, name, { forcedDeletes: local + remote, heldDeletes: null })
    await freeHeld(tx, name)
  })
  await engine.enqueue(files.kinds.plan, { drive: name }, { stream: streamOf(name) })
}

/** A yes is for what was asked, and not for what comes later. */
export async function forgetYes({ files }: Pick<OpenedFiles, 'files'>, name: string): Promise<void> {
  const { forcedDeletes } = await files.store.drive(name)
  if (forcedDeletes > 0) await files.store.write((tx) => setDrive(tx, name, { forcedDeletes: 0 }))
}

async function ask(asking: Asking, { local, remote }: Held): Promise<boolean> {
  const lines = asking.lines()
  try {
    const count = local + remote
    const answer = await lines.next(`Delete ${plural(count, 'it', `these ${formatCount(count)}`)}? [y/N] `)
    return /^y(?:es)?$/i.test(answer ?? '')
  } finally {
    lines.close()
  }
}

export async function describeHeld(
  { output }: Pick<CliContext, 'output'>,
  opened: OpenedFiles,
  { name, held }: { name: string; held: Held },
): Promise<void> {
  const { root } = await opened.files.store.drive(name)
  const { local, remote } = held
  output.note(`${name}: so many deletions at once may be a mistake, so nothing was deleted yet.`)
  if (remote > 0) {
    output.note(
      `  ${formatCount(remote)} ${plural(remote, 'thing')} ${plural(remote, 'is', 'are')} gone from ${root}, and would be deleted in OneDrive (into its recycle bin).`,
    )
  }
  if (local > 0) {
    output.note(
      `  ${formatCount(local)} ${plural(local, 'thing')} ${plural(local, 'is', 'are')} gone from OneDrive, and would be deleted in ${root} (into its trash).`,
    )
  }
  const examples = await heldDeletes(opened.ledger, name, EXAMPLES_MAX)
  for (const { path } of examples) output.note(`    ${path}`)
  const more = local + remote - examples.length
  if (more > 0) output.note(`    … and ${formatCount(more)} more`)
}

export async function heldHints({ files }: Pick<OpenedFiles, 'files'>, name: string): Promise<string[]> {
  const row = await files.store.drive(name)
  const yes = `If that is as it should be: tidemark files sync ${shellWord(name)} --force-deletes`
  const anew = beginAnew(row)
  if (anew === undefined) return [yes, 'If not, put them back.']
  return [
    yes,
    'If not, put them back. To have them brought back from the other side instead, begin anew with the folder:',
    `  ${anew}`,
  ]
}

/**
 * Undefined where that would not help, since changes go one way, or where it would bring to the other side what is left
 * out by the settings: they are forgotten with the folder.
 */
function beginAnew({ name, root, account, driveId, settings }: DriveRow): string | undefined {
  const { conflicts, ...others } = driveSettings.parse(JSON.parse(settings))
  const { conflicts: usual, ...plain } = driveSettings.parse({})
  if (JSON.stringify(others) !== JSON.stringify(plain)) return undefined
  const given = { name, account, drive: driveId, ...(conflicts === usual ? {} : { conflicts }) }
  const options = Object.entries(given).map(([flag, value]) => ` --${flag} ${shellWord(value)}`)
  return `tidemark files remove ${shellWord(name)} && tidemark files sync ${shellWord(root)}${options.join('')}`
}
