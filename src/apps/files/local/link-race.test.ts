/** Somebody who may write in the root replaces one of its folders by a link to elsewhere, again and again. */
import assert from 'node:assert/strict'
import { type ChildProcess, spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createFilter, filterSchema } from '../filter.ts'
import { readWhole } from './hash.ts'
import { createRoot } from './root.ts'
import { Scan } from './scan.ts'
import { TreeInMemory } from './tree-in-memory.suite.ts'

const SECRET = 'SECRET'
const LOOKS = 500

/** Exchanges the folder and the link without a pause until it is ended. */
const SWAPPER = `
const { renameSync } = require('node:fs')
const [folder, aside, link] = process.argv.slice(1)
process.stdout.write('swapping')
for (;;) {
  renameSync(folder, aside)
  renameSync(link, folder)
  renameSync(folder, link)
  renameSync(aside, folder)
}
`

async function swapping(paths: string[]): Promise<ChildProcess> {
  const child = spawn(process.execPath, ['-e', SWAPPER, '--', ...paths], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  await new Promise((resolve) => child.stdout!.once('data', resolve))
  return child
}

test('no name and no byte from outside of the root is taken in, whenever a folder is replaced by a link', async () => {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-race-')))
  const root = await createRoot(join(home, 'root'), { markerId: 'm', drive: 'd', createdAt: '2026' })
  for (const folder of ['root/d', 'outside']) mkdirSync(join(home, folder))
  for (let n = 0; n < 20; n++) {
    writeFileSync(join(home, `root/d/both-${n}`), 'inside')
    writeFileSync(join(home, `outside/both-${n}`), SECRET.repeat(10))
    writeFileSync(join(home, `outside/only-${n}`), SECRET)
  }
  symlinkSync(join(home, 'outside'), join(home, 'link'))
  const filter = createFilter(filterSchema.parse({}), undefined)
  const tree = new TreeInMemory(root.look)
  for await (const batch of new Scan({ root, tree, filter }).batches()) tree.see(batch)
  const child = await swapping([join(root.path, 'd'), join(home, 'aside'), join(home, 'link')])
  const ended = new Promise((resolve) => child.once('exit', resolve))
  const taken: string[] = []
  try {
    for (let look = 0; look < LOOKS; look++) {
      for await (const batch of new Scan({ root, tree, filter }).batches()) tree.see(batch)
      for (const row of [...tree.rows.values()].filter(({ type }) => type === 'file')) {
        const names = (await tree.path(row.id))!
        if (row.name.startsWith('only')) taken.push(row.name)
        if (row.size === 6) continue
        const read = readWhole({ root, names }, row)
        if (read.outcome === 'done') taken.push(Buffer.from(read.bytes).toString())
      }
      if (taken.length > 0) break
    }
  } finally {
    child.kill('SIGKILL')
    await ended
    rmSync(home, { recursive: true, force: true })
  }
  assert.deepEqual(taken, [])
})
