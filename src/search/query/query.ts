/** A search as a tree: what the parser makes of text, and what the index can answer. */
import type { DocumentType } from '../contract.ts'

export type TextField = 'title' | 'owner' | 'from' | 'to' | 'in'

/** Words as the index knows them; several are a phrase. `field` null means anywhere. */
export type TextLeaf = {
  is: 'text'
  field: TextField | null
  words: readonly string[]
  /** The last word may go on. */
  prefix: boolean
  /** It was in quotes: nothing that only means the same will do. */
  exact: boolean
  /** As it was typed. */
  typed: string
}

export type Leaf =
  | TextLeaf
  | { is: 'source'; value: string }
  | { is: 'type'; value: DocumentType }
  /** When it was last changed: atMs is excluded by `before`, included by `after`. */
  | { is: 'before' | 'after'; atMs: number }

export type Tree<L> =
  | { is: 'all' }
  | { is: 'and' | 'or'; of: readonly Tree<L>[] }
  | { is: 'not'; of: Tree<L> }
  | L

export type Query = Tree<Leaf>
/** Of words alone, none of them left out: one question to the index of words. */
export type TextTree = TextLeaf | { is: 'and' | 'or'; of: readonly TextTree[] }

/** What is longer is cut into phrases of this length: the index of words on PostgreSQL is in parts that overlap by it. */
export const PHRASE_WORDS_MAX = 20

export function wordLeaf(word: string, { prefix = false } = {}): TextLeaf {
  return { is: 'text', field: null, words: [word], prefix, exact: false, typed: word }
}
