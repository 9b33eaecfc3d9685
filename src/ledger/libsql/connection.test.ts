/** What comes back, and from whom: a server that was not meant, one that is moved, and somebody between. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { TidemarkError } from '../../base/errors.ts'
import { openLedger } from '../open.ts'
import { Connection, parseTarget, Stream } from './connection.ts'
import { AnswerError, classify, ServerError, serverError, UNHELD } from './errors.ts'
import { transactionOf } from './within.ts'

const TOKEN = 'a-token-that-nobody-may-see'

describe('what is no libSQL server', () => {
  let server: Server
  let url: string
  let answer: (request: IncomingMessage, response: ServerResponse) => void
  let asked: string[] = []
  before(async () => {
    server = createServer((request, response) => {
      asked.push(request.url ?? '')
      request.resume().on('end', () => answer(request, response))
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  })
  after(() => {
    server.closeAllConnections()
    server.close()
  })

  async function refusal(): Promise<TidemarkError> {
    asked = []
    const thrown = await openLedger(url, { token: TOKEN }).then(
      () => assert.fail('it was taken for one'),
      (error: unknown) => error,
    )
    assert.ok(thrown instanceof TidemarkError, String(thrown))
    assert.ok(!`${thrown.message}${thrown.hint}${(thrown.cause as Error).message}`.includes(TOKEN))
    return thrown
  }

  test('and sends us on is not followed, and it is said where to', async () => {
    answer = (_, response) =>
      response.writeHead(308, { location: 'https://elsewhere.example.com/x?y=z' }).end()
    const { code, message } = await refusal()
    assert.equal(code, 'ledger-down')
    assert.match(message, /sends us on to https:\/\/elsewhere\.example\.com, which is not followed/)
    assert.deepEqual(asked, ['/v3/pipeline'])
  })

  test('is told from one that cannot be reached, whatever it answers', async () => {
    for (const text of [
      '<html>Welcome</html>',
      'null',
      '{}',
      '{"results":[{}]}',
      '{"results":[{"type":"ok"}]}',
    ]) {
      answer = (_, response) => response.end(text)
      const { code, message, hint } = await refusal()
      assert.equal(code, 'ledger-down', text)
      assert.match(message, /does not answer as it should: the answer is not one of a libSQL server/, text)
      assert.match(hint ?? '', /ledger\.url/)
    }
  })

  test('and repeats the token shows it to nobody', async () => {
    for (const status of [401, 403, 404, 500]) {
      answer = ({ headers }, response) => response.writeHead(status).end(`no: ${headers.authorization}`)
      assert.match((await refusal()).message, /Bearer \*\*\*/)
    }
  })

  test('and has too much to do is waited for', async () => {
    let busy = 2
    answer = (_, response) => response.writeHead(busy-- > 0 ? 429 : 401).end('slow down')
    assert.equal((await refusal()).code, 'ledger-auth')
    assert.equal(busy, -1)
    const told = classify(new ServerError('slow down', { status: 429 }), 'there') as TidemarkError
    assert.deepEqual([told.code, told.kind], ['ledger-busy', 'transient'])
  })
})

/** One answer after another; what was asked, and where. */
function scripted(
  answers: (string | Error)[],
  { url = 'http://127.0.0.1:1', token }: { url?: string; token?: string } = {},
): { stream: Stream; asked: string[] } {
  const asked: string[] = []
  const connection = new Connection(parseTarget(url, token))
  const stream = new Stream(async (to) => {
    asked.push(to)
    const next = answers.shift()
    if (next instanceof Error) throw next
    return next ?? assert.fail('nothing more was to be asked')
  }, connection)
  return { stream, asked }
}

function done(more: object = {}): string {
  const result = { step_results: [{ cols: [], rows: [], affected_row_count: 0 }], step_errors: [null] }
  const state = { type: 'ok', response: { type: 'get_autocommit', is_autocommit: true } }
  return JSON.stringify({ baton: 'b', ...more, results: [{ type: 'ok', response: { result } }, state] })
}

function reset(): Error {
  return Object.assign(new Error('read ECONNRESET'), { code: 'ECONNRESET' })
}

describe('a stream', () => {
  const ONE = [{ sql: 'SELECT 1' }]

  test('goes on where the server says, with or without a slash at its end, but not unencrypted', async () => {
    const moved = scripted([done({ base_url: 'http://b.example.com/' }), done()])
    await moved.stream.batch(ONE, { isFirst: true })
    await moved.stream.batch(ONE, { isFirst: false })
    assert.equal(moved.asked[1], 'http://b.example.com/v3/pipeline')
    const https = { url: 'https://a.example.com' }
    const { stream } = scripted([done({ base_url: 'http://b.example.com' })], https)
    await assert.rejects(stream.batch(ONE, { isFirst: true }), AnswerError)
  })

  test('that a busy server does not open is asked for again; a transaction on it that is refused has ended', async () => {
    const busy = () => new ServerError('timed out while opening', { status: 429 })
    const { stream, asked } = scripted([busy(), busy(), done(), busy()])
    await stream.batch(ONE, { isFirst: true })
    assert.equal(asked.length, 3)
    await assert.rejects(stream.batch(ONE, { isFirst: false }), { status: 429 })
    assert.equal(asked.length, 4)
  })

  test('takes a token elsewhere only from one encrypted place to another', async () => {
    const movesTo = async (url: string, base_url: string): Promise<string | undefined> => {
      const { stream, asked } = scripted([done({ base_url }), done()], { url, token: 'secret' })
      await stream.batch(ONE, { isFirst: true })
      await stream.batch(ONE, { isFirst: false })
      return asked[1]
    }
    for (const elsewhere of [
      'http://b.example.com',
      'https://b.example.com',
      'http://127.0.0.1:2',
      '//x',
      '@',
    ])
      await assert.rejects(movesTo('http://127.0.0.1:1', elsewhere), AnswerError, elsewhere)
    assert.equal(
      await movesTo('http://127.0.0.1:1', 'http://127.0.0.1:1/x'),
      'http://127.0.0.1:1/x/v3/pipeline',
    )
    assert.equal(
      await movesTo('https://a.example.com', 'https://b.example.com'),
      'https://b.example.com/v3/pipeline',
    )
  })

  test('asks once more what only looks, where its connection was closed, and nothing else', async () => {
    const look = { isFirst: true, thenRollBack: true }
    await scripted([reset(), done()]).stream.batch(ONE, look)
    await assert.rejects(scripted([reset(), reset()]).stream.batch(ONE, look), /ECONNRESET/)
    await assert.rejects(scripted([reset()]).stream.batch(ONE, { isFirst: true }), /ECONNRESET/)
  })

  test('that is gone is begun anew, but not where its request was sent twice on the way', async () => {
    const gone = (message: string, status: number, code?: string) =>
      new ServerError(message, { status, code })
    for (const error of [
      gone('The stream has expired due to inactivity', 400, 'STREAM_EXPIRED'),
      gone('The stream has expired due to inactivity', 500, 'STREAM_EXPIRED'),
      gone('Received an invalid baton', 400),
    ]) {
      const { stream, asked } = scripted([done(), error, done()])
      await stream.batch(ONE, { isFirst: true })
      await stream.batch(ONE, { isFirst: true })
      assert.equal(asked.length, 3)
    }
    const { stream } = scripted([done(), gone('Received a baton that has already been used', 400)])
    await stream.batch(ONE, { isFirst: true })
    await assert.rejects(stream.batch(ONE, { isFirst: true }), /already been used/)
  })

  test('of many rows that breaks off is no answer', async () => {
    const lines = [{ baton: 'b' }, { type: 'step_begin', step: 0, cols: [] }, { type: 'row', row: [] }]
    const { stream } = scripted([lines.map((line) => JSON.stringify(line)).join('\n')])
    await assert.rejects(stream.rows(ONE[0]!), AnswerError)
  })
})

test('more than a process reads at once is no outage that passes, and a name that nobody can look up is one', () => {
  const told = (thrown: unknown) => classify(thrown, 'there') as TidemarkError
  const large = told(new ServerError('an answer of more than 256 MB', { code: UNHELD }))
  assert.deepEqual([large.kind, large.code], ['permanent', 'answer-too-large'])
  for (const code of ['ENOTFOUND', 'EAI_AGAIN'])
    assert.match(
      told(Object.assign(new Error('getaddrinfo'), { code })).message,
      /The host of there cannot be found/,
    )
})

test('what a replica was told by the primary is what the primary has said', () => {
  const told = (message: string) =>
    serverError({ message: `error executing a request on the primary: ${message}`, code: 'PROXY_ERROR' })
  const codeOf = (message: string) => (classify(told(message), 'there') as { code?: string }).code
  assert.equal(codeOf('database is locked'), 'ledger-busy')
  assert.equal(codeOf('Transaction timed-out'), 'ledger-idle')
  assert.equal(codeOf('Operation was blocked: above its plan'), 'ledger-readonly')
  assert.equal(codeOf('database or disk is full'), 'ledger-full')
  assert.equal(codeOf('UNIQUE constraint failed: a.b'), 'SQLITE_CONSTRAINT')
  assert.equal(told('no such table: a').message, 'no such table: a')
})

test('an error of @libsql/client in an app’s transaction is what the server said of the statement', async () => {
  const failing = (message: string, code?: string) => ({
    closed: false,
    execute: async () => {
      throw Object.assign(new Error(message), { code })
    },
  })
  const run = (client: object) => transactionOf(client, 'there').run('INSERT')
  await assert.rejects(
    run(failing('SQLITE_CONSTRAINT: UNIQUE constraint failed: a.b', 'SQLITE_CONSTRAINT')),
    {
      code: 'SQLITE_CONSTRAINT',
      message: 'UNIQUE constraint failed: a.b',
    },
  )
  await assert.rejects(run(failing('SQLITE_FULL: database or disk is full', 'SQLITE_FULL')), {
    code: 'ledger-full',
  })
  await assert.rejects(run(failing('fetch failed')), { code: 'ledger-down' })
})
