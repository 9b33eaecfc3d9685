/** `tidemark ingest reconcile`: lists now, reads what is missing, and shows the books. */
import { runWork } from '../../../app/cli/sync.ts'
import { chosenSources, openedSources } from '../../../app/cli/with-app.ts'
import type { CliContext } from '../../../app/command.ts'
import { UsageError } from '../../../base/errors.ts'
import { ingestApp } from '../app.ts'
import { withIngest } from './context.ts'

export async function reconcile(context: CliContext, wanted: string | undefined): Promise<void> {
  await withIngest(context, async (opened) => {
    const { ingest, engine } = opened
    const sources = openedSources(ingestApp, opened)
    const listed = []
    for (const source of await chosenSources(sources, wanted)) {
      const { config } = await ingest.pipelines.get(source.name)
      if (config.location === null) continue
      await engine.streams.open(source.stream)
      await engine.enqueue(ingest.kinds.list, { pipeline: source.name }, { stream: source.stream })
      listed.push(source)
    }
    if (listed.length === 0) {
      throw new UsageError('There is nothing to list.', {
        code: 'no-location',
        hint: 'Say what is listed with: tidemark ingest add NAME --update --bucket s3://bucket/prefix',
      })
    }
    await runWork(context, sources, listed)
  })
}
