/**
 * What the guard against many deletions and replaced files keeps (see guard.ts): what waits for a yes and what a yes
 * does, and how many deletions and replaced contents were done although nobody was asked.
 */
import type { Tx } from '../../../ledger/contract.ts'
import { type Mode, SAME_TIME_MS } from '../decide.ts'
import {
  type Held,
  heldTotal,
  type OverwriteGuard,
  RECENT_MS,
  type RecentDeletes,
  SHARE_MS,
} from '../guard.ts'
import { itemNode, type NodeKey } from '../trees.ts'

/** Of rows of file_open: they wait for a yes. */
export const IS_HELD = `code IN ('held-delete', 'held-overwrite')`

/** A yes to many of them holds until they are done, and not for the next ones. */
export async function endForced(tx: Tx, pair: string): Promise<void> {
  await tx.run(
    `UPDATE file_drives SET forced_deletes = 0, forced_overwrites = 0 WHERE name = ? AND NOT EXISTS (
       SELECT 1 FROM file_open WHERE drive = ? AND (planned IS NOT NULL OR because IS NULL))`,
    [pair, pair],
  )
}

/** A yes to what waits: to so many, and not one more. */
export async function sayYes(tx: Tx, pair: string, held: Held): Promise<void> {
  const { deleted, replaced } = heldTotal(held)
  await tx.run(
    `UPDATE file_drives SET forced_deletes = ?, forced_overwrites = ?, held_deletes = NULL WHERE name = ?`,
    [deleted, replaced, pair],
  )
  await freeHeld(tx, pair)
}

/** Someone said yes to what waited for it, or it is looked at anew. */
export async function freeHeld(tx: Tx, pair: string): Promise<number> {
  return tx.run(
    `UPDATE file_open SET because = NULL, code = NULL, waits_for = NULL WHERE drive = ? AND ${IS_HELD}`,
    [pair],
  )
}

/**
 * Whoever wants the name of something whose deletion does not wait for a yes any more, because somebody said it or has
 * put the thing back, looks again: before each plan, so that one and the other are decided together.
 */
export async function freeHeldNames(tx: Tx, pair: string): Promise<number> {
  return tx.run(
    `UPDATE file_open SET because = NULL, code = NULL, waits_for = NULL
     WHERE drive = ? AND code = 'held-name' AND planned IS NULL AND NOT EXISTS (SELECT 1 FROM file_open held
       WHERE held.drive = file_open.drive AND held.node = file_open.waits_for AND held.code = 'held-delete')`,
    [pair],
  )
}

export async function hasHeldNames(tx: Tx, pair: string): Promise<boolean> {
  const found = await tx.get(
    `SELECT 1 AS yes FROM file_open WHERE drive = ? AND code = 'held-name' LIMIT 1`,
    [pair],
  )
  return found !== undefined
}

/**
 * Deletions were done. They take of those that somebody said yes to, so that later ones are asked about anew; where
 * nobody was asked, it is counted, so that many come to be asked about although they come little by little.
 */
export async function countDelete(
  tx: Tx,
  pair: string,
  { nowMs, items, files }: { nowMs: number; items: number; files: number },
): Promise<void> {
  const spent = await tx.run(
    `UPDATE file_drives SET forced_deletes = CASE WHEN forced_deletes > ? THEN forced_deletes - ? ELSE 0 END
     WHERE name = ? AND forced_deletes > 0`,
    [items, items, pair],
  )
  if (spent > 0) return
  const at = nowMs - (nowMs % COUNTED_MS)
  await tx.run(
    `INSERT INTO file_deletes(drive, at, items, files) VALUES (?, ?, ?, ?) ON CONFLICT (drive, at)
     DO UPDATE SET items = file_deletes.items + excluded.items, files = file_deletes.files + excluded.files`,
    [pair, at, items, files],
  )
  // Later ones are of a clock that was wrong.
  await tx.run(`DELETE FROM file_deletes WHERE drive = ? AND (at <= ? OR at > ?)`, [
    pair,
    at - SHARE_MS,
    nowMs,
  ])
}

/** Deletions of so much time are counted together. */
const COUNTED_MS = 600_000

export async function recentDeletes(tx: Tx, pair: string, nowMs: number): Promise<RecentDeletes> {
  const row = await tx.get<{ lately: number | null; items: number | null; files: number | null }>(
    `SELECT sum(CASE WHEN at > ? THEN items ELSE 0 END) AS lately, sum(items) AS items, sum(files) AS files
     FROM file_deletes WHERE drive = ? AND at > ? AND at <= ?`,
    [nowMs - RECENT_MS - COUNTED_MS, pair, nowMs - SHARE_MS - COUNTED_MS, nowMs],
  )
  return { lately: Number(row?.lately ?? 0), items: Number(row?.items ?? 0), files: Number(row?.files ?? 0) }
}

/** As in decide.ts and trees.ts. */
const IS_UNREAD = `here.hash IS NULL`
const IS_SAME_HERE = `here.hash = base.hash
  AND (here.sha256 IS NULL OR base.sha256 IS NULL OR here.sha256 = base.sha256)`
const IS_SAME_THERE = `CASE WHEN there.ctag IS NOT NULL AND base.ctag IS NOT NULL THEN there.ctag = base.ctag
  WHEN there.hash IS NOT NULL AND base.remote_hash IS NOT NULL THEN there.hash = base.remote_hash
  ELSE there.size = base.remote_size AND coalesce(there.etag, '') = coalesce(base.etag, '') END`
const NEWER_HERE_MS = `CAST(here.mtime_ns AS BIGINT) / 1000000 - there.modified_ms`
/** Whether somebody chose that these very contents replace each other so: as in conflicts.ts. */
const isChosen = (state: 'kept-local' | 'kept-remote'): string => `coalesce((
  SELECT decided.state = '${state}' AND decided.local_hash = here.hash AND decided.remote_hash = there.hash
  FROM file_conflicts decided WHERE decided.drive = open.drive AND decided.node = open.node
  ORDER BY decided.id DESC LIMIT 1), FALSE)`

const REPLACES = {
  local: `${IS_SAME_HERE} AND NOT (${IS_SAME_THERE})`,
  remote: `NOT (${IS_UNREAD}) AND NOT (${IS_SAME_HERE}) AND ${IS_SAME_THERE} AND base.is_unsure = 0`,
} as const
/** Of what is in another folder than before, what differs becomes a conflict, and replaces nothing. */
const UNREAD = `${IS_UNREAD} AND ${IS_SAME_THERE} AND base.is_unsure = 0`
const IS_OLDER = {
  local: `${NEWER_HERE_MS} > ${SAME_TIME_MS}`,
  remote: `${NEWER_HERE_MS} < -${SAME_TIME_MS}`,
} as const
const OLDER = {
  local: `${REPLACES.local} AND ${IS_OLDER.local}`,
  remote: `${REPLACES.remote} AND ${IS_OLDER.remote}`,
} as const
const CHOSEN = `(${OLDER.local} AND ${isChosen('kept-remote')}) OR (${OLDER.remote} AND ${isChosen('kept-local')})`

/** Files that both sides have and had. */
const OPEN_FILES = `FROM file_open open
  JOIN file_base base ON base.drive = open.drive AND base.item_id = substr(open.node, 3) AND base.type = 'file'
  JOIN file_local here ON here.drive = base.drive AND here.item_id = base.item_id AND here.is_missing = 0
    AND here.type = 'file' AND here.unreadable IS NULL
  JOIN file_remote there ON there.drive = base.drive AND there.item_id = base.item_id AND there.is_deleted = 0
  WHERE open.drive = ? AND substr(open.node, 1, 2) = 'i:'`

export type OverwritesAhead = Omit<OverwriteGuard, 'baseFiles' | 'recent' | 'forced'>

/** Of all that is open, and not left alone for another reason than the guard. */
export async function overwritesAhead(tx: Tx, pair: string, mode: Mode): Promise<OverwritesAhead> {
  const [isDown, isUp] = [mode !== 'upload-only', mode !== 'download-only']
  const count = (condition: string): string => `sum(CASE WHEN ${condition} THEN 1 ELSE 0 END)`
  const row = await tx.get<Record<string, number | string | null>>(
    `SELECT ${count(REPLACES.local)} AS local, ${count(REPLACES.remote)} AS remote,
       ${count(`${OLDER.local} AND NOT ${isChosen('kept-remote')}`)} AS local_older,
       ${count(`${OLDER.remote} AND NOT ${isChosen('kept-local')}`)} AS remote_older,
       ${count(UNREAD)} AS unread, ${count(`${UNREAD} AND ${IS_OLDER.remote}`)} AS unread_older,
       ${count(CHOSEN)} AS chosen,
       coalesce(max(CASE WHEN ${IS_UNREAD} AND open.planned IS NOT NULL THEN open.node END),
         max(CASE WHEN ${UNREAD} THEN open.node END)) AS reading
     ${OPEN_FILES} AND (open.because IS NULL OR open.code = 'held-overwrite')`,
    [pair],
  )
  const number = (name: string): number => Number(row?.[name] ?? 0)
  return {
    ahead: { local: isDown ? number('local') : 0, remote: isUp ? number('remote') : 0 },
    older: (isDown ? number('local_older') : 0) + (isUp ? number('remote_older') : 0),
    unread: isUp ? number('unread') : 0,
    unreadOlder: isUp ? number('unread_older') : 0,
    reading: (row?.reading as NodeKey | null | undefined) ?? undefined,
    chosen: number('chosen') > 0 ? await chosenNodes(tx, pair) : new Set(),
  }
}

/** Whose older version somebody has chosen, and that is being carried out. */
async function chosenNodes(tx: Tx, pair: string): Promise<Set<NodeKey>> {
  const rows = await tx.all<{ node: NodeKey }>(`SELECT open.node AS node ${OPEN_FILES} AND (${CHOSEN})`, [
    pair,
  ])
  return new Set(rows.map(({ node }) => node))
}

/** What is open is counted as that. */
export async function recentOverwrites(
  tx: Tx,
  pair: string,
  nowMs: number,
): Promise<OverwriteGuard['recent']> {
  const row = await tx.get<{ files: number; older: number | null }>(
    `SELECT count(*) AS files, sum(done.is_older) AS older FROM file_overwrites done
     WHERE done.drive = ? AND done.at > ? AND done.at <= ? AND NOT EXISTS (
       SELECT 1 FROM file_open open WHERE open.drive = done.drive AND open.node = 'i:' || done.item_id)`,
    [pair, nowMs - RECENT_MS, nowMs],
  )
  return { files: Number(row?.files ?? 0), older: Number(row?.older ?? 0) }
}

/** One was done: it is one of those that somebody said yes to, or is counted. */
export async function countOverwrite(
  tx: Tx,
  pair: string,
  { itemId, isOlder, nowMs }: { itemId: string; isOlder: boolean; nowMs: number },
): Promise<void> {
  const spent = await tx.run(
    `UPDATE file_drives SET forced_overwrites = forced_overwrites - 1 WHERE name = ? AND forced_overwrites > 0`,
    [pair],
  )
  if (spent > 0) return
  const isCounted = isOlder && !(await isChosenNode(tx, pair, itemNode(itemId)))
  await tx.run(
    `INSERT INTO file_overwrites(drive, item_id, at, is_older) VALUES (?, ?, ?, ?)
     ON CONFLICT (item_id, drive) DO UPDATE SET at = excluded.at, is_older = excluded.is_older`,
    [pair, itemId, nowMs, isCounted ? 1 : 0],
  )
}

async function isChosenNode(tx: Tx, pair: string, node: NodeKey): Promise<boolean> {
  const row = await tx.get(`SELECT 1 AS yes ${OPEN_FILES} AND open.node = ? AND (${CHOSEN})`, [pair, node])
  return row !== undefined
}

/** Those of long ago, and of a clock that was wrong. */
export async function forgetOverwrites(tx: Tx, pair: string, nowMs: number): Promise<void> {
  await tx.run(`DELETE FROM file_overwrites WHERE drive = ? AND (at <= ? OR at > ?)`, [
    pair,
    nowMs - RECENT_MS,
    nowMs,
  ])
}
