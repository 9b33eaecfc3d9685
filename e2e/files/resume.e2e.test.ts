/** Ctrl-C in the middle of large transfers, and a start after it: the bytes on the wire tell what was sent twice. */
import assert from 'node:assert/strict'
import { closeSync, mkdirSync, openSync, readdirSync, readFileSync, statSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { ANN } from '../../src/apps/files/cli/files.suite.ts'
import { quickXorHash } from '../../src/base/quick-xor-hash.ts'
import { syntheticBytes, syntheticHash } from '../../src/sim/onedrive/synthetic.ts'
import { CliWorld } from './cli-world.ts'

const MEBIBYTE = 2 ** 20
const BYTES = 64 * MEBIBYTE
const STOP_AT_BYTES = 20 * MEBIBYTE
/** A fragment counts as a whole or not at all: the one under way is sent again. */
const FRAGMENT_BYTES = 2_560 * 1024

const UP = { seed: 1, size: BYTES }
const DOWN = { seed: 2, size: BYTES }

function makeHere(path: string): void {
  mkdirSync(dirname(path), { recursive: true })
  const file = openSync(path, 'w')
  for (const piece of syntheticBytes(UP)) writeSync(file, piece)
  closeSync(file)
}

function moved({ sim }: CliWorld): { up: number; down: number } {
  return { up: sim.log.bytesOf('graph.session.put').received, down: sim.log.bytesOf('graph.download').sent }
}

/** What was fetched and kept. What the service sent is more: some of that was on its way when the connection was cut. */
function keptBytes(world: CliWorld): number {
  const folder = join(world.root(), '.tidemark/partial')
  return readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0)
}

test('stopped by Ctrl-C in the middle of a large upload and a large download, both go on where they were', async () => {
  const world = await CliWorld.start({
    drives: [{ account: ANN }],
    env: {
      TIDEMARK_FILES_CHUNK_SIZE: '2560KiB',
      TIDEMARK_BANDWIDTH_UPLOAD: '16MB',
      TIDEMARK_BANDWIDTH_DOWNLOAD: '16MB',
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
    // Zero would tell a script that both sides are in step.
    assert.equal(stopped.code, 1, stopped.stderr)
    const status = await world.run('files', 'status')
    assert.equal(status.code, 1)
    assert.match(status.stdout, /^\S+: stopped$/m)
    assert.match(
      status.stdout,
      /no process works on it, the last one was seen (?:now|.* ago)\n.*Go on with: tidemark files sync/,
    )
    assert.equal(world.there.has('up.bin'), false, 'half an upload is not visible')
    assert.equal(world.has('down.bin'), false, 'half a download is not in its place')
    const before = moved(world)
    assert.ok(before.up < BYTES && before.down < BYTES, JSON.stringify(before))
    const kept = keptBytes(world)
    assert.ok(kept > 0 && kept <= before.down, `${kept} of ${before.down} bytes were kept`)

    delete world.env.TIDEMARK_BANDWIDTH_UPLOAD
    delete world.env.TIDEMARK_BANDWIDTH_DOWNLOAD
    const { code, stdout, stderr } = await world.sync(world.root())
    assert.equal(code, 0, stdout + stderr)
    const after = moved(world)
    assert.ok(after.up - BYTES < 2 * FRAGMENT_BYTES, `${after.up - BYTES} bytes were sent twice`)
    assert.equal(after.down - before.down, BYTES - kept, 'only what was not kept is fetched')
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
