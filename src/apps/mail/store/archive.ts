/**
 * An archive of one account's mail: what contract.ts promises, with the work done in threads. This file only passes
 * things on: writes go through the queue to the writer threads, reads to the reader thread, which is started when first
 * needed; verifying has a thread of its own, so that searches do not wait for it.
 */

import { ThreadClient } from '../../../ledger/thread-client.ts'
import { unpackError } from '../../../ledger/thread-service.ts'
import type { MessageChange, Proof } from '../message.ts'
import { openArchiveFile } from './archive-file.ts'
import { ArchiveLocks } from './archive-locks.ts'
import type { EntryCursor, EntryPage } from './archive-reader.ts'
import type {
  Archive,
  ArchiveOptions,
  IdEntry,
  ReindexEvent,
  ReindexOptions,
  VerifyEvent,
} from './contract.ts'
import type { ReindexFile, ReindexPage } from './reindex.ts'
import { archiveClosed, isUnreadable } from './store-errors.ts'
import type { VerifyFile, VerifyPage } from './verify.ts'
import { WriteQueue } from './write-queue.ts'
import type { SentApplied } from './writer-thread.ts'

/** One thread writes some thousands of messages a second: more than Gmail gives. Each costs memory of its own. */
const WRITERS_DEFAULT = 1
const WRITER_HEAP_MB_MAX = 256
const READER_HEAP_MB_MAX = 256
const ENTRIES_PAGE = 1_000
const CHANGES_PAGE = 500
const IDS_PAGE = 5_000
/** Messages read back in one question: others get their turn in between. */
const PROVE_PAGE = 100

export async function openArchive(options: ArchiveOptions): Promise<Archive> {
  const locks = new ArchiveLocks(options.folder)
  try {
    openArchiveFile(options, locks)
  } finally {
    locks.close()
  }
  return new ThreadedArchive(options)
}

class ThreadedArchive implements Archive {
  readonly account: string
  readonly folder: string
  readonly #options: ArchiveOptions
  readonly #writers: readonly ThreadClient[]
  readonly #reader: ThreadClient
  readonly #verifiers = new Set<ThreadClient>()
  readonly #queue: WriteQueue
  #applied: Promise<unknown> = Promise.resolve()
  #isClosed = false

  constructor(options: ArchiveOptions) {
    this.account = options.account
    this.folder = options.folder
    this.#options = options
    const threads = Math.max(1, options.writers ?? WRITERS_DEFAULT)
    this.#writers = Array.from({ length: threads }, (_, thread) => writerThread(options, thread, threads))
    this.#reader = readerThread(options, 'all')
    this.#queue = new WriteQueue(this.#writers, options.now)
  }

  get queuedBytes(): number {
    return this.#queue.queuedBytes
  }

  store: Archive['store'] = async (messages) => {
    this.#assertOpen()
    return await this.#queue.store(messages)
  }

  room: Archive['room'] = (signal) => this.#queue.room(signal)

  stored: Archive['stored'] = async (ids, { source } = {}) => {
    const found = new Set<string>()
    for (const page of pagesOf(ids, IDS_PAGE)) {
      for (const id of await this.#read<string[]>('stored', { ids: page, source })) found.add(id)
    }
    return found
  }

  /** One after another, whoever asks: two changes of one message keep their order. */
  apply: Archive['apply'] = (changes) => {
    const applied = this.#applied.then(() => this.#applyAll(changes))
    this.#applied = applied.catch(() => undefined) // told to whoever asked for it; the next one starts afresh
    return applied
  }

  message: Archive['message'] = (id) => this.#read('message', id)
  thread: Archive['thread'] = (threadId) => this.#read('thread', threadId)
  raw: Archive['raw'] = (id) => this.#read('raw', id)
  text: Archive['text'] = (id) => this.#read('text', id)
  messageWithText: Archive['messageWithText'] = (id) => this.#read('messageWithText', id)
  attachment: Archive['attachment'] = (id, index) => this.#read('attachment', { id, index })

  prove: Archive['prove'] = async (ids) => {
    const proofs: Proof[] = []
    for (const page of pagesOf(ids, PROVE_PAGE)) proofs.push(...(await this.#read<Proof[]>('prove', page)))
    return proofs
  }

  async *entries({
    fromMs,
    toMs,
    pageSize,
  }: Parameters<Archive['entries']>[0]): AsyncGenerator<readonly IdEntry[]> {
    let after: EntryCursor | null = null
    do {
      const args = { fromMs, toMs, limit: pageSize ?? ENTRIES_PAGE, after }
      const page: EntryPage = await this.#read<EntryPage>('entries', args)
      if (page.entries.length > 0) yield page.entries
      after = page.next
    } while (after)
  }

  search: Archive['search'] = (query, options = {}) => this.#read('search', { query, options })
  count: Archive['count'] = (query, options = {}) => this.#read('count', { query, options })
  facets: Archive['facets'] = (query, options = {}) => this.#read('facets', { query, options })
  stats: Archive['stats'] = (by, limit) => this.#read('stats', { by, limit })
  shards: Archive['shards'] = () => this.#read('shards', undefined)
  attachmentFiles: Archive['attachmentFiles'] = () => this.#read('attachmentFiles', undefined)

  async *verify(options: Parameters<Archive['verify']>[0] = {}): AsyncGenerator<VerifyEvent> {
    this.#assertOpen()
    const thread = readerThread(this.#options, 'few')
    this.#verifiers.add(thread)
    try {
      for (const file of await thread.ask<VerifyFile[]>('filesToVerify', options.shards)) {
        options.signal?.throwIfAborted()
        yield* verifyFile(thread, file, options.signal)
      }
    } finally {
      this.#verifiers.delete(thread)
      await thread.stop()
    }
  }

  check: Archive['check'] = async () => {
    this.#assertOpen()
    return await this.#writers[0]!.ask('check', undefined)
  }

  mark: Archive['mark'] = async () => {
    this.#assertOpen()
    return await this.#writers[0]!.ask('mark', undefined)
  }

  takenDown: Archive['takenDown'] = async (ids) => {
    this.#assertOpen()
    await this.#writers[0]!.ask('takenDown', ids)
  }

  async *reindex({ shards, only, signal }: ReindexOptions = {}): AsyncGenerator<ReindexEvent> {
    this.#assertOpen()
    const writer = this.#writers[0]!
    const isAll = !shards && !only
    const run = isAll ? await writer.ask<string>('beginReindex', this.#options.now()) : null
    for (const { shard, total, after } of await writer.ask<ReindexFile[]>('filesToReindex', {
      shards,
      only,
      run,
    })) {
      const ids = only?.get(shard)
      let cursor = after
      let messages = 0
      for (
        let page: ReindexPage = { messages: 0, last: cursor, isOver: false, damaged: [] };
        !page.isOver;
      ) {
        signal?.throwIfAborted()
        page = await writer.ask<ReindexPage>('reindexPage', { shard, after: cursor, ids })
        cursor = page.last
        messages += page.messages
        yield { shard, messages, total, damaged: page.damaged }
      }
      await writer.ask('endReindexOf', { shard, run, isWhole: !ids })
    }
    if (isAll) await writer.ask('endReindex', undefined)
  }

  setAside: Archive['setAside'] = async (name) => {
    this.#assertOpen()
    return await this.#writers[0]!.ask('setAside', { name, nowMs: this.#options.now() })
  }

  salvage: Archive['salvage'] = async () => {
    this.#assertOpen()
    return await this.#writers[0]!.ask('salvage', { nowMs: this.#options.now() })
  }

  /** What was given to it is written first. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#queue.drained()
    await this.#applied
    // Writers last: the last one to go writes a shard's log back into its file.
    await Promise.all([this.#reader, ...this.#verifiers].map((thread) => thread.stop()))
    await Promise.all(this.#writers.map((thread) => thread.stop()))
  }

  async #read<Value>(method: string, args: unknown): Promise<Value> {
    this.#assertOpen()
    return await this.#reader.ask<Value>(method, args)
  }

  async #applyAll(changes: readonly MessageChange[]): ReturnType<Archive['apply']> {
    this.#assertOpen()
    let changed = 0
    const unknown: string[] = []
    const newer: string[] = []
    for (const page of pagesOf(changes, CHANGES_PAGE)) {
      const parts = await Promise.all(this.#writers.map((thread) => thread.ask<SentApplied>('apply', page)))
      const missing = commonIds(parts.map((part) => part.unknown))
      const trouble = parts.flatMap((part) => part.unreadable)[0]
      // It may be in the shard that cannot be read.
      if (missing.length > 0 && trouble) throw unpackError(trouble)
      changed += parts.reduce((sum, part) => sum + part.changed, 0)
      unknown.push(...missing)
      newer.push(...parts.flatMap((part) => part.newer))
    }
    return { changed, unknown: [...new Set(unknown)], newer: [...new Set(newer)] }
  }

  #assertOpen(): void {
    if (this.#isClosed) throw archiveClosed(this.folder)
  }
}

async function* verifyFile(
  thread: ThreadClient,
  file: VerifyFile,
  signal: AbortSignal | undefined,
): AsyncGenerator<VerifyEvent> {
  const shard = file.name
  let messages = 0
  let bytes = 0
  try {
    await thread.ask('checkFile', file)
    if (file.kind === 'shard') await thread.ask('beginVerify', shard)
    let isOver = file.kind !== 'shard'
    while (!isOver) {
      signal?.throwIfAborted()
      const page: VerifyPage = await thread.ask<VerifyPage>('verifyPage', undefined)
      messages += page.messages
      bytes += page.bytes
      yield* page.events
      yield { type: 'progress', shard, messages, bytes }
      isOver = page.isOver
    }
    yield { type: 'shard', shard, messages, state: 'ok' }
  } catch (thrown) {
    if (!isUnreadable(thrown)) throw thrown
    const state = thrown.code === 'shard-missing' ? 'missing' : 'corrupt'
    yield { type: 'shard', shard, messages, state, detail: thrown.message }
  }
}

function writerThread(options: ArchiveOptions, thread: number, threads: number): ThreadClient {
  const { folder, archiveId, shardBy, shardBytesMax } = options
  return new ThreadClient({
    script: new URL('./writer-thread.ts', import.meta.url),
    name: `The writer of the mail archive at ${folder}`,
    code: 'archive-thread',
    data: { folder, archiveId, shardBy, shardBytesMax, thread, threads },
    heapMbMax: WRITER_HEAP_MB_MAX,
  })
}

function readerThread({ folder, archiveId }: ArchiveOptions, asks: 'all' | 'few'): ThreadClient {
  return new ThreadClient({
    script: new URL('./reader-thread.ts', import.meta.url),
    name: `The reader of the mail archive at ${folder}`,
    code: 'archive-thread',
    data: { folder, archiveId, asks },
    heapMbMax: READER_HEAP_MB_MAX,
  })
}

/** What all of them have. */
function commonIds(lists: readonly string[][]): string[] {
  const [first = [], ...others] = lists
  const sets = others.map((list) => new Set(list))
  return first.filter((id) => sets.every((set) => set.has(id)))
}

function pagesOf<Value>(values: readonly Value[], size: number): Value[][] {
  const pages: Value[][] = []
  for (let start = 0; start < values.length; start += size) pages.push(values.slice(start, start + size))
  return pages
}
