/**
 * Every operation of the served document, with what fits its schemas at the edges and with what does not fit at all,
 * against a whole server that runs as a process: no answer is a 5xx, every refusal is a problem, and what succeeds has
 * the form that the document gives.
 */
import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import fc from 'fast-check'
import { LETTERS, letter } from '../../src/apps/assistant/demo/letters.ts'
import { seededRandom } from '../../src/base/random.ts'
import { type Body, Contract } from './contract.ts'
import { ApiDocument, type Operation, type Parameter, type Schema } from './document.ts'
import { fitting, misfitting, NASTY, text } from './schema-values.ts'
import { ANN, type ApiServer, BOB, DOCS, startApiServer, TOKEN, until } from './server.ts'

const RUNS = 30
const PIPELINE = 'drops'
/** Beyond it the socket refuses, and not the operation. */
const TARGET_LENGTH_MAX = 12_000
const GROWTH_BYTES_MAX = 300_000_000

let server: ApiServer
let contract: Contract
/** Values that are really there, and cursors of all lists: the way past the first check. */
let known: string[]
/** The id of an object that the pipeline has read. */
let shard: string
/** Of Ann: sorted by the assistant, with a draft. */
let thread: string

before(async () => {
  server = await startApiServer()
  contract = new Contract(new ApiDocument(await (await server.ask('/api/openapi.json')).json()), server.ask)
  shard = await addPipeline()
  thread = await addThread()
  await until(async () => {
    const { jobs } = (await contract.call('getOverview', 200)).body
    return jobs.ready + jobs.deps + jobs.time + jobs.claimed === 0
  }, 'nothing left to do')
  const lists: Body[] = []
  for (const path of ['/api/jobs', '/api/bad', '/api/mail/search', `/api/streams/mail:${ANN}/segments`]) {
    lists.push(await (await server.ask(`${path}?limit=1`)).json())
  }
  const seen = lists.flatMap(({ items, next }) => [next, items[0]?.id, items[0]?.threadId])
  known = [...seen.filter((one) => one), ANN, BOB, `mail:${ANN}`, 'mail.fetch', server.htmlId, '0'].map(
    String,
  )
})
after(() => server.close())

/** A pipeline with an object; answers with the object's id. */
async function addPipeline(): Promise<string> {
  const folder = join(server.world.home, PIPELINE)
  mkdirSync(folder)
  writeFileSync(join(folder, 'a.ndjson'), '{"m":"a wave"}\n')
  const added = await server.world.run('ingest', 'add', PIPELINE, '--inbox', '--bucket', `file://${folder}`)
  assert.equal(added.code, 0, added.stderr)
  const params = { name: PIPELINE }
  await until(
    async () => (await contract.call('getIngestPipelinesByName', 200, { params })).body.queue === 'inbox',
    'the server knows the pipeline',
  )
  await contract.call('postIngestPipelinesByNameReconcile', 202, { params })
  return until(
    async () => (await contract.call('getIngestPipelinesByNameShards', 200, { params })).body.items[0]?.id,
    'the object is found',
  )
}

/** Switches the assistant on for Ann; answers with a thread that it has drafted. */
async function addThread(): Promise<string> {
  const atMs = Date.now()
  const text = letter(LETTERS[0]!, { to: ANN, atMs, n: 0 })
  const mail = { raw: Buffer.from(text), labelIds: ['INBOX'], internalMs: atMs }
  server.world.sim.gmail.mutations(ANN).arrive(mail, seededRandom(1))
  await contract.call('postAssistAccounts', 202, { body: { account: ANN } })
  return until(
    async () =>
      (await contract.call('getAssistThreads', 200, { query: { status: 'drafted' } })).body.items[0]?.thread,
    'a thread is drafted',
  )
}

type Asked = { path: string; init: RequestInit; isProper: boolean }

/** Half of them well-meant, with names that are there, so that they get beyond the first check. */
function requestOf(operation: Operation): fc.Arbitrary<Asked> {
  return fc.oneof(fittingRequest(operation), wildRequest(operation))
}

function fittingRequest(operation: Operation): fc.Arbitrary<Asked> {
  const schema = bodySchema(operation)
  const named = (place: Parameter['in']) =>
    Object.fromEntries(
      operation.parameters
        .filter((one) => one.in === place)
        .map((one) => [one.name, realFor(operation, one.name) ?? fitting(one.schema).map(String)]),
    )
  const parts = {
    params: fc.record(named('path')),
    query: fc.record(named('query'), { requiredKeys: [] }),
    body: schema ? realBody(operation, schema) : fc.constant(''),
  }
  return fc
    .record(parts)
    .map(({ params, query, body }) =>
      asked(operation, { params, query: Object.entries(query), body, headers: {}, raw: null }),
    )
}

function wildRequest(operation: Operation): fc.Arbitrary<Asked> {
  const schema = bodySchema(operation)
  const named = (place: Parameter['in']) =>
    Object.fromEntries(
      operation.parameters
        .filter((one) => one.in === place)
        .map((one) => [one.name, wordFor(operation, one)]),
    )
  const parts = {
    params: fc.record(named('path')),
    query: fc.record(named('query'), { requiredKeys: [] }),
    extra: fc.option(fc.tuple(fc.oneof(text, fc.constantFrom('limit', 'cursor', 'q')), text), { freq: 3 }),
    headers: oddHeaders,
    body: schema ? misfitting(schema) : text,
    raw: fc.option(fc.constantFrom(...RAW_PIECES), { freq: 5 }),
  }
  return fc
    .record(parts)
    .map(({ query, extra, ...rest }) =>
      asked(operation, { ...rest, query: [...Object.entries(query), ...(extra ? [extra] : [])] }),
    )
}

const RAW_PIECES = ['..', '%2e%2e', '%00', '%ff', '%', '%2F', '%5c', ';', '%C0%AF', '\\']

type Parts = {
  params: Record<string, string>
  query: readonly (readonly [string, string | undefined])[]
  headers: Record<string, string>
  body: string
  /** Stands in the path as it is, instead of every parameter. */
  raw: string | null
}

function asked(operation: Operation, { params, query, headers, body, raw }: Parts): Asked {
  const { method, path } = operation
  const encoded = (one: string): string => encodeURIComponent(one.toWellFormed())
  const filled = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => raw ?? encoded(params[name]!))
  const search = query.map(([name, value]) => `${encoded(name)}=${encoded(value ?? '')}`).join('&')
  const hasBody = method !== 'get' && body !== ''
  const type = bodySchema(operation) ? { 'content-type': 'application/json' } : {}
  const usual = method === 'get' ? {} : { 'x-tidemark': '1', ...type }
  return {
    path: search ? `${filled}?${search}` : filled,
    init: { method: method.toUpperCase(), headers: { ...usual, ...headers }, ...(hasBody ? { body } : {}) },
    // A path of dots or of nothing is another path.
    isProper:
      raw === null &&
      search.length < TARGET_LENGTH_MAX &&
      !Object.values(params).some((one) => /^\.{0,2}$/.test(one)),
  }
}

function bodySchema({ requestBody }: Operation): Schema | undefined {
  return requestBody?.content['application/json']?.schema
}

function wordFor(operation: Operation, { name, schema }: Parameter): fc.Arbitrary<string> {
  const real = isRemoval(operation) ? [] : [realFor(operation, name) ?? fc.constantFrom(...known)]
  return fc.oneof(fitting(schema).map(String), ...real, text)
}

/** The accounts must stay, or there would be nothing left to ask about. */
function isRemoval({ operationId }: Operation): boolean {
  return operationId === 'deleteAccountsByServiceByName'
}

/** Names and numbers that are there; undefined where the schema says enough. */
function realFor(operation: Operation, name: string): fc.Arbitrary<string> | undefined {
  if (isRemoval(operation)) return undefined
  const isFiles = operation.path.startsWith('/api/files/')
  const isIngest = operation.path.startsWith('/api/ingest/')
  const isMail = /\/mail\/(?:messages|threads)/.test(operation.path)
  const real: Record<string, readonly string[]> = {
    ...{
      name: isFiles ? [DOCS] : isIngest ? [PIPELINE] : [`mail:${ANN}`, `mail:${BOB}`],
      stream: [`mail:${ANN}`],
      account: [ANN, BOB],
      index: ['0', '1'],
      shard: [shard],
      thread: [thread],
    },
    ...(operation.path === '/api/files/transfers' ? { folder: [DOCS] } : {}),
    id: isMail ? [server.htmlId] : ['1', '2', '3'],
    kind: ['mail.fetch'],
    olderThan: ['1d', '1y'],
    q: ['in:anywhere', 'subject:quarterly', 'from:eve OR to:me'],
    query: ['', 'subject:quarterly'],
    cursor: known.filter((one) => /^\d+$/.test(one)),
    target: ['mail.fetch', `mail:${ANN}`],
  }
  // A search has cursors of its own, which are tried in a test of their own.
  if (name === 'cursor' && operation.operationId === 'getMailSearch') return undefined
  return real[name] && fc.constantFrom(...real[name])
}

function realBody(operation: Operation, schema: Schema): fc.Arbitrary<string> {
  const fields = Object.entries((schema.properties ?? {}) as Record<string, Schema>)
  const model = fields.map(([name, one]) => [name, realFor(operation, name) ?? fitting(one)])
  const requiredKeys = (schema.required ?? []) as string[]
  return fc
    .record(Object.fromEntries(model) as Record<string, fc.Arbitrary<unknown>>, { requiredKeys })
    .map((value) => JSON.stringify(value))
}

const headerText = text.map((one) => one.replaceAll(/[^\x20-\x7e]/g, '').trim())
const oddHeaders = fc.oneof(
  { weight: 3, arbitrary: fc.constant<Record<string, string>>({}) },
  {
    weight: 1,
    arbitrary: fc.dictionary(
      fc.constantFrom(
        'if-none-match',
        'last-event-id',
        'range',
        'accept',
        'x-forwarded-proto',
        'cookie',
        'x-http-method-override',
        'content-type',
        'accept-encoding',
        'if-modified-since',
      ),
      headerText,
      { maxKeys: 3 },
    ),
  },
)

/** Null where the client itself does not send such a thing. */
async function ask({ path, init }: Asked): Promise<Response | null> {
  try {
    return await server.ask(path, init)
  } catch (thrown) {
    const cause = String((thrown as Error).cause ?? thrown)
    assert.doesNotMatch(cause, /ECONNRESET|ECONNREFUSED|other side closed|socket/i, path)
    return null
  }
}

async function checkAny(response: Response, what: string): Promise<void> {
  assert.ok(response.status < 500, `${what} gave ${response.status}`)
  const type = response.headers.get('content-type') ?? ''
  if (response.status >= 400 && !type.startsWith('text/html')) {
    assert.match(type, /^application\/problem\+json/, what)
    assert.equal(contract.document.mistake(contract.document.problem, await response.json()), undefined, what)
  } else await response.body?.cancel()
}

async function fuzz(operation: Operation): Promise<number> {
  let answered = 0
  const property = fc.asyncProperty(requestOf(operation), async (request) => {
    const response = await ask(request)
    if (!response) return
    const what = `${request.init.method} ${request.path}`
    answered += Number(response.ok)
    const isEndless = response.headers.get('content-type')?.startsWith('text/event-stream')
    if (request.isProper && !isEndless) await contract.check(operation, response)
    else await checkAny(response, what)
  })
  // The request that failed says enough; looking for a smaller one takes longer than a test may.
  await fc.assert(property, { numRuns: RUNS, endOnFailure: true })
  return answered
}

test('no operation breaks, whatever it is sent', async () => {
  const beforeBytes = server.memoryBytes()
  const answered = new Map<string, number>()
  // What others ask about is taken away last.
  const takesAway = ({ method }: Operation): number => Number(method === 'delete')
  for (const operation of contract.document.operations.toSorted((a, b) => takesAway(a) - takesAway(b)))
    answered.set(operation.operationId, await fuzz(operation))
  // Inputs that only ever bounce off the first check would show nothing.
  const answeredNone = [...answered].filter(([, n]) => n === 0).map(([id]) => id)
  assert.ok(answeredNone.length < contract.document.operations.length / 4, answeredNone.join(' '))
  const grownBytes = server.memoryBytes() - beforeBytes
  assert.ok(grownBytes < GROWTH_BYTES_MAX, `the process has grown by ${grownBytes} bytes`)
})

test('a parameter that is given twice is refused, and so are too many of them', async () => {
  for (const { operationId, path, parameters } of contract.document.operations) {
    if (path.includes('{')) continue
    // But for those that are lists.
    const single = parameters.filter(
      (one) => one.in === 'query' && !JSON.stringify(one.schema).includes('"array"'),
    )
    for (const { name } of single) {
      const response = await server.ask(`${path}?${name}=1&${name}=1`)
      assert.equal(response.status, 400, `${operationId} ${name}`)
      await checkAny(response, operationId)
    }
    const many = Array.from({ length: 200 }, (_, n) => `p${n}=1`).join('&')
    const response = await server.ask(`${path}?${many}`)
    assert.ok([400, 404, 405].includes(response.status), operationId)
    await checkAny(response, operationId)
  }
})

test('a cursor of another list, or of nowhere, gives a page or a refusal, never an error', async () => {
  const paged = contract.document.operations.filter(({ parameters }) =>
    parameters.some(({ name }) => name === 'cursor'),
  )
  assert.ok(paged.length >= 5)
  for (const operation of paged) {
    for (const cursor of [...known, ...NASTY]) {
      const path = operation.path.replace('{name}', encodeURIComponent(`mail:${ANN}`))
      const response = await server.ask(`${path}?cursor=${encodeURIComponent(cursor.toWellFormed())}`)
      await contract.check(operation, response)
    }
  }
})

test('afterwards the server lives, and its log tells of no request that failed', async () => {
  assert.equal((await server.ask('/readyz')).status, 200)
  assert.doesNotMatch(server.log(), /a request failed|a connection failed/)
  assert.ok(!server.log().includes(TOKEN))
})
