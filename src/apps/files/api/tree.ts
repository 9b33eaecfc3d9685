/** The tree: what a folder holds on both sides, and one item with everything that is known of it. */
import { z } from 'zod'
import { notFound } from '../../../app/problem.ts'
import { pageOf } from '../../../app/schemas.ts'
import { folderPairSettings } from '../folder-pair.ts'
import { browsedChildren, browsedFolder, browsedNode } from '../store/browse.ts'
import {
  folderPairParams,
  folderPairRow,
  longCursorQuery,
  nodeText,
  readJsonCursor,
  writeCursor,
} from './inputs.ts'
import { defineRoute } from './route.ts'
import { itemDetailSchema, treeItemSchema } from './schemas.ts'
import { treeItem } from './tree-view.ts'

const placeSchema = z.object({ rank: z.int(), key: z.string().max(1_000), node: z.string().max(500) })

const listChildren = defineRoute(
  {
    ...{ method: 'get', path: '/api/files/drives/{name}/tree', tag: 'files', access: 'read' },
    summary: 'What a folder holds, on either side: folders first, then by name',
    params: folderPairParams,
    query: z.object({
      ...longCursorQuery,
      folder: nodeText.optional().describe('The `node` of the folder; the top of the tree if left out'),
    }),
    answer: pageOf(treeItemSchema).extend({ path: z.string().describe('Of the folder; empty at the top') }),
  },
  async ({ params: { name }, query: { folder: node, cursor, limit } }, services) => {
    const { ledger } = services
    const row = await folderPairRow(services, name)
    const folder = await browsedFolder(ledger, row, node)
    if (!folder) throw unknown(node ?? '')
    const after = readJsonCursor(cursor, placeSchema)
    const found = await browsedChildren(ledger, name, folder, { after, limit: limit + 1 })
    const { mode } = folderPairSettings.parse(JSON.parse(row.settings))
    const shown = found.slice(0, limit)
    return {
      path: folder.path,
      items: shown.map((one) => treeItem(one, { mode, localParentId: folder.itemId ?? undefined })),
      next: found.length > limit ? writeCursor(shown.at(-1)!.place) : null,
    }
  },
)

const showItem = defineRoute(
  {
    ...{ method: 'get', path: '/api/files/drives/{name}/items/{node}', tag: 'files', access: 'read' },
    summary: 'One item: how it is on each side, and what both last agreed on',
    params: folderPairParams.extend({ node: nodeText }),
    answer: itemDetailSchema,
  },
  async ({ params: { name, node } }, services) => {
    const { files, ledger } = services
    const row = await folderPairRow(services, name)
    const found = await browsedNode(ledger, name, node)
    if (!found) throw unknown(node)
    const parent =
      found.local?.parentId == null ? undefined : await files.store.localRow(name, found.local.parentId)
    const { mode } = folderPairSettings.parse(JSON.parse(row.settings))
    const { base } = found
    return {
      ...treeItem(found, { mode, localParentId: parent?.itemId ?? undefined }),
      path: await files.store.pathOfNode(name, node),
      agreed: base ? { name: base.name, size: base.type === 'folder' ? 0 : base.size } : null,
    }
  },
)

function unknown(node: string) {
  return notFound(`Neither side has anything called ${node}.`, {
    code: 'item-unknown',
    hint: 'It may have been moved or deleted since. Load the folder again.',
  })
}

export const treeRoutes = [listChildren, showItem]
