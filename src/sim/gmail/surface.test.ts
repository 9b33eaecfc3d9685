/** What clients of other people ask for besides messages: a start for the history, settings, uploads in pieces, discovery. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { type Sim, startSim } from '../start.ts'
import { gmailScopes } from './scopes.ts'

const ANN = 'ann@example.com'
const BEN = 'ben@example.com'
const CHUNK_BYTES = 256 * 1024

type Json = Record<string, unknown>
type Answer = { status: number; headers: Headers; json: Json }

let sim: Sim
let token: string

before(async () => {
  sim = await startSim({
    seed: 11,
    gmail: {
      accounts: [ANN, BEN].map((address) => ({ address, messages: 300 })),
      quota: { unitsPerMinute: null },
    },
    drive: { users: [ANN], documents: 3 },
  })
  token = sim.gmail.issue(ANN, [gmailScopes.full, gmailScopes.settingsBasic]).accessToken
})
after(() => sim.close())
beforeEach(() => sim.faults.clear())

async function call(
  verb: string,
  path: string,
  { body, headers = {} }: { body?: unknown; headers?: Record<string, string> } = {},
): Promise<Answer> {
  const answer = await fetch(path.startsWith('http') ? path : sim.baseUrl + path, {
    method: verb,
    headers: { authorization: `Bearer ${token}`, ...headers },
    ...(body === undefined ? {} : { body: Buffer.isBuffer(body) ? body : JSON.stringify(body) }),
  })
  const text = await answer.text()
  const isJson = answer.headers.get('content-type')?.startsWith('application/json')
  return { status: answer.status, headers: answer.headers, json: isJson ? (JSON.parse(text) as Json) : {} }
}

const users = '/gmail/v1/users/me'
const get = (path: string): Promise<Answer> => call('GET', users + path)
const reasonOf = ({ json }: Answer): unknown =>
  (json.error as { errors: { reason: string }[] }).errors[0]!.reason

describe('the history of a fresh mailbox', () => {
  test('the historyId of its newest message is a start that history.list takes', async () => {
    for (const seed of [1, 2, 3, 4, 5]) {
      const fresh = await startSim({ seed, gmail: { accounts: [{ address: ANN, messages: 400 }] } })
      const mailbox = fresh.gmail.mailbox(ANN)
      const [newest] = mailbox.newest(1)
      const headers = { authorization: `Bearer ${fresh.gmail.accounts[0]!.accessToken}` }
      const url = `${fresh.baseUrl}${users}/history?startHistoryId=${newest!.historyId}&maxResults=500`
      const answer = await fetch(url, { headers })
      assert.equal(answer.status, 200)
      const { history = [] } = (await answer.json()) as { history?: { messages: { id: string }[] }[] }
      const told = new Set(history.flatMap(({ messages }) => messages.map(({ id }) => id)))
      // Who has read up to the newest one lacks exactly what came after it.
      const later = [...mailbox.dump()].filter(({ id }) => mailbox.get(id)!.historyId > newest!.historyId)
      assert.deepEqual(told, new Set(later.map(({ id }) => id)))
      await fresh.close()
    }
  })

  test('what is older than its newest message is too old, and nothing is when it is empty', async () => {
    const oldest = sim.gmail.mailbox(ANN).newest(300).at(-1)!
    assert.equal((await get(`/history?startHistoryId=${oldest.historyId}`)).status, 404)
    const empty = await startSim({ gmail: { accounts: [{ address: ANN, messages: 0 }] } })
    const mailbox = empty.gmail.mailbox(ANN)
    assert.notEqual(mailbox.history({ startHistoryId: mailbox.historyId }), 'expired')
    await empty.close()
  })
})

describe('a resumable upload', () => {
  const mail = Buffer.from(
    `From: a@example.org\r\nTo: ${ANN}\r\nSubject: long\r\n\r\n${'x'.repeat(300_000)}\r\n`,
  )

  async function begin(path: string, body: unknown = {}, verb = 'POST'): Promise<string> {
    const begun = await call(verb, `/upload${users}${path}?uploadType=resumable&fields=id,labelIds`, { body })
    assert.equal(begun.status, 200)
    return begun.headers.get('location')!
  }
  const put = (url: string, from: number, to: number): Promise<Answer> =>
    call('PUT', url, {
      body: mail.subarray(from, to),
      headers: { 'content-range': `bytes ${from}-${to - 1}/${mail.length}` },
    })

  test('of messages.insert takes its bytes in pieces, says how far it is, and ends once', async () => {
    const url = await begin('/messages', { labelIds: ['INBOX'] })
    const first = await put(url, 0, CHUNK_BYTES)
    assert.deepEqual([first.status, first.headers.get('range')], [308, `bytes=0-${CHUNK_BYTES - 1}`])
    const asked = await call('PUT', url, { headers: { 'content-range': `bytes */${mail.length}` } })
    assert.deepEqual([asked.status, asked.headers.get('range')], [308, `bytes=0-${CHUNK_BYTES - 1}`])
    const last = await put(url, CHUNK_BYTES, mail.length)
    assert.deepEqual([last.status, last.json.labelIds], [200, ['INBOX']])
    assert.deepEqual(sim.gmail.mailbox(ANN).get(String(last.json.id))!.raw(), mail)
    assert.deepEqual((await put(url, CHUNK_BYTES, mail.length)).json, last.json)
  })

  test('of import, send, and drafts ends as the same call without it', async () => {
    for (const path of ['/messages/import', '/messages/send', '/drafts']) {
      const body = path === '/drafts' ? { message: {} } : {}
      // Some clients bring the bytes by POST.
      for (const verb of ['PUT', 'POST']) {
        const { status, json } = await call(verb, await begin(path, body), { body: mail })
        assert.deepEqual([status, typeof json.id], [200, 'string'], path)
      }
    }
    const draft = await call('POST', `${users}/drafts`, {
      body: { message: { raw: mail.toString('base64url') } },
    })
    const id = String(draft.json.id)
    const changed = await call('PUT', await begin(`/drafts/${id}`, { message: {} }, 'PUT'), { body: mail })
    assert.equal(changed.json.id, id)
    const sent = await call('PUT', await begin('/drafts/send', { id }), { body: mail })
    assert.ok((sent.json.labelIds as string[]).includes('SENT'))
  })

  test('that skips bytes, is of no multiple of 256 KiB, or somebody else’s is refused', async () => {
    const url = await begin('/messages')
    assert.equal((await put(url, CHUNK_BYTES, mail.length)).status, 400)
    assert.equal((await put(url, 0, 1000)).status, 400)
    const headers = { authorization: `Bearer ${sim.gmail.issue(BEN).accessToken}` }
    assert.equal((await call('PUT', url, { body: mail, headers })).status, 404)
    assert.equal(
      (await call('PUT', url.replace(/upload_id=\w+/, 'upload_id=none'), { body: mail })).status,
      404,
    )
  })

  test('is asked for by who may write, meets faults, and is paid for once', async () => {
    const headers = { authorization: `Bearer ${sim.gmail.issue(ANN, [gmailScopes.readonly]).accessToken}` }
    const path = `/upload${users}/messages?uploadType=resumable`
    assert.equal((await call('POST', path, { body: {}, headers })).status, 403)
    const url = await begin('/messages')
    const paid = sim.gmail.quota.usage(ANN).unitsUsed
    sim.faults.set({ rules: [{ do: 'error', status: 503, methods: ['messages.upload'], max: 1 }] })
    assert.equal((await put(url, 0, CHUNK_BYTES)).status, 503)
    assert.equal((await put(url, 0, CHUNK_BYTES)).status, 308)
    assert.equal((await put(url, CHUNK_BYTES, mail.length)).status, 200)
    assert.equal(sim.gmail.quota.usage(ANN).unitsUsed, paid)
  })
})

describe('settings', () => {
  test('are read, and written by who may', async () => {
    assert.equal((await get('/settings/vacation')).json.enableAutoReply, false)
    const body = { enableAutoReply: true, responseSubject: 'Away' }
    assert.equal((await call('PUT', `${users}/settings/vacation`, { body })).status, 200)
    assert.equal((await get('/settings/vacation')).json.responseSubject, 'Away')
    for (const name of ['imap', 'pop', 'language', 'autoForwarding']) {
      assert.equal((await get(`/settings/${name}`)).status, 200, name)
    }
    const headers = { authorization: `Bearer ${sim.gmail.issue(ANN).accessToken}` }
    const refused = await call('PUT', `${users}/settings/vacation`, { body, headers })
    assert.deepEqual([refused.status, reasonOf(refused)], [403, 'insufficientPermissions'])
  })

  test('the address to send as is the account’s own', async () => {
    const { json } = await get('/settings/sendAs')
    assert.equal((json.sendAs as Json[])[0]!.sendAsEmail, ANN)
    const path = `/settings/sendAs/${encodeURIComponent(ANN)}`
    assert.equal((await call('PATCH', users + path, { body: { signature: 'A.' } })).json.signature, 'A.')
    assert.deepEqual([(await get(path)).json.signature, (await get(path)).json.isPrimary], ['A.', true])
    assert.equal((await get('/settings/sendAs/other@example.com')).status, 404)
  })

  test('filters are made, listed and deleted; one without criteria is refused', async () => {
    assert.deepEqual((await get('/settings/filters')).json, {})
    const body = { criteria: { from: 'x@example.org' }, action: { addLabelIds: ['STARRED'] } }
    const { json } = await call('POST', `${users}/settings/filters`, { body })
    assert.deepEqual((await get('/settings/filters')).json, { filter: [json] })
    assert.deepEqual((await get(`/settings/filters/${json.id}`)).json, json)
    const empty = await call('POST', `${users}/settings/filters`, { body: { action: body.action } })
    assert.deepEqual([empty.status, reasonOf(empty)], [400, 'invalidArgument'])
    assert.equal((await call('DELETE', `${users}/settings/filters/${json.id}`)).status, 204)
    assert.equal((await get(`/settings/filters/${json.id}`)).status, 404)
  })
})

describe('discovery', () => {
  type Method = { path: string; httpMethod: string; request?: Json; response?: Json; parameters: Json }
  type Resource = { methods?: Record<string, Method>; resources?: Record<string, Resource> }

  function methodsOf(resource: Resource, prefix = ''): [string, Method][] {
    return [
      ...Object.entries(resource.methods ?? {}).map(([name, method]): [string, Method] => [
        prefix + name,
        method,
      ]),
      ...Object.entries(resource.resources ?? {}).flatMap(([name, one]) =>
        methodsOf(one, `${prefix}${name}.`),
      ),
    ]
  }

  test('documents are at both addresses, need no sign-in, and name the host by which they were asked', async () => {
    for (const [name, version] of [
      ['gmail', 'v1'],
      ['drive', 'v3'],
    ]) {
      const headers = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'cloud.example' }
      const first = await fetch(`${sim.baseUrl}/discovery/v1/apis/${name}/${version}/rest`, { headers })
      const document = (await first.json()) as Json
      assert.deepEqual([first.status, document.name, document.version], [200, name, version])
      assert.equal(document.rootUrl, 'https://cloud.example/')
      const second = await fetch(`${sim.baseUrl}/$discovery/rest?version=${version}`, { headers })
      assert.deepEqual(await second.json(), document)
    }
    assert.equal((await fetch(`${sim.baseUrl}/$discovery/rest?version=v9`)).status, 404)
  })

  test('every method that is described is served, and every schema that is named is there', async () => {
    for (const [name, version] of [
      ['gmail', 'v1'],
      ['drive', 'v3'],
    ]) {
      const answer = await fetch(`${sim.baseUrl}/discovery/v1/apis/${name}/${version}/rest`)
      const document = (await answer.json()) as Resource & { schemas: Json; servicePath: string }
      const methods = methodsOf(document)
      assert.ok(methods.length > 20)
      for (const [id, { path, httpMethod }] of methods) {
        const url = `${sim.baseUrl}/${document.servicePath}${path.replaceAll(/\{\w+\}/g, 'me')}`
        // Without a token everything that is there is 401, and what is not there 404.
        assert.equal((await fetch(url, { method: httpMethod })).status, 401, `${name} ${id}`)
      }
      // A client makes a download of it only where it is told so.
      const files = document.resources?.files?.methods as Record<string, Json> | undefined
      assert.equal(files?.get?.supportsMediaDownload, files && true)
      const refs = [...JSON.stringify(document).matchAll(/"\$ref":"(\w+)"/g)].map((match) => match[1]!)
      for (const ref of refs) assert.ok(document.schemas[ref], ref)
    }
  })
})

test('the old address of the token endpoint gives tokens, too', async () => {
  const body = new URLSearchParams({
    grant_type: 'refresh_token',
    refresh_token: sim.gmail.accounts[0]!.refreshToken,
    client_id: sim.gmail.clientId,
    client_secret: sim.gmail.clientSecret,
  })
  const answer = await fetch(`${sim.baseUrl}/o/oauth2/token`, { method: 'POST', body })
  assert.equal(answer.status, 200)
  assert.equal(typeof ((await answer.json()) as Json).access_token, 'string')
})
