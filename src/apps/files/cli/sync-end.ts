/** How a sync ended: in a line for each folder, what needs somebody and what to do about it, and the exit code. */

import { type CliContext, type ExitCode, exitCodes } from '../../../app/command.ts'
import { formatBytes, formatCount } from '../../../base/format.ts'
import { plural, shellWord } from '../../../base/wording.ts'
import { didYouMean } from '../../../cli/output/input.ts'
import { errorCode } from '../../../engine/observe/job-texts.ts'
import type { JobRow } from '../../../ledger/contract.ts'
import { SIGN_IN } from '../../../ledger/control.ts'
import { BROKEN_CODE } from '../../../ledger/dependencies.ts'
import type { FileObstacle } from '../act/obstacles.ts'
import { folderPairSettings, streamOf } from '../folder-pair.ts'
import { TOLD_ELSEWHERE_CODES, WISHED_CODES } from '../left-code.ts'
import { type FileStatus, fileStatus } from '../status.ts'
import { type LeftAlone, leftAlone } from '../store/folder-rows.ts'
import { type UnknownPath, unknownPaths } from '../store/wanted-paths.ts'
import type { OpenedFiles } from './context.ts'
import { describeHeld, heldHints, heldNow } from './held-deletes.ts'
import type { Done } from './sync-progress.ts'

const FAILED_SHOWN_MAX = 5
const REASONS_MAX = 100
const REASONS_SHOWN_MAX = 5

export type FolderEnd = FileStatus & {
  failed: JobRow[]
  obstacle: FileObstacle | undefined
  /** Why things are left alone that nobody wished to be, but for conflicts and deletions that wait. */
  troubles: LeftAlone[]
  /** How many are left out because somebody wished it. */
  leftOut: number
  /** Of what only was to take part: where nothing is. */
  unknownPaths: UnknownPath[]
  pauseHint: string | null
}

export type Concluding = {
  names: readonly string[]
  stopped: boolean
  done: ReadonlyMap<string, Done>
  /** Whose deletions that wait were just listed. */
  shown: ReadonlySet<string>
}

export async function conclude(
  context: CliContext,
  opened: OpenedFiles,
  { names, stopped, done, shown }: Concluding,
): Promise<void> {
  const { output } = context
  const ends: FolderEnd[] = []
  for (const name of names) ends.push(await endOf(opened, name))
  if (output.json) {
    const folders = ends.map((end) => ({ ...toJson(end), done: done.get(end.name) }))
    output.event({ type: 'summary', stopped, folders })
  } else for (const end of ends) output.line(summaryLine(end, done.get(end.name), stopped))
  for (const end of ends) await explain(context, opened, { end, isShown: shown.has(end.name) })
  context.exitCode = exitCodeOf(ends, stopped)
}

export async function endOf(opened: OpenedFiles, name: string): Promise<FolderEnd> {
  const { files, ledger } = opened
  const status = await fileStatus({ store: files.store, ledger }, name)
  const heldDeletes = (await heldNow(opened, name)) ?? null
  const reasons = await ledger.driver.read((tx) => leftAlone(tx, name, REASONS_MAX))
  const isWished = ({ code }: LeftAlone): boolean => WISHED_CODES.has(code)
  const isTrouble = (one: LeftAlone): boolean => !isWished(one) && !TOLD_ELSEWHERE_CODES.has(one.code)
  return {
    ...status,
    heldDeletes,
    state: heldDeletes !== null && status.paused === null ? 'needs you' : status.state,
    failed: await ledger.jobs({ state: 'failed', stream: streamOf(name), limit: 100 }),
    obstacle: files.kinds.obstacles.of(name) ?? files.kinds.obstacles.ofUploads(name),
    troubles: reasons.filter(isTrouble),
    leftOut: reasons.filter(isWished).reduce((sum, { count }) => sum + count, 0),
    unknownPaths: await unknownPathsOf(opened, name),
    pauseHint: pauseHintOf(status),
  }
}

/** A slip in --only leaves out everything, and would look like a folder in step. */
async function unknownPathsOf({ files, ledger }: OpenedFiles, name: string): Promise<UnknownPath[]> {
  const row = await files.store.folderPair(name)
  const { sync_paths: paths } = folderPairSettings.parse(JSON.parse(row.settings)).filter
  const isKnown = row.scannedAt !== null && row.heardAt !== null
  return isKnown ? ledger.driver.read((tx) => unknownPaths(tx, row, paths)) : []
}

function pauseHintOf({ pauseCode, name, account }: FileStatus): string | null {
  if (pauseCode === null) return null
  if (pauseCode === SIGN_IN) {
    return `Connect it again with: tidemark account add onedrive --user ${shellWord(account)}. The next tidemark files sync then goes on where this one was.`
  }
  return `Go on with: tidemark files resume ${shellWord(name)}`
}

export function exitCodeOf(ends: readonly FolderEnd[], stopped: boolean): ExitCode {
  const isWrong = ({ failed, obstacle, paused }: FolderEnd): boolean =>
    failed.length > 0 || obstacle !== undefined || paused !== null
  if (stopped ? ends.some(isBusy) : ends.some(isWrong)) return exitCodes.failure
  const needsYou = ({
    troubles,
    unknownPaths: unknown,
    conflicts,
    heldDeletes,
    isFull,
  }: FolderEnd): boolean =>
    troubles.length + unknown.length > 0 || conflicts > 0 || heldDeletes !== null || isFull
  if (!stopped && ends.some(needsYou)) return exitCodes.bad
  // Something waits that nobody is going to wake: it is not in step, whatever the reason.
  return ends.some(isBusy) ? exitCodes.failure : exitCodes.ok
}

function summaryLine(end: FolderEnd, done: Done | undefined, stopped: boolean): string {
  const { files, bytes } = end.totals
  const parts = [
    `${formatCount(files)} ${plural(files, 'file')}, ${formatBytes(bytes)} in step`,
    ...(done ? doneTexts(done) : []),
  ]
  return `${end.name}: ${wordFor(end, stopped)}; ${parts.join('; ')}`
}

function doneTexts({ downloaded, uploaded, changed }: Done): string[] {
  const parts = [
    ...(downloaded > 0 ? [`${formatCount(downloaded)} downloaded`] : []),
    ...(uploaded > 0 ? [`${formatCount(uploaded)} uploaded`] : []),
    ...(changed > 0 ? [`${formatCount(changed)} other ${plural(changed, 'change')}`] : []),
  ]
  return parts.length > 0 ? [parts.join(', ')] : []
}

function isBusy({ open, state }: FolderEnd): boolean {
  return open.unplanned + open.inWork + open.waiting > 0 || state === 'not begun'
}

function wordFor(end: FolderEnd, stopped: boolean): string {
  const { paused, failed, obstacle, heldDeletes, conflicts, troubles } = end
  if (paused !== null) return 'paused'
  if (stopped && isBusy(end)) return 'stopped'
  if (failed.length > 0 || obstacle || isBusy(end)) return 'not finished'
  if (heldDeletes || conflicts > 0) return 'waiting for you'
  return troubles.length > 0 ? 'done, but not for all' : 'done'
}

async function explain(
  context: CliContext,
  opened: OpenedFiles,
  { end, isShown }: { end: FolderEnd; isShown: boolean },
): Promise<void> {
  const { output } = context
  const { name, paused, obstacle, failed } = end
  if (paused !== null) {
    output.note(`${name} is paused: ${paused}`)
    if (end.pauseHint) output.note(`  ${end.pauseHint}`)
  } else if (obstacle) {
    const what = obstacle.where === 'quota' ? `The uploads of ${name} cannot` : `${name} cannot`
    output.note(`${what} go on: ${obstacle.error.message}`)
    const hint = obstacle.error.hint ? `${obstacle.error.hint} ` : ''
    output.note(`  ${hint}Nothing is lost: the next tidemark files sync goes on where this one was.`)
  }
  // What only waited for another that failed is explained by that one.
  const first = failed.filter(({ error }) => errorCode(error) !== BROKEN_CODE)
  for (const { id, kind, error } of first.slice(0, FAILED_SHOWN_MAX)) {
    output.note(`${name}: job #${id} (${kind}) failed: ${errorText(error)}`)
    output.note(`  The next sync tries it again. More about it: tidemark jobs show ${id}`)
  }
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
    output.note(
      `${name}: ${formatCount(conflicts)} ${plural(conflicts, 'conflict')} to decide. See: tidemark files conflicts`,
    )
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

/** The ledger keeps errors as JSON. */
function errorText(error: string | null): string {
  try {
    return (JSON.parse(error ?? '') as { message?: string }).message ?? 'no reason was noted'
  } catch {
    return error || 'no reason was noted'
  }
}

export function toJson({ failed, obstacle, pauseHint: _, unknownPaths: unknown, ...status }: FolderEnd) {
  return {
    ...status,
    failed: failed.length,
    unknownPaths: unknown.map(({ path }) => path),
    obstacle: obstacle
      ? { where: obstacle.where, message: obstacle.error.message, code: obstacle.error.code ?? null }
      : null,
  }
}
