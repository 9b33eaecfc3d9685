/** A stream's page: its frontier as a picture to look into, its books, what was set aside, and its pause. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import type { FrontierView } from '../../src/app/schemas.ts'
import { createEngine } from '../../src/engine/engine.ts'
import { openLedger } from '../../src/ledger/open.ts'
import { openBrowser, visit } from './browser.ts'
import { checkEveryLook } from './every-look.ts'
import { shoot } from './look.ts'
import { ADDRESS, type Site, STREAM, startSite, until } from './site.ts'

const MESSAGES = 400
/** Reading a message costs 20 units: a copy that takes long enough to be watched. */
const UNITS_PER_MINUTE = 50_000
const PATH = `/streams/${encodeURIComponent(STREAM)}`
/** Items that fail are tried several times, with longer and longer pauses, before they are set aside. */
const SET_ASIDE_MS_MAX = 240_000

const picture = (page: Page) => page.getByRole('slider', { name: 'Slice looked at' })
const says = (page: Page) => page.locator('.frontier-says')
const bad = (page: Page) => page.locator('#bad')
const booksText = (page: Page) => page.locator('.balance-sum')

const ready = async (page: Page): Promise<void> => {
  await picture(page).waitFor()
  await page.locator('.books').getByText('Complete up to').waitFor()
  await page.getByRole('region', { name: 'Slices of the stream' }).locator('tbody a').first().waitFor()
}

describe('the page of a stream', () => {
  let browser: Browser
  let site: Site
  before(async () => {
    browser = await openBrowser()
    site = await startSite({
      messages: MESSAGES,
      poisoned: 1,
      settings: { TIDEMARK_GMAIL_UNITS_PER_MINUTE: String(UNITS_PER_MINUTE) },
    })
  })
  after(async () => {
    await browser?.close()
    await site?.close()
  })

  test('draws every slice, and the mark where it stands', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: PATH })
    await ready(page)
    assert.equal(await page.getByRole('heading', { level: 1 }).textContent(), ADDRESS)
    const frontier = await until('all is listed', async () => {
      const view = await site.get<FrontierView>(`/api/streams/${encodeURIComponent(STREAM)}/frontier`)
      return view.cells.reduce((sum, { listed }) => sum + listed, 0) >= MESSAGES && view
    })
    assert.ok(frontier.segments > 20, `${frontier.segments} slices`)
    await says(page).getByText(`of ${frontier.segments} slices`).waitFor()
    await until('slices that are done, and others', async () => {
      const { stored = 0 } = (await site.overview()).streams[0] ?? {}
      return stored > MESSAGES * 0.6
    })
    await page.locator('.frontier-band .cell-done').first().waitFor()
    await shoot(page, 'stream')
    const mark = await page.locator('.frontier-mark').boundingBox()
    const box = await picture(page).boundingBox()
    assert.ok(mark && box && mark.x >= box.x - 4 && mark.x <= box.x + box.width + 4)
  })

  test('looks closer where it is clicked, and the address leads to the same look', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: PATH })
    await ready(page)
    const whole = Number(await picture(page).getAttribute('aria-valuemax'))
    const box = (await picture(page).boundingBox())!
    await page.mouse.move(box.x + box.width * 0.6, box.y + box.height / 2)
    await says(page).getByText('accounted for').or(says(page).getByText('no items')).waitFor()
    await page.mouse.click(box.x + box.width * 0.6, box.y + box.height / 2)
    await page.waitForURL(/[?&]from=\d+&to=\d+/)
    await until('fewer slices are drawn', async () => (await cellCount(page)) < whole / 2)
    const near = await cellCount(page)
    const again = await visit(t, browser, { url: page.url() })
    await again.goto(page.url())
    await until('the link draws as many', async () => (await cellCount(again)) === near)
    await page.goBack()
    await until('back leads out', async () => (await cellCount(page)) === whole)
    await page.goForward()
    await page.getByRole('button', { name: 'Show all' }).click()
    await until('all is shown again', async () => (await cellCount(page)) === whole)
    assert.equal(new URL(page.url()).search, '')
  })

  test('a stretch that is dragged over fills the picture', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: PATH })
    await ready(page)
    const whole = await cellCount(page)
    const box = (await picture(page).boundingBox())!
    const y = box.y + box.height / 2
    await page.mouse.move(box.x + box.width * 0.25, y)
    await page.mouse.down()
    await page.mouse.move(box.x + box.width * 0.75, y, { steps: 4 })
    assert.ok((await page.locator('.frontier-selection').boundingBox())!.width > box.width / 3)
    await page.mouse.up()
    await page.waitForURL(/[?&]from=\d+&to=\d+/)
    await until('a part is drawn', async () => {
      const count = await cellCount(page)
      return count < whole && count > whole / 8
    })
    await page.getByText('Slices in this stretch').waitFor()
  })

  test('is looked into by keyboard as well', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: PATH })
    await ready(page)
    const whole = await cellCount(page)
    await picture(page).focus()
    await page.keyboard.press('End')
    assert.equal(await picture(page).getAttribute('aria-valuenow'), String(whole))
    await page.keyboard.press('ArrowLeft')
    assert.equal(await picture(page).getAttribute('aria-valuenow'), String(whole - 1))
    assert.match((await picture(page).getAttribute('aria-valuetext')) ?? '', /to .*\d{4}/)
    await page.keyboard.press('Enter')
    await page.waitForURL(/[?&]from=\d+&to=\d+/)
    await until('fewer slices are drawn', async () => (await cellCount(page)) < whole / 2)
    assert.ok(await picture(page).evaluate((slider) => slider === document.activeElement), 'focus stays')
    await page.keyboard.press('Escape')
    await until('all is shown again', async () => (await cellCount(page)) === whole)
  })

  test('a pause is seen on every open page at once, and so is its end', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: PATH })
    const other = await visit(t, browser, { url: site.url, path: '/' })
    await ready(page)
    await page.getByRole('button', { name: 'Pause', exact: true }).click()
    await page.getByText('This stream is paused').waitFor()
    await other.locator('#needs-you').getByText('Paused', { exact: true }).waitFor()
    await other.locator('.stream-card').getByText('Paused', { exact: true }).waitFor()
    assert.equal((await site.overview()).pauses[0]?.target, STREAM)
    await page.getByRole('button', { name: 'Resume', exact: true }).click()
    await page.getByText('This stream is paused').waitFor({ state: 'detached' })
    await other.locator('#needs-you').getByText('Nothing. All goes by itself.').waitFor()
    assert.deepEqual((await site.overview()).pauses, [])
  })

  test('says what to do where there is no such stream', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/streams/mail%3Anobody%40example.com' })
    await page.getByText('There is no such stream').waitFor()
    await page.getByRole('link', { name: 'To the overview', exact: true }).click()
    await page.locator('.stream-card').waitFor()
  })

  test('what could not be read is shown with its reason, and stored after a retry', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: `${PATH}#bad` })
    const [id = ''] = site.poisoned
    await bad(page).getByText(id).waitFor({ timeout: SET_ASIDE_MS_MAX })
    await bad(page).getByText('Bad items (1)').waitFor()
    await bad(page)
      .getByTitle(/^Gmail had a problem of its own/)
      .waitFor()
    await until('the books tell of it', async () => {
      const text = await booksText(page).textContent()
      return text?.includes(`${MESSAGES - 1} stored`) && text.includes('1 bad')
    })
    // The picture is loaded by itself, and may come after the books.
    await until(
      'the picture tells of it',
      async () => (await page.locator('.frontier-bad span').count()) === 1,
    )
    // One of 400 is a small tick, and no red month.
    const red = await page
      .locator('.frontier-band .cell-bad')
      .evaluateAll((boxes) =>
        boxes.map((box) => Number(box.getAttribute('width')) * Number(box.getAttribute('height'))),
      )
    assert.equal(red.length, 1)
    assert.ok(red[0]! > 0 && red[0]! / (1000 * 10) < 0.01, `${red[0]! / 100} % of the picture`)
    site.heal()
    await bad(page)
      .getByRole('button', { name: `Retry ${id}` })
      .click()
    await bad(page).getByText('None. An item that cannot be copied').waitFor()
    await until('the books tell of it', async () => {
      const text = await booksText(page).textContent()
      return text?.includes(`${MESSAGES} stored`) && text.includes('0 bad')
    })
    await page.locator('.frontier-bad span').waitFor({ state: 'detached' })
  })

  test('a day of polling is drawn as long as a day is', async (t) => {
    await site.settled()
    await site.stop()
    await pollForADay(site)
    await site.restart()
    const page = await visit(t, browser, { url: site.url, path: PATH })
    await ready(page)
    const { cells, segments } = await site.get<FrontierView>(
      `/api/streams/${encodeURIComponent(STREAM)}/frontier?cells=400`,
    )
    assert.ok(segments > POLLS && cells.length < POLLS / 4, `${segments} slices in ${cells.length} cells`)
    const last = page.locator('.frontier-band .cell-done').last()
    await last.waitFor()
    await shoot(page, 'frontier')
    // The picture of the polls: the last cells, of which the first may begin before them.
    const polled = cells.filter(({ to }) => to > cells.at(-1)!.to - DAY_S)
    const shown = (cells.at(-1)!.to - cells[0]!.to) / (cells.length / (cells.length - 1))
    assert.ok((polled.at(-1)!.to - polled[0]!.from) / shown < 0.01)
  })

  test('is for everybody, in light, dark and on a narrow screen', async (t) => {
    await checkEveryLook(t, browser, { url: site.url, path: PATH, ready })
  })
})

const DAY_S = 86_400
const POLLS = 480

/** As a mailbox is looked at every three minutes, and each time a letter has come. */
async function pollForADay(site: Site): Promise<void> {
  const ledger = await openLedger(`sqlite:${join(site.world.home, 'ledger.db')}`)
  const engine = await createEngine({ ledger, jobs: [] })
  try {
    const { id: streamId, tail_at: start } = await ledger.stream(STREAM)
    const polls = Array.from({ length: POLLS }, (_, at) => start + (at * DAY_S) / POLLS)
    await engine.write({
      segments: polls.map((from) => ({
        streamId,
        from,
        to: from + DAY_S / POLLS,
        mark: new Date((from + DAY_S / POLLS) * 1000).toISOString(),
        ref: `poll-${from}`,
      })),
      counts: polls.map((from) => ({ segment: `poll-${from}`, listed: 1, skipped: 1, seal: true })),
    })
  } finally {
    await engine.stop()
    await ledger.close()
  }
}

async function cellCount(page: Page): Promise<number> {
  return Number(await picture(page).getAttribute('aria-valuemax'))
}
