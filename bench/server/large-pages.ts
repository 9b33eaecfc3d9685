/** Pages in a real Chromium: how soon the first is there, and how long it ever stands still while it is used. */
import sparticuz from '@sparticuz/chromium'
import { chromium, type Page } from 'playwright-core'
import { signedInState } from '../../e2e/web/browser.ts'
import type { Row } from '../bench.ts'
import { LARGE_STREAM } from './large-ledger.ts'
import { BENCH_TOKEN } from './session.ts'

const UNWANTED_ARGS = new Set(['--single-process', '--no-zygote', '--disable-web-security'])
const VISITS = 5
const SCROLL_MS = 6_000
const PAGE_MS_MAX = 30_000

/** What the page has done since it was last asked. */
type Feel = { longestTaskMs: number; longestFrameMs: number }

export async function feelPages(url: string): Promise<Row[]> {
  const browser = await chromium.launch({
    executablePath: await sparticuz.executablePath(),
    args: sparticuz.args.filter((arg) => !UNWANTED_ARGS.has(arg)),
    headless: true,
  })
  try {
    const row = (what: string, value: number, unit = 'ms'): Row => ({
      case: `pages: ${what}`,
      subject: 'tidemark',
      value,
      unit,
    })
    const firsts: number[] = []
    for (let n = 0; n < VISITS; n++) {
      // A context of its own: nothing is in the cache.
      const context = await browser.newContext({
        viewport: { width: 1280, height: 800 },
        storageState: await signedInState(url, BENCH_TOKEN),
      })
      firsts.push(await untilUsable(await context.newPage(), url))
      await context.close()
    }
    firsts.sort((a, b) => a - b)
    const context = await browser.newContext({
      viewport: { width: 1280, height: 800 },
      storageState: await signedInState(url, BENCH_TOKEN),
    })
    context.setDefaultTimeout(PAGE_MS_MAX)
    const page = await context.newPage()
    await page.addInitScript({ content: WATCH })
    const jobs = await scrollJobs(page, url)
    const frontier = await useFrontier(page, url)
    return [
      row('first page usable, empty cache, median', firsts[Math.floor(VISITS / 2)]!),
      row('first page usable, empty cache, slowest', firsts.at(-1)!),
      row('jobs scrolled, rows loaded', jobs.rows, 'rows'),
      row('jobs scrolled, longest task', jobs.longestTaskMs),
      row('jobs scrolled, longest frame', jobs.longestFrameMs),
      row('frontier looked at and zoomed, longest task', frontier.longestTaskMs),
      row('frontier looked at and zoomed, longest frame', frontier.longestFrameMs),
    ]
  } finally {
    await browser.close()
  }
}

/*
 * What runs in the page is given as text: it speaks of a browser's things, which the compiler does not know here.
 */
const PAINTED =
  'new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now()))))'
const WATCH = `
  const seen = { longestTaskMs: 0, longestFrameMs: 0 }
  globalThis.feel = seen
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) seen.longestTaskMs = Math.max(seen.longestTaskMs, duration)
  }).observe({ type: 'longtask' })
  let lastMs = performance.now()
  const frame = () => {
    const nowMs = performance.now()
    seen.longestFrameMs = Math.max(seen.longestFrameMs, nowMs - lastMs)
    lastMs = nowMs
    requestAnimationFrame(frame)
  }
  requestAnimationFrame(frame)`
const FORGET = 'void Object.assign(feel, { longestTaskMs: 0, longestFrameMs: 0 })'
const SCROLL = `(async () => {
  const box = document.querySelector('.table-scroll')
  const untilMs = performance.now() + ${SCROLL_MS}
  while (performance.now() < untilMs) {
    box.scrollTop += 400
    await new Promise(requestAnimationFrame)
  }
})()`
const LAST_ROW = `Math.max(...[...document.querySelectorAll('.table-scroll tr[aria-rowindex]')]
  .map((row) => Number(row.getAttribute('aria-rowindex'))))`

/** From the start of the navigation until the card of the stream is drawn and the page can answer a click. */
async function untilUsable(page: Page, url: string): Promise<number> {
  await page.goto(url, { waitUntil: 'commit' })
  await page.waitForSelector('.stream-card .stream-summary')
  return page.evaluate<number>(PAINTED)
}

/** Tasks below 50 ms are not reported, and count as none. */
async function feelSince(page: Page, use: () => Promise<void>): Promise<Feel> {
  await page.evaluate(FORGET)
  await use()
  return page.evaluate<Feel>('({ ...feel })')
}

/** Down as fast as a person can, on and on: each end of the rows loads the next ones. */
async function scrollJobs(page: Page, url: string): Promise<Feel & { rows: number }> {
  await page.goto(`${url}/work/jobs`)
  await page.waitForSelector('.table-scroll tbody tr.is-link')
  const feel = await feelSince(page, () => page.evaluate<void>(SCROLL))
  return { ...feel, rows: (await page.evaluate<number>(LAST_ROW)) - 1 }
}

async function useFrontier(page: Page, url: string): Promise<Feel> {
  await page.goto(`${url}/streams/${encodeURIComponent(LARGE_STREAM)}`)
  const box = page.locator('.frontier-box')
  await box.waitFor()
  const { x, y, width, height } = (await box.boundingBox())!
  const middle = y + height / 2
  return feelSince(page, async () => {
    await page.mouse.move(x + 5, middle)
    await page.mouse.move(x + width - 5, middle, { steps: 100 })
    for (let zoom = 0; zoom < 4; zoom++) {
      await page.mouse.click(x + width * 0.7, middle)
      await page.waitForTimeout(400)
      await page.mouse.move(x + width * 0.2, middle, { steps: 20 })
    }
  })
}
