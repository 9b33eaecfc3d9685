import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { type TidemarkError, UsageError } from '../base/errors.ts'
import { Catalog } from './catalog.ts'
import { changeSetting } from './change.ts'
import { lockFile } from './file-lock.ts'
import { coreSections } from './settings.ts'

const catalog = new Catalog(coreSections)
const folder = mkdtempSync(join(tmpdir(), 'tidemark-change-'))
after(() => rmSync(folder, { recursive: true, force: true }))

function fileWith(text: string | undefined): string {
  const path = join(mkdtempSync(join(folder, 'home-')), 'config.toml')
  if (text !== undefined) writeFileSync(path, text, { mode: 0o600 })
  return path
}

function change(path: string, key: string, text: string | undefined) {
  const flags = { config: path }
  return changeSetting({
    catalog,
    env: {},
    flags,
    file: { path, origin: { kind: 'flag', name: '--config' } },
    key,
    text,
  })
}

const read = (path: string): string => readFileSync(path, 'utf8')

/** Everything that a person may be shown of it. */
function shown(thrown: unknown): string {
  const { message, hint, stack, cause } = thrown as TidemarkError
  return [message, hint, stack, cause instanceof Error ? `${cause.message} ${cause.stack}` : ''].join('\n')
}

test('of a file that is broken the place is told, and none of its lines', async () => {
  const path = fileWith('[ledger]\ntoken = "s3cret\nurl = "postgres://ann:pa55@db/t"\n')
  const before = read(path)
  await assert.rejects(change(path, 'engine.workers', '4'), (thrown) => {
    assert.ok(thrown instanceof UsageError)
    assert.equal(thrown.code, 'config-broken')
    assert.match(thrown.message, /config\.toml:2:\d+: not valid TOML/)
    assert.doesNotMatch(shown(thrown), /s3cret|pa55/)
    return true
  })
  assert.equal(read(path), before)
})

describe('who may read the file', () => {
  test('stays so: its owner, its group, its mode without that for others', async () => {
    const path = fileWith('[engine]\nworkers = 2\n')
    const isRoot = process.geteuid?.() === 0
    if (isRoot) chownSync(path, 0, 1000)
    chmodSync(path, 0o640)
    const { uid, gid } = statSync(path)
    assert.equal((await change(path, 'engine.workers', '4')).isClosed, false)
    const now = statSync(path)
    assert.deepEqual([now.uid, now.gid, now.mode & 0o777], [uid, gid, 0o640])
    chmodSync(path, 0o664)
    assert.equal((await change(path, 'engine.workers', '5')).isClosed, true)
    assert.equal(statSync(path).mode & 0o777, 0o660)
  })

  test('is its owner alone where it is new, who is that of the folder', async () => {
    const path = fileWith(undefined)
    if (process.geteuid?.() === 0) chownSync(join(path, '..'), 1000, 1000)
    await change(path, 'engine.workers', '4')
    const { uid, mode } = statSync(path)
    assert.deepEqual([uid, mode & 0o777], [statSync(join(path, '..')).uid, 0o600])
    assert.deepEqual(readdirSync(join(path, '..')), ['config.toml'])
  })
})

describe('a link to the file', () => {
  test('stays a link, and what it leads to is changed', async () => {
    const target = fileWith('[engine]\nworkers = 2\n')
    const path = join(mkdtempSync(join(folder, 'link-')), 'config.toml')
    symlinkSync(target, path)
    await change(path, 'engine.workers', '4')
    assert.ok(lstatSync(path).isSymbolicLink())
    assert.equal(read(target), '[engine]\nworkers = 4\n')
  })

  test('that leads to nothing is not replaced by a file', async () => {
    const path = fileWith(undefined)
    symlinkSync(join(folder, 'nothing.toml'), path)
    await assert.rejects(change(path, 'engine.workers', '4'), { code: 'config-unwritable' })
    assert.ok(lstatSync(path).isSymbolicLink())
    assert.ok(!existsSync(join(folder, 'nothing.toml')))
  })
})

describe('two that change the file', () => {
  test('come one after the other: the second reads what the first has written', async () => {
    const path = fileWith('')
    const unlock = await lockFile(path)
    const second = change(path, 'engine.workers', '4')
    await new Promise(setImmediate)
    // What the first has read, with its own change.
    writeFileSync(path, '[log]\nlevel = "debug"\n')
    unlock()
    await second
    assert.equal(read(path), '[log]\nlevel = "debug"\n\n[engine]\nworkers = 4\n')
    assert.deepEqual(readdirSync(join(path, '..')), ['config.toml'], 'no lock is left')
  })

  test('as processes lose nothing of what was set', async () => {
    const path = fileWith('')
    const url = new URL('./change.ts', import.meta.url).href
    const worker = (key: string): string => `
      import { changeSetting } from ${JSON.stringify(url)}
      import { Catalog } from ${JSON.stringify(new URL('./catalog.ts', import.meta.url).href)}
      import { coreSections } from ${JSON.stringify(new URL('./settings.ts', import.meta.url).href)}
      import { readFileSync } from 'node:fs'
      const path = ${JSON.stringify(path)}
      const file = { path, origin: { kind: 'flag', name: '--config' } }
      const input = { catalog: new Catalog(coreSections), env: {}, flags: { config: path }, file }
      for (let n = 101; n <= 130; n++) {
        await changeSetting({ ...input, key: 'ledger.${key}', text: String(n) })
        if (!readFileSync(path, 'utf8').includes('${key} = ' + n + '\\n')) process.exit(1)
      }`
    const codes = await Promise.all(
      ['prune_after_days', 'failed_after_days', 'audit_after_days'].map(async (key) => {
        const child = spawn(process.execPath, ['--input-type=module', '-e', worker(key)], {
          stdio: 'inherit',
        })
        return (await once(child, 'exit'))[0] as number
      }),
    )
    assert.deepEqual(codes, [0, 0, 0])
    assert.deepEqual(readdirSync(join(path, '..')), ['config.toml'])
  })

  test('do not wait for one that was killed', async () => {
    const path = fileWith('')
    const url = new URL('./file-lock.ts', import.meta.url).href
    const held = `await (await import(${JSON.stringify(url)})).lockFile(${JSON.stringify(path)}); process.kill(process.pid, 'SIGKILL')`
    spawnSync(process.execPath, ['--input-type=module', '-e', held], { stdio: 'inherit' })
    assert.ok(existsSync(`${path}.lock`))
    await change(path, 'engine.workers', '4')
    assert.deepEqual(readdirSync(join(path, '..')), ['config.toml'])
  })

  test('let go of it where the change fails', async () => {
    const path = fileWith('')
    await assert.rejects(change(path, 'engine.workers', 'many'), { code: 'config-invalid' })
    assert.deepEqual(readdirSync(join(path, '..')), ['config.toml'])
  })
})

test('where nothing can be written, the file is named and what to do', async () => {
  const path = fileWith('')
  chmodSync(path, 0o644)
  chmodSync(folder, 0o755)
  const isRoot = process.geteuid?.() === 0
  chmodSync(join(path, '..'), isRoot ? 0o755 : 0o555)
  if (isRoot) process.seteuid!(65_534)
  try {
    await assert.rejects(change(path, 'engine.workers', '4'), (thrown) => {
      assert.ok(thrown instanceof UsageError)
      assert.equal(thrown.code, 'config-unwritable')
      assert.equal(
        thrown.message,
        `The configuration file ${path} was not changed: this user may not write in its folder.`,
      )
      assert.match(thrown.hint ?? '', /^Run this as the user to whom the file and its folder belong/)
      return true
    })
  } finally {
    if (isRoot) process.seteuid!(0)
    chmodSync(join(path, '..'), 0o755)
  }
})

test('no folder is made for a value that is wrong', async () => {
  const path = join(folder, 'none', 'config.toml')
  await assert.rejects(change(path, 'engine.workers', 'many'), { code: 'config-invalid' })
  assert.ok(!existsSync(join(folder, 'none')))
})
