/** What was deleted or replaced in the folder: it lies in the folder's own trash for a while, and comes back from there. */
import { z } from 'zod'
import { readCursor, writeCursor } from '../../../app/inputs.ts'
import { conflict, notFound } from '../../../app/problem.ts'
import { cursorQuery, done, doneSchema, pageOf } from '../../../app/schemas.ts'
import { streamOf } from '../folder-pair.ts'
import { originalNames } from '../local/trash.ts'
import { listTrash, restore } from '../local/trash-bin.ts'
import { unsafeNameOf } from '../names.ts'
import { folderPairRow, folderParams, lookedInto, rootOf } from './inputs.ts'
import { route } from './route.ts'
import { trashEntrySchema } from './schemas.ts'

const DAY = /^\d{4}-\d\d-\d\d(?:\.\d{1,3})?$/
const DEPTH_MAX = 1_000
const ID_LENGTH_MAX = 20_000

/** Below the trash, the day first: no name leads elsewhere. */
const namesSchema = z
  .array(z.string().refine((name) => unsafeNameOf(name) === undefined))
  .min(2)
  .max(DEPTH_MAX)
  .refine(([day]) => DAY.test(day!))

const listTrashed = route('GET /api/files/folders/{name}/trash', {
  summary: 'Files that were deleted or replaced in the folder, oldest day first',
  description: '409: the folder is on another machine, or not there.',
  errors: [409],
  params: folderParams,
  query: z.object(cursorQuery),
  answer: pageOf(trashEntrySchema),
  handle: async ({ params: { name }, query: { cursor, limit }, user }, services) => {
    const root = rootOf(await lookedInto(services, user, { name, what: 'listed trash' }))
    const from = readCursor(cursor) ?? 0
    const items: z.input<typeof trashEntrySchema>[] = []
    let at = 0
    for (const { names, origin, day, bytes } of listTrash(root)) {
      at += 1
      if (at <= from) continue
      if (items.length === limit) return { items, next: writeCursor(from + limit) }
      items.push({ id: writeCursor(names), path: origin.join('/'), day, bytes })
    }
    return { items, next: null }
  },
})

const restoreTrashed = route('POST /api/files/folders/{name}/trash/restore', {
  summary: 'Puts a file back to where it was; folders on the way are made',
  description: '409: something has its place.',
  errors: [409],
  params: folderParams,
  body: z.strictObject({
    id: z.string().min(1).max(ID_LENGTH_MAX).describe('The `id` of an entry of the trash'),
  }),
  answer: doneSchema,
  handle: async ({ params: { name }, body: { id } }, services) => {
    const row = await folderPairRow(services, name)
    const names = namesSchema.safeParse(parsedNames(id))
    if (!names.success) throw notFound('The trash has no such entry.', { code: 'trash-unknown' })
    const origin = originalNames(names.data)
    const shown = origin.join('/')
    const outcome = restore(rootOf(row), { names: names.data })
    if (outcome === 'gone') {
      throw notFound(`${shown} is not in the trash any more.`, { code: 'trash-unknown' })
    }
    if (outcome === 'taken') {
      throw conflict(`Something else is called ${shown} now. Nothing was changed.`, {
        code: 'place-taken',
        hint: 'Rename or move that first.',
      })
    }
    const { engine, files } = services
    // All of it: folders on the way may be new.
    await engine.enqueue(files.kinds.look, { drive: name }, { stream: streamOf(name) })
    return done(`${shown} is back.`)
  },
})

function parsedNames(id: string): unknown {
  try {
    return JSON.parse(Buffer.from(id, 'base64url').toString())
  } catch {
    return undefined
  }
}

export const trashRoutes = [listTrashed, restoreTrashed]
