/**
 * Checks an archive: every raw byte against its hash, what follows from it against what is stored, every shard for
 * itself, and, slice by slice, the ids that the cloud lists against those stored. What it finds can be mended: what
 * follows from sound bytes is written anew, shards that are damaged are set aside (never deleted), and what is missing
 * or damaged is fetched again.
 */
import { segmentsOf } from '../../app/sources.ts'
import { asTidemarkError } from '../../base/errors.ts'
import type { SegmentRow } from '../../ledger/contract.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import type { MailAccount } from './account.ts'
import { compareStretch, type Stretch } from './compare.ts'
import type { Verification } from './message.ts'

export type Damage = { id: string; shard: string; state: string; detail: string }

export type VerifyReport = {
  account: string
  messages: number
  bytes: number
  shards: { name: string; state: string; messages: number; detail?: string | undefined }[]
  /** `differs`: its bytes are sound, and what follows from them can be written anew. */
  damaged: Damage[]
  /** Messages with texts or an index of an earlier version. */
  outdated: number
  /** Of the comparison with the cloud; null where it was left out. */
  cloud: {
    slices: number
    listed: number
    stored: number
    missing: string[]
    vanished: string[]
    returned: string[]
  } | null
  /** Why it was left out, where that was not asked for. */
  cloudProblem: { message: string; hint?: string | undefined; code?: string | undefined } | null
}

export type VerifyOptions = {
  ledger: Ledger
  shards?: readonly string[]
  withCloud: boolean
  signal: AbortSignal
  onProgress: (progress: { what: 'bytes' | 'cloud'; done: number; total: number }) => void
}

/** More are counted by their shards. */
const DAMAGED_MAX = 100_000

export async function verifyArchive(account: MailAccount, options: VerifyOptions): Promise<VerifyReport> {
  const report: VerifyReport = {
    account: account.name,
    messages: 0,
    bytes: 0,
    shards: [],
    damaged: [],
    outdated: 0,
    cloud: null,
    cloudProblem: null,
  }
  await verifyBytes(account, report, options)
  if (!options.withCloud) return report
  if (report.shards.some(({ state }) => state !== 'ok')) {
    const message = 'with a file that cannot be read, nobody can say what is stored'
    return { ...report, cloudProblem: { message, code: 'archive-damaged' } }
  }
  if ((await options.ledger.stream(account.stream)).cursor === null) {
    const hint = 'Run: tidemark mail sync'
    return { ...report, cloudProblem: { message: 'it was never synced', hint, code: 'never-synced' } }
  }
  try {
    report.cloud = await verifyCloud(account, options)
  } catch (thrown) {
    // What was read so far, perhaps for hours, is told all the same.
    const { kind, message, hint, code } = asTidemarkError(thrown)
    if (options.signal.aborted || kind === 'bug') throw thrown
    report.cloudProblem = { message, hint, code }
  }
  return report
}

async function verifyBytes(
  account: MailAccount,
  report: VerifyReport,
  options: VerifyOptions,
): Promise<void> {
  const { archive } = account
  const total = (await archive.shards()).reduce((sum, { messages }) => sum + messages, 0)
  let inShard = { shard: '', messages: 0, bytes: 0 }
  const close = (): void => {
    report.messages += inShard.messages
    report.bytes += inShard.bytes
  }
  const damaged = new Map<string, Damage>()
  const outdated = new Set<string>()
  for await (const event of archive.verify({ shards: options.shards, signal: options.signal })) {
    switch (event.type) {
      case 'progress':
        if (event.shard !== inShard.shard) close()
        inShard = event
        options.onProgress({ what: 'bytes', done: report.messages + inShard.messages, total })
        break
      case 'message':
        if (event.state === 'outdated') outdated.add(event.id)
        else if (damaged.size < DAMAGED_MAX) damaged.set(event.id, worse(damaged.get(event.id), event))
        break
      case 'shard': {
        const { shard: name, state, messages, detail } = event
        report.shards.push({ name, state, messages, detail })
        break
      }
    }
  }
  close()
  report.damaged = [...damaged.values()]
  report.outdated = outdated.size
}

/** Of one message: damaged bytes before what follows from them. */
function worse(known: Damage | undefined, { id, shard, state, detail }: Damage): Damage {
  if (!known) return { id, shard, state, detail }
  const worst = known.state === 'differs' ? state : known.state
  return { id, shard, state: worst, detail: `${known.detail}; ${detail}` }
}

export function verificationOf(report: VerifyReport, atMs: number): Verification {
  return {
    atMs,
    messages: report.messages,
    damaged: report.damaged.length,
    brokenFiles: report.shards.filter(({ state }) => state !== 'ok').length,
    missing: report.cloud ? report.cloud.missing.length : null,
  }
}

async function verifyCloud(
  account: MailAccount,
  options: VerifyOptions,
): Promise<NonNullable<VerifyReport['cloud']>> {
  const { id: streamId } = await options.ledger.stream(account.stream)
  const segments = await segmentsOf(options.ledger, streamId)
  // Without those that follow the history or were left out.
  const stretches = stretchesOf(segments.filter(({ label }) => label === null))
  const cloud: NonNullable<VerifyReport['cloud']> = {
    slices: stretches.length,
    listed: 0,
    stored: 0,
    missing: [],
    vanished: [],
    returned: [],
  }
  const missing = new Set<string>()
  for (const [index, stretch] of stretches.entries()) {
    options.signal.throwIfAborted()
    const found = await compareStretch(account, stretch, { signal: options.signal })
    cloud.listed += found.listed
    cloud.stored += found.stored
    // Slices overlap by a second.
    for (const id of found.missing) missing.add(id)
    cloud.vanished.push(...found.vanished)
    cloud.returned.push(...found.returned)
    options.onProgress({ what: 'cloud', done: index + 1, total: stretches.length })
  }
  cloud.missing = [...missing]
  return cloud
}

/** The first begins with the oldest mail, unless older mail was left out; the last goes on into the future. */
function stretchesOf(slices: readonly SegmentRow[]): Stretch[] {
  return slices.map(({ from_at: from, to_at: to }, index) => ({
    fromS: index === 0 && from === 0 ? null : from,
    toS: index === slices.length - 1 ? null : to,
  }))
}
