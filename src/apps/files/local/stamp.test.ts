import assert from 'node:assert/strict'
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { threadId } from 'node:worker_threads'
import { createRoot, type Root } from './root.ts'
import { isPast, untilPast } from './stamp.ts'
import { lookAt } from './stat.ts'

let folder: string
let root: Root
beforeEach(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-stamp-')))
  root = await createRoot(join(folder, 'root'), { markerId: 'm', drive: 'docs', createdAt: '2026' })
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** A disk whose clock says this, one after the other. */
function disk(...ticks: bigint[]): { ask: () => bigint; asked: () => number } {
  let asked = 0
  return { ask: () => ticks[Math.min(asked++, ticks.length - 1)]!, asked: () => asked }
}

test('a file is read when the tick is over in which it was last written', () => {
  const { ask, asked } = disk(7n, 7n, 7n, 8n)
  assert.equal([...untilPast(root, { ctimeNs: '7' }, ask)].length, 3)
  assert.equal(asked(), 4)
})

test('files from before are read at once, and cost no question each', () => {
  const { ask, asked } = disk(100n)
  for (let n = 0; n < 50; n++) assert.ok(isPast(root, { ctimeNs: String(n) }, ask))
  assert.equal(asked(), 1)
})

test('a clock that is set back is noticed, and a stamp that is ahead waits for nothing', () => {
  const { ask } = disk(1_000n, 7n)
  assert.ok(isPast(root, { ctimeNs: '5' }, ask))
  let files = 0
  while (isPast(root, { ctimeNs: '7' }, ask)) assert.ok(files++ < 100)
  assert.ok(isPast(root, { ctimeNs: '1000' }, ask))
})

test('whatever is written after that has another stamp, on this very disk', () => {
  const path = join(root.path, 'a')
  for (let n = 0; n < 200; n++) {
    writeFileSync(path, 'one')
    const before = lookAt(path)!
    for (const _ of untilPast(root, before));
    writeFileSync(path, 'two')
    assert.notEqual(lookAt(path)!.ctimeNs, before.ctimeNs)
  }
  assert.deepEqual(readdirSync(join(root.path, '.tidemark', 'partial')), [])
})

test('a link in the place of what is written for a stamp is not followed', () => {
  const partials = join(root.path, '.tidemark', 'partial')
  const precious = join(folder, 'precious')
  writeFileSync(precious, 'precious')
  symlinkSync(precious, join(partials, `stamp-${process.pid}-${threadId}.partial`))
  const before = lookAt(precious)!
  for (const _ of untilPast(root, before));
  assert.equal(readFileSync(precious, 'utf8'), 'precious')
  assert.deepEqual(readdirSync(partials), [])
})
