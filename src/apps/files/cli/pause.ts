/** `tidemark files pause` and `files resume`: nothing is moved for a while; what changes meanwhile is not forgotten. */
import type { Command } from 'commander'
import type { CliContext } from '../../../app/command.ts'

const HELP = `
Transfers that are under way end normally. What changes meanwhile on either side is brought into step when it goes on.`

export function registerFilesPause(files: Command, context: CliContext): void {
  files
    .command('pause')
    .description('move nothing for a while')
    .argument('[folder]', 'its name, or its path; all of this machine otherwise')
    .option('--reason <text>', 'why, for those who wonder', 'by hand')
    .addHelpText('after', HELP)
    .action((folder: string | undefined, { reason }: { reason: string }) => pause(context, folder, reason))
  files
    .command('resume')
    .description('go on with what was paused')
    .argument('[folder]', 'its name, or its path; all of this machine otherwise')
    .action((folder: string | undefined) => resume(context, folder))
}

async function pause(context: CliContext, folder: string | undefined, reason: string): Promise<void> {
  const { chosenRows, withFiles } = await import('./context.ts')
  const { streamOf } = await import('../folder-pair.ts')
  const { output } = context
  await withFiles(context, async (opened) => {
    const changed = []
    for (const { name } of await chosenRows(opened, folder)) {
      const isNew = await opened.ledger.pause('stream', streamOf(name), reason)
      changed.push({ folder: name, paused: true, changed: isNew })
      if (!output.json) output.line(isNew ? `${name} is paused.` : `${name} was paused already.`)
    }
    if (output.json) output.value(changed)
  })
}

async function resume(context: CliContext, folder: string | undefined): Promise<void> {
  const { chosenRows, withFiles } = await import('./context.ts')
  const { streamOf } = await import('../folder-pair.ts')
  const { output } = context
  await withFiles(context, async (opened) => {
    const { engine, files, ledger } = opened
    const changed = []
    for (const { name } of await chosenRows(opened, folder)) {
      const stream = streamOf(name)
      const was = await ledger.resume('stream', stream)
      changed.push({ folder: name, paused: false, changed: was })
      if (!output.json) output.line(was ? `${name} goes on.` : `${name} was not paused.`)
      // Whoever watched it meanwhile has collected what changed; where nobody did, this finds it.
      await engine.streams.open(stream)
      if (was) await engine.enqueue(files.kinds.sync, { drive: name }, { stream })
    }
    const all = (await ledger.pauses()).find(({ scope }) => scope === 'all')
    if (all) output.note('Everything is paused still. Go on with: tidemark resume --all')
    await noteEngines(context, ledger)
    if (output.json) output.value(changed)
  })
}

async function noteEngines(
  { output }: CliContext,
  ledger: Parameters<typeof import('../../../engine/observe/sightings.ts').seeEngines>[0],
): Promise<void> {
  const { liveCount, seeEngines } = await import('../../../engine/observe/sightings.ts')
  if (liveCount(await seeEngines(ledger)) === 0)
    output.note('Nothing is running that would sync now. Begin with: tidemark files sync')
}
