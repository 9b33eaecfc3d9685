/** `tidemark ingest remove`: a pipeline is forgotten, and its records leave the index. */
import { join } from 'node:path'
import type { CliContext } from '../../../app/command.ts'
import { UsageError } from '../../../base/errors.ts'
import { formatCount } from '../../../base/format.ts'
import { plural } from '../../../base/wording.ts'
import { readLines, saysYes } from '../../../cli/output/prompt.ts'
import { removePipeline as forgetPipeline } from '../configure.ts'
import { streamOf } from '../pipeline.ts'
import { pipelineStatus } from '../status.ts'
import { withIngest } from './context.ts'

export async function removePipeline(
  context: CliContext,
  name: string,
  { yes }: { yes?: boolean },
): Promise<void> {
  const { output } = context
  await withIngest(context, async (opened) => {
    const { ingest, engine } = opened
    await ingest.pipelines.get(name)
    const { records, afterwards } = await pipelineStatus(ingest.tables, name)
    if (!yes) await confirm(context, name, records)
    await forgetPipeline(opened, name)
    const stream = streamOf(name)
    await engine.streams.open(stream)
    await engine.enqueue(ingest.kinds.forget, { pipeline: name }, { stream })
    if (output.json) output.value({ pipeline: name, removed: true, records })
    else
      output.line(
        `The pipeline ${name} is forgotten; its ${formatCount(records)} records leave the index when Tidemark next runs.`,
      )
    const deleted = afterwards.find(({ code }) => code === 'deleted')?.count ?? 0
    if (deleted > 0) output.note(keptText(deleted, join(ingest.kinds.kept.folder, name)))
  })
}

/** Nothing else is left of these. */
function keptText(count: number, folder: string): string {
  return `The copies of ${formatCount(count)} ${plural(count, 'object')} that were deleted in their bucket stay in ${folder}.`
}

async function confirm({ output }: CliContext, name: string, records: number): Promise<void> {
  const hint = 'Say --yes where nobody can answer.'
  const question = `Forget the pipeline ${name}? Its ${formatCount(records)} records leave the index; nothing changes in its bucket.`
  if (!process.stdin.isTTY) throw new UsageError(question, { code: 'not-confirmed', hint })
  if (!(await saysYes(readLines(output), question)))
    throw new UsageError('Nothing was changed.', { code: 'not-confirmed', hint })
}
