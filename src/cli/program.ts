/**
 * The command line as a whole: `tidemark NOUN VERB`.
 *
 * A noun lives in its own file, `src/cli/<noun>.ts`, which exports `register<Noun>(program, context)`.
 * It describes its verbs and imports what they need inside their actions, so that `--help` and
 * completion load nothing else. To add one, write that file and name it in `nouns` below.
 */
import { Command } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { registerAccount } from './account.ts'
import { registerBad } from './bad.ts'
import { registerCompletion } from './completion.ts'
import { registerConfig } from './config.ts'
import type { CliContext, GlobalFlags } from './context.ts'
import { registerDemo } from './demo.ts'
import { registerDoctor } from './doctor.ts'
import { registerFiles } from './files.ts'
import { registerJobs } from './jobs.ts'
import { registerMail } from './mail.ts'
import { registerMcp } from './mcp.ts'
import { registerPause, registerResume } from './pause.ts'
import { registerServe } from './serve.ts'
import { registerService } from './service.ts'
import { registerSim } from './sim.ts'
import { registerStatus } from './status.ts'

export type Register = (program: Command, context: CliContext) => void

const nouns: readonly Register[] = [
  registerStatus,
  registerMail,
  registerFiles,
  registerJobs,
  registerBad,
  registerPause,
  registerResume,
  registerAccount,
  registerDoctor,
  registerConfig,
  registerServe,
  registerMcp,
  registerService,
  registerDemo,
  registerSim,
]

/** With every command; completion itself reads a program without its own two. */
export function buildProgram(context: CliContext): Command {
  const program = buildNouns(context)
  registerCompletion(program, { context, describe: () => buildNouns(context) })
  return program
}

function buildNouns(context: CliContext): Command {
  const program = new Command('tidemark')
    .description(packageJson.description)
    .version(`tidemark ${packageJson.version}`, '--version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .option('--home <folder>', 'where Tidemark keeps its data')
    .option('--config <file>', 'the configuration file')
    .option('--json', 'print results as JSON')
    .option('--debug', 'print where an error came from')
    .addHelpText(
      'after',
      '\nExit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 done with bad items',
    )
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.output.raw(text),
      writeErr: (text) => context.output.rawError(text),
      // Errors are printed by main(), in one form for all of them.
      outputError: () => {},
    })
    .hook('preAction', (command) => {
      context.flags = command.opts<GlobalFlags>()
    })
  for (const register of nouns) register(program, context)
  return program
}
