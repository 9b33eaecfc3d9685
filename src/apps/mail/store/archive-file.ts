/**
 * archive.json: which archive a folder holds, and which files must be there. A file that is listed and not found is
 * missing; it is never made anew by itself.
 *
 * It is replaced as a whole (written beside, synced, renamed), under the list lock. Every thread and process reads it
 * again when it has changed: `made` tells a shard from one of the same name that was set aside before.
 */
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeSync,
} from 'node:fs'
import { join } from 'node:path'
import type { ArchiveLocks } from './archive-locks.ts'
import { shardOf } from './shard-router.ts'
import { archiveForeign, archiveMissing, archiveNewer, classifyStore } from './store-errors.ts'

export const ARCHIVE_FORMAT = 1
const FILE_NAME = 'archive.json'

export type ListedShard = {
  name: string
  /** Messages in it have fromMs <= internalMs < toMs. */
  fromMs: number
  toMs: number
  /** Counts the files that were ever made in this archive: two of the same name have different numbers. */
  made: number
  /** Holds messages from files, whose times may be others than Gmail's: an id may be here instead of in its period. */
  imports: boolean
}

export type ListedFile = { name: string; made: number }

export type ArchiveList = {
  format: number
  archiveId: string
  account: string
  made: number
  shards: readonly ListedShard[]
  attachmentFiles: readonly ListedFile[]
}

export class ArchiveFile {
  readonly folder: string
  readonly file: string
  readonly archiveId: string
  #text = ''
  #list: ArchiveList | undefined

  constructor(options: { folder: string; archiveId: string }) {
    this.folder = options.folder
    this.file = join(options.folder, FILE_NAME)
    this.archiveId = options.archiveId
  }

  /** As it is on disk now. Reading 20 kB takes some 30 µs; modification times are too coarse to go by. */
  read(): ArchiveList {
    let text: string
    try {
      text = readFileSync(this.file, 'utf8')
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== 'ENOENT')
        throw classifyStore(thrown, 'archive', this.file)
      throw archiveMissing(this.folder, `there is no ${FILE_NAME} in it`)
    }
    if (!this.#list || text !== this.#text) {
      this.#list = parsed(text, this)
      this.#text = text
    }
    return this.#list
  }

  /** `change` gets what is on disk, and returns what shall be. */
  update(locks: ArchiveLocks, change: (list: ArchiveList) => ArchiveList): ArchiveList {
    return locks.list(() => {
      const before = this.read()
      const after = change(before)
      if (after !== before) writeWhole(this, after)
      return this.read()
    })
  }

  pathOf(name: string): string {
    return join(this.folder, `${name}.db`)
  }
}

/** Finds the archive that a folder holds, or makes one. Refuses a folder that holds another. */
export function openArchiveFile(
  options: { folder: string; account: string; archiveId: string; expectExisting?: boolean },
  locks: ArchiveLocks,
): ArchiveFile {
  const file = new ArchiveFile(options)
  if (existsSync(file.file)) {
    const list = file.read()
    if (list.account !== options.account) {
      throw archiveForeign(options.folder, `it belongs to the account ${list.account}`)
    }
    return file
  }
  if (options.expectExisting) {
    const why = existsSync(options.folder) ? `there is no ${FILE_NAME} in it` : 'there is no such folder'
    throw archiveMissing(options.folder, why)
  }
  try {
    mkdirSync(options.folder, { recursive: true, mode: 0o700 })
    const stray = readdirSync(options.folder).find((name) => name.endsWith('.db'))
    if (stray) throw archiveForeign(options.folder, `there is a ${stray} in it, but no ${FILE_NAME}`)
  } catch (thrown) {
    throw classifyStore(thrown, 'archive', options.folder)
  }
  locks.list(() => {
    // Another process may have been faster.
    if (existsSync(file.file)) return
    const { archiveId, account } = options
    writeWhole(file, {
      format: ARCHIVE_FORMAT,
      archiveId,
      account,
      made: 0,
      shards: [],
      attachmentFiles: [],
    })
  })
  file.read()
  return file
}

function parsed(text: string, file: ArchiveFile): ArchiveList {
  let list: Partial<ArchiveList>
  try {
    list = JSON.parse(text) as Partial<ArchiveList>
  } catch {
    throw archiveMissing(file.folder, `its ${FILE_NAME} cannot be read`)
  }
  if (typeof list !== 'object' || list === null || !Array.isArray(list.shards) || !list.archiveId) {
    throw archiveForeign(file.folder, `its ${FILE_NAME} is none of Tidemark's`)
  }
  if (typeof list.format !== 'number' || list.format > ARCHIVE_FORMAT)
    throw archiveNewer(file.folder, list.format)
  if (list.archiveId !== file.archiveId) {
    throw archiveForeign(file.folder, `its id is ${list.archiveId}, and this account's is ${file.archiveId}`)
  }
  assertNames(file, list as ArchiveList)
  return list as ArchiveList
}

/** Names become paths: whoever can write this file must not be able to point anywhere else with it. */
function assertNames(file: ArchiveFile, { shards, attachmentFiles = [] }: ArchiveList): void {
  const wrong =
    shards.find(({ name }) => !shardOf(name)) ??
    attachmentFiles.find(({ name }) => !/^attachments-\d{1,9}$/.test(name))
  if (wrong) throw archiveForeign(file.folder, `its ${FILE_NAME} names ${JSON.stringify(wrong.name)}`)
}

/** Replaces the list as a whole; on disk when it returns. */
export function writeWhole(file: ArchiveFile, list: ArchiveList): void {
  const beside = `${file.file}.new`
  try {
    const descriptor = openSync(beside, 'w', 0o600)
    try {
      writeSync(descriptor, `${JSON.stringify(list, undefined, 1)}\n`)
      fsyncSync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    chmodSync(beside, 0o600)
    renameSync(beside, file.file)
    syncFolder(file.folder)
  } catch (thrown) {
    throw classifyStore(thrown, 'archive', file.file)
  }
}

/** A new or renamed file is there after a power cut only when its folder was synced too. */
export function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
