/** What was done, newest first: the settled actions of a folder, as long as the ledger keeps them. */
import { z } from 'zod'
import { readCursor } from '../../../app/inputs.ts'
import { searchJobs } from '../../../app/job-search.ts'
import { cursorQuery, pageOf } from '../../../app/schemas.ts'
import { redactText } from '../../../base/redaction.ts'
import { errorText, parsedJson } from '../../../engine/observe/job-texts.ts'
import type { JobRow } from '../../../ledger/contract.ts'
import { type ActionPayload, actionPayload, LEFT_ALONE_CODE } from '../action.ts'
import { isComparison } from '../decide.ts'
import { streamOf } from '../folder-pair.ts'
import { folderParams, lookedInto } from './inputs.ts'
import { route } from './route.ts'
import { type ActionView, actionSchema } from './schemas.ts'

/** Looks and plans stand between the actions: a page is looked for in this many goes at most. */
const GOES_MAX = 5
const KINDS: ReadonlySet<string> = new Set(['files.check', 'files.download', 'files.upload', 'files.change'])

const RESULTS: Partial<Record<JobRow['state'], ActionView['result']>> = {
  done: 'done',
  skipped: 'not needed',
  failed: 'failed',
  canceled: 'canceled',
}

const TEXTS: Record<string, string> = {
  check: 'Compared',
  upload: 'Uploaded',
  download: 'Downloaded',
  'mkdir-local': 'Folder made here',
  'mkdir-remote': 'Folder made in OneDrive',
  'move-local': 'Moved here',
  'move-remote': 'Moved in OneDrive',
  'delete-local': 'Deleted here',
  'delete-remote': 'Deleted in OneDrive',
  conflict: 'Conflict',
}

const listHistory = route('GET /api/files/folders/{name}/history', {
  summary: 'What was done, newest first',
  description: 'A page may hold fewer than asked for; there are more as long as it has a `next`.',
  params: folderParams,
  query: z.object(cursorQuery),
  answer: pageOf(actionSchema),
  handle: async ({ params: { name }, query: { cursor, limit }, user }, services) => {
    await lookedInto(services, user, { name, what: 'read history' })
    const items: ActionView[] = []
    let before: number | null | undefined = readCursor(cursor)
    for (let go = 0; go < GOES_MAX && items.length < limit && before !== null; go++) {
      const filter = { stream: streamOf(name), ...(before === undefined ? {} : { before }) }
      const { rows, next } = await searchJobs(services, filter, limit)
      before = next
      for (const row of rows) {
        const action = actionView(row)
        if (action) items.push(action)
        if (items.length === limit) {
          before = row.id
          break
        }
      }
    }
    return { items, next: before == null ? null : String(before) }
  },
})

export function actionView(row: JobRow): ActionView | undefined {
  const result = RESULTS[row.state]
  if (!KINDS.has(row.kind) || result === undefined || row.settled_at === null) return undefined
  const parsed = actionPayload.safeParse(parsedJson(row.payload))
  if (!parsed.success) return undefined
  const { verb: planned, row: rule, path, bytes }: ActionPayload = parsed.data
  // What differs after all is among the conflicts.
  const isCompared = planned === 'conflict' && isComparison({ do: 'conflict', row: rule })
  const verb = isCompared ? 'check' : planned
  const note = row.note ?? errorText(row.error)
  // It could not be done, and is tried again later.
  const isLeft = result === 'not needed' && row.note_code === LEFT_ALONE_CODE
  return {
    id: row.id,
    verb,
    text: TEXTS[verb] ?? verb,
    path,
    row: rule,
    bytes,
    at: row.settled_at,
    result: isLeft ? 'failed' : result,
    note: note === undefined ? null : redactText(note),
  }
}

export const historyRoutes = [listHistory]
