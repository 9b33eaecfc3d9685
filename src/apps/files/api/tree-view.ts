/** A node as people are shown it: which side changed, what becomes of it, and why nothing does. Pure. */

import { plural } from '../../../base/wording.ts'
import { type Decision, decide, type Mode, type Verb } from '../decide.ts'
import type { BrowsedNode } from '../store/browse.ts'
import type { LocalRow, RemoteRow } from '../trees.ts'
import type { TreeItem } from './schemas.ts'

type State = TreeItem['state']

/** Which side changed, by what is to be done about it. */
const CHANGED: Record<Verb, State> = {
  upload: 'here',
  'mkdir-remote': 'here',
  'move-remote': 'here',
  'delete-remote': 'here',
  detach: 'here',
  download: 'there',
  'mkdir-local': 'there',
  'move-local': 'there',
  'delete-local': 'there',
  conflict: 'both',
  adopt: 'both',
  forget: 'both',
  check: 'here',
  nothing: 'left',
  report: 'left',
}

const WORDS: Record<Verb, { soon: string; now: string }> = {
  upload: { soon: 'will be uploaded', now: 'being uploaded' },
  download: { soon: 'will be downloaded', now: 'being downloaded' },
  'mkdir-remote': { soon: 'will be made in OneDrive', now: 'being made in OneDrive' },
  'mkdir-local': { soon: 'will be made here', now: 'being made here' },
  'move-remote': { soon: 'will be moved in OneDrive, too', now: 'being moved in OneDrive' },
  'move-local': { soon: 'will be moved here, too', now: 'being moved here' },
  'delete-remote': { soon: 'will be deleted in OneDrive, too', now: 'being deleted in OneDrive' },
  'delete-local': { soon: 'will be deleted here, too', now: 'being deleted here' },
  conflict: { soon: 'changed on both sides', now: 'changed on both sides: being sorted out' },
  check: { soon: 'will be compared', now: 'being compared' },
  adopt: { soon: 'the same on both sides: will be noted', now: 'being noted' },
  forget: { soon: 'gone on both sides: will be forgotten', now: 'being forgotten' },
  detach: { soon: 'deleted in OneDrive, changed here: will be uploaded anew', now: 'being uploaded anew' },
  nothing: { soon: 'left as it is', now: 'left as it is' },
  report: { soon: 'left alone', now: 'left alone' },
}

export function treeItem(
  one: BrowsedNode,
  { mode, localParentId }: { mode: Mode; localParentId: string | undefined },
): TreeItem {
  const local = one.local?.isMissing ? undefined : one.local
  const remote = one.remote?.isDeleted ? undefined : one.remote
  const here = local ? localSide(local) : null
  const there = remote ? remoteSide(remote) : null
  const shown = here ?? there ?? { name: one.base?.name ?? '', size: 0, modifiedMs: null }
  const decision = decide({ base: one.base, local: one.local, remote: one.remote, localParentId }, mode)
  return {
    node: one.node,
    ...shown,
    type: shownType(one),
    here,
    there,
    conflict: one.conflictId,
    ...treeState(one, decision),
    isActive: one.open?.planned === true,
  }
}

function shownType({ local, remote, base }: BrowsedNode): TreeItem['type'] {
  const type = local?.type ?? remote?.type ?? base?.type ?? 'file'
  return type === 'package' ? 'notebook' : type
}

function treeState(one: BrowsedNode, decision: Decision): Pick<TreeItem, 'state' | 'text'> {
  const { open, conflictsInside } = one
  if (!open && conflictsInside > 0) {
    return {
      state: 'conflict',
      text: `${conflictsInside} ${plural(conflictsInside, 'conflict')} inside: you decide`,
    }
  }
  if (!open) return { state: 'in-step', text: '' }
  if (one.conflictId !== null) return { state: 'conflict', text: 'changed on both sides: you decide' }
  if (open.code === 'held-delete' || open.code === 'held-overwrite')
    return { state: 'held', text: open.because ?? '' }
  if (open.because !== null && !open.planned) return { state: 'left', text: open.because }
  const words = WORDS[decision.do]
  if (open.waits) return { state: 'waiting', text: `${words.soon}; waits for something else first` }
  const because = 'because' in decision ? `: ${decision.because}` : ''
  return { state: CHANGED[decision.do], text: `${open.planned ? words.now : words.soon}${because}` }
}

function localSide({ name, size, mtimeNs, type }: LocalRow): NonNullable<TreeItem['here']> {
  return { name, size: type === 'folder' ? 0 : size, modifiedMs: Number(BigInt(mtimeNs) / 1_000_000n) }
}

function remoteSide({ name, size, modifiedMs, type }: RemoteRow): NonNullable<TreeItem['there']> {
  return { name, size: type === 'folder' ? 0 : size, modifiedMs }
}
