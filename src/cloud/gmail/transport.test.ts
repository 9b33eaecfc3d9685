import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import { TidemarkError, UsageError } from '../../base/errors.ts'
import {
  clientOf,
  errorJson,
  messageJson,
  type Script,
  type ScriptedServer,
  sendJson,
  startServer,
} from './scripted-server.suite.ts'

const PROFILE = {
  emailAddress: 'a@example.org',
  messagesTotal: 3,
  threadsTotal: 2,
  historyId: '9',
  extra: [1],
}

let server: ScriptedServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

async function serve(script: Script): Promise<ScriptedServer> {
  server = await startServer(script)
  return server
}

/** A fetch that never answers and does not care about signals. */
const deaf = (() => new Promise<never>(() => undefined)) as typeof globalThis.fetch

describe('a call', () => {
  test('carries the token, and is answered with what is used of the answer', async () => {
    const { url, requests } = await serve((_request, answer) => sendJson(answer, PROFILE))
    const { extra: _, ...profile } = PROFILE
    assert.deepEqual(await clientOf(`${url}/`).profile(), profile)
    assert.equal(requests[0]?.path, '/gmail/v1/users/me/profile')
    assert.equal(requests[0]?.headers.authorization, 'Bearer token-1')
  })

  test('names the user whom it acts for', async () => {
    const { url, requests } = await serve((_request, answer) => sendJson(answer, PROFILE))
    await clientOf(url, { userId: 'a/b@example.org' }).profile()
    assert.equal(requests[0]?.path, '/gmail/v1/users/a%2Fb%40example.org/profile')
  })

  test('needs a web address', () => {
    assert.throws(() => clientOf('gmail'), UsageError)
    assert.throws(() => clientOf('file:///etc/passwd'), UsageError)
  })

  test('whose token is refused is made once more with a new one', async () => {
    const { url, requests } = await serve((request, answer) =>
      request.headers.authorization === 'Bearer t2' ? sendJson(answer, PROFILE) : sendJson(answer, {}, 401),
    )
    const refused: string[] = []
    const token = {
      access: async () => `t${refused.length + 1}`,
      refused: (one: string) => {
        refused.push(one)
      },
    }
    assert.equal((await clientOf(url, { token }).profile()).historyId, '9')
    assert.deepEqual(refused, ['t1'])
    assert.equal(requests.length, 2)
  })

  test('whose new token is refused too needs the user', async () => {
    const { url, requests } = await serve((_request, answer) => {
      answer.writeHead(401).end(errorJson(401, 'authError'))
    })
    await assert.rejects(clientOf(url).profile(), (error) => has(error, 'auth', 'token-refused'))
    assert.equal(requests.length, 2)
  })

  test('without a token fails with the error of its source', async () => {
    const lost = new TidemarkError('sign in again', { kind: 'auth', code: 'signed-out' })
    const token = { access: () => Promise.reject(lost), refused: () => undefined }
    await assert.rejects(clientOf('http://127.0.0.1:1', { token }).profile(), (error) => error === lost)
  })

  test('does not follow to another place, where the token would go too', async () => {
    const { url, requests } = await serve((request, answer) => {
      if (request.path.startsWith('/gmail')) answer.writeHead(302, { location: '/elsewhere' }).end()
      else sendJson(answer, PROFILE)
    })
    await assert.rejects(clientOf(url).profile(), (error) => has(error, 'transient', 'not-gmail'))
    assert.equal(requests.length, 1)
  })
})

describe('an answer is transient trouble when', () => {
  const troubles: [what: string, code: string, script: Script][] = [
    [
      'it is a page with status 200',
      'wrong-content-type',
      (_request, answer) => {
        answer.writeHead(200, { 'content-type': 'text/html' }).end('<html>hello</html>')
      },
    ],
    [
      'it is not JSON although it says so',
      'damaged-answer',
      (_request, answer) => {
        answer.writeHead(200, { 'content-type': 'application/json' }).end('{"emailAddress": "secret@')
      },
    ],
    [
      'a field is missing',
      'damaged-answer',
      (_request, answer) => sendJson(answer, { ...PROFILE, historyId: null }),
    ],
    [
      'it breaks off',
      'connection-failed',
      (_request, answer) => {
        answer.writeHead(200, { 'content-type': 'application/json', 'content-length': '1000' })
        answer.write('{"a":', () => answer.destroy())
      },
    ],
    [
      'it is empty',
      'cut-short',
      (_request, answer) => {
        answer.writeHead(200, { 'content-type': 'application/json' }).end()
      },
    ],
    [
      'the connection is reset',
      'connection-failed',
      (_request, answer) => {
        answer.socket?.resetAndDestroy()
      },
    ],
    [
      'the server has a problem',
      'server-error',
      (_request, answer) => {
        answer.writeHead(503, { 'content-type': 'text/plain' }).end('try later')
      },
    ],
  ]
  for (const [what, code, script] of troubles) {
    test(what, async () => {
      const { url } = await serve(script)
      await assert.rejects(clientOf(url).profile(), (error) => {
        assert.ok(has(error, 'transient', code), `${(error as TidemarkError).code}`)
        assert.doesNotMatch(error.message, /secret|token-1/)
        return true
      })
    })
  }

  test('nobody answers at all', async () => {
    const { url, close } = await startServer(() => undefined)
    await close()
    await assert.rejects(clientOf(url).profile(), (error) => has(error, 'transient', 'connection-failed'))
  })

  test('a change of labels is answered with a page', async () => {
    const { url } = await serve((_request, answer) => {
      answer.writeHead(200, { 'content-type': 'text/html' }).end('<html>hello</html>')
    })
    const run = clientOf(url).batchModify({ ids: ['a'], add: ['TRASH'] })
    await assert.rejects(run, (error) => has(error, 'transient', 'wrong-content-type'))
  })

  test('it is larger than any answer of its kind, although then it stays so', async () => {
    const { url } = await serve((_request, answer) => {
      answer.writeHead(200, { 'content-type': 'application/json' })
      const more = (): void => {
        while (answer.write(' '.repeat(1_000_000)));
        answer.once('drain', more)
      }
      more()
    })
    await assert.rejects(clientOf(url).profile(), (error) => has(error, 'permanent', 'answer-too-large'))
  })
})

describe('silence', () => {
  test('ends a call that gets no answer', async () => {
    const clock = new FakeClock()
    const run = clientOf('http://unused.test', { clock, fetch: deaf, timeoutMs: 5_000 }).profile()
    const ended = assert.rejects(run, (error) => has(error, 'transient', 'timeout'))
    await clock.advance(4_999)
    assert.equal(clock.pendingTimers, 1)
    await clock.advance(1)
    await ended
    assert.equal(clock.pendingTimers, 0)
  })

  test('is measured between chunks: a slow answer may take longer than the time-out', async () => {
    const clock = new FakeClock()
    const text = messageJson('a')
    let at = 0
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        await clock.advance(900)
        if (at >= text.length) return controller.close()
        controller.enqueue(Buffer.from(text.slice(at, at + 20)))
        at += 20
      },
    })
    const fetch = async () => new Response(body, { headers: { 'content-type': 'application/json' } })
    const message = await clientOf('http://unused.test', { clock, fetch, timeoutMs: 1_000 }).get('a')
    assert.equal(message.id, 'a')
    assert.ok(clock.now() - Date.UTC(2026, 0, 1) > 5_000)
    assert.equal(clock.pendingTimers, 0)
  })

  test('is allowed for longer while much is sent', async () => {
    const clock = new FakeClock()
    const client = clientOf('http://unused.test', { clock, fetch: deaf, timeoutMs: 1_000 })
    const run = client.insert({ raw: Buffer.alloc(3_200_000), labelIds: [], internalMs: 0 })
    const ended = assert.rejects(run, (error) => has(error, 'transient', 'timeout'))
    await clock.advance(60_000)
    assert.equal(clock.pendingTimers, 1)
    await clock.advance(600_000)
    await ended
  })
})

describe('an aborted call', () => {
  const reason = new Error('stopped by hand')

  test('rejects with the reason at once, even where fetch does not care', async () => {
    const controller = new AbortController()
    const run = clientOf('http://unused.test', { fetch: deaf }).profile({ signal: controller.signal })
    setImmediate(() => controller.abort(reason))
    await assert.rejects(run, (error) => error === reason)
  })

  test('rejects with the reason while the token is awaited', async () => {
    const controller = new AbortController()
    const token = { access: () => new Promise<string>(() => undefined), refused: () => undefined }
    const run = clientOf('http://unused.test', { token }).profile({ signal: controller.signal })
    setImmediate(() => controller.abort(reason))
    await assert.rejects(run, (error) => error === reason)
  })

  test('is never made where the signal was aborted before', async () => {
    const { url, requests } = await serve((_request, answer) => sendJson(answer, PROFILE))
    const run = clientOf(url).profile({ signal: AbortSignal.abort(reason) })
    await assert.rejects(run, (error) => error === reason)
    assert.equal(requests.length, 0)
  })

  test('rejects with the reason in the middle of an answer, and closes the connection', async () => {
    const controller = new AbortController()
    const closed = Promise.withResolvers<void>()
    const { url } = await serve((_request, answer) => {
      answer.on('close', closed.resolve)
      answer.writeHead(200, { 'content-type': 'application/json' })
      answer.write('{', () => controller.abort(reason))
    })
    await assert.rejects(clientOf(url).profile({ signal: controller.signal }), (error) => error === reason)
    await closed.promise
  })
})

function has(error: unknown, kind: string, code: string): error is TidemarkError {
  return error instanceof TidemarkError && error.kind === kind && error.code === code
}
