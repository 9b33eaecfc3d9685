/**
 * Maildir: a file per message, in `new` and `cur`, with its state in the name after `:2,`. Subfolders are
 * folders of the same form whose names begin with a dot, and with dots for slashes.
 */
import { opendir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { readMessageFile, type SourceItem } from './source-item.ts'

export async function isMaildir(path: string): Promise<boolean> {
  const folders = await Promise.all(['cur', 'new'].map((name) => stat(join(path, name)).catch(() => null)))
  return folders.some((folder) => folder?.isDirectory())
}

export async function* readMaildir(path: string): AsyncGenerator<SourceItem> {
  yield* readFolder(path, [])
  for await (const entry of await opendir(path)) {
    if (['cur', 'new', 'tmp'].includes(entry.name)) continue
    const place = join(path, entry.name)
    const isFolder = entry.isDirectory() && entry.name.startsWith('.') && (await isMaildir(place))
    if (isFolder) yield* readFolder(place, [entry.name.slice(1).replaceAll('.', '/')])
    else if (entry.isDirectory())
      yield { type: 'damaged', place, reason: 'it is no Maildir, and was not looked into' }
    else yield { type: 'ignored', place }
  }
}

async function* readFolder(path: string, labelNames: readonly string[]): AsyncGenerator<SourceItem> {
  for (const state of ['cur', 'new'] as const) {
    const folder = await opendir(join(path, state)).catch(() => null)
    // One of the two may be missing; a file in it that is none is reported below.
    if (!folder) continue
    for await (const entry of folder) {
      const place = join(path, state, entry.name)
      if (entry.name.startsWith('.')) {
        yield { type: 'ignored', place }
        continue
      }
      const read = entry.isDirectory() ? { reason: 'it is a folder' } : await readMessageFile(place)
      if ('reason' in read) yield { type: 'damaged', place, reason: read.reason }
      else {
        const labelIds = state === 'new' ? ['UNREAD'] : labelsOfFlags(entry.name)
        const message = { id: null, threadId: null, labelNames, labelIds, arrivedMs: null }
        yield { type: 'message', place, ...message, ...read }
      }
    }
  }
}

const FLAGS: readonly (readonly [flag: string, label: string])[] = [
  ['D', 'DRAFT'],
  ['F', 'STARRED'],
  ['T', 'TRASH'],
]
const SEEN = 'S'

function labelsOfFlags(name: string): string[] {
  const flags = name.split(':2,')[1] ?? ''
  const labels = FLAGS.filter(([flag]) => flags.includes(flag)).map(([, label]) => label)
  return flags.includes(SEEN) ? labels : [...labels, 'UNREAD']
}

/** The name of a message's file in `cur`; its flags in the order that the format asks for. */
export function maildirName(message: {
  id: string
  internalMs: number
  labelIds: readonly string[]
}): string {
  const labels = new Set(message.labelIds)
  const flags = FLAGS.filter(([, label]) => labels.has(label)).map(([flag]) => flag)
  if (!labels.has('UNREAD')) flags.push(SEEN)
  const seconds = Math.floor(message.internalMs / 1_000)
  return `${seconds}.${message.id.replace(/[^\w-]/g, '_')}.tidemark:2,${flags.sort().join('')}`
}
