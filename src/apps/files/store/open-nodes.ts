/**
 * Which nodes are not known to be in step.
 *
 *   (not open) ──something changed──▶ unplanned ──plan──▶ in work ──its action ended, nothing changed since──▶ (not open)
 *                                       ▲  │ └────▶ waiting ──that node ended──▶ unplanned
 *                                       │  └──────▶ reported (because; with waits_for: until that node has ended)
 *                                       └── something changed: version + 1; in work stays in work until it ends
 *
 * What waits for itself waits for the next look at the folder, with a reason for the next whole one.
 *
 * Whoever waits for another waits for one that moves: it is in work, unplanned, or waits for such. So nobody begins to
 * wait for one that does not (`awaitedNode`), whoever stops moving wakes those that wait for it, in that order
 * (`leaveNode`, `closeNode` with `freeWaiting`), and a plan ends only when nobody is stranded (`freeStranded`).
 */
import type { Tx } from '../../../ledger/contract.ts'
import type { LeftCode, Reason } from '../left-code.ts'
import type { NodeState } from '../plan.ts'
import { itemNode, type NodeKey } from '../trees.ts'
import { listParameter } from './rows.ts'

export async function openNode(tx: Tx, pair: string, node: NodeKey): Promise<void> {
  await tx.run(
    `INSERT INTO file_open(drive, node, version) VALUES (?, ?, 1)
     ON CONFLICT (drive, node) DO UPDATE SET version = file_open.version + 1, waits_for = NULL, because = NULL, code = NULL`,
    [pair, node],
  )
}

export async function openNodes(tx: Tx, pair: string, nodes: Iterable<NodeKey>): Promise<void> {
  for (const node of nodes) await openNode(tx, pair, node)
}

/** True where something changed since the plan: it has to be planned again. */
export async function closeNode(tx: Tx, pair: string, node: NodeKey, version: number): Promise<boolean> {
  const closed = await tx.run(`DELETE FROM file_open WHERE drive = ? AND node = ? AND version = ?`, [
    pair,
    node,
    version,
  ])
  return closed === 0 ? freeNode(tx, pair, node) : false
}

/** Whatever its version: it is not a node any more. */
export async function closeNodes(tx: Tx, pair: string, nodes: readonly NodeKey[]): Promise<void> {
  await tx.run(`DELETE FROM file_open WHERE drive = ? AND node IN (${listParameter(tx)})`, [
    pair,
    JSON.stringify(nodes),
  ])
}

export async function isOpen(tx: Tx, pair: string, node: NodeKey): Promise<boolean> {
  const open = await tx.get(`SELECT 1 AS yes FROM file_open WHERE drive = ? AND node = ?`, [pair, node])
  return open !== undefined
}

/** `circle`: it waits itself for the one that is to wait for it. */
export type Awaited = { state: NodeState | 'circle'; reason: Reason | undefined }

const WAITS_MAX = 100

/**
 * How one stands that another is to wait for. On a server it stays so until the end of the transaction: who ends it
 * meanwhile does so after, and then finds who waits.
 */
export async function awaitedNode(
  tx: Tx,
  pair: string,
  { node, waitsFor }: { node: NodeKey; waitsFor: NodeKey },
): Promise<Awaited> {
  if (node === waitsFor) return { state: 'open', reason: undefined }
  const row = await tx.get<OpenRow>(
    `SELECT planned, waits_for, because, code FROM file_open WHERE drive = ? AND node = ?${
      tx.dialect === 'postgres' ? ' FOR SHARE' : ''
    }`,
    [pair, waitsFor],
  )
  if (!row) return { state: 'in step', reason: undefined }
  const { planned, because, code } = row
  if (planned !== null) return { state: 'in work', reason: undefined }
  if (because !== null) return { state: 'stuck', reason: { because, code: code ?? undefined } }
  const isCircle = await leadsTo(tx, pair, { from: waitsFor, next: row.waits_for, node })
  return { state: isCircle ? 'circle' : 'open', reason: undefined }
}

type OpenRow = {
  planned: number | null
  waits_for: NodeKey | null
  because: string | null
  code: LeftCode | null
}

/** By who waits for whom. */
async function leadsTo(
  tx: Tx,
  pair: string,
  { from, next, node }: { from: NodeKey; next: NodeKey | null; node: NodeKey },
): Promise<boolean> {
  let [at, to] = [from, next]
  for (let steps = 0; to !== null && to !== at && steps < WAITS_MAX; steps++) {
    if (to === node) return true
    const row: Pick<OpenRow, 'waits_for'> | undefined = await tx.get(
      `SELECT waits_for FROM file_open WHERE drive = ? AND node = ? AND planned IS NULL AND because IS NULL`,
      [pair, to],
    )
    ;[at, to] = [to, row?.waits_for ?? null]
  }
  return false
}

/** Somebody is going to wake who waits for it. */
export function isMoving(state: Awaited['state']): boolean {
  return state === 'open' || state === 'in work'
}

/** To be planned again; true where it was open. */
export async function freeNode(tx: Tx, pair: string, node: NodeKey): Promise<boolean> {
  const freed = await tx.run(
    `UPDATE file_open SET planned = NULL, waits_for = NULL, because = NULL, code = NULL WHERE drive = ? AND node = ?`,
    [pair, node],
  )
  return freed > 0
}

/** What waited for it is planned again; true where something did. */
export async function freeWaiting(tx: Tx, pair: string, nodes: readonly NodeKey[]): Promise<boolean> {
  const freed = await tx.run(
    `UPDATE file_open SET waits_for = NULL, because = NULL, code = NULL WHERE drive = ? AND waits_for IN (${listParameter(tx)})`,
    [pair, JSON.stringify(nodes)],
  )
  return freed > 0
}

/**
 * It is left alone, so nobody is going to wake those that wait for it: they look again whether they have to. Who has a
 * reason of his own keeps it: two that are left alone because of each other would wake each other for ever.
 */
async function freeUndecided(tx: Tx, pair: string, node: NodeKey): Promise<boolean> {
  const freed = await tx.run(
    `UPDATE file_open SET waits_for = NULL WHERE drive = ? AND waits_for = ? AND node <> ? AND because IS NULL
       AND planned IS NULL`,
    [pair, node, node],
  )
  return freed > 0
}

const IS_STRANDED = `waits_for IS NOT NULL AND waits_for <> node AND because IS NULL AND planned IS NULL
  AND NOT EXISTS (SELECT 1 FROM file_open awaited WHERE awaited.drive = file_open.drive
    AND awaited.node = file_open.waits_for AND (awaited.planned IS NOT NULL OR awaited.because IS NULL))`

/** Whether somebody waits for one that is left alone, or is not open any more. */
export async function hasStranded(tx: Tx, pair: string): Promise<boolean> {
  const found = await tx.get(`SELECT 1 AS yes FROM file_open WHERE drive = ? AND ${IS_STRANDED} LIMIT 1`, [
    pair,
  ])
  return found !== undefined
}

/** They look again whether they have to; and find what is so now, or are left alone as well. */
export async function freeStranded(tx: Tx, pair: string): Promise<number> {
  return tx.run(`UPDATE file_open SET waits_for = NULL WHERE drive = ? AND ${IS_STRANDED}`, [pair])
}

/**
 * Left alone with a reason, unless something changed since the plan. With `until`: until that node has ended. What waits
 * for a deletion that is held looks again only when all of them are known: most of it is deleted with it by one yes.
 * True where something is to be planned.
 */
export async function leaveNode(
  tx: Tx,
  pair: string,
  end: Reason & { node: NodeKey; version: number; until?: NodeKey | undefined },
): Promise<boolean> {
  const { node, version, because, code, until } = end
  const left = await tx.run(
    `UPDATE file_open SET planned = NULL, waits_for = ?, because = ?, code = ?
     WHERE drive = ? AND node = ? AND version = ?`,
    [until ?? null, because, code ?? null, pair, node, version],
  )
  if (left === 0) return freeNode(tx, pair, node)
  return code === 'held-delete' ? false : freeUndecided(tx, pair, node)
}

/** Plans up to this one have settled: what they still hold ended without a word (a job canceled by hand). */
export async function releaseSettled(tx: Tx, pair: string, settledTo: number): Promise<number> {
  return tx.run(`UPDATE file_open SET planned = NULL WHERE drive = ? AND planned <= ?`, [pair, settledTo])
}

/**
 * At the start of a sync: whatever waits looks again whether it still has to. But not the two sides of a conflict that
 * nobody has decided: a look that finds one of them changed says so by itself.
 */
export async function freeAllWaiting(tx: Tx, pair: string): Promise<number> {
  return tx.run(
    `UPDATE file_open SET waits_for = NULL, because = NULL, code = NULL WHERE drive = ? AND waits_for IS NOT NULL
       AND NOT (coalesce(code, '') = 'undecided' AND EXISTS (SELECT 1 FROM file_open other
         WHERE other.drive = file_open.drive AND other.node = file_open.waits_for AND other.code = 'undecided'))`,
    [pair],
  )
}

/** After a look at some folders: what waits for a look to find it, and has no reason of its own, tries again. */
export async function freeUnfound(tx: Tx, pair: string): Promise<number> {
  return tx.run(
    `UPDATE file_open SET waits_for = NULL WHERE drive = ? AND waits_for = node AND because IS NULL AND planned IS NULL`,
    [pair],
  )
}

const CIRCLE: Reason = { because: 'another that must be done first waits for it' }

/**
 * Planned again when that one ends, unless something changed since the plan. Where that is left alone, so is this one,
 * for the same reason and until that one has ended.
 */
export async function waitForNode(
  tx: Tx,
  pair: string,
  { node, version, waitsFor }: { node: NodeKey; version: number; waitsFor: NodeKey },
): Promise<boolean> {
  const { state, reason } = await awaitedNode(tx, pair, { node, waitsFor })
  const why = state === 'circle' ? CIRCLE : reason
  if (why) return leaveNode(tx, pair, { node, version, ...why, until: waitsFor })
  if (state === 'in step') return freeNode(tx, pair, node)
  const waits = await tx.run(
    `UPDATE file_open SET planned = NULL, waits_for = ?, because = NULL, code = NULL WHERE drive = ? AND node = ? AND version = ?`,
    [waitsFor, pair, node, version],
  )
  return waits === 0 ? freeNode(tx, pair, node) : false
}

/**
 * A folder that waits for what is in it, which waits for the folder, looks again whether it has to; so does one that
 * one side has deleted, and the other only keeps because of the mode: with something new in it, it comes back.
 */
export async function freeFolder(
  tx: Tx,
  pair: string,
  { node, until }: { node: NodeKey; until?: NodeKey },
): Promise<void> {
  if (until === undefined) return
  await tx.run(
    `UPDATE file_open SET waits_for = NULL, because = NULL, code = NULL
     WHERE drive = ? AND node = ? AND (waits_for = ? OR code IN ('downloads-only', 'uploads-only'))
       AND planned IS NULL`,
    [pair, until, node],
  )
}

/** Tells that they are withheld. What is under way with them, or waits, finds out by itself. */
export async function tellWithheld(
  tx: Tx,
  pair: string,
  { itemIds, because }: { itemIds: readonly string[]; because: string },
): Promise<void> {
  for (const itemId of itemIds) {
    await tx.run(
      `INSERT INTO file_open(drive, node, version, because, code) VALUES (?, ?, 1, ?, 'withheld')
       ON CONFLICT (drive, node) DO NOTHING`,
      [pair, itemNode(itemId), because],
    )
  }
}

/** Those that are given again, or all but those that are not. */
export async function freeWithheld(
  tx: Tx,
  pair: string,
  which: { given: readonly string[] } | { but: readonly string[] },
): Promise<void> {
  const [how, ids] = 'given' in which ? ['IN', which.given] : ['NOT IN', which.but]
  await tx.run(
    `UPDATE file_open SET because = NULL, code = NULL
     WHERE drive = ? AND code = 'withheld' AND node ${how} (${listParameter(tx)})`,
    [pair, JSON.stringify(ids.map(itemNode))],
  )
}

const IS_LEFT_OUT = `code IN ('left-out', 'in-exchange')`

/**
 * A folder has another place, on either side: what is in it was left out where that was, and may take part now. Whoever
 * has left nothing out pays nothing for it.
 */
export async function freeLeftOut(
  tx: Tx,
  pair: string,
  { localId, itemId }: { localId: number | null; itemId: string | null },
): Promise<void> {
  const left = await tx.get(`SELECT 1 AS yes FROM file_open WHERE drive = ? AND ${IS_LEFT_OUT} LIMIT 1`, [
    pair,
  ])
  if (!left) return
  await tx.run(
    `WITH RECURSIVE here(id, item_id) AS (
       SELECT id, item_id FROM file_local WHERE drive = ? AND parent_id = ?
       UNION SELECT child.id, child.item_id FROM here JOIN file_local child
         ON child.drive = ? AND child.parent_id = here.id),
     there(item_id) AS (
       SELECT item_id FROM file_remote WHERE drive = ? AND parent_id = ?
       UNION SELECT child.item_id FROM there JOIN file_remote child
         ON child.drive = ? AND child.parent_id = there.item_id)
     UPDATE file_open SET because = NULL, code = NULL, waits_for = NULL
     WHERE drive = ? AND planned IS NULL AND ${IS_LEFT_OUT} AND node IN (
       SELECT 'l:' || id FROM here UNION SELECT 'i:' || item_id FROM here UNION SELECT 'i:' || item_id FROM there)`,
    [pair, localId, pair, pair, itemId, pair, pair],
  )
}

/** A folder has its own name again: what is in it goes on. */
export async function freeExchanged(tx: Tx, pair: string): Promise<void> {
  await tx.run(
    `UPDATE file_open SET because = NULL, code = NULL, waits_for = NULL WHERE drive = ? AND code = 'in-exchange'`,
    [pair],
  )
}
