/**
 * Changes a setting where it is configured: in the file, which is checked as a whole before it takes the place of the
 * old one.
 *
 *   read ──edit──▶ new text ──checked by the schema──▶ written beside it, on disk ──unchanged meanwhile──▶ renamed
 *
 * A crash leaves the old file or the new one, never a part of one. The file is for its owner alone: there may be secrets
 * in it.
 */
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { TidemarkError, UsageError } from '../base/errors.ts'
import { editToml } from './edit.ts'
import { readSettingText } from './environment.ts'
import { type LoadedConfig, type LoadInput, loadConfig } from './load.ts'
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
}

/** Somebody who saves in an editor at the same time. */
const TRIES_MAX = 5

export function changeSetting(input: ChangeInput): Changed {
  const { catalog, key, file, text } = input
  const entry = catalog.find(key)
  if (!entry) throw new UsageError(unknownSetting(input), { code: 'setting-unknown', hint: KEYS_HINT })
  const value = text === undefined ? undefined : readSettingText(entry, text)
  for (let tries = 1; tries <= TRIES_MAX; tries += 1) {
    const before = readIfThere(file.path)
    const after = editToml(before ?? '', entry, value)
    const loaded = loadConfig({ ...input, readFile: () => after })
    if (after !== (before ?? '') && !replaceFile(file.path, { before, after })) continue
    const origin = loaded.origins.get(key)
    const overriddenBy = origin?.kind === 'env' || origin?.kind === 'flag' ? origin : undefined
    return { loaded, isOther: after !== (before ?? ''), overriddenBy }
  }
  throw new TidemarkError(`${file.path} is being changed by somebody else. Nothing was written.`, {
    kind: 'transient',
    code: 'config-busy',
    hint: 'Try again.',
  })
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
    throw new UsageError(`cannot read the configuration file ${path}: ${(cause as Error).message}`, { cause })
  }
}

/** False where it is not what was read any more. */
function replaceFile(
  path: string,
  { before, after }: { before: string | undefined; after: string },
): boolean {
  // What a link leads to is changed, and the link stays.
  const target = before === undefined ? path : realpathSync(path)
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 })
  const draft = `${target}.${randomBytes(6).toString('hex')}.new`
  try {
    const file = openSync(draft, 'wx', 0o600)
    try {
      writeFileSync(file, after)
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
    if (readIfThere(path) !== before) return false
    renameSync(draft, target)
    syncFolder(dirname(target))
    return true
  } finally {
    rmSync(draft, { force: true })
  }
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
