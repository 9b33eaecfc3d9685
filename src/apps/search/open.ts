/** Search in a process: the job that embeds what has words only. It has no sources: what it finds, other apps bring. */
import type { AppPlace, OpenApp } from '../../app/runtime.ts'
import type { JobKind } from '../../engine/job-kind.ts'
import { type EmbedPayload, embedKind } from './embed.ts'

export type OpenSearchApp = OpenApp & { readonly embed: JobKind<EmbedPayload> }

/** Vectors follow words after this long at most. */
const EMBED_EVERY = 'every 2m'
const SCHEDULE = 'search embed'

export async function openSearchApp(place: AppPlace): Promise<OpenSearchApp> {
  const embed = embedKind(place)
  return {
    embed,
    jobs: [embed],
    sources: { list: async () => [], begin: async () => {} },
    budgets: () => ({}),
    async work({ engine, ledger, role }) {
      const idle = { refresh: async () => {}, stop: async () => {} }
      // A process that only answers leaves that to others.
      if (role === 'web') return idle
      const there = (await ledger.schedules()).find(({ name }) => name === SCHEDULE)
      if (there?.spec !== EMBED_EVERY) await engine.schedule(SCHEDULE, EMBED_EVERY, embed, {})
      return idle
    },
    reload: async () => {},
    close: async () => {},
  }
}
