/** What `tidemark assist status` says of a mailbox. */
import { pauseOf } from '../../../app/cli/ending.ts'
import type { Standing, StatusReporter } from '../../../app/cli/noun.ts'
import { openedSources } from '../../../app/cli/with-app.ts'
import { formatCount } from '../../../base/format.ts'
import { distance } from '../../../base/moment.ts'
import { readAttendance } from '../../../engine/observe/engines.ts'
import { assistApp } from '../app.ts'
import { backlogOf, backlogText } from '../backlog.ts'
import { assistRuntime } from '../runtime.ts'
import { type AssistStatus, assistStatus, balanceText, undraftedText } from '../status.ts'

export const reportAssist: StatusReporter = async (runtime, source) => {
  const { ledger, assist } = assistRuntime(runtime)
  const status = (await assistStatus(ledger, assist.tables, [source.name]))[0]
  if (!status) {
    return { lines: [`${source.name}: the assistant is not switched on`], json: source, standing: 'missing' }
  }
  const pause = await pauseOf(openedSources(assistApp, runtime), source)
  const { isAttended } = await readAttendance(ledger)
  const lines = [
    `${source.name}: ${titleOf(status)}`,
    ...(pause ? [`  paused    ${pause.reason}`] : []),
    `  mail      ${balanceText(status)}`,
    ...(status.held + status.heldDrafts === 0 ? [] : await backlogLines(assist, source.name)),
    ...countLines(status),
    ...timeLines(status, ledger.now()),
    ...problemLines(status),
    ...(status.watchProblem === null ? [] : [`  push      ${status.watchProblem}`]),
    ...(status.failedJobs === 0
      ? []
      : [`  failed    ${formatCount(status.failedJobs)} jobs. See: tidemark jobs list`]),
  ]
  const standing = standingOf(status, { isAttended, isPaused: pause !== undefined })
  return { lines, json: { ...status, pauseReason: pause?.reason ?? null }, standing }
}

function problemLines(status: AssistStatus): string[] {
  const undrafted = undraftedText(status)
  if (undrafted === '') return status.problem === null ? [] : [`  problem   ${status.problem.text}`]
  const isTold = status.problem?.code === 'model-unusable'
  const next = isTold ? 'Tried at once by:' : 'Tried again each hour, and by:'
  return [`  to come   ${undrafted}`, `            ${next} tidemark assist sync`]
}

function titleOf({ onTheirWay, held, heldDrafts }: AssistStatus): string {
  if (onTheirWay > held) return 'mail is being sorted'
  if (held > 0) return 'mail waits for you to agree to what it costs'
  return heldDrafts > 0 ? 'drafts wait for you to agree to what they cost' : 'all mail is sorted'
}

async function backlogLines(
  assist: Parameters<typeof backlogOf>[0],
  account: string,
): Promise<readonly string[]> {
  const text = backlogText(await backlogOf(assist, account))
  return [`  backlog   ${text} To agree: tidemark assist run --yes`]
}

function standingOf(
  status: AssistStatus,
  { isAttended, isPaused }: { isAttended: boolean; isPaused: boolean },
): Standing {
  const { onTheirWay, held, heldDrafts, lastSyncAtMs, failedJobs } = status
  if (isPaused || failedJobs > 0) return 'wrong'
  if (lastSyncAtMs === null || onTheirWay > held) return isAttended ? 'going' : 'stopped'
  return held + heldDrafts > 0 || undraftedText(status) !== '' ? 'needs' : 'settled'
}

function countLines({ counts, draftsWaiting }: AssistStatus): string[] {
  const byCategory = new Map<string, number>()
  for (const { category, count } of counts) byCategory.set(category, (byCategory.get(category) ?? 0) + count)
  if (byCategory.size === 0) return []
  const parts = [...byCategory].map(([category, count]) => `${formatCount(count)} ${category}`)
  const waiting = `${formatCount(draftsWaiting)} wait for you. See: tidemark assist list --drafts`
  return [`  threads   ${parts.join(', ')}`, ...(draftsWaiting > 0 ? [`  drafts    ${waiting}`] : [])]
}

function* timeLines(status: AssistStatus, nowMs: number): Generator<string> {
  const { lastMailAtMs, lastSyncAtMs, lastPushAtMs } = status
  if (lastMailAtMs !== null) yield `  newest    mail of ${distance(lastMailAtMs, nowMs)}`
  if (lastSyncAtMs !== null) yield `  looked    ${distance(lastSyncAtMs, nowMs)}`
  yield lastPushAtMs === null
    ? '  push      none came: the mailbox is looked at every few minutes'
    : `  push      the last came ${distance(lastPushAtMs, nowMs)}`
}
