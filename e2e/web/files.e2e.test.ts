/** Folders on the pages: all at a glance, the tree, transfers as they run, conflicts, and many deletions at once. */
import assert from 'node:assert/strict'
import { existsSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import type { ConflictView } from '../../src/apps/files/api/schemas.ts'
import { openBrowser, signInBy, visit } from './browser.ts'
import { checkEveryLook } from './every-look.ts'
import { type FileSite, OWNER, startFileSite } from './file-site.ts'
import { checkAccessible, checkNoSideScroll, NARROW_PX, shoot } from './look.ts'
import { until } from './site.ts'

const MANY = 600
/** Who shares something with the owner. */
const BEN = 'ben@example.com'
const row = (page: Page, name: string) => page.getByRole('treeitem', { name })
const view = (page: Page, name: string | RegExp) =>
  page.getByRole('group', { name: 'What is shown' }).getByRole('radio', { name })

describe('the pages of folders', () => {
  let browser: Browser
  let files: FileSite
  before(async () => {
    files = await startFileSite()
    const { device } = files.drive
    for (const name of ['Budget.xlsx', 'Holiday plan.md']) device.write(`Family/${name}`, `about ${name}`)
    device.write('Family/Letters/to grandma.txt', 'Dear grandma')
    for (let at = 0; at < MANY; at++)
      device.write(`Photos/IMG_${String(at).padStart(4, '0')}.jpg`, `photo ${at}`)
    device.write('notes.txt', 'one')
    await files.add('docs', 'manual')
    browser = await openBrowser()
  })
  after(async () => {
    await browser?.close()
    await files?.close()
  })

  test('a folder is shown with how it stands, and leads to its page', async (t) => {
    const page = await visit(t, browser, { url: files.site.url, path: '/' })
    await page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Files' }).click()
    await page.getByRole('heading', { name: 'Files', level: 1 }).waitFor()
    const card = page.locator('.folder-card')
    await card.getByText('In step', { exact: true }).waitFor()
    await card.getByText(OWNER).waitFor()
    assert.match(await card.locator('.stat', { hasText: 'Files' }).innerText(), /604/)
    await card.getByRole('link', { name: 'docs' }).click()
    await page.getByRole('heading', { name: 'docs', level: 1 }).waitFor()
    await row(page, 'notes.txt').waitFor()
  })

  test('the tree opens folder by folder and draws only what is in sight, however much there is', async (t) => {
    const page = await visit(t, browser, { url: files.site.url, path: '/files/docs' })
    await row(page, 'Family').click()
    await row(page, 'Letters').waitFor()
    await row(page, 'Holiday plan.md').click()
    const item = page.locator('.item-card')
    await item.getByText('Family/Holiday plan.md').waitFor()
    assert.match(await item.innerText(), /In step\.[\s\S]*Here[\s\S]*In OneDrive[\s\S]*Last agreed on/)
    await row(page, 'Photos').click()
    await row(page, 'IMG_0000.jpg').waitFor()
    const tree = page.getByRole('tree')
    assert.ok((await page.getByRole('treeitem').count()) < 60)
    await tree.focus()
    // More of them may come in between, and move the end.
    await until('the end is in sight', async () => {
      await page.keyboard.press('End')
      return row(page, 'notes.txt').isVisible()
    })
    await until('all photos are loaded', async () => {
      await page.keyboard.press('End')
      await page.keyboard.press('ArrowUp')
      return row(page, `IMG_0${MANY - 1}.jpg`).isVisible()
    })
    assert.ok((await page.getByRole('treeitem').count()) < 60)
    await page.keyboard.press('ArrowLeft')
    await page.keyboard.press('ArrowLeft')
    await until('the folder is closed', async () => (await row(page, 'IMG_0000.jpg').count()) === 0)
    await page.keyboard.press('Home')
    await page.keyboard.press('ArrowRight')
    await checkAccessible(page)
  })

  test('a change on either side is seen live, and so is what it takes', async (t) => {
    const page = await visit(t, browser, { url: files.site.url, path: '/files/docs' })
    await row(page, 'notes.txt').waitFor()
    files.write('docs/from here.txt', 'new here')
    await row(page, 'from here.txt').waitFor()
    await row(page, 'Photos').click()
    await row(page, 'Family').click()
    await row(page, 'Holiday plan.md').click()
    files.drive.device.write('film.mov', { seed: 5, size: 40 * 2 ** 20 })
    await page.getByRole('button', { name: 'Sync now' }).click()
    await page.getByText('Looking at both sides of docs.').waitFor()
    await page.getByRole('progressbar', { name: 'Downloading film.mov' }).waitFor()
    await page
      .locator('.transfer')
      .getByText(/ left$/)
      .waitFor()
    await checkAccessible(page)
    await shoot(page, 'files')
    await page.getByText('Nothing is being transferred at the moment.').waitFor()
    await view(page, 'History').check()
    const done = page.getByRole('row').filter({ hasText: 'from here.txt' }).filter({ hasText: 'Uploaded' })
    await done.first().waitFor()
    await page
      .getByRole('row')
      .filter({ hasText: 'film.mov' })
      .filter({ hasText: 'Downloaded' })
      .first()
      .waitFor()
    await checkAccessible(page)
  })

  test('it is paused and resumed', async (t) => {
    const page = await visit(t, browser, { url: files.site.url, path: '/files/docs' })
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByText('This folder is paused').waitFor()
    await checkAccessible(page)
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.getByText('This folder is paused').waitFor({ state: 'detached' })
    await page.getByRole('button', { name: 'Pause' }).waitFor()
  })

  test('what is left alone says why, and what was deleted elsewhere is put back from the trash', async (t) => {
    files.write('docs/what?.txt', 'x')
    files.drive.device.write('old.txt', 'old words')
    await files.sync('docs')
    files.drive.device.delete('old.txt')
    await files.sync('docs')
    const page = await visit(t, browser, { url: files.site.url, path: '/files/docs' })
    await view(page, /^Left alone/).check()
    const left = page.getByRole('row').filter({ hasText: 'what?.txt' })
    await left.getByText('OneDrive does not take names with').filter({ visible: true }).waitFor()
    await view(page, 'Trash').check()
    await page.getByRole('button', { name: 'Put back old.txt' }).click()
    await page.getByText('old.txt is back.').waitFor()
    assert.equal(files.read('docs/old.txt'), 'old words')
    await checkAccessible(page)
    rmSync(join(files.place, 'docs/what?.txt'))
    await files.sync('docs')
  })

  test('a conflict is compared side by side and decided, and nothing runs that stands in it', async (t) => {
    files.drive.device.write('Family/plan.html', 'before')
    await files.sync('docs')
    files.write(
      'docs/Family/plan.html',
      '# Holiday\n\n- the lake, from 12 July\n- two rooms, one with a stove\n<script>window.__ran = 1</script>\n- bring: maps\n',
    )
    files.drive.device.edit(
      'Family/plan.html',
      '# Holiday\n\n- the sea, from 19 July\n- two rooms, one with a stove\n- a tent for the children\n- bring: maps\n',
    )
    await files.sync('docs')
    const overview = await visit(t, browser, { url: files.site.url, path: '/' })
    await overview.locator('#needs-you').getByText('A conflict is yours to decide').waitFor()
    await overview.locator('.stream-card').first().waitFor()
    await shoot(overview, 'overview-conflict')
    const page = await visit(t, browser, { url: files.site.url, path: '/files' })
    await page.getByText('1 conflict to decide', { exact: true }).waitFor()
    await page.getByRole('link', { name: /^Look at it: 1 conflict/ }).click()
    await page.getByRole('link', { name: 'Family/plan.html' }).click()
    await page.getByRole('heading', { name: 'plan.html', level: 1 }).waitFor()
    await page
      .getByRole('region', { name: 'The text in the folder' })
      .getByText('<script>window.__ran')
      .waitFor()
    await page.getByRole('region', { name: 'The text in onedrive' }).getByText('the sea').waitFor()
    assert.equal(await page.evaluate(() => '__ran' in window), false)
    // What differs is marked, down to the words; what is the same is not.
    const here = page.getByRole('region', { name: 'The text in the folder' })
    assert.deepEqual(await here.locator('.diff-row:not(.is-different)').first().textContent(), '# Holiday\n')
    assert.ok((await here.locator('mark').allTextContents()).some((text) => text.includes('lake')))
    assert.ok(!(await here.locator('mark').allTextContents()).some((text) => text.includes('Holiday')))
    await checkAccessible(page)
    await shoot(page, 'file-conflict')
    await page.setViewportSize({ width: NARROW_PX, height: 800 })
    await checkNoSideScroll(page)
    await checkAccessible(page)
    await page.setViewportSize({ width: 1280, height: 800 })
    await page.getByRole('button', { name: 'Keep the one in the folder' }).click()
    await page.getByText('Kept from here', { exact: true }).waitFor()
    await until('OneDrive has it', async () =>
      files.drive.device.read('Family/plan.html')?.toString().includes('the lake'),
    )
    // What was done is said in words, and the stream of a folder is its folder.
    await page.goto('/files/docs?view=history')
    await page
      .getByText(/^(?:Uploaded|Downloaded)/)
      .first()
      .waitFor()
    assert.doesNotMatch((await page.locator('main').textContent()) ?? '', /\bE[FD]\d+\b|plan \d|delta/)
  })

  test('many deletions at once are shown, asked about with their number, and done only then', async (t) => {
    const [conflict] = (await files.site.get<{ items: ConflictView[] }>('/api/files/folders/docs/conflicts'))
      .items
    assert.equal(conflict?.state, 'kept-local')
    // At once, and not file by file: a look in between would find only some of them gone.
    renameSync(join(files.place, 'docs/Photos'), join(files.place, 'gone'))
    const held = await files.sync('docs')
    assert.equal(held.state, 'needs you')
    const total = (held.heldDeletes?.local ?? 0) + (held.heldDeletes?.remote ?? 0)
    assert.ok(total >= MANY)
    const page = await visit(t, browser, { url: files.site.url, path: '/' })
    await page.getByText('Many deletions wait for your yes').waitFor()
    await page.getByRole('link', { name: 'Look at it' }).click()
    await page.getByRole('button', { name: 'See what would be deleted' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('in OneDrive, to its recycle bin').waitFor()
    await dialog
      .getByText(/^Photos\/IMG_\d+\.jpg$/)
      .first()
      .waitFor()
    const go = dialog.getByRole('button', { name: /^Delete \d+$/ })
    assert.ok(await go.isDisabled())
    await dialog.getByRole('textbox').fill('1')
    assert.ok(await go.isDisabled())
    await checkAccessible(page)
    await page.keyboard.press('Escape')
    await dialog.waitFor({ state: 'detached' })
    assert.ok(files.drive.device.has('Photos/IMG_0001.jpg'))
    await page.getByRole('button', { name: 'See what would be deleted' }).click()
    await dialog.getByRole('textbox').fill(/\d+/.exec(await go.innerText())![0])
    await go.click()
    await dialog.waitFor({ state: 'detached' })
    await page.getByText('nothing was deleted yet').waitFor({ state: 'detached' })
    await until('they are gone', async () => !files.drive.device.has('Photos'))
    assert.ok(existsSync(join(files.place, 'docs/notes.txt')))
    assert.ok(files.drive.device.has('notes.txt'))
  })

  test('can be used by everybody', async (t) => {
    await t.test('all folders', (inner) =>
      checkEveryLook(inner, browser, {
        url: files.site.url,
        path: '/files',
        ready: (page) => page.locator('.folder-card').getByText('on both sides').waitFor(),
      }),
    )
    await t.test('one folder', (inner) =>
      checkEveryLook(inner, browser, {
        url: files.site.url,
        path: '/files/docs',
        ready: async (page) => {
          await row(page, 'Family').click()
          await row(page, 'Letters').waitFor()
          await page.locator('.item-card').getByText('In step').waitFor()
        },
      }),
    )
  })

  test('a folder that is not there is said to be not there', async (t) => {
    const page = await visit(t, browser, { url: files.site.url, path: '/files/nothing' })
    await page.getByText('There is no such folder').waitFor()
    await checkAccessible(page)
  })
})

describe('the settings of OneDrive', () => {
  test('an account is connected and a folder chosen, and both sides are merged', async (t) => {
    const files = await startFileSite({ isConnected: false })
    const browser = await openBrowser()
    t.after(async () => {
      await browser.close()
      await files.close()
    })
    files.drive.device.write('theirs.txt', 'from OneDrive')
    files.write('mine/own.txt', 'from here')
    const url = files.site.url.replace('127.0.0.1', 'localhost')
    signInBy(url, files.site.token)
    const expected = [/answer: 403/, /console: Failed to load resource/]
    const page = await visit(t, browser, { url, path: '/files', expected })
    await page.getByText('No folder is kept in step yet').waitFor()
    await page.getByRole('link', { name: 'Connect a OneDrive account' }).click()
    await page.getByRole('button', { name: 'Go on to Microsoft' }).click()
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.getByText(`the OneDrive of ${OWNER}`).waitFor()
    await page.getByRole('link', { name: 'Back to Tidemark' }).click()
    const section = page.getByRole('region', { name: 'OneDrive', exact: true })
    await section.getByText('Connected', { exact: true }).waitFor()
    await checkAccessible(page)
    await page.getByLabel('Folder', { exact: true }).fill('/opt/somewhere')
    await page.getByRole('button', { name: 'Keep it in step' }).click()
    await page.getByRole('alert').getByText('/opt/somewhere is not there').waitFor()
    await checkAccessible(page)
    const mine = join(files.place, 'mine')
    await page.getByLabel('Folder', { exact: true }).fill(mine)
    await page.getByRole('button', { name: 'Keep it in step' }).click()
    await page.getByRole('heading', { name: 'mine', level: 1 }).waitFor()
    await row(page, 'theirs.txt').waitFor()
    await row(page, 'own.txt').waitFor()
    const isMerged = (): boolean => files.drive.device.has('own.txt') && existsSync(join(mine, 'theirs.txt'))
    await until('both sides are merged', async () => isMerged())
    assert.equal(files.read('mine/theirs.txt'), 'from OneDrive')
    const stop = page.getByRole('button', { name: 'Stop keeping it in step …' })
    await stop.click()
    const dialog = page.getByRole('dialog', { name: 'Stop keeping mine in step?' })
    await dialog.getByText('Only the sync ends. All files stay where they are').waitFor()
    await checkAccessible(page)
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    await row(page, 'own.txt').waitFor()
    await stop.click()
    await dialog.getByRole('button', { name: 'Stop keeping it in step' }).click()
    await page.getByText('mine is not kept in step any more.').waitFor()
    await page.getByText('No folder is kept in step yet').waitFor()
    assert.equal(files.read('mine/theirs.txt'), 'from OneDrive')
    assert.ok(files.drive.device.has('own.txt'))
  })

  test('a folder that somebody shares is chosen from the list, and a withdrawn one says so and keeps its files', async (t) => {
    const files = await startFileSite({ others: [BEN] })
    const browser = await openBrowser()
    t.after(async () => {
      await browser.close()
      await files.close()
    })
    const ben = files.driveOf(BEN)
    ben.device.write('Team/plan.txt', 'the plan')
    ben.share('Team', OWNER, 'read')
    const page = await visit(t, browser, { url: files.site.url, path: '/settings' })
    const place = page.getByLabel('Keep it in step with')
    await place.selectOption({ label: 'A shared folder, by its link' })
    await page.getByLabel('Link of the shared folder').waitFor()
    await checkAccessible(page)
    await place.selectOption({ label: 'Team (ben), shared with you' })
    await page.getByLabel('Folder', { exact: true }).fill(join(files.place, 'team'))
    await page.getByRole('button', { name: 'Keep it in step' }).click()
    await page.getByRole('heading', { name: 'team', level: 1 }).waitFor()
    await row(page, 'plan.txt').waitFor()
    await page.getByText(`Only from OneDrive to here`).waitFor()
    await page.getByText(`${OWNER}, shared by ben`).waitFor()
    await until('it is here', async () => existsSync(join(files.place, 'team/plan.txt')))

    ben.unshare('Team', OWNER)
    await files.site.post('/api/files/folders/team/sync')
    await page
      .getByText('ben has deleted this folder, or does not share it with you any more')
      .first()
      .waitFor()
    await checkAccessible(page)
    assert.equal(files.read('team/plan.txt'), 'the plan')
  })
})
