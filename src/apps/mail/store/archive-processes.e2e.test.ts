import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { openArchive } from './archive.ts'
import { type ChildArgs, childOptions, generated } from './archive-child.suite.ts'
import { folderFor } from './archive-fixture.suite.ts'
import type { Archive } from './contract.ts'

const CHILD = new URL('./archive-child.suite.ts', import.meta.url).pathname

type Running = { child: ChildProcess; answered: Set<string>; ended: Promise<unknown>; errors: () => string }

/** `onAnswer` sees how many ids were answered so far. */
function start(args: ChildArgs, onAnswer: (count: number, child: ChildProcess) => void = () => {}): Running {
  const child = spawn(process.execPath, [CHILD, JSON.stringify(args)], { stdio: ['ignore', 'pipe', 'pipe'] })
  const answered = new Set<string>()
  let rest = ''
  let errors = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    const lines = (rest + text).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) answered.add(line)
    onAnswer(answered.size, child)
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  return { child, answered, ended: once(child, 'close'), errors: () => errors }
}

/** Looked up in the files themselves: every id with the shards that have it. */
function idsInFiles(folder: string): Map<string, string[]> {
  const ids = new Map<string, string[]>()
  for (const name of globSync('[0-9]*.db', { cwd: folder })) {
    const db = new DatabaseSync(join(folder, name), { readOnly: true })
    for (const { id } of db.prepare('SELECT id FROM messages').all() as { id: string }[]) {
      ids.set(id, [...(ids.get(id) ?? []), name])
    }
    db.close()
  }
  return ids
}

async function assertSound(archive: Archive, expected: Iterable<string>): Promise<void> {
  const proofs = await archive.prove([...expected])
  assert.deepEqual(
    proofs.filter(({ state }) => state !== 'proven'),
    [],
  )
  for await (const event of archive.verify()) {
    assert.ok(
      event.type !== 'message' && (event.type !== 'shard' || event.state === 'ok'),
      JSON.stringify(event),
    )
  }
  const twice = [...idsInFiles(archive.folder)].filter(([, shards]) => shards.length > 1)
  assert.deepEqual(twice, [])
}

test('what was answered before kill -9 is there, whole and once, and storing goes on', async (context) => {
  const folder = folderFor(context)
  const args: ChildArgs = { folder, count: 400, order: 'up', source: 'gmail', writers: 2 }
  const answered = new Set<string>()
  for (const [round, killAt] of [1, 60, 140, 230, 330].entries()) {
    const order = round % 2 === 0 ? 'up' : 'down'
    const running = start({ ...args, order }, (count, child) => {
      if (count >= killAt) child.kill('SIGKILL')
    })
    await running.ended
    assert.equal(running.child.signalCode, 'SIGKILL', running.errors())
    for (const id of running.answered) answered.add(id)
    const archive = await openArchive(childOptions(args))
    await assertSound(archive, answered)
    await archive.close()
  }
  const last = start(args)
  await last.ended
  assert.equal(last.child.exitCode, 0, last.errors())
  const archive = await openArchive(childOptions(args))
  const ids = Array.from({ length: args.count }, (_, index) => `m${index}`)
  await assertSound(archive, ids)
  assert.equal(idsInFiles(folder).size, args.count)
  for (const index of [0, 7, 10, args.count - 1]) {
    assert.deepEqual(Buffer.from(await archive.raw(`m${index}`)), Buffer.from(generated(index).raw))
  }
  assert.ok((await archive.shards()).length > 4)
  await archive.close()
})

test('two processes and an import write the same messages at once, and each is there once', async (context) => {
  const folder = folderFor(context)
  const args: ChildArgs = { folder, count: 300, order: 'up', source: 'gmail', writers: 2 }
  const running = [
    start(args),
    start({ ...args, order: 'down', writers: 1 }),
    start({ ...args, order: 'down', source: 'import', writers: 1 }),
  ]
  for (const one of running) {
    await one.ended
    assert.equal(one.child.exitCode, 0, one.errors())
    assert.equal(one.answered.size, args.count)
  }
  const archive = await openArchive(childOptions(args))
  await assertSound(archive, running[0]!.answered)
  assert.equal(idsInFiles(folder).size, args.count)
  await archive.close()
})
