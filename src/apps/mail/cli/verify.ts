/** `tidemark mail verify`: is all that should be there, there, and is it what it should be? Mends it where asked. */

import { runWork } from '../../../app/cli/sync.ts'
import type { Checking, Verifying, VerifyPart } from '../../../app/cli/verify.ts'
import { type CliContext, exitCodes } from '../../../app/command.ts'
import { TidemarkError, UsageError } from '../../../base/errors.ts'
import { formatBytes, formatCount } from '../../../base/format.ts'
import { counted, plural } from '../../../base/wording.ts'
import { request } from '../../../engine/kinds.ts'
import { streamOf } from '../account.ts'
import { chunksOf } from '../plan.ts'
import { type MailRuntime, mailRuntime } from '../runtime.ts'
import { mailSource } from '../sources.ts'
import { mailStatus } from '../status.ts'
import type { Archive } from '../store/contract.ts'
import { noteVerified } from '../store/tables.ts'
import { type VerifyReport, verificationOf, verifyArchive } from '../verify.ts'

type Flags = { shard?: string[]; offline?: boolean; repair?: boolean }

const BATCH = 300
/** What came back only in part, or changed meanwhile, gets a second chance. */
const REPAIRS_MAX = 2

export const mailVerify: VerifyPart = {
  refuse({ repair, offline }: Flags) {
    if (!repair || !offline) return
    throw new UsageError(
      '--repair fetches from Gmail, and --offline keeps away from it: leave out one of them.',
    )
  },

  // The pace of its calls comes from the engine, which is not started: nothing but the comparison calls Gmail.
  open(context, opened, flags: Flags): Verifying<VerifyReport> {
    const runtime = mailRuntime(opened.runtime)
    const { accounts } = runtime.mail
    const print = (report: VerifyReport): void => printReport(context, report)
    return {
      refuse: async ({ name }) => checkShards((await accounts.get(name)).archive, flags.shard),
      check: ({ name }, checking) => verifyOne(context, runtime, { name, flags, ...checking }),
      print,
      exitCode: (report) => (isWell(report) ? exitCodes.ok : exitCodes.failure),
      async mend(found, again) {
        let reports = found
        for (let round = 1; flags.repair && !reports.every(isMended) && round <= REPAIRS_MAX; round++) {
          if (!context.output.json) for (const report of reports) print(report)
          for (const report of reports) if (!isMended(report)) await repair(context, runtime, report)
          const sources = reports.map(({ account }) => mailSource(account))
          const { stopped } = await runWork(context, opened, sources)
          if (stopped) throw new TidemarkError('The repair was stopped: run it again.', { kind: 'transient' })
          reports = await again()
          if (!context.output.json) context.output.line('After the repair:')
        }
        return reports
      },
    }
  },
}

/** Marks that say of a message that Gmail has it, or has it no longer, and are wrong, are mended, too. */
function isMended(report: VerifyReport): boolean {
  return isWell(report) && !hasWrongMarks(report)
}

function hasWrongMarks({ cloud }: VerifyReport): boolean {
  return cloud !== null && cloud.vanished.length + cloud.returned.length > 0
}

async function verifyOne(
  { output }: CliContext,
  { mail, ledger }: MailRuntime,
  { name, flags, stop, tell }: Checking & { name: string; flags: Flags },
): Promise<VerifyReport> {
  const [status] = await mailStatus(ledger, mail.tables, [name])
  if (!flags.offline && status?.phase === 'backfill') {
    output.note(`${name}: its first sync is not finished, so what is missing may be on its way.`)
  }
  const report = await verifyArchive(await mail.accounts.get(name), {
    ledger,
    withCloud: !flags.offline,
    signal: stop,
    ...(flags.shard ? { shards: flags.shard } : {}),
    onProgress: ({ what, done, total }) =>
      tell({ done, total, what: what === 'bytes' ? 'messages read' : 'slices compared with Gmail' }),
  })
  // For `mail status`.
  if (!flags.shard)
    await ledger.transaction((tx) => noteVerified(tx, name, verificationOf(report, ledger.now())))
  return report
}

export async function checkShards(archive: Archive, wanted: readonly string[] = []): Promise<void> {
  const files = [...(await archive.shards()), ...(await archive.attachmentFiles())]
  const names = files.map(({ name }) => name)
  const unknown = wanted.find((name) => !names.includes(name))
  if (unknown === undefined) return
  throw new UsageError(`The archive of ${archive.account} has no file ${unknown}.db.`, {
    hint: `It has: ${names.sort().join(', ') || 'none'}.`,
  })
}

/**
 * What follows from sound bytes first: that needs nothing else. Then damaged files aside, so that what they held can be
 * written anew, and everything that is not there.
 */
async function repair({ output }: CliContext, opened: MailRuntime, report: VerifyReport): Promise<void> {
  const { engine, mail, ledger } = opened
  const { kinds } = mail
  const { account } = report
  const stream = streamOf(account)
  const { archive, client } = await mail.accounts.get(account)
  const broken = report.shards.filter(({ state }) => state !== 'ok')
  const isBroken = new Set(broken.map(({ name }) => name))
  const wrong = report.damaged.filter(({ shard }) => !isBroken.has(shard))
  const derived = wrong.filter(({ state }) => state === 'differs')
  if (derived.length > 0) {
    const only = Map.groupBy(derived, ({ shard }) => shard)
    for await (const _ of archive.reindex({
      only: new Map([...only].map(([shard, all]) => [shard, all.map(({ id }) => id)])),
    }));
    const texts = counted(derived.length, 'message')
    output.note(`${account}: texts and index of ${texts} were written anew from the bytes`)
  }
  const damaged = wrong.filter(({ state }) => state !== 'differs').map(({ id }) => id)
  if (broken.length + damaged.length + (report.cloud?.missing.length ?? 0) === 0 && !hasWrongMarks(report))
    return
  if ((await ledger.stream(stream)).cursor === null) {
    throw new UsageError(`${account} was never synced: there is nothing to mend it from.`, {
      hint: 'Run: tidemark mail sync',
    })
  }
  // Nothing is taken apart before it is known that it can be put together again.
  await client.profile()
  for (const { name } of broken) {
    const { movedTo } = await archive.setAside(name)
    output.note(
      movedTo ? `${name}.db was set aside as ${movedTo}` : `${name}.db is missing and will be made anew`,
    )
  }
  for (const { file, saved } of await archive.salvage()) {
    if (saved > 0) output.note(`${counted(saved, 'message')} could be taken over from ${file}`)
  }
  await engine.write({
    jobs: [
      ...chunksOf(damaged, BATCH).map((ids) =>
        request(kinds.fetch, { account, ids, refresh: true }, { stream }),
      ),
      ...chunksOf(report.cloud?.missing ?? [], BATCH).map((ids) =>
        request(kinds.fetch, { account, ids }, { stream }),
      ),
      // What a set-aside file held is found by comparing with the mailbox, and so is whose mark is wrong.
      ...(broken.length > 0 || hasWrongMarks(report)
        ? [request(kinds.reconcile, { account }, { stream })]
        : []),
    ],
  })
}

function printReport(context: CliContext, report: VerifyReport): void {
  const { output } = context
  const { damaged, cloud, cloudProblem, shards } = report
  const many = (n: number): string => counted(n, 'message')
  output.line(`${report.account}: ${many(report.messages)} read, ${formatBytes(report.bytes)}`)
  const broken = shards.filter(({ state }) => state !== 'ok')
  for (const { name, state, detail } of broken) output.line(`  ${detail ?? `${name}.db is ${state}.`}`)
  const all = broken.length > 0 ? 'every message that could be read' : 'every message'
  output.line(
    damaged.length === 0
      ? `  ${all} has its hash, and its texts, labels and index are what follows from it`
      : `  ${many(damaged.length)} ${plural(damaged.length, 'is', 'are')} damaged`,
  )
  list(output, damaged, ({ id, shard, detail }) => `${id} in ${shard}.db: ${detail}`)
  if (report.outdated > 0)
    output.line(
      `  ${many(report.outdated)} ${plural(report.outdated, 'has', 'have')} texts and index of an earlier version. Run: tidemark mail reindex`,
    )
  if (cloudProblem) {
    output.line(`  not compared with Gmail: ${cloudProblem.message}`)
    if (cloudProblem.hint) output.note(`  ${cloudProblem.hint}`)
  }
  if (!cloud) return
  const missing = cloud.missing.length
  output.line(
    `  Gmail lists ${many(cloud.listed)} in ${counted(cloud.slices, 'slice')}; ${missing === 0 ? 'all are stored' : `${formatCount(cloud.stored)} are stored, ${formatCount(missing)} ${plural(missing, 'is', 'are')} not`}`,
  )
  list(output, cloud.missing, (id) => `${id} is missing`)
  const more = cloud.vanished.length
  if (more > 0) output.line(`  ${many(more)} ${plural(more, 'is', 'are')} stored that Gmail no longer has`)
}

const SHOWN_MAX = 20

function list<T>(output: CliContext['output'], items: readonly T[], text: (item: T) => string): void {
  for (const item of items.slice(0, SHOWN_MAX)) output.line(`    ${text(item)}`)
  if (items.length > SHOWN_MAX) output.line(`    and ${items.length - SHOWN_MAX} more; --json names them all`)
}

function isWell({ damaged, shards, cloud, cloudProblem }: VerifyReport): boolean {
  if (damaged.length > 0 || shards.some(({ state }) => state !== 'ok')) return false
  return !cloudProblem && !cloud?.missing.length
}
