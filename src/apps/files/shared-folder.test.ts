/** Folders of other people: found, chosen, kept in step, and never lost when they are withdrawn. */
import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { connectCommand } from '../../app/accounts/connecting.ts'
import { oneDriveService } from '../../cloud/onedrive/account.ts'
import { createEngine } from '../../engine/engine.ts'
import { openLedger } from '../../ledger/open.ts'
import type { SimDrive } from '../../sim/onedrive/sim-drive.ts'
import { type Fate, judgeMissed, type Missed } from './absence.ts'
import { ANN, FilesHome } from './cli/files.suite.ts'
import type { FolderPairs } from './folder-pair.ts'
import { resumeShares } from './shared-folder.ts'
import { FileStore } from './store/file-store.ts'

const BEN = 'ben@example.com'
/** At work: its drive tells no changes of a single folder. */
const CAT = 'cat@example.com'

type Listed = { drives: { id: string; name: string; type: string; owner: string | null }[] }
type Status = { state: string; text: string; sharedBy: string | null; mode: string }

let world: FilesHome
let folders = 0

async function open(): Promise<void> {
  const drives = [{ account: ANN }, { account: BEN }, { account: CAT, type: 'business' as const }]
  const made = await FilesHome.prepare({ drives })
  world = new FilesHome(made.sim, made.base)
  await world.connect(ANN, 'shared')
  for (const owner of [BEN, CAT]) {
    const { device } = of(owner)
    device.write('Projects/plan.txt', 'the plan')
    device.write('Projects/deep/note.txt', 'a note')
    for (let number = 0; number < 12; number++)
      device.write(`Projects/many/${number}.txt`, `number ${number}`)
    device.write('private.txt', 'mine')
  }
}

const of = (account: string): SimDrive => world.sim.onedrive.drive(account)

function newFolder(): string {
  folders += 1
  const path = join(world.place, `shared-${folders}`)
  mkdirSync(path)
  return path
}

async function list(): Promise<Listed['drives']> {
  return (JSON.parse((await world.run('files', 'drives', '--json')).stdout) as Listed).drives
}

async function statusOf(name: string): Promise<Status> {
  const { stdout } = await world.run('files', 'status', name, '--json')
  return (JSON.parse(stdout) as Status[])[0]!
}

const read = (...path: string[]): string => readFileSync(join(...path), 'utf8')
const synced = async (...args: string[]): Promise<string> => {
  const { code, stderr, stdout } = await world.run('files', 'sync', ...args)
  assert.equal(code, 0, stderr + stdout)
  return stderr
}
const remove = (folder: string) => world.run('files', 'remove', folder)

for (const [kind, owner] of [
  ['a personal drive', BEN],
  ['a drive of work, which tells no changes of a folder', CAT],
] as const) {
  describe(`a folder that somebody shares, of ${kind}`, () => {
    before(open)
    after(() => world.close())
    const name = `Projects (${owner.split('@')[0]})`

    test('is listed with its owner and chosen by name; changes go both ways, and nothing beside it is touched', async () => {
      of(owner).share('Projects', ANN)
      const shared = (await list()).find((one) => one.type === 'sharedFolder')
      assert.deepEqual([shared?.name, shared?.owner], [name, owner.split('@')[0]])
      const folder = newFolder()
      writeFileSync(join(folder, 'mine.txt'), 'from ann')
      const said = await synced(folder, '--drive', name)
      assert.match(said, new RegExp(`a folder that ${owner.split('@')[0]} shares with ${ANN}`))
      assert.equal(read(folder, 'deep/note.txt'), 'a note')
      assert.ok(!existsSync(join(folder, 'private.txt')))
      assert.equal(of(owner).device.read('Projects/mine.txt')?.toString(), 'from ann')
      assert.deepEqual(world.thereNow(), {}, 'the own drive is left alone')

      of(owner).device.write('Projects/deep/note.txt', 'edited by the owner')
      of(owner).device.delete('Projects/many/3.txt')
      of(owner).device.move('Projects/many/4.txt', 'Projects/deep/four.txt')
      // On a drive of work that is refused from then on, and so not told from what is withheld: see below.
      if (owner === BEN) of(owner).device.move('Projects/plan.txt', 'taken out.txt')
      of(owner).device.write('private.txt', 'still mine')
      writeFileSync(join(folder, 'many/5.txt'), 'edited by the guest')
      rmSync(join(folder, 'many/6.txt'))
      mkdirSync(join(folder, 'new/below'), { recursive: true })
      writeFileSync(join(folder, 'new/below/big.bin'), Buffer.alloc(5 * 1024 * 1024, 7))
      await synced(folder)
      assert.equal(read(folder, 'deep/note.txt'), 'edited by the owner')
      assert.equal(read(folder, 'deep/four.txt'), 'number 4')
      for (const gone of ['many/3.txt', 'many/4.txt', ...(owner === BEN ? ['plan.txt'] : [])])
        assert.ok(!existsSync(join(folder, gone)), gone)
      const there = of(owner).device
      assert.equal(there.read('Projects/many/5.txt')?.toString(), 'edited by the guest')
      assert.ok(!there.has('Projects/many/6.txt'))
      assert.equal(there.item('Projects/new/below/big.bin').content?.size, 5 * 1024 * 1024)
      if (owner === BEN) assert.equal(there.read('taken out.txt')?.toString(), 'the plan', 'it stays there')
      const { code, stdout } = await world.run('files', 'verify', folder, '--deep')
      assert.equal(code, 0, stdout)
      const put = await world.run('files', 'put', join(folder, 'mine.txt'), 'deep/put.txt')
      assert.equal(put.code, 0, put.stderr)
      assert.ok(there.has('Projects/deep/put.txt'), 'paths begin at the shared folder')
    })

    test('that is withdrawn stops, keeps every file here, says so, and goes on when it is shared again', async () => {
      const folder = join(world.place, `shared-${folders}`)
      const before = readdirSync(folder, { recursive: true }).filter((path) => !String(path).startsWith('.'))
      of(owner).unshare('Projects', ANN)
      writeFileSync(join(folder, 'while it was gone.txt'), 'kept')
      rmSync(join(folder, 'many/7.txt'))
      const { code, stderr } = await world.run('files', 'sync', folder)
      assert.equal(code, 1, stderr)
      assert.match(stderr, /has deleted this folder, or does not share it with you any more/)
      for (const path of before.filter((path) => path !== 'many/7.txt'))
        assert.ok(existsSync(join(folder, String(path))), String(path))
      const status = await statusOf(folder)
      assert.equal(status.state, 'needs you')
      assert.match(status.text, /All files here stay as they are/)
      assert.match((await world.run('status')).stdout, /does not share it with you any more/)
      const again = await world.run('files', 'sync', folder)
      assert.equal(again.code, 1, 'it does not lie the second time either')
      assert.match(again.stderr, /does not share it/)

      rmSync(join(folder, 'many/8.txt'))
      of(owner).share('Projects', ANN)
      await synced(folder)
      assert.equal(of(owner).device.read('Projects/while it was gone.txt')?.toString(), 'kept')
      for (const number of [7, 8]) {
        assert.ok(of(owner).device.has(`Projects/many/${number}.txt`), 'not deleted there')
        assert.equal(read(folder, `many/${number}.txt`), `number ${number}`, 'it came back')
      }
      assert.equal((await statusOf(folder)).state, 'in step')
    })

    test('that waits to be shared again waits for the user, too, once he pauses it', async () => {
      const folder = join(world.place, `shared-${folders}`)
      of(owner).unshare('Projects', ANN)
      await world.run('files', 'sync', folder)
      assert.match((await world.run('files', 'pause', folder)).stdout, /is paused\./)
      of(owner).share('Projects', ANN)
      writeFileSync(join(folder, 'during the pause.txt'), 'kept')
      await world.run('files', 'sync', folder)
      assert.equal((await statusOf(folder)).state, 'paused')
      assert.ok(!of(owner).device.has('Projects/during the pause.txt'))
      await world.run('files', 'resume', folder)
      await synced(folder)
      assert.ok(of(owner).device.has('Projects/during the pause.txt'))
    })

    test('whose owner deletes it as a whole takes nothing away here', async () => {
      const folder = join(world.place, `shared-${folders}`)
      of(owner).device.delete('Projects')
      const { code, stderr } = await world.run('files', 'sync', folder)
      assert.equal(code, 1, stderr)
      assert.equal(read(folder, 'deep/note.txt'), 'edited by the owner')
      assert.equal((await statusOf(folder)).state, 'needs you')
      of(owner).device.restore('Projects')
      await synced(folder)
      assert.equal(read(folder, 'deep/note.txt'), 'edited by the owner')
      await remove(folder)
    })
  })
}

describe('what is not there any more', () => {
  before(open)
  after(() => world.close())

  test('of a folder that is withdrawn is not deleted here, though OneDrive says that all of it is deleted', async () => {
    of(BEN).share('Projects', ANN)
    const folder = newFolder()
    await synced(folder, '--drive', 'Projects (ben)')
    of(BEN).setQuirks({ withdrawnListsDeleted: true })
    of(BEN).unshare('Projects', ANN)
    const { code, stderr } = await world.run('files', 'sync', folder)
    assert.equal(code, 1, stderr)
    assert.match(stderr, /does not share it with you any more/)
    assert.equal(read(folder, 'plan.txt'), 'the plan')
    assert.equal(read(folder, 'many/7.txt'), 'number 7')
    of(BEN).share('Projects', ANN)
    await synced(folder)
    assert.deepEqual(trashOf(folder), [])
    assert.equal(read(folder, 'many/7.txt'), 'number 7')
    of(BEN).setQuirks({ withdrawnListsDeleted: false })
  })

  test('where it was, because it was moved while everything was listed, is not taken for deleted', async () => {
    const { device, state } = of(CAT)
    for (const name of ['a', 'b']) device.write(`Listed/${name}/${name}.txt`, name)
    device.write('Listed/b/moved.txt', 'moved')
    of(CAT).share('Listed', ANN)
    const folder = newFolder()
    await synced(folder, '--drive', 'Listed (cat)')
    const fetched = world.sim.log.bytesOf('graph.download').sent
    const last = device.item('Listed/b').id
    const get = state.get.bind(state)
    let moves = 0
    // The folder that it goes to was listed already, the one that it leaves is listed next.
    state.get = (id) => {
      if (id === last && moves++ === 0) device.move('Listed/b/moved.txt', 'Listed/a/moved.txt')
      return get(id)
    }
    await synced(folder)
    state.get = get
    assert.ok(moves > 1)
    assert.equal(read(folder, 'a/moved.txt'), 'moved')
    assert.deepEqual(trashOf(folder), [])
    assert.equal(world.sim.log.bytesOf('graph.download').sent, fetched, 'it was moved, and not fetched again')
  })
})

describe('what a listing does not meet', () => {
  before(open)
  after(() => world.close())

  /** Does something as soon as the folder or file is asked for the first time. */
  async function meanwhile(owner: string, id: string, run: () => void, sync: () => Promise<unknown>) {
    const { state } = of(owner)
    const get = state.get.bind(state)
    let times = 0
    state.get = (wanted) => {
      if (wanted === id && times++ === 0) run()
      return get(wanted)
    }
    await sync()
    state.get = get
    assert.ok(times > 0)
  }

  test('because it went into a folder that was made meanwhile, or left one that was deleted then, stays', async () => {
    const { device } = of(CAT)
    for (const path of ['a/a.txt', 'b/b.txt', 'b/F/x.txt', 'b/G/y.txt', 'b/G/z.txt'])
      device.write(`Listed/${path}`, path)
    of(CAT).share('Listed', ANN)
    const folder = newFolder()
    await synced(folder, '--drive', 'Listed (cat)')
    const fetched = world.sim.log.bytesOf('graph.download').sent
    const run = (): void => {
      device.move('Listed/b/F/x.txt', 'Listed/a/x.txt')
      device.delete('Listed/b/F')
      device.mkdir('Listed/New')
      device.move('Listed/b/G', 'Listed/New/G')
    }
    await meanwhile(CAT, device.item('Listed/b').id, run, () => synced(folder))
    assert.deepEqual(trashOf(folder), [])
    assert.equal(read(folder, 'a/x.txt'), 'b/F/x.txt')
    assert.equal(read(folder, 'New/G/y.txt'), 'b/G/y.txt')
    assert.ok(!existsSync(join(folder, 'b/F')))
    assert.equal(world.sim.log.bytesOf('graph.download').sent, fetched, 'moved, and not fetched again')
    await remove(folder)
  })

  test('is not deleted where the folder is withdrawn while it is looked for', async () => {
    of(BEN).setQuirks({ folderDelta: false })
    of(BEN).share('Projects', ANN)
    const folder = newFolder()
    await synced(folder, '--drive', 'Projects (ben)')
    const { id } = of(BEN).device.item('Projects/many/1.txt')
    of(BEN).device.delete('Projects/many/1.txt')
    const run = (): void => of(BEN).unshare('Projects', ANN)
    await meanwhile(BEN, id, run, () => world.run('files', 'sync', folder))
    assert.equal(read(folder, 'many/1.txt'), 'number 1')
    assert.equal((await statusOf(folder)).state, 'needs you')
    of(BEN).share('Projects', ANN)
    await synced(folder)
    assert.ok(!existsSync(join(folder, 'many/1.txt')))
    await remove(folder)
  })

  test('is deleted as far as it was looked for, a folder only with all that was in it', async () => {
    const tree: Record<string, string[]> = {
      '': ['F', 'G', 'H'],
      F: ['F/1', 'F/2', 'F/3'],
      G: ['G/1'],
      H: ['H/1'],
    }
    const fates: Record<string, Fate> = { 'G/1': 'inside', H: 'withheld' }
    const judged = (looksMax: number): Promise<Missed> =>
      judgeMissed(
        {
          missed: async (within = '', limit) => (tree[within] ?? []).slice(0, limit),
          fate: async (id) => fates[id] ?? 'gone',
        },
        { looksMax, signal: new AbortController().signal, isHasty: false },
      )
    const all = await judged(100)
    assert.deepEqual([all.gone, all.withheld], [['F/1', 'F/2', 'F/3', 'F'], ['H']])
    assert.deepEqual([all.isMoving, all.isCut], [true, false])
    const some = await judged(5)
    assert.deepEqual([some.gone, some.isCut], [['F/1', 'F/2'], true])
    assert.deepEqual((await judged(2)).gone, [])
  })
})

for (const folderDelta of [true, false]) {
  test(`one folder in it that is withheld stays, and is told, where a drive of work ${folderDelta ? 'calls it deleted' : 'lists it no more'}`, async () => {
    await open()
    try {
      of(CAT).setQuirks({ folderDelta })
      of(CAT).share('Projects', ANN)
      const folder = newFolder()
      await synced(folder, '--drive', 'Projects (cat)')
      of(CAT).unshare('Projects/many', ANN)
      of(CAT).device.delete('Projects/deep/note.txt')
      of(CAT).device.write('Projects/plan.txt', 'news')
      const { code, stderr } = await world.run('files', 'sync', folder)
      assert.equal(code, 3, stderr)
      assert.match(stderr, /1 left alone: it is not shared with you any more, and stays here as it is/)
      assert.equal(read(folder, 'many/7.txt'), 'number 7')
      assert.equal(read(folder, 'plan.txt'), 'news', 'the rest goes on')
      assert.deepEqual(trashOf(folder).sort(), ['note.txt', 'plan.txt'], 'what is deleted is deleted')
      assert.equal((await world.run('files', 'sync', folder)).code, 3, 'it is told until it is given again')
      of(CAT).share('Projects/many', ANN)
      await synced(folder)
      assert.equal((await statusOf(folder)).text, 'In step.')
      assert.equal(read(folder, 'many/7.txt'), 'number 7')
    } finally {
      await world.close()
    }
  })
}

describe('the permission of the account', () => {
  before(open)
  after(() => world.close())

  async function connectAs(access: 'readwrite' | 'shared'): Promise<void> {
    await world.connect(ANN, access)
    const settings = JSON.stringify({ access })
    await world.inLedger((tx) => tx.run(`UPDATE accounts SET settings = ? WHERE name = ?`, [settings, ANN]))
  }

  test('is named where it is the cause, with the command that brings it back', async () => {
    of(BEN).share('Projects', ANN)
    const folder = newFolder()
    await synced(folder, '--drive', 'Projects (ben)')
    await connectAs('readwrite')
    const { code, stderr } = await world.run('files', 'sync', folder)
    assert.equal(code, 1, stderr)
    assert.match(stderr, /the account ann@example\.com may not see what others share any more/)
    assert.match(
      (await world.run('files', 'sync', folder)).stderr,
      /account add onedrive --shared --user ann@/,
    )
    assert.equal(read(folder, 'plan.txt'), 'the plan')
    await connectAs('shared')
    await synced(folder)
  })

  test('is kept by the command that connects an account again', () => {
    for (const [access, flag] of [
      ['shared', ' --shared'],
      ['readonly', ' --read-only'],
      ['readwrite', ''],
    ] as const) {
      const account = { service: 'onedrive', name: ANN, settings: { access } }
      const command = connectCommand(account, { service: oneDriveService })
      assert.equal(command, `tidemark account add onedrive${flag} --user ${ANN}`)
    }
  })
})

test('a folder that cannot be asked for keeps no other from going on', async () => {
  const ledger = await openLedger(':memory:')
  const engine = await createEngine({ ledger, jobs: [] })
  try {
    const store = await FileStore.open(ledger)
    const get = async (name: string): Promise<unknown> => {
      if (name === 'a') throw new Error('no connection')
      return { name, client: { root: async () => undefined } }
    }
    const files = { store, pairs: { get } as unknown as FolderPairs }
    for (const name of ['a', 'b']) await engine.pause('stream', `files:${name}`, 'gone', 'share-gone')
    await assert.rejects(resumeShares({ engine, ledger, files }, ['a', 'b']), /no connection/)
    const left = (await ledger.pauses()).map(({ target }) => target)
    assert.deepEqual(left, ['files:a'])
  } finally {
    await engine.stop()
    await ledger.close()
  }
})

/** Files in the trash of a folder. */
function trashOf(folder: string): string[] {
  const trash = join(folder, '.tidemark/trash')
  if (!existsSync(trash)) return []
  const found = readdirSync(trash, { recursive: true, withFileTypes: true })
  return found.filter((one) => one.isFile()).map(({ name }) => name)
}

describe('a folder that is shared for reading', () => {
  before(open)
  after(() => world.close())

  test('only comes here; what is changed here stays, is told, and is not sent', async () => {
    of(BEN).share('Projects', ANN, 'read')
    const folder = newFolder()
    const said = await synced(folder, '--drive', 'projects (BEN)')
    assert.match(said, /for reading: changes only come here/)
    assert.equal((await statusOf(folder)).mode, 'download-only')
    writeFileSync(join(folder, 'plan.txt'), 'edited here')
    writeFileSync(join(folder, 'own.txt'), 'own')
    rmSync(join(folder, 'deep/note.txt'))
    of(BEN).device.write('Projects/many/1.txt', 'news')
    await synced(folder)
    assert.equal(read(folder, 'plan.txt'), 'edited here')
    assert.equal(read(folder, 'own.txt'), 'own')
    assert.equal(read(folder, 'many/1.txt'), 'news')
    assert.equal(of(BEN).device.read('Projects/plan.txt')?.toString(), 'the plan')
    assert.ok(of(BEN).device.has('Projects/deep/note.txt'))
    of(BEN).device.write('Projects/plan.txt', 'edited there')
    await synced(folder)
    const kept = readdirSync(folder).filter((name) => name.startsWith('plan'))
    assert.deepEqual(kept.map((name) => read(folder, name)).sort(), ['edited here', 'edited there'])
  })

  test('by somebody who could change it before is told for each file, and nothing is lost', async () => {
    of(CAT).share('Projects', ANN)
    const folder = newFolder()
    await synced(folder, '--drive', 'Projects (cat)')
    of(CAT).share('Projects', ANN, 'read')
    writeFileSync(join(folder, 'plan.txt'), 'edited here')
    writeFileSync(join(folder, 'large.bin'), Buffer.alloc(5 * 1024 * 1024, 1))
    rmSync(join(folder, 'many/2.txt'))
    mkdirSync(join(folder, 'new'))
    writeFileSync(join(folder, 'new/own.txt'), 'own')
    const { code, stderr } = await world.run('files', 'sync', folder)
    assert.equal(code, 3, stderr)
    assert.match(stderr, /it is shared with you for reading only, and stays here as it is/)
    assert.equal(read(folder, 'plan.txt'), 'edited here')
    assert.equal(read(folder, 'new/own.txt'), 'own')
    assert.equal(of(CAT).device.read('Projects/plan.txt')?.toString(), 'the plan')
    assert.ok(of(CAT).device.has('Projects/many/2.txt'))
    of(CAT).share('Projects', ANN)
    await synced(folder)
    assert.equal(of(CAT).device.read('Projects/plan.txt')?.toString(), 'edited here')
    assert.ok(of(CAT).device.has('Projects/new/own.txt'))
  })

  test('is not chosen for uploads', async () => {
    of(BEN).device.write('Read/a.txt', 'a')
    of(BEN).share('Read', ANN, 'read')
    const { code, stderr } = await world.run(
      'files',
      'sync',
      newFolder(),
      '--drive',
      'Read (ben)',
      '--upload-only',
    )
    assert.deepEqual([code, /for reading only/.test(stderr)], [2, true], stderr)
  })
})

describe('choosing', () => {
  before(open)
  after(() => world.close())

  test('one that OneDrive lists no more is found by a shortcut or by its link', async () => {
    const shared = of(BEN).share('Projects', ANN)
    of(ANN).setQuirks({ sharedWithMeEnded: true, shortcutsHidden: true })
    assert.deepEqual(
      (await list()).map(({ type }) => type),
      ['personal'],
    )
    of(ANN).device.shortcut('Of Ben', { drive: of(BEN).state, item: shared })
    const [, found] = await list()
    assert.deepEqual([found?.name, found?.id], ['Projects (ben)', `${of(BEN).id}:${shared.id}`])

    const token = world.sim.onedrive.issue(CAT).accessToken
    const item = of(CAT).device.item('Projects/deep')
    const made = await fetch(`${world.sim.onedrive.graphUrl}/me/drive/items/${item.id}/createLink`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ type: 'edit', scope: 'organization' }),
    })
    const { link } = (await made.json()) as { link: { webUrl: string } }
    const folder = newFolder()
    const dry = await world.run('files', 'sync', folder, '--drive', link.webUrl, '--dry-run')
    assert.match(dry.stderr, /cannot be looked at before the link is redeemed/)
    assert.ok(!of(CAT).shares.some((share) => share.item === item), 'and nothing was redeemed')
    await synced(folder, '--drive', link.webUrl)
    assert.equal(read(folder, 'note.txt'), 'a note')
    of(ANN).setQuirks({ sharedWithMeEnded: false, shortcutsHidden: false })
  })

  test('the same folder twice, one in it or one around it is refused', async () => {
    of(BEN).share('Projects', ANN)
    of(BEN).share('Projects/deep', ANN)
    const folder = newFolder()
    await synced(folder, '--drive', 'Projects (ben)')
    for (const name of ['Projects (ben)', 'deep (ben)']) {
      const { code, stderr } = await world.run('files', 'sync', newFolder(), '--drive', name)
      assert.equal(code, 2, stderr)
      assert.match(stderr, /is kept in step already/)
    }
    await remove(folder)
    const inner = newFolder()
    await synced(inner, '--drive', 'deep (ben)')
    const { code, stderr } = await world.run('files', 'sync', newFolder(), '--drive', 'Projects (ben)')
    assert.equal(code, 2)
    assert.match(stderr, /has in it/)
    await remove(inner)
  })

  test('what another account here has of the same owner is refused', async () => {
    await world.connect(CAT, 'shared')
    for (const guest of [ANN, CAT]) of(BEN).share('Projects', guest)
    const folder = newFolder()
    await synced(folder, '--account', CAT, '--drive', 'Projects (ben)')
    const args = [newFolder(), '--account', ANN, '--drive', 'Projects (ben)']
    const { code, stderr } = await world.run('files', 'sync', ...args)
    assert.equal(code, 2, stderr)
    assert.match(stderr, /is the one with which .* is kept in step already/)
    await remove(folder)
    await world.run('account', 'remove', `onedrive:${CAT}`, '--yes')
  })

  test('what is no folder, not shared, or of the own drive is refused before anything is written', async () => {
    const folder = newFolder()
    const file = of(BEN).share('Projects/plan.txt', ANN)
    const id = (item: { id: string }): string => `${of(BEN).id}:${item.id}`
    of(ANN).device.mkdir('Own')
    const wrong: [string, RegExp][] = [
      [id(file), /is a file/],
      [id(of(BEN).device.item('private.txt')), /Nobody shares that/],
      [`${of(ANN).id}:${of(ANN).device.item('Own').id}`, /in your own OneDrive/],
      ['https://1drv.ms/f/nowhere', /Nobody shares that/],
    ]
    for (const [drive, told] of wrong) {
      const { code, stderr } = await world.run('files', 'sync', folder, '--drive', drive)
      assert.deepEqual([code, told.test(stderr)], [2, true], `${drive}: ${stderr}`)
    }
    assert.deepEqual(readdirSync(folder), [])
  })
})

test('a shortcut in the own drive is told, and neither made a folder, nor deleted, nor in the way of the rest', async () => {
  await open()
  try {
    const shared = of(BEN).share('Projects', ANN)
    of(ANN).device.write('mine/a.txt', 'a')
    of(ANN).device.shortcut('mine/Projects', { drive: of(BEN).state, item: shared })
    const folder = newFolder()
    const first = await world.run('files', 'sync', folder)
    assert.equal(first.code, 3, first.stderr)
    assert.match(first.stderr, /it is a shortcut to something that somebody shares/)
    assert.deepEqual(readdirSync(join(folder, 'mine')), ['a.txt'])
    // Of the same name here: nothing of it goes into the folder of the other.
    mkdirSync(join(folder, 'mine/Projects'))
    writeFileSync(join(folder, 'mine/Projects/own.txt'), 'own')
    await world.run('files', 'sync', folder)
    assert.ok(!of(BEN).device.has('Projects/own.txt'))
    const [kept] = readdirSync(join(folder, 'mine')).filter((name) => name.startsWith('Projects.conflict'))
    assert.equal(read(folder, 'mine', kept!, 'own.txt'), 'own')
    assert.ok(of(ANN).device.has(`mine/${kept}/own.txt`))
    rmSync(join(folder, 'mine'), { recursive: true })
    await world.run('files', 'sync', folder)
    assert.ok(of(ANN).device.has('mine/Projects'), 'the shortcut is not deleted with its folder')
    assert.ok(of(BEN).device.has('Projects/plan.txt'))
  } finally {
    await world.close()
  }
})
