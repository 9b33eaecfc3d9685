import assert from 'node:assert/strict'
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { SimDrive } from '../../../sim/onedrive/sim-drive.ts'
import { deviceStep, furnish } from './drive.ts'
import { keepDrive } from './drive-journal.ts'

const SEED = 7
const BEGUN_MS = 1_000_000

describe('the drive of the demo', () => {
  let folder: string
  let nowMs: number
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'tidemark-demo-drive-'))
    nowMs = BEGUN_MS
  })
  afterEach(() => rmSync(folder, { recursive: true, force: true }))

  /** As a start of the demo makes it. */
  function start(): { sim: SimDrive; size: () => number } {
    let replayedMs: number | undefined = BEGUN_MS
    const now = (): number => replayedMs ?? nowMs
    const sim = new SimDrive({ name: 'you', account: 'you', type: 'personal', seed: SEED, now })
    furnish(sim.device, SEED)
    const at = (ms: number, run: () => void): void => {
      replayedMs = ms
      run()
    }
    const journal = keepDrive(sim.state, { folder, now: () => nowMs, at })
    replayedMs = undefined
    return { sim, size: () => journal.size }
  }

  test('is the same again after a start: ids, contents, the order of changes, what was deleted', () => {
    const { sim, size } = start()
    const began = sim.dump()
    for (let n = 0; n < 120; n++) {
      nowMs += 3_000
      deviceStep(sim, { seed: SEED, n: size(), hasConflict: n % 2 === 0 })
    }
    // As an upload of Tidemark comes in: large, and over a name that is taken.
    const content = sim.state.addContent(Buffer.alloc(20_000, 'x'))
    const target = { parent: sim.state.root, name: 'mine.txt', item: undefined, conflict: 'fail', times: {} }
    sim.commit(target as never, content)
    assert.throws(() => sim.commit(target as never, content), /already exists/)
    const dump = sim.dump()
    assert.notDeepEqual(dump, began)
    const again = start()
    assert.deepEqual(again.sim.dump(), dump)
    assert.equal(again.sim.state.seq, sim.state.seq)
    assert.equal(again.size(), size())
    assert.equal(again.sim.device.read('mine.txt')?.length, 20_000)
  })

  test('a line that was cut off is none, and what comes after it is written in its place', () => {
    const first = start()
    first.sim.device.write('a.txt', 'one')
    const file = join(folder, 'demo-drive.jsonl')
    const whole = readFileSync(file, 'utf8')
    appendFileSync(file, whole.replace('"n":0', '"n":1').slice(0, 40))
    const second = start()
    assert.equal(second.size(), 1)
    assert.equal(readFileSync(file, 'utf8'), whole)
    second.sim.device.write('b.txt', 'two')
    const { sim } = start()
    assert.deepEqual([sim.device.has('a.txt'), sim.device.has('b.txt')], [true, true])
  })

  test('steps differ, and the same number on the same drive gives the same step', () => {
    const texts = new Set<string>()
    const one = start().sim
    rmSync(join(folder, 'demo-drive.jsonl'), { force: true })
    const other = start().sim
    for (let n = 0; n < 60; n++) {
      const step = deviceStep(one, { seed: SEED, n, hasConflict: false })
      assert.deepEqual(deviceStep(other, { seed: SEED, n, hasConflict: false }), step)
      texts.add(step.text.split(' ')[0]!)
    }
    for (const verb of ['edited', 'made', 'renamed', 'deleted']) assert.ok(texts.has(verb), verb)
  })
})
