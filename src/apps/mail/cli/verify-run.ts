/** Runs the check of archives, and mends them where asked. */

import type { CliContext } from '../../../app/command.ts'
import { TidemarkError, UsageError } from '../../../base/errors.ts'
import { formatCount } from '../../../base/format.ts'
import { plural } from '../../../base/wording.ts'
import { request } from '../../../engine/kinds.ts'
import { streamOf } from '../account.ts'
import { chunksOf } from '../plan.ts'
import { mailStatus } from '../status.ts'
import type { Archive } from '../store/contract.ts'
import { noteVerified } from '../store/tables.ts'
import { type VerifyReport, verificationOf, verifyArchive } from '../verify.ts'
import { chosen, type MailEngine, withMailEngine } from './context.ts'
import { runMailWork } from './sync-run.ts'
import { exitCodeOf, isWell, printReport, type VerifyFlags } from './verify.ts'

const BATCH = 300
/** What came back only in part, or changed meanwhile, gets a second chance. */
const REPAIRS_MAX = 2
const TOLD_EVERY = 0.1

export async function verifyMail(context: CliContext, flags: VerifyFlags): Promise<void> {
  const { output } = context
  if (flags.repair && flags.offline) {
    throw new UsageError(
      '--repair fetches from Gmail, and --offline keeps away from it: leave out one of them.',
    )
  }
  const options = { ...flags, ...(flags.shard ? { shard: flags.shard.map(withoutEnding) } : {}) }
  await withMailEngine(context, {}, async (opened) => {
    const names = chosen(opened.mail, options)
    for (const name of names) await checkShards((await opened.mail.get(name)).archive, options.shard)
    // Its pace and its pauses come from the engine, which is not started: nothing but the comparison calls Gmail.
    let reports = await verifyAll(context, opened, { names, options })
    for (let round = 1; options.repair && !reports.every(isMended) && round <= REPAIRS_MAX; round++) {
      if (!output.json) for (const report of reports) await printReport(context, report)
      const broken = reports.filter((report) => !isMended(report))
      for (const report of broken) await repair(context, opened, report)
      const { stopped } = await runMailWork(context, opened, names)
      if (stopped) throw new TidemarkError('The repair was stopped: run it again.', { kind: 'transient' })
      reports = await verifyAll(context, opened, { names, options })
      if (!output.json) output.line('After the repair:')
    }
    if (!options.shard) for (const report of reports) await note(opened, report)
    if (output.json) output.value(reports)
    else for (const report of reports) await printReport(context, report)
    context.exitCode = exitCodeOf(reports)
  })
}

/** For `mail status`. */
async function note({ ledger }: MailEngine, report: VerifyReport): Promise<void> {
  await ledger.transaction((tx) => noteVerified(tx, report.account, verificationOf(report, ledger.now())))
}

/** Marks that say of a message that Gmail has it, or has it no longer, and are wrong, are mended, too. */
function isMended(report: VerifyReport): boolean {
  return isWell(report) && !hasWrongMarks(report)
}

function hasWrongMarks({ cloud }: VerifyReport): boolean {
  return cloud !== null && cloud.vanished.length + cloud.returned.length > 0
}

/** 2019.db is 2019. */
function withoutEnding(name: string): string {
  return name.replace(/\.db$/, '')
}

async function verifyAll(
  context: CliContext,
  opened: MailEngine,
  { names, options }: { names: readonly string[]; options: VerifyFlags },
): Promise<VerifyReport[]> {
  const reports: VerifyReport[] = []
  for (const name of names) reports.push(await verifyOne(context, opened, name, options))
  return reports
}

async function verifyOne(
  context: CliContext,
  { mail, ledger, tables }: MailEngine,
  name: string,
  options: VerifyFlags,
): Promise<VerifyReport> {
  const account = await mail.get(name)
  const [status] = await mailStatus(ledger, tables, [name])
  if (!options.offline && status?.phase === 'backfill') {
    context.output.note(`${name}: its first sync is not finished, so what is missing may be on its way.`)
  }
  const stop = new AbortController()
  const onSignal = (): void => stop.abort(new TidemarkError('The check was stopped.', { kind: 'transient' }))
  process.once('SIGINT', onSignal)
  let told = { what: '', share: 0 }
  try {
    return await verifyArchive(account, {
      ...{ ledger, withCloud: !options.offline, signal: stop.signal },
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
async function repair({ output }: CliContext, opened: MailEngine, report: VerifyReport): Promise<void> {
  const { engine, kinds, mail, ledger } = opened
  const { account } = report
  const stream = streamOf(account)
  const { archive, client } = await mail.get(account)
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
