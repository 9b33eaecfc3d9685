import assert from 'node:assert/strict'
import { closeSync, ftruncateSync, mkdirSync, openSync, utimesSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { test } from 'node:test'
import { sleep, systemClock } from '../../base/clock.ts'
import { streamOf } from './folder-pair.ts'
import { type FileWorld, PAIR, startFileWorld } from './sync.suite.ts'

const MEGABYTE = 1_000_000
const HUGE_BYTES = 10_000 * MEGABYTE
/** One piece of an upload is 10 MB: an edit that had to wait for a file would wait for a thousand of them. */
const BYTES_MEANWHILE_MAX = HUGE_BYTES / 20
const SMALL_FILES = 600
const WAIT_MS_MAX = 240_000
const LOOK_MS = 10

async function withWorld(
  rates: { upload: number; download: number },
  run: (world: FileWorld) => Promise<void>,
): Promise<void> {
  const world = await startFileWorld({ settings: { bandwidth: rates } })
  try {
    await run(world)
  } finally {
    await world.close()
  }
}

async function until(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  const untilMs = systemClock.monotonicMs() + WAIT_MS_MAX
  while (!(await isSo())) {
    if (systemClock.monotonicMs() > untilMs) throw new Error(`never so: ${what}`)
    await sleep(systemClock, LOOK_MS)
  }
}

/** Takes no room on the disk; each is another one. */
function writeSparse(world: FileWorld, name: string, bytes: number): void {
  mkdirSync(dirname(world.path(name)), { recursive: true })
  const file = openSync(world.path(name), 'w')
  writeSync(file, name)
  ftruncateSync(file, bytes)
  closeSync(file)
}

function begin(world: FileWorld): Promise<unknown> {
  return world.engine.enqueue(world.files.kinds.sync, { drive: PAIR }, { stream: streamOf(PAIR) })
}

/** As the watch asks for it, once a folder has been quiet for long enough. */
function lookAtTop(world: FileWorld): Promise<unknown> {
  return world.engine.enqueue(
    world.files.kinds.look,
    { drive: PAIR, folders: [[]] },
    { stream: streamOf(PAIR) },
  )
}

function uploadedBytes(world: FileWorld, path: string): number {
  return world.files.transfers.list(PAIR).find((transfer) => transfer.path === path)?.doneBytes ?? 0
}

test('while all transfers are of huge files, a small edit goes up and a small file comes down long before any of them is there', () =>
  withWorld({ upload: MEGABYTE, download: MEGABYTE }, async (world) => {
    world.write('note.txt', 'first')
    await world.sync()
    for (let n = 0; n < 10; n++) {
      writeSparse(world, `huge up/${n}`, HUGE_BYTES + n)
      world.there.device.write(`huge down/${n}`, { seed: n, size: HUGE_BYTES })
    }
    await begin(world)
    const { transfers } = world.files
    await until('huge files are on their way, both ways', () => {
      const { upload, download } = transfers.numbers(PAIR)
      return upload.count >= 7 && download.count >= 7 && upload.doneBytes > 0 && download.doneBytes > 0
    })

    world.write('note.txt', 'an edit')
    const doneBytes = (): number => {
      const { upload, download } = transfers.numbers(PAIR)
      return upload.doneBytes + download.doneBytes
    }
    const before = doneBytes()
    await lookAtTop(world)
    await until('the edit is up', () => world.there.device.read('note.txt')?.toString() === 'an edit')

    world.there.device.write('other.txt', 'from elsewhere')
    await world.engine.enqueue(world.files.kinds.delta, { drive: PAIR }, { stream: streamOf(PAIR) })
    await until('the file is down', () => world.has('other.txt'))
    const meanwhile = doneBytes() - before
    assert.ok(meanwhile < BYTES_MEANWHILE_MAX, `${meanwhile} bytes of the huge files went before`)
    assert.ok(transfers.numbers(PAIR).upload.count >= 7, 'the huge files are still on their way')
  }))

test('a flood of small files neither stops a large transfer nor keeps one from beginning', () =>
  withWorld({ upload: 2 * MEGABYTE, download: MEGABYTE }, async (world) => {
    writeSparse(world, 'first large', HUGE_BYTES)
    await begin(world)
    await until('the first is on its way', () => uploadedBytes(world, 'first large') > 0)
    for (let n = 0; n < SMALL_FILES; n++) world.write(`small ${n}`, `${n} `.repeat(5_000))
    utimesSync(world.path('small 0'), 1, 1)
    writeSparse(world, 'second large', HUGE_BYTES)
    const { device } = world.there
    await lookAtTop(world)
    await until('the flood has begun', () => device.has('small 0') || device.has('small 1'))
    const before = uploadedBytes(world, 'first large')
    const left = (): number => {
      let count = 0
      for (let n = 0; n < SMALL_FILES; n++) if (!device.has(`small ${n}`)) count += 1
      return count
    }
    await until('the second large one is on its way', () => uploadedBytes(world, 'second large') > 0)
    assert.ok(left() > 0, 'the second began while small files were waiting')
    await until('the first went on', () => uploadedBytes(world, 'first large') > before + MEGABYTE / 2)
    assert.ok(left() > 0, 'the first went on while small files were waiting')
    await until('the flood is over', () => left() === 0)
  }))

test('news from OneDrive is asked for before the calls of uploads that wait for their turn', async () => {
  const world = await startFileWorld({ settings: { requestsPerSecondStart: 10, requestsPerSecondMax: 10 } })
  try {
    const [name, spec] = Object.entries(world.files.budgets())[0]!
    const budget = world.engine.limits.budget(name, spec)
    const call = budget.call.bind(budget)
    let waiting: object[] = []
    let overtaken: { before: object[]; left: number } | undefined
    budget.call = (cost, fn, options) => {
      const self = {}
      const before = waiting
      waiting = [...waiting, self]
      const started: typeof fn = (signal) => {
        waiting = waiting.filter((one) => one !== self)
        const left = before.filter((one) => waiting.includes(one)).length
        if (options?.name === 'delta' && before.length >= 4) overtaken ??= { before, left }
        return fn(signal)
      }
      return call(cost, started, options)
    }
    for (let n = 0; n < 150; n++) world.write(`${n}`, `${n}`)
    await begin(world)
    await until('uploads wait for their turn', () => waiting.length >= 6)
    await world.engine.enqueue(world.files.kinds.delta, { drive: PAIR }, { stream: streamOf(PAIR) })
    await until('it was asked for', () => overtaken !== undefined)
    // One may have had its turn already.
    assert.ok(overtaken!.left >= overtaken!.before.length - 1, JSON.stringify(overtaken))
  } finally {
    await world.close()
  }
})
