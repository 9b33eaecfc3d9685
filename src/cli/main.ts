/** Where the command line starts and ends: arguments in, exit code out. */
import { dirname } from 'node:path'
import { CommanderError } from 'commander'
import { type ExitCode, exitCodes } from '../app/command.ts'
import { UsageError } from '../base/errors.ts'
import type { Environment } from '../config/location.ts'
import { isOnPath } from './completion.ts'
import { createContext } from './context.ts'
import { Output, type OutputStream } from './output/output.ts'
import { buildProgram } from './program.ts'

export type MainInput = {
  args: string[]
  env: Environment
  stdout: OutputStream
  stderr: OutputStream
  /** Where the program is that a shell starts. */
  launcher?: string
}

export async function main(launcher?: string): Promise<ExitCode> {
  const { stdout, stderr } = process
  const input: MainInput = {
    args: process.argv.slice(2),
    env: process.env,
    stdout,
    stderr,
    ...(launcher !== undefined && { launcher }),
  }
  // A reader that has seen enough (`| head`) is no error.
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    process.exit(error.code === 'EPIPE' ? exitCodes.ok : exitCodes.failure)
  })
  // What nobody waited for must not end in a stack trace either.
  process.on('uncaughtException', (error) => {
    createOutput(input).error(error)
    process.exit(exitCodes.failure)
  })
  return runCommand(input)
}

export async function runCommand(input: MainInput): Promise<ExitCode> {
  const output = createOutput(input)
  const context = createContext({ env: input.env, output })
  try {
    await buildProgram(context, input.launcher).parseAsync(input.args, { from: 'user' })
    return context.exitCode
  } catch (error) {
    if (error instanceof CommanderError) return endParsing(error, output)
    output.error(error)
    return error instanceof UsageError ? exitCodes.usage : exitCodes.failure
  } finally {
    sayWhere(input, output)
  }
}

/** A person who was told to run `tidemark` must find it; once, and not in what programs read. */
function sayWhere({ env, launcher, stderr }: MainInput, output: Output): void {
  if (!launcher || !stderr.isTTY || output.json || !output.hasSaidCommand || isOnPath(env)) return
  output.note(
    `(Here \`tidemark\` is ${launcher}. To find it by its name: export PATH="${dirname(launcher)}:$PATH")`,
  )
}

/** Reads these two flags before the parser does, so that they hold for an error in the arguments too. */
function createOutput({ args, stdout, stderr }: MainInput): Output {
  const output = new Output(stdout, stderr)
  const own = args.includes('--') ? args.slice(0, args.indexOf('--')) : args
  output.json = own.includes('--json')
  output.debug = own.includes('--debug')
  return output
}

/** The parser throws to end: after help and version, and on wrong usage. */
function endParsing(error: CommanderError, output: Output): ExitCode {
  if (error.exitCode === 0) return exitCodes.ok
  // A noun without its verb: the parser has printed what there is.
  if (error.code === 'commander.help') return exitCodes.usage
  const [first = '', ...rest] = error.message.replace(/^error: /, '').split('\n')
  const suggestion = rest.join(' ').replace(/^\((.*)\)$/, '$1')
  const hint = suggestion || hintFor(error.code, first)
  output.error(new UsageError(first, { hint, code: error.code }))
  return exitCodes.usage
}

function hintFor(code: string, message: string): string {
  const isShort = code === 'commander.unknownOption' && /'-[^-]/.test(message)
  return isShort
    ? 'What begins with a minus and is no option goes behind --, such as: tidemark mail search -- -in:inbox'
    : 'See what is allowed with --help.'
}
