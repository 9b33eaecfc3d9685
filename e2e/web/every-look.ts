/** A page as different people see it: light, dark, and on a narrow screen; each with nothing that axe finds. */
import type { TestContext } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { type VisitOptions, visit } from './browser.ts'
import { checkAccessible, checkNoSideScroll, NARROW_PX, shoot } from './look.ts'

export type LookOptions = Omit<VisitOptions, 'dark' | 'widthPx'> & {
  /** Until what is looked at is there. */
  ready: (page: Page) => Promise<unknown>
  /** Of the picture for the documents. */
  shot?: string
}

export async function checkEveryLook(
  test: TestContext,
  browser: Browser,
  options: LookOptions,
): Promise<void> {
  const { ready, shot, ...visited } = options
  const looks = [
    { name: 'light', dark: false, widthPx: 1280 },
    { name: 'dark', dark: true, widthPx: 1280 },
    { name: 'narrow', dark: false, widthPx: NARROW_PX },
    { name: 'narrow and dark', dark: true, widthPx: NARROW_PX },
  ]
  for (const { name, ...look } of looks) {
    await test.test(name, async (inner) => {
      const page = await visit(inner, browser, { ...visited, ...look })
      await ready(page)
      await checkAccessible(page)
      await checkNoSideScroll(page)
      if (shot !== undefined && name === 'light') await shoot(page, shot)
    })
  }
}
