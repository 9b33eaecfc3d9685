/**
 * The file sync in this process: an engine on a ledger in a file, with the settings of a new user but for the pace of
 * requests, which the simulator does not limit. What is timed is from asking for a sync until nothing is left to do.
 */
import { mkdirSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import {
  type FilesSettings,
  folderPairSettings,
  SERVICE,
  streamOf,
} from '../../src/apps/files/folder-pair.ts'
import { type FileSync, machineId, openFileSync } from '../../src/apps/files/index.ts'
import { createRoot } from '../../src/apps/files/local/root.ts'
import { lookAt, plainStat } from '../../src/apps/files/local/stat.ts'
import { sleep, systemClock } from '../../src/base/clock.ts'
import { openVault } from '../../src/base/vault.ts'
import { ONEDRIVE_SCOPES } from '../../src/cloud/onedrive/auth.ts'
import { createEngine, type Engine } from '../../src/engine/index.ts'
import { Accounts, accountKey } from '../../src/ledger/accounts.ts'
import type { Ledger } from '../../src/ledger/ledger.ts'
import { openLedger } from '../../src/ledger/open.ts'
import { ACCOUNT, apiCalls, type DriveAt, writeThere } from './served-drive.ts'

export type Step = {
  kind: 'sync' | 'delta'
  /** Before the time runs. */
  before?: { write: string; text: string } | { rename: string; to: string }
}

export type SyncOrder = { do: 'sync'; home: string; at: DriveAt; steps: Step[] }

export type StepDone = { ms: number; cpuMs: number; calls: number }

export type SyncDone = { steps: StepDone[]; peakMb: number; left: number }

export const PAIR = 'bench'
export const PARALLEL = 8
export const CHUNK_BYTES = 10 * 1024 * 1024
const MARKER = 'bench'
const WORKERS = 32
const SETTLE_MS_MAX = 600_000
const UNBOUNDED = 1_000_000

export function rootOf(home: string): string {
  return join(home, 'root')
}

/** Everything that is there before the first sync: the account, the folder's marker, the drive. */
export async function setUp(home: string, at: DriveAt): Promise<void> {
  mkdirSync(home, { recursive: true })
  const ledger = await openLedger(`sqlite:${join(home, 'ledger.db')}`)
  try {
    const accounts = await Accounts.open(ledger)
    const vault = await openVault({ env: {}, home })
    const secret = {
      kind: 'oauth',
      clientId: at.clientId,
      refreshToken: at.refreshToken,
      scopes: ONEDRIVE_SCOPES.readwrite,
      obtainedAtMs: systemClock.now(),
    }
    const row = { service: SERVICE, name: ACCOUNT }
    await accounts.add({ ...row, settings: {}, sealed: vault.seal(accountKey(row), JSON.stringify(secret)) })
    const { files } = await open(home, at, ledger)
    const root = await createRoot(rootOf(home), {
      markerId: MARKER,
      drive: PAIR,
      createdAt: new Date(systemClock.now()).toISOString(),
    })
    await files.store.addFolderPair(
      {
        name: PAIR,
        account: ACCOUNT,
        driveId: at.driveId,
        driveType: 'personal',
        rootItemId: at.rootId,
        root: root.path,
        markerId: MARKER,
        machine: machineId(),
        settings: JSON.stringify(folderPairSettings.parse({})),
      },
      plainStat(lookAt(root.path)!),
    )
    await files.close()
  } finally {
    await ledger.close()
  }
}

export async function syncSteps({ home, at, steps }: SyncOrder): Promise<SyncDone> {
  const ledger = await openLedger(`sqlite:${join(home, 'ledger.db')}`)
  const { files, engine } = await open(home, at, ledger)
  await engine.streams.open(streamOf(PAIR))
  await engine.start()
  const done: StepDone[] = []
  try {
    for (const step of steps) {
      await prepare(step, { home, at })
      const callsBefore = await apiCalls(at)
      const cpuBefore = process.cpuUsage()
      const fromMs = systemClock.monotonicMs()
      await engine.enqueue(files.kinds[step.kind], { drive: PAIR }, { stream: streamOf(PAIR) })
      await settled(engine, files)
      const ms = systemClock.monotonicMs() - fromMs
      const { user, system } = process.cpuUsage(cpuBefore)
      done.push({ ms, cpuMs: (user + system) / 1_000, calls: (await apiCalls(at)) - callsBefore })
    }
    const counts = await files.store.openCounts(PAIR)
    const left = Object.values(counts).reduce((sum, count) => sum + count, 0)
    return { steps: done, peakMb: process.resourceUsage().maxRSS / 1024, left }
  } finally {
    await engine.stop()
    await files.close()
    await ledger.close()
  }
}

export async function open(
  home: string,
  at: DriveAt,
  ledger: Ledger,
): Promise<{ files: FileSync; engine: Engine }> {
  let engine: Engine | undefined
  const files = await openFileSync({
    ledger,
    accounts: await Accounts.open(ledger),
    vault: await openVault({ env: {}, home }),
    fetch: globalThis.fetch,
    clock: systemClock,
    engine: () => engine,
    settings: settingsOf(at),
    onError: (error) => console.error(error),
  })
  engine = await createEngine({ ledger, jobs: files.jobs, budgets: files.budgets(), workers: WORKERS })
  return { files, engine }
}

function settingsOf(at: DriveAt): FilesSettings {
  return {
    apiUrl: at.graphUrl,
    authUrl: at.authUrl,
    tokenUrl: at.tokenUrl,
    deviceUrl: at.deviceUrl,
    requestsPerSecondStart: UNBOUNDED,
    requestsPerSecondMax: UNBOUNDED,
    parallelDownloads: PARALLEL,
    parallelUploads: PARALLEL,
    parallelCheckers: PARALLEL,
    ...{
      chunkBytes: CHUNK_BYTES,
      reserveBytes: 0,
      trashDays: 30,
      trashBytesMax: Number.POSITIVE_INFINITY,
      pollMs: 60_000,
      scanMs: 3_600_000,
    },
    debounceMs: 2_000,
    bandwidth: {},
    silenceMs: 60_000,
  }
}

async function prepare({ before }: Step, { home, at }: { home: string; at: DriveAt }): Promise<void> {
  if (!before) return
  if ('write' in before) await writeThere(at, before.write, before.text)
  else renameSync(join(rootOf(home), before.rename), join(rootOf(home), before.to))
}

async function settled(engine: Engine, files: FileSync): Promise<void> {
  const untilMs = systemClock.monotonicMs() + SETTLE_MS_MAX
  for (;;) {
    await engine.drained()
    const open = await files.store.openCounts(PAIR)
    if (open.unplanned + open.inWork === 0) return
    if (systemClock.monotonicMs() > untilMs) throw new Error(`not settled: ${JSON.stringify(open)}`)
    await sleep(systemClock, 5)
  }
}
