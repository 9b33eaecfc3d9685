/** Accounts and configuration on the page: connecting in the browser, health, quota, forgetting, signing in. */
import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Browser, Page } from 'playwright-core'
import { withToken } from '../../src/server/server.suite.ts'
import { googleClient } from '../../src/sim/google/sign-in.ts'
import { openBrowser, visit } from './browser.ts'
import { checkEveryLook } from './every-look.ts'
import { checkAccessible, checkNoSideScroll, NARROW_PX } from './look.ts'
import { ADDRESS, type Site, startSite, until } from './site.ts'

const BOB = 'bob@example.com'
const OLDER_TIER = '15000'

const account = (page: Page, name: string) =>
  page.locator('.card').filter({ has: page.getByRole('heading', { name, exact: true }) })

describe('the settings page', () => {
  let browser: Browser
  let site: Site
  before(async () => {
    site = await startSite({
      messages: 0,
      accounts: [
        { address: ADDRESS, messages: 25, years: 1 },
        { address: BOB, messages: 8, years: 1 },
      ],
      settings: {
        TIDEMARK_GMAIL_CLIENT_ID: googleClient.id,
        TIDEMARK_GMAIL_CLIENT_SECRET: googleClient.secret,
        TIDEMARK_GMAIL_UNITS_PER_MINUTE: OLDER_TIER,
      },
    })
    await site.settled()
    browser = await openBrowser()
  })
  after(async () => {
    await browser?.close()
    await site?.close()
  })

  const tokensOf = (address: string): number =>
    site.sim.gmail.grants.list().refresh.filter((grant) => grant.address === address).length
  /** Through Google's page, as far as the page that Google sends the browser back to. */
  const signIn = async (page: Page, access: string, decision: 'Allow' | 'Deny'): Promise<void> => {
    const ofGmail = page.getByRole('region', { name: 'Gmail', exact: true })
    await ofGmail.getByRole('radio', { name: access }).check()
    await ofGmail.getByRole('button', { name: 'Go on to Google' }).click()
    await page.getByRole('heading', { name: 'Sign in to the simulated cloud' }).waitFor()
    await page.getByLabel('Account').selectOption(BOB)
    await page.getByRole('button', { name: decision }).click()
  }

  test('can be used by everybody', (t) =>
    checkEveryLook(t, browser, {
      url: site.url,
      path: '/settings',
      shot: 'settings',
      ready: async (page) => {
        await account(page, ADDRESS).waitFor()
        await page.getByRole('row').nth(3).waitFor()
      },
    }))

  test('an account shows its health, its books, and its quota with the tier', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/settings' })
    const ann = account(page, ADDRESS)
    await ann.getByText('In step').waitFor()
    const { stored = 0 } = (await site.overview()).streams.find(({ name }) => name.endsWith(ADDRESS)) ?? {}
    assert.ok(stored > 0)
    assert.match(await ann.innerText(), new RegExp(`\\b${stored}\\b`))
    const quota = ann.locator('.stat', { hasText: 'Quota a minute' })
    assert.match(await quota.innerText(), /15,000/)
    assert.match(await quota.innerText(), /tier of projects from before May 2026/)
    await ann.getByText('May do everything, also delete for good').waitFor()
    await ann.getByRole('button', { name: 'Pause' }).click()
    await ann.getByText('Nothing is fetched until it is resumed.').waitFor()
    await checkAccessible(page)
    await ann.getByRole('button', { name: 'Resume' }).click()
    await ann.getByText('In step').waitFor()
    await ann.getByRole('button', { name: 'Sync now' }).click()
    await page.locator('.toast').filter({ hasText: ADDRESS }).first().waitFor()
  })

  test('an account is forgotten only when its name is typed, and its token is given back', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/settings' })
    await account(page, BOB).getByRole('button', { name: 'Remove' }).click()
    const dialog = page.getByRole('dialog')
    const forget = dialog.getByRole('button', { name: 'Forget the account' })
    assert.ok(await forget.isDisabled())
    await checkAccessible(page)
    await dialog.getByRole('button', { name: 'Cancel' }).click()
    assert.equal(await account(page, BOB).count(), 1)
    const before = tokensOf(BOB)
    await account(page, BOB).getByRole('button', { name: 'Remove' }).click()
    await dialog.getByRole('textbox').fill(BOB)
    await forget.click()
    await page
      .getByText(`The account ${BOB} is forgotten. Its archive stays where it is.`, { exact: true })
      .waitFor()
    await account(page, BOB).waitFor({ state: 'detached' })
    assert.equal(tokensOf(BOB), before - 1)
    assert.equal(await account(page, ADDRESS).count(), 1)
  })

  test('an account that is not allowed at Google is not connected, and the page says what to do', async (t) => {
    const refused = [/answer: 422/, /console: Failed to load resource/]
    const page = await visit(t, browser, { url: site.url, path: '/settings', expected: refused })
    await signIn(page, 'Read only', 'Deny')
    await page.getByRole('heading', { name: 'Not connected' }).waitFor()
    await page.getByText('The access was not allowed.').waitFor()
    await page.getByRole('link', { name: 'Back to Tidemark' }).click()
    await account(page, ADDRESS).waitFor()
    assert.equal(await account(page, BOB).count(), 0)
  })

  test('an account is connected in the browser, and its mail is copied at once', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/settings' })
    await signIn(page, 'Read only', 'Allow')
    await page.getByRole('heading', { name: 'Connected' }).waitFor()
    await page.getByText(`Tidemark works for ${BOB} now`).waitFor()
    assert.equal(page.url(), `${site.url}/connected`, 'what Google answered does not stay in the address')
    await checkAccessible(page)
    await page.getByRole('link', { name: 'Back to Tidemark' }).click()
    const bob = account(page, BOB)
    await bob.getByText('In step').waitFor()
    await bob.getByText('May read only').waitFor()
    await bob.getByText('without spam').waitFor()
    // What may only read cannot take mail out: the page that frees up Gmail says so before anybody tries.
    await page.getByRole('link', { name: 'Free up Gmail' }).click()
    await page.getByLabel('Account').selectOption(BOB)
    await page.getByText('Tidemark may only read this account.').waitFor()
  })

  test('an account that Google no longer lets in asks to be connected again', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/settings' })
    const bob = account(page, BOB)
    await bob.getByText('In step').waitFor()
    site.sim.gmail.grants.revokeAccount(BOB)
    await site.post('/api/mail/sync', { account: BOB })
    await bob.getByText('Sign in again', { exact: true }).waitFor()
    await bob.getByText('Google no longer lets Tidemark in.').waitFor()
    await checkAccessible(page)
    await bob.getByRole('button', { name: 'Connect again' }).click()
    await signIn(page, 'Everything', 'Allow')
    await page.getByRole('heading', { name: 'Connected again' }).waitFor()
    await page.getByRole('link', { name: 'Back to Tidemark' }).click()
    await bob.getByText('In step').waitFor()
    await bob.getByText('May do everything, also delete for good').waitFor()
  })

  test('the configuration shows what holds and what said so, and no secret', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/settings#config' })
    await page.getByLabel('Find a setting').fill('units_per_minute')
    const row = page.getByRole('row').filter({ hasText: 'gmail.units_per_minute' })
    await row.getByText(OLDER_TIER, { exact: true }).waitFor()
    await row.getByText('TIDEMARK_GMAIL_UNITS_PER_MINUTE').filter({ visible: true }).waitFor()
    await page.getByLabel('Find a setting').fill('client_secret')
    await page.getByRole('row').filter({ hasText: 'gmail.client_secret' }).waitFor()
    assert.ok(!(await page.content()).includes(googleClient.secret))
    await page.getByLabel('Find a setting').fill('no such thing')
    await page.getByText('No such setting').waitFor()
    await page.getByLabel('Find a setting').fill('')
    await page.getByRole('switch', { name: 'Only what was set' }).check()
    await until(
      'only what was set is listed',
      async () => (await page.getByText('default', { exact: true }).count()) === 0,
    )
  })

  test('colours are chosen here, and stay', async (t) => {
    const page = await visit(t, browser, { url: site.url, path: '/settings' })
    await page.getByRole('group', { name: 'Colours' }).getByRole('radio', { name: 'Dark' }).check()
    const background = (): Promise<string> =>
      page.evaluate(() => getComputedStyle(document.body).backgroundColor)
    const dark = await background()
    await page.reload()
    await account(page, ADDRESS).waitFor()
    assert.equal(await background(), dark)
    await page.getByRole('group', { name: 'Colours' }).getByRole('radio', { name: 'Light' }).check()
    assert.notEqual(await background(), dark)
  })
})

describe('the sign-in page', () => {
  const signedOut = [/answer: 401/, /console: Failed to load resource/]
  let browser: Browser
  let site: Site
  before(async () => {
    site = await startSite({ messages: 5 })
    await site.settled()
    browser = await openBrowser()
  })
  after(async () => {
    await browser?.close()
    await site?.close()
  })

  test('refuses a wrong token in words, lets the right one in where it wanted to go, and out again', async (t) => {
    const page = await visit(t, browser, {
      url: site.url,
      path: '/search?q=in:inbox',
      expected: signedOut,
      signedIn: false,
    })
    await page.getByRole('heading', { name: 'Sign in to Tidemark' }).waitFor()
    assert.equal(await page.getByRole('navigation').count(), 0)
    await page.getByLabel('Token').fill('not-the-token-of-the-house')
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByText('That is not the token of this server.').waitFor()
    assert.equal(await page.getByLabel('Token').getAttribute('aria-invalid'), 'true')
    await checkAccessible(page)
    await page.getByLabel('Token').fill(site.token)
    await page.keyboard.press('Enter')
    await page.waitForURL((url) => url.pathname === '/search' && url.searchParams.get('q') === 'in:inbox')
    await page.locator('.search-status').getByText('message').waitFor()
    await page.locator('.live-text', { hasText: 'Live' }).waitFor()
    const kept = await page.evaluate(() => JSON.stringify(localStorage))
    assert.ok(!kept.includes(site.token))
    // Cookies go to every port of the host, and so to services of others: there is none.
    assert.deepEqual(await page.context().cookies(), [])
    const session = /session-[\w-]+/.exec(kept)?.[0]
    const asked = (): Promise<Response> => fetch(`${site.url}/api/overview`, withToken({}, session))
    assert.equal((await asked()).status, 200)
    await page.reload()
    await page.locator('.live-text', { hasText: 'Live' }).waitFor()
    await page.getByRole('link', { name: 'Settings' }).click()
    await page.getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('heading', { name: 'Sign in to Tidemark' }).waitFor()
    // The session is over, not only forgotten here.
    assert.equal((await asked()).status, 401)
    assert.equal(await page.evaluate(() => localStorage.getItem('tidemark.session')), null)
    await page.goto('/clean-up')
    await page.getByRole('heading', { name: 'Sign in to Tidemark' }).waitFor()
  })

  test('the printed address opens signed in, once, and nothing of it stays in the address', async (t) => {
    const path = site.signIn.slice(site.url.length)
    const first = await visit(t, browser, { url: site.url, path, expected: signedOut, signedIn: false })
    await first.getByRole('heading', { name: 'Overview' }).waitFor()
    assert.equal(first.url(), `${site.url}/`)
    await first.goto('/work')
    await first.locator('.live-text', { hasText: 'Live' }).waitFor()
    const second = await visit(t, browser, { url: site.url, path, expected: signedOut, signedIn: false })
    await second.getByText('This address has been used, or is too old.').waitFor()
    assert.equal(new URL(second.url()).hash, '')
    const { stdout } = await site.world.run('sign-in', '--port', new URL(site.url).port)
    // Only what is behind the # changes: the page itself has to notice.
    await second.goto(stdout.trim().slice(site.url.length))
    await second.getByRole('heading', { name: 'Overview' }).waitFor()
  })

  test('leads to no other site', async (t) => {
    const page = await visit(t, browser, {
      url: site.url,
      path: '/sign-in?next=//elsewhere.example/',
      expected: signedOut,
      signedIn: false,
    })
    await page.getByLabel('Token').fill(site.token)
    await page.getByRole('button', { name: 'Sign in' }).click()
    await page.getByRole('heading', { name: 'Overview' }).waitFor()
    assert.equal(new URL(page.url()).origin, site.url)
  })

  test('can be used by everybody', (t) =>
    checkEveryLook(t, browser, {
      url: site.url,
      path: '/sign-in',
      shot: 'sign-in',
      expected: signedOut,
      signedIn: false,
      ready: (page) => page.getByLabel('Token').waitFor(),
    }))

  test('the page of an answer from Google fits a narrow screen', async (t) => {
    const unknown = [/answer: 404/, /console: Failed to load resource/]
    const path = '/oauth/gmail/callback?state=unknown&code=x'
    const page = await visit(t, browser, { url: site.url, path, widthPx: NARROW_PX, expected: unknown })
    await page.getByRole('heading', { name: 'Nothing here' }).waitFor()
    await checkAccessible(page)
    await checkNoSideScroll(page)
  })
})
