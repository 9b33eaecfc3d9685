/** `$expand`: an item together with what belongs to it. */
import { GraphError, graphFault } from './errors.ts'
import { type Item, sortedChildren } from './item.ts'
import type { ItemJson, ShowOptions } from './item-json.ts'
import { childrenLink, PAGE_ROWS } from './listing.ts'
import { type Expansion, expansionsOf, notExpandable } from './query-options.ts'
import { type GraphContext, selected, show } from './route.ts'
import { permissionsOf } from './sharing-routes.ts'

export function showExpanded(context: GraphContext, item: Item, options: ShowOptions = {}): ItemJson {
  const json = show(context, item, options)
  for (const expansion of expansionsOf(context.call.query)) {
    Object.assign(json, expanded(context, item, { ...options, expansion }))
  }
  return json
}

function expanded(
  context: GraphContext,
  item: Item,
  { expansion, isRow }: ShowOptions & { expansion: Expansion },
): ItemJson {
  switch (expansion.name) {
    case 'children':
      if (item.children) return childrenOf(context, item, expansion)
      if (isRow) return {}
      throw new GraphError(
        graphFault(422, {
          code: 'notSupported',
          innerCode: 'unprocessableEntity',
          message: 'Children cannot be listed from an item that is not a folder',
        }),
      )
    case 'thumbnails':
      return { thumbnails: [] }
    case 'permissions':
      return { permissions: permissionsOf(context, item) }
    default:
      throw notExpandable(expansion.name)
  }
}

/** The first page of them; the rest is where the link leads. */
function childrenOf(context: GraphContext, folder: Item, { select }: Expansion): ItemJson {
  const all = sortedChildren(folder)
  const page = all.slice(0, PAGE_ROWS)
  // What is selected of the folder says nothing of what is in it.
  const within = { ...context, call: { ...context.call, query: new URLSearchParams() } }
  const children = page.map((item) => {
    const json = show(within, item, { isRow: true })
    return select === undefined ? json : selected(json, select)
  })
  if (page.length === all.length) return { children }
  return { children, 'children@odata.nextLink': childrenLink(context, folder, page.at(-1)!) }
}
