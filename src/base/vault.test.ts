import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { Worker } from 'node:worker_threads'
import fc from 'fast-check'
import { TidemarkError, UsageError } from './errors.ts'
import { openVault, type Vault } from './vault.ts'

const folder = mkdtempSync(join(tmpdir(), 'tidemark-vault-'))
after(() => rmSync(folder, { recursive: true, force: true }))

const freshHome = (): string => mkdtempSync(join(folder, 'home-'))
const someKey = (): string => randomBytes(32).toString('base64')
const withKey = (key = someKey()): Promise<Vault> =>
  openVault({ env: { TIDEMARK_MASTER_KEY: key }, home: join(folder, 'nowhere') })

function isKeyTrouble(error: unknown): boolean {
  return (
    error instanceof TidemarkError &&
    error.kind === 'auth' &&
    error.code === 'vault-key' &&
    error.hint !== undefined
  )
}

describe('a sealed secret', () => {
  test('opens to the same text under the same name and key, whatever the text and the name', async () => {
    const key = someKey()
    const [one, other] = [await withKey(key), await withKey(key)]
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme', maxLength: 300 }),
        fc.string({ unit: 'grapheme' }),
        (name, text) => {
          assert.equal(other.open(name, one.seal(name, text)), text)
        },
      ),
    )
  })

  test('is another one each time', async () => {
    const vault = await withKey()
    const sealed = new Set(
      Array.from({ length: 50 }, () => Buffer.from(vault.seal('a', 'text')).toString('hex')),
    )
    assert.equal(sealed.size, 50)
  })

  test('does not open with another key or under another name', async () => {
    const vault = await withKey()
    const sealed = vault.seal('gmail:ann', 'secret')
    const stranger = await withKey()
    assert.throws(() => stranger.open('gmail:ann', sealed), isKeyTrouble)
    assert.throws(() => vault.open('gmail:bob', sealed), isKeyTrouble)
  })

  test('does not open after any change of any byte, nor cut or extended', async () => {
    const vault = await withKey()
    const sealed = vault.seal('a', 'a secret text')
    for (let at = 0; at < sealed.length; at += 1) {
      const changed = Uint8Array.from(sealed)
      changed[at]! ^= 1
      assert.throws(() => vault.open('a', changed), isKeyTrouble, `byte ${at}`)
    }
    for (let length = 0; length < sealed.length; length += 1) {
      assert.throws(() => vault.open('a', sealed.slice(0, length)), isKeyTrouble, `length ${length}`)
    }
    assert.throws(() => vault.open('a', Uint8Array.from([...sealed, 0])), isKeyTrouble)
  })

  test('never stands in an error', async () => {
    const vault = await withKey()
    const sealed = vault.seal('a', 'hunter2')
    assert.throws(
      () => vault.open('b', sealed),
      (error: TidemarkError) => !`${error.message} ${error.hint}`.includes('hunter2'),
    )
  })
})

describe('the master key', () => {
  test('is made by the first seal, readable by its owner alone, and opens what it sealed in the next run', async () => {
    const home = join(freshHome(), 'deep', 'home')
    const vault = await openVault({ env: {}, home })
    assert.equal(vault.isMade, false)
    const sealed = vault.seal('a', 'text')
    assert.equal(vault.isMade, true)
    assert.equal(vault.where, join(home, 'master.key'))
    assert.equal(statSync(vault.where).mode & 0o777, 0o600)
    assert.deepEqual(readdirSync(home), ['master.key'])
    const next = await openVault({ env: {}, home, hasSealed: true })
    assert.equal(next.open('a', sealed), 'text')
  })

  test('is not made by looking', async () => {
    const home = freshHome()
    const vault = await openVault({ env: {}, home })
    assert.throws(() => vault.open('a', new Uint8Array(40)), isKeyTrouble)
    assert.deepEqual(readdirSync(home), [])
  })

  test('is not made anew where secrets show that there was one', async () => {
    const home = freshHome()
    await assert.rejects(openVault({ env: {}, home, hasSealed: true }), isKeyTrouble)
    assert.deepEqual(readdirSync(home), [])
  })

  test('that another vault has made meanwhile is used, not replaced', async () => {
    const home = freshHome()
    const vaults = await Promise.all([openVault({ env: {}, home }), openVault({ env: {}, home })])
    const [first, second] = vaults.map((vault) => vault.seal('a', 'text'))
    assert.equal(vaults[0].open('a', second!), 'text')
    assert.equal(vaults[1].open('a', first!), 'text')
  })

  test('is one key, whole, however many start at the same moment', async () => {
    const home = freshHome()
    const code = `
      import { parentPort, workerData } from 'node:worker_threads'
      import { openVault } from ${JSON.stringify(import.meta.resolve('./vault.ts'))}
      const vault = await openVault({ env: {}, home: workerData.home })
      Atomics.wait(new Int32Array(workerData.gate), 0, 0)
      parentPort.postMessage(vault.seal('a', 'text'))`
    const gate = new SharedArrayBuffer(4)
    const workers = Array.from({ length: 6 }, () => {
      const url = new URL(`data:text/javascript,${encodeURIComponent(code)}`)
      return new Worker(url, { workerData: { home, gate } })
    })
    const sealed = Promise.all(workers.map((worker) => once(worker, 'message')))
    await Promise.all(workers.map((worker) => once(worker, 'online')))
    Atomics.store(new Int32Array(gate), 0, 1)
    Atomics.notify(new Int32Array(gate), 0)
    const vault = await openVault({ env: {}, home })
    for (const [one] of await sealed) assert.equal(vault.open('a', one as Uint8Array), 'text')
    assert.deepEqual(readdirSync(home), ['master.key'])
    await Promise.all(workers.map((worker) => worker.terminate()))
  })

  for (const mode of [0o640, 0o604, 0o620, 0o644]) {
    test(`is refused with mode ${mode.toString(8)}, with the command that mends it`, async () => {
      const home = freshHome()
      const made = await openVault({ env: {}, home })
      made.seal('a', 'text')
      chmodSync(made.where, mode)
      await assert.rejects(openVault({ env: {}, home }), (error: TidemarkError) => {
        return isKeyTrouble(error) && (error.hint?.includes(`chmod 600 ${made.where}`) ?? false)
      })
    })
  }

  test('may come from a file that the group may read, but not others', async () => {
    const file = join(freshHome(), 'key')
    writeFileSync(file, `${someKey()}\n`, { mode: 0o440 })
    const env = { TIDEMARK_MASTER_KEY_FILE: file }
    const vault = await openVault({ env, home: folder })
    assert.equal(vault.where, file)
    assert.equal(vault.open('a', vault.seal('a', 'text')), 'text')
    chmodSync(file, 0o444)
    await assert.rejects(openVault({ env, home: folder }), isKeyTrouble)
  })

  test('is never made at a place that somebody named', async () => {
    const file = join(freshHome(), 'key')
    const vault = await openVault({ env: { TIDEMARK_MASTER_KEY_FILE: file }, home: freshHome() })
    assert.throws(() => vault.seal('a', 'text'), isKeyTrouble)
  })

  test('that is a folder is refused', async () => {
    const home = freshHome()
    mkdirSync(join(home, 'master.key'), { mode: 0o700 })
    await assert.rejects(openVault({ env: {}, home }), isKeyTrouble)
  })

  const malformed = [
    'short',
    randomBytes(31).toString('base64'),
    randomBytes(33).toString('base64'),
    `${someKey()}=`,
    '!'.repeat(44),
  ]
  for (const key of malformed) {
    test(`of ${key.length} characters that is no key is refused and not quoted`, async () => {
      const refused = (error: UsageError): boolean =>
        error instanceof UsageError && !error.message.includes(key)
      await assert.rejects(withKey(key), refused)
      const home = freshHome()
      writeFileSync(join(home, 'master.key'), key, { mode: 0o600 })
      await assert.rejects(openVault({ env: {}, home }), refused)
      assert.equal(readFileSync(join(home, 'master.key'), 'utf8'), key)
    })
  }

  test('may be written in either alphabet of base64, padded or not', async () => {
    const bytes = Buffer.alloc(32, 0xfb)
    const sealed = (await withKey(bytes.toString('base64'))).seal('a', 'text')
    assert.equal((await withKey(bytes.toString('base64url'))).open('a', sealed), 'text')
    assert.equal((await withKey(` ${bytes.toString('base64')}\n`)).open('a', sealed), 'text')
  })

  test('cannot be given twice', async () => {
    const env = { TIDEMARK_MASTER_KEY: someKey(), TIDEMARK_MASTER_KEY_FILE: '/key' }
    await assert.rejects(openVault({ env, home: folder }), UsageError)
  })
})
