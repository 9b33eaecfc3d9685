/**
 * Mail is written by strangers, and the page that shows it can do everything that its owner can. Whatever they
 * write, in bodies, headers, names of files and labels: nothing of it runs, calls home, or leads away.
 */
import assert from 'node:assert/strict'
import { after, before, describe, type TestContext, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { openBrowser, visit, visitBeside, type WatchedPage } from './browser.ts'
import { type HostileHtml, hostileHtml, OVERLAY, RUN, TEXT_TRICKS } from './hostile-mails.ts'
import { letter } from './letter.ts'
import { ADDRESS, type Site, STREAM, startSite, until } from './site.ts'
import { Canary, type Watch, watchContext } from './watch.ts'

const MESSAGES = 10
/** The least that is waited for something that must not happen. */
const QUIET_MS_MIN = 100
const QUIET_MS_MAX = 2_000
const LANES = 4
const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const encoded = (text: string): string => `=?utf-8?B?${Buffer.from(text).toString('base64')}?=`
const apiPath = (id: string): string => `/api/mail/messages/${encodeURIComponent(ADDRESS)}/${id}`
const readerPath = (id: string): string => `/mail/${encodeURIComponent(ADDRESS)}/${id}`

describe('hostile mail', () => {
  let browser: Browser
  let site: Site
  let canary: Canary
  let bodies: HostileHtml[]
  /** Ids of the messages, by name of the attack. */
  const ids = new Map<string, string>()
  const tricky: string[] = []
  /** How long the slowest attack took on a page without protection. */
  let slowestMs = QUIET_MS_MIN

  before(async () => {
    canary = await Canary.start()
    bodies = hostileHtml(canary.url)
    site = await startSite({ messages: MESSAGES })
    const send = (raw: Buffer, labelIds = ['INBOX']): Promise<string> =>
      site.deliver(raw, { labelIds, sync: false })
    for (const { name, html } of bodies) {
      ids.set(name, await send(letter({ subject: `Attack: ${name}`, text: `xylophone ${html}`, html })))
    }
    ids.set('overlay', await send(letter({ subject: 'Overlay', html: `${OVERLAY}<p>Under it</p>` })))
    ids.set('opener', await send(letter({ subject: 'Opener', html: openers(canary.url) })))
    for (const [at, trick] of TEXT_TRICKS.entries())
      tricky.push(await send(trickLetter(trick), [trickLabel(site, `${trick} ${at}`), 'INBOX']))
    await site.sync()
    await until('all of it is stored', async () => {
      const { streams } = await site.settled()
      return (streams[0]?.stored ?? 0) >= MESSAGES + ids.size + tricky.length
    })
    browser = await openBrowser()
  })
  after(async () => {
    await browser?.close()
    await site?.close()
    await canary?.close()
  })

  /** Until what could happen would have happened. */
  const quiet = (page: Page): Promise<void> => page.waitForTimeout(Math.min(2 * slowestMs, QUIET_MS_MAX))
  const guarded = (page: WatchedPage): Watch => watchContext(page.context(), { home: site.url, canary })
  /** Several pages beside each other, since most of the time goes into waiting that nothing happens. */
  const inLanes = async <Item>(
    t: TestContext,
    items: readonly Item[],
    options: { start?: string; expected?: readonly RegExp[]; prepare?: (page: WatchedPage) => Promise<void> },
    look: (page: WatchedPage, item: Item) => Promise<void>,
  ): Promise<string[]> => {
    const { prepare, start = '/favicon.svg', ...visited } = options
    const first = await visit(t, browser, { url: site.url, path: start, ...visited })
    await prepare?.(first)
    const pages = [first]
    while (pages.length < LANES) pages.push(await visitBeside(first, start))
    const watch = guarded(first)
    const waiting = [...items]
    const work = async (page: WatchedPage): Promise<void> => {
      for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) {
        await look(page, item)
        await quiet(page)
        await watch.ranIn(page)
        assert.equal(new URL(page.url()).origin, site.url)
      }
    }
    await Promise.all(pages.map(work))
    return watch.findings()
  }

  test('would run on a page without protection, and every kind of it is noticed', async () => {
    const kinds = new Map<string, RegExp>([
      ['a script', /^a script ran/],
      ['a dialog', /^a dialog: /],
      ['a request', /^the canary heard/],
      ['leaving', /^the page left for/],
    ])
    const unnoticed: string[] = []
    for (const [at, { name, html, isLive }] of bodies.entries()) {
      if (!isLive) continue
      const context = await browser.newContext()
      const page = await context.newPage()
      const home = canary.show(`/stage/${at}`, `<!doctype html><body><p>${html}`)
      const watch = watchContext(context, { home: `${canary.url}/stage`, canary })
      await page.goto(home)
      if (html.includes('id=click')) await page.locator('#click').click()
      const beginMs = performance.now()
      const found = await until(name, async () => nonEmpty(await watch.findings())).catch(() => [])
      if (found.length === 0) unnoticed.push(name)
      else slowestMs = Math.max(slowestMs, performance.now() - beginMs)
      for (const [kind, pattern] of kinds) if (found.some((text) => pattern.test(text))) kinds.delete(kind)
      await context.close()
    }
    assert.deepEqual(unnoticed, [])
    assert.deepEqual([...kinds.keys()], [])
  })

  test('in a body does nothing in the reader, whatever is clicked', async (t) => {
    const found = await inLanes(t, bodies, { start: '/search' }, async (page, { name }) => {
      const path = readerPath(ids.get(name)!)
      // As a link on the page does it.
      await page.evaluate((to) => history.pushState(null, '', to), path)
      await page.getByRole('heading', { name: `Attack: ${name}`, level: 1, exact: true }).waitFor()
      await clickEverything(page)
      assert.equal(new URL(page.url()).pathname, path)
    })
    assert.deepEqual(found, [])
  })

  test('in a body does nothing in a tab of its own, with pictures switched on', async (t) => {
    const prepare = async (page: WatchedPage): Promise<void> => {
      await page
        .context()
        .route('https://canary.invalid/**', (route) =>
          route.fulfill({ contentType: 'image/png', body: PIXEL }),
        )
    }
    const found = await inLanes(t, bodies, { prepare }, async (page, { name }) => {
      const answer = await page.goto(await site.ticket(`${apiPath(ids.get(name)!)}/html?images=true`))
      assert.match(answer?.headers()['content-security-policy'] ?? '', /default-src 'none'.*sandbox/)
    })
    // A picture over https is what was switched on, and the only one of all.
    assert.deepEqual(found, ['a request for https://canary.invalid/pixel.png'])
  })

  test('cannot lay anything over the page', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: readerPath(ids.get('overlay')!) })
    const frame = page.frameLocator('iframe.mail-frame')
    await frame.getByText('Under it').waitFor()
    const places = await frame
      .locator('body *')
      .evaluateAll((parts) =>
        parts.map((part) => `${getComputedStyle(part).position} ${getComputedStyle(part).transform}`),
      )
    assert.ok(places.length >= 5)
    assert.deepEqual(
      places.filter((place) => place !== 'static none'),
      [],
    )
  })

  test('a link opens a window of its own that knows nothing of this one', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: readerPath(ids.get('opener')!) })
    const links = page.frameLocator('iframe.mail-frame').locator('a')
    await links.first().waitFor()
    assert.equal(await links.count(), 4)
    canary.show(
      '/opener',
      '<title>none</title><script>if (opener) { document.title = "has opener"; opener.location = "/stolen" } document.title += " " + document.referrer</script>',
    )
    for (let at = 0; at < 4; at++) {
      const [popup] = await Promise.all([page.context().waitForEvent('page'), links.nth(at).click()])
      await popup.waitForLoadState('load')
      assert.equal((await popup.title()).trim(), 'none')
      await popup.close()
      assert.equal(new URL(page.url()).pathname, readerPath(ids.get('opener')!))
    }
    assert.ok(!canary.heard.some(({ path, referer }) => path === '/stolen' || referer?.startsWith(site.url)))
  })

  test('in headers, labels and names of files is text and nothing else', async (t) => {
    const page = await visit(t, browser, { url: site.url })
    const watch = guarded(page)
    for (const [at, trick] of TEXT_TRICKS.entries()) {
      await page.goto(readerPath(tricky[at]!))
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.getByText('glockenspiel').first().waitFor()
      assert.equal(await page.getByRole('heading', { level: 1 }).textContent(), trick)
      const text = await page.locator('#main').innerText()
      assert.equal(text.split(trick).length - 1 >= 4, true, `${trick} in ${text}`)
      await page.getByRole('radio', { name: 'Source' }).check()
      await page.getByRole('region', { name: 'Source of the message' }).waitFor()
      await page.getByText('Details and proof').click()
      await quiet(page)
      assert.deepEqual(await watch.findings(), [])
    }
  })

  test('in what a search finds, marks and suggests is text and nothing else', async (t) => {
    const page = await visit(t, browser, { url: site.url })
    const watch = guarded(page)
    for (const q of ['glockenspiel', 'xylophone', 'xylophone onerror', 'subject:script']) {
      await page.goto(`/search?q=${encodeURIComponent(q)}`)
      await page.locator('.result-excerpt mark, .result-subject').first().waitFor()
      await quiet(page)
    }
    const field = page.getByRole('combobox', { name: 'Search mail' })
    for (const q of ['label:', 'label:"', 'from:', 'from:eve']) {
      await field.fill('')
      await field.pressSequentially(q)
      await page.getByRole('option').first().waitFor()
      await quiet(page)
    }
    assert.deepEqual(await watch.findings(), [])
  })

  test('in what Gmail answers, shown as the reason of a bad item, is text and nothing else', async (t) => {
    const message = TEXT_TRICKS.join(' ')
    site.sim.faults.add({
      do: 'error',
      status: 400,
      reason: 'invalid',
      message,
      on: 'any',
      methods: ['messages.get'],
    })
    const page = await visit(t, browser, { url: site.url })
    const watch = guarded(page)
    await site.deliver(letter({ subject: 'Never read', text: 'x' }))
    const bad = await until(
      'it is a bad item',
      async () => (await site.get<{ items: { id: number; reason: string }[] }>('/api/bad')).items[0],
    )
    assert.ok(JSON.stringify(bad).includes('onerror'), JSON.stringify(bad))
    site.sim.faults.set({ rules: [] })
    for (const path of [
      `/streams/${encodeURIComponent(STREAM)}#bad`,
      '/',
      '/work',
      '/work/jobs?state=failed',
      '/settings',
      '/clean-up',
    ]) {
      await page.goto(path)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await quiet(page)
    }
    await page.goto(`/streams/${encodeURIComponent(STREAM)}`)
    await page.getByText(TEXT_TRICKS[0]!).filter({ visible: true }).first().waitFor()
    assert.deepEqual(await watch.findings(), [])
  })

  test('in an address of a page does nothing', async (t) => {
    const expected = [/answer: 4\d\d/, /console: Failed to load resource/]
    const paths = TEXT_TRICKS.flatMap((trick) => {
      const text = encodeURIComponent(trick)
      return [
        `/search?q=${text}&account=${text}`,
        `/mail/${text}/${text}`,
        `/streams/${text}`,
        `/work/jobs?kind=${text}&state=${text}`,
        `/sign-in?next=${text}`,
        `/oauth/gmail/callback?state=${text}&error=${text}`,
        `/api/mail/search?q=${encodeURIComponent('"')}${text}`,
        `/${text}`,
      ]
    })
    const found = await inLanes(t, paths, { expected }, async (page, path) => {
      await page.goto(path.startsWith('/api/') ? await site.ticket(path) : path)
    })
    assert.deepEqual(found, [])
  })

  test('is saved and not shown where its bytes are asked for, under a name that is one', async (t) => {
    const page = await visit(t, browser, { url: site.url })
    const watch = guarded(page)
    for (const wanted of [
      `${apiPath(tricky[0]!)}/raw`,
      `${apiPath(tricky[0]!)}/attachments/0`,
      `${apiPath(ids.get('a script')!)}/raw`,
    ]) {
      const path = await site.ticket(wanted)
      const [saved] = await Promise.all([page.waitForEvent('download'), page.goto(path).catch(() => {})])
      assert.match(saved.suggestedFilename(), /^[^<>"/\\]+$/)
      const answer = await page.request.get(path)
      assert.match(answer.headers()['content-disposition'] ?? '', /^attachment/)
      assert.equal(answer.headers()['x-content-type-options'], 'nosniff')
      assert.match(answer.headers()['content-security-policy'] ?? '', /sandbox/)
      assert.doesNotMatch(answer.headers()['content-type'] ?? '', /html|svg|xml/)
    }
    assert.deepEqual(await watch.findings(), [])
  })
})

const nonEmpty = (found: string[]): string[] | undefined => (found.length > 0 ? found : undefined)

/** With the mouse alone: what a test library puts into a frame to click in it would be refused there as well. */
async function clickEverything(page: Page): Promise<void> {
  const element = page.locator('iframe.mail-frame')
  const frame = await (await element.elementHandle())?.contentFrame()
  const around = await element.boundingBox()
  assert.ok(frame && around)
  await frame.waitForLoadState('load')
  const places = await frame.evaluate(() =>
    [...document.querySelectorAll('a:not([href]), button, input, area, summary, img')].map((part) => {
      const { x, y, width, height } = part.getBoundingClientRect()
      return { x: x + width / 2, y: y + height / 2 }
    }),
  )
  for (const { x, y } of places) await page.mouse.click(around.x + x + 1, around.y + y + 1)
}

/** The same text wherever a stranger may write something. */
function trickLetter(trick: string): Buffer {
  return letter({
    subject: encoded(trick),
    from: `${encoded(trick)} <eve@example.com>`,
    to: `${encoded(trick)} <ann@example.com>`,
    text: `glockenspiel ${trick} glockenspiel`,
    files: [{ name: `${trick}.html`, type: 'text/html', bytes: Buffer.from(`<script>${RUN}</script>`) }],
    headers: [`Cc: ${encoded(trick)} <cc@example.com>`],
  })
}

const trickLabel = (site: Site, name: string): string =>
  site.sim.gmail.mailbox(ADDRESS).createLabel({ name }).id

function openers(canary: string): string {
  const targets = ['_blank', '_top', '_parent', 'mail-frame']
  return targets
    .map((target) => `<p><a href="${canary}/opener" target="${target}" rel="opener">${target}</a></p>`)
    .join('')
}
