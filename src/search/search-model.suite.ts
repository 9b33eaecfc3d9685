/** The index as anybody would write it without one: documents in a list, looked at one by one. */
import { wordsOf } from './index/words.ts'
import { FEW_DOCUMENTS, PARTIAL_COVERAGE } from './query/fuse.ts'
import { planOf } from './query/plan.ts'
import type { Query, TextLeaf } from './query/query.ts'

export type ModelDocument = {
  ref: string
  source: string
  type: string
  title: string
  owner: string
  from: string[]
  to: string[]
  folders: string[]
  texts: string[]
  atMs: number
  /** Documents with the same are copies. */
  contentKey: string
  /** When access ends; null where it does not. */
  access: Map<string, number | null>
}

export type ModelFilters = { type?: string; folder?: string; owner?: string; year?: string }

type Asked = { principals: readonly string[]; nowMs: number; filters: ModelFilters }

export class SearchModel {
  readonly documents: ModelDocument[]

  constructor(documents: ModelDocument[]) {
    this.documents = documents
  }

  visible({ principals, nowMs }: Pick<Asked, 'principals' | 'nowMs'>): ModelDocument[] {
    return this.documents.filter(({ access }) =>
      principals.some((principal) => {
        const until = access.get(principal)
        return until === null || (until !== undefined && until > nowMs)
      }),
    )
  }

  /** By words: all of them or, with few documents that have all, most of them. */
  byWords(query: Query, asked: Asked): ModelDocument[] {
    const visible = this.visible(asked)
    const candidates = visible.filter((document) => passes(document, asked.filters))
    const all = candidates.filter((document) => holds(query, document))
    const plan = planOf(query)
    const required = query.is === 'and' ? query.of : [query]
    const bare = plan.leaves.filter(
      (leaf) => leaf.field === null && !leaf.exact && required.some((part) => part === leaf),
    )
    if (all.length >= FEW_DOCUMENTS || bare.length < 2) return all
    const near = candidates.filter((document) => holds(plan.near, document))
    const weights = bare.map((leaf) =>
      Math.log(1 + visible.length / (visible.filter((document) => holds(leaf, document)).length + 0.5)),
    )
    const weightOfAll = weights.reduce((sum, weight) => sum + weight, 0)
    const partly = near.filter((document) => {
      const weight = bare.reduce((sum, leaf, i) => sum + (holds(leaf, document) ? weights[i]! : 0), 0)
      return weight > 0 && weight / weightOfAll >= PARTIAL_COVERAGE
    })
    return [...new Set([...all, ...partly])]
  }

  near(query: Query, asked: Asked): ModelDocument[] {
    const { near } = planOf(query)
    return this.visible(asked).filter((document) => passes(document, asked.filters) && holds(near, document))
  }
}

function passes(document: ModelDocument, { type, folder, owner, year }: ModelFilters): boolean {
  if (type !== undefined && document.type !== type) return false
  if (folder !== undefined && !document.folders.includes(folder)) return false
  if (owner !== undefined && document.owner !== owner) return false
  return year === undefined || String(new Date(document.atMs).getUTCFullYear()) === year
}

export function holds(query: Query, document: ModelDocument): boolean {
  switch (query.is) {
    case 'all':
      return true
    case 'and':
      return query.of.every((part) => holds(part, document))
    case 'or':
      return query.of.some((part) => holds(part, document))
    case 'not':
      return !holds(query.of, document)
    case 'source':
      return document.source === query.value
    case 'type':
      return document.type === query.value
    case 'before':
      return document.atMs < query.atMs
    case 'after':
      return document.atMs >= query.atMs
    case 'text':
      return listsOf(query.field, document).some((list) => has(wordsOf(list), query))
  }
}

function listsOf(
  field: TextLeaf['field'],
  { title, owner, from, to, folders, texts }: ModelDocument,
): string[] {
  if (field === 'title') return [title]
  if (field === 'owner') return [owner]
  if (field === 'from') return from
  if (field === 'to') return to
  if (field === 'in') return folders
  return [title, owner, ...from, ...to, ...folders, ...texts]
}

function has(list: readonly string[], { words, prefix }: TextLeaf): boolean {
  return list.some((_, at) =>
    words.every((word, i) => {
      const there = list[at + i]
      if (there === undefined) return false
      return prefix && i === words.length - 1 ? there.startsWith(word) : there === word
    }),
  )
}
