/** Google's Gmail client, in the version of today and in an older one, and one that builds itself from discovery. */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { auth, type gmail_v1, gmail as googleGmail } from '@googleapis/gmail'
import { Discovery, OAuth2Client } from 'googleapis-common'
import { auth as olderAuth, gmail as olderGmail } from 'googleapis-gmail-older'
import { gmailScopes } from '../../src/sim/gmail/scopes.ts'
import type { Sim, SimOptions } from '../../src/sim/start.ts'
import { ANN, type Call, type Client, callsOf, methodsOf, refusal } from './harness.ts'

const MESSAGES = 60
const SETTINGS = [
  'https://www.googleapis.com/auth/gmail.settings.basic',
  'https://www.googleapis.com/auth/gmail.settings.sharing',
]
const world: SimOptions = {
  gmail: { accounts: [{ address: ANN, messages: MESSAGES }], quota: { unitsPerMinute: null } },
}
const me = { userId: 'me' } as const

export const gmailClients: readonly Client[] = [
  {
    client: '@googleapis/gmail 22',
    world,
    calls: (sim) => gmailCalls(sim, newClient(sim)),
    leftOut: leftOut(),
  },
  { client: '@googleapis/gmail 5', world, calls: (sim) => gmailCalls(sim, olderClient(sim)) },
  { client: 'googleapis-common 9 (Gmail by discovery)', world, calls: discoveryCalls },
]

function newClient(sim: Sim): gmail_v1.Gmail {
  const { clientId, clientSecret, tokenUrl } = sim.gmail
  const signedIn = new auth.OAuth2({ clientId, clientSecret, endpoints: { oauth2TokenUrl: tokenUrl } })
  const { refreshToken } = sim.gmail.issue(ANN, [gmailScopes.full, ...SETTINGS])
  signedIn.setCredentials({ refresh_token: refreshToken })
  return googleGmail({ version: 'v1', auth: signedIn, rootUrl: sim.baseUrl, retry: false })
}

/** Its addresses of sign-in cannot be changed, so it is given an access token. */
function olderClient(sim: Sim): gmail_v1.Gmail {
  const signedIn = new olderAuth.OAuth2()
  signedIn.setCredentials({ access_token: sim.gmail.issue(ANN, [gmailScopes.full, ...SETTINGS]).accessToken })
  const client = olderGmail({ version: 'v1', auth: signedIn, rootUrl: sim.baseUrl, retry: false })
  return client as unknown as gmail_v1.Gmail
}

/** What the client has and no call below uses. */
function leftOut(): string[] {
  const nowhere = googleGmail({ version: 'v1' })
  const unused = { baseUrl: '' } as Sim
  const called = gmailCalls(unused, nowhere).flatMap(({ call }) => call.split(' ')[0]!)
  return methodsOf(nowhere).filter((method) => !called.includes(method))
}

function gmailCalls(sim: Sim, gmail: gmail_v1.Gmail): readonly Call[] {
  return [
    ...readingCalls(gmail),
    ...writingCalls(sim, gmail),
    ...labelCalls(gmail),
    ...draftCalls(sim, gmail),
    ...settingsCalls(gmail),
  ]
}

function readingCalls({ users, context }: gmail_v1.Gmail): Call[] {
  let ids: string[] = []
  return callsOf({
    'users.getProfile': async () => {
      const { data } = await users.getProfile(me)
      assert.deepEqual([data.emailAddress, data.messagesTotal], [ANN, MESSAGES])
    },
    'users.messages.list': async () => {
      const { data } = await users.messages.list({ ...me, maxResults: 20, includeSpamTrash: true })
      ids = data.messages!.map(({ id }) => id!)
      assert.equal(ids.length, 20)
    },
    'users.messages.list by pages': async () => {
      let pageToken: string | undefined
      const all = new Set<string>()
      do {
        const { data } = await users.messages.list({
          ...me,
          maxResults: 25,
          includeSpamTrash: true,
          pageToken,
        })
        for (const { id } of data.messages ?? []) all.add(id!)
        pageToken = data.nextPageToken ?? undefined
      } while (pageToken)
      assert.equal(all.size, MESSAGES)
    },
    'users.messages.list with q': async () => {
      const { data } = await users.messages.list({ ...me, q: 'in:anywhere after:2000/01/01', maxResults: 5 })
      assert.equal(data.messages?.length, 5)
    },
    'users.messages.get': async () => {
      for (const format of ['full', 'raw', 'metadata', 'minimal']) {
        const { data } = await users.messages.get({ ...me, id: ids[0]!, format })
        assert.equal(data.id, ids[0])
      }
    },
    'users.messages.get with fields': async () => {
      const { data } = await users.messages.get({ ...me, id: ids[0]!, fields: 'id,historyId' })
      assert.deepEqual(Object.keys(data), ['id', 'historyId'])
    },
    'users.messages.get of a malformed id is 400': async () =>
      assert.equal(await refusal(users.messages.get({ ...me, id: 'not an id' })), 400),
    'users.messages.get of an unknown id is 404': async () =>
      assert.equal(await refusal(users.messages.get({ ...me, id: 'f'.repeat(16) })), 404),
    'users.history.list from the newest message of a fresh mailbox': async () => {
      const { data } = await users.messages.get({ ...me, id: ids[0]! })
      const { data: page } = await users.history.list({ ...me, startHistoryId: data.historyId! })
      assert.ok(BigInt(page.historyId!) >= BigInt(data.historyId!))
    },
    'users.threads.list': async () => {
      const { data } = await users.threads.list({ ...me, maxResults: 5 })
      assert.equal(data.threads!.length, 5)
    },
    'users.threads.get': async () => {
      const { data } = await users.messages.get({ ...me, id: ids[0]!, format: 'minimal' })
      const thread = await users.threads.get({ ...me, id: data.threadId! })
      assert.ok(thread.data.messages!.some(({ id }) => id === ids[0]))
    },
    'batch (messages.get)': async () => {
      const boundary = 'batch_of_three'
      const parts = ids
        .slice(0, 3)
        .map(
          (id, at) =>
            `--${boundary}\r\nContent-Type: application/http\r\nContent-ID: <item${at}>\r\n\r\nGET /gmail/v1/users/me/messages/${id}?format=minimal\r\n\r\n`,
        )
      const { _options } = context
      const client = _options.auth as unknown as {
        request(options: object): Promise<{ data: string; status: number }>
      }
      const answer = await client.request({
        url: `${_options.rootUrl}/batch/gmail/v1`,
        method: 'POST',
        headers: { 'content-type': `multipart/mixed; boundary=${boundary}` },
        data: `${parts.join('')}--${boundary}--`,
        responseType: 'text',
      })
      assert.equal(answer.data.match(/HTTP\/1\.1 200/g)?.length, 3)
    },
    'users.watch': async () => {
      const { data } = await users.watch({ ...me, requestBody: { topicName: 'projects/p/topics/t' } })
      assert.ok(data.expiration)
    },
    'users.stop': async () => assert.equal((await users.stop(me)).status, 204),
  })
}

function mail(subject: string, body = 'Hello.'): Buffer {
  return Buffer.from(`From: a@example.org\r\nTo: ${ANN}\r\nSubject: ${subject}\r\n\r\n${body}\r\n`)
}

const raw = (subject: string) => ({ raw: mail(subject).toString('base64url') })

function writingCalls(sim: Sim, { users, context }: gmail_v1.Gmail): Call[] {
  let id = ''
  let since = ''
  const changed = (labels: readonly string[] | null | undefined, label: string, isThere: boolean): void =>
    assert.equal(labels?.includes(label), isThere, label)
  return callsOf({
    'users.messages.insert': async () => {
      since = (await users.getProfile(me)).data.historyId!
      const { data } = await users.messages.insert({
        ...me,
        requestBody: { ...raw('new'), labelIds: ['INBOX'] },
      })
      id = data.id!
    },
    'users.messages.insert by media (multipart)': async () => {
      const media = { mimeType: 'message/rfc822', body: Readable.from([mail('streamed')]) }
      const { data } = await users.messages.insert(
        { ...me, requestBody: { labelIds: ['INBOX'] }, media },
        { rootUrl: sim.baseUrl },
      )
      assert.ok(data.id)
    },
    'users.messages.insert by media (resumable)': () =>
      resumable(context, 'messages', { labelIds: ['INBOX'] }),
    'users.messages.import by media (resumable)': () => resumable(context, 'messages/import', {}),
    'users.messages.import': async () => {
      const { data } = await users.messages.import({ ...me, requestBody: raw('imported') })
      assert.ok(data.id)
    },
    'users.messages.send': async () => {
      const { data } = await users.messages.send({ ...me, requestBody: raw('sent') })
      changed(data.labelIds, 'SENT', true)
    },
    'users.messages.modify': async () => {
      const requestBody = { addLabelIds: ['STARRED'], removeLabelIds: ['INBOX'] }
      const { data } = await users.messages.modify({ ...me, id, requestBody })
      changed(data.labelIds, 'STARRED', true)
    },
    'users.messages.trash': async () =>
      changed((await users.messages.trash({ ...me, id })).data.labelIds, 'TRASH', true),
    'users.messages.untrash': async () =>
      changed((await users.messages.untrash({ ...me, id })).data.labelIds, 'TRASH', false),
    'users.messages.batchModify': async () => {
      const requestBody = { ids: [id], addLabelIds: ['IMPORTANT'] }
      assert.equal((await users.messages.batchModify({ ...me, requestBody })).status, 204)
    },
    'users.messages.attachments.get': async () => {
      const body = [
        'From: a@example.org\r\nSubject: with a file\r\nMIME-Version: 1.0',
        'Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/plain\r\n\r\nHi\r\n--b',
        'Content-Type: application/octet-stream; name=a.bin\r\nContent-Disposition: attachment; filename=a.bin',
        'Content-Transfer-Encoding: base64\r\n\r\naGVsbG8=\r\n--b--\r\n',
      ].join('\r\n')
      const made = await users.messages.insert({
        ...me,
        requestBody: { raw: Buffer.from(body).toString('base64url') },
      })
      const { data } = await users.messages.get({ ...me, id: made.data.id! })
      const part = data.payload!.parts!.find(({ filename }) => filename === 'a.bin')!
      const found = await users.messages.attachments.get({
        ...me,
        messageId: made.data.id!,
        id: part.body!.attachmentId!,
      })
      assert.equal(Buffer.from(found.data.data!, 'base64url').toString(), 'hello')
    },
    'users.threads.modify': async () => {
      const { data } = await users.threads.modify({ ...me, id, requestBody: { addLabelIds: ['UNREAD'] } })
      changed(data.messages![0]!.labelIds, 'UNREAD', true)
    },
    'users.threads.trash': async () =>
      changed((await users.threads.trash({ ...me, id })).data.messages![0]!.labelIds, 'TRASH', true),
    'users.threads.untrash': async () =>
      changed((await users.threads.untrash({ ...me, id })).data.messages![0]!.labelIds, 'TRASH', false),
    'users.history.list': async () => {
      const { data } = await users.history.list({ ...me, startHistoryId: since })
      const added = data.history!.flatMap(({ messagesAdded = [] }) => messagesAdded ?? [])
      assert.ok(added.some(({ message }) => message!.id === id))
    },
    'users.messages.delete': async () => {
      assert.equal((await users.messages.delete({ ...me, id })).status, 204)
      assert.equal(await refusal(users.messages.get({ ...me, id })), 404)
    },
    'users.messages.batchDelete': async () => {
      const { data } = await users.messages.insert({ ...me, requestBody: raw('gone') })
      await users.messages.batchDelete({ ...me, requestBody: { ids: [data.id!] } })
    },
    'users.threads.delete': async () => {
      const { data } = await users.messages.insert({ ...me, requestBody: raw('thread') })
      assert.equal((await users.threads.delete({ ...me, id: data.threadId! })).status, 204)
    },
  })
}

/** As Google's clients of other languages do it: where to, then the bytes in two pieces, asking in between. */
async function resumable(
  { _options }: gmail_v1.Gmail['context'],
  path: string,
  metadata: object,
): Promise<void> {
  const client = _options.auth as unknown as {
    request(options: object): Promise<{
      status: number
      headers: Headers | Record<string, string>
      data: { id?: string }
    }>
  }
  const bytes = mail('resumed', 'x'.repeat(300 * 1024))
  const validateStatus = (status: number): boolean => status < 400
  const begun = await client.request({
    url: `${_options.rootUrl}/upload/gmail/v1/users/me/${path}?uploadType=resumable`,
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-upload-content-type': 'message/rfc822' },
    data: JSON.stringify(metadata),
  })
  // The older client has a plain object.
  const headerOf = (headers: Headers | Record<string, string>, name: string): string =>
    new Headers(headers).get(name) ?? ''
  const url = headerOf(begun.headers, 'location')
  const put = (data: Buffer, range: string) =>
    client.request({
      url,
      method: 'PUT',
      data,
      headers: { 'content-range': range },
      validateStatus,
      retry: false,
    })
  const first = 256 * 1024
  const half = await put(bytes.subarray(0, first), `bytes 0-${first - 1}/${bytes.length}`)
  assert.deepEqual([half.status, headerOf(half.headers, 'range')], [308, `bytes=0-${first - 1}`])
  const last = await put(bytes.subarray(first), `bytes ${first}-${bytes.length - 1}/${bytes.length}`)
  assert.ok(last.data.id)
}

function labelCalls({ users }: gmail_v1.Gmail): Call[] {
  let id = ''
  return callsOf({
    'users.labels.list': async () => {
      const { data } = await users.labels.list(me)
      assert.ok(data.labels!.some((label) => label.id === 'INBOX'))
    },
    'users.labels.create': async () => {
      const { data } = await users.labels.create({ ...me, requestBody: { name: 'fidelity' } })
      id = data.id!
    },
    'users.labels.get': async () =>
      assert.equal((await users.labels.get({ ...me, id })).data.messagesTotal, 0),
    'users.labels.patch': async () => {
      const { data } = await users.labels.patch({ ...me, id, requestBody: { name: 'fidelity/one' } })
      assert.equal(data.name, 'fidelity/one')
    },
    'users.labels.update': async () => {
      const { data } = await users.labels.update({ ...me, id, requestBody: { id, name: 'fidelity/two' } })
      assert.equal(data.name, 'fidelity/two')
    },
    'users.labels.delete': async () => assert.equal((await users.labels.delete({ ...me, id })).status, 204),
  })
}

function draftCalls(sim: Sim, { users, context }: gmail_v1.Gmail): Call[] {
  let id = ''
  return callsOf({
    'users.drafts.create': async () => {
      const { data } = await users.drafts.create({ ...me, requestBody: { message: raw('draft') } })
      id = data.id!
    },
    'users.drafts.create by media (multipart)': async () => {
      const media = { mimeType: 'message/rfc822', body: mail('uploaded draft').toString() }
      const { data } = await users.drafts.create(
        { ...me, requestBody: { message: {} }, media },
        { rootUrl: sim.baseUrl },
      )
      assert.ok(data.id)
    },
    'users.drafts.create by media (resumable)': () => resumable(context, 'drafts', { message: {} }),
    'users.drafts.list': async () => {
      const { data } = await users.drafts.list(me)
      assert.ok(data.drafts!.some((draft) => draft.id === id))
    },
    'users.drafts.get': async () =>
      assert.equal((await users.drafts.get({ ...me, id, format: 'full' })).data.id, id),
    'users.drafts.update': async () => {
      const { data } = await users.drafts.update({ ...me, id, requestBody: { message: raw('rewritten') } })
      assert.equal(data.id, id)
    },
    'users.drafts.send': async () => {
      const { data } = await users.drafts.send({ ...me, requestBody: { id } })
      assert.ok(data.labelIds!.includes('SENT'))
    },
    'users.drafts.delete': async () => {
      const { data } = await users.drafts.create({ ...me, requestBody: { message: raw('dropped') } })
      assert.equal((await users.drafts.delete({ ...me, id: data.id! })).status, 204)
    },
  })
}

function settingsCalls({ users: { settings } }: gmail_v1.Gmail): Call[] {
  let id = ''
  return callsOf({
    'users.settings.getVacation': async () =>
      assert.equal((await settings.getVacation(me)).data.enableAutoReply, false),
    'users.settings.updateVacation': async () => {
      const requestBody = { enableAutoReply: true, responseSubject: 'Away' }
      await settings.updateVacation({ ...me, requestBody })
      assert.equal((await settings.getVacation(me)).data.responseSubject, 'Away')
    },
    'users.settings.getImap': async () => assert.equal((await settings.getImap(me)).data.enabled, true),
    'users.settings.updateImap': () => settings.updateImap({ ...me, requestBody: { enabled: false } }),
    'users.settings.getPop': async () => assert.ok((await settings.getPop(me)).data.accessWindow),
    'users.settings.updatePop': () =>
      settings.updatePop({ ...me, requestBody: { accessWindow: 'disabled' } }),
    'users.settings.getLanguage': async () =>
      assert.ok((await settings.getLanguage(me)).data.displayLanguage),
    'users.settings.updateLanguage': () =>
      settings.updateLanguage({ ...me, requestBody: { displayLanguage: 'de' } }),
    'users.settings.getAutoForwarding': async () =>
      assert.equal((await settings.getAutoForwarding(me)).data.enabled, false),
    'users.settings.updateAutoForwarding': () =>
      settings.updateAutoForwarding({ ...me, requestBody: { enabled: false } }),
    'users.settings.sendAs.list': async () =>
      assert.equal((await settings.sendAs.list(me)).data.sendAs![0]!.sendAsEmail, ANN),
    'users.settings.sendAs.get': async () =>
      assert.equal((await settings.sendAs.get({ ...me, sendAsEmail: ANN })).data.isPrimary, true),
    'users.settings.sendAs.patch': async () => {
      const requestBody = { signature: 'Ann' }
      const { data } = await settings.sendAs.patch({ ...me, sendAsEmail: ANN, requestBody })
      assert.equal(data.signature, 'Ann')
    },
    'users.settings.sendAs.update': () =>
      settings.sendAs.update({ ...me, sendAsEmail: ANN, requestBody: { displayName: 'Ann' } }),
    'users.settings.filters.create': async () => {
      const requestBody = { criteria: { from: 'a@example.org' }, action: { addLabelIds: ['STARRED'] } }
      id = (await settings.filters.create({ ...me, requestBody })).data.id!
      assert.ok(id)
    },
    'users.settings.filters.list': async () =>
      assert.equal((await settings.filters.list(me)).data.filter!.length, 1),
    'users.settings.filters.get': async () =>
      assert.equal((await settings.filters.get({ ...me, id })).data.criteria!.from, 'a@example.org'),
    'users.settings.filters.delete': async () =>
      assert.equal((await settings.filters.delete({ ...me, id })).status, 204),
    'users.settings.forwardingAddresses.list': () => settings.forwardingAddresses.list(me),
    'users.settings.delegates.list': () => settings.delegates.list(me),
  })
}

/** A client that knows nothing of the service but its own description. */
function discoveryCalls(sim: Sim): readonly Call[] {
  const signedIn = new OAuth2Client()
  signedIn.setCredentials({ access_token: sim.gmail.accounts[0]!.accessToken })
  const paths = {
    'discovery/v1/apis/gmail/v1/rest': '/discovery/v1/apis/gmail/v1/rest',
    '$discovery/rest': '/$discovery/rest?version=v1',
  }
  return Object.entries(paths).map(([name, path]) => ({
    call: `${name}, then messages.list`,
    run: async () => {
      const create = await new Discovery({}).discoverAPI(sim.baseUrl + path)
      const client = create({ auth: signedIn }, undefined as never) as unknown as gmail_v1.Gmail
      const { data } = await client.users.messages.list({ ...me, maxResults: 3 })
      assert.equal(data.messages!.length, 3)
      const found = await client.users.messages.get({ ...me, id: data.messages![0]!.id! })
      assert.equal(found.data.id, data.messages![0]!.id)
    },
  }))
}
