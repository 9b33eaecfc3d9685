/** `tidemark sim`: a simulated Gmail and OneDrive on this machine, to try Tidemark without an account. */
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Command, Option } from 'commander'
import type { CliContext } from '../app/command.ts'
import { UsageError } from '../base/errors.ts'
import { formatCount } from '../base/format.ts'
import type { Sim, SimOptions } from '../sim/start.ts'

type SimFlags = {
  port: number
  account?: string[]
  messages: number
  seed: number
  unitsPerMinute: number | 'unlimited'
  fault: string
  since: number
  pushTo?: string
  consent: string
  drive?: string[]
  driveType: 'personal' | 'business'
  files: number
}

const MESSAGES_MAX = 1_000_000
const PORT_MAX = 65_535
const YEARS_MAX = 40
const SEED_MAX = 2 ** 31 - 1
const UNITS_MAX = 1_000_000_000
const ACCOUNTS_MAX = 100
const FILES_MAX = 1_000_000
const ADDRESS_DEFAULT = 'you@example.com'

export function registerSim(program: Command, context: CliContext): void {
  program
    .command('sim')
    .description('a simulated Gmail and OneDrive on this machine, until Ctrl-C')
    .addOption(
      whole('--port <number>', 'where it listens; any free port otherwise', { min: 0, max: PORT_MAX }, 0),
    )
    .addOption(
      new Option(
        '--account <address>',
        `a mailbox; may be given several times (${ADDRESS_DEFAULT}, unless there are drives)`,
      ).argParser(addAddress),
    )
    .addOption(
      whole(
        '--messages <number>',
        'how many messages each mailbox has',
        { min: 0, max: MESSAGES_MAX },
        1_000,
      ),
    )
    .addOption(whole('--seed <number>', 'the same seed makes the same mail', { min: 0, max: SEED_MAX }, 1))
    .addOption(
      new Option('--units-per-minute <number>', 'the quota of each user, or "unlimited"')
        .argParser((text) =>
          text === 'unlimited' ? text : parseWhole(text, '--units-per-minute', { min: 1, max: UNITS_MAX }),
        )
        .default(6_000),
    )
    .option('--fault <profile>', 'what goes wrong: none, mixed, throttle, flaky, …', 'none')
    .addOption(whole('--since <years>', 'how many years the mail goes back', { min: 1, max: YEARS_MAX }, 10))
    .addOption(
      new Option('--consent <how>', 'what the sign-in page does: ask a person, or allow at once')
        .choices(['ask', 'allow'])
        .default('ask'),
    )
    .addOption(
      new Option('--drive <address>', 'a OneDrive of this account; may be given several times').argParser(
        addAddress,
      ),
    )
    .addOption(
      new Option('--drive-type <type>', 'of the drives')
        .choices(['personal', 'business'])
        .default('personal'),
    )
    .addOption(whole('--files <number>', 'how many files each drive has', { min: 0, max: FILES_MAX }, 1_000))
    .option('--push-to <url>', 'where notifications of users.watch are sent')
    .action((flags: SimFlags) => runSim(context, flags))
}

async function runSim(context: CliContext, flags: SimFlags): Promise<void> {
  const { faultProfiles } = await import('../sim/fault-profiles.ts')
  if (!Object.hasOwn(faultProfiles, flags.fault)) {
    throw new UsageError(`There is no fault profile "${flags.fault}".`, {
      hint: `There are ${Object.keys(faultProfiles).join(', ')}.`,
    })
  }
  const { startSim } = await import('../sim/start.ts')
  const stopped = signalled()
  const sim = await startSim(optionsOf(flags)).catch((error: unknown) => {
    throw inUse(error, flags.port)
  })
  sim.oauth.consent.autoApprove = flags.consent === 'allow'
  if (context.output.json) {
    // One line on a terminal too: a program waits for it.
    context.output.raw(`${JSON.stringify(readyLine(sim))}\n`)
  } else describe(context, sim, flags)
  await stopped
  await sim.close()
}

function optionsOf(flags: SimFlags): SimOptions {
  const drives = flags.drive ?? []
  const addresses = flags.account ?? (drives.length > 0 ? [] : [ADDRESS_DEFAULT])
  return {
    port: flags.port,
    seed: flags.seed,
    accounts: addresses.map((address) => ({ address, messages: flags.messages, years: flags.since })),
    drives: drives.map((account) => ({ account, type: flags.driveType, files: flags.files })),
    quota: { unitsPerMinute: flags.unitsPerMinute === 'unlimited' ? null : flags.unitsPerMinute },
    faults: { profile: flags.fault },
    ...(flags.pushTo === undefined ? {} : { push: { endpoint: flags.pushTo } }),
  }
}

function readyLine(sim: Sim): Record<string, unknown> {
  const { baseUrl, authUrl, tokenUrl, revokeUrl, tokenInfoUrl, controlUrl, jwksUrl } = sim
  return {
    baseUrl,
    ports: { http: sim.port },
    accounts: sim.accounts,
    clientId: sim.clientId,
    clientSecret: sim.clientSecret,
    ...{ tokenUrl, authUrl, revokeUrl, tokenInfoUrl, controlUrl, jwksUrl },
    ...(sim.oneDrive.drives.length === 0 ? {} : driveFields(sim)),
  }
}

function driveFields(sim: Sim): Record<string, unknown> {
  const { graphUrl, microsoftAuthUrl, microsoftTokenUrl, microsoftDeviceUrl, microsoftClientId } = sim
  const drives = sim.oneDrive.drives.map(({ name, id }) => ({ id, ...sim.issueDrive(name) }))
  return { graphUrl, microsoftAuthUrl, microsoftTokenUrl, microsoftDeviceUrl, microsoftClientId, drives }
}

function describe({ output }: CliContext, sim: Sim, flags: SimFlags): void {
  const { drives } = sim.oneDrive
  const hasMail = sim.accounts.length > 0
  if (hasMail) {
    const addresses = sim.accounts.map(({ address }) => address).join(', ')
    output.line(
      `A simulated Gmail is at ${sim.baseUrl}, with ${formatCount(flags.messages)} messages for ${addresses}.`,
    )
  }
  if (drives.length > 0) {
    const accounts = drives.map(({ account }) => account).join(', ')
    output.line(
      `A simulated OneDrive is at ${sim.graphUrl}, with ${formatCount(flags.files)} files for ${accounts}.`,
    )
  }
  output.line('')
  output.line('To point Tidemark at it, in another terminal:')
  const settings = {
    ...(hasMail ? settingsOf(sim, flags) : {}),
    ...(drives.length > 0 ? driveSettingsOf(sim) : {}),
    // Not beside data of one's own.
    TIDEMARK_HOME: join(tmpdir(), `tidemark-sim-${sim.port}`),
  }
  for (const [name, value] of Object.entries(settings)) output.line(`  export ${name}='${value}'`)
  output.line('')
  output.line('Refresh tokens, for whoever does not want to sign in:')
  for (const { address, refreshToken } of sim.accounts) output.line(`  ${address}  ${refreshToken}`)
  for (const { name } of drives) output.line(`  ${name} (OneDrive)  ${sim.issueDrive(name).refreshToken}`)
  output.line('')
  output.line(
    `Faults, quota, mail and files are changed at ${sim.controlUrl}. Ctrl-C ends it, and nothing is kept.`,
  )
}

function driveSettingsOf(sim: Sim): Record<string, string> {
  return {
    TIDEMARK_ONEDRIVE_API_URL: sim.graphUrl,
    TIDEMARK_ONEDRIVE_AUTH_URL: sim.microsoftAuthUrl,
    TIDEMARK_ONEDRIVE_TOKEN_URL: sim.microsoftTokenUrl,
    TIDEMARK_ONEDRIVE_DEVICE_URL: sim.microsoftDeviceUrl,
    TIDEMARK_ONEDRIVE_CLIENT_ID: sim.microsoftClientId,
  }
}

function settingsOf(sim: Sim, flags: SimFlags): Record<string, string> {
  return {
    TIDEMARK_GMAIL_API_URL: sim.baseUrl,
    TIDEMARK_GMAIL_AUTH_URL: sim.authUrl,
    TIDEMARK_GMAIL_TOKEN_URL: sim.tokenUrl,
    TIDEMARK_GMAIL_REVOKE_URL: sim.revokeUrl,
    TIDEMARK_GMAIL_CLIENT_ID: sim.clientId,
    TIDEMARK_GMAIL_CLIENT_SECRET: sim.clientSecret,
    TIDEMARK_GMAIL_UNITS_PER_MINUTE: String(
      flags.unitsPerMinute === 'unlimited' ? UNITS_MAX : flags.unitsPerMinute,
    ),
    ...(flags.unitsPerMinute === 'unlimited' ? { TIDEMARK_GMAIL_REQUESTS_PER_SECOND_MAX: '1000' } : {}),
  }
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

type Range = { min: number; max: number }

function whole(flag: string, description: string, range: Range, byDefault: number): Option {
  const name = flag.replace(/ .*$/, '')
  return new Option(flag, description).argParser((text) => parseWhole(text, name, range)).default(byDefault)
}

function parseWhole(text: string, flag: string, { min, max }: Range): number {
  const number = /^\d{1,12}$/.test(text) ? Number(text) : Number.NaN
  if (number >= min && number <= max) return number
  throw new UsageError(`${flag} is "${text}", but it must be a whole number from ${min} to ${max}.`)
}

function addAddress(text: string, earlier: string[] = []): string[] {
  const address = text.trim().toLowerCase()
  if (!/^[^\s@<>"']+@[^\s@<>"']+$/.test(address)) {
    throw new UsageError(`"${text}" is not a mail address.`, { hint: 'Write it like you@example.com.' })
  }
  if (earlier.includes(address)) return earlier
  if (earlier.length >= ACCOUNTS_MAX) throw new UsageError(`There can be ${ACCOUNTS_MAX} accounts at most.`)
  return [...earlier, address]
}
