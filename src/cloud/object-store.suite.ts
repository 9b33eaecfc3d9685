/**
 * What every store of objects promises, whoever keeps it. Each client of one runs this, against the service itself or the
 * simulated one.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { asTidemarkError, type TidemarkError } from '../base/errors.ts'
import type { ObjectStore, ObjectVersion } from './object-store.ts'

export type StoreSite = {
  store: ObjectStore
  /** Of the object with this key. */
  uriOf(key: string): string
  put(key: string, bytes: Uint8Array): Promise<void>
  remove(key: string): Promise<void>
  /** Nobody may read it from now on. */
  deny(key: string): Promise<void>
  /** From now on bodies end too early: with the connection, or `short`, with a length as if they were whole. */
  breakOff?(how: 'cut' | 'short'): Promise<void>
  /** And no more. */
  mend?(): Promise<void>
  close(): Promise<void>
}

export type StoreHome = {
  name: string
  open(): Promise<StoreSite>
  canBreakOff: boolean
  canList: boolean
  canMove: boolean
  canTag: boolean
}

export const ODD_NAMES: readonly string[] = [
  'a b.txt',
  'a+b.txt',
  'a%20b.txt',
  'a%2fb.txt',
  'a&b=c?d#e.txt',
  'grün/空/🚀.txt',
  'line\nbreak.txt',
  'quote"\'<x>.txt',
]

type Fact = (title: string, fn: (site: StoreSite) => Promise<void>) => void

export function testObjectStore(home: StoreHome): void {
  const fact: Fact = (title, fn) => {
    test(title, async () => {
      const site = await home.open()
      try {
        await fn(site)
      } finally {
        await site.close()
      }
    })
  }
  describe(`the objects of ${home.name}`, () => {
    testReading(fact)
    testVersions(fact)
    if (home.canBreakOff) testTruncation(fact)
    if (home.canList) testListing(fact)
    if (home.canMove) testMoving(fact)
    if (home.canTag) testTagging(fact)
  })
}

function testReading(fact: Fact): void {
  fact('are read whole, with their size', async (site) => {
    const bytes = pattern(700_000)
    await site.put('a.bin', bytes)
    const body = await open(site, 'a.bin')
    assert.equal(body.sizeBytes, bytes.length)
    assert.ok(bytes.equals(await collect(body.bytes)))
  })

  fact('are read from any byte on, up to the one behind the last', async (site) => {
    const bytes = pattern(10_000)
    await site.put('a.bin', bytes)
    for (const fromByte of [0, 1, 4_999, 9_999, 10_000]) {
      const body = await open(site, 'a.bin', { fromByte })
      assert.equal(body.sizeBytes, bytes.length)
      assert.ok(bytes.subarray(fromByte).equals(await collect(body.bytes)), String(fromByte))
    }
    const error = await failure(open(site, 'a.bin', { fromByte: 10_001 }))
    assert.deepEqual([error.kind, error.code], ['permanent', 'range'])
  })

  fact('may be empty', async (site) => {
    await site.put('empty', Buffer.alloc(0))
    const body = await open(site, 'empty')
    assert.deepEqual([body.sizeBytes, (await collect(body.bytes)).length], [0, 0])
    assert.equal((await head(site, 'empty'))?.sizeBytes, 0)
  })

  for (const name of ODD_NAMES) {
    fact(`are found by a name like ${JSON.stringify(name)}`, async (site) => {
      await site.put(name, Buffer.from(name))
      assert.equal((await collect((await open(site, name)).bytes)).toString(), name)
      assert.ok(await head(site, name))
    })
  }

  fact('that are not there are gone', async (site) => {
    const error = await failure(open(site, 'nothing'))
    assert.deepEqual([error.kind, error.code], ['gone', 'object-missing'])
    assert.equal(await head(site, 'nothing'), undefined)
  })

  fact('that may not be read are refused for good', async (site) => {
    await site.put('secret', Buffer.from('x'))
    await site.deny('secret')
    const error = await failure(open(site, 'secret'))
    assert.deepEqual([error.kind, error.code], ['permanent', 'object-denied'])
  })

  fact("are not read on once that is aborted, with the abort's own reason", async (site) => {
    await site.put('a.bin', pattern(100))
    const controller = new AbortController()
    const reason = new Error('enough')
    controller.abort(reason)
    const options = { version: null, fromByte: 0, signal: controller.signal }
    await assert.rejects(site.store.read(site.uriOf('a.bin'), options), (error) => error === reason)
  })
}

function testVersions(fact: Fact): void {
  fact('have the same version when they are read, looked at and read again', async (site) => {
    await site.put('a', Buffer.from('one'))
    const first = await open(site, 'a')
    await collect(first.bytes)
    const version = (await head(site, 'a'))!.version
    assert.equal(first.version.id, version.id)
    assert.equal((await collect((await open(site, 'a', { version })).bytes)).toString(), 'one')
  })

  fact('that were replaced are gone for who asks for what they were', async (site) => {
    await site.put('a', Buffer.from('one'))
    const version = { id: (await head(site, 'a'))!.version.id }
    await site.put('a', Buffer.from('another'))
    const error = await failure(open(site, 'a', { version }))
    assert.deepEqual([error.kind, error.code], ['gone', 'object-replaced'])
    for (const fromByte of [2, 3, 7]) {
      const later = await failure(open(site, 'a', { version, fromByte }))
      assert.deepEqual([later.kind, later.code], ['gone', 'object-replaced'], String(fromByte))
    }
    assert.notEqual((await head(site, 'a'))!.version.id, version.id)
  })

  fact('that are replaced while they are read never end with bytes of both', async (site) => {
    const before = pattern(900_000)
    await site.put('a', before)
    const body = await open(site, 'a')
    const chunks = body.bytes[Symbol.asyncIterator]()
    const first = await chunks.next()
    await site.put('a', Buffer.alloc(900_001, 1))
    const got: Uint8Array[] = [first.value!]
    try {
      for (let next = await chunks.next(); !next.done; next = await chunks.next()) got.push(next.value)
      assert.ok(before.equals(Buffer.concat(got)))
    } catch (thrown) {
      const { kind, code } = asTidemarkError(thrown)
      assert.ok(kind === 'transient' || code === 'object-replaced', `${kind} ${code}`)
    }
  })

  fact('that were removed are gone for who asks for what they were', async (site) => {
    await site.put('a', Buffer.from('one'))
    const { version } = (await head(site, 'a'))!
    await site.remove('a')
    assert.equal((await failure(open(site, 'a', { version: { id: version.id } }))).kind, 'gone')
  })
}

function testTruncation(fact: Fact): void {
  for (const how of ['cut', 'short'] as const) {
    fact(`whose bytes break off (${how}) fail, and may be tried again`, async (site) => {
      for (const sizeBytes of [200_000, 2_000]) {
        const name = `${sizeBytes}.bin`
        await site.put(name, pattern(sizeBytes))
        // The first answer of a place may teach how the next are asked for.
        await collect((await open(site, name)).bytes)
        await site.breakOff!(how)
        for (const fromByte of [0, 10]) {
          const error = await failure(open(site, name, { fromByte }).then((body) => collect(body.bytes)))
          assert.equal(error.kind, 'transient', error.message)
        }
        await site.mend!()
      }
    })
  }
}

function testListing(fact: Fact): void {
  fact('are listed by the bytes of their names, page by page', async (site) => {
    const keys = ['a/1', 'a.b', 'a/10', 'a/2', 'b', 'a-', 'B', 'a/x/y', 'aa', 'é']
    for (const key of keys) await site.put(key, Buffer.from(key))
    const sorted = [...keys].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
    for (const max of [1, 3, 10, 100]) assert.deepEqual(await listed(site, '', max), sorted, String(max))
    assert.deepEqual(await listed(site, 'a/', 2), ['a/1', 'a/10', 'a/2', 'a/x/y'])
    assert.deepEqual(await listed(site, 'a/1', 100), ['a/1', 'a/10'])
    assert.deepEqual(await listed(site, 'nothing/', 100), [])
  })

  fact('are listed with odd names, and found by them', async (site) => {
    for (const name of ODD_NAMES) await site.put(name, Buffer.from(name))
    const keys = await listed(site, '', 3)
    assert.deepEqual([...keys].sort(), [...ODD_NAMES].sort())
    for (const key of keys) assert.equal((await collect((await open(site, key)).bytes)).toString(), key)
  })

  fact('are listed with the version and the size that they are read with', async (site) => {
    await site.put('a', pattern(123))
    const page = await site.store.list({ prefix: site.uriOf(''), after: null, max: 10, signal: never() })
    const [object] = page.objects
    assert.deepEqual([object!.sizeBytes, page.next], [123, null])
    const body = await open(site, 'a', { version: object!.version })
    assert.deepEqual([body.version.id, (await collect(body.bytes)).length], [object!.version.id, 123])
  })
}

function testMoving(fact: Fact): void {
  fact('are copied, or removed, only while they are what they were', async (site) => {
    await site.put('in/a b', Buffer.from('one'))
    const version = { id: (await head(site, 'in/a b'))!.version.id }
    await site.put('in/a b', Buffer.from('another'))
    for (const attempt of [
      () => site.store.copy!(site.uriOf('in/a b'), version, site.uriOf('done/a b')),
      () => site.store.remove!(site.uriOf('in/a b'), version),
    ]) {
      assert.equal((await failure(attempt())).code, 'object-replaced')
    }
    assert.equal(await head(site, 'done/a b'), undefined)
    const now = { id: (await head(site, 'in/a b'))!.version.id }
    await site.store.copy!(site.uriOf('in/a b'), now, site.uriOf('done/a b'))
    await site.store.remove!(site.uriOf('in/a b'), now)
    assert.equal(await head(site, 'in/a b'), undefined)
    assert.equal((await collect((await open(site, 'done/a b')).bytes)).toString(), 'another')
    await site.store.remove!(site.uriOf('done/a b'), (await head(site, 'done/a b'))!.version)
    assert.equal(await head(site, 'done/a b'), undefined)
    assert.equal((await failure(site.store.remove!(site.uriOf('in/a b'), now))).kind, 'gone')
  })

  fact('are copied to no place that something has, and copies say so by their bytes', async (site) => {
    await site.put('a', Buffer.from('one'))
    await site.put('b', Buffer.from('other'))
    const { version } = (await head(site, 'a'))!
    assert.equal(
      (await failure(site.store.copy!(site.uriOf('a'), version, site.uriOf('b')))).code,
      'target-exists',
    )
    assert.equal((await collect((await open(site, 'b')).bytes)).toString(), 'other')
    await site.store.copy!(site.uriOf('a'), version, site.uriOf('c'))
    const [from, to] = [(await head(site, 'a'))!, (await head(site, 'c'))!]
    assert.ok(to.version.id === from.version.id || (to.hash !== undefined && to.hash === from.hash))
  })
}

function testTagging(fact: Fact): void {
  fact('are tagged without becoming another version', async (site) => {
    await site.put('a', Buffer.from('one'))
    const version = { id: (await head(site, 'a'))!.version.id }
    await site.store.tag!(site.uriOf('a'), version, { ingested: 'yes' })
    assert.equal((await head(site, 'a'))!.version.id, version.id)
    const other = { id: '1' }
    assert.equal((await failure(site.store.tag!(site.uriOf('a'), other, { x: 'y' }))).code, 'object-replaced')
  })
}

function open(
  { store, uriOf }: StoreSite,
  key: string,
  { version = null, fromByte = 0 }: { version?: ObjectVersion | null; fromByte?: number } = {},
) {
  return store.read(uriOf(key), { version, fromByte, signal: never() })
}

function head({ store, uriOf }: StoreSite, key: string) {
  return store.head(uriOf(key), never())
}

/** Keys, in the order of the pages. */
async function listed({ store, uriOf }: StoreSite, prefix: string, max: number): Promise<string[]> {
  const uris: string[] = []
  let after: string | null = null
  do {
    const page = await store.list({ prefix: uriOf(prefix), after, max, signal: never() })
    assert.ok(page.objects.length <= max)
    uris.push(...page.objects.map(({ uri }) => uri))
    after = page.next
  } while (after !== null)
  return uris.map((uri) => uri.slice(uriOf('').length))
}

export async function collect(bytes: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of bytes) chunks.push(chunk)
  return Buffer.concat(chunks)
}

export async function failure(work: Promise<unknown>): Promise<TidemarkError> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => asTidemarkError(thrown),
  )
  assert.ok(error, 'it should have failed')
  return error
}

/** Bytes of which none is like the one before. */
export function pattern(bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes)
  for (let at = 0; at < bytes; at++) buffer[at] = (at * 7 + (at >> 8)) & 0xff
  return buffer
}

export function never(): AbortSignal {
  return new AbortController().signal
}
