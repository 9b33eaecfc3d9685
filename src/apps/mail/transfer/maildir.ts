/**
 * Maildir: a file per message, in `new` and `cur`, with its state in the name after `:2,`. Subfolders are
 * folders of the same form, whose names begin with a dot and have dots for slashes.
 */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'

export async function isMaildir(path: string): Promise<boolean> {
  const [cur, fresh, tmp] = await Promise.all(
    ['cur', 'new', 'tmp'].map(async (name) =>
      (await stat(join(path, name)).catch(() => null))?.isDirectory(),
    ),
  )
  // Some leave one of them out; a folder that is only called `new` is nobody's Maildir.
  return cur === true || (fresh === true && tmp === true)
}

const FLAGS: readonly (readonly [flag: string, label: string])[] = [
  ['D', 'DRAFT'],
  ['F', 'STARRED'],
  ['T', 'TRASH'],
]
const SEEN = 'S'

export function labelsOfFlags(name: string): string[] {
  // Where a file system has no colons, others stand for it.
  const flags = name.split(/[:;!]2,/)[1] ?? ''
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
