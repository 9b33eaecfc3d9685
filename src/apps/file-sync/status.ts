/** How a folder stands, from what is stored: the same for the command line, the API and the pages. */
import { formatCount } from '../../format.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { plural } from '../../wording.ts'
import { ONEDRIVE_FULL, ONEDRIVE_FULL_HINT } from './act/obstacles.ts'
import { WAITS } from './action.ts'
import { driveSettings, streamOf } from './drive.ts'
import type { FileStore } from './store/file-store.ts'
import type { Reported, Totals } from './store/overview.ts'

export type FileState = 'in step' | 'working' | 'needs you' | 'paused' | 'not begun'

export type FileStatus = {
  name: string
  account: string
  root: string
  mode: string
  state: FileState
  /** One sentence. */
  text: string
  totals: Totals
  /** Open nodes, by what becomes of them next. */
  open: { unplanned: number; inWork: number; waiting: number; reported: number }
  heldDeletes: { local: number; remote: number } | null
  conflicts: number
  /** When both sides were last looked at to the end. */
  scannedAt: number | null
  heardAt: number | null
  paused: string | null
  /** What some of the work that is on the way waits for, where it is nothing of the file itself. */
  waits: string | null
  /** That is room in OneDrive. */
  isFull: boolean
  reported: Reported[]
}

const REPORTED_SHOWN = 20
/** Enough to find out what is in the way of all of them. */
const JOBS_READ = 100

export async function fileStatus(
  { store, ledger }: { store: FileStore; ledger: Ledger },
  name: string,
): Promise<FileStatus> {
  const row = await store.drive(name)
  const open = await store.openCounts(name)
  const heldDeletes =
    row.heldDeletes === null ? null : (JSON.parse(row.heldDeletes) as FileStatus['heldDeletes'])
  const conflicts = (await store.conflicts(name, { state: 'open' })).length
  const pause = (await ledger.pauses()).find(
    ({ scope, target }) => scope === 'all' || (scope === 'stream' && target === streamOf(name)),
  )
  const waits = open.inWork > 0 ? await waitsOf(ledger, name) : null
  const isFull = waits === ONEDRIVE_FULL
  const facts = {
    open,
    heldDeletes,
    conflicts,
    waits,
    isFull,
    scannedAt: row.scannedAt,
    heardAt: row.heardAt,
  }
  const paused = pause ? pause.reason || 'by hand' : null
  return {
    ...{
      name,
      account: row.account,
      root: row.root,
      mode: driveSettings.parse(JSON.parse(row.settings)).mode,
    },
    ...verdictOf({ ...facts, paused }),
    ...facts,
    ...{
      paused,
      totals: await store.totals(name),
      reported: await store.reported(name, { limit: REPORTED_SHOWN }),
    },
  }
}

/** As its jobs were told; of several reasons, that OneDrive is full. */
async function waitsOf(ledger: Ledger, name: string): Promise<string | null> {
  const jobs = await ledger.jobs({ stream: streamOf(name), state: 'pending', limit: JOBS_READ })
  const reasons = jobs.flatMap(({ wait, note }) => (wait === 'time' && note ? [note] : []))
  const waits = reasons.filter((note) => note.startsWith(WAITS)).map((note) => note.slice(WAITS.length))
  return waits.find((reason) => reason === ONEDRIVE_FULL) ?? waits[0] ?? null
}

type Facts = Pick<FileStatus, 'open' | 'heldDeletes' | 'conflicts' | 'scannedAt' | 'heardAt' | 'paused'> &
  Pick<FileStatus, 'waits' | 'isFull'>

function verdictOf(facts: Facts): Pick<FileStatus, 'state' | 'text'> {
  const { open, heldDeletes, conflicts, paused } = facts
  if (paused !== null) return { state: 'paused', text: `Paused: ${paused}.` }
  if (heldDeletes) {
    const count = heldDeletes.local + heldDeletes.remote
    return { state: 'needs you', text: `${counted(count, 'deletion')} at once: waiting for your yes.` }
  }
  const busy = open.unplanned + open.inWork + open.waiting
  if (facts.scannedAt === null || facts.heardAt === null) {
    return busy > 0
      ? { state: 'working', text: 'Looking at both sides for the first time.' }
      : { state: 'not begun', text: 'Not synced yet.' }
  }
  if (facts.isFull) {
    const text = `${ONEDRIVE_FULL}: uploads wait, everything else goes on. ${ONEDRIVE_FULL_HINT}`
    return { state: 'needs you', text }
  }
  if (busy > 0) {
    const waits = facts.waits === null ? '' : ` Some wait: ${facts.waits}.`
    return { state: 'working', text: `${counted(busy, 'change')} on the way.${waits}` }
  }
  if (conflicts > 0) return { state: 'needs you', text: `${counted(conflicts, 'conflict')} to decide.` }
  if (open.reported > 0) {
    return { state: 'in step', text: `In step, but for ${counted(open.reported, 'thing')} left alone.` }
  }
  return { state: 'in step', text: 'In step.' }
}

function counted(n: number, noun: string): string {
  return `${formatCount(n)} ${plural(n, noun)}`
}
