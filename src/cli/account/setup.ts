/**
 * `tidemark account setup`: the client with which people sign in at a service. Shows the steps to one, asks for what
 * they brought, asks the provider about it, and keeps it sealed.
 */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { type CliContext, exitCodes } from '../../app/command.ts'
import { OWNER } from '../../app/user.ts'
import { withLedgerMade } from '../../app/with-ledger.ts'
import { systemClock } from '../../base/clock.ts'
import { TidemarkError, UsageError } from '../../base/errors.ts'
import { openVault } from '../../base/vault.ts'
import type { AccountService } from '../../cloud/account-service.ts'
import type { AccountStore } from '../../cloud/account-store.ts'
import {
  checkClient,
  type FoundClient,
  findClient,
  isRefused,
  keepClient,
  type StepCheck,
  stepLines,
} from '../../cloud/client-setup.ts'
import { createPkce, type OAuthClient } from '../../cloud/oauth.ts'
import { findService } from '../../cloud/registry.ts'
import type { LoadedConfig } from '../../config/load.ts'
import { originText } from '../../config/location.ts'
import { Accounts } from '../../ledger/accounts.ts'
import { Users } from '../../ledger/users.ts'
import { readHidden, readLines } from '../output/prompt.ts'

export type SetupOptions = { file?: string; check?: boolean; forget?: boolean }

export type SetupPlace = {
  context: CliContext
  service: AccountService
  store: AccountStore
  users: Users
  loaded: LoadedConfig
}

export async function setUpClient(context: CliContext, name: string, options: SetupOptions): Promise<void> {
  const service = (await findService(name))!
  const entered = options.file === undefined ? undefined : readClientFile(service, options.file)
  await withSetup(context, service, async (place) => {
    if (options.forget) return forget(place)
    if (options.check)
      return show(place, await checked(place, requireClient(place, await find(place)).client))
    await setUp(place, entered)
    if (!context.output.json) context.output.note(`Connect an account now: tidemark account add ${name}`)
  })
}

async function withSetup(
  context: CliContext,
  service: AccountService,
  use: (place: SetupPlace) => Promise<void>,
): Promise<void> {
  const loaded = await context.loadConfig()
  await withLedgerMade(context, async ({ ledger }) => {
    const accounts = await Accounts.open(ledger)
    const hasSealed = await accounts.hasSealed()
    const vault = await openVault({ env: context.env, home: loaded.home.path, hasSealed })
    await use({ context, service, store: { accounts, vault }, users: await Users.open(ledger), loaded })
  })
}

/** A person at a terminal is led through it; a program gives the lines, or a file. */
export async function setUp(place: SetupPlace, entered?: OAuthClient): Promise<OAuthClient> {
  const { context, service, store, loaded, users } = place
  const { output } = context
  const { setup } = service.signIn
  const configured = setup.configured(loaded.values)
  if (configured) {
    const from = loaded.origins.get(configured.key)
    throw new UsageError(
      `A client is set by ${configured.key}${from ? ` (${originText(from)})` : ''}, which wins over what is entered here.`,
      { code: 'client-configured', hint: 'Change it there, or take it out there first.' },
    )
  }
  if (!entered) for (const line of setupLines(service)) output.note(line)
  const client = entered ?? (await askForClient(place))
  const checks = await checked(place, client)
  if (isRefused(checks)) {
    const [first] = checks.filter(({ state }) => state === 'failed')
    throw new TidemarkError(`${first!.text} Nothing was kept.`, {
      kind: 'auth',
      code: 'client-refused',
      ...(first!.hint !== undefined && { hint: first!.hint }),
    })
  }
  await keepClient(setup, store, client)
  await users.note(OWNER, 'client-set', `${setup.provider}: ${client.clientId}`)
  show(place, checks)
  if (!output.json) output.line('They are kept, sealed.')
  return client
}

export function setupLines({ signIn: { setup } }: AccountService): string[] {
  return [setup.intro, ...stepLines(setup.steps({ redirects: [] }))]
}

async function askForClient({ context, service }: SetupPlace): Promise<OAuthClient> {
  const { id, secret } = service.signIn.setup.fields
  const lines = readLines(context.output)
  try {
    const clientId = required(await lines.next(`${id.label}: `), id.label)
    if (!secret) return { clientId }
    const question = `${secret.label}: `
    if (!process.stdin.isTTY)
      return { clientId, clientSecret: required(await lines.next(question), secret.label) }
    lines.close()
    return { clientId, clientSecret: required(await readHidden(context.output, question), secret.label) }
  } finally {
    lines.close()
  }
}

function required(text: string | undefined, label: string): string {
  if (text) return text
  throw new UsageError(`The ${label} was not given. Nothing was kept.`, { code: 'client-missing' })
}

const FILE_CHARS_MAX = 65_536

function readClientFile({ company, signIn: { setup } }: AccountService, path: string): OAuthClient {
  if (!setup.parseFile) throw new UsageError(`${company} has no such file: enter the id instead.`)
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (cause) {
    throw new UsageError(`The file ${path} cannot be read: ${(cause as Error).message}`, { cause })
  }
  const client = setup.parseFile(text.slice(0, FILE_CHARS_MAX))
  if (client) return client
  throw new UsageError(`${path} is not the file of a client of ${company}.`, {
    hint: 'Meant is the JSON file that "Download JSON" gives on the page of the client.',
  })
}

function find({ service, loaded, store }: SetupPlace): Promise<FoundClient | undefined> {
  return findClient(service.signIn.setup, loaded.values, store)
}

function requireClient({ service }: SetupPlace, found: FoundClient | undefined): FoundClient {
  if (found) return found
  throw noClient(service)
}

/** With the way to one. */
export function noClient(service: AccountService): UsageError {
  const { section, hasSecret } = service.signIn.setup.keys
  return new UsageError(`There is no client to sign in with at ${service.company}.`, {
    code: 'no-client',
    hint: [
      `Set it up: tidemark account setup ${service.name}. It leads through these steps:`,
      ...setupLines(service),
      `On machines without a terminal ${section}.client_id${hasSecret ? ` and ${section}.client_secret` : ''} can be set in the configuration instead.`,
    ].join('\n'),
  })
}

function checked({ service, loaded }: SetupPlace, client: OAuthClient): Promise<readonly StepCheck[]> {
  const calls = { config: loaded.values, fetch: globalThis.fetch, clock: systemClock }
  const pkce = createPkce((n) => randomBytes(n))
  return checkClient(service.signIn.setup, calls, { client, redirects: [], pkce })
}

const SIGNS: Record<StepCheck['state'], string> = { ok: 'ok', failed: 'wrong', unknown: 'open' }

function show({ context, service }: SetupPlace, checks: readonly StepCheck[]): void {
  const { output } = context
  if (checks.some(({ state }) => state === 'failed')) context.exitCode = exitCodes.failure
  if (output.json) {
    output.value({ service: service.name, checks })
    return
  }
  for (const { state, text, hint } of checks) {
    output.line(`${SIGNS[state]}: ${text}`)
    if (hint !== undefined) output.note(`  ${hint}`)
  }
}

async function forget({ context: { output }, service, store, users }: SetupPlace): Promise<void> {
  const { provider } = service.signIn.setup
  const removed = await store.accounts.removeClient(provider)
  if (removed) await users.note(OWNER, 'client-removed', provider)
  if (output.json) return output.value({ service: service.name, removed })
  output.line(
    removed
      ? `The client of ${service.company} is forgotten. Accounts that were connected with it go on.`
      : `No client of ${service.company} is kept here.`,
  )
}
