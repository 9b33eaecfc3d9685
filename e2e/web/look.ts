/** How a page looks: to somebody with a screen reader, on a narrow screen, while it moves, and in the documents. */
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Page } from 'playwright-core'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const AXE_TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
const IMAGES = join(import.meta.dirname, '..', '..', 'docs', 'images')
export const NARROW_PX = 360

type Violation = {
  id: string
  impact: string
  help: string
  nodes: { html: string; target: string[]; failureSummary: string }[]
}

/** Fails with every violation of WCAG A and AA that axe finds, and where. */
export async function checkAccessible(page: Page): Promise<void> {
  // Through the debugger: the page's policy allows no script but its own, and is to stay in force.
  const session = await page.context().newCDPSession(page)
  try {
    const options = { runOnly: AXE_TAGS, resultTypes: ['violations'], iframes: false }
    const expression = `${AXE};axe.run(document, ${JSON.stringify(options)}).then(({ violations }) => JSON.stringify(violations))`
    const { result, exceptionDetails } = await session.send('Runtime.evaluate', {
      expression,
      awaitPromise: true,
      returnByValue: true,
    })
    assert.equal(exceptionDetails, undefined, 'axe could not run')
    assert.deepEqual((JSON.parse(String(result.value)) as Violation[]).flatMap(asText), [])
  } finally {
    await session.detach()
  }
}

function asText({ id, impact, help, nodes }: Violation): string[] {
  return nodes.map(
    ({ html, target, failureSummary }) =>
      `${id} (${impact}): ${help}\n  at ${target.join(' ')}\n  ${html.slice(0, 200)}\n  ${failureSummary}`,
  )
}

/** Fails if the page can be scrolled sideways, and says what sticks out. */
export async function checkNoSideScroll(page: Page): Promise<void> {
  const found = await page.evaluate(() => {
    const root = document.documentElement
    if (root.scrollWidth <= root.clientWidth) return []
    const isClipped = (element: Element): boolean => {
      for (let up = element.parentElement; up && up !== root; up = up.parentElement)
        if (getComputedStyle(up).overflowX !== 'visible') return true
      return false
    }
    return [...document.querySelectorAll('body *')]
      .filter((element) => element.getBoundingClientRect().right > root.clientWidth && !isClipped(element))
      .map((element) => element.outerHTML.slice(0, 160))
      .concat(`the page is ${root.scrollWidth} px wide`)
  })
  assert.deepEqual(found, [])
}

const SHIFT_MAX = 0.02

type Shift = { value: number; what: string[] }

/**
 * Fails if what is shown was pushed about since then, without anybody having touched it; as browsers measure it (0 is
 * not at all, 1 is everything). Says what moved.
 */
export async function checkNoShift(page: Page, sinceMs = 0): Promise<void> {
  const shifts = await layoutShifts(page, sinceMs)
  const sum = shifts.reduce((total, { value }) => total + value, 0)
  const moved = shifts.map(({ value, what }) => `${value.toFixed(4)}: ${what.join(', ')}`)
  assert.ok(sum < SHIFT_MAX, `things moved by ${sum}\n${moved.join('\n')}`)
}

function layoutShifts(page: Page, sinceMs: number): Promise<Shift[]> {
  type Entry = PerformanceEntry & {
    value: number
    hadRecentInput: boolean
    sources: { node: Node | null; previousRect: DOMRectReadOnly; currentRect: DOMRectReadOnly }[]
  }
  return page.evaluate(
    (since) =>
      new Promise<Shift[]>((resolve) => {
        const place = ({ x, y, width, height }: DOMRectReadOnly): string => `${x},${y} ${width}x${height}`
        const told = (entries: PerformanceEntryList): Shift[] =>
          (entries as Entry[])
            .filter(({ startTime, hadRecentInput }) => startTime >= since && !hadRecentInput)
            .map(({ value, sources }) => ({
              value,
              what: sources.map(({ node, previousRect, currentRect }) => {
                const element = node instanceof Element ? node : node?.parentElement
                return `${element?.className || element?.nodeName} ${place(previousRect)} to ${place(currentRect)}`
              }),
            }))
        const finish = (entries: PerformanceEntryList): void => {
          observer.disconnect()
          resolve(told(entries))
        }
        const observer = new PerformanceObserver((list) => finish(list.getEntries()))
        observer.observe({ type: 'layout-shift', buffered: true })
        // What was buffered comes before the second frame; nothing comes where nothing moved.
        requestAnimationFrame(() => requestAnimationFrame(() => finish(observer.takeRecords())))
      }),
    sinceMs,
  )
}

/** The page's own clock, for `checkNoShift`. */
export const pageNow = (page: Page): Promise<number> => page.evaluate(() => performance.now())

/** Writes docs/images/NAME.png in a run of `npm run shots`, and nothing in any other. */
export async function shoot(page: Page, name: string): Promise<void> {
  if (process.env.TIDEMARK_TEST_SHOTS !== '1') return
  mkdirSync(IMAGES, { recursive: true })
  await page.screenshot({ path: join(IMAGES, `${name}.png`), animations: 'disabled', caret: 'hide' })
}
