/**
 * One folder with many files, in step with OneDrive: a sync of nothing, one change there, the move of a folder, and a
 * watch with nothing to see. The first sync that got there is measured with fewer files.
 */
import { sleep, systemClock } from '../../src/base/clock.ts'
import type { Row } from '../bench.ts'
import { cpuSeconds, residentMb, row } from '../session.ts'
import { formatValue } from '../table.ts'
import { CHANGED } from './limits.ts'
import type { Session, World } from './session.ts'
import type { Step, StepDone } from './subject.ts'
import { fileCount } from './tree.ts'

export const MANY = 'many'
export const FIRST = 'first'
const ROUNDS = 3
const WATCH_START_MS = 15_000
const WATCH_MS_MAX = 600_000

export async function runMany(session: Session): Promise<Row[]> {
  const tree = session.sizes.many
  const files = formatValue(fileCount(tree))
  const bareMb = await session.order<number>({ do: 'bare' })
  return await session.world({ tree }, async (world) => {
    await world.setUp({ tree, isAgreed: true })
    const rows = await noOp(session, world, { files, bareMb })
    rows.push(...(await oneChange(session, world, files)))
    rows.push(...(await folderMove(session, world)))
    rows.push(...(await idleWatch(session, world, { files, bareMb })))
    return rows
  })
}

/** Both sides have the same: every file is hashed and adopted, and none goes over the wire. */
export async function runFirst(session: Session): Promise<Row[]> {
  const tree = session.sizes.small
  const title = `first sync of ${formatValue(fileCount(tree))} files that both sides have`
  return await session.world({ tree }, async (world) => {
    await world.setUp({ tree })
    const { steps, peakMb } = await world.sync([{ kind: 'sync' }])
    session.say(`${title}: ${formatValue(steps[0]!.ms / 1_000)} s`)
    return [...stepRows(title, steps[0]!), row(`${title}, resident at most`, 'tidemark', peakMb, 'MB')]
  })
}

async function noOp(
  session: Session,
  world: World,
  { files, bareMb }: { files: string; bareMb: number },
): Promise<Row[]> {
  const title = `no-op sync of ${files} files`
  const limit = await world.limit({ loop: 'look', rounds: ROUNDS })
  const done = await world.sync(Array.from({ length: ROUNDS }, (): Step => ({ kind: 'sync' })))
  const step = median(done.steps)
  session.say(`${title}: ${formatValue(step.ms)} ms, limit ${formatValue(limit.ms)} ms`)
  return [
    ...stepRows(title, step),
    ...stepRows(title, limit, 'limit'),
    row(`${title}, the first, which compares all rows`, 'tidemark', done.steps[0]!.ms, 'ms'),
    row(`${title}, API calls`, 'tidemark', Math.max(...done.steps.map(({ calls }) => calls)), 'calls'),
    row(`${title}, resident over a bare process`, 'tidemark', done.peakMb - bareMb, 'MB'),
  ]
}

async function oneChange(session: Session, world: World, files: string): Promise<Row[]> {
  const title = `1 change in ${files} files, heard by delta`
  const steps = Array.from({ length: ROUNDS + 1 }, (_, round): Step => {
    return { kind: 'delta', before: { write: CHANGED, text: `changed ${round}` } }
  })
  const done = await world.sync(steps)
  // The first one meets code that was never run.
  const step = median(done.steps.slice(1))
  const limit = await world.limit({ loop: 'change', root: `${world.home}/bare`, rounds: ROUNDS + 1 })
  session.say(`${title}: ${formatValue(step.ms)} ms, limit ${formatValue(limit.ms)} ms`)
  // The bare loop has changed it for the last time.
  await world.sync([{ kind: 'sync' }])
  return [
    ...stepRows(title, step),
    ...stepRows(title, limit, 'limit'),
    row(`${title}, API calls`, 'tidemark', step.calls, 'calls'),
  ]
}

async function folderMove(session: Session, world: World): Promise<Row[]> {
  const { tops } = session.sizes.many
  const title = `move of a folder with ${formatValue(fileCount(session.sizes.many) / tops)} files`
  const limit = await world.limit({ loop: 'move', rounds: 2 })
  await world.sync([{ kind: 'sync' }])
  const done = await world.sync([
    { kind: 'sync', before: { rename: 't0', to: 't0 moved' } },
    { kind: 'sync', before: { rename: 't0 moved', to: 't0' } },
    { kind: 'sync', before: { rename: 't0', to: 't0 moved' } },
  ])
  const step = median(done.steps)
  session.say(`${title}: ${formatValue(step.ms)} ms, limit ${formatValue(limit.ms)} ms`)
  return [
    ...stepRows(title, step),
    ...stepRows(title, limit, 'limit'),
    // One of them asks what changed there.
    row(`${title}, API calls but for delta`, 'tidemark', step.calls - 1, 'calls'),
  ]
}

/** `tidemark files watch` as people start it, once it has looked through everything. */
async function idleWatch(
  session: Session,
  { home, at }: World,
  { files, bareMb }: { files: string; bareMb: number },
): Promise<Row[]> {
  const env = {
    ...process.env,
    TIDEMARK_HOME: home,
    TIDEMARK_ONEDRIVE_API_URL: at.graphUrl,
    TIDEMARK_ONEDRIVE_TOKEN_URL: at.tokenUrl,
    TIDEMARK_ONEDRIVE_AUTH_URL: at.authUrl,
  }
  const running = session.processes.tidemark(['files', 'watch', '--json'], { env, msMax: WATCH_MS_MAX })
  try {
    await sleep(systemClock, WATCH_START_MS)
    if (running.isOver) throw new Error(`the watch ended: ${(await running.ended).stderr.slice(-500)}`)
    const pid = running.child.pid!
    const before = cpuSeconds(pid)
    await sleep(systemClock, session.sizes.idleMs)
    const share = ((cpuSeconds(pid) - before) * 100_000) / session.sizes.idleMs
    const title = `idle watch of ${files} files`
    session.say(`${title}: ${formatValue(share)} % of a core`)
    return [
      row(`${title}, processor`, 'tidemark', share, '%'),
      row(`${title}, resident over a bare process`, 'tidemark', residentMb(pid) - bareMb, 'MB'),
    ]
  } finally {
    await running.stop()
  }
}

function stepRows(title: string, step: Pick<StepDone, 'ms' | 'cpuMs'>, subject = 'tidemark'): Row[] {
  return [row(title, subject, step.ms, 'ms'), row(`${title}, processor`, subject, step.cpuMs / 1_000, 's')]
}

function median(steps: readonly StepDone[]): StepDone {
  return [...steps].sort((one, other) => one.ms - other.ms)[Math.floor(steps.length / 2)]!
}
