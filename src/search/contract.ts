/**
 * The one index over everything that Tidemark keeps: documents of Google Drive, mail with its attachments, synced files.
 *
 *   bytes ─▶ extract/ ─▶ chunk.ts ─▶ embed/ ─▶ index.publish(tx, document) ─▶ query/
 *
 * - A document is what a source offers: a Drive file, a message, a path. It is known by (source, ref).
 * - Its content is what was read of it: chunks and their vectors. Documents with the same bytes and the same name share
 *   one content, so that it is read and embedded once. The name belongs to it, because chunks are embedded with the
 *   name of their document: one person's name for a file must not be felt in another person's search.
 * - Access is a row for each (principal, document). A principal is an account as one word: `drive:ann@example.com`.
 *   Whoever searches brings the principals whose eyes he may use (`Reader`); no principals, no answer.
 *
 * Invariants:
 * - a document, its words, its chunks and its vectors are swapped in one transaction: no reader sees half of it
 * - every read path takes a Reader, and its access is part of the statement, not a filter over the answer
 * - a document without access rows is gone in the transaction that takes the last one away, and so is a content
 *   without documents
 */
import type { Tx } from '../ledger/contract.ts'
import type { Chunk } from './chunk.ts'
import type { Place } from './extract/contract.ts'

/** What a document is, for `type:`. */
export const DOCUMENT_TYPES = [
  'document',
  'sheet',
  'slides',
  'pdf',
  'text',
  'code',
  'mail',
  'attachment',
  'image',
  'media',
  'archive',
  'record',
  'other',
] as const
export type DocumentType = (typeof DOCUMENT_TYPES)[number]

/** What is embedded of a chunk, and read by whoever asks for its context. */
export function chunkContext(title: string, { headings, text }: Pick<Chunk, 'headings' | 'text'>): string {
  return `${[title, ...headings].filter((part) => part !== '').join(' › ')}\n${text}`
}

export type Content = {
  /** Of the bytes and the name: see contentKey. */
  key: string
  chunks: readonly Chunk[]
  /** One for each chunk, normalised; left out where they follow later. */
  vectors?: { model: string; of: readonly Float32Array[] }
  /** The document had more than is kept of it. */
  isTruncated: boolean
}

export type DocumentRef = {
  /** `drive`, `mail`, `files`: the app that offers it. */
  source: string
  /** Unique within its source. */
  ref: string
}

export type NewDocument = DocumentRef & {
  title: string
  type: DocumentType
  mimeType: string
  /** An address or a name; '' where nobody knows. */
  owner: string
  /** Further people, for `from:` and `to:`: senders and receivers, last editors. */
  people: readonly { role: 'from' | 'to' | 'editor'; name: string }[]
  /** Where it lies: a path of folders, a drive, labels; for `in:` and for people. */
  folders: readonly string[]
  /** Opens it where it lives; '' where it cannot be opened. */
  url: string
  createdAtMs: number | null
  modifiedAtMs: number | null
  sizeBytes: number | null
  /** By which a change is known: a hash or a version of the service. */
  version: string
  /** Undefined where only its name can be found, and why that is. */
  content: Content | { key: string } | undefined
  unread?: { code: string; reason: string }
  /** A document that this one is a part of: the message of an attachment. */
  parent?: DocumentRef
}

/** How somebody came to see a document. */
export type Grant = {
  kind: 'owner' | 'writer' | 'commenter' | 'reader'
  /** For people: `shared with the group sales@example.com`, `a member of the drive Legal`. */
  via: string
  /** Of the listing that found it: what an older complete listing had and this one has not is swept. */
  generation: number
  /** 0 where it is kept and lets see nothing for now. */
  expiresAtMs: number | null
}

export type AccessEnd = { ref: string; principal: string; expiresAtMs: number | null }

/** All documents of a source whose refs begin with the prefix, which is not empty and whose last character is ASCII. */
export type RefRange = { source: string; prefix: string }

export type AppendOptions = {
  /** Who sees them, and how; nobody, until they are revealed, where it is left out. */
  principal?: string | undefined
  grant?: Grant | undefined
  /** Otherwise they are found by their words only. */
  isEmbedded: boolean
}

/** Who asks: the accounts through which he may see. */
export type Reader = { readonly principals: readonly string[] }

/** What is written; each inside a transaction of the ledger, so that it commits with the job that brought it. */
export interface IndexWriter {
  /** Makes the tables where they are missing. Whoever writes calls it first, outside of any transaction. */
  prepare(): Promise<void>
  /** Whether this content is there already, so that nothing has to be read: then publish `{ key }`. */
  hasContent(key: string): Promise<boolean>
  /** Makes the document or swaps it; answers with its id. Access is left as it is. */
  publish(tx: Tx, document: NewDocument): Promise<number>
  /** What is told of it has changed (its name, its place), but not its bytes. False where it is not there. */
  describe(tx: Tx, document: Omit<NewDocument, 'content' | 'unread'>): Promise<boolean>
  grant(tx: Tx, document: DocumentRef, principal: string, grant: Grant): Promise<void>
  /** When accesses end that are there; of others nothing happens. Many in few statements. */
  expire(tx: Tx, source: string, ends: readonly AccessEnd[]): Promise<void>
  /** Takes an access away, and that to the parts of the document; with the last one the document goes. */
  revoke(tx: Tx, document: DocumentRef, principal: string): Promise<void>
  /** Of a principal, all access within a source that an older listing found; answers how many. */
  sweep(tx: Tx, of: { principal: string; source: string; before: number; folder?: string }): Promise<number>
  /** The document is gone for everybody. */
  remove(tx: Tx, document: DocumentRef): Promise<void>
  /**
   * Many that are known to be new, each with a content of its own whose key nobody else has, in few statements. One that
   * is there already is an error.
   */
  append(tx: Tx, documents: readonly NewDocument[], options: AppendOptions): Promise<void>
  /** A range is seen by a principal from now on. Answers how many documents that are. */
  reveal(tx: Tx, range: RefRange, principal: string, grant: Grant): Promise<number>
  /** The principal sees nothing of a range any more; its documents stay until they are removed. */
  hide(tx: Tx, range: RefRange, principal: string): Promise<number>
  /** Some of a range that was appended, whoever sees it; answers how many went, none at the end. */
  removeRange(tx: Tx, range: RefRange, limit: number): Promise<number>
  countRange(range: RefRange): Promise<number>
  /** Those of the prefixes with which the ref of some document begins. */
  knownPrefixes(source: string, prefixes: readonly string[]): Promise<ReadonlySet<string>>
  /** The versions of those that are there, by ref: what is as it was need not be read again. */
  versions(source: string, refs: readonly string[]): Promise<ReadonlyMap<string, string>>
  /** Of a source, what a principal can see, or all, in the order of refs; parts of other documents are left out. */
  refs(of: { source: string; principal?: string; after: string; limit: number }): Promise<readonly string[]>
  /** Contents without vectors of this model, those of the newest documents first; none of `except`. */
  withoutVectors(
    model: string,
    limit: number,
    except?: ReadonlySet<number>,
  ): Promise<readonly ContentToEmbed[]>
  addVectors(tx: Tx, contentId: number, vectors: NonNullable<Content['vectors']>): Promise<void>
}

export type ContentToEmbed = { contentId: number; texts: readonly string[] }

export type SearchRequest = {
  /** As it was typed, with its operators. */
  text: string
  reader: Reader
  /** `auto` is by words and by meaning where there are vectors. */
  mode?: 'auto' | 'words' | 'meaning'
  sort?: 'relevance' | 'newest' | 'oldest'
  limit: number
  /** From an earlier answer. */
  cursor?: string
  /** Only these, besides what the text says; by facet. */
  filters?: Readonly<Partial<Record<Facet, readonly string[]>>>
  facets?: boolean
  /** Documents with the same content are one hit, which names the others, unless they are asked for `apart`. */
  copies?: 'together' | 'apart'
  nowMs: number
  signal: AbortSignal
}

export type Facet = 'source' | 'type' | 'owner' | 'folder' | 'year'

export type SearchAnswer = {
  hits: readonly Hit[]
  /** Of hits over all pages, exact. */
  total: number
  /** Of the same hits; at most 50 values each, the most frequent first. */
  facets: Readonly<Partial<Record<Facet, readonly { value: string; count: number }[]>>>
  nextCursor: string | null
  /** How the text was understood, as a query again. */
  understood: string
  /** What was searched by, and why not by more: `meaning` is missing where no vectors or no embedder is there. */
  by: readonly ('words' | 'meaning')[]
  fellBack: { code: string; text: string } | null
  didYouMean: string | null
  /** Some hit has the words or is clearly about what was asked; where none is, hits are only the nearest there are. */
  answered: boolean
}

/** A piece of text; what was found in it is marked. */
export type Marked = readonly { text: string; found: boolean }[]

export type Hit = {
  id: number
  source: string
  ref: string
  title: Marked
  type: DocumentType
  owner: string
  folders: readonly string[]
  url: string
  modifiedAtMs: number | null
  snippet: Marked
  /** What the snippet was taken from; null where only the name was found. */
  citation: { chunk: number; place: Place; headings: readonly string[] } | null
  /** Other documents with the same content, which the reader may see. */
  alsoIn: readonly { id: number; title: string; folders: readonly string[]; url: string }[]
  why: Why
}

export type Why = {
  /** What of the score is whose; they add up to it. */
  score: number
  words: { score: number; found: readonly string[]; missing: readonly string[] } | null
  /**
   * `isWeak`: it has none of the words, and is so near that it may be about it, and as near as what answers other
   * questions: see STRONG_LEAD.
   */
  meaning: { score: number; similarity: number; isWeak: boolean } | null
  recency: number
  /** Through what the reader may see it. */
  access: readonly { principal: string; kind: Grant['kind']; via: string }[]
}

/** A document as its readers may see it. */
export type ReadDocument = Omit<Hit, 'snippet' | 'citation' | 'why' | 'title'> & {
  title: string
  mimeType: string
  createdAtMs: number | null
  sizeBytes: number | null
  unread: { code: string; reason: string } | null
  isTruncated: boolean
  chunks: readonly Chunk[]
  chunkCount: number
  access: Why['access']
}

/** How much of a source a reader can find, and how. */
export type Coverage = {
  source: string
  documents: number
  byWords: number
  byMeaning: number
  /** Only their names can be found, by reason. */
  unread: readonly { code: string; count: number }[]
}

export interface IndexReader {
  search(request: SearchRequest): Promise<SearchAnswer>
  /** Undefined where it is not there or the reader may not see it: nobody can tell these apart. */
  read(
    id: number,
    reader: Reader,
    page?: { fromChunk: number; limit: number },
  ): Promise<ReadDocument | undefined>
  find(document: DocumentRef, reader: Reader): Promise<number | undefined>
  /** Words and titles that begin like this, of what the reader may see. */
  suggest(
    text: string,
    reader: Reader,
    limit: number,
  ): Promise<readonly { text: string; kind: 'word' | 'title' }[]>
  coverage(reader: Reader): Promise<readonly Coverage[]>
  /** For admins, who are logged: everybody who can see a document, and through what. */
  who(
    id: number,
  ): Promise<readonly { principal: string; kind: Grant['kind']; via: string; expiresAtMs: number | null }[]>
}
