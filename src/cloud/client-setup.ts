/**
 * The client with which people sign in at a provider (an OAuth client of Google, an app registration of Microsoft): how
 * to come to one step by step, what can be checked of each step, and where it is kept. One client serves all services
 * of a provider.
 *
 *   entered ──form──▶ asked of the provider ──not refused──▶ sealed in the ledger
 *
 * Invariants:
 * - what is configured (file, environment) wins over what is kept in the ledger
 * - what the provider has refused is not kept; what it could not be asked about is
 * - a secret goes to the provider's token endpoint and into the vault, and nowhere else
 */
import { z } from 'zod'
import type { Clock } from '../base/clock.ts'
import { TidemarkError } from '../base/errors.ts'
import { isLoopback } from '../base/loopback.ts'
import type { Config } from '../config/settings.ts'
import type { AccountStore } from './account-store.ts'
import {
  authorizationUrl,
  exchangeCode,
  type Fetch,
  type OAuthCalls,
  type OAuthClient,
  type Pkce,
  readText,
} from './oauth.ts'

/** What every call to a service needs. */
export type ServiceCalls = { config: Config; fetch: Fetch; clock: Clock; signal?: AbortSignal }

export type SetupLink = { text: string; url: string }

export type SetupStep = {
  /** For programs: what a check is about. */
  id: string
  title: string
  /** Sentences. */
  texts: readonly string[]
  links: readonly SetupLink[]
  /** What has to be entered at the provider exactly so. */
  copies: readonly { label: string; text: string }[]
}

export type StepState = 'ok' | 'failed' | 'unknown'

/** `unknown`: nobody can tell before somebody signs in, or the provider could not be asked. */
export type StepCheck = { step: string; state: StepState; text: string; hint?: string | undefined }

/** Where a person will be sent back to after signing in. */
export type SetupPlace = {
  /** The addresses of this server for all services of the provider; none where the command line signs in. */
  redirects: readonly string[]
}

export type ClientField = { label: string; example: string }

export type ClientSetup = {
  /** `google`: those of one provider share a client. */
  readonly provider: string
  readonly intro: string
  readonly fields: { id: ClientField; secret?: ClientField }
  /** The last one is entering what the others brought. */
  steps(place: SetupPlace): readonly SetupStep[]
  /** What the file or the environment says, and under which key. */
  configured(config: Config): { key: string; client: OAuthClient } | undefined
  /** The keys under which it can be configured. */
  readonly keys: { section: string; hasSecret: boolean }
  /** Reads what the provider lets be downloaded of a client. Missing where there is no such file. */
  parseFile?(text: string): OAuthClient | undefined
  /** What can be told without asking anybody; empty where nothing is wrong. */
  formProblems(client: OAuthClient): readonly StepCheck[]
  /** Asks the provider. */
  check(calls: ServiceCalls, asked: CheckedClient): Promise<StepCheck[]>
}

export type CheckedClient = { client: OAuthClient; redirects: readonly string[]; pkce: Pkce }

/** The last step: where a refused client is shown. */
export const ENTER_STEP = 'enter'

export type FoundClient = {
  client: OAuthClient
  /** What said so: a key of the configuration, or the ledger since then. */
  from: { kind: 'config'; key: string } | { kind: 'ledger'; setAtMs: number }
}

const clientSchema = z.object({ clientId: z.string().min(1), clientSecret: z.string().min(1).optional() })

const sealedName = (provider: string): string => `oauth-client:${provider}`

/** What people sign in with now; undefined where nobody has set it up. */
export async function findClient(
  setup: ClientSetup,
  config: Config,
  { accounts, vault }: AccountStore,
): Promise<FoundClient | undefined> {
  const configured = setup.configured(config)
  if (configured) return { client: configured.client, from: { kind: 'config', key: configured.key } }
  const kept = await accounts.client(setup.provider)
  if (!kept) return undefined
  const opened = clientSchema.safeParse(JSON.parse(vault.open(sealedName(setup.provider), kept.sealed)))
  if (!opened.success) {
    // Without its cause, which quotes what it found.
    throw new TidemarkError('The stored OAuth client has a form that this Tidemark does not know.', {
      kind: 'auth',
      code: 'secret-form',
      hint: 'Update Tidemark, or enter the client again.',
    })
  }
  return { client: opened.data, from: { kind: 'ledger', setAtMs: kept.setAtMs } }
}

/** Without opening what is sealed: whoever only asks needs no key. */
export async function hasClient(
  setup: ClientSetup,
  config: Config,
  { accounts }: Pick<AccountStore, 'accounts'>,
): Promise<boolean> {
  return setup.configured(config) !== undefined || (await accounts.client(setup.provider)) !== undefined
}

export async function keepClient(
  { provider }: ClientSetup,
  { accounts, vault }: AccountStore,
  client: OAuthClient,
): Promise<void> {
  await accounts.setClient(
    provider,
    vault.seal(sealedName(provider), JSON.stringify(clientSchema.parse(client))),
  )
}

/** Everything that can be told of a client; where its form is wrong, nobody is asked. */
export async function checkClient(
  setup: ClientSetup,
  calls: ServiceCalls,
  asked: CheckedClient,
): Promise<readonly StepCheck[]> {
  const problems = setup.formProblems(asked.client)
  return problems.length > 0 ? problems : setup.check(calls, asked)
}

/** Whether a client may be kept: a redirect can be put right later, a wrong secret is of no use. */
export const isRefused = (checks: readonly StepCheck[]): boolean =>
  checks.some(({ step, state }) => step === ENTER_STEP && state === 'failed')

/** The steps as text, for a terminal. */
export function stepLines(steps: readonly SetupStep[]): string[] {
  return steps.flatMap(({ title, texts, links, copies }, at) => [
    `${at + 1}. ${title}`,
    ...texts.map((text) => `   ${text}`),
    ...links.map(({ url }) => `   ${url}`),
    ...copies.map(({ label, text }) => `   ${label}: ${text}`),
  ])
}

/** A code that nobody gave: a provider looks at who asks before it looks at the code. */
const NO_CODE = 'tidemark-checks-its-client'

/** Whether the token endpoint takes the client's word for itself. */
export async function checkByToken(
  calls: OAuthCalls,
  { client, redirects, pkce }: CheckedClient,
): Promise<StepCheck> {
  const redirectUri = redirects[0] ?? 'http://127.0.0.1'
  try {
    await exchangeCode(calls, { ...client, code: NO_CODE, verifier: pkce.verifier, redirectUri })
  } catch (thrown) {
    if (!(thrown instanceof TidemarkError)) throw thrown
    return tokenVerdict(thrown)
  }
  return { step: ENTER_STEP, state: 'unknown', text: 'The answer was not one that was expected.' }
}

const REFUSED_CODES = new Set(['invalid_client', 'deleted_client', 'unauthorized_client'])
/** The client is who it says it is; only the code is nobody's. */
const ACCEPTED_CODES = new Set(['invalid_grant', 'redirect_uri_mismatch'])

function tokenVerdict({ code = '', message, hint }: TidemarkError): StepCheck {
  if (ACCEPTED_CODES.has(code)) {
    return { step: ENTER_STEP, state: 'ok', text: 'The id and the secret are accepted.' }
  }
  if (REFUSED_CODES.has(code)) {
    return {
      step: ENTER_STEP,
      state: 'failed',
      text: 'The id and the secret were not accepted as those of one client.',
      hint: 'Copy both once more, without spaces, from the page of that client; a secret that was replaced there no longer counts.',
    }
  }
  return { step: ENTER_STEP, state: 'unknown', text: `It could not be checked: ${message}`, hint }
}

const REDIRECT_TIMEOUT_MS = 30_000

/**
 * Whether the provider would send a person back to us. Asked with `prompt=none`, nobody is shown anything: a provider
 * that knows client and redirect answers by sending the browser back with an error, any other by a page of its own.
 */
export async function checkRedirect(
  { fetch, clock }: Pick<ServiceCalls, 'fetch' | 'clock'>,
  asked: {
    step: string
    authUrl: string
    redirectUri: string
    scopes: readonly string[]
    clientId: string
    pkce: Pkce
  },
): Promise<StepCheck> {
  const { step, redirectUri } = asked
  const url = authorizationUrl({ ...asked, extra: { prompt: 'none' } })
  const late = new AbortController()
  const cancel = clock.timer(REDIRECT_TIMEOUT_MS, () => late.abort())
  try {
    const response = await fetch(url, { redirect: 'manual', signal: late.signal })
    const to = response.headers.get('location') ?? ''
    if (isBack(to, redirectUri)) {
      return { step, state: 'ok', text: `The browser may be sent back to ${redirectUri}.` }
    }
    const page = await readText(response)
    if (response.status >= 400 || /\/error\b/.test(to) || /\bAADSTS\d{5,}/.test(page)) {
      return {
        step,
        state: 'failed',
        text: `The browser may not be sent back to ${redirectUri}.`,
        hint: 'Enter that address there exactly so. A change can take some minutes to hold.',
      }
    }
  } catch {
    // Not reached: the sign-in will tell.
  } finally {
    cancel()
  }
  return { step, state: 'unknown', text: 'The redirect address will be checked by the first sign-in.' }
}

function isBack(location: string, redirectUri: string): boolean {
  if (!URL.canParse(location)) return false
  const [to, own] = [new URL(location), new URL(redirectUri)]
  return to.origin === own.origin && to.pathname === own.pathname
}

/** Providers send nobody to an address of the open network without https. */
export function unsafeRedirect(step: string, redirects: readonly string[]): StepCheck | undefined {
  const unsafe = redirects.find((one) => {
    const { protocol, hostname } = new URL(one)
    return protocol !== 'https:' && !isLoopback(hostname)
  })
  if (unsafe === undefined) return undefined
  return {
    step,
    state: 'failed',
    text: `Nobody can be sent back to ${unsafe}: an address of another machine must begin with https.`,
    hint: 'Open this page by https, or on the machine itself (http://127.0.0.1), or through a tunnel: ssh -L 4180:127.0.0.1:4180 SERVER.',
  }
}
