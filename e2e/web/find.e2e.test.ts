/** The one search, as two people of a team see it, and the pages that only admins have. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { after, before, describe, test } from 'node:test'
import type { Browser } from 'playwright-core'
import { catalog } from '../../src/apps/catalog.ts'
import { ANNS, BOBS, openSearchWorld, type SearchWorld } from '../../src/apps/search/search-world.suite.ts'
import { systemClock } from '../../src/base/clock.ts'
import { serverModules } from '../../src/cli/serve/server-modules.ts'
import { buildPages, WEB_FOLDER } from '../../src/cli/serve/web.ts'
import { type HttpServer, startHttpServer } from '../../src/server/http-server.ts'
import { TOKEN } from '../../src/server/server.suite.ts'
import { createServer, createServices, type Server } from '../../src/server/server.ts'
import { openBrowser, signInBy, visit, type WatchedPage } from './browser.ts'
import { checkEveryLook } from './every-look.ts'

describe('find anything', () => {
  let world: SearchWorld
  let server: Server
  let http: HttpServer
  let browser: Browser
  let closeServices: () => Promise<void>

  before(async () => {
    assert.equal(await buildPages(), undefined)
    world = await openSearchWorld()
    const services = createServices(world.runtime, { clock: systemClock, catalog })
    closeServices = services.closeServices
    const modules = await serverModules()
    server = createServer({ services, modules, token: TOKEN, webFolder: WEB_FOLDER, checkAnswers: true })
    http = await startHttpServer({ app: server.app, host: '127.0.0.1', port: 0, onError: () => {} })
    await fill(world)
    browser = await openBrowser()
  })
  after(async () => {
    await browser?.close()
    await server?.close()
    await http?.close()
    await closeServices?.()
    await world?.close()
  })

  const as = async (inner: TestContext, token: string, path: string): Promise<WatchedPage> => {
    signInBy(http.url, token)
    return visit(inner, browser, { url: http.url, path })
  }
  const titles = (page: WatchedPage): Promise<string[]> => page.locator('.hit-title').allTextContents()

  test('each of two people finds what they may see, with counts of that', async (inner) => {
    const ann = await as(inner, world.tokens.ann, '/find?q=%22budget%22')
    await ann.getByText('1 document found').waitFor()
    assert.deepEqual(await titles(ann), ['Offsite plan'])
    const bob = await as(inner, world.tokens.bob, '/find?q=%22budget%22')
    await bob.getByText('2 documents found').waitFor()
    assert.deepEqual((await titles(bob)).sort(), ['Offsite plan', 'Salaries 2026'])
  })

  test('the keyboard goes to the field, through the results, and opens what it is on', async (inner) => {
    const page = await as(inner, world.tokens.bob, '/find')
    const field = page.getByRole('combobox', { name: 'Find anything' })
    await field.fill('"budget"')
    await page.getByText('2 documents found').waitFor()
    await field.press('Escape')
    await field.press('Escape')
    await page.locator('h1').click()
    await page.keyboard.press('j')
    await page.keyboard.press('Enter')
    const preview = page.getByRole('complementary', { name: 'Document' })
    await preview.locator('.chunk.is-cited').waitFor()
    await page.keyboard.press('/')
    assert.ok(await field.evaluate((element) => element === document.activeElement))
    await page.goBack()
    await preview.waitFor({ state: 'detached' })
  })

  test('a member is offered their own pages, and no others', async (inner) => {
    const page = await as(inner, world.tokens.ann, '/')
    await page.getByRole('combobox', { name: 'Find anything' }).waitFor()
    const links = await page.getByRole('navigation', { name: 'Main' }).getByRole('link').allTextContents()
    assert.deepEqual(links, ['Find anything', 'Assistant', 'Drive', 'Ingest', 'Settings'])
    for (const path of ['/users', '/work', '/search', '/clean-up']) {
      await page.goto(path)
      await page.getByText('This page is for admins').waitFor()
    }
    await page.goto('/settings')
    await page.getByRole('heading', { name: 'How far your accounts are' }).waitFor()
  })

  test('an admin sees with the eyes of another under a banner, and it is listed', async (inner) => {
    const page = await as(inner, TOKEN, '/users')
    await page.getByRole('link', { name: 'View as bob' }).click()
    await page.getByText('You see with the eyes of bob').waitFor()
    await page.getByRole('combobox', { name: 'Find anything' }).fill('"salaries"')
    await page.getByText('1 document found').waitFor()
    await page.getByRole('button', { name: 'See with my own eyes' }).click()
    await page.getByText('Nothing found').waitFor()
    await page.goto('/users')
    await page.getByText('saw with the eyes of bob: searched "salaries"').first().waitFor()
  })

  test('an admin adds a user, who signs in by the address that is made for them', async (inner) => {
    const page = await as(inner, TOKEN, '/users')
    await page.getByLabel('Name').fill('eve')
    await page.getByRole('button', { name: 'Add', exact: true }).click()
    const card = page.getByRole('region', { name: 'eve' })
    await card.getByRole('button', { name: 'Sign-in address' }).click()
    const address = await card.locator('code').textContent()
    const eve = await visit(inner, browser, {
      url: http.url,
      signedIn: false,
      expected: [/401 .*\/api\/events|\(Unauthorized\)/],
    })
    await eve.goto(address ?? '')
    await eve.getByText('Signed in as eve').waitFor()
    await eve.getByText('There is nothing to find yet').waitFor()
  })

  test('what is found can be read by everybody', async (inner) => {
    signInBy(http.url, world.tokens.bob)
    await checkEveryLook(inner, browser, {
      url: http.url,
      path: '/find?q=%22budget%22',
      ready: async (page) => {
        await page.getByText('documents found').waitFor()
        await page.locator('[data-hit]').first().click()
        await page.locator('.chunk').first().waitFor()
        await page.getByText('Why this was found').first().click()
      },
      shot: 'search-everything',
    })
  })

  test('the page of Drives says what to do where none is connected', async (inner) => {
    signInBy(http.url, world.tokens.ann)
    await checkEveryLook(inner, browser, {
      url: http.url,
      path: '/drive',
      ready: (page) => page.getByText('No Google Drive is connected').waitFor(),
    })
  })

  test('the page of users can be read by everybody', async (inner) => {
    signInBy(http.url, TOKEN)
    await checkEveryLook(inner, browser, {
      url: http.url,
      path: '/users',
      ready: (page) => page.getByRole('link', { name: 'View as bob' }).waitFor(),
      shot: 'users',
    })
  })
})

const DAY_MS = 86_400_000

async function fill(world: SearchWorld): Promise<void> {
  const nowMs = systemClock.now()
  await world.publish({
    ref: 'plan',
    title: 'Offsite plan',
    text: 'The team meets in Lisbon in May. Rooms are booked for twelve people.\n\nThe budget for travel and rooms is 4,000 euros; dinners come on top.\n\nBring the figures of last year.',
    seenBy: [ANNS, BOBS],
    folders: ['Team', 'Events'],
    modifiedAtMs: nowMs - 3 * DAY_MS,
  })
  await world.publish({
    ref: 'pay',
    title: 'Salaries 2026',
    text: 'The budget for salaries grows by four per cent.',
    seenBy: [BOBS],
    type: 'sheet',
    folders: ['Finance'],
    modifiedAtMs: nowMs - 40 * DAY_MS,
  })
  for (const n of [1, 2, 3]) {
    await world.publish({
      ref: `note-${n}`,
      title: `Notes of meeting ${n}`,
      text: `We spoke about hiring, the roof and the garden. Point ${n} is open.`,
      seenBy: [ANNS, BOBS],
      source: 'files',
      type: 'text',
      folders: ['Notes'],
      modifiedAtMs: nowMs - n * DAY_MS,
    })
  }
  await world.runtime.engine.start()
  await world.runtime.engine.enqueue(world.runtime.apps.get('search')!.jobs[0]!, {})
  await world.runtime.engine.drained()
}
