/**
 * What the real service does now and then and no document promises: each a switch of a drive, off unless it is
 * switched on (`deltaPaths` and `folderDelta` are on for Personal). README.md has a line for each.
 *
 * Where a quirk concerns some items only, which ones is decided by their ids, so that it is always the same.
 */
import { z } from 'zod'
import type { Item } from './item.ts'

const isOn = z.boolean()

export const quirkSwitches = z.strictObject({
  driveIdLosesZero: isOn,
  driveIdChangesCase: isOn,
  hashMissing: isOn,
  hashMissingOnEmpty: isOn,
  hashBogusOnDeleted: isOn,
  heicSizeWrong: isOn,
  freshChildNotFound: isOn,
  freshItemNotFound: isOn,
  freshPathNotFound: isOn,
  /** In milliseconds; 0 is off. */
  changedNotFoundMs: z.number().min(0),
  freshDownloadUnauthorized: isOn,
  mkdirEmptyBody: isOn,
  headersStall: isOn,
  redirectWithoutLocation: isOn,
  deltaCreateBeforeDelete: isOn,
  deltaDuplicates: isOn,
  deltaParentsLast: isOn,
  deltaListsDeletedDescendants: isOn,
  deltaPaths: isOn,
  folderDelta: isOn,
  shortcutsHidden: isOn,
  sharedWithMeEnded: isOn,
  withdrawnListsDeleted: isOn,
  /** In milliseconds; 0 is off. */
  deltaLagMs: z.number().min(0),
  namesEncoded: isOn,
  pathMissing: isOn,
  wholeSecondTimes: isOn,
  yearOneDates: isOn,
  cTagMissing: isOn,
  deletedNameMissing: isOn,
  deletedSizeMissing: isOn,
  sessionIfMatchRefused: isOn,
  sessionIfMatchForgotten: isOn,
  sessionsLeak: isOn,
  sessionRefusesAuthorization: isOn,
  rewritesUploads: isOn,
  rewritesUploadsLater: isOn,
  rangeIgnored: isOn,
})

export type Quirks = z.infer<typeof quirkSwitches>

export const quirkNames = Object.keys(quirkSwitches.shape) as (keyof Quirks)[]

/** Those that are times and no switches. */
const TIMES: ReadonlySet<keyof Quirks> = new Set(['changedNotFoundMs', 'deltaLagMs'])

export function noQuirks(): Quirks {
  return Object.fromEntries(quirkNames.map((name) => [name, TIMES.has(name) ? 0 : false])) as Quirks
}

/** One in `of` items, by id. */
export function isChosen(item: Item, of: number, salt = 0): boolean {
  let sum = salt + 7
  for (let at = 0; at < item.id.length; at++) sum = (Math.imul(sum, 31) + item.id.charCodeAt(at)) >>> 0
  return (sum ^ (sum >>> 15)) % of === 0
}

/** True the first time that this happens to the item: what is not there yet is there a moment later. */
export function isFirstTime(item: Item, what: string): boolean {
  item.met ??= new Set()
  if (item.met.has(what)) return false
  item.met.add(what)
  return true
}
