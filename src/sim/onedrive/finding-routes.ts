/** Ways to an item other than its folder: search, special folders, what changed last. */
import { jsonAnswer, type SimAnswer } from '../server.ts'
import { invalid } from './errors.ts'
import { type Item, itemPath, subtree } from './item.ts'
import { pageOf } from './listing.ts'
import { type GraphContext, type GraphRoutes, itemOf, show, specialFolders } from './route.ts'

const RECENT_ROWS = 25

export const findingRoutes: GraphRoutes = {
  'GET drive/search': {
    name: 'graph.search',
    need: 'read',
    options: ['select', 'top', 'skiptoken'],
    run: search,
  },
  'GET item/search': {
    name: 'graph.search',
    need: 'read',
    options: ['select', 'top', 'skiptoken'],
    run: search,
  },
  'GET drive/special': { name: 'graph.special.list', need: 'read', run: listSpecial },
  'GET drive/recent': { name: 'graph.recent', need: 'read', options: ['select', 'top'], run: recent },
  'GET item/thumbnails': { name: 'graph.thumbnails', need: 'read', run: thumbnails },
}

/** By name: every word of the question is somewhere in it. Contents are not searched. */
function search(context: GraphContext): SimAnswer {
  const from = itemOf(context)
  const question = context.address.argument?.trim()
  if (!question) throw invalid('The search has no text.')
  const words = question.normalize('NFC').toLowerCase().split(/\s+/)
  const found = [...subtree(from)].filter(
    (item) => item !== from && words.every((word) => item.key.includes(word)),
  )
  const order = { value: itemPath, isDescending: false }
  return pageOf(context, found, {
    order,
    row: (item) => ({ ...show(context, item), searchResult: {} }),
  })
}

function listSpecial(context: GraphContext): SimAnswer {
  return jsonAnswer({ value: specialFolders(context.drive).map((item) => show(context, item)) })
}

function recent(context: GraphContext): SimAnswer {
  const files = [...context.drive.items()].filter(({ kind }) => kind === 'file')
  const newest = files.sort((a: Item, b: Item) => b.modifiedMs - a.modifiedMs).slice(0, RECENT_ROWS)
  return jsonAnswer({ value: newest.map((item) => show(context, item)) })
}

function thumbnails(context: GraphContext): SimAnswer {
  itemOf(context)
  return jsonAnswer({ value: [] })
}
