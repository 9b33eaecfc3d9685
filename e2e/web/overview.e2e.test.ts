/** The first page: what happens, as it happens, without a reload and without anything jumping about. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import type { Browser, Locator, Page } from 'playwright-core'
import { openBrowser, visit } from './browser.ts'
import { checkEveryLook } from './every-look.ts'
import { checkNoShift, NARROW_PX, pageNow, shoot } from './look.ts'
import { ADDRESS, type Site, startSite, until } from './site.ts'

const MESSAGES = 600
/** Reading a message costs 20 units: a copy that takes long enough to be watched. */
const UNITS_PER_MINUTE = 60_000
const FIRST_PAGE_BYTES_MAX = 150_000
/** Until the books can be read: the page, its code and its look, and what it asks the server. */
const FIRST_REQUESTS_MAX = 30
/** What a browser says of a server that is gone. */
/** What the page hears before somebody signs in again. */
const SIGNED_OUT = /401/
const GONE = /ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_EMPTY_RESPONSE/

const card = (page: Page) => page.locator('.stream-card')
const books = (page: Page) => card(page).locator('.balance-sum')
const stat = (page: Page, label: string) => page.locator('.totals .stat').filter({ hasText: label })
const liveText = (page: Page) => page.locator('.live-text')

/** `600 listed = 598 stored + …` as numbers. */
async function booksOf(page: Page): Promise<Record<string, number>> {
  const text = (await books(page).textContent()) ?? ''
  const parts = [...text.matchAll(/([\d,]+) (listed|stored|gone|skipped|bad|on their way)/g)]
  return Object.fromEntries(
    parts.map(([, count = '', name = '']) => [name, Number(count.replaceAll(',', ''))]),
  )
}

const ready = async (page: Page): Promise<void> => {
  await books(page).waitFor()
  await page.locator('.strip-picture').waitFor()
  await page.locator('.overview-charts canvas').nth(2).waitFor()
}

describe('the overview', () => {
  let browser: Browser
  let site: Site
  before(async () => {
    browser = await openBrowser()
    site = await startSite({
      messages: MESSAGES,
      settings: { TIDEMARK_GMAIL_UNITS_PER_MINUTE: String(UNITS_PER_MINUTE) },
    })
  })
  after(async () => {
    await browser?.close()
    await site?.close()
  })

  test('follows a first copy from its beginning to its end', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/' })
    await ready(page)
    await card(page).getByText('Working', { exact: true }).waitFor()
    await until('half of it is accounted for', async () => {
      const { listed = 0, stored = 0 } = await booksOf(page)
      return listed > 0 && stored / MESSAGES > 0.4
    })
    await page.locator('.running-list .running-job').first().waitFor()
    await shoot(page, 'overview')
    await card(page).getByText('In step', { exact: true }).waitFor()
    await page.locator('.verdict').getByText('All is settled.').waitFor()
    const { listed, stored = 0, gone = 0, skipped = 0, bad = 0 } = await booksOf(page)
    assert.equal(listed, MESSAGES)
    assert.equal(listed, stored + gone + skipped + bad)
    assert.match((await stat(page, 'Accounted for').textContent()) ?? '', /100%.*600 of 600/)
    await checkNoShift(page)
  })

  describe('is for everybody', () => {
    test('in light, dark and on a narrow screen', async (t) => {
      await site.settled()
      await checkEveryLook(t, browser, { url: site.url, path: '/', ready })
    })

    test('and on pictures', async (t) => {
      const dark = await visit(t, browser, { url: site.url, path: '/', dark: true })
      await ready(dark)
      await shoot(dark, 'overview-dark')
      const narrow = await visit(t, browser, { url: site.url, path: '/', widthPx: NARROW_PX })
      await ready(narrow)
      await shoot(narrow, 'overview-narrow')
    })
  })

  test('shows mail that arrives, without a reload and without a jump', async (t) => {
    await site.settled()
    const page = await visit(t, browser, { url: site.url, path: '/' })
    await ready(page)
    await liveText(page).getByText('Live', { exact: true }).waitFor()
    await page.evaluate(() => Object.assign(globalThis, { sameDocument: true }))
    const before = await booksOf(page)
    const sinceMs = await pageNow(page)
    for (let count = 0; count < 3; count++) await site.deliver()
    await until('the three letters are on the page', async () => {
      const { listed = 0, stored = 0, bad = 0 } = await booksOf(page)
      return stored === before.stored! + 3 && listed === before.listed! + 3 && bad === before.bad
    })
    assert.equal(await page.evaluate(() => 'sameDocument' in globalThis), true)
    await checkNoShift(page, sinceMs)
  })

  test('says that it is offline, and is up to date again when the server is back and somebody signs in', async (t) => {
    await site.settled()
    const page = await visit(t, browser, { url: site.url, path: '/', expected: [GONE, SIGNED_OUT] })
    await ready(page)
    await liveText(page).getByText('Live', { exact: true }).waitFor()
    const { stored: before = 0 } = await booksOf(page)
    await site.stop('SIGKILL')
    await page.getByRole('alert').getByText('Offline.').waitFor()
    assert.equal(await liveText(page).textContent(), 'Offline')
    assert.equal((await booksOf(page)).stored, before, 'what was known stays on the page')
    await site.deliver(undefined, { sync: false })
    await site.restart()
    await site.sync()
    // Whoever had the port meanwhile may know the session: a new start takes none that was given before.
    await page.getByLabel('Token').fill(site.token)
    await page.keyboard.press('Enter')
    await liveText(page).getByText('Live', { exact: true }).waitFor()
    await until('the letter is on the page', async () => (await booksOf(page)).stored === before + 1)
    assert.equal(await page.locator('.offline').count(), 0)
  })

  test('needs at most 150 kB of code and 30 requests until it can be used, and asks for its data before its code is there', async (t) => {
    const page = await visit(t, browser, { url: site.url })
    const sizes = new Map<string, Promise<number>>()
    page.on('response', (response) => {
      if (['script', 'stylesheet'].includes(response.request().resourceType()))
        sizes.set(
          response.url(),
          response.body().then((body) => gzipSync(body).length),
        )
    })
    const asked: { url: string; answersBefore: Set<string> }[] = []
    const answered = new Set<string>()
    page.on('request', (request) => asked.push({ url: request.url(), answersBefore: new Set(answered) }))
    page.on('requestfinished', (request) => answered.add(request.url()))
    await page.goto('/')
    await books(page).waitFor()
    const needed = asked.slice()
    await ready(page)
    const bytes = (await Promise.all(sizes.values())).reduce((sum, size) => sum + size, 0)
    assert.ok(bytes > 10_000 && bytes <= FIRST_PAGE_BYTES_MAX, `${bytes} bytes`)
    const urls = needed.map(({ url }) => url)
    assert.ok(urls.length > 2 && urls.length <= FIRST_REQUESTS_MAX, urls.join('\n'))
    const data = needed.find(({ url }) => url.endsWith('/api/overview'))
    const isCode = (url: string): boolean => /\/assets\/overview-[^/]*\.js$/.test(url)
    assert.ok(urls.some(isCode), urls.join('\n'))
    assert.ok(data && ![...data.answersBefore].some(isCode), 'its data waits for its code')
  })

  test('pauses are told, and taken back where they are told', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/' })
    await ready(page)
    await site.post('/api/pause', { scope: 'all', reason: 'cleaning the aquarium' })
    const needs = page.locator('#needs-you')
    await needs.getByText('cleaning the aquarium').waitFor()
    await page.locator('.verdict').getByText('Everything is paused').waitFor()
    await needs.getByRole('button', { name: 'Resume' }).click()
    await needs.getByText('Nothing. All goes by itself.').waitFor()
    assert.deepEqual((await site.overview()).pauses, [])
  })

  test('can be used by keyboard alone', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/' })
    await ready(page)
    await page.keyboard.press('Tab')
    const skip = page.getByRole('link', { name: 'Skip to the page' })
    assert.ok(await skip.evaluate((link) => link === document.activeElement && link.checkVisibility()))
    assert.ok((await skip.boundingBox())!.y >= 0, 'the way past the navigation is in sight')
    await page.keyboard.press('Enter')
    assert.equal(await page.evaluate(() => document.activeElement?.id), 'main')
    const seen = await tabThrough(page)
    for (const name of ['Jobs', ADDRESS, '10 minutes', 'As a table', 'Work'])
      assert.ok(seen.includes(name), `${name} is not among ${seen.join(', ')}`)
  })

  test('has switches with arrow keys, of which Tab sees one place', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/' })
    await ready(page)
    await checkArrows(page, 'Time shown', ['10 minutes', '24 hours'])
    await page.locator('.overview-charts canvas').nth(2).waitFor()
    await page.goto('/settings')
    const themes = await checkArrows(page, 'Colours', ['As the system', 'Light', 'Dark'])
    await themes.getByRole('radio', { name: 'Light' }).press('ArrowRight')
    assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), 'dark')
    const chosen = themes.locator('input:checked + span')
    assert.ok((await contrastAround(chosen)) > 1.5, 'what is chosen can be told from the rest in the dark')
  })
})

/** Of an element's background and that of what it stands in; 1 where they are the same. */
function contrastAround(element: Locator): Promise<number> {
  return element.evaluate((chosen) => {
    const canvas = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d')!
    const brightness = (node: Element): number => {
      canvas.fillStyle = getComputedStyle(node).backgroundColor
      canvas.fillRect(0, 0, 1, 1)
      const [red = 0, green = 0, blue = 0] = [...canvas.getImageData(0, 0, 1, 1).data].map(
        (value) => (value / 255) ** 2.2,
      )
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue
    }
    const [one, other] = [brightness(chosen), brightness(chosen.closest('.segmented')!)]
    return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05)
  })
}

/** Names of all that Tab reaches from here to the page's end; fails where the focus cannot be seen. */
async function tabThrough(page: Page): Promise<string[]> {
  const seen: string[] = []
  for (let step = 0; step < 100; step++) {
    await page.keyboard.press('Tab')
    const at = await page.evaluate(() => {
      const element = document.activeElement
      if (!element || element === document.body) return undefined
      const { outlineStyle, outlineWidth, boxShadow } = getComputedStyle(element)
      const label = element.closest('label')
      const own = label ? getComputedStyle(label) : undefined
      const isMarked =
        (outlineStyle !== 'none' && Number.parseFloat(outlineWidth) > 0) ||
        boxShadow !== 'none' ||
        (own !== undefined && own.outlineStyle !== 'none')
      const name = element.getAttribute('aria-label') ?? (label ?? element).textContent ?? ''
      return { name: name.trim(), isMarked, html: element.outerHTML.slice(0, 120) }
    })
    if (!at) return seen
    assert.ok(at.isMarked, `the focus cannot be seen on ${at.html}`)
    seen.push(at.name)
  }
  throw new Error(`Tab has no end: ${seen.join(', ')}`)
}

/** Radio buttons as people know them: an arrow moves and chooses, and goes round at the ends. */
async function checkArrows(page: Page, label: string, names: readonly string[]): Promise<Locator> {
  const group = page.getByRole('group', { name: label })
  const option = (at: number) => group.getByRole('radio', { name: names[at % names.length]! })
  const isHere = async (at: number, pressed: string): Promise<void> => {
    const isFocused = await option(at).evaluate((radio) => radio === document.activeElement)
    assert.ok((await option(at).isChecked()) && isFocused, `${pressed} does not lead to ${names[at]}`)
    assert.equal(await group.locator(':checked').count(), 1)
  }
  await option(0).focus()
  for (const key of ['ArrowRight', 'ArrowDown']) {
    for (let at = 0; at < names.length; at++) {
      await page.keyboard.press(key)
      await isHere((at + 1) % names.length, key)
    }
  }
  for (const key of ['ArrowLeft', 'ArrowUp']) {
    for (let at = names.length; at > 0; at--) {
      await page.keyboard.press(key)
      await isHere(at - 1, key)
    }
  }
  await page.keyboard.press('Tab')
  assert.equal(await group.locator(':focus').count(), 0, 'Tab leaves the switch')
  return group
}
