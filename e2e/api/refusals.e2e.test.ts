/** What the document says about every operation alike: its form, and how each refuses what it does not take. */
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { after, before, describe, test } from 'node:test'
import { type Body, type CallInput, Contract } from './contract.ts'
import { ApiDocument, type Operation } from './document.ts'
import { ANN, type ApiServer, startApiServer, TOKEN } from './server.ts'

const NOBODY = 'nobody@example.com'

let server: ApiServer
let contract: Contract

before(async () => {
  server = await startApiServer({ messages: 5 })
  const document = new ApiDocument(await (await server.ask('/api/openapi.json')).json())
  contract = new Contract(document, server.ask)
})
after(() => server.close())

const call = (id: string, status: number, input?: CallInput) => contract.call(id, status, input)

/** By another service, which brings what it signed and no token of ours: src/apps/assistant/api/webhook.test.ts. */
const isSigned = ({ security }: Operation): boolean => security?.some((one) => 'signed' in one) ?? false
/** All others. */
const asked = (): readonly Operation[] => contract.document.operations.filter((one) => !isSigned(one))

describe('the document', () => {
  test('names every operation once, and every parameter of its path', () => {
    const { operations, raw } = contract.document
    assert.equal(new Set(operations.map(({ operationId }) => operationId)).size, operations.length)
    for (const { operationId, path, parameters, tags } of operations) {
      const inPath = parameters.filter((one) => one.in === 'path')
      assert.deepEqual(
        inPath.map(({ name }) => name),
        [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name),
        operationId,
      )
      assert.ok(
        inPath.every(({ required }) => required),
        operationId,
      )
      assert.equal(new Set(parameters.map((one) => `${one.in} ${one.name}`)).size, parameters.length)
      assert.ok(
        tags.every((tag) => raw.tags.some(({ name }) => name === tag)),
        operationId,
      )
    }
  })

  test('describes every field that a client sends', () => {
    for (const { operationId, parameters, requestBody } of contract.document.operations) {
      for (const { name, description } of parameters)
        assert.ok(description.length > 5, `${operationId} ${name}`)
      const schema = requestBody?.content['application/json']?.schema as Body
      for (const [name, field] of Object.entries<Body>(schema?.properties ?? {})) {
        assert.ok(field.description?.length > 5, `${operationId} ${name}`)
      }
    }
  })

  test('says what every operation answers and refuses with, and who may ask', () => {
    const open = new Set<string>()
    for (const operation of contract.document.operations) {
      const { operationId, method, responses, security } = operation
      const refusals = Object.entries(responses).filter(([status]) => /^[45]/.test(status))
      for (const [status, { content = {} }] of refusals) {
        const isPage = /^getOauth\w+Callback$/.test(operationId) && /^4(?:04|22)$/.test(status)
        assert.deepEqual(Object.keys(content), [isPage ? 'text/html' : 'application/problem+json'])
      }
      assert.ok('400' in responses && '403' in responses && '5XX' in responses, operationId)
      const isOpen = security !== undefined && security.length === 0
      if (isOpen) open.add(operationId)
      else assert.ok('401' in responses, operationId)
      const intent = operation.parameters.some(({ name }) => name === 'X-Tidemark')
      assert.equal(intent, method !== 'get' && !isSigned(operation), operationId)
    }
    assert.deepEqual([...open].sort(), [
      ...['getOauthDriveCallback', 'getOauthGmailCallback', 'getOauthOnedriveCallback', 'postSignIn'],
    ])
  })

  test('has schemas that a strict validator takes', () => {
    const { document } = contract
    for (const { parameters, requestBody, responses } of document.operations) {
      for (const { schema } of parameters) document.mistake(schema, null)
      const contents = [requestBody?.content, ...Object.values(responses).map(({ content }) => content)]
      for (const content of contents) {
        for (const { schema } of Object.values(content ?? {})) document.mistake(schema, null)
      }
    }
    for (const schema of Object.values(document.events)) document.mistake(schema, null)
    assert.notEqual(document.mistake(document.problem, { status: '400' }), undefined)
  })
})

/** What is sent to get past the form of the parameters: nothing of this name is there. */
const ABSENT: CallInput['params'] = {
  service: 'gmail',
  client: 'nothing',
  key: 'no.such',
  name: 'mail:nobody',
  account: NOBODY,
  id: 999_999,
  index: 3,
  node: 'i:nobody',
  token: 999_999,
  shard: '0'.repeat(32),
  thread: 'ffffffffffffffff',
  event: 999_999,
}
const REFUSING: Record<string, Body> = {
  postAssistAccounts: { account: '' },
  postAssistAccountsByAccountRouteTest: { from: '' },
  postAssistAccountsByAccountThreadsByThreadCategory: { category: 'spam' },
  postAssistAccountsByAccountThreadsByThreadDraft: { instruction: 1 },
  postAssistAccountsByAccountThreadsByThreadRework: { instruction: ' ' },
  postAssistRules: { account: ANN, from: null, subject: null, category: 'fyi' },
  postAssistSync: { account: '' },
  putAssistAccountsByAccount: { isActive: 'yes' },
  putAssistAccountsByAccountSettings: {},
  putAssistAccountsByAccountThreadsByThreadDraft: { text: 1 },
  putAssistExamplesById: { isOn: 'yes' },
  putAssistRulesById: { isOn: 'yes' },
  postBadRetry: { ids: [0] },
  putConfigByKey: { value: 1 },
  putFilesFoldersByNameSettings: { mode: 'sideways' },
  putOauthClientsByClient: { id: '' },
  postPause: { scope: 'stream' },
  postResume: { scope: 'all', target: 'x' },
  postAccountsConnect: { service: 'gmail', access: 'everything' },
  postAccountsConnected: { state: 'x' },
  postMailSync: { account: '' },
  postMailCleanUpPlan: { account: ANN, olderThan: 'long' },
  postMailCleanUpProofs: { account: ANN, olderThan: 'long' },
  postMailCleanUpRuns: { account: ANN, olderThan: '1y', query: '((' },
  postMailCleanUpRunsByIdResume: { confirm: 5 },
  postSignIn: {},
  postTickets: { path: 'https://evil.example/' },
  postFilesFolders: { path: '' },
  postFilesFoldersByNameHeldDeletes: { count: 0 },
  postFilesFoldersByNameConflictsByIdResolve: { keep: 'neither' },
  postFilesFoldersByNameTrashRestore: { id: 5 },
  postDriveSync: { account: '' },
  postIngestPipelinesByNameMessages: { messages: [] },
  postIngestPipelinesByNameShardsByShardReplay: { at: [-1] },
  postUsers: { name: '' },
  putUsersById: { role: 'king' },
  postUsersByIdTokens: { label: 5 },
  postSearchSaved: { name: '' },
  postSearchRecent: { text: '' },
}
/** Of those that need one: what gets past the form of the body. */
const NEEDED: Record<string, Body> = {
  postAssistAccountsByAccountRouteTest: { from: 'a@example.com' },
  postAssistAccountsByAccountThreadsByThreadCategory: { category: 'fyi' },
  postAssistAccountsByAccountThreadsByThreadRework: { instruction: 'x' },
  putAssistAccountsByAccount: { isActive: true },
  putAssistExamplesById: { isOn: true },
  putConfigByKey: { value: '1' },
  putOauthClientsByClient: { id: 'x' },
  putAssistAccountsByAccountSettings: { toml: '' },
  putAssistAccountsByAccountThreadsByThreadDraft: { text: 'x' },
  postFilesFoldersByNameHeldDeletes: { count: 1 },
  postFilesFoldersByNameConflictsByIdResolve: { keep: 'both' },
  postFilesFoldersByNameTrashRestore: { id: 'x' },
  postIngestPipelinesByNameMessages: { messages: [{ body: 'x' }] },
}

describe('another user of this machine, who has no token', () => {
  const WRITE = { 'x-tidemark': '1', 'content-type': 'application/json' }
  /**
   * On a connection of its own, as one process after the other. Head and body go out together: `fetch` sends a body
   * later, and on a slow machine the server has refused and closed the connection before it comes.
   */
  const stranger = (path: string, asked: { method?: string; headers?: object; body?: string } = {}) => {
    const { method = 'GET', headers, body = '' } = asked
    const length = body === '' ? {} : { 'content-length': String(Buffer.byteLength(body)) }
    const { promise, resolve, reject } = Promise.withResolvers<Response>()
    const sent = request(
      server.url + path,
      { method, agent: false, headers: { ...headers, ...length } },
      (answer) => {
        const chunks: Uint8Array[] = []
        answer.on('data', (chunk: Uint8Array) => chunks.push(chunk)).on('error', reject)
        answer.on('end', () =>
          resolve(new Response(Buffer.concat(chunks), { status: answer.statusCode ?? 0 })),
        )
      },
    )
    sent.on('error', reject).end(body)
    return promise
  }

  test('is told nothing by any operation, live events, metrics, MCP or health', async () => {
    const operations = contract.document.operations.filter(({ path }) => path !== '/api/sign-in')
    for (const { method, path, operationId } of operations) {
      const to = path.replaceAll(/\{\w+\}/g, '1')
      const body = method === 'get' ? {} : { body: '{}' }
      const answer = await stranger(to, { method: method.toUpperCase(), headers: WRITE, ...body })
      // Nobody waits for an answer of a service that was never asked.
      assert.equal(answer.status, path.startsWith('/oauth/') ? 404 : 401, operationId)
    }
    for (const path of ['/api/events', '/metrics', '/api/openapi.json']) {
      assert.equal((await stranger(path)).status, 401, path)
    }
    const hello = { jsonrpc: '2.0', id: 1, method: 'tools/list' }
    const mcp = { method: 'POST', headers: WRITE, body: JSON.stringify(hello) }
    assert.equal((await stranger('/mcp', mcp)).status, 401)
    for (const path of ['/healthz', '/readyz']) {
      assert.deepEqual(Object.keys((await (await stranger(path)).json()) as object), ['status'])
    }
  })

  test('cannot connect a OneDrive of their own, nor have the keys of the owner copied there', async () => {
    const post = (path: string, body: object) =>
      stranger(path, { method: 'POST', headers: WRITE, body: JSON.stringify(body) })
    assert.equal(
      (await post('/api/accounts/connect', { service: 'onedrive', access: 'readwrite' })).status,
      401,
    )
    assert.equal((await post('/api/files/folders', { path: '~/.ssh' })).status, 401)
    const owner = { method: 'POST', headers: WRITE, body: JSON.stringify({ path: '~/.ssh' }) }
    const refused = await server.ask('/api/files/folders', owner)
    assert.equal(refused.status, 403)
    const { items } = (await (await server.ask('/api/files/folders')).json()) as { items: { root: string }[] }
    assert.deepEqual(
      items.map(({ root }) => root),
      [server.docs],
    )
  })
})

describe('every operation', () => {
  test('refuses who brings no token, or a wrong one', async () => {
    const closed = asked().filter(({ responses }) => '401' in responses)
    for (const headers of [{ authorization: '' }, { authorization: `Bearer ${TOKEN}x` }]) {
      for (const { operationId, requestBody } of closed) {
        if (operationId === 'postSignIn') continue
        const body = requestBody ? { body: {} } : {}
        assert.equal(
          (await call(operationId, 401, { params: ABSENT!, headers, ...body })).body.code,
          'sign-in',
        )
      }
    }
  })

  test('refuses another page, and what changes something without the header that says so', async () => {
    for (const operation of contract.document.operations) {
      const { operationId, method, requestBody } = operation
      const input = { params: ABSENT!, ...(requestBody ? { body: {} } : {}) }
      await call(operationId, 403, { ...input, headers: { origin: 'https://evil.example' } })
      if (method !== 'get' && !isSigned(operation))
        await call(operationId, 403, { ...input, headers: { 'x-tidemark': '0' } })
    }
  })

  test('refuses parameters that it does not know, and addresses that are too long', async () => {
    for (const { operationId, path, requestBody } of asked()) {
      const input: CallInput = {
        params: ABSENT!,
        ...(requestBody ? { body: REFUSING[operationId] ?? {} } : {}),
      }
      const long: CallInput = { ...input, query: { unknown: 'x'.repeat(8_200) } }
      assert.equal((await call(operationId, 414, long)).body.code, 'too-long')
      // Services add parameters as they like.
      if (path.startsWith('/oauth')) continue
      const { detail } = (await call(operationId, 400, { ...input, query: { unknown: 1 } })).body
      assert.match(detail, /unknown/)
    }
  })

  test('refuses numbers that are none', async () => {
    for (const { operationId, parameters } of contract.document.operations) {
      const numbers = parameters.filter((one) => /^(?:integer|number)$/.test(String(one.schema.type)))
      for (const { name, in: place } of numbers) {
        for (const wrong of ['', 'NaN', '1e999', '0x10', ' 1', '1.5.2', '-99999999999999999999']) {
          if (wrong === '' && place === 'path') continue
          const given = { [name]: wrong }
          const input =
            place === 'path' ? { params: { ...ABSENT, ...given } } : { params: ABSENT!, query: given }
          await call(operationId, 400, input)
        }
      }
    }
  })

  test('on something says when it is not there', async () => {
    for (const { operationId, path, requestBody } of contract.document.operations) {
      if (!path.includes('{')) continue
      const body = NEEDED[operationId] ?? {}
      await call(operationId, 404, { params: ABSENT!, ...(requestBody ? { body } : {}) })
    }
    const cleanUp = ['postMailCleanUpPlan', 'postMailCleanUpProofs', 'postMailCleanUpRuns']
    for (const id of ['getMailSearch', 'postMailSync', ...cleanUp]) {
      const input = { account: NOBODY, ...(id.includes('CleanUp') ? { olderThan: '1y' } : {}) }
      await call(id, 404, id.startsWith('get') ? { query: input } : { body: input })
    }
    await call('getBad', 404, { query: { stream: 'mail:nobody' } })
    for (const id of ['postPause', 'postResume', 'postBadRetry']) {
      const scope =
        id === 'postBadRetry' ? { stream: 'mail:nobody' } : { scope: 'stream', target: 'mail:nobody' }
      await call(id, 404, { body: scope })
    }
  })

  test('with a body takes only JSON, of its form, and not too much of it', async () => {
    const withBody = asked().filter(({ requestBody }) => requestBody)
    assert.deepEqual(withBody.map(({ operationId }) => operationId).sort(), Object.keys(REFUSING).sort())
    for (const { operationId } of withBody) {
      // Its tries are limited.
      if (operationId === 'postSignIn') continue
      const params = ABSENT!
      await call(operationId, 400, { params, body: REFUSING[operationId] })
      for (const body of [
        '{',
        '[]',
        'null',
        '"text"',
        `${'['.repeat(40)}${']'.repeat(40)}`,
        '{"x":"\\u0000"}',
      ]) {
        await call(operationId, 400, { params, body })
      }
      await call(operationId, 415, { params, body: '{}', headers: { 'content-type': 'text/plain' } })
      await call(operationId, 413, { params, body: `{"x":"${'x'.repeat(1_000_001)}"}` })
    }
  })

  test('has no other methods, and beside them there is nothing', async () => {
    const { document } = contract
    const refusedWith = async (status: number, path: string, method: string): Promise<void> => {
      const answer = await server.ask(path, { method, headers: { 'x-tidemark': '1' } })
      assert.equal(answer.status, status, `${method} ${path}`)
      assert.match(answer.headers.get('content-type') ?? '', /^application\/problem\+json/)
      assert.equal(document.mistake(document.problem, await answer.json()), undefined)
      if (status === 405) assert.ok(!answer.headers.get('allow')!.split(', ').includes(method), path)
    }
    for (const [path, methods] of Object.entries(document.raw.paths)) {
      for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
        if (method.toLowerCase() in methods) continue
        await refusedWith(405, path.replaceAll(/\{\w+\}/g, '1'), method)
      }
    }
    for (const path of ['/api', '/api/', '/api/nothing', '/api/jobs/1/2/3', '/api/mail/'])
      await refusedWith(404, path, 'GET')
  })
})
