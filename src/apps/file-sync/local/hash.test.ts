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
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, afterEach, describe, test } from 'node:test'
import { quickXorHash } from '../../../quick-xor-hash.ts'
import { hashSteps } from './hash.ts'
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

describe('the hash of a file', () => {
  test('is that of its bytes, for an empty one and for one of several chunks', async () => {
    for (const size of [0, 1, 1024 * 1024, 3 * 1024 * 1024 + 17]) {
      const content = Buffer.alloc(size, 'some text ')
      const path = file(content)
      const hashed = await threads.hash(path, lookAt(path)!)
      assert.deepEqual(hashed, { outcome: 'done', hash: quickXorHash(content) })
    }
  })

  test('of a sparse file is that of its zeros', async () => {
    const path = file('')
    truncateSync(path, 40 * 1024 * 1024)
    const hashed = await threads.hash(path, lookAt(path)!)
    assert.deepEqual(hashed, { outcome: 'done', hash: quickXorHash(Buffer.alloc(40 * 1024 * 1024)) })
  })

  test('is not given for another file, or one that is gone or has become a folder', async () => {
    const path = file('x')
    const expect = lookAt(path)!
    appendFileSync(path, 'y')
    assert.deepEqual(await threads.hash(path, expect), { outcome: 'changed' })
    rmSync(path)
    assert.deepEqual(await threads.hash(path, expect), { outcome: 'gone' })
    mkdirSync(path)
    assert.deepEqual(await threads.hash(path, expect), { outcome: 'changed' })
  })

  test('is not given when the file changes while it is read', () => {
    const path = file(Buffer.alloc(20 * 1024 * 1024))
    const steps = hashSteps(path, lookAt(path)!)
    assert.equal(steps.next().done, false)
    const fd = openSync(path, 'r+')
    writeFileSync(fd, 'edited')
    closeSync(fd)
    assert.deepEqual(steps.next(), { done: true, value: { outcome: 'changed' } })
  })

  test('is not given when the file is cut while it is read', () => {
    const path = file(Buffer.alloc(20 * 1024 * 1024))
    const steps = hashSteps(path, lookAt(path)!)
    steps.next()
    truncateSync(path, 5)
    assert.deepEqual(steps.next(), { done: true, value: { outcome: 'changed' } })
  })

  test('is that of the file that was opened, whatever takes its name', () => {
    const content = Buffer.alloc(20 * 1024 * 1024, 1)
    const path = file(content)
    const steps = hashSteps(path, lookAt(path)!)
    steps.next()
    renameSync(path, `${path}-moved`)
    writeFileSync(path, 'another')
    assert.deepEqual(steps.next(), { done: true, value: { outcome: 'done', hash: quickXorHash(content) } })
  })

  test('of a small file does not wait for that of a huge one in the same thread', async () => {
    const one = new DiskThreads({ threads: 1 })
    const huge = file('')
    truncateSync(huge, 4 * 1024 * 1024 * 1024)
    const small = file('small')
    const order: string[] = []
    const stop = new AbortController()
    const slow = one.hash(huge, lookAt(huge)!, stop.signal).then(
      () => order.push('huge'),
      () => order.push('huge stopped'),
    )
    await one.hash(small, lookAt(small)!).then(() => order.push('small'))
    stop.abort()
    await slow
    assert.deepEqual(order, ['small', 'huge stopped'])
    assert.equal((await one.hash(small, lookAt(small)!)).outcome, 'done', 'the thread goes on')
    await one.stop()
    await assert.rejects(one.hash(small, lookAt(small)!), { kind: 'transient' })
  })

  test('asked for with a signal that is aborted is not begun', async () => {
    const path = file('x')
    await assert.rejects(threads.hash(path, lookAt(path)!, AbortSignal.abort(new Error('stop'))), /stop/)
  })

  test('that cannot be read says so', async () => {
    const path = join(fresh(), 'x'.repeat(300))
    const expect = lookAt(file('x'))!
    await assert.rejects(threads.hash(path, expect), { code: 'ENAMETOOLONG' })
  })
})

test('a thread that is stopped refuses what it had, so that it is tried again', async () => {
  const one = new DiskThreads({ threads: 1 })
  const path = file('')
  truncateSync(path, 4 * 1024 * 1024 * 1024)
  const hashing = one.hash(path, lookAt(path)!)
  await Promise.all([one.stop(), assert.rejects(hashing, { kind: 'transient', code: 'disk-thread' })])
})
