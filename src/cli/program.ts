/**
 * The command line as a whole: `tidemark NOUN VERB`.
 *
 * A noun exports `register<Noun>(program, context)`. It describes its verbs and imports what they need inside their
 * actions, so that `--help` and completion load nothing else. Those of the engine and the machine are in folders here,
 * those of the apps come from the registry.
 */
import { Command } from 'commander'
import packageJson from '../../package.json' with { type: 'json' }
import { registerNoun } from '../app/cli/noun.ts'
import type { CliContext, GlobalFlags, Register } from '../app/command.ts'
import { apps } from '../apps/registry.ts'
import { registerAccount } from './account/account.ts'
import { registerCompletion } from './completion.ts'
import { registerConfig } from './config.ts'
import { registerDemo } from './demo/demo.ts'
import { registerDoctor } from './doctor/doctor.ts'
import { registerBad } from './jobs/bad.ts'
import { registerJobs } from './jobs/jobs.ts'
import { registerPause, registerResume } from './jobs/pause.ts'
import { registerMcp } from './serve/mcp.ts'
import { registerServe } from './serve/serve.ts'
import { registerSignIn } from './serve/sign-in.ts'
import { registerService } from './service/service.ts'
import { registerSim } from './sim.ts'
import { registerStatus } from './status.ts'
import { registerUsers } from './users/users.ts'

const nouns: readonly Register[] = [
  registerStatus,
  ...apps.map(registerNoun),
  registerJobs,
  registerBad,
  registerPause,
  registerResume,
  registerAccount,
  registerUsers,
  registerDoctor,
  registerConfig,
  registerServe,
  registerSignIn,
  registerMcp,
  registerService,
  registerDemo,
  registerSim,
]

/** With every command; completion itself reads a program without its own two. */
export function buildProgram(context: CliContext, launcher?: string): Command {
  const program = buildNouns(context)
  registerCompletion(program, { context, launcher, describe: () => buildNouns(context) })
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
