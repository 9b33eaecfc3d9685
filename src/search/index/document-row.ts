/** A document as a row of search_documents. */
import type { NewDocument } from '../contract.ts'

/** PostgreSQL takes no NUL in texts, and neither takes halves of surrogate pairs. */
export function clean(text: string): string {
  return text.replaceAll('\0', '').toWellFormed()
}

export function columnsOf(document: Omit<NewDocument, 'content' | 'unread'>) {
  const { type, mimeType, owner, people, folders, url, createdAtMs, modifiedAtMs } = document
  return {
    type,
    at: modifiedAtMs ?? createdAtMs,
    title: clean(document.title),
    owner: clean(owner),
    folders: clean(JSON.stringify(folders)),
    people: clean(JSON.stringify(people)),
    mime_type: clean(mimeType),
    url: clean(url),
    created_at: createdAtMs,
    modified_at: modifiedAtMs,
    size: document.sizeBytes,
    version: document.version,
    parent_source: document.parent?.source ?? null,
    parent_ref: document.parent?.ref ?? null,
  }
}
