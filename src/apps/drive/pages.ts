/** What a page of a listing, or of changes, becomes: which of its files must be read, and which are as they were. */
import type { DriveFile } from '../../cloud/drive/client.ts'
import { type JobRequest, request } from '../../engine/index.ts'
import type { DriveKinds } from './kinds.ts'
import { type Listed, listedOf, mayAnotherRead } from './plan.ts'
import type { FileRow } from './store/file-row.ts'
import { DOMAIN } from './store/schema.ts'
import type { FeedRow } from './store/tables.ts'

/** What of `client.list` a feed is. */
export function corpusOf({ drive }: Pick<FeedRow, 'drive'>): {
  driveId: string | undefined
  inDomain: boolean
} {
  return { driveId: drive === '' || drive === DOMAIN ? undefined : drive, inDomain: drive === DOMAIN }
}

export type FoundPage = {
  listed: Listed[]
  /** Of documents; folders are none. */
  count: number
  jobs: JobRequest[]
}

/**
 * `segment`: to which the jobs belong. `askedAtMs`: before Google was asked for any of the files. `nowMs`: right after it
 * answered.
 */
export async function readPage(
  kinds: DriveKinds,
  feed: Pick<FeedRow, 'account' | 'drive' | 'name'>,
  files: readonly DriveFile[],
  { segment, askedAtMs, nowMs }: { segment: number | string; askedAtMs: number; nowMs: number },
): Promise<FoundPage> {
  const { driveId } = corpusOf(feed)
  const drive = driveId === undefined ? undefined : { id: driveId, name: feed.name }
  const by = { account: feed.account, askedAtMs, nowMs, drive }
  const listed = [
    ...new Map(files.filter(({ trashed }) => !trashed).map((file) => [file.id, listedOf(file, by)])).values(),
  ]
  const documents = listed.filter(({ isFolder }) => !isFolder)
  const known = await kinds.tables.files(documents.map(({ id }) => id))
  const wanted = documents.filter((one) => mustRead(one, known.get(one.id)))
  return {
    listed,
    count: documents.length,
    jobs: wanted.map(({ id, version, sizeBytes }) =>
      request(
        kinds.file,
        { file: id, version },
        { segment, ...(sizeBytes === null ? {} : { size: sizeBytes }) },
      ),
    ),
  }
}

/** Only a grant is needed of one that was read as it is now. Asking for one that is on its way changes nothing. */
function mustRead(one: Listed, row: FileRow | undefined): boolean {
  if (!row || row.state === 'waiting') return true
  if (row.version !== one.version) return one.serial >= Number(row.serial)
  return row.state === 'skipped' && one.canDownload && mayAnotherRead(row.code)
}
