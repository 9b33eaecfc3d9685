import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { systemClock } from '../../../base/clock.ts'
import { settingsFromToml } from '../config-import.ts'
import { ACCOUNT, type AgentWorld, Crash, withAgents } from './agent-world.suite.ts'
import { type McpServers, openMcp, readMcpServers, SERVERS_FILE, simpleSchema } from './mcp.ts'
import { mcpAllowance } from './profiles.ts'

const PROGRAM = join(import.meta.dirname, 'mcp-server.suite.ts')
const TOOL = 'mcp_crm_find_order'
const CALL = { name: TOOL, input: { order: '7' } }

function profile(over: object = {}): object {
  return { name: 'desk', mcp: [{ server: 'crm', tools: ['find_order'], ...over }] }
}

/** The file that the server of a mode writes its calls to. */
function serve(w: AgentWorld, mode: string): string {
  const file = join(w.home, `calls-${mode}`)
  const servers = { crm: { command: process.execPath, args: [PROGRAM, mode, file] } }
  writeFileSync(join(w.home, SERVERS_FILE), JSON.stringify({ servers }))
  return file
}

function callsIn(file: string): string[] {
  return existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []
}

const twice = (w: AgentWorld, ...calls: { name: string; input: unknown }[]): void => {
  w.script = (_asked, turn) => (turn < 2 ? { toolCalls: calls } : { text: 'Done.' })
}

describe('a server of tools', () => {
  test('is called for what the profile names, and what it answers is quoted', () =>
    withAgents({}, async (w) => {
      const file = serve(w, 'good')
      w.script = (_asked, turn) => (turn === 0 ? { toolCalls: [CALL] } : { text: 'Done.' })
      const result = await w.run({ profiles: [profile()] })
      assert.deepEqual([result.status, result.done.length], ['completed', 1])
      assert.deepEqual(callsIn(file), ['find_order {"order":"7"}'])
      const [, step] = await w.steps()
      assert.match(
        step!.text,
        /^It answered\.\n<quoted-(\w+)>\norder \{"order":"7"\}\n\[no text\]\n<\/quoted-\1>$/,
      )
    }))

  test('offers nothing but what the profile names, however it praises it, and its patterns are not run', () =>
    withAgents({}, async (w) => {
      const file = serve(w, 'poisons')
      const others = ['mcp_crm_delete_all', 'delete_all', 'mcp_crm_slow_schema'].map((name) => ({
        name,
        input: {},
      }))
      twice(w, ...others, CALL, { name: TOOL, input: {} }, { name: TOOL, input: { order: 5 } })
      const result = await w.run({ profiles: [profile()] })
      assert.deepEqual(Object.keys(w.asked[0]!.tools), [TOOL])
      assert.ok(JSON.stringify(w.asked[0]!.tools).length < 2_000)
      assert.ok(!JSON.stringify(w.asked[0]!.tools).includes('(a+)+'))
      assert.deepEqual([result.done.length, result.refusals], [2, 10])
      assert.deepEqual(callsIn(file), ['find_order {"order":"7"}', 'find_order {"order":"7"}'])
      assert.ok(!/<\/quoted-0>/.test(JSON.stringify(w.asked.at(-1))))
    }))

  test('that has a pattern which never ends does not stop this process', () =>
    withAgents({}, async (w) => {
      serve(w, 'good')
      w.script = (_asked, turn) =>
        turn === 0 ? { toolCalls: [{ name: 'mcp_crm_slow_schema', input: {} }] } : { text: 'Done.' }
      const result = await w.run({ profiles: [profile({ tools: ['slow_schema'] })] })
      assert.equal(result.done.length, 1)
    }))

  for (const mode of ['dies', 'floods', 'errors']) {
    test(`that ${mode} costs the run one call, and is left alone for the rest of it`, () =>
      withAgents({}, async (w) => {
        const file = serve(w, mode)
        twice(w, CALL)
        const result = await w.run({ profiles: [profile()] })
        assert.deepEqual([result.status, result.done.length, callsIn(file).length], ['completed', 0, 1])
        assert.deepEqual(
          (await w.steps()).filter(({ tool }) => tool !== '').map(({ outcome }) => outcome),
          ['failed', 'refused'],
        )
      }))
  }

  for (const mode of ['nonsense', 'asks']) {
    test(`that ${mode === 'asks' ? 'asks for more than it was asked' : 'talks nonsense between its answers'} gets nothing for it`, () =>
      withAgents({}, async (w) => {
        serve(w, mode)
        w.script = (_asked, turn) => (turn === 0 ? { toolCalls: [CALL] } : { text: 'Done.' })
        const result = await w.run({ profiles: [profile()] })
        assert.deepEqual([result.status, result.done.length], ['completed', 1])
      }))
  }

  test('that is not there, or dies when it is started, is missing, and the run goes on without it', () =>
    withAgents({}, async (w) => {
      serve(w, 'dead-at-start')
      w.script = (_asked, turn) => (turn === 0 ? { toolCalls: [CALL] } : { text: 'Done.' })
      assert.equal((await w.run({ profiles: [profile()] })).refusals, 1)
      assert.match(w.asked[0]!.system, /cannot be reached just now: crm/)
      const gone = { servers: { crm: { command: '/nowhere/at-all' } } }
      writeFileSync(join(w.home, SERVERS_FILE), JSON.stringify(gone))
      assert.equal((await w.run({ key: 'gone', profiles: [profile()] })).status, 'completed')
      writeFileSync(join(w.home, SERVERS_FILE), '{"servers":{}}')
      assert.equal((await w.run({ key: 'none', profiles: [profile()] })).status, 'completed')
    }))

  for (const [accounts, isAdmins, isUsed] of [
    [undefined, true, true],
    [undefined, false, false],
    [[ACCOUNT.toUpperCase()], false, true],
    [['other@example.com'], true, false],
  ] as const) {
    const whom = accounts ? `for ${accounts[0]}` : 'for nobody in particular'
    test(`${whom} is ${isUsed ? '' : 'not '}there for a mailbox of ${isAdmins ? 'an admin' : 'a member'}`, () =>
      withAgents({ isAdmins: async () => isAdmins }, async (w) => {
        const file = join(w.home, 'calls')
        const crm = { command: process.execPath, args: [PROGRAM, 'good', file], accounts }
        writeFileSync(join(w.home, SERVERS_FILE), JSON.stringify({ servers: { crm } }))
        w.script = (_asked, turn) => (turn === 0 ? { toolCalls: [CALL] } : { text: 'Done.' })
        const result = await w.run({ profiles: [profile()] })
        assert.deepEqual([result.done.length, callsIn(file).length], isUsed ? [1, 1] : [0, 0])
      }))
  }

  test('that hangs is given up when the job is told to stop', () =>
    withAgents({}, async (w) => {
      const controller = new AbortController()
      const file = serve(w, 'hangs')
      w.script = () => ({ toolCalls: [CALL] })
      const running = w.run({ profiles: [profile()], signal: controller.signal })
      const look = setInterval(() => {
        if (callsIn(file).length > 0) controller.abort(new Crash('stopped'))
      }, 20)
      await assert.rejects(running, Crash)
      clearInterval(look)
    }))

  test('that was started while the job was told to stop is ended with it', () =>
    withAgents({}, async (w) => {
      serve(w, 'hangs-at-start')
      const controller = new AbortController()
      const running = w.run({ profiles: [profile()], signal: controller.signal })
      controller.abort(new Crash('stopped'))
      await assert.rejects(running, Crash)
    }))

  test('in a file that is not right ends the run that needs it, and no other', () =>
    withAgents({}, async (w) => {
      writeFileSync(join(w.home, SERVERS_FILE), '{')
      const { status, code } = await w.run({ profiles: [profile()] })
      assert.deepEqual([status, code, w.asked.length], ['error', 'mcp-file', 0])
      assert.equal((await w.run({ key: 'without', profiles: [{ name: 'desk' }] })).status, 'completed')
    }))

  test('is not called again where nobody knows whether it was, unless the profile says that it may be', () =>
    withAgents({}, async (w) => {
      for (const repeatable of [false, true]) {
        const file = serve(w, `good${repeatable ? '-again' : ''}`)
        w.script = (_asked, turn) => (turn === 0 ? { toolCalls: [CALL] } : { text: 'Done.' })
        const key = `run-${repeatable}`
        const task = { key, profiles: [profile({ repeatable })] }
        // Begin, what was said, the call, its end: it dies before the last of these.
        w.dieAt = 7
        await assert.rejects(w.run(task), Crash)
        w.dieAt = undefined
        assert.equal(callsIn(file).length, 1)
        const result = await w.run(task)
        assert.deepEqual([result.status, callsIn(file).length], ['completed', repeatable ? 2 : 1])
      }
    }))
})

describe('a server of tools by HTTP', () => {
  async function withServer(listener: RequestListener, run: (url: string) => Promise<void>): Promise<void> {
    const server = createServer(listener)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    try {
      await run(`http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`)
    } finally {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    }
  }

  const open = (servers: McpServers, env: Record<string, string> = {}) =>
    openMcp(
      [mcpAllowance.parse({ server: 'crm', tools: ['find_order'] })],
      { servers, env, fetch: (url, init) => fetch(url, init), clock: systemClock },
      new AbortController().signal,
    )

  test('is told the secret of its header, by the name of the variable that holds it', async () => {
    const heard: (string | undefined)[] = []
    const listener: RequestListener = async (request, response) => {
      heard.push(request.headers.authorization)
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const text = Buffer.concat(chunks).toString()
      const { id, method, params } = (text === '' ? {} : JSON.parse(text)) as {
        id?: number
        method?: string
        params?: { protocolVersion?: string }
      }
      if (id === undefined) return void response.writeHead(request.method === 'GET' ? 405 : 202).end()
      const result =
        method === 'initialize'
          ? {
              protocolVersion: params?.protocolVersion,
              capabilities: { tools: {} },
              serverInfo: { name: 'x', version: '1' },
            }
          : { tools: [{ name: 'find_order', inputSchema: { type: 'object' } }] }
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
    }
    await withServer(listener, async (url) => {
      const opened = await open(
        { crm: { url, headers_env: { authorization: 'CRM' } } },
        { CRM: 'Bearer s3cret' },
      )
      assert.deepEqual(
        opened.tools.map(({ name }) => name),
        [TOOL],
      )
      await opened.close()
    })
    assert.ok(heard.length >= 2 && heard.every((one) => one === 'Bearer s3cret'))
  })

  test('that leads elsewhere, floods or answers with a page is missing', async () => {
    const listeners: RequestListener[] = [
      (_request, response) => void response.writeHead(307, { location: 'http://127.0.0.1:1/' }).end(),
      (_request, response) => void response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'),
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' })
        const piece = Buffer.alloc(100_000, 32)
        response.on('drain', () => response.write(piece))
        response.write(piece)
      },
      (_request, response) => void response.destroy(),
    ]
    for (const listener of listeners) {
      await withServer(listener, async (url) => {
        const opened = await open({ crm: { url, headers_env: {} } })
        assert.deepEqual([opened.tools, opened.missing], [[], ['crm']])
        await opened.close()
      })
    }
  })
})

describe('the file of servers', () => {
  test('is read where it is there, and refused where it is not right', () =>
    withAgents({}, async ({ home }) => {
      assert.deepEqual(await readMcpServers(home), {})
      const file = join(home, SERVERS_FILE)
      writeFileSync(file, '{"servers":{"crm":{"command":"crm-mcp"}}}')
      assert.deepEqual(await readMcpServers(home), { crm: { command: 'crm-mcp', args: [], env: [] } })
      const wrong = [
        '',
        '{',
        '[]',
        '{"servers":{"a":{}}}',
        '{"servers":{"a":{"url":"file:///x"}}}',
        '{"servers":{"a":{"command":"x","url":"http://x"}}}',
      ]
      for (const text of wrong) {
        writeFileSync(file, text)
        await assert.rejects(readMcpServers(home), { code: 'mcp-file' }, text)
      }
    }))
})

test('what the document shows of profiles, rules and servers is taken as it stands', () =>
  withAgents({}, async ({ home }) => {
    const text = readFileSync(join(import.meta.dirname, 'README.md'), 'utf8')
    const [, toml = ''] = /```toml\n(.*?)```/s.exec(text) ?? []
    const { routing, profiles } = settingsFromToml(toml)
    assert.deepEqual([routing?.length, profiles?.length], [1, 1])
    const [, json = ''] = /```json\n(.*?)```/s.exec(text) ?? []
    writeFileSync(join(home, SERVERS_FILE), json)
    assert.deepEqual(Object.keys(await readMcpServers(home)), ['crm', 'wiki'])
  }))

test('a schema is cut to what a model needs of it, whatever it holds', () => {
  let deep: object = { type: 'string' }
  for (let n = 0; n < 1_000; n++) deep = { type: 'object', properties: { a: deep } }
  assert.ok(JSON.stringify(simpleSchema(deep)).length < 1_000)
  const wide = Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`p${n}`, { type: 'string' }]))
  assert.ok(JSON.stringify(simpleSchema({ type: 'object', properties: wide })).length < 5_000)
  for (const odd of [
    null,
    5,
    'x',
    [],
    { type: ['x'] },
    { properties: [] },
    { type: 'object', required: 'x' },
  ]) {
    assert.equal(simpleSchema(odd).type, 'object', JSON.stringify(odd))
  }
})
