/**
 * The API as its document says it is. A whole server runs as a process; every operation is called in the ways in which
 * it succeeds and is refused, and each answer's status, type and body are held against the served document.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { letter } from '../../src/apps/assistant/demo/letters.ts'
import { seededRandom } from '../../src/base/random.ts'
import { type Body, type CallInput, Contract } from './contract.ts'
import { ApiDocument } from './document.ts'
import { LiveReader } from './live.ts'
import {
  ANN,
  type ApiServer,
  BAD_ITEMS,
  BOB,
  DOCS,
  DOCS_FILES,
  PUSH_AUDIENCE,
  REFUSAL,
  startApiServer,
  TOKEN,
  until,
  WRITE,
} from './server.ts'

const STREAM = `mail:${ANN}`

let server: ApiServer
let contract: Contract
/** Who watches from the beginning to the end. */
let live: LiveReader

before(async () => {
  server = await startApiServer()
  const document = new ApiDocument(await (await server.ask('/api/openapi.json')).json())
  contract = new Contract(document, server.ask)
  live = await LiveReader.open(contract, server)
})
after(() => server.close())

const call = (id: string, status: number, input?: CallInput) => contract.call(id, status, input)
const bodyOf = async (id: string, input?: CallInput, status = 200): Promise<Body> =>
  (await call(id, status, input)).body

/** The first one of a service. */
const accountOf = async (service: string): Promise<Body> =>
  (await bodyOf('getAccounts')).items.find((account: Body) => account.service === service)

/** Until no job waits or runs. */
function quiet(): Promise<unknown> {
  return until(async () => {
    const { jobs } = await bodyOf('getOverview')
    return jobs.ready + jobs.deps + jobs.time + jobs.claimed === 0
  }, 'nothing left to do')
}

function runIn(id: number, state: string): Promise<Body> {
  return until(async () => {
    const run = await bodyOf('getMailCleanUpRunsById', { params: { id } })
    return run.state === state && run
  }, `run ${id} is ${state}`)
}

describe('the engine', () => {
  before(quiet)

  test('its lists end, and hold everything once, whatever the size of their pages', async () => {
    const segments = { params: { name: STREAM } }
    const bySize = async (id: string, input: CallInput, limits: readonly number[]): Promise<Body[]> => {
      const lists: unknown[] = []
      for (const limit of limits) {
        const items = await contract.all(id, { ...input, query: { ...input.query, limit } }, (one) => one.id)
        lists.push(items.map((one) => one.id))
      }
      for (const list of lists) assert.deepEqual(list, lists[0], id)
      assert.ok((lists[0] as unknown[]).length > 0, id)
      return lists[0] as Body[]
    }
    const jobs = await bySize('getJobs', { query: { stream: STREAM } }, [500, 7, 50])
    assert.deepEqual(
      jobs,
      jobs.toSorted((a, b) => b - a),
    )
    await bySize('getJobs', { query: { state: 'done', kind: 'mail.fetch' } }, [500, 1])
    await bySize('getStreamsByNameSegments', segments, [500, 3])
    await bySize('getStreamsByNameSegments', { ...segments, query: { state: 'settled' } }, [500, 11])
    const bad = await bySize('getBad', {}, [500, 1, 2])
    assert.equal(bad.length, BAD_ITEMS)
    await bySize('getBad', { query: { stream: STREAM } }, [500, 1])
  })

  test('streams, frontier and everything that holds now are answered as described', async () => {
    for (const id of ['getAlerts', 'getWorkers', 'getLimits', 'getSchedules', 'getConfig']) await bodyOf(id)
    const { items } = await bodyOf('getStreams')
    const stream = await bodyOf('getStreamsByName', { params: { name: STREAM } })
    const { stored } = items.find(({ name }: Body) => name === STREAM)
    assert.equal(stream.stored, stored)
    assert.equal(stream.listed, stream.stored + stream.gone + stream.skipped + stream.bad)
    const frontier = await bodyOf('getStreamsByNameFrontier', {
      params: { name: STREAM },
      query: { cells: 5 },
    })
    assert.ok(frontier.cells.length <= 5)
    const { from, to } = frontier.cells[1]
    const closer = { params: { name: STREAM }, query: { from, to } }
    assert.ok((await bodyOf('getStreamsByNameFrontier', closer)).cells.length > 0)
    assert.equal((await bodyOf('getSeries')).stepS, 1)
    assert.equal((await bodyOf('getSeries', { query: { stepS: '60', sinceS: 0 } })).stepS, 60)
    const secrets = JSON.stringify(await bodyOf('getConfig'))
    assert.ok(!secrets.includes(TOKEN) && !secrets.includes(server.world.sim.gmail.clientSecret))
  })

  test('work is paused and goes on; what is so already is answered, not refused', async () => {
    for (const body of [
      { scope: 'all' },
      { scope: 'kind', target: 'mail.fetch' },
      { scope: 'stream', target: STREAM },
    ]) {
      const outcomes: string[] = []
      for (const id of ['postPause', 'postPause', 'postResume', 'postResume']) {
        outcomes.push((await bodyOf(id, { body })).outcome)
      }
      assert.deepEqual(outcomes, ['done', 'already', 'done', 'already'])
    }
  })

  test('jobs are canceled and tried again, and refuse where their state does not allow it', async () => {
    const bob = { scope: 'stream', target: `mail:${BOB}` }
    await bodyOf('postPause', { body: { ...bob, reason: 'for this test' } })
    assert.equal((await bodyOf('postMailSync', { body: { account: BOB } }, 202)).outcome, 'done')
    assert.equal((await bodyOf('postMailSync', { body: { account: BOB } }, 202)).outcome, 'already')
    const query = { state: 'pending', stream: `mail:${BOB}` }
    const [job] = (await bodyOf('getJobs', { query })).items
    const params = { id: job.id }
    const detail = await bodyOf('getJobsById', { params })
    assert.ok(detail.canCancel && !detail.canRetry)
    const outcomes: string[] = []
    for (const id of ['postJobsByIdRetry', 'postJobsByIdCancel', 'postJobsByIdCancel', 'postJobsByIdRetry']) {
      outcomes.push((await bodyOf(id, { params })).outcome)
    }
    assert.deepEqual(outcomes, ['already', 'done', 'already', 'done'])
    await bodyOf('postResume', { body: bob })
    await quiet()
    await call('postJobsByIdRetry', 409, { params })
    await call('postJobsByIdCancel', 409, { params })
  })

  test('bad items are tried again: some, those of a stream, all', async () => {
    const { items } = await bodyOf('getBad')
    const ids = items.map(({ id }: Body) => id)
    assert.equal((await bodyOf('postBadRetry', { body: { ids: ids.slice(0, 1) } })).outcome, 'done')
    const stream = { scope: 'stream', target: STREAM }
    await bodyOf('postPause', { body: stream })
    assert.equal((await bodyOf('postBadRetry', { body: { stream: STREAM } })).outcome, 'done')
    assert.equal((await bodyOf('postBadRetry', { body: {} })).outcome, 'already')
    await bodyOf('postResume', { body: stream })
    await quiet()
    assert.equal((await bodyOf('getOverview')).badItems, 0)
    await call('postBadRetry', 400, { body: { ids, stream: STREAM } })
    await call('postBadRetry', 404, { body: { ids: [999_999] } })
  })
})

describe('what is set up and set here', () => {
  test('the client of a service is entered, checked, told without a secret, and forgotten', async () => {
    const onedrive = { params: { client: 'onedrive' } }
    const { clientId: id } = server.world.sim.onedrive
    assert.equal((await bodyOf('getOauthClientsByClient', onedrive)).client, null)
    await call('postOauthClientsByClientCheck', 409, onedrive)
    await call('deleteOauthClientsByClient', 404, onedrive)
    await call('putOauthClientsByClient', 422, { ...onedrive, body: { id: 'no-such-form' } })
    const { checks } = await bodyOf('putOauthClientsByClient', { ...onedrive, body: { id } })
    assert.deepEqual([checks[0].step, checks[0].state], ['enter', 'ok'])
    await bodyOf('postOauthClientsByClientCheck', onedrive)
    await bodyOf('deleteOauthClientsByClient', onedrive)
    await bodyOf('putOauthClientsByClient', { ...onedrive, body: { id } })
    const gmail = { params: { client: 'gmail' } }
    await call('putOauthClientsByClient', 409, { ...gmail, body: { id, secret: 'x' } })
    const told = JSON.stringify(await bodyOf('getOauthClientsByClient', gmail))
    assert.ok(!told.includes(server.world.sim.gmail.clientSecret))
  })

  test('a setting is changed, and what the environment says is not', async () => {
    const key = { params: { key: 'bandwidth.combined' } }
    assert.equal((await bodyOf('putConfigByKey', { ...key, body: { value: '9GB/s' } })).value, '9GB/s')
    await call('putConfigByKey', 400, { ...key, body: { value: 'fast' } })
    await bodyOf('putConfigByKey', { ...key, body: { value: null } })
    await call('putConfigByKey', 409, { params: { key: 'files.poll_seconds' }, body: { value: '9' } })
    assert.ok((await bodyOf('getFilesDrives')).drives.length > 0)
    const docs = { params: { name: DOCS } }
    const settings = await bodyOf('getFilesFoldersByNameSettings', docs)
    assert.deepEqual(await bodyOf('putFilesFoldersByNameSettings', { ...docs, body: settings }), settings)
  })
})

describe('mail', () => {
  const message = () => ({ params: { account: ANN, id: server.htmlId } })

  test('a search ends, and finds everything once, in either order and page by page', async () => {
    const mailbox = (address: string) => server.world.sim.gmail.mailbox(address)
    const { stored } = (await accountOf('gmail')).apps.mail
    for (const order of ['date', 'rank']) {
      for (const limit of [200, 7]) {
        const query = { account: ANN, q: 'in:anywhere', order, limit }
        const items = await contract.all('getMailSearch', { query }, (one) => one.id)
        assert.equal(items.length, stored)
        for (const { id } of items) assert.ok([...mailbox(ANN).dump()].some((one) => one.id === id))
      }
    }
    const both = { q: 'in:anywhere', limit: 5 }
    const names = (
      await contract.all('getMailSearch', { query: both }, (one) => `${one.account} ${one.id}`)
    ).map(({ account }) => account)
    assert.deepEqual([...new Set(names)].sort(), [ANN, BOB])
    assert.deepEqual(
      (await bodyOf('getMailSearch', { query: { q: 'subject:quarterly' } })).items[0].id,
      server.htmlId,
    )
    assert.ok((await bodyOf('getMailSuggest', { query: { q: 'fro' } })).items.length > 0)
    const all = { account: ANN, q: 'in:anywhere' }
    assert.equal((await bodyOf('getMailSearchFacets', { query: all })).messages, stored)
    const mbox = await call('getMailSearchExport', 200, { query: { q: 'subject:quarterly' } })
    assert.match(String(mbox.body), /^From /)
  })

  test('a message is read as text, thread, HTML, bytes and attachments', async () => {
    const { threadId, files, hasHtml } = await bodyOf('getMailMessagesByAccountById', message())
    assert.equal(hasHtml, true)
    const thread = await bodyOf('getMailThreadsByAccountById', { params: { account: ANN, id: threadId } })
    assert.deepEqual(
      thread.items.map(({ id }: Body) => id),
      [server.htmlId],
    )
    for (const images of ['true', 'false']) {
      const html = await call('getMailMessagesByAccountByIdHtml', 200, { ...message(), query: { images } })
      assert.match(html.headers.get('content-security-policy') ?? '', /^default-src 'none'/)
      assert.match(String(html.body), /Hello/)
    }
    const raw = await call('getMailMessagesByAccountByIdRaw', 200, message())
    const sent = [...server.world.sim.gmail.mailbox(ANN).dump()].find(({ id }) => id === server.htmlId)
    assert.ok(sent)
    assert.match(raw.headers.get('content-disposition') ?? '', /^attachment; filename="[^"/\\]+"/)
    assert.match(String(raw.body), /^From: "Eve /)
    for (const { index } of files) {
      const id = 'getMailMessagesByAccountByIdAttachmentsByIndex'
      const file = await call(id, 200, { params: { ...message().params, index } })
      assert.match(
        file.headers.get('content-disposition') ?? '',
        /^attachment; filename="[^"/\\]+"; filename\*=UTF-8''[^/\\]+$/,
      )
      assert.match(file.headers.get('content-security-policy') ?? '', /sandbox/)
    }
  })

  test('an account is connected by the way through the service, and forgotten', async () => {
    server.world.sim.oauth.autoApprove = BOB
    const begin = () =>
      bodyOf('postAccountsConnect', {
        body: { service: 'gmail', access: 'readonly', choices: { mail: { spam: true } } },
      })
    const { url } = await begin()
    const location = (await fetch(url, { redirect: 'manual' })).headers.get('location')!
    const query = Object.fromEntries(new URL(location).searchParams)
    await call('getOauthGmailCallback', 200, { query })
    const answer = { state: query.state, code: query.code }
    assert.match((await bodyOf('postAccountsConnected', { body: answer })).title, /^Connected/)
    await call('postAccountsConnected', 404, { body: answer })
    await call('getOauthGmailCallback', 404, { query })
    const { state } = await begin()
    await call('getOauthGmailCallback', 422, { query: { state, error: 'access_denied' } })
    await quiet()
    const wish = { account: BOB, olderThan: '1d' }
    await call('postMailCleanUpRuns', 409, { body: wish })
    const bob = { params: { service: 'gmail', name: BOB } }
    assert.equal((await bodyOf('deleteAccountsByServiceByName', bob)).outcome, 'done')
    await call('deleteAccountsByServiceByName', 404, bob)
  })

  test('mail is planned away, taken out, put back, halted and given up', async () => {
    const wish = { account: ANN, olderThan: '1d' }
    assert.equal((await bodyOf('postMailCleanUpPlan', { body: wish })).isFull, false)
    const proof = await bodyOf('postMailCleanUpProofs', { body: wish }, 202)
    assert.equal((await bodyOf('getMailCleanUpProofsById', { params: { id: proof.id } })).id, proof.id)
    const plan = await bodyOf('postMailCleanUpPlan', {
      body: { ...wish, action: 'delete', query: 'subject:quarterly' },
    })
    const deletion = { ...plan.wish, confirm: 'delete everything' }
    await call('postMailCleanUpRuns', 422, { body: deletion })
    const ask = (id: string, run: number, body?: Body, status = 200) =>
      bodyOf(id, { params: { id: run }, ...(body === undefined ? {} : { body }) }, status)
    const first = (await bodyOf('postMailCleanUpRuns', { body: wish }, 202)).id
    await runIn(first, 'done')
    await ask('postMailCleanUpRunsByIdResume', first, {}, 409)
    assert.equal((await ask('postMailCleanUpRunsByIdUndo', first)).outcome, 'done')
    await runIn(first, 'undone')
    assert.equal((await ask('postMailCleanUpRunsByIdUndo', first)).outcome, 'already')
    await bodyOf('postPause', { body: { scope: 'stream', target: STREAM } })
    const second = (await bodyOf('postMailCleanUpRuns', { body: { ...wish, action: 'trash' } }, 202)).id
    await call('postMailCleanUpRuns', 409, { body: wish })
    assert.equal((await ask('postMailCleanUpRunsByIdHalt', second)).outcome, 'done')
    await bodyOf('postResume', { body: { scope: 'stream', target: STREAM } })
    await runIn(second, 'planned')
    assert.equal((await ask('postMailCleanUpRunsByIdHalt', second)).outcome, 'already')
    await bodyOf('postPause', { body: { scope: 'stream', target: STREAM } })
    assert.equal((await ask('postMailCleanUpRunsByIdResume', second, {})).outcome, 'done')
    assert.equal((await ask('postMailCleanUpRunsByIdAbandon', second)).outcome, 'done')
    await bodyOf('postResume', { body: { scope: 'stream', target: STREAM } })
    const runs = await contract.all(
      'getMailCleanUpRuns',
      { query: { limit: 1, account: ANN } },
      ({ id }) => id,
    )
    assert.deepEqual(
      runs.map(({ id }) => id),
      [second, first],
    )
  })
})

describe('files', () => {
  const params = { name: DOCS }
  const docs = { params }
  const device = () => server.world.sim.onedrive.drive(ANN).device
  /** Both sides looked at, beginning now, and nothing on the way. */
  const sync = async (): Promise<Body> => {
    const begin = async () => (await bodyOf('postFilesFoldersByNameSync', docs, 202)).outcome === 'done'
    await until(begin, 'a look of its own, after the one that is under way')
    return until(async () => {
      await quiet()
      const folder = await bodyOf('getFilesFoldersByName', docs)
      const { unplanned, inWork, waiting } = folder.open
      return folder.heardAt !== null && unplanned + inWork + waiting === 0 && folder
    }, 'a folder that is settled')
  }
  const itemOf = async (name: string): Promise<Body> =>
    (await bodyOf('getFilesFoldersByNameTree', docs)).items.find((one: Body) => one.name === name)

  test('a folder, its tree, its history and what is left alone are told by pages', async () => {
    assert.equal((await sync()).files, DOCS_FILES + 2)
    assert.deepEqual((await accountOf('onedrive')).apps.files.folders, [DOCS])
    assert.equal((await bodyOf('getFilesFolders')).items.length, 1)
    assert.deepEqual((await bodyOf('getFilesTransfers', { query: { folder: DOCS } })).items, [])
    const many = await itemOf('Many')
    for (const limit of [500, 4]) {
      const query = { folder: many.node, limit }
      const items = await contract.all('getFilesFoldersByNameTree', { params, query }, ({ node }) => node)
      assert.equal(items.length, DOCS_FILES)
    }
    const detail = await bodyOf('getFilesFoldersByNameItemsByNode', {
      params: { ...params, node: many.node },
    })
    assert.deepEqual([detail.path, detail.state], ['Many', 'in-step'])
    const key = ({ id }: Body) => id
    const history = await contract.all('getFilesFoldersByNameHistory', { params, query: { limit: 500 } }, key)
    assert.equal(
      (await contract.all('getFilesFoldersByNameHistory', { params, query: { limit: 3 } }, key)).length,
      history.length,
    )
    const left = await contract.all(
      'getFilesFoldersByNameReported',
      { params, query: { limit: 1 } },
      ({ node }) => node,
    )
    assert.deepEqual(
      left.map(({ path }) => path),
      ['what?.txt'],
    )
  })

  test('a conflict is shown and decided', async () => {
    writeFileSync(join(server.docs, 'dot.png'), 'no picture')
    device().edit('dot.png', Buffer.concat([device().read('dot.png')!, Buffer.from('more')]))
    await sync()
    const list = { params, query: { state: 'open', limit: 1 } }
    const [{ id }] = await contract.all('getFilesFoldersByNameConflicts', list, (one) => one.id)
    const one = { params: { ...params, id } }
    const { here, there } = await bodyOf('getFilesFoldersByNameConflictsById', one)
    assert.deepEqual([here.preview, there.preview], ['text', 'image'])
    const image = await call('getFilesFoldersByNameConflictsByIdImage', 200, {
      ...one,
      query: { side: 'there' },
    })
    assert.equal(image.type, 'image/png')
    await call('getFilesFoldersByNameConflictsByIdImage', 404, { ...one, query: { side: 'here' } })
    const resolve = (): Promise<Body> =>
      bodyOf('postFilesFoldersByNameConflictsByIdResolve', { ...one, body: { keep: 'remote' } }, 202)
    assert.deepEqual([(await resolve()).outcome, (await resolve()).outcome], ['done', 'already'])
    await sync()
    const trash = { params, query: { limit: 1 } }
    const [entry] = await contract.all('getFilesFoldersByNameTrash', trash, (kept) => kept.id)
    assert.equal(entry.path, 'dot.png')
    const restore = { params, body: { id: entry.id } }
    await call('postFilesFoldersByNameTrashRestore', 409, restore)
    rmSync(join(server.docs, 'dot.png'))
    assert.equal((await bodyOf('postFilesFoldersByNameTrashRestore', restore)).outcome, 'done')
    await call('postFilesFoldersByNameTrashRestore', 404, restore)
    await sync()
  })

  test('many deletions are asked about, with their number', async () => {
    const held = (body: Body, status = 202) =>
      bodyOf('postFilesFoldersByNameHeldDeletes', { params, body }, status)
    assert.equal((await held({ count: 1 })).outcome, 'already')
    rmSync(join(server.docs, 'Many'), { recursive: true })
    await sync()
    const { total, items } = await bodyOf('getFilesFoldersByNameHeldDeletes', docs)
    assert.ok(total >= DOCS_FILES && items.length === total)
    await held({ count: total + 1 }, 409)
    assert.equal((await held({ count: total })).outcome, 'done')
    await sync()
    assert.equal(device().has('Many'), false)
  })

  test('an account is connected by the way through Microsoft, and a folder is added where that is allowed', async () => {
    server.world.sim.oauth.autoApprove = ANN
    const begin = () => bodyOf('postAccountsConnect', { body: { service: 'onedrive', access: 'readwrite' } })
    const { url } = await begin()
    const location = (await fetch(url, { redirect: 'manual' })).headers.get('location')!
    const query = Object.fromEntries(new URL(location).searchParams)
    await call('getOauthOnedriveCallback', 200, { query })
    const answer = { state: query.state, code: query.code }
    assert.match((await bodyOf('postAccountsConnected', { body: answer })).title, /^Connected/)
    await call('postAccountsConnected', 404, { body: answer })
    await call('getOauthOnedriveCallback', 404, { query })
    const { state } = await begin()
    await call('getOauthOnedriveCallback', 422, { query: { state, error: 'access_denied' } })
    await call('postFilesFolders', 403, { body: { path: '/elsewhere' } })
    const path = join(server.docs, '..', 'second')
    const added = await bodyOf(
      'postFilesFolders',
      { body: { path, account: ANN, mode: 'download-only' } },
      201,
    )
    assert.equal(added.name, 'second')
    await call('postFilesFolders', 400, { body: { path } })
    await quiet()
  })

  test('a folder is not kept in step any more, and both sides keep their files', async () => {
    const second = { params: { name: 'second' } }
    const path = join(server.docs, '..', 'second')
    assert.ok(existsSync(join(path, 'dot.png')))
    assert.equal((await bodyOf('deleteFilesFoldersByName', second)).outcome, 'done')
    await call('deleteFilesFoldersByName', 404, second)
    await call('getFilesFoldersByName', 404, second)
    await quiet()
    assert.ok(existsSync(join(path, 'dot.png')))
    assert.ok(device().has('dot.png'))
    assert.equal((await bodyOf('getFilesFolders')).items.length, 1)
  })
})

describe('drive', () => {
  test('an account is connected, its files are told of by their books, and who sees one', async () => {
    server.world.sim.oauth.autoApprove = ANN
    const begin = () => bodyOf('postAccountsConnect', { body: { service: 'drive', access: 'readonly' } })
    const { url } = await begin()
    const location = (await fetch(url, { redirect: 'manual' })).headers.get('location')!
    const query = Object.fromEntries(new URL(location).searchParams)
    await call('getOauthDriveCallback', 200, { query })
    const answer = { state: query.state, code: query.code }
    assert.match((await bodyOf('postAccountsConnected', { body: answer })).title, /^Connected/)
    await call('postAccountsConnected', 404, { body: answer })
    await call('getOauthDriveCallback', 404, { query })
    const { state } = await begin()
    await call('getOauthDriveCallback', 422, { query: { state, error: 'access_denied' } })
    await call('postDriveSync', 404, { body: { account: BOB } })
    await bodyOf('postDriveSync', { body: { account: ANN } }, 202)
    const [status] = await until(async () => {
      const { accounts } = await bodyOf('getDriveStatus')
      return accounts[0]?.status === 'completed' && accounts
    }, 'the drive is indexed')
    assert.equal(status.listed, status.indexed + status.skipped + status.failed + status.onTheirWay)
    await call('getDriveStatus', 404, { query: { account: BOB } })
    await bodyOf('getDriveSkipped', { query: { account: ANN } })
    const { hits } = await bodyOf('getSearch', { query: { source: 'drive' } })
    const { people } = await bodyOf('getDriveFilesByIdWho', { params: { id: hits[0].ref } })
    assert.ok(people.some(({ account }: Body) => account === ANN))
    await call('getDriveFilesByIdWho', 404, { params: { id: 'nothing' } })
    await quiet()
  })
})

describe('ingest', () => {
  test('a pipeline takes messages and lists its folder, and tells what became of each object', async () => {
    const folder = join(server.world.home, 'drops')
    mkdirSync(folder)
    writeFileSync(join(folder, 'a.ndjson'), '{"m":"a wave"}\nno JSON\n')
    const added = await server.world.run('ingest', 'add', 'drops', '--inbox', '--bucket', `file://${folder}`)
    assert.equal(added.code, 0, added.stderr)
    const pipeline = { params: { name: 'drops' } }
    const nobody = { params: { name: 'nobody' } }
    assert.equal((await bodyOf('getIngestPipelines')).pipelines[0].pipeline, 'drops')
    await call('getIngestPipelinesByName', 404, nobody)
    await until(
      async () => (await bodyOf('getIngestPipelinesByName', pipeline)).queue === 'inbox',
      'the server knows the pipeline',
    )
    await bodyOf('postIngestPipelinesByNameReconcile', pipeline, 202)
    await call('postIngestPipelinesByNameReconcile', 404, nobody)
    const messages = [{ body: 'nobody knows what this is' }]
    await bodyOf('postIngestPipelinesByNameMessages', { ...pipeline, body: { messages } }, 202)
    await call('postIngestPipelinesByNameMessages', 404, { ...nobody, body: { messages } })
    const [object] = await until(async () => {
      const { items } = await bodyOf('getIngestPipelinesByNameShards', pipeline)
      return items[0]?.state === 'stored' && items
    }, 'the object is stored')
    const shard = { params: { name: 'drops', shard: object.id } }
    const unknown = { params: { name: 'drops', shard: '0'.repeat(32) } }
    assert.equal((await bodyOf('getIngestPipelinesByNameShardsByShard', shard)).quarantined, 1)
    await call('getIngestPipelinesByNameShardsByShard', 404, unknown)
    assert.equal((await bodyOf('getIngestPipelinesByNameQuarantine', pipeline)).items.length, 1)
    await bodyOf('postIngestPipelinesByNameShardsByShardReplay', { ...shard, body: {} }, 202)
    await call('postIngestPipelinesByNameShardsByShardReplay', 404, { ...unknown, body: {} })
    await until(
      async () => (await bodyOf('getIngestPipelinesByNameUnparsed', pipeline)).items.length === 1,
      'the message that nobody understands is told of',
    )
    await quiet()
  })
})

describe('assist', () => {
  const account = { params: { account: ANN } }
  const nobody = { params: { account: 'nobody@example.com' } }
  const unknown = { params: { account: ANN, thread: 'ffffffffffffffff' } }
  const arrive = (subject: string): void => {
    const text = letter(
      { from: 'Clara <clara@example.org>', subject, text: 'Could you send me the offer by Friday?' },
      { to: ANN, atMs: Date.now(), n: subject.length },
    )
    const mail = { raw: Buffer.from(text), labelIds: ['INBOX'], internalMs: Date.now() }
    server.world.sim.gmail.mutations(ANN).arrive(mail, seededRandom(subject.length))
  }
  const threadIn = (status: string): Promise<Body> =>
    until(async () => {
      const { items } = await bodyOf('getAssistThreads', { query: { status } })
      return items[0]
    }, `a thread is ${status}`)

  test('a mailbox is switched on, sorted, and its thread drafted, reworked, edited, approved and moved', async () => {
    await quiet()
    await bodyOf('getAssistAccounts')
    await call('postAssistAccounts', 404, { body: { account: 'nobody@example.com' } })
    await call('postAssistSync', 409, { body: {} })
    arrive('The offer')
    await bodyOf('postAssistAccounts', { body: { account: ANN } }, 202)
    await bodyOf('postAssistSync', { body: { account: ANN, full: true } }, 202)
    await call('postAssistSync', 404, { body: { account: 'nobody@example.com' } })
    await bodyOf('postAssistAccountsByAccountBacklog', account, 202)
    const drafted = await threadIn('drafted')
    const of = { params: { account: ANN, thread: drafted.thread } }
    const { draft } = await bodyOf('getAssistAccountsByAccountThreadsByThread', of)
    assert.match(draft.text, /simulated/)
    await call('getAssistAccountsByAccountThreadsByThread', 404, unknown)
    const mail = await bodyOf('getAssistAccountsByAccountThreadsByThreadMessages', of)
    assert.ok(mail.items.length > 0)
    await call('getAssistAccountsByAccountThreadsByThreadMessages', 404, unknown)
    await bodyOf(
      'postAssistAccountsByAccountThreadsByThreadRework',
      { ...of, body: { instruction: 'Shorter' } },
      202,
    )
    await call('postAssistAccountsByAccountThreadsByThreadRework', 404, {
      ...unknown,
      body: { instruction: 'x' },
    })
    await until(async () => {
      const { status, reworks } = await bodyOf('getAssistAccountsByAccountThreadsByThread', of)
      return status === 'drafted' && reworks === 1
    }, 'it is written anew')
    await quiet()
    await bodyOf('putAssistAccountsByAccountThreadsByThreadDraft', { ...of, body: { text: 'My own words.' } })
    await call('putAssistAccountsByAccountThreadsByThreadDraft', 404, { ...unknown, body: { text: 'x' } })
    await bodyOf('postAssistAccountsByAccountThreadsByThreadApprove', of)
    await call('postAssistAccountsByAccountThreadsByThreadApprove', 404, unknown)
    await quiet()
    const moved = { ...of, body: { category: 'fyi' } }
    await bodyOf('postAssistAccountsByAccountThreadsByThreadCategory', moved, 202)
    await call('postAssistAccountsByAccountThreadsByThreadCategory', 404, {
      ...unknown,
      body: { category: 'fyi' },
    })
    const { events } = await bodyOf('getAssistAccountsByAccountThreadsByThread', of)
    const event = events.find(({ canUndo, what }: Body) => canUndo && what === 'corrected')
    const undo = 'postAssistAccountsByAccountThreadsByThreadEventsByEventUndo'
    await quiet()
    const examples = await bodyOf('getAssistExamples')
    const example = { params: { id: examples.items[0].id } }
    await bodyOf('putAssistExamplesById', { ...example, body: { isOn: false } })
    await bodyOf('deleteAssistExamplesById', example)
    await call('putAssistExamplesById', 404, { ...example, body: { isOn: true } })
    await call('deleteAssistExamplesById', 404, example)
    await bodyOf(undo, { params: { ...of.params, event: event.id } }, 202)
    await call(undo, 404, { params: { ...of.params, event: 999_999 } })
    await quiet()
    await bodyOf('postAssistAccountsByAccountThreadsByThreadDraft', { ...of, body: {} }, 202)
    await call('postAssistAccountsByAccountThreadsByThreadDraft', 404, { ...unknown, body: {} })
    await quiet()
  })

  test('its rules, settings, routing, runs, costs and briefing are told and changed', async () => {
    const rule = { account: ANN, from: '*@example.org', subject: null, category: 'fyi' }
    await bodyOf('postAssistRules', { body: rule }, 201)
    await call('postAssistRules', 404, { body: { ...rule, account: 'nobody@example.com' } })
    const { items } = await bodyOf('getAssistRules')
    const one = { params: { id: items.at(-1).id } }
    const none = { params: { id: 999_999 } }
    await bodyOf('putAssistRulesById', { ...one, body: { isOn: true } })
    await call('putAssistRulesById', 404, { ...none, body: {} })
    assert.ok((await bodyOf('postAssistRulesByIdReplay', one)).looked > 0)
    await call('postAssistRulesByIdReplay', 404, none)
    await bodyOf('deleteAssistRulesById', one)
    await call('deleteAssistRulesById', 404, one)
    const { toml } = await bodyOf('getAssistAccountsByAccountSettings', account)
    await bodyOf('putAssistAccountsByAccountSettings', { ...account, body: { toml } })
    await call('putAssistAccountsByAccountSettings', 400, { ...account, body: { toml: 'wrong = 1' } })
    await call('getAssistAccountsByAccountSettings', 404, nobody)
    const routed = await bodyOf('postAssistAccountsByAccountRouteTest', {
      ...account,
      body: { from: 'a@b.example' },
    })
    assert.equal(routed.route, 'pipeline')
    await bodyOf('getAssistRuns')
    await call('getAssistRunsById', 404, none)
    assert.ok((await bodyOf('getAssistCosts')).items.length > 0)
    assert.equal((await bodyOf('getAssistBriefing')).items[0].account, ANN)
    await call('getAssistBriefing', 404, { query: { account: 'nobody@example.com' } })
    await bodyOf('putAssistAccountsByAccount', { ...account, body: { isActive: false } })
    await bodyOf('putAssistAccountsByAccount', { ...account, body: { isActive: true } })
    await call('putAssistAccountsByAccount', 404, { ...nobody, body: { isActive: true } })
  })

  test('a push is taken from who signs it for this server, and from nobody else', async () => {
    const { push } = server.world.sim.gmail
    let pushed: { authorization: string; body: Body } | undefined
    const taker = createServer((request, response) => {
      let text = ''
      request.on('data', (piece: Buffer) => (text += piece.toString()))
      request.on('end', () => {
        pushed = { authorization: String(request.headers.authorization), body: JSON.parse(text) }
        response.end()
      })
    })
    await once(taker.listen(0, '127.0.0.1'), 'listening')
    Object.assign(push.settings, {
      endpoint: `http://127.0.0.1:${(taker.address() as AddressInfo).port}/`,
      audience: PUSH_AUDIENCE,
    })
    push.send(ANN, 1n)
    await push.settled()
    push.settings.endpoint = null
    taker.close()
    const { authorization, body } = pushed!
    const answer = await bodyOf('postAssistPush', { headers: { authorization }, body })
    assert.equal(answer.known, true)
    await call('postAssistPush', 401, { headers: { authorization: `${authorization}x` }, body })
    await call('postAssistPush', 400, { headers: { authorization }, body: { message: {} } })
    await quiet()
    await bodyOf('putAssistAccountsByAccount', { ...account, body: { isActive: false } })
  })

  test('mail that Gmail tells of over HTTP is sorted without anybody asking for it', async () => {
    await bodyOf('putAssistAccountsByAccount', { ...account, body: { isActive: true } })
    await quiet()
    const { gmail } = server.world.sim
    arrive('Told by a push')
    Object.assign(gmail.push.settings, {
      endpoint: `${server.url}/api/assist/push`,
      audience: PUSH_AUDIENCE,
    })
    gmail.push.send(ANN, gmail.mailbox(ANN).historyId)
    await gmail.push.settled()
    gmail.push.settings.endpoint = null
    await until(async () => {
      const { items } = await bodyOf('getAssistThreads', { query: { status: 'drafted' } })
      return items.some(({ subject }: Body) => subject === 'Told by a push')
    }, 'it is drafted')
    await quiet()
  })

  test('an agent that runs is told step by step', async () => {
    const toml = [
      '[[routing]]',
      'name = "shop"',
      'match = { sender_domain = "example.org" }',
      'route = "agent"',
      'profile = "helper"',
      '[[profiles]]',
      'name = "helper"',
      'tools = ["apply_label"]',
      'system_prompt = "Help."',
    ].join('\n')
    await bodyOf('putAssistAccountsByAccount', { ...account, body: { isActive: true } })
    await bodyOf('putAssistAccountsByAccountSettings', { ...account, body: { toml } })
    arrive('Something for the agent')
    await bodyOf('postAssistSync', { body: {} }, 202)
    const run = await until(async () => {
      const { items } = await bodyOf('getAssistRuns')
      return items[0]?.status !== 'running' && items[0]
    }, 'a run has ended')
    assert.ok((await bodyOf('getAssistRunsById', { params: { id: run.id } })).steps.length > 0)
    await quiet()
    await bodyOf('putAssistAccountsByAccount', { ...account, body: { isActive: false } })
  })
})

describe('search', () => {
  test('finds what is kept, reads it, and says who can see it', async () => {
    const [hit] = await until(async () => {
      const { hits } = await bodyOf('getSearch', { query: { q: 'the', mode: 'words' } })
      return hits.length > 0 && hits
    }, 'something is found')
    const document = { params: { id: hit.id } }
    assert.equal((await bodyOf('getSearchDocumentsById', document)).id, hit.id)
    await call('getSearchDocumentsById', 404, { params: { id: 999_999_999 } })
    const { items } = await bodyOf('getSearchWhoById', document)
    assert.equal(items[0].user, 'owner')
    await call('getSearchWhoById', 404, { params: { id: 999_999_999 } })
    await bodyOf('getSearchSuggest', { query: { q: 't' } })
    await bodyOf('getSearchEmbedding')
    assert.ok((await bodyOf('getSearchCoverage')).sources.length > 0)
    await call('getSearchCoverage', 404, { query: { as: 'nobody' } })
  })

  test('keeps searches, and forgets them', async () => {
    const { id } = await bodyOf('postSearchSaved', { body: { name: 'Mine', query: 'the' } })
    await bodyOf('postSearchRecent', { body: { text: 'the' } })
    const { saved, recent } = await bodyOf('getSearchSaved')
    assert.deepEqual([saved.map((one: Body) => one.name), recent], [['Mine'], ['the']])
    await bodyOf('deleteSearchSavedById', { params: { id } })
    await call('deleteSearchSavedById', 404, { params: { id } })
    await bodyOf('deleteSearchRecent')
  })
})

describe('users', () => {
  test('what one user has begun nobody else can end, at any service', async () => {
    server.world.sim.oauth.autoApprove = ANN
    const { id } = await bodyOf('postUsers', { body: { name: 'eve@example.com', role: 'member' } }, 201)
    const { token } = await bodyOf('postUsersByIdTokens', { params: { id }, body: {} }, 201)
    const asEve = (path: string, body: object): Promise<Response> =>
      fetch(server.url + path, {
        method: 'POST',
        headers: { ...WRITE, authorization: `Bearer ${token}` },
        body: JSON.stringify(body),
      })
    const { services } = await bodyOf('getAccounts')
    const accounts = async (): Promise<number> => (await bodyOf('getAccounts')).items.length
    const before = await accounts()
    for (const { name, level } of services) {
      const begun = await asEve('/api/accounts/connect', { service: name, access: level })
      const { url } = (await begun.json()) as { url: string }
      // Eve sends the address to somebody else, whose browser goes the whole way.
      const location = (await fetch(url, { redirect: 'manual' })).headers.get('location')!
      const { searchParams, pathname, search } = new URL(location)
      const page = await fetch(`${server.url}${pathname}${search}`)
      assert.equal(page.status, 200)
      const body = { state: searchParams.get('state')!, code: searchParams.get('code')! }
      const refused = await bodyOf('postAccountsConnected', { body }, 403)
      assert.equal(refused.code, 'begun-by-another')
      assert.equal((await asEve('/api/accounts/connected', body)).status, 404, 'it was worth one try')
    }
    assert.equal(await accounts(), before)
    await bodyOf('deleteUsersById', { params: { id } })
  })

  test('are added, given tokens, accounts and addresses, changed and removed', async () => {
    assert.equal((await bodyOf('getMe')).role, 'admin')
    const { id } = await bodyOf('postUsers', { body: { name: 'eve' } }, 201)
    await call('postUsers', 409, { body: { name: 'Eve' } })
    const eve = { params: { id } }
    const { id: token } = await bodyOf('postUsersByIdTokens', { ...eve, body: { label: 'x' } }, 201)
    assert.equal((await bodyOf('getUsersByIdTokens', eve)).items.length, 1)
    await bodyOf('deleteUsersByIdTokensByToken', { params: { id, token } })
    await call('deleteUsersByIdTokensByToken', 404, { params: { id, token } })
    await bodyOf('postUsersByIdSignIn', eve)
    await call('postUsersByIdSignIn', 404, { params: { id: 999 } })
    const given = { service: 'gmail', name: ANN }
    await bodyOf('putUsersByIdAccountsByServiceByName', { params: { id, ...given } })
    await call('deleteUsersById', 409, eve)
    assert.ok((await bodyOf('getUsersByIdSyncStatus', eve)).sources.length > 0)
    await bodyOf('postUsersByIdSync', eve)
    await bodyOf('putUsersByIdAccountsByServiceByName', { params: { id: 1, ...given } })
    await bodyOf('putUsersById', { ...eve, body: { state: 'disabled' } })
    await bodyOf('deleteUsersById', eve)
    await call('deleteUsersById', 404, eve)
    assert.equal((await bodyOf('getUsers')).items.length, 1)
    const { items } = await bodyOf('getAudit', { query: { limit: 3 } })
    assert.equal(items[0].action, 'user-removed')
    await quiet()
  })
})

describe('what has not changed', () => {
  test('is answered with 304 and no body, and what has, with all of it', async () => {
    const etagged = contract.document.operations.filter(({ responses }) => '304' in responses)
    assert.ok(etagged.length >= 5)
    for (const { operationId, path } of etagged) {
      const params = path.includes('{name}') ? { params: { name: STREAM } } : {}
      const { headers } = await call(operationId, 200, params)
      const etag = headers.get('etag')!
      for (const sent of [etag, `"other", ${etag}`, '*']) {
        await until(async () => {
          const status = sent === '*' ? 304 : undefined
          const again = await contract.send(contract.document.operation(operationId), {
            ...params,
            headers: { 'if-none-match': sent },
          })
          const answer = await contract.check(contract.document.operation(operationId), again)
          assert.equal(
            answer.status,
            status ?? (answer.headers.get('etag') === etag ? 304 : 200),
            operationId,
          )
          return true
        }, operationId)
      }
      await call(operationId, 200, { ...params, headers: { 'if-none-match': '"other"' } })
    }
  })

  test('HEAD is GET without the body', async () => {
    for (const { operationId, method, path } of contract.document.operations) {
      if (method !== 'get' || path.startsWith('/oauth')) continue
      const filled = path
        .replace('{name}', encodeURIComponent(STREAM))
        .replace('{account}', ANN)
        .replace('{index}', '0')
        .replace('{id}', path.includes('/mail/messages') ? server.htmlId : '1')
      const head = await server.ask(filled, { method: 'HEAD' })
      assert.equal((await head.arrayBuffer()).byteLength, 0, operationId)
      if (path === '/api/events') continue
      const get = await server.ask(filled)
      assert.equal(head.status, get.status, operationId)
      assert.equal(head.headers.get('content-type'), get.headers.get('content-type'), operationId)
      await get.body?.cancel()
    }
  })
})

describe('signing in', () => {
  const anonymous = () => new Contract(contract.document, (path, init) => fetch(server.url + path, init))

  test('gives a session, with which a page asks and changes, until it signs out', async () => {
    const stranger = anonymous()
    await stranger.call('getOverview', 401)
    await stranger.call('postSignIn', 401, { body: { token: 'not-the-right-token' } })
    const { session } = (await stranger.call('postSignIn', 200, { body: { token: TOKEN } })).body
    const headers = { authorization: `Bearer ${session}` }
    await stranger.call('getOverview', 200, { headers })
    await stranger.call('postResume', 200, { headers, body: { scope: 'all' } })
    const path = '/api/overview'
    const { href } = (await stranger.call('postTickets', 200, { headers, body: { path } })).body
    assert.equal((await fetch(server.url + href)).status, 200)
    await stranger.call('postSignOut', 200, { headers })
    await stranger.call('getOverview', 401, { headers })
    assert.equal((await fetch(server.url + href)).status, 401)
    for (const one of stranger.seen) contract.seen.add(one)
  })

  test('too often with a wrong token has to wait', async () => {
    const stranger = anonymous()
    const wrong = { body: { token: 'not-the-right-token' } }
    const operation = contract.document.operation('postSignIn')
    await until(async () => {
      const answer = await stranger.check(operation, await stranger.send(operation, wrong))
      assert.ok(answer.status === 401 || answer.status === 429)
      return answer.status === 429 && Number(answer.headers.get('retry-after')) > 0
    }, 'a try that is refused')
  })
})

describe('live events', () => {
  /** Two happenings each time. */
  const pulse = async (target = 'mail.fetch', times = 1): Promise<void> => {
    for (let n = 0; n < times; n++) {
      for (const id of ['postPause', 'postResume']) await bodyOf(id, { body: { scope: 'kind', target } })
    }
  }

  test('a reader that goes away and comes back misses nothing and sees nothing twice', async () => {
    const watcher = await LiveReader.open(contract, server)
    const parts: LiveReader[] = []
    let reader = await LiveReader.open(contract, server)
    const fromN = Math.max(watcher.events[0]!.n, reader.events[0]!.n)
    for (let turn = 0; turn < 5; turn++) {
      await pulse()
      if (turn % 2 === 0) await reader.seen(({ type, n }) => type === 'pause' && n > fromN)
      await reader.close()
      parts.push(reader)
      await pulse()
      reader = await LiveReader.open(contract, { ...server, lastEventId: reader.lastId })
      assert.equal(reader.events[0]!.data.resumed, true)
    }
    await pulse()
    const last = await watcher.seen(
      (event) => event === watcher.happenings.findLast(({ type }) => type === 'pause'),
    )
    await reader.seen(({ n }) => n >= last.n)
    parts.push(reader)
    const untilN = Math.min(watcher.happenings.at(-1)!.n, reader.happenings.at(-1)!.n)
    const within = (all: LiveReader[]): number[] =>
      all.flatMap(({ happenings }) => happenings.map(({ n }) => n)).filter((n) => n > fromN && n <= untilN)
    assert.deepEqual(within(parts), within([watcher]))
    assert.ok(within([watcher]).length >= 20)
    const states = parts.flatMap(({ events }) =>
      events.filter(({ type }) => type === 'snapshot').map(({ n }) => n),
    )
    assert.deepEqual(
      states,
      [...new Set(states)].sort((a, b) => a - b),
    )
    await reader.close()
    await watcher.close()
  })

  test('an id of another server is no place to go on from', async () => {
    for (const lastEventId of ['abc-1', 'x', '0', `${live.lastId}9`]) {
      const reader = await LiveReader.open(contract, { ...server, lastEventId })
      assert.equal(reader.events[0]!.data.resumed, false, lastEventId)
      await reader.close()
    }
  })

  test('of every type have been seen, and have the form that the document gives', async () => {
    const { faults, gmail } = server.world.sim
    faults.set({
      rules: [
        { ...REFUSAL, max: 1 },
        { do: 'error', status: 500, methods: ['history.list'], max: 1 },
      ],
    })
    gmail.mutations(ANN).arrive({}, seededRandom(1))
    await bodyOf('postMailSync', { body: { account: ANN } }, 202)
    for (const wanted of ['job', 'bad']) await live.seen(({ type }) => type === wanted)
    await quiet()
    faults.set({ rules: [{ do: 'throttle', status: 429, retryAfterSeconds: 1, max: 1 }] })
    await bodyOf('postMailSync', { body: { account: ANN } }, 202)
    await live.seen(({ type }) => type === 'budget')
    const { items } = await bodyOf('getJobs', { query: { limit: 500 } })
    const kinds = [...new Set<string>(items.map(({ kind }: Body) => kind))]
    await until(async () => {
      await Promise.all(kinds.map((kind) => pulse(kind, 10)))
      return live.events.some(({ type }) => type === 'skipped')
    }, 'so many events that some are left out')
    await quiet()
    faults.set({ rules: [{ do: 'revoke-tokens' }] })
    await bodyOf('postMailSync', { body: { account: ANN } }, 202)
    await live.seen(({ type }) => type === 'alert')
    await until(async () => (await accountOf('gmail')).state === 'sign-in', 'a sign-in needed')
    await call('postMailSync', 409, { body: { account: ANN } })
    const missing = new Set(Object.keys(contract.document.events))
    for (const { type } of live.events) missing.delete(type)
    // Told to members alone, which this reader is not: src/server/members.test.ts.
    assert.deepEqual([...missing], ['news'])
    await live.close()
  })
})

test('every operation of the document was called, and every success of it was seen', () => {
  assert.deepEqual(contract.unseen, [])
  assert.doesNotMatch(server.log(), /a request failed|a connection failed/)
})
