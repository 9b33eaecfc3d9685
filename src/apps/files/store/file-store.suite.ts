/** A store on a ledger of either database, with the rows of a drive that has begun. */
import { join } from 'node:path'
import type { Tx } from '../../../ledger/contract.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import { openLedger } from '../../../ledger/open.ts'
import type { SimDrive } from '../../../sim/onedrive/sim-drive.ts'
import { type FolderPairSettings, folderPairSettings } from '../folder-pair.ts'
import { machineId } from '../index.ts'
import { createRoot, type Root } from '../local/root.ts'
import { plainStat } from '../local/stat.ts'
import type { BaseRow, LocalRow, LocalStat, NodeKey, RemoteRow } from '../trees.ts'
import type { OpenNode } from './contract.ts'
import { FileStore } from './file-store.ts'
import { BASE_COLUMNS, LOCAL_COLUMNS, REMOTE_COLUMNS, toBaseRow, toLocalRow, toRemoteRow } from './rows.ts'

export const PAIR = 'home'

export function stat(ino: number, change: Partial<LocalStat> = {}): LocalStat {
  return { dev: '1', ino: String(ino), birthNs: `${ino}000`, mtimeNs: '1', ctimeNs: '1', size: 1, ...change }
}

export function remote(itemId: string, change: Partial<RemoteRow> = {}): RemoteRow {
  return {
    itemId,
    parentId: 'root',
    name: itemId,
    type: 'file',
    size: 1,
    hash: `h-${itemId}`,
    eTag: `e-${itemId}`,
    cTag: `c-${itemId}`,
    modifiedMs: 0,
    isDeleted: false,
    ...change,
  }
}

export const ROOT_ITEM = remote('root', { parentId: null, name: '', type: 'folder', hash: null })

/** A folder pair whose folder is on this machine, and its OneDrive simulated. */
export async function addSimulatedPair(
  store: FileStore,
  { name, drive, home, settings = {} }: { name: string; drive: SimDrive; home: string; settings?: object },
): Promise<{ root: Root; settings: FolderPairSettings }> {
  const markerId = 'marker'
  const createdAt = '2026-01-01T00:00:00.000Z'
  const root = await createRoot(join(home, 'root'), { markerId, drive: name, createdAt })
  const parsed = folderPairSettings.parse(settings)
  const row = {
    name,
    account: 'ann@example.com',
    driveId: drive.id,
    driveType: drive.state.type,
    rootItemId: drive.state.root.id,
    root: root.path,
    markerId,
    machine: machineId(),
    settings: JSON.stringify(parsed),
  }
  await store.addFolderPair(row, plainStat(root.look))
  return { root, settings: parsed }
}

export async function openStore(ledger: Ledger): Promise<FileStore> {
  const store = await FileStore.open(ledger)
  await store.addFolderPair(
    {
      name: PAIR,
      account: 'ann@example.com',
      driveId: 'd',
      driveType: 'personal',
      rootItemId: 'root',
      root: '/nowhere',
      markerId: 'm',
      machine: 'here',
      settings: '{}',
    },
    stat(1),
  )
  return store
}

export async function withStore(
  run: (store: FileStore) => Promise<void>,
  { ledgerUrl = 'sqlite::memory:' }: { ledgerUrl?: string } = {},
): Promise<void> {
  const ledger = await openLedger(ledgerUrl)
  try {
    await run(await openStore(ledger))
  } finally {
    await ledger.close()
  }
}

export async function write<T>(store: FileStore, run: (tx: Tx) => Promise<T>): Promise<T> {
  return store.write(run)
}

/** Whoever waits for another that nobody acts on, is left alone, or waits for it in turn: nobody is going to wake them. */
export function strandedNodes(open: readonly OpenNode[]): OpenNode[] {
  const known = new Map(open.map((node) => [node.node, node]))
  return open.filter((node) => {
    let at: OpenNode | undefined = node
    for (const seen = new Set<NodeKey>(); at && isWaiting(at) && !seen.has(at.node); ) {
      seen.add(at.node)
      at = known.get(at.waitsFor!)
    }
    const isMoving = at !== undefined && !isWaiting(at) && (at.planned !== null || at.because === null)
    return isWaiting(node) && !isMoving
  })
}

/** But for what waits for a look at the folder. */
function isWaiting({ node, planned, because, waitsFor }: OpenNode): boolean {
  return planned === null && because === null && waitsFor !== null && waitsFor !== node
}

/** Everything that is known of a drive. */
export function allRows(
  store: FileStore,
  pair: string,
): Promise<{ local: LocalRow[]; remote: RemoteRow[]; base: BaseRow[] }> {
  return store.write(async (tx) => ({
    local: (await tx.all(`SELECT ${LOCAL_COLUMNS} FROM file_local WHERE drive = ?`, [pair])).map(toLocalRow),
    remote: (await tx.all(`SELECT ${REMOTE_COLUMNS} FROM file_remote WHERE drive = ?`, [pair])).map(
      toRemoteRow,
    ),
    base: (await tx.all(`SELECT ${BASE_COLUMNS} FROM file_base WHERE drive = ?`, [pair])).map(toBaseRow),
  }))
}
