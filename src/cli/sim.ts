/** `tidemark sim`: a simulated cloud on this machine, to try Tidemark without an account. */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Command, Option } from 'commander'
import type { CliContext } from '../app/command.ts'
import { UsageError } from '../base/errors.ts'
import { simServices } from '../sim/registry.ts'
import type { RunningService, SimFlag, SimFlags, SimFlagValue, SimService } from '../sim/service.ts'
import type { Sim, SimOptions } from '../sim/start.ts'

const PORT_MAX = 65_535
const SEED_MAX = 2 ** 31 - 1
const ACCOUNTS_MAX = 100
const ADDRESS_DEFAULT = 'you@example.com'

const services = Object.entries(simServices) as [keyof SimOptions & keyof Sim, Service][]
type Service = SimService<object, RunningService>

const kernelFlags: readonly SimFlag[] = [
  {
    flag: '--port <number>',
    about: 'where it listens; any free port otherwise',
    takes: { min: 0, max: PORT_MAX },
    byDefault: 0,
  },
  {
    flag: '--seed <number>',
    about: 'the same seed makes the same world',
    takes: { min: 0, max: SEED_MAX },
    byDefault: 1,
  },
  {
    flag: '--fault <profile>',
    about: 'what goes wrong: none, mixed, throttle, flaky, …',
    takes: 'text',
    byDefault: 'none',
  },
  {
    flag: '--consent <how>',
    about: 'what the sign-in page does: ask a person, or allow at once',
    takes: ['ask', 'allow'],
    byDefault: 'ask',
  },
]

export function registerSim(program: Command, context: CliContext): void {
  const titles = services.map(([, { title }]) => title)
  const command = program
    .command('sim')
    .description(
      `a simulated ${titles.slice(0, -1).join(', ')} and ${titles.at(-1)} on this machine, until Ctrl-C`,
    )
  for (const flag of kernelFlags) command.addOption(optionFor(flag))
  for (const [, { flags }] of services) for (const flag of flags) command.addOption(optionFor(flag))
  command
    .addHelpText('after', `\nWithout any account, ${ADDRESS_DEFAULT} has one at ${titles[0]}.`)
    .action((flags: SimFlags) => runSim(context, flags))
}

async function runSim(context: CliContext, flags: SimFlags): Promise<void> {
  const { startSim } = await import('../sim/start.ts')
  const stopped = signalled()
  const sim = await startSim(simOptions(flags)).catch((error: unknown) => {
    throw inUse(error, Number(flags.port))
  })
  const running = services.map(([name]) => sim[name] as RunningService)
  const shown = running.filter(
    ({ addresses }, at) => addresses.length > 0 || isAskedFor(services[at]![1], flags),
  )
  if (context.output.json) {
    const { baseUrl, port, controlUrl } = sim
    const fields = Object.assign(
      { baseUrl, ports: { http: port }, controlUrl },
      ...running.map((service) => service.about().json),
    )
    // One line on a terminal too: a program waits for it.
    context.output.raw(`${JSON.stringify(fields)}\n`)
  } else describe(context, sim, shown)
  await stopped
  await sim.close()
}

function simOptions(flags: SimFlags): SimOptions {
  const asked = services.map(([name, service]) => {
    const first = flags[camelCase(service.flags[0].flag)]
    return { name, service, accounts: Array.isArray(first) ? (first as readonly string[]) : [] }
  })
  const isNobody = services.every(([, service]) => !isAskedFor(service, flags))
  const worlds = asked.map(({ name, service, accounts }, at) => {
    const people = isNobody && at === 0 ? [ADDRESS_DEFAULT] : accounts
    return [name, service.fromFlags(people, flags)] as const
  })
  return {
    ...Object.fromEntries(worlds),
    port: Number(flags.port),
    seed: Number(flags.seed),
    faults: { profile: String(flags.fault) },
    oauth: { autoApprove: flags.consent === 'allow' },
  }
}

/** By the flag that names its accounts, or what it has instead. */
function isAskedFor({ flags: [first] }: Service, flags: SimFlags): boolean {
  return flags[camelCase(first.flag)] !== undefined
}

function describe({ output }: CliContext, sim: Sim, shown: readonly RunningService[]): void {
  const abouts = shown.map((service) => service.about())
  for (const { text } of abouts) output.line(text)
  output.line('')
  output.line('To point Tidemark at it, in another terminal:')
  // Services of one company share some of theirs.
  const settings: Record<string, string> = Object.assign({}, ...abouts.map((about) => about.settings))
  for (const [name, value] of Object.entries(settings)) output.line(`  export ${name}='${value}'`)
  // Not beside data of one's own.
  output.line(`  export TIDEMARK_HOME='${join(tmpdir(), `tidemark-sim-${sim.port}`)}'`)
  output.line('')
  const commands = abouts.flatMap((about) => about.commands ?? [])
  const tokens = abouts.flatMap(({ refreshTokens }) => refreshTokens)
  if (commands.length > 0) output.line('And then, for a try:')
  for (const command of commands) output.line(`  ${command}`)
  if (tokens.length > 0) output.line('Refresh tokens, for whoever does not want to sign in:')
  for (const [account, token] of tokens) output.line(`  ${account}  ${token}`)
  if (commands.length + tokens.length > 0) output.line('')
  output.line(
    `Faults, quota and contents are changed at ${sim.controlUrl}. Ctrl-C ends it, and nothing is kept.`,
  )
}

/** Resolves at the first SIGINT or SIGTERM; the next one ends the process as usual. */
function signalled(): Promise<void> {
  return new Promise((resolve) => {
    const onSignal = (): void => {
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, onSignal)
      resolve()
    }
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, onSignal)
  })
}

function inUse(error: unknown, port: number): unknown {
  if (!(error instanceof Error) || !('code' in error)) return error
  if (error.code !== 'EADDRINUSE' && error.code !== 'EACCES') return error
  const why = error.code === 'EACCES' ? 'this user may not listen on it' : 'something else listens on it'
  return new UsageError(`Port ${port} is not free: ${why}.`, {
    hint: 'Give another --port, or leave it out for any free one.',
    cause: error,
  })
}

function optionFor({ flag, about, takes, byDefault }: SimFlag): Option {
  const option = new Option(flag, about)
  if (byDefault !== undefined) option.default(byDefault)
  if (takes === 'text') return option
  if (takes === 'addresses') return option.argParser(addAddress)
  if (Array.isArray(takes)) return option.choices(takes as readonly string[])
  const range = takes as Extract<SimFlag['takes'], { min: number }>
  const name = flag.replace(/ .*$/, '')
  return option.argParser(
    (text): SimFlagValue => (text === range.word ? text : parseWhole(text, name, range)),
  )
}

/** `--drive-type <type>` → `driveType`, as the flags are named once they are read. */
function camelCase(flag: string): string {
  return new Option(flag).attributeName()
}

function parseWhole(text: string, flag: string, { min, max }: { min: number; max: number }): number {
  const number = /^\d{1,12}$/.test(text) ? Number(text) : Number.NaN
  if (number >= min && number <= max) return number
  throw new UsageError(`${flag} is "${text}", but it must be a whole number from ${min} to ${max}.`)
}

function addAddress(text: string, earlier: readonly string[] = []): readonly string[] {
  const address = text.trim().toLowerCase()
  if (!/^[^\s@<>"']+@[^\s@<>"']+$/.test(address)) {
    throw new UsageError(`"${text}" is not a mail address.`, { hint: 'Write it like you@example.com.' })
  }
  if (earlier.includes(address)) return earlier
  if (earlier.length >= ACCOUNTS_MAX) throw new UsageError(`There can be ${ACCOUNTS_MAX} accounts at most.`)
  return [...earlier, address]
}
