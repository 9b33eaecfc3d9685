/**
 * One demo in a folder at a time: two would give the same account the tokens of two clouds. The lock is a file that
 * names its process; one that was killed leaves it behind, and whoever comes next takes its place.
 *
 * A process of another boot or container cannot be looked for from here. It counts as gone: a folder that was locked
 * for ever by a machine that was switched off would be worse.
 */
import { linkSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { z } from 'zod'
import { UsageError } from '../../base/errors.ts'
import { isDeadHere, type ProcessIdentity, processIdentity } from '../../base/process-identity.ts'
import { readIfThere } from '../../base/whole-file.ts'

const ownerSchema = z.object({ host: z.string(), pid: z.int(), pidStart: z.string() })
const TRIES_MAX = 5

/** Returns how to let go of it. */
export function lockFolder(folder: string, file: string): () => void {
  const self = processIdentity()
  const own = `${file}.${self.pid}`
  const text = JSON.stringify(self)
  writeFileSync(own, text, { mode: 0o600 })
  try {
    for (let tries = 0; tries < TRIES_MAX; tries++) {
      // Whole or not at all, and never over another one.
      if (linked(own, file)) {
        return () => {
          if (readIfThere(file) === text) rmSync(file, { force: true })
        }
      }
      const found = readIfThere(file)
      const owner = found === undefined ? undefined : ownerOf(found)
      if (owner && isAtWork(owner, self)) throw taken(folder, owner.pid)
      if (found !== undefined) clear(file, { found, aside: `${own}.old` })
    }
  } finally {
    rmSync(own, { force: true })
  }
  throw taken(folder, undefined)
}

/** Only what was found: another process may have been faster, and then it is its lock that lies there. */
function clear(file: string, { found, aside }: { found: string; aside: string }): void {
  try {
    renameSync(file, aside)
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return
    throw thrown
  }
  if (readIfThere(aside) !== found) linked(aside, file)
  rmSync(aside, { force: true })
}

function isAtWork(owner: ProcessIdentity, self: ProcessIdentity): boolean {
  const { host, pid, pidStart } = owner
  return host === self.host && !isDeadHere({ host, pid, pid_start: pidStart }, self)
}

function ownerOf(text: string): ProcessIdentity | undefined {
  try {
    return ownerSchema.parse(JSON.parse(text))
  } catch {
    return undefined // not written by us, or not to its end: nobody's
  }
}

function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to)
    return true
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw thrown
  }
}

function taken(folder: string, pid: number | undefined): UsageError {
  const which = pid === undefined ? '' : ` (process ${pid})`
  return new UsageError(`A demo runs in ${folder} already${which}.`, {
    code: 'demo-running',
    hint: 'Stop that one first, or give another folder with --home.',
  })
}
