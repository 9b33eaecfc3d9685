import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, type TestContext, test } from 'node:test'
import { FakeClock } from '../../base/clock.ts'
import { TidemarkError } from '../../base/errors.ts'
import {
  AlertDelivery,
  type AlertSink,
  DELIVERY_TIMEOUT_MS,
  DELIVERY_WAITS_MS,
  type SentAlert,
  webhookSink,
} from './alert-delivery.ts'

const ALERT: SentAlert = {
  condition: 'sign-in',
  target: 'me',
  severity: 'critical',
  text: 'Connect me again.',
  at: Date.UTC(2026, 0, 1),
}

function deliver(send: AlertSink['send'], ...more: AlertSink[]) {
  const clock = new FakeClock()
  const errors: string[] = []
  const delivery = new AlertDelivery({
    clock,
    sinks: [{ name: 'first', send }, ...more],
    onError: (error, sink) => void errors.push(`${sink}: ${(error as Error).message}`),
  })
  return { clock, errors, delivery }
}

describe('a sink that fails', () => {
  test('is tried a few times with waits between, then reported', async () => {
    let tries = 0
    const { clock, errors, delivery } = deliver(async () => {
      tries += 1
      throw new Error('no')
    })
    delivery.send(ALERT)
    await clock.advance(0)
    assert.equal(tries, 1)
    for (const [i, waitMs] of DELIVERY_WAITS_MS.entries()) {
      await clock.advance(waitMs)
      assert.equal(tries, i + 2)
    }
    await clock.advance(3_600_000)
    assert.equal(tries, 1 + DELIVERY_WAITS_MS.length)
    assert.deepEqual(errors, ['first: no'])
  })

  test('is not tried again when that cannot help', async () => {
    let tries = 0
    const { clock, errors, delivery } = deliver(async () => {
      tries += 1
      throw new TidemarkError('404', { kind: 'permanent' })
    })
    delivery.send(ALERT)
    await clock.advance(3_600_000)
    assert.equal(tries, 1)
    assert.deepEqual(errors, ['first: 404'])
  })

  test('or never answers, or throws at once, keeps no other from its alert', async () => {
    const got: string[] = []
    const { clock, errors, delivery } = deliver(
      () => new Promise(() => {}),
      {
        name: 'second',
        send: () => {
          throw new TidemarkError('broken', { kind: 'permanent' })
        },
      },
      { name: 'third', send: async ({ text }) => void got.push(text) },
    )
    delivery.send(ALERT)
    await clock.advance(3 * DELIVERY_TIMEOUT_MS + 60_000)
    assert.deepEqual(got, [ALERT.text])
    assert.deepEqual(errors.sort(), ['first: no answer within 10 s', 'second: broken'])
  })

  test('does not let alerts pile up without end', async () => {
    const { clock, errors, delivery } = deliver(() => new Promise(() => {}))
    for (let i = 0; i < 150; i++) delivery.send(ALERT)
    assert.equal(errors.length, 50)
    assert.match(errors[0]!, /too many alerts/)
    const closed = delivery.close({ graceMs: 0 })
    await clock.advance(0)
    await closed
  })
})

describe('closing', () => {
  test('waits for what is on its way', async () => {
    let arrived = false
    const { clock, delivery } = deliver(
      () =>
        new Promise((resolve) => {
          clock.timer(1_000, () => {
            arrived = true
            resolve()
          })
        }),
    )
    delivery.send(ALERT)
    const closed = delivery.close()
    await clock.advance(1_000)
    await closed
    assert.equal(arrived, true)
    assert.equal(clock.pendingTimers, 0)
  })

  test('gives up on what takes too long, and takes no more', async () => {
    const { clock, errors, delivery } = deliver(() => new Promise(() => {}))
    delivery.send(ALERT)
    const closed = delivery.close({ graceMs: 500 })
    await clock.advance(500)
    await closed
    assert.equal(errors.length, 1)
    delivery.send(ALERT)
    assert.equal(errors.length, 2)
  })
})

describe('a webhook', () => {
  async function serve(
    t: TestContext,
    status: number,
    headers: Record<string, string> = {},
  ): Promise<{ url: string; bodies: string[] }> {
    const bodies: string[] = []
    const server = createServer((request, response) => {
      request.setEncoding('utf8')
      let body = `${request.method} ${request.headers['content-type']} `
      request.on('data', (part: string) => {
        body += part
      })
      request.on('end', () => {
        bodies.push(body)
        response.writeHead(status, headers).end('thanks')
      })
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    t.after(() => {
      server.closeAllConnections()
      server.close()
    })
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook/s3cr3t`, bodies }
  }

  const signal = new AbortController().signal

  test('gets the alert as JSON with a text', async (t) => {
    const { url, bodies } = await serve(t, 200)
    await webhookSink({ url, fetch }).send(ALERT, signal)
    const [head, body] = [bodies[0]!.slice(0, 22), bodies[0]!.slice(22)]
    assert.equal(head, 'POST application/json ')
    assert.deepEqual(JSON.parse(body), {
      from: 'tidemark',
      condition: 'sign-in',
      target: 'me',
      severity: 'critical',
      text: 'Connect me again.',
      at: '2026-01-01T00:00:00.000Z',
    })
  })

  test('that refuses is not asked again, one that is busy is', async (t) => {
    for (const [status, kind] of [
      [404, 'permanent'],
      [400, 'permanent'],
      [429, 'transient'],
      [503, 'transient'],
    ] as const) {
      const { url } = await serve(t, status)
      await assert.rejects(webhookSink({ url, fetch }).send(ALERT, signal), {
        message: `the webhook answered ${status}`,
        kind,
      })
    }
  })

  test('that points elsewhere is not followed there', async (t) => {
    const elsewhere = await serve(t, 200)
    for (const status of [301, 302, 307, 308]) {
      const { url } = await serve(t, status, { location: elsewhere.url })
      await assert.rejects(webhookSink({ url, fetch }).send(ALERT, signal), {
        message: `the webhook answered ${status}`,
        kind: 'permanent',
      })
    }
    assert.deepEqual(elsewhere.bodies, [])
  })

  test('that cannot be reached is named without its secret address', async () => {
    const url = 'http://127.0.0.1:1/hook/s3cr3t'
    await assert.rejects(webhookSink({ url, fetch }).send(ALERT, signal), (error: TidemarkError) => {
      assert.equal(error.kind, 'transient')
      assert.doesNotMatch(error.message, /s3cr3t/)
      return true
    })
  })
})
