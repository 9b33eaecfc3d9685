/** Files for models: how the folders stand, and finding something by its name. Nothing is changed. */
import { z } from 'zod'
import type { AnswerPart } from '../../../app/module.ts'
import { oneLine } from '../../../app/plain-text.ts'
import { formatBytes, formatCount } from '../../../base/format.ts'
import { isoTime } from '../../../base/moment.ts'
import { counted } from '../../../base/wording.ts'
import { folderPairSettings } from '../folder-pair.ts'
import { namesLike } from '../store/browse.ts'
import { readFolders } from './folders.ts'
import { folderName, lookedInto, noteAllFolders } from './inputs.ts'
import type { FilesServices } from './route.ts'
import { defineTool } from './route.ts'
import type { FolderView, TreeItem } from './schemas.ts'
import { readTransfers } from './transfers.ts'
import { treeItem } from './tree-view.ts'

const FOLDERS_MAX = 20
const REPORTED_MAX = 10
const FOUND_MAX = 50
const FOUND_DEFAULT = 20
const TRANSFERS_MAX = 10
const PATH_CHARS_MAX = 300
const REASON_CHARS_MAX = 200

const quote = (text: string, charsMax: number): AnswerPart => ({ quote: oneLine(text, charsMax) })

const status = defineTool({
  name: 'files_status',
  title: 'How folders and OneDrive stand',
  access: 'read',
  description:
    'Says of every folder that is kept in step with OneDrive whether it is in step, what is on the way, what is ' +
    'being transferred, which conflicts and deletions wait for the user, and what is left alone and why.',
  narrower: 'Name one folder.',
  input: z.strictObject({
    folder: folderName.optional().describe('The name of one folder; all if left out'),
  }),
  run: async ({ folder }, services, { user }) => {
    if (folder === undefined) await noteAllFolders(services, user, 'asked how all folders stand')
    else await lookedInto(services, user, { name: folder, what: 'asked for the state' })
    const pairs = (await readFolders(services)).filter(({ name }) => folder === undefined || name === folder)
    if (pairs.length === 0) return ['No folder is kept in step with OneDrive.']
    const parts: AnswerPart[] = []
    for (const pair of pairs.slice(0, FOLDERS_MAX)) parts.push(...(await folderParts(services, pair)))
    if (pairs.length > FOLDERS_MAX) parts.push(`and ${formatCount(pairs.length - FOLDERS_MAX)} more folders`)
    return parts
  },
})

async function folderParts(services: FilesServices, pair: FolderView): Promise<AnswerPart[]> {
  const { name, account, open, heardAt, scannedAt } = pair
  const onTheWay = open.unplanned + open.inWork + open.waiting
  const parts: AnswerPart[] = [
    `Folder ${name} (account ${account}, ${pair.mode}): ${pair.state}. ${pair.text}\n`,
    ...['At ', quote(pair.root, PATH_CHARS_MAX), '\n'],
    `${counted(pair.files, 'file')}, ${formatBytes(pair.bytes)} in step; `,
    `${counted(onTheWay, 'change')} on the way; ${formatCount(pair.conflicts)} conflicts to decide; `,
    `${formatCount(open.reported)} left alone. `,
    `Folder looked through ${scannedAt === null ? 'never' : isoTime(scannedAt)}, OneDrive heard ${heardAt === null ? 'never' : isoTime(heardAt)}.\n`,
  ]
  const { items } = await readTransfers(services, { folder: name, limit: TRANSFERS_MAX })
  for (const { direction, path, doneBytes, totalBytes } of items) {
    const far = `${formatBytes(doneBytes)} of ${formatBytes(totalBytes)}`
    parts.push(
      `${direction === 'upload' ? 'Uploading' : 'Downloading'} ${far}: `,
      quote(path, PATH_CHARS_MAX),
      '\n',
    )
  }
  for (const { path, because } of await services.files.store.reported(name, { limit: REPORTED_MAX })) {
    parts.push(
      'Left alone: ',
      quote(path, PATH_CHARS_MAX),
      ', because ',
      quote(because, REASON_CHARS_MAX),
      '\n',
    )
  }
  if (open.reported > REPORTED_MAX)
    parts.push(`and ${formatCount(open.reported - REPORTED_MAX)} more left alone\n`)
  return [...parts, '\n']
}

const find = defineTool({
  name: 'files_find',
  title: 'Find files by name',
  access: 'read',
  description:
    'Finds files and folders by a part of their name, in the folders that are kept in step with OneDrive, and ' +
    'answers a line for each: its path, size, time, and how it stands on both sides. Looks at names, not at content.',
  narrower: 'Name one folder, or more of the name.',
  input: z.strictObject({
    name: z.string().trim().min(1).max(200).describe('A part of the name, in any case'),
    folder: folderName.optional().describe('Only in the folder of this name; in all if left out'),
    limit: z.int().min(1).max(FOUND_MAX).default(FOUND_DEFAULT),
  }),
  run: async ({ name: text, folder, limit }, services, { user }) => {
    if (folder === undefined) await noteAllFolders(services, user, `looked for names of files like ${text}`)
    const what = `looked for names like ${text}`
    const rows =
      folder === undefined
        ? await services.files.store.folderPairs()
        : [await lookedInto(services, user, { name: folder, what })]
    const parts: AnswerPart[] = []
    let left = limit
    for (const row of rows.slice(0, FOLDERS_MAX)) {
      if (left <= 0) break
      const { mode } = folderPairSettings.parse(JSON.parse(row.settings))
      const found = await namesLike(services.ledger, row.name, { text, limit: left })
      left -= found.length
      for (const one of found) {
        const item = treeItem(one, { mode, localParentId: one.base?.parentId })
        parts.push(`${factsOf(row.name, item)}: `, quote(one.path, PATH_CHARS_MAX), '\n')
      }
    }
    if (parts.length === 0) return ['Nothing has such a name.']
    if (left <= 0) parts.push('There may be more: ask with more of the name, or a larger limit.')
    return parts
  },
})

function factsOf(pair: string, { type, size, modifiedMs, state }: TreeItem): string {
  const facts = [
    ...(type === 'file' ? [formatBytes(size)] : []),
    ...(modifiedMs === null ? [] : [isoTime(modifiedMs)]),
    state === 'in-step' ? 'in step' : `not in step (${state})`,
  ]
  return `${pair}, ${type}, ${facts.join(', ')}`
}

export const fileTools = [status, find]
