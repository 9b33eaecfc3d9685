import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { TidemarkError } from '../../base/errors.ts'
import { type Sim, type SimOptions, startSim } from '../../sim/start.ts'
import type { GmailClient, GmailClientOptions, Pace, RawMessage } from './client.ts'
import { clientOf } from './scripted-server.suite.ts'

const ADDRESS = 'ada@example.org'
const RETRIES_MAX = 200

let sim: Sim | undefined
afterEach(async () => {
  await sim?.close()
  sim = undefined
})

async function start(messages: number, options: Partial<SimOptions> = {}): Promise<Sim> {
  const fromMs = Date.UTC(2020, 0)
  sim = await startSim({
    ...options,
    gmail: {
      accounts: [{ address: ADDRESS, messages, fromMs, toMs: Date.UTC(2024, 0) }],
      quota: { unitsPerMinute: null },
      ...options.gmail,
    },
  })
  return sim
}

function connect(sim: Sim, options: Partial<GmailClientOptions> = {}): GmailClient {
  const { accessToken } = sim.gmail.accounts[0]!
  const token = { access: async () => accessToken, refused: () => undefined }
  return clientOf(sim.baseUrl, { token, ...options })
}

/** A token source that gets a new one from the simulator when the last was refused. */
function renewing(sim: Sim): GmailClientOptions['token'] {
  let current = sim.gmail.accounts[0]!.accessToken
  return {
    access: async () => current,
    refused: (token) => {
      if (token === current) current = sim.gmail.issue(ADDRESS, ['https://mail.google.com/']).accessToken
    },
  }
}

/** Again until it works, as the engine would, without its waits. */
async function stubbornly<T>(run: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run()
    } catch (error) {
      const passes = error instanceof TidemarkError && ['transient', 'throttled'].includes(error.kind)
      if (!passes || attempt >= RETRIES_MAX) throw error
    }
  }
}

async function listAll(client: GmailClient): Promise<Set<string>> {
  const ids = new Set<string>()
  let pageToken: string | undefined
  do {
    const page = await stubbornly(() =>
      client.listIds({ includeSpamTrash: true, pageToken, maxResults: 100 }),
    )
    for (const { id } of page.ids) ids.add(id)
    pageToken = page.nextPageToken
  } while (pageToken)
  return ids
}

/** Everything that is there, and the ids that are gone. */
async function fetchAll(
  client: GmailClient,
  ids: ReadonlySet<string>,
): Promise<{ messages: Map<string, RawMessage>; gone: Set<string> }> {
  const messages = new Map<string, RawMessage>()
  const gone = new Set<string>()
  let open = [...ids]
  for (let round = 1; open.length > 0; round++) {
    assert.ok(round < RETRIES_MAX, `still missing ${open.length}`)
    const group = open.splice(0, client.batchCallsMax)
    const again: string[] = []
    await stubbornly(async () => {
      again.length = 0
      const left = group.filter((id) => !messages.has(id) && !gone.has(id))
      await client.getRaw(left, {
        onAnswer: (answer) => {
          if (answer.ok) messages.set(answer.id, answer.message)
          else if (answer.error.kind === 'gone') gone.add(answer.id)
          else again.push(answer.id)
        },
      })
    })
    open = [...open, ...again]
  }
  return { messages, gone }
}

describe('against the simulated Gmail', () => {
  test('every message comes as it is', async () => {
    const sim = await start(230)
    const client = connect(sim)
    const profile = await client.profile()
    assert.equal(profile.emailAddress, ADDRESS)
    const ids = await listAll(client)
    assert.equal(ids.size, profile.messagesTotal)
    const { messages, gone } = await fetchAll(client, ids)
    assert.deepEqual([messages.size, gone.size], [230, 0])
    for (const [id, message] of messages) {
      const kept = sim.gmail.mailbox(ADDRESS).get(id)!
      assert.ok(Buffer.compare(message.raw, kept.raw()) === 0, id)
      assert.deepEqual(
        [message.threadId, message.internalMs, message.historyId, [...message.labelIds].sort()],
        [kept.threadId, kept.internalMs, String(kept.historyId), [...kept.labelIds].sort()],
      )
    }
    assert.equal(sim.log.counts().requests.batch?.[200], 5)
  })

  test('every message comes as it is through all kinds of trouble', async () => {
    const sim = await start(600, { faults: { profile: 'mixed' } })
    const client = connect(sim, { token: renewing(sim), timeoutMs: 2_000 })
    const { messages, gone } = await fetchAll(client, await listAll(client))
    for (const [id, message] of messages) {
      const kept = sim.gmail.mailbox(ADDRESS).get(id)
      if (kept) assert.ok(Buffer.compare(message.raw, kept.raw()) === 0, id)
    }
    for (const id of gone) assert.equal(sim.gmail.mailbox(ADDRESS).get(id), undefined)
    assert.ok(messages.size + gone.size >= 600)
    const { faults } = sim.log.counts()
    assert.ok(Object.keys(faults).length > 0, 'there was trouble')
  })

  test('what the quota refuses inside a batch is counted in units', async () => {
    const sim = await start(60, { gmail: { quota: { unitsPerMinute: 400, retryAfterSeconds: 7 } } })
    const refusals: TidemarkError[] = []
    const pace: Pace = (_call, fn) =>
      fn().catch((error: unknown) => {
        if (error instanceof TidemarkError) refusals.push(error)
        throw error
      })
    const client = connect(sim, { pace })
    const { ids } = await client.listIds({ includeSpamTrash: true, maxResults: 50 })
    let [fine, throttled] = [0, 0]
    await client.getRaw(
      ids.map(({ id }) => id),
      {
        onAnswer: (answer) => {
          if (answer.ok) fine += 1
          else if (answer.error.kind === 'throttled' && answer.error.retryAfterMs) throttled += 1
        },
      },
    )
    assert.equal(fine + throttled, 50)
    assert.ok(fine > 0 && throttled > 0, `${fine} fine, ${throttled} refused`)
    assert.deepEqual(
      refusals.map(({ kind, refusedUnits }) => [kind, refusedUnits]),
      [['throttled', throttled * 20]],
    )
  })

  test('a poisoned message fails alone', async () => {
    const sim = await start(20)
    const client = connect(sim)
    const ids = [...(await listAll(client))]
    sim.faults.poison({ id: ids[3]!, mode: 'part' })
    const failed: string[] = []
    await client.getRaw(ids, {
      onAnswer: (answer) => {
        if (!answer.ok) failed.push(answer.id)
      },
    })
    assert.deepEqual(failed, [ids[3]])
  })

  test('history tells what was added, relabelled and deleted, and when it has expired', async () => {
    const sim = await start(20)
    const client = connect(sim)
    const { historyId } = await client.profile()
    const [first, second, third] = [...(await listAll(client))]
    const { id: labelId } = await client.createLabel({ name: 'Kept' })
    await client.batchModify({ ids: [first!, second!], add: [labelId] })
    await client.modify({ id: second!, remove: [labelId] })
    await client.trash(third!)
    await client.untrash(third!)
    await client.batchDelete([third!])
    const added = await client.insert({
      raw: Buffer.from('From: a@example.org\r\nDate: Fri, 13 Feb 2009 23:31:30 +0000\r\n\r\nhello'),
      labelIds: ['INBOX'],
      internalMs: 0,
    })
    const page = await client.history({ startHistoryId: historyId })
    const told = page.records.flatMap((record) => [
      ...record.labelsAdded.map(({ id, labelIds }) => `${id} +${labelIds}`),
      ...record.labelsRemoved.map(({ id, labelIds }) => `${id} -${labelIds}`),
      ...record.deleted.map(({ id }) => `${id} deleted`),
      ...record.added.map(({ id }) => `${id} added`),
    ])
    for (const one of [
      `${first} +${labelId}`,
      `${second} +${labelId}`,
      `${second} -${labelId}`,
      `${third} deleted`,
    ]) {
      assert.ok(told.includes(one), one)
    }
    assert.equal(told.at(-1), `${added.id} added`)
    assert.equal(page.records.at(-1)?.id, page.historyId)
    sim.gmail.mailbox(ADDRESS).expireHistory()
    await assert.rejects(client.history({ startHistoryId: historyId }), (error) =>
      codeIs(error, 'history-expired'),
    )
  })

  test('labels of many messages are read at once, with those that are gone', async () => {
    const sim = await start(10)
    const client = connect(sim)
    const [gone, there] = [...(await listAll(client))]
    await client.batchDelete([gone!])
    const answers = new Map((await client.getLabels([gone!, there!])).map((answer) => [answer.id, answer]))
    const [first, second] = [answers.get(gone!), answers.get(there!)]
    assert.equal(first?.ok === false && first.error.kind, 'gone')
    assert.ok(second?.ok)
    assert.deepEqual(
      [...second.message.labelIds].sort(),
      [...sim.gmail.mailbox(ADDRESS).get(there!)!.labelIds].sort(),
    )
  })

  test('a message that is put back can have the time of its receipt', async () => {
    const sim = await start(1)
    const client = connect(sim)
    const internalMs = Date.UTC(2015, 5, 1, 12)
    const raw = Buffer.from('From: a@example.org\r\nDate: Fri, 13 Feb 2009 23:31:30 +0000\r\n\r\nhello')
    const byHeader = await client.insert({ raw, labelIds: ['INBOX'], internalMs })
    const byReceipt = await client.insert({ raw, labelIds: ['INBOX'], internalMs, dating: 'internal' })
    const [first, second] = [await client.get(byHeader.id), await client.get(byReceipt.id)]
    assert.equal(first.internalMs, Date.UTC(2009, 1, 13, 23, 31, 30))
    assert.deepEqual(Buffer.from(first.raw), raw)
    assert.equal(second.internalMs, internalMs)
    assert.deepEqual([byHeader.altered, byReceipt.altered], [false, true])
  })

  test('a large message is put back byte by byte', async () => {
    const sim = await start(1)
    const client = connect(sim)
    const raw = Buffer.concat([
      Buffer.from('From: a@example.org\r\n\r\n'),
      Buffer.alloc(5_000_000, 'line\r\n'),
    ])
    const { id } = await client.insert({ raw, labelIds: ['INBOX', 'STARRED'], internalMs: 0 })
    const message = await client.get(id)
    assert.ok(Buffer.compare(message.raw, raw) === 0)
    assert.deepEqual([...message.labelIds].sort(), ['INBOX', 'STARRED'])
  })

  test('a label whose name is taken is told apart', async () => {
    const client = connect(await start(1))
    await client.createLabel({ name: 'Kept' })
    await assert.rejects(client.createLabel({ name: 'Kept' }), (error) => codeIs(error, 'exists'))
    assert.ok((await client.labels()).some(({ name, type }) => name === 'Kept' && type === 'user'))
  })

  test('a label that is renamed keeps its id and its messages, and cannot take the name of another', async () => {
    const client = connect(await start(1))
    const [message] = [...(await listAll(client))]
    const { id } = await client.createLabel({ name: 'Kept' })
    await client.createLabel({ name: 'Taken' })
    await client.batchModify({ ids: [message!], add: [id] })
    assert.equal((await client.renameLabel({ id, name: 'Other' })).id, id)
    assert.ok((await client.labels()).some((label) => label.id === id && label.name === 'Other'))
    assert.equal(await client.labelCount(id), 1)
    await assert.rejects(client.renameLabel({ id, name: 'Taken' }), (error) => codeIs(error, 'exists'))
  })

  test('what the scopes do not allow is an auth error with a hint', async () => {
    const sim = await start(3)
    const { accessToken } = sim.gmail.issue(ADDRESS, ['https://www.googleapis.com/auth/gmail.readonly'])
    const client = connect(sim, { token: { access: async () => accessToken, refused: () => undefined } })
    const [id] = [...(await listAll(client))]
    await assert.rejects(client.batchDelete([id!]), (error) => {
      return codeIs(error, 'scope-missing') && error.kind === 'auth' && error.hint !== undefined
    })
  })

  test('a page token that is none is told apart', async () => {
    const client = connect(await start(3))
    const run = client.listIds({ includeSpamTrash: true, pageToken: 'nonsense' })
    await assert.rejects(run, (error) => codeIs(error, 'page-token-invalid'))
  })

  test('a token that ended is replaced without anyone noticing', async () => {
    const sim = await start(5, { faults: { rules: [{ do: 'expire-access', everyNth: 3 }] } })
    const refused = new Set<string>()
    const token = renewing(sim)
    const client = connect(sim, {
      token: {
        access: token.access,
        refused: (one) => {
          refused.add(one)
          token.refused(one)
        },
      },
    })
    const ids = await listAll(client)
    for (let round = 0; round < 5; round++) assert.equal((await fetchAll(client, ids)).messages.size, 5)
    assert.ok(refused.size > 0)
  })
})

function codeIs(error: unknown, code: string): error is TidemarkError {
  assert.ok(error instanceof TidemarkError)
  assert.equal(error.code, code, error.message)
  return true
}
