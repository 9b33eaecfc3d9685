/**
 * The accounts as a module of the server: listing them with what every app says of its own, forgetting one, and
 * connecting one in the browser. The page asks for an address to go to, the service sends the browser back to this
 * server with a code, a page brings the code with the session of its user, and where that is the user who began, the
 * code becomes a sealed secret. See sign-in-callback.ts and PendingSignIns for what lets an answer in.
 */
import { z } from 'zod'
import type { Clock } from '../../base/clock.ts'
import { asTidemarkError } from '../../base/errors.ts'
import { redactText } from '../../base/redaction.ts'
import { levelOfAccount } from '../../cloud/account-keeping.ts'
import { type AccountService, accessText } from '../../cloud/account-service.ts'
import { hasClient, type ServiceCalls } from '../../cloud/client-setup.ts'
import { createPkce, type OAuthClient, type Pkce } from '../../cloud/oauth.ts'
import { CONNECT_HINT, services as known } from '../../cloud/registry.ts'
import { type Account, OWNER_ID } from '../../ledger/accounts.ts'
import type { App } from '../app.ts'
import { accountText, idNumber } from '../inputs.ts'
import { readCacheOf } from '../ledger-read-cache.ts'
import { type ServerModule, servicesFor } from '../module.ts'
import { conflict, notFound, ProblemError } from '../problem.ts'
import { type AnyRoute, route } from '../route.ts'
import { done, doneSchema } from '../schemas.ts'
import type { Services } from '../services.ts'
import type { RequestUser } from '../user.ts'
import { type AccountUses, remainsOf, usesOf } from './account-use.ts'
import { clientOrConflict } from './client-routes.ts'
import { type Chosen, identify, keepIdentified } from './connecting.ts'
import { forgetAccount, revocationTexts } from './removal.ts'
import { accountSchema, type Connected, connectedSchema, type ServiceView, serviceSchema } from './schemas.ts'
import {
  BEGIN_AGAIN,
  CODE_CHARS_MAX,
  defineSignInCallback,
  NOBODY_WAITS,
  redirectOf,
} from './sign-in-callback.ts'

/** An app that works for accounts, with its part of the server. */
type UsingApp = { services: readonly string[]; module: ServerModule }

/** A service, what the apps make of its accounts, and these apps. */
type Connectable = { service: AccountService; uses: AccountUses; apps: readonly UsingApp[] }

/** `modules`: those of the apps. */
export async function accountsModule(
  apps: readonly App[],
  modules: readonly ServerModule[],
): Promise<ServerModule> {
  const using = apps.flatMap(({ name, services }) => {
    const module = modules.find((one) => one.name === name)
    return module?.accounts ? [{ services, module }] : []
  })
  const all = await Promise.all(
    known.map(async ({ name, load }): Promise<Connectable> => {
      const [service, uses] = await Promise.all([load(), usesOf(apps, name)])
      return { service, uses, apps: using.filter(({ services }) => services.includes(name)) }
    }),
  )
  return {
    name: 'accounts',
    routes: [listRoute(all), removeRoute(all), ...connectRoutes(all)],
  }
}

function listRoute(all: readonly Connectable[]): AnyRoute {
  const modules = new Set(all.flatMap(({ apps }) => apps.map(({ module }) => module)))
  const told = [...modules].map(({ name, accounts }) => [name, accounts!.schema.optional()])
  return route('GET /api/accounts', {
    etag: true,
    access: 'member',
    description: 'Members are told of their own.',
    summary: 'The connected accounts, and the services of which one can be connected',
    answer: z.object({
      items: z.array(
        accountSchema.extend({
          apps: z.object(Object.fromEntries(told)).describe('What each app that works for it says of it'),
        }),
      ),
      services: z.array(serviceSchema),
    }),
    handle: async ({ user }, services) => {
      const rows = await accountsFor(services, user)
      const items = await Promise.all(all.map((one) => itemsOf(one, services, rows)))
      const views = await Promise.all(all.map((one) => serviceView(one, services)))
      return { items: items.flat(), services: views }
    },
  })
}

/** Admins look after the accounts of all; what was kept of them is another matter: see search. */
function accountsFor({ accounts }: Services, user: RequestUser): Promise<Account[]> {
  return user.role === 'admin' ? accounts.list() : accounts.ofUser(user.id)
}

async function itemsOf({ service, apps }: Connectable, services: Services, rows: readonly Account[]) {
  const { accounts, vault, users } = services
  const names = new Map((await users.list()).map(({ id, name }) => [id, name]))
  const own = rows.filter((row) => row.service === service.name)
  const told = await Promise.all(
    openApps(apps, services).map(async (module) => ({
      name: module.name,
      views: await module.accounts!.view(servicesFor(module, services), own),
    })),
  )
  return Promise.all(
    own.map(async (account, at) => ({
      service: service.name,
      name: account.name,
      state: account.state,
      user: names.get(account.userId) ?? `#${account.userId}`,
      title: service.called(account.name).asTitle,
      access: (await levelOfAccount(service, { accounts, vault, account })) ?? null,
      apps: Object.fromEntries(told.map(({ name, views }) => [name, views[at]])),
    })),
  )
}

function openApps(apps: readonly UsingApp[], services: Services): ServerModule[] {
  return apps.map(({ module }) => module).filter(({ name }) => services.apps.has(name))
}

async function serviceView({ service, uses }: Connectable, services: Services): Promise<ServiceView> {
  const { name, title, company, levels, defaultLevel, signIn } = service
  return {
    name,
    title,
    company,
    level: defaultLevel,
    isSetUp: await hasClient(signIn.setup, services.config, services),
    apps: [...uses.keys()],
    levels: levels.map(({ level, may, choice }) => ({ level, may, choice })),
  }
}

function removeRoute(all: readonly Connectable[]): AnyRoute {
  return route('DELETE /api/accounts/{service}/{name}', {
    access: 'member',
    summary: 'Forgets an account and gives its token back; what was kept of it stays',
    description: '409: an app works with it; with `force` it is forgotten all the same.',
    errors: [409],
    params: z.object({
      service: z
        .string()
        .min(1)
        .max(100)
        .describe('The name of its service, as the list of accounts gives it'),
      name: accountText,
    }),
    query: z.object({
      force: z.enum(['true', 'false']).default('false').describe('Also while an app works with it'),
    }),
    answer: doneSchema,
    handle: async ({ params: { service: name, name: address }, query: { force }, user }, services) => {
      const { accounts, vault, ledger, home } = services
      const account = await accounts.find(name, address)
      const isTheirs = user.role === 'admin' || account?.userId === user.id
      if (!account || !isTheirs) throw await unknownAccount(services, address, user)
      const one = all.find(({ service }) => service.name === name)
      const remains = await remainsOf(one?.uses ?? new Map(), account, { ledger, home })
      if (remains.inUse && force !== 'true') {
        throw conflict(remains.inUse.message, { code: 'account-in-use', cause: remains.inUse })
      }
      const stored = async () => ({ accounts, vault, account })
      const revoked = { stored, calls: callsOf(services) }
      const revocation = await forgetAccount(one?.service, { accounts, account, revoked })
      await changed(one?.apps ?? [], services)
      const told = revocationTexts(one?.service, account, revocation)
      const text = [`The account ${address} is forgotten.`, remains.question, ...told].join(' ')
      return done(text)
    },
  })
}

async function unknownAccount(services: Services, name: string, user: RequestUser): Promise<ProblemError> {
  const names = (await accountsFor(services, user)).map((one) => one.name)
  return notFound(`There is no account ${name}.`, {
    code: 'account-unknown',
    hint: names.length > 0 ? `There are: ${names.join(', ')}.` : CONNECT_HINT,
  })
}

/** The apps see at once what was connected or forgotten. */
async function changed(apps: readonly UsingApp[], services: Services): Promise<void> {
  for (const module of openApps(apps, services)) {
    await module.accounts!.changed(servicesFor(module, services))
  }
  readCacheOf(services.ledger).forget()
}

function callsOf({ config, fetch, clock }: Services): ServiceCalls {
  return { config, fetch, clock }
}

type Pending = {
  pkce: Pkce
  client: OAuthClient
  level: string
  redirectUri: string
  chosen: Chosen
  of: Connectable
  /** Of the page on which it was begun. */
  origin: string
  /** The user who began it, and who alone may end it. */
  begunBy: number
  /** Whose it will be. */
  userId: number | undefined
}

function connectRoutes(all: readonly Connectable[]): AnyRoute[] {
  let begun: PendingSignIns<Pending> | undefined
  const pendingIn = ({ clock }: Services): PendingSignIns<Pending> => {
    begun ??= new PendingSignIns<Pending>(clock)
    return begun
  }
  const names = all.map(({ service }) => service.name)
  const levels = new Set(all.flatMap(({ service }) => service.levels.map(({ level }) => level)))
  const choices = new Map(
    all.flatMap(({ uses }) =>
      [...uses].flatMap(([app, use]) =>
        use.choices ? [[app, use.choices.schema.optional().describe(`For the app ${app}`)] as const] : [],
      ),
    ),
  )
  const connect = route('POST /api/accounts/connect', {
    access: 'member',
    summary: 'Begins a sign-in: the address at which the user allows the access',
    description:
      '404: there is no such user. 409: no client is configured to sign in with. What was begun waits for ten minutes.',
    errors: [404, 409],
    body: z.strictObject({
      service: z.enum(names).describe('Of which service'),
      user: idNumber.optional().describe('Whose it will be, where an admin connects it for somebody else'),
      access: z.enum([...levels]).describe('What is asked for: one of the levels of the service'),
      choices: z
        .strictObject(Object.fromEntries(choices))
        .default({})
        .describe(
          'What is chosen for the apps that work for it; what was chosen before holds where nothing is said',
        ),
    }),
    answer: z.object({ url: z.string(), state: z.string() }),
    handle: async ({ body, origin, user }, services) => {
      const { access: level } = body
      const chosen = body.choices as Chosen
      const of = all.find(({ service }) => service.name === body.service)!
      checkWish(of, level, chosen)
      const { signIn } = of.service
      const { client } = await clientOrConflict(of.service, services)
      const userId = await ownerOf(services, user, body.user)
      const pkce = createPkce(services.chanceBytes)
      const redirectUri = redirectOf(of.service, origin)
      const begunBy = user.id
      pendingIn(services).remember(pkce.state, {
        pkce,
        client,
        level,
        redirectUri,
        chosen,
        of,
        origin,
        begunBy,
        userId,
      })
      return { url: signIn.url(services.config, { client, level, redirectUri, pkce }), state: pkce.state }
    },
  })
  const callbacks = all.map(({ service }) =>
    defineSignInCallback<Pending>(service, {
      look(services, state) {
        const pending = pendingIn(services).look(state)
        return pending?.of.service === service ? pending : undefined
      },
      drop: (services, state) => void pendingIn(services).take(state),
    }),
  )
  return [connect, connectedRoute(pendingIn), ...callbacks]
}

function connectedRoute(pendingIn: (services: Services) => PendingSignIns<Pending>): AnyRoute {
  return route('POST /api/accounts/connected', {
    access: 'member',
    summary: 'Ends a sign-in with what the service answered: the account is connected',
    description:
      'Only for the user who began it. 404: nobody waits for this answer. 422: the service did not take the code.',
    errors: [404, 409, 422],
    body: z.strictObject({
      state: z.string().max(200).describe('That of the sign-in that was begun'),
      code: z.string().min(1).max(CODE_CHARS_MAX).describe('What is exchanged for the access'),
    }),
    answer: connectedSchema,
    handle: async ({ body, user }, services) => {
      const pending = pendingIn(services).take(body.state)
      if (!pending) throw notFound(NOBODY_WAITS, { code: 'sign-in-unknown', hint: BEGIN_AGAIN })
      if (pending.begunBy !== user.id) throw begunByAnother(pending.of.service)
      try {
        return await finish(services, pending, body.code)
      } catch (thrown) {
        const { kind, code, message, hint } = asTidemarkError(thrown)
        if (kind === 'bug') throw thrown
        throw new ProblemError(422, redactText(message), { code, hint, cause: thrown })
      }
    },
  })
}

/** The person before the browser has just allowed somebody else's Tidemark to read their account. */
function begunByAnother({ company }: AccountService): ProblemError {
  return new ProblemError(403, 'Another user has begun this sign-in. Nothing was connected.', {
    code: 'begun-by-another',
    hint: `If somebody sent you the address, take the access back at ${company}. Your own accounts you connect on the page of settings.`,
  })
}

/** Members connect their own. Admins may connect for others, and connect anew whose account it is already. */
async function ownerOf(
  { users }: Services,
  user: RequestUser,
  wanted: number | undefined,
): Promise<number | undefined> {
  if (user.role !== 'admin') {
    if (wanted === undefined || wanted === user.id) return user.id
    throw new ProblemError(403, 'Members connect accounts of their own.', { code: 'admins-only' })
  }
  if (wanted === undefined) return user.id === OWNER_ID ? undefined : user.id
  if (await users.get(wanted)) return wanted
  throw notFound(`There is no user #${wanted}.`, { code: 'user-unknown' })
}

/** Each service has its own levels, and its own apps. */
function checkWish({ service, uses }: Connectable, level: string, chosen: Chosen): void {
  const { title, levels } = service
  if (!levels.some((one) => one.level === level)) {
    throw new ProblemError(400, `${title} has no access that is called ${level}.`, {
      code: 'access-unknown',
      hint: `There are: ${levels.map((one) => one.level).join(', ')}.`,
    })
  }
  const app = Object.keys(chosen).find((name) => !uses.has(name))
  if (app === undefined) return
  throw new ProblemError(400, `The app ${app} does not work for accounts of ${title}.`, {
    code: 'choices-unknown',
  })
}

async function finish(services: Services, pending: Pending, code: string): Promise<Connected> {
  const { client, level, redirectUri, pkce, chosen, userId } = pending
  const { service, uses, apps } = pending.of
  const calls = callsOf(services)
  const answer = { client, level, code, verifier: pkce.verifier, redirectUri }
  const signedIn = await service.signIn.byCode(calls, answer)
  const identified = await identify(service, signedIn, { calls, level, store: services })
  const { name, before } = await keepIdentified(service, identified, {
    store: services,
    uses,
    chosen,
    userId,
  })
  await changed(apps, services)
  const { facts } = identified.profile
  const more = facts.length === 0 ? '' : `: ${facts.join(', ')}`
  const [next] = apps.flatMap(({ module }) => module.accounts?.next ?? [])
  return {
    title: before ? 'Connected again' : 'Connected',
    text: `Tidemark works for ${service.called(name).inText} now (${accessText(service, level)})${more}.`,
    hint: before ? null : (next ?? null),
  }
}

const KEPT_MS = 600_000
const PENDING_MAX = 50

/**
 * Sign-ins that were begun in a browser, known by their state, which only who began one has. Each is there for ten
 * minutes, for one answer, in the process that began it.
 */
class PendingSignIns<T> {
  /** Oldest first. */
  readonly #all = new Map<string, { value: T; begunMs: number }>()
  readonly #clock: Clock

  constructor(clock: Clock) {
    this.#clock = clock
  }

  remember(state: string, value: T): void {
    for (const [known, { begunMs }] of this.#all) {
      if (this.#all.size >= PENDING_MAX || this.#isOver(begunMs)) this.#all.delete(known)
    }
    this.#all.set(state, { value, begunMs: this.#clock.monotonicMs() })
  }

  /** Leaves it for who ends it. */
  look(state: string): T | undefined {
    const pending = this.#all.get(state)
    return pending && !this.#isOver(pending.begunMs) ? pending.value : undefined
  }

  /** For one answer: whoever comes second finds nothing. */
  take(state: string): T | undefined {
    const pending = this.look(state)
    this.#all.delete(state)
    return pending
  }

  #isOver(begunMs: number): boolean {
    return this.#clock.monotonicMs() - begunMs > KEPT_MS
  }
}
