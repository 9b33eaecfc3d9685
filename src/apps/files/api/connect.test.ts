import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { ANN, type Body, type FilesWorld, startFilesApi, until } from './files-api.suite.ts'

const CALLBACK_PATH = '/oauth/onedrive/callback'

/** Where the page of the answer goes on to. */
function hrefOf(body: string): string {
  return /<a href="([^"]+)"/.exec(body)?.[1]?.replaceAll('&amp;', '&') ?? ''
}

describe('connecting a OneDrive account in the browser', () => {
  let world: FilesWorld
  before(async () => {
    world = await startFilesApi()
    world.sim.oauth.autoApprove = ANN
  })
  after(async () => {
    assert.deepEqual(world.errors, [])
    await world.close()
  })
  const begin = async (access = 'readwrite'): Promise<{ url: string; state: string }> => {
    const { status, body } = await world.post('/api/accounts/connect', { service: 'onedrive', access })
    assert.equal(status, 200, JSON.stringify(body))
    return body as { url: string; state: string }
  }
  /** As the browser goes to Microsoft and comes back. */
  const comeBack = async (url: string): Promise<{ status: number; body: Body }> => {
    const location = (await fetch(url, { redirect: 'manual' })).headers.get('location')
    assert.ok(location)
    const page = await world.get(CALLBACK_PATH + new URL(location).search)
    if (page.status !== 200) return page
    const { searchParams } = new URL(location)
    const answer = { state: searchParams.get('state'), code: searchParams.get('code') }
    assert.match(hrefOf(page.body), /^http:\/\/localhost\/connected#state=/)
    return world.post('/api/accounts/connected', answer)
  }

  test('goes to Microsoft and back, and the account is there', async () => {
    const { url, state } = await begin()
    const asked = new URL(url).searchParams
    assert.equal(asked.get('state'), state)
    assert.equal(new URL(asked.get('redirect_uri')!).hostname, 'localhost')
    assert.match(asked.get('scope') ?? '', /Files\.ReadWrite/)
    const page = await comeBack(url)
    assert.equal(page.status, 200, JSON.stringify(page.body))
    assert.equal(page.body.title, 'Connected')
    assert.match(page.body.text, /the OneDrive of ann@example\.com now \(read and write\)/)
    const { items } = (await world.get('/api/accounts')).body
    assert.deepEqual(items, [
      {
        service: 'onedrive',
        name: ANN,
        title: `OneDrive of ${ANN}`,
        state: 'ready',
        access: 'readwrite',
        user: 'owner',
        apps: { files: { folders: [] } },
      },
    ])
    assert.equal((await world.add()).status, 201)
  })

  test('again with less access says so, and the account stays the same', async () => {
    const page = await comeBack((await begin('readonly')).url)
    assert.equal(page.body.title, 'Connected again')
    assert.match(page.body.text, /read only/)
    assert.deepEqual(
      (await world.get('/api/accounts')).body.items.map(({ access }: Body) => access),
      ['readonly'],
    )
  })

  test('again after the access was taken away lets its folders go on at once, and ends the alert', async () => {
    const stream = 'files:docs'
    const { engine, ledger } = world.runtime
    await world.sync()
    world.sim.onedrive.grants.revokeAccount(ANN)
    await engine.enqueue(world.runtime.files.kinds.sync, { drive: 'docs' }, { stream })
    await until(async () => (await ledger.alerts()).length > 0 && (await ledger.pauses()).length > 0)
    const before = (await world.get('/api/overview')).body
    assert.deepEqual(
      [before.verdict.text, before.alerts.map(({ condition }: Body) => condition)],
      ['docs must sign in again.', ['sign-in']],
    )
    assert.equal((await comeBack((await begin()).url)).body.title, 'Connected again')
    assert.deepEqual(await ledger.pauses(), [])
    await until(async () => (await ledger.alerts()).length === 0)
    await world.settled()
    assert.deepEqual((await world.get('/api/overview')).body.verdict.state, 'settled')
  })

  test('an account with which a folder is kept in step is forgotten only by who insists, and no file goes', async () => {
    const path = `/api/accounts/onedrive/${encodeURIComponent(ANN)}`
    const remove = async (query: string): Promise<{ status: number; body: Body }> => {
      const answer = await world.request(path + query, { method: 'DELETE', headers: { 'x-tidemark': '1' } })
      return { status: answer.status, body: await answer.json() }
    }
    const refused = await remove('')
    assert.deepEqual([refused.status, refused.body.code], [409, 'account-in-use'])
    const done = await remove('?force=true')
    assert.match(
      done.body.text,
      /is forgotten\. All files stay, here and in OneDrive\. Microsoft lets no program/,
    )
    assert.deepEqual((await world.get('/api/accounts')).body.items, [])
    assert.equal((await comeBack((await begin()).url)).body.title, 'Connected')
  })

  test('answers that nobody waits for, or that say no, change nothing', async () => {
    const { url, state } = await begin()
    assert.equal((await world.get(`${CALLBACK_PATH}?state=other&code=x`)).status, 404)
    const denied = await world.get(`${CALLBACK_PATH}?state=${state}&error=access_denied`)
    assert.equal(denied.status, 422)
    assert.match(denied.body, /The access was not allowed\./)
    assert.equal((await comeBack(url)).status, 404)
    const other = await begin()
    const code = '<script>'
    const page = await world.get(`${CALLBACK_PATH}?state=${other.state}&code=${code}`)
    assert.ok(!page.body.includes(code))
    const wrong = await world.post('/api/accounts/connected', { state: other.state, code })
    assert.equal(wrong.status, 422)
    assert.ok(!JSON.stringify(wrong.body).includes(code))
  })
})
