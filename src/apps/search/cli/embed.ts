/** `tidemark search --embed`: gives vectors to all that is found by words only, for homes without a server. */

import { stoppable } from '../../../app/cli/sync.ts'
import { type CliContext, exitCodes } from '../../../app/command.ts'
import { openedApp, type Runtime } from '../../../app/runtime.ts'
import { sleep, systemClock } from '../../../base/clock.ts'
import { UsageError } from '../../../base/errors.ts'
import { formatCount } from '../../../base/format.ts'
import { embeddedShare } from '../../../search/index/models.ts'
import type { OpenSearchApp } from '../open.ts'

const LOOK_MS = 1_000
/** Lines that nobody watches come less often. */
const LOOKS_PER_LINE = 10

export async function embedAll(context: CliContext, runtime: Runtime): Promise<void> {
  const { output } = context
  const { engine, ledger } = runtime
  const { embedder } = await runtime.search.open()
  if (!embedder) {
    throw new UsageError('Nothing is embedded here: search.embedding is "off".', {
      code: 'embedding-off',
      hint: 'Set it to "builtin" for the model that comes along. See: tidemark config keys',
    })
  }
  const share = async (): Promise<{ contents: number; embedded: number }> =>
    (await embeddedShare(ledger, embedder.model)) ?? { contents: 0, embedded: 0 }
  let isOver = false
  await stoppable(context, async (stop) => {
    await engine.start()
    const { id } = await engine.enqueue(openedApp<OpenSearchApp>(runtime, 'search').embed, {})
    for (let look = 0; !stop.aborted; look++) {
      const job = (await ledger.job(id))?.job
      if (!job || (job.state !== 'pending' && job.state !== 'claimed')) {
        isOver = job?.state !== 'failed'
        if (job?.error && !isOver) output.note(job.error)
        break
      }
      if (!output.json && look % LOOKS_PER_LINE === 0) output.note(lineOf(await share()))
      await sleep(systemClock, LOOK_MS, stop).catch(() => {
        // Told to stop: the loop ends by itself.
      })
    }
  })
  const { contents, embedded } = await share()
  if (output.json) output.value({ model: embedder.model, contents, embedded })
  else output.line(lineOf({ contents, embedded }))
  if (embedded < contents) context.exitCode = isOver ? exitCodes.bad : exitCodes.failure
}

function lineOf({ contents, embedded }: { contents: number; embedded: number }): string {
  const percent = contents === 0 ? 100 : Math.floor((embedded / contents) * 100)
  return `${formatCount(embedded)} of ${formatCount(contents)} contents are found by meaning (${percent} %)`
}
