/**
 * Where an export is written. Nothing is there under its name before all of it is: a mailbox file is written
 * as `NAME.partial`, a folder as the folder `NAME.partial`, and renamed at the end, after all of it is on disk.
 * An unfinished folder has a file in it that says whose it is; only such a one is ever cleared away.
 */
import { constants } from 'node:fs'
import {
  access,
  type FileHandle,
  lstat,
  mkdir,
  open,
  readdir,
  rename,
  rm,
  stat,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import { TidemarkError, UsageError } from '../../../base/errors.ts'

export type TargetOptions = {
  path: string
  /** Replaces a file that is there; adds to a folder that is there. */
  force?: boolean
}

const MARK = '.tidemark-export'

/** One file. */
export class FileTarget {
  readonly #path: string
  readonly #partial: string
  readonly #file: FileHandle

  private constructor(path: string, partial: string, file: FileHandle) {
    this.#path = path
    this.#partial = partial
    this.#file = file
  }

  static async open({ path, force }: TargetOptions): Promise<FileTarget> {
    const found = await lstat(path).catch(() => null)
    if (found?.isDirectory()) throw new UsageError(`${path} is a folder; name a file in it.`)
    if (found && !force) throw alreadyThere(path, 'it')
    const partial = `${path}.partial`
    await checkParent(path)
    return new FileTarget(path, partial, await openNew(partial))
  }

  async write(bytes: Uint8Array): Promise<void> {
    await this.#file.writeFile(bytes)
  }

  async finish(): Promise<void> {
    await this.#file.sync()
    await this.#file.close()
    await rename(this.#partial, this.#path)
    await syncFolder(dirname(this.#path))
  }

  /** Leaves nothing behind. */
  async abandon(): Promise<void> {
    await this.#file.close().catch(() => undefined) // The first error is the one to tell.
    await rm(this.#partial, { force: true })
  }
}

/** A folder of files. */
export class FolderTarget {
  readonly #path: string
  /** Where files are written: the unfinished folder, or one that is added to. */
  readonly #folder: string
  readonly #made = new Set<string>()

  private constructor(path: string, folder: string) {
    this.#path = path
    this.#folder = folder
  }

  static async open({ path, force }: TargetOptions): Promise<FolderTarget> {
    const found = await lstat(path).catch(() => null)
    if (found && !found.isDirectory()) throw new UsageError(`${path} is a file; name a folder.`)
    const isEmpty = found !== null && (await readdir(path)).length === 0
    if (found && !isEmpty) {
      if (!force) throw alreadyThere(path, 'to it')
      return new FolderTarget(path, path)
    }
    await checkParent(path)
    const partial = `${path}.partial`
    await clearPartial(partial)
    await mkdir(partial, { mode: 0o700 })
    await writeFile(join(partial, MARK), 'An export that is not finished. It can be deleted.\n')
    return new FolderTarget(path, partial)
  }

  /** Makes folders within it. One that is there must be a folder itself: through a link mail would end up elsewhere. */
  async folders(names: readonly string[]): Promise<void> {
    for (const name of names) {
      if (this.#made.has(name)) continue
      let path = this.#folder
      for (const part of name.split(sep)) {
        path = join(path, part)
        const found = await lstat(path).catch(() => null)
        if (found === null) await mkdir(path, { mode: 0o700 })
        else if (!found.isDirectory()) throw inTheWay(path)
      }
      this.#made.add(name)
    }
  }

  /** What is in a folder within it: something only where it is added to. */
  async names(folder: string): Promise<string[]> {
    return this.#folder === this.#path ? await readdir(join(this.#folder, folder)) : []
  }

  /** The file is there as a whole or not at all; `through` is where it is while it is written. */
  async write(file: { name: string; through: string; bytes: Uint8Array; modifiedMs: number }): Promise<void> {
    const through = join(this.#folder, file.through)
    const handle = await openNew(through)
    try {
      await handle.writeFile(file.bytes)
      await handle.sync()
    } finally {
      await handle.close()
    }
    await utimes(through, file.modifiedMs / 1_000, file.modifiedMs / 1_000)
    await rename(through, join(this.#folder, file.name))
  }

  async finish(): Promise<void> {
    for (const name of this.#made) await syncFolder(join(this.#folder, name))
    if (this.#folder === this.#path) return await syncFolder(this.#path)
    await rm(join(this.#folder, MARK))
    await syncFolder(this.#folder)
    // Onto nothing, or onto an empty folder.
    await rename(this.#folder, this.#path)
    await syncFolder(dirname(this.#path))
  }

  /** Leaves nothing behind, except in a folder that was there before. */
  async abandon(): Promise<void> {
    if (this.#folder !== this.#path) await rm(this.#folder, { recursive: true, force: true })
  }
}

const FAILURES: Readonly<Record<string, readonly [why: string, hint: string]>> = {
  ENOSPC: ['the disk is full', 'Free some space, or name a target on another disk.'],
  EDQUOT: ['your share of the disk is used up', 'Free some space, or name a target on another disk.'],
  EACCES: ['permission denied', 'Name a target where you may write.'],
  EPERM: ['permission denied', 'Name a target where you may write.'],
  EROFS: ['the disk can only be read', 'Name a target where you may write.'],
}

/** What the file system said about the target, for people; anything else as it is. */
export function targetError(thrown: unknown, path: string): unknown {
  const { code, syscall } = (thrown ?? {}) as NodeJS.ErrnoException
  if (code === undefined || syscall === undefined) return thrown
  const [why, hint] = FAILURES[code] ?? [code, 'Name another target.']
  const message = `${path} cannot be written: ${why}.`
  return new TidemarkError(message, { kind: 'permanent', code: 'target-unwritten', hint, cause: thrown })
}

async function clearPartial(partial: string): Promise<void> {
  if (!(await lstat(partial).catch(() => null))) return
  const isOurs = await access(join(partial, MARK), constants.F_OK).then(
    () => true,
    () => false,
  )
  if (!isOurs) {
    throw new UsageError(`${partial} is in the way, and is not an unfinished export.`, {
      hint: 'Move it away, or name another target.',
    })
  }
  await rm(partial, { recursive: true })
}

async function checkParent(path: string): Promise<void> {
  const parent = dirname(path)
  const found = await stat(parent).catch(() => null)
  if (!found)
    throw new UsageError(`The folder ${parent} does not exist.`, { hint: `Make it with: mkdir -p ${parent}` })
  if (!found.isDirectory()) throw new UsageError(`${parent} is a file, and no folder for an export.`)
}

/**
 * A file of our own. What lies there under its name is left over from an export that was cut off, or somebody has
 * put it there: a link that is followed would have the mail written over a file elsewhere.
 */
async function openNew(path: string): Promise<FileHandle> {
  await rm(path, { force: true })
  return await open(path, 'wx', 0o600)
}

function inTheWay(path: string): UsageError {
  return new UsageError(`${path} is a link or a file, and no folder for an export.`, {
    code: 'target-linked',
    hint: 'Move it away, or name another target.',
  })
}

function alreadyThere(path: string, what: string): UsageError {
  const act = what === 'it' ? 'replace it' : 'add to it'
  return new UsageError(`${path} is there already.`, {
    code: 'target-exists',
    hint: `Name another target, or ${act} with --force.`,
  })
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
