/** A site with a simulated OneDrive behind it: its account connected, and places in which folders may be added. */
import { mkdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { ANN, connectAnn } from '../../src/apps/files/api/files-api.suite.ts'
import type { FolderView } from '../../src/apps/files/api/schemas.ts'
import { openVault } from '../../src/base/vault.ts'
import type { OneDriveAccess } from '../../src/cloud/onedrive/auth.ts'
import { Accounts } from '../../src/ledger/accounts.ts'
import { openLedger } from '../../src/ledger/open.ts'
import type { SimDrive } from '../../src/sim/onedrive/sim-drive.ts'
import { World } from '../mail/world.ts'
import { Site, until } from './site.ts'

export const OWNER = ANN

export type FileSite = {
  site: Site
  drive: SimDrive
  /** Of one of the others. */
  driveOf(account: string): SimDrive
  /** In which folders may be added. */
  place: string
  /** Adds a folder, and waits until it is in step. */
  add(name: string, policy?: FolderView['policy']): Promise<void>
  status(name: string): Promise<FolderView>
  /** Looks at both sides, until nothing is on the way. */
  sync(name: string): Promise<FolderView>
  write(path: string, content: string | Uint8Array): void
  read(path: string): string
  close(): Promise<void>
}

type FileSiteOptions = {
  isConnected?: boolean
  /** False: as a stranger finds it, without a client to sign in with, and without any account. */
  isSetUp?: boolean
  /** Drives of other people, of which the account may see what they share. */
  others?: readonly string[]
}

export async function startFileSite(options: FileSiteOptions = {}): Promise<FileSite> {
  const { isSetUp = true } = options
  const others = options.others ?? []
  const onedrive = { drives: [OWNER, ...others].map((account) => ({ account })) }
  const world = await World.start({ messages: 3, onedrive, isConnected: isSetUp })
  const { sim } = world
  const place = join(realpathSync(world.home), '..', `${world.home.split('/').at(-1)}-folders`)
  mkdirSync(place)
  Object.assign(world.env, {
    TIDEMARK_ONEDRIVE_API_URL: sim.onedrive.graphUrl,
    TIDEMARK_ONEDRIVE_AUTH_URL: sim.onedrive.authUrl,
    TIDEMARK_ONEDRIVE_TOKEN_URL: sim.onedrive.tokenUrl,
    TIDEMARK_ONEDRIVE_DEVICE_URL: sim.onedrive.deviceUrl,
    ...(isSetUp && { TIDEMARK_ONEDRIVE_CLIENT_ID: sim.onedrive.clientId }),
    TIDEMARK_ONEDRIVE_REQUESTS_PER_SECOND_START: '1000',
    TIDEMARK_ONEDRIVE_REQUESTS_PER_SECOND_MAX: '10000',
    TIDEMARK_FILES_DISK_RESERVE: '1MB',
    TIDEMARK_FILES_DEBOUNCE_MS: '100',
    // Slow enough that a large file is seen on its way.
    TIDEMARK_BANDWIDTH_DOWNLOAD: '6MB/s',
    TIDEMARK_FILES_ALLOWED_ROOTS: JSON.stringify([place]),
  })
  if (isSetUp && options.isConnected !== false)
    await connectOwner(world, others.length > 0 ? 'shared' : 'readwrite')
  const site = new Site(world, { args: [], poisoned: [] })
  try {
    await site.restart()
  } catch (thrown) {
    await site.close()
    throw thrown
  }
  const status = (name: string): Promise<FolderView> =>
    site.get<FolderView>(`/api/files/folders/${encodeURIComponent(name)}`)
  const settled = (name: string): Promise<FolderView> =>
    until(`${name} is settled`, async () => {
      const drive = await status(name)
      const { unplanned, inWork, waiting } = drive.open
      const isQuiet = drive.scannedAt !== null && drive.heardAt !== null && unplanned + inWork + waiting === 0
      const { jobs } = await site.overview()
      return isQuiet && jobs.ready + jobs.deps + jobs.claimed === 0 && drive
    })
  return {
    site,
    place,
    status,
    drive: sim.onedrive.drive(OWNER),
    driveOf: (account) => sim.onedrive.drive(account),
    async add(name, policy = 'keep-both') {
      await site.post('/api/files/folders', { path: join(place, name), policy })
      await settled(name)
    },
    async sync(name) {
      await settled(name)
      await site.post(`/api/files/folders/${encodeURIComponent(name)}/sync`)
      return settled(name)
    },
    write(path, content) {
      mkdirSync(dirname(join(place, path)), { recursive: true })
      writeFileSync(join(place, path), content)
    },
    read: (path) => readFileSync(join(place, path), 'utf8'),
    async close() {
      await site.close()
      rmSync(place, { recursive: true, force: true })
    },
  }
}

/** As `account add` would, without a person to ask. */
async function connectOwner({ sim, home, env }: World, access: OneDriveAccess): Promise<void> {
  const ledger = await openLedger(`sqlite:${join(home, 'ledger.db')}`)
  try {
    const shelf = { accounts: await Accounts.open(ledger), vault: await openVault({ env, home }) }
    await connectAnn(shelf, sim, access)
  } finally {
    await ledger.close()
  }
}
