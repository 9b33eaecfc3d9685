/**
 * Changes a setting where it is configured: in the file, which is checked as a whole before it takes the place of the
 * old one.
 *
 *   locked ──read──edit──▶ new text ──checked by the schema──▶ written beside it, on disk ──unchanged meanwhile──▶ renamed
 *
 * A crash leaves the old file or the new one, never a part of one. Processes change it one after the other (see
 * file-lock.ts); an editor takes no lock, so what was read is compared before it is replaced. Whoever could read the
 * file, its owner and its group, still can; others never, because there may be secrets in it.
 */
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  lstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { TidemarkError, UsageError } from '../base/errors.ts'
import { editToml } from './edit.ts'
import { readSettingText } from './environment.ts'
import { lockFile } from './file-lock.ts'
import { type LoadedConfig, type LoadInput, loadConfig, parseToml } from './load.ts'
import type { Located, Origin } from './location.ts'
import { unknownKey } from './problem.ts'

export type ChangeInput = Pick<LoadInput, 'catalog' | 'env' | 'flags' | 'overrides'> & {
  file: Located
  key: string
  /** As on the command line; undefined: the default holds again. */
  text: string | undefined
}

export type Changed = {
  /** With the change. */
  loaded: LoadedConfig
  isOther: boolean
  /** What wins over the file, where something does. */
  overriddenBy: Origin | undefined
  /** Users besides its owner and its group could read it before. */
  isClosed: boolean
}

/** Somebody who saves in an editor at the same time. */
const TRIES_MAX = 5

export async function changeSetting(input: ChangeInput): Promise<Changed> {
  const { path } = input.file
  // What is wrong is told, and what is so already is left alone, before anything is touched.
  const first = planned(input)
  if (first.after === first.before) return changed(input, first, false)
  const target = targetOf(path)
  return writing(path, async () => {
    mkdirSync(dirname(target), { recursive: true, mode: 0o700 })
    const unlock = await lockFile(target)
    try {
      for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
        const plan = planned(input)
        const old = statSync(target, { throwIfNoEntry: false })
        if (plan.after === plan.before) return changed(input, plan, false)
        if (replaceFile(target, { ...plan, old })) {
          return changed(input, plan, old !== undefined && (old.mode & OTHERS) !== 0)
        }
      }
    } finally {
      unlock()
    }
    throw new TidemarkError(`${path} is being changed by somebody else. Nothing was written.`, {
      kind: 'transient',
      code: 'config-busy',
      hint: 'Try again.',
    })
  })
}

type Plan = { before: string | undefined; after: string; loaded: LoadedConfig }

function planned(input: ChangeInput): Plan {
  const { catalog, key, file, text } = input
  const entry = catalog.find(key)
  if (!entry) throw new UsageError(unknownSetting(input), { code: 'setting-unknown', hint: KEYS_HINT })
  const value = text === undefined ? undefined : readSettingText(entry, text)
  const before = readIfThere(file.path)
  // Tells what is wrong with the file without its lines, in which there may be secrets.
  parseToml(file.path, before ?? '')
  const after = editToml(before ?? '', entry, value)
  const loaded = loadConfig({ ...input, readFile: () => after })
  // A file that is not there is not made to hold nothing.
  return { before: before ?? (after === '' ? '' : undefined), after, loaded }
}

function changed({ key }: ChangeInput, { before, after, loaded }: Plan, isClosed: boolean): Changed {
  const origin = loaded.origins.get(key)
  const overriddenBy = origin?.kind === 'env' || origin?.kind === 'flag' ? origin : undefined
  return { loaded, isOther: after !== before, overriddenBy, isClosed }
}

const KEYS_HINT = 'See all keys and what they allow with: tidemark config keys'

function unknownSetting({ catalog, key }: ChangeInput): string {
  const [section = '', ...rest] = key.split('.')
  const isSection = catalog.entries.some((entry) => entry.section === section)
  const text =
    isSection && rest.length > 0
      ? unknownKey(catalog, [section], rest.join('.'))
      : unknownKey(catalog, [], key)
  return `${text[0]!.toUpperCase()}${text.slice(1)}`
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw new UsageError(`cannot read the configuration file ${path}: ${(cause as Error).message}`, {
      cause,
      code: 'config-unreadable',
      hint: 'Check the path given by --config or TIDEMARK_CONFIG and who may read it.',
    })
  }
}

/** What a link leads to is changed, and the link stays. */
function targetOf(path: string): string {
  if (!lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink()) return path
  try {
    return realpathSync(path)
  } catch (cause) {
    throw new UsageError(`${path} is a link that leads to nothing. Nothing was written.`, {
      cause,
      code: 'config-unwritable',
      hint: 'Make the file that it leads to, or delete the link.',
    })
  }
}

const WHY: Readonly<Record<string, string>> = {
  EACCES: 'this user may not write in its folder',
  EPERM: 'this user may not write it so that it keeps its owner and its group',
  EROFS: 'it is in a file system that can only be read',
  EBUSY: 'it is mounted by itself, and cannot be replaced',
  ENOSPC: 'the disk is full',
}

/** What the file system refuses, said of the file that was to be changed. */
async function writing<T>(path: string, run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    if (cause instanceof TidemarkError || code === undefined) throw cause
    const why = WHY[code] ?? (cause as Error).message
    throw new UsageError(`The configuration file ${path} was not changed: ${why}.`, {
      cause,
      code: 'config-unwritable',
      hint: 'Run this as the user to whom the file and its folder belong, or change the file in an editor.',
    })
  }
}

const OTHERS = 0o007
const OWNER_AND_GROUP = 0o770

type Replacement = Plan & { old: Stats | undefined }

/** False where it is not what was read any more. */
function replaceFile(target: string, { before, after, old }: Replacement): boolean {
  const draft = `${target}.${randomBytes(6).toString('hex')}.new`
  try {
    const file = openSync(draft, 'wx', 0o600)
    try {
      writeFileSync(file, after)
      keepOwner(file, { old, folder: dirname(target) })
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    if (readIfThere(target) !== before) return false
    renameSync(draft, target)
    syncFolder(dirname(target))
    return true
  } finally {
    rmSync(draft, { force: true })
  }
}

/** What an administrator makes in the folder of a service is the service's. */
function keepOwner(file: number, { old, folder }: { old: Stats | undefined; folder: string }): void {
  if (process.platform === 'win32' || (!old && process.geteuid?.() !== 0)) return
  const own = fstatSync(file)
  const { uid, gid } = old ?? statSync(folder)
  if (own.uid !== uid || own.gid !== gid) fchownSync(file, uid, gid)
  fchmodSync(file, (old?.mode ?? own.mode) & OWNER_AND_GROUP)
}

function syncFolder(path: string): void {
  if (process.platform === 'win32') return
  const folder = openSync(path, 'r')
  try {
    fsyncSync(folder)
  } finally {
    closeSync(folder)
  }
}
