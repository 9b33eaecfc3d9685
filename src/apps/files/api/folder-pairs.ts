/** The folders that are kept in step: how each stands, and looking at both sides now. */
import { z } from 'zod'
import { readCacheOf } from '../../../app/ledger-read-cache.ts'
import { conflict } from '../../../app/problem.ts'
import { doneSchema, pageOf } from '../../../app/schemas.ts'
import { asTidemarkError } from '../../../base/errors.ts'
import { folderPairSettings, SERVICE, streamOf } from '../folder-pair.ts'
import { removeFolderPair } from '../folder-removal.ts'
import { markerOf } from '../new-folder.ts'
import { fileStatus } from '../status.ts'
import type { FolderPairRow } from '../store/contract.ts'
import {
  elsewhere,
  folderPairParams,
  folderPairRow,
  isHere,
  longCursorQuery,
  readJsonCursor,
  writeCursor,
} from './inputs.ts'
import type { FilesServices } from './route.ts'
import { defineRoute } from './route.ts'
import { type FolderPairView, folderPairSchema, reportedSchema } from './schemas.ts'

const about = { tag: 'files', access: 'read' } as const

const listFolderPairs = defineRoute(
  {
    ...{ ...about, method: 'get', path: '/api/files/drives', etag: true },
    summary: 'The folders that are kept in step with OneDrive',
    answer: z.object({ items: z.array(folderPairSchema) }),
  },
  async (_input, services) => ({ items: await readFolderPairs(services) }),
)

const showFolderPair = defineRoute(
  {
    ...{ ...about, method: 'get', path: '/api/files/drives/{name}' },
    summary: 'One of them',
    params: folderPairParams,
    answer: folderPairSchema,
  },
  async ({ params: { name } }, services) => folderPairView(services, await folderPairRow(services, name)),
)

/** Those who ask at the same time share one look. */
export function readFolderPairs(services: FilesServices): Promise<FolderPairView[]> {
  const { ledger, clock, files } = services
  return readCacheOf(ledger).read('files drives', clock, async () => {
    const views: FolderPairView[] = []
    for (const row of await files.store.folderPairs()) views.push(await folderPairView(services, row))
    return views
  })
}

async function folderPairView({ ledger, files }: FilesServices, row: FolderPairRow): Promise<FolderPairView> {
  const {
    totals,
    reported: _,
    mode: __,
    waits: ___,
    isFull: ____,
    stoppedSinceMs: _____,
    isLooking: ______,
    ...status
  } = await fileStatus({ store: files.store, ledger }, row.name)
  const { mode, conflicts: policy } = folderPairSettings.parse(JSON.parse(row.settings))
  return { ...status, ...totals, mode, policy, stream: streamOf(row.name), isHere: isHere(row) }
}

const listReported = defineRoute(
  {
    ...{ ...about, method: 'get', path: '/api/files/drives/{name}/reported' },
    summary: 'What is left alone, each with its reason',
    params: folderPairParams,
    query: z.object(longCursorQuery),
    answer: pageOf(reportedSchema),
  },
  async ({ params: { name }, query: { limit, cursor } }, services) => {
    await folderPairRow(services, name)
    const after = readJsonCursor(cursor, z.string())
    const rows = await services.files.store.reported(name, { after, limit: limit + 1 })
    const items = rows.slice(0, limit)
    return { items, next: rows.length > limit ? writeCursor(items.at(-1)!.node) : null }
  },
)

const syncNow = defineRoute(
  {
    ...{ method: 'post', path: '/api/files/drives/{name}/sync', tag: 'files', access: 'write', status: 202 },
    summary: 'Looks at both sides now, instead of when their time comes',
    description: '`already`: that is under way. 409: its account has to sign in again.',
    errors: [409],
    params: folderPairParams,
    answer: doneSchema,
  },
  async ({ params: { name } }, services) => {
    const { account } = await folderPairRow(services, name)
    const known = await services.accounts.find(SERVICE, account)
    if (known?.state !== 'ready') {
      throw conflict(`The account ${account} has to sign in again first.`, {
        code: 'sign-in-needed',
        hint: 'Connect it again on the page of settings.',
      })
    }
    const { engine, files, ledger } = services
    const stream = streamOf(name)
    // Whoever asks may have put right what was in the way.
    files.kinds.obstacles.roomMade(name)
    await ledger.wakeStream(stream)
    const { outcome } = await engine.enqueue(files.kinds.sync, { drive: name }, { stream })
    readCacheOf(ledger).forget()
    const pauses = await ledger.pauses()
    const isPaused = pauses.some(({ scope, target }) => scope === 'all' || target === stream)
    const held = isPaused ? ' It is paused, so that waits.' : ''
    return outcome === 'ignored'
      ? { outcome: 'already' as const, text: `A look at both sides of ${name} is under way already.${held}` }
      : { outcome: 'done' as const, text: `Looking at both sides of ${name}.${held}` }
  },
)

const removeFolder = defineRoute(
  {
    ...{ method: 'delete', path: '/api/files/drives/{name}', tag: 'files', access: 'write' },
    summary: 'Stops keeping a folder in step; the files stay as they are, on both sides',
    description:
      'What is under way is stopped first. 409: the folder is on another machine. 503: that does not end; nothing was removed.',
    errors: [409, 503],
    params: folderPairParams,
    answer: doneSchema,
  },
  async ({ params: { name } }, services) => {
    const row = await folderPairRow(services, name)
    if (!isHere(row)) throw elsewhere(row)
    const { unmarked } = await removeFolderPair(services, row, services.clock)
    readCacheOf(services.ledger).forget()
    const marker =
      unmarked === undefined
        ? ''
        : ` Its marker could not be deleted (${asTidemarkError(unmarked).message}): delete ${markerOf(row.root)} before you add it again.`
    return {
      outcome: 'done' as const,
      text: `${name} is not kept in step any more. ${row.root} and OneDrive stay as they are.${marker}`,
    }
  },
)

export const folderPairRoutes = [listFolderPairs, showFolderPair, listReported, syncNow, removeFolder]
