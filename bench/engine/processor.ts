/**
 * Processor time of a drain, for this process and for the server. Other work on the machine takes turns away, which
 * shows in every rate; what a job costs it changes little.
 */
import { readdirSync, readFileSync } from 'node:fs'
import type { Target } from './subject.ts'

export type ProcessorUs = { client: number; server: number }

/** Linux counts in hundredths of a second, whatever the kernel's own clock. */
const US_PER_TICK = 10_000

/** So far; undefined where the system does not tell of other processes. */
export function processorUs(target: Target): ProcessorUs | undefined {
  if (process.platform !== 'linux') return undefined
  const { user, system } = process.cpuUsage()
  return { client: user + system, server: target.kind === 'postgres' ? serverUs(target.serverPid) : 0 }
}

/** The server's first process, which has added up those that ended, and those that live. */
function serverUs(pid: number): number {
  let ticks = 0
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const stat = statOf(name)
    if (!stat) continue
    if (Number(name) === pid) ticks += stat.own + stat.ended
    else if (stat.parent === pid) ticks += stat.own
  }
  return ticks * US_PER_TICK
}

/** The name may hold spaces and brackets: the fields are counted from behind it. */
function statOf(pid: string): { parent: number; own: number; ended: number } | undefined {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    return undefined // it has ended since it was listed
  }
  const [, parent, ...rest] = text
    .slice(text.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = rest.slice(9)
  return { parent: parent ?? 0, own: user + system, ended: endedUser + endedSystem }
}
