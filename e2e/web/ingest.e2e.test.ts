/** Pipelines on the pages: their books, their objects, and what could not be read, which comes from strangers. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { after, before, describe, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { openedApp } from '../../src/app/runtime.ts'
import { catalog } from '../../src/apps/catalog.ts'
import { addPipeline } from '../../src/apps/ingest/configure.ts'
import { firstObjects } from '../../src/apps/ingest/demo/objects.ts'
import { streamOf } from '../../src/apps/ingest/pipeline.ts'
import type { OpenIngest } from '../../src/apps/ingest/runtime.ts'
import { ingestSource } from '../../src/apps/ingest/sources.ts'
import { openSearchWorld, type SearchWorld } from '../../src/apps/search/search-world.suite.ts'
import { systemClock } from '../../src/base/clock.ts'
import { serverModules } from '../../src/cli/serve/server-modules.ts'
import { buildPages, WEB_FOLDER } from '../../src/cli/serve/web.ts'
import { type HttpServer, startHttpServer } from '../../src/server/http-server.ts'
import { TOKEN } from '../../src/server/server.suite.ts'
import { createServer, createServices, type Server } from '../../src/server/server.ts'
import { type Sim, startSim } from '../../src/sim/start.ts'
import { openBrowser, signInBy, visit, type WatchedPage } from './browser.ts'
import { checkEveryLook } from './every-look.ts'
import { checkAccessible } from './look.ts'

const PIPELINE = 'tide-gauges'
const BUCKET = 'gauges'
const QUEUE = 'arrivals'
const HOSTILE =
  '</pre><script>document.title = "owned"</script><img src=x onerror="document.title = \'owned\'">\u202etxt.exe'
const RECORD_BYTES = 2_000
const QUARANTINE = `/ingest/${PIPELINE}?show=quarantine`

describe('the pages of pipelines', () => {
  let world: SearchWorld
  let ingest: OpenIngest
  let sim: Sim
  let server: Server
  let http: HttpServer
  let browser: Browser
  let closeServices: () => Promise<void>

  before(async () => {
    assert.equal(await buildPages(), undefined)
    sim = await startSim({
      sqs: { queues: [QUEUE] },
      s3: { buckets: [{ name: BUCKET, notify: [{ queue: QUEUE, envelope: 's3' }] }] },
    })
    world = await openSearchWorld()
    ingest = openedApp<OpenIngest>(world.runtime, 'ingest')
    ingest.settings.limits.recordBytesMax = RECORD_BYTES
    await fill(world, ingest, sim)
    const services = createServices(world.runtime, { clock: systemClock, catalog })
    closeServices = services.closeServices
    const modules = await serverModules()
    server = createServer({ services, modules, token: TOKEN, webFolder: WEB_FOLDER, checkAnswers: true })
    http = await startHttpServer({ app: server.app, host: '127.0.0.1', port: 0, onError: () => {} })
    browser = await openBrowser()
  })
  after(async () => {
    await browser?.close()
    await server?.close()
    await http?.close()
    await closeServices?.()
    await world?.close()
    await sim?.close()
  })

  const open = async (inner: TestContext, path: string): Promise<WatchedPage> => {
    signInBy(http.url, TOKEN)
    return visit(inner, browser, { url: http.url, path })
  }

  test('the books stand in a sentence, lead to objects by state, and to one with its attempts and its owner', async (inner) => {
    const page = await open(inner, '/ingest')
    await page.getByText('Bucket lists 17 = 16 stored + 0 skipped + 1 bad + 0 on their way').waitFor()
    assert.match(await statText(page, 'Duplicates dropped'), /^[1-9]/m)
    await page.getByRole('link', { name: 'Bad', exact: true }).click()
    await page.getByRole('radio', { name: 'Bad' }).and(page.locator(':checked')).waitFor()
    await page.getByRole('link', { name: /cut-off\.ndjson\.gz$/ }).waitFor()
    await checkAccessible(page)
    await page.getByRole('link', { name: /cut-off\.ndjson\.gz$/ }).click()
    const facts = page.getByRole('region', { name: 'Object' })
    await facts.getByText('Last owner').waitFor()
    assert.match(await facts.innerText(), /Bad[\s\S]*truncated[\s\S]*not to the end[\s\S]*Attempts\s+[1-9]/)
    await checkAccessible(page)
  })

  test('what a quarantined line says is text, whatever it says', async (inner) => {
    const page = await open(inner, QUARANTINE)
    const line = page.locator('.ingest-excerpt', { hasText: 'txt.exe' })
    await line.waitFor()
    const shown = await line.innerText()
    assert.ok(shown.includes('<script>document.title = "owned"</script>') && shown.includes('<202e>'), shown)
    assert.equal(await page.locator('.ingest-unread :is(img, script)').count(), 0)
    assert.equal(await page.title(), `${PIPELINE} · Tidemark`)
  })

  test('a record that can be read now leaves the quarantine by replay, and one that cannot stays', async (inner) => {
    const page = await open(inner, QUARANTINE)
    const items = page.locator('.ingest-unread > li')
    await page.getByRole('button', { name: /^Replay line 1 of .*long\.ndjson$/ }).waitFor()
    const before = await items.count()
    ingest.settings.limits.recordBytesMax = RECORD_BYTES * 10
    await page.getByRole('button', { name: /^Replay line 1 of .*long\.ndjson$/ }).click()
    await page.getByText('They are read again.').first().waitFor()
    await page.locator('.ingest-unread', { hasNotText: 'long.ndjson' }).waitFor()
    assert.equal(await items.count(), before - 1)
    await page.getByRole('button', { name: /^Replay line 10 of .*storm\.ndjson$/ }).click()
    await items.filter({ hasText: 'storm.ndjson' }).getByText('tried again').waitFor()
    await page.goto('/find?q=%22verylongword%22')
    await page.getByText('1 document found').waitFor()
  })

  test('what nobody announced is found when the bucket is listed now', async (inner) => {
    const page = await open(inner, '/ingest')
    sim.s3.store.notices.faults.lose = 1
    sim.s3.store.put(BUCKET, 'gauges/late.ndjson', '{"message":"late, and never announced"}')
    await page.getByRole('button', { name: `List now: ${PIPELINE}` }).click()
    await page.getByText('Bucket lists 18 = 17 stored').waitFor()
  })

  test('the page can be read by everybody', async (inner) => {
    signInBy(http.url, TOKEN)
    await checkEveryLook(inner, browser, {
      url: http.url,
      path: QUARANTINE,
      ready: (page) => page.locator('.ingest-excerpt').first().waitFor(),
      shot: 'ingest',
    })
  })

  test('a bad object that its owner deleted is gone after a listing, with its reason', async (inner) => {
    const page = await open(inner, '/ingest')
    sim.s3.store.remove(BUCKET, 'gauges/cut-off.ndjson.gz')
    await page.getByRole('button', { name: `List now: ${PIPELINE}` }).click()
    await page.getByText('Bucket lists 17 = 17 stored + 0 skipped + 0 bad + 0 on their way').waitFor()
    await page.getByRole('link', { name: 'Gone', exact: true }).click()
    await page.getByRole('link', { name: /cut-off\.ndjson\.gz$/ }).waitFor()
    await page.getByRole('link', { name: /cut-off\.ndjson\.gz$/ }).click()
    await page.getByText('It was bad, and is listed no more. truncated:').waitFor()
    await checkAccessible(page)
  })

  test('who has no pipeline is told how to make one', async (inner) => {
    signInBy(http.url, world.tokens.ann)
    await checkEveryLook(inner, browser, {
      url: http.url,
      path: '/ingest',
      ready: (page) => page.getByText(/^tidemark ingest add logs/).waitFor(),
    })
  })
})

const statText = (page: Page, label: string): Promise<string> =>
  page.locator('.stat', { hasText: label }).locator('.stat-value').innerText()

async function fill({ runtime }: SearchWorld, ingest: OpenIngest, sim: Sim): Promise<void> {
  const { store } = sim.s3
  store.notices.faults.duplicate = 1
  for (const { key, body, isLost } of firstObjects({ seed: 7, toMs: systemClock.now(), count: 12 })) {
    store.notices.faults.lose = isLost ? 1 : 0
    store.put(BUCKET, key, body)
  }
  store.notices.faults.lose = 0
  store.put(BUCKET, 'gauges/hostile.ndjson', HOSTILE)
  store.put(BUCKET, 'gauges/long.ndjson', JSON.stringify({ message: `verylongword ${'so '.repeat(1_000)}` }))
  const { baseUrl } = sim.s3
  const { accessKeyId, secretAccessKey, region } = sim.s3.account
  await addPipeline(runtime, {
    name: PIPELINE,
    config: {
      queue: { kind: 'sqs', url: sim.sqs.queueUrl(QUEUE), region, endpoint: baseUrl },
      location: `s3://${BUCKET}/`,
      store: { region, endpoint: baseUrl, pathStyle: true },
      mapping: { title: 'station', text: ['message'], time: 'at', facets: ['station', 'severity'] },
    },
    secret: { aws: { accessKeyId, secretAccessKey } },
  })
  await runtime.engine.start()
  await runtime.engine.streams.open(streamOf(PIPELINE))
  const source = ingestSource(PIPELINE)
  await ingest.sources!.begin(source)
  await runtime.engine.drained()
  await ingest.sources!.next?.([source])
}
