/**
 * What is written to the index, inside transactions of the ledger. See tables.ts for what is kept where.
 *
 * On PostgreSQL several write at once: who takes away the last access of a document, or the last document of a content,
 * first locks its row, and looks for others only then. Locks are taken in the order of ids within one call; whole
 * transactions that deadlock are run again by the ledger.
 */
import { TidemarkError } from '../../base/errors.ts'
import type { Tx } from '../../ledger/contract.ts'
import type {
  AccessEnd,
  AppendOptions,
  Content,
  ContentToEmbed,
  DocumentRef,
  Grant,
  IndexWriter,
  NewDocument,
  RefRange,
} from '../contract.ts'
import { chunkContext } from '../contract.ts'
import { appendDocuments, countRange, hideRange, knownPrefixes, removeRange, revealRange } from './bulk.ts'
import { type IndexDialect, places } from './dialect.ts'
import { clean, columnsOf } from './document-row.ts'
import { type ChunkWords, documentWords } from './document-words.ts'

/** What reads outside of a transaction goes through here; `prepare` makes the tables where they are missing. */
export type WriterSurroundings = {
  dialect: IndexDialect
  /** Makes the tables, outside of any transaction. */
  prepare(): Promise<void>
  isPrepared(): boolean
  read<T>(fn: (tx: Tx) => Promise<T>): Promise<T>
}

const CHUNKS_INSERTED_MAX = 200
/** Of parameters in one list; SQLite takes 32,766. */
const REFS_MAX = 500
/** Of chunks in one answer of `withoutVectors`, so that a batch stays a batch also with long documents. */
const CHUNKS_TO_EMBED_MAX = 512
const PARTS_DEPTH_MAX = 3

type DocumentRow = { id: number; content_id: number | null }

export class Writer implements IndexWriter {
  readonly #around: WriterSurroundings
  readonly #dialect: IndexDialect

  constructor(around: WriterSurroundings) {
    this.#around = around
    this.#dialect = around.dialect
  }

  prepare(): Promise<void> {
    return this.#around.prepare()
  }

  async hasContent(key: string): Promise<boolean> {
    await this.#around.prepare()
    const row = await this.#around.read((tx) =>
      tx.get<{ id: number }>(`SELECT id FROM search_contents WHERE key = ?`, [key]),
    )
    return row !== undefined
  }

  async publish(tx: Tx, document: NewDocument): Promise<number> {
    this.#assertPrepared()
    const before = await lockDocument(tx, document)
    const contentId = document.content ? await this.#content(tx, document, document.content) : null
    const id = await putDocument(tx, document, contentId)
    const chunks = await bodyOf(tx, contentId, document.content)
    await this.#putWords(tx, id, document, chunks)
    if (before?.content_id != null && before.content_id !== contentId) {
      await this.#dropUnused(tx, before.content_id)
    }
    return id
  }

  async describe(tx: Tx, document: Omit<NewDocument, 'content' | 'unread'>): Promise<boolean> {
    this.#assertPrepared()
    const row = await lockDocument(tx, document)
    if (!row) return false
    const values = columnsOf(document)
    const set = Object.keys(values).map((name) => `${name} = ?`)
    await tx.run(`UPDATE search_documents SET ${set.join(', ')} WHERE id = ?`, [
      ...Object.values(values),
      row.id,
    ])
    await this.#putWords(tx, row.id, document, await bodyOf(tx, row.content_id, undefined))
    return true
  }

  async grant(tx: Tx, document: DocumentRef, principal: string, grant: Grant): Promise<void> {
    this.#assertPrepared()
    const row = await lockDocument(tx, document)
    if (!row) throw unknownDocument(document)
    const principalId = await this.#principal(tx, principal)
    await tx.run(
      `INSERT INTO search_access(principal_id, doc_id, expires_at, generation, kind, via) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (principal_id, doc_id) DO UPDATE SET expires_at = excluded.expires_at,
         generation = excluded.generation, kind = excluded.kind, via = excluded.via`,
      [principalId, row.id, grant.expiresAtMs, grant.generation, grant.kind, grant.via],
    )
  }

  async expire(tx: Tx, source: string, ends: readonly AccessEnd[]): Promise<void> {
    this.#assertPrepared()
    const rows =
      tx.dialect === 'postgres'
        ? `jsonb_to_recordset(?::jsonb) AS given(ref text, principal text, "expiresAtMs" bigint)`
        : `(SELECT json_extract(value, '$.ref') AS ref, json_extract(value, '$.principal') AS principal,
             json_extract(value, '$.expiresAtMs') AS "expiresAtMs" FROM json_each(?)) AS given`
    for (let from = 0; from < ends.length; from += REFS_MAX) {
      await tx.run(
        `UPDATE search_access SET expires_at = given."expiresAtMs" FROM ${rows}
         JOIN search_principals p ON p.name = given.principal
         JOIN search_documents d ON d.source = ? AND d.ref = given.ref
         WHERE search_access.principal_id = p.id AND search_access.doc_id = d.id`,
        [JSON.stringify(ends.slice(from, from + REFS_MAX)), source],
      )
    }
  }

  async revoke(tx: Tx, document: DocumentRef, principal: string): Promise<void> {
    this.#assertPrepared()
    const who = await findPrincipal(tx, principal)
    if (who === undefined) return
    for (const { id } of await withParts(tx, document)) {
      await tx.run(`DELETE FROM search_access WHERE principal_id = ? AND doc_id = ?`, [who, id])
      await this.#dropUnseen(tx, id)
    }
  }

  async sweep(
    tx: Tx,
    {
      principal,
      source,
      before,
      folder,
    }: { principal: string; source: string; before: number; folder?: string },
  ): Promise<number> {
    this.#assertPrepared()
    const who = await findPrincipal(tx, principal)
    if (who === undefined) return 0
    const inFolder =
      folder === undefined
        ? ''
        : 'AND EXISTS (SELECT 1 FROM search_folders f WHERE f.doc_id = d.id AND f.name = ?)'
    const rows = await tx.all<{ id: number }>(
      `SELECT d.id FROM search_access a JOIN search_documents d ON d.id = a.doc_id
       WHERE a.principal_id = ? AND a.generation < ? AND d.source = ? ${inFolder} ORDER BY d.id ${forUpdate(tx, 'd')}`,
      [who, before, source, ...(folder === undefined ? [] : [folder])],
    )
    for (const { id } of rows) {
      await tx.run(`DELETE FROM search_access WHERE principal_id = ? AND doc_id = ?`, [who, id])
      await this.#dropUnseen(tx, id)
    }
    return rows.length
  }

  async remove(tx: Tx, document: DocumentRef): Promise<void> {
    this.#assertPrepared()
    for (const { id } of await withParts(tx, document)) await this.#drop(tx, id)
  }

  async append(tx: Tx, documents: readonly NewDocument[], options: AppendOptions): Promise<void> {
    this.#assertPrepared()
    if (documents.length === 0) return
    const principalId = options.principal === undefined ? null : await this.#principal(tx, options.principal)
    await appendDocuments(tx, this.#dialect, documents, { ...options, principalId })
  }

  async reveal(tx: Tx, range: RefRange, principal: string, grant: Grant): Promise<number> {
    this.#assertPrepared()
    return revealRange(tx, range, await this.#principal(tx, principal), grant)
  }

  async hide(tx: Tx, range: RefRange, principal: string): Promise<number> {
    this.#assertPrepared()
    const who = await findPrincipal(tx, principal)
    return who === undefined ? 0 : hideRange(tx, range, who)
  }

  async removeRange(tx: Tx, range: RefRange, limit: number): Promise<number> {
    this.#assertPrepared()
    return removeRange(tx, this.#dialect, range, limit)
  }

  async countRange(range: RefRange): Promise<number> {
    await this.#around.prepare()
    return this.#around.read((tx) => countRange(tx, range))
  }

  async knownPrefixes(source: string, prefixes: readonly string[]): Promise<ReadonlySet<string>> {
    await this.#around.prepare()
    return new Set(await this.#around.read((tx) => knownPrefixes(tx, source, prefixes)))
  }

  async versions(source: string, refs: readonly string[]): Promise<ReadonlyMap<string, string>> {
    await this.#around.prepare()
    const versions = new Map<string, string>()
    for (let from = 0; from < refs.length; from += REFS_MAX) {
      const some = refs.slice(from, from + REFS_MAX)
      const rows = await this.#around.read((tx) =>
        tx.all<{ ref: string; version: string }>(
          `SELECT ref, version FROM search_documents WHERE source = ? AND ref IN (${places(some.length)})`,
          [source, ...some],
        ),
      )
      for (const { ref, version } of rows) versions.set(ref, version)
    }
    return versions
  }

  async refs(of: {
    source: string
    principal?: string
    after: string
    limit: number
  }): Promise<readonly string[]> {
    const isSeen = `AND EXISTS (SELECT 1 FROM search_access a JOIN search_principals p ON p.id = a.principal_id
      WHERE a.doc_id = d.id AND p.name = ?)`
    await this.#around.prepare()
    const rows = await this.#around.read((tx) =>
      tx.all<{ ref: string }>(
        `SELECT d.ref FROM search_documents d WHERE d.source = ? AND d.ref > ? AND d.parent_ref IS NULL
         ${of.principal === undefined ? '' : isSeen} ORDER BY d.ref LIMIT ?`,
        [of.source, of.after, ...(of.principal === undefined ? [] : [of.principal]), of.limit],
      ),
    )
    return rows.map(({ ref }) => ref)
  }

  async withoutVectors(
    model: string,
    limit: number,
    except: ReadonlySet<number> = new Set(),
  ): Promise<readonly ContentToEmbed[]> {
    await this.#around.prepare()
    // Left out here and not by the caller: chunks of theirs would fill the answer.
    const others = except.size === 0 ? '' : `AND c.id NOT IN (${places(except.size)})`
    return this.#around.read(async (tx) => {
      const rows = await tx.all<{ id: number; title: string; chunk_count: number }>(
        `SELECT c.id, c.title, c.chunk_count FROM search_contents c
         WHERE c.chunk_count > 0 AND c.is_embedded = 1 AND NOT EXISTS (SELECT 1 FROM search_embedded e
           JOIN search_models m ON m.id = e.model_id WHERE m.name = ? AND e.content_id = c.id) ${others}
         ORDER BY c.id DESC LIMIT ?`,
        [model, ...except, limit],
      )
      const found: ContentToEmbed[] = []
      let chunks = 0
      for (const { id, title, chunk_count } of rows) {
        chunks += chunk_count
        if (found.length > 0 && chunks > CHUNKS_TO_EMBED_MAX) break
        const texts = await tx.all<ChunkText>(
          `SELECT text, headings FROM search_chunks WHERE content_id = ? ORDER BY n`,
          [id],
        )
        found.push({
          contentId: id,
          texts: texts.map(({ text, headings }) =>
            chunkContext(title, { text, headings: JSON.parse(headings) as string[] }),
          ),
        })
      }
      return found
    })
  }

  /** A content that has gone meanwhile, or has them by now, is left alone. */
  async addVectors(tx: Tx, contentId: number, vectors: NonNullable<Content['vectors']>): Promise<void> {
    this.#assertPrepared()
    const content = await tx.get<{ chunk_count: number }>(
      `SELECT chunk_count FROM search_contents WHERE id = ? ${forUpdate(tx)}`,
      [contentId],
    )
    if (!content) return
    await this.#putVectors(tx, contentId, content.chunk_count, vectors)
  }

  // --- Contents -------------------------------------------------------------

  async #content(tx: Tx, { title }: NewDocument, content: Content | { key: string }): Promise<number> {
    const found = await tx.get<{ id: number; chunk_count: number }>(
      `SELECT id, chunk_count FROM search_contents WHERE key = ? ${forUpdate(tx)}`,
      [content.key],
    )
    if (found) {
      if ('chunks' in content && content.vectors) {
        await this.#putVectors(tx, found.id, found.chunk_count, content.vectors)
      }
      return found.id
    }
    if (!('chunks' in content)) throw contentGone(content.key)
    const added = await tx.get<{ id: number }>(
      `INSERT INTO search_contents(key, title, chunk_count, is_truncated) VALUES (?, ?, ?, ?)
       ON CONFLICT (key) DO NOTHING RETURNING id`,
      [content.key, clean(title), content.chunks.length, content.isTruncated ? 1 : 0],
    )
    // Another process has just brought the same content, and has committed.
    if (!added) return this.#content(tx, { title } as NewDocument, content)
    await putChunks(tx, added.id, content)
    if (content.vectors) await this.#putVectors(tx, added.id, content.chunks.length, content.vectors)
    return added.id
  }

  async #putVectors(
    tx: Tx,
    contentId: number,
    chunkCount: number,
    vectors: NonNullable<Content['vectors']>,
  ): Promise<void> {
    const { model, of } = vectors
    if (of.length !== chunkCount) {
      throw new TidemarkError(`A content of ${chunkCount} chunks was given ${of.length} vectors.`, {
        kind: 'bug',
      })
    }
    if (of.length === 0) return
    const modelId = await modelOf(tx, model, of[0]!.length)
    const isNew = await tx.run(
      `INSERT INTO search_embedded(model_id, content_id) VALUES (?, ?) ON CONFLICT DO NOTHING`,
      [modelId, contentId],
    )
    if (isNew === 1) await this.#dialect.putVectors(tx, { modelId, contentId, of })
  }

  async #dropUnused(tx: Tx, contentId: number): Promise<void> {
    await tx.all(`SELECT id FROM search_contents WHERE id = ? ${forUpdate(tx)}`, [contentId])
    const used = await tx.get(`SELECT 1 AS used FROM search_documents WHERE content_id = ? LIMIT 1`, [
      contentId,
    ])
    if (used) return
    await this.#dialect.dropVectors(tx, contentId)
    await tx.run(`DELETE FROM search_chunks WHERE content_id = ?`, [contentId])
    for (const { id } of await tx.all<{ id: number }>(`SELECT id FROM search_models`)) {
      await tx.run(`DELETE FROM search_embedded WHERE model_id = ? AND content_id = ?`, [id, contentId])
    }
    await tx.run(`DELETE FROM search_contents WHERE id = ?`, [contentId])
  }

  // --- Documents ------------------------------------------------------------

  /** A document that nobody can see any more goes. Its row is locked. */
  async #dropUnseen(tx: Tx, id: number): Promise<void> {
    const seen = await tx.get(`SELECT 1 AS seen FROM search_access WHERE doc_id = ? LIMIT 1`, [id])
    if (!seen) await this.#drop(tx, id)
  }

  async #drop(tx: Tx, id: number): Promise<void> {
    const row = await tx.get<DocumentRow>(`SELECT id, content_id FROM search_documents WHERE id = ?`, [id])
    if (!row) return
    await tx.run(`DELETE FROM search_access WHERE doc_id = ?`, [id])
    await tx.run(`DELETE FROM search_folders WHERE doc_id = ?`, [id])
    await this.#dialect.dropWords(tx, id)
    await tx.run(`DELETE FROM search_documents WHERE id = ?`, [id])
    if (row.content_id !== null) await this.#dropUnused(tx, row.content_id)
  }

  async #putWords(
    tx: Tx,
    id: number,
    document: Omit<NewDocument, 'content' | 'unread'>,
    chunks: readonly ChunkWords[],
  ): Promise<void> {
    await this.#dialect.putWords(tx, id, documentWords(document, chunks))
    await tx.run(`DELETE FROM search_folders WHERE doc_id = ?`, [id])
    for (const name of new Set(document.folders.map(clean))) {
      await tx.run(`INSERT INTO search_folders(doc_id, name) VALUES (?, ?)`, [id, name])
    }
  }

  async #principal(tx: Tx, name: string): Promise<number> {
    const found = await findPrincipal(tx, name)
    if (found !== undefined) return found
    await tx.run(`INSERT INTO search_principals(name) VALUES (?) ON CONFLICT (name) DO NOTHING`, [name])
    return (await findPrincipal(tx, name))!
  }

  /** Tables cannot be made inside of somebody's transaction. */
  #assertPrepared(): void {
    if (this.#around.isPrepared()) return
    throw new TidemarkError('The index was written to before its tables were made: call prepare() first.', {
      kind: 'bug',
    })
  }
}

type ChunkText = { text: string; headings: string }

/** Of a content that is there already, from its rows. */
async function bodyOf(
  tx: Tx,
  contentId: number | null,
  content: NewDocument['content'],
): Promise<readonly ChunkWords[]> {
  if (content && 'chunks' in content) return content.chunks
  if (contentId === null) return []
  return tx.all<ChunkWords>(`SELECT text FROM search_chunks WHERE content_id = ? ORDER BY n`, [contentId])
}

async function putChunks(tx: Tx, contentId: number, { chunks }: Content): Promise<void> {
  for (let from = 0; from < chunks.length; from += CHUNKS_INSERTED_MAX) {
    const some = chunks.slice(from, from + CHUNKS_INSERTED_MAX)
    const rows = some.map(({ n, text, headings, place }, i) => {
      if (n !== from + i)
        throw new TidemarkError(`Chunk ${n} stands where ${from + i} should.`, { kind: 'bug' })
      return [contentId, n, clean(text), clean(JSON.stringify(headings)), clean(JSON.stringify(place))]
    })
    await tx.run(
      `INSERT INTO search_chunks(content_id, n, text, headings, place)
       VALUES ${rows.map(() => '(?, ?, ?, ?, ?)').join(', ')}`,
      rows.flat(),
    )
  }
}

async function putDocument(tx: Tx, document: NewDocument, contentId: number | null): Promise<number> {
  const values = {
    ...columnsOf(document),
    content_id: contentId,
    unread_code: document.unread?.code ?? null,
    unread_reason: document.unread ? clean(document.unread.reason) : null,
  }
  const names = Object.keys(values)
  const row = await tx.get<{ id: number }>(
    `INSERT INTO search_documents(source, ref, ${names.join(', ')}) VALUES (?, ?, ${places(names.length)})
     ON CONFLICT (source, ref) DO UPDATE SET ${names.map((name) => `${name} = excluded.${name}`).join(', ')}
     RETURNING id`,
    [document.source, document.ref, ...Object.values(values)],
  )
  return row!.id
}

function lockDocument(tx: Tx, { source, ref }: DocumentRef): Promise<DocumentRow | undefined> {
  return tx.get<DocumentRow>(
    `SELECT id, content_id FROM search_documents WHERE source = ? AND ref = ? ${forUpdate(tx)}`,
    [source, ref],
  )
}

/** The document and what is part of it, locked. */
async function withParts(tx: Tx, document: DocumentRef): Promise<DocumentRow[]> {
  const found: DocumentRow[] = []
  let level: DocumentRef[] = [document]
  for (let depth = 0; depth < PARTS_DEPTH_MAX && level.length > 0; depth++) {
    const next: DocumentRef[] = []
    for (const { source, ref } of level) {
      const row = await lockDocument(tx, { source, ref })
      if (row) found.push(row)
      next.push(
        ...(await tx.all<DocumentRef>(
          `SELECT source, ref FROM search_documents WHERE parent_source = ? AND parent_ref = ? ORDER BY id`,
          [source, ref],
        )),
      )
    }
    level = next
  }
  return found
}

async function findPrincipal(tx: Tx, name: string): Promise<number | undefined> {
  const row = await tx.get<{ id: number }>(`SELECT id FROM search_principals WHERE name = ?`, [name])
  return row?.id
}

async function modelOf(tx: Tx, name: string, dims: number): Promise<number> {
  await tx.run(`INSERT INTO search_models(name, dims) VALUES (?, ?) ON CONFLICT (name) DO NOTHING`, [
    name,
    dims,
  ])
  const row = await tx.get<{ id: number; dims: number }>(
    `SELECT id, dims FROM search_models WHERE name = ?`,
    [name],
  )
  if (row!.dims === dims) return row!.id
  throw new TidemarkError(
    `The model ${name} gave vectors of ${row!.dims} numbers before, and of ${dims} now.`,
    {
      kind: 'permanent',
      code: 'model-changed',
      hint: 'Give the changed model another name.',
    },
  )
}

function forUpdate(tx: Tx, of?: string): string {
  return tx.dialect === 'postgres' ? `FOR UPDATE${of === undefined ? '' : ` OF ${of}`}` : ''
}

function unknownDocument({ source, ref }: DocumentRef): TidemarkError {
  return new TidemarkError(`Access was granted to ${source}:${ref}, which the index does not have.`, {
    kind: 'bug',
  })
}

/** The job that published it reads the document again, and brings its content along. */
/** Of a content that was there when somebody asked for it, and is not any more: nothing was written. */
export const CONTENT_GONE = 'content-gone'

function contentGone(key: string): TidemarkError {
  return new TidemarkError(`The content ${key} has gone from the index meanwhile.`, {
    kind: 'transient',
    code: CONTENT_GONE,
  })
}
