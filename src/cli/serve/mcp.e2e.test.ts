/** `tidemark mcp` as a client starts it: a session of the real client over stdin and stdout. */
import assert from 'node:assert/strict'
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio'
import { ADDRESS, World } from '../../../e2e/mail/world.ts'
import { call } from '../../server/mcp/mcp.suite.ts'

const ARRIVAL_MS_MAX = 240_000
const BIN = join(import.meta.dirname, '..', '..', '..', 'bin', 'tidemark')

let world: World
const children = new Set<ChildProcessWithoutNullStreams>()
before(async () => {
  world = await World.start({ messages: 60, seed: 21 })
  world.sim.gmail.mailbox(ADDRESS).insert({
    raw: Buffer.from('From: Eve <eve@example.com>\r\nSubject: zebra crossing\r\n\r\nlook both ways'),
    internalMs: Date.UTC(2021, 5, 1),
  })
  const { code, stderr } = await world.run('mail', 'sync')
  assert.equal(code, 0, stderr)
})
after(async () => {
  for (const child of children) child.kill('SIGKILL')
  await world.close()
})

function env(): Record<string, string> {
  return world.env as Record<string, string>
}

/** As the client's own transport would start it, but with everything that it says kept. */
function start(args: readonly string[] = ['mcp']) {
  const child = spawn(BIN, [...args], { env: env() })
  children.add(child)
  const said = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].setEncoding('utf8').on('data', (text: string) => {
      said[name] += text
    })
  }
  const ended = once(child, 'close').then(([code]) => {
    children.delete(child)
    return code as number | null
  })
  const answer = async (id: number): Promise<Answer> => {
    for (;;) {
      const found = messagesIn(said.stdout).find((message) => message.id === id)
      if (found) return found
      await Promise.race([once(child.stdout, 'data'), ended.then(() => assert.fail(said.stderr))])
    }
  }
  const send = (message: object): void => {
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  }
  return { child, said, ended, answer, send }
}

type Answer = { jsonrpc: string; id?: number; result?: { serverInfo?: { name: string }; tools?: unknown[] } }

/** Every whole line must be a message: anything else on stdout would break clients. */
function messagesIn(stdout: string): Answer[] {
  const lines = stdout.split('\n').slice(0, -1)
  return lines.map((line) => {
    const message = JSON.parse(line) as Answer
    assert.equal(message.jsonrpc, '2.0')
    return message
  })
}

const HELLO = {
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
}

async function connected(args: readonly string[], era: 'legacy' | 'auto' = 'legacy'): Promise<Client> {
  const client = new Client(
    { name: 'test', version: '1' },
    era === 'auto' ? { versionNegotiation: { mode: 'auto' } } : {},
  )
  await client.connect(
    new StdioClientTransport({ command: BIN, args: [...args], env: env(), stderr: 'ignore' }),
  )
  return client
}

describe('tidemark mcp', () => {
  test('serves a whole session: tools, search, message, conversation, status, errors', async () => {
    for (const era of ['legacy', 'auto'] as const) {
      const client = await connected(['mcp'], era)
      const { tools } = await client.listTools()
      assert.deepEqual(tools.map(({ name }) => name).sort(), [
        ...[
          'assist_status',
          'bad_items',
          'drive_status',
          'files_find',
          'files_status',
          'ingest_status',
          'mail_message',
          'mail_search',
          'mail_thread',
          'read',
          'search',
          'status',
          'who',
        ],
      ])
      const found = await call(client, 'mail_search', { query: 'zebra' })
      const id = /message (\w+)/.exec(found.text)![1]!
      assert.match((await call(client, 'mail_message', { id })).text, /zebra crossing[\s\S]*look both ways/)
      assert.match(
        (await call(client, 'mail_thread', { id, account: ADDRESS })).text,
        /1 message, oldest first/,
      )
      const status = await call(client, 'status')
      assert.match(status.text, /No engine is running\. Nothing is being worked on\./)
      assert.match(status.text, /61 listed = 61 stored \+ 0 gone \+ 0 skipped \+ 0 bad/)
      const unknown = await call(client, 'mail_message', { id: 'ffff0000ffff0000' })
      assert.ok(unknown.isError)
      assert.match(unknown.text, /There is no message/)
      await client.close()
    }
  })

  test('says nothing but the protocol on stdout, asks no service, and ends with 0 when its input ends', async () => {
    const before = world.served
    const { child, said, ended, answer, send } = start()
    send(HELLO)
    assert.equal((await answer(1)).result?.serverInfo?.name, 'tidemark')
    send({ method: 'notifications/initialized' })
    send({ id: 2, method: 'tools/call', params: { name: 'mail_search', arguments: { query: 'zebra' } } })
    await answer(2)
    child.stdin.write('this is no JSON\n')
    send({ id: 3, method: 'tools/list' })
    assert.equal((await answer(3)).result?.tools?.length, 13)
    child.stdin.end()
    assert.equal(await ended, 0, said.stderr)
    assert.deepEqual(
      messagesIn(said.stdout).map(({ id }) => id),
      [1, 2, 3],
    )
    assert.ok(said.stdout.endsWith('}\n'))
    assert.equal(world.served, before)
  })

  test('ends with 0 on SIGINT and SIGTERM, also while its input is open', async () => {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      const { child, said, ended, answer, send } = start()
      send(HELLO)
      await answer(1)
      child.kill(signal)
      assert.equal(await ended, 0, said.stderr)
    }
  })

  test('works beside a server on the same home, and may start a sync only where it is told', async () => {
    const server = start(['--json', 'serve', '--port', '0'])
    while (!server.said.stdout.includes('\n')) await once(server.child.stdout, 'data')
    const client = await connected(['mcp', '--allow-write'])
    world.sim.gmail.mailbox(ADDRESS).insert({
      raw: Buffer.from('From: Eve <eve@example.com>\r\nSubject: quagga\r\n\r\njust arrived'),
      internalMs: Date.UTC(2021, 6, 1),
    })
    const { text, isError } = await call(client, 'mail_sync', { account: ADDRESS })
    assert.ok(!isError && !text.includes('No engine is running'), text)
    const deadline = Date.now() + ARRIVAL_MS_MAX
    for (;;) {
      assert.ok(Date.now() < deadline, 'the new mail never came')
      const { text: found } = await call(client, 'mail_search', { query: 'quagga' })
      if (found !== 'No message matches.') break
      // One that was under way before the mail arrived may have missed it.
      await call(client, 'mail_sync', {})
    }
    assert.match((await call(client, 'status')).text, /1 engine is running/)
    await client.close()
    const { url } = JSON.parse(server.said.stdout) as { url: string }
    const remote = new Client({ name: 'test', version: '1' })
    await remote.connect(
      new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
        requestInit: { headers: { authorization: `Bearer ${world.token}` } },
      }),
    )
    assert.equal((await remote.listTools()).tools.length, 13)
    assert.match((await call(remote, 'mail_search', { query: 'quagga' })).text, /just arrived/)
    await remote.close()
    server.child.kill('SIGTERM')
    assert.equal(await server.ended, 0, server.said.stderr)
  })

  test('on a home without a ledger says so, ends with 2, and makes nothing', async () => {
    const home = join(world.home, 'empty')
    const { said, ended } = start(['--home', home, 'mcp'])
    assert.equal(await ended, 2)
    assert.equal(said.stdout, '')
    assert.match(
      said.stderr,
      /Nothing is archived in .*empty yet\.\n {2}Connect an account with: tidemark account add/,
    )
    assert.ok(!existsSync(home) || readdirSync(home).length === 0)
  })
})
