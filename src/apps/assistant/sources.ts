/** Mailboxes as sources: how one is brought up to date, how far it is, and what a sync shows on its way. */
import { Rates, rateText, waitingLine } from '../../app/cli/progress.ts'
import type { AppPlace } from '../../app/runtime.ts'
import type { ProgressLine, Source, SourceStatus, Sources, Wait } from '../../app/sources.ts'
import { SERVICE, streamOf } from './account.ts'
import { requestSync } from './actions.ts'
import type { OpenAssist } from './runtime.ts'
import { type AssistStatus, assistStatus, balanceText, syncStateOf, undraftedText } from './status.ts'

const RATE_MS = 60_000
/** What a model makes wait for less is waited for. */
const PUT_OFF_MS = 60_000

type Assist = Pick<OpenAssist, 'accounts' | 'tables' | 'kinds'>

export function assistSource(name: string): Source {
  return { name, stream: streamOf(name), account: { service: SERVICE, name } }
}

export function assistSources(place: AppPlace, assist: Assist): Sources {
  const { accounts, tables, kinds } = assist
  const { ledger, config } = place
  const begin = async ({ name }: Source): Promise<void> => {
    await requestSync({ engine: place.engine()!, kinds }, name)
  }
  const read = async (name: string): Promise<AssistStatus | undefined> =>
    (await assistStatus(ledger, tables, [name]))[0]
  return {
    list: async () => accounts.names().map(assistSource),
    begin,
    follow: begin,
    kinds: new Set(
      [
        kinds.sync,
        kinds.classify,
        kinds.draft,
        kinds.cleanup,
        kinds.rework,
        kinds.manualDraft,
        kinds.agent,
      ].map(({ kind }) => kind),
    ),
    // Until a model is back, or another day begins: nobody waits for that in front of a screen.
    isPutOff: ({ kind, wait, note_code: code, run_at: runAt, claimed_at: putOffAt }) => {
      if (wait !== 'time') return false
      if (putOffAt === null) return kind === kinds.draft.kind
      return code === 'waits-for-model' && Number(runAt) - Number(putOffAt) > PUT_OFF_MS
    },
    obstacle: ({ name }) => kinds.obstacles.of(name),
    patienceMs: () => config.assist.patience_minutes * 60_000,
    pollMs: () => config.assist.poll_minutes * 60_000,
    heardAtMs: async ({ name }) => (await read(name))?.lastSyncAtMs,
    status: async ({ name }) => sourceStatus(name, await read(name)),
    syncState: async ({ name }) => {
      const status = await read(name)
      return status
        ? syncStateOf(status)
        : { phase: 'idle', processed: 0, total: 0, failed: 0, lastSyncAtMs: null, title: 'Mail assistant' }
    },
    progress() {
      const rates = new Rates(RATE_MS)
      return { line: async (source, wait) => progressLine(source, await read(source.name), { wait, rates }) }
    },
  }
}

function sourceStatus(name: string, status: AssistStatus | undefined): SourceStatus {
  if (!status)
    return { text: 'not onboarded', isOpen: false, isWrong: false, bad: 0, json: { account: name } }
  const { onTheirWay, held, heldDrafts, lastSyncAtMs } = status
  return {
    text: balanceText(status),
    isOpen: lastSyncAtMs === null || onTheirWay > held,
    isWrong: false,
    ...((held + heldDrafts > 0 || undraftedText(status) !== '') && {
      needsYou: true,
      word: 'waiting for you',
    }),
    bad: 0,
    json: status,
  }
}

function progressLine(
  source: Source,
  status: AssistStatus | undefined,
  { wait, rates }: { wait: Wait | undefined; rates: Rates },
): ProgressLine {
  const done = (status?.classified ?? 0) + (status?.skipped ?? 0)
  const [rate = 0] = rates.perSecond(source.name, done)
  const json = {
    type: 'progress',
    account: source.name,
    ...status,
    messagesPerSecond: rate,
    waiting: wait ?? null,
  }
  const text = status ? balanceText(status) : 'not onboarded'
  if (wait) return waitingLine(source, { wait, text, json })
  return { text: `${source.name}: ${text}, ${rateText(rate)}`, json }
}
