/**
 * What an archive of one account's mail can do. Files, in the account's folder:
 *
 *   archive.json          which archive this is: id, account, format version; which files must be there
 *   2019.db  2020.db …    shards: messages by the time Gmail received them, `2020-2.db` when 2020 grew too large
 *   attachments-1.db …    contents of large attachments, each once, by sha256
 *   catalogue.db          which shards to ask for an id; made from the shards, and made anew when it is lost
 *
 * Invariants:
 * - what `store` has answered is on disk: a power cut does not lose it
 * - storing the same message again changes nothing; no id is ever there twice
 * - bytes that were imported before the cloud gave them are there once, under the cloud's id
 * - the raw bytes that come out are those that went in, by sha256, or the answer says that they are not
 * - nothing removes a message; deletions in the cloud are marks
 * - one writer per shard; readers never wait for it
 */
import type {
  FetchedMessage,
  MessageChange,
  MessageSource,
  Proof,
  StoredMessage,
  StoreOutcome,
} from '../message.ts'
import type { Query } from '../query/query.ts'

export type ShardPeriod = 'month' | 'quarter' | 'year'

export type ArchiveOptions = {
  folder: string
  account: string
  /** Made once per account and kept in the ledger: a folder with another id is not this account's archive. */
  archiveId: string
  shardBy: ShardPeriod
  /** A shard that is larger gets no more messages; the next part of its period does. */
  shardBytesMax: number
  /** How many threads write; each shard belongs to one of them. */
  writers?: number
  /** The ledger knows this archive: a folder without one is a missing archive (a disk not mounted?), not a new one. */
  expectExisting?: boolean
  now: () => number
}

export type ShardInfo = {
  name: string
  file: string
  fromMs: number
  toMs: number
  messages: number
  deleted: number
  /** Raw bytes of its messages, before compression; and what the file takes. */
  rawBytes: number
  fileBytes: number
  state: 'ok' | 'missing' | 'corrupt'
  detail?: string
}

/** Of a file with contents of large attachments. */
export type AttachmentFileInfo = Pick<ShardInfo, 'name' | 'file' | 'fileBytes' | 'state' | 'detail'>

export type IdEntry = {
  id: string
  internalMs: number
  bytes: number
  deletedAtMs: number | null
  source: MessageSource
  labelIds: readonly string[]
}

export type SearchOptions = {
  /** `date`: newest first. `rank`: best first. */
  order?: 'date' | 'rank'
  limit?: number
  /** From an earlier page's `next`. */
  cursor?: string
  /** What label names mean: ids by lower-case name. */
  labels?: ReadonlyMap<string, string>
  now?: number
  /** Messages that the cloud no longer has are found too, unless this is false. */
  deleted?: boolean
}

export type SearchHit = {
  message: StoredMessage /** Part of the text around the words found, as [text, isMatch] pieces. */
  excerpt: readonly { text: string; match: boolean }[]
}

/** Shards that could not be searched, with the reason: their messages are missing from the answer. */
export type Unsearched = readonly { shard: string; reason: string }[]

export type SearchPage = {
  hits: readonly SearchHit[]
  next: string | null
  unsearched: Unsearched
}

export type SearchCount = { messages: number; bytes: number; unsearched: Unsearched }

export type StatsBy = 'year' | 'sender' | 'label' | 'size'
export type FacetCount = { value: string; messages: number }
export type SearchFacets = SearchCount & {
  /** So many of them, the newest, were looked at for the rest. */
  counted: number
  /** In UTC, the newest first. */
  years: readonly FacetCount[]
  /** Addresses in small letters, and ids of labels; those of most messages first. */
  senders: readonly FacetCount[]
  labels: readonly FacetCount[]
}

export type StatsRow = { key: string; messages: number; bytes: number }
export type Stats = { rows: readonly StatsRow[]; unsearched: Unsearched }

export type VerifyEvent =
  | { type: 'shard'; shard: string; messages: number; state: ShardInfo['state']; detail?: string }
  | {
      type: 'message'
      shard: string
      id: string
      /**
       * `differs`: its bytes are sound, and something that follows from them is not as it should be. `outdated`: the
       * same in a shard that was last written by an earlier version, which may be all that is the matter.
       */
      state: Exclude<Proof['state'], 'proven' | 'imported'> | 'differs' | 'outdated'
      detail: string
    }
  | { type: 'progress'; shard: string; messages: number; bytes: number }

export type ReindexOptions = {
  /** Of all messages in these shards. */
  shards?: readonly string[]
  /** Only of these, by shard. */
  only?: ReadonlyMap<string, readonly string[]>
  signal?: AbortSignal
}

/** `damaged`: ids whose bytes cannot be read, so that nothing follows from them. */
export type ReindexEvent = { shard: string; messages: number; total: number; damaged: readonly string[] }

/** Of a file that was set aside: messages that were not there any more and are again, and rows that cannot be had. */
export type Salvage = { file: string; saved: number; lost: number }

/** An id that was in a shard, and is not in what is there under its name now; `fromMs`: where the shard begins. */
export type DroppedId = { id: string; shard: string; fromMs: number }

/**
 * What tells an archive from an older copy of it: `tips` are random names that its latest states were given, the newest
 * first; `stores` is how often anything was written, ever. A tip that was noted elsewhere and is not among them was
 * given to another course of the archive than this one; or the catalogue was made anew, which looks the same.
 */
export type ArchiveMark = { stores: number; tips: readonly string[] }

/** `older`: how often a shard was found that is older than what was stored in it. */
export type ArchiveCheck = { mark: ArchiveMark; older: number; dropped: readonly DroppedId[] }

export type MessageWithText = { message: StoredMessage; text: string }

export type Archive = {
  readonly account: string
  readonly folder: string
  /**
   * Durable when it resolves. Resolves with one outcome per message, in order; rejects as a whole when the disk
   * refuses. What is stored already is read back first: where its bytes are damaged they are written again.
   */
  store(messages: readonly FetchedMessage[]): Promise<StoreOutcome[]>
  /** Resolves when the writers have taken in enough of what they were given: wait for it before fetching more. */
  room(signal?: AbortSignal): Promise<void>
  /** Bytes given to the writers and not yet on disk. */
  readonly queuedBytes: number
  /** Which of these are in the archive, with their bytes (marked as deleted or not); of a `source`, only from there. */
  stored(ids: readonly string[], options?: { source?: MessageSource }): Promise<Set<string>>
  /**
   * Applies what the cloud reported, in order; durable when it resolves. `unknown`: ids that are not stored. `newer`: ids
   * of which the archive had heard something since the change.
   */
  apply(changes: readonly MessageChange[]): Promise<{ changed: number; unknown: string[]; newer: string[] }>
  message(id: string): Promise<StoredMessage | null>
  /** All stored messages of a thread, oldest first. */
  thread(threadId: string): Promise<StoredMessage[]>
  /** The bytes, read from the committed file; throws where they are not what they should be. */
  raw(id: string): Promise<Uint8Array>
  /** The extracted plain text. */
  text(id: string): Promise<string>
  /** Both in one go, null where it has none. */
  messageWithText(id: string): Promise<MessageWithText | null>
  attachment(id: string, index: number): Promise<{ name: string; type: string; content: Uint8Array }>
  /** Reads the bytes of each back from its committed file and compares their hash. In the order asked. */
  prove(ids: readonly string[]): Promise<Proof[]>
  /** Everything stored with internalMs in [fromMs, toMs), in pages, oldest first. */
  entries(range: { fromMs: number; toMs: number; pageSize?: number }): AsyncIterable<readonly IdEntry[]>
  search(query: Query, options?: SearchOptions): Promise<SearchPage>
  count(query: Query, options?: SearchOptions): Promise<SearchCount>
  /** How many, and what years, senders and labels the newest of them have. */
  facets(query: Query, options?: SearchOptions): Promise<SearchFacets>
  stats(by: StatsBy, limit?: number): Promise<Stats>
  shards(): Promise<ShardInfo[]>
  attachmentFiles(): Promise<AttachmentFileInfo[]>
  /** Looks at every file, without reading it, for one that is older than what was stored in it. */
  check(): Promise<ArchiveCheck>
  /** Names the state that it has now, with all that is stored. */
  mark(): Promise<ArchiveMark>
  /** Ids that were `dropped` are not named again. */
  takenDown(ids: readonly string[]): Promise<void>
  /**
   * Re-reads every raw byte against its hash, every shard for its own consistency, and compares texts, headers, labels
   * and the search index with what follows from the bytes.
   */
  verify(options?: { shards?: readonly string[]; signal?: AbortSignal }): AsyncIterable<VerifyEvent>
  /**
   * Writes anew what follows from the raw bytes: of these messages, or of all. One that was interrupted goes on where
   * it was. Others may read and write meanwhile.
   */
  reindex(options?: ReindexOptions): AsyncIterable<ReindexEvent>
  /** Moves a shard that is corrupt aside (`2019.db.corrupt-…`, never deleted), so that its messages can be fetched again. */
  setAside(shard: string): Promise<{ movedTo: string | null }>
  /** Takes over what can still be read in files that were set aside: the cloud may no longer have it. */
  salvage(): Promise<readonly Salvage[]>
  close(): Promise<void>
}
