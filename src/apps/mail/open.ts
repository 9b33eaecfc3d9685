/** Mail in a process: its tables, the archives of its accounts, its kinds of jobs, and its clean-ups. */

import { defineIndexing } from '../../app/documents.ts'
import type { AppPlace } from '../../app/runtime.ts'
import { gmailBudgets } from '../../cloud/gmail/budgets.ts'
import { WantedDocuments } from '../../search/wanted.ts'
import { HtmlRenderer } from './api/html-renderer.ts'
import { cleanUpJobs } from './clean-up/jobs.ts'
import { CleanUpRuns } from './clean-up/runs.ts'
import { mailOffer } from './documents.ts'
import { jobsOf, mailKinds } from './jobs.ts'
import { openMailAccounts } from './open-accounts.ts'
import { mailRuntime, type OpenMail } from './runtime.ts'
import { type MailOverrides, mailSettingsOf } from './settings.ts'
import { mailSources } from './sources.ts'
import { lookAtMail } from './status.ts'
import { MailTables } from './store/tables.ts'
import { startMailWork } from './work.ts'

/** Jobs besides those that fetch: listing, following, cleaning up. */
const WORKERS_BESIDES = 4

export async function openMail(place: AppPlace): Promise<OpenMail> {
  const { accounts, ledger, vault, fetch, clock, config, home } = place
  const overrides = (place.overrides.mail ?? {}) as MailOverrides
  const settings = mailSettingsOf(config, home, overrides)
  const tables = await MailTables.open(ledger)
  const mail = await openMailAccounts({
    accounts,
    ledger,
    tables,
    settings,
    vault,
    fetch,
    clock,
    newArchiveId: place.newId,
    onlyReads: overrides.onlyReads === true,
    limits: () => place.engine()?.limits,
  })
  const indexing =
    config.mail.index === 'on'
      ? defineIndexing({
          offer: mailOffer({ accounts: mail, tables }),
          wanted: await WantedDocuments.open(ledger),
          search: place.search,
        })
      : undefined
  const kinds = mailKinds({ accounts: mail, tables, ledger, clock, settings, indexing })
  const html = new HtmlRenderer({ clock })
  let cleanUpRuns: CleanUpRuns | undefined
  return {
    ...(await lookAtMail(ledger)),
    settings,
    tables,
    accounts: mail,
    kinds,
    html,
    sources: mailSources(place, { accounts: mail, tables, kinds, settings }),
    get cleanUpRuns() {
      cleanUpRuns ??= new CleanUpRuns(place.engine()!, { accounts: mail, clock })
      return cleanUpRuns
    },
    jobs: [...jobsOf(kinds), ...cleanUpJobs({ accounts: mail, ledger, clock, obstacles: kinds.obstacles })],
    budgets: () => gmailBudgets(mail.names(), settings),
    workersMin: () => config.gmail.workers_max + WORKERS_BESIDES,
    metadata: async () => [
      { target: 'ledger', used: await tables.metadataBytes(), max: settings.metadataBytesMax },
    ],
    work: (runtime, options) => startMailWork(mailRuntime(runtime), options),
    async reload() {
      Object.assign(settings, mailSettingsOf(config, home, overrides))
      await mail.reload()
    },
    async close() {
      await html.close()
      await mail.close()
    },
  }
}
