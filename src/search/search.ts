/**
 * The index of a ledger, opened: who writes to it, and who reads. Its tables are made by the first who prepares to write;
 * until then there is nothing to find, and nothing is made by who only looks.
 */
import type { Clock } from '../base/clock.ts'
import { TidemarkError } from '../base/errors.ts'
import type { Tx } from '../ledger/contract.ts'
import type { Ledger } from '../ledger/ledger.ts'
import { ThreadClient } from '../ledger/thread-client.ts'
import type {
  Coverage,
  DocumentRef,
  IndexReader,
  IndexWriter,
  ReadDocument,
  Reader,
  SearchAnswer,
  SearchRequest,
} from './contract.ts'
import type { Embedder } from './embed/embedder.ts'
import type { IndexDialect } from './index/dialect.ts'
import { SEARCH_APP, searchTables } from './index/tables.ts'
import { Writer } from './index/writer.ts'
import { newPostgresDialect } from './postgres/dialect.ts'
import { withinTime } from './postgres/time-limit.ts'
import { strongSimilarity } from './query/fuse.ts'
import { parseSearch } from './query/parse.ts'
import { planOf } from './query/plan.ts'
import { INDEX_READS, type IndexReads, type ReadName } from './query/reads.ts'
import { addressesOf, type SearchInput } from './query/search-index.ts'
import { newReaderMemory, sqliteDialect, sqliteDialectWith } from './sqlite/dialect.ts'
import type { ReaderThreadData } from './sqlite/reader-thread.ts'
import { QUESTION_MS_MAX, ReaderThreads } from './sqlite/reader-threads.ts'

export type Search = IndexWriter &
  IndexReader & {
    /** Undefined where searches are by words only. */
    readonly embedder: Embedder | undefined
    /** Ends what was started for searching; not the embedder, which is whoever opened it to end. */
    close(): Promise<void>
  }

/** A page of results with all their chunks is some megabytes; what a search goes through is more. */
const THREAD_HEAP_MB_MAX = 512

type ReadArgs<N extends ReadName> = Parameters<IndexReads[N]>[2]
type ReadAnswer<N extends ReadName> = Awaited<ReturnType<IndexReads[N]>>
type Read<N extends ReadName> = (
  tx: Tx,
  dialect: IndexDialect,
  args: ReadArgs<N>,
  clock: Clock,
) => Promise<ReadAnswer<N>>

export type SearchOptions = {
  ledger: Ledger
  embedder?: Embedder
  /** On PostgreSQL; for tests. */
  questionMsMax?: number
}

export function openSearch(options: SearchOptions): Search {
  return new OpenSearch(options)
}

/** A file is read by a thread, which keeps what it has read; from a server this process reads, and keeps it itself. */
function dialectFor({ dialect, driver }: Ledger): IndexDialect {
  if (dialect === 'postgres') return newPostgresDialect()
  return driver.file === null ? sqliteDialectWith(newReaderMemory()) : sqliteDialect
}

class OpenSearch extends Writer implements Search {
  readonly embedder: Embedder | undefined
  readonly #ledger: Ledger
  readonly #dialect: IndexDialect
  readonly #questionMsMax: number
  #prepared: Promise<void> | undefined
  #isPrepared = false
  /** Somebody has made the tables. */
  #isMade = false
  #threads: ReaderThreads | undefined

  constructor({ ledger, embedder, questionMsMax = QUESTION_MS_MAX }: SearchOptions) {
    const dialect = dialectFor(ledger)
    super({
      dialect,
      prepare: () => this.#prepare(),
      isPrepared: () => this.#isPrepared,
      read: (fn) => ledger.driver.read(fn),
    })
    this.#ledger = ledger
    this.#dialect = dialect
    this.#questionMsMax = questionMsMax
    this.embedder = embedder
  }

  async search(request: SearchRequest): Promise<SearchAnswer> {
    const { signal, ...rest } = request
    signal.throwIfAborted()
    const meaning = await this.#meaningOf(request)
    signal.throwIfAborted()
    const input: SearchInput = { ...rest, accessNowMs: this.#ledger.now(), meaning }
    return (await this.#look('search', input)) ?? NOTHING
  }

  read(id: number, reader: Reader, page = { fromChunk: 0, limit: 50 }): Promise<ReadDocument | undefined> {
    return this.#look('read', { id, reader, nowMs: this.#ledger.now(), page })
  }

  find(document: DocumentRef, reader: Reader): Promise<number | undefined> {
    return this.#look('find', { document, reader, nowMs: this.#ledger.now() })
  }

  async suggest(text: string, reader: Reader, limit: number) {
    return (await this.#look('suggest', { text, reader, limit, nowMs: this.#ledger.now() })) ?? []
  }

  async coverage(reader: Reader): Promise<readonly Coverage[]> {
    const by = { reader, nowMs: this.#ledger.now(), model: this.embedder?.model ?? null }
    return (await this.#look('coverage', by)) ?? []
  }

  async who(id: number) {
    return (await this.#look('who', id)) ?? []
  }

  async close(): Promise<void> {
    await this.#threads?.stop()
  }

  #prepare(): Promise<void> {
    this.#prepared ??= this.#ledger.migrateApp(SEARCH_APP, searchTables(this.#ledger.dialect)).then(
      () => {
        this.#isPrepared = true
      },
      (thrown: unknown) => {
        this.#prepared = undefined
        throw thrown
      },
    )
    return this.#prepared
  }

  /** Undefined where there are no tables yet. On SQLite the thread is started by the first who looks. */
  async #look<N extends ReadName>(name: N, args: ReadArgs<N>): Promise<ReadAnswer<N> | undefined> {
    if (!(await this.#hasTables())) return undefined
    const { file, clock } = this.#ledger.driver
    if (file === null || file === ':memory:') {
      const read = INDEX_READS[name] as unknown as Read<N>
      const msMax = this.#questionMsMax
      return this.#ledger.driver.snapshot((tx) =>
        // A database in memory is of tests, and a libSQL server has a limit of its own.
        tx.dialect === 'sqlite'
          ? read(tx, this.#dialect, args, clock)
          : withinTime(tx, { msMax, clock }, (timed) => read(timed, this.#dialect, args, clock)),
      )
    }
    const start = () =>
      new ThreadClient({
        script: new URL('./sqlite/reader-thread.ts', import.meta.url),
        name: 'The thread that searches',
        code: 'search-thread',
        data: { file } satisfies ReaderThreadData,
        heapMbMax: THREAD_HEAP_MB_MAX,
      })
    this.#threads ??= new ReaderThreads({ clock, start })
    return this.#threads.ask<ReadAnswer<N>>(name, args)
  }

  async #hasTables(): Promise<boolean> {
    if (this.#isMade || this.#isPrepared) return true
    const row = await this.#ledger.driver.read((tx) =>
      tx.get(`SELECT 1 AS made FROM app_schemas WHERE app = ? AND version > 0`, [SEARCH_APP]),
    )
    this.#isMade = row !== undefined
    return this.#isMade
  }

  /** Embedding takes its time, and may fail: then the search is by words, and says so. */
  async #meaningOf({ text, mode, nowMs, reader, signal }: SearchRequest): Promise<SearchInput['meaning']> {
    // A query that cannot be read is refused before anything is asked of the embedder or the database.
    const { meaning } = planOf(parseSearch(text, { now: nowMs, me: addressesOf(reader) }))
    if (meaning === '' || mode === 'words') return null
    const { embedder } = this
    if (!embedder) {
      return {
        missing: { code: 'no-embedder', text: 'Nothing embeds queries here: this search was by words only.' },
      }
    }
    try {
      const [query] = await embedder.embed([meaning], { purpose: 'query', signal })
      const { model, chance, background } = embedder
      return { model, chance, strong: strongSimilarity(query!, { chance, background }), query: query! }
    } catch (thrown) {
      if (signal.aborted) throw thrown
      const why = thrown instanceof TidemarkError ? ` ${thrown.message}` : ''
      return {
        missing: {
          code: 'embedder-failed',
          text: `The query could not be embedded: this search was by words only.${why}`,
        },
      }
    }
  }
}

const NOTHING: SearchAnswer = {
  hits: [],
  total: 0,
  facets: {},
  nextCursor: null,
  understood: '',
  by: [],
  fellBack: null,
  didYouMean: null,
  answered: false,
}
