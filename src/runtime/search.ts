/**
 * The index of a process, opened by who first asks for it, with the embedder that the settings name. That loads a model
 * or calls a service only when something is embedded.
 */
import type { Search, SearchHandle } from '../app/search.ts'
import type { Clock } from '../base/clock.ts'
import { UsageError } from '../base/errors.ts'
import type { Config } from '../config/settings.ts'
import type { Engine } from '../engine/engine.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { EmbedderSettings } from '../search/embed/open.ts'
import type { TextExtractor } from '../search/extract/extractor.ts'

export const EMBED_BUDGET = 'search.tokens'

export type SearchHandleInput = {
  config: Pick<Config, 'search'>
  ledger: Ledger
  clock: Clock
  fetch: typeof fetch
  engine: () => Engine | undefined
}

export type OwnedSearchHandle = SearchHandle & {
  /** Ends the embedder's process, where there is one. */
  close(): Promise<void>
}

export function searchHandle(input: SearchHandleInput): OwnedSearchHandle {
  let opened: Promise<Search> | undefined
  let extractor: Promise<TextExtractor> | undefined
  return {
    open() {
      opened ??= openFor(input)
      return opened
    },
    extractor() {
      extractor ??= import('../search/extract/extractor.ts').then(
        (module) => new module.TextExtractor({ clock: input.clock }),
      )
      return extractor
    },
    async close() {
      await (await extractor)?.close()
      if (!opened) return
      const search = await opened.catch(() => undefined)
      await search?.close()
      await search?.embedder?.close()
    },
  }
}

async function openFor({ config, ledger, clock, fetch, engine }: SearchHandleInput): Promise<Search> {
  const { openEmbedder, priceBudget } = await import('../search/embed/open.ts')
  const { openSearch } = await import('../search/search.ts')
  const { search } = config
  const spec = priceBudget({ pricePerMillion: search.price, budgetPerDay: search.budget })
  const budget = spec && engine()?.limits.budget(EMBED_BUDGET, spec)
  const embedder = openEmbedder(embedderSettings(search), { fetch, clock, ...(budget && { budget }) })
  return openSearch({ ledger, ...(embedder && { embedder }) })
}

function embedderSettings(search: Config['search']): EmbedderSettings {
  const { embedding, url, model, key, dims, batch, threads } = search
  switch (embedding) {
    case 'off':
      return { kind: 'off' }
    case 'builtin':
      return { kind: 'builtin', threads }
    case 'openai':
    case 'ollama': {
      const missing = Object.entries({ url, model }).find(([, value]) => value === undefined)
      if (missing) {
        throw new UsageError(`search.embedding is "${embedding}", but search.${missing[0]} is not set.`, {
          code: 'search-settings',
          hint: 'Set it in the configuration file, or choose "builtin", which needs no service.',
        })
      }
      return { kind: embedding, url: url!, model: model!, dims, batch, ...(key !== undefined && { key }) }
    }
  }
}
