/** A mail search as a tree: what the parser makes of text, and what the archive can answer. */
import type { Tree } from '../../../search/query/query.ts'

export type Query = Tree<Leaf>

export type Leaf =
  /** Words or a phrase; `field` null means anywhere. `prefix`: the last word may go on. */
  | { is: 'text'; field: TextField | null; words: readonly string[]; phrase: boolean; prefix: boolean }
  | { is: 'label'; name: string }
  | { is: 'id' | 'message-id' | 'thread'; value: string }
  /** Gmail's time of arrival: atMs is excluded by `before`, included by `after`. */
  | { is: 'before' | 'after'; atMs: number }
  | { is: 'larger' | 'smaller'; bytes: number }
  | { is: 'has-attachment' }
  | { is: 'deleted' }
  | { is: 'imported' }

export type TextField = 'subject' | 'from' | 'to' | 'cc' | 'bcc' | 'filename' | 'body'

/** The names of the labels that it speaks of, as they are written. */
export function labelNamesIn(query: Query): string[] {
  if (query.is === 'label') return [query.name]
  if (query.is === 'and' || query.is === 'or') return query.of.flatMap(labelNamesIn)
  return query.is === 'not' ? labelNamesIn(query.of) : []
}
