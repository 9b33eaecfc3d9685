import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, test } from 'node:test'
import { changeSetting } from '../../config/change.ts'
import type { Located } from '../../config/location.ts'
import { startAimd } from '../../engine/limits/aimd.ts'
import { ReusedDatabase } from '../../ledger/home.suite.ts'
import { SqlBudgetStore } from '../../ledger/sql-budgets.ts'
import { type ApiOptions, type ApiWorld, type Body, STREAM, startApi, type Task } from './engine-api.suite.ts'
import { engineModule } from './module.ts'

const NAME = encodeURIComponent(STREAM)
const AIMD = { rateStart: 7, rateMin: 1, rateMax: 9, workersStart: 5, workersMin: 1, workersMax: 9 }

/** The stream, as soon as something else is said of it: what was just told is told again for a moment. */
async function toldAnew(get: ApiWorld['get'], health: string): Promise<Body> {
  for (;;) {
    const { body } = await get(`/api/streams/${NAME}`)
    if (body.health !== health) return body
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

function apiOn(name: string, open: () => Promise<string | undefined>): void {
  const withApi = async (fn: (api: ApiWorld) => Promise<void>, options: ApiOptions = {}): Promise<void> => {
    const url = await open()
    const api = await startApi({ ...(url === undefined ? {} : { ledgerUrl: url }), ...options })
    try {
      await fn(api)
    } finally {
      await api.close()
    }
  }

  describe(`the engine's API on ${name}`, () => {
    test('every list and overview answers on an empty ledger', () =>
      withApi(async ({ get }) => {
        for (const route of engineModule.routes) {
          const { method, path } = route.spec
          if (method !== 'get' || path.includes('{')) continue
          assert.equal((await get(path)).status, 200, path)
        }
        const { body } = await get('/api/overview')
        assert.deepEqual(body.verdict, {
          state: 'settled',
          text: 'Nothing to do yet: connect an account to begin.',
        })
      }))

    test('of a mailbox, the overview knows the whole, and shows the watermark that is held back for late news', () =>
      withApi(async ({ get, engine, ledger }) => {
        const { id: streamId } = await engine.streams.open(STREAM)
        await ledger.transaction((tx) =>
          tx.run(
            `INSERT INTO mail_boxes(account, archive_id, planned_at, checked_at, held_mark_s, held_as_of, totals) VALUES (?, 'a', 20000, 21000, 5, 20000, ?)`,
            [STREAM.slice('mail:'.length), JSON.stringify({ messages: 40, spam: 3, trash: 0, atMs: 1 })],
          ),
        )
        await engine.write({
          segments: [
            { streamId, from: 0, to: 20, mark: 'twenty', ref: 'slice' },
            { streamId, from: 20, to: 30, ref: 'news' },
          ],
          counts: [
            { segment: 'slice', listed: 1, stored: 1, seal: true },
            { segment: 'news', listed: 1, seal: true },
          ],
        })
        assert.equal((await ledger.stream(STREAM)).mark_at, 20)
        const [stream] = (await get('/api/overview')).body.streams
        assert.deepEqual([stream.markAt, stream.mark, stream.whole], [5, '1970-01-01T00:00:05Z', 37])
        assert.equal((await get(`/api/streams/${NAME}/frontier`)).body.markAt, 5)
      }))

    test('a stream is told with its counts, its pace and a sentence, from its first segment to its last', () =>
      withApi(async ({ get, engine, ledger, task }) => {
        const { id: streamId } = await engine.streams.open(STREAM)
        await engine.write({
          segments: [
            { streamId, from: 0, to: 10, mark: 'ten', ref: 'first' },
            { streamId, from: 10, to: 20, ref: 'second' },
          ],
          counts: [
            { segment: 'first', listed: 3, stored: 1, seal: true },
            { segment: 'second', listed: 1 },
          ],
          jobs: [
            { kind: task, payload: ok(), options: { stream: STREAM, segment: 'first', items: 1 } },
            { kind: task, payload: ok(), options: { stream: STREAM, segment: 'second', items: 1 } },
          ],
        })
        const waiting = (await get(`/api/streams/${NAME}`)).body
        assert.equal(waiting.health, 'working')
        assert.deepEqual([waiting.listed, waiting.stored, waiting.onTheirWay, waiting.mark], [4, 1, 3, null])
        const idle = (await get('/api/overview')).body
        assert.equal(idle.verdict.state, 'attention')
        assert.match(idle.verdict.text, /^No engine is running, and 2 jobs wait\.$/)

        await engine.start()
        await engine.drained()
        const torn = await toldAnew(get, 'working')
        assert.deepEqual([torn.health, torn.unbalanced], ['trouble', 1])
        assert.match(torn.summary, /^The counts of 1 slice do not agree: it is complete up to it/)
        const [first, second] = await ledger.segments(streamId)
        await engine.write({
          counts: [
            { segment: first!.id, stored: 1 },
            { segment: second!.id, seal: true },
          ],
        })
        const whole = await toldAnew(get, 'trouble')
        assert.deepEqual([whole.health, whole.summary], ['ok', 'All is settled.'])
        assert.deepEqual([whole.mark, whole.markAt, whole.settledSegments], ['20', 20, 2])
        const { body } = await get('/api/streams')
        assert.equal(body.items.length, 1)
        const overview = (await get('/api/overview')).body
        assert.equal(overview.workers.length, 1)
        assert.deepEqual([overview.workers[0].isHere, overview.workers[0].alive], [true, true])
        assert.equal(overview.jobs.done, 2)
        assert.equal((await get('/api/streams/nothing')).status, 404)
      }))

    test('segments come page by page, each once, in order, by state where asked for', () =>
      withApi(async ({ get, engine }) => {
        await lay(engine, { n: 25, settled: 10 })
        const all = await pages(get, `/api/streams/${NAME}/segments?limit=4`)
        assert.deepEqual(
          all.map(({ from }) => from),
          Array.from({ length: 25 }, (_, at) => at * 10),
        )
        assert.equal((await pages(get, `/api/streams/${NAME}/segments?limit=4&state=settled`)).length, 10)
        assert.equal((await pages(get, `/api/streams/${NAME}/segments?limit=4&state=open`)).length, 15)
        assert.equal((await get('/api/streams/none/segments')).status, 404)
      }))

    test('the frontier of many segments has as many cells as asked for, and can be looked at more closely', () =>
      withApi(async ({ get, engine }) => {
        await lay(engine, { n: 50, settled: 20 })
        const { body } = await get(`/api/streams/${NAME}/frontier?cells=5`)
        assert.deepEqual(
          body.cells.map(({ state, segments, settled }: Body) => [state, segments, settled]),
          [
            ['settled', 10, 10],
            ['settled', 10, 10],
            ['waiting', 10, 0],
            ['waiting', 10, 0],
            ['waiting', 10, 0],
          ],
        )
        assert.deepEqual([body.from, body.to, body.markAt, body.segments], [0, 500, 200, 50])
        const closer = (await get(`/api/streams/${NAME}/frontier?cells=5&from=190&to=210`)).body
        assert.deepEqual(
          closer.cells.map(({ from, state }: Body) => [from, state]),
          [
            [190, 'settled'],
            [200, 'waiting'],
          ],
        )
        for (const query of ['cells=0', 'cells=1e9', 'from=5&to=5', 'from=x', 'cells=Infinity']) {
          assert.equal((await get(`/api/streams/${NAME}/frontier?${query}`)).status, 400, query)
        }
        assert.equal((await get('/api/streams/none/frontier')).status, 404)
      }))

    test('jobs are found by state, kind, stream, parent and age, page by page, each once', () =>
      withApi(async ({ get, engine, task }) => {
        await engine.enqueueMany(task, Array.from({ length: 23 }, ok), { stream: STREAM })
        const { id: spawner } = await engine.enqueue(task, { does: 'spawn', ids: ['a'] })
        await engine.start()
        await engine.drained()
        await engine.enqueue(task, ok(), { runAt: engine.ledger.now() + 3_600_000 })
        const count = async (query: string): Promise<number> => {
          const found = await pages(get, `/api/jobs?limit=5&${query}`)
          assert.equal(new Set(found.map(({ id }) => id)).size, found.length)
          return found.length
        }
        assert.equal(await count(''), 26)
        assert.equal(await count('state=done'), 25)
        assert.equal(await count('state=pending'), 1)
        assert.equal(await count('state=claimed'), 0)
        assert.equal(await count(`stream=${NAME}`), 23)
        assert.equal(await count(`kind=test.task&state=done&stream=${NAME}`), 23)
        assert.equal(await count('kind=nothing'), 0)
        assert.equal(await count(`parent=${spawner}`), 1)
        assert.equal(await count('olderThanMs=3600000'), 0)
        assert.equal(await count('segment=4711'), 0)
        for (const query of ['cursor=abc', 'cursor=1;2', 'state=x', 'limit=0', 'limit=501', 'parent=0']) {
          assert.equal((await get(`/api/jobs?${query}`)).status, 400, query)
        }
      }))

    test('a job is told with what it waits for, what came from it, what failed, and without secrets', () =>
      withApi(async ({ get, engine, task, single }) => {
        const { id: spawner } = await engine.enqueue(task, { does: 'spawn', ids: ['a'], token: 'tok-secret' })
        const { id: failing } = await engine.enqueue(single, {})
        const { id: after } = await engine.enqueue(task, ok(), { after: [failing] })
        const before = (await get(`/api/jobs/${after}`)).body
        assert.deepEqual([before.stage, before.dependsOn[0].id, before.canCancel], ['deps', failing, true])
        assert.match(before.explanation[0], new RegExp(`^It waits for job #${failing} `))
        await engine.start()
        await engine.drained()
        const parent = (await get(`/api/jobs/${spawner}`)).body
        assert.deepEqual(
          parent.children.map(({ kind, state }: Body) => [kind, state]),
          [['test.task', 'done']],
        )
        assert.doesNotMatch(JSON.stringify(parent), /tok-secret/)
        assert.deepEqual([parent.payload.because, parent.payload.does], ['it is to spawn', undefined])
        const failed = (await get(`/api/jobs/${failing}`)).body
        assert.deepEqual([failed.state, failed.canRetry, failed.canCancel], ['failed', true, true])
        assert.equal(failed.errors.length, 1)
        assert.doesNotMatch(JSON.stringify(failed), /abcdefghijklmnop|tidemark jobs/)
        assert.equal(failed.dependents[0].state, 'failed')
        assert.equal((await get('/api/overview')).body.verdict.text, '2 jobs failed.')
        for (const id of ['4711', '99999999999999']) assert.equal((await get(`/api/jobs/${id}`)).status, 404)
        for (const id of ['0', 'x', '-1', '1.5', '1e30']) {
          assert.equal((await get(`/api/jobs/${id}`)).status, 400, id)
        }
      }))

    test('jobs are canceled and tried again; what is so already is no error, what cannot be is told', () =>
      withApi(async ({ post, get, engine, task, letGo }) => {
        const { id } = await engine.enqueue(task, ok())
        assert.deepEqual(
          await post(`/api/jobs/${id}/retry`),
          answer('already', `Job #${id} is waiting already.`),
        )
        assert.deepEqual(await post(`/api/jobs/${id}/cancel`), answer('done', `Job #${id} is canceled.`))
        assert.deepEqual(
          await post(`/api/jobs/${id}/cancel`),
          answer('already', `Job #${id} is canceled already.`),
        )
        assert.deepEqual(await post(`/api/jobs/${id}/retry`), answer('done', `Job #${id} is tried again.`))
        await engine.start()
        await engine.drained()
        const settled = await post(`/api/jobs/${id}/cancel`)
        assert.deepEqual([settled.status, settled.body.code], [409, 'job-state'])
        assert.equal((await post(`/api/jobs/${id}/retry`)).status, 409)
        assert.equal((await post('/api/jobs/4711/retry')).status, 404)
        assert.equal((await post('/api/jobs/4711/cancel')).status, 404)

        const { id: running } = await engine.enqueue(task, { does: 'wait', ids: ['a', 'b', 'c'] })
        await until(async () => (await get('/api/overview')).body.running.length === 1)
        const overview = (await get('/api/overview')).body
        assert.equal(overview.running[0].label, 'three of ten')
        assert.equal(overview.live, 'doing 3 tasks')
        assert.equal(overview.verdict.state, 'working')
        const detail = (await get(`/api/jobs/${running}`)).body
        assert.deepEqual([detail.lease.alive, detail.lease.worker], [true, engine.owner])
        assert.deepEqual(
          await post(`/api/jobs/${running}/cancel`),
          answer('done', `Job #${running} has been asked to stop.`),
        )
        letGo()
        await engine.drained()
        assert.equal((await get(`/api/jobs/${running}`)).body.state, 'canceled')
      }))

    test('bad items come page by page, and are tried again by number, by stream or all', () =>
      withApi(async ({ get, post, engine, task }) => {
        const ids = Array.from({ length: 7 }, (_, at) => `item ${at}`)
        await engine.enqueue(task, { does: 'bad', ids }, { stream: STREAM })
        await engine.start()
        await engine.drained()
        const found = await pages(get, '/api/bad?limit=3')
        assert.deepEqual(found.map(({ item }) => item).sort(), ids)
        assert.equal((await pages(get, `/api/bad?limit=3&stream=${NAME}`)).length, 7)
        assert.equal((await get('/api/bad?stream=none')).status, 404)
        const overview = (await get('/api/overview')).body
        assert.deepEqual(
          [overview.badItems, overview.verdict.text],
          [7, 'All is settled, but for 7 bad items.'],
        )

        await engine.pause('all')
        const one = { ids: [found[0].id] }
        assert.deepEqual(await post('/api/bad/retry', one), answer('done', '1 item is tried again.'))
        assert.deepEqual(
          await post('/api/bad/retry', one),
          answer('already', 'It is being tried again already.'),
        )
        assert.deepEqual(
          await post('/api/bad/retry', { stream: STREAM }),
          answer('done', '6 items are tried again.'),
        )
        assert.equal((await post('/api/bad/retry', {})).body.outcome, 'already')
        assert.equal((await post('/api/bad/retry', { ids: [4711] })).status, 404)
        assert.equal((await post('/api/bad/retry', { stream: 'none' })).status, 404)
        for (const body of [
          { ids: [] },
          { ids: ['1'] },
          { ids: [1], stream: STREAM },
          { idz: [1] },
          [],
          null,
        ]) {
          assert.equal((await post('/api/bad/retry', body)).status, 400, JSON.stringify(body))
        }
      }))

    test('a stream, a kind or everything is paused and goes on, and everybody sees it', () =>
      withApi(async ({ get, post, engine, task }) => {
        await engine.streams.open(STREAM)
        await engine.start()
        const stream = { scope: 'stream', target: STREAM }
        assert.deepEqual(
          await post('/api/pause', { ...stream, reason: 'holidays' }),
          answer('done', `The stream ${STREAM} is paused.`),
        )
        assert.deepEqual(
          await post('/api/pause', stream),
          answer('already', `The stream ${STREAM} is paused already: holidays`),
        )
        const { body } = await get(`/api/streams/${NAME}`)
        assert.deepEqual(
          [body.health, body.pauseReason, body.summary],
          ['paused', 'holidays', 'Paused: holidays.'],
        )
        assert.deepEqual(await post('/api/resume', stream), answer('done', `The stream ${STREAM} goes on.`))
        assert.deepEqual(
          await post('/api/resume', stream),
          answer('already', `The stream ${STREAM} is not paused.`),
        )

        assert.equal((await post('/api/pause', { scope: 'all' })).body.outcome, 'done')
        const { id } = await engine.enqueue(task, ok())
        const paused = (await get(`/api/jobs/${id}`)).body
        assert.ok(paused.explanation.includes('Everything is paused: paused by hand.'), paused.explanation)
        assert.match((await get('/api/overview')).body.verdict.text, /^Everything is paused/)
        assert.equal((await post('/api/pause', { scope: 'kind', target: 'test.task' })).body.outcome, 'done')
        assert.equal((await get('/api/overview')).body.pauses.length, 2)
        await post('/api/resume', { scope: 'all' })
        await post('/api/resume', { scope: 'kind', target: 'test.task' })
        await engine.drained()
        assert.equal((await get(`/api/jobs/${id}`)).body.state, 'done')

        for (const scope of ['stream', 'kind']) {
          assert.equal((await post('/api/pause', { scope, target: 'none' })).status, 404)
          assert.equal((await post('/api/resume', { scope, target: 'none' })).status, 404)
          assert.equal((await post('/api/pause', { scope })).status, 400)
        }
        assert.equal((await post('/api/pause', { scope: 'all', target: 'x' })).status, 400)
        assert.equal((await post('/api/pause', { scope: 'some' })).status, 400)
      }))

    test('a stream whose account must sign in comes first', () =>
      withApi(async ({ get, engine }) => {
        await engine.streams.open(STREAM)
        await engine.pause('stream', STREAM, 'the token was taken back', 'sign-in')
        const { verdict, streams } = (await get('/api/overview')).body
        assert.deepEqual(verdict, { state: 'attention', text: 'ann@example.com must sign in again.' })
        assert.deepEqual(
          [streams[0].health, streams[0].summary],
          ['trouble', 'ann@example.com must sign in again.'],
        )
      }))

    test('alerts, workers, limits, schedules and series are told as they are', () =>
      withApi(async ({ get, engine, ledger, task }) => {
        await engine.streams.open(STREAM)
        await engine.schedule('a check', 'every 5m', task, ok(), { stream: STREAM })
        await engine.start()
        await ledger.raiseAlert(
          { condition: 'test', target: 'x', severity: 'critical', text: 'Look at it.' },
          0,
        )
        const { items: alerts } = (await get('/api/alerts')).body
        assert.deepEqual([alerts.length, alerts[0].text], [1, 'Look at it.'])
        assert.deepEqual((await get('/api/overview')).body.verdict, {
          state: 'attention',
          text: 'Look at it.',
        })
        assert.equal((await get('/api/workers')).body.items[0].name, 'api')
        assert.deepEqual(
          (await get('/api/limits')).body.items.map((one: Body) => one.name),
          ['calls'],
        )
        const { items } = (await get('/api/schedules')).body
        const check = items.find((one: Body) => one.name === 'a check')
        assert.deepEqual([check.spec, check.stream, check.lastAt], ['every 5m', STREAM, null])
        assert.equal((await get('/api/series?stepS=60')).body.stepS, 60)
        assert.equal((await get(`/api/series?stepS=1&sinceS=${Date.now() / 1000 - 60}`)).status, 200)
        assert.equal((await get('/api/series?stepS=7')).status, 400)
      }))

    test('a process that only answers tells the budgets as those see them who draw from them', () =>
      withApi(
        async ({ get, ledger }) => {
          const state = { ...startAimd(AIMD, ledger.now()), rate: 7, workers: 5, throttledCalls: 2 }
          const start = { rate: 7, burst: 7, controller: JSON.stringify(state) }
          const draw = { name: 'calls', member: 'a worker', want: 0, giveBack: 0, leave: false }
          const workers = { owner: 1, running: 3, workersWanted: 3, slots: 3, workersMax: 5 }
          await new SqlBudgetStore(ledger.driver).draw({ ...draw, ...workers, start })
          const [seen] = (await get('/api/limits')).body.items
          assert.deepEqual([seen.rate, seen.workers, seen.running, seen.throttles], [7, 5, 3, 2])
          assert.deepEqual((await get('/api/overview')).body.budgets, [seen])
        },
        { role: 'web' },
      ))

    test('a process that only answers sees what others do, and steers it', () =>
      withApi(
        async ({ get, post, engine, task }) => {
          const { id } = await engine.enqueue(task, ok(), { stream: STREAM })
          const { body } = await get('/api/overview')
          assert.deepEqual([body.role, body.running, body.live], ['web', [], '1 waiting'])
          assert.equal((await post('/api/pause', { scope: 'stream', target: STREAM })).body.outcome, 'done')
          assert.equal((await post(`/api/jobs/${id}/cancel`)).body.outcome, 'done')
        },
        { role: 'web' },
      ))
  })
}

apiOn('SQLite', async () => undefined)

const reused = new ReusedDatabase()
after(() => reused.remove())
apiOn('PostgreSQL', () => reused.empty())

test('the frontier of 100,000 segments is answered in 400 cells, and lets others have their turn', async () => {
  const api = await startApi()
  try {
    const { id: streamId } = await api.engine.streams.open(STREAM)
    const PART = 10_000
    for (let from = 0; from < 100_000; from += PART) {
      const refs = Array.from({ length: PART }, (_, at) => from + at)
      await api.ledger.write({
        segments: refs.map((at) => ({ streamId, from: at * 10, to: at * 10 + 10, ref: `s${at}` })),
        counts: refs
          .filter((at) => at < 30_000)
          .map((at) => ({ segment: `s${at}`, listed: 1, stored: 1, seal: true })),
      })
    }
    let turns = 0
    const timer = setInterval(() => {
      turns += 1
    }, 1)
    const { body } = await api.get(`/api/streams/${NAME}/frontier?cells=400`)
    clearInterval(timer)
    assert.equal(body.cells.length, 400)
    assert.equal(body.segments, 100_000)
    assert.equal(body.cells.filter((cell: Body) => cell.state === 'settled').length, 120)
    assert.ok(turns >= 3, `others had ${turns} turns`)
    assert.ok(JSON.stringify(body).length < 100_000)
    const { streams } = (await api.get('/api/overview')).body
    assert.deepEqual([streams[0].segments, streams[0].settledSegments], [100_000, 30_000])
  } finally {
    await api.close()
  }
})

test('many who ask at once share a look, and never wait long for it', async () => {
  const api = await startApi()
  try {
    let reads = 0
    const { ledger } = api
    const streams = ledger.streams.bind(ledger)
    ledger.streams = () => {
      reads += 1
      return streams()
    }
    const answers = await Promise.all(Array.from({ length: 200 }, () => api.get('/api/overview')))
    assert.ok(answers.every(({ status }) => status === 200))
    assert.ok(reads <= 20, `${reads} looks for 200 who asked`)
    await api.engine.streams.open(STREAM)
    // What was read last may be shown a little longer where reading has cost much.
    await until(async () => (await api.get('/api/overview')).body.streams.length === 1)
  } finally {
    await api.close()
  }
})

test('a rare job among very many is found page by page, and no page takes long', async () => {
  const api = await startApi()
  try {
    await api.engine.enqueue(api.task, ok(), { stream: STREAM })
    // Three stretches of them.
    for (let part = 0; part < 5; part++) {
      await api.engine.enqueueMany(api.task, Array.from({ length: 10_000 }, ok))
    }
    const found = await pages(api.get, `/api/jobs?stream=${NAME}`)
    assert.deepEqual(
      found.map(({ id }) => id),
      [1],
    )
    assert.equal((await pages(api.get, '/api/jobs?state=claimed')).length, 0)
  } finally {
    await api.close()
  }
})

test('settings are told with where they came from, and secrets are not', async () => {
  const config = {
    gmail: { client_secret: 'very-secret', client_id: 'mine' },
    alerts: { webhook_url: 'https://chat.example.com/hooks/secret-path' },
  }
  const api = await startApi({ config })
  try {
    const { body } = await api.get('/api/config')
    const value = (key: string): string => body.items.find((one: Body) => one.key === key).value
    assert.equal(value('gmail.client_id'), 'mine')
    assert.equal(value('mail.poll_minutes'), '5')
    assert.doesNotMatch(JSON.stringify(body), /very-secret|secret-path/)
  } finally {
    await api.close()
  }
})

test('a setting is changed in the file and noted with who did it; a file that cannot be changed is a conflict', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-settings-'))
  const path = join(folder, 'config.toml')
  writeFileSync(path, '# mine\n')
  const api = await startApi()
  const put = (value: string | null) => api.put('/api/config/mail.poll_minutes', { value })
  const file: Located = { path, origin: { kind: 'flag', name: '--config' } }
  api.services.changeSetting = async (key, text) => {
    await changeSetting({ catalog: api.services.catalog, env: {}, flags: { config: path }, file, key, text })
  }
  try {
    assert.equal((await put('7')).status, 200)
    assert.equal(readFileSync(path, 'utf8'), '# mine\n\n[mail]\npoll_minutes = 7\n')
    const noted = async () =>
      (await api.services.users.audit({ limit: 9 })).map(({ action, userName }) => [action, userName])
    assert.deepEqual(await noted(), [['setting-changed', 'owner']])
    assert.equal((await put('0')).status, 400)
    writeFileSync(path, '[ledger]\ntoken = "s3cret\n')
    const broken = await put('8')
    assert.deepEqual([broken.status, broken.body.code], [409, 'config-broken'])
    assert.doesNotMatch(JSON.stringify(broken.body), /s3cret/)
    rmSync(path)
    symlinkSync(join(folder, 'none.toml'), path)
    const unwritable = await put('8')
    assert.deepEqual([unwritable.status, unwritable.body.code], [409, 'config-unwritable'])
    assert.ok(unwritable.body.detail.includes(path))
    assert.equal((await noted()).length, 1, 'what was not done is not noted')
  } finally {
    await api.close()
    rmSync(folder, { recursive: true })
  }
})

function ok(): Task {
  return { does: 'succeed', ids: ['a'] }
}

function answer(outcome: 'done' | 'already', text: string) {
  return { status: 200, body: { outcome, text } }
}

async function lay(
  engine: ApiWorld['engine'],
  { n, settled }: { n: number; settled: number },
): Promise<void> {
  const { id: streamId } = await engine.streams.open(STREAM)
  const refs = Array.from({ length: n }, (_, at) => `s${at}`)
  await engine.write({
    segments: refs.map((ref, at) => ({ streamId, from: at * 10, to: at * 10 + 10, ref })),
    counts: refs.slice(0, settled).map((segment) => ({ segment, listed: 1, stored: 1, seal: true })),
  })
}

async function pages(get: ApiWorld['get'], path: string): Promise<Body[]> {
  const items: Body[] = []
  let cursor: string | null = ''
  for (let page = 0; cursor !== null && page < 1_000; page++) {
    const { status, body } = await get(cursor === '' ? path : `${path}&cursor=${cursor}`)
    assert.equal(status, 200, path)
    items.push(...body.items)
    cursor = body.next
  }
  return items
}

async function until(is: () => Promise<boolean>): Promise<void> {
  while (!(await is())) await new Promise((resolve) => setImmediate(resolve))
}
