/** The demo's folder, kept in step with its simulated OneDrive: set up, kept alive, and told of. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { streamOf } from '../apps/file-sync/drive.ts'
import { machineId } from '../apps/file-sync/index.ts'
import { createRoot } from '../apps/file-sync/local/root.ts'
import { type FileStatus, fileStatus } from '../apps/file-sync/status.ts'
import { setDrive } from '../apps/file-sync/store/file-store.ts'
import { sleep, systemClock } from '../clock.ts'
import { ONEDRIVE_SCOPES } from '../cloud/onedrive/auth.ts'
import { formatBytes, formatCount } from '../format.ts'
import { accountKey } from '../ledger/accounts.ts'
import type { Runtime } from '../server/runtime.ts'
import type { Sim } from '../sim/start.ts'
import { plural } from '../wording.ts'
import { DEMO_ADDRESS, type DemoCloud } from './demo-cloud.ts'

export const DEMO_FOLDER = 'OneDrive'
const STEP_MS = 3_000
const LOOK_MS = 100

/** Its account, anew at every start, and its folder, once. */
export async function connectDemoFiles(
  runtime: Runtime,
  { sim, home }: { sim: Sim; home: string },
): Promise<void> {
  await connectAccount(runtime, sim)
  const { store, drives } = runtime.files
  const known = await store.findDrive(DEMO_FOLDER)
  if (!known) await addFolder(runtime, { sim, home })
  // The cloud may be at another port than before, and links name it.
  const origin = new URL(sim.graphUrl).origin
  if (known?.link && new URL(known.link).origin !== origin) {
    const { pathname, search } = new URL(known.link)
    await store.write((tx) => setDrive(tx, DEMO_FOLDER, { link: origin + pathname + search }))
  }
  await drives.reload()
}

async function connectAccount({ accounts, vault }: Runtime, sim: Sim): Promise<void> {
  const account = { service: 'onedrive', name: DEMO_ADDRESS }
  const { refreshToken } = sim.issueDrive(DEMO_ADDRESS)
  const secret = {
    ...{ kind: 'oauth', clientId: sim.microsoftClientId, refreshToken },
    ...{ scopes: ONEDRIVE_SCOPES.readwrite, obtainedAtMs: systemClock.now() },
  }
  const sealed = vault.seal(accountKey(account), JSON.stringify(secret))
  const found = await accounts.find(account.service, account.name)
  if (found) {
    await accounts.setSealed(found.id, sealed)
    await accounts.setState(found.id, 'ready')
  } else await accounts.add({ ...account, settings: { access: 'readwrite' }, sealed })
}

/** By what is known of the simulated drive: its weather may keep a first question from being answered. */
async function addFolder({ files }: Runtime, { sim, home }: { sim: Sim; home: string }): Promise<void> {
  const { id, state } = sim.drive(DEMO_ADDRESS)
  // The same at every try: a start may be killed between the folder and its row.
  const markerId = `demo-${id}`
  const createdAt = new Date(systemClock.now()).toISOString()
  const root = await createRoot(join(home, DEMO_FOLDER), { markerId, drive: DEMO_FOLDER, createdAt })
  await files.store.addDrive(
    {
      ...{
        name: DEMO_FOLDER,
        account: DEMO_ADDRESS,
        driveId: id,
        driveType: state.type,
        rootItemId: state.root.id,
      },
      ...{ root: root.path, markerId, machine: machineId() },
      settings: JSON.stringify({ mode: 'two-way', conflicts: 'manual' }),
    },
    root.look,
  )
}

/** The other device goes on and on, and what it did is looked for at once. */
export async function liveFiles(runtime: Runtime, cloud: DemoCloud, stop: AbortSignal): Promise<void> {
  const { store } = runtime.files
  for (;;) {
    await sleep(systemClock, STEP_MS, stop).catch(() => {})
    if (stop.aborted) return
    const row = await store.findDrive(DEMO_FOLDER)
    if (!row) return
    // Not before both sides are known: the first merge is worth seeing by itself.
    if (row.heardAt === null || row.scannedAt === null) continue
    const { clash } = cloud.otherDevice({ hasConflict: (await openConflicts(runtime)) > 0 })
    if (clash) writeHere(row.root, clash)
    await lookThere(runtime)
  }
}

async function openConflicts({ files }: Runtime): Promise<number> {
  return (await files.store.conflicts(DEMO_FOLDER, { state: 'open' })).length
}

function writeHere(root: string, { path, text }: { path: string; text: string }): void {
  const file = join(root, ...path.split('/'))
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

async function lookThere({ engine, files }: Runtime): Promise<void> {
  await engine.enqueue(files.kinds.delta, { drive: DEMO_FOLDER }, { stream: streamOf(DEMO_FOLDER) })
}

/** Until both sides agree as far as they can without a person, or somebody says stop. */
export async function settleFiles(runtime: Runtime, stop: AbortSignal): Promise<void> {
  const { engine, files } = runtime
  await engine.enqueue(files.kinds.sync, { drive: DEMO_FOLDER }, { stream: streamOf(DEMO_FOLDER) })
  while (!stop.aborted) {
    const { isSettled, hasFailed } = await filesSummary(runtime)
    if ((isSettled || hasFailed) && (await isIdle(runtime))) return
    await sleep(systemClock, LOOK_MS, stop).catch(() => {})
  }
}

async function isIdle({ ledger }: Runtime): Promise<boolean> {
  const stream = streamOf(DEMO_FOLDER)
  for (const state of ['pending', 'claimed'] as const) {
    if ((await ledger.jobs({ stream, state, limit: 1 })).length > 0) return false
  }
  return true
}

/** Without a status once somebody has stopped keeping the folder in step, on its page. */
export type FilesSummary = {
  text: string
  isSettled: boolean
  hasFailed: boolean
  status: FileStatus | undefined
}

export async function filesSummary({ files, ledger }: Runtime): Promise<FilesSummary> {
  if (!(await files.store.findDrive(DEMO_FOLDER))) {
    const text = `${DEMO_FOLDER}: not kept in step any more.`
    return { text, isSettled: true, hasFailed: false, status: undefined }
  }
  const status = await fileStatus({ store: files.store, ledger }, DEMO_FOLDER)
  const { totals, open, scannedAt, heardAt } = status
  const isKnown = scannedAt !== null && heardAt !== null
  const failed = await ledger.jobs({ state: 'failed', stream: streamOf(DEMO_FOLDER), limit: 1 })
  const things = `${formatCount(totals.files)} ${plural(totals.files, 'file')}, ${formatBytes(totals.bytes)}`
  return {
    text: `${DEMO_FOLDER}: ${things} on both sides. ${status.text}`,
    isSettled: isKnown && open.unplanned + open.inWork + open.waiting === 0,
    hasFailed: failed.length > 0,
    status,
  }
}
