/** `tidemark mail recover`: brings an account's ledger and archive together again. Each step can be repeated. */
import { join } from 'node:path'
import type { CliContext } from '../../../app/command.ts'
import { systemClock } from '../../../base/clock.ts'
import { UsageError } from '../../../base/errors.ts'
import { folderName } from '../account.ts'
import type { MailRuntime } from '../runtime.ts'
import { openArchive } from '../store/archive.ts'
import { archiveIn, type FoundArchive, rebuildList } from '../store/recovery.ts'
import type { MailboxRow } from '../store/tables.ts'
import { chosen, withMail } from './context.ts'

type RecoverFlags = { account?: string; empty?: boolean }

type Done = {
  account: string
  /** `taken-over`: the ledger now knows it. `listed`: archive.json was written anew. `begun-empty`: nothing was there. */
  did: ('taken-over' | 'listed' | 'begun-empty')[]
  folder: string
  files: number
}

export async function recoverMail(context: CliContext, flags: RecoverFlags): Promise<void> {
  const { output } = context
  await withMail(context, {}, async (opened) => {
    const all: Done[] = []
    for (const name of chosen(opened.mail.accounts, flags)) all.push(await recoverOne(opened, name, flags))
    if (output.json) output.value(all)
    else for (const done of all) for (const line of doneLines(done)) output.line(line)
  })
}

async function recoverOne(opened: MailRuntime, account: string, flags: RecoverFlags): Promise<Done> {
  const { settings, tables } = opened.mail
  const folder = join(settings.folder, folderName(account))
  const found = archiveIn(folder)
  if (!found) return beginEmpty(opened, { account, folder, flags })
  const mailbox = await tables.mailbox(account, () => found.archiveId)
  checkOwner(folder, account, { found, mailbox })
  const did: Done['did'] = []
  if (!found.hasList) {
    rebuildList(folder, found, systemClock.now())
    did.push('listed')
  }
  if (mailbox.archive_id !== found.archiveId) {
    await tables.takeOver(account, found.archiveId)
    did.push('taken-over')
  }
  return { account, did, folder, files: found.files.length }
}

/** A ledger that knows of mail in another archive must not be turned to this one: its proofs would be about nothing. */
function checkOwner(
  folder: string,
  account: string,
  { found, mailbox }: { found: FoundArchive; mailbox: MailboxRow },
): void {
  if (found.account !== account) {
    throw new UsageError(`The archive at ${folder} belongs to ${found.account}, not to ${account}.`, {
      code: 'archive-foreign',
      hint: 'Move it to where it belongs. Nothing was changed.',
    })
  }
  if (mailbox.archive_id === found.archiveId || mailbox.planned_at === null) return
  throw new UsageError(
    `The archive at ${folder} is another one (${found.archiveId}) than that of the ledger (${mailbox.archive_id}).`,
    {
      code: 'archive-foreign',
      hint: "Put the ledger's own archive there, or the ledger that belongs to this one. Nothing was changed.",
    },
  )
}

async function beginEmpty(
  { mail: { tables, settings } }: MailRuntime,
  { account, folder, flags }: { account: string; folder: string; flags: RecoverFlags },
): Promise<Done> {
  const mailbox = await tables.findMailbox(account)
  if (!mailbox || mailbox.planned_at === null) {
    throw new UsageError(`There is no archive at ${folder}, and ${account} was never synced.`, {
      hint: 'There is nothing to recover. Run: tidemark mail sync',
    })
  }
  if (!flags.empty) {
    throw new UsageError(`There is no archive at ${folder} that could be recovered.`, {
      hint: 'Mount the disk it is on, or put it back from a backup. If it is lost for good, add --empty: then what Gmail still has can be fetched again.',
    })
  }
  const archive = await openArchive({
    folder,
    account,
    archiveId: mailbox.archive_id,
    shardBy: settings.shardBy,
    shardBytesMax: settings.shardBytesMax,
    now: () => systemClock.now(),
  })
  await archive.close()
  return { account, did: ['begun-empty'], folder, files: 0 }
}

function doneLines({ account, did, folder, files }: Done): string[] {
  if (did.length === 0) return [`${account}: there is nothing to recover.`]
  if (did.includes('begun-empty')) {
    return [
      `${account}: an empty archive was begun at ${folder}.`,
      'Fetch again what Gmail still has with: tidemark mail verify --repair',
    ]
  }
  const lines: string[] = []
  if (did.includes('listed')) lines.push(`${account}: its list of ${files} files was written anew.`)
  if (did.includes('taken-over')) {
    lines.push(`${account}: the archive at ${folder} was taken over, with ${files} files.`)
    lines.push('Run tidemark mail sync: it compares it with Gmail, and fetches only what is missing.')
  } else lines.push('Check it with: tidemark mail verify')
  return lines
}
