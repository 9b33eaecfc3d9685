/** Looking for new mail now, instead of when its time comes. */
import { z } from 'zod'
import { accountText } from '../../../app/inputs.ts'
import { conflict } from '../../../app/problem.ts'
import { already, type DoneView, done, doneSchema } from '../../../app/schemas.ts'
import { resumeSignedIn } from '../../../app/signed-in.ts'
import { plural } from '../../../base/wording.ts'
import { SERVICE, sourcesOf, streamOf } from '../account.ts'
import { unknownAccount } from '../open-accounts.ts'
import type { MailServices } from './route.ts'
import { route } from './route.ts'

const startSync = route('POST /api/mail/sync', {
  status: 202,
  summary: 'Looks for new mail now; where that is under way, it says so',
  description: '`already`: it is under way. 409: no account is connected, or it has to sign in again.',
  errors: [404, 409],
  body: z.strictObject({ account: accountText.optional().describe('Only this one; all if left out') }),
  answer: doneSchema,
  handle: async ({ body }, services) => syncNow(services, body.account),
})

/** All accounts where none is named. */
export async function syncNow(services: MailServices, account: string | undefined): Promise<DoneView> {
  const names = await wantedAccounts(services, account)
  await resumeSignedIn(services, SERVICE, sourcesOf(names))
  const started: string[] = []
  for (const name of names) if (await begin(services, name)) started.push(name)
  const paused = await pausedOf(services, names)
  const held = paused.length === 0 ? '' : ` Paused, so it waits: ${paused.join(', ')}.`
  if (started.length === 0) {
    const whose = names.length === 1 ? `The sync of ${names[0]}` : 'The sync of every account'
    return already(`${whose} is under way already.${held}`)
  }
  return done(`Looking for mail of ${started.join(', ')}.${held}`)
}

/** One that must sign in cannot be synced; without a name, the others are. */
async function wantedAccounts(services: MailServices, account: string | undefined): Promise<string[]> {
  const rows = await services.accounts.list(SERVICE)
  const chosen = account === undefined ? rows : rows.filter(({ name }) => name === account)
  if (account !== undefined && chosen.length === 0) throw unknownAccount(account, rows)
  if (chosen.length === 0) throw conflict('No mail account is connected.', { code: 'no-account' })
  const ready = chosen.filter(({ state }) => state === 'ready')
  if (ready.length > 0) return ready.map(({ name }) => name)
  const names = chosen.map(({ name }) => name).join(', ')
  throw conflict(`${names} ${plural(chosen.length, 'has', 'have')} to sign in again first.`, {
    code: 'sign-in-needed',
    hint: 'Connect the account again on the page of settings.',
  })
}

/** Whether something was begun that was not under way. */
async function begin({ engine, mail }: MailServices, account: string): Promise<boolean> {
  const stream = streamOf(account)
  const { tail_at: plannedTo } = await engine.streams.open(stream)
  const kind = plannedTo === 0 ? mail.kinds.plan : mail.kinds.history
  const { outcome } = await engine.enqueue(kind, { account }, { stream })
  return outcome !== 'ignored'
}

async function pausedOf({ ledger }: MailServices, names: readonly string[]): Promise<string[]> {
  const pauses = await ledger.pauses()
  if (pauses.some(({ scope }) => scope === 'all')) return ['everything']
  return names.filter((name) =>
    pauses.some(({ scope, target }) => scope === 'stream' && target === streamOf(name)),
  )
}

export const syncRoutes = [startSync]
