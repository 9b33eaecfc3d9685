/** Work: what runs and who does it, any job out of many, and one job with everything about it. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import type { JobView } from '../../src/app/schemas.ts'
import { openBrowser, visit, visitBeside } from './browser.ts'
import { checkEveryLook } from './every-look.ts'
import { checkNoShift, shoot } from './look.ts'
import { ADDRESS, type Site, STREAM, startSite, until } from './site.ts'

const MESSAGES = 500
/** Reading a message costs 20 units: work that lasts long enough to be watched. */
const UNITS_PER_MINUTE = 50_000
type Jobs = { items: JobView[]; next: string | null }

const table = (page: Page) => page.getByRole('region', { name: 'Jobs, the newest first' })
const rows = (page: Page) => table(page).locator('tbody tr:has(a)')
const stateChoice = (page: Page) => page.getByRole('combobox', { name: 'State' })
const lane = (page: Page, name: string) => page.locator('.lanes .card').filter({ hasText: name })

const workReady = async (page: Page): Promise<void> => {
  await page.locator('.worker').first().waitFor()
  await page.locator('.limit-grid canvas').first().waitFor()
  await page.getByRole('region', { name: 'All schedules' }).locator('tbody a').first().waitFor()
}
const jobsReady = async (page: Page): Promise<void> => {
  await rows(page).first().waitFor()
}
const jobReady = async (page: Page): Promise<void> => {
  await page.getByRole('heading', { name: 'Facts' }).waitFor()
}

describe('the pages of work', () => {
  let browser: Browser
  let site: Site
  before(async () => {
    browser = await openBrowser()
    site = await startSite({
      messages: MESSAGES,
      // Every month is a job: enough of them to scroll.
      fromMs: Date.UTC(2016, 0, 1),
      settings: { TIDEMARK_GMAIL_UNITS_PER_MINUTE: String(UNITS_PER_MINUTE) },
    })
  })
  after(async () => {
    await browser?.close()
    await site?.close()
  })

  test('show what runs in which lane, who runs it, and what it may use, as it happens', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/work' })
    await workReady(page)
    const running = lane(page, 'Interactive lane')
      .or(lane(page, 'Bulk lane'))
      .locator('.running-job a')
      .first()
    await running.waitFor()
    assert.match((await running.textContent()) ?? '', /^[A-Z]\w+ing /)
    await page.locator('.worker').getByText('Answers').waitFor()
    await page
      .locator('.worker')
      .getByText(/Holds \d+ jobs?: /)
      .waitFor()
    await page.locator('.limit-grid').getByText('Allowed').first().waitFor()
    await until('some of it is stored', async () => (await site.overview()).streams[0]!.stored > MESSAGES / 4)
    await shoot(page, 'work')
    await page.locator('.verdict').getByText('All is settled.').waitFor()
    await lane(page, 'Bulk lane').getByText('Nothing runs in this lane.').waitFor()
    await page.locator('.worker').getByText('Holds no job.').waitFor()
    await checkNoShift(page)
  })

  test('show schedules that lead to their jobs', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/work' })
    await workReady(page)
    const schedule = page.getByRole('region', { name: 'All schedules' }).locator('tbody a').first()
    const kind = /kind=([\w.%-]+)/.exec((await schedule.getAttribute('href')) ?? '')?.[1]
    await schedule.click()
    await page.waitForURL(`**/work/jobs?kind=${kind}`)
    await page.getByRole('heading', { level: 1, name: 'Jobs' }).waitFor()
  })

  test('find jobs by kind and state, which stand in the address', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/work/jobs' })
    await jobsReady(page)
    await page.getByLabel('Kind').fill('mail.list')
    await page.waitForURL(/[?&]kind=mail\.list/)
    await stateChoice(page).selectOption('Done')
    await page.waitForURL(/[?&]state=done/)
    await jobsReady(page)
    await until('only such jobs are shown', async () => {
      const texts = await rows(page).locator('td:first-child').allTextContents()
      return texts.length > 0 && texts.every((text) => text.startsWith('Listing a slice'))
    })
    const again = await visitBeside(page, page.url())
    await jobsReady(again)
    assert.equal(await again.getByLabel('Kind').inputValue(), 'mail.list')
    assert.equal(await stateChoice(again).inputValue(), 'done')
    await stateChoice(page).selectOption('Failed')
    await page.getByText('No job is like that').waitFor()
    await page.goBack()
    await jobsReady(page)
    await page.getByRole('button', { name: 'Clear' }).click()
    await until('the address is bare', async () => new URL(page.url()).search === '')
  })

  test('hold only the rows in sight, however far somebody scrolls', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/work/jobs' })
    await jobsReady(page)
    const total = await jobCount(site)
    assert.ok(total > 150, `${total} jobs are too few to scroll`)
    await until('the last one is in sight', async () => {
      await table(page).evaluate((box) => box.scrollTo(0, box.scrollHeight))
      const last = await rows(page).last().getAttribute('aria-rowindex')
      return Number(last) === total + 1
    })
    const inPage = await rows(page).count()
    assert.ok(inPage < 80, `${inPage} rows of ${total} are in the page`)
    await rows(page).last().locator('a[href="/work/jobs/1"]').waitFor()
    await page.getByText(`${total} jobs`, { exact: false }).waitFor()
  })

  test('a job says how it stands, where it came from, and what it brought about', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/work/jobs?kind=mail.list' })
    await jobsReady(page)
    const { items } = await site.get<Jobs>('/api/jobs?kind=mail.fetch&limit=1')
    const [job] = items
    assert.ok(job?.parent, 'a job that came from another')
    await page.goto(`/work/jobs/${job.id}`)
    await jobReady(page)
    await page.getByRole('heading', { level: 1, name: /^Fetching (?:a message|\d+ messages)$/ }).waitFor()
    await page.locator('.graph').getByText('This job').waitFor()
    await page.locator('.facts').getByRole('link', { name: ADDRESS }).waitFor()
    await page.getByRole('heading', { name: 'Failed attempts' }).waitFor()
    await shoot(page, 'job')
    await page
      .locator('.graph')
      .getByRole('link', { name: `Job ${job.parent}` })
      .click()
    await page.waitForURL(`**/work/jobs/${job.parent}`)
    await page.locator(`.graph a[href="/work/jobs/${job.id}"]`).waitFor()
  })

  test('a job that waits is cancelled after a question, and retried', async (t) => {
    await site.settled()
    await site.post('/api/pause', { scope: 'stream', target: STREAM })
    await site.deliver()
    const id = await until('a job waits', async () => {
      const { items } = await site.get<Jobs>('/api/jobs?state=pending&limit=1')
      return items[0]?.id
    })
    const page = await visit(t, browser, { url: site.url, path: `/work/jobs/${id}` })
    await jobReady(page)
    await page.getByRole('button', { name: 'Cancel…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.waitFor()
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    assert.equal((await site.get<JobView>(`/api/jobs/${id}`)).state, 'pending', 'Escape is a no')
    await page.getByRole('button', { name: 'Cancel…' }).click()
    await dialog.getByRole('button', { name: 'Cancel the job' }).click()
    await page.locator('.page-title, .main').getByText('Cancelled', { exact: true }).first().waitFor()
    assert.equal((await site.get<JobView>(`/api/jobs/${id}`)).state, 'canceled')
    await page.getByRole('button', { name: 'Retry' }).click()
    await until('it waits again', async () => {
      return (await site.get<JobView>(`/api/jobs/${id}`)).state === 'pending'
    })
    await site.post('/api/resume', { scope: 'stream', target: STREAM })
    await page.locator('.main').getByText('Done', { exact: true }).first().waitFor()
    const { streams } = await site.settled()
    assert.equal(streams[0]?.stored, MESSAGES + 1)
  })

  test('a job that failed shows each attempt with its error, and starts over from there', async (t) => {
    await site.settled()
    const { faults } = site.sim
    const methods = ['history.list']
    faults.add({ do: 'error', status: 500, message: 'out of tea', methods, max: 2 })
    faults.add({ do: 'error', status: 400, reason: 'badRequest', message: 'no tea ever', methods })
    await site.deliver()
    const id = await until('the look for mail has failed', async () => {
      const { items } = await site.get<Jobs>('/api/jobs?state=failed&limit=1')
      return items[0]?.id
    })
    const page = await visit(t, browser, { url: site.url, path: `/work/jobs/${id}` })
    await jobReady(page)
    await page.getByRole('heading', { level: 1, name: 'Checking a mailbox' }).waitFor()
    await page.locator('.main').getByText('Failed', { exact: true }).first().waitFor()
    const fact = (name: string) => page.locator('.facts div').filter({ hasText: name }).locator('dd')
    assert.equal(await fact('Failures').textContent(), '3')
    assert.ok(Number(await fact('Times taken').textContent()) >= 3)
    await page.getByRole('heading', { name: 'Failed attempts (3)' }).waitFor()
    const attempts = await page.locator('.attempts li').allTextContents()
    assert.equal(attempts.length, 3)
    assert.match(attempts[0]!, /^Attempt \d+permanent.*HTTP 400.*no tea ever/)
    for (const earlier of attempts.slice(1))
      assert.match(earlier, /^Attempt \d+transient.*HTTP 500.*out of tea/)
    await page.locator('.verdict').getByText('1 job failed').waitFor()

    faults.set({ rules: [] })
    await page.getByRole('button', { name: 'Retry' }).click()
    await page.locator('.main').getByText('Done', { exact: true }).first().waitFor()
    await page.locator('.verdict').getByText('All is settled.').waitFor()
    assert.equal(await page.locator('.attempts li').count(), 3, 'what failed before is still told')
    assert.deepEqual((await site.get<Jobs>('/api/jobs?state=failed&limit=1')).items, [])
    const { streams } = await site.settled()
    assert.equal(streams[0]?.stored, MESSAGES + 2)
  })

  test('everything can be paused and resumed', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/work' })
    await workReady(page)
    await page.getByRole('button', { name: 'Pause everything' }).click()
    await page.locator('.verdict').getByText('Everything is paused').waitFor()
    await page.getByRole('button', { name: 'Resume everything' }).click()
    await page.getByRole('button', { name: 'Pause everything' }).waitFor()
    assert.deepEqual((await site.overview()).pauses, [])
  })

  test('say what to do where there is no such job', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/work/jobs/999999', expected: [/404/] })
    await page.getByText('There is no such job').waitFor()
    await page.getByRole('link', { name: 'Find jobs' }).click()
    await jobsReady(page)
  })

  test('a job is found and opened by keyboard alone', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/work/jobs' })
    await jobsReady(page)
    await stateChoice(page).focus()
    await page.keyboard.type('Done')
    await page.waitForURL(/[?&]state=done/)
    await jobsReady(page)
    await table(page).focus()
    await page.keyboard.press('Tab')
    const href = await page.evaluate(() => document.activeElement?.getAttribute('href'))
    assert.match(href ?? '', /^\/work\/jobs\/\d+$/)
    await page.keyboard.press('Enter')
    await page.waitForURL(`**${href}`)
    await jobReady(page)
  })

  test('are listed with all their columns, however long the reason of one is', async (t) => {
    const { items } = await site.get<Jobs>('/api/jobs?limit=100')
    const longest = Math.max(...items.map(({ error, note }) => (error ?? note ?? '').length))
    assert.ok(longest > 50, 'one of them has a long reason')
    const page = await visit(t, browser, { url: site.url, path: '/work/jobs' })
    await jobsReady(page)
    const beyondPx = await table(page).evaluate((element) => element.scrollWidth - element.clientWidth)
    assert.equal(beyondPx, 0)
  })

  test('are for everybody, in light, dark and on a narrow screen', async (t) => {
    const { items } = await site.get<Jobs>('/api/jobs?kind=mail.fetch&limit=1')
    const pages = [
      { path: '/work', ready: workReady },
      { path: '/work/jobs', ready: jobsReady, shot: 'jobs' },
      { path: `/work/jobs/${items[0]?.id}`, ready: jobReady },
    ]
    for (const page of pages) {
      await t.test(page.path, (inner) => checkEveryLook(inner, browser, { url: site.url, ...page }))
    }
  })
})

async function jobCount(site: Site): Promise<number> {
  let count = 0
  for (let cursor: string | null = ''; cursor !== null; ) {
    const answer: Jobs = await site.get<Jobs>(`/api/jobs?limit=500${cursor ? `&cursor=${cursor}` : ''}`)
    count += answer.items.length
    cursor = answer.next
  }
  return count
}
