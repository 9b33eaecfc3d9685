/** What is mail's own about `sync`: where an archive begins, how it is cut, and mail that was there before. */

import type { SyncInput, SyncPart } from '../../../app/cli/sync.ts'
import { chosenSources, type OpenedSources } from '../../../app/cli/with-app.ts'
import type { CliContext } from '../../../app/command.ts'
import type { Source } from '../../../app/sources.ts'
import { systemClock } from '../../../base/clock.ts'
import { TidemarkError, UsageError } from '../../../base/errors.ts'
import { plural } from '../../../base/wording.ts'
import { type MailRuntime, mailRuntime } from '../runtime.ts'
import type { MailOverrides } from '../settings.ts'
import { type MailStatus, mailStatus } from '../status.ts'

type SyncOptions = { slice?: string; since?: string }

export const mailSync: SyncPart = {
  check({ options }) {
    const { slice, since } = options as SyncOptions
    const sinceMs = since === undefined ? undefined : parseSince(since)
    return {
      overrides: slice ? [{ key: 'mail.slice', value: slice, flag: '--slice' }] : [],
      appOverrides: { sinceMs } satisfies MailOverrides,
    }
  },
  steps(context, opened, input) {
    const runtime = mailRuntime(opened.runtime)
    return {
      choose: () => choose(context, opened, input),
      check: ({ name }) => checkArchive(runtime, name),
      begin: (source) => begin(context, runtime, source),
    }
  },
}

function parseSince(text: string): number {
  const ms = /^\d{4}-\d{2}-\d{2}$/.test(text) ? Date.parse(`${text}T00:00:00Z`) : Number.NaN
  // 2021-02-30 would quietly become a day in March.
  const isDay = !Number.isNaN(ms) && new Date(ms).toISOString().startsWith(text)
  if (isDay && ms > 0 && ms < systemClock.now()) return ms
  throw new UsageError(`--since is "${text}", which is not a day between 1970 and today.`, {
    hint: 'Write it as YYYY-MM-DD: --since 2020-01-31',
  })
}

/** Where an archive begins, and how it is cut, is decided once: its completeness is proven from there on. */
async function choose(
  { output }: CliContext,
  opened: OpenedSources,
  { wanted, options }: SyncInput,
): Promise<readonly Source[]> {
  const { since, slice } = options as SyncOptions
  const sources = await chosenSources(opened, wanted)
  if (since === undefined && slice === undefined) return sources
  const { ledger, mail } = mailRuntime(opened.runtime)
  const names = sources.map(({ name }) => name)
  for (const status of await mailStatus(ledger, mail.tables, names)) {
    if (status.plannedAtMs === null) continue
    if (since !== undefined && status.sinceMs !== parseSince(since)) throw begunElsewhere(status)
    if (slice !== undefined && slice !== 'auto' && slice !== status.granularity) {
      const { account, granularity } = status
      output.note(`${account}: --slice changes nothing: its first sync cut it by the ${granularity}.`)
    }
  }
  return sources
}

function begunElsewhere({ account, sinceMs }: MailStatus): UsageError {
  const begins =
    sinceMs === null ? 'with the oldest mail' : `on ${new Date(sinceMs).toISOString().slice(0, 10)}`
  return new UsageError(`The archive of ${account} begins ${begins}; that was decided by its first sync.`, {
    hint: 'Leave out --since to go on with it.',
  })
}

/** Nothing is written beside a file that is missing or damaged. */
async function checkArchive({ mail }: MailRuntime, account: string): Promise<void> {
  const { archive } = await mail.accounts.get(account)
  const files = [...(await archive.shards()), ...(await archive.attachmentFiles())]
  const [first, ...others] = files.filter(({ state }) => state !== 'ok')
  if (!first) return
  const more =
    others.length > 0 ? ` So ${plural(others.length, 'is', 'are')} ${others.length} of its other files.` : ''
  const detail = first.detail ?? `The archive of ${account} has a file that cannot be read.`
  throw new TidemarkError(`${detail}${more}`, {
    kind: 'permanent',
    code: 'archive-damaged',
    hint: 'Put it back from a backup, if there is one; or run tidemark mail verify --repair, which fetches again what was in it. Until then nothing is written to this archive.',
  })
}

async function begin({ output }: CliContext, runtime: MailRuntime, source: Source): Promise<void> {
  const { engine, mail } = runtime
  const { name, stream } = source
  const isTakenOver = await hasMailBefore(runtime, name)
  const plan = await engine.enqueue(mail.kinds.plan, { account: name }, { stream })
  if (isTakenOver) {
    output.note(`${name}: there is mail in the archive already, so the mailbox is compared with it.`)
    await engine.enqueue(mail.kinds.reconcile, { account: name }, { stream, after: [plan.id] })
  } else if (await hasOtherChoices(runtime, name)) {
    output.note(`${name}: what is wanted has changed, so the mailbox is compared with the archive.`)
    await engine.enqueue(mail.kinds.reconcile, { account: name }, { stream })
  }
}

/** Before its first sync: taken over from a ledger that was lost, or imported. Some of it may be gone from Gmail. */
async function hasMailBefore({ mail }: MailRuntime, name: string): Promise<boolean> {
  if ((await mail.tables.findMailbox(name))?.planned_at != null) return false
  const { archive } = await mail.accounts.get(name)
  return (await archive.shards()).length > 0
}

/** Spam, trash and labels may be chosen anew when an account is connected again. */
async function hasOtherChoices({ mail }: MailRuntime, name: string): Promise<boolean> {
  const mailbox = await mail.tables.findMailbox(name)
  const { choices } = await mail.accounts.get(name)
  return mailbox?.choices != null && mailbox.choices !== JSON.stringify(choices)
}
