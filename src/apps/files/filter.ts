/**
 * What takes part in the sync. What is left out stays where it is, on both sides: it is reported and never deleted.
 *
 * A path is judged with the folders above it: what lies in an excluded folder is excluded.
 */
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { IgnoreRules, RULE_CHARS_MAX, RULES_MAX } from './ignore-rules.ts'
import { IGNORE_FILE, OWN_FOLDER } from './names.ts'
import type { FileType } from './trees.ts'

/** Files on their way to somewhere: never whole, never worth keeping. */
const UNFINISHED = ['*.partial', '*.tmp', '~*', '.~*', '*.swp', '*.crdownload']

export const filterSchema = z.object({
  /** Only these folders and files, relative to the root; everything where there are none. */
  sync_paths: z.array(z.string().min(1)).default([]),
  /** Patterns as in a .gitignore. */
  skip: z.array(z.string().min(1).max(RULE_CHARS_MAX)).max(RULES_MAX).default([]),
  skip_dotfiles: z.boolean().default(false),
  /** 0: any size. */
  size_mb_max: z.number().min(0).default(0),
})
export type FilterSettings = z.infer<typeof filterSchema>

export type Filter = {
  /** Why it is left out; undefined where it takes part. */
  excluded(path: string, about: { type: FileType; size?: number }): string | undefined
  /** Another key, another filter: what is known must be looked through again. */
  key: string
  /** How many paths may be judged before others have their turn. */
  turnPaths: number
}

export function createFilter(settings: FilterSettings, ignoreFile: string | undefined): Filter {
  const unfinished = new IgnoreRules(UNFINISHED, 'Tidemark')
  const skipped = new IgnoreRules(settings.skip, 'skip')
  const ignored = new IgnoreRules((ignoreFile ?? '').replace(/^\uFEFF/, '').split('\n'), IGNORE_FILE)
  const wanted = settings.sync_paths.map(asPath).filter((path) => path !== '')
  const bytesMax = settings.size_mb_max * 1024 * 1024
  return {
    key: createHash('sha256')
      .update(JSON.stringify([settings, ignoreFile ?? '']))
      .digest('hex')
      .slice(0, 16),
    turnPaths: Math.min(skipped.turnPaths, ignored.turnPaths),
    excluded(path, { type, size = 0 }) {
      if (path === '') return undefined
      const isFolder = type === 'folder'
      const names = path.split('/')
      if (names[0] === OWN_FOLDER) return "it is Tidemark's own"
      if (unfinished.ignores(path, isFolder)) return 'it is an unfinished file'
      if (wanted.length > 0 && !wanted.some((one) => isAlong(one, path, type)))
        return 'it is not in sync_paths'
      if (settings.skip_dotfiles && names.some((name) => name.startsWith('.')))
        return 'names with a dot are skipped'
      if (skipped.ignores(path, isFolder)) return 'a pattern in skip'
      if (ignored.ignores(path, isFolder)) return `a line in ${IGNORE_FILE}`
      if (type === 'file' && bytesMax > 0 && size > bytesMax)
        return `it is larger than ${settings.size_mb_max} MB`
      return undefined
    },
  }
}

function asPath(text: string): string {
  return text
    .normalize('NFC')
    .split('/')
    .filter((part) => part !== '' && part !== '.')
    .join('/')
}

/** Inside of what is wanted, or a folder on the way to it. */
function isAlong(wanted: string, path: string, type: FileType): boolean {
  const here = path.normalize('NFC')
  if (here === wanted || here.startsWith(`${wanted}/`)) return true
  return type === 'folder' && wanted.startsWith(`${here}/`)
}
