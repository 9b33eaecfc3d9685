/**
 * Why something is left alone: a sentence for people, and beside it a code for programs wherever something depends on
 * the reason. Both are kept with the open node.
 */

/**
 * - left-out: by the filter; in-exchange: with its folder, for as long as that is on its way to another name
 * - downloads-only, uploads-only: by the mode
 * - held-delete, held-overwrite: until somebody says yes to it
 * - held-name: until the deletion of what has its name on the other side is not held any more
 * - undecided: a conflict, until somebody decides
 * - withheld: somebody shares the folder, and this in it not any more
 * - folder-left, content-left, other-left: because of another node, which has the reason
 */
export type LeftCode =
  | ('left-out' | 'in-exchange' | 'downloads-only' | 'uploads-only')
  | ('held-delete' | 'held-overwrite' | 'held-name' | 'undecided' | 'withheld')
  | ('folder-left' | 'content-left' | 'other-left')

export type Reason = { code?: LeftCode | undefined; because: string }

/** What somebody has wished, by the filter or by the mode. */
export const WISHED_CODES: ReadonlySet<string | null> = new Set<LeftCode>([
  'left-out',
  'in-exchange',
  'downloads-only',
  'uploads-only',
])

/** Conflicts and what waits for a yes are told by themselves, and some stay because of others that have a reason. */
export const TOLD_ELSEWHERE_CODES: ReadonlySet<string | null> = new Set<LeftCode>([
  'held-delete',
  'held-overwrite',
  'undecided',
  'folder-left',
  'content-left',
  'other-left',
])
