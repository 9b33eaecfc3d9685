/** What is found in the demo comes from the other apps; here only the pages are named. */
import type { AppDemo, DemoSummary } from '../../../app/demo.ts'
import type { Runtime } from '../../../app/runtime.ts'
import { formatCount } from '../../../base/format.ts'
import { embeddedShare } from '../../../search/index/models.ts'

export const searchDemo: AppDemo = {
  world: () => ({}),
  begin: () => ({
    config: '',
    intro: () => 'One search finds all of it, by words and by meaning.',
    places: [['/find', 'everything that is kept, in one search: by words, by meaning, and why']],
    connect: async () => {},
    live: async () => {},
    settle: async () => {},
    summary,
  }),
}

async function summary({ search, ledger }: Runtime): Promise<DemoSummary> {
  const { embedder } = await search.open()
  const share = (await embeddedShare(ledger, embedder?.model ?? '')) ?? {
    contents: 0,
    embedded: 0,
    others: 0,
  }
  return {
    text: `Search: ${formatCount(share.contents)} texts, ${formatCount(share.embedded)} of them found by meaning, too`,
    // Meaning follows words in its own time; nobody waits for it.
    isSettled: true,
    hasFailed: false,
    paused: null,
    json: share,
  }
}
