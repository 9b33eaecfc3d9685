/** The words by which a document is found: of its name, its people, its place and its text. */
import type { NewDocument } from '../contract.ts'
import type { DocumentWords } from './dialect.ts'
import { wordsOf } from './words.ts'

export type ChunkWords = { text: string }

export function documentWords(
  { title, owner, people, folders }: Omit<NewDocument, 'content' | 'unread'>,
  chunks: readonly ChunkWords[],
): DocumentWords {
  const named = (...roles: string[]): string[][] =>
    people.filter(({ role }) => roles.includes(role)).map(({ name }) => wordsOf(name))
  return {
    title: wordsOf(title),
    owner: wordsOf(owner),
    from: named('from', 'editor'),
    to: named('to'),
    folders: folders.map(wordsOf),
    body: chunks.map(({ text }) => wordsOf(text)).filter(({ length }) => length > 0),
  }
}
