/** File commands through the real launcher: stopped, killed, watching, and within a server. */
import assert from 'node:assert/strict'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { ANN } from '../../src/apps/files/cli/files.suite.ts'
import { createContext } from '../../src/cli/context.ts'
import { ROOT } from '../../src/cli/jobs/jobs.suite.ts'
import { Output } from '../../src/cli/output/output.ts'
import { buildProgram } from '../../src/cli/program.ts'
import { CliWorld } from './cli-world.ts'

const FILES = 40

let world: CliWorld
beforeEach(async () => {
  world = await CliWorld.start({
    drives: [{ account: ANN, files: FILES, sizes: 'small' }],
    env: { TIDEMARK_FILES_POLL_SECONDS: '5' },
  })
})
afterEach(() => world.close())

describe('files sync as a process', () => {
  test('sets a folder up by a relative path, goes both ways, and ends in step', async () => {
    world.write('mine/note.txt', 'mine')
    const { code, stdout, stderr } = await world.sync('./Docs')
    assert.equal(code, 0, stderr)
    assert.match(stdout, new RegExp(`^Docs: done; ${FILES + 1} files, .*${FILES} downloaded, 1 uploaded`))
    assert.equal(world.thereNow()['mine/note.txt'], 'mine')
    for (const { path, kind } of world.drive.dump().items) {
      if (kind === 'file') assert.equal(world.has(path), true, path)
    }
    const verified = await world.run('files', 'verify')
    assert.equal(verified.code, 0, verified.stdout)
  })

  test('killed again and again, it goes on where it was, without a conflict', async () => {
    for (let kills = 0; kills < 4; kills++) await world.killAfter(14, 'files', 'sync', world.root())
    const { code, stdout, stderr } = await world.sync(world.root())
    assert.equal(code, 0, stdout + stderr)
    assert.equal((await world.run('files', 'verify')).code, 0)
    const [status] = await world.json<{ totals: { files: number }; conflicts: number }[]>('files', 'status')
    assert.deepEqual([status?.totals.files, status?.conflicts], [FILES, 0])
    assert.equal(
      Object.keys(world.thereNow()).some((path) => path.includes('.conflict-')),
      false,
    )
  })

  test('a missing folder ends it with 2, and OneDrive keeps everything', async () => {
    await world.setUp()
    renameSync(world.root(), world.root('away'))
    const before = world.thereNow()
    const { code, stderr } = await world.sync()
    assert.equal(code, 2)
    assert.match(stderr, /is not there/)
    assert.deepEqual(world.thereNow(), before)
  })
})

describe('files watch', () => {
  test('keeps both in step until Ctrl-C, which ends it in order', async () => {
    await world.setUp()
    const watching = world.begin('files', 'watch')
    const until = (isSo: () => boolean): Promise<void> => world.until(isSo, watching)
    await until(() => watching.said().includes('Watching'))
    world.write('deep/er/new.txt', 'from here')
    await until(() => world.thereNow()['deep/er/new.txt'] === 'from here')
    world.there.write('from-there.txt', 'from there')
    await until(() => world.has('from-there.txt') && world.read('from-there.txt') === 'from there')
    world.there.delete('from-there.txt')
    await until(() => !world.has('from-there.txt'))
    await until(() => watching.said().includes('Docs: deleted here from-there.txt'))
    world.write('what?.txt', 'OneDrive takes no such name')
    await until(() => watching.said().includes('Docs: 1 left alone: '))
    watching.child.kill('SIGINT')
    const { code, stdout, stderr } = await watching.ended
    assert.equal(code, 0, stderr)
    assert.match(stdout, /^Docs: done/)
    for (const line of [
      'Docs: folder made in OneDrive deep/er',
      'Docs: uploaded deep/er/new.txt (9 B)',
      'Docs: downloaded from-there.txt (10 B)',
    ]) {
      assert.ok(stderr.split('\n').includes(line), stderr)
    }
    assert.match(stderr, /Stopping; what is under way is kept/)
  })

  test('tells programs of each thing in a line', async () => {
    await world.setUp()
    const watching = world.begin('files', 'watch', '--json')
    await world.until(() => watching.said().includes('Watching'), watching)
    world.write('told.txt', 'of this')
    await world.until(() => watching.said().includes('"path":"told.txt"'), watching)
    watching.child.kill('SIGINT')
    const { stdout } = await watching.ended
    const told = stdout
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line))
    const { id: _, at: __, ...action } = told.find(({ type }) => type === 'action')
    assert.deepEqual(action, {
      type: 'action',
      folder: 'Docs',
      verb: 'upload',
      path: 'told.txt',
      row: 'EF13',
      bytes: 7,
      result: 'done',
      note: null,
    })
    assert.equal(told.at(-1).type, 'summary')
  })

  test('refuses a folder that nobody has set up', async () => {
    const { code, stderr } = await world.run('files', 'watch', './New')
    assert.equal(code, 2)
    assert.match(stderr, /No folder called \.\/New is kept in step/)
  })
})

describe('tidemark serve', () => {
  test('keeps folders in step, also one that is set up while it runs', async () => {
    const server = world.begin('serve', '--port', '0', '--json')
    await world.until(() => server.said().includes('"url"'), server)
    const { code, stderr } = await world.sync(world.root())
    assert.equal(code, 0, stderr)
    world.write('served.txt', 'served')
    // Within the round in which the server sees new folders.
    await world.until(() => world.thereNow()['served.txt'] === 'served', server)
    server.child.kill('SIGTERM')
    assert.equal((await server.ended).code, 0, server.said())
  })
})

describe('the document', () => {
  /** Commands of a page, with their flags. */
  function commandsOf(page: string): string[][] {
    const blocks = [...page.matchAll(/```sh\n(.*?)```/gs)].map(([, text = '']) => text)
    const lines = blocks.join('\n').split('\n')
    return lines
      .map((line) => line.replace(/\s+#.*$/, ''))
      .filter((line) => line.startsWith('tidemark files '))
      .map((line) => [...line.matchAll(/'[^']*'|\S+/g)].map(([word]) => word.replaceAll("'", '')).slice(1))
  }

  test('names only commands and flags that there are', () => {
    const commands = commandsOf(readFileSync(join(ROOT, 'docs', 'files.md'), 'utf8'))
    assert.ok(commands.length > 10)
    const program = buildProgram(
      createContext({ env: {}, output: new Output(process.stdout, process.stderr) }),
    )
    for (const words of commands) {
      let command = program
      let at = 0
      for (; at < words.length; at++) {
        const next = command.commands.find((one) => one.name() === words[at])
        if (!next) break
        command = next
      }
      assert.deepEqual(command.commands.length, 0, words.join(' '))
      const known = new Set(command.options.map(({ long }) => long))
      for (const flag of words.filter((word) => word.startsWith('--'))) {
        assert.ok(known.has(flag), `${words.join(' ')}: ${flag}`)
      }
    }
  })
})

test('an upload that was killed goes on where it was', async () => {
  await world.setUp()
  const bytes = Buffer.alloc(30 * 1024 * 1024, 'tidemark ')
  writeFileSync(join(world.root(), 'large.bin'), bytes)
  const slow = { do: 'latency' as const, latency: { kind: 'fixed' as const, ms: 500 } }
  world.sim.faults.set({ rules: [{ ...slow, methods: ['graph.session.put'] }] })
  const { child, ended } = world.begin('files', 'sync')
  const sent = (): number => world.sim.log.bytesOf('graph.session.put').received
  await world.until(() => sent() > bytes.length / 2)
  child.kill('SIGKILL')
  await ended
  assert.equal(world.there.has('large.bin'), false)
  world.sim.faults.set({ rules: [] })
  const { code, stderr } = await world.sync()
  assert.equal(code, 0, stderr)
  assert.deepEqual(world.there.read('large.bin'), bytes)
  // At most the piece that was under way was sent twice.
  assert.ok(sent() <= bytes.length + 12 * 1024 * 1024, `${sent()} bytes were sent`)
})
