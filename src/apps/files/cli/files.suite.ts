/** A simulated OneDrive, a home with its accounts connected, and folders: for tests of file commands. */

import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach } from 'node:test'
import { openVault } from '../../../base/vault.ts'
import { type Ended, environment, runHere } from '../../../cli/jobs/jobs.suite.ts'
import type { OneDriveAccess } from '../../../cloud/onedrive/auth.ts'
import { connectOneDrive } from '../../../cloud/simulated-accounts.suite.ts'
import { Accounts } from '../../../ledger/accounts.ts'
import type { Tx } from '../../../ledger/contract.ts'
import { openLedger } from '../../../ledger/open.ts'
import type { Device } from '../../../sim/onedrive/device.ts'
import type { SimDriveInput } from '../../../sim/onedrive/onedrive.ts'
import type { SimDrive } from '../../../sim/onedrive/sim-drive.ts'
import { type Sim, startSim } from '../../../sim/start.ts'
import { FileStore } from '../store/file-store.ts'
import { ROOT_ID } from '../trees.ts'

export const ANN = 'ann@example.com'

export type FilesHomeOptions = {
  drives?: readonly SimDriveInput[]
  access?: OneDriveAccess
  env?: Record<string, string>
}

export class FilesHome {
  /** Those that nobody has closed yet. */
  static readonly opened = new Set<FilesHome>()
  readonly sim: Sim
  readonly home: string
  /** Where folders are made. */
  readonly place: string
  readonly env: Record<string, string>

  constructor(sim: Sim, base: string, env: Record<string, string> = {}) {
    this.sim = sim
    this.home = join(base, 'home')
    this.place = join(base, 'place')
    mkdirSync(this.home)
    mkdirSync(this.place)
    FilesHome.opened.add(this)
    this.env = {
      ...environment(this.home),
      TIDEMARK_ONEDRIVE_API_URL: sim.onedrive.graphUrl,
      TIDEMARK_ONEDRIVE_TOKEN_URL: sim.onedrive.tokenUrl,
      TIDEMARK_ONEDRIVE_AUTH_URL: sim.onedrive.authUrl,
      TIDEMARK_ONEDRIVE_DEVICE_URL: sim.onedrive.deviceUrl,
      TIDEMARK_ONEDRIVE_REQUESTS_PER_SECOND_START: '1000',
      TIDEMARK_ONEDRIVE_REQUESTS_PER_SECOND_MAX: '10000',
      TIDEMARK_FILES_DISK_RESERVE: '1MB',
      ...env,
    }
  }

  static async start(options: FilesHomeOptions = {}): Promise<FilesHome> {
    const own = await FilesHome.prepare(options)
    const world = new FilesHome(own.sim, own.base, options.env)
    await world.connectAll(options.access)
    return world
  }

  static async prepare({
    drives = [{ account: ANN }],
  }: FilesHomeOptions): Promise<{ sim: Sim; base: string }> {
    const sim = await startSim({ onedrive: { drives } })
    return { sim, base: realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-files-'))) }
  }

  async connectAll(access: OneDriveAccess = 'readwrite'): Promise<void> {
    for (const account of this.sim.onedrive.addresses) await this.connect(account, access)
  }

  /** As `account add` would, without a person to ask. */
  async connect(address: string, access: OneDriveAccess = 'readwrite'): Promise<void> {
    const ledger = await openLedger(`sqlite:${join(this.home, 'ledger.db')}`)
    try {
      const accounts = await Accounts.open(ledger)
      const vault = await openVault({ env: this.env, home: this.home })
      await connectOneDrive({ accounts, vault, sim: this.sim }, address, { access, settings: { access } })
    } finally {
      await ledger.close()
    }
  }

  get drive(): SimDrive {
    return this.sim.onedrive.drive(ANN)
  }

  /** The other device. */
  get there(): Device {
    return this.drive.device
  }

  /** What OneDrive has, by path, with the text of files. */
  thereNow(): Record<string, string | null> {
    const found: Record<string, string | null> = {}
    for (const { path, contentKey } of this.drive.dump().items) {
      found[path.replace(/^\//, '')] =
        contentKey === undefined ? null : (this.drive.bytesOf(contentKey)?.toString() ?? null)
    }
    return found
  }

  root(name = 'Docs'): string {
    return join(this.place, name)
  }

  write(path: string, text: string, root: string = this.root()): void {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }

  read(path: string, root: string = this.root()): string {
    return readFileSync(join(root, path), 'utf8')
  }

  has(path: string, root: string = this.root()): boolean {
    return existsSync(join(root, path))
  }

  /** Everything that the ledger keeps about folders. */
  async stored(): Promise<unknown> {
    const ledger = await openLedger(`sqlite:${join(this.home, 'ledger.db')}`, { create: false })
    try {
      const store = await FileStore.open(ledger)
      const rows = await store.folderPairs()
      const open = await Promise.all(rows.map(({ name }) => store.openNodes(name, { limit: 100 })))
      const local = await Promise.all(rows.map(({ name }) => store.localChildren(name, ROOT_ID)))
      return { rows, open, local, jobs: (await ledger.jobs({ limit: 1000 })).length }
    } finally {
      await ledger.close()
    }
  }

  /** As somebody would who knows how it is kept. */
  async inLedger<T>(run: (tx: Tx) => Promise<T>): Promise<T> {
    const ledger = await openLedger(`sqlite:${join(this.home, 'ledger.db')}`, { create: false })
    try {
      return await ledger.transaction(run)
    } finally {
      await ledger.close()
    }
  }

  /** In this process. */
  run(...args: string[]): Promise<Ended> {
    return runHere(args, this.env)
  }

  sync(...args: string[]): Promise<Ended> {
    return this.run('files', 'sync', ...args)
  }

  /** Of its folder. */
  async firstSync(...args: string[]): Promise<void> {
    const { code, stderr } = await this.sync(this.root(), ...args)
    assert.equal(code, 0, stderr)
  }

  /** The last object that was printed. */
  async json<T>(...args: string[]): Promise<T> {
    const { stdout, stderr } = await this.run(...args, '--json')
    const last = stdout.trim().split('\n').at(-1) ?? ''
    if (last === '') throw new Error(`nothing was printed: ${stderr}`)
    return JSON.parse(last) as T
  }

  async close(): Promise<void> {
    FilesHome.opened.delete(this)
    await this.sim.close()
    rmSync(dirname(this.home), { recursive: true, force: true })
  }
}

/** A new one for every test of a file; it, and whatever a test has put in its place, is closed behind it. */
export function eachFilesHome(use: (world: FilesHome) => void): void {
  beforeEach(async () => use(await FilesHome.start()))
  afterEach(async () => {
    for (const world of FilesHome.opened) await world.close()
  })
}
