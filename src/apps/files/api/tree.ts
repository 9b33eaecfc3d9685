/** The tree: what a folder holds on both sides, and one item with everything that is known of it. */
import { z } from 'zod'
import { pageOfRows, readJsonCursor } from '../../../app/inputs.ts'
import { notFound } from '../../../app/problem.ts'
import { cursorQuery, pageOf } from '../../../app/schemas.ts'
import { folderPairSettings } from '../folder-pair.ts'
import { type BrowsedNode, browsedChildren, browsedFolder, browsedNode } from '../store/browse.ts'
import { folderParams, lookedInto, nodeText } from './inputs.ts'
import { route } from './route.ts'
import { itemDetailSchema, treeItemSchema } from './schemas.ts'
import { treeItem } from './tree-view.ts'

const placeSchema = z.object({ rank: z.int(), key: z.string().max(1_000), node: z.string().max(500) })

const listChildren = route('GET /api/files/folders/{name}/tree', {
  summary: 'What a folder holds, on either side: folders first, then by name',
  params: folderParams,
  query: z.object({
    ...cursorQuery,
    folder: nodeText.optional().describe('The `node` of the folder; the top of the tree if left out'),
  }),
  answer: pageOf(treeItemSchema).extend({ path: z.string().describe('Of the folder; empty at the top') }),
  handle: async ({ params: { name }, query: { folder: node, cursor, limit }, user }, services) => {
    const { ledger } = services
    const row = await lookedInto(services, user, { name, what: `listed ${node ?? 'the top'}` })
    const folder = await browsedFolder(ledger, row, node)
    if (!folder) throw unknown(node ?? '')
    const after = readJsonCursor(cursor, placeSchema)
    const found = await browsedChildren(ledger, name, folder, { after, limit: limit + 1 })
    const { mode } = folderPairSettings.parse(JSON.parse(row.settings))
    const view = (one: BrowsedNode) => treeItem(one, { mode, localParentId: folder.itemId ?? undefined })
    return { path: folder.path, ...pageOfRows(found, { limit, view, cursor: ({ place }) => place }) }
  },
})

const showItem = route('GET /api/files/folders/{name}/items/{node}', {
  summary: 'One item: how it is on each side, and what both last agreed on',
  params: folderParams.extend({ node: nodeText }),
  answer: itemDetailSchema,
  handle: async ({ params: { name, node }, user }, services) => {
    const { files, ledger } = services
    const row = await lookedInto(services, user, { name, what: `read item ${node}` })
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
})

function unknown(node: string) {
  return notFound(`Neither side has anything called ${node}.`, {
    code: 'item-unknown',
    hint: 'It may have been moved or deleted since. Load the folder again.',
  })
}

export const treeRoutes = [listChildren, showItem]
