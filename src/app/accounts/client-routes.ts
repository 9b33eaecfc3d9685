/**
 * Setting up the client with which people sign in at a provider, in the browser: the steps to one, what is kept now,
 * and a check of both. For admins; whoever only connects an account is told whether it was done. A secret comes in and
 * never goes out.
 */
import { z } from 'zod'
import type { AccountService } from '../../cloud/account-service.ts'
import {
  type CheckedClient,
  checkClient,
  ENTER_STEP,
  findClient,
  isRefused,
  keepClient,
  type StepCheck,
} from '../../cloud/client-setup.ts'
import { createPkce, type OAuthClient } from '../../cloud/oauth.ts'
import { services as known } from '../../cloud/registry.ts'
import { originText } from '../../config/location.ts'
import type { ServerModule } from '../module.ts'
import { conflict, notFound, ProblemError } from '../problem.ts'
import { type AnyRoute, route } from '../route.ts'
import { done, doneSchema } from '../schemas.ts'
import type { Services } from '../services.ts'
import { type ClientView, checksSchema, type StepCheckView, setupSchema } from './schemas.ts'
import { redirectOf } from './sign-in-callback.ts'

const FIELD_CHARS_MAX = 500

export async function clientsModule(): Promise<ServerModule> {
  return { name: 'oauth-clients', routes: clientRoutes(await Promise.all(known.map(({ load }) => load()))) }
}

function clientRoutes(all: readonly AccountService[]): AnyRoute[] {
  const params = z.object({
    client: z
      .string()
      .min(1)
      .max(100)
      .describe('The name of the service; those of one provider share a client'),
  })
  const find = (name: string): AccountService => {
    const service = all.find((one) => one.name === name)
    if (service) return service
    throw notFound(`There is no service ${name}.`, {
      code: 'service-unknown',
      hint: `There are: ${all.map((one) => one.name).join(', ')}.`,
    })
  }
  const redirects = (service: AccountService, origin: string): string[] => redirectsOf(all, service, origin)
  const show = route('GET /api/oauth-clients/{client}', {
    summary: 'The client with which people sign in at a service, and the steps to one',
    params,
    answer: setupSchema,
    handle: async ({ params: { client: name }, origin }, services) => {
      const service = find(name)
      const { intro, fields, steps } = service.signIn.setup
      return {
        company: service.company,
        intro,
        fields: { id: fields.id, secret: fields.secret ?? null },
        steps: steps({ redirects: redirects(service, origin) }).map(({ texts, links, copies, ...step }) => ({
          ...step,
          texts: [...texts],
          links: [...links],
          copies: [...copies],
        })),
        client: await clientView(service, services),
      }
    },
  })
  const set = route('PUT /api/oauth-clients/{client}', {
    summary: 'Keeps a client to sign in with, sealed, after asking the service about it',
    description:
      '409: one is configured, in the file or the environment, which wins. 422: the service does not take it; `errors` says which step it is about.',
    errors: [409, 422],
    params,
    body: z.strictObject({
      id: z.string().trim().min(1).max(FIELD_CHARS_MAX).describe('The id of the client'),
      secret: z
        .string()
        .trim()
        .max(FIELD_CHARS_MAX)
        .optional()
        .describe('Its secret, where the service gives one. It is never told again'),
    }),
    answer: checksSchema,
    handle: async ({ params: { client: name }, body, origin, user }, services) => {
      const service = find(name)
      const { setup } = service.signIn
      refuseConfigured(service, services)
      const client = enteredClient(service, body)
      const checks = await check(services, service, { client, redirects: redirects(service, origin) })
      if (isRefused(checks)) throw refused(checks)
      await keepClient(setup, services, client)
      await services.users.note(user, 'client-set', `${setup.provider}: ${client.clientId}`)
      return { checks: checks.map(checkView) }
    },
  })
  const checkRoute = route('POST /api/oauth-clients/{client}/check', {
    summary: 'Asks the service about the client that holds now',
    description: '409: there is none.',
    errors: [409],
    params,
    answer: checksSchema,
    handle: async ({ params: { client: name }, origin }, services) => {
      const service = find(name)
      const { client } = await clientOrConflict(service, services)
      const checks = await check(services, service, { client, redirects: redirects(service, origin) })
      return { checks: checks.map(checkView) }
    },
  })
  const remove = route('DELETE /api/oauth-clients/{client}', {
    summary: 'Forgets the client that is kept; connected accounts go on with it',
    params,
    answer: doneSchema,
    handle: async ({ params: { client: name }, user }, services) => {
      const { company, signIn } = find(name)
      const { provider } = signIn.setup
      if (!(await services.accounts.removeClient(provider))) {
        throw notFound(`No client of ${company} is kept here.`, { code: 'no-client' })
      }
      await services.users.note(user, 'client-removed', provider)
      return done(`The client of ${company} is forgotten. Accounts that were connected with it go on.`)
    },
  })
  return [show, set, checkRoute, remove]
}

/** Of all services of a provider, that of this one first: a client must allow each of them. */
function redirectsOf(all: readonly AccountService[], service: AccountService, origin: string): string[] {
  const { provider } = service.signIn.setup
  const others = all.filter((one) => one !== service && one.signIn.setup.provider === provider)
  return [service, ...others].map((one) => redirectOf(one, origin))
}

export async function clientView(service: AccountService, services: Services): Promise<ClientView | null> {
  const found = await findClient(service.signIn.setup, services.config, services)
  if (!found) return null
  const { client, from } = found
  const known = { id: client.clientId, hasSecret: client.clientSecret !== undefined }
  return from.kind === 'ledger'
    ? { ...known, setBy: null, setAt: new Date(from.setAtMs).toISOString() }
    : { ...known, setBy: placeOf(from.key, services), setAt: null }
}

function placeOf(key: string, { origins }: Services): string {
  const origin = origins.get(key)
  return origin === undefined || origin.kind === 'default' ? key : `${key} (${originText(origin)})`
}

/** Without a client nobody can sign in here, whatever is asked for. */
export async function clientOrConflict(
  service: AccountService,
  services: Services,
): Promise<{ client: OAuthClient }> {
  const found = await findClient(service.signIn.setup, services.config, services)
  if (found) return found
  throw conflict(
    `${service.title} is not set up yet: there is no client to sign in with at ${service.company}.`,
    {
      code: 'no-client',
      hint: `An admin sets it up on the page of settings, or by: tidemark account setup ${service.name}`,
    },
  )
}

function refuseConfigured({ signIn: { setup } }: AccountService, services: Services): void {
  const configured = setup.configured(services.config)
  if (!configured) return
  throw conflict(
    `A client is set by ${placeOf(configured.key, services)}, which wins over what is entered here.`,
    {
      code: 'client-configured',
      hint: 'Change it there, or take it out there first.',
    },
  )
}

function enteredClient(
  { signIn: { setup } }: AccountService,
  body: { id: string; secret?: string | undefined },
): OAuthClient {
  const { id: clientId, secret } = body
  return { clientId, ...(setup.fields.secret && secret ? { clientSecret: secret } : {}) }
}

function check(
  { config, fetch, clock, chanceBytes }: Services,
  { signIn: { setup } }: AccountService,
  asked: Omit<CheckedClient, 'pkce'>,
): Promise<readonly StepCheck[]> {
  return checkClient(setup, { config, fetch, clock }, { ...asked, pkce: createPkce(chanceBytes) })
}

function checkView({ hint, ...check }: StepCheck): StepCheckView {
  return { ...check, hint: hint ?? null }
}

function refused(checks: readonly StepCheck[]): ProblemError {
  const failed = checks.filter(({ state }) => state === 'failed')
  const first = failed.find(({ step }) => step === ENTER_STEP)!
  return new ProblemError(422, `${first.text} Nothing was kept.`, {
    code: 'client-refused',
    ...(first.hint !== undefined && { hint: first.hint }),
    errors: failed.map(({ step, text }) => ({ where: step, message: text })),
  })
}
