/** `tidemark account add`: sign in, see whose account it is, keep its secret sealed. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { Option } from 'commander'
import { type AccountUses, shownSettings, usesOf } from '../../app/accounts/account-use.ts'
import { type Chosen, type Identified, identify, keepIdentified } from '../../app/accounts/connecting.ts'
import type { CliContext } from '../../app/command.ts'
import { withLedgerMade } from '../../app/with-ledger.ts'
import { apps } from '../../apps/registry.ts'
import { systemClock } from '../../base/clock.ts'
import { TidemarkError, UsageError } from '../../base/errors.ts'
import { formatDuration } from '../../base/format.ts'
import { openVault } from '../../base/vault.ts'
import { type KeptAccount, levelOfAccount } from '../../cloud/account-keeping.ts'
import { type AccountService, accessText, type ServiceFlag } from '../../cloud/account-service.ts'
import type { AccountStore } from '../../cloud/account-store.ts'
import { findClient, type ServiceCalls } from '../../cloud/client-setup.ts'
import { createPkce, type OAuthClient } from '../../cloud/oauth.ts'
import { findService, type ServiceEntry, services } from '../../cloud/registry.ts'
import { type Account, Accounts } from '../../ledger/accounts.ts'
import { Users } from '../../ledger/users.ts'
import type { Output } from '../output/output.ts'
import { readLines } from '../output/prompt.ts'
import { findUser } from '../users/list.ts'
import type { AddOptions } from './account.ts'
import { refusedError, type SignInSteps, signInByLoopback, waitedTooLong } from './loopback.ts'
import { signInByPaste } from './paste.ts'
import { noClient, type SetupPlace, setUp } from './setup.ts'

type Options = AddOptions & { user?: string | undefined }

type Attempt = {
  context: CliContext
  service: AccountService
  options: Options
  level: string
  calls: ServiceCalls
  store: AccountStore
}

export async function addAccount(context: CliContext, name: string, given: AddOptions): Promise<void> {
  const service = (await findService(name))!
  const uses = await usesOf(apps, name)
  const options: Options = { ...given, user: given.user?.trim().toLowerCase() || undefined }
  refuseFlags(service, options)
  const chosen = chosenBy(uses, options)
  const loaded = await context.loadConfig()
  const { values: config, home } = loaded
  const { serviceAccount, user } = options
  const byKey = serviceAccount === undefined ? undefined : service.signIn.byKey!(serviceAccount)
  // Before anybody signs in: what could not be kept need not be asked for.
  await withLedgerMade(context, async ({ ledger }) => {
    const accounts = await Accounts.open(ledger)
    const hasSealed = await accounts.hasSealed()
    const vault = await openVault({ env: context.env, home: home.path, hasSealed })
    const store = { accounts, vault }
    const calls: ServiceCalls = { config, fetch: globalThis.fetch, clock: systemClock }
    const level = await wantedLevel(service, options, store)
    const users = await Users.open(ledger)
    const userId = given.for === undefined ? undefined : (await findUser(users, given.for)).id
    const client = byKey ? undefined : await clientFor({ context, service, store, users, loaded })
    const attempt: Attempt = { context, service, options, level, calls, store }
    const signedIn = byKey
      ? await identifyFor(attempt, await byKey(calls, { user: user!, level }))
      : await signIn(attempt, client!)
    report(attempt, {
      uses,
      signedIn,
      kept: await keepIdentified(service, signedIn, { store, uses, chosen, userId }),
    })
  })
}

/** Whoever sits before a terminal is led to one. */
async function clientFor(place: SetupPlace): Promise<OAuthClient> {
  const { context, service, store, loaded } = place
  const found = await findClient(service.signIn.setup, loaded.values, store)
  if (found) return found.client
  if (!process.stdin.isTTY || context.output.json) throw noClient(service)
  return setUp(place)
}

const SERVICE_FLAGS: Record<ServiceFlag, string> = {
  paste: '--paste',
  device: '--device',
  serviceAccount: '--service-account',
  full: '--full',
  modify: '--modify',
  shared: '--shared',
  readOnly: '--read-only',
}

/** The command has the flags of all services and apps: those of others mean nothing here. */
function refuseFlags({ name, title, signIn }: AccountService, options: Options): void {
  const refuse = (flag: string, isMeant: (one: ServiceEntry) => boolean): never => {
    const titles = services.filter(isMeant).map((one) => one.title)
    throw new UsageError(`${flag} is for ${titles.join(' and ')}: ${title} has nothing like it.`)
  }
  const { flags: own = [] } = services.find((one) => one.name === name) ?? {}
  for (const flag of Object.keys(SERVICE_FLAGS) as ServiceFlag[]) {
    if (options[flag] === undefined || own.includes(flag)) continue
    const refusal = signIn.refusals[flag]
    if (refusal) throw new UsageError(refusal.text, { hint: refusal.hint })
    refuse(SERVICE_FLAGS[flag], ({ flags }) => flags.includes(flag))
  }
  for (const app of apps.filter((one) => !one.services.includes(name))) {
    const flags = (app.accounts?.flags ?? []).map((one) => new Option(one.flags))
    const given = flags.find((one) => options[one.attributeName()] !== undefined)?.attributeName()
    if (given === undefined) continue
    const same = flags.filter((one) => one.attributeName() === given).map(({ long }) => long)
    refuse(same.join(' and '), (one) => app.services.includes(one.name))
  }
  if (options.serviceAccount !== undefined && options.user === undefined) {
    throw new UsageError('For whom shall the service account act?', {
      hint: 'Add --user ADDRESS: a user of the domain that has delegated to it.',
    })
  }
}

function chosenBy(uses: AccountUses, options: Options): Chosen {
  return Object.fromEntries([...uses].map(([app, { choices }]) => [app, choices?.ofFlags(options) ?? {}]))
}

/** An account that is named and there keeps what it was allowed, where that is the way of the service. */
async function wantedLevel(service: AccountService, options: Options, store: AccountStore): Promise<string> {
  const asked = service.levels.find(({ flag }) => flag && options[flag])
  if (asked) return asked.level
  const named = service.keepsLevel ? options.user : undefined
  const known = named === undefined ? undefined : await store.accounts.find(service.name, named)
  return (known && (await levelOfAccount(service, { ...store, account: known }))) ?? service.defaultLevel
}

function signIn(attempt: Attempt, client: OAuthClient): Promise<Identified> {
  const { context, service, options, level, calls } = attempt
  if (options.device) return signInByDevice(attempt, client)
  const { host, hints } = service.signIn
  const pkce = createPkce((n) => randomBytes(n))
  const steps: SignInSteps<Identified> = {
    state: pkce.state,
    host,
    hints,
    ask: (redirectUri) => {
      const { user } = options
      const url = service.signIn.url(calls.config, { client, level, redirectUri, pkce, user })
      const waitMs = options.paste ? undefined : options.wait
      showUrl(context.output, { url, open: options.open === true, waitMs })
    },
    // While the browser still waits for its page: it shall not say that all is well when it is not.
    finish: async (code, redirectUri) => {
      const answer = { client, level, code, verifier: pkce.verifier, redirectUri }
      return identifyFor(attempt, await service.signIn.byCode(calls, answer))
    },
  }
  if (!options.paste) return signInByLoopback(steps, options.wait)
  const lines = readLines(context.output)
  return signInByPaste(steps, lines, context.output).finally(() => lines.close())
}

function identifyFor(attempt: Attempt, signedIn: Parameters<typeof identify>[1]): Promise<Identified> {
  return identify(attempt.service, signedIn, { ...attempt, user: attempt.options.user })
}

async function signInByDevice(attempt: Attempt, client: OAuthClient): Promise<Identified> {
  const { context, service, options, level } = attempt
  const { output } = context
  const stop = new AbortController()
  const calls = { ...attempt.calls, signal: stop.signal }
  const { code, finish } = await service.signIn.byDevice!(calls, { client, level })
  output.note('Open this address in a browser, on this or any other device:')
  output.note(code.verificationUrl)
  output.note(`Type this code there, and sign in: ${code.userCode}`)
  const waitMs = Math.min(options.wait, Math.max(0, code.expiresAtMs - systemClock.now()))
  sayWaiting(output, waitMs)
  if (options.open) openBrowser(output, code.verificationUrl)
  const elsewhere = 'the code can be typed on any device.'
  const cancel = systemClock.timer(options.wait, () => stop.abort(waitedTooLong(options.wait, { elsewhere })))
  try {
    return await identifyFor(attempt, await finish())
  } catch (thrown) {
    throw deviceError(service, thrown)
  } finally {
    cancel()
  }
}

/** In the words of the person who types the code. */
function deviceError({ signIn: { hints } }: AccountService, thrown: unknown): unknown {
  if (!(thrown instanceof TidemarkError)) return thrown
  if (thrown.code === 'authorization_declined' || thrown.code === 'access_denied') {
    return refusedError('access_denied', hints)
  }
  if (thrown.code !== 'expired_token') return thrown
  return new TidemarkError('The code has ended: nobody signed in with it in time.', {
    kind: 'auth',
    code: 'expired_token',
    cause: thrown,
    hint: 'Run the command again for a new code, and type it while it is valid.',
  })
}

function report(
  { context: { output }, service, ...attempt }: Attempt,
  { uses, signedIn, kept }: { uses: AccountUses; signedIn: Identified; kept: KeptAccount },
): void {
  const { profile, secret, notes } = signedIn
  const { name, before, settings } = kept
  const level = service.levelOf(secret, settings) ?? attempt.level
  const hasChoices = [...uses.values()].some(({ choices }) => choices)
  if (output.json) {
    output.value({
      service: service.name,
      name,
      state: 'ready',
      access: level,
      ...(hasChoices && { settings: shownSettings(uses, settings) }),
      ...profile.brief,
      reconnected: before !== undefined,
    })
  } else {
    const read = (from: Account['settings']): string =>
      JSON.stringify([...uses.values()].map(({ choices }) => choices?.read(from)))
    const stay = before && read(before.settings) === read(settings) ? 'stay' : 'are changed'
    const again = before ? ` again${hasChoices ? `; its settings ${stay}` : ''}` : ''
    const facts = [accessText(service, level), ...profile.facts].join(', ')
    output.line(`The ${service.title} account ${name} is connected${again} (${facts}).`)
  }
  if (before?.level !== undefined && before.level !== level) {
    output.note(`Before, it was allowed: ${accessText(service, before.level)}.`)
  }
  for (const note of notes) output.note(note)
}

/** Shows a person where to sign in, and opens a browser there where that is wanted. */
function showUrl(
  output: Output,
  { url, open, waitMs }: { url: string; open: boolean; waitMs: number | undefined },
): void {
  output.note('Open this address in a browser and sign in:')
  output.note(url)
  if (waitMs !== undefined) sayWaiting(output, waitMs)
  if (open) openBrowser(output, url)
}

function sayWaiting(output: Output, waitMs: number): void {
  output.note(`Waiting for the sign-in, up to ${formatDuration(waitMs)}…`)
}

function openBrowser(output: Output, url: string): void {
  const [program, args] =
    process.platform === 'darwin'
      ? ['open', [url]]
      : process.platform === 'win32'
        ? ['rundll32', ['url.dll,FileProtocolHandler', url]]
        : ['xdg-open', [url]]
  const failed = (): void => output.note('The browser could not be opened: open the address yourself.')
  const child = spawn(program as string, args as string[], { stdio: 'ignore', detached: true })
  child.once('error', failed)
  child.once('exit', (code) => code !== 0 && failed())
  child.unref()
}
