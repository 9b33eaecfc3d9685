/** The tables of the file sync behind one door: reads by themselves, writes in transactions that are handed in. */
import { UsageError } from '../../../base/errors.ts'
import type { Tx, Value } from '../../../ledger/contract.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import type { Case, Mode } from '../decide.ts'
import { UNKNOWN } from '../folder-pair.ts'
import {
  type DeleteGuard,
  type Held,
  type OverwriteGuard,
  type RecentDeletes,
  withReplaced,
} from '../guard.ts'
import type { LeftCode } from '../left-code.ts'
import { type LocalRow, type LocalStat, type NodeKey, type RemoteRow, ROOT_ID } from '../trees.ts'
import type { ConflictRow, FolderPairRow, OpenNode } from './contract.ts'
import { findPartner } from './ends.ts'
import { IS_HELD, overwritesAhead, recentDeletes, recentOverwrites } from './guard.ts'
import { childRows, localOfItem, localRow, takeLocalIds } from './local-tree.ts'
import { pathOfNode, type Reported, readReported, readTotals, type Totals } from './overview.ts'
import { loadUnplanned, type PlanView } from './plan-view.ts'
import { remoteRow, remoteRows, rootRow, unlisted } from './remote-tree.ts'
import { BASE_COLUMNS, LOCAL_COLUMNS, putRemote, toBaseRow, toConflictRow, toLocalRow } from './rows.ts'
import { fileSchema } from './schema.ts'
import { type SeenFolder, seenFolder } from './seen-folders.ts'
import { foldersGone, type WholeDelete, waitingForWhole, wholeDelete } from './whole-deletes.ts'

type Raw = Record<string, Value>

export class FileStore {
  readonly #ledger: Ledger

  private constructor(ledger: Ledger) {
    this.#ledger = ledger
  }

  static async open(ledger: Ledger): Promise<FileStore> {
    const hasStatistics = ledger.driver.file !== null
    await ledger.migrateApp('file-sync', fileSchema(ledger.dialect, { hasStatistics }))
    return new FileStore(ledger)
  }

  #read<T>(read: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#ledger.driver.read(read)
  }

  folderPairs(): Promise<FolderPairRow[]> {
    return this.#read(async (tx) =>
      (await tx.all(`SELECT * FROM file_drives ORDER BY name`)).map(toFolderPairRow),
    )
  }

  async findFolderPair(name: string): Promise<FolderPairRow | undefined> {
    const raw = await this.#read((tx) => tx.get(`SELECT * FROM file_drives WHERE name = ?`, [name]))
    return raw && toFolderPairRow(raw)
  }

  async folderPair(name: string): Promise<FolderPairRow> {
    const found = await this.findFolderPair(name)
    if (found) return found
    const known = (await this.folderPairs()).map((pair) => pair.name).join(', ')
    throw new UsageError(`There is no folder called ${name} that is kept in step.`, {
      code: UNKNOWN,
      hint: known ? `There are: ${known}.` : 'Begin with: tidemark files sync FOLDER',
    })
  }

  /** With the rows of its root, which both sides have from the start. */
  async addFolderPair(row: NewFolderPair, stat: LocalStat): Promise<void> {
    await this.#ledger.transaction(async (tx) => {
      await tx.run(
        `INSERT INTO file_drives(name, account, drive_id, drive_type, root_item_id, root, marker_id, machine, settings, shared_by)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        [
          row.name,
          row.account,
          row.driveId,
          row.driveType,
          row.rootItemId,
          row.root,
          row.markerId,
          row.machine,
          row.settings,
          row.sharedBy ?? null,
        ],
      )
      await tx.run(
        `INSERT INTO file_local(drive, ${LOCAL_COLUMNS}, name_key) VALUES (?, 1, NULL, '', 'folder', ?, ?, ?, ?, ?, NULL, ?, 0, NULL, ?, NULL, '')`,
        [row.name, stat.dev, stat.ino, stat.birthNs, stat.mtimeNs, stat.size, row.rootItemId, stat.ctimeNs],
      )
      await putRemote(tx, row.name, rootRow(row.rootItemId), 1)
    })
  }

  async removeFolderPair(name: string): Promise<void> {
    await this.#ledger.transaction(async (tx) => {
      const tables = [
        'file_remote',
        'file_base',
        'file_local',
        'file_open',
        'file_conflicts',
        'file_seen',
        'file_deletes',
        'file_overwrites',
        'file_trash',
      ]
      for (const table of tables) {
        await tx.run(`DELETE FROM ${table} WHERE drive = ?`, [name])
      }
      await tx.run(`DELETE FROM file_drives WHERE name = ?`, [name])
    })
  }

  write<T>(run: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#ledger.transaction(run)
  }

  takeLocalIds(pair: string, count: number): Promise<number> {
    return this.#ledger.transaction((tx) => takeLocalIds(tx, pair, count))
  }

  localRow(pair: string, id: number): Promise<LocalRow | undefined> {
    return this.#read((tx) => localRow(tx, pair, id))
  }

  remoteRows(pair: string, itemIds: readonly string[]): Promise<Map<string, RemoteRow>> {
    return this.#read((tx) => remoteRows(tx, pair, itemIds))
  }

  unlisted(
    pair: string,
    of: { generation: number; limit: number; within?: string | undefined },
  ): Promise<string[]> {
    return this.#read((tx) => unlisted(tx, pair, of))
  }

  localOfItem(pair: string, itemId: string): Promise<LocalRow | undefined> {
    return this.#read((tx) => localOfItem(tx, pair, itemId))
  }

  /** Known rows right below a folder, missing ones included. */
  localChildren(pair: string, parentId: number): Promise<LocalRow[]> {
    return this.#read((tx) => childRows(tx, pair, parentId))
  }

  /** What was noted of a folder; undefined where that is not known to be true. */
  seenFolder(pair: string, id: number): Promise<SeenFolder | undefined> {
    return this.#read((tx) => seenFolder(tx, pair, id))
  }

  /** Whether anything is kept of what is noted. */
  get canNoteSeen(): boolean {
    return this.#ledger.dialect === 'sqlite'
  }

  /** Rows with this identity, for what was moved. */
  localByInode(pair: string, { dev, ino }: Pick<LocalStat, 'dev' | 'ino'>): Promise<LocalRow[]> {
    return this.#read(async (tx) => {
      const rows = await tx.all(
        `SELECT ${LOCAL_COLUMNS} FROM file_local WHERE drive = ? AND ino = ? AND dev = ?`,
        [pair, ino, dev],
      )
      return rows.map(toLocalRow)
    })
  }

  /** Names from the root down; undefined where a folder above is not known or not there. */
  async localPath(pair: string, id: number): Promise<string[] | undefined> {
    const rows = await this.#read((tx) =>
      tx.all<{ depth: number; parent_id: number | null; name: string }>(
        `WITH RECURSIVE way(depth, parent_id, name) AS (
           SELECT 0, parent_id, name FROM file_local WHERE drive = ? AND id = ?
           UNION ALL SELECT way.depth + 1, folder.parent_id, folder.name FROM way CROSS JOIN file_local folder
             WHERE folder.drive = ? AND folder.id = way.parent_id AND way.depth < ${DEPTH_MAX})
         SELECT depth, parent_id, name FROM way`,
        [pair, id, pair],
      ),
    )
    // Sorted here: the database would make a table for it.
    const [top, ...below] = rows.sort((one, other) => Number(other.depth) - Number(one.depth))
    return top?.parent_id === null ? below.map(({ name }) => name) : undefined
  }

  async localAt(pair: string, path: readonly string[]): Promise<LocalRow | undefined> {
    return this.#read(async (tx) => {
      let row = await localRow(tx, pair, ROOT_ID)
      for (const name of path) {
        if (!row) return undefined
        const raw: Raw | undefined = await tx.get(
          `SELECT ${LOCAL_COLUMNS} FROM file_local WHERE drive = ? AND parent_id = ? AND name = ? AND is_missing = 0`,
          [pair, row.id, name],
        )
        row = raw && toLocalRow(raw)
      }
      return row
    })
  }

  /** The rows of a node as they are now, its version, and whether anything is left in a folder that one side deleted. */
  nodeCase(pair: string, node: NodeKey): Promise<NodeCase> {
    return this.#read((tx) => readCase(tx, pair, node))
  }

  /** Whether a node is held by one of the plans up to this one. */
  async hasPlanned(pair: string, upTo: number): Promise<boolean> {
    const found = await this.#read((tx) =>
      tx.get(`SELECT 1 AS yes FROM file_open WHERE drive = ? AND planned <= ? LIMIT 1`, [pair, upTo]),
    )
    return found !== undefined
  }

  unplanned(pair: string, limit: number): Promise<PlanView> {
    return this.#read((tx) => loadUnplanned(tx, pair, limit))
  }

  /**
   * How many deletions everything that is open would come to, for the guard; `mode`: of those that it makes. The items
   * of the base are counted only where there are any: of 100,000 that takes 80 ms, and every plan asks.
   */
  async deletesAhead(pair: string, mode: Mode = 'two-way'): Promise<DeletesAhead> {
    const { here, there } = await this.#read(async (tx) => ({
      here: mode === 'upload-only' ? NONE : await countAhead(tx, pair, 'local'),
      there: mode === 'download-only' ? NONE : await countAhead(tx, pair, 'remote'),
    }))
    const ahead = {
      deletes: { local: here.items, remote: there.items },
      deletedFiles: here.files + there.files,
    }
    if (here.items + there.items === 0) return { ...ahead, baseItems: 0, baseFiles: 0 }
    const { files, folders } = await this.totals(pair)
    return { ...ahead, baseItems: files + folders, baseFiles: files }
  }

  /** All that a yes to what waits now would be for; undefined where nothing waits. */
  async heldAhead(pair: string): Promise<Held | undefined> {
    const rows = await this.#read((tx) =>
      tx.all<{ code: LeftCode }>(`SELECT code FROM file_open WHERE drive = ? AND ${IS_HELD} GROUP BY code`, [
        pair,
      ]),
    )
    if (rows.length === 0) return undefined
    const has = (code: LeftCode): boolean => rows.some((row) => row.code === code)
    const none = { local: 0, remote: 0 }
    const deletes = has('held-delete') ? (await this.deletesAhead(pair)).deletes : none
    if (!has('held-overwrite')) return deletes
    const { ahead } = await this.#read((tx) => overwritesAhead(tx, pair, 'two-way'))
    return withReplaced(deletes, ahead)
  }

  /** Whether nothing is left of what a yes may be for. */
  async isNothingAhead(pair: string): Promise<boolean> {
    const { deletes } = await this.deletesAhead(pair)
    const { ahead } = await this.#read((tx) => overwritesAhead(tx, pair, 'two-way'))
    return deletes.local + deletes.remote + ahead.local + ahead.remote === 0
  }

  foldersGone(pair: string): Promise<{ itemId: string; version: number }[]> {
    return this.#read((tx) => foldersGone(tx, pair))
  }

  waitingForWhole(pair: string): Promise<number> {
    return this.#read((tx) => waitingForWhole(tx, pair))
  }

  wholeDelete(pair: string, itemId: string): Promise<WholeDelete | undefined> {
    return this.#read((tx) => wholeDelete(tx, pair, itemId))
  }

  recentDeletes(pair: string, nowMs: number): Promise<RecentDeletes> {
    return this.#read((tx) => recentDeletes(tx, pair, nowMs))
  }

  overwriteGuard(
    { name, forcedOverwrites: forced }: Pick<FolderPairRow, 'name' | 'forcedOverwrites'>,
    { mode, nowMs }: { mode: Mode; nowMs: number },
  ): Promise<OverwriteGuard> {
    return this.#read(async (tx) => {
      const ahead = await overwritesAhead(tx, name, mode)
      const isAny = ahead.ahead.local + ahead.ahead.remote + ahead.unread > 0
      const baseFiles = isAny ? (await readTotals(tx, name)).files : 0
      return { ...ahead, baseFiles, recent: await recentOverwrites(tx, name, nowMs), forced }
    })
  }

  async openNodes(
    pair: string,
    { after = '', limit }: { after?: string; limit: number },
  ): Promise<OpenNode[]> {
    const rows = await this.#read((tx) =>
      tx.all(`SELECT * FROM file_open WHERE drive = ? AND node > ? ORDER BY node LIMIT ?`, [
        pair,
        after,
        limit,
      ]),
    )
    return rows.map((raw) => ({
      node: raw.node as NodeKey,
      version: Number(raw.version),
      because: raw.because as string | null,
      code: raw.code as LeftCode | null,
      planned: raw.planned === null ? null : Number(raw.planned),
      waitsFor: raw.waits_for as NodeKey | null,
    }))
  }

  async openCounts(
    pair: string,
  ): Promise<{ unplanned: number; inWork: number; waiting: number; reported: number }> {
    const rows = await this.#read((tx) =>
      tx.all<{ state: string; n: number }>(
        `SELECT CASE WHEN planned IS NOT NULL THEN 'inWork' WHEN because IS NOT NULL THEN 'reported'
           WHEN waits_for IS NOT NULL THEN 'waiting' ELSE 'unplanned' END AS state, count(*) AS n
         FROM file_open WHERE drive = ? GROUP BY 1`,
        [pair],
      ),
    )
    const counts = { unplanned: 0, inWork: 0, waiting: 0, reported: 0 }
    for (const { state, n } of rows) counts[state as keyof typeof counts] = Number(n)
    return counts
  }

  totals(pair: string): Promise<Totals> {
    return this.#read((tx) => readTotals(tx, pair))
  }

  reported(pair: string, page: { after?: string | undefined; limit: number }): Promise<Reported[]> {
    return this.#read((tx) => readReported(tx, pair, page))
  }

  pathOfNode(pair: string, node: NodeKey): Promise<string> {
    return this.#read((tx) => pathOfNode(tx, pair, node))
  }

  async conflicts(
    pair: string,
    { state, limit = 1_000 }: { state?: ConflictRow['state']; limit?: number } = {},
  ): Promise<ConflictRow[]> {
    const rows = await this.#read((tx) =>
      tx.all(
        `SELECT * FROM file_conflicts WHERE drive = ?${state ? ' AND state = ?' : ''} ORDER BY id DESC LIMIT ?`,
        [pair, ...(state ? [state] : []), limit],
      ),
    )
    return rows.map(toConflictRow)
  }
}

/** Whoever is deeper is in a circle: no file system has such paths. */
const DEPTH_MAX = 4_096

export type DeletesAhead = Pick<DeleteGuard, 'baseItems' | 'baseFiles' | 'deletes' | 'deletedFiles'>

const NONE = { items: 0, files: 0 }

/** What is gone on the other side than this one, and is not left alone for another reason than the guard. */
const AHEAD = {
  local: `JOIN file_local here ON here.drive = base.drive AND here.item_id = base.item_id AND here.is_missing = 0
    LEFT JOIN file_remote there ON there.drive = base.drive AND there.item_id = base.item_id
    WHERE coalesce(there.is_deleted, 1) <> 0`,
  remote: `JOIN file_remote there ON there.drive = base.drive AND there.item_id = base.item_id AND there.is_deleted = 0
    LEFT JOIN file_local here ON here.drive = base.drive AND here.item_id = base.item_id
    WHERE coalesce(here.is_missing, 1) = 1`,
} as const

async function countAhead(tx: Tx, pair: string, side: keyof typeof AHEAD): Promise<typeof NONE> {
  const row = await tx.get<{ items: number; files: number | null }>(
    `SELECT count(*) AS items, sum(CASE WHEN base.type = 'file' THEN 1 ELSE 0 END) AS files FROM file_open open
     JOIN file_base base ON base.drive = open.drive AND base.item_id = substr(open.node, 3)
     ${AHEAD[side]} AND open.drive = ? AND substr(open.node, 1, 2) = 'i:'
       AND (open.because IS NULL OR open.code = 'held-delete')`,
    [pair],
  )
  return { items: Number(row!.items), files: Number(row!.files ?? 0) }
}

export type NewFolderPair = Pick<
  FolderPairRow,
  'name' | 'account' | 'driveId' | 'driveType' | 'rootItemId' | 'root' | 'markerId' | 'machine' | 'settings'
> &
  Partial<Pick<FolderPairRow, 'sharedBy'>>

export type NodeCase = Pick<Case, 'base' | 'local' | 'remote' | 'localParentId' | 'hasSurvivors'> & {
  version: number | undefined
}

async function readCase(tx: Tx, pair: string, node: NodeKey): Promise<NodeCase> {
  const itemId = node.startsWith('i:') ? node.slice(2) : undefined
  const remote = itemId === undefined ? undefined : await remoteRow(tx, pair, itemId)
  const raw =
    itemId === undefined
      ? undefined
      : await tx.get(`SELECT ${BASE_COLUMNS} FROM file_base WHERE drive = ? AND item_id = ?`, [pair, itemId])
  const base = raw && toBaseRow(raw)
  let local =
    itemId === undefined
      ? await localRow(tx, pair, Number(node.slice(2)))
      : await localOfItem(tx, pair, itemId)
  local ??= remote && !base ? await findPartner(tx, pair, remote) : undefined
  const about = await tx.get<{ version: number | null; folder_item: string | null }>(
    `SELECT (SELECT version FROM file_open WHERE drive = ? AND node = ?) AS version,
       (SELECT item_id FROM file_local WHERE drive = ? AND id = ?) AS folder_item`,
    [pair, node, pair, local?.parentId ?? null],
  )
  return {
    base,
    local,
    remote,
    localParentId: about?.folder_item ?? undefined,
    hasSurvivors: await hasChildren(tx, pair, { local, remote }),
    version: about?.version == null ? undefined : Number(about.version),
  }
}

/** On the side that still has the folder. */
async function hasChildren(
  tx: Tx,
  pair: string,
  { local, remote }: Pick<Case, 'local' | 'remote'>,
): Promise<boolean> {
  const isHere = local !== undefined && !local.isMissing
  const isThere = remote !== undefined && !remote.isDeleted
  if (isHere === isThere || (local ?? remote)!.type !== 'folder') return false
  const found = isHere
    ? await tx.get(`SELECT 1 AS yes FROM file_local WHERE drive = ? AND parent_id = ? AND is_missing = 0`, [
        pair,
        local.id,
      ])
    : await tx.get(`SELECT 1 AS yes FROM file_remote WHERE drive = ? AND parent_id = ? AND is_deleted = 0`, [
        pair,
        remote!.itemId,
      ])
  return found !== undefined
}

const COLUMN_OF: Record<string, string> = {
  settings: 'settings',
  machine: 'machine',
  root: 'root',
  link: 'link',
  generation: 'generation',
  isEnumerating: 'is_enumerating',
  isReading: 'is_reading',
  scannedAt: 'scanned_at',
  heardAt: 'heard_at',
  forcedDeletes: 'forced_deletes',
  forcedOverwrites: 'forced_overwrites',
  heldDeletes: 'held_deletes',
  changeSeenAt: 'stirred_at',
  filterKey: 'filter_key',
}

export async function setFolderPair(
  tx: Tx,
  name: string,
  change: Partial<Omit<FolderPairRow, 'name'>>,
): Promise<void> {
  const entries = Object.entries(change)
  const sets = entries.map(([key]) => `${COLUMN_OF[key]} = ?`)
  const values = entries.map(([, value]) => (typeof value === 'boolean' ? Number(value) : (value as Value)))
  await tx.run(`UPDATE file_drives SET ${sets.join(', ')} WHERE name = ?`, [...values, name])
}

function toFolderPairRow(raw: Raw): FolderPairRow {
  const number = (value: Value | undefined): number | null => (value == null ? null : Number(value))
  return {
    name: String(raw.name),
    account: String(raw.account),
    driveId: String(raw.drive_id),
    driveType: String(raw.drive_type),
    rootItemId: String(raw.root_item_id),
    root: String(raw.root),
    markerId: String(raw.marker_id),
    machine: String(raw.machine),
    settings: String(raw.settings),
    link: raw.link as string | null,
    generation: Number(raw.generation),
    isEnumerating: Number(raw.is_enumerating) === 1,
    isReading: Number(raw.is_reading) === 1,
    scannedAt: number(raw.scanned_at),
    heardAt: number(raw.heard_at),
    forcedDeletes: Number(raw.forced_deletes),
    forcedOverwrites: Number(raw.forced_overwrites),
    heldDeletes: raw.held_deletes as string | null,
    filterKey: String(raw.filter_key),
    planned: Number(raw.planned),
    changeSeenAt: number(raw.stirred_at),
    sharedBy: raw.shared_by as string | null,
  }
}
