/**
 * One process at a time changes a file: who holds the lock is named in a file of its own, for the few milliseconds from
 * reading to renaming.
 *
 *   free ──written, where there is none──▶ held ──removed──▶ free
 *
 * One that was killed leaves its lock behind. On this host that is certain, and the next takes its place; of another
 * host or boot nothing is known, and a lock that stays the same for much longer than a change takes is nobody's. Only
 * who has the guard removes the lock of another, so that nobody removes the lock that has just taken its place.
 */
import { randomBytes } from 'node:crypto'
import { rmSync, statSync, writeFileSync } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { TidemarkError } from '../base/errors.ts'
import { isDeadHere, type ProcessIdentity, processIdentity } from '../base/process-identity.ts'
import { readIfThere } from '../base/whole-file.ts'

const STEP_MS = 10
const WAIT_MS_MAX = 10_000
/** Of an owner that cannot be looked for. */
const UNKNOWN_MS_MAX = 5_000
const GUARD_MS_MAX = 60_000

/** Returns how to let go of it. Throws what the file system says where no lock can be written. */
export async function lockFile(path: string): Promise<() => void> {
  const lock = `${path}.lock`
  const self = processIdentity()
  const own = JSON.stringify({ ...self, nonce: randomBytes(6).toString('hex') })
  let seen: string | undefined
  let seenMs = 0
  for (let waitedMs = 0; waitedMs <= WAIT_MS_MAX; waitedMs += STEP_MS) {
    if (written(lock, own)) return () => rmSync(lock, { force: true })
    const found = readIfThere(lock)
    seenMs = found === seen ? seenMs + STEP_MS : 0
    seen = found
    if (found !== undefined && isAbandoned(found, self, seenMs)) removeAbandoned(lock, found)
    await delay(STEP_MS)
  }
  throw new TidemarkError(`${path} is being changed by another process. Nothing was written.`, {
    kind: 'transient',
    code: 'config-busy',
    hint: `Try again. If nothing else changes it, delete ${lock}.`,
  })
}

function isAbandoned(text: string, self: ProcessIdentity, seenMs: number): boolean {
  const owner = ownerOf(text)
  if (owner?.host !== self.host) return seenMs >= UNKNOWN_MS_MAX
  return isDeadHere({ host: owner.host, pid: owner.pid, pid_start: owner.pidStart }, self)
}

function ownerOf(text: string): ProcessIdentity | undefined {
  try {
    const { host, pid, pidStart } = JSON.parse(text) as Partial<ProcessIdentity>
    if (typeof host !== 'string' || typeof pid !== 'number' || typeof pidStart !== 'string') return undefined
    return { host, pid, pidStart }
  } catch {
    return undefined // not written to its end
  }
}

function removeAbandoned(lock: string, found: string): void {
  const guard = `${lock}.guard`
  if (!written(guard, '')) {
    const made = statSync(guard, { throwIfNoEntry: false })?.mtimeMs
    if (made !== undefined && Date.now() - made > GUARD_MS_MAX) rmSync(guard, { force: true })
    return
  }
  try {
    if (readIfThere(lock) === found) rmSync(lock, { force: true })
  } finally {
    rmSync(guard, { force: true })
  }
}

/** False where there is one already. */
function written(file: string, text: string): boolean {
  try {
    writeFileSync(file, text, { flag: 'wx', mode: 0o600 })
    return true
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw thrown
  }
}
