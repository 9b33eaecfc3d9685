/** A simulated OneDrive, a home with its account connected, a folder, and the command line as a process. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
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
import { setTimeout as pass } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { systemClock } from '../../src/clock.ts'
import { ONEDRIVE_SCOPES } from '../../src/cloud/onedrive/auth.ts'
import { Accounts, accountKey } from '../../src/ledger/accounts.ts'
import { openLedger } from '../../src/ledger/open.ts'
import type { Device } from '../../src/sim/onedrive/device.ts'
import type { SimDriveInput } from '../../src/sim/onedrive/service.ts'
import type { SimDrive } from '../../src/sim/onedrive/sim-drive.ts'
import { type Sim, startSim } from '../../src/sim/start.ts'
import { openVault } from '../../src/vault.ts'

const TIDEMARK = fileURLToPath(new URL('../../bin/tidemark', import.meta.url))
export const ADDRESS = 'ann@example.com'
const LOOK_MS = 20

export type Ended = { code: number | null; stdout: string; stderr: string }

export class CliWorld {
  readonly sim: Sim
  readonly home: string
  /** Where folders are made. */
  readonly place: string
  readonly env: NodeJS.ProcessEnv
  readonly #children = new Set<ChildProcess>()

  private constructor(sim: Sim, base: string) {
    this.sim = sim
    this.home = join(base, 'home')
    this.place = join(base, 'place')
    mkdirSync(this.home)
    mkdirSync(this.place)
    this.env = {
      ...process.env,
      TIDEMARK_HOME: this.home,
      TIDEMARK_ONEDRIVE_API_URL: sim.graphUrl,
      TIDEMARK_ONEDRIVE_TOKEN_URL: sim.microsoftTokenUrl,
      TIDEMARK_ONEDRIVE_AUTH_URL: sim.microsoftAuthUrl,
      TIDEMARK_ONEDRIVE_DEVICE_URL: sim.microsoftDeviceUrl,
      TIDEMARK_ONEDRIVE_REQUESTS_PER_SECOND_START: '1000',
      TIDEMARK_ONEDRIVE_REQUESTS_PER_SECOND_MAX: '10000',
      TIDEMARK_FILES_DISK_RESERVE: '1MB',
      TIDEMARK_FILES_POLL_SECONDS: '5',
    }
  }

  static async start(drives: readonly SimDriveInput[] = [{ account: ADDRESS }]): Promise<CliWorld> {
    const sim = await startSim({ drives })
    const base = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-files-')))
    const world = new CliWorld(sim, base)
    for (const account of sim.oneDrive.accounts) await world.connect(account)
    return world
  }

  /** As `account add` would, without a person to ask. */
  async connect(address: string): Promise<void> {
    const ledger = await openLedger(`sqlite:${join(this.home, 'ledger.db')}`)
    try {
      const accounts = await Accounts.open(ledger)
      const vault = await openVault({ env: this.env, home: this.home })
      const { refreshToken } = this.sim.issueDrive(address)
      const secret = {
        ...{ kind: 'oauth', clientId: this.sim.microsoftClientId, refreshToken },
        ...{ scopes: ONEDRIVE_SCOPES.readwrite, obtainedAtMs: systemClock.now() },
      }
      const account = { service: 'onedrive', name: address }
      const sealed = vault.seal(accountKey(account), JSON.stringify(secret))
      await accounts.add({ ...account, settings: { access: 'readwrite' }, sealed })
    } finally {
      await ledger.close()
    }
  }

  get drive(): SimDrive {
    return this.sim.drive(ADDRESS)
  }

  /** The other device. */
  get there(): Device {
    return this.drive.device
  }

  root(name = 'Docs'): string {
    return join(this.place, name)
  }

  write(path: string, text: string, root = this.root()): void {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), text)
  }

  read(path: string, root = this.root()): string {
    return readFileSync(join(root, path), 'utf8')
  }

  has(path: string, root = this.root()): boolean {
    return existsSync(join(root, path))
  }

  start(args: readonly string[]): { child: ChildProcess; ended: Promise<Ended> } {
    const child = spawn(TIDEMARK, [...args], {
      env: this.env,
      cwd: this.place,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#children.add(child)
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (text: Buffer) => (stdout += text.toString()))
    child.stderr.on('data', (text: Buffer) => (stderr += text.toString()))
    const ended = once(child, 'close').then(([code]) => {
      this.#children.delete(child)
      return { code: code as number | null, stdout, stderr }
    })
    return { child, ended }
  }

  run(...args: string[]): Promise<Ended> {
    return this.start(args).ended
  }

  async json<T>(...args: string[]): Promise<T> {
    const { stdout, stderr } = await this.run(...args, '--json')
    const [last = ''] = stdout.trim().split('\n').slice(-1)
    if (last === '') throw new Error(`nothing was printed: ${stderr}`)
    return JSON.parse(last) as T
  }

  /** Until something is so; the test's own time limit ends it otherwise. */
  async until(isSo: () => boolean | Promise<boolean>): Promise<void> {
    while (!(await isSo())) await pass(LOOK_MS)
  }

  async close(): Promise<void> {
    for (const child of this.#children) child.kill('SIGKILL')
    await this.sim.close()
    rmSync(dirname(this.home), { recursive: true, force: true })
  }
}
