/** Routes of the Drive index. Members see what is theirs; admins see all accounts. */
import { z } from 'zod'
import { accountText, readJsonCursor, writeCursor } from '../../../app/inputs.ts'
import { readCacheOf } from '../../../app/ledger-read-cache.ts'
import { conflict, notFound } from '../../../app/problem.ts'
import { already, cursorQuery, type DoneView, done, doneSchema, pageOf } from '../../../app/schemas.ts'
import { resumeSignedIn } from '../../../app/signed-in.ts'
import { pauseNote, signInNeeded } from '../../../app/sync-request.ts'
import { noteAccountLook, type RequestUser } from '../../../app/user.ts'
import type { Account } from '../../../ledger/accounts.ts'
import { SERVICE, sourcesOf, streamOf } from '../account.ts'
import { type DriveStatus, driveStatus } from '../status.ts'
import { wantListing } from '../store/feeds.ts'
import { whoSees } from '../who.ts'
import { type DriveServices, route } from './route.ts'
import { type DriveStatusView, driveStatusSchema, skippedFileSchema, whoSeesSchema } from './schemas.ts'

/** Whose accounts a user may look at. */
async function accountsFor({ accounts }: DriveServices, user: RequestUser): Promise<Account[]> {
  if (user.role === 'admin') return accounts.list(SERVICE)
  return (await accounts.ofUser(user.id)).filter(({ service }) => service === SERVICE)
}

/** Of one account, or of all that the user may look at. One that is another's is as one that is not there. */
async function chosenAccounts(
  services: DriveServices,
  user: RequestUser,
  account: string | undefined,
): Promise<Account[]> {
  const own = await accountsFor(services, user)
  if (account === undefined) return own
  const found = own.filter(({ name }) => name === account)
  if (found.length === 0) throw notFound(`There is no Drive account ${account}.`)
  return found
}

export async function readStatus(services: DriveServices, names: readonly string[]): Promise<DriveStatus[]> {
  const { ledger, clock, drive } = services
  return readCacheOf(ledger).read(`drive status ${JSON.stringify(names)}`, clock, () =>
    driveStatus(ledger, drive.tables, names),
  )
}

export function statusView(status: DriveStatus): DriveStatusView {
  return {
    ...status,
    skippedBy: [...status.skippedBy],
    feeds: status.feeds.map((feed) => ({ ...feed, skippedBy: [...feed.skippedBy] })),
  }
}

const getStatus = route('GET /api/drive/status', {
  summary: 'How far each account and each of its drives is',
  access: 'member',
  errors: [404],
  query: z.object({ account: accountText.optional() }),
  answer: z.object({ accounts: z.array(driveStatusSchema) }),
  handle: async ({ query, user }, services) => {
    const rows = await chosenAccounts(services, user, query.account)
    const names = rows.map(({ name }) => name)
    return { accounts: (await readStatus(services, names)).map(statusView) }
  },
})

const getSkipped = route('GET /api/drive/skipped', {
  summary: 'Files that are found by their names only, with the reason',
  access: 'member',
  errors: [400, 404],
  query: z.object({
    ...cursorQuery,
    account: accountText.optional(),
    code: z.string().max(100).optional().describe('Only those with this reason'),
  }),
  answer: pageOf(skippedFileSchema),
  handle: async ({ query, user }, services) => {
    const { limit, cursor, code } = query
    const rows = await chosenAccounts(services, user, query.account)
    const look = { service: SERVICE, account: query.account, what: 'listed skipped files' }
    if (user.role === 'admin') await noteAccountLook(services, user, look)
    const after = readJsonCursor(cursor, z.string().max(200)) ?? ''
    const isAll = user.role === 'admin' && query.account === undefined
    const accounts = isAll ? undefined : rows.map(({ name }) => name)
    const found = await services.drive.tables.skipped({ accounts, code, after, limit })
    return {
      items: found.map((file) => ({
        id: file.id,
        name: file.name,
        mimeType: file.mime_type,
        sizeBytes: file.size_bytes === null ? null : Number(file.size_bytes),
        url: file.url,
        state: file.state === 'failed' ? ('failed' as const) : ('skipped' as const),
        code: file.code ?? 'unknown',
        reason: file.reason ?? '',
      })),
      next: found.length < limit ? null : writeCursor(found.at(-1)!.id),
    }
  },
})

const getWho = route('GET /api/drive/files/{id}/who', {
  summary: 'Who can find a file, and through what; for admins',
  errors: [404],
  params: z.object({ id: z.string().min(1).max(200).describe('The id that Google gave the file') }),
  answer: whoSeesSchema,
  handle: async ({ params, user }, { drive, users }) => {
    const seen = await whoSees(drive.tables, params.id)
    if (!seen) throw notFound('No connected account sees such a file.')
    await users.note(user, 'who', `${SERVICE}:${seen.id}`)
    return seen
  },
})

const startSync = route('POST /api/drive/sync', {
  status: 202,
  summary: 'Looks for changes now; where that is under way, it says so',
  description: '`already`: it is under way. 409: no account is connected, or it has to sign in again.',
  access: 'member',
  errors: [404, 409],
  body: z.strictObject({
    account: accountText.optional().describe('Only this one; all if left out'),
    relist: z.boolean().optional().describe('Lists everything anew, instead of what has changed'),
  }),
  answer: doneSchema,
  handle: async ({ body, user }, services) => {
    const rows = await chosenAccounts(services, user, body.account)
    return syncNow(services, rows, { isRelist: body.relist ?? false })
  },
})

async function syncNow(
  services: DriveServices,
  rows: readonly Account[],
  { isRelist }: { isRelist: boolean },
): Promise<DoneView> {
  const { engine, ledger, drive } = services
  if (rows.length === 0) throw conflict('No Drive account is connected.', { code: 'no-account' })
  const names = rows.filter(({ state }) => state === 'ready').map(({ name }) => name)
  if (names.length === 0) throw signInNeeded(rows.map(({ name }) => name))
  await resumeSignedIn(services, SERVICE, sourcesOf(names))
  const started: string[] = []
  for (const name of names) {
    const stream = streamOf(name)
    await engine.streams.open(stream)
    if (isRelist) await ledger.transaction((tx) => wantListing(tx, name))
    const { outcome } = await engine.enqueue(drive.kinds.sync, { account: name }, { stream })
    const isGoing = (await ledger.jobs({ kind: drive.kinds.list.kind, stream, state: 'claimed', limit: 1 }))
      .length
    if (outcome !== 'ignored' && isGoing === 0) started.push(name)
  }
  const held = await pauseNote(
    services,
    names.map((name) => ({ name, stream: streamOf(name) })),
  )
  if (started.length === 0) return already(`Sync already in progress.${held}`)
  return done(`Sync started: ${started.join(', ')}.${held}`)
}

export const driveRoutes = [getStatus, getSkipped, getWho, startSync]
