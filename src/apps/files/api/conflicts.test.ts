import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { OWNER } from '../../../app/user.ts'
import { type Body, DOCS, DOT_PNG, type FilesWorld, startFilesApi } from './files-api.suite.ts'
import { filesModule } from './module.ts'
import { TEXT_BYTES_MAX } from './preview.ts'

const CONFLICTS = `/api/files/folders/${DOCS}/conflicts`

/** Edits a file on both sides, so that nobody knows which counts. */
async function clash(
  world: FilesWorld,
  path: string,
  { here, there }: { here: string | Uint8Array; there: string | Uint8Array },
): Promise<Body> {
  world.drive.device.write(path, 'before')
  await world.sync()
  world.write(path, here)
  world.drive.device.edit(path, there)
  await world.sync()
  const { body } = await world.get(CONFLICTS)
  return body.items.find((one: Body) => one.path === path)
}

describe('conflicts that people decide', () => {
  let world: FilesWorld
  before(async () => {
    world = await startFilesApi()
    await world.connect()
    await world.add({ policy: 'manual' })
    await world.sync()
  })
  after(async () => {
    assert.deepEqual(world.errors, [])
    await world.close()
  })
  const resolve = async (id: number, keep: string): Promise<Body> => {
    const { status, body } = await world.post(`${CONFLICTS}/${id}/resolve`, { keep })
    assert.equal(status, 202, JSON.stringify(body))
    await world.settled()
    return body
  }

  test('show both versions as text, and nothing is lost whichever is kept', async () => {
    const texts = { here: 'mine <script>alert(1)</script>', there: 'theirs' }
    const { id, state, kind } = await clash(world, 'a.html', texts)
    assert.deepEqual([state, kind], ['open', 'edit-edit'])
    const detail = (await world.get(`${CONFLICTS}/${id}`)).body
    assert.deepEqual(
      [detail.here.preview, detail.here.text, detail.here.isWhole, detail.here.path],
      ['text', texts.here, true, 'a.html'],
    )
    assert.deepEqual([detail.there.preview, detail.there.text, detail.there.bytes], ['text', 'theirs', 6])
    assert.equal(detail.canResolve, true)
    const drive = (await world.get(`/api/files/folders/${DOCS}`)).body
    assert.deepEqual([drive.state, drive.conflicts], ['needs you', 1])
    const tree: Body[] = (await world.get(`/api/files/folders/${DOCS}/tree`)).body.items
    assert.deepEqual([tree[0].state, tree[0].conflict], ['conflict', id])
    const { text } = await resolve(id, 'local')
    assert.equal(
      text,
      'a.html: The version of the folder is kept; that of OneDrive goes to the trash of the folder.',
    )
    assert.equal(world.drive.device.read('a.html')?.toString(), texts.here)
    const trash: Body[] = (await world.get(`/api/files/folders/${DOCS}/trash`)).body.items
    assert.ok(trash.some(({ path, bytes }) => path === 'a.html' && bytes === texts.there.length))
    const decided = (await world.get(`${CONFLICTS}/${id}`)).body
    assert.deepEqual(
      [decided.here.text, decided.there.text, decided.there.note, `a.html: ${decided.outcome}`],
      [texts.here, texts.here, null, text],
    )
    assert.equal((await world.post(`${CONFLICTS}/${id}/resolve`, { keep: 'both' })).body.outcome, 'already')
    assert.equal((await world.get(`${CONFLICTS}/${id}`)).body.canResolve, false)
  })

  test('what gives way to OneDrive is in the trash of the folder', async () => {
    const { id } = await clash(world, 'b.txt', { here: 'mine', there: 'theirs' })
    await resolve(id, 'remote')
    assert.equal(world.read('b.txt'), 'theirs')
    const { here, there } = (await world.get(`${CONFLICTS}/${id}`)).body
    assert.deepEqual([here.text, there.text, there.note, there.path], ['theirs', 'theirs', null, 'b.txt'])
    const trash: Body[] = (await world.get(`/api/files/folders/${DOCS}/trash`)).body.items
    assert.ok(trash.some(({ path, bytes }) => path === 'b.txt' && bytes === 4))
  })

  test('both are kept under two names', async () => {
    const { id } = await clash(world, 'c.txt', { here: 'mine', there: 'theirs' })
    // One that came later must not change by which number people look at this one.
    const later = await clash(world, 'later.txt', { here: 'mine', there: 'theirs' })
    await resolve(id, 'both')
    await world.sync()
    const { here, there, copyPath, outcome } = (await world.get(`${CONFLICTS}/${id}`)).body
    assert.deepEqual([here.text, there.text, here.path, there.path], ['mine', 'theirs', copyPath, 'c.txt'])
    assert.equal(outcome, `Both versions are kept: that of the folder as ${copyPath}.`)
    await resolve(later.id, 'local')
    assert.equal(world.read('c.txt'), 'theirs')
    const tree: Body[] = (await world.get(`/api/files/folders/${DOCS}/tree`)).body.items
    const copy = tree.find(({ name }) => /^c\.conflict-/.test(name))
    assert.equal(world.read(copy.name), 'mine')
    assert.equal(world.drive.device.read(copy.name)?.toString(), 'mine')
  })

  test('folders above a conflict are not in step until it is decided, also under another name', async () => {
    const deep = await clash(world, 'Work/2026/deep.txt', { here: 'mine', there: 'theirs' })
    const top = await clash(world, 'Work/top.txt', { here: 'mine', there: 'theirs' })
    const listed = async (folder = ''): Promise<Body[]> =>
      (await world.get(`/api/files/folders/${DOCS}/tree${folder && `?folder=${folder}`}`)).body.items
    const work = (await listed()).find(({ name }) => name === 'Work')
    assert.deepEqual([work.state, work.text], ['conflict', '2 conflicts inside: you decide'])
    assert.equal((await world.get(`/api/files/folders/${DOCS}/items/${work.node}`)).body.state, 'conflict')
    const year = (await listed(work.node)).find(({ name }) => name === '2026')
    assert.deepEqual([year.state, year.text], ['conflict', '1 conflict inside: you decide'])
    await resolve(deep.id, 'local')
    assert.equal((await listed(work.node)).find(({ name }) => name === '2026').state, 'in-step')
    world.drive.device.rename('Work', 'Job')
    await world.sync()
    const job = (await listed()).find(({ name }) => name === 'Job')
    assert.deepEqual([job.state, job.text], ['conflict', '1 conflict inside: you decide'])
    await resolve(top.id, 'remote')
    assert.equal((await listed()).find(({ name }) => name === 'Job').state, 'in-step')
  })

  test('pictures are shown as what their bytes are, and nothing else is', async () => {
    const svg = '<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'
    const { id } = await clash(world, 'dot.png', { here: DOT_PNG, there: svg })
    const detail = (await world.get(`${CONFLICTS}/${id}`)).body
    assert.deepEqual([detail.here.preview, detail.here.text], ['image', null])
    assert.deepEqual([detail.there.preview, detail.there.text], ['text', svg])
    const image = await world.request(`${CONFLICTS}/${id}/image?side=here`)
    assert.equal(image.headers.get('content-type'), 'image/png')
    assert.equal(image.headers.get('content-security-policy'), "default-src 'none'; sandbox")
    assert.equal(image.headers.get('x-content-type-options'), 'nosniff')
    assert.deepEqual(Buffer.from(await image.arrayBuffer()), DOT_PNG)
    assert.equal((await world.get(`${CONFLICTS}/${id}/image?side=there`)).status, 404)
    await resolve(id, 'local')
  })

  test('of a long text there is the beginning, and of what is neither text nor picture only the facts', async () => {
    const long = 'ä'.repeat(TEXT_BYTES_MAX)
    const { id } = await clash(world, 'long.txt', { here: long, there: new Uint8Array([0, 1, 2, 255]) })
    const { here, there } = (await world.get(`${CONFLICTS}/${id}`)).body
    assert.deepEqual(
      [here.isWhole, here.text, here.bytes],
      [false, long.slice(0, TEXT_BYTES_MAX / 2), TEXT_BYTES_MAX * 2],
    )
    assert.deepEqual([there.preview, there.note], ['none', 'It is neither text nor a picture.'])
    world.sim.faults.set({ rules: [{ do: 'error', status: 500, probability: 1 }] })
    const away = (await world.get(`${CONFLICTS}/${id}`)).body
    assert.deepEqual([away.here.preview, away.there.preview], ['text', 'none'])
    assert.ok(away.there.note.length > 0)
    world.sim.faults.set({ rules: [] })
    await resolve(id, 'both')
  })

  test('and all else in the folder of another user are seen by an admin only with a note of it', async () => {
    const { users, accounts } = world.services
    const { id } = await clash(world, 'secret.txt', { here: 'mine', there: 'theirs' })
    const [item]: Body[] = (await world.get(`/api/files/folders/${DOCS}/tree`)).body.items
    const call = async (name: string, args: Record<string, unknown>): Promise<unknown> => {
      const tool = filesModule.tools!.find((one) => one.name === name)!
      return tool.run(tool.input.parse(args) as never, world.services as never, { user: OWNER })
    }
    const look = async (): Promise<void> => {
      const pages = ['conflicts', `conflicts/${id}`, 'tree', `items/${item.node}`, 'trash', 'history']
      for (const page of [...pages, 'reported', 'held-deletes', `conflicts/${id}`]) {
        assert.equal((await world.get(`/api/files/folders/${DOCS}/${page}`)).status, 200, page)
      }
      for (const args of [{}, { folder: DOCS }]) {
        await call('files_status', args)
        await call('files_find', { name: 'secret', ...args })
      }
    }
    await look()
    assert.deepEqual(await users.audit({ limit: 100 }), [], 'what is one’s own is nobody’s business')
    const ann = await users.add({ name: 'ann', role: 'member' })
    const [account] = await accounts.list('onedrive')
    await accounts.setUser(account!.id, ann.id)
    await look()
    await look()
    await accounts.setUser(account!.id, OWNER.id)
    assert.deepEqual((await users.audit({ limit: 100 })).map(({ subject }) => subject).reverse(), [
      'ann: listed conflicts of folder docs',
      `ann: read conflict ${id} of folder docs`,
      'ann: listed the top of folder docs',
      `ann: read item ${item.node} of folder docs`,
      'ann: listed trash of folder docs',
      'ann: read history of folder docs',
      'ann: listed what is left alone of folder docs',
      'ann: listed held deletions of folder docs',
      'everybody: asked how all folders stand',
      'everybody: looked for names of files like secret',
      'ann: asked for the state of folder docs',
      'ann: looked for names like secret of folder docs',
    ])
    await resolve(id, 'local')
  })

  test('are listed by what became of them, and by pages', async () => {
    assert.deepEqual((await world.get(`${CONFLICTS}?state=open`)).body.items, [])
    const first = (await world.get(`${CONFLICTS}?state=settled&limit=2`)).body
    const second = (await world.get(`${CONFLICTS}?state=settled&limit=500&cursor=${first.next}`)).body
    const ids = [...first.items, ...second.items].map(({ id }: Body) => id)
    assert.deepEqual(
      ids,
      [...new Set(ids)].toSorted((a, b) => b - a),
    )
    assert.ok(ids.length >= 5)
    assert.equal((await world.get(`${CONFLICTS}/999`)).status, 404)
    assert.equal((await world.post(`${CONFLICTS}/999/resolve`, { keep: 'both' })).status, 404)
    assert.equal((await world.post(`${CONFLICTS}/1/resolve`, { keep: 'mine' })).status, 400)
  })
})

describe('conflicts of which both versions were kept', () => {
  test('can be compared afterwards: both are in the folder', async () => {
    const world = await startFilesApi()
    try {
      await world.connect()
      await world.add()
      await world.sync()
      const { id, state, copyPath } = await clash(world, 'Plans/a.txt', { here: 'mine', there: 'theirs' })
      assert.equal(state, 'kept-both')
      assert.match(copyPath, /^Plans\/a\.conflict-/)
      const { here, there } = (await world.get(`${CONFLICTS}/${id}`)).body
      assert.deepEqual(
        [here.text, here.path, there.text, there.path],
        ['mine', copyPath, 'theirs', 'Plans/a.txt'],
      )
      assert.deepEqual(world.errors, [])
    } finally {
      await world.close()
    }
  })
})
