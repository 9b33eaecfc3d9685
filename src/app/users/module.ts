/**
 * Users as a module of the server: who there is, their tokens, their accounts, and how far what is kept of these is.
 * Members may ask about themselves; all else is for admins, and what they do is written down.
 */
import { z } from 'zod'
import type { Account } from '../../ledger/accounts.ts'
import { accountKey } from '../../ledger/accounts.ts'
import { TOKEN_BYTES, tokenText, type User } from '../../ledger/users.ts'
import type { App } from '../app.ts'
import { noteWithoutEngine } from '../engine-note.ts'
import { accountText, idNumber, idParamsOf, nameText, pageOfRows, readCursor } from '../inputs.ts'
import type { ServerModule } from '../module.ts'
import { notFound, ProblemError } from '../problem.ts'
import { type AnyRoute, route } from '../route.ts'
import { cursorQuery, done, doneSchema } from '../schemas.ts'
import type { Services } from '../services.ts'
import type { RequestUser } from '../user.ts'
import {
  auditSchema,
  meSchema,
  syncBegunSchema,
  syncStatusSchema,
  tokenSchema,
  userSchema,
  userViewSchema,
} from './schemas.ts'
import { joinedSync, sourcesOf, syncOf } from './sync-state.ts'

const userParams = idParamsOf('user')
const LABEL_CHARS_MAX = 100

const me = route('GET /api/me', {
  tag: 'users',
  access: 'member',
  summary: 'Who asks',
  answer: meSchema,
  handle: async ({ user: { id, name, role } }) => ({ id, name, role }),
})

const list = route('GET /api/users', {
  summary: 'The users, with their accounts',
  answer: z.object({ items: z.array(userViewSchema) }),
  handle: async (_input, { users, accounts }) => {
    const connected = await accounts.list()
    const all = await users.list()
    const items = all.map(async (user) => ({
      ...user,
      accounts: connected.filter(({ userId }) => userId === user.id).map(accountView),
      tokens: (await users.tokens(user.id)).length,
    }))
    return { items: await Promise.all(items) }
  },
})

const add = route('POST /api/users', {
  summary: 'Adds a user',
  description: '409: there is one of that name.',
  errors: [409],
  body: z.strictObject({
    name: nameText.describe('An address, or one word'),
    role: z.enum(['admin', 'member']).default('member').describe('What they may do'),
  }),
  status: 201,
  answer: userSchema,
  handle: async ({ body, user: by }, { users }) => {
    const user = await users.add(body)
    await users.note(by, 'user-added', `${user.name} as ${user.role}`)
    return user
  },
})

const change = route('PUT /api/users/{id}', {
  summary: 'Changes what a user may do, or whether they are let in',
  params: userParams,
  body: z.strictObject({
    role: z.enum(['admin', 'member']).optional().describe('What they may do'),
    state: z
      .enum(['active', 'disabled'])
      .optional()
      .describe('Tokens and sessions of a disabled user end at once'),
  }),
  answer: userSchema,
  handle: async ({ params, body, user: by }, services) => {
    await knownUser(services, params.id)
    const user = await services.users.change(params.id, body)
    await services.users.note(by, 'user-changed', `${user.name}: ${user.role}, ${user.state}`)
    return user
  },
})

const removeRoute = (apps: readonly App[]): AnyRoute =>
  route('DELETE /api/users/{id}', {
    summary: 'Removes a user who has no accounts, with their tokens and their searches',
    description: '409: accounts are still theirs.',
    errors: [409],
    params: userParams,
    answer: doneSchema,
    handle: async ({ params, user: by }, services) => {
      const user = await knownUser(services, params.id)
      await services.users.remove(user.id, {
        by,
        forget: async (tx, id) => {
          for (const app of apps) await app.forgetUser?.(tx, id)
        },
      })
      return done(`The user ${user.name} is removed.`)
    },
  })

const give = route('PUT /api/users/{id}/accounts/{service}/{name}', {
  summary: 'Gives an account to a user, who sees from then on what was kept of it',
  params: userParams.extend({ service: nameText.describe('The service of the account'), name: accountText }),
  answer: doneSchema,
  handle: async ({ params, user: by }, services) => {
    const user = await knownUser(services, params.id)
    const account = await services.accounts.find(params.service, params.name)
    if (!account) throw notFound(`There is no account ${params.name}.`, { code: 'account-unknown' })
    await services.accounts.setUser(account.id, user.id)
    await services.users.note(by, 'user-changed', `${user.name}: got ${accountKey(account)}`)
    return done(`The account ${account.name} is of ${user.name} now.`)
  },
})

const tokens = route('GET /api/users/{id}/tokens', {
  access: 'member',
  summary: 'The tokens of a user, without the tokens themselves',
  params: userParams,
  answer: z.object({ items: z.array(tokenSchema) }),
  handle: async ({ params, user }, services) => {
    const of = await ownUser(services, user, params.id)
    const items = (await services.users.tokens(of.id)).map(({ id, label, createdAtMs, usedDayMs }) => ({
      id,
      label,
      createdAtMs,
      usedDayMs,
    }))
    return { items }
  },
})

const addToken = route('POST /api/users/{id}/tokens', {
  access: 'member',
  summary: 'A new token for programs of a user; it is told once',
  params: userParams,
  body: z.strictObject({ label: z.string().max(LABEL_CHARS_MAX).default('').describe('What it is for') }),
  status: 201,
  answer: z.object({ id: z.number(), token: z.string() }),
  handle: async ({ params, body, user: by }, services) => {
    const of = await ownUser(services, by, params.id)
    const token = tokenText(services.chanceBytes(TOKEN_BYTES))
    const { id } = await services.users.addToken(of.id, { label: body.label, token })
    await services.users.note(by, 'token-made', `${of.name} #${id}`)
    return { id, token }
  },
})

const revokeToken = route('DELETE /api/users/{id}/tokens/{token}', {
  access: 'member',
  summary: 'Lets a token be worth nothing from now on, and the sessions that it gave',
  params: userParams.extend({ token: idNumber.describe('The number of the token') }),
  answer: doneSchema,
  handle: async ({ params, user: by }, services) => {
    const of = await ownUser(services, by, params.id)
    if (!(await services.users.revokeToken(of.id, params.token))) {
      throw notFound(`There is no token #${params.token}.`, { code: 'token-unknown' })
    }
    await services.users.note(by, 'token-revoked', `${of.name} #${params.token}`)
    return done('The token is worth nothing any more.')
  },
})

const audit = route('GET /api/audit', {
  tag: 'users',
  summary: 'What was done for users and with their documents, by whom: the newest first',
  query: z.object(cursorQuery),
  answer: z.object({ items: z.array(auditSchema), next: z.string().nullable() }),
  handle: async ({ query: { limit, cursor } }, { users }) => {
    const rows = await users.audit({ before: readCursor(cursor), limit: limit + 1 })
    const view = ({ id, atMs, userName, action, subject }: (typeof rows)[number]) => ({
      id,
      atMs,
      userName,
      action,
      subject,
    })
    return pageOfRows(rows, { limit, view, cursor: ({ id }) => id })
  },
})

const syncStatus = route('GET /api/users/{id}/sync-status', {
  access: 'member',
  summary: 'How far everything is that is kept of the accounts of a user',
  params: userParams,
  answer: syncStatusSchema,
  handle: async ({ params, user }, services) => {
    const of = await ownUser(services, user, params.id)
    const sources = await syncOf(services, await services.accounts.ofUser(of.id))
    const { phase, text, processed, total, failed, lastSyncAtMs } = joinedSync(sources)
    return { phase, text, processed, total, failed, lastSyncAtMs, sources }
  },
})

const sync = route('POST /api/users/{id}/sync', {
  access: 'member',
  summary: 'Looks at once for what has changed in the accounts of a user',
  description: 'Where all of it is in progress already, nothing is begun, and the answer says so.',
  params: userParams,
  answer: syncBegunSchema,
  handle: async ({ params, user }, services) => {
    const of = await ownUser(services, user, params.id)
    return beginSync(services, await services.accounts.ofUser(of.id))
  },
})

async function beginSync(
  services: Services,
  accounts: readonly Account[],
): Promise<{ begun: boolean; text: string }> {
  const states = await syncOf(services, accounts)
  if (states.length === 0) return { begun: false, text: 'No account is connected.' }
  const isGoing = (app: string, source: string): boolean =>
    states.some(
      (state) =>
        state.app === app &&
        state.source === source &&
        (state.phase === 'discovering' || state.phase === 'processing'),
    )
  const waiting = (await sourcesOf(services.apps, accounts)).filter(
    ({ app, source }) => !isGoing(app, source.name),
  )
  if (waiting.length === 0) return { begun: false, text: 'Sync already in progress' }
  for (const { open, source } of waiting) await (open.sources.follow ?? open.sources.begin)(source)
  return { begun: true, text: `Sync started.${await noteWithoutEngine(services)}` }
}

/** Members are told nothing of others, not even whether there are any. */
async function ownUser(services: Services, user: RequestUser, id: number): Promise<User> {
  if (user.role !== 'admin' && user.id !== id) {
    throw new ProblemError(403, 'This is for admins, and for the user it is about.', { code: 'admins-only' })
  }
  return knownUser(services, id)
}

async function knownUser({ users }: Services, id: number): Promise<User> {
  const user = await users.get(id)
  if (user) return user
  throw notFound(`There is no user #${id}.`, { code: 'user-unknown' })
}

function accountView({ service, name }: Account): { service: string; name: string } {
  return { service, name }
}

const routesWith = (apps: readonly App[]): readonly AnyRoute[] => [
  list,
  add,
  change,
  removeRoute(apps),
  give,
  tokens,
  addToken,
  revokeToken,
  syncStatus,
  sync,
]

/** Who asks, and what was done, lie beside them: below them every name is the number of a user. */
export function usersModules(apps: readonly App[]): readonly ServerModule<Services>[] {
  return [
    { name: 'me', routes: [me] },
    { name: 'audit', routes: [audit] },
    { name: 'users', routes: routesWith(apps) },
  ]
}
