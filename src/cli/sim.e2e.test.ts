/** `tidemark sim` as people and programs start it. */
import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, describe, test } from 'node:test'
import { gmail as googleGmail } from '@googleapis/gmail'

const BIN = join(import.meta.dirname, '..', '..', 'bin', 'tidemark')
const home = mkdtempSync(join(tmpdir(), 'tidemark-sim-'))
const children: ChildProcessWithoutNullStreams[] = []
after(() => {
  for (const child of children) child.kill('SIGKILL')
  rmSync(home, { recursive: true, force: true })
})

type Ready = {
  baseUrl: string
  ports: { http: number }
  accounts: { address: string; accessToken: string; refreshToken: string }[]
  clientId: string
  clientSecret: string
  tokenUrl: string
  authUrl: string
  controlUrl: string
  jwksUrl: string
}

type Running = {
  child: ChildProcessWithoutNullStreams
  lines: string[]
  errors: () => string
  first: Promise<string>
}

function start(...args: string[]): Running {
  const child = spawn(BIN, ['sim', ...args], {
    env: { PATH: process.env.PATH ?? '', HOME: home, TIDEMARK_HOME: home },
  })
  children.push(child)
  const lines: string[] = []
  let errors = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    errors += text
  })
  const reader = createInterface({ input: child.stdout })
  const first = once(reader, 'line').then(([line]) => line as string)
  reader.on('line', (line) => lines.push(line))
  return { child, lines, errors: () => errors, first }
}

async function ended({ child }: Running): Promise<number | null> {
  if (child.exitCode === null) await once(child, 'close')
  return child.exitCode
}

describe('tidemark sim', () => {
  test('--json prints one line when it is ready, serves Google’s client, and ends with SIGTERM', async () => {
    const addresses = ['one@example.com', 'two@example.com']
    const running = start(
      ...['--json', '--messages', '40', '--seed', '3', '--units-per-minute', 'unlimited', '--since', '3'],
      ...addresses.flatMap((address) => ['--account', address]),
    )
    const ready = JSON.parse(await running.first) as Ready
    assert.deepEqual(
      ready.accounts.map(({ address }) => address),
      addresses,
    )
    assert.equal(ready.baseUrl, `http://127.0.0.1:${ready.ports.http}`)
    const client = googleGmail({
      version: 'v1',
      rootUrl: ready.baseUrl,
      headers: { authorization: `Bearer ${ready.accounts[1]!.accessToken}` },
    })
    const { data } = await client.users.getProfile({ userId: 'me' })
    assert.deepEqual([data.emailAddress, data.messagesTotal], ['two@example.com', 40])
    const body = new URLSearchParams({
      grant_type: 'refresh_token',
      refresh_token: ready.accounts[0]!.refreshToken,
      client_id: ready.clientId,
      client_secret: ready.clientSecret,
    })
    assert.equal((await fetch(ready.tokenUrl, { method: 'POST', body })).status, 200)
    for (const url of [ready.controlUrl, ready.jwksUrl]) assert.equal((await fetch(url)).status, 200)
    running.child.kill('SIGTERM')
    assert.equal(await ended(running), 0)
    assert.equal(running.lines.length, 1)
  })

  test('without --json it prints the settings that point Tidemark at it, and Ctrl-C ends it', async () => {
    const running = start('--messages', '5', '--fault', 'slow')
    assert.match(
      await running.first,
      /^A simulated Gmail is at http:\/\/127\.0\.0\.1:\d+, with 5 messages for/,
    )
    while (!running.lines.some((line) => line.includes('Ctrl-C'))) await once(running.child.stdout, 'data')
    const text = running.lines.join('\n')
    for (const name of ['API_URL', 'AUTH_URL', 'TOKEN_URL', 'CLIENT_ID', 'CLIENT_SECRET']) {
      assert.match(text, new RegExp(`export TIDEMARK_GMAIL_${name}='[^']+'`))
    }
    running.child.kill('SIGINT')
    assert.equal(await ended(running), 0)
  })

  test('--google-drive gives users who share documents, and --embedding-model an endpoint beside them', async () => {
    const flags = [
      '--google-drive',
      'ann@example.com',
      '--google-drive',
      'ben@example.com',
      '--documents',
      '50',
    ]
    const running = start(...flags, '--embedding-model', 'tiny')
    while (!running.lines.some((line) => line.includes('Ctrl-C'))) await once(running.child.stdout, 'data')
    const text = running.lines.join('\n')
    assert.match(
      text,
      /^A simulated Google Drive is at .*, with 50 files for ann@example\.com, ben@example\.com\./,
    )
    assert.match(text, /A simulated embeddings endpoint is at .*\/v1, with tiny\./)
    assert.match(text, /export TIDEMARK_GOOGLE_DRIVE_API_URL='http/)
    assert.doesNotMatch(text, /Gmail/)
    const [, token] = /ben@example\.com \(Google Drive\) {2}(\S+)/.exec(text)!
    const setting = (name: string): string => new RegExp(`${name}='([^']+)'`).exec(text)![1]!
    const body = new URLSearchParams({
      grant_type: 'refresh_token',
      refresh_token: token!,
      client_id: setting('CLIENT_ID'),
      client_secret: setting('CLIENT_SECRET'),
    })
    const signedIn = await fetch(setting('TOKEN_URL'), { method: 'POST', body })
    const { access_token: access } = (await signedIn.json()) as { access_token: string }
    const headers = { authorization: `Bearer ${access}` }
    const listed = await fetch(`${setting('API_URL')}/drive/v3/files`, { headers })
    assert.ok(((await listed.json()) as { files: unknown[] }).files.length > 0)
    running.child.kill('SIGINT')
    assert.equal(await ended(running), 0)
  })

  test('--drive gives a OneDrive, alone or beside mail, and says how to point Tidemark at it', async () => {
    const json = start('--json', '--drive', 'ann@example.com', '--drive-type', 'business', '--files', '20')
    const ready = JSON.parse(await json.first) as {
      accounts: unknown[]
      graphUrl: string
      drives: { id: string; account: string; accessToken: string }[]
    }
    const [drive] = ready.drives
    assert.deepEqual([ready.accounts, drive!.account], [[], 'ann@example.com'])
    const headers = { authorization: `Bearer ${drive!.accessToken}` }
    const answer = await fetch(`${ready.graphUrl}/me/drive`, { headers })
    const { id, driveType } = (await answer.json()) as { id: string; driveType: string }
    assert.deepEqual([id, driveType], [drive!.id, 'business'])
    const people = start('--messages', '5', '--account', 'ben@example.com', '--drive', 'ann@example.com')
    while (!people.lines.some((line) => line.includes('Ctrl-C'))) await once(people.child.stdout, 'data')
    const text = people.lines.join('\n')
    assert.match(text, /A simulated OneDrive is at .*\/v1\.0, with 1,000 files for ann@example\.com/)
    for (const name of ['API_URL', 'AUTH_URL', 'TOKEN_URL', 'DEVICE_URL', 'CLIENT_ID']) {
      assert.match(text, new RegExp(`export TIDEMARK_ONEDRIVE_${name}='[^']+'`))
    }
    for (const running of [json, people]) {
      running.child.kill('SIGINT')
      assert.equal(await ended(running), 0)
    }
  })

  test('--bucket and --queue, --gcs-bucket and --subscription give stores that announce their objects', async () => {
    const flags = [
      '--bucket',
      'logs',
      '--queue',
      'arrivals',
      '--gcs-bucket',
      'files',
      '--subscription',
      'new',
    ]
    const running = start(...flags)
    while (!running.lines.some((line) => line.includes('Ctrl-C'))) await once(running.child.stdout, 'data')
    const text = running.lines.join('\n')
    assert.match(text, /A simulated S3 is at .*, with logs\./)
    assert.match(text, /A simulated Pub\/Sub is at .*, with projects\/tidemark-sim\/subscriptions\/new;/)
    const url = /AWS_ENDPOINT_URL_SQS='([^']+)'/.exec(text)![1]!
    const post = (path: string, bucket: string) =>
      fetch(`${url}/control/${path}`, {
        method: 'POST',
        body: JSON.stringify({ bucket, key: 'a', text: 'x' }),
      })
    assert.equal((await post('s3/put', 'logs')).status, 200)
    assert.equal((await post('gcs/put', 'files')).status, 200)
    const queue = (await (await fetch(`${url}/control/sqs/queues/arrivals`)).json()) as { sent: number }
    assert.equal(queue.sent, 2, 'the test event and the object')
    const pubsub = (await (await fetch(`${url}/control/pubsub`)).json()) as {
      subscriptions: { waiting: number }[]
    }
    assert.equal(pubsub.subscriptions[0]?.waiting, 1)
    running.child.kill('SIGINT')
    assert.equal(await ended(running), 0)
  })

  test('wrong use is answered with what is allowed, and exit code 2', async () => {
    const cases: [args: string[], said: RegExp][] = [
      [['--fault', 'sunny'], /no fault profile "sunny"[\s\S]*mixed/],
      [['--messages', 'many'], /--messages is "many"/],
      [['--account', 'nobody'], /"nobody" is not a mail address/],
      [['--units-per-minute', '0'], /--units-per-minute/],
    ]
    for (const [args, said] of cases) {
      const running = start(...args)
      // Nothing is printed, so the first line never comes.
      running.first.catch(() => {})
      assert.equal(await ended(running), 2, args.join(' '))
      assert.match(running.errors(), said)
    }
  })

  test('a port that is taken is named', async () => {
    const first = start('--json', '--messages', '1')
    const { ports } = JSON.parse(await first.first) as Ready
    const second = start('--messages', '1', '--port', String(ports.http))
    assert.equal(await ended(second), 2)
    assert.match(second.errors(), new RegExp(`Port ${ports.http} is not free`))
    first.child.kill('SIGTERM')
    await ended(first)
  })
})
