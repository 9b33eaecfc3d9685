import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { describe, test } from 'node:test'
import { TidemarkError } from '../../base/errors.ts'
import type { Pace } from '../pace.ts'
import { bytesOf, cleanUp, DRIVE, ITEM, scripted, sendError } from './scripted-client.suite.ts'

cleanUp()

const CONTENT = Buffer.from('0123456789'.repeat(1_000))

function codeOf(code: string): (error: unknown) => boolean {
  return (error) => error instanceof TidemarkError && error.code === code
}

function redirect(answer: ServerResponse, location: string | undefined, status = 302): void {
  answer.writeHead(status, location === undefined ? {} : { location }).end()
}

function sendRange(answer: ServerResponse, range: string | undefined, content = CONTENT): void {
  const start = Number(/^bytes=(\d+)-$/.exec(range ?? '')?.[1] ?? -1)
  if (start < 0) return void answer.writeHead(200, { 'content-length': content.length }).end(content)
  if (start >= content.length) return void answer.writeHead(416).end()
  const head = { 'content-range': `bytes ${start}-${content.length - 1}/${content.length}` }
  answer.writeHead(206, head).end(content.subarray(start))
}

describe('a download', () => {
  test('goes to the address it was given, without a token, and resumes there', async () => {
    const { client, server } = await scripted(({ path, headers }, answer) => {
      if (path.endsWith('/content')) return redirect(answer, `http://${headers.host}/dl?tempauth=k`)
      sendRange(answer, headers.range)
    })
    const whole = await client.download(DRIVE, ITEM)
    assert.deepEqual([whole.offset, whole.total], [0, CONTENT.length])
    assert.deepEqual(await bytesOf(whole.stream), CONTENT)
    const rest = await client.download(DRIVE, ITEM, { offset: 9_990 })
    assert.deepEqual([rest.offset, rest.total], [9_990, CONTENT.length])
    assert.equal((await bytesOf(rest.stream)).toString(), '0123456789')
    const [asked, fetched, , resumed] = server.requests
    assert.deepEqual([asked!.headers.authorization, asked!.headers.range], ['Bearer token-1', undefined])
    assert.deepEqual([fetched!.headers.authorization, fetched!.headers.range], [undefined, undefined])
    assert.equal(resumed!.headers.range, 'bytes=9990-')
    assert.equal(fetched!.headers['accept-encoding'], 'identity')
  })

  test('takes one unit of the pace for its address, and none for its bytes', async () => {
    const seen: string[] = []
    const pace: Pace = async ({ method, units }, fn) => {
      seen.push(`${method} ${units}`)
      return await fn()
    }
    const { client } = await scripted(
      ({ path, headers }, answer) => {
        if (path.endsWith('/content')) return redirect(answer, `http://${headers.host}/dl`)
        sendRange(answer, headers.range)
      },
      { pace },
    )
    await bytesOf((await client.download(DRIVE, ITEM)).stream)
    assert.deepEqual(seen, ['content.get 1', 'content.bytes 0'])
  })

  test('from a server that ignores ranges begins at the beginning, and says so', async () => {
    const { client } = await scripted(({ path, headers }, answer) => {
      if (path.endsWith('/content')) return redirect(answer, `http://${headers.host}/dl`)
      sendRange(answer, undefined)
    })
    const { offset, stream } = await client.download(DRIVE, ITEM, { offset: 100 })
    assert.equal(offset, 0)
    assert.equal((await bytesOf(stream)).length, CONTENT.length)
  })

  test('takes bytes that come at once for all of them', async () => {
    const { client } = await scripted((_request, answer) => sendRange(answer, undefined))
    const { offset, stream } = await client.download(DRIVE, ITEM, { offset: 100 })
    assert.equal(offset, 0)
    assert.deepEqual(await bytesOf(stream), CONTENT)
  })

  test('of bytes that are not those which were asked for is refused', async () => {
    let range = ''
    const { client } = await scripted(({ path, headers }, answer) => {
      if (path.endsWith('/content')) return redirect(answer, `http://${headers.host}/dl`)
      answer.writeHead(206, range ? { 'content-range': range } : {}).end('x')
    })
    for (range of ['', 'bytes 5-9/10', 'bytes 3-4/10', 'lines 3-9/10', 'bytes 3-*/10']) {
      await assert.rejects(client.download(DRIVE, ITEM, { offset: 3 }), codeOf('damaged-answer'), range)
    }
    range = 'bytes 3-3/*'
    assert.equal((await client.download(DRIVE, ITEM, { offset: 3 })).total, undefined)
  })

  test('behind the end says so', async () => {
    const { client } = await scripted(({ path, headers }, answer) => {
      if (path.endsWith('/content')) return redirect(answer, `http://${headers.host}/dl`)
      sendRange(answer, headers.range)
    })
    await assert.rejects(client.download(DRIVE, ITEM, { offset: CONTENT.length }), codeOf('range'))
  })

  test('whose address is too fresh or too old is asked for again, a few times', async () => {
    let refusals = 1
    let status = 401
    const { client, server } = await scripted(({ path, headers }, answer) => {
      if (path.endsWith('/content')) return redirect(answer, `http://${headers.host}/dl`)
      if (refusals-- > 0) return void answer.writeHead(status).end('no')
      sendRange(answer, headers.range)
    })
    assert.deepEqual(await bytesOf((await client.download(DRIVE, ITEM)).stream), CONTENT)
    assert.equal(server.requests.length, 3)
    refusals = 2
    status = 404
    assert.deepEqual(await bytesOf((await client.download(DRIVE, ITEM)).stream), CONTENT)
    assert.equal(server.requests.length, 3 + 5)
    refusals = 99
    const error = await client.download(DRIVE, ITEM).catch((thrown: unknown) => thrown)
    assert.ok(error instanceof TidemarkError)
    // An item behind a dead address is not gone.
    assert.deepEqual([error.kind, error.code], ['transient', 'download-address'])
    assert.equal(server.requests.length, 3 + 5 + 6)
  })

  test('follows addresses that lead on, but not to strangers, in circles or nowhere', async () => {
    let locations: Record<string, string | undefined> = {}
    const { client, server } = await scripted(({ path, headers }, answer) => {
      const key = path.endsWith('/content') ? 'content' : path
      if (!(key in locations)) return sendRange(answer, headers.range)
      redirect(answer, locations[key]?.replace('HOST', headers.host!), 308)
    })
    locations = { content: 'http://HOST/a', '/a': '/b' }
    assert.equal((await client.download(DRIVE, ITEM, { offset: 5 })).offset, 5)
    assert.equal(server.requests.at(-1)!.headers.range, 'bytes=5-')
    for (const strange of ['http://evil.example/', 'file:///etc/passwd', 'http://user:pass@HOST/', 'b']) {
      locations = { content: strange }
      await assert.rejects(client.download(DRIVE, ITEM), codeOf('strange-address'), strange)
      locations = { content: 'http://HOST/a', '/a': strange.replace(/^b$/, 'http://127.0.0.2/') }
      await assert.rejects(client.download(DRIVE, ITEM), codeOf('strange-address'), strange)
    }
    for (locations of [{ content: undefined }, { content: 'http://HOST/a', '/a': undefined }]) {
      await assert.rejects(client.download(DRIVE, ITEM), codeOf('damaged-answer'))
    }
    locations = { content: 'http://HOST/a', '/a': '/a' }
    await assert.rejects(client.download(DRIVE, ITEM), codeOf('damaged-answer'))
  })

  test('of something that is gone says so', async () => {
    const { client } = await scripted((_request, answer) => sendError(answer, 404, 'itemNotFound'))
    await assert.rejects(client.download(DRIVE, ITEM), codeOf('not-found'))
  })
})

describe('the bytes of a download', () => {
  const big = Buffer.alloc(64 * 1024 * 1024, 3)

  test('are not fetched faster than they are taken, and a stream that is left is closed', async () => {
    let written = 0
    const closed = Promise.withResolvers<void>()
    const { client } = await scripted(async ({ path, headers }, answer) => {
      if (path.endsWith('/content')) return redirect(answer, `http://${headers.host}/dl`)
      answer.setMaxListeners(0).on('close', () => closed.resolve())
      answer.writeHead(200, { 'content-length': big.length })
      for (let at = 0; at < big.length && !answer.destroyed; at += 65_536) {
        const more = answer.write(big.subarray(at, at + 65_536))
        written = at + 65_536
        if (!more) await new Promise<void>((resolve) => answer.once('drain', resolve).once('close', resolve))
      }
    })
    const { stream } = await client.download(DRIVE, ITEM)
    const reader = stream.getReader()
    const { value } = await reader.read()
    assert.ok(value && value.length > 0)
    let before = -1
    while (before !== written) {
      before = written
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    assert.ok(written < big.length / 2, `${written} bytes were sent`)
    await reader.cancel()
    await closed.promise
  })

  test('are drawn from the budget, and end with the reason of an abort', async () => {
    const stop = new AbortController()
    const reason = new Error('enough')
    let drawn = 0
    const { client } = await scripted(
      ({ path, headers }, answer) => {
        if (path.endsWith('/content')) return redirect(answer, `http://${headers.host}/dl`)
        sendRange(answer, headers.range, big)
      },
      {
        spendBytes: async (direction, bytes) => {
          assert.equal(direction, 'down')
          drawn += bytes
          if (drawn > 1_000_000) stop.abort(reason)
        },
      },
    )
    const { stream } = await client.download(DRIVE, ITEM, { signal: stop.signal })
    await assert.rejects(bytesOf(stream), reason)
    assert.ok(drawn < big.length)
  })

  test('that break off are an error that may be tried again, and so is silence', async () => {
    const { client } = await scripted(
      ({ path, headers }, answer) => {
        if (path.endsWith('/content'))
          return redirect(answer, `http://${headers.host}${path.includes('!7') ? '/cut' : '/hang'}`)
        answer.writeHead(200, { 'content-length': 100 })
        answer.write('some', () => path === '/cut' && answer.destroy())
      },
      { timeoutMs: 2_000 },
    )
    const cut = await client.download(DRIVE, ITEM)
    await assert.rejects(bytesOf(cut.stream), codeOf('connection-failed'))
    const hang = await client.download(DRIVE, 'other')
    await assert.rejects(bytesOf(hang.stream), codeOf('timeout'))
  })

  test('that are fewer than the range has are cut short, though their length says otherwise', async () => {
    const { client } = await scripted(({ path, headers }, answer) => {
      if (path.endsWith('/content')) return redirect(answer, `http://${headers.host}/dl`)
      answer.writeHead(206, { 'content-range': 'bytes 5-99/100', 'content-length': 4 }).end('some')
    })
    const { stream } = await client.download(DRIVE, ITEM, { offset: 5 })
    await assert.rejects(bytesOf(stream), codeOf('cut-short'))
  })

  test('may be taken slowly: that is not silence', async () => {
    const { client } = await scripted(
      ({ path, headers }, answer) => {
        if (path.endsWith('/content')) return redirect(answer, `http://${headers.host}/dl`)
        sendRange(answer, headers.range)
      },
      { timeoutMs: 1_000 },
    )
    const { stream } = await client.download(DRIVE, ITEM)
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    assert.deepEqual(await bytesOf(stream), CONTENT)
  })
})
