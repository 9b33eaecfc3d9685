/**
 * Who this process is, so that another one on the same machine can tell at once that it is dead, and never
 * mistakes a process with a reused pid for it.
 *
 * A pid means something only within one boot and one pid namespace, so the host's name holds both: two
 * containers with the same hostname are two hosts. Within a host, (pid, start time) names one process for ever.
 * About other hosts nothing is known here: there the lease decides.
 */
import { readFileSync, readlinkSync } from 'node:fs'
import { hostname } from 'node:os'

export type ProcessIdentity = {
  host: string
  pid: number
  /** Clock ticks from boot to the start of the process; empty where the system does not tell. */
  pidStart: string
}

export function processIdentity(): ProcessIdentity {
  return { host: hostIdentity(), pid: process.pid, pidStart: lookAt(process.pid).start ?? '' }
}

export function hostIdentity(): string {
  return [hostname(), bootId(), pidNamespace()].filter(Boolean).join('/')
}

/** True only if the worker's process certainly runs no more; false also means "cannot tell from here". */
export function isDeadHere(
  worker: { host: string; pid: number | bigint; pid_start: string },
  self: ProcessIdentity,
): boolean {
  if (worker.host !== self.host) return false
  const seen = lookAt(Number(worker.pid))
  if (!seen.alive) return true
  return worker.pid_start !== '' && seen.start !== undefined && seen.start !== worker.pid_start
}

type Sighting = { alive: boolean; start?: string }

function lookAt(pid: number): Sighting {
  const stat = readText(`/proc/${pid}/stat`)
  if (stat !== undefined) return parseStat(stat)
  return { alive: answersSignals(pid) }
}

/**
 * A line of /proc/PID/stat. The second field is the program's name in parentheses, in which there may be
 * spaces and parentheses, so fields are counted from the last `)`: state is the 3rd, start time the 22nd.
 */
export function parseStat(stat: string): Sighting {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const state = fields[0] ?? ''
  // A zombie has ended and only waits to be collected.
  return { alive: !/^[ZXx]/.test(state), start: fields[19] }
}

function answersSignals(pid: number): boolean {
  // 0 and below are groups of processes, not one of them.
  if (!Number.isInteger(pid) || pid <= 0) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (thrown) {
    // EPERM: it is there and belongs to someone else.
    return (thrown as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

function bootId(): string {
  return readText('/proc/sys/kernel/random/boot_id')?.trim() ?? ''
}

function pidNamespace(): string {
  try {
    return readlinkSync('/proc/self/ns/pid').replace(/^pid:\[(\d+)\]$/, '$1')
  } catch {
    return '' // no Linux, or a locked-down /proc: then the boot and the hostname must do
  }
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return undefined // no such process, or no /proc; both are told apart by a signal
  }
}
