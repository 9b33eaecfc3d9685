import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { TOKEN_BYTES, tokenText } from '../../../ledger/users.ts'
import { streamOf } from '../account.ts'
import { ANN, type Answer, BOB, hostileMail, type MailWorld, startMailApi } from './mail-api.suite.ts'

const ann = encodeURIComponent(ANN)

function isProblem({ status, type, body }: Answer, wanted: number, code?: string): void {
  assert.equal(status, wanted, JSON.stringify(body))
  assert.match(type, /^application\/problem\+json/)
  if (code !== undefined) assert.equal(body.code, code)
}

describe('reading mail', () => {
  let world: MailWorld
  let hostile: string
  before(async () => {
    world = await startMailApi({ messages: 60 })
    hostile = world.deliver(
      hostileMail('<p>zebra <b>budget</b><script>alert(1)</script><img src="cid:dot@example.com"></p>'),
    )
    await world.connect(ANN)
    await world.sync()
  })
  after(() => world.close())

  test('accounts are listed with how far they are and what their archive takes', async () => {
    const [account] = await world.accounts()
    assert.equal(account.name, ANN)
    assert.equal(account.access, 'full')
    assert.equal(account.stored, account.listed - account.gone - account.skipped - account.bad)
    assert.ok(account.stored >= 50 && account.files > 0 && account.rawBytes > 0 && account.labels.length > 0)
    assert.deepEqual(account.damagedFiles, [])
    assert.deepEqual([account.missing, account.lost, account.lostImports, account.verified], [0, 0, 0, null])
  })

  test('a search finds mail, marks the words, and pages without repeating', async () => {
    const found = await world.get('/api/mail/search?q=zebra')
    assert.deepEqual(
      found.body.items.map(({ id }: { id: string }) => id),
      [hostile],
    )
    assert.ok(found.body.items[0].excerpt.some(({ match }: { match: boolean }) => match))
    const seen = new Set<string>()
    let cursor: string | null = ''
    while (cursor !== null) {
      const next: string = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
      const { body } = await world.get(`/api/mail/search?limit=25&account=${ann}${next}`)
      for (const { id } of body.items) {
        assert.ok(!seen.has(id))
        seen.add(id)
      }
      cursor = body.next
    }
    const [account] = await world.accounts()
    assert.equal(seen.size, account.stored)
    assert.equal((await world.get('/api/mail/search?q=budget&order=rank')).status, 200)
  })

  test('what is found is counted by year, sender and label, and these counts are what a search finds', async () => {
    const { status, body } = await world.get('/api/mail/search/facets')
    assert.equal(status, 200)
    const [account] = await world.accounts()
    assert.deepEqual([body.messages, body.counted], [account.stored, account.stored])
    const sum = body.years.reduce((all: number, { messages }: { messages: number }) => all + messages, 0)
    assert.equal(sum, account.stored)
    const countOf = async (q: string): Promise<number> =>
      (await world.get(`/api/mail/search/facets?q=${encodeURIComponent(q)}`)).body.messages
    const [sender] = body.senders
    assert.equal(await countOf(`from:${sender.value}`), sender.messages)
    const label = body.labels.find(({ value }: { value: string }) => value === 'INBOX')
    assert.equal(await countOf('label:inbox'), label.messages)
    assert.equal(await countOf('zebra'), 1)
    isProblem(await world.get('/api/mail/search/facets?q=form:x'), 400)
  })

  test('what is found is exported as one mbox file, with the bytes of each message in it', async () => {
    const answer = await world.request('/api/mail/search/export?q=zebra')
    assert.equal(answer.status, 200)
    assert.equal(answer.headers.get('content-type'), 'application/mbox')
    assert.match(answer.headers.get('content-disposition') ?? '', /^attachment; filename="mail\.mbox"/)
    const text = await answer.text()
    assert.equal(text.match(/^From /gm)?.length, 1)
    const raw = world.sim.gmail.mailbox(ANN).get(hostile)!.raw().toString('latin1')
    assert.ok(text.replaceAll('\r\n', '\n').includes(raw.replaceAll('\r\n', '\n').trimEnd()))
    const all = await (await world.request('/api/mail/search/export')).text()
    const [account] = await world.accounts()
    assert.equal(all.match(/^From /gm)?.length, account.stored)
  })

  test('a message leads to where Gmail shows it, and says how high its HTML is', async () => {
    const { body } = await world.get(`/api/mail/messages/${ann}/${hostile}`)
    assert.match(
      body.gmailUrl,
      /^https:\/\/mail\.google\.com\/mail\/\?authuser=ann%40example\.com#(?:search|all)\//,
    )
    assert.ok(body.htmlHeights.widePx > 0 && body.htmlHeights.narrowPx >= body.htmlHeights.widePx)
  })

  test('a query that is being typed is continued', async () => {
    const texts = async (q: string): Promise<string[]> =>
      (await world.get(`/api/mail/suggest?q=${encodeURIComponent(q)}`)).body.items.map(
        ({ text }: { text: string }) => text,
      )
    assert.ok((await texts('budget fr')).includes('budget from:'))
    assert.ok((await texts('-is:un')).includes('-is:unread'))
    assert.ok((await texts('label:INB')).some((text) => text.toUpperCase() === 'LABEL:INBOX'))
    assert.deepEqual(await texts('nonsense:x'), [])
    assert.deepEqual(await texts(''), [])
  })

  test('a message and its conversation are shown, and bytes come out as they went in', async () => {
    const { status, body } = await world.get(`/api/mail/messages/${ann}/${hostile}`)
    assert.equal(status, 200)
    assert.equal(body.hasHtml, true)
    assert.match(body.text, /zebra/)
    const thread = await world.get(`/api/mail/threads/${ann}/${body.threadId}`)
    assert.ok(thread.body.items.some(({ id }: { id: string }) => id === hostile))
    const raw = await world.request(`/api/mail/messages/${ann}/${hostile}/raw`)
    assert.equal(raw.headers.get('content-type'), 'message/rfc822')
    assert.match(raw.headers.get('content-disposition') ?? '', /^attachment; filename="[^"<>\\/]*\.eml"/)
    const bytes = Buffer.from(await raw.arrayBuffer())
    assert.deepEqual(bytes, world.sim.gmail.mailbox(ANN).get(hostile)!.raw())
  })

  test('HTML is answered sanitised, with a policy of its own', async () => {
    const answer = await world.request(`/api/mail/messages/${ann}/${hostile}/html`)
    assert.equal(answer.status, 200)
    const policy = answer.headers.get('content-security-policy') ?? ''
    assert.match(policy, /^default-src 'none'; img-src data:; style-src 'unsafe-inline';/)
    assert.match(policy, /sandbox allow-popups allow-popups-to-escape-sandbox$/)
    assert.equal(answer.headers.get('x-frame-options'), null)
    const html = await answer.text()
    assert.ok(html.includes('<b>budget</b>') && html.includes('src="data:image/png;base64,'))
    assert.doesNotMatch(html, /script|alert/)
    const shown = await world.request(`/api/mail/messages/${ann}/${hostile}/html?images=true`)
    assert.match(shown.headers.get('content-security-policy') ?? '', /img-src data: https:;/)
  })

  test('attachments are always saved, under a harmless name, and never as a page', async () => {
    const { body } = await world.get(`/api/mail/messages/${ann}/${hostile}`)
    const evil = body.files.find(({ name }: { name: string }) => name.includes('evil'))
    const answer = await world.request(`/api/mail/messages/${ann}/${hostile}/attachments/${evil.index}`)
    assert.equal(answer.status, 200)
    assert.equal(answer.headers.get('content-type'), 'application/octet-stream')
    assert.equal(answer.headers.get('x-content-type-options'), 'nosniff')
    assert.match(answer.headers.get('content-disposition') ?? '', /^attachment; filename="[^"/\\]+"; /)
    assert.match(await answer.text(), /<script>/)
  })

  test('hostile names, ids and queries are refused as problems', async () => {
    const odd = [
      '..%2F..%2Fetc',
      '%00',
      'a%27%20OR%201=1--',
      '%F0%9F%92%A9',
      'x'.repeat(400),
      '%ED%A0%80',
      '[object]',
    ]
    for (const text of odd) {
      for (const path of [
        `/api/mail/messages/${ann}/${text}`,
        `/api/mail/messages/${text}/${hostile}`,
        `/api/mail/threads/${ann}/${text}`,
        `/api/mail/messages/${ann}/${text}/html`,
        `/api/mail/messages/${ann}/${hostile}/attachments/${text}`,
        `/api/mail/search?account=${text}`,
        `/api/mail/search?cursor=${text}`,
        `/api/mail/clean-up/runs/${text}`,
        `/api/mail/clean-up/runs?cursor=${text}`,
      ]) {
        const answer = await world.get(path)
        assert.ok(answer.status >= 400 && answer.status < 500, `${path}: ${answer.status}`)
        assert.match(answer.type, /problem\+json/, path)
      }
    }
    for (const q of ['(', 'a OR', 'before:never', '"open', 'frmo:x', 'x'.repeat(3_000)]) {
      isProblem(await world.get(`/api/mail/search?q=${encodeURIComponent(q)}`), 400)
    }
    isProblem(await world.get(`/api/mail/messages/${ann}/abc123`), 404, 'message-unknown')
    isProblem(await world.get('/api/mail/messages/nobody%40example.com/abc'), 404, 'account-unknown')
    isProblem(
      await world.get(`/api/mail/messages/${ann}/${hostile}/attachments/77`),
      404,
      'attachment-unknown',
    )
    isProblem(await world.get(`/api/mail/messages/${ann}/${hostile}/html?images=maybe`), 400)
    isProblem(await world.post('/api/mail/sync', { account: '__proto__' }), 404, 'account-unknown')
    isProblem(await world.post('/api/mail/sync', { acount: ANN }), 400)
    isProblem(await world.remove('/api/accounts/gmail/nobody%40example.com'), 404, 'account-unknown')
    assert.deepEqual(world.errors, [])
  })

  test('random input is never a server error', async () => {
    let seed = 7
    const random = (n: number): number => {
      seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
      return seed % n
    }
    const pieces = [
      'from:',
      '"',
      '(',
      ')',
      '{',
      '}',
      '-',
      'OR',
      ' ',
      'a*',
      '\u0301',
      '🦓',
      'label:',
      '1e99',
      '\\',
      ':',
      '*',
    ]
    for (let turn = 0; turn < 200; turn++) {
      const text = Array.from({ length: 1 + random(8) }, () => pieces[random(pieces.length)]).join('')
      const q = encodeURIComponent(text)
      for (const path of [
        `/api/mail/search?q=${q}`,
        `/api/mail/search?q=${q}&order=rank`,
        `/api/mail/suggest?q=${q}`,
      ]) {
        const { status, type } = await world.get(path)
        assert.ok(status === 200 || (status === 400 && type.includes('problem')), `${path}: ${status}`)
      }
      const wish = { account: ANN, olderThan: '1d', query: text }
      assert.ok([200, 400].includes((await world.post('/api/mail/clean-up/plan', wish)).status), text)
    }
    assert.deepEqual(world.errors, [])
  })
})

describe('syncs', () => {
  test('a second sync is under way already, which is no error', async () => {
    const world = await startMailApi({ messages: 5, started: false })
    try {
      isProblem(await world.post('/api/mail/sync'), 409, 'no-account')
      await world.connect(ANN)
      await world.runtime.engine.pause('stream', streamOf(ANN), 'for this test')
      const first = await world.post('/api/mail/sync', { account: ANN })
      assert.equal(first.status, 202)
      // Connecting it has planned it already.
      assert.equal(first.body.outcome, 'already')
      assert.match(first.body.text, /under way already.*Paused/)
      await world.runtime.engine.resume('stream', streamOf(ANN))
      await world.runtime.engine.start()
      await world.sync()
      await world.runtime.engine.pause('stream', streamOf(ANN), 'for this test')
      assert.equal((await world.post('/api/mail/sync')).body.outcome, 'done')
      assert.equal((await world.post('/api/mail/sync')).body.outcome, 'already')
      const row = await world.services.accounts.find('gmail', ANN)
      await world.services.accounts.setState(row!.id, 'sign-in')
      isProblem(await world.post('/api/mail/sync'), 409, 'sign-in-needed')
    } finally {
      await world.close()
    }
  })
})

describe('the totals of an account', () => {
  test('add up: what Gmail has in all is what is listed and what is left out by choice', async () => {
    const world = await startMailApi({ messages: 0 })
    try {
      const mail = (n: number): string =>
        `From: b@example.com\r\nTo: ${ANN}\r\nMessage-ID: <t${n}@x>\r\nSubject: t${n}\r\n\r\nText.\r\n`
      const places = ['INBOX', 'INBOX', 'INBOX', 'SPAM', 'SPAM', 'TRASH']
      for (const [n, place] of places.entries()) world.deliver(mail(n), { labelIds: [place] })
      const account = async (): Promise<Answer['body']> => (await world.accounts())[0]
      await world.connect(ANN)
      await world.sync()
      const { listed, gmail, leftOut, whole, inGmail } = await account()
      assert.deepEqual([listed, whole, gmail.messages], [4, 4, 6])
      assert.deepEqual(leftOut, { spam: 2, trash: 0, isMore: false })
      assert.equal(inGmail, '6 in all; left out by choice: 2 in spam')
      world.deliver(mail(9), { labelIds: ['INBOX'] })
      await world.sync()
      const later = await account()
      assert.deepEqual([later.listed, later.whole, later.gmail.messages], [5, 5, 7])
      const mails = [...world.sim.gmail.mailbox(ANN).dump()]
      world.sim.gmail.mailbox(ANN).delete(mails.find(({ labels }) => [...labels].includes('INBOX'))!.id)
      await world.sync()
      const { stored, inGmail: then } = await account()
      assert.equal(stored, 5)
      assert.equal(then, '6 in all; left out by choice: 2 in spam; stored here and not there any more: 1')
      // They are for people: a sync does not stop because Gmail does not tell them.
      world.sim.faults.set({ rules: [{ do: 'error', status: 404, methods: ['labels.get'] }] })
      world.deliver(mail(10), { labelIds: ['INBOX'] })
      await world.sync()
      const untold = await account()
      assert.deepEqual([untold.stored, untold.gmail.messages, untold.whole], [6, 6, 6])
    } finally {
      await world.close()
    }
  })
})

describe('mail of another user', () => {
  test('is read and searched by an admin only with a note of it, and one’s own without', async () => {
    const world = await startMailApi({ messages: 3 })
    const { users, accounts } = world.services
    const noted = async (): Promise<string[]> =>
      (await users.audit({ limit: 100 })).map(({ action, subject }) => `${action} ${subject}`)
    try {
      await world.connect(ANN)
      await world.sync()
      const [{ id, threadId }] = (await world.get('/api/mail/search')).body.items
      const path = `/api/mail/messages/${encodeURIComponent(ANN)}/${id}`
      await world.get(path)
      assert.deepEqual(await noted(), [])
      const ann = await users.add({ name: 'ann', role: 'member' })
      const [account] = await accounts.list('gmail')
      await accounts.setUser(account!.id, ann.id)
      for (const page of [path, `${path}/raw`, `/api/mail/threads/${encodeURIComponent(ANN)}/${threadId}`]) {
        assert.equal((await world.get(page)).status, 200)
      }
      await world.get('/api/mail/search?q=plan')
      await world.get(`/api/mail/search?q=plan&account=${encodeURIComponent(ANN)}`)
      await world.get('/api/mail/suggest?q=from:a')
      assert.deepEqual(await noted(), [
        'view-as everybody: typed a search of mail',
        'view-as ann: searched mail plan',
        'view-as everybody: searched mail plan',
        `view-as ann: read conversation ${threadId}`,
        `view-as ann: read mail ${id}`,
      ])
    } finally {
      await world.close()
    }
  })
})

describe('mail that was imported', () => {
  test('is the owner’s: other admins see it with a note, and the owner without', async () => {
    const world = await startMailApi()
    const { users } = world.services
    try {
      await world.runtime.mail.accounts.addLocal('old-mail')
      const token = tokenText(new Uint8Array(TOKEN_BYTES).fill(7))
      const eve = await users.add({ name: 'eve', role: 'admin' })
      await users.addToken(eve.id, { label: '', token })
      const looks = ['/api/mail/search?q=plan', '/api/mail/search?q=plan&account=old-mail']
      const messages = ['/api/mail/messages/old-mail/a1', '/api/mail/threads/old-mail/a1']
      for (const path of looks) assert.equal((await world.get(path)).status, 200)
      for (const path of messages) assert.equal((await world.get(path)).status, 404)
      assert.deepEqual(await users.audit({ limit: 100 }), [])
      for (const path of looks) assert.equal((await world.get(path, token)).status, 200)
      for (const path of messages) assert.equal((await world.get(path, token)).status, 404)
      assert.deepEqual(
        (await users.audit({ limit: 100 })).map(({ userName, subject }) => `${userName} ${subject}`),
        [
          'eve owner: read conversation a1',
          'eve owner: read mail a1',
          'eve owner: searched mail plan',
          'eve everybody: searched mail plan',
        ],
      )
    } finally {
      await world.close()
    }
  })
})

describe('connecting', () => {
  test('an account is connected by the way through the service and back, and forgotten again', async () => {
    const world = await startMailApi({ messages: 3 })
    try {
      world.sim.oauth.autoApprove = BOB
      const begun = await world.post('/api/accounts/connect', {
        service: 'gmail',
        access: 'modify',
        choices: { mail: { spam: true } },
      })
      assert.equal(begun.status, 200, JSON.stringify(begun.body))
      const there = await fetch(begun.body.url, {
        redirect: 'manual',
      })
      const back = new URL(there.headers.get('location') ?? '')
      assert.equal(back.pathname, '/oauth/gmail/callback')
      // Services add what they like.
      back.searchParams.set('authuser', '0')
      const path = `${back.pathname}${back.search}`
      const page = await world.get(path)
      assert.equal(page.status, 200, page.body)
      assert.deepEqual(await world.accounts(), [], 'the way back alone connects nothing')
      const answer = { state: back.searchParams.get('state'), code: back.searchParams.get('code') }
      const connected = await world.post('/api/accounts/connected', answer)
      assert.equal(connected.body.title, 'Connected')
      const [account] = await world.accounts()
      assert.equal(account.access, 'modify')
      assert.equal(account.choices.spam, true)
      assert.equal((await world.get(path)).status, 404, 'a second answer finds nothing')
      await world.sync()
      const name = encodeURIComponent(account.name)
      const gone = await world.remove(`/api/accounts/gmail/${name}`)
      assert.equal(gone.body.outcome, 'done')
      assert.doesNotMatch(gone.body.text, /could not/)
      assert.deepEqual(await world.accounts(), [])
    } finally {
      await world.close()
    }
  })

  test('an answer that nobody waits for, or that refuses, connects nothing and is shown as text', async () => {
    const world = await startMailApi()
    const begin = (access: string) => world.post('/api/accounts/connect', { service: 'gmail', access })
    try {
      for (const query of ['', '?state=x&code=y', '?error=%3Cscript%3E&state=zz']) {
        const { status, type, body } = await world.get(`/oauth/gmail/callback${query}`)
        assert.equal(status, 404)
        assert.match(type, /^text\/html/)
        assert.doesNotMatch(body, /<script/)
      }
      const { body } = await begin('readonly')
      const denied = await world.get(`/oauth/gmail/callback?state=${body.state}&error=%3Cscript%3E`)
      assert.equal(denied.status, 422)
      assert.doesNotMatch(denied.body, /<script/)
      const again = (await begin('readonly')).body
      isProblem(
        await world.post('/api/accounts/connected', { state: again.state, code: 'wrong' }),
        422,
        'invalid_grant',
      )
      assert.deepEqual(await world.accounts(), [])
      isProblem(await begin('everything'), 400)
      delete world.services.config.gmail.client_id
      isProblem(await begin('full'), 409, 'no-client')
    } finally {
      await world.close()
    }
  })
})

describe('the clean-up', () => {
  let world: MailWorld
  before(async () => {
    world = await startMailApi({ messages: 0 })
    for (let n = 0; n < 6; n++) {
      world.deliver(
        `From: b@example.com\r\nTo: ${ANN}\r\nMessage-ID: <n${n}@x>\r\nSubject: n${n}\r\n\r\nText ${n}.\r\n`,
        {
          atMs: Date.UTC(2020, 1, 1 + n),
        },
      )
    }
    await world.connect(ANN)
    await world.sync()
  })
  after(() => world.close())

  const wish = { account: ANN, olderThan: '1y' }
  const settled = async (id: number, state: string): Promise<Answer['body']> => {
    await world.runtime.engine.drained()
    const { body } = await world.get(`/api/mail/clean-up/runs/${id}`)
    assert.equal(body.state, state, JSON.stringify(body))
    return body
  }

  const proven = async (body: object): Promise<Answer['body']> => {
    const begun = await world.post('/api/mail/clean-up/proofs', body)
    assert.equal(begun.status, 202, JSON.stringify(begun.body))
    await world.runtime.engine.drained()
    return (await world.get(`/api/mail/clean-up/proofs/${begun.body.id}`)).body
  }

  test('a plan says what would be taken out, quickly or with proof', async () => {
    const quick = await world.post('/api/mail/clean-up/plan', wish)
    assert.equal(quick.status, 200, JSON.stringify(quick.body))
    assert.deepEqual([quick.body.messages, quick.body.isFull, quick.body.confirm], [6, false, null])
    const full = await proven({ ...wish, action: 'trash' })
    assert.deepEqual([full.state, full.looked, full.plan.messages, full.plan.isFull], ['done', 6, 6, true])
    assert.equal(full.plan.freedBytes, full.plan.bytes)
    assert.equal(full.plan.understood, '')
    isProblem(await world.get('/api/mail/clean-up/proofs/999999'), 404, 'proof-unknown')
  })

  test('a proof outlives resets of the connection, and the same wish joins one that is under way', async () => {
    const { faults } = world.sim
    faults.set({ rules: [{ do: 'reset', methods: ['history.list'], max: 2 }] })
    const body = await proven(wish)
    assert.deepEqual([body.state, body.plan?.messages, body.trouble], ['done', 6, null], JSON.stringify(body))
    assert.equal(faults.counts()[0]?.struck, 2)
    faults.set({ rules: [] })
    await world.runtime.engine.pause('kind', 'mail.archive-proof')
    const first = (await world.post('/api/mail/clean-up/proofs', wish)).body
    const again = (await world.post('/api/mail/clean-up/proofs', wish)).body
    assert.deepEqual([first.state, again.id], ['running', first.id], 'the same wish joins it')
    await world.runtime.engine.resume('kind', 'mail.archive-proof')
    await world.runtime.engine.drained()
    assert.equal((await world.get(`/api/mail/clean-up/proofs/${first.id}`)).body.plan.messages, 6)
  })

  test('a run is started, watched, undone, and listed in pages', async () => {
    const started = await world.post('/api/mail/clean-up/runs', { ...wish, query: 'subject:n1' })
    assert.equal(started.status, 202, JSON.stringify(started.body))
    const { id } = started.body
    const done = await settled(id, 'done')
    assert.deepEqual([done.done, done.canUndo, done.canResume], [1, true, false])
    isProblem(await world.post(`/api/mail/clean-up/runs/${id}/resume`), 409, 'run-settled')
    assert.equal((await world.post(`/api/mail/clean-up/runs/${id}/halt`)).body.outcome, 'already')
    assert.equal((await world.post(`/api/mail/clean-up/runs/${id}/abandon`)).body.outcome, 'already')
    assert.equal((await world.post(`/api/mail/clean-up/runs/${id}/undo`)).body.outcome, 'done')
    assert.equal((await settled(id, 'undone')).canUndo, false)
    assert.equal((await world.post(`/api/mail/clean-up/runs/${id}/undo`)).body.outcome, 'already')
    await world.post('/api/mail/clean-up/runs', { ...wish, query: 'nothing-like-this' })
    await world.runtime.engine.drained()
    const first = await world.get('/api/mail/clean-up/runs?limit=1')
    const second = await world.get(`/api/mail/clean-up/runs?limit=1&cursor=${first.body.next}`)
    assert.deepEqual([first.body.items[0].id, second.body.items[0].id, second.body.next], [id + 1, id, null])
  })

  test('a run is halted, resumed and given up; a second one waits for it', async () => {
    await world.runtime.engine.pause('stream', streamOf(ANN), 'for this test')
    const { body } = await world.post('/api/mail/clean-up/runs', { ...wish, query: 'subject:n2' })
    isProblem(await world.post('/api/mail/clean-up/runs', wish), 409, 'run-unfinished')
    const path = `/api/mail/clean-up/runs/${body.id}`
    assert.match((await world.get(path)).body.trouble, /paused: for this test/)
    assert.equal((await world.post(`${path}/halt`)).body.outcome, 'done')
    await world.runtime.engine.resume('stream', streamOf(ANN))
    assert.equal((await settled(body.id, 'planned')).canResume, true)
    assert.equal((await world.post(`${path}/resume`)).body.outcome, 'done')
    await settled(body.id, 'done')
    await world.runtime.engine.pause('stream', streamOf(ANN), 'for this test')
    const other = (await world.post('/api/mail/clean-up/runs', { ...wish, query: 'subject:n3' })).body
    assert.equal((await world.post(`/api/mail/clean-up/runs/${other.id}/abandon`)).body.outcome, 'done')
    await world.runtime.engine.resume('stream', streamOf(ANN))
    await settled(other.id, 'abandoned')
  })

  test('deleting for good takes the words of the plan, and no more than they say', async () => {
    const deletion = { ...wish, query: 'subject:n4', action: 'delete' }
    isProblem(await world.post('/api/mail/clean-up/runs', deletion), 422, 'confirmation-needed')
    const wrong = { ...deletion, confirm: 'delete 2 messages' }
    isProblem(await world.post('/api/mail/clean-up/runs', wrong), 422, 'confirmation-needed')
    assert.equal([...world.sim.gmail.mailbox(ANN).dump()].filter(({ deleted }) => deleted).length, 0)
    const plan = await world.post('/api/mail/clean-up/plan', deletion)
    assert.equal(plan.body.confirm, 'delete 1 message')
    const { status, body } = await world.post('/api/mail/clean-up/runs', {
      ...deletion,
      confirm: plan.body.confirm,
    })
    assert.equal(status, 202)
    assert.equal((await settled(body.id, 'done')).done, 1)
  })

  test('wishes that cannot be are refused as problems', async () => {
    for (const [body, status] of [
      [{ ...wish, olderThan: '2' }, 400],
      [{ ...wish, olderThan: '1y; drop' }, 400],
      [{ ...wish, action: 'burn' }, 400],
      [{ ...wish, query: '((' }, 400],
      [{ ...wish, account: 'nobody@example.com' }, 404],
      [{ ...wish, extra: 1 }, 400],
      [[], 400],
      ['x', 400],
    ] as const) {
      isProblem(await world.post('/api/mail/clean-up/plan', body), status)
      isProblem(await world.post('/api/mail/clean-up/runs', body), status)
    }
    for (const verb of ['undo', 'resume', 'halt', 'abandon']) {
      isProblem(await world.post(`/api/mail/clean-up/runs/999/${verb}`), 404)
      isProblem(await world.post(`/api/mail/clean-up/runs/-1/${verb}`), 400)
    }
    isProblem(await world.get('/api/mail/clean-up/runs/999'), 404)
    assert.deepEqual(world.errors, [])
  })

  test('a plan and its run repeat the query as it was understood', async () => {
    const query = 'subject:n5 -{is:starred is:important}'
    const { body } = await world.post('/api/mail/clean-up/plan', { ...wish, query })
    assert.deepEqual([body.wish.query, body.messages], [query, 1])
    assert.equal(body.understood, 'subject:n5 AND NOT (is:starred OR is:important)')
    const started = await world.post('/api/mail/clean-up/runs', { ...wish, query })
    assert.equal((await settled(started.body.id, 'done')).query, body.understood)
    for (const refused of ['a | b', 'a NOT', '-label:imporant']) {
      const problem = await world.post('/api/mail/clean-up/plan', { ...wish, query: refused })
      assert.equal(problem.status, 400, JSON.stringify(problem.body))
    }
  })

  test('an account that may only read is told so before anything begins', async () => {
    await world.connect(ANN, 'readonly')
    isProblem(await world.post('/api/mail/clean-up/runs', wish), 409, 'scope-missing')
  })
})
