/** How a folder stands, from what is stored: the same for the command line, the API and the pages. */

import type { Need } from '../../app/need.ts'
import type { AppLook } from '../../app/runtime.ts'
import { hasJobs, pauseOfStream } from '../../app/sources.ts'
import { isoTime } from '../../base/moment.ts'
import { counted } from '../../base/wording.ts'
import { type Attendance, readAttendance } from '../../engine/observe/engines.ts'
import type { StreamRow } from '../../ledger/contract.ts'
import type { Ledger } from '../../ledger/ledger.ts'
import { ONEDRIVE_FULL, ONEDRIVE_FULL_HINT } from './act/obstacles.ts'
import { WAIT_CODES, WAITS, type WaitCode } from './action.ts'
import { folderPairSettings, streamOf } from './folder-pair.ts'
import { type Held, heldTotal } from './guard.ts'
import { LOOK_KIND, SYNC_KIND } from './look.ts'
import { SHARE_GONE } from './shared-folder.ts'
import { FileStore } from './store/file-store.ts'
import type { Reported, Totals } from './store/overview.ts'

export type FileState = 'in step' | 'working' | 'stopped' | 'needs you' | 'paused' | 'not begun'

export type FileStatus = {
  name: string
  account: string
  root: string
  mode: string
  /** Who shares it, where it is a folder of somebody else. */
  sharedBy: string | null
  state: FileState
  /** Something is left to do, and no process works on it: since when, or 0 where nobody knows. Null where one does. */
  stoppedSinceMs: number | null
  /** One sentence. */
  text: string
  totals: Totals
  /** Open nodes, by what becomes of them next. */
  open: { unplanned: number; inWork: number; waiting: number; reported: number }
  heldDeletes: Held | null
  conflicts: number
  /** When both sides were last looked at to the end. */
  scannedAt: number | null
  heardAt: number | null
  paused: string | null
  /** The same for programs: `by-hand`, `sign-in`, … */
  pauseCode: string | null
  /** What some of the work that is on the way waits for, where it is nothing of the file itself. */
  waits: string | null
  /** That is room in OneDrive. */
  isFull: boolean
  /** Something in the folder is still to be looked at. */
  isLooking: boolean
  reported: Reported[]
}

const REPORTED_SHOWN = 20
/** Enough to find out what is in the way of all of them. */
const JOBS_READ = 100

export async function fileStatus(
  { store, ledger }: { store: FileStore; ledger: Ledger },
  name: string,
): Promise<FileStatus> {
  const row = await store.folderPair(name)
  const open = await store.openCounts(name)
  const heldDeletes = row.heldDeletes === null ? null : ((await store.heldAhead(name)) ?? null)
  const conflicts = (await store.conflicts(name, { state: 'open' })).length
  const pause = await pauseOfStream(ledger, streamOf(name))
  const wait = open.inWork > 0 ? await readWait(ledger, name) : undefined
  const isLooking = row.changeSeenAt !== null || (await hasLooks(ledger, name))
  const waits = wait?.text ?? null
  const isFull = wait?.code === 'quota-full'
  const attendance = await readAttendance(ledger)
  const facts = {
    open,
    heldDeletes,
    conflicts,
    waits,
    isFull,
    isLooking,
    scannedAt: row.scannedAt,
    heardAt: row.heardAt,
  }
  const paused = pause ? pause.reason || 'by hand' : null
  const isLeft = busyCount(open) > 0 || isLooking || isUnbegun(row)
  return {
    name,
    account: row.account,
    root: row.root,
    mode: folderPairSettings.parse(JSON.parse(row.settings)).mode,
    sharedBy: row.sharedBy,
    ...verdict({ ...facts, paused, pauseCode: pause?.code, attendance }),
    stoppedSinceMs: attendance.isAttended || !isLeft ? null : (attendance.since ?? 0),
    ...facts,
    paused,
    pauseCode: pause?.code ?? null,
    totals: await store.totals(name),
    reported: await store.reported(name, { limit: REPORTED_SHOWN }),
  }
}

/** As its jobs were told; of several reasons, that OneDrive is full. */
async function readWait(ledger: Ledger, name: string): Promise<{ code: WaitCode; text: string } | undefined> {
  const jobs = await ledger.jobs({ stream: streamOf(name), state: 'pending', limit: JOBS_READ })
  const waits = jobs.flatMap(({ wait, note, note_code }) => {
    const code = WAIT_CODES.find((one) => one === note_code)
    return wait === 'time' && code ? [{ code, text: (note ?? '').slice(WAITS.length) }] : []
  })
  return waits.find(({ code }) => code === 'quota-full') ?? waits[0]
}

/** Folders in which something happened, or may have happened, are still to be looked at. */
async function hasLooks(ledger: Ledger, name: string): Promise<boolean> {
  const of = { stream: streamOf(name) }
  return (
    (await hasJobs(ledger, { ...of, kind: LOOK_KIND })) || (await hasJobs(ledger, { ...of, kind: SYNC_KIND }))
  )
}

type Facts = Pick<FileStatus, 'open' | 'heldDeletes' | 'conflicts' | 'scannedAt' | 'heardAt' | 'paused'> &
  Pick<FileStatus, 'waits' | 'isFull' | 'isLooking'> & {
    attendance: Attendance
    pauseCode: string | undefined
  }

function verdict(facts: Facts): Pick<FileStatus, 'state' | 'text'> {
  const { open, heldDeletes, conflicts, paused } = facts
  if (facts.pauseCode === SHARE_GONE) {
    return { state: 'needs you', text: `Stopped: ${paused}. All files here stay as they are.` }
  }
  if (paused !== null) return { state: 'paused', text: `Paused: ${paused}.` }
  const busy = busyCount(open)
  const going = busy > 0 ? goingText(busy, facts) : undefined
  // What waits for a person waits whatever else is going on.
  const needs = needsOf({ heldDeletes, conflicts, isFull: facts.isFull })
  if (needs !== undefined) return { state: 'needs you', text: going ? `${needs} ${going.text}` : needs }
  if (going) return going
  if (isUnbegun(facts)) {
    return { state: 'not begun', text: 'Not synced yet.' }
  }
  if (facts.isLooking) {
    const look = 'Something in the folder is still to be looked at'
    return facts.attendance.isAttended
      ? { state: 'working', text: `${look}.` }
      : { state: 'stopped', text: `${look}, and no process works on it.` }
  }
  if (open.reported > 0) {
    return { state: 'in step', text: `In step, but for ${counted(open.reported, 'thing')} left alone.` }
  }
  return { state: 'in step', text: 'In step.' }
}

function needsOf({
  heldDeletes,
  conflicts,
  isFull,
}: Pick<Facts, 'heldDeletes' | 'conflicts' | 'isFull'>): string | undefined {
  const { deleted, replaced } = heldTotal(heldDeletes)
  const held = [
    ...(deleted > 0 ? [counted(deleted, 'deletion')] : []),
    ...(replaced > 0 ? [counted(replaced, 'replaced file')] : []),
  ]
  const needs = [
    ...(heldDeletes ? [`${held.join(' and ')} at once: waiting for your yes.`] : []),
    ...(isFull ? [`${ONEDRIVE_FULL}: uploads wait, everything else goes on. ${ONEDRIVE_FULL_HINT}`] : []),
    ...(conflicts > 0 ? [`${counted(conflicts, 'conflict')} to decide.`] : []),
  ]
  return needs.length > 0 ? needs.join(' ') : undefined
}

function goingText(busy: number, facts: Facts): Pick<FileStatus, 'state' | 'text'> {
  if (!facts.attendance.isAttended) {
    return { state: 'stopped', text: `${counted(busy, 'change')} left, and no process works on it.` }
  }
  if (isUnbegun(facts)) {
    return { state: 'working', text: 'Looking at both sides for the first time.' }
  }
  const waits = facts.waits === null || facts.isFull ? '' : ` Some wait: ${facts.waits}.`
  return { state: 'working', text: `${counted(busy, 'change')} on the way.${waits}` }
}

/** One of the sides was never looked at to its end. */
function isUnbegun({ scannedAt, heardAt }: Pick<FileStatus, 'scannedAt' | 'heardAt'>): boolean {
  return scannedAt === null || heardAt === null
}

function busyCount({ unplanned, inWork, waiting }: FileStatus['open']): number {
  return unplanned + inWork + waiting
}

/**
 * The mark is a link of OneDrive, which means nothing to people. What the last settled round was about was known when it
 * was planned: up to then both sides are in step.
 */
async function markedTime(
  ledger: Ledger,
  { id, mark_at }: Pick<StreamRow, 'id' | 'mark_at'>,
): Promise<string | null> {
  if (Number(mark_at) <= 0) return null
  const [round] = await ledger.segments(id, { fromAt: Number(mark_at) - 1, limit: 1 })
  return round ? isoTime(Number(round.created_at)) : null
}

/** What the ledger alone tells of folders. */
export async function lookAtFiles(ledger: Ledger): Promise<AppLook> {
  const store = await FileStore.open(ledger)
  return {
    /** The ledger keeps the streams of folders that nobody keeps in step any more: they would be news to nobody. */
    async shownStreams(rows) {
      const kept = new Set((await store.folderPairs()).map(({ name }) => streamOf(name)))
      const shown = []
      for (const row of rows.filter(({ name }) => kept.has(name))) {
        shown.push({ ...row, mark: await markedTime(ledger, row) })
      }
      return shown
    },
    /** Conflicts and deletions that wait for a person. */
    async needs() {
      const needs: Need[] = []
      for (const { name } of await store.folderPairs()) {
        const { state, text } = await fileStatus({ store, ledger }, name)
        if (state === 'needs you') needs.push({ stream: streamOf(name), text })
      }
      return needs
    },
  }
}
