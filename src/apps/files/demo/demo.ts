/** The demo's folder, kept in step with a simulated OneDrive: set up, kept alive, and told of. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type AppDemo, connectDemoAccount, type DemoCloud, type DemoSummary } from '../../../app/demo.ts'
import { hasJobs } from '../../../app/sources.ts'
import { sleep, systemClock } from '../../../base/clock.ts'
import { formatBytes } from '../../../base/format.ts'
import { counted } from '../../../base/wording.ts'
import { ONEDRIVE_SCOPES } from '../../../cloud/onedrive/auth.ts'
import { streamOf } from '../folder-pair.ts'
import { machineId } from '../index.ts'
import { createRoot } from '../local/root.ts'
import type { FilesRuntime } from '../runtime.ts'
import { filesRuntime } from '../runtime.ts'
import { folderSource } from '../sources.ts'
import { fileStatus } from '../status.ts'
import { setFolderPair } from '../store/file-store.ts'
import { type DemoStep, deviceStep, furnish } from './drive.ts'
import { keepDrive } from './drive-journal.ts'

const DEMO_FOLDER = 'OneDrive'
const STEP_MS = 3_000
const LOOK_MS = 100

export const filesDemo: AppDemo = {
  world: ({ address }) => ({ onedrive: { drives: [{ account: address }] } }),
  begin(cloud) {
    const { sim, seed, toMs, home, address, at, isFast } = cloud
    const drive = sim.onedrive.drive(address)
    at(toMs, () => furnish(drive.device, seed))
    const journal = keepDrive(drive.state, { folder: home, now: () => systemClock.now(), at })
    const rate = isFast ? 'unlimited' : '3MB/s'
    return {
      config: `[onedrive]
api_url = "${sim.onedrive.graphUrl}"
auth_url = "${sim.onedrive.authUrl}"
token_url = "${sim.onedrive.tokenUrl}"
device_url = "${sim.onedrive.deviceUrl}"
client_id = "${sim.onedrive.clientId}"

[files]
poll_seconds = 10
debounce_ms = 500
disk_reserve = "50MB"

[bandwidth]
download = "${rate}"
upload = "${rate}"
`,
      intro: () =>
        `It keeps ${join(home, DEMO_FOLDER)} in step with a simulated OneDrive, where another device is at work.`,
      places: [
        [`/files/${DEMO_FOLDER}`, 'a folder and OneDrive, kept in step: its tree, transfers, conflicts'],
      ],
      connect: (runtime) => connect(filesRuntime(runtime), cloud),
      live: (runtime, stop) =>
        // Numbered by what has happened: the same step never comes twice.
        live(
          filesRuntime(runtime),
          ({ hasConflict }) => deviceStep(drive, { seed, n: journal.size, hasConflict }),
          stop,
        ),
      settle: (runtime, stop) => settle(filesRuntime(runtime), stop),
      summary: (runtime) => summary(filesRuntime(runtime)),
    }
  },
}

/** Its account, anew at every start, and its folder, once. */
async function connect(runtime: FilesRuntime, cloud: DemoCloud): Promise<void> {
  const { sim, address } = cloud
  const { refreshToken } = sim.onedrive.issue(address)
  await connectDemoAccount(
    runtime,
    { service: 'onedrive', name: address, settings: { access: 'readwrite' } },
    { clientId: sim.onedrive.clientId, refreshToken, scopes: ONEDRIVE_SCOPES.readwrite },
  )
  const { store, pairs } = runtime.files
  const known = await store.findFolderPair(DEMO_FOLDER)
  if (!known) await addFolder(runtime, cloud)
  // The cloud may be at another port than before, and links name it.
  const origin = new URL(sim.onedrive.graphUrl).origin
  if (known?.link && new URL(known.link).origin !== origin) {
    const { pathname, search } = new URL(known.link)
    await store.write((tx) => setFolderPair(tx, DEMO_FOLDER, { link: origin + pathname + search }))
  }
  await pairs.reload()
}

/** By what is known of the simulated drive: its weather may keep a first question from being answered. */
async function addFolder({ files }: FilesRuntime, { sim, home, address }: DemoCloud): Promise<void> {
  const { id, state } = sim.onedrive.drive(address)
  // The same at every try: a start may be killed between the folder and its row.
  const markerId = `demo-${id}`
  const createdAt = new Date(systemClock.now()).toISOString()
  const root = await createRoot(join(home, DEMO_FOLDER), { markerId, drive: DEMO_FOLDER, createdAt })
  await files.store.addFolderPair(
    {
      name: DEMO_FOLDER,
      account: address,
      driveId: id,
      driveType: state.type,
      rootItemId: state.root.id,
      root: root.path,
      markerId,
      machine: machineId(),
      settings: JSON.stringify({ mode: 'two-way', conflicts: 'manual' }),
    },
    root.look,
  )
}

/** The other device goes on and on, and what it did is looked for at once. */
async function live(
  runtime: FilesRuntime,
  otherDevice: (about: { hasConflict: boolean }) => DemoStep,
  stop: AbortSignal,
): Promise<void> {
  const { store } = runtime.files
  for (;;) {
    await sleep(systemClock, STEP_MS, stop).catch(() => {})
    if (stop.aborted) return
    const row = await store.findFolderPair(DEMO_FOLDER)
    if (!row) return
    // Not before both sides are known: the first merge is worth seeing by itself.
    if (row.heardAt === null || row.scannedAt === null) continue
    const { clash } = otherDevice({ hasConflict: (await openConflicts(runtime)) > 0 })
    if (clash) writeHere(row.root, clash)
    await lookThere(runtime)
  }
}

async function openConflicts({ files }: FilesRuntime): Promise<number> {
  return (await files.store.conflicts(DEMO_FOLDER, { state: 'open' })).length
}

function writeHere(root: string, { path, text }: { path: string; text: string }): void {
  const file = join(root, ...path.split('/'))
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
}

async function lookThere({ engine, files }: FilesRuntime): Promise<void> {
  await engine.enqueue(files.kinds.delta, { drive: DEMO_FOLDER }, { stream: streamOf(DEMO_FOLDER) })
}

/** Until both sides agree as far as they can without a person, nothing goes on, or somebody says stop. */
async function settle(runtime: FilesRuntime, stop: AbortSignal): Promise<void> {
  const { files, ledger } = runtime
  const row = await files.store.findFolderPair(DEMO_FOLDER)
  if (!row) return
  const source = folderSource(row)
  await files.sources.begin(source)
  for (let before: string | undefined; !stop.aborted; ) {
    const { isSettled, hasFailed } = await summary(runtime)
    if (!(await hasJobs(ledger, { stream: source.stream }))) {
      if (isSettled || hasFailed) return
      const next = await files.sources.next?.([source])
      if (next === undefined || next === before) return
      before = next
    }
    await sleep(systemClock, LOOK_MS, stop).catch(() => {})
  }
}

/** Without a status once somebody has stopped keeping the folder in step, on its page. */
async function summary({ files, ledger }: FilesRuntime): Promise<DemoSummary> {
  if (!(await files.store.findFolderPair(DEMO_FOLDER))) {
    const text = `${DEMO_FOLDER}: not kept in step any more.`
    return { text, isSettled: true, hasFailed: false, paused: null, json: undefined }
  }
  const status = await fileStatus({ store: files.store, ledger }, DEMO_FOLDER)
  const { totals, open, scannedAt, heardAt } = status
  const isKnown = scannedAt !== null && heardAt !== null
  const failed = await ledger.jobs({ state: 'failed', stream: streamOf(DEMO_FOLDER), limit: 1 })
  const things = `${counted(totals.files, 'file')}, ${formatBytes(totals.bytes)}`
  return {
    text: `${DEMO_FOLDER}: ${things} on both sides. ${status.text}`,
    isSettled: isKnown && open.unplanned + open.inWork + open.waiting === 0,
    hasFailed: failed.length > 0,
    paused: null,
    json: status,
  }
}
