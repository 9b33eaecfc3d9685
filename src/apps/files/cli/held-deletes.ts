/** Many deletions or replacements at once wait for a yes: the question, with its numbers and examples, and what a yes does. */

import type { SyncProgress } from '../../../app/cli/progress.ts'
import type { CliContext } from '../../../app/command.ts'
import { formatCount } from '../../../base/format.ts'
import { counted, plural, shellWord } from '../../../base/wording.ts'
import { didYouMean } from '../../../cli/output/input.ts'
import { type Lines, readLines, saysYes } from '../../../cli/output/prompt.ts'
import { topId } from '../drives.ts'
import { folderPairSettings, streamOf } from '../folder-pair.ts'
import { type Held, heldTotal } from '../guard.ts'
import { type FolderEnd, folderEnd } from '../sources.ts'
import { heldDeletes } from '../store/browse.ts'
import type { FolderPairRow } from '../store/contract.ts'
import { setFolderPair } from '../store/file-store.ts'
import { sayYes } from '../store/guard.ts'
import type { OpenedFiles } from './context.ts'

const EXAMPLES_MAX = 5

export type Asking = { isTerminal: boolean; lines: () => Lines }

export function terminalAsking({ output }: CliContext): Asking {
  return {
    isTerminal: process.stdin.isTTY === true && output.isTerminal,
    lines: () => readLines(output),
  }
}

/** "12 deletions", "40 replaced files". */
export function heldText(held: Held): string {
  const { deleted, replaced } = heldTotal(held)
  return [
    ...(deleted > 0 ? [counted(deleted, 'deletion')] : []),
    ...(replaced > 0 ? [`${formatCount(replaced)} replaced ${plural(replaced, 'file')}`] : []),
  ].join(' and ')
}

export type Answering = {
  names: readonly string[]
  options: { forceDeletes?: boolean; watch?: boolean }
  stop: AbortSignal
  asking: Asking
  progress: Pick<SyncProgress, 'aside'>
  settle: () => Promise<void>
}

/** Asks where somebody is there, and goes on with what was said yes to. Returns those that were shown. */
export async function answerHeld(
  context: CliContext,
  opened: OpenedFiles,
  { names, options, stop, asking, progress, settle }: Answering,
): Promise<ReadonlySet<string>> {
  const allowed: string[] = []
  const shown = new Set<string>()
  for (const name of names) {
    const held = await opened.files.store.heldAhead(name)
    if (!held || stop.aborted) continue
    const isAsked = asking.isTerminal && !context.output.json
    if (!options.forceDeletes && isAsked) {
      shown.add(name)
      await progress.aside(() => describeHeld(context, opened, { name, held }))
    }
    if (!options.forceDeletes && !(isAsked && (await ask(asking, held)))) continue
    await allow(opened, name, held)
    allowed.push(name)
  }
  if (allowed.length > 0) await settle()
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
    const held = await opened.files.store.heldAhead(name)
    if (!held) {
      told.delete(name)
      // Another process may have been given a yes that is not carried out yet.
      if (await opened.files.store.isNothingAhead(name)) await forgetYes(opened, name)
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
  held: Held,
): Promise<void> {
  await files.store.write((tx) => sayYes(tx, name, held))
  await engine.enqueue(files.kinds.plan, { drive: name }, { stream: streamOf(name) })
}

/** A yes is for what was asked, and not for what comes later. */
export async function forgetYes({ files }: Pick<OpenedFiles, 'files'>, name: string): Promise<void> {
  const { forcedDeletes, forcedOverwrites } = await files.store.folderPair(name)
  if (forcedDeletes + forcedOverwrites === 0) return
  await files.store.write((tx) => setFolderPair(tx, name, { forcedDeletes: 0, forcedOverwrites: 0 }))
}

function ask(asking: Asking, held: Held): Promise<boolean> {
  const { all, deleted, replaced } = heldTotal(held)
  const verb = replaced === 0 ? 'Delete' : deleted === 0 ? 'Replace' : 'Delete and replace'
  return saysYes(asking.lines(), `${verb} ${plural(all, 'it', `these ${formatCount(all)}`)}?`)
}

export async function describeHeld(
  { output }: Pick<CliContext, 'output'>,
  opened: OpenedFiles,
  { name, held }: { name: string; held: Held },
): Promise<void> {
  const { root } = await opened.files.store.folderPair(name)
  const { all, deleted, replaced } = heldTotal(held)
  const { local = 0, remote = 0 } = held.replaced ?? {}
  const [here, there] = [held.local - local, held.remote - remote]
  if (deleted > 0) output.note(`${name}: these deletions may be a mistake, so nothing was deleted yet.`)
  if (there > 0) {
    output.note(
      `  ${counted(there, 'thing')} ${plural(there, 'is', 'are')} gone from ${root}, and would be deleted in OneDrive (into its recycle bin).`,
    )
  }
  if (here > 0) {
    output.note(
      `  ${counted(here, 'thing')} ${plural(here, 'is', 'are')} gone from OneDrive, and would be deleted in ${root} (into its trash).`,
    )
  }
  if (replaced > 0) {
    output.note(
      `${name}: so many files with another content, or older ones, may be a mistake, so none of them was replaced yet.`,
    )
  }
  if (remote > 0) {
    output.note(
      `  ${counted(remote, 'file')} of ${root} would replace what OneDrive has (which stays in its history).`,
    )
  }
  if (local > 0) {
    output.note(`  ${counted(local, 'file')} of OneDrive would replace what is in ${root} (into its trash).`)
  }
  const examples = await heldDeletes(opened.ledger, name, EXAMPLES_MAX)
  for (const { path } of examples) output.note(`    ${path}`)
  const more = all - examples.length
  if (more > 0) output.note(`    … and ${formatCount(more)} more`)
}

export async function heldHints({ files }: Pick<OpenedFiles, 'files'>, name: string): Promise<string[]> {
  const row = await files.store.folderPair(name)
  const { replaced } = heldTotal(await files.store.heldAhead(name))
  const yes = `If that is as it should be: tidemark files sync ${shellWord(name)} --force-deletes`
  const anew = beginAnew(row)
  const no = replaced > 0 ? 'If not, put back what was there before.' : 'If not, put them back.'
  if (anew === undefined) return [yes, no]
  const instead =
    replaced > 0
      ? 'To have both versions, and what is missing from the other side,'
      : 'To have them brought back from the other side instead,'
  return [yes, `${no} ${instead} begin anew with the folder:`, `  ${anew}`]
}

/**
 * Undefined where that would not help, since changes go one way, or where it would bring to the other side what is left
 * out by the settings: they are forgotten with the folder.
 */
function beginAnew(row: FolderPairRow): string | undefined {
  const { name, root, account, settings } = row
  const { conflicts, ...others } = folderPairSettings.parse(JSON.parse(settings))
  const { conflicts: usual, ...plain } = folderPairSettings.parse({})
  if (JSON.stringify(others) !== JSON.stringify(plain)) return undefined
  const given = { name, account, drive: topId(row), ...(conflicts === usual ? {} : { conflicts }) }
  const options = Object.entries(given).map(([flag, value]) => ` --${flag} ${shellWord(value)}`)
  return `tidemark files remove ${shellWord(name)} && tidemark files sync ${shellWord(root)}${options.join('')}`
}

const REASONS_SHOWN_MAX = 5

/** At the end of a sync: what waits for somebody, and what to do about it. */
export async function explainFolder(
  context: CliContext,
  opened: OpenedFiles,
  { name, isShown }: { name: string; isShown: boolean },
): Promise<void> {
  const { output } = context
  const end = await folderEnd(opened, name)
  if (end.heldDeletes) {
    if (isShown) output.note(`${name}: nothing of that was done.`)
    else await describeHeld(context, opened, { name, held: end.heldDeletes })
    for (const hint of await heldHints(opened, name)) output.note(`  ${hint}`)
  }
  explainTroubles(context, end)
}

export function explainTroubles({ output }: Pick<CliContext, 'output'>, end: FolderEnd): void {
  const { name, conflicts, troubles, leftOut } = end
  if (conflicts > 0) {
    output.note(`${name}: ${counted(conflicts, 'conflict')} to decide. See: tidemark files conflicts`)
  }
  for (const { because, count } of troubles.slice(0, REASONS_SHOWN_MAX)) {
    output.note(`${name}: ${formatCount(count)} left alone: ${because}`)
  }
  if (troubles.length > 0) {
    output.note(`  Which ones: tidemark files status ${shellWord(name)} --all`)
  }
  for (const { path, near } of end.unknownPaths) {
    const guess = didYouMean(path.slice(path.lastIndexOf('/') + 1), near)
    output.note(`${name}: only ${path} was to take part, and neither side has it${guess}`)
  }
  if (leftOut > 0) output.note(`${name}: ${formatCount(leftOut)} left out, as you wished.`)
}
