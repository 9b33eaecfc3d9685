/** The scan with the real store, on both databases. */
import assert from 'node:assert/strict'
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { freshDatabase } from '../../../../scripts/test-database.ts'
import { seededRandom } from '../../../base/random.ts'
import type { Ledger } from '../../../ledger/ledger.ts'
import { openLedger } from '../../../ledger/open.ts'
import { createFilter, filterSchema } from '../filter.ts'
import { knownTreeWithDigests } from '../look.ts'
import { FileStore } from '../store/file-store.ts'
import { recordLocal } from '../store/local-tree.ts'
import { noteSeen } from '../store/seen-folders.ts'
import { createRoot, type Root } from './root.ts'
import { Scan } from './scan.ts'
import { lookAt } from './stat.ts'

const FILTER = createFilter(filterSchema.parse({}), undefined)
const NAMES = ['a', 'b', 'c', 'A']

class TestRoot {
  readonly root: Root
  readonly store: FileStore
  readonly pair: string

  constructor(root: Root, store: FileStore) {
    this.root = root
    this.store = store
    this.pair = root.pair
  }

  path(path: string): string {
    return join(this.root.path, path)
  }

  scanner(batchMax = 1_000): Scan {
    return new Scan({
      root: this.root,
      tree: knownTreeWithDigests(this.store, this.pair),
      filter: FILTER,
      batchMax,
    })
  }

  async scan({ batchMax = 1_000, batchesMax = 1_000 } = {}): Promise<number> {
    const scan = this.scanner(batchMax)
    let seen = 0
    let batches = 0
    for await (const batch of scan.batches()) {
      if (batches++ === batchesMax) break
      scan.knownAs((await this.store.write((tx) => recordLocal(tx, this.pair, batch))).otherIds)
      seen += batch.length
    }
    return seen
  }

  /** Of some of the folders, as a look does of those in which nothing changed. */
  async note(isNoted: () => boolean): Promise<void> {
    const ids = Array.from({ length: 100 }, (_, id) => id).filter(isNoted)
    await this.store.write((tx) => noteSeen(tx, this.pair, ids))
  }

  async known(id = 1, folder = ''): Promise<string[]> {
    const lines: string[] = []
    for (const row of await this.store.localChildren(this.pair, id)) {
      if (row.isMissing) continue
      lines.push(`${folder}${row.name} ${row.type} ${row.ino}`)
      if (row.type === 'folder') lines.push(...(await this.known(row.id, `${folder}${row.name}/`)))
    }
    return lines.sort()
  }

  onDisk(folder = ''): string[] {
    const lines: string[] = []
    for (const name of readdirSync(this.path(folder))) {
      if (folder === '' && name === '.tidemark') continue
      const look = lookAt(this.path(`${folder}${name}`))!
      lines.push(`${folder}${name} ${look.type} ${look.ino}`)
      if (look.type === 'folder') lines.push(...this.onDisk(`${folder}${name}/`))
    }
    return lines.sort()
  }

  /** One thing that a person does; what cannot be done on this disk is not done. */
  step(random: () => number, count: number): void {
    const one = (): string => {
      const names = Array.from(
        { length: 1 + Math.floor(random() * 3) },
        () => NAMES[Math.floor(random() * 4)]!,
      )
      return this.path(names.join('/'))
    }
    try {
      const turn = Math.floor(random() * 6)
      if (turn === 0) writeFileSync(one(), `${count}`)
      else if (turn === 1) mkdirSync(one(), { recursive: true })
      else if (turn === 2) rmSync(one(), { recursive: true })
      else if (turn === 3) linkSync(one(), one())
      else renameSync(one(), one())
    } catch {
      // such as a move into itself
    }
  }
}

function scanOn(
  name: string,
  open: () => Promise<{ url: string; drop(): Promise<void> }>,
  histories: number,
): void {
  describe(`the scan with the store on ${name}`, () => {
    let ledger: Ledger
    let store: FileStore
    let folder: string
    let drives = 0
    let drop: () => Promise<void>

    before(async () => {
      const database = await open()
      drop = database.drop
      ledger = await openLedger(database.url)
      store = await FileStore.open(ledger)
      folder = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-scan-store-')))
    })
    after(async () => {
      await ledger.close()
      await drop()
      rmSync(folder, { recursive: true, force: true })
    })

    async function testRoot(): Promise<TestRoot> {
      const pair = `drive-${drives++}`
      const marker = { markerId: pair, drive: pair, createdAt: '2026-11-16T00:00:00Z' }
      const root = await createRoot(join(folder, pair), marker)
      const { type: _, ...stat } = root.look
      await store.addFolderPair(
        {
          name: pair,
          account: 'ann@example.com',
          driveId: pair,
          driveType: 'personal',
          rootItemId: `root-${pair}`,
          root: root.path,
          markerId: pair,
          machine: 'here',
          settings: '{}',
        },
        stat,
      )
      return new TestRoot(root, store)
    }

    test('whatever is done on the disk is in the tree after it, also after scans that stop half-way', async () => {
      for (let seed = 0; seed < histories; seed++) {
        const random = seededRandom(seed)
        const d = await testRoot()
        for (let count = 0; count < 15; count++) d.step(random, count)
        for (let round = 0; round < 3; round++) {
          await d.scan({ batchMax: 1 + Math.floor(random() * 5), batchesMax: Math.floor(random() * 6) })
          await d.note(() => random() < 0.7)
          for (let count = 0; count < 12; count++) d.step(random, count)
        }
        await d.scan()
        assert.deepEqual(await d.known(), d.onDisk(), `seed ${seed}`)
        await d.note(() => true)
        assert.equal(await d.scan(), 0, `seed ${seed}`)
      }
    })

    test('a new folder that an action enters meanwhile has one row, and what is in it lies below that', async () => {
      const d = await testRoot()
      mkdirSync(d.path('a/b'), { recursive: true })
      writeFileSync(d.path('a/b/f'), 'x')
      const { type: _, ...stat } = lookAt(d.path('a'))!
      const id = await store.takeLocalIds(d.pair, 1)
      const scan = d.scanner(1)
      let isFirst = true
      for await (const batch of scan.batches()) {
        const entered = { seen: 'new' as const, id, parentId: 1, name: 'a', type: 'folder' as const, stat }
        const { otherIds } = await store.write((tx) =>
          recordLocal(tx, d.pair, isFirst ? [entered, ...batch] : batch),
        )
        isFirst = false
        scan.knownAs(otherIds)
      }
      assert.deepEqual(await d.known(), d.onDisk())
      assert.equal((await store.localAt(d.pair, ['a']))?.id, id)
      assert.equal(await d.scan(), 0)
    })
  })
}

scanOn('SQLite', async () => ({ url: 'sqlite::memory:', drop: async () => {} }), 40)
scanOn('PostgreSQL', freshDatabase, 8)
