import assert from 'node:assert/strict'
import { existsSync, mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { setTimeout as pass } from 'node:timers/promises'
import { driveSettings, streamOf } from '../apps/file-sync/drive.ts'
import { setDrive } from '../apps/file-sync/store/file-store.ts'
import { systemClock } from '../clock.ts'
import { ONEDRIVE_SCOPES } from '../cloud/onedrive/auth.ts'
import { configSchema } from '../config/settings.ts'
import { asTidemarkError } from '../errors.ts'
import { accountKey } from '../ledger/accounts.ts'
import { type Sim, startSim } from '../sim/start.ts'
import { type DriveWork, deltaSchedule, lookSchedule, startDrives } from './file-work.ts'
import { addDrive } from './new-drive.ts'
import { type OpenRuntime, openRuntime, type Role } from './runtime.ts'

const ANN = 'ann@example.com'
const LOOK_MS = 10

let sim: Sim
let base: string
let runtime: OpenRuntime
let work: DriveWork | undefined
let troubles: string[]

beforeEach(async () => {
  sim = await startSim({ drives: [{ account: ANN }] })
  base = realpathSync(mkdtempSync(join(tmpdir(), 'tidemark-work-')))
  mkdirSync(join(base, 'home'))
  runtime = await open()
  troubles = []
  const { vault, accounts } = runtime
  const { refreshToken } = sim.issueDrive(ANN)
  const secret = {
    ...{ kind: 'oauth', clientId: sim.microsoftClientId, refreshToken },
    ...{ scopes: ONEDRIVE_SCOPES.readwrite, obtainedAtMs: systemClock.now() },
  }
  const account = { service: 'onedrive', name: ANN }
  const sealed = vault.seal(accountKey(account), JSON.stringify(secret))
  await accounts.add({ ...account, settings: {}, sealed })
})

afterEach(async () => {
  await work?.stop()
  work = undefined
  await runtime.close()
  await sim.close()
  rmSync(base, { recursive: true, force: true })
})

function open(role: Role = 'worker'): Promise<OpenRuntime> {
  const config = configSchema.parse({
    onedrive: {
      ...{ api_url: sim.graphUrl, token_url: sim.microsoftTokenUrl },
      ...{ requests_per_second_start: 1000, requests_per_second_max: 10_000 },
    },
    files: { disk_reserve: '1MB', poll_seconds: 5 },
  })
  return openRuntime({ config, home: join(base, 'home'), env: {}, role, name: 'test' })
}

async function begin(everyMs = 50): Promise<void> {
  await runtime.engine.start()
  work = await startDrives(runtime, {
    ...{ clock: systemClock, everyMs },
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
  test('deletes for good what is old in the trash, once OneDrive has shown that the clock can be right', async () => {
    const { root } = await addDrive(runtime, { root: join(base, 'docs') })
    const old = join(root, '.tidemark/trash/2000-01-01')
    mkdirSync(old, { recursive: true })
    writeFileSync(join(old, 'a.txt'), 'deleted long ago')
    sim.faults.set({ rules: [{ do: 'error', status: 500 }] })
    await begin(10)
    for (let round = 0; round < 5; round++) await work!.refresh()
    assert.ok(existsSync(join(old, 'a.txt')))
    sim.faults.set({ rules: [] })
    await until(() => !existsSync(old))
  })

  test('syncs them when it begins, and sees what is changed on either side later', async () => {
    sim.drive(ANN).device.write('there.txt', 'there')
    const { root } = await addDrive(runtime, { root: join(base, 'docs') })
    await begin()
    await until(async () => (await runtime.files.store.totals('docs')).files === 1)
    mkdirSync(join(root, 'new'))
    writeFileSync(join(root, 'new', 'here.txt'), 'here')
    await until(() => sim.drive(ANN).device.has('new/here.txt'))
    sim.drive(ANN).device.write('later.txt', 'later')
    await until(async () => (await runtime.files.store.totals('docs')).files === 3)
    assert.deepEqual(troubles, [])
    assert.deepEqual((await scheduled()).sort(), [deltaSchedule('docs'), lookSchedule('docs')])
  })

  test('sees folders that are added while it runs, and lets go of those that are removed', async () => {
    await begin()
    assert.deepEqual(await scheduled(), [])
    sim.drive(ANN).device.write('a.txt', 'a')
    await addDrive(runtime, { root: join(base, 'docs') })
    await until(async () => (await runtime.files.store.totals('docs')).files === 1)
    await runtime.files.store.removeDrive('docs')
    await until(async () => (await scheduled()).length === 0)
    assert.deepEqual(troubles, [])
  })

  test('collects what changes while a folder is paused, and looks at it when it goes on', async () => {
    const { root } = await addDrive(runtime, { root: join(base, 'docs') })
    await begin()
    await until(async () => (await runtime.files.store.drive('docs')).scannedAt !== null)
    await runtime.engine.pause('stream', streamOf('docs'), 'a test')
    const before = (await runtime.ledger.jobs({ kind: 'files.look', limit: 100 })).length
    writeFileSync(join(root, 'while-paused.txt'), 'x')
    // Longer than changes are waited for: had it been handed over, there would be a job.
    await pass(3_000)
    assert.equal((await runtime.ledger.jobs({ kind: 'files.look', limit: 100 })).length, before)
    await runtime.engine.resume('stream', streamOf('docs'))
    await until(() => sim.drive(ANN).device.has('while-paused.txt'))
    const [look] = await runtime.ledger.jobs({ kind: 'files.look', limit: 1 })
    assert.deepEqual(JSON.parse(look!.payload).folders, [[]])
  })

  test('says once that a folder is not there, and goes on when it is back', async () => {
    const { root } = await addDrive(runtime, { root: join(base, 'docs') })
    renameSync(root, `${root}-away`)
    await begin(20)
    await until(() => troubles.length > 0)
    await pass(200)
    assert.deepEqual(troubles, [`The folder ${root} is not there.`])
    renameSync(`${root}-away`, root)
    writeFileSync(join(root, 'back.txt'), 'x')
    await until(() => sim.drive(ANN).device.has('back.txt'))
  })

  test('watches by the filter that holds now', async () => {
    const { root } = await addDrive(runtime, { root: join(base, 'docs') })
    await begin()
    await until(async () => (await runtime.files.store.drive('docs')).scannedAt !== null)
    const settings = JSON.stringify(driveSettings.parse({ filter: { skip: ['skipped'] } }))
    await runtime.files.store.write((tx) => setDrive(tx, 'docs', { settings }))
    await until(async () => {
      const drive = await runtime.files.drives.get('docs')
      return drive.filter.excluded('skipped', { type: 'folder' }) !== undefined
    })
    mkdirSync(join(root, 'skipped'))
    writeFileSync(join(root, 'skipped', 'a.txt'), 'x')
    writeFileSync(join(root, 'taken.txt'), 'x')
    await until(() => sim.drive(ANN).device.has('taken.txt'))
    assert.equal(sim.drive(ANN).device.has('skipped'), false)
  })

  test('stops the upload of a file that is changed meanwhile, and uploads what it is then', async () => {
    const { root } = await addDrive(runtime, { root: join(base, 'docs') })
    await begin()
    await until(async () => (await runtime.files.store.drive('docs')).scannedAt !== null)
    sim.faults.set({
      rules: [{ do: 'latency', latency: { kind: 'fixed', ms: 4_000 }, methods: ['graph.session.put'] }],
    })
    writeFileSync(join(root, 'large.bin'), Buffer.alloc(30 * 1024 * 1024, 1))
    await until(() => runtime.files.transfers.numbers('docs').upload.count > 0)
    writeFileSync(join(root, 'large.bin'), Buffer.from('small now'))
    await until(() => sim.drive(ANN).device.has('large.bin'))
    assert.equal(sim.drive(ANN).device.read('large.bin')?.toString(), 'small now')
    assert.equal(sim.drive(ANN).device.item('large.bin').versions.length, 0)
  })

  test('that only answers leaves all of it to others', async () => {
    await addDrive(runtime, { root: join(base, 'docs') })
    await runtime.close()
    runtime = await open('web')
    work = await startDrives(runtime, { clock: systemClock, onError: () => assert.fail() })
    await work.refresh()
    assert.deepEqual(await scheduled(), [])
    assert.deepEqual(await runtime.ledger.jobs({ limit: 10 }), [])
  })
})
