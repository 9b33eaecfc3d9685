/** Many jobs, page by page. */
import type { JobRow } from './contract.ts'
import type { Ledger } from './ledger.ts'
import { type JobFilter, PAGE_MAX } from './queries.ts'

/** All jobs like that, newest first; what is enqueued meanwhile is not among them. */
export async function* eachJob(ledger: Pick<Ledger, 'jobs'>, filter: JobFilter): AsyncGenerator<JobRow> {
  let before: number | undefined
  for (;;) {
    const page = await ledger.jobs({ ...filter, before, limit: PAGE_MAX })
    yield* page
    if (page.length < PAGE_MAX) return
    before = page.at(-1)!.id
    // On SQLite nobody else would get a turn.
    await new Promise((resolve) => setImmediate(resolve))
  }
}
