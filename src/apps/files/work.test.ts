import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { setTimeout as pass } from 'node:timers/promises'
import type { AppWork, OpenRuntime, Role } from '../../app/runtime.ts'
import { catalog } from '../../apps/catalog.ts'
import { systemClock } from '../../base/clock.ts'
import { asTidemarkError } from '../../base/errors.ts'
import { connectOneDrive } from '../../cloud/simulated-accounts.suite.ts'
import { openRuntime } from '../../runtime/runtime.ts'
import { type Sim, startSim } from '../../sim/start.ts'
import { folderPairSettings, streamOf } from './folder-pair.ts'
import { addFolderPair } from './new-folder.ts'
import { openFiles } from './open.ts'
import { type FilesRuntime, filesRuntime } from './runtime.ts'
import { fileStatus } from './status.ts'
import { noteChangeSeen } from './store/change-seen.ts'
import { setFolderPair } from './store/file-store.ts'
import { deltaSchedule, lookSchedule, startFolderPairs, tidyTrash } from './work.ts'

const ANN = 'ann@example.com'
const LOOK_MS = 10
const DAY_MS = 86_400_000

let sim: Sim
let base: string
let runtime: OpenRuntime & FilesRuntime
let work: AppWork | undefined
let troubles: string[]

beforeEach(async () => {
  sim = await startSim({ onedrive: { drives: [{ account: ANN }] } })
  base = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-work-')))
  mkdirSync(join(base, 'home'))
  runtime = await open()
  troubles = []
  await connectOneDrive({ ...runtime, sim }, ANN)
})

afterEach(async () => {
  await work?.stop()
  work = undefined
  await runtime.close()
  await sim.close()
  rmSync(base, { recursive: true, force: true })
})

async function open(role: Role = 'worker'): Promise<OpenRuntime & FilesRuntime> {
  const config = catalog.parse({
    onedrive: {
      api_url: sim.onedrive.graphUrl,
      token_url: sim.onedrive.tokenUrl,
      requests_per_second_start: 1000,
      requests_per_second_max: 10_000,
    },
    files: { disk_reserve: '1MB', poll_seconds: 5 },
  })
  const apps = [{ name: 'files', open: openFiles }]
  return filesRuntime(
    await openRuntime({ config, home: join(base, 'home'), env: {}, role, apps, name: 'test' }),
  )
}

async function begin(everyMs = 50): Promise<void> {
  await runtime.engine.start()
  work = await startFolderPairs(runtime, {
    clock: systemClock,
    everyMs,
    onError: (error) => troubles.push(asTidemarkError(error).message),
  })
}

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await pass(LOOK_MS)
}

async function scheduled(): Promise<string[]> {
  return (await runtime.ledger.schedules()).map(({ name }) => name).filter((name) => /^files/.test(name))
}

describe('a process that works for folders', () => {
  test('deletes for good what was seen to lie in the trash for its time, whatever its date says', async () => {
    const { root } = await addFolderPair(runtime, { root: join(base, 'docs') })
    const put = (day: string): string => {
      const folder = join(root, '.tidemark/trash', day)
      mkdirSync(folder, { recursive: true })
      writeFileSync(join(folder, 'a.txt'), 'deleted')
      return folder
    }
    const seen = put('2030-01-01')
    const pair = await runtime.files.store.folderPair('docs')
    const nowMs = systemClock.now()
    for (let day = 31; day > 0; day--) await tidyTrash(runtime, pair, nowMs - day * DAY_MS)
    const dated = put('2000-01-01')
    await begin()
    await until(() => !existsSync(seen))
    assert.ok(existsSync(join(dated, 'a.txt')))
  })

  test('syncs them when it begins, and sees what is changed on either side later', async () => {
    sim.onedrive.drive(ANN).device.write('there.txt', 'there')
    const { root } = await addFolderPair(runtime, { root: join(base, 'docs') })
    await begin()
    await until(async () => (await runtime.files.store.totals('docs')).files === 1)
    mkdirSync(join(root, 'new'))
    writeFileSync(join(root, 'new', 'here.txt'), 'here')
    await until(() => sim.onedrive.drive(ANN).device.has('new/here.txt'))
    sim.onedrive.drive(ANN).device.write('later.txt', 'later')
    await until(async () => (await runtime.files.store.totals('docs')).files === 3)
    assert.deepEqual(troubles, [])
    assert.deepEqual((await scheduled()).sort(), [deltaSchedule('docs'), lookSchedule('docs')])
  })

  test('sees folders that are added while it runs, and lets go of those that are removed', async () => {
    await begin()
    assert.deepEqual(await scheduled(), [])
    sim.onedrive.drive(ANN).device.write('a.txt', 'a')
    await addFolderPair(runtime, { root: join(base, 'docs') })
    await until(async () => (await runtime.files.store.totals('docs')).files === 1)
    await runtime.files.store.removeFolderPair('docs')
    await until(async () => (await scheduled()).length === 0)
    assert.deepEqual(troubles, [])
  })

  test('collects what changes while a folder is paused, and looks at it when it goes on', async () => {
    const { root } = await addFolderPair(runtime, { root: join(base, 'docs') })
    await begin()
    await until(async () => (await runtime.files.store.folderPair('docs')).scannedAt !== null)
    await runtime.engine.pause('stream', streamOf('docs'), 'a test')
    const before = (await runtime.ledger.jobs({ kind: 'files.look', limit: 100 })).length
    writeFileSync(join(root, 'while-paused.txt'), 'x')
    // Longer than changes are waited for: had it been handed over, there would be a job.
    await pass(3_000)
    assert.equal((await runtime.ledger.jobs({ kind: 'files.look', limit: 100 })).length, before)
    await runtime.engine.resume('stream', streamOf('docs'))
    await until(() => sim.onedrive.drive(ANN).device.has('while-paused.txt'))
    const [look] = await runtime.ledger.jobs({ kind: 'files.look', limit: 1 })
    assert.deepEqual(JSON.parse(look!.payload).folders, [[]])
  })

  test('lets nobody say that both sides are in step while it waits for quiet with what it has seen', async () => {
    const { root } = await addFolderPair(runtime, { root: join(base, 'docs') })
    await begin()
    const { ledger, files } = runtime
    const status = () => fileStatus({ store: files.store, ledger }, 'docs')
    await until(async () => (await status()).text === 'In step.')
    writeFileSync(join(root, 'a.txt'), 'x')
    await until(async () => (await files.store.folderPair('docs')).changeSeenAt !== null)
    const { text, state } = await status()
    assert.deepEqual([text, state], ['Something in the folder is still to be looked at.', 'working'])
    await until(async () => (await status()).text === 'In step.')
    assert.ok(sim.onedrive.drive(ANN).device.has('a.txt'))
    // One that ended in between leaves its mark to the next whole look.
    await files.store.write((tx) => noteChangeSeen(tx, 'docs', systemClock.now() - 60_000))
    assert.notEqual((await status()).text, 'In step.')
    await runtime.engine.enqueue(files.kinds.look, { drive: 'docs' }, { stream: streamOf('docs') })
    await until(async () => (await status()).text === 'In step.')
  })

  test('says once that a folder is not there, and goes on when it is back', async () => {
    const { root } = await addFolderPair(runtime, { root: join(base, 'docs') })
    renameSync(root, `${root}-away`)
    await begin(20)
    await until(() => troubles.length > 0)
    await pass(200)
    assert.deepEqual(troubles, [`The folder ${root} is not there.`])
    renameSync(`${root}-away`, root)
    writeFileSync(join(root, 'back.txt'), 'x')
    await until(() => sim.onedrive.drive(ANN).device.has('back.txt'))
  })

  test('watches by the filter that holds now', async () => {
    const { root } = await addFolderPair(runtime, { root: join(base, 'docs') })
    await begin()
    await until(async () => (await runtime.files.store.folderPair('docs')).scannedAt !== null)
    const settings = JSON.stringify(folderPairSettings.parse({ filter: { skip: ['skipped'] } }))
    await runtime.files.store.write((tx) => setFolderPair(tx, 'docs', { settings }))
    await until(async () => {
      const pair = await runtime.files.pairs.get('docs')
      return pair.filter.excluded('skipped', { type: 'folder' }) !== undefined
    })
    mkdirSync(join(root, 'skipped'))
    writeFileSync(join(root, 'skipped', 'a.txt'), 'x')
    writeFileSync(join(root, 'taken.txt'), 'x')
    await until(() => sim.onedrive.drive(ANN).device.has('taken.txt'))
    assert.equal(sim.onedrive.drive(ANN).device.has('skipped'), false)
  })

  test('stops the upload of a file that is changed meanwhile, and uploads what it is then', async () => {
    const { root } = await addFolderPair(runtime, { root: join(base, 'docs') })
    await begin()
    await until(async () => (await runtime.files.store.folderPair('docs')).scannedAt !== null)
    sim.faults.set({
      rules: [{ do: 'latency', latency: { kind: 'fixed', ms: 4_000 }, methods: ['graph.session.put'] }],
    })
    writeFileSync(join(root, 'large.bin'), Buffer.alloc(30 * 1024 * 1024, 1))
    await until(() => runtime.files.transfers.numbers('docs').upload.count > 0)
    writeFileSync(join(root, 'large.bin'), Buffer.from('small now'))
    await until(() => sim.onedrive.drive(ANN).device.has('large.bin'))
    assert.equal(sim.onedrive.drive(ANN).device.read('large.bin')?.toString(), 'small now')
    assert.equal(sim.onedrive.drive(ANN).device.item('large.bin').versions.length, 0)
  })

  test('that only answers leaves all of it to others', async () => {
    await addFolderPair(runtime, { root: join(base, 'docs') })
    await runtime.close()
    runtime = await open('web')
    work = await startFolderPairs(runtime, { clock: systemClock, onError: () => assert.fail() })
    await work.refresh()
    assert.deepEqual(await scheduled(), [])
    assert.deepEqual(await runtime.ledger.jobs({ limit: 10 }), [])
  })
})
