/** The one index over everything, for apps that fill it and for who searches. See src/search/contract.ts. */
import type { TextExtractor } from '../search/extract/extractor.ts'
import type { Search } from '../search/search.ts'

export type { Search } from '../search/search.ts'

export type SearchHandle = {
  /** Opened by who first asks: a process that never searches loads nothing of it, makes no tables, and no model runs. */
  open(): Promise<Search>
  /** Reads documents in threads of its own, which are started with the first one. */
  extractor(): Promise<TextExtractor>
}
