/**
 * What a folder holds when the ledger that knew it, or its archive.json, is lost. The files say for themselves which
 * archive they belong to, so that the list can be written anew from them. Nothing else is changed.
 */
import { existsSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { z } from 'zod'
import { ARCHIVE_FORMAT, ArchiveFile, type ListedFile, type ListedShard, writeWhole } from './archive-file.ts'
import { shardOf } from './shard-router.ts'
import { archiveForeign, archiveNewer } from './store-errors.ts'
import { INSERTED_AGAIN } from './upsert.ts'

export type FoundArchive = {
  archiveId: string
  account: string
  /** Its archive.json is there and can be read. */
  hasList: boolean
  /** Its files, by name. */
  files: readonly string[]
}

type FileMeta = { archiveId: string; account: string; fromMs: number; toMs: number; imports: boolean }

const List = z.object({ format: z.number(), archiveId: z.string().min(1), account: z.string() })

/** Null where there is no archive. Throws where there are parts of several. */
export function archiveIn(folder: string): FoundArchive | null {
  if (!existsSync(folder)) return null
  const files = readdirSync(folder)
    .filter((entry) => entry.endsWith('.db'))
    .map((entry) => entry.slice(0, -'.db'.length))
    .filter((name) => isAttachments(name) || shardOf(name) !== undefined)
    .sort()
  const list = listIn(folder)
  if (list) return { archiveId: list.archiveId, account: list.account, hasList: true, files }
  const metas = files.flatMap((name) => metaOf(join(folder, `${name}.db`)) ?? [])
  const [first] = metas
  if (!first) return null
  const other = metas.find(({ archiveId }) => archiveId !== first.archiveId)
  if (other) {
    throw archiveForeign(folder, `its files are of the archives ${first.archiveId} and ${other.archiveId}`)
  }
  return { archiveId: first.archiveId, account: first.account, hasList: false, files }
}

/** A file that cannot be read is listed too: it is then known to be damaged. */
export function rebuildList(folder: string, found: FoundArchive, nowMs: number): void {
  const shards: ListedShard[] = []
  const attachmentFiles: ListedFile[] = []
  let made = 0
  for (const name of byNumber(found.files)) {
    made += 1
    const period = shardOf(name)
    if (!period) {
      attachmentFiles.push({ name, made })
      continue
    }
    const meta = metaOf(join(folder, `${name}.db`))
    const fromMs = Math.min(period.fromMs, meta?.fromMs ?? period.fromMs)
    const toMs = Math.max(period.toMs, meta?.toMs ?? period.toMs)
    shards.push({ name, fromMs, toMs, made, imports: meta?.imports ?? true })
  }
  const { archiveId, account } = found
  const file = new ArchiveFile({ folder, archiveId })
  if (existsSync(file.file)) renameSync(file.file, `${file.file}.unreadable-${nowMs}`)
  // It goes by the numbers of the list that is lost.
  for (const end of ['', '-wal', '-shm']) rmSync(`${file.pathOf('catalogue')}${end}`, { force: true })
  writeWhole(file, { format: ARCHIVE_FORMAT, archiveId, account, made, shards, attachmentFiles })
}

function listIn(folder: string): z.output<typeof List> | null {
  let value: unknown
  try {
    value = JSON.parse(readFileSync(join(folder, 'archive.json'), 'utf8'))
  } catch {
    return null // missing, or not what it should be: the files tell
  }
  const list = List.safeParse(value)
  if (!list.success) return null
  if (list.data.format > ARCHIVE_FORMAT) throw archiveNewer(folder, list.data.format)
  return list.data
}

function isAttachments(name: string): boolean {
  return /^attachments-\d{1,9}$/.test(name)
}

/** attachments-10 after attachments-9: the last one of the list is the one that is written to. */
function byNumber(names: readonly string[]): string[] {
  const numberOf = (name: string): number => (isAttachments(name) ? Number(name.split('-')[1]) : 0)
  return [...names].sort((a, b) => numberOf(a) - numberOf(b) || (a < b ? -1 : 1))
}

/** Undefined where the file is none of an archive, or too damaged to say. */
function metaOf(file: string): FileMeta | undefined {
  let db: DatabaseSync | undefined
  try {
    db = new DatabaseSync(file, { readOnly: true })
    const rows = db.prepare('SELECT key, value FROM meta').all() as { key: string; value: string }[]
    const meta = new Map(rows.map(({ key, value }) => [key, value]))
    const [archiveId, account] = [meta.get('archive_id'), meta.get('account')]
    if (!archiveId || account === undefined) return undefined
    const none = { archiveId, account, fromMs: Number.POSITIVE_INFINITY, toMs: Number.NEGATIVE_INFINITY }
    if (meta.get('kind') !== 'shard') return { ...none, imports: false }
    return { ...none, ...timesOf(db) }
  } catch {
    return undefined
  } finally {
    db?.close()
  }
}

function timesOf(db: DatabaseSync): Pick<FileMeta, 'fromMs' | 'toMs' | 'imports'> {
  const row = db
    .prepare(
      `SELECT min(internal_ms) AS first, max(internal_ms) AS last, max(source = 'import' OR instr(problems, '${INSERTED_AGAIN}') > 0) AS imports FROM messages`,
    )
    .get() as { first: number | null; last: number | null; imports: number | null }
  return {
    fromMs: row.first ?? Number.POSITIVE_INFINITY,
    toMs: row.last === null ? Number.NEGATIVE_INFINITY : row.last + 1,
    imports: row.imports === 1,
  }
}
