/** Google's own Node client against the simulated Drive: unchanged, only its addresses are others. */
import assert from 'node:assert/strict'
import { createHash, createSign } from 'node:crypto'
import { Readable } from 'node:stream'
import { after, before, describe, test } from 'node:test'
import { auth, type drive_v3, drive as googleDrive } from '@googleapis/drive'
import { FakeClock } from '../../base/clock.ts'
import { type Sim, startSim } from '../start.ts'
import { mimeTypes } from './item.ts'
import { driveScopes } from './scopes.ts'

const ANN = 'ann@example.com'
const BOB = 'bob@example.com'
const EVE = 'eve@elsewhere.org'
const ALL = { supportsAllDrives: true, includeItemsFromAllDrives: true } as const

const clock = new FakeClock()
let sim: Sim
let ann: drive_v3.Drive
let bob: drive_v3.Drive
let eve: drive_v3.Drive

before(async () => {
  sim = await startSim({ seed: 5, clock, drive: { users: [ANN, BOB, EVE] } })
  ;[ann, bob, eve] = sim.drive.accounts.map((tokens) => clientOf(tokens)) as [
    drive_v3.Drive,
    drive_v3.Drive,
    drive_v3.Drive,
  ]
})
after(() => sim.close())

function clientOf(tokens: { accessToken?: string; refreshToken?: string }): drive_v3.Drive {
  const signedIn = new auth.OAuth2({
    clientId: sim.drive.clientId,
    clientSecret: sim.drive.clientSecret,
    redirectUri: 'http://127.0.0.1:9/callback',
    endpoints: { oauth2AuthBaseUrl: sim.drive.authUrl, oauth2TokenUrl: sim.drive.tokenUrl },
  })
  signedIn.setCredentials({
    access_token: tokens.accessToken ?? null,
    refresh_token: tokens.refreshToken ?? null,
  })
  return googleDrive({ version: 'v3', auth: signedIn, rootUrl: sim.baseUrl, retry: false })
}

/** `404 notFound`, as the client hands it over. */
async function failure(call: Promise<unknown>): Promise<string> {
  try {
    await call
  } catch (thrown) {
    const { response } = thrown as {
      response?: { status: number; data?: { error?: { errors?: { reason: string }[] } } }
    }
    return `${response?.status} ${response?.data?.error?.errors?.[0]?.reason}`
  }
  throw new Error('the call should have failed')
}

/** For uploads the client takes its address from each call. */
const atRoot = () => ({ rootUrl: sim.baseUrl })

async function newFile(name: string, text = `${name}.`, parents?: string[]): Promise<string> {
  const { data } = await ann.files.create(
    {
      requestBody: { name, ...(parents ? { parents } : {}) },
      media: { mimeType: 'text/plain', body: text },
      fields: 'id',
      supportsAllDrives: true,
    },
    atRoot(),
  )
  return data.id!
}

async function names(client: drive_v3.Drive, params: drive_v3.Params$Resource$Files$List): Promise<string[]> {
  const { data } = await client.files.list(params)
  return (data.files ?? []).map(({ name }) => name!).sort()
}

describe('files', () => {
  test('an upload has checksums, and comes back whole and in ranges', async () => {
    const bytes = Buffer.from('Bytes of a file that is not long.')
    const { data } = await ann.files.create(
      {
        requestBody: { name: 'bytes.bin' },
        media: { mimeType: 'application/octet-stream', body: Readable.from([bytes]) },
        fields: 'id,md5Checksum,sha256Checksum,size,headRevisionId,version,owners(emailAddress,me)',
      },
      atRoot(),
    )
    assert.equal(data.md5Checksum, createHash('md5').update(bytes).digest('hex'))
    assert.equal(data.sha256Checksum, createHash('sha256').update(bytes).digest('hex'))
    assert.equal(data.size, String(bytes.length))
    assert.deepEqual(data.owners, [{ emailAddress: ANN, me: true }])
    const fileId = data.id!
    const whole = await ann.files.get({ fileId, alt: 'media' }, { responseType: 'arraybuffer' })
    assert.deepEqual(Buffer.from(whole.data as unknown as ArrayBuffer), bytes)
    const part = await ann.files.get(
      { fileId, alt: 'media' },
      { responseType: 'arraybuffer', headers: { Range: 'bytes=6-9' } },
    )
    assert.equal(part.status, 206)
    assert.equal(Buffer.from(part.data as unknown as ArrayBuffer).toString(), 'of a')
    const beyond = ann.files.get({ fileId, alt: 'media' }, { headers: { Range: 'bytes=900-' } })
    assert.match(await failure(beyond), /^416/)
    assert.equal(sim.drive.counts.fetches(fileId), 1)
  })

  test('a resumable upload goes on where it stopped', async () => {
    const { accessToken } = sim.drive.issue(ANN)
    const authorization = `Bearer ${accessToken}`
    const begun = await fetch(`${sim.baseUrl}/upload/drive/v3/files?uploadType=resumable&fields=id,size`, {
      method: 'POST',
      headers: { authorization, 'content-type': 'application/json', 'x-upload-content-type': 'text/plain' },
      body: JSON.stringify({ name: 'long.txt' }),
    })
    const url = begun.headers.get('location')!
    const bytes = Buffer.alloc(300 * 1024, 'x')
    const put = (from: number, to: number, method = 'PUT') =>
      fetch(url, {
        method,
        headers: { authorization, 'content-range': `bytes ${from}-${to - 1}/${bytes.length}` },
        body: bytes.subarray(from, to),
        redirect: 'manual',
      })
    const first = await put(0, 256 * 1024)
    assert.equal(first.status, 308)
    assert.equal(first.headers.get('range'), 'bytes=0-262143')
    const asked = await fetch(url, {
      method: 'PUT',
      headers: { authorization, 'content-range': `bytes */${bytes.length}` },
      redirect: 'manual',
    })
    assert.equal(asked.status, 308)
    // Some clients bring the bytes by POST.
    const last = await put(256 * 1024, bytes.length, 'POST')
    assert.equal(last.status, 200)
    assert.equal(((await last.json()) as { size: string }).size, String(bytes.length))
  })

  test('native documents are exported, have no checksum, and are too large above 10 MB', async () => {
    const { world } = sim.drive
    const doc = world.create({
      name: 'Plan',
      by: ANN,
      mimeType: mimeTypes.document,
      content: '# Plan\n\nText.',
    })
    const { data } = await ann.files.get({
      fileId: doc.id,
      fields: 'id,md5Checksum,headRevisionId,exportLinks',
    })
    assert.equal(data.md5Checksum, undefined)
    assert.equal(data.headRevisionId, undefined)
    assert.ok(data.exportLinks!['text/plain'])
    const text = await ann.files.export({ fileId: doc.id, mimeType: 'text/plain' })
    assert.equal(text.data, 'Plan\r\n\r\nText.')
    const html = await ann.files.export({ fileId: doc.id, mimeType: 'text/html' })
    assert.match(String(html.data), /<h1>Plan<\/h1><p>Text\.<\/p>/)
    assert.equal(await failure(ann.files.get({ fileId: doc.id, alt: 'media' })), '403 fileNotDownloadable')
    const odd = ann.files.export({ fileId: doc.id, mimeType: 'image/x-none' })
    assert.equal(await failure(odd), '400 badRequest')
    world.edit(doc.id, () => 'x'.repeat(10 * 2 ** 20 + 1))
    const large = ann.files.export({ fileId: doc.id, mimeType: 'text/plain' })
    assert.equal(await failure(large), '403 exportSizeLimitExceeded')
    const plain = ann.files.export({ fileId: await newFile('plain.txt'), mimeType: 'text/plain' })
    assert.equal(await failure(plain), '403 fileNotExportable')
  })

  test('without fields only the four of a file come, and unknown fields or parameters are refused', async () => {
    const fileId = await newFile('four.txt')
    const { data } = await ann.files.get({ fileId })
    assert.deepEqual(Object.keys(data).sort(), ['id', 'kind', 'mimeType', 'name'])
    const nested = await ann.files.list({ fields: 'files(name,capabilities/canEdit)', pageSize: 1 })
    assert.deepEqual(Object.keys(nested.data), ['files'])
    assert.equal(nested.data.files![0]!.capabilities!.canEdit, true)
    assert.equal(await failure(ann.files.get({ fileId, fields: 'id,nonsense' })), '400 invalidParameter')
    assert.equal(await failure(ann.files.list({ fields: 'files(nonsense)' })), '400 invalidParameter')
    const wrong = ann.files.list({ colour: 'red' } as drive_v3.Params$Resource$Files$List)
    assert.equal(await failure(wrong as unknown as Promise<unknown>), '400 invalid')
    assert.equal(await failure(ann.about.get({})), '400 required')
    const { data: about } = await ann.about.get({ fields: 'user,exportFormats' })
    assert.equal(about.user!.emailAddress, ANN)
  })

  test('update renames, replaces bytes, moves, trashes and brings back; copy and delete', async () => {
    const fileId = await newFile('before.txt', 'one')
    const folder = await ann.files.create({ requestBody: { name: 'Folder', mimeType: mimeTypes.folder } })
    await ann.files.update({ fileId, requestBody: { name: 'after.txt' } })
    const { data } = await ann.files.update(
      {
        fileId,
        addParents: folder.data.id!,
        removeParents: 'root',
        media: { mimeType: 'text/plain', body: 'two' },
        fields: 'id,name,parents,version,md5Checksum',
      },
      atRoot(),
    )
    assert.equal(data.name, 'after.txt')
    assert.deepEqual(data.parents, [folder.data.id])
    assert.equal(data.md5Checksum, createHash('md5').update('two').digest('hex'))
    const copied = await ann.files.copy({ fileId, requestBody: { name: 'copy.txt' }, fields: 'id,parents' })
    assert.deepEqual(copied.data.parents, [folder.data.id])
    await ann.files.update({ fileId: folder.data.id!, requestBody: { trashed: true } })
    const below = await ann.files.get({ fileId, fields: 'trashed,explicitlyTrashed' })
    assert.deepEqual(below.data, { trashed: true, explicitlyTrashed: false })
    await ann.files.update({ fileId: folder.data.id!, requestBody: { trashed: false } })
    await ann.files.delete({ fileId: folder.data.id! })
    assert.equal(await failure(ann.files.get({ fileId })), '404 notFound')
    const trashed = await newFile('trash me.txt')
    await ann.files.update({ fileId: trashed, requestBody: { trashed: true } })
    await ann.files.emptyTrash()
    assert.equal(await failure(ann.files.get({ fileId: trashed })), '404 notFound')
  })

  test('shortcuts name their target', async () => {
    const targetId = await newFile('target.txt')
    const { data } = await ann.files.create({
      requestBody: { name: 'link', mimeType: mimeTypes.shortcut, shortcutDetails: { targetId } },
      fields: 'id,mimeType,size,shortcutDetails',
    })
    assert.deepEqual(data.shortcutDetails, { targetId, targetMimeType: 'text/plain' })
    assert.equal(data.size, undefined)
  })
})

describe('listing', () => {
  test('queries, order and pages', async () => {
    const { world } = sim.drive
    const dan = world.addUser('dan@example.com')
    const client = clientOf(sim.drive.issue(dan.address))
    const folder = world.createFolder({ name: 'Box', by: dan.address })
    for (let at = 1; at <= 5; at++) {
      const modifiedMs = Date.UTC(2026, 0, at)
      world.create({
        name: `note ${at}.txt`,
        by: dan.address,
        parent: folder.id,
        content: `word${at}`,
        modifiedMs,
      })
    }
    const gone = world.create({ name: "it's gone.md", by: dan.address, mimeType: 'text/markdown' })
    world.trash(gone.id)
    const q = (text: string) => names(client, { q: text })
    assert.deepEqual(
      await q(`'${folder.id}' in parents and trashed = false`),
      [1, 2, 3, 4, 5].map((at) => `note ${at}.txt`),
    )
    assert.deepEqual(await q('trashed = true'), ["it's gone.md"])
    assert.deepEqual(await q("name = 'it\\'s gone.md'"), ["it's gone.md"])
    assert.deepEqual(await q(`mimeType = '${mimeTypes.folder}'`), ['Box'])
    assert.deepEqual(await q("fullText contains 'word3'"), ['note 3.txt'])
    assert.deepEqual(await q("modifiedTime > '2026-01-04T00:00:00Z' and name contains 'note'"), [
      'note 5.txt',
    ])
    assert.deepEqual(await q("not ('me' in owners or sharedWithMe)"), [])
    assert.deepEqual(
      await q(
        `(name contains 'note' and not fullText contains 'word1') and mimeType != '${mimeTypes.folder}'`,
      ),
      [2, 3, 4, 5].map((at) => `note ${at}.txt`),
    )
    assert.equal(await failure(client.files.list({ q: 'name ~ 5' })), '400 invalid')
    const seen: string[] = []
    let pageToken: string | undefined
    do {
      const { data } = await client.files.list({
        q: "name contains 'note'",
        orderBy: 'name desc',
        pageSize: 2,
        ...(pageToken === undefined ? {} : { pageToken }),
      })
      seen.push(...data.files!.map(({ name }) => name!))
      pageToken = data.nextPageToken ?? undefined
    } while (pageToken)
    assert.deepEqual(
      seen,
      [5, 4, 3, 2, 1].map((at) => `note ${at}.txt`),
    )
    assert.equal(await failure(client.files.list({ pageToken: 'nonsense' })), '400 invalid')
    assert.equal(await failure(client.files.list({ pageSize: 1001 })), '400 invalid')
  })

  test('what is in a shared drive is not there for calls that do not ask for it', async () => {
    const { world } = sim.drive
    const root = world.addDrive({
      name: 'Team',
      members: [
        { email: ANN, role: 'organizer' },
        { email: BOB, role: 'reader' },
      ],
    })
    const fileId = await newFile('team.txt', 'team', [root.id])
    assert.equal(await failure(ann.files.get({ fileId })), '404 notFound')
    const { data } = await bob.files.get({ fileId, supportsAllDrives: true, fields: '*' })
    assert.equal(data.driveId, root.id)
    assert.equal(data.permissions, undefined)
    assert.equal(data.owners, undefined)
    assert.deepEqual(await names(bob, { corpora: 'drive', driveId: root.id, ...ALL }), ['team.txt'])
    assert.ok(!(await names(bob, { ...ALL })).includes('team.txt'))
    assert.ok((await names(bob, { corpora: 'allDrives', ...ALL })).includes('team.txt'))
    assert.equal(
      await failure(eve.files.list({ corpora: 'drive', driveId: root.id, ...ALL })),
      '404 notFound',
    )
    const { data: drives } = await bob.drives.list({ fields: 'drives(id,name)' })
    assert.deepEqual(drives.drives, [{ id: root.id, name: 'Team' }])
    assert.equal((await ann.drives.get({ driveId: root.id })).data.name, 'Team')
    assert.equal(await failure(eve.drives.get({ driveId: root.id })), '404 notFound')
    sim.drive.listing.isIncomplete = true
    const all = await ann.files.list({ corpora: 'allDrives', ...ALL })
    assert.equal(all.data.incompleteSearch, true)
    sim.drive.listing.isIncomplete = false
  })
})

describe('a generated world', () => {
  const users = ['u1@example.com', 'u2@example.com', 'u3@example.com']

  async function crawl(
    client: drive_v3.Drive,
    params: drive_v3.Params$Resource$Files$List,
  ): Promise<string[]> {
    const ids: string[] = []
    let pageToken: string | undefined
    do {
      const { data }: { data: drive_v3.Schema$FileList } = await client.files.list({
        q: `trashed = false and mimeType != '${mimeTypes.folder}'`,
        fields: 'nextPageToken,files(id)',
        ...ALL,
        ...params,
        ...(pageToken === undefined ? {} : { pageToken }),
      })
      ids.push(...data.files!.map(({ id }) => id!))
      pageToken = data.nextPageToken ?? undefined
    } while (pageToken !== undefined)
    return ids
  }

  test('a crawl as each user finds what the oracle says', async () => {
    const world = await startSim({
      seed: 8,
      drive: {
        users,
        documents: 300,
        groups: [{ address: 'some@example.com', members: users.slice(0, 2) }],
        drives: [{ name: 'Team', members: [{ email: 'some@example.com', role: 'reader' }] }],
      },
    })
    try {
      const truth = world.drive.whoSees()
      for (const { address, accessToken } of world.drive.accounts) {
        const signedIn = new auth.OAuth2()
        signedIn.setCredentials({ access_token: accessToken })
        const client = googleDrive({ version: 'v3', auth: signedIn, rootUrl: world.baseUrl, retry: false })
        const { data } = await client.drives.list({})
        const lists: drive_v3.Params$Resource$Files$List[] = [
          { pageSize: 40 },
          { corpora: 'domain' },
          ...data.drives!.map(({ id }) => ({ corpora: 'drive', driveId: id!, orderBy: 'name_natural' })),
        ]
        const found = new Set<string>()
        for (const params of lists) for (const id of await crawl(client, params)) found.add(id)
        assert.deepEqual([...found].sort(), truth[address]!.find)
      }
    } finally {
      await world.close()
    }
  })
})

describe('links with a key', () => {
  test('who comes by link only must name the key', async () => {
    const file = sim.drive.world.create({ name: 'old link.txt', by: ANN, resourceKey: '0-abc' })
    sim.drive.world.share(file.id, { type: 'anyone', role: 'reader' })
    assert.equal(await failure(eve.files.get({ fileId: file.id })), '404 notFound')
    const headers = { 'X-Goog-Drive-Resource-Keys': `${file.id}/0-abc` }
    const { data } = await eve.files.get({ fileId: file.id, fields: 'resourceKey' }, { headers })
    assert.equal(data.resourceKey, '0-abc')
  })
})

describe('permissions', () => {
  test('a reader finds the file, and is refused its permissions', async () => {
    const fileId = await newFile('shared.txt')
    const { data } = await ann.permissions.create({
      fileId,
      requestBody: { type: 'user', role: 'reader', emailAddress: BOB },
      fields: 'id,role,emailAddress',
    })
    assert.equal(data.emailAddress, BOB)
    assert.ok((await names(bob, { q: 'sharedWithMe' })).includes('shared.txt'))
    assert.equal(await failure(bob.permissions.list({ fileId })), '403 insufficientFilePermissions')
    const seen = await bob.files.get({
      fileId,
      fields: 'permissions,permissionIds,ownedByMe,shared,capabilities/canShare',
    })
    assert.deepEqual(seen.data, { ownedByMe: false, shared: true, capabilities: { canShare: false } })
    await ann.permissions.update({ fileId, permissionId: data.id!, requestBody: { role: 'writer' } })
    const listed = await bob.permissions.list({ fileId, fields: 'permissions(emailAddress,role)' })
    assert.deepEqual(listed.data.permissions, [
      { emailAddress: ANN, role: 'owner' },
      { emailAddress: BOB, role: 'writer' },
    ])
    await ann.permissions.delete({ fileId, permissionId: data.id! })
    assert.equal(await failure(bob.files.get({ fileId })), '404 notFound')
  })

  test('a link lets read who knows the id, and is in nobody’s list', async () => {
    const fileId = await newFile('link only.txt')
    await ann.permissions.create({ fileId, requestBody: { type: 'anyone', role: 'reader' } })
    assert.equal((await eve.files.get({ fileId })).data.name, 'link only.txt')
    assert.ok(!(await names(eve, {})).includes('link only.txt'))
    sim.drive.world.open(EVE, fileId)
    assert.ok((await names(eve, {})).includes('link only.txt'))
  })

  test('an expired permission is over by itself', async () => {
    const fileId = await newFile('for a day.txt')
    const expirationTime = new Date(clock.now() + 86_400_000).toISOString()
    const requestBody = { type: 'user', role: 'reader', emailAddress: BOB, expirationTime }
    await ann.permissions.create({ fileId, requestBody })
    assert.equal((await bob.files.get({ fileId })).data.id, fileId)
    const before = (await bob.changes.getStartPageToken()).data.startPageToken!
    await clock.advance(86_400_001)
    // Tokens of a day ago are over, too.
    const later = clientOf(sim.drive.issue(BOB))
    assert.equal(await failure(later.files.get({ fileId })), '404 notFound')
    assert.ok(!(await names(later, {})).includes('for a day.txt'))
    assert.deepEqual((await later.changes.list({ pageToken: before })).data.changes, [])
  })

  test('what is given on a folder holds below it, and a limited-access folder keeps it out', async () => {
    const { world } = sim.drive
    const top = world.createFolder({ name: 'Top', by: ANN })
    const inner = world.createFolder({ name: 'Inner', by: ANN, parent: top.id })
    const file = world.create({ name: 'deep.txt', by: ANN, parent: inner.id })
    world.share(top.id, { type: 'user', role: 'writer', email: BOB })
    const own = clientOf(sim.drive.issue(ANN))
    const other = clientOf(sim.drive.issue(BOB))
    const { data } = await own.permissions.list({ fileId: file.id, fields: '*' })
    const inherited = data.permissions!.find(({ emailAddress }) => emailAddress === BOB)!
    assert.deepEqual(inherited.permissionDetails, [
      { permissionType: 'file', role: 'writer', inherited: true, inheritedFrom: top.id },
    ])
    const removal = own.permissions.delete({ fileId: file.id, permissionId: inherited.id! })
    assert.equal(await failure(removal), '403 cannotModifyInheritedPermission')
    await own.files.update({ fileId: inner.id, requestBody: { inheritedPermissionsDisabled: true } })
    assert.equal(await failure(other.files.get({ fileId: file.id })), '404 notFound')
    const folder = await other.files.get({
      fileId: inner.id,
      fields: 'name,capabilities/canListChildren,inheritedPermissionsDisabled',
    })
    assert.deepEqual(folder.data, {
      name: 'Inner',
      capabilities: { canListChildren: false },
      inheritedPermissionsDisabled: true,
    })
  })
})

describe('changes', () => {
  /** All changes since a token, as short texts, and the token after them. */
  async function changes(client: drive_v3.Drive, token: string, driveId?: string) {
    const seen: string[] = []
    let next: string | undefined = token
    let end = ''
    while (next !== undefined) {
      const { data }: { data: drive_v3.Schema$ChangeList } = await client.changes.list({
        pageToken: next,
        pageSize: 2,
        fields: '*',
        ...ALL,
        ...(driveId === undefined ? {} : { driveId }),
      })
      for (const { changeType, removed, file, fileId, drive } of data.changes!) {
        const what = removed ? 'removed' : file?.trashed ? 'trashed' : 'there'
        seen.push(`${changeType} ${file?.name ?? drive?.name ?? fileId} ${what}`)
      }
      assert.equal(data.newStartPageToken === undefined, data.nextPageToken !== undefined)
      next = data.nextPageToken ?? undefined
      end = data.newStartPageToken ?? ''
    }
    return { seen, end }
  }

  async function start(client: drive_v3.Drive, driveId?: string): Promise<string> {
    const params = driveId === undefined ? {} : { driveId, supportsAllDrives: true }
    return (await client.changes.getStartPageToken(params)).data.startPageToken!
  }

  test('each file once, as it is now; what is trashed is there, what is lost is removed', async () => {
    const { world } = sim.drive
    const own = clientOf(sim.drive.issue(ANN))
    const other = clientOf(sim.drive.issue(BOB))
    const token = await start(other)
    const [a, b, c] = ['a', 'b', 'c'].map((name) => world.create({ name, by: ANN }))
    for (const one of [a!, b!, c!]) world.share(one.id, { type: 'user', role: 'reader', email: BOB })
    world.edit(a!.id, 'new')
    world.rename(a!.id, 'a2')
    world.trash(b!.id)
    world.unshare(c!.id, BOB)
    const { seen, end } = await changes(other, token)
    assert.deepEqual(seen, ['file a2 there', 'file b trashed', `file ${c!.id} removed`])
    assert.deepEqual((await changes(other, end)).seen, [])
    world.delete(a!.id)
    assert.deepEqual((await changes(other, end)).seen, [`file ${a!.id} removed`])
    assert.equal(await failure(own.changes.list({ pageToken: 'x' })), '400 invalid')
    assert.equal(await failure(own.changes.list({ pageToken: '1' })), '400 invalid')
  })

  test('a shared folder is one change, and what lies below it none', async () => {
    const { world } = sim.drive
    const other = clientOf(sim.drive.issue(BOB))
    const folder = world.createFolder({ name: 'Folder of many', by: ANN })
    for (let at = 0; at < 3; at++) world.create({ name: `below ${at}`, by: ANN, parent: folder.id })
    const token = await start(other)
    world.share(folder.id, { type: 'user', role: 'reader', email: BOB })
    assert.deepEqual((await changes(other, token)).seen, ['file Folder of many there'])
    assert.equal((await names(other, { q: "name contains 'below'" })).length, 3)
  })

  test('who joins a shared drive is told of the drive only; its own log has its items', async () => {
    const { world } = sim.drive
    const other = clientOf(sim.drive.issue(BOB))
    const own = clientOf(sim.drive.issue(ANN))
    const root = world.addDrive({ name: 'Joined', members: [{ email: ANN, role: 'organizer' }] })
    const file = world.create({ name: 'in it.txt', parent: root.id, by: ANN })
    const [mine, drives] = [await start(other), await start(own, root.id)]
    world.share(root.id, { type: 'user', role: 'reader', email: BOB })
    world.edit(file.id, 'new')
    assert.deepEqual((await changes(other, mine)).seen, ['drive Joined there'])
    assert.deepEqual((await changes(other, drives, root.id)).seen, ['file in it.txt there'])
    const later = await start(other)
    world.unshare(root.id, BOB)
    assert.deepEqual((await changes(other, later)).seen, ['drive undefined removed'])
    assert.equal(
      await failure(other.changes.list({ pageToken: drives, driveId: root.id, ...ALL })),
      '404 notFound',
    )
  })
})

describe('sign-in and limits', () => {
  test('a token without a scope for Drive, and a service account in the name of a user', async () => {
    const weak = clientOf(sim.drive.issue(ANN, ['https://www.googleapis.com/auth/gmail.readonly']))
    assert.equal(await failure(weak.files.list({})), '403 insufficientPermissions')
    const reader = clientOf(sim.drive.issue(ANN, [driveScopes.readonly]))
    assert.equal(
      await failure(reader.files.create({ requestBody: { name: 'no' } })),
      '403 insufficientPermissions',
    )
    const delegated = clientOf({ accessToken: await serviceToken(BOB) })
    const { data } = await delegated.about.get({ fields: 'user/emailAddress' })
    assert.equal(data.user!.emailAddress, BOB)
    await assert.rejects(() => serviceToken('nobody@example.com'))
  })

  /** What an administrator's app does: a signed statement for a token of somebody. */
  async function serviceToken(subject: string): Promise<string> {
    const { client_email: issuer, private_key: key, token_uri: audience } = sim.drive.serviceAccount()
    const nowS = Math.floor(clock.now() / 1000)
    const claims = {
      iss: issuer,
      sub: subject,
      aud: audience,
      exp: nowS + 600,
      iat: nowS,
      scope: driveScopes.readonly,
    }
    const signed = [{ alg: 'RS256', typ: 'JWT' }, claims]
      .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
      .join('.')
    const signature = createSign('RSA-SHA256').update(signed).sign(key, 'base64url')
    const body = new URLSearchParams({
      grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer',
      assertion: `${signed}.${signature}`,
    })
    const answer = await fetch(audience, { method: 'POST', body })
    assert.equal(answer.status, 200)
    return ((await answer.json()) as { access_token: string }).access_token
  }

  test('one sign-in is good for Gmail and Drive', async () => {
    const both = await startSim({
      oauth: { autoApprove: true },
      gmail: { accounts: [{ address: ANN, messages: 1 }] },
      drive: { users: [ANN] },
    })
    try {
      const scopes = [driveScopes.readonly, 'https://www.googleapis.com/auth/gmail.readonly']
      const { accessToken } = both.gmail.issue(ANN, scopes)
      const headers = { authorization: `Bearer ${accessToken}` }
      const paths = ['/gmail/v1/users/me/profile', '/drive/v3/files']
      const answers = await Promise.all(paths.map((path) => fetch(both.baseUrl + path, { headers })))
      assert.deepEqual(
        answers.map(({ status }) => status),
        [200, 200],
      )
    } finally {
      await both.close()
    }
  })

  test('over the quota calls are refused in Google’s shape', async () => {
    sim.drive.quota.set({ unitsPerMinute: 100, shape: 'user403' })
    const own = clientOf(sim.drive.issue(EVE))
    await own.files.list({})
    assert.equal(await failure(own.files.list({})), '403 userRateLimitExceeded')
    sim.drive.quota.set({ unitsPerMinute: 325_000 })
  })

  test('a file or a shared drive is refused with a reason, to everybody, until allowed', async () => {
    const { world } = sim.drive
    const own = clientOf(sim.drive.issue(ANN))
    const file = world.create({ name: 'evil.exe', by: ANN, content: 'x' })
    sim.drive.refuse(file.id, { reason: 'cannotDownloadAbusiveFile' })
    assert.equal(
      await failure(own.files.get({ fileId: file.id, alt: 'media' })),
      '403 cannotDownloadAbusiveFile',
    )
    assert.equal((await own.files.get({ fileId: file.id })).data.name, 'evil.exe')
    sim.drive.allow(file.id)
    assert.equal((await own.files.get({ fileId: file.id, alt: 'media' })).status, 200)
    const root = world.addDrive({ name: 'Far', members: [{ email: ANN, role: 'organizer' }] })
    sim.drive.refuse(root.id, { reason: 'teamDriveMembershipRequired' })
    const listed = own.files.list({ corpora: 'drive', driveId: root.id, ...ALL })
    assert.equal(await failure(listed), '403 teamDriveMembershipRequired')
    sim.faults.add({ do: 'error', status: 500, target: file.id, max: 1 })
    assert.equal(await failure(own.files.get({ fileId: file.id })), '500 backendError')
    assert.equal((await own.files.get({ fileId: file.id })).status, 200)
  })
})
