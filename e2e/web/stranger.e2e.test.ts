/**
 * A stranger's path, as one: nothing is set up, no account is connected. The guided set-up, the first account, the first
 * sync, the first thing found, a folder with its OneDrive, and a conflict that is decided; all in the browser, with a
 * client id and a secret that are typed there.
 */
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { openBrowser, visit, type WatchedPage } from './browser.ts'
import { checkEveryLook } from './every-look.ts'
import { type FileSite, OWNER, startFileSite } from './file-site.ts'
import { letter } from './letter.ts'
import { checkAccessible, checkNoSideScroll, NARROW_PX } from './look.ts'
import { until } from './site.ts'

const LETTER = 'The allotment by the canal'

describe('a stranger', () => {
  let browser: Browser
  let files: FileSite
  before(async () => {
    files = await startFileSite({ isSetUp: false })
    files.drive.device.write('Plans/garden.txt', 'roses')
    const raw = Buffer.from(letter({ subject: LETTER, text: 'Dear Ann, the plot is free from May.' }))
    files.site.sim.gmail.mailbox(OWNER).insert({ raw, labelIds: ['INBOX'], internalMs: Date.UTC(2024, 3, 1) })
    browser = await openBrowser()
  })
  after(async () => {
    await browser?.close()
    await files?.close()
  })

  const region = (page: Page, name: string) => page.getByRole('region', { name, exact: true })
  const toSettings = (page: Page): Promise<void> =>
    page.getByRole('navigation', { name: 'Main' }).getByRole('link', { name: 'Settings' }).click()

  /** Through the page of the provider, as a person does. */
  async function allow(page: Page, company: string): Promise<void> {
    await page.getByRole('button', { name: `Go on to ${company}` }).click()
    await page.getByRole('heading', { name: 'Sign in to the simulated cloud' }).waitFor()
    await page.getByLabel('Account').selectOption(OWNER)
    await page.getByRole('button', { name: 'Allow' }).click()
    await page.getByRole('heading', { name: 'Connected' }).waitFor()
    await page.getByRole('link', { name: 'Back to Tidemark' }).click()
  }

  test('is led by numbered steps that everybody can use, in every look', (t) =>
    checkEveryLook(t, browser, {
      url: files.site.url,
      path: '/settings/setup/gmail',
      shot: 'setup',
      ready: (page) => page.getByRole('heading', { name: 'Enter its ID and secret here' }).waitFor(),
    }))

  test('sets up both services, connects, finds a mail, adds a folder, and decides a conflict', async (t) => {
    const refusals = [/answer: 4(?:01|22)/, /console: Failed to load resource/]
    const path = files.site.signIn.slice(files.site.url.length)
    const page = await visit(t, browser, { url: files.site.url, path, expected: refusals, signedIn: false })
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    await setUpGmail(page)
    await findTheLetter(page)
    await setUpOneDrive(page)
    await addFolder(page)
    await decide(page)
  })

  async function setUpGmail(page: WatchedPage): Promise<void> {
    const { clientId, clientSecret } = files.site.sim.gmail
    await toSettings(page)
    await region(page, 'Gmail').getByRole('link', { name: 'Set up Gmail' }).click()
    await page.getByRole('heading', { name: 'Set up Gmail', level: 1 }).waitFor()
    const steps = page.locator('.setup-step')
    await steps.nth(4).waitFor()
    assert.equal(await steps.count(), 5)
    for (const [at, link] of [
      [0, /projectcreate$/],
      [1, /gmail\.googleapis\.com$/],
      [3, /auth\/clients\/create$/],
    ] as const) {
      assert.match((await steps.nth(at).getByRole('link').first().getAttribute('href')) ?? '', link)
    }
    const enter = async (id: string, secret: string): Promise<void> => {
      await page.getByLabel('Client ID').fill(id)
      await page.getByLabel('Client secret').fill(secret)
      await page.getByRole('button', { name: 'Check and keep' }).click()
    }
    await enter('my-project', clientSecret)
    await page.getByRole('alert').getByText('This is not a client ID of Google.').waitFor()
    await enter(clientId, 'GOCSPX-of-another')
    await page.getByRole('alert').getByText('were not accepted as those of one client').waitFor()
    await checkAccessible(page)
    assert.equal(await page.getByRole('button', { name: 'Go on to Google' }).count(), 0)
    await enter(clientId, clientSecret)
    await steps.nth(4).getByText('The id and the secret are accepted.').waitFor()
    await steps.nth(3).getByText('The browser may be sent back').waitFor()
    assert.equal(
      await page.getByLabel('Client secret').inputValue(),
      '',
      'the secret does not stay on the page',
    )
    await checkAccessible(page)
    await page.setViewportSize({ width: NARROW_PX, height: 800 })
    await checkNoSideScroll(page)
    await page.setViewportSize({ width: 1280, height: 800 })
    assert.ok(await page.getByRole('radio', { name: 'Read only' }).isChecked())
    await allow(page, 'Google')
    await region(page, 'Gmail').getByText('In step').waitFor()
    await region(page, 'Gmail').getByText('May read only').waitFor()
  }

  async function findTheLetter(page: WatchedPage): Promise<void> {
    await page.goto('/search')
    await page.getByRole('combobox', { name: 'Search mail' }).fill('allotment canal')
    await page.locator('.result-subject', { hasText: LETTER }).click()
    await page.getByText('the plot is free from May').first().waitFor()
  }

  async function setUpOneDrive(page: WatchedPage): Promise<void> {
    await toSettings(page)
    await region(page, 'OneDrive').getByRole('link', { name: 'Set up OneDrive' }).click()
    await page.getByText('http://localhost/oauth/onedrive/callback').waitFor()
    await page
      .getByRole('button', { name: /^Copy redirect address/ })
      .first()
      .waitFor()
    await page.getByLabel('Application (client) ID').fill(files.site.sim.onedrive.clientId)
    await page.getByRole('button', { name: 'Check and keep' }).click()
    await page.getByText('Microsoft knows the app.').waitFor()
    await checkAccessible(page)
    await allow(page, 'Microsoft')
  }

  async function addFolder(page: WatchedPage): Promise<void> {
    const folder = join(files.place, 'Cloud')
    mkdirSync(folder)
    await page.getByLabel('Folder', { exact: true }).fill(folder)
    await page.getByLabel('When a file was changed on both sides').selectOption('Ask me')
    await page.getByRole('button', { name: 'Keep it in step' }).click()
    await page.getByRole('heading', { name: 'Cloud', level: 1 }).waitFor()
    await until('the first sync brought the file', async () => {
      const { state } = await files.status('Cloud')
      return state === 'in step'
    })
    assert.equal(files.read('Cloud/Plans/garden.txt'), 'roses')
  }

  async function decide(page: WatchedPage): Promise<void> {
    // Both sides are changed before either is looked at.
    await page.getByRole('button', { name: 'Pause' }).click()
    await page.getByText('This folder is paused').waitFor()
    files.write('Cloud/Plans/garden.txt', 'roses and tulips')
    files.drive.device.edit('Plans/garden.txt', 'only herbs')
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.getByText('This folder is paused').waitFor({ state: 'detached' })
    await files.site.post('/api/files/folders/Cloud/sync')
    await page.getByText('1 conflict to decide', { exact: true }).waitFor()
    await page.getByRole('link', { name: 'See the conflicts' }).click()
    await page.getByRole('link', { name: 'Plans/garden.txt' }).click()
    await page.getByRole('button', { name: 'Keep the one in the folder' }).click()
    await page.getByText('Kept from here', { exact: true }).waitFor()
    await until('OneDrive has it', async () =>
      files.drive.device.read('Plans/garden.txt')?.toString().includes('tulips'),
    )
  }
})
