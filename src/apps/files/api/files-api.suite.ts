/** A whole server with the files module: a simulated OneDrive, a real engine and ledger, and a real folder. */
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as pass } from 'node:timers/promises'
import type { OpenRuntime } from '../../../app/runtime.ts'
import { catalog } from '../../../apps/catalog.ts'
import { systemClock } from '../../../base/clock.ts'
import { keepAccount } from '../../../cloud/account-keeping.ts'
import { oneDriveService, readOneDriveProfile } from '../../../cloud/onedrive/account.ts'
import { ONEDRIVE_SCOPES, type OneDriveAccess } from '../../../cloud/onedrive/auth.ts'
import { newToken } from '../../../cloud/token-source.ts'
import { openRuntime } from '../../../runtime/runtime.ts'
import type { SimDriveInput } from '../../../sim/onedrive/onedrive.ts'
import type { SimDrive } from '../../../sim/onedrive/sim-drive.ts'
import { type Sim, startSim } from '../../../sim/start.ts'
import { type Answer, type AppApi, appApi } from '../../app-api.suite.ts'
import { apps } from '../../registry.ts'
import { streamOf } from '../folder-pair.ts'
import { type FilesRuntime, filesRuntime } from '../runtime.ts'
import { filesModule } from './module.ts'
import type { FilesServices } from './route.ts'

export const ANN = 'ann@example.com'
export const DOCS = 'docs'

export type { Answer, Body } from '../../app-api.suite.ts'

export type FilesWorld = AppApi<OpenRuntime & FilesRuntime> & {
  sim: Sim
  drive: SimDrive
  runtime: OpenRuntime & FilesRuntime
  /** The folder; there once it was added. */
  root: string
  /** In which folders may be added. */
  place: string
  connect(access?: OneDriveAccess): Promise<void>
  /** Adds the folder, over the API. */
  add(change?: Record<string, unknown>): Promise<Answer>
  /** Looks at both sides, until nothing is left to do. */
  sync(name?: string): Promise<void>
  /** Until no job is left, and nothing waits for a plan. */
  settled(name?: string): Promise<void>
  write(path: string, content: string | Uint8Array): void
  read(path: string): string
  close(): Promise<void>
}

export async function startFilesApi(
  options: {
    drive?: Partial<SimDriveInput>
    /** Of other people. */
    others?: readonly SimDriveInput[]
    host?: string
    allowedRoots?: readonly string[]
  } = {},
): Promise<FilesWorld> {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-files-api-')))
  const place = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-folders-')))
  const root = join(place, DOCS)
  const sim = await startSim({
    onedrive: { drives: [{ account: ANN, ...options.drive }, ...(options.others ?? [])] },
  })
  const config = catalog.parse({
    onedrive: {
      api_url: sim.onedrive.graphUrl,
      token_url: sim.onedrive.tokenUrl,
      auth_url: sim.onedrive.authUrl,
      client_id: sim.onedrive.clientId,
      device_url: sim.onedrive.deviceUrl,
      requests_per_second_start: 5_000,
      requests_per_second_max: 5_000,
    },
    files: { allowed_roots: options.allowedRoots ?? [place], disk_reserve: '1MB' },
    server: { host: options.host ?? '127.0.0.1' },
  })
  const runtime = filesRuntime(await openRuntime({ config, home, env: {}, role: 'all', apps }))
  const api = await appApi(runtime, filesModule)
  await runtime.engine.start()
  return {
    ...api,
    sim,
    drive: sim.onedrive.drive(ANN),
    runtime,
    root,
    place,
    connect: (access = 'readwrite') => connectAnn(runtime, sim, access),
    add: (change = {}) => api.post('/api/files/folders', { path: root, ...change }),
    async sync(name = DOCS) {
      const { engine, files } = runtime
      await engine.drained()
      await engine.enqueue(files.kinds.sync, { drive: name }, { stream: streamOf(name) })
      await settled(runtime, name)
    },
    settled: (name = DOCS) => settled(runtime, name),
    write(path, content) {
      const file = join(root, path)
      mkdirSync(dirname(file), { recursive: true })
      writeFileSync(file, content)
    },
    read: (path) => readFileSync(join(root, path), 'utf8'),
    async close() {
      await api.closeApi()
      await sim.close()
      for (const folder of [home, place]) rmSync(folder, { recursive: true, force: true })
    },
  }
}

const LOOK_MS = 10
const PATIENCE_MS = 240_000

export async function until(isSo: () => Promise<boolean>): Promise<void> {
  const endMs = performance.now() + PATIENCE_MS
  while (!(await isSo())) {
    if (performance.now() > endMs) throw new Error(`it did not come about within ${PATIENCE_MS} ms`)
    await pass(LOOK_MS)
  }
}

/** Actions ask for the next plan a moment after they have ended. */
async function settled({ engine, files }: FilesRuntime, name: string): Promise<void> {
  const endMs = performance.now() + PATIENCE_MS
  for (;;) {
    await engine.drained()
    const { unplanned, inWork, waiting } = await files.store.openCounts(name)
    if (unplanned + inWork + waiting === 0) return
    if (performance.now() > endMs) throw new Error(`${name} is not settled within ${PATIENCE_MS} ms`)
    await pass(LOOK_MS)
  }
}

/** As `account add` would, without a person to ask. */
export async function connectAnn(
  services: Pick<FilesServices, 'accounts' | 'vault'>,
  sim: Sim,
  access: OneDriveAccess = 'readwrite',
): Promise<void> {
  const scopes = [...ONEDRIVE_SCOPES[access]]
  const { accessToken, refreshToken } = sim.onedrive.issue(ANN, scopes)
  const secret = {
    kind: 'oauth' as const,
    clientId: sim.onedrive.clientId,
    accessToken,
    refreshToken,
    scopes,
    obtainedAtMs: systemClock.now(),
  }
  const profile = await readOneDriveProfile(sim.onedrive.graphUrl, newToken(accessToken))
  const { userId: id, name } = profile
  await keepAccount(services, oneDriveService, { profile: { id, name }, secret, level: access })
}

/** A picture of one dot. */
export const DOT_PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
