/**
 * Puts rows into the three trees as a first sync of equal sides leaves them: hashing and planning a hundred thousand
 * files takes longer than all that is measured on them. A sync that then finds nothing to do has checked it.
 */
import { join } from 'node:path'
import { toRow } from '../../src/apps/files/delta.ts'
import { lookAt, plainStat } from '../../src/apps/files/local/stat.ts'
import { setFolderPair } from '../../src/apps/files/store/file-store.ts'
import { takeLocalIds } from '../../src/apps/files/store/local-tree.ts'
import { putBase, putLocal, putRemote } from '../../src/apps/files/store/rows.ts'
import { type LocalRow, type RemoteRow, ROOT_ID } from '../../src/apps/files/trees.ts'
import { systemClock } from '../../src/base/clock.ts'
import { openLedger } from '../../src/ledger/open.ts'
import type { DriveAt } from './served-drive.ts'
import { open, PAIR, rootOf } from './subject.ts'

const PAGE_SIZE = 1_000
const GENERATION = 1

type Tx = Parameters<typeof setFolderPair>[0]

export async function agreeOnAll(home: string, at: DriveAt): Promise<number> {
  const ledger = await openLedger(`sqlite:${join(home, 'ledger.db')}`)
  const { files } = await open(home, at, ledger)
  try {
    const pair = await files.pairs.get(PAIR)
    const rows = new Map<string, RemoteRow>()
    let link: string | undefined
    for (let isLast = false; !isLast; ) {
      const page = await pair.client.delta(
        pair.driveId,
        link === undefined ? { pageSize: PAGE_SIZE } : { link },
      )
      for (const item of page.items) {
        const row = toRow(item, pair)
        if (row) rows.set(row.itemId, row)
      }
      isLast = page.deltaLink !== undefined
      link = page.deltaLink ?? page.nextLink
    }
    await files.store.write(async (tx) => {
      const tree = new Agreed(tx, { rows, root: rootOf(home), rootItemId: pair.rootItemId })
      tree.nextId = await takeLocalIds(tx, PAIR, rows.size)
      for (const row of rows.values()) await tree.put(row)
      const nowMs = systemClock.now()
      await setFolderPair(tx, PAIR, { link: link!, scannedAt: nowMs, heardAt: nowMs, isEnumerating: false })
      await setFolderPair(tx, PAIR, { filterKey: pair.filter.key, generation: GENERATION })
    })
    return rows.size
  } finally {
    await files.close()
    await ledger.close()
  }
}

type Placed = { id: number; path: string }

class Agreed {
  nextId = 0
  readonly #tx: Tx
  readonly #input: { rows: ReadonlyMap<string, RemoteRow>; root: string; rootItemId: string }
  readonly #placed = new Map<string, Placed>()

  constructor(tx: Tx, input: { rows: ReadonlyMap<string, RemoteRow>; root: string; rootItemId: string }) {
    this.#tx = tx
    this.#input = input
    this.#placed.set(input.rootItemId, { id: ROOT_ID, path: input.root })
  }

  /** Its folder first, whatever the order in which they came. */
  async put(row: RemoteRow): Promise<Placed> {
    const known = this.#placed.get(row.itemId)
    if (known) return known
    const folder = await this.put(this.#input.rows.get(row.parentId!)!)
    const placed = { id: this.nextId++, path: `${folder.path}/${row.name}` }
    this.#placed.set(row.itemId, placed)
    const stat = plainStat(lookAt(placed.path)!)
    const type = row.type === 'folder' ? 'folder' : 'file'
    const local: LocalRow = {
      id: placed.id,
      parentId: folder.id,
      name: row.name,
      type,
      ...stat,
      hash: row.hash,
      sha256: null,
      itemId: row.itemId,
      isMissing: false,
      unreadable: null,
    }
    await putRemote(this.#tx, PAIR, row, GENERATION)
    await putLocal(this.#tx, PAIR, local)
    await putBase(this.#tx, PAIR, {
      itemId: row.itemId,
      parentId: row.parentId!,
      name: row.name,
      type,
      hash: row.hash,
      sha256: null,
      size: stat.size,
      remoteHash: row.hash,
      remoteSize: row.size,
      eTag: row.eTag,
      cTag: row.cTag,
    })
    return placed
  }
}
