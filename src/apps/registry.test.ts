/**
 * What an app gets for its folder and its one line in the registry: a made-up one, entered there before anything else
 * looks, goes through all of it. docs/adding-an-app.md tells the same list; a test below holds the two together.
 */
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { z } from 'zod'
import type { App } from '../app/app.ts'
import type { McpTool, ServerModule } from '../app/module.ts'
import { routesOf } from '../app/route.ts'
import { type AppOpening, type OpenApp, openedApp, type Runtime } from '../app/runtime.ts'
import type { Services } from '../app/services.ts'
import { OWNER } from '../app/user.ts'
import { systemClock } from '../base/clock.ts'
import { TidemarkError } from '../base/errors.ts'
import { defineSection, whole } from '../config/section.ts'
import { defineJob, request } from '../engine/index.ts'
import { openRuntime } from '../runtime/runtime.ts'
import { createServer, createServices } from '../server/server.ts'
import { type Sim, startSim } from '../sim/start.ts'
import { apps } from './registry.ts'

// ---- an app: of every Gmail account, a feed of entries ----------------------------------------------------------

const feedSection = defineSection('feed', { entries: whole({ min: 1, max: 100 }, 3, 'entries of a feed') })

type OpenFeed = OpenApp & { read: string[] }

const feedName = z.object({ feed: z.string() })

const { route } = routesOf<Services & { feed: OpenFeed }>()

const feedModule: ServerModule<Services & { feed: OpenFeed }> = {
  name: 'feed',
  routes: [
    route('GET /api/feed/read', {
      summary: 'What was read',
      answer: z.object({ items: z.array(z.string()) }),
      handle: async (_input, { feed }) => ({ items: feed.read }),
    }),
  ],
}

/** Outlives the process of a command: what no run can read. */
const poison = new Set(['entry-2'])

const feedApp: App<OpenFeed> = {
  name: 'feed',
  services: ['gmail'],
  settings: async () => [feedSection],
  async open({ accounts, config, engine, ledger }) {
    const read: string[] = []
    const entries = defineJob({
      kind: 'feed.read',
      payload: feedName.extend({ ids: z.array(z.string()) }),
      items: { of: ({ ids }) => ids, only: (payload, ids) => ({ ...payload, ids: [...ids] }) },
      attempts: 1,
      run({ payload: { ids } }) {
        const [bad] = ids.filter((id) => poison.has(id))
        if (bad) throw new TidemarkError(`${bad} makes no sense`, { kind: 'permanent' })
        read.push(...ids)
      },
    })
    const look = defineJob({
      kind: 'feed.look',
      payload: feedName,
      key: ({ feed }) => feed,
      async run({ payload: { feed } }) {
        const stream = await ledger.stream(`feed:${feed}`)
        if (stream.tail_at > 0) return { note: 'nothing is new' }
        const { feed: settings } = config as unknown as { feed: { entries: number } }
        const ids = Array.from({ length: settings.entries }, (_, at) => `entry-${at}`)
        return {
          segments: [{ streamId: stream.id, from: 0, to: 1, ref: 'all' }],
          counts: [{ segment: 'all', listed: ids.length, seal: true }],
          jobs: [request(entries, { feed, ids }, { stream: stream.name, segment: 'all' })],
        }
      },
    })
    return {
      read,
      jobs: [look, entries],
      budgets: () => ({ 'feed-requests': { rate: 10 } }),
      sources: {
        list: async () =>
          (await accounts.list('gmail')).map(({ name }) => ({
            name,
            stream: `feed:${name}`,
            account: { service: 'gmail', name },
          })),
        async begin({ name, stream }) {
          await engine()!.enqueue(look, { feed: name }, { stream })
        },
      },
      shownStreams: async (rows) => rows.filter(({ name }) => name !== 'feed:hidden'),
      needs: async () => [{ stream: 'feed:ann@example.com', text: 'The feed needs you.' }],
      work: async () => ({ refresh: async () => {}, stop: async () => {} }),
      reload: async () => {},
      close: async () => {},
    }
  },
  look: async () => ({}),
  server: async () => feedModule,
  demo: async () => ({
    world: ({ address }) => ({ gmail: { accounts: [{ address, messages: 1 }] } }),
    begin: ({ address }) => ({
      config: '[feed]\nentries = 4\n',
      intro: () => `It reads the feed of ${address}.`,
      places: [],
      connect: async () => {},
      live: async () => {},
      settle: async () => {},
      summary: async () => ({ text: 'Feeds.', isSettled: true, hasFailed: false, paused: null, json: {} }),
    }),
  }),
  noun: {
    description: 'feeds and their entries',
    words: { one: 'feed', item: 'entry', items: 'entries' },
    verify: {
      part: async () => ({
        open: ({ output }) => ({
          check: async ({ name }, { stop }) => ({
            feed: name,
            damaged: [...poison],
            isStopped: stop.aborted,
          }),
          print: (report: { feed: string; damaged: string[] }) =>
            output.line(`${report.feed}: ${report.damaged}`),
          exitCode: ({ damaged }: { damaged: string[] }) => (damaged.length > 0 ? 3 : 0),
        }),
      }),
    },
  },
}

// ---- its one line ----------------------------------------------------------------------------------------------

const registered = [...apps]
;(apps as App[]).push(feedApp as App)

// ---- what it gets for that -------------------------------------------------------------------------------------

const PAGE = join(import.meta.dirname, '../../docs/adding-an-app.md')
const ANN = 'ann@example.com'
const TOKEN = 'a-token-of-this-test'

let sim: Sim
let home: string
before(async () => {
  sim = await startSim({ gmail: { accounts: [{ address: ANN, messages: 2 }] } })
  home = mkdtempSync(join(tmpdir(), 'tidemark-feed-'))
  const gmail = {
    client_id: sim.gmail.clientId,
    client_secret: sim.gmail.clientSecret,
    api_url: sim.gmail.baseUrl,
    auth_url: sim.gmail.authUrl,
    token_url: sim.gmail.tokenUrl,
    revoke_url: sim.gmail.revokeUrl,
  }
  const lines = Object.entries(gmail).map(([key, value]) => `${key} = ${JSON.stringify(value)}`)
  writeFileSync(join(home, 'config.toml'), `[gmail]\n${lines.join('\n')}\n[feed]\nentries = 5\n`)
  writeFileSync(join(home, 'key.json'), JSON.stringify(sim.gmail.serviceAccount()))
})
after(async () => {
  await sim.close()
  rmSync(home, { recursive: true, force: true })
})

/** The real command line, in this process. */
async function tidemark(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const { runCommand } = await import('../cli/main.ts')
  const written = { out: '', err: '' }
  const stream = (to: 'out' | 'err') => ({
    write: (text: string | Uint8Array) => {
      written[to] += String(text)
    },
  })
  const env = { TIDEMARK_HOME: home }
  const code = await runCommand({ args, env, stdout: stream('out'), stderr: stream('err') })
  return { code, ...written }
}

/** Only now: it is made when it is first loaded, of the apps that are registered. */
const feedCatalog = async () => (await import('./catalog.ts')).catalog

const gets: string[] = []

/** A test of something that the page promises, in the words of the page. */
function get(what: string, run: () => Promise<void>): void {
  gets.push(what)
  test(what, run)
}

async function opened<T>(use: (runtime: Runtime) => Promise<T>): Promise<T> {
  const catalog = await feedCatalog()
  const { loadConfig } = await import('../config/load.ts')
  const { values: config } = loadConfig({ catalog, env: { TIDEMARK_HOME: home }, flags: {} })
  const runtime = await openRuntime({ config, home, env: {}, role: 'all', apps: [feedApp] })
  return use(runtime).finally(() => runtime.close())
}

async function served<T>(use: (ask: (path: string) => Promise<Answer>, services: Services) => Promise<T>) {
  const catalog = await feedCatalog()
  const { serverModules } = await import('../cli/serve/server-modules.ts')
  const modules = (await serverModules()).filter(({ name }) => !registered.some((app) => app.name === name))
  return opened(async (runtime) => {
    const services = createServices(runtime, { clock: systemClock, catalog })
    const server = createServer({ services, modules, checkAnswers: true, token: TOKEN })
    const ask = async (path: string, headers = { authorization: `Bearer ${TOKEN}` }): Promise<Answer> => {
      const answer = await server.app.request(path, { headers })
      return { status: answer.status, text: await answer.text() }
    }
    try {
      return await use(ask, services)
    } finally {
      await server.close()
      await services.closeServices()
    }
  })
}

type Answer = { status: number; text: string }

describe('an app gets, for its folder and one line', () => {
  get('a noun on the command line', async () => {
    assert.match((await tidemark('--help')).out, /feed +feeds and their entries/)
    const { out } = await tidemark('feed', '--help')
    for (const verb of ['sync', 'status', 'pause', 'resume', 'bad', 'verify'])
      assert.match(out, new RegExp(`^ +${verb} `, 'm'))
    const none = await tidemark('feed', 'sync')
    assert.equal(none.code, 2)
    assert.match(none.err, /No feed account is connected\.\n {2}Connect one with: tidemark account add gmail/)
  })

  get('settings', async () => {
    const { out } = await tidemark('config', 'show', '--json')
    assert.match(out, /"feed\.entries"/)
    assert.match((await tidemark('config', 'keys')).out, /TIDEMARK_FEED_ENTRIES/)
  })

  get('accounts', async () => {
    const key = join(home, 'key.json')
    const added = await tidemark('account', 'add', 'gmail', '--service-account', key, '--user', ANN)
    assert.equal(added.code, 0, added.err)
    assert.match((await tidemark('account', 'list')).out, /ann@example\.com/)
    assert.equal((await tidemark('account', 'check')).code, 0)
  })

  get('doctor', async () => {
    assert.match((await tidemark('doctor')).out, /ann@example\.com is connected/)
  })

  get('sync with progress', async () => {
    const { code, out } = await tidemark('feed', 'sync', '--json')
    assert.equal(code, 3, 'one entry is bad')
    const told = out
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    assert.deepEqual(new Set(told.map(({ type }) => type)), new Set(['progress', 'summary']))
    const { listed, stored, bad } = told.at(-1).feeds[0]
    assert.deepEqual({ listed, stored, bad }, { listed: 5, stored: 4, bad: 1 })
    const again = await tidemark('feed', 'sync', ANN)
    assert.match(again.out, /^ann@example\.com: done; 5 listed = 4 stored \+ 0 gone \+ 0 skipped \+ 1 bad\n$/)
    assert.match(again.err, /1 entry would not work\. See: tidemark feed bad list/)
  })

  get('status', async () => {
    const { code, out } = await tidemark('feed', 'status')
    assert.equal(code, 3)
    assert.match(out, /^ann@example\.com: settled, but for bad items\n {2}counts {5}5 listed/)
    assert.match((await tidemark('status')).out, /feed:ann@example\.com/)
  })

  get('pause and resume', async () => {
    assert.match((await tidemark('feed', 'pause', ANN, '--reason', 'a holiday')).out, /is paused\./)
    const paused = await tidemark('feed', 'sync')
    assert.equal(paused.code, 1)
    assert.match(paused.err, /is paused: a holiday\n {2}Go on with: tidemark feed resume ann@example\.com/)
    assert.match((await tidemark('feed', 'resume')).out, /ann@example\.com goes on\./)
  })

  get('verify', async () => {
    const { code, out } = await tidemark('feed', 'verify', ANN)
    assert.deepEqual([code, out], [3, `${ANN}: entry-2\n`])
    const told = await tidemark('feed', 'verify', '--json')
    assert.deepEqual(JSON.parse(told.out), [{ feed: ANN, damaged: ['entry-2'], isStopped: false }])
    assert.equal((await tidemark('feed', 'verify', 'nobody')).code, 2)
  })

  get('bad items', async () => {
    assert.match((await tidemark('feed', 'bad', 'list')).out, /entry-2.*entry-2 makes no sense/)
    assert.match((await tidemark('feed', 'bad', 'show', 'entry-2')).out, /^entry +entry-2$/m)
    poison.clear()
    const retried = await tidemark('feed', 'bad', 'retry')
    assert.equal(retried.code, 0, retried.err)
    assert.match(retried.out, /5 listed = 5 stored/)
  })

  get('jobs and budgets', async () => {
    await opened(async ({ engine, ledger }) => {
      const [job] = await ledger.jobs({ kind: 'feed.look', limit: 1 })
      assert.equal(job?.state, 'done')
      assert.match(JSON.stringify(engine.limits.snapshot().budgets), /feed-requests/)
    })
  })

  get('an API', async () => {
    await served(async (ask) => {
      assert.equal((await ask('/api/feed/read')).status, 200)
      assert.match((await ask('/api/openapi.json')).text, /\/api\/feed\/read/)
    })
  })

  get('a card on the overview', async () => {
    await served(async (ask) => {
      const { text } = await ask('/api/overview')
      const { streams, verdict } = JSON.parse(text)
      assert.deepEqual([streams[0].name, streams[0].stored], [`feed:${ANN}`, 5])
      assert.match(verdict.text, /The feed needs you/)
    })
  })

  get('a stream page', async () => {
    await served(async (ask) => {
      const { status, text } = await ask(`/api/streams/${encodeURIComponent(`feed:${ANN}`)}`)
      assert.equal(status, 200, text)
      assert.match(text, /"stored":5/)
    })
  })

  get('MCP', async () => {
    await served(async (_ask, services) => {
      const { engineModule } = await import('../server/engine-api/module.ts')
      const tool = engineModule.tools?.find(({ name }) => name === 'status') as McpTool
      const parts = await tool.run({} as never, services as never, { user: OWNER })
      assert.match(JSON.stringify(parts), /feed:ann@example\.com/)
    })
  })

  get('a part in the demo', async () => {
    const { startDemoCloud } = await import('../cli/demo/cloud.ts')
    const place = { home, seed: 1, messages: 1, toMs: 1e12, address: ANN, isFast: true }
    const { sim: cloud, parts } = await startDemoCloud([await feedApp.demo()], place)
    await cloud.close()
    assert.equal(parts[0]?.intro({ isNew: true }), `It reads the feed of ${ANN}.`)
  })

  test('and its account is forgotten like any other', async () => {
    assert.equal((await tidemark('account', 'remove', ANN, '--yes')).code, 0)
    assert.equal((await tidemark('feed', 'sync')).code, 2)
  })

  test('and the page about adding an app promises just that, and the same size', () => {
    const page = readFileSync(PAGE, 'utf8')
    assert.deepEqual(
      [...page.matchAll(/^- \*\*(.+?)\*\*/gm)].map(([, what]) => what),
      gets,
    )
    const own = readFileSync(import.meta.filename, 'utf8').split(/^\/\/ ---- .*$/m)[1]!
    assert.ok(own.split('\n').length <= 150, 'the app has grown')
  })
})

test('an app is not open where nobody asked for it', async () => {
  const catalog = await feedCatalog()
  const other = mkdtempSync(join(tmpdir(), 'tidemark-feed-'))
  const bare = await openRuntime({ config: catalog.parse({}), home: other, env: {}, role: 'all', apps: [] })
  try {
    assert.throws(() => openedApp(bare, 'feed'), /feed is not open in this process/)
  } finally {
    await bare.close()
    rmSync(other, { recursive: true, force: true })
  }
})

describe('of several apps', () => {
  const failing = (what: 'reload' | 'close', seen: string[]): AppOpening => ({
    name: what,
    open: async () => ({
      jobs: [],
      sources: { list: async () => [], begin: async () => {} },
      budgets: () => ({}),
      work: async () => ({ refresh: async () => {}, stop: async () => {} }),
      reload: async () => {
        seen.push(`${what} reloaded`)
        if (what === 'reload') throw new Error('no reload')
      },
      close: async () => {
        seen.push(`${what} closed`)
        if (what === 'close') throw new Error('no close')
      },
    }),
  })

  test('one that fails to reload or to close keeps no other from it, nor the ledger', async () => {
    const place = mkdtempSync(join(tmpdir(), 'tidemark-app-'))
    const seen: string[] = []
    const opened = await openRuntime({
      config: (await feedCatalog()).parse({}),
      home: place,
      env: {},
      role: 'all',
      apps: [failing('reload', seen), failing('close', seen)],
    })
    try {
      await assert.rejects(opened.reload((await feedCatalog()).parse({})), /no reload/)
      await assert.rejects(opened.close(), /no close/)
      assert.deepEqual(seen, ['reload reloaded', 'close reloaded', 'close closed', 'reload closed'])
      await assert.rejects(opened.ledger.tallies())
    } finally {
      rmSync(place, { recursive: true, force: true })
    }
  })

  test('one that takes the name of what every process has is refused', async () => {
    const place = mkdtempSync(join(tmpdir(), 'tidemark-app-'))
    const app: AppOpening = { ...failing('reload', []), name: 'ledger' }
    const input = {
      config: (await feedCatalog()).parse({}),
      home: place,
      env: {},
      role: 'all',
      apps: [app],
    } as const
    try {
      await assert.rejects(openRuntime(input), /cannot be called ledger/)
    } finally {
      rmSync(place, { recursive: true, force: true })
    }
  })
})

test('a setting that is not set any more holds no longer after a reload', async () => {
  const all = await feedCatalog()
  const place = mkdtempSync(join(tmpdir(), 'tidemark-app-'))
  const config = all.parse({ files: { trash_max: '1MB' }, mail: { slice_by_label: 'x' } })
  const opened = await openRuntime({ config, home: place, env: {}, role: 'all', apps: registered })
  try {
    const settingsOf = (name: string) =>
      (opened.apps.get(name) as unknown as { settings: Record<string, unknown> }).settings
    assert.equal(settingsOf('files').trashBytesMax, 1_000_000)
    assert.equal(settingsOf('mail').sliceByLabel, 'x')
    await opened.reload(all.parse({}))
    assert.equal(settingsOf('files').trashBytesMax, Number.POSITIVE_INFINITY)
    assert.equal(settingsOf('mail').sliceByLabel, undefined)
  } finally {
    await opened.close()
    rmSync(place, { recursive: true, force: true })
  }
})

describe('the registered apps', () => {
  test('open alone, each with tables of its own', async () => {
    const bare = await tablesWith([])
    // That of search keeps nothing of its own: the index is made by who fills it.
    const keeping = registered.filter(({ noun }) => noun.whole === undefined)
    const ofApps = await Promise.all(keeping.map(async (app) => (await tablesWith([app])).difference(bare)))
    for (const [at, tables] of ofApps.entries()) {
      assert.ok(tables.size > 0, `${keeping[at]!.name} keeps nothing`)
      // What is to be read into the one index is noted in the same tables by all.
      for (const others of ofApps.slice(at + 1)) {
        const shared = [...tables.intersection(others)].filter((table) => !table.startsWith('search_'))
        assert.deepEqual(shared, [])
      }
    }
  })

  test('have names of their own, and kinds and settings that begin with them', async () => {
    assert.equal(new Set(registered.map(({ name }) => name)).size, registered.length)
    for (const app of registered) {
      const sections = (await app.settings()).map(({ name }) => name)
      assert.ok(sections.includes(app.name), app.name)
      assert.equal((await app.server()).name, app.name)
    }
  })
})

async function tablesWith(opened: readonly App[]): Promise<Set<string>> {
  const all = await feedCatalog()
  const place = mkdtempSync(join(tmpdir(), 'tidemark-app-'))
  const process = await openRuntime({
    config: all.parse({}),
    home: place,
    env: {},
    role: 'all',
    apps: opened,
  })
  try {
    const rows = await process.ledger.driver.read((tx) =>
      tx.all<{ name: string }>(`SELECT name FROM sqlite_schema WHERE type = 'table'`),
    )
    return new Set(rows.map(({ name }) => name))
  } finally {
    await process.close()
    rmSync(place, { recursive: true, force: true })
  }
}
