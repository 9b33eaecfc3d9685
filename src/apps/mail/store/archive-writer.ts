/**
 * The writing side of an archive, as one writer thread has it. Every thread and every process may have one: what they
 * must not do at the same time, the archive's locks keep apart.
 *
 * How a message comes in: it is made ready (no lock), then under the lock of its year it is looked for in every shard
 * that may have it, its large attachments are committed, its keys are noted in the catalogue, and then its row is
 * committed. So an id is never there twice, and a row never without its bytes. What is answered is on disk.
 */
import { existsSync } from 'node:fs'
import type { DatabaseSync } from 'node:sqlite'
import type { TidemarkError } from '../../../base/errors.ts'
import { type FetchedMessage, isMadeId, type MessageChange, madeId, type StoreOutcome } from '../message.ts'
import { ArchiveFile, type ListedShard } from './archive-file.ts'
import { ArchiveLocks } from './archive-locks.ts'
import { AttachmentWriter } from './attachment-files.ts'
import type { Keys } from './catalogue.ts'
import type { ArchiveCheck, ArchiveMark, Salvage, ShardPeriod } from './contract.ts'
import { Coverage } from './coverage.ts'
import { bytesRowsOf, shardsOfIds } from './id-lookup.ts'
import { type BytesRow, readRaw } from './message-bytes.ts'
import { type PreparedMessage, prepareMessage } from './prepared-message.ts'
import { Reindexing } from './reindex.ts'
import { asideFiles, salvagedContents, salvagedMessages } from './salvage.ts'
import { createFile, inodeOf, moveAside, openForReading, openForWriting } from './shard-file.ts'
import { ShardReader } from './shard-reader.ts'
import { partName, periodOf, shardOf, yearOf } from './shard-router.ts'
import { hexOf } from './shard-row.ts'
import { type Arrival, isSameMessage, type ShardApplied, ShardWriter } from './shard-writer.ts'
import { classifyStore, isDamaged, shardMissing } from './store-errors.ts'

/** A sync goes from year to year. Each keeps some megabytes of its file in memory. */
const WRITERS_OPEN_MAX = 3
/** Messages that are taken over in one go. */
const SALVAGED_MAX = 50

export type ArchiveWriterOptions = {
  folder: string
  archiveId: string
  shardBy: ShardPeriod
  shardBytesMax: number
}

/** Of one message: what became of it, or why it is not stored. */
export type Answer = { outcome: StoreOutcome } | { error: unknown }

/** `unknown`: ids that are in none of its shards, or in one that is `unreadable`. */
export type Applied = ShardApplied & { unknown: string[]; unreadable: TidemarkError[] }

type Item = { index: number; raw: Uint8Array; message: PreparedMessage }
type Located = Item & {
  shard: string
  /** Of what is stored already; true where nothing is. */
  isIntact: boolean
  /** Its bytes may have to be written: its attachments must be there first. */
  isBringing: boolean
}
type OpenWriter = { writer: ShardWriter; listed: ListedShard; inode: bigint | undefined }

export class ArchiveWriter {
  readonly #archive: ArchiveFile
  readonly #locks: ArchiveLocks
  readonly reader: ShardReader
  readonly #coverage: Coverage
  readonly #attachments: AttachmentWriter
  readonly #shardBy: ShardPeriod
  readonly #shardBytesMax: number
  readonly #writers = new Map<string, OpenWriter>()

  constructor(options: ArchiveWriterOptions) {
    this.#archive = new ArchiveFile(options)
    this.#locks = new ArchiveLocks(options.folder)
    this.reader = new ShardReader(options)
    this.#coverage = new Coverage({
      archive: this.#archive,
      locks: this.#locks,
      reader: this.reader,
      writer: (name) => this.#writer(name),
    })
    this.#attachments = new AttachmentWriter({
      archive: this.#archive,
      locks: this.#locks,
      bytesMax: options.shardBytesMax,
    })
    this.#shardBy = options.shardBy
    this.#shardBytesMax = options.shardBytesMax
  }

  /** One answer per message, in order. */
  store(messages: readonly FetchedMessage[], nowMs: number): Answer[] {
    const answers: Answer[] = []
    const items: Item[] = []
    messages.forEach((message, index) => {
      try {
        items.push({ index, raw: message.raw, message: prepareMessage(message) })
      } catch (error) {
        answers[index] = { error }
      }
    })
    for (const round of roundsOf(items)) {
      for (const [year, group] of byYear(round)) {
        try {
          this.#coverage.update()
          const work = (): void => this.#storeLocked(group, answers, nowMs)
          if (year === 'imports') this.#locks.alone(work)
          else this.#locks.year(year, work)
        } catch (error) {
          for (const { index } of group) answers[index] ??= { error }
        }
      }
    }
    return answers
  }

  /** The changes whose messages are in shards that `isOurs`. */
  apply(changes: readonly MessageChange[], isOurs: (shard: ListedShard) => boolean): Applied {
    this.#coverage.update()
    return this.#locks.shared(() => {
      this.reader.shards()
      const names = this.#archive
        .read()
        .shards.filter(isOurs)
        .map(({ name }) => name)
      const ids = [...new Set(changes.map(({ id }) => id))]
      const { found, missing, unreadable } = shardsOfIds(this.reader, ids, names)
      const parts: ShardApplied[] = []
      for (const [shard, group] of grouped(changes, ({ id }) => found.get(id))) {
        if (shard !== undefined) parts.push(this.#counted(shard, [], (writer) => writer.apply(group)))
      }
      const changed = parts.reduce((sum, part) => sum + part.changed, 0)
      return { changed, newer: parts.flatMap(({ newer }) => newer), unknown: missing, unreadable }
    })
  }

  /** What writes anew what follows from the raw bytes. */
  reindexing(): Reindexing {
    return new Reindexing({
      archive: this.#archive,
      locks: this.#locks,
      reader: this.reader,
      coverage: this.#coverage,
      contents: this.#attachments.reader(),
      counted: (name, keys, work) => this.#counted(name, keys, work),
    })
  }

  check(): ArchiveCheck {
    return this.#coverage.check()
  }

  mark(): ArchiveMark {
    return this.#coverage.mark()
  }

  takenDown(ids: readonly string[]): void {
    this.#coverage.takenDown(ids)
  }

  /** Moves a file of the archive out of the way, or forgets one that is missing. */
  setAside(name: string, nowMs: number): { movedTo: string | null } {
    return this.#locks.alone(() => {
      const file = this.#archive.pathOf(name)
      const list = this.#archive.read()
      const isListed = [...list.shards, ...list.attachmentFiles].some((one) => one.name === name)
      if (!isListed) throw shardMissing(name, file)
      this.#closeWriter(name)
      this.reader.close()
      this.#attachments.close()
      // Forgotten first: a crash in between leaves a file without an entry, which is looked at before it is used.
      this.#archive.update(this.#locks, (before) => ({
        ...before,
        shards: before.shards.filter((one) => one.name !== name),
        attachmentFiles: before.attachmentFiles.filter((one) => one.name !== name),
      }))
      try {
        return { movedTo: existsSync(file) ? moveAside(file, 'corrupt', nowMs) : null }
      } catch (thrown) {
        throw classifyStore(thrown, name, file)
      }
    })
  }

  /**
   * Takes over what can still be read in the files that were set aside, from this time or an earlier one: storing it
   * again changes nothing.
   */
  salvage(nowMs: number): Salvage[] {
    return asideFiles(this.#archive.folder).map((aside) => {
      const report = { file: aside.file, saved: 0, lost: 0 }
      let db: DatabaseSync
      try {
        db = openForReading(aside.file, { ...aside, archiveId: this.#archive.archiveId })
      } catch {
        return report // too damaged to be opened, or not ours: it stays where it is
      }
      try {
        if (aside.kind === 'shard') this.#salvageMessages(db, report, nowMs)
        else this.#salvageContents(db, report, nowMs)
      } finally {
        db.close()
      }
      return report
    })
  }

  close(): void {
    // Readers first: the last one to go writes the log back into its file, and readers cannot.
    this.reader.close()
    for (const name of [...this.#writers.keys()]) this.#closeWriter(name)
    this.#coverage.close()
    this.#attachments.close()
    this.#locks.close()
  }

  #salvageMessages(db: DatabaseSync, report: Salvage, nowMs: number): void {
    for (const group of groupsOf(salvagedMessages(db, this.#attachments.reader()), report, SALVAGED_MAX)) {
      const answers = this.store(
        group.map(({ message }) => message),
        nowMs,
      )
      const failed = answers.find((answer) => 'error' in answer)
      if (failed && 'error' in failed) throw failed.error
      report.saved += answers.filter((one) => 'outcome' in one && one.outcome.status === 'added').length
      const deletions = group.flatMap(({ message: { id, historyId }, deletedAtMs }) =>
        deletedAtMs === null ? [] : [{ id, historyId, deletedAtMs }],
      )
      if (deletions.length > 0) this.apply(deletions, () => true)
    }
  }

  #salvageContents(db: DatabaseSync, report: Salvage, nowMs: number): void {
    for (const group of groupsOf(salvagedContents(db), report, 1)) {
      this.#locks.shared(() => this.#attachments.store(group, nowMs))
    }
  }

  #storeLocked(items: readonly Item[], answers: Answer[], nowMs: number): void {
    const located = this.#locate(items, nowMs)
    const contents = located.flatMap(({ message, isBringing }) => (isBringing ? message.contents : []))
    this.#attachments.store(contents, nowMs)
    for (const [shard, group] of grouped(located, (one) => one.shard)) {
      try {
        this.#noteInList(shard, group)
        const outcomes = this.#counted(shard, group.map(keysOf), (writer) =>
          writer.store(group.map(toArrival), nowMs),
        )
        group.forEach(({ index }, n) => {
          answers[index] = { outcome: outcomes[n]! }
        })
      } catch (error) {
        for (const { index } of group) answers[index] = { error }
        // Whatever state its connection is in, the next use starts with a new one.
        this.#closeWriter(shard)
      }
    }
  }

  /** Where each message is, or where it shall go. */
  #locate(arrived: readonly Item[], nowMs: number): Located[] {
    const found = new Map<string, { shard: string; row: BytesRow }>()
    this.reader.shards()
    const { shards } = this.#archive.read()
    const items = shards.some(({ imports }) => imports) ? arrived.map(perhapsImported) : arrived
    const hints = this.reader.hints(
      'id',
      items.flatMap(({ message: { id, replaces } }) => (replaces === null ? [id] : [id, replaces])),
    )
    for (const shard of shards) {
      const hinted = new Set(hints(shard.name))
      if (hinted.size === 0) continue
      const ids = items
        .flatMap(({ message }) => idsIn(shard, message))
        .filter((id) => hinted.has(id) && !found.has(id))
      if (ids.length === 0) continue
      for (const row of bytesRowsOf(this.reader, shard.name, ids))
        found.set(row.id, { shard: shard.name, row })
    }
    const openParts = new Map<string, string>()
    return items.map((item) => {
      const { message } = item
      const stored = found.get(message.id)
      if (stored) {
        const isIntact = this.#isIntact(stored.shard, stored.row)
        const isBringing = !isIntact || Buffer.compare(stored.row.sha256, message.sha256) !== 0
        return { ...item, shard: stored.shard, isIntact, isBringing }
      }
      const before = message.replaces === null ? undefined : found.get(message.replaces)
      if (before && isSameMessage(before.row, message)) {
        return { ...item, shard: before.shard, isIntact: true, isBringing: true }
      }
      const period = periodOf(message.internalMs, this.#shardBy).name
      let shard = openParts.get(period)
      if (shard === undefined) {
        shard = this.#openPart(period, nowMs)
        openParts.set(period, shard)
      }
      return { ...item, shard, isIntact: true, isBringing: true }
    })
  }

  /** Read back from the disk: a message that comes again is the chance to mend what was damaged. */
  #isIntact(shard: string, row: BytesRow): boolean {
    try {
      readRaw({ shards: this.reader, contents: this.#attachments.reader() }, shard, row)
      return true
    } catch (thrown) {
      if (isDamaged(thrown)) return false
      throw thrown
    }
  }

  /** The last part of a period, or the next one where that has grown too large. */
  #openPart(period: string, nowMs: number): string {
    const last = lastPart(this.#archive.read().shards, period)
    if (last > 0) {
      const name = partName(period, last)
      if (this.#writer(name).fileBytes < this.#shardBytesMax) return name
    }
    const name = partName(period, last + 1)
    const { shards } = this.#archive.update(this.#locks, (before) => {
      if (before.shards.some((one) => one.name === name)) return before
      const { archiveId, account } = before
      createFile(this.#archive.pathOf(name), { kind: 'shard', name, archiveId, account }, nowMs)
      const made = before.made + 1
      const { fromMs, toMs } = shardOf(name)!
      return { ...before, made, shards: [...before.shards, { name, fromMs, toMs, made, imports: false }] }
    })
    this.#coverage.add(shards.find((one) => one.name === name)!)
    return name
  }

  #counted<Result>(name: string, keys: readonly Keys[], work: (writer: ShardWriter) => Result): Result {
    const writer = this.#writer(name)
    return this.#coverage.around(writer, this.#writers.get(name)!.listed, keys, () => work(writer))
  }

  /** What the list says about a shard holds before the shard does: it may say too much, never too little. */
  #noteInList(name: string, items: readonly Located[]): void {
    const imports = items.some(({ message }) => message.source === 'import')
    const times = items.map(({ message }) => message.internalMs)
    const widened = (shard: ListedShard): ListedShard => ({
      ...shard,
      fromMs: Math.min(shard.fromMs, ...times),
      toMs: Math.max(shard.toMs, ...times.map((ms) => ms + 1)),
      imports: shard.imports || imports,
    })
    const before = this.#archive.read().shards.find((one) => one.name === name)
    if (!before) throw shardMissing(name, this.#archive.pathOf(name))
    const after = widened(before)
    if (JSON.stringify(after) === JSON.stringify(before)) return
    this.#archive.update(this.#locks, (list) => ({
      ...list,
      shards: list.shards.map((shard) => (shard.name === name ? widened(shard) : shard)),
    }))
  }

  #writer(name: string): ShardWriter {
    const file = this.#archive.pathOf(name)
    const { shards, archiveId, account } = this.#archive.read()
    const listed = shards.find((one) => one.name === name)
    const inode = inodeOf(file)
    const open = this.#writers.get(name)
    if (open && listed?.made === open.listed.made && inode === open.inode) {
      this.#writers.delete(name)
      this.#writers.set(name, open)
      return open.writer
    }
    this.#closeWriter(name)
    if (!listed || inode === undefined) throw shardMissing(name, file)
    const db = openForWriting(file, { kind: 'shard', name, archiveId, account })
    if (this.#writers.size >= WRITERS_OPEN_MAX) this.#closeWriter(this.#writers.keys().next().value!)
    const writer = new ShardWriter({ name, file, db })
    this.#writers.set(name, { writer, listed, inode })
    this.#coverage.opened(listed, writer)
    return writer
  }

  #closeWriter(name: string): void {
    const open = this.#writers.get(name)
    this.#writers.delete(name)
    if (!open) return
    const { writer, listed, inode } = open
    try {
      const { generation } = writer
      writer.close()
      if (inodeOf(writer.file) === inode) this.#coverage.closed(listed, generation)
    } catch {
      writer.close() // its stamp is not noted: then it is looked into
    }
  }
}

/** What is there, some at a time; what is not is counted as lost. */
function* groupsOf<Value>(
  values: Iterable<Value | null>,
  report: { lost: number },
  size: number,
): Generator<Value[]> {
  let group: Value[] = []
  for (const value of values) {
    if (value === null) report.lost += 1
    else group.push(value)
    if (group.length < size) continue
    yield group
    group = []
  }
  if (group.length > 0) yield group
}

/** An id that comes twice is stored in two rounds: the second finds the first. */
function roundsOf(items: readonly Item[]): Item[][] {
  const rounds: Item[][] = []
  const seen = new Map<string, number>()
  for (const item of items) {
    const round = seen.get(item.message.id) ?? 0
    seen.set(item.message.id, round + 1)
    rounds[round] ??= []
    rounds[round].push(item)
  }
  return rounds
}

function byYear(items: readonly Item[]): Map<number | 'imports', Item[]> {
  return grouped(items, ({ message }) =>
    isAnywhere(message) ? ('imports' as const) : yearOf(message.internalMs),
  )
}

/** What comes from the cloud may have been imported from a file before. */
function perhapsImported(item: Item): Item {
  const { raw, message } = item
  if (message.source !== 'gmail' || message.replaces !== null) return item
  return { ...item, message: { ...message, replaces: madeId(raw, hexOf(message.sha256)) } }
}

/** An import may be anywhere, and so may what a message takes the place of. */
function isAnywhere({ source, replaces }: PreparedMessage): boolean {
  return source === 'import' || (replaces !== null && !isMadeId(replaces))
}

/**
 * The ids under which a shard may have a message. From the cloud it is in a shard of its time, or where an import put it,
 * perhaps under the id that the import made.
 */
function idsIn(shard: ListedShard, message: PreparedMessage): string[] {
  const { id, replaces, internalMs } = message
  if (shard.imports || isAnywhere(message)) return replaces === null ? [id] : [id, replaces]
  return shard.fromMs <= internalMs && internalMs < shard.toMs ? [id] : []
}

function lastPart(shards: readonly ListedShard[], period: string): number {
  const parts = shards.map(({ name }) => shardOf(name)).filter((one) => one?.name === period)
  return Math.max(0, ...parts.map((one) => one!.part))
}

function keysOf({ message: { id, threadId, messageId, replaces } }: Located): Keys {
  return { id, threadId, messageId, replaces }
}

function toArrival({ message, isIntact }: Located): Arrival {
  return { message, isIntact }
}

function grouped<Value, Key>(values: readonly Value[], keyOf: (value: Value) => Key): Map<Key, Value[]> {
  const groups = new Map<Key, Value[]>()
  for (const value of values) {
    const key = keyOf(value)
    const group = groups.get(key)
    if (group) group.push(value)
    else groups.set(key, [value])
  }
  return groups
}
