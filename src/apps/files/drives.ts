/**
 * What an account can keep a folder in step with: its own drives, and the libraries of those sites of SharePoint that
 * the person follows. Asked of OneDrive by itself, before anything is written.
 */
import { sleep, systemClock } from '../../base/clock.ts'
import { asTidemarkError, UsageError } from '../../base/errors.ts'
import { createHttpExchange } from '../../base/http-exchange.ts'
import { shellWord } from '../../base/wording.ts'
import type { Drive, OneDriveClient } from '../../cloud/onedrive/client.ts'
import type { Account } from '../../ledger/accounts.ts'
import { openOneDriveClient } from './open-folder-pairs.ts'
import type { FilesRuntime } from './runtime.ts'

export type AvailableDrive = Pick<Drive, 'id' | 'type'> & {
  /** As a person says it: `OneDrive`, or `Marketing/Documents`. */
  name: string
  usedBytes: number | undefined
}

export type AvailableDrives = {
  drives: readonly AvailableDrive[]
  /** Why there may be more, and what to do to see it. */
  hint: string | undefined
}

type Opened = Pick<FilesRuntime, 'accounts' | 'vault' | 'files' | 'fetch'>

export function availableDrives(runtime: Opened, account: Account): Promise<AvailableDrives> {
  return withClient(runtime, account, (client) => drivesOf(client, account))
}

const SITES_MAX = 100

async function drivesOf(client: OneDriveClient, { name, settings }: Account): Promise<AvailableDrives> {
  const own = (await client.drives()).map((drive) => available(drive, drive.name || 'OneDrive'))
  if (settings.access !== 'shared') {
    const command = `tidemark account add onedrive --shared --user ${shellWord(name)}`
    return { drives: own, hint: `Libraries of SharePoint take a permission of their own: ${command}` }
  }
  const sites = await client.sites()
  const libraries: AvailableDrive[] = []
  for (const { id, title } of sites.slice(0, SITES_MAX)) {
    const found = await client.libraries(id).catch((thrown: unknown) => {
      // A site that was left, or closed to this person, hides no other.
      if (asTidemarkError(thrown).kind === 'gone') return []
      throw thrown
    })
    libraries.push(...found.map((drive) => available(drive, `${title}/${drive.name}`)))
  }
  const hint = sites.length === 0 ? 'A site of SharePoint is listed when you follow it there.' : undefined
  return { drives: [...own, ...libraries], hint }
}

function available({ id, type, quota }: Drive, name: string): AvailableDrive {
  return { id, type, name, usedBytes: quota?.usedBytes }
}

/** By its id, or by the name under which it is listed. */
export async function chosenDrive(client: OneDriveClient, account: Account, wanted: string): Promise<Drive> {
  try {
    return await client.driveById(wanted)
  } catch (thrown) {
    const error = asTidemarkError(thrown)
    if (!['gone', 'permanent', 'auth', 'bug'].includes(error.kind) && !(thrown instanceof UsageError))
      throw thrown
    const { drives } = await drivesOf(client, account).catch(() => ({ drives: [] }))
    const named = drives.filter(({ name }) => name.toLowerCase() === wanted.trim().toLowerCase())
    if (named.length === 1) return client.driveById(named[0]!.id)
    const list = drives.map(({ id, name }) => `${name} (${id})`).join(', ')
    throw new UsageError(`This account has no drive ${wanted}.`, {
      code: 'no-drive',
      hint: list ? `It has: ${list}.` : 'Leave --drive out for the account’s own drive.',
      cause: thrown,
    })
  }
}

export async function withClient<T>(
  { accounts, vault, files, fetch }: Opened,
  account: Account,
  use: (client: OneDriveClient) => Promise<T>,
): Promise<T> {
  const exchange = createHttpExchange()
  try {
    const { settings } = files
    const limits = () => undefined
    const client = openOneDriveClient(
      { accounts, vault, settings, exchange, clock: systemClock, fetch, limits },
      account,
    )
    return await patiently(() => use(client))
  } finally {
    exchange.close()
  }
}

const ASKED_MAX = 5
const ASKED_AGAIN_MS = 500
const ASKED_AGAIN_MS_MAX = 10_000

/** What passes by itself, such as a connection that breaks, is no reason to refuse. */
async function patiently<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await ask()
    } catch (thrown) {
      const { kind, retryAfterMs } = asTidemarkError(thrown)
      if (tries >= ASKED_MAX || (kind !== 'transient' && kind !== 'throttled')) throw thrown
      const afterMs = retryAfterMs ?? ASKED_AGAIN_MS * 2 ** (tries - 1)
      if (afterMs > ASKED_AGAIN_MS_MAX) throw thrown
      await sleep(systemClock, afterMs)
    }
  }
}
