/**
 * Where mail is read from: a file, or a folder with whatever a mail program or a person keeps there. Files are known by
 * their content, folders give their messages a label, and everything that is not read is named with the reason.
 */
import type { Dirent } from 'node:fs'
import { opendir, stat } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { TidemarkError, UsageError } from '../../../base/errors.ts'
import { folderLabel } from './folder-labels.ts'
import { isMaildir, labelsOfFlags } from './maildir.ts'
import { type MboxQuoting, readMbox } from './mbox.ts'
import { emlxMessage, type OpenedFile, openMessageFile, wholeMessage } from './message-file.ts'
import { NO_FILE, type SourceItem, type SourceMessage, unreadable } from './source-item.ts'

export type MailSource = { path: string; items(): AsyncIterable<SourceItem> }

export type SourceOptions = { path: string; quoting?: MboxQuoting }

const FOLDER_DEPTH_MAX = 40

/** Looks at what is there; reads no mail yet. */
export async function openSource(options: SourceOptions): Promise<MailSource> {
  const { path } = options
  const quoting = options.quoting ?? 'mboxrd'
  const found = await stat(path).catch((cause: unknown) => {
    throw new UsageError(`${path} cannot be read.`, { cause, hint: 'Check the path and its permissions.' })
  })
  if (found.isDirectory()) return { path, items: () => folderItems({ path, parts: [], quoting }) }
  if (!found.isFile()) throw new UsageError(`${path} is neither a file nor a folder.`)
  const file = await openMessageFile(path, basename(path), 'follow')
  if ('reason' in file) throw new UsageError(`${path} ${file.reason}.`)
  await file.close()
  if (typeof file.kind === 'object' && found.size > 0) {
    throw new UsageError(`${path} is neither a mailbox file nor a message: ${file.kind.passedOver}.`, {
      hint: 'A mailbox file begins with "From ", a message with its headers.',
    })
  }
  return { path, items: () => fileItems({ path, parts: [], quoting, link: 'follow' }) }
}

type Place = {
  path: string
  /** Folders on the way from where the import began. */
  parts: readonly string[]
  quoting: MboxQuoting
}

async function* folderItems(folder: Place): AsyncGenerator<SourceItem> {
  const { path, parts, quoting } = folder
  if (parts.length > FOLDER_DEPTH_MAX) {
    yield { type: 'damaged', place: path, reason: `folders lie more than ${FOLDER_DEPTH_MAX} deep` }
    return
  }
  const entries = await opendir(path).catch(unreadable)
  if (typeof entries === 'string') {
    yield { type: 'damaged', place: path, reason: entries }
    return
  }
  const inMaildir = await isMaildir(path)
  for await (const entry of entries) {
    const place = { path: join(path, entry.name), parts: [...parts, entry.name], quoting }
    if (!entry.isDirectory()) yield* entryItems(entry, { ...place, parts })
    else if (!inMaildir || !['cur', 'new', 'tmp'].includes(entry.name)) yield* folderItems(place)
    else if (entry.name === 'tmp') yield* unfinishedItems(place.path)
    else yield* maildirItems({ ...place, parts }, entry.name === 'new')
  }
}

async function* entryItems(entry: Dirent, place: Place): AsyncGenerator<SourceItem> {
  if (entry.isFile()) yield* fileItems({ ...place, link: 'refuse' })
  else {
    const reason = entry.isSymbolicLink() ? 'a link, which is not followed' : NO_FILE
    yield { type: 'ignored', place: place.path, reason }
  }
}

type FilePlace = Place & { link: 'follow' | 'refuse' }

async function* fileItems({ path, parts, quoting, link }: FilePlace): AsyncGenerator<SourceItem> {
  const name = basename(path)
  const file = await openMessageFile(path, name, link)
  if ('reason' in file) {
    yield { type: 'damaged', place: path, reason: file.reason }
    return
  }
  try {
    if (typeof file.kind === 'object') yield { type: 'ignored', place: path, reason: file.kind.passedOver }
    else if (file.kind === 'mbox') {
      const labelNames = link === 'follow' ? [] : folderLabel([...parts, name])
      yield* mboxItems(file, { path, quoting, labelNames })
    } else yield await oneMessage(file, path, { labelNames: folderLabel(parts) })
  } catch (thrown) {
    yield { type: 'damaged', place: path, reason: unreadableReason(thrown) }
  } finally {
    await file.close()
  }
}

async function* unfinishedItems(path: string): AsyncGenerator<SourceItem> {
  const entries = await opendir(path).catch(unreadable)
  if (typeof entries === 'string') return
  for await (const { name } of entries) {
    yield { type: 'ignored', place: join(path, name), reason: 'mail that was never finished' }
  }
}

/** In a Maildir every file is a message, whatever it begins with. */
async function* maildirItems({ path, parts }: Place, isNew: boolean): AsyncGenerator<SourceItem> {
  const entries = await opendir(path).catch(unreadable)
  if (typeof entries === 'string') {
    yield { type: 'damaged', place: path, reason: entries }
    return
  }
  const labelNames = folderLabel(parts)
  for await (const entry of entries) {
    const place = join(path, entry.name)
    if (entry.name.startsWith('.')) yield { type: 'ignored', place, reason: 'hidden' }
    else if (!entry.isFile()) {
      const reason = entry.isSymbolicLink() ? 'a link, which is not followed' : NO_FILE
      yield { type: 'ignored', place, reason }
    } else {
      const file = await openMessageFile(place, `${entry.name}.eml`)
      if ('reason' in file) yield { type: 'damaged', place, reason: file.reason }
      else if (typeof file.kind === 'object') {
        await file.close()
        yield { type: 'ignored', place, reason: file.kind.passedOver }
      } else {
        const labelIds = isNew ? ['UNREAD'] : labelsOfFlags(entry.name)
        try {
          yield await oneMessage(file, place, { labelNames, labelIds })
        } catch (thrown) {
          yield { type: 'damaged', place, reason: unreadableReason(thrown) }
        } finally {
          await file.close()
        }
      }
    }
  }
}

async function oneMessage(
  file: OpenedFile,
  place: string,
  labels: { labelNames: readonly string[]; labelIds?: readonly string[] },
): Promise<SourceMessage> {
  const content = await wholeMessage(file)
  const raw = file.kind === 'emlx' ? emlxMessage(content) : content
  const about = { id: null, threadId: null, labelIds: [], arrivedMs: null, modifiedMs: file.modifiedMs }
  return { type: 'message', place, raw, ...about, ...labels }
}

async function* mboxItems(
  file: OpenedFile,
  {
    path,
    quoting,
    labelNames: ofFolder,
  }: { path: string; quoting: MboxQuoting; labelNames: readonly string[] },
): AsyncGenerator<SourceItem> {
  const { modifiedMs } = file
  for await (const item of readMbox(file.chunks(), { quoting })) {
    const place = `${path}, byte ${item.offset}`
    if (item.type === 'damaged') yield { type: 'damaged', place, reason: item.reason }
    else if (item.type === 'expunged') yield { type: 'ignored', place, reason: 'deleted in Thunderbird' }
    else {
      const { raw, id, threadId, arrivedMs } = item
      // Takeout names labels itself, and its files are no folders of anybody's.
      const labelNames = id === null && item.labelNames.length === 0 ? ofFolder : item.labelNames
      yield { type: 'message', place, raw, id, threadId, labelNames, labelIds: [], arrivedMs, modifiedMs }
    }
  }
}

function unreadableReason(thrown: unknown): string {
  return thrown instanceof TidemarkError ? thrown.message : unreadable(thrown)
}
