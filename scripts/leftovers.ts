/**
 * Finds processes that tests started and did not end. Every child inherits a mark in its
 * environment, which Linux lets us read; elsewhere nothing is found.
 */
import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

const MARK_NAME = 'TIDEMARK_TEST_RUN'

/** A child that was told to end just before its parent did may need a moment. */
const GRACE_MS = 3000
const LOOK_EVERY_MS = 50

/** From here on, what this process starts carries the mark. */
export function markRun(): void {
  process.env[MARK_NAME] = `${process.pid}-${randomBytes(6).toString('hex')}`
}

/** Ends what is left after a moment of grace, and returns the command lines. */
export async function endLeftovers(): Promise<string[]> {
  const mark = process.env[MARK_NAME]
  if (mark === undefined) return []
  for (let waitedMs = 0; waitedMs < GRACE_MS && findMarked(mark).length > 0; waitedMs += LOOK_EVERY_MS) {
    await sleep(LOOK_EVERY_MS)
  }
  return findMarked(mark).map((pid) => {
    const command = readProc(pid, 'cmdline').replaceAll('\0', ' ').trim()
    try {
      process.kill(pid, 'SIGKILL')
    } catch {
      // It ended between the look and the kill.
    }
    return `${pid} ${command.slice(0, 200)}`
  })
}

/** Also false for a process that has ended but that nobody has asked about yet. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
  } catch {
    return false
  }
  return !/^\d+ \(.*\) Z/s.test(readProc(pid, 'stat'))
}

function findMarked(mark: string): number[] {
  return processIds().filter((pid) => {
    if (pid === process.pid) return false
    return readProc(pid, 'environ').split('\0').includes(`${MARK_NAME}=${mark}`)
  })
}

function processIds(): number[] {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
  } catch {
    // No /proc on this system.
    return []
  }
}

function readProc(pid: number, name: 'environ' | 'cmdline' | 'stat'): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8')
  } catch {
    // The process ended, or belongs to somebody else.
    return ''
  }
}
