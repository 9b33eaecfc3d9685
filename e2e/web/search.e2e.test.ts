/** Finding mail, as a person does: typing, choosing with the keyboard, reading, and coming back. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { openBrowser, visit } from './browser.ts'
import { checkEveryLook } from './every-look.ts'
import { letter } from './letter.ts'
import { checkAccessible, NARROW_PX } from './look.ts'
import { type Site, startSite, until } from './site.ts'

const MESSAGES = 130
/** As many as one answer of the server brings to the page. */
const PAGE_ITEMS = 40
const SUBJECTS = ['Wombat census', 'Wombat burrow map', 'Wombat picnic']

const field = (page: Page) => page.getByRole('combobox', { name: 'Search mail' })
const results = (page: Page) => page.locator('[data-result]')
const status = (page: Page) => page.locator('.search-status')
const focusedSubject = (page: Page): Promise<string | undefined> =>
  page.evaluate(() => document.activeElement?.querySelector('.result-subject')?.textContent ?? undefined)

describe('the search page', () => {
  let browser: Browser
  let site: Site
  before(async () => {
    site = await startSite({ messages: MESSAGES })
    for (const [at, subject] of SUBJECTS.entries()) {
      const text = `Dear Ann,\n\nthe marsupial committee met about the ${subject.toLowerCase()}.\n`
      // The oldest first, so that the newest is on top.
      await site.deliver(letter({ subject, text }), {
        internalMs: Date.UTC(2026, 5, 1, 12, at),
        sync: false,
      })
    }
    await site.sync()
    await site.settled()
    browser = await openBrowser()
  })
  after(async () => {
    await browser?.close()
    await site?.close()
  })

  test('finds while somebody types, marks the words, and the address leads to the same again', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/search' })
    assert.ok(await field(page).evaluate((input) => document.activeElement === input))
    await field(page).pressSequentially('marsupial comm*')
    await page.waitForURL(/\/search\?q=marsupial/)
    await status(page).getByText('3 messages').waitFor()
    assert.deepEqual(await page.locator('.result-subject').allTextContents(), SUBJECTS.toReversed())
    assert.ok((await page.locator('.result-excerpt mark').allTextContents()).includes('marsupial'))
    const again = await visit(t, browser, {
      url: site.url,
      path: new URL(page.url()).pathname + new URL(page.url()).search,
    })
    await status(again).getByText('3 messages').waitFor()
    assert.equal(await field(again).inputValue(), 'marsupial comm*')
  })

  test('counts what is found, by year and sender and label, narrows it down, and exports it', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/search' })
    await status(page)
      .getByText(/^40 of [\d,]+ messages/)
      .waitFor()
    const [, inAll = ''] = /of ([\d,]+) messages/.exec((await status(page).textContent()) ?? '') ?? []
    assert.equal(Number(inAll.replaceAll(',', '')), MESSAGES + SUBJECTS.length)
    const year = page.getByRole('region', { name: 'Year' }).getByRole('button').first()
    const inYear = Number(((await year.textContent()) ?? '').slice(4).replaceAll(',', ''))
    await year.click()
    await page.waitForURL(/after/)
    await until('only those of the year are left', async () => {
      const text = (await status(page).textContent()) ?? ''
      return (
        text.startsWith(`${inYear} message`) || text.includes(`of ${inYear.toLocaleString('en')} messages`)
      )
    })
    await field(page).fill('marsupial')
    await status(page).getByText('3 messages').waitFor()
    const download = page.waitForEvent('download')
    await page.getByRole('button', { name: 'Export' }).click()
    const saved = readFileSync(await (await download).path(), 'utf8')
    assert.equal(saved.match(/^From /gm)?.length, 3)
    for (const subject of SUBJECTS) assert.ok(saved.includes(subject), subject)
  })

  test('what was found stands in its context on a phone, too', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/search?q=committee', widthPx: NARROW_PX })
    const excerpt = page.locator('.result-excerpt').first()
    const found = excerpt.locator('mark').first()
    await found.waitFor()
    const [around, mark] = [(await excerpt.boundingBox())!, (await found.boundingBox())!]
    assert.ok(mark.y + mark.height <= around.y + around.height + 1, 'the word is in sight')
    assert.ok(mark.x + mark.width <= around.x + around.width + 1, 'the word is in sight')
    assert.match((await excerpt.textContent()) ?? '', /marsupial committee met/)
  })

  test('suggests operators and their values, which the arrow keys and Enter take', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/search' })
    await field(page).pressSequentially('wombat fr')
    const options = page.getByRole('option')
    await options.filter({ hasText: 'wombat from:' }).waitFor()
    await page.keyboard.press('ArrowDown')
    assert.equal(await options.first().getAttribute('aria-selected'), 'true')
    await checkAccessible(page)
    await page.keyboard.press('Enter')
    assert.equal(await field(page).inputValue(), 'wombat from:')
    await field(page).pressSequentially('ada')
    await options.filter({ hasText: 'from:ada@letters.example' }).click()
    assert.equal(await field(page).inputValue(), 'wombat from:ada@letters.example ')
    await page.waitForURL((url) => url.searchParams.get('q') === 'wombat from:ada@letters.example')
    await status(page).getByText('3 messages').waitFor()
  })

  test('a query that cannot be read shows what is wrong and where, and keeps what was found', async (t) => {
    const refusal = /answer: 4\d\d|console: Failed to load resource/
    const page = await visit(t, browser, { url: site.url, path: '/search?q=wombat', expected: [refusal] })
    await status(page).getByText('3 messages').waitFor()
    await field(page).fill('wombat larger:huge')
    const alert = page.getByRole('alert')
    await alert.getByText('The query cannot be read at character 15').waitFor()
    assert.match(await alert.innerText(), /number of bytes/)
    const [query, sign] = (await alert.locator('pre').innerText()).split('\n')
    assert.equal(query?.slice(sign?.indexOf('^')), 'huge')
    assert.equal(await field(page).getAttribute('aria-invalid'), 'true')
    assert.equal(await results(page).count(), SUBJECTS.length)
    await checkAccessible(page)
    await field(page).fill('wombat larger:1')
    await alert.waitFor({ state: 'detached' })
    await status(page).getByText('3 messages').waitFor()
  })

  test('says so when nothing is found, and what to try', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/search?q=quokka' })
    await page.getByText('Nothing found').waitFor()
    await page.getByText('Try fewer words').waitFor()
    await checkAccessible(page)
    await page.getByRole('combobox').fill('')
    await page.getByRole('button', { name: /has:attachment/ }).click()
    await page.waitForURL((url) => url.searchParams.get('q') === 'has:attachment')
    await results(page).first().waitFor()
  })

  test('brings more as it is scrolled, until there is no more', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/search?q=in:anywhere' })
    await results(page)
      .nth(PAGE_ITEMS - 1)
      .waitFor()
    // Until they are counted it says `and more`.
    await status(page)
      .getByText(/^40 (?:messages, and more|of [\d,]+ messages)/)
      .waitFor()
    const { stored = 0 } = (await site.overview()).streams[0] ?? {}
    assert.ok(stored > 2 * PAGE_ITEMS)
    while ((await results(page).count()) < stored) {
      const shown = await results(page).count()
      await results(page).last().scrollIntoViewIfNeeded()
      await results(page).nth(shown).waitFor({ state: 'attached' })
    }
    await status(page).getByText(`${stored} messages ·`).waitFor()
    const keys = await results(page).evaluateAll((links) =>
      links.map((link) => link.getAttribute('data-result')),
    )
    assert.equal(new Set(keys).size, stored)
  })

  test('is used with the keyboard alone: j, k, Enter, Esc and back to the message that was read', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/search?q=wombat' })
    await results(page).nth(2).waitFor()
    await page.keyboard.press('Escape')
    await page.keyboard.press('j')
    assert.equal(await focusedSubject(page), 'Wombat picnic')
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    await page.keyboard.press('j')
    assert.equal(await focusedSubject(page), 'Wombat census')
    await page.keyboard.press('k')
    assert.equal(await focusedSubject(page), 'Wombat burrow map')
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Wombat burrow map', level: 1 }).waitFor()
    await page.keyboard.press('Escape')
    await page.waitForURL(/\/search\?q=wombat/)
    await page.waitForFunction(() => document.activeElement?.hasAttribute('data-result'))
    assert.equal(await focusedSubject(page), 'Wombat burrow map')
    await page.keyboard.press('/')
    assert.ok(await field(page).evaluate((input) => document.activeElement === input))
    assert.equal(await field(page).inputValue(), 'wombat')
  })

  test('the back button of the browser restores the query and what it found', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/search?q=wombat&order=rank' })
    await results(page).filter({ hasText: 'Wombat census' }).click()
    await page.getByRole('heading', { name: 'Wombat census', level: 1 }).waitFor()
    await page.goBack()
    await status(page).getByText('3 messages').waitFor()
    assert.equal(await field(page).inputValue(), 'wombat')
    assert.ok(await page.getByRole('radio', { name: 'Best match' }).isChecked())
  })

  test('is one key away from every page', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/' })
    for (const path of ['/', '/work', '/work/jobs', '/clean-up', '/settings']) {
      await page.goto(path)
      await page.getByRole('heading', { level: 1 }).waitFor()
      await page.keyboard.press('/')
      await page.waitForURL(/\/search$/)
      await page.waitForFunction(() => document.activeElement?.getAttribute('role') === 'combobox')
      assert.equal(await field(page).inputValue(), '')
    }
    await page.goto('/search?q=wombat')
    await results(page).first().click()
    await page.getByRole('heading', { level: 1, name: /Wombat/ }).waitFor()
    await page.keyboard.press('/')
    await page.waitForFunction(() => document.activeElement?.getAttribute('role') === 'combobox')
  })

  test('? shows the keys, and Ctrl-K leads to what finds everything, from every page', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/work' })
    await page.getByRole('heading', { level: 1 }).waitFor()
    await page.keyboard.press('?')
    const keys = page.getByRole('dialog', { name: 'Keys' })
    await keys.getByText('the next one').waitFor()
    await checkAccessible(page)
    await page.keyboard.press('Escape')
    await keys.waitFor({ state: 'detached' })
    await page.keyboard.press('Control+k')
    await page.waitForURL(/\/find$/)
    await page.waitForFunction(() => document.activeElement?.getAttribute('role') === 'combobox')
    // While somebody types, it is a letter.
    await page.keyboard.press('?')
    assert.equal(await keys.count(), 0)
  })

  test('on a narrow screen nothing steals the place of what is typed', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/search', widthPx: NARROW_PX })
    await field(page).fill('wombat label:')
    const list = page.getByRole('listbox')
    await list.waitFor()
    const box = await list.boundingBox()
    assert.ok(box && box.x >= 0 && box.x + box.width <= NARROW_PX, JSON.stringify(box))
  })

  test('can be used by everybody', (t) =>
    checkEveryLook(t, browser, {
      url: site.url,
      path: '/search?q=wombat+OR+hello+OR+lantern',
      shot: 'search',
      ready: (page) => results(page).nth(4).waitFor(),
    }))
})
