/** A search that is under way: what it looks with and for, and what it has found. */
import type { Tx } from '../../ledger/contract.ts'
import type { Access, Condition, IndexDialect, Match } from '../index/dialect.ts'
import type { Parts } from './fuse.ts'
import type { Plan } from './plan.ts'

export type Look = {
  tx: Tx
  dialect: IndexDialect
  plan: Plan
  access: Access
  filters: Condition
  /** The visible documents that have the words which `plan.near` asks for, once they were looked for. */
  nearWith: readonly number[] | undefined
  /** The visible documents that have what the rest of the plan says of words, by that. */
  having: Map<string, readonly number[]>
}

/** A document that was found, and by what. */
export type Found = Match & {
  /** `isWhole`: all that was asked for holds, not only most of its words. */
  words: { score: number; coverage: number; isWhole: boolean } | null
  near: { similarity: number; chunk: number } | null
}

/** `isWeak`: it has no words, and what is near of it is not near enough to be an answer. */
export type Ranked = Found & { parts: Parts; total: number; isWeak: boolean }
