/**
 * One version of one file: fetched by whoever may, read, and published with all who may see it. Where one account is
 * refused, another one tries. A file that nobody is given is published by its name, with the reason.
 */
import { createHash } from 'node:crypto'
import { asTidemarkError, type TidemarkError } from '../../base/errors.ts'
import type { Outcome, RunContext } from '../../engine/index.ts'
import { readContent } from '../../search/content.ts'
import { accountOf, type DriveAccount } from './account.ts'
import type { DriveKinds, FilePayload } from './kinds.ts'
import { looksBy } from './looks.ts'
import { isLastTry, pastObstacles } from './obstacles.ts'
import { type ExportFormat, exportsOf, type Unread, unreadOf } from './plan.ts'
import { publishReading, type Reading } from './store/documents.ts'
import type { FileRow } from './store/file-row.ts'

/** Accounts that are asked for one file. */
const READERS_MAX = 5
/** Google exports no more. */
const EXPORT_BYTES_MAX = 10 * 1024 * 1024

export async function runFile(kinds: DriveKinds, job: RunContext<FilePayload>): Promise<Outcome> {
  const { file, version } = job.payload
  const row = await kinds.tables.file(file)
  if (!row) return { gone: 1, note: 'nobody can see it any more', code: 'gone' }
  // A newer version has a job of its own; this one may be that of an older look.
  if (row.version !== version) return { skipped: 1, note: 'there is a newer version', code: 'newer' }
  if (row.state === 'indexed' && row.read_version === version) return { note: 'as it was', code: 'known' }
  return pastObstacles(kinds, job, accountOf(job.stream ?? ''), async () => {
    try {
      return await published(kinds, row, await readFile(kinds, job, row))
    } catch (thrown) {
      const error = asTidemarkError(thrown)
      const isFinal = error.kind === 'permanent' || (error.kind === 'transient' && isLastTry(job))
      if (job.signal.aborted || !isFinal) throw thrown
      if (error.kind === 'transient' && (await isOutage(kinds, job))) throw thrown
      const unread = { code: error.code ?? 'failed', reason: error.message }
      const outcome = await published(kinds, row, { version, unread, hasFailed: true })
      return { ...outcome, skipped: 0, bad: [{ item: file, reason: error.message, errorKind: error.kind }] }
    }
  })
}

async function isOutage(kinds: DriveKinds, job: RunContext<FilePayload>): Promise<boolean> {
  try {
    const { client } = await kinds.accounts.get(accountOf(job.stream ?? ''))
    await client.about({ signal: job.signal })
    return false
  } catch (thrown) {
    return asTidemarkError(thrown).kind === 'transient'
  }
}

async function published(kinds: DriveKinds, row: FileRow, reading: Reading): Promise<Outcome> {
  const index = await kinds.index()
  return {
    jobs: await looksBy(kinds, await kinds.tables.unconfirmed([row.id])),
    effects: async (tx) => {
      await publishReading(tx, index, row.id, reading)
    },
    ...('unread' in reading ? { skipped: 1, note: reading.unread.reason, code: codeOf(reading.unread) } : {}),
  }
}

/** Codes of jobs are in kebab-case; Google's are not. */
function codeOf({ code }: Unread): string {
  return code.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

async function readFile(kinds: DriveKinds, job: RunContext<FilePayload>, row: FileRow): Promise<Reading> {
  const { version } = row
  const about = { name: row.name, mimeType: row.mime_type, sizeBytes: sizeOf(row) }
  const unreadable = unreadOf(about, kinds.settings)
  if (unreadable) return { version, unread: unreadable }
  const own = accountOf(job.stream ?? '')
  let refused: Unread | undefined
  let signIn: TidemarkError | undefined
  let isSomebodyOut = false
  for (const { account } of await kinds.tables.readers(row.id, READERS_MAX)) {
    try {
      return { version, ...(await readAs(kinds, await kinds.accounts.get(account), row, job.signal)) }
    } catch (thrown) {
      const error = asTidemarkError(thrown)
      // Somebody else may be let in where this one is not; what is wrong with the whole service is wrong for all.
      if (!['gone', 'permanent', 'auth'].includes(error.kind) || job.signal.aborted) throw thrown
      if (error.kind !== 'auth') refused ??= { code: error.code ?? 'forbidden', reason: error.message }
      else if (account === own) signIn = error
      else isSomebodyOut = true
    }
  }
  // It is read when the account is connected again: until then its stream is paused.
  if (signIn) throw signIn
  // The sign-in of somebody else must not pause this stream, nor does it say anything about the document.
  const unread = refused ?? NO_READER
  return { version, unread, isForNow: isSomebodyOut }
}

const NO_READER: Unread = {
  code: 'no-reader',
  reason: 'no account that is signed in may read it just now',
}

function sizeOf({ size_bytes }: FileRow): number | null {
  return size_bytes === null ? null : Number(size_bytes)
}

type Read = { content: NonNullable<Awaited<ReturnType<typeof readContent>>['content']> } | { unread: Unread }

async function readAs(
  { index, extractor, settings }: DriveKinds,
  { client }: DriveAccount,
  row: FileRow,
  signal: AbortSignal,
): Promise<Read> {
  const { id, name, mime_type: mimeType } = row
  const resourceKey = row.resource_key ?? undefined
  const place = { writer: await index(), extractor }
  const formats = exportsOf(mimeType)
  const found = formats
    ? await readContent(place, await exported(formats), signal)
    : row.sha256 === null
      ? await readContent(place, bytesRead(await download(), { title: name, name, mimeType }), signal)
      : await readContent(
          place,
          { title: name, hash: `sha256:${row.sha256}`, bytes: download, name, mimeType },
          signal,
        )
  if (found.content) return { content: found.content }
  return { unread: found.unread ?? { code: 'empty', reason: 'there is no text in it' } }

  async function exported([format, ...smaller]: readonly ExportFormat[]): Promise<
    ReturnType<typeof bytesRead<{ title: string; name: string; mimeType: string }>>
  > {
    const { mimeType: type, extension } = format!
    const options = { bytesMax: EXPORT_BYTES_MAX, resourceKey, signal }
    try {
      const bytes = await client.export(id, type, options)
      return bytesRead(bytes, { title: name, name: `${name}.${extension}`, mimeType: type })
    } catch (thrown) {
      if (smaller.length === 0 || asTidemarkError(thrown).code !== 'exportSizeLimitExceeded') throw thrown
      return exported(smaller)
    }
  }

  function download(): Promise<Uint8Array> {
    const [md5, sha256] = [row.md5 ?? undefined, row.sha256 ?? undefined]
    return client.download(id, { bytesMax: settings.documentBytesMax, resourceKey, md5, sha256, signal })
  }
}

/**
 * Known by its bytes where Google tells no SHA-256. By MD5 nobody's content is taken for another's: whoever wants to
 * makes two files that have the same.
 */
function bytesRead<About extends object>(
  bytes: Uint8Array,
  about: About,
): About & { hash: string; bytes: () => Promise<Uint8Array> } {
  const hash = `sha256:${createHash('sha256').update(bytes).digest('hex')}`
  return { ...about, hash, bytes: async () => bytes }
}
