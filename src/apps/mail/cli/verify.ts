/** `tidemark mail verify`: is all that should be there, there, and is it what it should be? Mends it where asked. */

import { runWork } from '../../../app/cli/sync.ts'
import { openedSources } from '../../../app/cli/with-app.ts'
import { type CliContext, exitCodes } from '../../../app/command.ts'
import { TidemarkError, UsageError } from '../../../base/errors.ts'
import { formatBytes, formatCount } from '../../../base/format.ts'
import { plural } from '../../../base/wording.ts'
import { request } from '../../../engine/kinds.ts'
import { streamOf } from '../account.ts'
import { mailApp } from '../app.ts'
import { chunksOf } from '../plan.ts'
import type { MailRuntime } from '../runtime.ts'
import { mailSource } from '../sources.ts'
import { mailStatus } from '../status.ts'
import type { Archive } from '../store/contract.ts'
import { noteVerified } from '../store/tables.ts'
import { type VerifyReport, verificationOf, verifyArchive } from '../verify.ts'
import { chosen, withMail } from './context.ts'

type VerifyFlags = { account?: string; shard?: string[]; offline?: boolean; repair?: boolean }

const BATCH = 300
/** What came back only in part, or changed meanwhile, gets a second chance. */
const REPAIRS_MAX = 2
const TOLD_EVERY = 0.1

export async function verifyMail(context: CliContext, options: VerifyFlags): Promise<void> {
  const { output } = context
  if (options.repair && options.offline) {
    throw new UsageError(
      '--repair fetches from Gmail, and --offline keeps away from it: leave out one of them.',
    )
  }
  await withMail(context, {}, async (opened) => {
    const names = chosen(opened.mail.accounts, options)
    for (const name of names) await checkShards((await opened.mail.accounts.get(name)).archive, options.shard)
    // Its pace and its pauses come from the engine, which is not started: nothing but the comparison calls Gmail.
    let reports = await verifyAll(context, opened, { names, options })
    for (let round = 1; options.repair && !reports.every(isMended) && round <= REPAIRS_MAX; round++) {
      if (!output.json) for (const report of reports) printReport(context, report)
      const broken = reports.filter((report) => !isMended(report))
      for (const report of broken) await repair(context, opened, report)
      const { stopped } = await runWork(context, openedSources(mailApp, opened), names.map(mailSource))
      if (stopped) throw new TidemarkError('The repair was stopped: run it again.', { kind: 'transient' })
      reports = await verifyAll(context, opened, { names, options })
      if (!output.json) output.line('After the repair:')
    }
    if (!options.shard) for (const report of reports) await note(opened, report)
    if (output.json) output.value(reports)
    else for (const report of reports) printReport(context, report)
    context.exitCode = reports.every(isWell) ? exitCodes.ok : exitCodes.failure
  })
}

/** For `mail status`. */
async function note({ ledger }: MailRuntime, report: VerifyReport): Promise<void> {
  await ledger.transaction((tx) => noteVerified(tx, report.account, verificationOf(report, ledger.now())))
}

/** Marks that say of a message that Gmail has it, or has it no longer, and are wrong, are mended, too. */
function isMended(report: VerifyReport): boolean {
  return isWell(report) && !hasWrongMarks(report)
}

function hasWrongMarks({ cloud }: VerifyReport): boolean {
  return cloud !== null && cloud.vanished.length + cloud.returned.length > 0
}

async function verifyAll(
  context: CliContext,
  opened: MailRuntime,
  { names, options }: { names: readonly string[]; options: VerifyFlags },
): Promise<VerifyReport[]> {
  const reports: VerifyReport[] = []
  for (const name of names) reports.push(await verifyOne(context, opened, name, options))
  return reports
}

async function verifyOne(
  context: CliContext,
  { mail, ledger }: MailRuntime,
  name: string,
  options: VerifyFlags,
): Promise<VerifyReport> {
  const account = await mail.accounts.get(name)
  const [status] = await mailStatus(ledger, mail.tables, [name])
  if (!options.offline && status?.phase === 'backfill') {
    context.output.note(`${name}: its first sync is not finished, so what is missing may be on its way.`)
  }
  const stop = new AbortController()
  const onSignal = (): void => stop.abort(new TidemarkError('The check was stopped.', { kind: 'transient' }))
  process.once('SIGINT', onSignal)
  let told = { what: '', share: 0 }
  try {
    return await verifyArchive(account, {
      ledger,
      withCloud: !options.offline,
      signal: stop.signal,
      ...(options.shard ? { shards: options.shard } : {}),
      onProgress: ({ what, done, total }) => {
        const share = total > 0 ? done / total : 1
        if (what === told.what && share < told.share + TOLD_EVERY) return
        told = { what, share }
        const words = what === 'bytes' ? 'messages read' : 'slices compared with Gmail'
        context.output.note(`${name}: ${formatCount(done)} of ${formatCount(total)} ${words}`)
      },
    })
  } finally {
    process.off('SIGINT', onSignal)
  }
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
    const texts = `${formatCount(derived.length)} ${plural(derived.length, 'message')}`
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
    if (saved > 0)
      output.note(`${formatCount(saved)} ${plural(saved, 'message')} could be taken over from ${file}`)
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
  const many = (n: number): string => `${formatCount(n)} ${plural(n, 'message')}`
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
    `  Gmail lists ${many(cloud.listed)} in ${formatCount(cloud.slices)} ${plural(cloud.slices, 'slice')}; ${missing === 0 ? 'all are stored' : `${formatCount(cloud.stored)} are stored, ${formatCount(missing)} ${plural(missing, 'is', 'are')} not`}`,
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
