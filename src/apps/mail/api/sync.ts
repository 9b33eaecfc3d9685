/** Looking for new mail now, instead of when its time comes. */
import { z } from 'zod'
import { accountText } from '../../../app/inputs.ts'
import { conflict } from '../../../app/problem.ts'
import { already, type DoneView, done, doneSchema } from '../../../app/schemas.ts'
import { resumeSignedIn } from '../../../app/signed-in.ts'
import { pauseNote, signInNeeded } from '../../../app/sync-request.ts'
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
  const sources = names.map((name) => ({ name, stream: streamOf(name) }))
  const held = await pauseNote(services, sources)
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
  throw signInNeeded(chosen.map(({ name }) => name))
}

/** Whether something was begun that was not under way. */
async function begin({ engine, mail }: MailServices, account: string): Promise<boolean> {
  const stream = streamOf(account)
  const { tail_at: plannedTo } = await engine.streams.open(stream)
  const kind = plannedTo === 0 ? mail.kinds.plan : mail.kinds.history
  const { outcome } = await engine.enqueue(kind, { account }, { stream })
  return outcome !== 'ignored'
}

export const syncRoutes = [startSync]
