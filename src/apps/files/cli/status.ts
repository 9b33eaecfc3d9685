/** What `tidemark files status` says of a folder: how far both sides are in step, and what needs somebody. */
import { obstacleJson, pauseOf } from '../../../app/cli/ending.ts'
import type { Standing, StatusReporter } from '../../../app/cli/noun.ts'
import { openedSources } from '../../../app/cli/with-app.ts'
import { asTidemarkError } from '../../../base/errors.ts'
import { formatBytes, formatCount } from '../../../base/format.ts'
import { distance } from '../../../base/moment.ts'
import { counted } from '../../../base/wording.ts'
import { ONEDRIVE_FULL_HINT } from '../act/obstacles.ts'
import { filesApp } from '../app.ts'
import { heldTotal } from '../guard.ts'
import { machineId } from '../index.ts'
import { openRoot } from '../local/root.ts'
import { filesRuntime } from '../runtime.ts'
import { SHARE_GONE } from '../shared-folder.ts'
import { endJson, type FolderEnd, folderEnd, folderObstacle, isBusy, needsYou } from '../sources.ts'
import type { FolderPairRow } from '../store/contract.ts'
import { heldHints } from './held-deletes.ts'

const PAGE = 500
const FAILED_MAX = 100

type Facts = {
  end: FolderEnd
  now: number
  isAll: boolean
  trouble: string | undefined
  failed: number
  hints: readonly string[]
  pauseHint: string | undefined
}

export const reportFolder: StatusReporter = async (runtime, source, { all }) => {
  const opened = filesRuntime(runtime)
  const { files, ledger } = opened
  const { name, stream } = source
  const found = await folderEnd(opened, name)
  const end = all ? { ...found, reported: await allReported(files.store, name) } : found
  const trouble = rootTrouble(await files.store.folderPair(name))
  const failed = (await ledger.jobs({ state: 'failed', stream, limit: FAILED_MAX })).length
  const obstacle = folderObstacle(files, name)
  const pause = await pauseOf(openedSources(filesApp, runtime), source)
  const pauseHint = found.pauseCode === SHARE_GONE ? GONE_HINT : pause?.hint
  const hints = end.heldDeletes ? await heldHints(opened, name) : []
  const facts: Facts = { end, now: ledger.now(), isAll: all === true, trouble, failed, hints, pauseHint }
  return {
    lines: [...statusLines(facts)],
    json: { ...endJson(end), failed, obstacle: obstacleJson(obstacle), trouble: trouble ?? null },
    standing: folderStanding(end, {
      isMissing: trouble !== undefined,
      isWrong: failed > 0 || obstacle !== undefined,
    }),
  }
}

function folderStanding(
  end: FolderEnd,
  { isMissing, isWrong }: { isMissing: boolean; isWrong: boolean },
): Standing {
  if (isMissing) return 'missing'
  if (isWrong || end.paused !== null) return 'wrong'
  if (needsYou(end)) return 'needs'
  if (end.stoppedSinceMs !== null) return 'stopped'
  return isBusy(end) ? 'going' : 'settled'
}

/** What is stored says "in step" also of a folder that is not there any more: so it is looked for. */
function rootTrouble(row: FolderPairRow): string | undefined {
  if (row.machine !== machineId()) return undefined
  try {
    openRoot(row.root, row.markerId)
    return undefined
  } catch (thrown) {
    return asTidemarkError(thrown).message
  }
}

const GONE_HINT =
  'All files here stay as they are. It goes on by itself when the folder is shared again, and the account may see it.'

type Store = {
  reported(pair: string, page: { after?: string; limit: number }): Promise<FolderEnd['reported']>
}

async function allReported(store: Store, name: string): Promise<FolderEnd['reported']> {
  const found: FolderEnd['reported'] = []
  for (let after = ''; ; ) {
    const page = await store.reported(name, { after, limit: PAGE })
    found.push(...page)
    if (page.length < PAGE) return found
    after = page.at(-1)!.node
  }
}

function* statusLines({ end, now, isAll, trouble, failed, hints, pauseHint }: Facts): Generator<string> {
  const { totals, open, heldDeletes: held } = end
  yield `${end.name}: ${trouble === undefined ? end.state : 'not in step'}`
  yield `  folder     ${end.root}`
  if (trouble !== undefined) yield `  MISSING    ${trouble} Until it is back nothing is synced.`
  yield `  OneDrive   ${end.account}${end.sharedBy === null ? '' : `, a folder that ${end.sharedBy} shares`}${end.mode === 'two-way' ? '' : `, ${end.mode}`}`
  yield `  in step    ${counted(totals.files, 'file')}, ${counted(totals.folders, 'folder')}, ${formatBytes(totals.bytes)}`
  const busy = open.unplanned + open.inWork + open.waiting
  if (busy > 0)
    yield `  ${end.stoppedSinceMs === null ? 'on the way' : 'left to do'} ${counted(busy, 'change')}`
  if (end.waits !== null) yield `  waiting    ${end.waits}`
  if (end.isFull) yield `             ${ONEDRIVE_FULL_HINT}`
  if (end.stoppedSinceMs !== null && end.paused === null) {
    const since = end.stoppedSinceMs > 0 ? `, the last one was seen ${distance(end.stoppedSinceMs, now)}` : ''
    yield `  stopped    no process works on it${since}`
    yield '             Go on with: tidemark files sync, tidemark files watch, or tidemark serve'
  }
  const when = (at: number | null): string => (at === null ? 'never' : distance(at, now))
  yield `  looked at  folder ${when(end.scannedAt)}, OneDrive ${when(end.heardAt)}`
  if (end.paused !== null) yield `  paused     ${end.paused}`
  if (end.paused !== null && pauseHint !== undefined) yield `             ${pauseHint}`
  if (held) {
    const { deleted, replaced } = heldTotal(held)
    if (deleted > 0) yield `  deletions  ${formatCount(deleted)} at once wait for your yes`
    if (replaced > 0) yield `  replaced   ${formatCount(replaced)} files at once wait for your yes`
    for (const hint of hints) yield `             ${hint}`
  }
  if (end.conflicts > 0)
    yield `  conflicts  ${formatCount(end.conflicts)} to decide: tidemark files conflicts`
  if (failed > 0) yield `  FAILED     ${counted(failed, 'job')}`
  for (const { because, count } of end.troubles) yield `  left alone ${formatCount(count)}: ${because}`
  if (end.leftOut > 0) yield `  left out   ${formatCount(end.leftOut)}, as you wished`
  if (isAll) for (const { path, because } of end.reported) yield `    ${path}: ${because}`
}
