/**
 * Checks a folder pair to the bottom, and changes nothing: the folder is looked through and every file in it is hashed, the
 * whole drive is read from OneDrive, and both are compared with what they last agreed on.
 *
 * Memory: a page of rows, the ids of what OneDrive has, and the differences.
 */
import { asTidemarkError } from '../../base/errors.ts'
import type { DriveItem } from '../../cloud/onedrive/client.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { type Disk, isForbidden } from './act/content.ts'
import { realNames } from './act/local-side.ts'
import { ContentHash } from './content-hash.ts'
import { toRow } from './delta.ts'
import type { FolderPair } from './folder-pair.ts'
import type { Hashed } from './local/hash.ts'
import { openRoot, type Root } from './local/root.ts'
import { Scan } from './local/scan.ts'
import { plainStat } from './local/stat.ts'
import { treeOf } from './look.ts'
import { listBelow, topFolder } from './shared-folder.ts'
import { browsedNode } from './store/browse.ts'
import type { LocalObservation } from './store/contract.ts'
import type { FileStore } from './store/file-store.ts'
import { type AgreedRow, agreedPage, localNames, newHerePage } from './store/folder-rows.ts'
import {
  type BaseRow,
  isAgreedContent,
  itemNode,
  type LocalRow,
  localNode,
  type NodeKey,
  type RemoteRow,
  sameSpelling,
} from './trees.ts'

export type Difference = {
  path: string
  side: 'here' | 'there'
  /** `damaged`: other content, though nothing says that it was changed. */
  what: 'damaged' | 'changed' | 'missing' | 'new' | 'moved' | 'unreadable'
  text: string
}

export type VerifyReport = {
  drive: string
  files: number
  folders: number
  bytes: number
  /** Items that OneDrive named. */
  remoteItems: number
  /** Files whose content in OneDrive could not be compared: it gives no hash of them. */
  unverified: number
  /** What takes no part, because somebody wished it. */
  leftOut: number
  differences: Difference[]
}

export type VerifyInput = {
  pair: FolderPair
  store: FileStore
  ledger: Ledger
  disk: Disk
  /** Read the content of files in OneDrive, too. */
  deep: boolean
  signal: AbortSignal
  onProgress?: (progress: { what: 'files' | 'items' | 'contents'; done: number }) => void
}

const PAGE = 500
const AT_ONCE = 4

export async function verifyFolderPair(input: VerifyInput): Promise<VerifyReport> {
  return new Verification(input).run()
}

class Verification {
  readonly #input: VerifyInput
  readonly #root: Root
  readonly #report: VerifyReport
  /** Of files whose content here is what was agreed on; where OneDrive is read as well. */
  readonly #sha256 = new Map<string, string>()
  /** What the scan has told of already. */
  readonly #told = new Set<number>()

  constructor(input: VerifyInput) {
    this.#input = input
    this.#root = openRoot(input.pair.root, input.pair.markerId)
    const none = { files: 0, folders: 0, bytes: 0, remoteItems: 0, unverified: 0, leftOut: 0 }
    this.#report = { drive: input.pair.name, ...none, differences: [] }
  }

  async run(): Promise<VerifyReport> {
    await this.#scan()
    await this.#hashAgreed()
    await this.#namesNewHere()
    await this.#compareRemote()
    this.#report.differences.sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
    return this.#report
  }

  #differs(difference: Difference): void {
    this.#report.differences.push(difference)
  }

  /** What the folder is, against what is known of it. */
  async #scan(): Promise<void> {
    const { pair, store, signal } = this.#input
    // Nothing is written, so its ids are nobody's: beyond all that were ever given.
    let nextId = Number.MAX_SAFE_INTEGER - 1_000_000_000
    const takeIds = async (count: number): Promise<number> => {
      nextId += count
      return nextId - count
    }
    const scan = new Scan({
      root: this.#root,
      tree: { ...treeOf(store, pair.name), takeIds },
      filter: pair.filter,
      signal,
      followLinks: pair.settings.follow_symlinks,
    })
    const seen: LocalObservation[] = []
    for await (const batch of scan.batches()) seen.push(...batch)
    const known = new Map<number, { parentId: number; name: string }>()
    for (const one of seen) if (one.seen === 'new') known.set(one.id, one)
    for (const one of seen) await this.#sighted(one, known)
    for (const { path, reason } of scan.report.unreadable) {
      this.#differs({ path, side: 'here', what: 'unreadable', text: `it could not be looked at: ${reason}` })
    }
  }

  async #sighted(
    one: LocalObservation,
    known: ReadonlyMap<number, { parentId: number; name: string }>,
  ): Promise<void> {
    const path = await this.#pathOf(one.id, known)
    if (one.seen === 'new') {
      this.#differs({ path, side: 'here', what: 'new', text: 'it is new here, and not synced yet' })
      return
    }
    const row = await this.#input.store.localRow(this.#input.pair.name, one.id)
    if (one.seen === 'missing') {
      this.#told.add(one.id)
      this.#differs({ path, side: 'here', what: 'missing', text: 'it is not here any more' })
    } else if (one.name !== undefined || one.parentId !== undefined) {
      this.#differs({ path, side: 'here', what: 'moved', text: 'it was moved or renamed here' })
    } else if (one.stat && row?.type === 'file') {
      this.#told.add(one.id)
      this.#differs({ path, side: 'here', what: 'changed', text: 'it was changed here since it was synced' })
    }
  }

  async #pathOf(id: number, known: ReadonlyMap<number, { parentId: number; name: string }>): Promise<string> {
    const names: string[] = []
    let at = id
    for (let row = known.get(at); row; row = known.get(at)) {
      names.unshift(row.name)
      at = row.parentId
    }
    const above = (await this.#input.store.localPath(this.#input.pair.name, at)) ?? []
    return [...above, ...names].join('/')
  }

  /** The content of every file, against what was agreed on. */
  async #hashAgreed(): Promise<void> {
    const { pair, ledger, signal } = this.#input
    for (let after = ''; ; ) {
      const page = await ledger.driver.read((tx) => agreedPage(tx, pair.name, { after, limit: PAGE }))
      const ids = page.flatMap(({ local }) => local?.id ?? [])
      const names = await ledger.driver.read((tx) => localNames(tx, pair.name, ids))
      for (let at = 0; at < page.length; at += AT_ONCE) {
        signal.throwIfAborted()
        const some = page.slice(at, at + AT_ONCE)
        await Promise.all(some.map((row) => this.#checkAgreed(row, names.get(row.local?.id ?? 0) ?? [])))
      }
      const last = page.at(-1)
      if (!last || page.length < PAGE) return
      after = last.base.itemId
    }
  }

  async #checkAgreed({ base, local }: AgreedRow, names: readonly string[]): Promise<void> {
    const report = this.#report
    if (base.type === 'folder') report.folders += 1
    else {
      report.files += 1
      report.bytes += base.size
      this.#input.onProgress?.({ what: 'files', done: report.files })
    }
    if (!local || local.isMissing) {
      if (local && this.#told.has(local.id)) return
      const path = await this.#input.store.pathOfNode(this.#input.pair.name, itemNode(base.itemId))
      this.#differs({ path, side: 'here', what: 'missing', text: 'it was agreed on, and is not here' })
      return
    }
    if (base.type === 'folder' || this.#told.has(local.id)) return
    await this.#checkContent(base, local, names)
  }

  async #checkContent(base: BaseRow, local: LocalRow, names: readonly string[]): Promise<void> {
    const path = names.join('/')
    const hashed = await this.#hash(local, names)
    if (hashed === undefined) {
      this.#differs({ path, side: 'here', what: 'unreadable', text: 'it cannot be read' })
    } else if (hashed.outcome !== 'done') {
      this.#differs({ path, side: 'here', what: 'changed', text: 'it is being changed right now' })
    } else if (isAgreedContent(hashed, base)) {
      if (this.#input.deep) this.#sha256.set(base.itemId, hashed.sha256)
    } else {
      const isKnown = local.hash !== null && !isAgreedContent(local, base)
      this.#differs(
        isKnown
          ? { path, side: 'here', what: 'changed', text: 'it was changed here since it was synced' }
          : {
              path,
              side: 'here',
              what: 'damaged',
              text: 'its content is not what was synced, though its time and size are',
            },
      )
    }
  }

  async #hash(local: LocalRow, names: readonly string[]): Promise<Hashed | undefined> {
    try {
      const real = this.#input.pair.settings.follow_symlinks ? realNames(this.#root, names, []) : names
      const place = { root: this.#root, names: real }
      return await this.#input.disk.hash(place, plainStat(local), this.#input.signal)
    } catch (thrown) {
      if (isForbidden(thrown)) return undefined
      throw thrown
    }
  }

  /** What the sync knows of here, and was never agreed on. */
  async #namesNewHere(): Promise<void> {
    const { pair, ledger } = this.#input
    for (let after = 0; ; ) {
      const page = await ledger.driver.read((tx) => newHerePage(tx, pair.name, { after, limit: PAGE }))
      const ids = page.map(({ id }) => id)
      const names = await ledger.driver.read((tx) => localNames(tx, pair.name, ids))
      for (const row of page) {
        if (this.#told.has(row.id)) continue
        const path = names.get(row.id)!.join('/')
        if (this.#isLeftOut(path, row)) this.#report.leftOut += 1
        else {
          const because = await this.#reasonOf(localNode(row))
          this.#differs({ path, side: 'here', what: 'new', text: `it is only here${because}` })
        }
      }
      const last = page.at(-1)
      if (!last || page.length < PAGE) return
      after = last.id
    }
  }

  #isLeftOut(path: string, { type, size }: Pick<LocalRow | RemoteRow, 'type' | 'size'>): boolean {
    if (type !== 'file' && type !== 'folder') return true
    return this.#input.pair.filter.excluded(path.normalize('NFC'), { type, size }) !== undefined
  }

  async #reasonOf(node: NodeKey): Promise<string> {
    const found = await browsedNode(this.#input.ledger, this.#input.pair.name, node)
    const because = found?.open?.because
    return because == null ? '' : `: ${because}`
  }

  /** The whole drive, as OneDrive names it now. */
  async #compareRemote(): Promise<void> {
    const { pair, ledger, signal } = this.#input
    const items = new Map<string, RemoteRow>()
    for await (const item of wholeDrive(pair, signal)) {
      const row = toRow(item, pair)
      if (row && !row.isDeleted) items.set(row.itemId, row)
      else items.delete(item.id)
      this.#input.onProgress?.({ what: 'items', done: items.size })
    }
    items.delete(pair.rootItemId)
    this.#report.remoteItems = items.size
    const pathOf = (row: RemoteRow): string => remotePath(items, row)
    const agreed = new Set<string>()
    for (let after = ''; ; ) {
      const page = await ledger.driver.read((tx) => agreedPage(tx, pair.name, { after, limit: PAGE }))
      for (const { base } of page) {
        agreed.add(base.itemId)
        const row = items.get(base.itemId)
        if (row) await this.#checkRemote(base, row, pathOf(row))
        else {
          const path = await this.#input.store.pathOfNode(pair.name, itemNode(base.itemId))
          this.#differs({ path, side: 'there', what: 'missing', text: 'OneDrive does not have it any more' })
        }
      }
      const last = page.at(-1)
      if (!last || page.length < PAGE) break
      after = last.base.itemId
    }
    for (const row of items.values()) {
      if (agreed.has(row.itemId)) continue
      const path = pathOf(row)
      if (this.#isLeftOut(path, row)) this.#report.leftOut += 1
      else {
        const because = await this.#reasonOf(itemNode(row.itemId))
        this.#differs({ path, side: 'there', what: 'new', text: `it is only in OneDrive${because}` })
      }
    }
  }

  async #checkRemote(base: BaseRow, row: RemoteRow, path: string): Promise<void> {
    if (row.parentId !== base.parentId || !sameSpelling(row.name, base.name)) {
      this.#differs({ path, side: 'there', what: 'moved', text: 'it was moved or renamed in OneDrive' })
    }
    if (base.type !== 'file') return
    const isKnown = row.hash !== null && base.remoteHash !== null
    if (isKnown ? row.hash !== base.remoteHash : row.size !== base.remoteSize) {
      this.#differs({ path, side: 'there', what: 'changed', text: 'OneDrive has another content' })
      return
    }
    if (this.#input.deep) await this.#readRemote(base, row, path)
    else if (!isKnown && row.size > 0) this.#report.unverified += 1
  }

  async #readRemote(base: BaseRow, row: RemoteRow, path: string): Promise<void> {
    const { pair, signal } = this.#input
    const { stream } = await pair.client.download(pair.driveId, row.itemId, { signal })
    const content = new ContentHash()
    for await (const chunk of stream) content.update(chunk)
    this.#input.onProgress?.({ what: 'contents', done: 1 })
    const { hash, sha256 } = content.digest()
    // What the service has rewritten is known by its own hash alone.
    const isRewritten = base.remoteHash !== null && base.remoteHash !== base.hash
    const wanted = isRewritten ? undefined : (base.sha256 ?? this.#sha256.get(base.itemId))
    if (hash === (base.remoteHash ?? base.hash) && (wanted === undefined || sha256 === wanted)) return
    this.#differs({
      path,
      side: 'there',
      what: 'damaged',
      text: 'what OneDrive gives is not what was synced, though it says so',
    })
  }
}

async function* wholeDrive(pair: FolderPair, signal: AbortSignal): AsyncGenerator<DriveItem> {
  const { client, driveId } = pair
  let link: string | undefined
  do {
    signal.throwIfAborted()
    const page = await client
      .delta(driveId, {
        signal,
        ...topFolder(pair),
        ...(link === undefined ? { pageSize: 1_000 } : { link }),
      })
      .catch((thrown: unknown) => {
        if (link !== undefined || asTidemarkError(thrown).code !== 'not-supported') throw thrown
      })
    if (!page) {
      for await (const items of listBelow(pair, signal)) yield* items
      return
    }
    yield* page.items
    link = page.nextLink
  } while (link !== undefined)
}

/** Folders that OneDrive has inside of each other are named once. */
function remotePath(items: ReadonlyMap<string, RemoteRow>, row: RemoteRow): string {
  const way = new Set<RemoteRow>()
  for (let at: RemoteRow | undefined = row; at && !way.has(at); at = items.get(at.parentId ?? '')) way.add(at)
  return [...way]
    .map(({ name }) => name)
    .reverse()
    .join('/')
}
