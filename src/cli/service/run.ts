/** Writes the service, takes it away, asks about it; says what it writes and runs. */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { type CliContext, exitCodes } from '../../app/command.ts'
import { asTidemarkError, TidemarkError, UsageError } from '../../base/errors.ts'
import { shellWord } from '../../base/wording.ts'
import type { ServiceFlags } from './service.ts'
import { type ServicePlan, servicePlan } from './unit.ts'

const PROGRAM = join(import.meta.dirname, '..', '..', '..', 'bin', 'tidemark')
const OUTPUT_MAX = 2_000

export async function installService(context: CliContext, flags: ServiceFlags): Promise<void> {
  const { output } = context
  if (flags.system && !flags.runAs) {
    throw new UsageError('--system needs --run-as USER: the service reads and keeps mail as that user.')
  }
  if (flags.system && !context.flags.home) {
    throw new UsageError('--system needs --home FOLDER: the data of the user that it runs as.')
  }
  // A configuration that is wrong is told of now, and not in a log.
  if (!flags.dryRun) await context.loadConfig()
  const plan = planFor(context, flags)
  output.line(`${flags.dryRun ? 'Would write' : 'Writing'} ${plan.file}:`)
  output.line('')
  for (const line of plan.content.trimEnd().split('\n')) output.line(`  ${line}`)
  output.line('')
  noteVariables(context)
  if (flags.dryRun) return runAll(context, plan.install, flags)
  await takeUp(context, plan)
  output.line('It runs, and starts with this machine. Ask with: tidemark service status')
  if (plan.manager === 'systemd' && !flags.system) {
    output.note('It ends when you log out, unless you run once: loginctl enable-linger')
  }
}

async function takeUp(context: CliContext, plan: ServicePlan): Promise<void> {
  const isNew = !existsSync(plan.file)
  if (plan.manager === 'launchd' && !isNew) await tryRun(plan.uninstall[0]!)
  writeUnit(plan)
  const [first, ...rest] = plan.install
  try {
    await runAll(context, first ? [first] : [], {})
  } catch (thrown) {
    // No manager answers: a file that nobody reads would only look like a service.
    if (isNew) deleteUnit(plan)
    throw thrown
  }
  await runAll(context, rest, {})
}

/** What this shell sets and the service will not have: a master key, say, without which no account can be opened. */
function noteVariables({ env, output, locate }: CliContext): void {
  const names = Object.keys(env).filter((name) => /^TIDEMARK_(?!HOME$|CONFIG$)/.test(name))
  if (names.length === 0) return
  output.note(
    `The service does not see ${names.join(', ')} of this shell. Write settings into ${locate().file.path};`,
  )
  output.note('a master key goes where the service manager keeps variables, or into the home folder.')
}

export async function uninstallService(context: CliContext, flags: ServiceFlags): Promise<void> {
  const { output } = context
  const plan = planFor(context, flags)
  if (!existsSync(plan.file) && !flags.dryRun) {
    output.note(`There is no service to take away: ${plan.file} is not there.`)
    return
  }
  const [stop, ...after] = plan.uninstall
  await runIfPossible(context, stop ? [stop] : [], flags)
  output.line(`${flags.dryRun ? 'Would delete' : 'Deleting'} ${plan.file}`)
  if (!flags.dryRun) deleteUnit(plan)
  await runIfPossible(context, after, flags)
}

/** A service that does not run, or a manager that is not there, is no reason to keep the file. */
async function runIfPossible(
  context: CliContext,
  commands: readonly (readonly string[])[],
  flags: ServiceFlags,
): Promise<void> {
  try {
    await runAll(context, commands, flags)
  } catch (thrown) {
    context.output.note(asTidemarkError(thrown).message)
  }
}

export async function serviceStatus(context: CliContext, flags: ServiceFlags): Promise<void> {
  const { output } = context
  const plan = planFor(context, flags)
  if (flags.dryRun) return runAll(context, [plan.status], flags)
  const installed = existsSync(plan.file)
  const running = installed && (await tryRun(plan.status)).code === 0
  if (output.json) output.value({ installed, running, file: plan.file, manager: plan.manager })
  else if (!installed) output.line('Not installed. Install it with: tidemark service install')
  else output.line(`${running ? 'Installed and running' : 'Installed, but not running'}: ${plan.file}`)
  if (!running) context.exitCode = exitCodes.failure
}

function planFor(context: CliContext, { system, runAs }: ServiceFlags): ServicePlan {
  const { home, file } = context.locate()
  const config = file.origin.kind === 'default' ? [] : ['--config', file.path]
  const userHome = context.env.HOME ?? homedir()
  return servicePlan({
    platform: process.platform,
    userHome,
    configHome: context.env.XDG_CONFIG_HOME,
    uid: process.getuid?.() ?? 0,
    isSystem: system === true,
    user: runAs,
    home: home.path,
    command: [PROGRAM, '--home', home.path, ...config, 'serve'],
  })
}

function writeUnit({ file, content }: ServicePlan): void {
  try {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content, { mode: 0o644 })
  } catch (cause) {
    throw fileError(file, 'written', cause)
  }
}

function deleteUnit({ file }: ServicePlan): void {
  try {
    rmSync(file, { force: true })
  } catch (cause) {
    throw fileError(file, 'deleted', cause)
  }
}

function fileError(file: string, done: 'written' | 'deleted', cause: unknown): TidemarkError {
  return new TidemarkError(`${file} could not be ${done}: ${(cause as Error).message}.`, {
    kind: 'permanent',
    hint: 'With --system it takes root.',
    cause,
  })
}

async function runAll(
  { output }: CliContext,
  commands: readonly (readonly string[])[],
  { dryRun }: ServiceFlags,
): Promise<void> {
  for (const command of commands) {
    const text = command.map(shellWord).join(' ')
    output.line(`${dryRun ? 'Would run' : 'Running'}: ${text}`)
    if (dryRun) continue
    const { code, said } = await tryRun(command)
    if (code === 0) continue
    throw new TidemarkError(
      `"${text}" did not work: ${(said || `it ended with ${code}`).replace(/\.$/, '')}.`,
      {
        kind: 'permanent',
        code: 'service-manager',
        hint: 'Without a service manager, start "tidemark serve" yourself.',
      },
    )
  }
}

function tryRun([program = '', ...args]: readonly string[]): Promise<{ code: number | null; said: string }> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-OUTPUT_MAX)
    })
    child.on('error', (error: NodeJS.ErrnoException) => {
      resolve({ code: null, said: error.code === 'ENOENT' ? `there is no ${program} here` : error.message })
    })
    child.on('close', (code) => resolve({ code, said: said.trim() }))
  })
}
