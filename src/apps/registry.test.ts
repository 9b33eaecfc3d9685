import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, test } from 'node:test'
import { Command } from 'commander'
import { z } from 'zod'
import type { App } from '../app/app.ts'
import type { CliContext } from '../app/command.ts'
import type { ServerModule } from '../app/module.ts'
import { routesOf } from '../app/route.ts'
import { type AppOpening, type OpenApp, type OpenRuntime, openedApp, type Runtime } from '../app/runtime.ts'
import type { Services } from '../app/services.ts'
import { systemClock } from '../base/clock.ts'
import { Catalog } from '../config/catalog.ts'
import { defineSection, whole } from '../config/section.ts'
import { coreSections } from '../config/settings.ts'
import { defineJob } from '../engine/index.ts'
import { openRuntime } from '../runtime/runtime.ts'
import { engineModule } from '../server/engine-api/module.ts'
import { createServer, createServices, type Server } from '../server/server.ts'
import { apps } from './registry.ts'

// ---- an app: feeds whose entries are counted -------------------------------------------------------------------

const feedSection = defineSection('feed', { entries: whole({ min: 1, max: 100 }, 3, 'entries of a feed') })

type OpenFeed = OpenApp & { add(name: string): Promise<void>; added: string[] }

const counted = defineJob({
  kind: 'feed.count',
  payload: z.object({ feed: z.string(), entries: z.int() }),
  run: () => undefined,
})

const { route } = routesOf<Services & { feed: OpenFeed }>()

const feedModule: ServerModule<Services & { feed: OpenFeed }> = {
  name: 'feed',
  routes: [
    route('GET /api/feed/feeds', {
      summary: 'The feeds',
      answer: z.object({ items: z.array(z.string()) }),
      handle: async (_input, { feed }) => ({ items: feed.added }),
    }),
  ],
}

const feedApp: App<OpenFeed> = {
  name: 'feed',
  services: [],
  settings: async () => [feedSection],
  async open({ config, engine, ledger }) {
    const added: string[] = []
    return {
      added,
      jobs: [counted],
      budgets: () => ({ 'feed-requests': { rate: 10 } }),
      workersMin: () => 40,
      async add(name) {
        const { entries } = (config as unknown as { feed: { entries: number } }).feed
        const stream = `feed:${name}`
        await ledger.stream(stream)
        added.push(name)
        await engine()?.enqueue(counted, { feed: name, entries }, { stream })
      },
      shownStreams: async (rows) => rows.filter(({ name }) => name !== 'feed:hidden'),
      needs: async () =>
        added.includes('broken') ? [{ stream: 'feed:broken', text: 'The feed needs you.' }] : [],
      work: async () => ({ refresh: async () => {}, stop: async () => {} }),
      reload: async () => {},
      close: async () => {},
    }
  },
  look: async () => ({}),
  server: async () => feedModule,
  demo: async () => ({ world: () => ({}), begin: () => assert.fail('no demo here') }),
  commands: (program) => {
    program.command('feed').description('feeds and their entries')
  },
}

// ---- what it gets ----------------------------------------------------------------------------------------------

const TOKEN = 'a-token-of-this-test'
const catalog = new Catalog([...coreSections, feedSection])

let home: string
let runtime: OpenRuntime
let server: Server
let closeServices: () => Promise<void>

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), 'tidemark-feed-'))
  const config = catalog.parse({ feed: { entries: 5 } })
  runtime = await openRuntime({ config, home, env: {}, role: 'all', apps: [feedApp], name: 'test' })
  const services = createServices(runtime, { clock: systemClock, catalog })
  closeServices = services.closeServices
  const modules = [engineModule, await feedApp.server()] as ServerModule[]
  server = createServer({ services, modules, checkAnswers: true, token: TOKEN })
  await runtime.engine.start()
})

afterEach(async () => {
  await server.close()
  await closeServices()
  await runtime.close()
  rmSync(home, { recursive: true, force: true })
})

function feedOf(opened: Runtime): OpenFeed {
  return openedApp(opened, 'feed')
}

async function ask<T>(path: string, headers: Record<string, string> = { authorization: `Bearer ${TOKEN}` }) {
  const answer = await server.app.request(path, { headers })
  return { status: answer.status, body: (await answer.json()) as T }
}

describe('an app that is one constant', () => {
  test('has its jobs run by the engine, with its settings and its budgets', async () => {
    await feedOf(runtime).add('news')
    await runtime.engine.drained()
    const [job] = await runtime.ledger.jobs({ kind: 'feed.count' })
    assert.equal(job?.state, 'done')
    assert.deepEqual(JSON.parse(job.payload), { feed: 'news', entries: 5 })
    assert.match(JSON.stringify(runtime.engine.limits.snapshot().budgets), /feed-requests/)
  })

  test('has its routes behind the token, and is handed to them under its name', async () => {
    await feedOf(runtime).add('news')
    assert.equal((await ask('/api/feed/feeds', {})).status, 401)
    assert.deepEqual((await ask('/api/feed/feeds')).body, { items: ['news'] })
  })

  test('has its streams on the overview, but for those that it leaves out, and what needs somebody', async () => {
    for (const name of ['news', 'hidden', 'broken']) await feedOf(runtime).add(name)
    await runtime.engine.drained()
    type Overview = { streams: { name: string }[]; verdict: { text: string; state: string } }
    const { body } = await ask<Overview>('/api/overview')
    assert.deepEqual(
      body.streams.map(({ name }) => name),
      ['feed:broken', 'feed:news'],
    )
    assert.match(JSON.stringify(body.verdict), /The feed needs you/)
  })

  test('has its settings listed, from the file and from the environment', async () => {
    const { body } = await ask<{ items: { key: string; value: string }[] }>('/api/config')
    assert.equal(body.items.find(({ key }) => key === 'feed.entries')?.value, '5')
    assert.equal(catalog.find('feed.entries')?.variable, 'TIDEMARK_FEED_ENTRIES')
  })

  test('has its noun on the command line', () => {
    const program = new Command()
    feedApp.commands(program, {} as CliContext)
    assert.match(program.helpInformation(), /feed\s+feeds and their entries/)
  })

  test('is not open where nobody asked for it, and leaves no trace there', async () => {
    const other = mkdtempSync(join(tmpdir(), 'tidemark-feed-'))
    const bare = await openRuntime({ config: catalog.parse({}), home: other, env: {}, role: 'all', apps: [] })
    try {
      assert.throws(() => feedOf(bare), /feed is not open in this process/)
    } finally {
      await bare.close()
      rmSync(other, { recursive: true, force: true })
    }
  })
})

describe('of several apps', () => {
  const failing = (what: 'reload' | 'close', seen: string[]): AppOpening => ({
    name: what,
    open: async () => ({
      jobs: [],
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
      config: catalog.parse({}),
      home: place,
      env: {},
      role: 'all',
      apps: [failing('reload', seen), failing('close', seen)],
    })
    try {
      await assert.rejects(opened.reload(catalog.parse({})), /no reload/)
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
    const input = { config: catalog.parse({}), home: place, env: {}, role: 'all', apps: [app] } as const
    try {
      await assert.rejects(openRuntime(input), /cannot be called ledger/)
    } finally {
      rmSync(place, { recursive: true, force: true })
    }
  })
})

test('a setting that is not set any more holds no longer after a reload', async () => {
  const { catalog: all } = await import('./catalog.ts')
  const place = mkdtempSync(join(tmpdir(), 'tidemark-app-'))
  const config = all.parse({ files: { trash_max: '1MB' }, mail: { slice_by_label: 'x' } })
  const opened = await openRuntime({ config, home: place, env: {}, role: 'all', apps })
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
    const ofApps = await Promise.all(apps.map(async (app) => (await tablesWith([app])).difference(bare)))
    for (const [at, tables] of ofApps.entries()) {
      assert.ok(tables.size > 0, `${apps[at]!.name} keeps nothing`)
      for (const others of ofApps.slice(at + 1)) assert.deepEqual([...tables.intersection(others)], [])
    }
  })

  test('have names of their own, and kinds and settings that begin with them', async () => {
    assert.equal(new Set(apps.map(({ name }) => name)).size, apps.length)
    for (const app of apps) {
      const sections = (await app.settings()).map(({ name }) => name)
      assert.ok(sections.includes(app.name), app.name)
      assert.equal((await app.server()).name, app.name)
    }
  })
})

async function tablesWith(opened: readonly App[]): Promise<Set<string>> {
  const { catalog: all } = await import('./catalog.ts')
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
