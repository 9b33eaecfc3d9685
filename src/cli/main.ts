/** Where the command line starts and ends: arguments in, exit code out. */
import { CommanderError } from 'commander'
import type { Environment } from '../config/location.ts'
import { UsageError } from '../errors.ts'
import { createContext, type ExitCode, exitCodes } from './context.ts'
import { Output, type OutputStream } from './output.ts'
import { buildProgram } from './program.ts'

export type MainInput = {
  args: string[]
  env: Environment
  stdout: OutputStream
  stderr: OutputStream
}

export async function main(): Promise<ExitCode> {
  // A reader that has seen enough (`| head`) is no error.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    process.exit(error.code === 'EPIPE' ? exitCodes.ok : exitCodes.failure)
  })
  const { stdout, stderr } = process
  return runCommand({ args: process.argv.slice(2), env: process.env, stdout, stderr })
}

export async function runCommand(input: MainInput): Promise<ExitCode> {
  const output = new Output(input.stdout, input.stderr)
  // Read here as well as by the parser, so that they hold for an error in the arguments themselves.
  const own = input.args.includes('--') ? input.args.slice(0, input.args.indexOf('--')) : input.args
  output.json = own.includes('--json')
  output.debug = own.includes('--debug')
  const context = createContext({ env: input.env, output })
  try {
    await buildProgram(context).parseAsync(input.args, { from: 'user' })
    return context.exitCode
  } catch (error) {
    if (error instanceof CommanderError) return endParsing(error, output)
    output.error(error)
    return error instanceof UsageError ? exitCodes.usage : exitCodes.failure
  }
}

/** The parser throws to end: after help and version, and on wrong usage. */
function endParsing(error: CommanderError, output: Output): ExitCode {
  if (error.exitCode === 0) return exitCodes.ok
  // A noun without its verb: the parser has printed what there is.
  if (error.code === 'commander.help') return exitCodes.usage
  const [first = '', ...rest] = error.message.replace(/^error: /, '').split('\n')
  const suggestion = rest.join(' ').replace(/^\((.*)\)$/, '$1')
  const hint = suggestion || 'See what is allowed with --help.'
  output.error(new UsageError(first, { hint, code: error.code }))
  return exitCodes.usage
}
