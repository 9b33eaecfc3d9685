/** `tidemark` as processes of their own, on the ledger and the simulated Drive of a world. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import type { DriveTestWorld } from '../../src/apps/drive/drive-world.suite.ts'
import { sleep, systemClock } from '../../src/base/clock.ts'
import { BIN } from '../../src/cli/jobs/jobs.suite.ts'

export type Life = {
  child: ChildProcess
  ended: Promise<{ code: number | null; stderr: string }>
  isOver: () => boolean
}

export function begin(world: DriveTestWorld, args: string[], settings: Record<string, string> = {}): Life {
  const env = {
    ...process.env,
    TIDEMARK_HOME: world.home,
    TIDEMARK_LEDGER_URL: world.ledgerUrl,
    TIDEMARK_SEARCH_EMBEDDING: 'off',
    TIDEMARK_GOOGLE_DRIVE_API_URL: world.settings.apiUrl,
    TIDEMARK_GOOGLE_DRIVE_TOKEN_URL: world.settings.tokenUrl,
    TIDEMARK_GOOGLE_DRIVE_CLIENT_ID: world.drive.clientId,
    ...settings,
  }
  const child = spawn(BIN, args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
  let stderr = ''
  let isOver = false
  child.stderr.on('data', (text: Buffer) => (stderr += text.toString()))
  const ended = once(child, 'close').then(([code]) => {
    isOver = true
    return { code: code as number | null, stderr }
  })
  return { child, ended, isOver: () => isOver }
}

/** Of a process, so that it stands still where it holds nothing that others need. */
export async function standStill({ child }: Life, holdsLock: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    child.kill('SIGSTOP')
    if (!(await holdsLock())) return
    child.kill('SIGCONT')
    await sleep(systemClock, LOOK_MS)
  }
  throw new Error(`it held a lock each of ${TRIES_MAX} times`)
}

const TRIES_MAX = 500
const LOOK_MS = 10

/** Looks until it is so, or the process is over. */
export async function until(life: Life, isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!life.isOver() && !(await isSo())) await sleep(systemClock, LOOK_MS)
}
