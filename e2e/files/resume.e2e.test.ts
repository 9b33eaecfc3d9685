/** Ctrl-C in the middle of large transfers, and a start after it: the bytes on the wire tell what was sent twice. */
import assert from 'node:assert/strict'
import { closeSync, mkdirSync, openSync, readFileSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { ANN } from '../../src/cli/files.suite.ts'
import { quickXorHash } from '../../src/quick-xor-hash.ts'
import { syntheticBytes, syntheticHash } from '../../src/sim/onedrive/synthetic.ts'
import { CliWorld } from './cli-world.ts'

const MEBIBYTE = 2 ** 20
const BYTES = 64 * MEBIBYTE
const STOP_AT_BYTES = 20 * MEBIBYTE
/** A fragment counts as a whole or not at all: the one under way is sent again. */
const FRAGMENT_BYTES = 2_560 * 1024
/** What was on its way when the connection was cut, and never read. */
const IN_FLIGHT_BYTES_MAX = 8 * MEBIBYTE

const UP = { seed: 1, size: BYTES }
const DOWN = { seed: 2, size: BYTES }

function makeHere(path: string): void {
  mkdirSync(dirname(path), { recursive: true })
  const file = openSync(path, 'w')
  for (const piece of syntheticBytes(UP)) writeSync(file, piece)
  closeSync(file)
}

function moved({ sim }: CliWorld): { up: number; down: number } {
  const bytes = Object.values(sim.log.counts().bytes)
  const sum = (of: 'received' | 'sent'): number => bytes.reduce((all, one) => all + one[of], 0)
  return { up: sum('received'), down: sum('sent') }
}

test('stopped by Ctrl-C in the middle of a large upload and a large download, both go on where they were', async () => {
  const world = await CliWorld.start({
    drives: [{ account: ANN }],
    env: {
      TIDEMARK_FILES_CHUNK_SIZE: '2560KiB',
      ...{ TIDEMARK_BANDWIDTH_UPLOAD: '16MB', TIDEMARK_BANDWIDTH_DOWNLOAD: '16MB' },
    },
  })
  try {
    makeHere(join(world.root(), 'up.bin'))
    world.there.write('down.bin', DOWN)
    const first = world.begin('files', 'sync', world.root())
    const isHalfWay = (): boolean => moved(world).up > STOP_AT_BYTES && moved(world).down > STOP_AT_BYTES
    await world.until(isHalfWay, first)
    first.child.kill('SIGINT')
    const stopped = await first.ended
    assert.notEqual(stopped.code, null, 'it ended by itself')
    assert.equal(world.there.has('up.bin'), false, 'half an upload is not visible')
    assert.equal(world.has('down.bin'), false, 'half a download is not in its place')
    const before = moved(world)
    assert.ok(before.up < BYTES && before.down < BYTES, JSON.stringify(before))

    delete world.env.TIDEMARK_BANDWIDTH_UPLOAD
    delete world.env.TIDEMARK_BANDWIDTH_DOWNLOAD
    const { code, stdout, stderr } = await world.sync(world.root())
    assert.equal(code, 0, stdout + stderr)
    const after = moved(world)
    const twice = { up: after.up - BYTES, down: after.down - BYTES }
    assert.ok(twice.up < 2 * FRAGMENT_BYTES, `${twice.up} bytes were sent twice`)
    assert.ok(twice.down < IN_FLIGHT_BYTES_MAX, `${twice.down} bytes were fetched twice`)
    assert.equal(quickXorHash(readFileSync(join(world.root(), 'down.bin'))), syntheticHash(DOWN))
    const sent = world.drive.dump().items.find(({ path }) => /up\.bin$/.test(path))
    assert.equal(sent?.hash, syntheticHash(UP))
  } finally {
    await world.close()
  }
})

/** Of `files put`. */
const PIECE_BYTES = 10 * MEBIBYTE

test('killed in the middle of a large put, the same command goes on where it was', async () => {
  const world = await CliWorld.start({ drives: [{ account: ANN }] })
  try {
    assert.equal((await world.sync(world.root())).code, 0)
    const path = join(world.place, 'up.bin')
    makeHere(path)
    const pieces = (): number => world.sim.log.counts().requests['graph.session.put']?.['202'] ?? 0
    world.sim.faults.set({ rules: [{ do: 'stall', ms: null, methods: ['graph.session.put'], skip: 3 }] })
    const put = world.begin('files', 'put', path, 'up.bin')
    await world.until(() => pieces() === 3, put)
    put.child.kill('SIGKILL')
    await put.ended
    assert.equal(world.there.has('up.bin'), false, 'half of it is not visible')
    world.sim.faults.clear()
    const before = world.sim.log.bytesOf('graph.session.put').received
    const { code, stderr } = await world.run('files', 'put', path, 'up.bin')
    assert.equal(code, 0, stderr)
    assert.match(stderr, /^Goes on after /m)
    const sent = world.sim.log.bytesOf('graph.session.put').received - before
    assert.equal(sent, BYTES - 3 * PIECE_BYTES)
    const item = world.drive.dump().items.find(({ path: there }) => /up\.bin$/.test(there))
    assert.equal(item?.hash, syntheticHash(UP))
  } finally {
    await world.close()
  }
})
