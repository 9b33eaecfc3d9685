/** Where mail is read from: a mailbox file, a Maildir, a folder of .eml files, or a folder with any of them. */
import { type FileHandle, open, opendir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { UsageError } from '../../../errors.ts'
import { readEml } from './eml.ts'
import { isMaildir, readMaildir } from './maildir.ts'
import { type MboxQuoting, readMbox } from './mbox.ts'
import { NO_FILE, type SourceItem, unreadable } from './source-item.ts'

export type MailSource = { path: string; items(): AsyncIterable<SourceItem> }

export type SourceOptions = { path: string; quoting?: MboxQuoting }

const READ_BYTES = 1_048_576
const FOLDER_DEPTH_MAX = 20

/** Looks at what is there; reads no mail yet. */
export async function openSource(options: SourceOptions): Promise<MailSource> {
  const { path } = options
  const quoting = options.quoting ?? 'mboxrd'
  const found = await stat(path).catch((cause: unknown) => {
    throw new UsageError(`${path} cannot be read.`, { cause, hint: 'Check the path and its permissions.' })
  })
  if (found.isDirectory()) return { path, items: () => folderItems({ path, quoting, depth: 0 }) }
  if (!found.isFile()) throw new UsageError(`${path} is neither a file nor a folder.`)
  const kind = found.size === 0 ? 'mbox' : await kindOf(path)
  if (kind === 'mbox') return { path, items: () => mboxItems(path, quoting) }
  if (kind === 'eml') return { path, items: () => readEml(path) }
  throw new UsageError(`${path} is neither a mailbox file nor a message.`, {
    hint: 'A mailbox file begins with "From ", a message with its headers.',
  })
}

type Folder = { path: string; quoting: MboxQuoting; depth: number }

async function* folderItems({ path, quoting, depth }: Folder): AsyncGenerator<SourceItem> {
  if (depth > FOLDER_DEPTH_MAX) {
    yield { type: 'damaged', place: path, reason: `folders lie more than ${FOLDER_DEPTH_MAX} deep` }
    return
  }
  if (await isMaildir(path)) {
    yield* readMaildir(path)
    return
  }
  const folder = await opendir(path).catch(unreadable)
  if (typeof folder === 'string') {
    yield { type: 'damaged', place: path, reason: folder }
    return
  }
  for await (const entry of folder) {
    const place = join(path, entry.name)
    if (entry.isDirectory()) yield* folderItems({ path: place, quoting, depth: depth + 1 })
    else if (/\.eml$/i.test(entry.name)) yield* readEml(place)
    else if (/\.mbo?x$/i.test(entry.name)) yield* mboxItems(place, quoting)
    else yield { type: 'ignored', place }
  }
}

async function kindOf(path: string): Promise<'mbox' | 'eml' | null> {
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(1_000), 0, 1_000, 0)
    const text = buffer.toString('latin1', 0, bytesRead)
    if (text.startsWith('From ')) return 'mbox'
    return /\.eml$/i.test(path) || /^[!-9;-~]+[ \t]*:/.test(text) ? 'eml' : null
  } finally {
    await file.close()
  }
}

async function* mboxItems(path: string, quoting: MboxQuoting): AsyncGenerator<SourceItem> {
  const file = await openMailbox(path)
  if ('reason' in file) {
    yield { type: 'damaged', place: path, ...file }
    return
  }
  try {
    const modifiedMs = Math.trunc((await file.stat()).mtimeMs)
    const chunks = file.createReadStream({ highWaterMark: READ_BYTES, autoClose: false })
    for await (const item of readMbox(chunks, { quoting })) {
      const place = `${path}, byte ${item.offset}`
      if (item.type === 'damaged') yield { type: 'damaged', place, reason: item.reason }
      else {
        const { raw, id, threadId, labelNames, arrivedMs } = item
        yield { type: 'message', place, raw, id, threadId, labelNames, labelIds: [], arrivedMs, modifiedMs }
      }
    }
  } finally {
    await file.close()
  }
}

/** Asked before it is opened: a pipe that nobody writes to would be waited for without end. */
async function openMailbox(path: string): Promise<FileHandle | { reason: string }> {
  try {
    return (await stat(path)).isFile() ? await open(path) : { reason: NO_FILE }
  } catch (thrown) {
    return { reason: unreadable(thrown) }
  }
}
