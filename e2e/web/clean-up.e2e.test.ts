/** Taking old mail out of Gmail on the page: looking, proving, doing, watching, taking back. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { openBrowser, visit } from './browser.ts'
import { checkEveryLook } from './every-look.ts'
import { letter } from './letter.ts'
import { checkAccessible, checkNoSideScroll, NARROW_PX, shoot } from './look.ts'
import { ADDRESS, type Site, startSite, until } from './site.ts'

const YEAR_MS = 365.25 * 86_400_000
const OLD = 6
const TROUBLE = [/answer: 4\d\d/, /console: Failed to load resource/]

const card = (page: Page, title: string | RegExp) =>
  page.locator('.card').filter({ has: page.getByRole('heading', { name: title }) })
const stat = (page: Page, label: string) => page.locator('.stat', { hasText: label })

describe('the page that frees up Gmail', () => {
  let browser: Browser
  let site: Site
  let old: string[]
  let recent: string
  before(async () => {
    site = await startSite({ messages: 30 })
    old = []
    for (let at = 1; at <= OLD; at++) {
      const raw = letter({ subject: `Zephyrgram ${at}`, text: `Issue ${at} of the gazette.` })
      const internalMs = Date.now() - 3 * YEAR_MS + at * 60_000
      old.push(await site.deliver(raw, { internalMs, labelIds: ['INBOX'], sync: false }))
    }
    const raw = letter({ subject: 'Zephyrgram, fresh', text: 'The newest issue.' })
    recent = await site.deliver(raw, { labelIds: ['INBOX'], sync: false })
    await site.sync()
    await until('the letters are stored', async () => (await found(site, 'zephyrgram')) === OLD + 1)
    await site.settled()
    browser = await openBrowser()
  })
  after(async () => {
    await browser?.close()
    await site?.close()
  })

  const labelsOf = (id: string): string[] | undefined => {
    const message = site.sim.gmail.mailbox(ADDRESS).get(id)
    return message && [...message.labelIds]
  }
  const trashed = (): string[] =>
    [...site.sim.gmail.mailbox(ADDRESS).dump()]
      .filter(({ labels, deleted }) => !deleted && labels.includes('TRASH'))
      .map(({ id }) => id)
      .sort()
  const plan = async (page: Page, action: string): Promise<void> => {
    await page.getByLabel('Only what this query finds').fill('subject:zephyrgram')
    await page.getByRole('radio', { name: action }).check()
    await page.getByRole('button', { name: 'Dry run' }).click()
    await page.getByRole('heading', { name: 'What would happen' }).waitFor()
  }

  test('a dry run changes nothing, and says what would happen and what is not safe', async (t) => {
    const before = trashed()
    const page = await visit(t, browser, { url: site.url, path: '/clean-up' })
    await page.getByText('No run yet').waitFor()
    await plan(page, 'Move it to the trash')
    await page.getByText('By the index').waitFor()
    assert.match(await stat(page, 'Would be taken out').innerText(), new RegExp(`\\b${OLD}\\b`))
    // Gone behind our back: only who asks Gmail can know.
    site.sim.gmail.mailbox(ADDRESS).delete(old[0]!)
    await page.getByRole('button', { name: 'Prove every message' }).click()
    await page.getByText('Every message proven').waitFor()
    assert.match(await stat(page, 'Would be taken out').innerText(), new RegExp(`\\b${OLD - 1}\\b`))
    assert.match(await stat(page, 'Left alone').innerText(), /\b1\b/)
    const refused = page.getByRole('table', { name: 'What is left alone, by reason' })
    await refused.getByText(/no longer in Gmail|deleted in Gmail/).waitFor()
    assert.match((await refused.getByRole('link').getAttribute('href')) ?? '', new RegExp(old[0]!))
    await checkAccessible(page)
    await page.evaluate(() => scrollTo(0, 0))
    await shoot(page, 'clean-up')
    await page.getByLabel('Older than').fill('4')
    await page.getByText('The form was changed since.').waitFor()
    assert.ok(await page.getByRole('button', { name: /Move .* to the trash/ }).isDisabled())
    assert.deepEqual(trashed(), before)
    assert.equal((await site.get<{ items: unknown[] }>('/api/mail/clean-up/runs')).items.length, 0)
  })

  test('a query or an age that cannot be read is refused with what is wrong', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/archive', expected: TROUBLE })
    await page.getByLabel('Older than').fill('soon')
    assert.equal(new URL(page.url()).pathname, '/clean-up', 'the address that it had before leads there')
    await page.getByText('A whole number, such as 2.').waitFor()
    assert.ok(await page.getByRole('button', { name: 'Dry run' }).isDisabled())
    await page.getByLabel('Older than').fill('2')
    await page.getByLabel('Only what this query finds').fill('larger:huge')
    await page.getByRole('button', { name: 'Dry run' }).click()
    await page.getByRole('alert').getByText('cannot be read at character 8').waitFor()
    await checkAccessible(page)
  })

  test('a run is confirmed, watched to its end, and taken back', async (t) => {
    const before = trashed()
    const moved = old.slice(1).sort()
    // Slow enough to be seen at work.
    site.sim.faults.add({
      do: 'latency',
      methods: ['messages.batchModify'],
      latency: { kind: 'fixed', ms: 1_500 },
    })
    const page = await visit(t, browser, { url: site.url, path: '/clean-up' })
    await plan(page, 'Move it to the trash')
    await page.getByRole('button', { name: /^Move \d+ messages to the trash$/ }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('heading', { name: /^Move \d+ messages to the trash\?$/ }).waitFor()
    await checkAccessible(page)
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    assert.deepEqual(trashed(), before)
    await page.getByRole('button', { name: /^Move \d+ messages to the trash$/ }).click()
    await dialog.getByRole('button', { name: 'Move to the trash' }).click()
    const run = card(page, /^Run \d+: to the trash$/)
    await run.getByText(/^(Being planned|Running)$/).waitFor()
    await run.getByText('Done', { exact: true }).waitFor()
    await run.getByText(`${OLD - 1} of`).waitFor()
    assert.deepEqual(trashed(), [...before, ...moved].sort())
    assert.deepEqual(labelsOf(recent), ['INBOX'])
    assert.equal(labelsOf(old[0]!), undefined)
    await checkAccessible(page)
    await run.getByRole('button', { name: /^Undo/ }).click()
    await dialog.getByRole('button', { name: 'Undo' }).click()
    await run.getByText('Undone', { exact: true }).waitFor()
    assert.deepEqual(trashed(), before)
    for (const id of moved) assert.deepEqual(labelsOf(id), ['INBOX'])
    assert.equal(await run.getByRole('button', { name: /^Undo/ }).count(), 0)
  })

  test('what deletes for good wants its words typed, and does nothing without them', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/clean-up' })
    await plan(page, 'Delete it for good')
    const start = page.getByRole('button', { name: /^Delete \d+ messages for good$/ })
    await start.click()
    const dialog = page.getByRole('dialog')
    const go = dialog.getByRole('button', { name: /^Delete/ })
    assert.ok(await go.isDisabled())
    await dialog.getByRole('textbox').fill('delete everything')
    assert.ok(await go.isDisabled())
    await page.keyboard.press('Enter')
    await checkAccessible(page)
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await dialog.waitFor({ state: 'detached' })
    for (const id of old.slice(1)) assert.deepEqual(labelsOf(id), ['INBOX'])
    await start.click()
    const words = (await dialog.locator('code').textContent()) ?? ''
    assert.match(words, /^delete \d+ messages$/)
    await dialog.getByRole('textbox').fill(words)
    await go.click()
    const run = card(page, /^Run \d+: delete for good$/)
    await run.getByText('Done', { exact: true }).waitFor()
    for (const id of old) assert.equal(labelsOf(id), undefined)
    assert.deepEqual(labelsOf(recent), ['INBOX'])
    // The copies stay, and can be read.
    await page.goto(`/mail/${encodeURIComponent(ADDRESS)}/${old[1]}`)
    await page.getByText('Issue 2 of the gazette.').waitFor()
  })

  test('a plan fits a narrow screen, in the dark', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/clean-up', widthPx: NARROW_PX, dark: true })
    await page.getByRole('button', { name: 'Dry run' }).click()
    await page.getByRole('heading', { name: 'What would happen' }).waitFor()
    await checkAccessible(page)
    await checkNoSideScroll(page)
  })

  test('can be used by everybody', (t) =>
    checkEveryLook(t, browser, {
      url: site.url,
      path: '/clean-up',
      ready: (page) =>
        card(page, /^Run \d+/)
          .first()
          .waitFor(),
    }))
})

async function found(site: Site, q: string): Promise<number> {
  return (await site.get<{ items: unknown[] }>(`/api/mail/search?q=${q}`)).items.length
}
