/** Reading mail: a thread, its HTML in a frame, pictures only on request, files, and the bytes as they came. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import type { Browser, Download, Page } from 'playwright-core'
import { withToken } from '../../src/server/server.suite.ts'
import { openBrowser, visit, type WatchedPage } from './browser.ts'
import { checkEveryLook } from './every-look.ts'
import { letter } from './letter.ts'
import { checkAccessible, NARROW_PX } from './look.ts'
import { ADDRESS, type Site, startSite, until } from './site.ts'

/** Nobody is there; what asks for it is answered by the test. */
const REMOTE = 'https://pictures.example/banner.png'
const DOT = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)
const REPORT = {
  name: 'tide report 2025.pdf',
  type: 'application/pdf',
  bytes: Buffer.from('%PDF-1.7 \0\xff\r\n', 'latin1'),
}
const TABLE = {
  name: 'Ebbe und Flut – Übersicht.csv',
  type: 'text/csv',
  bytes: Buffer.from('höhe;zeit\n1,2;03:15\n'),
}

const RICH = letter({
  subject: 'Tide tables for June',
  text: 'The tide tables, as plain words.',
  html: `<h1>Tide tables</h1><p>As <b>formatted</b> words. <a href="https://tides.example/june">More</a></p>
<p><img src="cid:dot@letters" alt="inline" width="8" height="8"><img src="${REMOTE}" alt="remote" width="40" height="20"></p>`,
  files: [{ name: 'dot.png', type: 'image/png', bytes: DOT, contentId: 'dot@letters' }, REPORT, TABLE],
  headers: ['Message-ID: <june@letters.example>'],
})

const reply = (at: number): Buffer =>
  letter({
    subject: 'Re: Tide tables for June',
    from: `Writer ${at} <writer${at}@letters.example>`,
    text: `Answer number ${at}.`,
    headers: [
      `Message-ID: <june-${at}@letters.example>`,
      'In-Reply-To: <june@letters.example>',
      'References: <june@letters.example>',
    ],
  })

const line = (page: Page, name: string) => page.getByRole('button', { name, expanded: false })
const frame = (page: Page) => page.frameLocator('iframe.mail-frame')

describe('the reader', () => {
  let browser: Browser
  let site: Site
  let rich: string
  let newest: string
  const open = (id: string): string => `/mail/${encodeURIComponent(ADDRESS)}/${id}`

  before(async () => {
    site = await startSite({ messages: 12 })
    const atMs = Date.now() - 3_600_000
    rich = await site.deliver(RICH, { internalMs: atMs, sync: false, labelIds: ['INBOX', 'STARRED'] })
    const threadId = site.sim.gmail.mailbox(ADDRESS).get(rich)!.threadId
    newest = rich
    for (let at = 1; at <= 6; at++) {
      newest = await site.deliver(reply(at), { internalMs: atMs + at * 60_000, threadId, sync: false })
    }
    await site.sync()
    await site.settled()
    await until('the thread is stored', async () => {
      const { items } = await site.get<{ items: unknown[] }>(
        `/api/mail/search?q=${encodeURIComponent('"tide tables"')}`,
      )
      return items.length === 7
    })
    browser = await openBrowser()
  })
  after(async () => {
    await browser?.close()
    await site?.close()
  })

  test('shows the thread around a message: the first, the last, and what was folded between them', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: open(rich) })
    await page.getByRole('heading', { name: 'Tide tables for June', level: 1 }).waitFor()
    await page.getByText('7 messages').waitFor()
    await page.getByRole('button', { name: '4 more messages' }).click()
    assert.equal(await page.locator('article.mail').count(), 7)
    assert.equal(await page.locator('article.mail.is-open').count(), 2)
    await line(page, 'Writer 3').click()
    await page.getByText('Answer number 3.', { exact: true }).waitFor()
    await checkAccessible(page)
    await page.getByRole('button', { name: 'Writer 3', expanded: true }).click()
    assert.equal(
      await page.getByText('Answer number 3.', { exact: true }).and(page.locator('pre')).count(),
      0,
    )
  })

  test('opens at the subject, with a frame about as high as the message, and leads to it in Gmail', async (t) => {
    // In the middle of a thread, where the page would otherwise begin below its subject.
    const page = await visit(t, browser, { url: site.url, path: open(newest), heightPx: 500 })
    const subject = page.getByRole('heading', { level: 1 })
    await subject.waitFor()
    await page.locator('article.mail.is-open').first().waitFor()
    assert.equal(await page.evaluate(() => scrollY), 0)
    const place = (await subject.boundingBox())!
    assert.ok(place.y >= 0 && place.y < 500, JSON.stringify(place))
    for (const widthPx of [1280, NARROW_PX]) {
      const wide = await visit(t, browser, { url: site.url, path: open(rich), widthPx })
      await frame(wide).getByRole('heading', { name: 'Tide tables' }).waitFor()
      const around = (await wide.locator('iframe.mail-frame').boundingBox())!
      const inside = (await frame(wide).locator('body').boundingBox())!
      const isEnough = around.height >= inside.height * 0.8
      const isTooMuch = around.height > Math.max(140, inside.height * 2.5)
      assert.ok(isEnough && !isTooMuch, `${around.height} px for ${inside.height} px`)
    }
    const link = page.getByRole('link', { name: 'Open in Gmail' })
    const href = (await link.getAttribute('href')) ?? ''
    assert.ok(href.startsWith(`https://mail.google.com/mail/?authuser=${encodeURIComponent(ADDRESS)}#`), href)
    assert.match((await link.getAttribute('rel')) ?? '', /noopener/)
  })

  test('shows HTML in a frame that can do nothing, the text, and the source', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: open(rich) })
    await frame(page).getByRole('heading', { name: 'Tide tables' }).waitFor()
    const sandbox = await page.locator('iframe.mail-frame').getAttribute('sandbox')
    assert.ok(sandbox && !/allow-(scripts|same-origin|forms|top-navigation)/.test(sandbox), String(sandbox))
    const inline = frame(page).getByAltText('inline')
    assert.equal(await inline.evaluate((image) => (image as HTMLImageElement).naturalWidth), 1)
    const message = page.locator(`#message-${rich}`)
    await message.getByRole('radio', { name: 'Plain text' }).check()
    await message.getByText('The tide tables, as plain words.').waitFor()
    assert.equal(await message.locator('iframe').count(), 0)
    await message.getByRole('radio', { name: 'Source' }).check()
    const source = message.getByRole('region', { name: 'Source of the message' })
    await source.getByText('Message-ID: <june@letters.example>').waitFor()
    assert.equal(await source.locator('pre').textContent(), RICH.toString())
    await checkAccessible(page)
  })

  test('no picture is fetched before it is asked for, and then with no word about who asks', async (t) => {
    const page = await visit(t, browser, { url: site.url })
    const left: { url: string; referer: string | undefined }[] = []
    await page.context().route(
      (url) => url.origin !== site.url,
      async (route) => {
        const request = route.request()
        left.push({ url: request.url(), referer: (await request.allHeaders()).referer })
        await route.fulfill({ contentType: 'image/png', body: DOT })
      },
    )
    await page.goto(open(rich))
    await frame(page).getByAltText('remote').waitFor({ state: 'attached' })
    // What a document loads it has asked for before it is loaded itself.
    for (const child of page.frames()) await child.waitForLoadState('load')
    assert.deepEqual(left, [])
    await page.getByRole('button', { name: 'Show remote images' }).click()
    await until('the picture was asked for', async () => left.length > 0)
    await page.getByText('Whoever sent it can see that it is read.').waitFor()
    assert.deepEqual(left, [{ url: REMOTE, referer: undefined }])
    await page.getByRole('button', { name: 'Hide remote images' }).click()
    await frame(page).getByAltText('remote').waitFor({ state: 'attached' })
    assert.equal(await frame(page).getByAltText('remote').getAttribute('src'), null)
    // Another look at the same message asks for nothing.
    await page.reload()
    await frame(page).getByAltText('remote').waitFor({ state: 'attached' })
    assert.equal(left.length, 1)
  })

  test('files and the message itself are saved byte for byte, under their names', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: open(rich) })
    for (const { name, bytes } of [REPORT, TABLE]) {
      const saved = await savedBy(page, () => page.getByRole('button', { name: new RegExp(name) }).click())
      assert.equal(saved.suggestedFilename(), name)
      assert.deepEqual(readFileSync(await saved.path()), bytes)
    }
    const message = page.locator(`#message-${rich}`)
    await message.getByText('Details and proof').click()
    await checkAccessible(page)
    const saved = await savedBy(page, () =>
      message.getByRole('button', { name: 'Download the original' }).click(),
    )
    assert.equal(saved.suggestedFilename(), 'Tide tables for June.eml')
    assert.deepEqual(readFileSync(await saved.path()), site.sim.gmail.mailbox(ADDRESS).get(rich)!.raw())
  })

  test('j and k go through the thread, Enter opens, Esc and u lead back', async (t) => {
    const page = await visit(t, browser, {
      url: site.url,
      path: `/search?q=${encodeURIComponent('"tide tables"')}`,
    })
    await page.locator('[data-result]').first().click()
    await page.getByRole('button', { name: '4 more messages' }).waitFor()
    const focused = (): Promise<string | null | undefined> =>
      page.evaluate(() => document.activeElement?.getAttribute('data-message'))
    await page.keyboard.press('j')
    assert.equal(await focused(), rich)
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    assert.equal(await focused(), newest)
    await page.keyboard.press('k')
    await page.keyboard.press('Enter')
    await page.getByText('Answer number 5.', { exact: true }).waitFor()
    await page.keyboard.press('u')
    await page.waitForURL(/\/search\?q=/)
  })

  test('a message that is not there says so, and leads back', async (t) => {
    const gone = [/answer: 404/, /console: Failed to load resource/]
    const page = await visit(t, browser, { url: site.url, path: open('ffffffffffffffff'), expected: gone })
    await page.getByText('This message cannot be shown').waitFor()
    await page.getByRole('link', { name: 'Back' }).click()
    await page.waitForURL(/\/search/)
  })

  test('a message that Gmail no longer has is shown, and says so', async (t) => {
    const id = await site.deliver(letter({ subject: 'Soon gone', text: 'Keep me.' }))
    await site.settled()
    await until(
      'it is stored',
      async () =>
        (
          await fetch(
            `${site.url}/api/mail/messages/${encodeURIComponent(ADDRESS)}/${id}`,
            withToken({}, site.token),
          )
        ).ok,
    )
    site.sim.gmail.mailbox(ADDRESS).delete(id)
    await site.sync()
    const page = await visit(t, browser, { url: site.url })
    await until('the deletion is noticed', async () => {
      const { deletedAtMs } = await site.get<{ deletedAtMs: number | null }>(
        `/api/mail/messages/${encodeURIComponent(ADDRESS)}/${id}`,
      )
      return deletedAtMs !== null
    })
    await page.goto(open(id))
    await page.getByText('Gmail no longer has this message').waitFor()
    await page.getByText('Keep me.').waitFor()
    await checkAccessible(page)
  })

  test('can be used by everybody', (t) =>
    checkEveryLook(t, browser, {
      url: site.url,
      path: open(rich),
      shot: 'message',
      ready: (page) => frame(page).getByRole('heading', { name: 'Tide tables' }).waitFor(),
    }))
})

async function savedBy(page: WatchedPage, act: () => Promise<void>): Promise<Download> {
  const [saved] = await Promise.all([page.waitForEvent('download'), act()])
  return saved
}
