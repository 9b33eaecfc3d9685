/** What `tidemark mail show` does. */
import { existsSync, statSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { CliContext } from '../../../app/command.ts'
import { TidemarkError, UsageError } from '../../../base/errors.ts'
import { formatBytes } from '../../../base/format.ts'
import { isoTime } from '../../../base/moment.ts'
import type { OpenedArchive } from '../merged-search.ts'
import type { StoredAttachment, StoredMessage } from '../message.ts'
import { safeFileName } from '../mime/file-name.ts'
import { parseMessage } from '../mime/parse.ts'
import { withMailArchive } from './context.ts'
import { addressList, labelNames, messageJson } from './message.ts'

type ShowFlags = {
  account?: string
  raw?: boolean
  headers?: boolean
  text?: boolean
  html?: boolean
  attachments?: boolean
  /** From 1. */
  saveAttachment?: number
  to?: string
  force?: boolean
}

type Found = { opened: OpenedArchive; message: StoredMessage }

export async function showMail(context: CliContext, id: string, flags: ShowFlags): Promise<void> {
  const { output } = context
  if (flags.saveAttachment !== undefined && flags.to === undefined) {
    throw new UsageError('Where shall the attachment go?', { hint: 'Name a file or a folder with --to.' })
  }
  if (flags.to !== undefined && flags.saveAttachment === undefined) {
    throw new UsageError('--to belongs to --save-attachment.', {
      hint: 'Bytes go to a file like this: tidemark mail show ID --raw > message.eml',
    })
  }
  if ((flags.raw || flags.html) && output.isTerminal && !output.json && !flags.force) {
    throw new UsageError('What a stranger wrote is not sent to a terminal as it is.', {
      code: 'terminal',
      hint: `Send it to a file: tidemark mail show ${flags.raw ? '--raw ID > message.eml' : '--html ID > message.html'}. Or insist with --force.`,
    })
  }
  await withMailArchive(context, { account: flags.account, onlyReads: true }, async ({ archives }) => {
    const found = await findMessage(archives, id.trim())
    if (flags.raw) await showRaw(context, found)
    else if (flags.headers) await showHeaders(context, found)
    else if (flags.html) await showHtml(context, found)
    else if (flags.attachments) listAttachments(context, found)
    else if (flags.saveAttachment !== undefined) await saveAttachment(context, found, flags)
    else await showText(context, found, flags)
  })
}

/** In the first archive that has it. One that cannot be read is an error only where no other has it. */
async function findMessage(archives: readonly OpenedArchive[], id: string): Promise<Found> {
  const isMessageId = id.includes('@')
  let trouble: unknown
  for (const opened of archives) {
    try {
      const message = isMessageId ? await byMessageId(opened, id) : await opened.archive.message(id)
      if (message) return { opened, message }
    } catch (thrown) {
      trouble ??= thrown
    }
  }
  if (trouble !== undefined) throw trouble
  const where = archives.length === 1 ? `The archive of ${archives[0]!.name}` : 'None of the archives'
  const has = archives.length === 1 ? 'has no message' : 'has a message'
  throw new UsageError(`${where} ${has} ${id}.`, {
    code: 'message-unknown',
    hint: 'Give the id as `tidemark mail search` shows it.',
  })
}

/** The newest of those that share it. */
async function byMessageId({ archive }: OpenedArchive, text: string): Promise<StoredMessage | null> {
  const value = text.replace(/^<|>$/g, '')
  const { hits, unsearched } = await archive.search({ is: 'message-id', value }, { limit: 1 })
  const [trouble] = unsearched
  if (!hits[0] && trouble)
    throw new TidemarkError(trouble.reason, { kind: 'transient', code: 'shard-missing' })
  return hits[0]?.message ?? null
}

async function showText(context: CliContext, { opened, message }: Found, flags: ShowFlags): Promise<void> {
  const { output } = context
  const text = await opened.archive.text(message.id)
  if (output.json) return output.value({ ...messageJson(opened, message), text })
  if (!flags.text) {
    for (const [name, value] of summary(opened, message)) output.line(`${name}:`.padEnd(13) + value)
    for (const problem of message.problems) output.line(`${'Problem:'.padEnd(13)}${problem}`)
    output.line('')
  }
  // Line by line: what is escaped is within a line.
  for (const line of text.split(/\r?\n/)) output.line(line.replaceAll('\t', '    '))
}

function summary(opened: OpenedArchive, message: StoredMessage): [name: string, value: string][] {
  const rows: [string, string][] = [
    ['From', addressList(message.from)],
    ['To', addressList(message.to)],
    ['Cc', addressList(message.cc)],
    ['Bcc', addressList(message.bcc)],
    ['Subject', message.subject],
    ['Received', isoTime(message.internalMs)],
    ['Labels', labelNames(opened, message.labelIds).join(', ')],
    ['Size', formatBytes(message.bytes)],
    ['Attachments', message.attachments.map(attachmentText).join(', ')],
    ['Account', opened.name],
    ['Id', `${message.id} (conversation ${message.threadId})`],
    ['Kept in', `${message.shard}.db${message.source === 'import' ? ', imported from a file' : ''}`],
    [
      'Deleted',
      message.deletedAtMs === null ? '' : `no longer in Gmail since ${isoTime(message.deletedAtMs)}`,
    ],
  ]
  return rows.filter(([, value]) => value !== '')
}

function attachmentText({ index, name, bytes }: StoredAttachment): string {
  return `${index + 1}: ${name === '' ? '(no name)' : name} (${formatBytes(bytes)})`
}

async function showRaw({ output }: CliContext, { opened, message }: Found): Promise<void> {
  const raw = await opened.archive.raw(message.id)
  if (output.json) {
    const base64 = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength).toString('base64')
    output.value({ ...messageJson(opened, message), raw: base64 })
  } else output.bytes(raw)
}

async function showHeaders({ output }: CliContext, { opened, message }: Found): Promise<void> {
  const { headers } = parseMessage(await opened.archive.raw(message.id))
  if (output.json) return output.value({ ...messageJson(opened, message), headers })
  for (const { name, value } of headers) output.line(`${name}: ${value}`)
}

async function showHtml({ output }: CliContext, { opened, message }: Found): Promise<void> {
  const { html } = parseMessage(await opened.archive.raw(message.id))
  if (output.json) return output.value({ ...messageJson(opened, message), html })
  if (html === null) {
    throw new UsageError(`The message ${message.id} has no HTML.`, {
      code: 'no-html',
      hint: `Its text: tidemark mail show ${message.id} --text`,
    })
  }
  output.bytes(Buffer.from(html))
}

function listAttachments({ output }: CliContext, { opened, message }: Found): void {
  const json = messageJson(opened, message)
  output.listing<StoredAttachment>({
    columns: [
      { title: 'number', value: ({ index }) => index + 1, align: 'right' },
      { title: 'name', value: ({ name }) => name },
      { title: 'type', value: ({ type }) => type },
      { title: 'size', value: ({ bytes }) => formatBytes(bytes), align: 'right' },
      { title: 'sha256', value: ({ sha256 }) => sha256 },
    ],
    rows: message.attachments,
    json: json.attachments,
    empty: 'It has no attachments.',
  })
}

async function saveAttachment(
  { output }: CliContext,
  { opened, message }: Found,
  flags: ShowFlags,
): Promise<void> {
  const number = flags.saveAttachment!
  if (!message.attachments.some(({ index }) => index === number - 1)) {
    throw new UsageError(`The message ${message.id} has no attachment number ${number}.`, {
      code: 'attachment-unknown',
      hint:
        message.attachments.length === 0
          ? 'It has none.'
          : `It has: ${message.attachments.map(attachmentText).join(', ')}`,
    })
  }
  const { name, type, content } = await opened.archive.attachment(message.id, number - 1)
  const file = fileFor(flags.to!, name, number)
  try {
    await writeFile(file, content, { flag: flags.force ? 'w' : 'wx', mode: 0o600 })
  } catch (thrown) {
    throw unwritten(file, thrown)
  }
  if (output.json) output.value({ file, name, type, bytes: content.byteLength })
  else output.line(`${file} (${formatBytes(content.byteLength)})`)
}

function fileFor(to: string, name: string, number: number): string {
  const isFolder = existsSync(to) ? statSync(to).isDirectory() : /[/\\]$/.test(to)
  return isFolder ? join(to, safeFileName(name, `attachment-${number}`)) : to
}

function unwritten(file: string, thrown: unknown): UsageError {
  const { code } = thrown as NodeJS.ErrnoException
  const why: Record<string, [what: string, hint: string]> = {
    EEXIST: ['is there already', 'Give another name with --to, or write over it with --force.'],
    ENOENT: ['cannot be made: there is no such folder', 'Make the folder first.'],
    EACCES: ['cannot be written: permission denied', 'Choose another place with --to.'],
    ENOSPC: ['cannot be written: the disk is full', 'Free some space, or choose another place with --to.'],
  }
  const [what, hint] = why[code ?? ''] ?? [
    `cannot be written (${code ?? 'unknown'})`,
    'Choose another place with --to.',
  ]
  return new UsageError(`${file} ${what}.`, { hint, cause: thrown, code: 'file-unwritten' })
}
