import assert from 'node:assert/strict'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, relative, sep } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { readCacheOf } from '../../../app/ledger-read-cache.ts'
import type { ProblemError } from '../../../app/problem.ts'
import { OWNER } from '../../../app/user.ts'
import { systemClock } from '../../../base/clock.ts'
import { type Body, DOCS, type FilesWorld, startFilesApi, until } from './files-api.suite.ts'
import { allowedPlace, type PlaceRules } from './folder-place.ts'
import { filesModule } from './module.ts'

const FOLDER = `/api/files/folders/${DOCS}`

/** All pages of a list, one at a time. */
async function all(world: FilesWorld, path: string, limit: number): Promise<Body[]> {
  const items: Body[] = []
  let cursor = ''
  for (;;) {
    const sign = path.includes('?') ? '&' : '?'
    const { status, body } = await world.get(`${path}${sign}limit=${limit}${cursor}`)
    assert.equal(status, 200, JSON.stringify(body))
    items.push(...body.items)
    if (body.next === null) return items
    cursor = `&cursor=${encodeURIComponent(body.next)}`
  }
}

describe('a folder on the API', () => {
  let world: FilesWorld
  before(async () => {
    world = await startFilesApi()
    await world.connect()
    world.drive.device.write('Plans/garden.txt', 'roses')
    world.drive.device.write('Plans/Ideas/pond.txt', 'water')
    world.drive.device.write('readme.md', '# Hello')
    const { status, body } = await world.add()
    assert.equal(status, 201, JSON.stringify(body))
    assert.match(body.text, /is kept in step with the OneDrive of ann@example\.com/)
    world.write('mine.txt', 'made here')
    await world.sync()
  })
  after(async () => {
    assert.deepEqual(world.errors, [])
    await world.close()
  })

  test('is listed with how it stands and what both sides agree on', async () => {
    const { body } = await world.get('/api/files/folders')
    const [drive] = body.items
    assert.deepEqual(
      [drive.name, drive.state, drive.text, drive.files, drive.folders, drive.bytes],
      ['docs', 'in step', 'In step.', 4, 2, 26],
    )
    assert.deepEqual(
      [drive.root, drive.isHere, drive.mode, drive.policy],
      [world.root, true, 'two-way', 'keep-both'],
    )
    assert.deepEqual((await world.get(FOLDER)).body, drive)
    assert.equal((await world.get('/api/files/folders/none')).status, 404)
    const accounts = (await world.get('/api/accounts')).body.items
    assert.deepEqual(accounts, [
      {
        service: 'onedrive',
        name: 'ann@example.com',
        state: 'ready',
        access: 'readwrite',
        title: 'OneDrive of ann@example.com',
        user: 'owner',
        apps: { files: { folders: ['docs'] } },
      },
    ])
  })

  test('shows its tree folder by folder, page by page, and every item', async () => {
    for (const limit of [1, 2, 100]) {
      const items = await all(world, `${FOLDER}/tree`, limit)
      assert.deepEqual(
        items.map(({ name, type, state }) => [name, type, state]),
        [
          ['Plans', 'folder', 'in-step'],
          ['mine.txt', 'file', 'in-step'],
          ['readme.md', 'file', 'in-step'],
        ],
      )
    }
    const [plans] = (await world.get(`${FOLDER}/tree`)).body.items
    const inside = (await world.get(`${FOLDER}/tree?folder=${encodeURIComponent(plans.node)}`)).body
    assert.equal(inside.path, 'Plans')
    assert.deepEqual(
      inside.items.map(({ name }: Body) => name),
      ['Ideas', 'garden.txt'],
    )
    const { node } = inside.items[1]
    const item = (await world.get(`${FOLDER}/items/${encodeURIComponent(node)}`)).body
    assert.deepEqual(
      [item.path, item.here.size, item.there.size, item.agreed],
      ['Plans/garden.txt', 5, 5, { name: 'garden.txt', size: 5 }],
    )
    for (const path of ['tree?folder=i:nobody', 'items/i:nobody', 'tree?folder=l:999']) {
      assert.equal((await world.get(`${FOLDER}/${path}`)).status, 404, path)
    }
    for (const path of [
      'tree?folder=../..',
      'items/x',
      'tree?cursor=x',
      'tree?cursor=bnVsbA',
      'tree?limit=0',
    ]) {
      assert.equal((await world.get(`${FOLDER}/${path}`)).status, 400, path)
    }
  })

  test('tells what was done, newest first and by pages', async () => {
    const items = await all(world, `${FOLDER}/history`, 50)
    for (const limit of [1, 3]) assert.deepEqual(await all(world, `${FOLDER}/history`, limit), items)
    const said = items.map(({ text, path, row, result }) => `${text} ${path} ${row} ${result}`)
    assert.ok(said.includes('Uploaded mine.txt EF13 done'), said.join('\n'))
    assert.ok(said.includes('Downloaded Plans/garden.txt EF14 done'), said.join('\n'))
    assert.ok(said.includes('Folder made here Plans ED3 done'), said.join('\n'))
    assert.deepEqual(
      items.map(({ id }) => id),
      items.map(({ id }) => id).toSorted((a, b) => b - a),
    )
  })

  test('says what changed on which side while it is paused, and syncs when it is asked to', async () => {
    const stream = { scope: 'stream', target: 'files:docs' }
    await world.post('/api/pause', stream)
    const { body: asked } = await world.post(`${FOLDER}/sync`)
    assert.match(asked.text, /Paused, so it waits: docs\.$/)
    assert.equal((await world.post(`${FOLDER}/sync`)).body.outcome, 'already')
    assert.equal((await world.get(FOLDER)).body.state, 'paused')
    world.write('new.txt', 'new')
    world.drive.device.edit('readme.md', '# Other')
    const { store } = world.services.files
    await world.post('/api/resume', stream)
    await world.settled()
    // What is left for the next plan, as the pages would see it before that.
    world.write('new.txt', 'newer')
    world.drive.device.edit('readme.md', '# Third')
    for (const kind of ['files.plan', 'files.sync'])
      await world.post('/api/pause', { scope: 'kind', target: kind })
    const { kinds } = world.services.files
    for (const kind of [kinds.delta, kinds.look]) {
      await world.runtime.engine.enqueue(kind, { drive: DOCS }, { stream: 'files:docs' })
    }
    while ((await store.openCounts(DOCS)).unplanned < 2) {
      await new Promise((resolve) => setImmediate(resolve))
    }
    const items: Body[] = (await world.get(`${FOLDER}/tree`)).body.items
    const state = (name: string) => items.find((item) => item.name === name)
    assert.deepEqual([state('new.txt').state, state('new.txt').text], ['here', 'will be compared'])
    assert.deepEqual([state('readme.md').state, state('readme.md').text], ['there', 'will be downloaded'])
    assert.equal(state('mine.txt').state, 'in-step')
    for (const kind of ['files.plan', 'files.sync'])
      await world.post('/api/resume', { scope: 'kind', target: kind })
    await world.sync()
    assert.equal(world.read('readme.md'), '# Third')
    assert.equal(world.drive.device.read('new.txt')?.toString(), 'newer')
  })

  test('whose sync was just asked for shows it, however seldom a busy server looks', async () => {
    const stream = { scope: 'stream', target: 'files:docs' }
    await world.post('/api/pause', stream)
    const waiting = async (): Promise<number> => (await world.get('/api/overview')).body.jobs.ready
    const before = await waiting()
    // A look that took ten seconds: for a while, who asks is told what was seen last.
    const startedMs = performance.now()
    const times = [startedMs, startedMs + 10_000]
    const clock = { ...systemClock, monotonicMs: () => times.shift() ?? startedMs }
    await readCacheOf(world.runtime.ledger).read('a test', clock, async () => {})
    await world.post(`${FOLDER}/sync`)
    // A job that was put off is ready now, too: asking for a sync also hurries what waits.
    const shown = await waiting()
    assert.ok(shown > before, `${before} jobs were ready, and ${shown} are`)
    await world.post('/api/resume', stream)
    await world.settled()
  })

  test('says what is left alone and why', async () => {
    world.write('half.tmp', 'x')
    world.write('bad|name.txt', 'x')
    await world.sync()
    const items = await all(world, `${FOLDER}/reported`, 1)
    const said = items.map(({ path, because }) => `${path}: ${because}`)
    assert.ok(
      said.some((text) => /^bad\|name\.txt: OneDrive does not take names with/.test(text)),
      said.join('\n'),
    )
    const tree: Body[] = (await world.get(`${FOLDER}/tree`)).body.items
    const bad = tree.find(({ name }) => name === 'bad|name.txt')
    assert.deepEqual([bad.state, bad.there], ['left', null])
    rmSync(join(world.root, 'bad|name.txt'))
    rmSync(join(world.root, 'half.tmp'))
    await world.sync()
  })

  test('what was deleted elsewhere is in the trash, and comes back from there', async () => {
    world.drive.device.delete('mine.txt')
    await world.sync()
    assert.ok(!existsSync(join(world.root, 'mine.txt')))
    const items = await all(world, `${FOLDER}/trash`, 1)
    const entry = items.find(({ path }) => path === 'mine.txt')
    assert.deepEqual([entry.bytes, /^\d{4}-\d\d-\d\d$/.test(entry.day)], [9, true])
    world.write('mine.txt', 'in its place')
    const taken = await world.post(`${FOLDER}/trash/restore`, { id: entry.id })
    assert.deepEqual([taken.status, taken.body.code], [409, 'place-taken'])
    assert.equal(world.read('mine.txt'), 'in its place')
    rmSync(join(world.root, 'mine.txt'))
    assert.equal(
      (await world.post(`${FOLDER}/trash/restore`, { id: entry.id })).body.text,
      'mine.txt is back.',
    )
    assert.equal(world.read('mine.txt'), 'made here')
    await world.sync()
    assert.equal(world.drive.device.read('mine.txt')?.toString(), 'made here')
    assert.equal((await world.post(`${FOLDER}/trash/restore`, { id: entry.id })).status, 404)
  })

  test('no id of the trash leads out of it', async () => {
    const idOf = (names: unknown): string => Buffer.from(JSON.stringify(names)).toString('base64url')
    const day = '2026-11-16'
    for (const names of [
      [day, '..', '..', '..', 'secret'],
      ['..', 'root.json'],
      [day, '../../root.json'],
      [day, ''],
      [day],
      [day, 'x\0y'],
      'x',
      { 0: day },
    ]) {
      const { status, body } = await world.post(`${FOLDER}/trash/restore`, { id: idOf(names) })
      assert.deepEqual([status, body.code], [404, 'trash-unknown'], JSON.stringify(names))
    }
    assert.equal((await world.post(`${FOLDER}/trash/restore`, { id: '%%%' })).status, 404)
  })

  test('models hear how it stands and find files by name, with names as quotations', async () => {
    const call = async (name: string, args: Record<string, unknown>): Promise<string> => {
      const tool = filesModule.tools?.find((one) => one.name === name)
      const parts = await tool!.run(tool!.input.parse(args) as never, world.services as never, {
        user: OWNER,
      })
      return parts.map((part) => (typeof part === 'string' ? part : `«${part.quote}»`)).join('')
    }
    assert.match(
      await call('files_status', {}),
      /Folder docs \(account ann@example\.com, two-way\): in step\. In step\./,
    )
    assert.match(
      await call('files_find', { name: 'POND' }),
      /docs, file, 5 B, .*, in step: «Plans\/Ideas\/pond\.txt»/,
    )
    assert.equal(await call('files_find', { name: 'no such thing' }), 'Nothing has such a name.')
    await assert.rejects(call('files_status', { folder: 'none' }), /There is no folder called none/)
  })

  test('of a root that is gone nothing is concluded, and the trash says so', async () => {
    const aside = `${world.root}-aside`
    renameSync(world.root, aside)
    const { status, body } = await world.get(`${FOLDER}/trash`)
    assert.deepEqual([status, body.code], [409, 'root-missing'])
    renameSync(aside, world.root)
    assert.equal((await world.get(`${FOLDER}/trash`)).status, 200)
  })
})

describe('the settings of a folder', () => {
  let world: FilesWorld
  const path = `${FOLDER}/settings`
  before(async () => {
    world = await startFilesApi()
    await world.connect()
    await world.add()
    await world.settled()
  })
  after(() => world.close())

  test('are told, changed, and hold at once: what is left out stays where it is, on both sides', async () => {
    const { body: before } = await world.get(path)
    assert.deepEqual(before, {
      mode: 'two-way',
      policy: 'keep-both',
      only: [],
      skip: [],
      skipDotfiles: false,
      sizeMbMax: 0,
      followLinks: false,
    })
    world.write('keep.txt', 'kept')
    world.write('big.iso', 'left out')
    const changed = await world.put(path, { policy: 'manual', skip: ['*.iso'] })
    assert.equal(changed.status, 200, JSON.stringify(changed.body))
    assert.deepEqual(changed.body, { ...before, policy: 'manual', skip: ['*.iso'] })
    await world.sync()
    assert.equal(world.drive.device.read('keep.txt')?.toString(), 'kept')
    assert.equal(world.drive.device.has('big.iso'), false)
    assert.equal(world.read('big.iso'), 'left out')
    assert.equal((await world.get(FOLDER)).body.policy, 'manual', 'the list of folders is told of it')
    await world.put(path, { skip: [] })
    await world.sync()
    assert.ok(world.drive.device.has('big.iso'))
  })

  test('that two change at once both hold', async () => {
    const { body: before } = await world.get(path)
    const answers = await Promise.all([
      world.put(path, { skip: ['*.bak'] }),
      world.put(path, { sizeMbMax: 7 }),
      world.put(path, { policy: 'keep-local' }),
    ])
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200],
    )
    const now = { skip: ['*.bak'], sizeMbMax: 7, policy: 'keep-local' }
    assert.deepEqual((await world.get(path)).body, { ...before, ...now })
    await world.put(path, before)
  })

  test('that name the whole folder as a part of it are refused in words of a page', async () => {
    const { status, body } = await world.put(path, { only: ['/'] })
    assert.equal(status, 400)
    assert.doesNotMatch(JSON.stringify(body), /--/)
    assert.equal(body.detail, '/ is the whole folder, which cannot be one of its parts.')
  })

  test('that cannot hold are refused, and nothing is changed', async () => {
    const { body: before } = await world.get(path)
    for (const wrong of [
      { mode: 'sideways' },
      { skip: [''] },
      { only: ['../etc'] },
      { sizeMbMax: -1 },
      { other: 1 },
    ]) {
      assert.equal((await world.put(path, wrong)).status, 400, JSON.stringify(wrong))
    }
    assert.deepEqual((await world.get(path)).body, before)
    assert.equal((await world.put('/api/files/folders/none/settings', {})).status, 404)
    await world.put(path, { mode: 'download-only' })
    await world.connect('readonly')
    assert.equal((await world.put(path, { mode: 'two-way' })).body.code, 'scope-missing')
    assert.equal((await world.put(path, { policy: 'keep-both' })).status, 200)
  })
})

describe('many deletions at once', () => {
  let world: FilesWorld
  before(async () => {
    world = await startFilesApi()
    await world.connect()
    for (let at = 0; at < 15; at++) world.drive.device.write(`file ${at}.txt`, `content ${at}`)
    await world.add()
    await world.sync()
  })
  after(async () => {
    assert.deepEqual(world.errors, [])
    await world.close()
  })

  test('wait for a yes that names their number, and then happen', async () => {
    const held = `${FOLDER}/held-deletes`
    assert.deepEqual((await world.get(held)).body, { here: 0, there: 0, replaced: 0, total: 0, items: [] })
    assert.equal((await world.post(held, { count: 1 })).body.outcome, 'already')
    for (let at = 0; at < 12; at++) rmSync(join(world.root, `file ${at}.txt`))
    await world.sync()
    const { body } = await world.get(held)
    assert.deepEqual([body.here, body.there, body.total, body.items.length], [0, 12, 12, 12])
    assert.deepEqual([body.items[0].side, body.items[0].type], ['there', 'file'])
    const drive = (await world.get(FOLDER)).body
    assert.deepEqual([drive.state, drive.heldDeletes], ['needs you', { local: 0, remote: 12 }])
    const item: Body[] = (await world.get(`${FOLDER}/tree`)).body.items
    assert.equal(item.filter(({ state }) => state === 'held').length, 12)
    const refused = await world.post(held, { count: 11 })
    assert.deepEqual([refused.status, refused.body.code], [409, 'deletes-changed'])
    assert.equal(world.drive.device.has('file 3.txt'), true)
    assert.equal((await world.post(held, { count: 12 })).body.outcome, 'done')
    await world.settled()
    assert.deepEqual(
      [world.drive.device.has('file 3.txt'), world.drive.device.has('file 13.txt')],
      [false, true],
    )
    assert.equal((await world.get(FOLDER)).body.state, 'in step')
    assert.equal((await world.get(held)).body.total, 0)
  })
})

describe('transfers', () => {
  test('are told while they run, with how far and how fast they are', async () => {
    const world = await startFilesApi()
    try {
      await world.connect()
      await world.add()
      await world.sync()
      const { transfers } = world.services.files
      const running = transfers.begin({
        drive: DOCS,
        node: 'i:x',
        localId: undefined,
        direction: 'download',
        path: 'film.mov',
        totalBytes: 10_000,
        startedAtMs: world.services.clock.now(),
      })
      running.moved(2_500)
      const { body } = await world.get(`/api/files/transfers?folder=${DOCS}`)
      assert.deepEqual(body.download, { count: 1, doneBytes: 2_500, totalBytes: 10_000 })
      assert.deepEqual([body.items[0].path, body.items[0].doneBytes], ['film.mov', 2_500])
      assert.deepEqual(body.upload.count, 0)
      const snapshot = (await filesModule.snapshot!(world.services)) as Body
      filesModule.snapshotSchema!.parse(snapshot)
      assert.equal(snapshot.transfers.items.length, 1)
      running.end()
      assert.deepEqual((await world.get('/api/files/transfers')).body.items, [])
      assert.equal((await world.get('/api/files/transfers?folder=none')).status, 404)
    } finally {
      await world.close()
    }
  })
})

describe('adding a folder', () => {
  test('is refused where it must not be, and the reason says what would work', async () => {
    const world = await startFilesApi()
    try {
      const before = await world.add()
      assert.deepEqual([before.status, before.body.code], [400, 'no-account'])
      await world.connect()
      const refusals: [path: string, status: number, code: string][] = [
        ['docs', 400, 'path-relative'],
        ['/etc/tidemark', 403, 'place-private'],
        ['/opt/tidemark', 403, 'place-refused'],
        [join(world.place, '.tidemark', 'trash'), 400, 'place-own'],
        [`${world.place}/../elsewhere`, 403, 'place-refused'],
        [world.runtime.home, 400, 'place-own'],
        [join(world.runtime.home, 'inside'), 400, 'place-own'],
        [join(world.place, 'nowhere'), 400, 'not-a-folder'],
        [join(world.place, 'nowhere', 'in'), 400, 'not-a-folder'],
      ]
      symlinkSync(join(world.place, 'missing'), join(world.place, 'nowhere'))
      for (const [path, status, code] of refusals) {
        const { status: got, body } = await world.add({ path })
        assert.deepEqual([got, body.code], [status, code], path)
      }
      mkdirSync(world.root)
      assert.equal((await world.add({ name: 'Über uns', mode: 'download-only' })).body.name, 'Über uns')
      const drive = (await world.get(`/api/files/folders/${encodeURIComponent('Über uns')}`)).body
      assert.deepEqual([drive.mode, drive.stream], ['download-only', 'files:Über uns'])
      const twice = await world.add()
      assert.deepEqual([twice.status, twice.body.code], [400, 'root-taken'])
      assert.match(readFileSync(join(world.root, '.tidemark/root.json'), 'utf8'), /Über uns/)
      assert.deepEqual(world.errors, [])
    } finally {
      await world.close()
    }
  })

  test('is off on a server that others reach, until a setting says where', async () => {
    const rules = (allowed: string[], host: string) => ({
      config: { files: { allowed_roots: allowed }, server: { host, allowed_hosts: [] } } as never,
      own: ['/srv/tidemark', '/home/ann/conf/tidemark.toml'],
      userHome: '/home/ann',
    })
    assert.throws(() => allowedPlace('/home/ann/docs', rules([], '0.0.0.0')), /others can reach this server/)
    assert.equal(allowedPlace('/home/ann/docs', rules([], '127.0.0.1')), '/home/ann/docs')
    assert.equal(allowedPlace('~/docs', rules([], '127.0.0.1')), '/home/ann/docs')
    assert.equal(allowedPlace('/data/docs', rules(['/data'], '0.0.0.0')), '/data/docs')
    assert.throws(
      () => allowedPlace('/home/ann/docs', rules(['/data'], '127.0.0.1')),
      /can be added in \/data/,
    )
    assert.throws(() => allowedPlace('/home/anna/docs', rules([], '127.0.0.1')), /is not there/)
    assert.throws(() => allowedPlace('/srv', rules(['/'], '127.0.0.1')), /keeps its own files/)
    assert.throws(() => allowedPlace('/home/ann/conf', rules([], '127.0.0.1')), /keeps its own files/)
  })

  test('of keys, of start-up files and of the system takes the command line, whatever is allowed', () => {
    const place = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-place-')))
    const userHome = join(place, 'ann')
    mkdirSync(join(userHome, '.ssh'), { recursive: true })
    mkdirSync(join(userHome, 'docs'))
    symlinkSync(join(userHome, '.ssh'), join(userHome, 'docs', 'innocent'))
    const isRefused = (path: string, allowed: string[], more: Partial<PlaceRules> = {}): void => {
      const files = { allowed_roots: allowed }
      const config = { files, server: { host: '127.0.0.1', allowed_hosts: [] } } as never
      assert.throws(
        () => allowedPlace(path, { config, own: [join(place, 'own')], userHome, ...more }),
        (thrown: ProblemError) => thrown.problem.code === 'place-private',
        path,
      )
    }
    const hidden = ['~/.ssh', '~/.ssh/deep/er', '~/.config/autostart', '~/docs/.hidden', '~/docs/innocent']
    // As programs that look after dot-files leave them.
    mkdirSync(join(userHome, 'dotfiles'))
    writeFileSync(join(userHome, 'dotfiles', 'bashrc'), '')
    symlinkSync(join(userHome, 'dotfiles', 'bashrc'), join(userHome, '.bashrc'))
    hidden.push('~/dotfiles')
    const wide = ['~', '~/', '~/docs/..']
    const system = ['/etc', '/etc/cron.d', '/usr/local', '/var/lib/x', '/root/x', '/run/x', '/proc/self']
    for (const path of hidden) for (const allowed of [[], ['/'], [path]]) isRefused(path, allowed)
    for (const path of [...wide, ...system]) isRefused(path, ['/'])
    isRefused('~/Library/LaunchAgents', ['/'], { platform: 'darwin' })
    // A user of a container may have / for a home.
    for (const path of ['/etc/cron.d', '/usr/local']) isRefused(path, [], { userHome: '/' })
    rmSync(place, { recursive: true })
  })

  test('that is mounted at a second place is judged as what it is', () => {
    const place = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-place-')))
    for (const folder of ['ann/.ssh', 'ann/docs', 'own/mail', 'mnt']) {
      mkdirSync(join(place, folder), { recursive: true })
    }
    const mounted = { ssh: 'ann/.ssh', home: 'ann', own: 'own', all: '', docs: 'ann/docs' }
    const identityOf = (path: string): string | undefined => {
      const [name = '', ...rest] = relative(join(place, 'mnt'), path).split(sep)
      const real = mounted[name as keyof typeof mounted]
      const leads = real === undefined ? path : join(place, real, ...rest)
      return existsSync(leads) ? leads.replace(/\/$/, '') : undefined
    }
    const files = { allowed_roots: [join(place, 'mnt')] }
    const config = { files, server: { host: '127.0.0.1', allowed_hosts: [] } } as never
    const rules = { config, own: [join(place, 'own')], userHome: join(place, 'ann'), identityOf }
    const refusals: [path: string, code: string][] = [
      ['ssh', 'place-private'],
      ['home/.ssh/deep', 'place-private'],
      ['home', 'place-private'],
      ['own', 'place-own'],
      ['own/mail', 'place-own'],
      ['all', 'place-own'],
    ]
    for (const [path, code] of refusals) {
      assert.throws(
        () => allowedPlace(join(place, 'mnt', path), rules),
        (thrown: ProblemError) => thrown.problem.code === code,
        path,
      )
    }
    for (const path of ['docs', 'home/docs', 'other']) {
      assert.equal(allowedPlace(join(place, 'mnt', path), rules), join(place, 'mnt', path))
    }
    rmSync(place, { recursive: true })
  })
})

describe('a folder that is not kept in step any more', () => {
  let world: FilesWorld
  before(async () => {
    world = await startFilesApi()
    await world.connect()
    world.drive.device.write('readme.md', '# Hello')
    assert.equal((await world.add()).status, 201)
    world.write('mine.txt', 'made here')
    await world.sync()
  })
  after(() => world.close())

  const headers = { 'x-tidemark': '1' }
  const remove = async (): Promise<{ status: number; body: Body }> => {
    const answer = await world.request(FOLDER, { method: 'DELETE', headers })
    return { status: answer.status, body: await answer.json() }
  }

  test('leaves both sides as they are, and no work behind', async () => {
    const { engine, files, ledger } = world.runtime
    const stream = `files:${DOCS}`
    await world.post('/api/pause', { scope: 'kind', target: 'files.upload' })
    for (const name of ['a', 'b', 'c']) world.write(`${name}.txt`, name)
    await engine.enqueue(files.kinds.sync, { drive: DOCS }, { stream })
    await until(async () => (await ledger.jobs({ kind: 'files.upload', state: 'pending' })).length === 3)
    const { status, body } = await remove()
    await world.post('/api/resume', { scope: 'kind', target: 'files.upload' })
    await engine.drained()
    assert.deepEqual(await ledger.unbalanced(), [])
    const [books] = (await ledger.streams()).filter((one) => one.name === stream)
    assert.equal(books!.segments, books!.settled_segments)
    assert.equal(status, 200, JSON.stringify(body))
    assert.equal(body.text, `docs is not kept in step any more. ${world.root} and OneDrive stay as they are.`)
    assert.equal((await world.get(FOLDER)).status, 404)
    assert.deepEqual((await world.get('/api/files/folders')).body.items, [])
    assert.equal(world.read('readme.md'), '# Hello')
    assert.equal(world.drive.device.read('mine.txt')?.toString(), 'made here')
    assert.equal(existsSync(join(world.root, '.tidemark/root.json')), false)
    assert.deepEqual(await ledger.pauses(), [])
    assert.deepEqual(await ledger.jobs({ stream, state: 'pending', limit: 9 }), [])
    assert.equal((await remove()).status, 404)
  })

  test('lets work that comes too late end, and is added again without a copy of anything', async () => {
    const { engine, files, ledger } = world.runtime
    const stream = `files:${DOCS}`
    await engine.enqueue(files.kinds.sync, { drive: DOCS }, { stream })
    await engine.drained()
    assert.deepEqual(await ledger.jobs({ stream, state: 'failed', limit: 9 }), [])
    assert.equal((await world.add()).status, 201)
    await world.sync()
    const { body } = await world.get(FOLDER)
    assert.deepEqual([body.state, body.files, body.conflicts], ['in step', 5, 0])
    const done = await all(world, `${FOLDER}/history`, 50)
    const copied = done.filter(
      ({ text, result }) => (text === 'Uploaded' || text === 'Downloaded') && result === 'done',
    )
    assert.equal(new Set(copied.map(({ path }) => path)).size, copied.length, 'each only once')
    assert.equal(copied.length, 5)
    const [books] = (await ledger.streams()).filter((one) => one.name === stream)
    assert.equal(books!.segments, books!.settled_segments, 'the mark is not held up')
  })

  test('and is added again while work of before still waits: that work does nothing in it', async () => {
    const { engine, files, ledger } = world.runtime
    const uploads = () => ledger.jobs({ kind: 'files.upload', state: 'pending', limit: 99 })
    const sync = () => engine.enqueue(files.kinds.sync, { drive: DOCS }, { stream: `files:${DOCS}` })
    await world.post('/api/pause', { scope: 'kind', target: 'files.upload' })
    for (const name of ['m', 'n', 'o']) world.write(`${name}.txt`, name)
    await sync()
    await until(async () => (await uploads()).length === 3)
    const sinceMs = ledger.now()
    assert.equal((await remove()).status, 200)
    assert.equal((await uploads()).length, 3)
    world.write('first.txt', 'makes others of all numbers')
    assert.equal((await world.add()).status, 201)
    await sync()
    await until(async () => (await uploads()).length === 3 + 4)
    await world.post('/api/resume', { scope: 'kind', target: 'files.upload' })
    await world.settled()
    const done = (await all(world, `${FOLDER}/history`, 50)).filter(
      ({ text, at }) => text === 'Uploaded' && at >= sinceMs,
    )
    const paths = (wanted: string) =>
      done.flatMap(({ path, result }) => (result === wanted ? [path] : [])).sort()
    assert.deepEqual(paths('done'), ['first.txt', 'm.txt', 'n.txt', 'o.txt'])
    assert.deepEqual(paths('not needed'), ['m.txt', 'n.txt', 'o.txt'])
    assert.deepEqual(await ledger.unbalanced(), [])
  })

  test('leaves the marker of another that has its place now', async () => {
    renameSync(world.root, `${world.root}-moved`)
    const marker = join(world.root, '.tidemark/root.json')
    mkdirSync(dirname(marker), { recursive: true })
    const other = { markerId: 'other', drive: 'theirs', createdAt: '2026-01-01T00:00:00.000Z' }
    writeFileSync(marker, JSON.stringify(other))
    assert.equal((await remove()).status, 200)
    assert.deepEqual(JSON.parse(readFileSync(marker, 'utf8')), other)
    assert.ok(existsSync(join(`${world.root}-moved`, 'mine.txt')))
  })
})
