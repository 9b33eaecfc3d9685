/** Google's own Node client against the simulated Gmail: unchanged, only its addresses are others. */
import assert from 'node:assert/strict'
import { createHash, createSign, randomBytes } from 'node:crypto'
import { Readable } from 'node:stream'
import { after, before, describe, test } from 'node:test'
import { auth, type gmail_v1, gmail as googleGmail } from '@googleapis/gmail'
import { type Sim, startSim } from '../start.ts'
import { gmailScopes } from './scopes.ts'

const ADDRESS = 'owner@example.com'
const NO_RETRY = { retry: false } as const

let sim: Sim
let client: gmail_v1.Gmail

before(async () => {
  sim = await startSim({
    seed: 5,
    gmail: { accounts: [{ address: ADDRESS, messages: 320 }], quota: { unitsPerMinute: null } },
  })
  client = clientOf(sim.gmail.accounts[0]!)
})
after(() => sim.close())

function oauthClient() {
  return new auth.OAuth2({
    clientId: sim.gmail.clientId,
    clientSecret: sim.gmail.clientSecret,
    redirectUri: 'http://127.0.0.1:9/callback',
    endpoints: {
      oauth2AuthBaseUrl: sim.gmail.authUrl,
      oauth2TokenUrl: sim.gmail.tokenUrl,
      oauth2RevokeUrl: sim.gmail.revokeUrl,
      tokenInfoUrl: sim.gmail.tokenInfoUrl,
    },
  })
}

function clientOf(tokens: { accessToken?: string; refreshToken?: string }): gmail_v1.Gmail {
  const signedIn = oauthClient()
  signedIn.setCredentials({
    access_token: tokens.accessToken ?? null,
    refresh_token: tokens.refreshToken ?? null,
  })
  return googleGmail({ version: 'v1', auth: signedIn, rootUrl: sim.baseUrl, ...NO_RETRY })
}

function mail(subject: string, extra: string[] = []): Buffer {
  const lines = ['From: a@example.org', `To: ${ADDRESS}`, `Subject: ${subject}`, ...extra, '', 'Hello.', '']
  return Buffer.from(lines.join('\r\n'))
}

/** The shape of an error as the client hands it over. */
async function failure(
  call: Promise<unknown>,
): Promise<{ status: number; reason?: string; message: string }> {
  try {
    await call
  } catch (thrown) {
    const error = thrown as Error & {
      response?: { status: number; data?: { error?: { errors?: { reason: string }[] } } }
    }
    const reason = error.response?.data?.error?.errors?.[0]?.reason
    return { status: error.response?.status ?? 0, message: error.message, ...(reason ? { reason } : {}) }
  }
  throw new Error('the call should have failed')
}

describe('sign-in with Google’s client', () => {
  /** What a browser would do: follow the consent page's redirect. */
  async function consent(url: string): Promise<URL> {
    const answer = await fetch(url, { redirect: 'manual' })
    assert.equal(answer.status, 302)
    return new URL(answer.headers.get('location')!)
  }

  test('the PKCE flow gives tokens that work, and a code is good once', async () => {
    sim.oauth.autoApprove = true
    const signingIn = oauthClient()
    const verifier = randomBytes(40).toString('base64url')
    const challenge = createHash('sha256').update(verifier).digest('base64url')
    const url = signingIn.generateAuthUrl({
      access_type: 'offline',
      scope: [gmailScopes.readonly],
      state: 'st4te',
      code_challenge: challenge,
      code_challenge_method: 'S256' as never,
    })
    const back = await consent(url)
    assert.equal(`${back.origin}${back.pathname}`, 'http://127.0.0.1:9/callback')
    assert.equal(back.searchParams.get('state'), 'st4te')
    const code = back.searchParams.get('code')!
    const wrong = await failure(signingIn.getToken({ code, codeVerifier: 'x'.repeat(43) }))
    assert.equal(wrong.status, 400)
    const { tokens } = await signingIn.getToken({ code, codeVerifier: verifier })
    assert.equal(tokens.scope, gmailScopes.readonly)
    assert.ok(tokens.refresh_token && tokens.expiry_date)
    signingIn.setCredentials(tokens)
    const info = await signingIn.getTokenInfo(tokens.access_token!)
    assert.deepEqual(info.scopes, [gmailScopes.readonly])
    assert.equal(info.email, ADDRESS)
    const { data } = await googleGmail({
      version: 'v1',
      auth: signingIn,
      rootUrl: sim.baseUrl,
    }).users.getProfile({
      userId: 'me',
    })
    assert.equal(data.emailAddress, ADDRESS)
    assert.equal(
      (await failure(signingIn.getToken({ code, codeVerifier: verifier }))).message,
      'invalid_grant',
    )
    sim.oauth.autoApprove = false
  })

  test('an expired access token is refreshed by itself; a revoked grant is invalid_grant', async () => {
    const tokens = sim.gmail.issue(ADDRESS, [gmailScopes.modify])
    const own = clientOf(tokens)
    sim.gmail.grants.expireAccess(ADDRESS)
    assert.equal((await own.users.getProfile({ userId: 'me' })).status, 200)
    const signedIn = oauthClient()
    signedIn.setCredentials({ refresh_token: tokens.refreshToken })
    await signedIn.revokeToken(tokens.refreshToken)
    const { status, message } = await failure(signedIn.getAccessToken())
    assert.deepEqual({ status, message }, { status: 400, message: 'invalid_grant' })
    // The other tests go on with a token of their own.
    client = clientOf({ refreshToken: sim.gmail.accounts[0]!.refreshToken })
  })

  test('scopes are enforced', async () => {
    const reader = clientOf(sim.gmail.issue(ADDRESS, [gmailScopes.readonly]))
    const { data } = await reader.users.messages.list({ userId: 'me', maxResults: 1 })
    const id = data.messages![0]!.id!
    const trash = await failure(reader.users.messages.trash({ userId: 'me', id }))
    assert.deepEqual([trash.status, trash.reason], [403, 'insufficientPermissions'])
    const modifier = clientOf(sim.gmail.issue(ADDRESS, [gmailScopes.modify]))
    assert.equal((await modifier.users.messages.trash({ userId: 'me', id })).status, 200)
    assert.equal((await failure(modifier.users.messages.delete({ userId: 'me', id }))).status, 403)
    assert.equal((await failure(reader.users.getProfile({ userId: 'other@example.com' }))).status, 403)
    const headersOnly = clientOf(sim.gmail.issue(ADDRESS, [gmailScopes.metadata]))
    assert.equal((await headersOnly.users.messages.get({ userId: 'me', id, format: 'metadata' })).status, 200)
    assert.equal(
      (await failure(headersOnly.users.messages.get({ userId: 'me', id, format: 'raw' }))).status,
      403,
    )
  })

  test('a service account acts for a user with a JWT of its own', async () => {
    const key = sim.gmail.serviceAccount()
    // Google's client of this grant has one fixed address; the grant itself is what counts.
    const assertion = signAssertion(key, { sub: ADDRESS, scope: gmailScopes.readonly })
    const body = new URLSearchParams({ grant_type: 'urn:ietf:params:oauth:grant-type:jwt-bearer', assertion })
    const answer = await fetch(sim.gmail.tokenUrl, { method: 'POST', body })
    const { access_token } = (await answer.json()) as { access_token: string }
    const { data } = await clientOf({ accessToken: access_token }).users.getProfile({ userId: ADDRESS })
    assert.equal(data.emailAddress, ADDRESS)
  })
})

function signAssertion(
  key: { client_email: string; private_key: string; token_uri: string },
  claims: Record<string, unknown>,
): string {
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const iat = Math.floor(Date.now() / 1000)
  const text = `${encode({ alg: 'RS256', typ: 'JWT' })}.${encode({ iss: key.client_email, aud: key.token_uri, iat, exp: iat + 3600, ...claims })}`
  return `${text}.${createSign('RSA-SHA256').update(text).sign(key.private_key, 'base64url')}`
}

describe('reading with Google’s client', () => {
  test('pages hold every message once, and say when they end', async () => {
    const seen = new Set<string>()
    let pageToken: string | undefined
    let pages = 0
    do {
      const { data } = await client.users.messages.list({
        userId: 'me',
        maxResults: 100,
        includeSpamTrash: true,
        ...(pageToken ? { pageToken } : {}),
      })
      for (const { id } of data.messages ?? []) {
        assert.ok(!seen.has(id!))
        seen.add(id!)
      }
      pages += 1
      pageToken = data.nextPageToken ?? undefined
    } while (pageToken)
    assert.equal(seen.size, sim.gmail.mailbox(ADDRESS).profile().messagesTotal)
    assert.equal(pages, Math.ceil(seen.size / 100))
    const wrong = await failure(client.users.messages.list({ userId: 'me', pageToken: 'nonsense' }))
    assert.equal(wrong.status, 400)
  })

  test('every format shows the same message', async () => {
    const { data } = await client.users.messages.list({ userId: 'me', q: 'has:attachment', maxResults: 5 })
    const id = data.messages![0]!.id!
    const get = async (format: string, rest: object = {}): Promise<gmail_v1.Schema$Message> =>
      (await client.users.messages.get({ userId: 'me', id, format, ...rest })).data
    const raw = await get('raw')
    const stored = sim.gmail.mailbox(ADDRESS).get(id)!
    assert.deepEqual(Buffer.from(raw.raw!, 'base64url'), stored.raw())
    assert.equal(raw.raw!.length % 4, 0)
    assert.equal(raw.internalDate, String(stored.internalMs))
    assert.equal(raw.historyId, String(stored.historyId))
    assert.deepEqual(raw.labelIds, [...stored.labelIds])
    assert.equal(raw.payload, undefined)
    const full = await get('full')
    assert.equal(full.raw, undefined)
    assert.equal(full.payload?.mimeType, 'multipart/mixed')
    const attachmentId = attachmentsOf(full.payload!)[0]!
    const attachment = await client.users.messages.attachments.get({
      userId: 'me',
      messageId: id,
      id: attachmentId,
    })
    assert.equal(Buffer.from(attachment.data.data!, 'base64url').length, attachment.data.size)
    const metadata = await get('metadata', { metadataHeaders: ['Subject', 'from'] })
    assert.ok(metadata.payload!.headers!.every(({ name }) => /^(subject|from)$/i.test(name!)))
    assert.equal(metadata.payload!.body, undefined)
    const minimal = await get('minimal')
    assert.equal(minimal.payload, undefined)
    assert.equal(minimal.sizeEstimate, stored.sizeEstimate)
    assert.equal(minimal.snippet, raw.snippet)
  })

  function attachmentsOf(payload: gmail_v1.Schema$MessagePart): string[] {
    const own = payload.filename && payload.body?.attachmentId ? [payload.body.attachmentId] : []
    return [...own, ...(payload.parts ?? []).flatMap(attachmentsOf)]
  }

  test('fields leaves out what was not asked for, in every format', async () => {
    const listed = await client.users.messages.list({ userId: 'me', maxResults: 2, fields: 'messages/id' })
    assert.deepEqual(Object.keys(listed.data), ['messages'])
    const id = listed.data.messages![0]!.id!
    assert.deepEqual(listed.data.messages![0], { id })
    const raw = await client.users.messages.get({
      userId: 'me',
      id,
      format: 'raw',
      fields: 'id,raw,internalDate',
    })
    assert.deepEqual(Object.keys(raw.data).sort(), ['id', 'internalDate', 'raw'])
    const bare = await client.users.messages.get({ userId: 'me', id, format: 'raw', fields: 'raw' })
    assert.deepEqual(Object.keys(bare.data), ['raw'])
    const full = await client.users.messages.get({
      userId: 'me',
      id,
      fields: 'payload(headers/name,mimeType)',
    })
    assert.deepEqual(Object.keys(full.data), ['payload'])
    assert.deepEqual(Object.keys(full.data.payload!.headers![0]!), ['name'])
    assert.equal((await failure(client.users.messages.get({ userId: 'me', id, fields: 'a((' }))).status, 400)
  })

  test('what is not there is 404, and what makes no sense 400', async () => {
    const missing = await failure(client.users.messages.get({ userId: 'me', id: 'ffffffffffffffff' }))
    assert.deepEqual([missing.status, missing.reason], [404, 'notFound'])
    assert.equal(
      (await failure(client.users.messages.get({ userId: 'me', id: 'x', format: 'pdf' }))).status,
      400,
    )
    assert.equal((await failure(client.users.messages.list({ userId: 'me', maxResults: 0 }))).status, 400)
    const wrongToken = await failure(
      clientOf({ accessToken: 'ya29.nobody' }).users.getProfile({ userId: 'me' }),
    )
    assert.equal(wrongToken.status, 401)
  })

  test('a malformed id is 400, whatever is asked of it, also within a batch', async () => {
    const at = { userId: 'me', id: 'no-such-id' }
    const { messages, threads } = client.users
    for (const call of [messages.get(at), messages.trash(at), messages.delete(at), threads.get(at)]) {
      const { status, reason } = await failure(call)
      assert.deepEqual([status, reason], [400, 'invalidArgument'])
    }
    const body =
      '--b\r\nContent-Type: application/http\r\n\r\nGET /gmail/v1/users/me/messages/no-such-id\r\n--b--'
    const headers = {
      authorization: `Bearer ${sim.gmail.issue(ADDRESS).accessToken}`,
      'content-type': 'multipart/mixed; boundary=b',
    }
    const batch = await fetch(`${sim.baseUrl}/batch/gmail/v1`, { method: 'POST', body, headers })
    assert.match(await batch.text(), /HTTP\/1\.1 400 Bad Request/)
  })

  test('threads and their messages', async () => {
    const { data } = await client.users.threads.list({ userId: 'me', maxResults: 50 })
    const id = data.threads![0]!.id!
    const thread = (await client.users.threads.get({ userId: 'me', id, format: 'minimal' })).data
    assert.ok(thread.messages!.every(({ threadId }) => threadId === id))
    await client.users.threads.modify({ userId: 'me', id, requestBody: { addLabelIds: ['STARRED'] } })
    const starred = (await client.users.threads.get({ userId: 'me', id, format: 'minimal' })).data
    assert.ok(starred.messages!.every(({ labelIds }) => labelIds!.includes('STARRED')))
    await client.users.threads.trash({ userId: 'me', id })
    await client.users.threads.untrash({ userId: 'me', id })
    assert.equal((await client.users.threads.delete({ userId: 'me', id })).status, 204)
    assert.equal((await failure(client.users.threads.get({ userId: 'me', id }))).status, 404)
  })
})

describe('writing with Google’s client', () => {
  test('insert keeps the bytes and takes its date from where it is told', async () => {
    const raw = mail('Old', ['Date: Tue, 5 Feb 2008 10:00:00 +0000'])
    const requestBody = { raw: raw.toString('base64url'), labelIds: ['INBOX'] }
    const byHeader = await client.users.messages.insert({
      userId: 'me',
      internalDateSource: 'dateHeader',
      requestBody,
    })
    const stored = sim.gmail.mailbox(ADDRESS).get(byHeader.data.id!)!
    assert.deepEqual(stored.raw(), raw)
    assert.equal(stored.internalMs, Date.UTC(2008, 1, 5, 10))
    // Of a message the service keeps whole seconds.
    const beforeMs = Date.now() - 1_000
    const received = await client.users.messages.insert({ userId: 'me', requestBody })
    assert.ok(sim.gmail.mailbox(ADDRESS).get(received.data.id!)!.internalMs >= beforeMs)
    const { messages } = client.users
    const importMail = messages.import.bind(messages)
    const imported = await importMail({ userId: 'me', requestBody })
    assert.equal(sim.gmail.mailbox(ADDRESS).get(imported.data.id!)!.internalMs, Date.UTC(2008, 1, 5, 10))
  })

  test('insert by upload keeps the bytes too, as a string and as a stream', async () => {
    // Uploads take the root from the call only.
    const AT_ROOT = { rootUrl: sim.baseUrl }
    const raw = Buffer.concat([mail('Upload'), Buffer.from([0, 255, 13, 10, 128])])
    for (const body of [Readable.from([raw]), raw.toString('latin1').replaceAll(/[^\x20-\x7e\r\n]/g, '?')]) {
      const { data } = await client.users.messages.insert(
        {
          userId: 'me',
          requestBody: { labelIds: ['STARRED'] },
          media: { mimeType: 'message/rfc822', body },
        },
        AT_ROOT,
      )
      const stored = sim.gmail.mailbox(ADDRESS).get(data.id!)!
      const sent = typeof body === 'string' ? Buffer.from(body) : raw
      assert.deepEqual(stored.raw(), sent)
      assert.ok(stored.labelIds.has('STARRED'))
    }
    const bare = await client.users.messages.insert(
      {
        userId: 'me',
        media: { mimeType: 'message/rfc822', body: mail('Bare').toString() },
      },
      AT_ROOT,
    )
    assert.deepEqual(sim.gmail.mailbox(ADDRESS).get(bare.data.id!)!.raw(), mail('Bare'))
  })

  test('modify, trash, untrash, batchModify, batchDelete and delete', async () => {
    const ids: string[] = []
    for (let at = 0; at < 4; at++) {
      const requestBody = { raw: mail(`Change ${at}`).toString('base64url'), labelIds: ['INBOX'] }
      ids.push((await client.users.messages.insert({ userId: 'me', requestBody })).data.id!)
    }
    const [id = ''] = ids
    const modified = await client.users.messages.modify({
      userId: 'me',
      id,
      requestBody: { addLabelIds: ['STARRED'], removeLabelIds: ['INBOX'] },
    })
    assert.deepEqual(modified.data.labelIds, ['STARRED'])
    assert.ok((await client.users.messages.trash({ userId: 'me', id })).data.labelIds!.includes('TRASH'))
    assert.ok(!(await client.users.messages.untrash({ userId: 'me', id })).data.labelIds!.includes('TRASH'))
    const many = await client.users.messages.batchModify({
      userId: 'me',
      requestBody: { ids, addLabelIds: ['TRASH'] },
    })
    assert.equal(many.status, 204)
    assert.ok(ids.every((one) => sim.gmail.mailbox(ADDRESS).get(one)!.labelIds.has('TRASH')))
    await client.users.messages.delete({ userId: 'me', id })
    await client.users.messages.batchDelete({
      userId: 'me',
      requestBody: { ids: [...ids, 'ffffffffffffffff'] },
    })
    assert.ok(ids.every((one) => sim.gmail.mailbox(ADDRESS).get(one) === undefined))
    const tooMany = Array.from({ length: 1_001 }, (_, at) => at.toString(16).padStart(16, '0'))
    const refused = failure(
      client.users.messages.batchDelete({ userId: 'me', requestBody: { ids: tooMany } }),
    )
    assert.equal((await refused).status, 400)
  })

  test('labels are made, changed, counted and removed', async () => {
    const { data } = await client.users.labels.create({ userId: 'me', requestBody: { name: 'Ships' } })
    const id = data.id!
    const twice = await failure(client.users.labels.create({ userId: 'me', requestBody: { name: 'Ships' } }))
    assert.equal(twice.status, 409)
    const requestBody = { raw: mail('Ship').toString('base64url'), labelIds: [id, 'UNREAD'] }
    await client.users.messages.insert({ userId: 'me', requestBody })
    await client.users.labels.patch({ userId: 'me', id, requestBody: { name: 'Boats' } })
    await client.users.labels.update({
      userId: 'me',
      id,
      requestBody: { name: 'Boats', labelListVisibility: 'labelHide' },
    })
    const got = (await client.users.labels.get({ userId: 'me', id })).data
    assert.deepEqual([got.name, got.messagesTotal, got.messagesUnread], ['Boats', 1, 1])
    const all = (await client.users.labels.list({ userId: 'me' })).data.labels!
    assert.ok(all.some((label) => label.id === 'INBOX' && label.type === 'system'))
    await client.users.labels.delete({ userId: 'me', id })
    assert.equal((await failure(client.users.labels.get({ userId: 'me', id }))).status, 404)
  })

  test('drafts are written, rewritten and sent; mail is sent', async () => {
    const raw = mail('Draft').toString('base64url')
    const { data } = await client.users.drafts.create({ userId: 'me', requestBody: { message: { raw } } })
    const id = data.id!
    await client.users.drafts.update({
      userId: 'me',
      id,
      requestBody: { message: { raw: mail('Better').toString('base64url') } },
    })
    const got = (await client.users.drafts.get({ userId: 'me', id, format: 'metadata' })).data
    assert.equal(got.message!.payload!.headers!.find(({ name }) => name === 'Subject')!.value, 'Better')
    assert.ok(
      (await client.users.drafts.list({ userId: 'me' })).data.drafts!.some((draft) => draft.id === id),
    )
    const sent = (await client.users.drafts.send({ userId: 'me', requestBody: { id } })).data
    assert.ok(sent.labelIds!.includes('SENT'))
    assert.equal((await failure(client.users.drafts.get({ userId: 'me', id }))).status, 404)
    const direct = (await client.users.messages.send({ userId: 'me', requestBody: { raw } })).data
    assert.ok(sim.gmail.mailbox(ADDRESS).get(direct.id!)!.labelIds.has('SENT'))
    const nobody = Buffer.from('Subject: To nobody\r\n\r\nx').toString('base64url')
    assert.equal(
      (await failure(client.users.messages.send({ userId: 'me', requestBody: { raw: nobody } }))).status,
      400,
    )
    const other = (await client.users.drafts.create({ userId: 'me', requestBody: { message: { raw } } })).data
    assert.equal((await client.users.drafts.delete({ userId: 'me', id: other.id! })).status, 204)
  })

  test('history tells every change since, also over empty pages, and is 404 when it is too old', async () => {
    const startHistoryId = (await client.users.getProfile({ userId: 'me' })).data.historyId!
    const requestBody = { raw: mail('History').toString('base64url'), labelIds: ['INBOX'] }
    const id = (await client.users.messages.insert({ userId: 'me', requestBody })).data.id!
    await client.users.messages.modify({ userId: 'me', id, requestBody: { removeLabelIds: ['INBOX'] } })
    await client.users.messages.delete({ userId: 'me', id })
    sim.faults.set({ rules: [{ do: 'empty-page', methods: ['history.list'], everyNth: 2 }] })
    const kinds: string[] = []
    let pageToken: string | undefined
    let pages = 0
    do {
      const { data } = await client.users.history.list({
        userId: 'me',
        startHistoryId,
        maxResults: 1,
        ...(pageToken ? { pageToken } : {}),
      })
      pages += 1
      for (const record of data.history ?? []) {
        for (const kind of ['messagesAdded', 'labelsRemoved', 'messagesDeleted'] as const) {
          if (record[kind]?.[0]?.message?.id === id) kinds.push(kind)
        }
      }
      pageToken = data.nextPageToken ?? undefined
    } while (pageToken && pages < 20)
    sim.faults.clear()
    assert.deepEqual(kinds, ['messagesAdded', 'labelsRemoved', 'messagesDeleted'])
    assert.ok(pages > 3, 'some pages were empty')
    sim.gmail.mailbox(ADDRESS).expireHistory()
    const tooOld = await failure(client.users.history.list({ userId: 'me', startHistoryId }))
    assert.deepEqual([tooOld.status, tooOld.reason], [404, 'notFound'])
    assert.equal(
      (await failure(client.users.history.list({ userId: 'me', startHistoryId: 'x' }))).status,
      400,
    )
  })

  test('watch says until when, and stop ends it', async () => {
    const requestBody = { topicName: 'projects/p/topics/t', labelIds: ['INBOX'] }
    const { data } = await client.users.watch({ userId: 'me', requestBody })
    const days = (Number(data.expiration) - Date.now()) / 86_400_000
    assert.ok(days > 6.9 && days <= 7)
    assert.equal(data.historyId, String(sim.gmail.mailbox(ADDRESS).historyId))
    assert.equal((await client.users.stop({ userId: 'me' })).status, 204)
    assert.equal(sim.gmail.push.watchOf(ADDRESS), undefined)
    assert.equal(
      (await failure(client.users.watch({ userId: 'me', requestBody: { topicName: 'x' } }))).status,
      400,
    )
  })
})

describe('quota errors as Google’s client sees them', () => {
  test('403 with userRateLimitExceeded or rateLimitExceeded, 429 with RESOURCE_EXHAUSTED', async () => {
    sim.gmail.quota.set({ unitsPerMinute: 1, retryAfterSeconds: 7 })
    const shapes = {
      user403: [403, 'userRateLimitExceeded'],
      rate403: [403, 'rateLimitExceeded'],
      exhausted429: [429, 'rateLimitExceeded'],
    } as const
    for (const [shape, expected] of Object.entries(shapes)) {
      sim.gmail.quota.set({ shape: shape as keyof typeof shapes })
      const { status, reason } = await failure(client.users.messages.list({ userId: 'me' }, NO_RETRY))
      assert.deepEqual([status, reason], [...expected])
    }
    const answer = await fetch(`${sim.baseUrl}/gmail/v1/users/me/messages`, {
      headers: { authorization: `Bearer ${sim.gmail.issue(ADDRESS, [gmailScopes.full]).accessToken}` },
    })
    assert.equal(answer.headers.get('retry-after'), '7')
    const { error } = (await answer.json()) as { error: { status: string; message: string } }
    assert.equal(error.status, 'RESOURCE_EXHAUSTED')
    assert.match(error.message, /Quota exceeded/)
    sim.gmail.quota.set({ unitsPerMinute: null, retryAfterSeconds: null })
  })
})
