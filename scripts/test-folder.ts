/**
 * Where test files put what they write. Tests of databases make thousands of commits, each of which waits for the disk:
 * one file of the mail archive asks 4,184 times, which took 3 s on a quiet disk and 26 s on a busy one. Memory answers at
 * once, and no test takes the power away. Tests of the file sync stay on the disk, because how a file system behaves is
 * what they are about: it gives inode numbers of deleted files to new ones, and keeps the times that it is told.
 */
import { accessSync, chmodSync, constants, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { join } from 'node:path'

const MEMORY = '/dev/shm'

/** All tests together hold less than a tenth of it at a time. */
const BYTES_MIN = 4 * 1024 ** 3

const NEEDS_DISK =
  /(?:^|\/)(?:apps\/files|e2e\/api|e2e\/files|sim\/onedrive|cloud\/onedrive)\/|\/(?:files|stranger)\.e2e\.test\.ts$/

export function needsDisk(path: string): boolean {
  return NEEDS_DISK.test(path)
}

/** A new folder in memory, if this system has one with enough room. */
export function memoryFolder(): { path: string; remove(): void } | undefined {
  try {
    accessSync(MEMORY, constants.W_OK)
    const { bavail, bsize } = statfsSync(MEMORY)
    if (bavail * bsize < BYTES_MIN) return undefined
  } catch {
    // Not on this system, or not for us.
    return undefined
  }
  // Short: a socket in it has a path of some hundred characters at most.
  const path = mkdtempSync(join(MEMORY, 'tidemark-'))
  // As /tmp is: PostgreSQL, which refuses to run as root, makes and removes a folder of its own in it.
  chmodSync(path, 0o1777)
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}
