import assert from 'node:assert/strict'
import {
  closeSync,
  watch as fsWatch,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, test } from 'node:test'
import { FakeClock } from '../../../base/clock.ts'
import type { TidemarkError } from '../../../base/errors.ts'
import { createFilter, filterSchema } from '../filter.ts'
import { ChangeBuffer, type Changes } from './change-buffer.ts'
import { createRoot, type Root } from './root.ts'
import { type RootWatch, type WatchOptions, watchRoot } from './watch.ts'
import type { Listener, WatchCall } from './watched-folders.ts'

const folders: string[] = []
const watches: RootWatch[] = []

afterEach(() => {
  for (const watch of watches.splice(0)) watch.close()
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true })
})

async function freshRoot(): Promise<Root> {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-watch-')))
  folders.push(folder)
  const marker = { markerId: 'm1', drive: 'home', createdAt: '2026-11-16T00:00:00Z' }
  return createRoot(join(folder, 'root'), marker)
}

type Watched = {
  watch: RootWatch
  looks: Changes[]
  problems: TidemarkError[]
  clock: FakeClock
  heard: Heard
}

/** Real events of the kernel; resolves as they come. */
class Heard {
  #count = 0
  #waiting: (() => void)[] = []

  readonly call: WatchCall = (path, options, listener) =>
    // Persistent: the test waits for it.
    fsWatch(path, { ...options, persistent: true }, (event, name) => {
      listener(event, name)
      this.#count += 1
      for (const wake of this.#waiting.splice(0)) wake()
    })

  /** Until it is true, looked at after every event. */
  async until(isSo: () => boolean): Promise<void> {
    while (!isSo()) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  get count(): number {
    return this.#count
  }
}

async function watchIt(root: Root, options: Partial<WatchOptions> = {}): Promise<Watched> {
  const [looks, problems, clock, heard] = [
    [] as Changes[],
    [] as TidemarkError[],
    new FakeClock(),
    new Heard(),
  ]
  const watch = await watchRoot({
    root,
    clock,
    filter: createFilter(filterSchema.parse({ skip: ['skipped'] }), undefined),
    onLook: (look) => looks.push(look),
    onProblem: (problem) => problems.push(problem),
    watch: heard.call,
    ...options,
  })
  watches.push(watch)
  return { watch, looks, problems, clock, heard }
}

/** All the folders that were told so far. */
function told({ watch, looks }: Watched): Set<string> {
  watch.flush()
  return new Set(
    looks.flatMap((look) => (look === 'everything' ? ['*'] : look.map((names) => names.join('/')))),
  )
}

const isLinux = process.platform === 'linux'

describe('a watched root', () => {
  test('has one watch a folder, without our own and those that are left out', async () => {
    const root = await freshRoot()
    for (const path of ['a/b/c', 'd', 'skipped/x']) mkdirSync(join(root.path, path), { recursive: true })
    for (let i = 0; i < 20; i++) writeFileSync(join(root.path, `a/${i}`), '')
    assert.equal((await watchIt(root)).watch.watches, isLinux ? 5 : 1)
  })

  test('tells the folder of a new, an edited and a deleted file', async () => {
    const root = await freshRoot()
    mkdirSync(join(root.path, 'a/b'), { recursive: true })
    writeFileSync(join(root.path, 'f'), '')
    const watched = await watchIt(root)
    writeFileSync(join(root.path, 'a/b/new'), 'x')
    await watched.heard.until(() => told(watched).has('a/b'))
    writeFileSync(join(root.path, 'f'), 'edited')
    await watched.heard.until(() => told(watched).has(''))
    assert.deepEqual([...told(watched)].sort(), ['', 'a/b'])
    rmSync(join(root.path, 'a/b/new'))
    watched.looks.length = 0
    await watched.heard.until(() => told(watched).has('a/b'))
  })

  test('watches folders that appear with all that is in them, and lets go of those that vanish', async () => {
    const root = await freshRoot()
    const watched = await watchIt(root)
    mkdirSync(join(root.path, '../outside/x/y'), { recursive: true })
    renameSync(join(root.path, '../outside'), join(root.path, 'in'))
    await watched.heard.until(() => told(watched).has(''))
    await turns(() => watched.watch.watches === (isLinux ? 4 : 1))
    writeFileSync(join(root.path, 'in/x/y/f'), 'x')
    await watched.heard.until(() => told(watched).has('in/x/y'))
    rmSync(join(root.path, 'in'), { recursive: true })
    await watched.heard.until(() => watched.watch.watches === 1)
  })

  test('tells the new path of what happens in a folder that was moved', async () => {
    const root = await freshRoot()
    mkdirSync(join(root.path, 'a/b'), { recursive: true })
    const watched = await watchIt(root)
    renameSync(join(root.path, 'a'), join(root.path, 'z'))
    mkdirSync(join(root.path, 'a'))
    await watched.heard.until(() => told(watched).has(''))
    await turns(() => watched.watch.watches === (isLinux ? 4 : 1))
    watched.looks.length = 0
    writeFileSync(join(root.path, 'z/b/f'), 'x')
    await watched.heard.until(() => told(watched).has('z/b'))
    writeFileSync(join(root.path, 'a/f'), 'x')
    await watched.heard.until(() => told(watched).has('a'))
    assert.ok(!told(watched).has('a/b'))
  })

  test('tells of every folder that moved once it is watched again, with all that are in it', async () => {
    const root = await freshRoot()
    mkdirSync(join(root.path, 'a/b/c'), { recursive: true })
    const watched = await watchIt(root)
    // Saved under the former path a moment before, and under the new one before there is a watch again.
    renameSync(join(root.path, 'a'), join(root.path, 'z'))
    writeFileSync(join(root.path, 'z/b/c/f'), 'x')
    await watched.heard.until(() => told(watched).has(''))
    const moved = isLinux ? ['z', 'z/b', 'z/b/c'] : ['']
    await turns(() => moved.every((folder) => told(watched).has(folder)))
    if (isLinux) assert.equal(watched.watch.watches, 4)
  })

  test('tells of what is renamed to a name that is left out, and not of what is new under one', async () => {
    const root = await freshRoot()
    mkdirSync(join(root.path, 'd'))
    writeFileSync(join(root.path, 'f'), 'x')
    let listener: Listener = () => undefined
    const watched = await watchIt(root, {
      watch: (path, _, listen) => {
        if (path.endsWith('/d')) listener = listen
        return { close: () => undefined, on: () => undefined as never }
      },
      platform: 'linux',
    })
    writeFileSync(join(root.path, 'd/new.tmp'), 'x')
    listener('rename', 'new.tmp')
    assert.deepEqual([...told(watched)], [])
    // The system's own time of the last change cannot be set: so it is waited for.
    await new Promise((resolve) => setTimeout(resolve, 2_100))
    renameSync(join(root.path, 'f'), join(root.path, 'd/f.tmp'))
    listener('rename', 'f.tmp')
    assert.deepEqual([...told(watched)], ['d'])
  })

  test('is silent about our own folder and about unfinished files', async () => {
    const root = await freshRoot()
    const watched = await watchIt(root)
    writeFileSync(join(root.path, '.tidemark/partial/x'), 'x')
    writeFileSync(join(root.path, '.f.swp'), 'x')
    await watched.heard.until(() => watched.heard.count > 0)
    assert.deepEqual([...told(watched)], [])
  })

  test('that needs more watches than there are says how to get more, and is scanned', async () => {
    const root = await freshRoot()
    for (const name of ['a', 'b', 'c']) mkdirSync(join(root.path, name))
    const closed: string[] = []
    let count = 0
    const call: WatchCall = (path) => {
      if (++count === 3) throw Object.assign(new Error('no space'), { code: 'ENOSPC' })
      return fakeWatcher(() => closed.push(path))
    }
    const { watch, problems, looks } = await watchIt(root, { watch: call, platform: 'linux' })
    assert.equal(watch.state, 'scans-only')
    assert.equal(watch.watches, 0)
    assert.equal(closed.length, 2)
    assert.equal(problems.length, 1)
    assert.match(problems[0]!.hint!, /sysctl fs\.inotify\.max_user_watches/)
    watch.flush()
    assert.deepEqual(looks, ['everything'])
  })

  test('where a full queue was heard in one turn, everything is looked at', async () => {
    const root = await freshRoot()
    let listener: Listener | undefined
    const call: WatchCall = (_path, _options, given) => {
      listener = given
      return fakeWatcher()
    }
    const watched = await watchIt(root, { watch: call, platform: 'linux' })
    for (let i = 0; i < 200_000; i++) listener!('change', null)
    await new Promise((resolve) => setImmediate(resolve))
    assert.deepEqual([...told(watched)], ['*'])
  })

  test('that hears more than the queue of the kernel holds is looked at as a whole', async () => {
    const root = await freshRoot()
    const queue = isLinux ? Number(readFileSync('/proc/sys/fs/inotify/max_queued_events', 'utf8')) : 0
    const watched = await watchIt(root)
    // Nothing is heard while this loop runs, so the queue fills; the same event twice in a row would be one.
    const fds = ['a', 'b'].map((name) => openSync(join(root.path, name), 'w'))
    for (let i = 0; i <= queue + 100; i++) writeSync(fds[i % 2]!, 'x')
    for (const fd of fds) closeSync(fd)
    await watched.heard.until(() => told(watched).has(''))
    if (isLinux) await turns(() => told(watched).has('*'))
  })

  test('on macOS and Windows is one watch of the whole tree', async () => {
    const root = await freshRoot()
    const calls: { path: string; recursive: boolean; listener: Listener }[] = []
    const call: WatchCall = (path, { recursive }, listener) => {
      calls.push({ path, recursive, listener })
      return fakeWatcher()
    }
    for (const platform of ['darwin', 'win32'] as const) {
      const watched = await watchIt(root, { watch: call, platform })
      const { listener, ...how } = calls.pop()!
      assert.deepEqual(how, { path: root.path, recursive: true })
      for (const path of ['f', 'a/b/f', 'c\\d\\f', '.tidemark/trash/x', 'a/skipped/f', 'x.tmp'])
        listener('rename', path)
      assert.deepEqual([...told(watched)].sort(), ['', 'a/b', 'c/d'])
      listener('rename', null)
      assert.ok(told(watched).has('*'))
    }
  })

  test('tells nothing once it is closed', async () => {
    const root = await freshRoot()
    let listener: Listener | undefined
    const call: WatchCall = (_path, _options, given) => {
      listener = given
      return fakeWatcher()
    }
    const watched = await watchIt(root, { watch: call, platform: 'linux' })
    watched.watch.close()
    listener!('change', 'f')
    await watched.clock.advance(60_000)
    assert.deepEqual(watched.looks, [])
    assert.equal(watched.watch.state, 'closed')
  })
})

function fakeWatcher(close: () => void = () => undefined): ReturnType<WatchCall> {
  return { close, on: () => undefined } as unknown as ReturnType<WatchCall>
}

/** Work that needs no event of the kernel: turns of the event loop. */
async function turns(isSo: () => boolean): Promise<void> {
  for (let turn = 0; turn < 10_000 && !isSo(); turn++) await new Promise((resolve) => setImmediate(resolve))
  assert.ok(isSo())
}

describe('the change buffer', () => {
  function buffer(foldersMax?: number) {
    const clock = new FakeClock()
    const looks: { at: number; look: Changes }[] = []
    const start = clock.now()
    const hand = (look: Changes): void => {
      looks.push({ at: clock.now() - start, look })
    }
    return { clock, looks, buffer: new ChangeBuffer({ clock, hand, ...(foldersMax && { foldersMax }) }) }
  }

  test('hands over two seconds after the last change, each folder once', async () => {
    const b = buffer()
    b.buffer.add(['a'])
    await b.clock.advance(1_500)
    b.buffer.add(['a'])
    b.buffer.add([])
    await b.clock.advance(1_999)
    assert.deepEqual(b.looks, [])
    await b.clock.advance(1)
    assert.deepEqual(b.looks, [{ at: 3_500, look: [['a'], []] }])
    await b.clock.advance(60_000)
    assert.equal(b.looks.length, 1)
    assert.equal(b.clock.pendingTimers, 0)
  })

  test('hands over after ten seconds where it never gets quiet', async () => {
    const b = buffer()
    for (let second = 0; second < 25; second++) {
      b.buffer.add([`${second}`])
      await b.clock.advance(1_000)
    }
    assert.deepEqual(
      b.looks.map(({ at }) => at),
      [10_000, 20_000],
    )
  })

  test('turns too many folders into everything', async () => {
    const b = buffer(10)
    for (let i = 0; i < 20; i++) b.buffer.add([`${i}`])
    await b.clock.advance(2_000)
    b.buffer.add(['after'])
    await b.clock.advance(2_000)
    assert.deepEqual(
      b.looks.map(({ look }) => look),
      ['everything', [['after']]],
    )
  })
})
