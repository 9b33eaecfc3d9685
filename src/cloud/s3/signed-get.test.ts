/** GETs without the SDK: signed as the SDK signs them, and never in the way of it. */
import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { IncomingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { type Clock, FakeClock, systemClock } from '../../base/clock.ts'
import { encoded, Signer } from '../aws/signature.ts'
import { collect, failure, never } from '../object-store.suite.ts'
import { type Script, type ScriptedServer, startServer } from '../scripted-server.suite.ts'
import { S3Store } from './client.ts'

const credentials = { accessKeyId: 'AKIAEXAMPLE', secretAccessKey: 'a secret', sessionToken: 'a/token+=' }
const REGION = 'eu-north-1'
const KEYS = ['plain', "a b/c+d=e&f/ü's (1)*!~.ndjson", '100%/%20/?#', 'dir//double', 'trailing/']
const ETAG = '0123'

const give: Script = (_, answer) => {
  const headers = { etag: `"${ETAG}"`, 'content-range': 'bytes 0-2/3', 'content-length': 3 }
  answer.writeHead(206, headers).end('abc')
}

async function withStore(
  script: Script,
  run: (store: S3Store, server: ScriptedServer) => Promise<void>,
  patience: { clock: Clock; timeoutMs?: number } = { clock: systemClock },
) {
  const server = await startServer(script)
  const store = new S3Store({
    ...patience,
    region: REGION,
    endpoint: server.url,
    credentials,
    forcePathStyle: true,
  })
  try {
    await run(store, server)
  } finally {
    await store.close()
    await server.close()
  }
}

const read = async (store: S3Store, key: string): Promise<string> => {
  const version = { id: ETAG, versionId: 'v/1+' }
  const body = await store.read(`s3://bucket/${key}`, { version, fromByte: 0, signal: never() })
  return (await collect(body.bytes)).toString()
}
const isSdk = (headers: IncomingHttpHeaders): boolean => /aws-sdk/.test(String(headers['user-agent']))

test('the second GET of a bucket is made without the SDK, and asks for the same in the same words', async () => {
  await withStore(give, async (store, { requests }) => {
    for (const key of KEYS) {
      await read(store, 'first')
      assert.equal(await read(store, key), 'abc')
      const own = requests.at(-1)!
      assert.ok(!isSdk(own.headers))
      // Another store has learned nothing yet, and asks the SDK.
      await withStore(give, async (other, { requests: theirs }) => {
        assert.equal(await read(other, key), 'abc')
        const sdk = theirs.at(-1)!
        assert.ok(isSdk(sdk.headers))
        assert.equal(own.path.split('?')[0], sdk.path.split('?')[0])
        assert.equal(new URLSearchParams(own.path.split('?')[1]).get('versionId'), 'v/1+')
        for (const name of ['range', 'if-match', 'x-amz-security-token'])
          assert.equal(own.headers[name], sdk.headers[name], name)
      })
    }
  })
})

test('a few bytes that come slowly are not silence, however long all of them take', async () => {
  const clock = new FakeClock()
  const timeoutMs = 60_000
  const text = 'ten bytes!'
  const sockets: Socket[] = []
  const onSocket = (message: unknown): void => void sockets.push((message as { socket: Socket }).socket)
  const heardBytes = (): number => sockets.reduce((sum, { bytesRead }) => sum + bytesRead, 0)
  const slowly: Script = async (_, answer) => {
    const headers = { etag: `"${ETAG}"`, 'content-range': 'bytes 0-9/10', 'content-length': text.length }
    answer.writeHead(206, headers)
    for (const letter of text) {
      const before = heardBytes()
      answer.write(letter)
      while (heardBytes() === before && !answer.destroyed)
        await new Promise((resolve) => setImmediate(resolve))
      await clock.advance(timeoutMs / 3)
    }
    answer.end()
  }
  subscribe('net.client.socket', onSocket)
  try {
    const run = async (store: S3Store): Promise<void> => {
      for (const key of ['by the SDK', 'without it']) assert.equal(await read(store, key), text)
    }
    await withStore(slowly, run, { clock, timeoutMs })
  } finally {
    unsubscribe('net.client.socket', onSocket)
  }
})

test('a call of the SDK, signed once more, has the signature that the SDK gave it', async () => {
  await withStore(give, async (store, { requests }) => {
    await read(store, KEYS[1]!)
    const { headers, path } = requests[0]!
    const said = String(headers.authorization)
    const names = /SignedHeaders=([^,]+)/.exec(said)![1]!.split(';')
    const at = String(headers['x-amz-date'])
    const time = at.replace(/^(....)(..)(..)T(..)(..)(..)Z$/, '$1-$2-$3T$4:$5:$6Z')
    const [plain = '', query = ''] = path.split('?')
    const others = names.filter((name) => !/^(host|x-amz-(date|content-sha256|security-token))$/.test(name))
    const signed = new Signer().sign(
      {
        method: 'GET',
        host: String(headers.host),
        path: plain,
        query: Object.fromEntries(new URLSearchParams(query)),
        headers: Object.fromEntries(others.map((name) => [name, String(headers[name])])),
      },
      { region: REGION, service: 's3', credentials, nowMs: Date.parse(time) },
    )
    assert.equal(signed.authorization, said)
  })
  assert.equal(encoded("!'()*-_.~/"), '%21%27%28%29%2A-_.~%2F')
})

test('an answer that says elsewhere is followed by the SDK, and an error means what it means to the SDK', async () => {
  const statuses: (readonly [number, string] | undefined)[] = []
  const script: Script = (request, answer) => {
    const next = statuses.shift()
    if (!next) return give(request, answer)
    const [status, code] = next
    answer.writeHead(status, { 'content-type': 'application/xml' })
    answer.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>said so</Message></Error>`)
  }
  await withStore(script, async (store, { requests }) => {
    for (const [status, code] of [
      [404, 'NoSuchKey'],
      [412, 'PreconditionFailed'],
      [403, 'AccessDenied'],
      [403, 'InvalidAccessKeyId'],
      [503, 'SlowDown'],
      [500, 'InternalError'],
      [404, 'NoSuchBucket'],
    ] as const) {
      statuses.push([status, code])
      const bySdk = await failure(read(store, 'a'))
      assert.ok(isSdk(requests.at(-1)!.headers), code)
      await read(store, 'a')
      const count = requests.length
      statuses.push([status, code])
      const byUs = await failure(read(store, 'a'))
      assert.ok(!isSdk(requests.at(-1)!.headers), code)
      assert.equal(requests.length, count + 1, 'it is asked once')
      assert.deepEqual(
        [byUs.kind, byUs.code, byUs.message, byUs.hint],
        [bySdk.kind, bySdk.code, bySdk.message, bySdk.hint],
      )
      await forget(store)
    }
    await read(store, 'a')
    statuses.push([307, 'TemporaryRedirect'])
    assert.equal(await read(store, 'a'), 'abc')
    assert.ok(isSdk(requests.at(-1)!.headers))
  })

  /** So that the SDK is asked next. */
  async function forget(store: S3Store): Promise<void> {
    await read(store, 'a')
    statuses.push([307, 'TemporaryRedirect'], [500, 'InternalError'])
    await failure(read(store, 'a'))
  }
})
