/** Writes the service, takes it away, asks about it; says what it writes and runs. */
import { spawn } from 'node:child_process'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { TidemarkError, UsageError } from '../errors.ts'
import { shellWord } from '../wording.ts'
import { type CliContext, exitCodes } from './context.ts'
import type { ServiceFlags } from './service.ts'
import { type ServicePlan, servicePlan } from './service-unit.ts'

const PROGRAM = join(import.meta.dirname, '..', '..', 'bin', 'tidemark')
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
  if (!flags.dryRun) {
    if (plan.manager === 'launchd' && existsSync(plan.file)) await tryRun(plan.uninstall[0]!)
    writeUnit(plan)
  }
  await runAll(context, plan.install, flags)
  if (flags.dryRun) return
  output.line('It runs, and starts with this machine. Ask with: tidemark service status')
  if (plan.manager === 'systemd' && !flags.system) {
    output.note('It ends when you log out, unless you run once: loginctl enable-linger')
  }
}

export async function uninstallService(context: CliContext, flags: ServiceFlags): Promise<void> {
  const { output } = context
  const plan = planFor(context, flags)
  if (!existsSync(plan.file) && !flags.dryRun) {
    output.note(`There is no service to take away: ${plan.file} is not there.`)
    return
  }
  const [stop, ...after] = plan.uninstall
  await runAll(context, stop ? [stop] : [], flags)
  output.line(`${flags.dryRun ? 'Would delete' : 'Deleting'} ${plan.file}`)
  if (!flags.dryRun) rmSync(plan.file, { force: true })
  await runAll(context, after, flags)
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
    ...{ platform: process.platform, userHome, configHome: context.env.XDG_CONFIG_HOME },
    ...{ uid: process.getuid?.() ?? 0, isSystem: system === true, user: runAs, home: home.path },
    command: [PROGRAM, '--home', home.path, ...config, 'serve'],
  })
}

function writeUnit({ file, content }: ServicePlan): void {
  try {
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, content, { mode: 0o644 })
  } catch (cause) {
    throw new TidemarkError(`${file} could not be written: ${(cause as Error).message}.`, {
      kind: 'permanent',
      hint: 'With --system it takes root.',
      cause,
    })
  }
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
    throw new TidemarkError(`"${text}" did not work: ${said || `it ended with ${code}`}`, {
      kind: 'permanent',
      code: 'service-manager',
      hint: 'Without a service manager, start "tidemark serve" yourself.',
    })
  }
}

function tryRun([program = '', ...args]: readonly string[]): Promise<{ code: number | null; said: string }> {
  return new Promise((resolve) => {
    const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    let said = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      said = (said + text).slice(-OUTPUT_MAX)
    })
    child.on('error', (error) => resolve({ code: null, said: error.message }))
    child.on('close', (code) => resolve({ code, said: said.trim() }))
  })
}
