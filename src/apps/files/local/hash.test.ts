import assert from 'node:assert/strict'
import {
  appendFileSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { after, afterEach, describe, test } from 'node:test'
import { digestsOf } from '../content-hash.ts'
import type { FilePlace } from './folder.ts'
import { hashSteps, readWhole } from './hash.ts'
import { lookAt } from './stat.ts'
import { DiskThreads } from './threads.ts'

const folders: string[] = []
const threads = new DiskThreads({ threads: 2 })

afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})
after(() => threads.stop())

function fresh(): string {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-hash-')))
  folders.push(folder)
  return folder
}

function file(content: string | Buffer): string {
  const path = join(fresh(), 'f')
  writeFileSync(path, content)
  return path
}

/** In a root that is its folder. */
function at(path: string): FilePlace {
  const folder = dirname(path)
  return { root: { path: folder, pair: 'd', markerId: 'm', look: lookAt(folder)! }, names: [basename(path)] }
}

describe('the hash of a file', () => {
  test('is that of its bytes, for an empty one and for one of several chunks', async () => {
    for (const size of [0, 1, 1024 * 1024, 3 * 1024 * 1024 + 17]) {
      const content = Buffer.alloc(size, 'some text ')
      const path = file(content)
      const hashed = await threads.hash(at(path), lookAt(path)!)
      assert.deepEqual(hashed, { outcome: 'done', ...digestsOf(content) })
    }
  })

  test('of a sparse file is that of its zeros', async () => {
    const path = file('')
    truncateSync(path, 40 * 1024 * 1024)
    const hashed = await threads.hash(at(path), lookAt(path)!)
    assert.deepEqual(hashed, { outcome: 'done', ...digestsOf(Buffer.alloc(40 * 1024 * 1024)) })
  })

  test('is not given for another file, or one that is gone or has become a folder', async () => {
    const path = file('x')
    const expect = lookAt(path)!
    appendFileSync(path, 'y')
    assert.deepEqual(await threads.hash(at(path), expect), { outcome: 'changed' })
    rmSync(path)
    assert.deepEqual(await threads.hash(at(path), expect), { outcome: 'gone' })
    mkdirSync(path)
    assert.deepEqual(await threads.hash(at(path), expect), { outcome: 'changed' })
  })

  test('is not given for what a link leads to, wherever on the way it is', async () => {
    const folder = fresh()
    mkdirSync(join(folder, 'outside'))
    writeFileSync(join(folder, 'outside/f'), 'secret')
    mkdirSync(join(folder, 'root'))
    symlinkSync('../outside', join(folder, 'root/d'))
    symlinkSync('../outside/f', join(folder, 'root/f'))
    const { root } = at(join(folder, 'root/f'))
    // As a look would have it that was led astray for a moment.
    const expect = lookAt(join(folder, 'outside/f'))!
    for (const names of [['d', 'f'], ['f']]) {
      assert.deepEqual(await threads.hash({ root, names }, expect), { outcome: 'gone' })
      assert.deepEqual(await threads.read({ root, names }, expect), { outcome: 'gone' })
      assert.deepEqual(readWhole({ root, names }, expect), { outcome: 'gone' })
    }
  })

  test('is not given when the file changes while it is read', () => {
    const path = file(Buffer.alloc(20 * 1024 * 1024))
    const steps = hashSteps(at(path), lookAt(path)!)
    assert.equal(steps.next().done, false)
    const fd = openSync(path, 'r+')
    writeFileSync(fd, 'edited')
    closeSync(fd)
    assert.deepEqual(steps.next(), { done: true, value: { outcome: 'changed' } })
  })

  test('is not given when the file is cut while it is read', () => {
    const path = file(Buffer.alloc(20 * 1024 * 1024))
    const steps = hashSteps(at(path), lookAt(path)!)
    steps.next()
    truncateSync(path, 5)
    assert.deepEqual(steps.next(), { done: true, value: { outcome: 'changed' } })
  })

  test('is not given when another file takes its name while it is read, nor that of the other', () => {
    const path = file(Buffer.alloc(20 * 1024 * 1024, 1))
    const steps = hashSteps(at(path), lookAt(path)!)
    steps.next()
    renameSync(path, `${path}-moved`)
    writeFileSync(path, 'another')
    assert.deepEqual(steps.next(), { done: true, value: { outcome: 'changed' } })
  })

  test('of a small file does not wait for that of a huge one in the same thread', async () => {
    const one = new DiskThreads({ threads: 1 })
    const huge = file('')
    truncateSync(huge, 4 * 1024 * 1024 * 1024)
    const small = file('small')
    const order: string[] = []
    const stop = new AbortController()
    const slow = one.hash(at(huge), lookAt(huge)!, stop.signal).then(
      () => order.push('huge'),
      () => order.push('huge stopped'),
    )
    await one.hash(at(small), lookAt(small)!).then(() => order.push('small'))
    stop.abort()
    await slow
    assert.deepEqual(order, ['small', 'huge stopped'])
    assert.equal((await one.hash(at(small), lookAt(small)!)).outcome, 'done', 'the thread goes on')
    await one.stop()
    await assert.rejects(one.hash(at(small), lookAt(small)!), { kind: 'transient' })
  })

  test('asked for with a signal that is aborted is not begun', async () => {
    const path = file('x')
    await assert.rejects(threads.hash(at(path), lookAt(path)!, AbortSignal.abort(new Error('stop'))), /stop/)
  })

  test('that cannot be read says so', async () => {
    const path = join(fresh(), 'x'.repeat(300))
    const expect = lookAt(file('x'))!
    await assert.rejects(threads.hash(at(path), expect), { code: 'path-unsafe' })
  })
})

test('a thread that is stopped refuses what it had, so that it is tried again', async () => {
  const one = new DiskThreads({ threads: 1 })
  const path = file('')
  truncateSync(path, 4 * 1024 * 1024 * 1024)
  const hashing = one.hash(at(path), lookAt(path)!)
  await Promise.all([one.stop(), assert.rejects(hashing, { kind: 'transient', code: 'disk-thread' })])
})
