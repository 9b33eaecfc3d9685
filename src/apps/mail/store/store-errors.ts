/**
 * What goes wrong with an archive's files, in the words of the user. Troubles of the files are transient: no message
 * is to blame, work waits until they are put right.
 */
import { TidemarkError, UsageError } from '../../../base/errors.ts'

const SQLITE_BUSY = 5
const SQLITE_READONLY = 8
const SQLITE_IOERR = 10
const SQLITE_CORRUPT = 11
const SQLITE_FULL = 13
const SQLITE_CANTOPEN = 14
const SQLITE_NOTADB = 26
const UNWRITABLE = ['EACCES', 'EPERM', 'EROFS', 'EEXIST', 'ENOTDIR', 'ENOENT', 'EISDIR', 'ENAMETOOLONG']

const REPAIR_HINT = 'Run `tidemark mail verify --repair`: what was in it is fetched again.'

export function shardMissing(name: string, file: string, cause?: unknown): TidemarkError {
  return trouble(`The archive's file ${name}.db is missing: it should be at ${file}.`, 'shard-missing', {
    hint: `Put it back from a backup, if there is one. ${REPAIR_HINT}`,
    cause,
  })
}

export function shardCorrupt(name: string, file: string, why: string, cause?: unknown): TidemarkError {
  return trouble(`The archive's file ${name}.db is damaged (${why}): ${file}.`, 'shard-corrupt', {
    hint: REPAIR_HINT,
    cause,
  })
}

export function shardForeign(file: string, why: string): TidemarkError {
  return trouble(`${file} does not belong to this archive: ${why}.`, 'shard-foreign', {
    hint: 'Move it somewhere else. Nothing was written to it.',
  })
}

export function shardNewer(file: string, format: string): TidemarkError {
  return trouble(`${file} was written by a newer version of Tidemark (format ${format}).`, 'shard-newer', {
    hint: 'Update Tidemark. Nothing was written to it.',
  })
}

export function archiveForeign(folder: string, why: string): UsageError {
  return new UsageError(`${folder} holds another archive: ${why}.`, {
    code: 'archive-foreign',
    hint: 'If the ledger that knew it was lost, tidemark mail recover takes it over; otherwise move it away. Nothing was written to it.',
  })
}

export function archiveMissing(folder: string, why: string): TidemarkError {
  return trouble(`The mail archive at ${folder} is missing: ${why}.`, 'archive-missing', {
    hint: 'Mount the disk it is on, or put it back from a backup. If it is lost or damaged: tidemark mail recover.',
  })
}

export function archiveNewer(folder: string, format: unknown): UsageError {
  return new UsageError(
    `The mail archive at ${folder} was written by a newer version of Tidemark (format ${String(format)}).`,
    { code: 'archive-newer', hint: 'Update Tidemark. Nothing was written to it.' },
  )
}

export function archiveClosed(folder: string): TidemarkError {
  return trouble(`The mail archive at ${folder} is closed.`, 'archive-closed', {})
}

export function messageAbsent(id: string): TidemarkError {
  return new TidemarkError(`The archive has no message ${id}.`, { kind: 'gone', code: 'message-absent' })
}

export function bytesMismatch(id: string, why: string): TidemarkError {
  return new TidemarkError(`The stored bytes of message ${id} are not what they were: ${why}.`, {
    kind: 'permanent',
    code: 'bytes-mismatch',
    hint: 'Run `tidemark mail verify --repair`: it is fetched again.',
  })
}

/** The content of a large attachment, which lies in a file of its own, cannot be had. */
export function contentUnreadable(sha256: string, why: string): TidemarkError {
  return trouble(
    `The attachment content ${sha256.slice(0, 16)}… cannot be read: ${why}.`,
    'content-unreadable',
    {
      hint: REPAIR_HINT,
    },
  )
}

export function isContentUnreadable(thrown: unknown): boolean {
  return thrown instanceof TidemarkError && thrown.code === 'content-unreadable'
}

/** The stored bytes of one message are at fault, and storing it again mends them. */
export function isDamaged(thrown: unknown): boolean {
  return isContentUnreadable(thrown) || (thrown instanceof TidemarkError && thrown.code === 'bytes-mismatch')
}

/** Any error of SQLite or of the file system about a file of the archive; others pass unchanged. */
export function classifyStore(thrown: unknown, name: string, file: string): unknown {
  if (thrown instanceof TidemarkError) return thrown
  const errno = (thrown as NodeJS.ErrnoException | null)?.code
  if (errno === 'ENOSPC' || errno === 'EDQUOT') return diskFull(file, thrown)
  if (errno && UNWRITABLE.includes(errno)) return unwritable(file, thrown)
  if (errno === 'EIO') return inputOutput(file, thrown)
  switch (sqliteCodeOf(thrown)) {
    case SQLITE_FULL:
      return diskFull(file, thrown)
    case SQLITE_BUSY:
      return trouble(`The archive's file ${file} is in use by another process.`, 'archive-busy', {
        hint: 'Wait for it to finish, or end it.',
        cause: thrown,
      })
    case SQLITE_READONLY:
    case SQLITE_CANTOPEN:
      return unwritable(file, thrown)
    case SQLITE_IOERR:
      return inputOutput(file, thrown)
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return shardCorrupt(name, file, (thrown as Error).message, thrown)
    default:
      return thrown
  }
}

export function isUnreadable(thrown: unknown): thrown is TidemarkError {
  return (
    thrown instanceof TidemarkError &&
    [
      'shard-missing',
      'shard-corrupt',
      'shard-foreign',
      'shard-newer',
      'archive-io',
      'archive-unwritable',
    ].includes(thrown.code ?? '')
  )
}

/** The primary code; extended codes carry it in their low byte. */
function sqliteCodeOf(thrown: unknown): number | undefined {
  const code = (thrown as { errcode?: unknown } | null)?.errcode
  return typeof code === 'number' ? code & 0xff : undefined
}

function diskFull(file: string, cause: unknown): TidemarkError {
  return trouble(`The disk is full: ${file} cannot grow.`, 'disk-full', {
    hint: 'Free some space.',
    cause,
  })
}

function unwritable(file: string, cause: unknown): TidemarkError {
  return trouble(`The archive's file ${file} cannot be opened or written.`, 'archive-unwritable', {
    hint: 'Check the permissions of the file and its folder.',
    cause,
  })
}

function inputOutput(file: string, cause: unknown): TidemarkError {
  return trouble(`Reading or writing ${file} failed.`, 'archive-io', {
    hint: 'Check the disk (space, health, mount).',
    cause,
  })
}

function trouble(message: string, code: string, options: { hint?: string; cause?: unknown }): TidemarkError {
  return new TidemarkError(message, { kind: 'transient', code, ...options })
}
