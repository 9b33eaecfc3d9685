/** Conflicts: what they are, both versions side by side, and deciding. */
import { z } from 'zod'
import { pageOfRows, readCursor } from '../../../app/inputs.ts'
import { notFound } from '../../../app/problem.ts'
import { already, cursorQuery, done, doneSchema, pageOf } from '../../../app/schemas.ts'
import type { RequestUser } from '../../../app/user.ts'
import { conflictById, conflictPage } from '../store/browse.ts'
import { resolveConflict } from '../store/conflicts.ts'
import type { ConflictRow, FolderPairRow } from '../store/contract.ts'
import { conflictImage, conflictSide } from './conflict-sides.ts'
import { askForPlan, conflictParams, folderParams, lookedInto } from './inputs.ts'
import type { FilesServices } from './route.ts'
import { download, route } from './route.ts'
import { type ConflictView, conflictDetailSchema, conflictSchema } from './schemas.ts'

const listConflicts = route('GET /api/files/folders/{name}/conflicts', {
  summary: 'Conflicts, newest first',
  params: folderParams,
  query: z.object({
    ...cursorQuery,
    state: z
      .enum(['open', 'settled'])
      .optional()
      .describe('`open`: nobody has decided yet. `settled`: all others'),
  }),
  answer: pageOf(conflictSchema),
  handle: async ({ params: { name }, query: { state, limit, cursor }, user }, services) => {
    await lookedInto(services, user, { name, what: 'listed conflicts' })
    const rows = await conflictPage(services.ledger, name, {
      state,
      before: readCursor(cursor),
      limit: limit + 1,
    })
    return pageOfRows(rows, { limit, view: conflictView, cursor: ({ id }) => id })
  },
})

function conflictView({ node: _, localHash: __, remoteHash: ___, ...view }: ConflictRow): ConflictView {
  return view
}

const showConflict = route('GET /api/files/folders/{name}/conflicts/{id}', {
  summary: 'One conflict, with what can be shown of both versions',
  params: conflictParams,
  answer: conflictDetailSchema,
  handle: async ({ params, user, signal }, services) => {
    const { row, conflict } = await conflictOf(services, user, params)
    return {
      ...conflictView(conflict),
      here: await conflictSide(services, { row, conflict, side: 'here', signal }),
      there: await conflictSide(services, { row, conflict, side: 'there', signal }),
      canResolve: conflict.state === 'open',
      outcome: outcomeText(conflict),
    }
  },
})

/** Were a browser to open the picture by itself, it must not act on it. */
const IMAGE_POLICY = { 'content-security-policy': "default-src 'none'; sandbox" }

const showImage = download('GET /api/files/folders/{name}/conflicts/{id}/image', {
  contentType: 'image/png',
  moreTypes: ['image/jpeg', 'image/gif', 'image/webp'],
  summary: 'The picture that a version is: PNG, JPEG, GIF or WebP by its bytes, and nothing else',
  errors: [409],
  params: conflictParams,
  query: z.object({
    side: z
      .enum(['here', 'there'])
      .default('here')
      .describe('Of the version in the folder, or of that in OneDrive'),
  }),
  handle: async ({ params, query: { side }, user, signal }, services) => {
    const { row, conflict } = await conflictOf(services, user, params)
    const { bytes, type } = await conflictImage(services, { row, conflict, side, signal })
    return { bytes, contentType: type, headers: IMAGE_POLICY }
  },
})

const STATES = { both: 'kept-both', local: 'kept-local', remote: 'kept-remote' } as const

/** Also where the version that gives way can be found: both are always kept somewhere. */
function outcomeText({
  state,
  kind,
  copyPath,
}: Pick<ConflictRow, 'state' | 'kind' | 'copyPath'>): string | null {
  switch (state) {
    case 'open':
      return null
    case 'kept-both':
      return `Both versions are kept: that of the folder ${copyPath === null ? 'under another name' : `as ${copyPath}`}.`
    case 'kept-local':
      return kind === 'edit-delete'
        ? 'The version of the folder is kept; OneDrive had deleted the other.'
        : 'The version of the folder is kept; that of OneDrive goes to the trash of the folder.'
    case 'kept-remote':
      return 'The version of OneDrive is kept; that of the folder goes to the trash of the folder.'
    case 'dismissed':
      return 'Nothing is left to decide: both sides agreed by themselves, or it ended in another way.'
  }
}

const resolve = route('POST /api/files/folders/{name}/conflicts/{id}/resolve', {
  status: 202,
  summary: 'Decides a conflict; nothing is lost, whatever is chosen',
  description: '`already`: it has been decided before.',
  params: conflictParams,
  body: z.strictObject({
    keep: z
      .enum(['both', 'local', 'remote'])
      .describe('Both under two names, only that of the folder, or only that of OneDrive'),
  }),
  answer: doneSchema,
  handle: async ({ params, body: { keep }, user }, services) => {
    const { conflict } = await conflictOf(services, user, params)
    const { files, clock } = services
    const node = await files.store.write((tx) =>
      resolveConflict(tx, params.name, { id: params.id, state: STATES[keep], atMs: clock.now() }),
    )
    if (node === undefined) {
      return already(`The conflict about ${conflict.path} is decided already.`)
    }
    await askForPlan(services, params.name)
    return done(`${conflict.path}: ${outcomeText({ ...conflict, state: STATES[keep] })}`)
  },
})

async function conflictOf(
  services: FilesServices,
  user: RequestUser,
  { name, id }: { name: string; id: number },
): Promise<{ row: FolderPairRow; conflict: ConflictRow }> {
  const row = await lookedInto(services, user, { name, what: `read conflict ${id}` })
  const conflict = await conflictById(services.ledger, name, id)
  if (conflict) return { row, conflict }
  throw notFound(`There is no conflict ${id} of ${name}.`, { code: 'conflict-unknown' })
}

export const conflictRoutes = [listConflicts, showConflict, showImage, resolve]
