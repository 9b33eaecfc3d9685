import assert from 'node:assert/strict'
import { afterEach, describe, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import fc from 'fast-check'
import { TidemarkError, UsageError } from '../../base/errors.ts'
import type { Pace, RawAnswer } from './client.ts'
import {
  askedIds,
  BOUNDARY,
  batchText,
  clientOf,
  errorJson,
  messageJson,
  type Part,
  partText,
  type Script,
  type ScriptedServer,
  sendBatch,
  startServer,
} from './scripted-server.suite.ts'

let server: ScriptedServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

async function serve(script: Script): Promise<ScriptedServer> {
  server = await startServer(script)
  return server
}

async function collect(
  run: (onAnswer: (answer: RawAnswer) => void) => Promise<void>,
): Promise<Map<string, RawAnswer>> {
  const answers = new Map<string, RawAnswer>()
  await run((answer) => {
    assert.ok(!answers.has(answer.id), `a second answer for ${answer.id}`)
    answers.set(answer.id, answer)
  })
  return answers
}

/** `ok`, or the code of the error. */
function summary(answers: Map<string, RawAnswer>): Record<string, string | undefined> {
  return Object.fromEntries([...answers.values()].map((one) => [one.id, one.ok ? 'ok' : one.error.code]))
}

describe('many messages in one call', () => {
  test('come with their bytes, matched by Content-ID and not by position', async () => {
    const { url, requests } = await serve((request, answer) => {
      const parts = askedIds(request).map((id) => ({ id, body: messageJson(id) }))
      sendBatch(answer, batchText(parts.reverse()))
    })
    const ids = Array.from({ length: 50 }, (_, n) => `18c${n}`)
    const answers = await collect((onAnswer) => clientOf(url).getRaw(ids, { onAnswer }))
    assert.equal(answers.size, 50)
    for (const answer of answers.values()) {
      assert.ok(answer.ok)
      const { raw, ...rest } = answer.message
      assert.equal(Buffer.from(raw).toString(), `Subject: ${answer.id}\r\n\r\n`)
      assert.deepEqual(rest, {
        id: answer.id,
        threadId: `t${answer.id}`,
        labelIds: ['INBOX'],
        snippet: `of ${answer.id}`,
        historyId: '18446744073709551615',
        internalMs: 1_700_000_000_123,
        sizeEstimate: raw.length,
      })
    }
    assert.deepEqual(
      requests.map(({ verb, path }) => `${verb} ${path}`),
      ['POST /batch/gmail/v1'],
    )
    assert.match(
      requests[0]!.body,
      /GET \/gmail\/v1\/users\/me\/messages\/18c0\?format=raw&fields=[\w,]+ HTTP\/1\.1/,
    )
  })

  test('fail one by one', async () => {
    const { url } = await serve((_request, answer) =>
      sendBatch(
        answer,
        batchText([
          { id: 'fine', body: messageJson('fine') },
          { id: 'gone', status: 404, body: errorJson(404, 'notFound') },
          { id: 'page', status: 404, body: '<html>not found</html>' },
          { id: 'server', status: 500, body: '' },
          { id: 'half', body: messageJson('half').slice(0, -20) },
          { id: 'other', body: messageJson('fine') },
          { id: 'foreign', body: messageJson('foreign').replace('"raw":"', '"raw":"%%') },
          { id: 'empty', body: messageJson('empty', '') },
          { id: 'undated', body: messageJson('undated').replace('"internalDate"', '"was"') },
          { id: 'stranger', body: messageJson('stranger') },
          { id: 'fine', body: messageJson('fine', 'again') },
          { id: 'unnamed', contentId: 'unnamed', body: messageJson('unnamed') },
        ]),
      ),
    )
    const ids = [
      'fine',
      'gone',
      'page',
      'server',
      'half',
      'other',
      'foreign',
      'empty',
      'undated',
      'unnamed',
      'absent',
    ]
    const answers = await collect((onAnswer) => clientOf(url).getRaw(ids, { onAnswer }))
    assert.deepEqual(summary(answers), {
      fine: 'ok',
      gone: 'not-found',
      page: 'not-gmail',
      server: 'server-error',
      half: 'damaged-answer',
      other: 'damaged-answer',
      foreign: 'damaged-answer',
      empty: 'damaged-answer',
      undated: 'damaged-answer',
      unnamed: 'damaged-answer',
      absent: 'damaged-answer',
    })
  })

  test('that break off keep what has come; the rest is transient', async () => {
    const { url } = await serve((_request, answer) => {
      answer.writeHead(200, { 'content-type': `multipart/mixed; boundary=${BOUNDARY}` })
      answer.write(
        `${partText({ id: 'a', body: messageJson('a') })}${partText({ id: 'b', body: messageJson('b') })}`,
        () => answer.destroy(),
      )
    })
    const answers = await collect((onAnswer) => clientOf(url).getRaw(['a', 'b', 'c'], { onAnswer }))
    // The delimiter behind b never came, so nobody knows whether b was whole.
    assert.deepEqual(summary(answers), { a: 'ok', b: 'connection-failed', c: 'connection-failed' })
  })

  test('that end without their last delimiter were cut short', async () => {
    const { url } = await serve((_request, answer) =>
      sendBatch(answer, partText({ id: 'a', body: messageJson('a') })),
    )
    const answers = await collect((onAnswer) => clientOf(url).getRaw(['a'], { onAnswer }))
    assert.deepEqual(summary(answers), { a: 'cut-short' })
  })

  test('that stall keep what has come', async () => {
    const { url } = await serve((_request, answer) => {
      answer.writeHead(200, { 'content-type': `multipart/mixed; boundary=${BOUNDARY}` })
      answer.write(`${partText({ id: 'a', body: messageJson('a') })}--${BOUNDARY}\r\n`)
    })
    const client = clientOf(url, { timeoutMs: 200 })
    const answers = await collect((onAnswer) => client.getRaw(['a', 'b'], { onAnswer }))
    assert.deepEqual(summary(answers), { a: 'ok', b: 'timeout' })
  })

  test('that are whole need no end of the connection', async () => {
    const { url } = await serve((_request, answer) => {
      answer.writeHead(200, { 'content-type': `multipart/mixed; boundary=${BOUNDARY}` })
      answer.write(batchText([{ id: 'a', body: messageJson('a') }]))
    })
    const answers = await collect((onAnswer) => clientOf(url).getRaw(['a'], { onAnswer }))
    assert.deepEqual(summary(answers), { a: 'ok' })
  })

  test('are asked for once where an id is given twice, and not at all where none is', async () => {
    const { url, requests } = await serve((request, answer) =>
      sendBatch(answer, batchText(askedIds(request).map((id) => ({ id, body: messageJson(id) })))),
    )
    const client = clientOf(url)
    const answers = await collect((onAnswer) => client.getRaw(['a', 'a'], { onAnswer }))
    assert.deepEqual(summary(answers), { a: 'ok' })
    await client.getRaw([], { onAnswer: () => assert.fail('nobody asked') })
    assert.equal(requests.length, 1)
  })

  test('are refused beyond what one call takes, and where an id is none', async () => {
    const client = clientOf('http://127.0.0.1:1')
    const onAnswer = (): void => assert.fail('nobody was asked')
    await assert.rejects(
      client.getRaw(
        Array.from({ length: 51 }, (_, n) => `${n}`),
        { onAnswer },
      ),
      UsageError,
    )
    await assert.rejects(client.getRaw(['a\r\nb'], { onAnswer }), UsageError)
    await assert.rejects(client.getRaw(['../labels'], { onAnswer }), UsageError)
  })

  test('give labels without bytes', async () => {
    const { url, requests } = await serve((request, answer) =>
      sendBatch(
        answer,
        batchText(
          askedIds(request).map(
            (id): Part =>
              id === 'b'
                ? { id, status: 404, body: errorJson(404, 'notFound') }
                : { id, body: messageJson(id) },
          ),
        ),
      ),
    )
    const answers = await clientOf(url).getLabels(['a', 'b'])
    assert.deepEqual(answers[0], {
      id: 'a',
      ok: true,
      message: {
        id: 'a',
        threadId: 'ta',
        labelIds: ['INBOX'],
        historyId: '18446744073709551615',
        internalMs: 1_700_000_000_123,
      },
    })
    assert.equal(answers[1]?.ok === false && answers[1].error.kind, 'gone')
    assert.match(requests[0]!.body, /format=minimal/)
  })
})

describe('a batch as a whole', () => {
  test('is rejected where Gmail refused it, with nothing delivered', async () => {
    const { url } = await serve((_request, answer) => {
      answer.writeHead(429, { 'content-type': 'application/json', 'retry-after': '3' })
      answer.end(errorJson(429, 'rateLimitExceeded'))
    })
    const run = clientOf(url).getRaw(['a'], { onAnswer: () => assert.fail('nothing came') })
    await assert.rejects(
      run,
      (error) => isError(error, 'throttled', 'rate-limit') && error.retryAfterMs === 3_000,
    )
  })

  test('is rejected where a page came in its place', async () => {
    const { url } = await serve((_request, answer) => {
      answer.writeHead(200, { 'content-type': 'text/html' })
      answer.end('<html>sign in</html>')
    })
    const run = clientOf(url).getRaw(['a'], { onAnswer: () => assert.fail('nothing came') })
    await assert.rejects(run, (error) => isError(error, 'transient', 'wrong-content-type'))
  })

  test('is paced by the price of its calls', async () => {
    const { url } = await serve((_request, answer) => sendBatch(answer, batchText([])))
    const calls: { method: string; units: number }[] = []
    const pace: Pace = ({ method, units }, fn) => {
      calls.push({ method, units })
      return fn()
    }
    await collect((onAnswer) => clientOf(url, { pace }).getRaw(['a', 'b', 'c'], { onAnswer }))
    assert.deepEqual(calls, [{ method: 'messages.get.batch', units: 60 }])
  })

  test('tells the pace what was refused, and the caller which', async () => {
    const refusal = { status: 429, head: 'Retry-After: 5\r\n', body: errorJson(429, 'rateLimitExceeded') }
    const { url } = await serve((_request, answer) =>
      sendBatch(
        answer,
        batchText([
          { id: 'a', body: messageJson('a') },
          { id: 'b', ...refusal },
          { id: 'c', ...refusal },
        ]),
      ),
    )
    const heard: unknown[] = []
    const delivered: string[] = []
    const pace: Pace = (_call, fn) =>
      fn().catch((error: unknown) => {
        heard.push([...delivered], error)
        throw error
      })
    const client = clientOf(url, { pace })
    const answers = await collect((onAnswer) =>
      client.getRaw(['a', 'b', 'c'], {
        onAnswer: (answer) => {
          delivered.push(answer.id)
          onAnswer(answer)
        },
      }),
    )
    assert.deepEqual(summary(answers), { a: 'ok', b: 'rate-limit', c: 'rate-limit' })
    const [before, error] = heard
    assert.deepEqual(before, ['a', 'b', 'c'])
    assert.ok(isError(error, 'throttled', 'rate-limit'))
    assert.deepEqual([error.refusedUnits, error.retryAfterMs], [40, 5_000])
  })

  test('is read no faster than its answers are taken', async () => {
    const body = messageJson('x', 'A'.repeat(2_000_000))
    let sent = 0
    const { url } = await serve(async (request, answer) => {
      answer.writeHead(200, { 'content-type': `multipart/mixed; boundary=${BOUNDARY}` })
      for (const id of askedIds(request)) {
        const more = answer.write(partText({ id, body: body.replace('"id":"x"', `"id":"${id}"`) }))
        sent += 1
        if (!more) await new Promise((resolve) => answer.once('drain', resolve))
      }
      answer.end(`--${BOUNDARY}--`)
    })
    let sentAtFirst = 0
    let running = 0
    const ids = Array.from({ length: 40 }, (_, n) => `m${n}`)
    await clientOf(url).getRaw(ids, {
      onAnswer: async (answer) => {
        assert.ok(answer.ok)
        running += 1
        assert.equal(running, 1)
        if (answer.id === 'm0') {
          // The server goes on until the buffers on the way are full.
          for (let still = 0, last = -1; still < 50; last = sent, still = last === sent ? still + 1 : 0)
            await turn()
          sentAtFirst = sent
        }
        running -= 1
      },
    })
    assert.equal(sent, 40)
    assert.ok(sentAtFirst < 20, `${sentAtFirst} of 40 were sent while the first was being taken`)
  })

  test('ends with the error of whoever takes its answers', async () => {
    const { url } = await serve((request, answer) =>
      sendBatch(answer, batchText(askedIds(request).map((id) => ({ id, body: messageJson(id) })))),
    )
    const full = new Error('the disk is full')
    let taken = 0
    const run = clientOf(url).getRaw(['a', 'b'], {
      onAnswer: () => {
        taken += 1
        throw full
      },
    })
    await assert.rejects(run, (error) => error === full)
    assert.equal(taken, 1)
  })

  test('ends with the reason of the signal', async () => {
    const { url } = await serve((_request, answer) => {
      answer.writeHead(200, { 'content-type': `multipart/mixed; boundary=${BOUNDARY}` })
      answer.write(`${partText({ id: 'a', body: messageJson('a') })}--${BOUNDARY}\r\n`)
    })
    const controller = new AbortController()
    const reason = new Error('stopped by hand')
    const seen: string[] = []
    const run = clientOf(url).getRaw(['a', 'b'], {
      signal: controller.signal,
      onAnswer: ({ id }) => {
        seen.push(id)
        setImmediate(() => controller.abort(reason))
      },
    })
    await assert.rejects(run, (error) => error === reason)
    assert.deepEqual(seen, ['a'])
  })

  test('asks once more, with a new token, for parts whose token was refused', async () => {
    const { url, requests } = await serve((request, answer) => {
      const old = request.headers.authorization === 'Bearer old'
      const refused = { status: 401, body: errorJson(401, 'authError') }
      const parts = askedIds(request).map(
        (id): Part =>
          id === 'never' || (old && id === 'b') ? { id, ...refused } : { id, body: messageJson(id) },
      )
      sendBatch(answer, batchText(parts))
    })
    let current = 'old'
    const token = {
      access: async () => current,
      refused: (one: string) => {
        if (one === 'old') current = 'new'
      },
    }
    const answers = await collect((onAnswer) =>
      clientOf(url, { token }).getRaw(['a', 'b', 'never'], { onAnswer }),
    )
    assert.deepEqual(summary(answers), { a: 'ok', b: 'ok', never: 'token-refused' })
    assert.deepEqual(requests.map(askedIds), [
      ['a', 'b', 'never'],
      ['b', 'never'],
    ])
  })
})

describe('a batch answer that was tampered with', () => {
  const ids = ['id0', 'id1', 'id2', 'id3', 'id4', 'id5']
  const bodyOf = (id: string): string => `Subject: ${`this belongs to ${id}. `.repeat(4)}\r\n\r\n`
  const partOf = (id: string): Part => ({ id, body: messageJson(id, bodyOf(id)) })
  const at = fc.nat(ids.map((id) => partText(partOf(id)).length).reduce((a, b) => a + b))
  // Less than what lies between two bodies is cut out: the halves of two parts cannot become one.
  const harm = fc.oneof(
    fc.record({ from: at, length: fc.nat(100), put: fc.uint8Array({ maxLength: 5 }) }),
    fc.record({ from: at, length: fc.constant(1e6), put: fc.constant(new Uint8Array()) }),
  )
  // In any order, some missing, some twice.
  const order = fc.array(fc.constantFrom(...ids), { maxLength: 9 })

  test('never gives the bytes of one message to another, and answers every id once', async () => {
    await fc.assert(
      fc.asyncProperty(
        order,
        fc.array(harm, { maxLength: 3 }),
        fc.integer({ min: 1, max: 900 }),
        async (order, harms, size) => {
          let bytes = Buffer.from(batchText(order.map(partOf)))
          for (const { from, length, put } of harms) {
            bytes = Buffer.concat([bytes.subarray(0, from), put, bytes.subarray(from + length)])
          }
          const client = clientOf('http://unused.test', { fetch: async () => answerWith(bytes, size) })
          const answers = await collect((onAnswer) => client.getRaw(ids, { onAnswer }))
          assert.deepEqual([...answers.keys()].sort(), ids)
          for (const answer of answers.values()) {
            if (!answer.ok) {
              assert.ok(answer.error instanceof TidemarkError)
              continue
            }
            assert.equal(answer.message.id, answer.id)
            const text = Buffer.from(answer.message.raw).toString()
            for (const other of ids) if (other !== answer.id) assert.ok(!text.includes(`to ${other}. this`))
            if (harms.length === 0) assert.equal(text, bodyOf(answer.id))
          }
          if (harms.length === 0) for (const id of order) assert.ok(answers.get(id)?.ok)
        },
      ),
      { numRuns: 500 },
    )
  })
})

function answerWith(bytes: Buffer, chunkBytes: number): Response {
  let at = 0
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= bytes.length) return controller.close()
      controller.enqueue(new Uint8Array(bytes.subarray(at, at + chunkBytes)))
      at += chunkBytes
    },
  })
  return new Response(body, { headers: { 'content-type': `multipart/mixed; boundary=${BOUNDARY}` } })
}

function isError(error: unknown, kind: string, code: string): error is TidemarkError {
  return error instanceof TidemarkError && error.kind === kind && error.code === code
}
