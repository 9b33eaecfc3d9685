import assert from 'node:assert/strict'
import { createReadStream } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, test } from 'node:test'
import { TidemarkError } from '../../base/errors.ts'
import { createHttpExchange, type HttpExchange } from '../../base/http-exchange.ts'
import { QuickXorHash, quickXorHash } from '../../base/quick-xor-hash.ts'
import { type DriveItem, FRAGMENT_STEP_BYTES, type OneDriveClient } from './client.ts'
import { ResyncError } from './errors.ts'
import { bytesOf } from './scripted-client.suite.ts'
import { type SimulatedDrive, simulated } from './simulated-client.suite.ts'

const STEP = FRAGMENT_STEP_BYTES
const open: SimulatedDrive[] = []

afterEach(async () => {
  for (const one of open.splice(0)) await one.close()
})

async function begin(...input: Parameters<typeof simulated>): Promise<SimulatedDrive> {
  const made = await simulated(...input)
  open.push(made)
  return made
}

function codeOf(code: string): (error: unknown) => boolean {
  return (error) => error instanceof TidemarkError && error.code === code
}

function noise(length: number): Buffer {
  const bytes = Buffer.alloc(length)
  for (let at = 0, state = 7; at < length; at++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) | 0
    bytes[at] = state >>> 16
  }
  return bytes
}

async function changes(client: OneDriveClient, driveId: string, link?: string) {
  const items: DriveItem[] = []
  for (let next = link; ; ) {
    const page = await client.delta(driveId, next === undefined ? {} : { link: next })
    items.push(...page.items)
    if (page.deltaLink !== undefined) return { items, deltaLink: page.deltaLink }
    next = page.nextLink
  }
}

for (const type of ['personal', 'business'] as const) {
  describe(`with a ${type} OneDrive`, () => {
    test('folders and files are made, found, listed, moved, deleted and restored', async () => {
      const { client, driveId, rootId, drive } = await begin({ type })
      assert.equal((await client.drive()).id, driveId)
      assert.deepEqual(
        (await client.drives()).map(({ id }) => id),
        [driveId],
      )
      assert.equal((await client.driveById(driveId)).type, type)
      assert.ok((await client.me()).id)
      const root = await client.root(driveId)
      assert.deepEqual([root.id, root.type], [rootId, 'root'])
      const folder = await client.createFolder(driveId, {
        parentId: rootId,
        name: 'Übung #1',
        conflict: 'fail',
      })
      const again = client.createFolder(driveId, { parentId: rootId, name: 'übung #1', conflict: 'fail' })
      await assert.rejects(again, codeOf('exists'))
      const target = { parentId: folder.id, name: '100% & more+.txt' }
      const file = await client.putContent(driveId, target, Buffer.from('hello'), { conflict: 'fail' })
      assert.deepEqual([file.hash, file.size], [quickXorHash(Buffer.from('hello')), 5])
      assert.equal((await client.childByName(driveId, target)).id, file.id)
      assert.equal((await client.itemByPath(driveId, `Übung #1/${target.name}`)).id, file.id)
      const listed: string[] = []
      for await (const { id } of client.children(driveId, folder.id)) listed.push(id)
      assert.deepEqual(listed, [file.id])
      const moved = await client.update(driveId, file.id, {
        name: 'b.txt',
        parentId: rootId,
        modifiedMs: 5_000,
      })
      assert.deepEqual([moved.name, moved.parentId, moved.modifiedMs], ['b.txt', rootId, 5_000])
      await assert.rejects(
        client.remove(driveId, file.id, { ifMatch: file.eTag }),
        codeOf('precondition-failed'),
      )
      await client.remove(driveId, file.id, { ifMatch: moved.eTag })
      await assert.rejects(client.item(driveId, file.id), codeOf('not-found'))
      if (type === 'personal') {
        assert.equal((await client.restore(driveId, file.id)).name, 'b.txt')
        assert.equal(drive.device.read('b.txt')?.toString(), 'hello')
      }
    })

    test('an upload in fragments goes on after a lost answer, and comes back whole', async () => {
      const { client, driveId, rootId } = await begin({ type })
      const content = noise(3 * STEP + 17)
      const total = content.length
      const made = await client.createUploadSession(
        driveId,
        { parentId: rootId, name: 'big.bin' },
        { conflict: 'fail', size: total, modifiedMs: 1_600_000_000_000 },
      )
      const part = (offset: number, end: number) =>
        client.uploadFragment(made.url, {
          offset,
          total,
          length: end - offset,
          body: content.subarray(offset, end),
        })
      assert.deepEqual({ ...(await part(0, STEP)), expiresAtMs: 0 }, { nextOffset: STEP, expiresAtMs: 0 })
      await assert.rejects(part(0, STEP), codeOf('range'))
      const { nextOffset } = await client.uploadStatus(made.url)
      assert.equal(nextOffset, STEP)
      await assert.rejects(client.itemByPath(driveId, 'big.bin'), codeOf('not-found'))
      const done = await part(nextOffset, total)
      assert.ok('item' in done)
      assert.equal(done.item.hash, quickXorHash(content))
      assert.equal(done.item.modifiedMs, 1_600_000_000_000)
      await assert.rejects(part(0, STEP), codeOf('session-gone'))
      await assert.rejects(client.uploadStatus(made.url), codeOf('session-gone'))
      const rest = await client.download(driveId, done.item.id, { offset: 2 * STEP })
      assert.deepEqual([rest.offset, rest.total], [2 * STEP, total])
      assert.deepEqual(await bytesOf(rest.stream), content.subarray(2 * STEP))
    })

    test('a name that is taken during an upload is told at its end, and nothing is replaced', async () => {
      const { client, driveId, rootId, drive } = await begin({ type })
      const size = STEP + 1
      const target = { parentId: rootId, name: 'x.bin' }
      const { url } = await client.createUploadSession(driveId, target, { conflict: 'fail', size })
      drive.device.write('x.bin', 'of another device')
      const whole = { offset: 0, total: size, length: size, body: noise(size) }
      await assert.rejects(client.uploadFragment(url, whole), codeOf('exists'))
      await assert.rejects(client.uploadStatus(url), codeOf('session-gone'))
      assert.equal(drive.device.read('x.bin')?.toString(), 'of another device')
      await client.cancelUpload(url)
      await client.cancelUpload(url)
    })

    test('delta tells what another device did, and a link that is too old says resync', async () => {
      const { client, driveId, drive } = await begin({ type, files: 50 })
      drive.device.mkdir('a/b')
      drive.device.notebook('notes')
      const first = await changes(client, driveId)
      assert.equal(first.items.find(({ name }) => name === 'notes')?.type, 'package')
      const now = await client.delta(driveId, { latest: true })
      assert.deepEqual([now.items, now.nextLink], [[], undefined])
      drive.device.write('a/b/new.txt', 'x')
      drive.device.delete('notes')
      const { items } = await changes(client, driveId, first.deltaLink)
      const file = items.find(({ name }) => name === 'new.txt')
      assert.deepEqual([file?.type, file?.size, file?.deleted], ['file', 1, false])
      assert.equal(items.filter(({ deleted }) => deleted).length, 1)
      drive.expireDelta('resyncChangesUploadDifferences')
      const error = await changes(client, driveId, first.deltaLink).catch((thrown: unknown) => thrown)
      assert.ok(error instanceof ResyncError)
      assert.equal(error.differences, 'upload')
      assert.ok((await changes(client, driveId, error.location)).items.length > 50)
    })
  })
}

describe('a fragment from a file', () => {
  test('is streamed, and what comes back is the file', async () => {
    const { client, driveId, rootId } = await begin({ keepBytesMax: 64 * 1024 * 1024 })
    const folder = await mkdtemp(join(tmpdir(), 'tidemark-fragment-'))
    const content = noise(30 * STEP + 5)
    const path = join(folder, 'file')
    await writeFile(path, content)
    const total = content.length
    const target = { parentId: rootId, name: 'f' }
    const { url } = await client.createUploadSession(driveId, target, { conflict: 'fail', size: total })
    let item: DriveItem | undefined
    for (let offset = 0; offset < total; ) {
      const length = Math.min(20 * STEP, total - offset)
      const body = createReadStream(path, { start: offset, end: offset + length - 1, highWaterMark: 1 << 20 })
      const answer = await client.uploadFragment(url, { offset, total, length, body })
      if ('item' in answer) item = answer.item
      offset = 'item' in answer ? total : answer.nextOffset
    }
    const { stream } = await client.download(driveId, item!.id)
    const hash = new QuickXorHash()
    for await (const chunk of stream) hash.update(chunk)
    assert.equal(hash.digest().toString('base64'), quickXorHash(content))
    await rm(folder, { recursive: true })
  })
})

describe('in spite of', () => {
  test('ids of drives that change, items know the same drive', async () => {
    const quirks = { driveIdLosesZero: true, driveIdChangesCase: true }
    for (const type of ['personal', 'business'] as const) {
      const { client, driveId } = await begin({ type, files: 20, quirks })
      assert.equal((await client.drive()).id, driveId)
      const { items } = await changes(client, driveId)
      assert.deepEqual(new Set(items.map((item) => item.driveId)), new Set([driveId]))
    }
  })

  test('hashes, sizes, tags, names and dates that are missing or wrong, items are read', async () => {
    const quirks = {
      hashMissing: true,
      hashMissingOnEmpty: true,
      hashBogusOnDeleted: true,
      cTagMissing: true,
      deletedNameMissing: true,
      deletedSizeMissing: true,
      yearOneDates: true,
      wholeSecondTimes: true,
    }
    const { client, driveId, drive } = await begin({ files: 40, quirks })
    drive.device.write('empty', '')
    const first = await changes(client, driveId)
    const files = first.items.filter(({ type }) => type === 'file')
    assert.ok(files.some(({ hash }) => hash === undefined) && files.some(({ hash }) => hash !== undefined))
    assert.ok(files.every(({ cTag, modifiedMs }) => cTag === undefined && modifiedMs! % 1_000 === 0))
    assert.equal(files.find(({ name }) => name === 'empty')?.hash, undefined)
    const gone = drive.device.delete('empty')
    const { items } = await changes(client, driveId, first.deltaLink)
    const deleted = items.find(({ id }) => id === gone.id)
    assert.deepEqual([deleted?.deleted, deleted?.name, deleted?.hash], [true, undefined, undefined])
  })

  test('what is not found at first, it is there a moment later', async () => {
    const quirks = { freshChildNotFound: true, freshItemNotFound: true, freshPathNotFound: true }
    const { client, driveId, rootId } = await begin({ quirks })
    const missingTries = 4
    const folder = await client.createFolder(driveId, { parentId: rootId, name: 'f', conflict: 'fail' })
    const target = { parentId: folder.id, name: 'a' }
    const file = await client.putContent(driveId, target, Buffer.from('x'), { missingTries })
    assert.equal((await client.item(driveId, file.id, { missingTries })).id, file.id)
    assert.equal((await client.itemByPath(driveId, 'f/a', { missingTries })).id, file.id)
  })

  test('folders that are made without a word, they are known', async () => {
    const { client, driveId, rootId } = await begin({
      quirks: { mkdirEmptyBody: true, freshPathNotFound: true },
    })
    const folder = await client.createFolder(driveId, { parentId: rootId, name: 'f', conflict: 'fail' })
    assert.deepEqual([folder.name, folder.type, folder.parentId], ['f', 'folder', rootId])
  })

  test('fresh download addresses that are refused and ranges that are ignored, bytes come', async () => {
    const { client, driveId, drive } = await begin({
      quirks: { freshDownloadUnauthorized: true, rangeIgnored: true },
    })
    const { id } = drive.device.write('a', 'hello')
    const { stream, offset } = await client.download(driveId, id, { offset: 2 })
    assert.deepEqual([offset, (await bytesOf(stream)).toString()], [0, 'hello'])
  })

  test('names that come encoded, they are what they are', async () => {
    const { client, driveId, drive, rootId } = await begin({ quirks: { namesEncoded: true } })
    for (const name of ['a b.txt', 'é', '100%25', 'plain']) drive.device.write(name, name)
    const names: (string | undefined)[] = []
    for await (const { name } of client.children(driveId, rootId)) names.push(name)
    assert.deepEqual(names.sort(), ['100%25', 'a b.txt', 'plain', 'é'])
    drive.setQuirks({ namesEncoded: false })
    const plain = await changes(client, driveId)
    assert.deepEqual(
      plain.items.map(({ name }) => name).filter((name) => name?.includes('%')),
      ['100%25'],
    )
  })

  test('sessions that refuse every tag, a file is replaced, but never one that has changed', async () => {
    const { client, driveId, drive } = await begin({ quirks: { sessionIfMatchRefused: true } })
    const { id } = drive.device.write('a', 'one')
    const { eTag } = await client.item(driveId, id)
    const session = (ifMatch: string | undefined) =>
      client.createUploadSession(driveId, { itemId: id }, { conflict: 'replace', size: 3, ifMatch })
    const { url } = await session(eTag)
    const body = Buffer.from('two')
    const done = await client.uploadFragment(url, { offset: 0, total: 3, length: 3, body })
    assert.ok('item' in done && done.item.id === id)
    await assert.rejects(session(eTag), codeOf('precondition-failed'))
    assert.equal(drive.device.read('a')?.toString(), 'two')
  })

  test('files that are rewritten after an upload, what the service says is what is known', async () => {
    const { client, driveId, rootId, drive } = await begin({
      type: 'business',
      quirks: { rewritesUploads: true },
    })
    const file = await client.putContent(driveId, { parentId: rootId, name: 'a.docx' }, Buffer.from('text'))
    assert.equal(file.hash, quickXorHash(drive.device.read('a.docx')!))
    assert.notEqual(file.hash, quickXorHash(Buffer.from('text')))
  })

  for (const [quirk, code] of [
    ['redirectWithoutLocation', 'not-onedrive'],
    ['headersStall', 'timeout'],
  ] as const) {
    test(`${quirk}, a call ends and may be tried again`, async () => {
      const { client, driveId, drive } = await begin({ quirks: { [quirk]: true } }, { timeoutMs: 1_000 })
      const { id } = drive.device.write('a', 'x')
      let failed = 0
      for (let calls = 0; calls < 40 && failed === 0; calls++) {
        const error = await client.item(driveId, id).catch((thrown: unknown) => thrown)
        if (!(error instanceof TidemarkError)) continue
        assert.deepEqual([error.kind, error.code], ['transient', code])
        failed += 1
      }
      assert.equal(failed, 1)
      assert.equal((await client.item(driveId, id)).name, 'a')
    })
  }

  test('a full drive, the error says so and nothing is tried again', async () => {
    const { client, driveId, rootId } = await begin({ quotaBytes: 10 })
    const target = { parentId: rootId, name: 'a' }
    await assert.rejects(client.putContent(driveId, target, noise(11)), codeOf('quota-full'))
    const { url } = await client.createUploadSession(driveId, target, { conflict: 'fail', size: 11 })
    const fragment = { offset: 0, total: 11, length: 11, body: noise(11) }
    await assert.rejects(client.uploadFragment(url, fragment), codeOf('quota-full'))
  })

  test('a service that throttles, the wait is told', async () => {
    const rate = { requestsPerSecond: 0.001, burst: 1, retryAfterSeconds: 7 }
    const { client } = await begin({}, {}, { onedrive: { rate } })
    await client.drive()
    const error = await client.drive().catch((thrown: unknown) => thrown)
    assert.ok(error instanceof TidemarkError)
    assert.deepEqual([error.kind, error.code, error.retryAfterMs], ['throttled', 'rate-limit', 7_000])
  })
})

test('a token for reading may not write, and the error says what to do', async () => {
  const { sim, client: writer, driveId, rootId } = await begin()
  const { accessToken } = sim.onedrive.issue('ann@example.com', ['Files.Read', 'User.Read'])
  const token = { access: async () => accessToken, refused: () => undefined }
  const { client: reader } = await begin({}, { token, apiUrl: sim.onedrive.graphUrl })
  assert.equal((await reader.root(driveId)).id, rootId)
  const folder = { parentId: rootId, name: 'x', conflict: 'fail' } as const
  const error = await reader.createFolder(driveId, folder).catch((thrown: unknown) => thrown)
  assert.ok(error instanceof TidemarkError)
  assert.match(`${error.kind} ${error.code}`, /^(?:auth scope-missing|permanent forbidden)$/)
  assert.equal((await writer.createFolder(driveId, folder)).name, 'x')
})

test('a copy goes on elsewhere until it is done', async () => {
  const { client, driveId, rootId, drive } = await begin()
  const { id } = drive.device.write('a', 'x')
  const { monitorUrl } = await client.copy(driveId, id, { driveId, parentId: rootId, name: 'b' })
  let state = await client.copyState(monitorUrl)
  for (let looks = 0; state.state === 'running' && looks < 50; looks++)
    state = await client.copyState(monitorUrl)
  assert.equal(state.state, 'done')
  assert.equal(drive.device.read('b')?.toString(), 'x')
})

describe('behind a proxy that ends TLS', () => {
  const API = 'https://drive.example/v1.0'

  /** What such a proxy does to a request: it goes on without TLS, with the name and scheme by which it came. */
  async function behindProxy({ tellsScheme }: { tellsScheme: boolean }): Promise<SimulatedDrive> {
    const inner = createHttpExchange()
    let origin = ''
    const told: Record<string, string> = tellsScheme ? { 'x-forwarded-proto': 'https' } : {}
    const exchange: HttpExchange = (request) => {
      const { origin: asked, host } = new URL(request.url)
      assert.equal(asked, 'https://drive.example', `${request.url} does not go through the proxy`)
      const headers = { ...request.headers, 'x-forwarded-host': host, ...told }
      return inner({ ...request, url: request.url.replace(asked, origin), headers })
    }
    const made = await begin({ files: 20 }, { apiUrl: API, exchange })
    origin = made.sim.baseUrl
    open.push({ ...made, close: async () => inner.close() })
    return made
  }

  test('an API address of https downloads, uploads, and pages listings and delta', async () => {
    const { client, driveId, rootId, drive } = await behindProxy({ tellsScheme: true })
    for (let at = 0; at < 5; at++) drive.device.write(`paged/f${at}.txt`, `text ${at}`)
    const folder = await client.itemByPath(driveId, 'paged')
    const names: string[] = []
    for await (const item of client.children(driveId, folder.id, { pageSize: 2 })) names.push(item.name!)
    assert.deepEqual(names, ['f0.txt', 'f1.txt', 'f2.txt', 'f3.txt', 'f4.txt'])
    const { items, deltaLink } = await changes(client, driveId)
    assert.ok(items.length > 20)
    drive.device.write('paged/later.txt', 'x')
    assert.ok((await changes(client, driveId, deltaLink)).items.some(({ name }) => name === 'later.txt'))
    const { id } = await client.itemByPath(driveId, 'paged/f3.txt')
    assert.equal((await (await client.download(driveId, id)).bytes()).toString(), 'text 3')
    const size = STEP + 10
    const target = { parentId: rootId, name: 'up.bin' }
    const { url } = await client.createUploadSession(driveId, target, { conflict: 'fail', size })
    const body = noise(size)
    for (const [offset, end] of [
      [0, STEP],
      [STEP, size],
    ] as const) {
      const part = { offset, total: size, length: end - offset, body: body.subarray(offset, end) }
      await client.uploadFragment(url, part)
    }
    assert.deepEqual(drive.device.read('up.bin'), body)
  })

  test('where the proxy does not tell the scheme, addresses without TLS are refused', async () => {
    const { client, driveId, drive } = await behindProxy({ tellsScheme: false })
    drive.device.write('plain.txt', 'x')
    const { id } = await client.itemByPath(driveId, 'plain.txt')
    await assert.rejects(client.download(driveId, id), TidemarkError)
  })
})
