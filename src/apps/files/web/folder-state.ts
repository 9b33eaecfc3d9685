/** A folder, its items and what was done, in words and tones. */

import type { Option } from '../../../../web/src/components/form.tsx'
import type { IconName } from '../../../../web/src/components/icon.tsx'
import type { Tone } from '../../../../web/src/components/tone.ts'
import { formatBytes, formatPlural } from '../../../../web/src/format.ts'
import type {
  ActionView,
  ConflictView,
  FolderSettings,
  FolderView,
  TransfersView,
  TreeItem,
} from '../api/schemas.ts'

export const FOLDER_STATES: Record<FolderView['state'], { text: string; tone: Tone }> = {
  'in step': { text: 'In step', tone: 'accent' },
  working: { text: 'Working', tone: 'accent' },
  stopped: { text: 'Stopped', tone: 'warn' },
  'needs you': { text: 'Needs you', tone: 'danger' },
  paused: { text: 'Paused', tone: 'warn' },
  'not begun': { text: 'Not begun', tone: 'neutral' },
}

export const MODES: Record<FolderView['mode'], string> = {
  'two-way': 'Both ways',
  'download-only': 'Only from OneDrive to here',
  'upload-only': 'Only from here to OneDrive',
}

export const POLICIES: Record<FolderView['policy'], string> = {
  'keep-both': 'keeps both versions of a conflict',
  'keep-local': 'keeps the version from here in a conflict',
  'keep-remote': 'keeps the version of OneDrive in a conflict',
  manual: 'asks you about conflicts',
}

export const MODE_CHOICES = Object.entries(MODES).map(([value, text]) => ({
  value: value as FolderView['mode'],
  text,
}))

export const POLICY_CHOICES: readonly Option<FolderView['policy']>[] = [
  { value: 'keep-both', text: 'Keep both' },
  { value: 'manual', text: 'Ask me' },
  { value: 'keep-local', text: 'Keep the one from here' },
  { value: 'keep-remote', text: 'Keep the one from OneDrive' },
]

/** What a form has changed since it began: the rest may have been changed elsewhere meanwhile, and stays so. */
export function changedSettings(began: FolderSettings, now: FolderSettings): Partial<FolderSettings> {
  return Object.fromEntries(
    Object.entries(now).filter(
      ([name, value]) => JSON.stringify(value) !== JSON.stringify(began[name as keyof FolderSettings]),
    ),
  )
}

/** In step needs no word: everything else does. */
export const ITEM_STATES: Record<TreeItem['state'], { text: string; tone: Tone; icon: IconName }> = {
  'in-step': { text: 'In step', tone: 'neutral', icon: 'check' },
  here: { text: 'Changed here', tone: 'accent', icon: 'upload' },
  there: { text: 'Changed in OneDrive', tone: 'accent', icon: 'download' },
  both: { text: 'Changed on both sides', tone: 'accent', icon: 'retry' },
  waiting: { text: 'Waits', tone: 'neutral', icon: 'pause' },
  left: { text: 'Left alone', tone: 'warn', icon: 'pause' },
  held: { text: 'Waits for your yes', tone: 'danger', icon: 'alert' },
  conflict: { text: 'Conflict', tone: 'danger', icon: 'alert' },
}

export const RESULTS: Record<ActionView['result'], { text: string; tone: Tone }> = {
  done: { text: 'Done', tone: 'accent' },
  'not needed': { text: 'Not needed', tone: 'neutral' },
  failed: { text: 'Failed', tone: 'danger' },
  canceled: { text: 'Cancelled', tone: 'warn' },
}

export const CONFLICT_KINDS: Record<ConflictView['kind'], string> = {
  'edit-edit': 'Edited on both sides',
  'edit-delete': 'Edited here, deleted in OneDrive',
  'create-create': 'Made on both sides',
}

export const CONFLICT_STATES: Record<ConflictView['state'], { text: string; tone: Tone }> = {
  open: { text: 'To decide', tone: 'danger' },
  'kept-both': { text: 'Both kept', tone: 'neutral' },
  'kept-local': { text: 'Kept from here', tone: 'neutral' },
  'kept-remote': { text: 'Kept from OneDrive', tone: 'neutral' },
  dismissed: { text: 'Settled by itself', tone: 'neutral' },
}

/** "downloading 3 files (2.1 GB), uploading 5 (340 MB), 12 waiting"; empty where nothing is going on. */
export function workText(
  { open }: Pick<FolderView, 'open'>,
  { upload, download }: Pick<TransfersView, 'upload' | 'download'>,
): string {
  const left = ({ totalBytes, doneBytes }: TransfersView['upload']): string =>
    formatBytes(Math.max(0, totalBytes - doneBytes))
  const waiting = open.unplanned + open.inWork + open.waiting - upload.count - download.count
  const parts = [
    ...(download.count > 0
      ? [`downloading ${formatPlural(download.count, 'file')} (${left(download)} left)`]
      : []),
    ...(upload.count > 0 ? [`uploading ${formatPlural(upload.count, 'file')} (${left(upload)} left)`] : []),
    ...(waiting > 0 ? [`${formatPlural(waiting, 'change')} waiting`] : []),
  ]
  const text = parts.join(', ')
  return text === '' ? '' : `${text[0]!.toUpperCase()}${text.slice(1)}`
}

/** Of one folder, from those of all. */
export function transfersOf({ items }: TransfersView, folder: string): TransfersView {
  const own = items.filter((one) => one.folder === folder)
  const sum = (direction: 'upload' | 'download'): TransfersView['upload'] => {
    const way = own.filter((one) => one.direction === direction)
    return {
      count: way.length,
      doneBytes: way.reduce((total, { doneBytes }) => total + doneBytes, 0),
      totalBytes: way.reduce((total, { totalBytes }) => total + totalBytes, 0),
    }
  }
  return { items: own, upload: sum('upload'), download: sum('download') }
}

/** "12 deletions", "40 replaced files". */
export function heldWords(held: NonNullable<FolderView['heldDeletes']>): string {
  const replaced = held.replaced ? held.replaced.local + held.replaced.remote : 0
  const deleted = held.local + held.remote - replaced
  return [
    ...(deleted > 0 ? [formatPlural(deleted, 'deletion')] : []),
    ...(replaced > 0 ? [formatPlural(replaced, 'replaced file')] : []),
  ].join(' and ')
}

export type FolderNeed = { key: string; text: string; view: 'deletes' | 'conflicts' }

export function folderNeeds({ heldDeletes, conflicts, name }: FolderView): FolderNeed[] {
  const held = heldDeletes === null ? '' : heldWords(heldDeletes)
  return [
    ...(held !== ''
      ? [
          {
            key: `${name} deletes`,
            text: `${held} at once: yours to allow`,
            view: 'deletes' as const,
          },
        ]
      : []),
    ...(conflicts > 0
      ? [
          {
            key: `${name} conflicts`,
            text: `${formatPlural(conflicts, 'conflict')} to decide`,
            view: 'conflicts' as const,
          },
        ]
      : []),
  ]
}
