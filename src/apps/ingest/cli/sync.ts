/** What is ingest's own about `tidemark ingest sync`: with --watch it goes on receiving, instead of looking now and then. */
import { type SyncPart, syncSources } from '../../../app/cli/sync.ts'
import type { CliContext } from '../../../app/command.ts'
import { systemClock } from '../../../base/clock.ts'
import { formatCount } from '../../../base/format.ts'
import { plural } from '../../../base/wording.ts'
import { eachJob } from '../../../ledger/each-job.ts'
import { ingestApp } from '../app.ts'
import { ingestRuntime } from '../runtime.ts'
import { pipelineStatus } from '../status.ts'
import { startIngestWork } from '../work.ts'

const SHOW_MS = 2_000

export const ingestSync: SyncPart = {
  steps: (context, { runtime, sources: own }, { options }) => ({
    /** An object with such records is stored: nothing else would tell of them. */
    async explain({ name }) {
      const { quarantined } = await pipelineStatus(ingestRuntime(runtime).ingest.tables, name)
      if (quarantined === 0) return
      const records = `${formatCount(quarantined)} ${plural(quarantined, 'record is', 'records are')}`
      context.output.note(`${name}: ${records} in quarantine. See: tidemark ingest quarantine ${name}`)
    },
    ...(options.watch === true
      ? {
          async watch({ stop, progress }) {
            const onError = (error: unknown): void => context.output.error(error)
            const work = await startIngestWork(ingestRuntime(runtime), { clock: systemClock, onError })
            await progress.aside(() => context.output.note('Receiving; Ctrl-C stops.'))
            try {
              while (!stop.aborted) {
                await new Promise<void>((resolve) => {
                  const cancel = systemClock.timer(SHOW_MS, resolve, { keepAlive: true })
                  const end = (): void => {
                    cancel()
                    resolve()
                  }
                  stop.addEventListener('abort', end, { once: true })
                })
                if (!stop.aborted) await progress.show()
              }
            } finally {
              await work.stop()
            }
          },
        }
      : {
          /** Whoever asked for files to be moved wants to know why they are still there. */
          async settled({ sources, progress }) {
            for (const { name, stream } of sources) {
              let waiting = 0
              for await (const job of eachJob(runtime.ledger, { stream, state: 'pending' }))
                if (own.isPutOff?.(job)) waiting += 1
              if (waiting === 0) continue
              const files = `${formatCount(waiting)} ${plural(waiting, 'file')}`
              const stay = plural(waiting, 'stays', 'stay')
              const what = `${name}: ${files} may still be written to, and ${stay} for 10 quiet minutes.`
              await progress.aside(() =>
                context.output.note(`${what} tidemark serve, or the next sync after that, sees to that.`),
              )
            }
          },
        }),
  }),
}

export function runIngest(context: CliContext, wanted: string | undefined): Promise<void> {
  return syncSources(context, ingestApp, { wanted, options: { watch: true } }, ingestSync)
}
