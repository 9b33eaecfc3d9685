/** Files that are in step as documents of the one index. Their bytes are read from the folder here, never from OneDrive. */
import { hash } from 'node:crypto'
import { closeSync, fstatSync, readSync } from 'node:fs'
import type { DocumentOffer, OfferedDocument } from '../../app/documents.ts'
import { TidemarkError } from '../../base/errors.ts'
import { accountKey } from '../../ledger/accounts.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { documentType, mimeTypeOf } from '../../search/document-type.ts'
import { SERVICE, streamOf } from './folder-pair.ts'
import { type FileSync, machineId } from './index.ts'
import { openFileAt } from './local/folder.ts'
import { openRoot, type Root } from './local/root.ts'
import { type IndexableFile, indexableFiles, indexablePage } from './store/indexable.ts'

const PAGE = 1_000
const FILE_BYTES_MAX = 64 * 1024 * 1024

export function filesOffer({
  files,
  ledger,
}: {
  files: Pick<FileSync, 'store' | 'pairs'>
  ledger: Ledger
}): DocumentOffer {
  const read = ledger.driver.read.bind(ledger.driver)
  return {
    source: 'files',
    async owner(unit) {
      const row = await files.store.findFolderPair(unit)
      if (!row) return 'unknown'
      if (row.machine !== machineId()) return 'elsewhere'
      return { principal: accountKey({ service: SERVICE, name: row.account }) }
    },
    stamp: (unit) => streamStamp(ledger, unit),
    async all(unit, after) {
      const page = await read((tx) => indexablePage(tx, unit, { after: after ?? '', limit: PAGE }))
      const ids = page.map((file) => ({ id: file.itemId, version: contentVersion(file) }))
      return { ids, next: page.length < PAGE ? null : page.at(-1)!.itemId }
    },
    async has(unit, ids) {
      const found = await read((tx) => indexableFiles(tx, unit, ids))
      return new Set(found.map(({ itemId }) => itemId))
    },
    async read(unit, id) {
      const [file] = await read((tx) => indexableFiles(tx, unit, [id]))
      if (!file) return undefined
      const pair = await files.pairs.get(unit)
      const name = file.names.at(-1)!
      const mimeType = mimeTypeOf(name)
      const isTooLarge = file.size > FILE_BYTES_MAX
      // QuickXorHash is no proof of a content: of files that were agreed on before anybody kept their SHA-256 it is made.
      const bytes =
        isTooLarge || file.sha256 !== null ? undefined : readFile(openRoot(pair.root, pair.markerId), file)
      const mtimeMs = Number(BigInt(file.mtimeNs) / 1_000_000n)
      const document: OfferedDocument = {
        title: name,
        type: documentType(mimeType, name),
        mimeType,
        owner: pair.account,
        people: [],
        folders: [unit, ...file.names.slice(0, -1)],
        url: '',
        createdAtMs: null,
        modifiedAtMs: mtimeMs,
        sizeBytes: file.size,
        version: contentVersion(file),
        body: isTooLarge
          ? { unread: { code: 'too-large', reason: 'It is larger than what is read of a file.' } }
          : {
              hash: `sha256:${bytes ? hash('sha256', bytes) : Buffer.from(file.sha256!, 'base64').toString('hex')}`,
              name,
              mimeType,
              bytes: async () => bytes ?? readFile(openRoot(pair.root, pair.markerId), file),
            },
      }
      return [document]
    },
  }
}

/** Another one whenever a plan has settled. */
export async function streamStamp(ledger: Ledger, pair: string): Promise<string> {
  const { mark, moved_at: movedAt, mark_at: markAt } = await ledger.stream(streamOf(pair))
  return `${movedAt} ${markAt} ${mark}`
}

/** By its content, its name and where it lies. */
function contentVersion({ sha256, hash: quick, size, names }: IndexableFile): string {
  return hash('sha256', [sha256 ?? `${quick} ${size}`, ...names].join('\n')).slice(0, 24)
}

/** Throws where it is another file by now: it will be wanted again when that is in step. */
function readFile(root: Root, { names, size, sha256 }: IndexableFile): Uint8Array {
  const fd = openFileAt({ root, names })
  if (fd === undefined) throw changed(names)
  try {
    if (fstatSync(fd).size !== size) throw changed(names)
    const bytes = new Uint8Array(size)
    for (let at = 0; at < size; ) {
      const read = readSync(fd, bytes, at, size - at, at)
      if (read === 0) throw changed(names)
      at += read
    }
    if (sha256 !== null && hash('sha256', bytes, 'base64') !== sha256) throw changed(names)
    return bytes
  } finally {
    closeSync(fd)
  }
}

function changed(names: readonly string[]): TidemarkError {
  return new TidemarkError(`${names.join('/')} changed while it was read`, {
    kind: 'transient',
    code: 'file-changed',
  })
}
