/** Runs the check of archives, and mends them where asked. */
import { streamOf } from '../apps/mail-archive/account.ts'
import { chunksOf } from '../apps/mail-archive/plan.ts'
import { type VerifyReport, verifyArchive } from '../apps/mail-archive/verify.ts'
import { request } from '../engine/kinds.ts'
import { UsageError } from '../errors.ts'
import { formatCount } from '../format.ts'
import type { CliContext } from './context.ts'
import { chosen, type MailEngine, withMailEngine } from './mail-context.ts'
import { runMailWork } from './mail-sync-run.ts'
import { exitCodeOf, isWell, printReport, type VerifyFlags } from './mail-verify.ts'

const BATCH = 300
const TOLD_EVERY = 0.1

export async function verifyMail(context: CliContext, options: VerifyFlags): Promise<void> {
  const { output } = context
  await withMailEngine(context, {}, async (opened) => {
    const names = chosen(opened.mail, options)
    // Its pace and its pauses come from the engine, which is not started: nothing but the comparison calls Gmail.
    const reports: VerifyReport[] = []
    for (const name of names) reports.push(await verifyOne(context, opened, name, options))
    if (output.json && !options.repair) output.value(reports)
    else if (!output.json) for (const report of reports) await printReport(context, report)
    context.exitCode = exitCodeOf(reports)
    if (!options.repair || reports.every(isWell)) {
      if (options.repair && output.json) output.value(reports)
      return
    }
    for (const report of reports) await repair(context, opened, report)
    await runMailWork(context, opened, names)
    const after: VerifyReport[] = []
    for (const name of names) after.push(await verifyOne(context, opened, name, options))
    if (output.json) output.value(after)
    else {
      output.line('After the repair:')
      for (const report of after) await printReport(context, report)
    }
    context.exitCode = exitCodeOf(after)
  })
}

async function verifyOne(
  context: CliContext,
  { mail, ledger }: MailEngine,
  name: string,
  options: VerifyFlags,
): Promise<VerifyReport> {
  const account = await mail.get(name)
  await checkShards(account.archive, options.shard)
  const stop = new AbortController()
  const onSignal = (): void => stop.abort(new UsageError('The check was stopped.'))
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

async function checkShards(
  archive: { shards(): Promise<{ name: string }[]> },
  wanted: readonly string[] = [],
): Promise<void> {
  const names = (await archive.shards()).map(({ name }) => name)
  const unknown = wanted.find((name) => !names.includes(name))
  if (unknown === undefined) return
  throw new UsageError(`The archive has no file ${unknown}.`, {
    hint: `It has: ${names.join(', ') || 'none'}.`,
  })
}

/** Damaged files aside first, so that what they held can be written anew; then everything that is not there. */
async function repair({ output }: CliContext, opened: MailEngine, report: VerifyReport): Promise<void> {
  const { engine, kinds, mail, ledger } = opened
  const { archive } = await mail.get(report.account)
  const broken = report.shards.filter(({ state }) => state !== 'ok')
  for (const { name } of broken) {
    const { movedTo } = await archive.setAside(name)
    output.note(movedTo ? `${name} was set aside as ${movedTo}` : `${name} is missing and will be made anew`)
  }
  const isBroken = new Set(broken.map(({ name }) => name))
  const damaged = report.damaged.filter(({ shard }) => !isBroken.has(shard)).map(({ id }) => id)
  const stream = streamOf(report.account)
  const account = report.account
  await engine.write({
    jobs: [
      ...chunksOf(damaged, BATCH).map((ids) =>
        request(kinds.fetch, { account, ids, rewrite: true }, { stream }),
      ),
      ...chunksOf(report.cloud?.missing ?? [], BATCH).map((ids) =>
        request(kinds.fetch, { account, ids }, { stream }),
      ),
      // What a set-aside file held is found by comparing with the mailbox.
      ...(broken.length > 0 ? [request(kinds.reconcile, { account }, { stream })] : []),
    ],
  })
  if ((await ledger.stream(stream)).cursor === null) {
    throw new UsageError(`${account} was never synced: there is nothing to mend.`, {
      hint: 'Run: tidemark mail sync',
    })
  }
}
