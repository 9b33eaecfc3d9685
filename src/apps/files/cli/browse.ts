/** `tidemark files ls` and `files stat`: what both sides have, as last seen. Needs no network. */
import type { CliContext } from '../../../app/command.ts'
import { UsageError } from '../../../base/errors.ts'
import { formatBytes } from '../../../base/format.ts'
import { isoTime } from '../../../base/moment.ts'
import { didYouMean } from '../../../cli/output/input.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import type { TreeItem } from '../api/schemas.ts'
import { treeItem } from '../api/tree-view.ts'
import type { FolderPair } from '../folder-pair.ts'
import { namesOfPath } from '../folder-settings.ts'
import {
  type BrowsedChild,
  type BrowsedFolder,
  browsedChildren,
  browsedFolder,
  type ChildPlace,
} from '../store/browse.ts'
import { nameKey } from '../trees.ts'
import { chosenFolderPair, type OpenedFiles, withFiles } from './context.ts'

const PAGE = 1_000
const NAMES_MAX = 10_000

type Entry = { item: TreeItem; child: BrowsedChild }

export async function listPath(
  context: CliContext,
  path: string,
  { folder }: { folder?: string },
): Promise<void> {
  await withFiles(context, async (opened) => {
    const pair = await chosenFolderPair(opened, folder)
    const names = namesOfPath(path)
    const place = await browsedPlace(opened, pair, names)
    const entries = place.folder ? await entriesOf(opened.ledger, pair, place.folder) : [place.entry!]
    context.output.listing({
      columns: [
        { title: 'name', value: ({ name, type }) => (type === 'folder' ? `${name}/` : name) },
        { title: 'here', value: ({ here, type }) => sideText(here, type), align: 'right' },
        { title: 'there', value: ({ there, type }) => sideText(there, type), align: 'right' },
        { title: 'state', value: ({ state }) => STATE_TEXTS[state] },
        { title: 'what', value: ({ text }) => text },
      ],
      rows: entries.map(({ item }) => item),
      json: entries.map(({ item }) => toJson(item)),
      empty: await emptyText(opened, pair),
    })
  })
}

async function emptyText({ files }: OpenedFiles, { name }: FolderPair): Promise<string> {
  const { scannedAt, heardAt } = await files.store.folderPair(name)
  return scannedAt === null && heardAt === null
    ? `${name} was never synced: nothing is known of either side. Run: tidemark files sync`
    : 'There is nothing in it.'
}

const STATE_TEXTS: Record<TreeItem['state'], string> = {
  'in-step': 'in step',
  here: 'here',
  there: 'there',
  both: 'both',
  waiting: 'waiting',
  left: 'left',
  held: 'held',
  conflict: 'conflict',
}

function sideText(side: TreeItem['here'], type: TreeItem['type']): string {
  if (!side) return '–'
  return type === 'file' ? formatBytes(side.size) : 'yes'
}

function toJson({ here, there, modifiedMs, ...item }: TreeItem) {
  const side = (one: TreeItem['here']) =>
    one && { name: one.name, size: one.size, modifiedAt: isoTime(one.modifiedMs) }
  return { ...item, modifiedAt: isoTime(modifiedMs), here: side(here), there: side(there) }
}

/** A folder, or one entry where the path leads to something else. */
async function browsedPlace(
  { ledger }: OpenedFiles,
  pair: FolderPair,
  names: readonly string[],
): Promise<{ folder: BrowsedFolder | undefined; entry: Entry | undefined }> {
  let folder = await browsedFolder(ledger, pair, undefined)
  let entry: Entry | undefined
  for (const [at, name] of names.entries()) {
    const path = names.slice(0, at + 1).join('/')
    if (!folder) throw new UsageError(`${names.slice(0, at).join('/')} is not a folder.`)
    const entries: Entry[] = await entriesOf(ledger, pair, folder)
    entry = pick(entries, name)
    if (!entry) {
      const known = entries.slice(0, NAMES_MAX).map(({ item }) => item.name)
      throw new UsageError(`Neither side has ${path}, as last seen${didYouMean(name, known)}`, {
        code: 'path-unknown',
        hint: 'Look at both sides first with: tidemark files sync',
      })
    }
    const isFolder = entry.item.type === 'folder'
    folder = isFolder ? await browsedFolder(ledger, pair, entry.child.node) : undefined
  }
  return { folder, entry }
}

function pick(entries: readonly Entry[], name: string): Entry | undefined {
  const isSame = ({ item: { here, there } }: Entry): boolean => here?.name === name || there?.name === name
  return entries.find(isSame) ?? entries.find(({ item }) => nameKey(item.name) === nameKey(name))
}

async function entriesOf(ledger: Ledger, pair: FolderPair, folder: BrowsedFolder): Promise<Entry[]> {
  const found: Entry[] = []
  for (let after: ChildPlace | undefined; ; ) {
    const page = await browsedChildren(ledger, pair.name, folder, { after, limit: PAGE })
    for (const child of page) {
      const localParentId = folder.itemId ?? undefined
      found.push({ child, item: treeItem(child, { mode: pair.settings.mode, localParentId }) })
    }
    if (page.length < PAGE) return found
    after = page.at(-1)!.place
  }
}

export async function statPath(
  context: CliContext,
  path: string,
  { folder }: { folder?: string },
): Promise<void> {
  const { output } = context
  await withFiles(context, async (opened) => {
    const pair = await chosenFolderPair(opened, folder)
    const names = namesOfPath(path)
    if (names.length === 0) throw new UsageError('The top of a folder has no state of its own.')
    const { entry } = await browsedPlace(opened, pair, names)
    const { item, child } = entry!
    const { local, remote, base } = child
    const facts = {
      path: names.join('/'),
      folder: pair.name,
      ...toJson(item),
      localHash: local?.isMissing ? null : (local?.hash ?? null),
      remoteHash: remote?.isDeleted ? null : (remote?.hash ?? null),
      itemId: remote?.itemId ?? null,
      agreed: base ? { name: base.name, size: base.size, hash: base.hash } : null,
    }
    if (output.json) {
      output.value(facts)
      return
    }
    output.line(`${facts.path}: ${STATE_TEXTS[item.state]}${item.text ? ` (${item.text})` : ''}`)
    output.line(`  type       ${item.type}`)
    output.line(`  here       ${sideLine(item.here, item.type, facts.localHash)}`)
    output.line(`  OneDrive   ${sideLine(item.there, item.type, facts.remoteHash)}`)
    output.line(`  agreed on  ${base ? `${base.name}, ${formatBytes(base.size)}` : 'nothing yet'}`)
    if (facts.itemId !== null) output.line(`  item       ${facts.itemId}`)
    if (item.conflict !== null) {
      output.line(`  conflict   ${item.conflict}: tidemark files resolve ${item.conflict} --keep …`)
    }
  })
}

function sideLine(side: TreeItem['here'], type: TreeItem['type'], hash: string | null): string {
  if (!side) return 'not there'
  if (type !== 'file') return side.name
  const parts = [side.name, formatBytes(side.size), isoTime(side.modifiedMs) ?? 'no time']
  return [...parts, ...(hash === null ? [] : [`hash ${hash}`])].join(', ')
}
